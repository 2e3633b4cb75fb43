"""Solutes that leave through the sampled surface against exact solutions: a half space, and a small ball."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Material, SurfaceTension
from mpm_nodes.physics.heat.problems.heat import erfc_scaled, solver
from mpm_nodes.physics.surface_tension.problems.surface_tension import DISCS, SPHERES
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, ball, block, changed, walled

DIFFUSIVITY = 1.0


def evaporating(speed: float, slab: str = "none") -> dict[str, Any]:
    """Return a substep graph of a solute alone, which diffuses and evaporates: nothing moves."""
    nodes = {
        "sample_surface": {
            "type": "sample_surface",
            "knobs": {"slab": slab, "radius": SPHERES if slab == "none" else DISCS},
            "inputs": {"particles": "particles", "samples": "samples", "colliders": "colliders"},
        },
        "evaporate_solute": {
            "type": "evaporate_solute",
            "knobs": {"evaporation": speed, "slab": slab},
            "inputs": {
                "particles": "sample_surface",
                "samples": "sample_surface",
                "colliders": "sample_surface",
                "staggered": "staggered",
            },
        },
        "diffuse_concentration": {
            "type": "diffuse_concentration",
            "knobs": {"sampled": True, "tolerance": 1e-13},
            "inputs": {"particles": "evaporate_solute", "staggered": "evaporate_solute", "colliders": "sample_surface"},
        },
    }
    head = {"format": "mpm_nodes.substeps", "version": 1, "label": "Solute Alone", "doc": "A solute in matter that does not move."}
    return {**head, "parameters": {}, "nodes": nodes}


def wine() -> Material:
    """Return a liquid whose solute diffuses, with no tension."""
    tension = SurfaceTension(0.0, solute_tension=0.0, solute_diffusivity=DIFFUSIVITY)
    return Material("liquid", {"bulk_modulus": 10.0}, 1.0, "wine", surface_tension=tension)


def solute_of(run: SubstepSolver) -> float:
    """Return sum V0 c [m^3]."""
    return float(column(run, "volume") @ column(run, "concentration"))


class EvaporatingHalfSpace(VerificationProblem):
    """A solute that evaporates from matter at rest falls off towards the surface as the exact solution of a Robin condition says.

    Scene: that of sampled_half_space: ten cells wide (slab), c = 1, e L / D = 4 on 20 cells, until D t / L^2 = 0.1; sides on walls.
    Exact: 1 - c = erfc(z) - exp(e x / D + e^2 t / D) erfc(z + e sqrt(t / D)), z = x / (2 sqrt(D t)). As far as the far end does
        not reach.
    Tolerance: 3 % of the concentration at the start, as for heat.
    """

    name = "evaporating_half_space"
    source = "Carslaw and Jaeger 1959; the Robin condition of C21 eq. 6"

    def findings(self) -> Iterator[Finding]:
        """Compare the profile up to 0.8 of a length."""
        length = 1.0
        h, speed, time = length / 20, 4.0 * DIFFUSIVITY / length, 0.1 * length**2 / DIFFUSIVITY
        start = block(wine(), (0, 0, 0), (2 * length, 10 * h, 2 * h), h)
        start = changed(start, concentration=np.ones(len(start)))
        walls = walled((-8 * h, 0, 0), (4 * length, 10 * h, 2 * h), SLIP)
        run = solver(start, evaporating(speed, "z"), h, walls=walls)
        run.advance(time, time / 200)
        x, found = column(run, "position")[:, 0], column(run, "concentration")
        near = x < 0.8 * length
        x, found = x[near], found[near]
        spread, ratio = math.sqrt(DIFFUSIVITY * run.time), speed / DIFFUSIVITY
        z = x / (2.0 * spread)
        gone = np.array([math.erfc(value) for value in z])
        gone -= erfc_scaled(z + ratio * spread, ratio * x + (ratio * spread) ** 2)
        self.show("profile", ("depth over L", "concentration"), (x / length, found), (x / length, 1.0 - gone), 0.03)
        yield Finding(0.0, float(np.abs(found - (1.0 - gone)).max()), 0.03, "error of the profile")


class EvaporatingBall(VerificationProblem):
    """A small ball loses its solute as one body, and what leaves is what it loses.

    Scene: a ball with a radius of 5 cells, c = 1, e R / D = 0.01, in steps of 1 % of the time V / (e A).
    Exact: c = exp(- e A t / V) with A the sampled area.
    Tolerance: 2 % of the rate, 6 % of the area 4 pi R^2, as for heat; 1e-9 of the solute, the tolerance of the solves.
    """

    name = "evaporating_ball"
    source = "textbook (lumped capacitance); the Robin condition of C21 eq. 6"

    def findings(self) -> Iterator[Finding]:
        """Let it lose its solute through V / (e A)."""
        radius = 0.5
        h, speed = radius / 5, 0.01 * DIFFUSIVITY / radius
        start = ball(wine(), (0, 0, 0), radius, h)
        run = solver(changed(start, concentration=np.ones(len(start))), evaporating(speed), h)
        area, before, told = 4.0 * math.pi * radius**2, solute_of(run), 0.0
        volume = before
        for substep in range(100):
            run.step_context.frame = substep
            run.step(0.01 * volume / (speed * area))
            told += run.step_context.report["solute"]["evaporated"]
        seen = float(np.sum(column(run, "surface_area"))) / speed
        yield Finding.relative(area, seen, 0.06, "surface [m^2]")
        yield Finding(0.0, (before - solute_of(run) - told) / before, 1e-9, "share of the solute that is missing")
        rate = -math.log(solute_of(run) / before) / run.time * volume / (speed * seen)
        yield Finding.relative(1.0, rate, 0.02, "rate, of e A / V")
