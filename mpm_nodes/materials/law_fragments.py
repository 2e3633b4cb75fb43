"""Fragments of every constitutive law: its stress, its update, its return map, and what limits explicit steps.

| symbol | meaning | unit |
|---|---|---|
| L | velocity gradient | 1/s |
| T | Kirchhoff stress | Pa |
| J | volume ratio | - |
"""

from __future__ import annotations

from typing import Any

from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.fragments import VISCOSITY, Lanes
from mpm_nodes.materials import newtonian_viscosity
from mpm_nodes.materials.values import Coefficients, LawModule, Matrix, State, Symmetric, Value

__all__ = ["ADVANCE", "ADVANCE_MINIMISED", "PROJECT", "RATES", "STRESS"]


@inline
def stress_at_rest(law: LawModule, state: State, coefficients: Coefficients) -> Symmetric:
    """Return T at A = 0."""
    return mat3.pack(law.kirchhoff(state, coefficients))


@inline
def stress_of_step(law: LawModule, state: State, coefficients: Coefficients, dt: Value) -> Symmetric:
    """Return T at A = 0, for laws that have one form of it only."""
    return mat3.pack(law.stress(state, mat3.zero(dt), coefficients, dt))


@inline
def stress_at_rest_and_flow(law: LawModule, state: State, coefficients: Coefficients, velocity_gradient: Matrix) -> Symmetric:
    """Return T at A = 0 with the law's own viscous part."""
    return mat3.pack(mat3.add(law.kirchhoff(state, coefficients), law.viscous_stress(state, velocity_gradient, coefficients)))


@inline
def stress_of_step_and_flow(
    law: LawModule, state: State, coefficients: Coefficients, dt: Value, velocity_gradient: Matrix
) -> Symmetric:
    """Return T at A = 0 with the law's own viscous part."""
    T = law.stress(state, mat3.zero(dt), coefficients, dt)
    return mat3.pack(mat3.add(T, law.viscous_stress(state, velocity_gradient, coefficients)))


@inline
def _with_viscosity(stress: Symmetric, J: Value, L: Matrix, viscosity: Value) -> Symmetric:
    p = mat3.pack(newtonian_viscosity.stress_of_flow(J, L, viscosity))
    return (
        stress[0] + p[0],
        stress[1] + p[1],
        stress[2] + p[2],
        stress[3] + p[3],
        stress[4] + p[4],
        stress[5] + p[5],
    )


@inline
def add_viscosity(
    law: LawModule, state: State, velocity_gradient: Matrix, stress: Symmetric, material_viscosity: Value
) -> Symmetric:
    """Add the material's own viscosity to the stress, over the law's volume ratio."""
    return _with_viscosity(stress, law.volume_ratio(state), velocity_gradient, material_viscosity)


@inline
def add_viscosity_of_strain(
    law: LawModule, state: State, velocity_gradient: Matrix, stress: Symmetric, material_viscosity: Value
) -> Symmetric:
    """Add the material's own viscosity to the stress, over the volume ratio of the left strain."""
    return _with_viscosity(stress, law.left_strain(state)[0], velocity_gradient, material_viscosity)


@inline
def advance(law: LawModule, state: State, bare_coefficients: Coefficients, velocity_gradient: Matrix, dt: Value) -> State:
    """Return the trial state for A = dt L."""
    return law.advance(state, mat3.scale(velocity_gradient, dt), bare_coefficients, dt)


@inline
def advance_minimised(law: LawModule, state: State, bare_coefficients: Coefficients, velocity_gradient: Matrix, dt: Value) -> State:
    """Return the trial state for A = dt L, whose energy was minimised."""
    return law.advance_minimised(state, mat3.scale(velocity_gradient, dt), bare_coefficients, dt)


@inline
def project(law: LawModule, state: State, coefficients: Coefficients, dt: Value) -> State:
    """Return the state on its yield surface."""
    return law.project(state, coefficients, dt)


@inline
def limits(law: LawModule, state: State, coefficients: Coefficients, velocity_gradient: Matrix) -> tuple[Value, Value]:
    """Return |L|^2 and the speed of the fastest wave [m/s]."""
    return mat3.double_dot(velocity_gradient, velocity_gradient), law.wave_speed(state, coefficients)


def _flows(material: Any, name: str) -> bool:
    """Without a viscosity the velocity gradient is multiplied by zero."""
    return name != "velocity_gradient" or material.viscosity > 0.0


STRESS = (
    Lanes(stress_at_rest, ("stress",), needs=("kirchhoff",), lacks=("viscous_stress",)),
    Lanes(stress_of_step, ("stress",), lacks=("kirchhoff", "viscous_stress")),
    Lanes(stress_at_rest_and_flow, ("stress",), needs=("kirchhoff", "viscous_stress"), counts=_flows),
    Lanes(stress_of_step_and_flow, ("stress",), needs=("viscous_stress",), lacks=("kirchhoff",), counts=_flows),
    # a loop of its own: laws run at full speed where there is no viscosity
    Lanes(add_viscosity, ("stress",), needs=("volume_ratio",), switch=VISCOSITY, counts=_flows),
    Lanes(add_viscosity_of_strain, ("stress",), needs=("left_strain",), lacks=("volume_ratio",), switch=VISCOSITY, counts=_flows),
)
"""The Kirchhoff stress of explicit steps [Pa]."""
ADVANCE = (Lanes(advance, ("state",)),)
"""state <- trial state for A = dt L."""
ADVANCE_MINIMISED = (
    Lanes(advance, ("state",), lacks=("advance_minimised",)),
    Lanes(advance_minimised, ("state",), needs=("advance_minimised",)),
)
"""The same after a step whose energy was minimised."""
PROJECT = (Lanes(project, ("state",), needs=("project",)),)
"""state <- return map."""
RATES = Lanes(limits, largest=("gradient", "wave"))
"""max |L|^2 and the fastest wave [m/s]."""
