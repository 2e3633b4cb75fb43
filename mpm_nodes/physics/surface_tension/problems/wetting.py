"""Surface tension at bodies, even and uneven: contact angles, puddles, forces that cancel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Particles, WallRule, Walls
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.physics.surface_tension.numerics.surface_energy import SurfaceEnergy
from mpm_nodes.physics.surface_tension.problems.surface_tension import DISCS, H, disc, liquid, slab
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.scenes import OPEN, SEPARATE, SLIP, calm, changed, walled

FAR = 100.0 * H


def filled(low: Any, high: Any, inside: Any, matter: Any) -> Particles:
    """Return eight particles a cell of the box from `low` to `high` [cells], where `inside` of their places [cells] holds."""
    axes = [(np.arange(2 * a, 2 * b) + 0.5) * 0.5 for a, b in zip(low, high, strict=True)]
    at = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    at = at[inside(at)]
    return Particles({"position": at * H, "volume": np.full(len(at), (0.5 * H) ** 3)}, (matter,), 0.5 * H)


def in_slab(particles: Particles, walls: Walls, gravity: float = 0.0, colliders: Any = (), **settings: Any) -> SubstepSolver:
    """Return a solve of a slab with walls and bodies of its own."""
    substeps = {"preset": "surface_tension", "set": {"slab": "z", "radius": DISCS, **settings}}
    still = (0.0, 0.0, 0.0)
    options = {"cell_size": H, "dtype": np.float64, "origin": still, "gravity": (0.0, -gravity, 0.0), "walls": walls}
    return SubstepSolver(particles, substeps, colliders=colliders, **options)


def on_floor(particles: Particles, angle: float, rule: WallRule) -> SubstepSolver:
    """Return a solve of a slab on a floor at y = 0, without gravity."""
    walls = walled((-FAR, 0.0, 0.0), (FAR, FAR, 2 * H), OPEN, OPEN, rule, OPEN, SLIP, SLIP)
    return in_slab(particles, walls, contact_angle=angle)


def surface_samples(run: SubstepSolver) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places, areas and normals of the surface as it is now."""
    run.step(1e-9)
    samples = run.stores["samples"]
    area = samples.rows("area")[0].astype(float)
    mine = area > 0.0
    return samples.unpack("position")[mine], area[mine], samples.unpack("normal")[mine]


def angle_of(run: SubstepSolver) -> float:
    """Return the angle [degrees] at which the circle through the surface beyond two cells from the floor meets the floor."""
    x, area, _ = surface_samples(run)
    mine = x[:, 1] > 2.0 * H
    x, root = x[mine], np.sqrt(area[mine])
    rows = np.stack([2.0 * x[:, 0], 2.0 * x[:, 1], np.ones(len(x))], axis=1) * root[:, None]
    a, b, c = np.linalg.lstsq(rows, (x[:, 0] ** 2 + x[:, 1] ** 2) * root, rcond=None)[0]
    return math.degrees(math.acos(float(np.clip(-b / math.sqrt(c + a * a + b * b), -1.0, 1.0))))


