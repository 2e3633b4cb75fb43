"""Solids of the projection: a block that is stretched keeps its volume, a bar swings as its split moduli say, a cube turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule
from mpm_nodes.kernels.level_sets.level_set import BOX, PosedLevelSets
from mpm_nodes.materials.moduli import moduli
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.elasticity import bar_period
from mpm_nodes.verification.quantities import angular_momentum, column, momentum, momentum_scale, stored_energy
from mpm_nodes.verification.scenes import OPEN, STICKY, block, changed, material, walled

CELL, WIDTH, HEIGHT, GRIP = 0.1, 0.4, 0.8, 0.2
SPEED, DURATION, STEP = 0.4, 0.5, 5e-3
YOUNG = 1e4


def stretched(substeps: Any, poisson: float = 0.3, bulk: float | None = None) -> SubstepSolver:
    """Return a block of 4 x 8 x 4 cells after its clamped upper end has moved up by a quarter of its length, in 0.5 s."""
    rubber = material("neo_hookean", youngs_modulus=YOUNG, poisson_ratio=poisson)
    start = block(dataclasses.replace(rubber, bulk_modulus=bulk), (1.0, 0.0, 1.0), (1.0 + WIDTH, HEIGHT + GRIP, 1.0 + WIDTH), CELL)
    y = start["position"][:, 1]
    # as after a long pull: the grip starts without a jolt
    velocity = np.zeros((len(start), 3))
    velocity[:, 1] = SPEED * np.clip(y / HEIGHT, 0.0, 1.0)
    centre = np.array([1.2, HEIGHT + GRIP, 1.2])
    grip = PosedLevelSets(
        BOX,
        (0.5, GRIP, 0.5),
        pose_times=np.array([0.0, 2.0 * DURATION]),
        translations=np.array([centre, centre + [0.0, 2.0 * DURATION * SPEED, 0.0]]),
    )
    solver = SubstepSolver(
        changed(start, velocity=velocity),
        substeps,
        cell_size=CELL,
        walls=walled((0, 0, 0), (3.0, 3.0, 3.0), OPEN, OPEN, STICKY, OPEN, OPEN, OPEN),
        colliders=[Collider("grip", CollisionRule.STICKY, 0.0, grip, clamp=True)],
        gravity=(0.0, 0.0, 0.0),
        dtype=np.float64,
        dt_max=STEP,
    )
    solver.advance(DURATION)
    return solver


def volume(solver: SubstepSolver) -> float:
    """Return sum J V0 over sum V0."""
    V0 = column(solver, "volume")
    return float(V0 @ np.linalg.det(column(solver, "deformation")) / V0.sum())


def energy_of_shape(solver: SubstepSolver) -> float:
    """Return sum V0 mu/2 (tr b - 3) [J], b of determinant 1."""
    F = column(solver, "deformation")
    trace = (F**2).sum((1, 2)) * np.linalg.det(F) ** (-2.0 / 3.0)
    return float(0.5 * moduli(solver.matter.materials[0]).shear * column(solver, "volume") @ (trace - 3.0))


class StretchedBlock(VerificationProblem):
    """A solid that the projection holds keeps its volume when it is stretched, and is softer than its law where that locks.

    Scene: a neo-Hookean block of 4 x 8 x 4 cells, E = 10 kPa, between a sticky floor and a grip that moves up by a quarter of its
        length in 0.5 s; with the split at lam = infinity and at lam = 1 MPa, and the whole law at a Poisson ratio of 0.49 in
        implicit steps.
    Exact: sum J V0 stays. What locks stores more energy at the same stretch.
    Tolerance: 1 % of the volume; the unsplit law stores at least 5 % more than the split one of equal moduli (E, nu).
    """

    name = "stretched_block"
    source = "S14 sections 4.2 to 5.7"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Stretch the block four times."""
        for told, bulk in (("infinity", 0.0), ("1 MPa", 1e6)):
            run = stretched("incompressible", bulk=bulk)
            yield Finding.relative(1.0, volume(run), 0.01, f"sum J V0, lam = {told}")
        split = stretched({"preset": "incompressible", "set": {"of_laws": True}}, poisson=0.49)
        whole = stretched("implicit_apic", poisson=0.49)
        K = moduli(split.materials[0]).bulk
        F, V0 = column(split, "deformation"), column(split, "volume")
        soft = energy_of_shape(split) + float(0.5 * K * V0 @ (np.linalg.det(F) - 1.0) ** 2)
        yield Finding(1.0, float(stored_energy(whole) > 1.05 * soft), 0.0, "the unsplit law is stiffer")


