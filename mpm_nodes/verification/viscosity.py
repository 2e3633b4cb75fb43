"""Viscous flow against exact solutions of the Navier-Stokes equations: a wrong factor 2 in the viscosity fails here.

All scenes are so slow that nothing is displaced: the equations are linear then.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, Material, WallRule
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, STICKY, block, changed, material, walled

DENSITY, VISCOSITY = 1000.0, 100.0
AROUND = WallRule.PERIODIC
NU = VISCOSITY / DENSITY


def _liquid(cell_size: float) -> Material:
    """Return the liquid of these scenes, soft enough (c = nu / h) to leave the choice of dt to the viscosity.

    The exact flows have no divergence and no pressure, so the bulk modulus does not show in them; a stiff one would show in the
    discrete flow, as locking.
    """
    return material("liquid", DENSITY, bulk_modulus=DENSITY * (NU / cell_size) ** 2, viscosity=VISCOSITY)


def _viscous_fluid(cell_size: float) -> Material:
    """Return an Oldroyd-B fluid that has next to no shear stress of its own: all viscosity is the material's."""
    return dataclasses.replace(
        material("oldroyd_b", DENSITY, shear_modulus=1e-3, lame_parameter=DENSITY * (NU / cell_size) ** 2), viscosity=VISCOSITY
    )


class DecayingVortices(VerificationProblem):
    """Vortices in a box with slip walls decay at the rate of the viscosity: the shear wave that fits between walls.

    Scene: a liquid box of 32 (and 16) x 32 x 2 cells, slip walls on node planes, u = U sin(kx) cos(ky), v = -U
        cos(kx) sin(ky), k = pi / L, U = 1e-3 nu / L, C set to grad v, until nu k^2 t = 0.25.
    Exact: the flow keeps its shape and decays as exp(-2 nu k^2 t): its shear vanishes on the walls, its divergence
        everywhere.
    Tolerance: 3 % of the rate at 32 cells; 6 % at 16, since wall nodes see half-empty stencils (first order).
    """

    name = "decaying_vortices"
    source = "Taylor and Green 1937"

    def findings(self) -> Iterator[Finding]:
        """Let them decay at two resolutions."""
        for cells, tolerance in ((16, 0.06), (32, 0.03)):
            yield Finding.relative(1.0, self._rate(cells), tolerance, f"rate at {cells} cells, of 2 nu k^2")

    @staticmethod
    def _rate(cells: int) -> float:
        length = 1.0
        h, k, speed = length / cells, np.pi / length, 1e-3 * NU / length
        start = block(_liquid(h), (0, 0, 0), (length, length, 2 * h), h)
        x, y = k * start["position"][:, 0], k * start["position"][:, 1]
        velocity, affine = np.zeros((len(start), 3)), np.zeros((len(start), 3, 3))
        velocity[:, 0], velocity[:, 1] = speed * np.sin(x) * np.cos(y), -speed * np.cos(x) * np.sin(y)
        affine[:, 0, 0], affine[:, 0, 1] = speed * k * np.cos(x) * np.cos(y), -speed * k * np.sin(x) * np.sin(y)
        affine[:, 1, 0], affine[:, 1, 1] = -affine[:, 0, 1], -affine[:, 0, 0]
        walls = walled((0, 0, 0), (length, length, 2 * h), SLIP)
        start = changed(start, velocity=velocity, affine=affine, velocity_gradient=affine)
        solver = SubstepSolver(start, cell_size=h, walls=walls, gravity=(0, 0, 0))
        solver.advance(0.25 / (NU * k * k))
        order = solver.particles.unpack("id")
        amplitude = (velocity[order] * column(solver, "velocity")).sum() / (velocity**2).sum()
        return float(-np.log(amplitude) / (2 * NU * k * k * solver.time))


