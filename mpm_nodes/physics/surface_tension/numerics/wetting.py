"""What bodies and walls do to the surface of matter that touches them: their energy, its slope, and the grip on contact lines.

| symbol | meaning | unit | source |
|---|---|---|---|
| k, k_SL | surface energy density against air, against a body | N/m | C21 section 3.6 |
| theta_a, theta_r | advancing and receding angle of a contact line | degrees | Furmidge 1962 |
| k_p | force per length up to which a contact line stays where it is | N/m | |
| m | direction of a contact line's own motion: along the body, across the line | | |

    k_SL = - k (cos theta_r + cos theta_a) / 2       k_p = k (cos theta_r - cos theta_a) / 2

A line that gives way under k_p advances at theta_a and recedes at theta_r, by Young's law with k_p on either side. Where k_SL
varies over a body it belongs to the place on the body, not to the matter: - grad k_SL per area pulls the matter along as well.

    E = sum k(d) dA       k(d) = k_SL up to a distance d_0, k from d_0 + w on, straight in between       f = - k'(d) n_w dA

d is the distance to a body and n_w its normal. The force f is what holds wetting matter on a body: over the way w it does the
work of adhesion, k - k_SL = k (1 + cos theta) per area (Dupre), as matter arrives and as it leaves. Without it matter would leave a
body for nothing, and the surface that it then has again would be energy from nowhere. It is so whatever the rule of the body:
sticky and slipping ones hold what touches them, and at the rim of a drop matter comes off them all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, Kernel, MpmNodesError, StepContext
from mpm_nodes.data.ambient import at_frame
from mpm_nodes.kernels.collisions.near_points import find_footing
from mpm_nodes.kernels.transfers import fields
from mpm_nodes.kernels.transfers.scatter import scatter_arrays
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.physics.surface_tension.numerics.samples import SampleStore, touched
from mpm_nodes.physics.surface_tension.numerics.surface_energy import SurfaceEnergy
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.grid_arrays import NODES
from mpm_nodes.solver.ranks.halo import adding_up

__all__ = ["pin_lines", "pulls", "wet"]

LET_GO = 0.5
"""Way over which matter comes off a body [cells]: the spacing of particles, below which the sampled surface is not resolved."""

_DRY = 1e-3
"""Area of free surface near a node from which on the edge of the wetted area runs there [cells^2]."""
_POOL = 2
"""How far nodes may lie apart along each axis that hold a line together [cells]."""


def wet(
    samples: SampleStore,
    colliders: ColliderSet,
    step: StepContext,
    walls: tuple[float, float],
    reach: float,
    cuts: Sequence[int],
    side: np.ndarray,
) -> None:
    """Change the tension of samples that touch bodies or walls to k_SL, and write what pulls and pins them.

    Args:
        samples: With their tension against air; tension, pull, pinning and footing are written.
        colliders: Bodies and walls; posed here.
        step: The substep.
        walls: Contact angle and hysteresis of walls, and of bodies without their own [degrees].
        reach: Distance up to which a sample touches [cells]; it is free from `LET_GO` beyond that on.
        cuts: Numbers of the walls that cut the surface off: they are none.
        side: Tension of samples that touch nothing, shape (n,) [N/m]: against air, or against other matter.

    Raises:
        MpmNodesError: A hysteresis takes an angle out of 0 to 180 degrees, or a ratio of a body lies outside -1 to 1.
    """
    touch = touched(samples, colliders, step, reach + LET_GO, cuts)
    angles = [_angles(each, walls) for each in colliders.colliders]
    ratios, grips = (np.array(each) for each in zip(*map(_ratio_and_grip, [*angles, *[("set_tension", *walls)] * 6]), strict=True))
    tension = samples.rows("tension")[0]
    away = (touch.distance / step.cell_size - reach) / LET_GO
    met = np.flatnonzero(touch.which >= 0)
    at, k, away = touch.which[met], tension[met].astype(float), away[met]
    share = 1.0 - np.clip(away, 0.0, 1.0)
    wetted, slope = k * ratios[at], np.zeros((len(met), 3))
    for body, collider in enumerate(colliders.colliders):
        if collider.wetting is not None:
            mine = np.flatnonzero(at == body)
            wetted[mine], slope[mine] = _painted(samples, met[mine], at_frame(collider.wetting, step.middle), k[mine])
    tension[:] = side
    tension[met] += share * (wetted - side[met])
    leaving = np.where(away > 0.0, (side[met] - wetted) / (LET_GO * step.cell_size), 0.0)
    samples.rows("pull")[:, met] = -(leaving[:, None] * touch.normal[met] + share[:, None] * slope).T
    if grips.any():
        samples.rows("pinning")[0, met] = np.where(away < 0.0, k * grips[at], 0.0)
        if colliders.colliders:
            footing = np.zeros((samples.count, 3))
            find_footing(samples.unpack("position") - colliders.origin, touch.which, step.dt, colliders.bodies(), footing)
            samples.rows("footing")[:] = footing.T


def _angles(collider: Collider, walls: tuple[float, float]) -> tuple[str, float, float]:
    """Return who says how a collider is wetted, its contact angle and hysteresis [degrees]."""
    if collider.contact_angle is None:
        return "set_tension", *walls
    return f"collider '{collider.name}'", collider.contact_angle, collider.contact_hysteresis


def _ratio_and_grip(given: tuple[str, float, float]) -> tuple[float, float]:
    """Return k_SL / k and k_p / k of who says it, contact angle and hysteresis [degrees]."""
    name, angle, hysteresis = given
    low, high = angle - 0.5 * hysteresis, angle + 0.5 * hysteresis
    if not (hysteresis >= 0.0 and 0.0 <= low and high <= 180.0):
        raise MpmNodesError(
            f"{name}: a contact angle of {angle:g} degrees with a hysteresis of {hysteresis:g} recedes at {low:g} and advances at "
            f"{high:g}; both lie from 0 to 180, lower the hysteresis"
        )
    receding, advancing = (math.cos(math.radians(each)) for each in (low, high))
    return -0.5 * (receding + advancing), 0.5 * (receding - advancing)


def _painted(samples: SampleStore, mine: np.ndarray, field: Any, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the k_SL of samples' places on a body, shape (n,), and its slope along the surface, shape (n, 3).

    `field` has an edge.
    """
    place, normal = samples.unpack("position")[mine], samples.unpack("normal")[mine]
    half = 0.5 * field.edge * np.eye(3)
    slope = np.zeros((len(mine), 3))
    if len(mine):
        slope = np.stack([(field.at(place + each) - field.at(place - each)) / field.edge for each in half], axis=1)
    slope -= (slope * normal).sum(axis=1)[:, None] * normal
    return k * field.at(place), k[:, None] * slope


