"""Retimed caches: exact where paths are cubic, ids that stay, velocities of the new motion, ends that hold."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, InputError, Material, Particles
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.retime import _path, retime_points
from usd_io.speeds import speed_ratio
from usd_io.stage_reader import read_points

MATTER = Material("neo_hookean", {"youngs_modulus": 1e4, "poisson_ratio": 0.3}, 1000.0, "matter")
GRAVITY = np.array([0.0, -9.81, 0.0])
FPS, FIRST, LAST = 24.0, 3, 9


def flight(ids: np.ndarray, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and velocities of balls thrown at second 0, each its own way."""
    speed = np.stack([0.1 * ids, 3.0 + 0.05 * ids, -0.2 * ids], axis=1)
    return ids[:, None] * 0.1 + speed * seconds + 0.5 * GRAVITY * seconds**2, speed + GRAVITY * seconds


def held(frame: int) -> np.ndarray:
    """Return the ids of a frame, in an order of its own: 7 goes after frame 5, 20 comes with frame 6."""
    ids = np.array([4, 2, 7, 11, 20])
    return np.roll(ids[(ids != 7) | (frame <= 5)][: 4 if frame < 6 else 5], frame)[:: 1 if frame % 2 else -1]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Write the flight as another program would, with a temperature and a colour number a point."""
    path = tmp_path / "flight.usda"
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(FPS)
    stage.SetStartTimeCode(FIRST)
    stage.SetEndTimeCode(LAST)
    points = UsdGeom.Points.Define(stage, "/flight")
    heat = UsdGeom.PrimvarsAPI(points).CreatePrimvar("temperature", Sdf.ValueTypeNames.FloatArray, "vertex")
    for frame in range(FIRST, LAST + 1):
        ids = held(frame)
        place, speed = flight(ids, (frame - FIRST) / FPS)
        points.GetPointsAttr().Set([Gf.Vec3f(*row) for row in place.tolist()], frame)
        points.GetVelocitiesAttr().Set([Gf.Vec3f(*row) for row in speed.tolist()], frame)
        points.GetIdsAttr().Set(ids.tolist(), frame)
        points.GetWidthsAttr().Set([0.05] * len(ids), frame)
        heat.Set((300.0 + ids + 10.0 * frame).tolist(), frame)
    stage.GetRootLayer().Save()
    return path


def retimed(path: Path, frame: int, fps: float = FPS, **knobs) -> Particles:
    return retime_points(FrameContext(frame, GraphSettings(start=1, end=200, fps=fps)), MATTER, path=path, **knobs)


@pytest.mark.parametrize(("fps", "speed"), [(24.0, 1.0), (24.0, 0.25), (96.0, 1.0), (30.0, 0.3), (24.0, 1.7), (60.0, 2.0)])
def test_ballistic_flight_is_exact_at_any_rate(cache, fps, speed):
    """Positions to the float32 of the file, velocities per second of the shot, at whatever frames the shot asks for."""
    for frame in range(1, 9):
        seconds = (frame - 1) / fps * speed
        found = retimed(cache, frame, fps, speed=speed)
        lasting = np.isin(found["id"], (2, 4, 11))
        found = Particles({name: column[lasting] for name, column in found.attributes.items()})
        ids = found["id"]
        place, velocity = flight(ids, min(seconds, (LAST - FIRST) / FPS))
        ended = seconds > (LAST - FIRST) / FPS
        assert ids.tolist() == [2, 4, 11]
        assert np.abs(found["position"] - place).max() < 2e-6
        assert np.abs(found["velocity"] - (0.0 if ended else speed) * velocity).max() < 2e-5
        assert np.allclose(found["temperature"], 300.0 + ids + 10.0 * min(FIRST + seconds * FPS, LAST), atol=1e-3)


def test_births_and_deaths_change_over_halfway(cache):
    """Id 7 goes and id 20 comes between frames 5 and 6: each is carried by its own velocity up to the middle, and never both."""
    for frame in range(17, 25):  # four times slower: frames 5 to 7 of the cache
        seconds = (frame - 1) / FPS * 0.25
        found = retimed(cache, frame, speed=0.25)
        later = FIRST + seconds * FPS >= 5.5
        assert (7 in found["id"], 20 in found["id"]) == (not later, later)
        near = np.abs(found["position"] - flight(found["id"], seconds)[0]).max(axis=1)
        assert near.max() < 0.5 * 9.81 * (0.5 / FPS) ** 2 + 2e-6


def test_whole_frames_are_those_of_the_cache(cache):
    """At speed 1 and the same rate every attribute is the cache's own, in the order of the ids."""
    for frame in (1, 4, 7):
        found, own = retimed(cache, frame), read_points(cache, frame + FIRST - 1)
        order = np.argsort(own["id"])
        for name in ("position", "velocity", "temperature", "id"):
            assert np.array_equal(found[name], own[name][order]), name