class _Channel(VerificationProblem):
    """Liquid between y = 0 and y = H and between periodic ends, eight cells apart.

    Free ends would push: where the flow leaves the plates its pressure is not zero, and a channel four times as long as high has a
    gradient of 2.1 % of the push in it.
    """

    slow = True
    cells = 20
    duration = 0.2
    offsets: tuple[float, ...] = (0.0,)
    top = OPEN
    push = 0.0
    tolerance = 0.03
    fluid = staticmethod(_liquid)

    def findings(self) -> Iterator[Finding]:
        """Run the channel and compare the profile."""
        for offset in self.offsets:
            error = self.error(self.cells, self.duration, offset=offset)
            yield Finding(0.0, error, self.tolerance, f"profile error, of the fastest, plates {offset:g} h off the nodes")

    def error(self, cells: int, duration: float, dt: float | None = None, offset: float = 0.0, **options: Any) -> float:
        """Return the largest error of the profile, over the fastest.

        Args:
            cells: Cells across the channel.
            duration: Time from rest [H^2 / nu].
            dt: Substep [H^2 / nu]; None lets the solver choose.
            offset: How far the plates lie off the nodes [cells].
            options: Further options of the solver.
        """
        height = 1.0
        h, end = height / cells, duration * height**2 / NU
        start = block(self.fluid(h), (0, 0, 0), (8 * h, height, 2 * h), h)
        top = 2 * height if self.top is OPEN else height
        walls = walled((0, 0, 0), (8 * h, top, 2 * h), AROUND, AROUND, STICKY, self.top, SLIP, SLIP)
        solver = SubstepSolver(
            start,
            cell_size=h,
            walls=walls,
            colliders=self.lid(height, end),
            gravity=(self.push, 0, 0),
            origin=(0.0, offset * h, 0.0),
            **options,
        )
        solver.advance(end, None if dt is None else dt * height**2 / NU)
        y, u = start["position"][solver.particles.unpack("id"), 1], column(solver, "velocity")[:, 0]
        exact = self.profile(y, height, solver.time)
        fastest = float(exact.max())
        axes, what = ("height over H", "speed over the fastest"), f"{cells} cells, plates {offset:g} h off the nodes"
        self.show(what, axes, (y / height, u / fastest), (y / height, exact / fastest), self.tolerance)
        return float(np.abs(u - exact).max() / fastest)

    def lid(self, height: float, end: float) -> list[Collider]:
        """Return the moving lid, if there is one."""
        return []

    def profile(self, y: np.ndarray, height: float, time: float) -> np.ndarray:
        """Return the exact velocity at heights y."""
        raise NotImplementedError


