"""Loops over particles for each law, in lanes of sixteen.

numba caches compiled code of plain module-level functions only, never of closures over a law. So each law gets a small
module file, written from templates into the JIT cache folder and imported by path; the next process finds its machine
code.

Layout: an attribute of r rows is a flat array, row k at [k * stride : k * stride + count]. A segment is a half-open
range [start, end) of particles of one material in one block, a row (start, end, block) of `segments`, int64. Lanes
beyond the end of a segment are computed and thrown away: no value outside is written, but up to 15 elements behind a
row's last segment are read, so every row needs that much room (stride >= last end + 15).
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES, OutputError
from mpm_nodes.kernels import jit
from mpm_nodes.materials.contract import Law, LawError, law
from mpm_nodes.materials.fused_loops import LOCAL_ROWS, fused_source
from mpm_nodes.materials.implicit_loops import IMPLICIT_LOOPS, implicit_source
from mpm_nodes.materials.tearing_loops import TEARING_LOOPS, tearing_source
from mpm_nodes.materials.viscosity_loops import viscosity_call, viscosity_source

__all__ = ["LawKernels", "law_kernels"]


@dataclass(frozen=True)
class LawKernels:
    """Compiled loops of one law; each takes the state arrays first, in the order of `law.state`.

    Attributes:
        law: The law.
        stress: `(state..., L, scale, tau, stride, segments, coeffs, dt)`: writes the Kirchhoff stress of explicit
            steps to the 6 rows of `tau` [Pa]; `L` is the stored velocity gradient (read by viscous laws only).
        advance: `(state..., L, stride, segments, coeffs, dt)`: state <- trial state for A = dt L.
        project: `(state..., scale, stride, segments, coeffs, dt)`: state <- return map, or None.
        scatter_with_forces: stress, then the scatter of m v + dt f; see `fused_loops` for the arguments of this and the next.
        scatter_apart: stress, then the scatters of momentum and of force; `scatter_apart_flip` without C.
        gather_and_update: gather, advance, project, limits and, if asked for, the move; `gather_and_update_flip` with FLIP.
        scatter_with_forces_tearing: as without `_tearing`, with the detection of tears before the stress and its limit after it,
            and `total, weak, threshold` as further arguments; so do the other scatters.
        gather_and_update_tearing: the limit of the deformation, the total deformation and its recovery where they belong, and
            `total, weak, alg11_expansion, exponent, rest` as further arguments; so does the one with FLIP.
        limits: `(state..., L, scale, stride, segments, coeffs, out)`: writes max |L|^2 and the fastest wave [m/s] of each
            segment to `out`, shape (segments, 2), float64; infinity for what is not finite.
        detect_tears: `(state..., total, weak, stride, segments, threshold)`: weak <- |dev C_P| > threshold; None, like the next
            two, for laws without `left_strain`.
        limit_deformation: `(state..., L, weak, stride, segments, dt, alg11_expansion)`: limits L of weak particles.
        recover_plasticity: `(state..., total, stride, segments, exponent, rest)`: raises C_P to the power 1 + 2 exponent.
        evaluate_trial: energy, domain and force at trial velocities; see `implicit_loops` for its arguments and the next two's.
        apply_hessian: action of the potential's second derivative on a direction.
        add_node_blocks: node-diagonal 3 x 3 blocks of it.
        store_local_hessians: `(state..., L, scale, stride, segments, coeffs, dt, units, hessians)`: positive parts of the
            particles' own 9 x 9 Hessians.

    `scale` holds `stiffness_scale`, or is an empty array of the solve's float type; `coeffs` comes from the law. One number more,
    `coeffs[len(law.names)]`, is the viscosity [Pa s] of the material itself: `stress` and the scatters add it (`viscosity_loops`).
    """

    law: Law
    stress: Callable[..., None]
    advance: Callable[..., None]
    project: Callable[..., None] | None
    limits: Callable[..., None]
    scatter_with_forces: Callable[..., None]
    scatter_apart: Callable[..., None]
    scatter_apart_flip: Callable[..., None]
    gather_and_update: Callable[..., None]
    gather_and_update_flip: Callable[..., None]
    scatter_with_forces_tearing: Callable[..., None]
    scatter_apart_tearing: Callable[..., None]
    scatter_apart_flip_tearing: Callable[..., None]
    gather_and_update_tearing: Callable[..., None]
    gather_and_update_flip_tearing: Callable[..., None]
    evaluate_trial: Callable[..., None]
    apply_hessian: Callable[..., None]
    add_node_blocks: Callable[..., None]
    store_local_hessians: Callable[..., None]
    detect_tears: Callable[..., None] | None = None
    limit_deformation: Callable[..., None] | None = None
    recover_plasticity: Callable[..., None] | None = None


def law_kernels(law_id: str, dtype: Any = np.float32) -> LawKernels:
    """Return the loops of a law for arrays of float32 or float64; compiled at the first call of each.

    Raises:
        LawError: When the law is unknown or the float type is another one.
    """
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise LawError(f"law {law_id}: lanes of {np.dtype(dtype)} do not exist; choose float32 or float64")
    return _kernels_of(law(law_id))


@functools.cache
def _kernels_of(found: Law) -> LawKernels:
    module = _import_file(_write(found))
    fused = ("scatter_with_forces", "scatter_apart", "scatter_apart_flip", "gather_and_update", "gather_and_update_flip")
    return LawKernels(found, module.stress, module.advance, getattr(module, "project", None), module.limits,
                      *(getattr(module, name + suffix) for suffix in ("", "_tearing") for name in fused),
                      *(getattr(module, name) for name in IMPLICIT_LOOPS),
                      *(getattr(module, name, None) for name in TEARING_LOOPS))


# ---------------------------------------------------------------- the source
_HEAD = '''"""Loops over particles for the law "{id}", written by mpm_nodes.materials.codegen."""

import sys

import numpy as np
from numba import get_thread_id

from mpm_nodes.kernels import mat3, tearing
from mpm_nodes.kernels.gather import gather_run
from mpm_nodes.kernels.jit import inline, kernel, part
from mpm_nodes.kernels.lane_memory import lane_constant, load, prefetch, store, store_first, to_double
from mpm_nodes.kernels.lanes import absolute, any_lane, both, broadcast, const, hmax, hsum, maximum, negate, select
from mpm_nodes.kernels.local_hessians import store_positive
from mpm_nodes.kernels.motion import move_run
from mpm_nodes.kernels.node_blocks import scatter_blocks
from mpm_nodes.kernels.parallel import parallel_for
from mpm_nodes.kernels.scatter import scatter_run
from mpm_nodes.kernels.tiles import SCRATCH, SECOND_TILE, add_tile, load_change_tile, load_tile, prefetch_tile
from mpm_nodes.materials import newtonian_viscosity

law = sys.modules["{module}"]
lane_index = lane_constant(range(16))
ROWS = {rows}
'''

# index and literals are int64 in every call of a function inside a loop: each other type would compile it once more
# numba's array analysis fails on tuples of lanes in a parallel function: the loop over lanes is a function of its own
_STRESS = '''
@inline
def stress_in({state_names}, velocity_gradient, scale, tau, tau_stride, tau_shift, stride, start, end, ahead, coeffs, dt):
    for i in range(start, end, 16):
        {prefetch_state}
        {load_state}
        {load_coeffs}
        {stress}
        p = mat3.pack(T)
        if i + 16 <= end:
            {store_stress}
        else:
            {store_first_stress}


@part
def stress_block(k, {state_names}, velocity_gradient, scale, tau, stride, segments, coeffs, dt):
    start, end, tau_stride, tau_shift = segments[k, 0], segments[k, 1], stride, np.int64(0)
    stress_in({state_names}, velocity_gradient, scale, tau, tau_stride, tau_shift, stride, start, end, np.int64(0), coeffs, dt)
    {add_viscosity}


@kernel(fastmath=False)
def stress({state_names}, velocity_gradient, scale, tau, stride, segments, coeffs, dt):
    parallel_for(stress_block, segments.shape[0],
                 ({state_names}, velocity_gradient, scale, tau, stride, segments, coeffs, dt))
'''

_ADVANCE = '''
@inline
def advance_in({state_names}, velocity_gradient, L_stride, L_shift, stride, start, end, ahead, coeffs, dt):
    for i in range(start, end, 16):
        {prefetch_state}
        {load_state}
        {load_unscaled_coeffs}
        step = broadcast(x, dt)
        A = mat3.scale({load_gradient}, step)
        new = law.advance(state, A, c, step)
        if i + 16 <= end:
            {store_state}
        else:
            {store_first_state}


@part
def advance_block(k, {state_names}, velocity_gradient, stride, segments, coeffs, dt):
    advance_in({state_names}, velocity_gradient, stride, np.int64(0), stride, segments[k, 0], segments[k, 1], np.int64(0),
               coeffs, dt)


@kernel(fastmath=False)
def advance({state_names}, velocity_gradient, stride, segments, coeffs, dt):
    parallel_for(advance_block, segments.shape[0],
                 ({state_names}, velocity_gradient, stride, segments, coeffs, dt))
'''

_PROJECT = '''
@inline
def project_in({state_names}, scale, stride, start, end, coeffs, dt):
    for i in range(start, end, 16):
        {load_state}
        {load_coeffs}
        new = law.project(state, c, broadcast(x, dt))
        if i + 16 <= end:
            {store_state}
        else:
            {store_first_state}


@part
def project_block(k, {state_names}, scale, stride, segments, coeffs, dt):
    project_in({state_names}, scale, stride, segments[k, 0], segments[k, 1], coeffs, dt)


@kernel(fastmath=False)
def project({state_names}, scale, stride, segments, coeffs, dt):
    parallel_for(project_block, segments.shape[0],
                 ({state_names}, scale, stride, segments, coeffs, dt))
'''

_LIMITS = '''
@inline
def seen(value, inside):
    # a comparison with NaN is false: what is not a number counts as huge
    huge = const(value, 3e38)
    return select(inside, select(value < huge, value, huge), const(value, 0.0))


@inline
def limits_in({state_names}, velocity_gradient, L_stride, L_shift, scale, stride, start, end, coeffs, out, k):
    zero = const(load(velocity_gradient, L_shift + start), 0.0)
    gradient, wave = zero, zero
    for i in range(start, end, 16):
        {load_state}
        {load_coeffs}
        L = {load_gradient}
        inside = lane_index(x) < broadcast(x, end - i)
        gradient = maximum(gradient, seen(mat3.double_dot(L, L), inside))
        wave = maximum(wave, seen(law.wave_speed(state, c), inside))
    out[k, 0], out[k, 1] = hmax(gradient), hmax(wave)
    for j in range(2):
        if out[k, j] > 2.9e38:
            out[k, j] = np.inf


@part
def limits_block(k, {state_names}, velocity_gradient, scale, stride, segments, coeffs, out):
    limits_in({state_names}, velocity_gradient, stride, np.int64(0), scale, stride, segments[k, 0], segments[k, 1], coeffs,
              out, k)


@kernel(fastmath=False)
def limits({state_names}, velocity_gradient, scale, stride, segments, coeffs, out):
    parallel_for(limits_block, segments.shape[0],
                 ({state_names}, velocity_gradient, scale, stride, segments, coeffs, out))
'''


def _source(found: Law) -> str:
    """Return the source of the law's module."""
    loads = [_load(name, ATTRIBUTES[name].rows) for name in found.state]
    doubles = [_load(name, ATTRIBUTES[name].rows, "to_double(load({}))") for name in found.state]
    first = "state[0][0]" if ATTRIBUTES[found.state[0]].rows > 1 else "state[0]"
    coeffs = [f"broadcast(x, coeffs[{index}])" for index in range(len(found.names))]
    scaled = [f"s * {value}" if index in found.stiffness else value for index, value in enumerate(coeffs)]
    pieces = {
        "id": found.id,
        "rows": LOCAL_ROWS,
        "module": found.module.__name__,
        "state_names": ", ".join(found.state),
        "load_state": _lines([f"state = {_tuple(loads)}", f"x = {first}"]),
        "prefetch_state": _lines(
            [f"prefetch({name}, {_row(row)} + ahead)" for name in found.state for row in range(ATTRIBUTES[name].rows)]),
        "load_unscaled_coeffs": f"c = {_tuple(coeffs)}",
        "load_coeffs": _lines(
            ["s = const(x, 1.0)", "if scale.size > 0:", "    s = load(scale, i)", f"c = {_tuple(scaled)}"]),
        "load_state_double": _lines([f"state = {_tuple(doubles)}", f"x = {first}"]),
        "load_coeffs_double": _lines(
            ["s = const(x, 1.0)", "if scale.size > 0:", "    s = to_double(load(scale, i))", f"c = {_tuple(scaled)}"]),
        "load_gradient": _tuple([f"load(velocity_gradient, {row} * L_stride + L_shift + i)" for row in range(9)]),
        "stress": _lines(_stress_lines(found)),
        "volume_ratio": _volume_ratio(found),
        "viscosity": len(found.names),
    }
    pieces["add_viscosity"] = viscosity_call(pieces)
    for store, tail in (("store", ""), ("store_first", ", end - i")):
        pieces[f"{store}_stress"] = _lines(
            [f"{store}(tau, {row} * tau_stride + tau_shift + i, p[{row}]{tail})" for row in range(6)], 12)
        pieces[f"{store}_state"] = _lines(
            [line for index, name in enumerate(found.state)
             for line in _stores(store, name, f"new[{index}]", ATTRIBUTES[name].rows, tail)], 12)
    parts = [_ADVANCE, *([_PROJECT] if found.function("project") else []), _LIMITS]
    tears = found.function("left_strain") is not None
    return "\n".join([_HEAD.format(**pieces), viscosity_source(pieces), _STRESS.format(**pieces),
                       *(part.format(**pieces) for part in parts), *([tearing_source(pieces)] if tears else []),
                       fused_source(found.function("project") is not None, pieces, tears), implicit_source(pieces)])