class ContactAngle(VerificationProblem):
    """A drop on a floor comes to lie at the angle of the floor.

    Scene: caps (slab) with the area of half a disc of 8 cells that begin 20 degrees off, without gravity, viscous, on a floor that
        matter may leave, and on one that slips; mean over the last second of four (a capillary time is 0.7 s). A floor that slips
        holds what touches it, so that a drop never comes off it, and is not asked for 180 degrees.
    Exact: Young's law: the angle of the solve.
    Tolerance: 3 degrees.
    """

    name = "contact_angle"
    source = "Young 1805; C21 section 6.5"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let caps of four angles come to rest."""
        free = [(*each, SEPARATE) for each in ((45.0, 65.0), (90.0, 110.0), (135.0, 115.0), (180.0, 160.0))]
        for angle, start, rule in (*free, (135.0, 115.0, SLIP)):
            t = math.radians(start)
            radius = 8.0 * math.sqrt(0.5 * math.pi / (t - math.sin(t) * math.cos(t)))
            up, size = -radius * math.cos(t), math.ceil(radius) + 1

            def inside(at: np.ndarray, radius: float = radius, up: float = up) -> np.ndarray:
                return np.asarray(at[:, 0] ** 2 + (at[:, 1] - up) ** 2 < radius**2)

            run = on_floor(filled((-size, 0, 0), (size, 2 * size, 2), inside, liquid(100.0, 0.3)), angle, rule)
            while run.time < 3.0:
                run.step()
            angles = []
            for time in np.linspace(3.0, 4.0, 9):
                while run.time < time:
                    run.step()
                angles.append(angle_of(run))
            yield Finding(angle, float(np.mean(angles)), 3.0, f"{angle:g} degrees, a floor with the rule {rule.value}")


class Puddle(VerificationProblem):
    """A wide puddle has the height at which gravity and the surface balance.

    Scene: half a puddle (slab, 16 cells long, begins 13 % too high) between a plane of symmetry and air, 90 degrees, g = 4 m/s^2,
        damped for four seconds.
    Exact: e = 2 sqrt(k / (rho g)) sin(angle / 2), seven cells; mean of the upper side within four cells of the symmetry plane.
    Tolerance: 8 %.
    """

    name = "puddle_height"
    source = "de Gennes 2004"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it spread and come to rest."""
        gravity, exact = 4.0, 2.0 * math.sqrt(1.0 / 4.0) * math.sin(math.pi / 4.0)
        walls = walled((0.0, 0.0, 0.0), (FAR, FAR, 2 * H), SLIP, OPEN, SLIP, OPEN, SLIP, SLIP)
        run = in_slab(filled((0, 0, 0), (16, 8, 2), lambda at: at[:, 0] > 0.0, liquid(300.0, 0.1)), walls, gravity)
        while run.time < 4.0:
            dt = run.step()
            calm(run, math.exp(-2.5 * dt))
        x, area, normal = surface_samples(run)
        # the side at the symmetry plane does not belong to the upper side
        top = (x[:, 0] < 4.0 * H) & (normal[:, 1] > 0.7)
        yield Finding.relative(exact, float(x[top, 1] @ area[top] / area[top].sum()), 0.08, "height [m]")


class InternalForces(VerificationProblem):
    """A surface pulls nothing but itself along, whether its tension is the same everywhere or changes along it.

    Scene: a disc of six cells, stretched (slab); tension the same everywhere, then growing along x.
    Exact: no net force, no net torque.
    Tolerance: 1e-12 of the sum of the forces' sizes, of that times the radius.
    """

    name = "surface_forces_cancel"
    source = "textbook: internal forces cancel; C21 section 5"

    def findings(self) -> Iterator[Finding]:
        """Scatter both forces."""
        drop = disc(6, liquid())
        run = slab(changed(drop, position=drop["position"] * [1.3, 1.0, 1.0]))
        run.step(1e-6)
        samples = run.stores["samples"]
        even, x = samples.rows("tension")[0].copy(), samples.unpack("position")[:, 0]
        for what, tension in (("even", even), ("growing along x", even * (2.0 + x))):
            samples.rows("tension")[0] = tension
            run.grid.clear("force")
            SurfaceEnergy(samples, run.grid, STENCIL["quadratic"]).add_force(run.grid.array("force"))
            force, at = run.grid.unpack("force"), run.grid.unpack("position")
            size = float(np.abs(force).sum())
            yield Finding(0.0, float(np.abs(force.sum(axis=0)).max()) / size, 1e-12, f"{what}: force")
            turning = np.cross(at, force).sum(axis=0)
            yield Finding(0.0, float(np.abs(turning).max()) / (size * 6 * H), 1e-12, f"{what}: torque")
