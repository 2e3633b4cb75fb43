"""The projection of face velocities: pools at rest, what it leaves of the divergence, and the pressure of compressible matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.physics.projection.numerics.projection import ProjectionSettings, project_faces
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.staggered import neighbour_blocks
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, block, changed, material, walled

DENSITY, CELL, GRAVITY = 1000.0, 0.1, 9.81
SHIFTS = ((0, 1, 1), (1, 0, 1), (1, 1, 0))


def pool(cells: int, columns: dict[str, np.ndarray] | None = None, finer: int = 1, **settings: Any) -> SubstepSolver:
    """Return liquid at rest in a box with slip walls on node planes, open above; twice `finer` particles a cell and axis."""
    size = cells * CELL
    start = block(material("liquid", DENSITY), (0, 0, 0), (size, size, size), CELL / finer)
    return SubstepSolver(
        changed(start, **(columns or {})),
        {"preset": "incompressible", "set": {"density_rate": 0.0, **settings}},
        cell_size=CELL,
        walls=walled((0, 0, 0), (size, 10 * size, size), SLIP),
        dtype=np.float64,
    )


def inner_speed(run: SubstepSolver, top: float) -> float:
    """Return the largest speed of faces with mass that lie below a height [m/s]."""
    staggered, found = run.stores["staggered"], 0.0
    for axis, shift in zip("xyz", SHIFTS, strict=True):
        inside = (staggered.unpack(f"mass_{axis}") > 0.0) & (staggered.positions(shift)[:, 1] < top)
        found = max(found, float(np.abs(staggered.unpack(f"velocity_{axis}")[inside]).max()))
    return found


class PoolFromRest(VerificationProblem):
    """A pool at rest stays at rest: its faces weigh what fills them, also at walls.

    Scene: 6^3 cells of liquid in a box with slip walls, filled with a lattice of two or four particles a cell and axis, one
        substep of 1 ms in gravity.
    Exact: no motion; without control volumes faces at walls look light and rise.
    Tolerance: 1e-2 g dt for faces a cell below the surface; above 0.1 g dt without control volumes.
    """

    name = "pool_from_rest"
    source = "S14 Figure 7"

    def findings(self) -> Iterator[Finding]:
        """Take one substep with and without control volumes."""
        dt, top = 1e-3, 5 * CELL
        for finer, volumes in ((1, True), (2, True), (2, False)):
            run = pool(6, finer=finer, control_volumes=volumes)
            run.step(dt)
            speed = inner_speed(run, top) / (GRAVITY * dt)
            if volumes:
                yield Finding(0.0, speed, 1e-2, f"largest speed with {2 * finer} particles an axis, of g dt")
            else:
                yield Finding(1.0, float(speed > 0.1), 0.0, "without control volumes it moves")


class PressureOfPool(VerificationProblem):
    """The pressure in a pool is the weight of what lies above.

    Scene: the pool of 8^3 cells, one substep.
    Exact: p = rho g (H - y) at the cells' centres.
    Tolerance: 1.5 % of rho g H: the surface of a smeared pool lies a little high.
    """

    name = "pressure_of_pool"
    source = "textbook (hydrostatics)"

    def findings(self) -> Iterator[Finding]:
        """Compare the pressures."""
        run, height = pool(8), 8 * CELL
        run.step(1e-3)
        staggered = run.stores["staggered"]
        found, y = staggered.unpack("pressure"), staggered.positions((1, 1, 1))[:, 1]
        inside = (found > 0.0) & (y < height)
        whole = DENSITY * GRAVITY * height
        worst = float(np.abs(found[inside] - DENSITY * GRAVITY * (height - y[inside])).max())
        yield Finding(0.0, worst / whole, 0.015, "largest error, of that at the bottom")


class Projection(VerificationProblem):
    """A projection leaves no divergence, changes nothing when done twice, and gives compressible matter its pressure.

    Scene: the pool of 6^3 cells with random velocities and changes of volume, incompressible and with lam = 1e6 Pa.
    Exact: J (1 + dt div v) = 1; projecting again changes nothing; p' = p - dt lam J div v with p = -lam (J - 1).
    Tolerance: 1e-6 of |v| / h, of |v| and of the largest p: solves to 1e-12.
    """

    name = "projection"
    source = "S14 section 5.7"

    def findings(self) -> Iterator[Finding]:
        """Project once, again, and with a finite lam."""
        random, count, dt = np.random.default_rng(5), 6**3 * 8, 1e-3
        columns = {"velocity": random.normal(size=(count, 3)), "volume_change": 0.01 * random.normal(size=count)}
        knobs = {"project_velocity.tolerance": 1e-12}
        run = pool(6, columns, **knobs)
        run.step(dt)
        divergence, ratio, inside = self._cells(run)
        scale = float(np.abs(column(run, "velocity")).max())
        residual = float(np.abs(ratio * (1.0 + dt * divergence) - 1.0)[inside].max())
        yield Finding(0.0, residual / dt, 1e-6 * scale / CELL, "J (1 + dt div v) - 1 over dt [1/s]")

        staggered = run.stores["staggered"]
        for name in ("dilation", "elastic_dilation"):
            staggered.pack(name, (1.0 / (1.0 + dt * divergence) - 1.0) * staggered.unpack("mass"))
        before = [staggered.unpack(f"velocity_{axis}") for axis in "xyz"]
        project_faces(staggered, run.colliders, dt, ProjectionSettings(tolerance=1e-12))
        change = 0.0
        for n, (axis, old) in enumerate(zip("xyz", before, strict=True)):
            change = max(change, float(np.abs(staggered.unpack(f"velocity_{axis}") - old)[self._touched(run, n)].max()))
        yield Finding(0.0, change, 1e-6 * scale, "change by a second projection [m/s]")

        lam = 1e6
        run = pool(6, columns, bulk_modulus=lam, **knobs)
        run.step(dt)
        divergence, ratio, inside = self._cells(run)
        exact = -lam * (ratio - 1.0) - dt * lam * ratio * divergence
        pressure = run.stores["staggered"].unpack("pressure")
        yield Finding(0.0, float(np.abs(pressure - exact)[inside].max()), 1e-6 * float(np.abs(pressure).max()), "p - p' [Pa]")

    @staticmethod
    def _kinds(run: SubstepSolver) -> np.ndarray:
        """Return which cells are interior: those with a pressure."""
        staggered = run.stores["staggered"]
        return (staggered.unpack("pressure") != 0.0) & (staggered.unpack("mass") > 0.0)

    @classmethod
    def _cells(cls, run: SubstepSolver) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return div v, J and which cells are interior."""
        staggered = run.stores["staggered"]
        mass, inside = staggered.unpack("mass"), cls._kinds(run)
        ratio = 1.0 + staggered.unpack("dilation") / np.where(mass > 0.0, mass, 1.0)
        divergence = np.zeros(len(mass))
        for n, axis in enumerate("xyz"):
            velocity, high = staggered.unpack(f"velocity_{axis}"), cls._next(run, n)
            divergence += np.where(high >= 0, velocity[high] - velocity, 0.0) / CELL
        return divergence, ratio, inside

    @staticmethod
    def _next(run: SubstepSolver, axis: int) -> np.ndarray:
        """Return the cell behind each cell along an axis, -1 where there is none."""
        count, step = run.grid.count, 16 >> 2 * axis
        block_of, n = np.divmod(np.arange(64 * count), 64)
        inner = (n // step) % 4 < 3
        other = neighbour_blocks(run.grid)[block_of, 2 * axis + 1].astype(np.int64)
        return np.where(inner, 64 * block_of + n + step, np.where(other >= 0, 64 * other + n - 3 * step, -1))

    @classmethod
    def _touched(cls, run: SubstepSolver, axis: int) -> np.ndarray:
        """Return which faces lie between two interior cells."""
        inside, high = cls._kinds(run), cls._next(run, axis)
        found = np.zeros(len(inside), bool)
        both = inside & (high >= 0) & inside[high]
        found[high[both]] = True
        return found
