"""The laws' functions type on lanes and on scalars of both sizes."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numba
import numpy as np
import pytest
from law_samples import PARAMS, random_matrices, random_states

from mpm_nodes.kernels.algebra import eigen, mat3, rotations
from mpm_nodes.kernels.lanes import arithmetic as lanes
from mpm_nodes.kernels.lanes import memory as lane_memory
from mpm_nodes.kernels.transfers import differences
from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.physics import all_physics

DT = 1e-3


def compiled(law_id):
    """The functions that the loops of `law_loops` do not call, as one compiled function of values."""
    functions, select, const = law(law_id).module, lanes.select, lanes.const
    energy, stress, differential = functions.energy, functions.stress, functions.stress_differential
    feasible = functions.feasible

    @numba.njit(error_model="numpy", fastmath=True)
    def evaluate(state, A, dA, coeffs, dt):
        mask = feasible(state, A, coeffs, dt)
        return (
            select(mask, energy(state, A, coeffs, dt), const(dt, -1.0)),
            stress(state, A, coeffs, dt),
            differential(state, A, dA, coeffs, dt),
        )

    return evaluate


def arguments(law_id, dtype, count=16):
    state = random_states(law_id, count, strain=0.1)
    A, dA = random_matrices(count, 0.1), random_matrices(count, seed=9)
    coeffs = law(law_id).coefficients(PARAMS.get(law_id))
    return [{n: v.astype(dtype) for n, v in state.items()}, A.astype(dtype), dA.astype(dtype), coeffs.astype(dtype)]


def expected(law_id, state, A, dA, dtype):
    given = {"params": PARAMS.get(law_id), "dt": DT, "dtype": dtype}
    return (
        call_law(law_id, "energy", state, A, **given),
        call_law(law_id, "stress", state, A, **given),
        call_law(law_id, "stress_differential", state, A, dA, **given),
    )


@pytest.mark.parametrize("law_id", law_ids())
def test_scalars_keep_their_size(law_id):
    """float32 in, float32 out, without a float64 in between (a bare literal would make one), and the NumPy numbers."""
    evaluate = compiled(law_id)
    state, A, dA, coeffs = arguments(law_id, np.float32)
    point = (
        tuple(tuple(v[0].ravel()) if v[0].ndim else v[0] for v in state.values()),
        tuple(A[0].ravel()),
        tuple(dA[0].ravel()),
        tuple(coeffs),
        np.float32(DT),
    )
    psi, T, dT = evaluate(*point)
    llvm = next(iter(evaluate.inspect_llvm().values()))
    assert re.search(r"\bf(add|mul)\b.* float ", llvm)
    assert not re.search(r"\bf(add|sub|mul|div|cmp)\b.* double ", llvm)
    energies, stresses, differentials = expected(law_id, state, A, dA, np.float32)
    size = law(law_id).params.density * call_law(law_id, "wave_speed", params=PARAMS.get(law_id))[0] ** 2
    assert psi == pytest.approx(energies[0], abs=1e-5 * size)
    np.testing.assert_allclose(np.reshape(T, (3, 3)), stresses[0], atol=1e-5 * size)
    np.testing.assert_allclose(np.reshape(dT, (3, 3)), differentials[0], atol=1e-4 * size)


_LANES_KERNEL = """
def evaluate_lanes(state, A, dA, coeffs, dt, out):
    x = load(A, 0)
    s = ({state},)
    c = ({coeffs},)
    psi, T, dT = evaluate(s, ({A},), ({dA},), c, broadcast(x, dt))
    store(out, 0, psi)
    {store}
"""


@pytest.mark.parametrize("law_id", law_ids())
def test_lanes_equal_the_scalar_twin(law_id):
    """Energy, stress and differential at a feasible A type on lanes and give the NumPy numbers."""
    state, A, dA, coeffs = arguments(law_id, np.float32)
    packed, pieces, first = [], [], 0
    for values in state.values():
        rows = values.reshape(16, -1).T
        loads = [f"load(state, {16 * (first + row)})" for row in range(len(rows))]
        pieces.append(f"({', '.join(loads)},)" if len(loads) > 1 else loads[0])
        first, packed = first + len(rows), [*packed, rows]
    source = _LANES_KERNEL.format(
        state=", ".join(pieces),
        coeffs=", ".join(f"broadcast(x, coeffs[{k}])" for k in range(len(coeffs))),
        A=", ".join(f"load(A, {16 * k})" for k in range(9)),
        dA=", ".join(f"load(dA, {16 * k})" for k in range(9)),
        store="; ".join(f"store(out, {16 + 16 * k}, T[{k}]); store(out, {160 + 16 * k}, dT[{k}])" for k in range(9)),
    )
    scope = {"load": lane_memory.load, "store": lane_memory.store, "broadcast": lanes.broadcast, "evaluate": compiled(law_id)}
    exec(source, scope)
    out = np.zeros(19 * 16, np.float32)
    flat = [m.reshape(16, 9).T.ravel().copy() for m in (A, dA)]
    numba.njit(error_model="numpy")(scope["evaluate_lanes"])(np.vstack(packed).ravel().copy(), *flat, coeffs, DT, out)
    energies, stresses, differentials = expected(law_id, state, A, dA, np.float32)
    size = law(law_id).params.density * call_law(law_id, "wave_speed", params=PARAMS.get(law_id))[0] ** 2
    feasible = call_law(law_id, "feasible", state, A)
    np.testing.assert_allclose(out[:16], np.where(feasible, energies, -1.0), atol=1e-5 * size)
    np.testing.assert_allclose(out[16:160].reshape(9, 16).T.reshape(16, 3, 3), stresses, atol=1e-5 * size)
    np.testing.assert_allclose(out[160:].reshape(9, 16).T.reshape(16, 3, 3), differentials, atol=1e-4 * size)


def test_no_bare_real_literal_in_shared_code():
    """A literal stands only inside const(...): bare ones do not type on lanes."""
    modules = [mat3, differences, rotations, eigen, *(law(name).module for name in law_ids())]
    kernels = (module for physics in all_physics() for module in physics.modules("kernels"))
    modules += [module for module in kernels if module.__name__.endswith(".tearing")]  # which laws' loops take in
    for module in modules:
        tree = ast.parse(Path(inspect.getsourcefile(module)).read_text())
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
            if not any(getattr(decorator, "id", "") == "inline" for decorator in function.decorator_list):
                continue
            allowed = {
                id(leaf)
                for call in ast.walk(function)
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "const"
                for leaf in ast.walk(call)
            }
            bare = [
                n for n in ast.walk(function) if isinstance(n, ast.Constant) and isinstance(n.value, float) and id(n) not in allowed
            ]
            assert not bare, f"{module.__name__}.{function.name} line {bare[0].lineno}: write const(x, {bare[0].value})"
