"""What samples/figures claims, and how each number is measured from the cache that a cook leaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"


@dataclass
class Cooked:
    """A cooked sample: its folder, stage, warnings, and what its solve told by frame."""

    folder: Path
    stage: str
    warnings: tuple[str, ...]
    told: tuple[Mapping[str, Any], ...] = ()
    _kept: dict[int, object] = field(default_factory=dict)

    def at(self, frame: int):
        """Return the particles of a frame, read back from the USD cache."""
        from usd_io.stage_reader import read_points

        if frame not in self._kept:
            self._kept[frame] = read_points(self.folder / self.stage, frame)
        return self._kept[frame]

    def x(self, frame: int, axis: int = 1) -> np.ndarray:
        """Return one coordinate of all particles [m]."""
        return self.at(frame)["position"][:, axis]

    def moved(self, ids: np.ndarray, since: int, until: int) -> np.ndarray:
        """Return how far particles have moved between two frames, shape (n, 3) [m]."""
        first, last = (self.at(frame)["position"][np.argsort(self.at(frame)["id"])] for frame in (since, until))
        return (last.astype(float) - first)[ids]


def figures_pages() -> str:
    """Return the pages of samples/figures, one below the other."""
    return "\n".join(page.read_text() for page in sorted((SAMPLES / "figures").glob("*.md")))


def claims() -> dict[str, dict[str, tuple[float, float]]]:
    """Return (value, tolerance) by number and sample, from the tables of samples/figures."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    sample = ""
    for line in figures_pages().splitlines():
        if line.startswith("## "):
            sample = line[3:].strip()
        row = re.fullmatch(r"\| (.+) \| (-?[\d.]+) \| ([\d.]+) \|", line)
        if row:
            found.setdefault(sample, {})[row[1]] = float(row[2]), float(row[3])
    return found


