"""Secondary matter: who emits follows from the cache, what was emitted flies as spheres with drag do, and ids stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pxr")
from pxr import Gf, Sdf, Usd, UsdGeom

from mpm_nodes import Graph, execute
from mpm_nodes.data import FrameContext, GraphSettings, InputError, Material, Particles
from mpm_nodes.nodes.secondary import FALL, GRAVITY, SecondaryKind, emit_secondary
from mpm_nodes.nodes.secondary_births import EXPOSED, REACH, Emission, SecondarySource, _to_neighbours, births, numbers

MATTER = Material("liquid", {}, 1000.0, "matter")
FPS, LAST, SPACING = 24.0, 9, 0.1
SIDE = 9
"""Points along an edge of the block."""


def block(size: int = SIDE) -> np.ndarray:
    """Return the points of a cube on a lattice, above the floor."""
    axis = np.arange(size) * SPACING
    return np.stack(np.meshgrid(axis, axis + 1.0, axis, indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """Write a block that flies along x, its right half at 3 m/s, its left half at 1; its top tears at frame 4, and J grows at 6."""
    path = tmp_path_factory.mktemp("secondary") / "block.usda"
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(FPS)
    stage.SetStartTimeCode(1)
    stage.SetEndTimeCode(LAST)
    points = UsdGeom.Points.Define(stage, "/block")
    primvars = UsdGeom.PrimvarsAPI(points)
    weak = primvars.CreatePrimvar("weak", Sdf.ValueTypeNames.IntArray, "vertex")
    ratio = primvars.CreatePrimvar("Jp", Sdf.ValueTypeNames.FloatArray, "vertex")
    start = block()
    top, right = start[:, 1] > start[:, 1].max() - 0.5 * SPACING, start[:, 0] > 4.5 * SPACING
    speed = np.where(right, 3.0, 1.0)[:, None] * np.array([1.0, 0.0, 0.0])
    for frame in range(1, LAST + 1):
        place = start + speed * (frame - 1) / FPS
        points.GetPointsAttr().Set([Gf.Vec3f(*row) for row in place.tolist()], frame)
        points.GetVelocitiesAttr().Set([Gf.Vec3f(*row) for row in speed.tolist()], frame)
        weak.Set((top & (frame >= 4)).astype(int).tolist(), frame)
        ratio.Set(np.where(right & (frame >= 6), 1.1, 1.0).tolist(), frame)
    points.GetIdsAttr().Set(list(range(len(start))))
    points.GetWidthsAttr().Set([SPACING] * len(start))
    stage.GetRootLayer().Save()
    return path


def emitted(path: Path, frame: int, **knobs) -> Particles:
    """Return what the node gives at a frame."""
    given = {"low": 2.0, "high": 2.5, "size": 0.02, "rest_on_floor": False, **knobs}
    return emit_secondary(FrameContext(frame, GraphSettings(start=1, end=LAST, fps=FPS)), MATTER, path=path, **given)


def test_numbers_are_even_and_follow_from_all_they_are_made_of():
    """Mean 1/2, variance 1/12; none repeats, another seed, frame, id or use gives others, and neighbours are not correlated."""
    ids = np.arange(100_000)
    found = numbers(3, 7, ids, 1)
    assert found.min() >= 0.0 and found.max() < 1.0
    assert abs(found.mean() - 0.5) < 4.0 / np.sqrt(12 * len(ids)) and abs(found.var() - 1 / 12) < 1e-3
    assert len(np.unique(found)) == len(ids)
    for other in (numbers(4, 7, ids, 1), numbers(3, 8, ids, 1), numbers(3, 7, ids, 2), numbers(3, 7, ids, 1, 1), np.roll(found, 1)):
        assert abs(np.corrcoef(found, other)[0, 1]) < 4.0 / np.sqrt(len(ids))
    assert np.array_equal(numbers(3, 7, ids[::-1], 1), found[::-1])


def test_only_what_is_fast_and_at_the_surface_emits(cache):
    """Parents are faster than asked and outermost; as many children come as the rate says, within four standard deviations."""
    found = emitted(cache, 5, amount=120.0, life=10.0)
    start = block()
    low, high = start.min(axis=0), start.max(axis=0)
    faces = (np.isclose(start, low) | np.isclose(start, high)).any(axis=1)
    gap = np.isclose(start[:, 0], 5 * SPACING)  # opens as the right half flies ahead
    parent = found["parent"]
    assert (start[parent][:, 0] > 4.5 * SPACING).all() and (faces | gap)[parent].all()
    expected = 120.0 / FPS * 4 * (faces & (start[:, 0] > 4.5 * SPACING)).sum()
    assert abs(faces[parent].sum() - expected) < 4.0 * np.sqrt(expected)
    inside = emitted(cache, 5, amount=120.0, life=10.0, surface_only=False)
    assert len(inside) > len(found) and len(emitted(cache, 1, amount=120.0)) == 0


def test_tears_emit_once(cache):
    """All children come between frames 3 and 4, from the top alone, the asked number each."""
    assert len(emitted(cache, 3, source=SecondarySource.TEAR, amount=3.0)) == 0
    found = emitted(cache, 4, source=SecondarySource.TEAR, amount=3.0, life=10.0)
    later = emitted(cache, 7, source=SecondarySource.TEAR, amount=3.0, life=10.0)
    assert len(found) == 3 * SIDE**2 and np.array_equal(found["id"], later["id"])
    assert (np.isclose(block()[found["parent"]][:, 1], 1.0 + (SIDE - 1) * SPACING)).all()
    assert (found["age"] < 1.0 / FPS).all() and np.allclose(later["age"] - found["age"], 3.0 / FPS, atol=1e-6)


def test_a_change_of_volume_emits_where_it_happens(cache):
    """Jp grows by ln 1.1 in one frame, on the right."""
    rate = np.log(1.1) * FPS
    knobs = {"source": SecondarySource.VOLUME_RATE, "amount": 200.0, "life": 10.0}
    found = emitted(cache, 8, low=0.5 * rate, high=0.9 * rate, **knobs)
    assert len(found) and (block()[found["parent"]][:, 0] > 4.5 * SPACING).all()
    assert np.allclose(found["age"], 2.0 / FPS + 0.5 / FPS, atol=0.5 / FPS + 1e-6)
    assert len(emitted(cache, 8, low=1.1 * rate, high=2.0 * rate, **knobs)) == 0


def test_curvature_tells_faces_edges_and_corners():
    """The mean of the neighbours, weighted by (1 - r^2/R^2)^3 and summed here one by one, moves off most at corners."""
    points = block()
    cube = Particles({"position": points, "id": np.arange(SIDE**3)}, (), SPACING)
    middle = SIDE // 2
    who = np.array([np.ravel_multi_index(p, (SIDE,) * 3) for p in ((middle,) * 3, (0, middle, middle), (0, 0, middle), (0, 0, 0))])
    away = _to_neighbours(cube, who)
    for one, found in zip(who, away, strict=True):
        off = (points - points[one]) / SPACING
        weight = np.maximum(1.0 - (off**2).sum(axis=1) / REACH**2, 0.0) ** 3
        assert np.allclose(found, weight @ off / weight.sum(), atol=1e-4)
    length = np.linalg.norm(away, axis=1)
    assert length[0] < 1e-4 and EXPOSED < length[1] < length[2] < length[3]


@pytest.mark.parametrize("kind", list(SecondaryKind))
def test_paths_are_those_of_spheres_with_drag(cache, kind):
    """From frame to frame each obeys dv/dt = (u - v) / t to the second order, and its place is the integral of its velocity."""
    fall = abs(FALL[kind])
    drag = fall / GRAVITY
    knobs = {"kind": kind, "source": SecondarySource.TEAR, "amount": 2.0, "life": 10.0, "wind": (0.5, 0.0, -1.0)}
    a, b = emitted(cache, 8, **knobs), emitted(cache, 9, **knobs)
    assert np.array_equal(a["id"], b["id"]) and len(a) == 2 * SIDE**2
    bubbles = kind is SecondaryKind.BUBBLES
    parent = np.where(block()[a["parent"]][:, :1] > 4.5 * SPACING, 3.0, 1.0) * np.array([1.0, 0.0, 0.0])
    still = (parent if bubbles else np.array([0.5, 0.0, -1.0])) + np.array([0.0, fall if bubbles else -fall, 0.0])
    left = np.exp(-1.0 / FPS / drag)
    assert np.allclose(b["velocity"], still + left * (a["velocity"] - still), atol=1e-5)
    step = still / FPS + drag * (1.0 - left) * (a["velocity"] - still)
    assert np.allclose(b["position"] - a["position"], step, atol=1e-5)
    old = emitted(cache, 2000, **{**knobs, "life": 1000.0})
    assert np.allclose(old["velocity"], still, atol=1e-5)


def test_any_frame_alone_and_ids_stay(cache):
    """The same in any order and after a gap; ids are unique, and a particle keeps its own, its size and its parent."""
    frames = {frame: emitted(cache, frame, amount=60.0, life=0.2) for frame in (9, 4, 7, 8)}
    again = emitted(cache, 8, amount=60.0, life=0.2)
    assert all(np.array_equal(frames[8][name], again[name]) for name in again.attributes)
    for one, next_one in ((7, 8), (8, 9)):
        a, b = frames[one], frames[next_one]
        _, here, there = np.intersect1d(a["id"], b["id"], return_indices=True)
        assert 0 < len(here) < len(a) and len(np.unique(a["id"])) == len(a) and a["id"].max() < 2**31
        assert all(np.array_equal(a[name][here], b[name][there]) for name in ("volume", "parent"))
        assert (a["age"] < 0.2).all()
    other = emitted(cache, 8, amount=60.0, life=0.2, seed=1)
    assert len(other) != len(again) or not np.array_equal(other["parent"], again["parent"])


def test_the_floor_stops_what_falls(cache):
    """Nothing is below it; what lies on it is still, and where it met it."""
    knobs = {"source": SecondarySource.TEAR, "amount": 2.0, "life": 1000.0}
    found = emitted(cache, 200, rest_on_floor=True, floor=0.5, **knobs)
    assert len(found) and np.allclose(found["position"][:, 1], 0.5, atol=1e-6) and not found["velocity"].any()
    assert len(emitted(cache, 200, rest_on_floor=True, floor=2.0, **knobs)) == 0, "all would come from below"
    soon = emitted(cache, 6, rest_on_floor=True, floor=0.5, **knobs)
    assert (soon["position"][:, 1] > 0.5).all() and np.linalg.norm(soon["velocity"], axis=1).min() > 0.0


def test_the_most_of_a_frame_is_kept(cache):
    """Beyond it some are left out; ids of neighbouring frames do not meet."""
    found = emitted(cache, 9, amount=500.0, life=10.0, most=50)
    assert len(found) == 50 * (LAST - 1) and len(np.unique(found["id"])) == len(found)


def test_caches_that_do_not_tell_are_refused(tmp_path, cache):
    """Without `weak`, and without velocities."""
    stage = Usd.Stage.Open(str(cache))
    poor = tmp_path / "poor.usda"
    stage.GetRootLayer().Export(str(poor))
    stage = Usd.Stage.Open(str(poor))
    stage.GetPrimAtPath("/block").RemoveProperty("primvars:weak")
    stage.GetRootLayer().Save()
    with pytest.raises(InputError, match="write `weak` into it"):
        emitted(poor, 4, source=SecondarySource.TEAR)
    stage.GetPrimAtPath("/block").RemoveProperty("velocities")
    stage.GetRootLayer().Save()
    with pytest.raises(InputError, match="write `velocity` into it"):
        emitted(poor, 4)


def test_it_reads_the_cache_of_a_solve(tmp_path):
    """A jelly falls at g t; what has 1 m/s or more emits: nothing at frame 3 (0.82 m/s), some of it by frame 5 (1.63 m/s)."""
    graph = Graph(cell_size=0.1, fps=FPS, start=1, end=5)
    matter = graph.add("material_neo_hookean", "matter")
    body = graph.add("emit_box", "body", material=matter, size=(0.4, 0.4, 0.4), centre=(0.0, 1.0, 0.0))
    fall = graph.add("solve", "fall", sources=[body])
    graph.add("write_cache", "cache", particles=fall["particles"], name="jelly")
    result = execute(graph, out=tmp_path)
    path = next(result.revision_folder.glob("*.usda"))
    before, after = (emitted(path, frame, low=1.0, high=1.2, amount=200.0, size=0.005, life=10.0) for frame in (3, 5))
    assert len(before) == 0 and len(after) > 0
    assert np.abs(after["position"] - [0.0, 0.9, 0.0]).max() < 0.45
    assert (after["velocity"][:, 1] < 0.0).mean() > 0.9


def test_births_lie_on_the_way_of_their_parents():
    """Between the parent's places at the frame before and at the frame, as far before it as their age says: none is born ahead."""
    start, speed = block(4), np.array([3.0, 0.0, 0.0])
    columns = {"id": np.arange(len(start)), "velocity": np.tile(speed, (len(start), 1))}
    before, after = (Particles({**columns, "position": start + each}, (MATTER,), SPACING) for each in (0.0, speed / FPS))
    found = births(before, after, 2, FPS, Emission(SecondarySource.SPEED, 1.0, 2.0, 200.0, False, 10_000, 0))
    assert len(found.parent) > 100 and found.back.min() >= 0.0 and found.back.max() <= 1.0 / FPS
    way = found.place - start[found.parent]
    assert way[:, 0].min() >= -1e-9 and way[:, 0].max() <= 3.0 / FPS + 1e-9
    np.testing.assert_allclose(way[:, 0], 3.0 * (1.0 / FPS - found.back), atol=1e-9)
    assert np.std(found.back) > 0.2 / FPS