def _stress_lines(found: Law) -> list[str]:
    at_rest = "T = law.kirchhoff(state, c)"
    general = "T = law.stress(state, mat3.zero(x), c, broadcast(x, dt))"
    lines = [at_rest if found.function("kirchhoff") else general]
    if found.function("viscous_stress"):
        lines += [f"L = {_load('velocity_gradient', 9)}", "T = mat3.add(T, law.viscous_stress(state, L, c))"]
    return lines


def _volume_ratio(found: Law) -> str:
    """Return the expression of J; laws that know no volume get no viscosity (`law_of` refuses it)."""
    if found.function("volume_ratio"):
        return "law.volume_ratio(state)"
    return "law.left_strain(state)[0]" if found.function("left_strain") else "const(x, 1.0)"


def _row(index: int) -> str:
    return ("", "stride + ", *(f"{k} * stride + " for k in range(2, 9)))[index] + "i"


def _load(array: str, rows: int, form: str = "load({})") -> str:
    values = [form.format(f"{array}, {_row(row)}") for row in range(rows)]
    return values[0] if rows == 1 else _tuple(values)


def _stores(store: str, array: str, value: str, rows: int, tail: str) -> list[str]:
    if rows == 1:
        return [f"{store}({array}, i, {value}{tail})"]
    return [f"{store}({array}, {_row(row)}, {value}[{row}]{tail})" for row in range(rows)]


