"""The part of any law that knows shape and no volume: what is left when the projection does the rest (S14 section 4.2).

| symbol | meaning | unit |
|---|---|---|
| J, J_E | volume ratio, that of the elastic strain; J = J_E J_P | - |
| A, G, g | dt grad v, I + A, det(G)^(-1/3) G | - |
| psi, T, dT | the law's energy, its derivative by A, the change of that along Q | Pa |
| dev | what is left of a matrix without its trace | |

The energy is that of the unimodular strain, psi^(A) = psi(g - I) from a state with J_E = 1, which for the fixed corotated law is
S14's eq. 8 and for neo-Hookean ones mu/2 (tr b - 3). The derivatives at A = 0, of which dilation feels nothing:

    T^ = dev T,    dT^(Q) = dev dT(dev Q) - (tr Q / 3) dev T - (T : Q / 3) I + (tr T / 3) Q^T

The second is self-adjoint wherever dT is. A law whose state names no strain that this file knows keeps its state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline, overloaded
from mpm_nodes.kernels.composition.fragments import Lanes, Run
from mpm_nodes.kernels.lanes.arithmetic import any_lane, const, maximum
from mpm_nodes.kernels.transfers.face_runs import gather_gradient, scatter_change
from mpm_nodes.materials import newtonian_viscosity
from mpm_nodes.materials.values import Coefficients, LawModule, Matrix, State, Symmetric, Value
from mpm_nodes.materials.volumes import volume_ratio_of

__all__ = ["DILATION", "RESPONSE", "RESPONSE_OF_STRETCH", "STRESS", "STRETCH", "isochoric_of", "volume_changes"]


def isochoric_of(law: Any, state: Any) -> Any:
    """Return J_E - 1 as the module of a law finds it from a state, and the state without it."""
    return _split(law)(law, state)


@overloaded(isochoric_of)
def _compiled_split(law: Any, state: Any) -> Any:
    return _split(law.pymod)


def _split(law: Any) -> Callable[..., Any]:
    """Return what splits a state; numba wants the hints of `isochoric_of` on it."""

    def of_deformation(law: Any, state: Any) -> Any:
        J = mat3.det(state[0])
        one = const(J, 1.0)
        # a crushed particle is as good as one with J = 1e-6 here: the projection brings its volume back
        c = mat3.cube_root(maximum(const(J, 1e-6), J))
        return J - one, (mat3.scale(state[0], one / c), *state[1:])

    def of_change(law: Any, state: Any) -> Any:
        return state[0], (const(state[0], 0.0), *state[1:])

    def unknown(law: Any, state: Any) -> Any:
        J = volume_ratio_of(law, state)
        return J - const(J, 1.0), state

    first = next((getattr(entry, "name", entry) for entry in law.STATE), "")
    return {"deformation": of_deformation, "volume_change": of_change}.get(first, unknown)


# ---------------------------------------------------------------- what particles say of their volume
@inline
def volume_changes(law: LawModule, state: State, compressibility_of_material: Value) -> tuple[Value, Value, Value]:
    """Return J - 1, J_E - 1, and 1 / lam [1/Pa]."""
    e, _state = isochoric_of(law, state)
    J = volume_ratio_of(law, state)
    return J - const(J, 1.0), e, compressibility_of_material


# ---------------------------------------------------------------- stress and its change
@inline
def stress_at_rest(law: LawModule, state: State, coefficients: Coefficients) -> Symmetric:
    """Return T^ at A = 0."""
    _e, even = isochoric_of(law, state)
    return mat3.pack(mat3.deviator(law.kirchhoff(even, coefficients)))


@inline
def stress_of_step(law: LawModule, state: State, coefficients: Coefficients, dt: Value) -> Symmetric:
    """Return T^ at A = 0, for laws that have one form of it only."""
    _e, even = isochoric_of(law, state)
    return mat3.pack(mat3.deviator(law.stress(even, mat3.zero(dt), coefficients, dt)))


@inline
def response(
    law: LawModule, state: State, coefficients: Coefficients, differential: Matrix, dt: Value, material_viscosity: Value
) -> Matrix:
    """Return dT^ for Q = dt times the velocity gradient that stands in the place of the result."""
    _e, even = isochoric_of(law, state)
    Q, none = mat3.scale(differential, dt), mat3.zero(dt)
    T, dT = law.stress(even, none, coefficients, dt), law.stress_differential(even, none, mat3.deviator(Q), coefficients, dt)
    return _change(law, state, Q, T, dT, dt, material_viscosity)


@inline
def response_of_stretch(
    law: LawModule,
    state: State,
    left_stretch: Symmetric,
    coefficients: Coefficients,
    differential: Matrix,
    volume: Value,
    dt: Value,
    material_viscosity: Value,
) -> Matrix:
    """Return V0 dT^ from V of F = V R: an isotropic law does not feel R, and F itself is not read."""
    turned = (mat3.unpack(left_stretch), *state[1:])
    _e, even = isochoric_of(law, turned)
    Q = mat3.scale(differential, dt)
    T, dT = law.stretched_stress(even, coefficients), law.stretched_differential(even, mat3.deviator(Q), coefficients)
    return mat3.scale(_change(law, turned, Q, T, dT, dt, material_viscosity), volume)


@inline
def weighted_response(
    law: LawModule,
    state: State,
    coefficients: Coefficients,
    differential: Matrix,
    volume: Value,
    dt: Value,
    material_viscosity: Value,
) -> Matrix:
    """Return V0 dT^ for the velocity gradient that stands in the place of the result."""
    return mat3.scale(response(law, state, coefficients, differential, dt, material_viscosity), volume)


@inline
def _change(law: LawModule, state: State, Q: Matrix, T: Matrix, dT: Matrix, dt: Value, material_viscosity: Value) -> Matrix:
    """Return dT^ of T and of dT along dev Q, with the material's own viscosity."""
    if any_lane(material_viscosity > const(dt, 0.0)):
        J = volume_ratio_of(law, state)
        dT = mat3.add(dT, newtonian_viscosity.stress_differential(J, mat3.zero(dt), Q, material_viscosity, dt))
    third = const(dt, 1.0 / 3.0)
    found = mat3.add_scaled(mat3.deviator(dT), const(dt, 0.0) - third * mat3.trace(Q), mat3.deviator(T))
    found = mat3.add_scaled(found, third * mat3.trace(T), mat3.transpose(Q))
    return mat3.add_diagonal(found, const(dt, 0.0) - third * mat3.double_dot(T, Q))


@inline
def stretch(law: LawModule, state: State) -> Symmetric:
    """Return V of F = V R."""
    return law.left_stretch(state)


DILATION = ("dilation", "elastic_dilation", "compressibility")
"""Attributes that `volume_changes` writes."""
STRESS = (
    Lanes(stress_at_rest, ("stress",), needs=("kirchhoff",)),
    Lanes(stress_of_step, ("stress",), lacks=("kirchhoff",)),
)
"""The Kirchhoff stress of the unimodular strain [Pa], without viscosity."""
STRETCH = (Lanes(stretch, ("left_stretch",), needs=("left_stretch",)),)
"""V of F = V R, of laws that can do with it."""
_TAKE = Run(gather_gradient, ("differential",), gathers=frozenset(["velocity"]))
_GIVE = Run(scatter_change, scatters=frozenset(["change"]))
RESPONSE = (_TAKE, Lanes(weighted_response, ("differential",), lacks=("left_stretch",)), _GIVE)
"""What forces on faces change by along velocities of faces, viscosity included: one loop, in which dT^ stays in the cache."""
RESPONSE_OF_STRETCH = (_TAKE, Lanes(response_of_stretch, ("differential",), needs=("left_stretch",)), _GIVE)
"""The same for laws that can do with V."""
