"""Matter that comes to a surface, or leaves it: where it is stopped, and from where on it is held."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.materials.moduli import moduli
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contact import rotation_between, rotation_matrix_of
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, block, changed, material, settle

H, G = 0.05, 9.81
UP = np.array([0.0, 1.0, 0.0])
NORMALS = tuple(np.array(n) / np.linalg.norm(n) for n in ((0.0, 1.0, 0.0), (1.0, 2.0, 0.0), (1.0, 1.0, 1.0)))
IMPLICIT = {"preset": "implicit_apic", "set": {"tolerance": 1e-6}}


class Landing:
    """A jelly cube of 4 cells some way before a plane, of a collider or of the domain."""

    def __init__(self, rule: str, n: np.ndarray, offset: float, gap: float, **options: Any) -> None:
        """Build it.

        Args:
            rule: How the plane meets matter: a value of `CollisionRule`.
            n: Unit normal out of the plane.
            offset: Distance of the plane from a layer of nodes [cells].
            gap: Distance of the cube from the plane [cells].
            options: `wall`: whether the plane is a wall of the domain. `speed`: of the cube along n [m/s]. `pull`: gravity along n
                [m/s^2]. `substeps`: a preset.
        """
        self.n, self.at = n, offset * H * n
        start = block(material("neo_hookean", youngs_modulus=5e4), (-2 * H, gap * H, -2 * H), (2 * H, (4 + gap) * H, 2 * H), H)
        turn = rotation_between(UP, n)
        position = start["position"] @ rotation_matrix_of(turn).T + self.at
        start = changed(start, position=position, velocity=np.tile(options.get("speed", 0.0) * n, (len(start), 1)))
        ground: dict[str, Any] = {}
        if options.get("wall"):
            sides = (OPEN, OPEN, WallRule(rule), OPEN, OPEN, OPEN)
            ground["walls"] = Walls((-9.0, float(self.at[1]), -9.0), (9.0, 9.0, 9.0), sides)
        else:
            shape = PosedLevelSets(PLANE, pose_times=np.zeros(1), rotations=turn[None], translations=self.at[None])
            ground["colliders"] = [Collider("plane", CollisionRule(rule), 0.0, shape)]
        self.solver = SubstepSolver(
            start,
            options.get("substeps", "explicit_apic"),
            cell_size=H,
            dtype=np.float64,
            gravity=tuple(options.get("pull", 0.0) * n),
            origin=(0.0, 0.0, 0.0),
            **ground,
        )

    @property
    def height(self) -> float:
        """Distance of the centre of mass from the plane [cells]."""
        return float(((column(self.solver, "position") - self.at) @ self.n).mean() / H)

    def rest(self, free: float, dt: float) -> float:
        """Return the height at rest, after `free` seconds in substeps of dt [s]."""
        if free:
            self.solver.advance(free, dt)
        settle(self.solver, 0.2, 60.0)
        return self.height


class LandsOnASurface(VerificationProblem):
    """Matter that falls on a surface comes to rest where it would stand on it, wherever the surface lies between the nodes.

    Scene: a jelly cube of 4 cells falls 1.5 cells onto a collider that separates, at eight offsets from the nodes and in three
        orientations, and onto such a wall at eight offsets; at four in implicit steps of 2 ms; velocities are damped
        once it has landed. It drifts at 0.3 m/s to a sticky plane half a cell away, without gravity.
    Exact: the height of the centre of mass of a cube that is put there at rest.
    Tolerance: 0.25 cells, half of what lies between particles. Matter is met a tenth of a cell before it touches.
    """

    name = "lands_on_a_surface"
    source = "textbook (rigid contact)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Drop the cubes."""
        stands = Landing("separate", UP, 0.0, 0.0, pull=-G).rest(0.0, 2e-4)
        offsets = np.arange(8) / 8
        cases: tuple[tuple[str, list[dict[str, Any]]], ...] = (
            ("collider, explicit steps", [{"n": n, "offset": each} for n in NORMALS for each in offsets]),
            ("wall, explicit steps", [{"n": UP, "offset": each, "wall": True} for each in offsets]),
            ("wall, implicit steps", [{"n": UP, "offset": each, "wall": True, "substeps": IMPLICIT} for each in offsets[::2]]),
        )
        for label, scenes in cases:
            dt = 2e-3 if "substeps" in scenes[0] else 2e-4
            away = [Landing("separate", gap=1.5, pull=-G, **each).rest(0.22, dt) - stands for each in scenes]
            yield Finding(0.0, float(np.abs(away).max()), 0.25, f"{label}: farthest from where it stands [cells]")
        away = [Landing("sticky", UP, each, 0.5, speed=-0.3).rest(0.12, 2e-4) - 2.0 for each in offsets]
        yield Finding(0.0, float(np.abs(away).max()), 0.25, "sticky: gap that is left [cells]")