# ---------------------------------------------------------------- on the grid
def pulls(samples: SampleStore, grid: GridStore, kernel: Kernel) -> np.ndarray | None:
    """Return the force of adhesion and uneven wetting on samples of this rank as a grid array [N], None where there is none."""
    if not samples.count or not samples.rows("pull").any():
        return None
    force = np.zeros_like(grid.array("momentum"))
    _scatter(samples, grid, kernel, samples.array("area"), (samples.array("pull"), force))
    force = force[: 256 * grid.count]
    force[3::4] = 0.0
    return force


def pin_lines(samples: SampleStore, grid: GridStore, kernel: Kernel, dt: float) -> None:
    """Take from the velocity across contact lines what their grip can hold within a substep.

    The line near a node is the sum of dA (I - n n^T) grad w over the wetted samples: by the divergence theorem what is left of it
    is the integral of w m along the edge of the wetted area.

    Args:
        samples: With pinning and footing, on the grid's blocks.
        grid: Its velocities are changed.
        kernel: B-spline of the weights.
        dt: Substep [s].
    """
    pinned = bool(samples.rows("pinning").any())
    if not grid.halo.any(pinned):
        return
    wetted = samples.rows("pinning")[0] > 0.0
    line, dry, foot = (np.zeros_like(grid.array("momentum")) for _ in range(3))
    area = samples.array("area")
    free, met = area.copy(), area.copy()
    free[: samples.count][wetted] = 0.0
    met[: samples.count][~wetted] = 0.0
    with adding_up(grid.halo, line, dry, foot):
        SurfaceEnergy(samples, grid, STENCIL[kernel.value], "pinning").add_force(line)
        _scatter(samples, grid, kernel, free, (None, dry))
        _scatter(samples, grid, kernel, met, (samples.array("footing"), foot))
    count = 64 * grid.count
    line, dry, foot, velocity, momentum = (
        each[: 4 * count].reshape(-1, 4) for each in (line, dry, foot, grid.array("velocity"), grid.array("momentum"))
    )
    size = np.linalg.norm(line[:, :3].astype(float), axis=1)
    nodes = np.flatnonzero((size > 0.0) & (dry[:, 3] > _DRY * grid.h**2) & (foot[:, 3] > 0.0) & (momentum[:, 3] > 0.0))
    size, across = size[nodes], line[nodes, :3] / size[nodes, None]
    mass = momentum[nodes, 3].astype(float)
    slip = ((velocity[nodes, :3] - foot[nodes, :3] / foot[nodes, 3:]) * across).sum(axis=1)
    block, n = np.divmod(nodes, 64)
    place = 4 * grid.coord[block].astype(np.int64) + np.stack([n >> 4, (n >> 2) & 3, n & 3], axis=1)
    together, moved, held = _pooled(place, across, (mass, mass * slip, dt * size))
    velocity[nodes, :3] -= (np.clip(moved, -held, held) / together)[:, None] * across
    grid.halo.copy(grid.array("velocity"))  # nodes at the rim of a halo do not see all that hold a line with them


