"""Free surfaces that heat goes through: their area at edges, corners and round bodies, and a fin that air cools."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Particles
from mpm_nodes.physics.heat.problems.heat import CONDUCTIVITY, DIFFUSIVITY, FORMS, START, hot_plane, matter, solver, still
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, ball, block, changed, walled

CELL = 0.01
BOXES = {
    "a cube of 6 cells": (6, 6, 6),
    "a cube of 12 cells": (12, 12, 12),
    "a plate of 4 cells": (4, 12, 12),
    "a bar of 4 x 4 cells": (4, 4, 16),
}
PLACES = {"": ((0.0, 0.0, 0.0), 0.0), ", off the nodes": ((0.3, 0.2, 0.41), 0.0), ", turned": ((0.3, 0.2, 0.41), 0.5)}
"""Where they lie [cells], and by how much they are turned about x and then about z [rad]."""
FAR = 40.0
"""Cells from the origin, where no wall is near."""


def turned(start: Particles, shift: tuple[float, float, float], angle: float) -> Particles:
    """Return bodies turned about x, then about z, and moved [cells]."""
    c, s = math.cos(angle), math.sin(angle)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    return changed(start, position=start["position"] @ turn.T + CELL * (FAR + np.array(shift)))


def area_of(start: Particles, form: str) -> float:
    """Return the free surface that the air sees [m^2]."""
    start = changed(start, temperature=np.full(len(start), START))
    run = solver(start, still(form=form, air_convection=1.0), CELL)
    run.step(1e-3)
    return float(run.step_context.report["heat"]["surface"])


def box_areas(form: str) -> Iterator[tuple[str, float, float]]:
    """Yield each box in each place: what it is, its area, and the free surface that the air sees [m^2]."""
    for what, cells in BOXES.items():
        size = CELL * np.array(cells, float)
        exact = 2.0 * float(size[0] * size[1] + size[1] * size[2] + size[2] * size[0])
        for where, (shift, angle) in PLACES.items():
            body = turned(block(matter(), tuple(-0.5 * size), tuple(0.5 * size), CELL), shift, angle)
            yield what + where, exact, area_of(body, form)


class FreeSurfaceArea(VerificationProblem):
    """The free surface that air and fluxes act on has the area of the body.

    Scene: cubes, a plate and a bar of 4 to 16 cells, with their sides on nodes, off them and turned; balls of 3 and 5 cells radius.
    Exact: the area of the box; of a ball, that of the volume of its particles.
    Tolerance: 2 %. Known to miss: what is turned, on cells, by up to 2.5 %; on nodes the cube of 6 cells and the bar, and what is
        turned but the cube of 12, by up to 4 %. Without their edges cubes of 6 cells had 0.84 of their area.
    """

    name = "free_surface_area"
    source = "geometry"
    misses = (
        *(f"{what}, turned, on cells" for what in BOXES),
        *(f"{what}, turned, on nodes" for what in BOXES if "12" not in what),
        "a cube of 6 cells, on nodes",
        "a bar of 4 x 4 cells, on nodes",
    )

    def findings(self) -> Iterator[Finding]:
        """Measure them."""
        for form in FORMS:
            for what, exact, found in box_areas(form):
                yield Finding.relative(exact, found, 0.02, f"{what}, on {form}")
            for radius in (3, 5):
                body = turned(ball(matter(), (0.0, 0.0, 0.0), radius * CELL, CELL), (0.3, 0.2, 0.41), 0.0)
                exact = (36.0 * math.pi) ** (1.0 / 3.0) * float(body["volume"].sum()) ** (2.0 / 3.0)
                yield Finding.relative(exact, area_of(body, form), 0.02, f"a ball of radius {radius} cells, on {form}")


class CooledFin(VerificationProblem):
    """A fin on a hot body is as warm as the air that cools it leaves it.

    Scene: fins of 4 x 4 cells, and of four cells between walls, 24 long, on a plane of 400 K in air of 300 K; Biot number
        h_a t / K = 0.04 on their thickness t; until nothing changes.
    Exact: theta / theta_b = (cosh m (L - x) + k sinh m (L - x)) / (cosh m L + k sinh m L), k = h_a / (m K), m^2 = 4 h_a / (K t), or
        2 h_a / (K t) between walls.
    Tolerance: 3 % in the middle and at the tip.
    """

    name = "cooled_fin"
    source = "textbook (extended surfaces); Incropera and DeWitt"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Cool them."""
        for form in FORMS:
            for what, sides in (("4 x 4 cells", 4), ("four cells between walls", 2)):
                for where, share in zip(("middle", "tip"), self.measured(form, sides), strict=True):
                    yield Finding.relative(1.0, share, 0.03, f"fin of {what}: {where}, on {form}")

    @staticmethod
    def measured(form: str, sides: int) -> tuple[float, float]:
        """Return the warming in the middle and at the tip over the exact one."""
        thick, length, warm, cold = 4.0 * CELL, 24.0 * CELL, 400.0, 300.0
        to_air = 0.04 * CONDUCTIVITY / thick
        start = block(matter(), (0.0, 0.0, 0.0), (length, thick, thick), CELL)
        start = changed(start, temperature=np.full(len(start), cold))
        low, high = -FAR * CELL, FAR * CELL
        walls = (
            walled((low, low, low), (high, high, high), SLIP) if sides == 4 else walled((low, low, 0.0), (high, high, thick), SLIP)
        )
        air = {"air_temperature": cold, "air_convection": to_air}
        run = solver(start, still(form=form, **air), CELL, walls=walls, colliders=[hot_plane(0, warm)])
        time = 2.0 * length**2 / DIFFUSIVITY
        run.advance(time, time / 100)
        m = math.sqrt(sides * to_air / (CONDUCTIVITY * thick))
        x, found = column(run, "position")[:, 0], (column(run, "temperature") - cold) / (warm - cold)
        k = to_air / (m * CONDUCTIVITY)
        exact = np.cosh(m * (length - x)) + k * np.sinh(m * (length - x))
        exact /= math.cosh(m * length) + k * math.sinh(m * length)
        middle, tip = np.abs(x - 0.5 * length) < CELL, x > length - CELL
        return float(found[middle].mean() / exact[middle].mean()), float(found[tip].mean() / exact[tip].mean())