def _driven(y: np.ndarray, time: float, push: float, wave: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return sum share push / (nu k^2) sin(k y) (1 - exp(-nu k^2 t)): modes k with share of a uniform acceleration."""
    rate = NU * wave**2
    return np.sin(np.outer(y, wave)) @ (push * share / rate * (1 - np.exp(-rate * time)))


class Poiseuille(_Channel):
    """Liquid between two plates speeds up to the parabola, wherever the plates lie between the nodes.

    Scene: 8 x 20 x 2 cells between sticky plates on node planes and a quarter, a half and three quarters of a cell off,
        periodic ends, slip side walls, pushed by 1e-4 nu^2 / H^3 from rest until nu t / H^2 = 0.2 (86 % of the steady speed).
    Exact: u = sum 4 G / (n pi nu k^2) sin(k y) (1 - exp(-nu k^2 t)), k = n pi / H, n odd; steady G y (H - y) / (2
        nu).
    Tolerance: 3 % of the fastest at 20 cells.
    """

    name = "poiseuille"
    source = "textbook (start-up of plane Poiseuille flow)"
    offsets = (0.0, 0.25, 0.5, 0.75)
    top = STICKY
    push = 1e-4 * NU**2

    def profile(self, y: np.ndarray, height: float, time: float) -> np.ndarray:
        """Return the series."""
        n = np.arange(1, 200, 2)
        return _driven(y, time, self.push, n * np.pi / height, 4 / (n * np.pi))


class PoiseuilleOfMaterial(Poiseuille):
    """Viscosity as a term of its own drives the same parabola in a fluid whose law has none.

    Scene: poiseuille with an Oldroyd-B fluid of shear modulus 1e-3 Pa and a material viscosity of 100 Pa s.
    Exact: as for poiseuille; the shear modulus counts 2e-5 of the viscous stress.
    Tolerance: 2 % of the fastest at 20 cells.
    """

    name = "poiseuille_material_viscosity"
    offsets = (0.0,)
    tolerance = 0.02
    fluid = staticmethod(_viscous_fluid)


class FilmOnIncline(_Channel):
    """A film runs down an incline with the half parabola of its thickness.

    Scene: 8 x 20 x 2 cells on a sticky floor, free top, periodic ends, slip side walls, pushed along the floor by 1e-4
        nu^2 / H^3 from rest until nu t / H^2 = 0.5 (71 % of the steady speed).
    Exact: u = sum 2 g / (k H nu k^2) sin(k y) (1 - exp(-nu k^2 t)), k = (n + 1/2) pi / H; steady g sin a (H y -
        y^2/2) / nu.
    Tolerance: 3 % of the fastest at 20 cells.
    """

    name = "film_on_incline"
    source = "textbook (start-up of a Nusselt film)"
    duration = 0.5
    push = 1e-4 * NU**2

    def profile(self, y: np.ndarray, height: float, time: float) -> np.ndarray:
        """Return the series."""
        wave = (np.arange(200) + 0.5) * np.pi / height
        return _driven(y, time, self.push, wave, 2 / (wave * height))


class Couette(_Channel):
    """A moving plate drags the liquid below it along, wherever floor and plate lie between the nodes.

    Scene: 8 x 20 x 2 cells between a sticky floor and a sticky plane that moves at U = 1e-4 nu / H, periodic ends, slip side
        walls, from rest until nu t / H^2 = 0.2; floor and plane on node planes and a quarter, a half and three quarters of
        a cell off.
    Exact: u = U y / H - sum 2 U / (n pi) (-1)^(n+1) sin(n pi y / H) exp(-n^2 pi^2 nu t / H^2).
    Tolerance: 3 % of U at 20 cells.
    """

    name = "couette"
    source = "textbook (start-up of plane Couette flow)"
    slow = True
    offsets = (0.0, 0.25, 0.5, 0.75)
    speed = 1e-4 * NU

    def lid(self, height: float, end: float) -> list[Collider]:
        """Return the plane."""
        over = np.array([0.0, 1.0, 0.0, 0.0])  # half a turn about x: the solid side is above
        moves = np.array([[0.0, height, 0.0]] * 2)
        moves[1, 0] = self.speed * end
        shape = PosedLevelSets(PLANE, pose_times=np.array([0.0, end]), rotations=np.array([over, over]), translations=moves)
        return [Collider("lid", CollisionRule.STICKY, 0.0, shape)]

    def profile(self, y: np.ndarray, height: float, time: float) -> np.ndarray:
        """Return the series."""
        n = np.arange(1, 200)
        decay = 2 / (n * np.pi) * (-1.0) ** (n + 1) * np.exp(-((n * np.pi / height) ** 2) * NU * time)
        return self.speed * (y / height - np.sin(np.outer(y, n * np.pi / height)) @ decay)


class CouetteOfMaterial(Couette):
    """Viscosity as a term of its own: a moving plate drags a fluid whose law has none.

    Scene: couette with an Oldroyd-B fluid of shear modulus 1e-3 Pa and a material viscosity of 100 Pa s.
    Exact: as for couette; the shear modulus counts 2e-5 of the viscous stress.
    Tolerance: 2 % of U at 20 cells.
    """

    name = "couette_material_viscosity"
    slow = False
    offsets = (0.0,)
    tolerance = 0.02
    fluid = staticmethod(_viscous_fluid)


class DampedBar(VerificationProblem):
    """An elastic bar with material viscosity swings down at the rate of a Kelvin-Voigt solid.

    Scene: the bar of elastic_bar_period, neo-Hookean, 32 cells, E = 1e5 Pa, nu = 0.3, with the viscosity that damps its first
        mode by a fifth in half a period, and without viscosity for what the transfers damp, float64.
    Exact: peaks of the velocity half a period apart have the ratio exp(-gamma T / 2), gamma = mu_v k^2 / rho, k = pi / L:
        the longitudinal stress of the viscosity is 2 mu_v du/dx.
    Tolerance: 5 %.
    """

    name = "damped_bar"
    source = "textbook (one-dimensional wave equation with Kelvin-Voigt damping)"

    def findings(self) -> Iterator[Finding]:
        """Pluck it without and with viscosity."""
        length, cells, modulus = 1.0, 32, 134615.3846  # lam + 2 mu
        c = np.sqrt(modulus / DENSITY)
        gamma = 0.2 * c / length
        viscosity = gamma * DENSITY * (length / np.pi) ** 2
        damped, free = (self._fallen(length, cells, c, each) for each in (viscosity, 0.0))
        yield Finding.relative(1.0, (damped - free) / (gamma * length / c), 0.05, "decay, of mu_v k^2 / rho")

    @staticmethod
    def _fallen(length: float, cells: int, c: float, viscosity: float) -> float:
        """Return the logarithm of the ratio of two peaks half a period apart."""
        h = length / cells
        rubber = dataclasses.replace(material("neo_hookean", DENSITY, youngs_modulus=1e5, poisson_ratio=0.3), viscosity=viscosity)
        start = block(rubber, (0, 0, 0), (length, 2 * h, 2 * h), h)
        shape = np.sin(np.pi * start["position"][:, 0] / length)
        velocity = np.zeros((len(start), 3))
        velocity[:, 0] = 1e-3 * c * shape
        walls = walled((0, 0, 0), (length, 2 * h, 2 * h), STICKY, STICKY, SLIP, SLIP, SLIP, SLIP)
        solver = SubstepSolver(changed(start, velocity=velocity), cell_size=h, walls=walls, gravity=(0, 0, 0), dtype=np.float64)
        signal = []
        while solver.time < 2.4 * length / c:
            solver.step(0.2 * h / c)
            signal.append(shape[solver.particles.unpack("id")] @ column(solver, "velocity")[:, 0])
        value = np.array(signal)
        slope = np.diff(value)
        turns = np.flatnonzero(slope[:-1] * slope[1:] < 0) + 1
        return float(np.log(np.abs(value[turns[0]] / value[turns[1]])))
