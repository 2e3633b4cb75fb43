"""Time step choice (method: Courant, elastic wave and explicit viscosity limits)."""

from __future__ import annotations

import math

from mpm_nodes.data import LAW_STATE, A, Colliders, Particles, Range, Reads, Stage, StepContext, Unitless
from mpm_nodes.graph.declare import stage
from mpm_nodes.solver.divergence import diverged


@stage(label="Choose Time Step", sets=("dt",))
def choose_time_step(
    particles: A[Particles, Reads("velocity", "velocity_gradient", "stiffness_scale", LAW_STATE)],
    colliders: A[Colliders, Reads("level_set")],
    step: StepContext,
    *,
    cfl: A[float, Unitless, Range(min=0.0, max=0.9, exclusive_min=True)] = 0.5,
    elastic_cfl: A[float, Unitless, Range(min=0.0, max=1.5, soft_max=0.6, exclusive_min=True)] = 0.5,
    strain_limit: A[float, Unitless, Range(min=0.0, max=1.0, exclusive_min=True)] = 0.5,
    implicit: bool = False,
) -> Stage["particles", "colliders"]:
    """Choose the longest stable dt and report what limits it.

    The frame's remaining time is divided evenly, so that the last substep is never a sliver.

    Args:
        particles: Particles whose speed, strain rate, moduli and viscosity limit dt.
        colliders: Colliders whose speed limits dt.
        cfl: Largest distance a particle may move in one substep, in cells.
        elastic_cfl: Largest distance an elastic wave may move in one substep, in cells.
        strain_limit: Largest dt |grad v|.
        implicit: Leave out the limits of elastic waves and of viscosity: an implicit update is stable beyond them.

    Raises:
        SimulationDiverged: No usable dt is left: a speed or modulus is not finite or absurd.
    """
    h = step.cell_size
    limits = {("dt_max", ""): step.dt_max}
    gravity = math.hypot(*step.gravity)
    collider_speed = colliders.fastest
    if collider_speed > 0:
        limits["collider speed", ""] = cfl * h / collider_speed
    for law, speed, gradient, wave in particles.law_limits():
        limits["particle speed", law.label] = _time_to_travel(cfl * h, speed, gravity)
        if gradient > 0:
            limits["strain rate", law.label] = strain_limit / gradient
        if wave > 0 and not implicit:
            limits["elastic wave", law.label] = elastic_cfl * h / (wave + speed)
        if law.viscosity > 0 and not implicit:
            limits["viscosity", law.label] = 0.5 * law.density * h * h / (6.0 * law.viscosity)
    (limit, material), dt = min(limits.items(), key=lambda item: item[1])
    if dt < step.dt_min:  # the artist would rather see it blow up than wait: the report names dt_min then
        limit, material, dt = "dt_min", "", step.dt_min
    step.report["limit"], step.report["limit_material"] = limit, material
    if not dt > 1e-7 * min(step.time_left, step.dt_max):  # NaN, infinite speed, or a frame that would never end
        step.dt = dt
        raise diverged(particles, step)
    if dt >= 1.5 * step.time_left:
        step.report["limit"], step.report["limit_material"] = "frame end", ""
    if math.isfinite(step.time_left):
        count = math.ceil(step.time_left / dt * (1.0 - 1e-12))
        if step.dt_min > 0:  # an even share of the frame is not to be shorter than dt_min either
            count = max(1, min(count, math.floor(step.time_left / step.dt_min * (1.0 + 1e-12))))
        dt = step.time_left / count
    step.dt = dt


def _time_to_travel(distance: float, speed: float, acceleration: float) -> float:
    """Return the time to travel `distance` from `speed` [m/s] under `acceleration` [m/s^2]."""
    root = math.sqrt(speed * speed + 2.0 * acceleration * distance)
    return 2.0 * distance / (speed + root) if root > 0 else math.inf
