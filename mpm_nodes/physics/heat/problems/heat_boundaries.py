"""Heat through a plane that is held at a temperature, or that a flux comes through: exact profiles of half spaces."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider
from mpm_nodes.physics.heat.problems.heat import (
    CONDUCTIVITY,
    DIFFUSIVITY,
    FORMS,
    HEAT_CAPACITY,
    START,
    heat_of,
    hot_plane,
    matter,
    solver,
    still,
)
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, block, changed, walled

LENGTH, CELLS = 1.0, 20
BAR = 1.25 * LENGTH
"""Of which the far end is not felt at 0.8 L yet, to 2e-4."""
FLUX_CELLS = 40
"""Cells of L for a flux: the gradient at the surface is what comes in, and a cell there is off by a part of h times it."""
FLUX = 100.0 * CONDUCTIVITY / LENGTH
"""Warms the surface by some 36 K."""


def warmed(
    body: Collider | None, offset: float = 0.0, form: str = "cells", cells: int = CELLS, steps: int = 200, **conduct: float
) -> SubstepSolver:
    """Return a bar of 1.25 L (2 L without a body) and two cells square along x that was heated through x = 0 until a t / L^2 = 0.1.

    Args:
        body: What stands at x < 0; None: air.
        offset: Where x = 0 lies between nodes [cells].
        form: Where heat is conducted, "cells" or "nodes".
        cells: Cells of L.
        steps: How many steps it takes.
        conduct: Knobs of the conduction.
    """
    h = LENGTH / cells
    length = 2.0 * LENGTH if body is None else BAR  # heat that comes in through free surfaces comes from both ends
    start = changed(block(matter(), (0, 0, 0), (length, 2 * h, 2 * h), h))
    start = changed(start, position=start["position"] + [offset * h, 0.0, 0.0], temperature=np.full(len(start), START))
    given: dict[str, Any] = {"walls": walled((-8 * h, 0, 0), (4 * LENGTH, 2 * h, 2 * h), SLIP)}
    if body is not None:
        shape = body.shape
        moved = dataclasses.replace(shape, translations=shape.translations + [[offset * h, 0.0, 0.0]])
        given["colliders"] = [dataclasses.replace(body, shape=moved)]
    run = solver(start, still(form=form, tolerance=1e-14, **conduct), h, **given)
    time = 0.1 * LENGTH**2 / DIFFUSIVITY
    run.advance(time, time / steps)
    return run


def near_profile(run: SubstepSolver, offset: float = 0.0, cells: int = CELLS) -> tuple[np.ndarray, np.ndarray, float]:
    """Return x / (2 sqrt(a t)) and the warming [K] of the half that the far end does not reach, and sqrt(a t) [m]."""
    x = column(run, "position")[:, 0] - offset * LENGTH / cells
    near, spread = x < 0.8 * LENGTH, math.sqrt(DIFFUSIVITY * run.time)
    return x[near] / (2.0 * spread), column(run, "temperature")[near] - START, spread


class HeldHalfSpace(VerificationProblem):
    """Matter on a body that is held at a temperature warms as the error function says (Dirichlet).

    Scene: a bar of 25 x 2 x 2 cells of 300 K on a plane of 400 K, at three places between the nodes, until a t / L^2 = 0.1 with L
        of 20 cells.
    Exact: (T - T_i) / (T_b - T_i) = erfc(x / (2 sqrt(a t))).
    Tolerance: 3 % of T_b - T_i.
    """

    name = "held_half_space"
    source = "Carslaw and Jaeger 1959"

    def findings(self) -> Iterator[Finding]:
        """Compare the profiles."""
        for form, offset in itertools.product(FORMS, (0.0, 0.25, 0.5)):
            run = warmed(hot_plane(0, 400.0), offset, form)
            z, rise, _ = near_profile(run, offset)
            exact = np.array([math.erfc(value) for value in z])
            error = float(np.abs(rise / 100.0 - exact).max())
            axes, what = ("depth over 2 sqrt(a t)", "warming, of T_b - T_i"), f"on {form}, {offset:g} cells off the nodes"
            self.show(what, axes, (z, rise / 100.0), (z, exact), 0.03)
            yield Finding(0.0, error, 0.03, f"profile error on {form}, {offset:g} cells off the nodes")


class FluxHalfSpace(VerificationProblem):
    """A flux through a body's surface, or through a free one, warms matter as the exact solution says (Neumann).

    Scene: that of `held_half_space` on cells half as large, with the flux b through the plane, at three places between the nodes;
        then without the plane and with the flux through the free surface.
    Exact: T - T_i = 2 b sqrt(a t) / K ierfc(x / (2 sqrt(a t))), and the heat is b A t to rounding through a plane on nodes.
    Tolerance: 3 % of the warming of the surface, 2 b sqrt(a t / pi) / K; 3 % of the heat, 1e-10 on nodes. The error of the profile
        falls with h: on cells as large as those of `held_half_space` it is 4.8 % half a cell off the nodes.
    """

    name = "flux_half_space"
    source = "Carslaw and Jaeger 1959"

    def findings(self) -> Iterator[Finding]:
        """Compare the profiles and the heat."""
        plane = dataclasses.replace(hot_plane(0, 0.0), temperature=None, heat_flux=FLUX)
        for form, offset in itertools.product(FORMS, (0.0, 0.25, 0.5)):
            run = warmed(plane, offset, form, FLUX_CELLS)
            yield self._profile(run, f"profile error on {form}, {offset:g} cells off the nodes", offset)
            yield self._heat(run, 1e-10 if offset == 0.0 else 0.03, f"heat on {form}, {offset:g} cells off the nodes")
        for form in FORMS:
            yield self._profile(warmed(None, 0.0, form, FLUX_CELLS, surface_flux=FLUX), f"profile error on {form}, free surface")

    @staticmethod
    def _profile(run: SubstepSolver, what: str, offset: float = 0.0) -> Finding:
        z, rise, spread = near_profile(run, offset, FLUX_CELLS)
        exact = np.array([math.exp(-value * value) / math.sqrt(math.pi) - value * math.erfc(value) for value in z])
        scale = 2.0 * FLUX * spread / CONDUCTIVITY
        return Finding(0.0, float(np.abs(rise / scale - exact).max()) * math.sqrt(math.pi), 0.03, what)

    @staticmethod
    def _heat(run: SubstepSolver, tolerance: float, what: str) -> Finding:
        gained = heat_of(run) - HEAT_CAPACITY * START * float(column(run, "mass").sum())
        return Finding.relative(FLUX * (2.0 * LENGTH / FLUX_CELLS) ** 2 * run.time, gained, tolerance, what)