def _tuple(values: list[str]) -> str:
    return f"({', '.join(values)},)"


def _lines(lines: list[str], indent: int = 8) -> str:
    return ("\n" + " " * indent).join(lines)


# ---------------------------------------------------------------- the file
def _write(found: Law) -> Path:
    """Write the law's module unless it is there; the name holds a digest of all that the file depends on."""
    source = _source(found)
    digest = hashlib.sha256(source.encode())
    if found.module.__file__:
        digest.update(Path(found.module.__file__).read_bytes())  # a user's law is not in the cache folder's digest
    path = jit.CACHE_FOLDER / "laws" / f"{found.id}_{digest.hexdigest()[:16]}.py"
    if path.exists() and path.read_text() == source:
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".law")
        with os.fdopen(handle, "w") as file:
            file.write(source)
        # numba's cache compares the time of the source: two processes that write at once must agree
        os.utime(temporary, (1_000_000_000, 1_000_000_000))
        os.replace(temporary, path)
    except OSError as error:
        raise OutputError(f"JIT cache folder {path.parent}: {error.strerror}; set MPM_NODES_CACHE to a folder that can "
                          "be written") from error
    return path


def _import_file(path: Path) -> ModuleType:
    name = "mpm_nodes_law_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LawError(f"{path}: cannot be imported; empty the cache folder")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
