"""Compiled loops over the particles of one law, in lanes of sixteen, with arguments by place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.kernels.composition import generated
from mpm_nodes.kernels.composition.fragments import Lanes
from mpm_nodes.kernels.composition.source import LOCAL_ROWS, column_name
from mpm_nodes.materials.contract import Law, LawError, law
from mpm_nodes.materials.implicit_loops import IMPLICIT_LOOPS, implicit_source
from mpm_nodes.materials.law_fragments import ADVANCE, PROJECT, RATES, STRESS
from mpm_nodes.materials.values import FloatType

__all__ = ["LawLoops", "law_loops"]


@dataclass(frozen=True)
class LawLoops:
    """Compiled loops of one law; each takes the state arrays first, in the order of `law.state`.

    Attributes:
        law: The law.
        stress: `(state..., L, scale, tau, stride, segments, coeffs, dt)`: writes the Kirchhoff stress of explicit
            steps to the 6 rows of `tau` [Pa]; `L` is the stored velocity gradient (read by viscous laws only).
        advance: `(state..., L, stride, segments, coeffs, dt)`: state <- trial state for A = dt L.
        project: `(state..., scale, stride, segments, coeffs, dt)`: state <- return map, or None.
        limits: `(state..., L, scale, stride, segments, coeffs, out)`: writes max |L|^2 and the fastest wave [m/s] of each
            segment to `out`, shape (segments, 2), float64; infinity for what is not finite.
        evaluate_trial: energy, domain and force at trial velocities; see `implicit_loops` for its arguments and the next two's.
        apply_hessian: action of the potential's second derivative on a direction.
        add_node_blocks: node-diagonal 3 x 3 blocks of it.
        store_local_hessians: `(state..., L, scale, stride, segments, coeffs, dt, units, hessians)`: positive parts of the
            particles' own 9 x 9 Hessians.

    `scale` holds `stiffness_scale`, or is an empty array of the solve's float type; `coeffs` comes from the law. One number more,
    `coeffs[len(law.names)]`, is the viscosity [Pa s] of the material itself: `stress` adds it.
    """

    law: Law
    stress: Callable[..., None]
    advance: Callable[..., None]
    project: Callable[..., None] | None
    limits: Callable[..., None]
    evaluate_trial: Callable[..., None]
    apply_hessian: Callable[..., None]
    add_node_blocks: Callable[..., None]
    store_local_hessians: Callable[..., None]


def law_loops(law_id: str, dtype: FloatType = np.float32) -> LawLoops:
    """Return the loops of a law for arrays of float32 or float64; compiled at the first call of each.

    Raises:
        LawError: When the law is unknown or the float type is another one.
    """
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise LawError(f"law {law_id}: lanes of {np.dtype(dtype)} do not exist; choose float32 or float64")
    return _loops_of(law(law_id))


# ---------------------------------------------------------------- loops of explicit steps
class Loop:
    """The loop of a law's fragments over segments, with arguments by place; see `LawLoops`."""

    def __init__(self, found: Law, fragments: Sequence[Lanes], names: Sequence[str]) -> None:
        self.law, self.fragments = found, tuple(fragment for fragment in fragments if fragment.fits(found))
        self.names = (*map(column_name, found.state), *names)

    @functools.cached_property
    def composed(self) -> generated.ComposedLoop:
        """The composed loop."""
        return generated.composed_loop(self.law, self.fragments, {**ATTRIBUTES, **self.law.fields})

    def __call__(self, *arguments: Any) -> None:
        self.composed(dict(zip(self.names, arguments, strict=True)))

    @property
    def stats(self) -> Any:
        """What numba counts of its compilations."""
        return getattr(self.composed.run, "stats", None)


@functools.cache
def _loops_of(found: Law) -> LawLoops:
    scale, tail = "stiffness_scale", ("stride", "segments", "coefficients")
    projects = found.function("project") is not None
    return LawLoops(
        found,
        Loop(found, STRESS, ("velocity_gradient", scale, "stress", *tail, "dt")),
        Loop(found, ADVANCE, ("velocity_gradient", *tail, "dt")),
        Loop(found, PROJECT, (scale, *tail, "dt")) if projects else None,
        Loop(found, (RATES,), ("velocity_gradient", scale, *tail, "largest")),
        *(getattr(_implicit_module(found), name) for name in IMPLICIT_LOOPS),
    )


# ---------------------------------------------------------------- loops of implicit steps
_HEAD = '''"""Loops over particles for the law "{id}", written by mpm_nodes.materials.codegen."""

import sys

import numpy as np
from numba import get_thread_id

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.transfers.gather import gather_run
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.lanes.memory import lane_constant, load, store, store_first, to_double
from mpm_nodes.kernels.lanes.arithmetic import absolute, both, broadcast, const, hsum, negate, select
from mpm_nodes.kernels.algebra.local_hessians import store_positive
from mpm_nodes.kernels.transfers.node_blocks import scatter_blocks
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.transfers.scatter import scatter_run
from mpm_nodes.kernels.transfers.tiles import SCRATCH, add_tile, load_tile
from mpm_nodes.materials import newtonian_viscosity
from mpm_nodes.materials.values import FloatType

law = sys.modules["{module}"]
lane_index = lane_constant(range(16))
ROWS = {rows}
'''


@functools.cache
def _implicit_module(found: Law) -> ModuleType:
    source = _source(found)
    path = generated.written(source, f"{found.id}_implicit", generated.foreign_files(found, ()))
    return generated.imported(path)


def _source(found: Law) -> str:
    """Return the source of the law's loops of implicit steps."""
    state = [(column_name(name), field.rows) for name, field in found.fields.items()]
    loads = [_load(name, rows) for name, rows in state]
    doubles = [_load(name, rows, "to_double(load({}))") for name, rows in state]
    first = "state[0][0]" if state[0][1] > 1 else "state[0]"
    coeffs = [f"broadcast(x, coeffs[{index}])" for index in range(len(found.names))]
    scaled = [f"s * {value}" if index in found.stiffness else value for index, value in enumerate(coeffs)]
    pieces = {
        "id": found.id,
        "rows": str(LOCAL_ROWS),
        "module": found.module.__name__,
        "state_names": ", ".join(name for name, _ in state),
        "load_state": _lines([f"state = {_tuple(loads)}", f"x = {first}"]),
        "load_coeffs": _lines(["s = const(x, 1.0)", "if scale.size > 0:", "    s = load(scale, i)", f"c = {_tuple(scaled)}"]),
        "load_state_double": _lines([f"state = {_tuple(doubles)}", f"x = {first}"]),
        "load_coeffs_double": _lines(
            ["s = const(x, 1.0)", "if scale.size > 0:", "    s = to_double(load(scale, i))", f"c = {_tuple(scaled)}"]
        ),
        "volume_ratio": _volume_ratio(found),
        "viscosity": str(len(found.names)),
    }
    return _HEAD.format(**pieces) + implicit_source(pieces)


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


def _tuple(values: list[str]) -> str:
    return f"({', '.join(values)},)"


def _lines(lines: list[str], indent: int = 8) -> str:
    return ("\n" + " " * indent).join(lines)
