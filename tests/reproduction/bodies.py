"""Figures of samples with rigid bodies, and with meshes that break: none follows a source."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes_samples.shots.shot import Figure, Shot, Target

__all__ = ["ball_on_jelly", "broken_chocolate", "floating_bodies", "stirred_batter"]

POOL = (0.6, 0.4)
"""Edges of the pool of floating_bodies [m]."""
FLOATERS = {"cork": ("ball", 240.0), "wood": ("log", 600.0), "ice": ("cube", 917.0)}
"""Its bodies: names of their colliders, and densities [kg/m^3]."""
START = 1.6
"""Speed of the ball of ball_on_jelly as it begins [m/s]."""
MOTOR = (20.0, 0.6)
"""Speed [rad/s] and torque [N m] of the motor of stirred_batter."""
SAMPLES = 20000
"""Places in a body that say which share of it lies below the level."""


# ---------------------------------------------------------------- broken_chocolate
def broken_chocolate(shot: Shot) -> list[Figure]:
    """Return how many pieces there are, that their meshes are closed and hold the bar at rest, and how crisp they stay."""
    first, last = (_mesh(shot, frame) for frame in (shot.first, shot.last))
    whole, parts = _volume(first["rest"], first["triangles"]), np.unique(last["piece"])
    volumes = [_volume(last["rest"], _of_piece(last, number)) for number in parts]
    breaks = [frame for frame in shot.frames if len(np.unique(_mesh(shot, frame)["piece"])) > 1]
    open_edges = sum(_open_edges(_of_piece(last, number)) for number in parts)
    crumbs = float(np.mean(shot.at(shot.last)["crumb"]))
    bent = [_off_rigid(last["rest"][chosen], last["points"][chosen]) for chosen in (last["piece"] == number for number in parts)]
    name = "distance of a piece's points from a rigid motion, median of the worst piece [mm]"
    least, most = 1.0 - 1e-5, 1.0 + 1e-5
    return [
        Figure("pieces at the end", len(parts), Target(2, 4), "it breaks"),
        Figure("first frame with more than one piece", min(breaks, default=0), Target(6, 30), "by bend or pull"),
        Figure("volume of the pieces at rest, over the bar's", sum(volumes) / whole, Target(least, most), "nothing is lost"),
        Figure("smallest piece, over the bar", min(volumes) / whole, Target(0.05), "pieces, not splinters"),
        Figure("edges of the pieces without a second face", open_edges, Target(0, 0), "closed"),
        Figure("particles that are crumbs, over all [%]", 100.0 * crumbs, Target(most=3.0), "a clean break"),
        Figure(name, 1e3 * max(bent), Target(most=2.0), "crisp"),
    ]  # fmt: skip


def _mesh(shot: Shot, frame: int) -> dict[str, np.ndarray]:
    """Return points, places at rest, triangles and pieces of the mesh of a frame."""
    from pxr import UsdGeom

    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
    from usd_io.collider_meshes import StageMeshes

    meshes = StageMeshes(shot.stage, "mesh")
    told, topology = UsdGeom.PrimvarsAPI(meshes.sources[0].mesh), meshes.topology(frame)
    rest, piece = (np.array(told.GetPrimvar(name).Get(frame)) for name in ("rest", "piece"))
    triangles = triangulate(topology.counts, topology.indices)[0]
    return {"points": meshes.points(frame), "rest": rest.astype(float), "piece": piece, "triangles": triangles}


def _of_piece(mesh: dict[str, np.ndarray], number: int) -> np.ndarray:
    return np.asarray(mesh["triangles"][mesh["piece"][mesh["triangles"][:, 0]] == number])


def _volume(points: np.ndarray, triangles: np.ndarray) -> float:
    """Return the volume inside triangles [m^3]."""
    a, b, c = (points - points.mean(axis=0))[triangles].transpose(1, 0, 2)
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6.0


def _open_edges(triangles: np.ndarray) -> int:
    """Return how many edges are not walked once in both directions."""
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    there, back = (np.unique(each[:, 0].astype(np.int64) << 32 | each[:, 1]) for each in (edges, edges[:, ::-1]))
    return len(np.setxor1d(there, back)) + len(edges) - len(there)


def _off_rigid(rest: np.ndarray, now: np.ndarray) -> float:
    """Return the median distance of points from the rigid motion that fits them best, by the method of Kabsch [m]."""
    own, its = rest - rest.mean(axis=0), now - now.mean(axis=0)
    u, _, v = np.linalg.svd(its.T @ own)
    turn = u @ np.diag((1.0, 1.0, np.sign(np.linalg.det(u @ v)))) @ v
    return float(np.median(np.linalg.norm(own @ turn.T - its, axis=1)))


# ---------------------------------------------------------------- ball_on_jelly
def ball_on_jelly(shot: Shot) -> list[Figure]:
    """Return how deep the ball dents the jelly, how high it bounces, and that the jelly recovers."""
    heights = np.array([_points_of(shot, "round", frame)[:, 1].min() for frame in shot.frames])
    top = float(shot.positions(shot.first)[:, 1].max())
    lowest = int(heights.argmin())
    bounce = float(heights[lowest:].max())
    drop = float(heights[0]) - top + 0.5 * START**2 / 9.81  # its first speed counts as a way to fall
    last = shot.positions(shot.last)
    beside = float(last[np.linalg.norm(last[:, [0, 2]], axis=1) > 0.15, 1].max())
    height = (bounce - top) / drop
    return [
        Figure("deepest dent, over the jelly's height", (top - float(heights[lowest])) / top, Target(0.1, 0.8), "gives way"),
        Figure("height of the bounce over the jelly, over that of the fall", height, Target(0.05, 1.0), "bounces, gains nothing"),
        Figure("distance of the ball from its first axis at the end [m]", _axis_of(shot), Target(most=0.15), "stays on it"),
        Figure("height of the jelly beside the ball, end over start", beside / top, Target(0.9, 1.1), "keeps its shape"),
    ]  # fmt: skip


def _axis_of(shot: Shot) -> float:
    first, last = (_points_of(shot, "round", frame).mean(axis=0) for frame in (shot.first, shot.last))
    return float(np.linalg.norm((last - first)[[0, 2]]))


def _points_of(shot: Shot, collider: str, frame: int) -> np.ndarray:
    """Return the points of a collider's mesh as the cache has it [m]."""
    return np.asarray(_meshes_of(shot, collider).points(frame))


