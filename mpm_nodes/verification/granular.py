"""Sand and soil: the return map of Drucker and Prager, layers under shear and on slopes, and heaps at their angle of repose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, WallRule
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.materials.parameters import lame
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SLIP, STICKY, block, material, settle, walled

__all__ = ["AngleOfRepose", "DruckerPragerReturn", "LayerOfSandOnIncline", "ShearedSand"]

LAW, YOUNG, POISSON, G, DENSITY = "drucker_prager", 1e6, 0.3, 9.81, 1600.0


def moved(state: Mapping[str, np.ndarray] | None, A: np.ndarray, **params: float) -> dict[str, np.ndarray]:
    """Return the state of material points after a step A, shape (n, 3, 3), and its flow."""
    given = {"params": {"youngs_modulus": YOUNG, "poisson_ratio": POISSON, **params}, "dt": 1e-3}
    return call_law(LAW, "project", call_law(LAW, "advance", state, A, **given), **given)


def stress(state: Mapping[str, np.ndarray], **params: float) -> np.ndarray:
    """Return the Kirchhoff stress [Pa] of one material point, shape (3, 3)."""
    return call_law(LAW, "kirchhoff", state, params={"youngs_modulus": YOUNG, "poisson_ratio": POISSON, **params})[0]


class DruckerPragerReturn(VerificationProblem):
    """The return map comes to its closed form on principal stretches, and grains take back the volume that they gained.

    Scene: 2000 stretches exp(0.05 N(0, 1)) in random directions, friction of 0, 20, 35 and 50 degrees, cohesion of 0 and 5 kPa,
        half of them with a volume gained before; then one point pulled apart to 1.02^3 times its volume and pressed by 1 % and 4 %.
    Exact: with l the deviator and e the trace of the logarithmic strain, volume gained included, K = lam + 2 mu / 3, f = sqrt(2):
        l' = l min(1, (f c - f tan(phi) K e) / (2 mu |l|)), e' = e; both 0 where K e > c / tan(phi), or > 0 of grains that have
        gained volume, which is exp(e) then. No stress until the volume is back, then K ln of the rest.
    Tolerance: 1e-12 of strains of 0.1; 1e-12 of the pressure and the volume.
    """

    name = "drucker_prager_return"
    source = "Klar 2016 section 6.3; Tampubolon 2017"

    def findings(self) -> Iterator[Finding]:
        """Project, and compare singular values and volume."""
        random = np.random.default_rng(7)
        strain = 0.05 * random.standard_normal((2000, 3))
        turns = np.linalg.qr(random.standard_normal((2, 2000, 3, 3)))[0]
        F = turns[0] * np.exp(strain)[:, None, :] @ turns[1]
        gained = np.where(np.arange(2000) % 2, 1.0, random.uniform(1.0, 1.1, 2000))
        for angle, cohesion in ((0.0, 5e3), (20.0, 0.0), (35.0, 5e3), (50.0, 0.0)):
            params = {"friction_angle": angle, "cohesion": cohesion}
            found = moved({"deformation": F, "plastic_volume_ratio": gained}, np.zeros((2000, 3, 3)), **params)
            logs = np.log(np.linalg.svd(found["deformation"], compute_uv=False))
            exact, volume = self._closed_form(strain, np.log(gained), np.tan(np.radians(angle)), cohesion)
            what = f"friction of {angle:g} degrees, cohesion of {cohesion:g} Pa"
            yield Finding(0.0, float(np.abs(np.sort(logs) - np.sort(exact)).max()), 1e-12, f"strain, {what}")
            yield Finding(0.0, float(np.abs(np.log(found["plastic_volume_ratio"]) - volume).max()), 1e-12, f"volume, {what}")
        yield from self._volume_comes_back()

    @staticmethod
    def _closed_form(strain: np.ndarray, gained: np.ndarray, slope: float, cohesion: float) -> tuple[np.ndarray, np.ndarray]:
        """Return logarithmic strains and the logarithm of the volume gained."""
        mu, lam = lame(YOUNG, POISSON)
        trace = strain.sum(axis=1) + gained
        deviator = strain - strain.mean(axis=1)[:, None]
        tension = (lam + 2.0 * mu / 3.0) * trace
        strength = 0.0 if cohesion == 0.0 else cohesion / slope if slope else np.inf
        apart = np.where(gained > 0.0, trace > 0.0, tension > strength)
        share = np.sqrt(2.0) * (cohesion - slope * tension) / (2.0 * mu * np.linalg.norm(deviator, axis=1))
        kept = trace[:, None] / 3.0 + deviator * np.clip(share, 0.0, 1.0)[:, None]
        return np.where(apart[:, None], 0.0, kept), np.where(apart, trace, 0.0)

    @staticmethod
    def _volume_comes_back() -> Iterator[Finding]:
        """Pull a point apart, and press it."""
        mu, lam = lame(YOUNG, POISSON)
        state, volume = None, 1.0
        for factor in (1.02, 0.99, 0.96):
            state, volume = moved(state, (factor - 1.0) * np.eye(3)[None]), volume * factor**3
            exact = (3.0 * lam + 2.0 * mu) * min(0.0, np.log(volume)) / 3.0
            yield Finding.relative(volume, float(call_law(LAW, "volume_ratio", state)[0]), 1e-12, f"volume at {volume:.3f}")
            yield Finding(exact, float(np.trace(stress(state)) / 3.0), 1e-12 * YOUNG, f"mean stress at {volume:.3f} [Pa]")


class ShearedSand(VerificationProblem):
    """A sheared point carries its pressure times the tangent of the friction angle, and its cohesion; a pressed one keeps K0.

    Scene: material points, E = 1 MPa, nu = 0.3. Pressed to 1e-3 on all sides and sheared in steps of 1e-4 to 0.04, friction of 10,
        30 and 45 degrees, cohesion of 0 and 200 Pa. Pressed by 1e-3 along one axis, in steps of 1e-5, between walls: friction of 30
        and 40 degrees, nu = 0.3 and 0.2; strains stay small.
    Exact: tau = p tan(phi) + c on all planes of the layer, p on each side. K0 = nu / (1 - nu), or where that is beyond the cone
        (sqrt 6 - m) / (sqrt 6 + 2 m), m = sqrt 2 tan(phi): 0.4 for 30 degrees.
    Tolerance: 1 % for the square of the elastic strain, which turns with the layer; 0.1 % of K0, and 1 % where it flows.
    """

    name = "sheared_sand"
    source = "Davis 1968; Jaky 1944"

    def findings(self) -> Iterator[Finding]:
        """Shear, then press."""
        for angle, cohesion in ((10.0, 0.0), (30.0, 0.0), (30.0, 200.0), (45.0, 0.0), (45.0, 200.0)):
            params = {"friction_angle": angle, "cohesion": cohesion}
            state: Any = {"deformation": (1.0 - 1e-3) * np.eye(3)[None], "plastic_volume_ratio": np.ones(1)}
            shear = np.zeros((1, 3, 3))
            shear[0, 0, 1] = 1e-4
            for _ in range(400):
                state = moved(state, shear, **params)
            tau = stress(state, **params)
            exact = -tau[1, 1] * np.tan(np.radians(angle)) + cohesion
            yield Finding.relative(exact, float(tau[0, 1]), 0.01, f"shear stress at {angle:g} degrees and {cohesion:g} Pa [Pa]")
        for angle, poisson in ((30.0, 0.3), (30.0, 0.2), (40.0, 0.2)):
            params = {"friction_angle": angle, "poisson_ratio": poisson}
            state, press = None, np.zeros((1, 3, 3))
            press[0, 1, 1] = -1e-5
            for _ in range(100):
                state = moved(state, press, **params)
            tau, m = stress(state, **params), np.sqrt(2.0) * np.tan(np.radians(angle))
            elastic, flowing = poisson / (1.0 - poisson), (np.sqrt(6.0) - m) / (np.sqrt(6.0) + 2.0 * m)
            exact, tolerance = max(elastic, flowing), 1e-3 if elastic > flowing else 0.01
            yield Finding.relative(exact, float(tau[0, 0] / tau[1, 1]), tolerance, f"K0 at {angle:g} degrees, nu = {poisson:g}")


class LayerOfSandOnIncline(VerificationProblem):
    """A layer of sand rests on a rough slope that is less steep than its friction angle, and runs down a steeper one.

    Scene: 8 x 12 x 2 cells, periodic along the slope, slip side walls, sticky floor, friction of 30 degrees, float64; damped until
        it bears its weight, on a slope of 27 degrees and on level ground. Then 0.3 s, the latter on a slope of 40 degrees: beyond
        35.3, the largest obliquity of the cone, where nothing but flow is left.
    Exact: at 27 degrees it rests. At 40 its upper half accelerates by g (sin(a) - cos(a) tan(phi)), whatever its depth.
    Tolerance: 1e-3 sqrt(g H) for what creeps; 5 % of the acceleration.
    """

    name = "layer_of_sand_on_incline"
    source = "textbook: infinite slope"
    slow = True

    angle, cells, h = 30.0, 12, 0.02

    def findings(self) -> Iterator[Finding]:
        """Tilt both."""
        for lean in (27.0, 40.0):
            solver, turn, rests = self._layer(), np.radians(lean), lean < self.angle
            pull = (G * float(np.sin(turn)), -G * float(np.cos(turn)), 0.0)
            solver.gravity = pull if rests else solver.gravity
            settle(solver, 0.3, 40.0)
            solver.gravity = pull
            solver.advance(0.1)
            before = self._upper(solver, "position" if rests else "velocity")
            solver.advance(0.2)
            if rests:
                creep = (self._upper(solver, "position") - before) / 0.2 / float(np.sqrt(G * self.cells * self.h))
                yield Finding(0.0, creep, 1e-3, f"creep at {lean:g} degrees [sqrt(g H)]")
            else:
                exact = G * float(np.sin(turn) - np.cos(turn) * np.tan(np.radians(self.angle)))
                found = (self._upper(solver, "velocity") - before) / 0.2
                yield Finding.relative(exact, found, 0.05, f"acceleration at {lean:g} degrees [m/s^2]")

    def _layer(self) -> SubstepSolver:
        edge, top, deep, around = 8 * self.h, self.cells * self.h, 2 * self.h, WallRule.PERIODIC
        matter = material(LAW, DENSITY, friction_angle=self.angle, youngs_modulus=3e5)
        return SubstepSolver(
            block(matter, (0, 0, 0), (edge, top, deep), self.h),
            cell_size=self.h,
            walls=walled((0, 0, 0), (edge, 2 * top, deep), around, around, STICKY, OPEN, SLIP, SLIP),
            gravity=(0.0, -G, 0.0),
            dtype=np.float64,
        )

    @staticmethod
    def _upper(solver: SubstepSolver, name: str) -> float:
        """Return the mean of an attribute along the slope over the upper half of the layer."""
        height = column(solver, "position")[:, 1]
        return float(column(solver, name)[height > 0.5 * height.max(), 0].mean())


class AngleOfRepose(VerificationProblem):
    """A bank of sand whose wall moves away slowly comes to rest at its angle of repose.

    Scene: a square of 10 and of 20 cells, 0.5 m high, two cells thick, between slip sides on a sticky floor; its wall goes away at
        0.25 m/s, an eighth of sqrt(g H), until it bears nothing. E = 0.3 MPa, nu = 0.3; friction of a, and of asin(tan(a)).
    Exact: a = 25, 30 and 35 degrees, the angle of friction, at which a layer slides. There is no closed form: a bank that spreads
        is stretched along its slope while it is sheared, and bears less than in simple shear. That it stands nearer to
        tan(a) = sin(phi) was found after the first runs, and is what a layer of Coulomb's matter slides at that keeps its volume.
        Slope of the tops of columns from 15 to 85 % of the height.
    Tolerance: 2 degrees, set before the first run. By its angle of friction sand of 30 and 35 degrees misses it, at 26 to 30; by
        the other one two of six do: 28.0 for 30 in ten cells, where the slope has eight columns, and 31.3 for 35 in twenty.
    """

    name = "angle_of_repose"
    source = "Davis 1968"
    slow = True
    misses = (
        "angle of repose, 10 cells, friction of 35.3 degrees [degrees]",
        "angle of repose, 20 cells, friction of 44.4 degrees [degrees]",
        *(
            f"the same by its angle of friction, {cells}, {a} degrees [degrees]"
            for cells in ("10 cells", "20 cells")
            for a in (30, 35)
        ),
    )

    height, speed = 0.5, 0.25

    def findings(self) -> Iterator[Finding]:
        """Take the wall away."""
        for cells in (10, 20):
            for angle in (25.0, 30.0, 35.0):
                friction = float(np.degrees(np.arcsin(np.tan(np.radians(angle)))))
                what = f"angle of repose, {cells} cells, friction of {friction:.1f} degrees [degrees]"
                yield Finding(angle, self._rests_at(cells, friction), 2.0, what)
                what = f"the same by its angle of friction, {cells} cells, {angle:g} degrees [degrees]"
                yield Finding(angle, self._rests_at(cells, angle), 2.0, what)

    def _rests_at(self, cells: int, friction: float) -> float:
        """Return the slope of a bank at rest [degrees]."""
        solver, seconds = self._bank(self.height / cells, friction)
        solver.advance(seconds)
        return self._slope(column(solver, "position"), self.height / cells)

    def _bank(self, h: float, friction: float) -> tuple[SubstepSolver, float]:
        """Return the bank behind its wall, and how long that moves [s]."""
        edge, waits, way = self.height, 0.3, 2.2 * self.height
        times, half = np.array([0.0, waits, waits + way / self.speed]), float(np.sqrt(0.5))
        places = np.array([[edge, 0.0, 0.0], [edge, 0.0, 0.0], [edge + way, 0.0, 0.0]])
        turned = np.array([(half, 0.0, 0.0, half)] * 3)  # its solid side is towards +x
        shape = PosedLevelSets(PLANE, pose_times=times, rotations=turned, translations=places)
        matter = material(LAW, DENSITY, friction_angle=friction, youngs_modulus=3e5, poisson_ratio=POISSON)
        solver = SubstepSolver(
            block(matter, (0, 0, 0), (edge, edge, 2 * h), h),
            cell_size=h,
            walls=walled((0, 0, 0), (6 * edge, 1.5 * edge, 2 * h), SLIP, OPEN, STICKY, OPEN, SLIP, SLIP),
            colliders=[Collider("wall", CollisionRule.SLIP, 0.0, shape)],
        )
        return solver, float(times[-1]) + 0.3

    @staticmethod
    def _slope(position: np.ndarray, h: float) -> float:
        """Return the angle of the heap's side [degrees]."""
        x, y = position.T[:2]
        columns = np.floor(x / h).astype(int)
        known = np.unique(columns)
        top = np.array([y[columns == each].max() for each in known]) + 0.25 * h
        side = (top < 0.85 * top.max()) & (top > 0.15 * top.max())
        return float(np.degrees(np.arctan(-np.polyfit((known[side] + 0.5) * h, top[side], 1)[0])))
