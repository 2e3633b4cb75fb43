"""Fragments of implicit steps: a law's energy, force, Hessian action and node-diagonal blocks over trial velocities.

| symbol | meaning | unit | source |
|---|---|---|---|
| L, A | gradient of the trial velocity, dt L | 1/s, - | - |
| psi, T | energy density, its derivative by A | J/m^3, Pa | |
| d, Q | a direction in velocities, its gradient | m/s, 1/s | |
| V0 | undeformed volume | m^3 | |

    Phi = sum V0 psi(dt L),   f_i = - sum V0 T grad w_i,   (dt^2 Phi'' d)_i = dt^2 sum V0 dT(A; Q) grad w_i       (R15, C21 eq. 14)

A material's own viscosity is a further term over the same points, so it is evaluated in the same pass.

Each list is one loop over blocks: gather a gradient, evaluate, scatter, while the block's particles and nodes are in the cache. L
stays in the particles' `velocity_gradient`; stress and its differential live in a scratch of each thread. Energies are evaluated
and summed in double precision in either float type: a line search compares differences far below their own size.

The bodies are spliced into their loops: as calls, with the state and a gradient as arguments, they cost 6 % of an evaluation and
round differently.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mpm_nodes.data import Field
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import spliced
from mpm_nodes.kernels.composition.fragments import Fragment, Gather, Lanes, OwnLoops, Rounds, Scatter
from mpm_nodes.kernels.lanes.arithmetic import absolute, any_lane, both, const, select
from mpm_nodes.kernels.transfers.local_hessians import store_positive
from mpm_nodes.kernels.transfers.node_blocks import scatter_blocks
from mpm_nodes.materials import newtonian_viscosity
from mpm_nodes.materials.values import Coefficients, LawModule, Matrix, State, Value
from mpm_nodes.materials.volumes import volume_ratio_of

__all__ = ["ADD_NODE_BLOCKS", "INNER", "STORE_HESSIANS", "TABLE", "apply_hessian", "evaluate_trial", "loops_of_energy"]

TABLE = {
    "trial_stress": Field("trial_stress", "T", (3, 3), "Pa", doc="Stress at the trial velocities."),
    "differential": Field("differential", "dT", (3, 3), "Pa", doc="First the gradient of a direction, then the stress's change."),
    "left_stretch": Field("left_stretch", "V", (6,), "", doc="Left stretch of the deformation."),
}
"""What lives in the scratch of each thread, or for a solve."""
INNER = ("trial_stress", "differential")


# ---------------------------------------------------------------- what is evaluated
@spliced
def energy(
    law: LawModule,
    state: State,
    coefficients: Coefficients,
    velocity_gradient: Matrix,
    volume: Value,
    dt: Value,
    material_viscosity: Value,
) -> tuple[Value, Value]:
    """Return V0 psi, and 1 where the step leaves the law's domain."""
    A = mat3.scale(velocity_gradient, dt)
    psi = law.energy(state, A, coefficients, dt)
    if any_lane(material_viscosity > const(dt, 0.0)):
        psi = psi + newtonian_viscosity.energy(volume_ratio_of(law, state), A, material_viscosity, dt)
    good = both(law.feasible(state, A, coefficients, dt), absolute(psi) < const(psi, 1e300))
    zero = const(psi, 0.0)
    return select(good, volume * psi, zero), select(good, zero, const(psi, 1.0))


@spliced
def energy_of_mean(
    law: LawModule,
    state: State,
    coefficients: Coefficients,
    velocity_gradient: Matrix,
    volume: Value,
    dt: Value,
    material_viscosity: Value,
    whole_dt: Value,
) -> tuple[Value, Value]:
    """Return the same at a mean of the step, and 1 as well where its end, A = whole_dt L, leaves the law's domain."""
    stored, broken = energy(law, state, coefficients, velocity_gradient, volume, dt, material_viscosity)
    ends = law.feasible(state, mat3.scale(velocity_gradient, whole_dt), coefficients, whole_dt)
    zero = const(stored, 0.0)
    return select(ends, stored, zero), select(ends, broken, const(stored, 1.0))