class LeavesASurface(VerificationProblem):
    """A surface that holds on to matter does so where it touches, and not across air.

    Scene: a jelly cube of 4 cells below a sticky or slipping ceiling, half a cell away from it or touching it; a collider at eight
        offsets in three orientations and a wall at eight offsets; explicit steps of 0.2 ms for 60 ms.
    Exact: from half a cell away it falls freely, by g t (t + dt) / 2 in symplectic steps. What touches hangs: its centre of mass
        slows down long before that.
    Tolerance: 1e-9 of the way; half of the way.
    """

    name = "leaves_a_surface"
    source = "textbook (free fall)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Hang the cubes, and let them go."""
        scenes: list[dict[str, Any]] = [{"n": n, "offset": each / 8} for n in NORMALS for each in range(8)]
        scenes += [{"n": UP, "offset": each / 8, "wall": True} for each in range(8)]
        for rule in ("sticky", "slip"):
            falls = [self._way(rule, 0.5, scene) for scene in scenes]
            yield Finding(0.0, max(abs(each - 1.0) for each in falls), 1e-9, f"{rule}, half a cell away: error of its fall")
            hangs = [self._way(rule, 0.0, scene) for scene in scenes]
            yield Finding(0.0, max(hangs), 0.5, f"{rule}, touching: way, of its fall")

    @staticmethod
    def _way(rule: str, gap: float, scene: dict[str, Any]) -> float:
        """Return how far it goes, of how far it would fall."""
        case, time, dt = Landing(rule, gap=gap, pull=G, **scene), 0.06, 2e-4
        before = case.height
        for _ in range(round(time / dt)):
            case.solver.step(dt)
        return (case.height - before) * H / (0.5 * G * time * (time + dt))


@dataclasses.dataclass(frozen=True)
class LandingBlock:
    """A block of rubber that meets a plane that separates, without gravity, in the steps that `incompressible` takes by itself.

    Attributes:
        youngs_modulus: [Pa].
        poisson: Poisson's ratio; the bulk modulus of the projection is that of the law.
        density: [kg/m^3].
        cells: Edge of the block [cells].
        speed: [m/s].
        h: Cell size [m].
        dt_max: [s].
        gap: From the plane, on a layer of nodes, to the block [cells].
        bulk: Bulk modulus of the projection in place of the law's [Pa]; 0: incompressible.
    """

    youngs_modulus: float = 1e6
    poisson: float = 0.3
    density: float = 1000.0
    cells: int = 6
    speed: float = 0.5
    h: float = 0.2 / 12
    dt_max: float = 0.01
    gap: float = 0.0
    bulk: float | None = None

    def energy(self) -> float:
        """Return the largest kinetic energy from the first contact to well after it leaves, over that before."""
        rubber = material("neo_hookean", self.density, youngs_modulus=self.youngs_modulus, poisson_ratio=self.poisson)
        half, h = 0.5 * self.cells * self.h, self.h
        low, high = (-half, self.gap * h, -half), (half, self.gap * h + 2.0 * half, half)
        start = block(dataclasses.replace(rubber, bulk_modulus=self.bulk), low, high, h, velocity=(0.0, -self.speed, 0.0))
        run = SubstepSolver(
            start,
            {"preset": "incompressible", "set": {"of_laws": True}},
            cell_size=h,
            colliders=[Collider("floor", CollisionRule.SEPARATE, 0.2, PosedLevelSets(PLANE))],
            gravity=(0.0, 0.0, 0.0),
            dtype=np.float64,
            dt_max=self.dt_max,
            origin=(0.0, 0.0, 0.0),
        )
        wave = math.sqrt(moduli(rubber).shear / self.density)
        end = (self.gap + 2.0) * h / self.speed + 8.0 * self.cells * h / wave
        largest = 0.0
        while run.time < end:
            run.step()
            largest = max(largest, float(column(run, "mass") @ (column(run, "velocity") ** 2).sum(axis=1)))
        return largest / (float(column(run, "mass").sum()) * self.speed**2)


class RubberLands(VerificationProblem):
    """Rubber of the projection that meets a plane gains no energy, in whatever steps it takes by itself.

    Scene: blocks of 1 to 12 cells without gravity; Young's moduli from 10 kPa to 10 MPa at speeds from 0.5 to 6 m/s in steps of 2
        and 10 ms at most, and other sizes, densities, Poisson's ratios, bulk moduli, cells and gaps.
    Exact: no kinetic energy above that at arrival.
    Tolerance: a thousandth of it.
    """

    name = "rubber_lands"
    source = "conservation of energy"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let all blocks land, by what is varied."""
        stiff = [
            LandingBlock(E, speed=v, dt_max=dt) for E in (1e4, 1e5, 4e5, 1e6, 1e7) for v in (0.5, 2.0, 6.0) for dt in (2e-3, 1e-2)
        ]
        varied: dict[str, list[LandingBlock]] = {
            "stiffness, speed and dt_max": stiff,
            "size": [LandingBlock(E, cells=n) for E in (1e5, 1e6) for n in (1, 2, 3, 12)],
            "density": [LandingBlock(density=rho, speed=v) for rho in (100.0, 5000.0) for v in (0.5, 3.0)],
            "Poisson's ratio": [LandingBlock(E, nu) for E in (1e5, 1e6) for nu in (0.0, 0.45, 0.49)],
            "bulk modulus": [LandingBlock(E, bulk=lam) for E in (1e5, 1e6) for lam in (0.0, 1e6)],
            "cell size": [LandingBlock(h=h, speed=v) for h in (0.002, 0.1) for v in (0.5, 3.0)],
            "gap": [LandingBlock(E, gap=gap) for E in (1e5, 1e6) for gap in (0.25, 0.5, 0.75)],
        }
        for what, drops in varied.items():
            gained = max(0.0, *(each.energy() - 1.0 for each in drops))
            yield Finding(0.0, gained, 1e-3, f"energy gained, of that at arrival: {what}")