class SplitBarPeriod(VerificationProblem):
    """A bar whose shape and volume are split swings with the period of the two moduli, lam and mu.

    Scene: the bar of elastic_bar_period, neo-Hookean, 32 cells, E = 100 kPa, nu = 0.3, in a projection and steps of 0.3 h / c; with
        the bulk modulus of its law, and with lam of 0.3 and 2 MPa.
    Exact: period 2 L / c, c^2 rho = lam + 4 mu / 3.
    Tolerance: 2 %.
    """

    name = "split_bar_period"
    source = "S14 section 4.2; textbook (one-dimensional wave equation)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Pluck it three times."""
        rubber = material("neo_hookean", youngs_modulus=1e5, poisson_ratio=0.3)
        found = moduli(rubber)
        for bulk in (None, 3e5, 2e6):
            lam = found.bulk if bulk is None else bulk
            substeps = {"preset": "incompressible", "set": {"of_laws": bulk is None}}
            period = bar_period(
                dataclasses.replace(rubber, bulk_modulus=bulk), lam + 4.0 * found.shear / 3.0, 32, substeps=substeps
            )
            yield Finding.relative(1.0, period, 0.02, f"lam = {'that of its law' if bulk is None else f'{bulk:g} Pa'}, of 2 L / c")


class TurningCube(VerificationProblem):
    """A cube that the transfers of the staggered grid carry flies straight on, and keeps its momentum where it turns.

    Scene: an incompressible neo-Hookean cube of 4^3 cells in free space, E = 4 MPa, float64, 100 steps of 2 ms; it flies at
        (0.3, -0.2, 0.1) m/s, or turns about (1, 2, 2) / 3 at 5 rad/s, by a radian.
    Exact: the flight changes no velocity and no shape. Momentum stays; a step that ends with the forces of its end loses
        (w dt)^2 of the angular momentum at most.
    Tolerance: 1e-9 of the velocity; momentum 1e-6 of sum m |v|, for the solves' tolerance; twice that loss, 2 %.
    """

    name = "turning_cube"
    source = "S14 sections 5.2 and 5.8; Jiang 2015"

    def findings(self) -> Iterator[Finding]:
        """Let it fly, and let it turn."""
        flight = np.array([0.3, -0.2, 0.1])
        run = self._moved(lambda x: np.broadcast_to(flight, x.shape), np.zeros((3, 3)))
        error = np.abs(column(run, "velocity") - flight).max() / np.linalg.norm(flight)
        yield Finding(0.0, float(error), 1e-9, "velocity of the flight")
        spin = 5.0 / 3.0 * np.array([[0.0, -2.0, 2.0], [2.0, 0.0, -1.0], [-2.0, 1.0, 0.0]])
        run = self._moved(lambda x: x @ spin.T, spin)
        yield Finding(0.0, float(np.abs(momentum(run)).max() / momentum_scale(run)), 1e-6, "momentum, turning")
        turned = np.linalg.norm(angular_momentum(run)) / self.before
        yield Finding(1.0, float(turned), 2.0 * (5.0 * 2e-3) ** 2 * 100, "angular momentum, turning")

    def _moved(self, flow: Callable[[np.ndarray], np.ndarray], gradient: np.ndarray) -> SubstepSolver:
        """Return the cube after 100 steps from a flow with that gradient [1/s]; note its angular momentum before them."""
        start = block(material("neo_hookean", youngs_modulus=4e6), (-0.2, -0.2, -0.2), (0.2, 0.2, 0.2), CELL)
        start = changed(start, velocity=flow(start["position"]), affine=np.broadcast_to(gradient, (len(start), 3, 3)))
        run = SubstepSolver(
            start, "incompressible", cell_size=CELL, gravity=(0.0, 0.0, 0.0), dtype=np.float64, origin=(0.0, 0.0, 0.0)
        )
        self.before = float(np.linalg.norm(angular_momentum(run)))
        for _ in range(100):
            run.step(2e-3)
        return run