def test_it_begins_with_a_share_of_the_matters_velocity(cache):
    """`inherit` of it, and nothing else without `spread`: v = u + (inherit v_p - u) exp(-a / t)."""
    for inherit in (0.25, 2.0):
        found = emitted(cache, 5, source=SecondarySource.TEAR, amount=2.0, life=10.0, inherit=inherit, spread=0.0)
        parent = np.where(block()[found["parent"]][:, :1] > 4.5 * SPACING, 3.0, 1.0) * np.array([1.0, 0.0, 0.0])
        still = np.array([0.0, -FALL[SecondaryKind.SPRAY], 0.0])
        left = np.exp(-found["age"] * GRAVITY / FALL[SecondaryKind.SPRAY])[:, None]
        assert np.allclose(found["velocity"], still + left * (inherit * parent - still), atol=1e-5)


def test_it_is_thrown_out_of_the_matter(cache):
    """From the middle of a face into the half space before it, in all directions there, and no faster than `spread`."""
    found = emitted(cache, 5, source=SecondarySource.TEAR, amount=8.0, life=10.0, inherit=0.0, spread=1.0)
    place = block()[found["parent"]] / SPACING  # the halves part: the middle of the left one's top
    inner = (np.abs(place[:, 0] - 2.0) < 0.5) & (np.abs(place[:, 2] - 4.0) < 2.5)
    still, left = np.array([0.0, -FALL[SecondaryKind.SPRAY], 0.0]), np.exp(-found["age"] * GRAVITY / FALL[SecondaryKind.SPRAY])
    thrown = (found["velocity"] - still * (1.0 - left[:, None])) / left[:, None]
    assert inner.sum() == 8 * 5 and thrown[inner, 1].min() > -1e-5
    assert np.linalg.norm(thrown, axis=1).max() <= 1.0 + 1e-5 and np.abs(thrown[inner].mean(axis=0)[[0, 2]]).max() < 0.3


def test_lives_last_between_half_and_all_of_what_was_asked(cache):
    """Evenly spread between: none ends before its half, a half of them lasts three quarters, none longer than asked."""
    knobs = {"source": SecondarySource.TEAR, "amount": 8.0, "life": 4.0 / FPS}
    counts = [len(emitted(cache, frame, **knobs)) for frame in (4, 5, 6, 7, 8)]
    assert counts[0] == counts[1] == 8 * SIDE**2 and counts[4] < 0.05 * counts[0]
    assert counts[2] == pytest.approx(0.75 * counts[0], rel=0.1) and counts[3] == pytest.approx(0.25 * counts[0], rel=0.2)
