"""A finished cache at another pace or frame rate: particles between its frames, from positions, velocities and ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import A, FrameContext, Frames, InputError, Material, Metres, Particles, Range, Unitless
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeysTravel
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.caches import completed
from mpm_nodes.nodes.collider_files import stamp

HALFWAY = 0.5
"""Share of a frame from which what has no value between two frames takes that of the later one."""


def _source(told: PreflightContext) -> dict[str, int]:
    """Refuse a cache that cannot be read; tell how many particles it holds in its last frame."""
    from usd_io.stage_reader import frames_of, read_points

    path, prim = told.knobs["path"], told.knobs["prim"]
    stamp(path)
    frames = frames_of(path, prim)
    return {"particles": len(read_points(path, frames.last, prim, frames))}


@node(category="Cache", label="Retime Points", version=1, preflight=_source)
def retime_points(
    ctx: FrameContext,
    material: Material | None = None,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    speed: A[float, Unitless, Range(min=0.0, soft_max=4.0), KeysTravel()] = 1.0,
    frame_offset: A[int, Frames] = 0,
    spacing: A[float, Metres, Range(min=0.0, soft_max=1.0)] = 0.0,
) -> Particles:
    """Play a finished cache slower, faster or at another frame rate; key the speed to ramp it.

    Between two frames of the cache particles follow the cubic through their positions with their velocities; a ballistic path is
    exact. Other attributes are blended. What is born or removed between two frames changes over halfway. Velocities are those of
    the new motion, and ids stay. Before the cache begins and after it ends matter is held still.

    Args:
        material: Material of all points; without it, the materials stored in a cache of ours.
        path: USD file.
        prim: Path or name of the Points prim; may stay empty when the file holds only one.
        speed: Seconds of the cache per second of the shot: 0.25 is four times slower; 0 holds.
        frame_offset: Added to the first frame of the cache to get the one that the shot begins with.
        spacing: Distance of neighbouring points; 0 takes it from the file, or from its widths.
    """
    from usd_io import require_usd

    require_usd()
    from usd_io.stage_reader import frames_of

    frames = kept.get(("range", *stamp(path), prim), lambda: frames_of(path, prim), lambda _: 64)
    begin, end, fps = frames.first, frames.last, frames.fps
    source = begin + frame_offset + Clock.of(ctx.settings, pace=speed).simulated(ctx.frame) * fps
    pace = keys.at(speed, ctx.frame) if begin <= source <= end else 0.0
    source = min(max(source, float(begin)), float(end))
    now = int(source)

    def at(frame: int) -> Particles:
        return kept.get(("points", *stamp(path), prim, frame), lambda: read_by_id(path, frame, prim, frames))

    if source == now and ("velocity" in at(now) or begin == end):
        found = _paced(at(now), pace)
    else:
        now = min(now, end - 1)
        found = _between(at(now), at(now + 1), source - now, fps, pace)
    materials = (material,) if material is not None else found.materials
    if not materials:
        raise InputError(f"retime_points.material: {path} carries no materials of ours; wire a material into it")
    return completed(found, materials, spacing or found.spacing, path, material is not None)


def read_by_id(path: Path, frame: int, prim: str, frames: Any) -> Particles:
    """Return the particles of one of a file's frames (`usd_io.time_codes.StageFrames`) in the order of their ids."""
    from usd_io.stage_reader import read_points

    found = read_points(path, frame, prim, frames)
    order = np.argsort(found["id"], kind="stable")
    ids = found["id"][order]
    if len(ids) > 1 and (np.diff(ids) == 0).any():
        raise InputError(f"{path}: id {ids[:-1][np.diff(ids) == 0][0]} twice at frame {frame}; export stable ids")
    return Particles({name: column[order] for name, column in found.attributes.items()}, found.materials, found.spacing, found.time)


def _paced(particles: Particles, pace: float) -> Particles:
    """Return particles whose velocities are those of a shot that runs at this pace."""
    if "velocity" not in particles or pace == 1.0:
        return particles
    columns = {**particles.attributes, "velocity": particles["velocity"] * np.float32(pace)}
    return Particles(columns, particles.materials, particles.spacing, particles.time)


def _between(before: Particles, after: Particles, share: float, fps: float, pace: float) -> Particles:
    """Return the particles at a share of the way from a frame to the next one.

    Args:
        before: Particles in the order of their ids.
        after: Those of the next frame.
        share: 0 to 1.
        fps: Frames per second of the cache.
        pace: Seconds of the cache per second of the shot.
    """
    _, a, b = np.intersect1d(before["id"], after["id"], assume_unique=True, return_indices=True)
    sides = (_carried(before, share / fps, pace), _carried(after, (share - 1.0) / fps, pace))
    lonely, side = (after, sides[1]) if share >= HALFWAY else (before, sides[0])
    rest = np.setdiff1d(np.arange(len(lonely)), b if share >= HALFWAY else a, assume_unique=True)
    path = _path(before, after, (a, b), share, fps, pace)
    columns = {}
    for name in dict.fromkeys([*before.attributes, *path]):
        if name not in path and name not in after:
            continue
        both = path[name] if name in path else _blended(before[name][a], after[name][b], share)
        alone = side[name][rest] if name in side else lonely[name][rest] if name in lonely else np.zeros((len(rest), 3))
        columns[name] = np.concatenate([both, alone.astype(both.dtype)])
    order = np.argsort(columns["id"], kind="stable")
    time = (1.0 - share) * before.time + share * after.time
    return Particles({name: column[order] for name, column in columns.items()}, before.materials, before.spacing, time)


def _path(
    before: Particles, after: Particles, both: tuple[np.ndarray, np.ndarray], share: float, fps: float, pace: float
) -> dict[str, np.ndarray]:
    """Return positions and velocities on the cubic through the ends of a frame (Hermite), shapes (n, 3)."""
    a, b = both
    x, y = before["position"][a], after["position"][b]
    if "velocity" not in before or "velocity" not in after:
        return {"position": x + share * (y - x), "velocity": ((y - x) * (fps * pace)).astype(np.float32)}
    u, v = before["velocity"][a] / fps, after["velocity"][b] / fps
    s = share
    place = x + s * u + s * s * (3.0 * (y - x) - 2.0 * u - v) + s**3 * (2.0 * (x - y) + u + v)
    slope = u + 2.0 * s * (3.0 * (y - x) - 2.0 * u - v) + 3.0 * s * s * (2.0 * (x - y) + u + v)
    return {"position": place, "velocity": (slope * (fps * pace)).astype(before["velocity"].dtype)}


def _carried(particles: Particles, seconds: float, pace: float) -> dict[str, np.ndarray]:
    """Return where particles of one frame alone are some seconds of the cache later, and their velocities."""
    if "velocity" not in particles:
        return {}
    velocity = particles["velocity"]
    return {"position": particles["position"] + seconds * velocity, "velocity": velocity * np.float32(pace)}


def _blended(before: np.ndarray, after: np.ndarray, share: float) -> np.ndarray:
    """Return reals between their values, and of anything else the nearer value."""
    if before.dtype.kind != "f":
        return after if share >= HALFWAY else before
    return (before + share * (after - before)).astype(before.dtype)
