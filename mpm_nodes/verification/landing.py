"""Matter that comes to a surface, or leaves it: where it is stopped, and from where on it is held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
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