def distances(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return the distance of each point, shape (n, 3), to the nearest of some triangles, shape (m, 3, 3) [m]."""
    corners = [triangles[:, k] for k in range(3)]
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    found = np.empty(len(points))
    for n, point in enumerate(points):
        within, edge = np.ones(len(triangles), bool), np.full(len(triangles), np.inf)
        for k in range(3):
            start, along = corners[k], corners[(k + 1) % 3] - corners[k]
            share = np.clip(((point - start) * along).sum(1) / np.maximum((along**2).sum(1), 1e-300), 0.0, 1.0)
            edge = np.minimum(edge, np.linalg.norm(start + share[:, None] * along - point, axis=1))
            within &= (np.cross(along, point - start) * normal).sum(1) >= 0.0
        found[n] = np.where(within, np.abs(((point - corners[0]) * normal).sum(1)), edge).min()
    return found


def corners_of(file: Path, frame: float, closed: bool):
    """Return the triangles of a USD file's mesh at a frame, shape (m, 3, 3), holes closed when asked."""
    from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate
    from usd_io.collider_meshes import StageMeshes

    meshes = StageMeshes(file, "")
    topology, points = meshes.topology(frame), meshes.points(frame)
    triangles, _ = triangulate(topology.counts, topology.indices)
    if closed:
        solid = solid_mesh(points, triangles)
        points, triangles = solid.extended(points), solid.triangles
    return points, triangles


def depth_in_monkey(cooked: Cooked) -> float:
    """Return how deep particles lie inside Blender's own mesh [m]: no level set, winding numbers and exact distances."""
    from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree

    deepest = 0.0
    for frame in (24, 36, 60):
        points, triangles = corners_of(SAMPLES / "monkey.usdc", frame, closed=True)
        position = np.ascontiguousarray(cooked.at(frame)["position"], np.float64)
        inside = position[winding_numbers(winding_tree(points, triangles), position) > 0.5]
        deepest = max(deepest, float(distances(inside, points[triangles]).max(initial=0.0)))
    return deepest


def least_distance(position: np.ndarray) -> float:
    """Return the least distance of two points [m]."""
    square = ((position[:, None].astype(float) - position[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    return float(np.sqrt(square.min()))


def cube_of_report(cooked: Cooked, frame: int) -> np.ndarray:
    """Return the positions of the cube on the floor."""
    particles = cooked.at(frame)
    return particles["position"][particles["material"] == 1]


def ball_of_report(cooked: Cooked, frame: int) -> np.ndarray:
    """Return the positions of the hanging ball: the particles that hung below 1.8 m at first."""
    first, particles = cooked.at(1), cooked.at(frame)
    ids = first["id"][(first["material"] == 0) & (first["position"][:, 1] < 1.8)]
    return particles["position"][np.isin(particles["id"], ids)]


def in_bowl(cooked: Cooked) -> float:
    """Return the share of particles within the bowl's radius."""
    return float((np.hypot(cooked.x(60, 0), cooked.x(60, 2)) < 0.22).mean())


def distance_to_bowl(cooked: Cooked) -> float:
    """Return the least distance of a particle to the sheet that the bowl is [m]."""
    points, triangles = corners_of(SAMPLES / "bowl.usda", 1, closed=False)
    return float(distances(cooked.at(60)["position"].astype(float), points[triangles]).min())


def mass(cooked: Cooked, material: int) -> float:
    """Return the mass of one material at frame 60 [kg]."""
    particles = cooked.at(60)
    return float(particles["mass"][particles["material"] == material].sum(dtype=float))


def missed(cooked: Cooked, frame: int, share: float) -> float:
    """Return how far from their goals a share of the particles is at most [m]."""
    particles = cooked.at(frame)
    return float(np.quantile(np.linalg.norm(particles["position"] - particles["goal"], axis=1), share))


def reached(cooked: Cooked, frame: int, within: float) -> float:
    """Return the share of all goals that have a particle within a distance [m]."""
    particles = cooked.at(frame)
    places, goals = (particles[name].astype(np.float32) for name in ("position", "goal"))
    near = [((goals[n : n + 500, None] - places) ** 2).sum(axis=2).min(axis=1) for n in range(0, len(goals), 500)]
    return float((np.concatenate(near) < within**2).mean())


def volume(cooked: Cooked, frame: int) -> float:
    """Return the volume of all particles at rest [cm^3]."""
    return 1e6 * float(cooked.at(frame)["volume"].sum(dtype=float))


MEASURES: dict[str, dict[str, Callable[[Cooked], float]]] = {
    "cheese_on_monkey": {
        "particles": lambda c: len(c.at(60)),
        "open edges counted by the warning": lambda c: float(re.search(r"(\d+) open edges around", " ".join(c.warnings))[1]),
        "deepest particle inside Blender's mesh, frames 24 to 60 [m]": depth_in_monkey,
        "share of the cheese on the head at frame 60": lambda c: (c.x(60) > -0.35).mean(),
        "lowest particle at frame 60 [m]": lambda c: c.x(60).min(),
    },
    "two_materials": {
        "mass of the jelly at frame 60 [kg]": lambda c: mass(c, 0),
        "mass of the syrup at frame 60: density, nozzle area, speed, time [kg]": lambda c: mass(c, 1),
        "share of particles in the bowl at frame 60": in_bowl,
        "least distance of a particle to the sheet, half its thickness, at frame 60 [m]": distance_to_bowl,
    },
    "student_report": {
        "particles": lambda c: len(c.at(60)),
        "least distance of two samples of the cube at frame 1 [m]": lambda c: least_distance(cube_of_report(c, 1)),
        "OBJ files": lambda c: len(list((c.folder / "points").glob("points.*.obj"))),
        "bottom of the ball at frame 24 [m]": lambda c: ball_of_report(c, 24)[:, 1].min(),
        "bottom of the ball at frame 48 [m]": lambda c: ball_of_report(c, 48)[:, 1].min(),
        "share of all particles still at the ceiling at frame 60": lambda c: (c.x(60) > 1.8).mean(),
        "middle of the cube at frame 24, slowed by friction: x [m]": lambda c: cube_of_report(c, 24)[:, 0].mean(),
    },
    "keyed_gravity": {
        "mean vertical speed after five frames of free fall: -9.81 * 5 / 24 [m/s]": lambda c: c.at(6)["velocity"][:, 1].mean(
            dtype=float
        ),
        "middle of the cube at frame 25, on its way to the wall: x [m]": lambda c: c.x(25, 0).mean(),
        "highest particle at frame 48, below the ceiling [m]": lambda c: c.x(48).max(),
    },
    "letters_goal": {
        "particles": lambda c: len(c.at(57)),
        "median way to the goal at frame 57 [m]": lambda c: missed(c, 57, 0.5),
        "way to the goal that 1 % exceed at frame 57 [m]": lambda c: missed(c, 57, 0.99),
        "share of the goals that have a particle within half a cell at frame 57": lambda c: reached(c, 57, 0.01),
        "mean speed at frame 57 [m/s]": lambda c: np.linalg.norm(c.at(57)["velocity"], axis=1).mean(dtype=float),
        "mean height at frame 57; that of the letters is 0.395 [m]": lambda c: c.x(57).mean(dtype=float),
        "highest particle at frame 72, when they have fallen [m]": lambda c: c.x(72).max(),
    },
    "piped_cream": {
        "volume at frame 25: 13 cm^3/s over a second [cm^3]": lambda c: volume(c, 25),
        "volume at the end: the integral of the keys [cm^3]": lambda c: volume(c, 65),
        "height of the rosette at the end [m]": lambda c: c.x(65).max(),
        "its width across at the end [m]": lambda c: np.ptp(c.x(65, 0)),
    },
}
"""By sample and number as samples/figures calls it: how to measure it."""