@spliced
def trial_stress(
    law: LawModule, state: State, coefficients: Coefficients, velocity_gradient: Matrix, dt: Value, material_viscosity: Value
) -> Matrix:
    """Return T at A = dt L."""
    A = mat3.scale(velocity_gradient, dt)
    T = law.stress(state, A, coefficients, dt)
    if any_lane(material_viscosity > const(dt, 0.0)):
        T = mat3.add(T, newtonian_viscosity.stress(volume_ratio_of(law, state), A, material_viscosity, dt))
    return T


@spliced
def stress_differential(
    law: LawModule,
    state: State,
    coefficients: Coefficients,
    velocity_gradient: Matrix,
    differential: Matrix,
    dt: Value,
    material_viscosity: Value,
) -> Matrix:
    """Return dT(A; Q) for the gradient Q in `differential`."""
    A = mat3.scale(velocity_gradient, dt)
    T = law.stress_differential(state, A, differential, coefficients, dt)
    if any_lane(material_viscosity > const(dt, 0.0)):
        J = volume_ratio_of(law, state)
        T = mat3.add(T, newtonian_viscosity.stress_differential(J, A, differential, material_viscosity, dt))
    return T


@spliced
def weighted_response(
    law: LawModule,
    state: State,
    coefficients: Coefficients,
    velocity_gradient: Matrix,
    volume: Value,
    dt: Value,
    material_viscosity: Value,
    units: Matrix,
) -> Matrix:
    """Return dt^2 V0 dT for one of the nine unit gradients."""
    T = stress_differential(law, state, coefficients, velocity_gradient, units, dt, material_viscosity)
    return mat3.scale(T, volume * dt * dt)


@spliced
def response(
    law: LawModule,
    state: State,
    coefficients: Coefficients,
    velocity_gradient: Matrix,
    dt: Value,
    material_viscosity: Value,
    units: Matrix,
) -> Matrix:
    """Return dT for one of the nine unit gradients."""
    return stress_differential(law, state, coefficients, velocity_gradient, units, dt, material_viscosity)


# ---------------------------------------------------------------- loops
@functools.cache
def evaluate_trial(stencil: tuple[int, ...], mean: bool = False) -> tuple[Fragment, ...]:
    """Sums of energy and of infeasible points at trial velocities, or at a mean of the step; adds their force to the grid."""
    return (
        Gather("velocity", "velocity_gradient", stencil=stencil),
        Lanes(energy_of_mean if mean else energy, sums=("stored", "broken"), precise=True),
        Lanes(trial_stress, ("trial_stress",)),
        Scatter("force", ("stress", "volume"), stencil, stress="trial_stress"),
    )


@functools.cache
def apply_hessian(stencil: tuple[int, ...]) -> tuple[Fragment, ...]:
    """Action of the potential's second derivative on a direction."""
    return (
        Gather("direction", "differential", stencil=stencil),
        Lanes(stress_differential, ("differential",)),
        Scatter("product", ("stress", "volume"), stencil, stress="differential", factors=("dt", "dt"), negated=False),
    )


def _responses(body: Callable[..., Any], taker: Callable[..., Any], *scatters: str) -> tuple[Fragment, ...]:
    return (Rounds(body, table="units", rows=9, columns=9, taker=taker, scatters=frozenset(scatters)),)


ADD_NODE_BLOCKS = _responses(weighted_response, scatter_blocks, "blocks")
"""Node-diagonal 3 x 3 blocks of the second derivative."""


STORE_HESSIANS = _responses(response, store_positive)
"""Positive parts of the particles' own 9 x 9 Hessians."""


def loops_of_energy(stencil: tuple[int, ...], project: bool, mean: bool) -> OwnLoops:
    """Return all that a minimisation asks of a law's energy; with `project` its Hessians are kept, and the rest is not a law's."""
    evaluate = ("evaluate trial", evaluate_trial(stencil, mean))
    if project:
        return OwnLoops((evaluate, ("store Hessians", STORE_HESSIANS)))
    return OwnLoops((evaluate, ("apply Hessian", apply_hessian(stencil)), ("add node blocks", ADD_NODE_BLOCKS)))