def _pooled(place: np.ndarray, across: np.ndarray, columns: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return the sums of columns over the nodes within `_POOL` cells of each whose lines run alike.

    A grip that each node had for itself would give way to the noise of single nodes, again and again, and let the line creep.

    Args:
        place: Numbers of the nodes along the axes, shape (n, 3).
        across: Directions across the line, shape (n, 3).
        columns: Each of shape (n,).
    """
    low = place.min(axis=0, initial=0) - _POOL
    span = place.max(axis=0, initial=0) + _POOL + 1 - low
    steps = np.array([span[1] * span[2], span[2], 1])
    key = (place - low) @ steps
    order = np.argsort(key)
    ranked = key[order]
    sums = tuple(np.zeros(len(key)) for _ in columns)
    axis = np.arange(-_POOL, _POOL + 1)
    for offset in np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3):
        wanted = key + offset @ steps
        at = np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)
        mine = np.flatnonzero(ranked[at] == wanted)
        other = order[at[mine]]
        alike = np.maximum((across[mine] * across[other]).sum(axis=1), 0.0)
        for total, column in zip(sums, columns, strict=True):
            total[mine] += alike * column[other]
    return sums


def _scatter(
    samples: SampleStore, grid: GridStore, kernel: Kernel, weight: np.ndarray, what: tuple[np.ndarray | None, np.ndarray]
) -> None:
    """Add weighted rows, if any, and the weight to an array of nodes."""
    values, target = what
    rows: Sequence[tuple[np.ndarray, int] | None] = [None] * 3 if values is None else [(values, axis) for axis in range(3)]
    given = fields.Given(NODES, weight, tuple(rows), None, None, target)
    scatter_arrays(STENCIL[kernel.value], samples.on_grid().geometry(), (given,), grid.scatter_tables(None, samples))
