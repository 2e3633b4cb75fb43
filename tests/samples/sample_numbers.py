"""What samples/README.md claims, and how each number is measured from the cache that a cook leaves."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples"


@dataclass
class Cooked:
    """A cooked sample: its folder, stage and warnings."""

    folder: Path
    stage: str
    warnings: tuple[str, ...]
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


def claims() -> dict[str, dict[str, tuple[float, float]]]:
    """Return (value, tolerance) by number and sample, from the tables of samples/README.md."""
    found: dict[str, dict[str, tuple[float, float]]] = {}
    sample = ""
    for line in (SAMPLES / "README.md").read_text().splitlines():
        if line.startswith("## "):
            sample = line[3:].strip()
        row = re.fullmatch(r"\| (.+) \| (-?[\d.]+) \| ([\d.]+) \|", line)
        if row:
            found.setdefault(sample, {})[row[1]] = float(row[2]), float(row[3])
    return found


def on_slope(cooked: Cooked, frame: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of lava along its slope and its heights above it [m]."""
    x, y, turn = cooked.x(frame, 0), cooked.x(frame), np.radians(10.0)
    return x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)


def ropes(cooked: Cooked, frame: int) -> int:
    """Return how many crests the lava has along the middle of its flow, in steps of a cell."""
    along, height = (each[np.abs(cooked.x(frame, 2)) < 0.03] for each in on_slope(cooked, frame))
    places = np.digitize(along, np.arange(-0.6, 1.2, 0.02))
    top = np.array([height[places == k].max(initial=0.0) for k in range(1, 90)])
    return int(((top[1:-1] > top[:-2]) & (top[1:-1] > top[2:])).sum())


def way_of(cooked: Cooked, count: int, first: int, last: int) -> float:
    """Return how far the particles that came first have moved from one frame to another, on average [m]."""
    places = []
    for frame in (first, last):
        order = np.argsort(cooked.at(frame)["id"])[:count]
        places.append(np.asarray(cooked.at(frame)["position"], float)[order])
    return float(np.linalg.norm(places[1] - places[0], axis=1).mean())


def molten(cooked: Cooked, block: int) -> float:
    """Return the share of a block of wax that is liquid: melts stand behind the four solids in the list of materials."""
    material = cooked.at(36)["material"]
    return float((material == 4 + block).sum() / ((material == block) | (material == 4 + block)).sum())


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


def swelling(cooked: Cooked, material: int) -> float:
    """Return sum J V0 over sum V0 of one material at frame 36."""
    from mpm_nodes.materials.volumes import volume_ratios

    particles = cooked.at(36)
    chosen = particles["material"] == material
    volume = particles["volume"][chosen].astype(float)
    return float(volume_ratios(particles)[chosen] @ volume / volume.sum())


def mass(cooked: Cooked, material: int) -> float:
    """Return the mass of one material at frame 60 [kg]."""
    particles = cooked.at(60)
    return float(particles["mass"][particles["material"] == material].sum(dtype=float))


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
    "butter_on_pan": {
        "particles": lambda c: len(c.at(60)),
        "share of the butter that is liquid at frame 60": lambda c: c.at(60)["phase"].mean(),
        "hottest particle at frame 60 [K]": lambda c: c.at(60)["temperature"].max(),
        "middle of what is solid at frame 60, sliding on its melt: x [m]": lambda c: c.x(60, 0)[c.at(60)["phase"] == 0].mean(),
    },
    "lava": {
        "mass at frame 60: density, slit, speed, time [kg]": lambda c: c.at(60)["mass"].sum(dtype=float),
        "hottest particle at frame 60 [K]": lambda c: c.at(60)["temperature"].max(),
        "coldest particle at frame 60 [K]": lambda c: c.at(60)["temperature"].min(),
        "front at frame 60, along the slope [m]": lambda c: on_slope(c, 60)[0].max(),
        "ropes on the middle line at frame 60": lambda c: ropes(c, 60),
    },
    "caramel": {
        "mass at frame 64: density, slit, speed, time [kg]": lambda c: c.at(64)["mass"].sum(dtype=float),
        "hottest particle at frame 64 [K]": lambda c: c.at(64)["temperature"].max(),
        "coldest particle at frame 64 [K]": lambda c: c.at(64)["temperature"].min(),
        "highest particle at frame 64, on folds that bear it [m]": lambda c: c.x(64).max(),
        "way of the first third between frames 48 and 64 [m]": lambda c: way_of(c, 8000, 48, 64),
    },
    "wax": {
        "particles": lambda c: len(c.at(36)),
        "share molten at frame 36 without latent heat": lambda c: molten(c, 0),
        "share molten at frame 36 with 15 kJ/kg": lambda c: molten(c, 1),
        "share molten at frame 36 with 45 kJ/kg": lambda c: molten(c, 2),
        "share molten at frame 36 with 135 kJ/kg": lambda c: molten(c, 3),
    },
    "letters": {
        "particles": lambda c: len(c.at(36)),
        "mass at frame 36 [kg]": lambda c: c.at(36)["mass"].sum(dtype=float),
        "momentum down at frame 2, in free fall: m g / 24 [kg m/s]": lambda c: -float(c.at(2)["mass"] @ c.at(2)["velocity"][:, 1]),
        "volume of L, lam = 0.1 MPa, over that at rest, at frame 36": lambda c: swelling(c, 0),
        "volume of F, lam = 5 GPa, over that at rest, at frame 36": lambda c: swelling(c, 2),
        "volume of T, incompressible clay, over that at rest, at frame 36": lambda c: swelling(c, 3),
        "highest particle at frame 36 [m]": lambda c: c.x(36).max(),
    },
}
"""By sample and number as samples/README.md calls it: how to measure it."""