def _meshes_of(shot: Shot, collider: str) -> Any:
    from usd_io.collider_meshes import StageMeshes

    return StageMeshes(shot.stage, f"collider_{collider}")


# ---------------------------------------------------------------- floating_bodies
def floating_bodies(shot: Shot) -> list[Figure]:
    """Return which share of each body lies below the level at the end, beside its density over the water's."""
    frames = shot.frames[-5:]
    water = shot.at(shot.last)
    volume = float(np.asarray(water["volume"], float).sum())
    found: dict[str, list[float]] = {name: [] for name in FLOATERS}
    for frame in frames:
        for name, share in _shares(shot, frame, volume).items():
            found[name].append(share)
    figures = []
    for name, (_, density) in FLOATERS.items():
        expected, share = density / 1000.0, float(np.mean(found[name]))
        text = f"Archimedes, {expected:g}"
        target = Target(0.95 * expected, 1.05 * expected)
        figures.append(Figure(f"share of the {name} below the level at the end", share, target, text))
    return figures


def _shares(shot: Shot, frame: int, water: float) -> dict[str, float]:
    """Return which share of each body lies below the level: that at which water and what is below it fill the pool.

    Shares are counted at random places inside of the bodies' meshes.
    """
    inside = {name: _inside(shot, collider, frame) for name, (collider, _) in FLOATERS.items()}
    low, high = 0.0, 1.0
    for _ in range(40):
        level = 0.5 * (low + high)
        below = sum(own * float(np.mean(heights < level)) for heights, own in inside.values())
        low, high = (low, level) if POOL[0] * POOL[1] * level > water + below else (level, high)
    return {name: float(np.mean(heights < low)) for name, (heights, _) in inside.items()}


def _inside(shot: Shot, collider: str, frame: int) -> tuple[np.ndarray, float]:
    """Return the heights of places inside of a body [m], and its volume [m^3]."""
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
    from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree

    meshes = _meshes_of(shot, collider)
    points, topology = meshes.points(frame), meshes.topology(frame)
    triangles = triangulate(topology.counts, topology.indices)[0]
    places = np.random.default_rng(1).uniform(points.min(axis=0), points.max(axis=0), (SAMPLES, 3))
    chosen = winding_numbers(winding_tree(points, triangles), places) > 0.5
    return places[chosen, 1], abs(_volume(points, triangles))


# ---------------------------------------------------------------- stirred_batter
def stirred_batter(shot: Shot) -> list[Figure]:
    """Return how fast the impeller turns at the end, the torque of the batter on it, what stays in the bowl, and how it mixes."""
    from usd_io.forces import read_forces

    turns = np.unwrap([_turn_of(_points_of(shot, "blades", frame)) for frame in shot.frames])
    speeds = np.diff(turns) / shot.frame_seconds
    told = {each.frame: -each.torque[1] for each in read_forces(shot.stage) if each.collider == "blades"}
    late = shot.frames[-12:]
    torque = float(np.mean([told[frame] for frame in late]))
    places = shot.positions(shot.last)
    out = (np.hypot(places[:, 0], places[:, 2]) > 0.207) | (places[:, 1] < -0.035)
    brown = [shot.positions(frame, 1) for frame in (shot.first, shot.last)]
    quarter = [float(np.mean((each[:, 0] > 0.0) & (each[:, 2] > 0.0))) for each in brown]
    steady = float(np.ptp(speeds[-12:]) / speeds[-12:].mean())
    lag, text = float(speeds[-12:].mean()) / MOTOR[0], "what the motor gives at a steady speed"
    return [
        Figure("speed of the impeller at the end, over the motor's", lag, Target(0.05, 0.5), "lags"),
        Figure("change of that speed in the last half second, over it", steady, Target(most=0.05), "steady"),
        Figure("torque of the batter on it then, over the motor's", torque / MOTOR[1], Target(0.97, 1.03), text),
        Figure("particles that have left the bowl, over all", float(out.mean()), Target(most=0.001), "holds it"),
        Figure("share of the cocoa in its quarter of the bowl at the start", quarter[0], Target(0.99), "apart"),
        Figure("share of the cocoa in its quarter of the bowl at the end", quarter[1], Target(0.1, 0.6), "stirred"),
    ]  # fmt: skip


def _turn_of(points: np.ndarray) -> float:
    """Return the angle about the y axis of the last point of the impeller, a tip [rad]."""
    return float(np.arctan2(-points[-1, 2], points[-1, 0]))