def test_ends_are_held_still(cache):
    """Before the first and after the last frame positions stay and velocities are 0."""
    for frame, offset, end in ((1, -9, FIRST), (3, 40, LAST)):
        found = retimed(cache, frame, frame_offset=offset)
        order = np.argsort(held(end))
        assert np.array_equal(found["id"], held(end)[order])
        assert not found["velocity"].any()


def test_ramp_moves_by_the_velocities_that_it_tells(cache):
    """With a keyed speed, written velocities are those of the motion from frame to frame, and the path is that of the integral."""
    speed = KeyedNumber([(1.0, 0.0, "linear"), (21.0, 0.5, "linear")])
    frames = [retimed(cache, frame, speed=speed) for frame in range(1, 22)]
    for number, found in enumerate(frames, 1):
        seconds = 0.5 * (number - 1) ** 2 / 20.0 * 0.5 / FPS
        assert np.abs(found["position"] - flight(found["id"], seconds)[0]).max() < 0.5 * 9.81 * (0.5 / FPS) ** 2 + 2e-6
    sides = [(found["id"], found["position"], found["velocity"].astype(float)) for found in frames]
    ratios = [speed_ratio(a, b, FPS) for a, b in pairwise(sides[8:])]
    assert all(abs(ratio - 1.0) < 0.02 for ratio in ratios)


def test_without_velocities_it_is_linear(cache):
    """Positions go straight, and their velocity is told."""
    stage = Usd.Stage.Open(str(cache))
    stage.GetPrimAtPath("/flight").RemoveProperty("velocities")
    stage.GetRootLayer().Save()
    found = retimed(cache, 2, speed=0.5)
    a, b = read_points(cache, FIRST), read_points(cache, FIRST + 1)
    a, b = (side["position"][np.argsort(side["id"])] for side in (a, b))
    assert np.allclose(found["position"], 0.5 * (a + b)) and np.allclose(found["velocity"], (b - a) * FPS * 0.5, atol=1e-5)


def test_bad_caches_are_told(cache, tmp_path):
    """Ids twice, no range, no file, no material."""
    stage = Usd.Stage.Open(str(cache))
    stage.GetPrimAtPath("/flight").GetAttribute("ids").Set([1, 1, 2, 3], FIRST)
    stage.GetRootLayer().Save()
    with pytest.raises(InputError, match="id 1 twice at frame 3"):
        retimed(cache, 1)
    stage.GetRootLayer().ClearStartTimeCode()
    stage.GetRootLayer().Save()
    with pytest.raises(InputError, match="does not say which frames it holds"):
        retimed(cache, 1)
    with pytest.raises(InputError, match="no such file"):
        retimed(tmp_path / "none.usda", 1)


def test_a_cook_retimes_a_cook(tmp_path):
    """Slow motion of a cache of ours, cooked as a graph: the same ids, materials without a wire, and a cache that checks."""
    from usd_io.check import check_cache

    fall = Graph(cell_size=0.1, fps=24.0, start=1, end=4)
    matter = fall.add("material_neo_hookean", "matter")
    block = fall.add("emit_box", "block", material=matter, size=(0.2,) * 3, velocity=(1.0, 0.0, 0.0))
    fall.add("write_cache", "cache", particles=fall.add("solve", "fall", sources=[block]))
    first = execute(fall, out=tmp_path / "fall")
    slow = Graph(cell_size=0.1, fps=24.0, start=1, end=13)
    again = slow.add("retime_points", "slow", path=str(first.revision_folder / "cache.usda"), speed=0.25)
    slow.add("write_cache", "cache", particles=again)
    second = execute(slow, out=tmp_path / "slow")
    for frame in range(1, 5):
        own, found = (read_points(r.revision_folder / "cache.usda", f) for r, f in ((first, frame), (second, 4 * frame - 3)))
        assert np.allclose(own["position"], found["position"], atol=1e-6) and np.array_equal(own["id"], found["id"])
    first_time, between, later = (read_points(second.revision_folder / "cache.usda", frame).time for frame in (1, 2, 5))
    assert later > first_time and between == pytest.approx(0.75 * first_time + 0.25 * later)
    assert check_cache(second.revision_folder / "cache.usda") == []


def test_between_frames_it_is_the_cubic_of_places_and_velocities():
    """x = t^3 of a frame, exactly, and so is its slope."""
    ends = [
        Particles({"position": np.full((1, 3), t**3), "velocity": np.full((1, 3), 3.0 * t**2 * FPS)}, (), 1.0) for t in (1.0, 2.0)
    ]
    found = _path(*ends, (np.array([0]), np.array([0])), 0.3, FPS, 0.5)
    np.testing.assert_allclose(found["position"], 1.3**3, rtol=1e-12)
    np.testing.assert_allclose(found["velocity"], 0.5 * 3.0 * 1.3**2 * FPS, rtol=1e-12)
