"""A solve that goes on with other settings from a frame of an older cook: matter stays, the new settings move it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.solver.checkpoint import _differing

FALL = {"end": 5, "material": "material_liquid", "knobs": {"density": 1000.0}}


def last(result):
    """Return the particles of a cook's last frame."""
    return result.outputs["sim"]["particles"]


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """A liquid cube that falls for five frames; the folder of its cook and where it is at the end."""
    out = tmp_path_factory.mktemp("older")
    return out, last(execute(shot(**FALL), out=out, keep_every=1))


def test_an_unchanged_solve_goes_on_with_the_same_bits(older):
    """From frame 3 on, by the checkpoint of frame 2: every column of the last frame is that of the whole cook."""
    out, whole = older
    found = last(execute(shot(**FALL), out=out, again_from=3, of="r001"))
    for name, column in whole.attributes.items():
        assert np.array_equal(found[name], column), name


def test_gravity_viscosity_colliders_and_pace_may_change(older):
    """Two frames without gravity keep the speed of frame 3, at half the pace too; a floor that was not there holds the cube."""
    out, whole = older
    speed = 9.81 * 2 / 24
    graph = shot(**{**FALL, "knobs": {"density": 1000.0, "viscosity": 5.0}}, gravity=(0.0, 0.0, 0.0))
    free = last(execute(graph, out=out, again_from=4, of="r001"))
    np.testing.assert_allclose(free["velocity"][:, 1].mean(), -speed, rtol=1e-3)
    assert np.array_equal(np.sort(free["id"]), np.sort(whole["id"]))
    slow = last(execute(shot(**FALL, gravity=(0.0, 0.0, 0.0), time_scale=0.5), out=out, again_from=4, of="r001"))
    start = 1.0 - 9.81 * (2 / 24) ** 2 / 2
    for found, pace in ((free, 1.0), (slow, 0.5)):
        np.testing.assert_allclose(found["position"][:, 1].mean(), start - pace * speed * 2 / 24, atol=2e-3)
    floor = (("floor", "collide_plane", {"centre": (0.0, 0.8, 0.0)}),)
    held = last(execute(shot(**FALL, colliders=floor), out=out, again_from=4, of="r001"))
    assert held["position"][:, 1].mean() > whole["position"][:, 1].mean() + 0.02


@pytest.mark.phenomena("projection")
def test_matter_that_would_not_be_the_same_is_refused(older):
    """Another law, another density, attributes of other substeps, another precision: each says what to set back."""
    out, _ = older
    for graph, said in (
        (shot(**{**FALL, "knobs": {"density": 900.0}}), "the density of material 1 was 1000.0, is 900.0"),
        (shot(end=5, material="material_snow"), "set sources, materials, substeps and precision back"),
        (shot(**FALL, precision="double"), "the precision of the matter that is there is float32, and this graph needs float64"),
        (shot(**FALL, substeps="incompressible"), "set sources, materials, substeps and precision back"),
    ):
        with pytest.raises(MpmNodesError, match=said):
            execute(graph, out=out, again_from=4, of="r001")


def test_changed_matter_is_refused_before_frames_are_solved_again(tmp_path):
    """The state of frame 3 was let go, those of 4 and 5 were kept: no frame is cooked before another density is refused."""
    execute(shot(**FALL), out=tmp_path)
    told = []
    graph = shot(**{**FALL, "knobs": {"density": 900.0}})
    with pytest.raises(MpmNodesError, match=r"the density of material 1 was 1000\.0, is 900\.0"):
        execute(graph, out=tmp_path, again_from=4, on_event=told.append)
    assert not {event["event"] for event in told} & {"substep", "node"} and [each.name for each in tmp_path.iterdir()] == ["r001"]
    found = execute(shot(**FALL, gravity=(0.0, 0.0, 0.0)), out=tmp_path, again_from=4, on_event=told.append)
    assert found.cooked == (4, 5) and "substep" in {event["event"] for event in told}


def test_differing_attributes_are_named_however_many_are_shared():
    """What differs is said alone, in whole names; of long lists how many more there are."""
    shared = [f"attribute_{number:02d}" for number in range(40)]
    assert _differing([*shared, "old"], [*shared, "new"]) == (
        "lack new, which this graph needs and have old, which this graph does not know"
    )
    said = _differing([], shared)
    assert "attribute_00, attribute_01" in said and "attribute_07 and 32 more, which" in said and "..." not in said


def cached(centre, floor=True) -> Graph:
    """Return the falling cube beside a box, and a cache of both."""
    bodies = [("crate", "collide_box", {"name": "crate", "centre": centre, "size": (0.2, 0.2, 0.2)})]
    bodies += [("low", "collide_box", {"name": "low", "centre": (3.0, 0.0, 0.0), "size": (0.2, 0.2, 0.2)})] if floor else []
    graph = shot(**FALL, colliders=bodies)
    graph.add("write_cache", "cache", particles=graph["sim"]["particles"], colliders=[graph[name] for name, _, _ in bodies])
    return graph


def test_the_cache_draws_colliders_as_they_are_now(tmp_path):
    """A box that stood still in the older cook stands elsewhere, or moves from the chosen frame on; earlier frames are played."""
    Usd = pytest.importorskip("pxr.Usd")
    UsdGeom = pytest.importorskip("pxr.UsdGeom")
    execute(cached((2.0, 0.0, 0.0)), out=tmp_path)
    execute(cached((2.0, 1.0, 0.0)), out=tmp_path, again_from=4)
    moving = {"keys": [[3, [2.0, 0.0, 0.0], "linear"], [5, [2.0, 2.0, 0.0], "linear"]]}
    execute(cached(moving), out=tmp_path, again_from=4, of="r001")
    for name, wanted in (("r002", {4: 1.0, 5: 1.0}), ("r003", {4: 1.0, 5: 2.0})):
        stage = Usd.Stage.Open(str(tmp_path / name / "cache.usda"))
        assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (1, 5)
        meshes = {prim.GetName(): UsdGeom.Mesh(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh)}
        block, low = (next(mesh for key, mesh in meshes.items() if each in key) for each in ("crate", "low"))
        for frame, height in wanted.items():
            middle = np.mean(np.array(block.GetPointsAttr().Get(frame)), axis=0)
            np.testing.assert_allclose(middle, (2.0, height, 0.0), atol=1e-5, err_msg=f"{name} {frame}")
            np.testing.assert_allclose(np.mean(np.array(low.GetPointsAttr().Get(frame)), axis=0), (3.0, 0.0, 0.0), atol=1e-5)
        points = UsdGeom.Points(next(prim for prim in stage.Traverse() if prim.IsA(UsdGeom.Points)))
        heights = [np.mean(np.array(points.GetPointsAttr().Get(frame))[:, 1]) for frame in range(1, 6)]
        assert all(a > b for a, b in pairwise(heights)), heights
