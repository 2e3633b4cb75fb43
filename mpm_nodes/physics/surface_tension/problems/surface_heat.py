"""Heat through the sampled surface against exact solutions: a half space, a small ball, and what comes in altogether."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Material, SurfaceTension
from mpm_nodes.physics.heat.problems.heat import (
    CONDUCTIVITY,
    DIFFUSIVITY,
    HEAT_CAPACITY,
    START,
    convected,
    heat_of,
    matter,
    solver,
    still,
)
from mpm_nodes.physics.surface_tension.problems.surface_tension import DISCS, SPHERES
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, ball, block, changed, walled


def sampled(slab: str = "none", flux: float = 0.0, **conduct: Any) -> dict[str, Any]:
    """Return a substep graph of heat alone that comes through samples: nothing moves."""
    document = still(sampled=True, **conduct)
    nodes = document["nodes"]
    nodes["sample_surface"] = {
        "type": "sample_surface",
        "knobs": {"slab": slab, "radius": SPHERES if slab == "none" else DISCS},
        "inputs": {"particles": "thermal_properties", "samples": "samples", "colliders": "colliders"},
    }
    nodes["heat_surface"] = {
        "type": "heat_surface",
        "knobs": {"flux": flux, "slab": slab},
        "inputs": {
            "particles": "sample_surface",
            "samples": "sample_surface",
            "colliders": "sample_surface",
            "staggered": "staggered",
        },
    }
    nodes["rasterize_heat"]["inputs"] = {"particles": "heat_surface", "staggered": "heat_surface"}
    nodes["conduct_heat"]["inputs"]["colliders"] = "sample_surface"
    return document


def skinned() -> Material:
    """Return matter whose surface is sampled, with no tension."""
    return dataclasses.replace(matter(), surface_tension=SurfaceTension(0.0))


class SampledHalfSpace(VerificationProblem):
    """Matter that air heats through the samples of its surface warms as the exact solution for a convecting surface says.

    Scene: that of robin_half_space, ten cells wide (slab): 300 K, air of 400 K, h_c L / K = 4 on 20 cells, until a t / L^2 = 0.1;
        sides on walls.
    Exact: as there.
    Tolerance: 3 % of T_a - T_i.
    """

    name = "sampled_half_space"
    source = "Carslaw and Jaeger 1959; C21 section 4.3.2"

    def findings(self) -> Iterator[Finding]:
        """Compare the profile of the half that the far end does not reach."""
        length, air = 1.0, 400.0
        h, convection = length / 20, 4.0 * CONDUCTIVITY / length
        start = block(skinned(), (0, 0, 0), (2 * length, 10 * h, 2 * h), h)
        start = changed(start, temperature=np.full(len(start), START))
        walls = walled((-8 * h, 0, 0), (4 * length, 10 * h, 2 * h), SLIP)
        run = solver(start, sampled("z", air_temperature=air, air_convection=convection), h, walls=walls)
        time = 0.1 * length**2 / DIFFUSIVITY
        run.advance(time, time / 200)
        x, found, exact = convected(run, length, air, convection)
        self.show("profile", ("depth over L", "warming, of T_a - T_i"), (x / length, found), (x / length, exact), 0.03)
        yield Finding(0.0, float(np.abs(found - exact).max()), 0.03, "profile error, of the difference in temperature")


class SampledBall(VerificationProblem):
    """A small ball in air and under a flux warms as one body, and ends where the two balance; what comes in is what it gains.

    Scene: a ball with a radius of 5 cells, 400 K, of Biot number 0.01, in air of 300 K under a flux that balances 20 K, in steps of
        1 % of its cooling time.
    Exact: T = T_e + (T_0 - T_e) exp(-h_c A t / (m c)) with A the sampled area, T_e = T_a + b / h_c; d sum m c T is what was told.
    Tolerance: 2 % of the rate, 6 % of the area 4 pi R^2, 1e-6 of the difference at the end; 1e-10 of the heat.
    """

    name = "sampled_ball"
    source = "textbook (lumped capacitance); C21 section 4.3.2"

    def findings(self) -> Iterator[Finding]:
        """Let it cool once through its cooling time, and forever."""
        radius, air, hot, balance = 0.5, START, 400.0, START + 20.0
        h, convection = radius / 5, 0.01 * CONDUCTIVITY / radius
        start = ball(skinned(), (0, 0, 0), radius, h)
        substeps = sampled(flux=20.0 * convection, air_temperature=air, air_convection=convection, tolerance=1e-13)
        run = solver(changed(start, temperature=np.full(len(start), hot)), substeps, h)
        area = 4.0 * math.pi * radius**2
        capacity = float(np.sum(column(run, "mass"))) * HEAT_CAPACITY
        cooling, before, told = capacity / (convection * area), heat_of(run), 0.0
        for substep in range(100):
            run.step_context.frame = substep
            run.step(cooling / 100)
            report = run.step_context.report["heat"]
            told += report["from_air"] + report["from_sources"]
        seen = float(report["surface"])
        yield Finding.relative(area, seen, 0.06, "surface [m^2]")
        yield Finding(0.0, (heat_of(run) - before - told) / abs(told), 1e-10, "share of the heat that is missing")
        mean = heat_of(run) / capacity
        rate = -math.log((mean - balance) / (hot - balance)) / run.time * capacity / (convection * seen)
        yield Finding.relative(1.0, rate, 0.02, "rate, of h_c A / (m c)")
        for _ in range(6):
            run.step(cooling * 100)
        yield Finding(0.0, float(np.abs(column(run, "temperature") - balance).max()) / (hot - air), 1e-6, "difference that is left")
