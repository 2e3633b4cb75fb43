"""What of a file counts at a frame: what the node reads of it then, and nothing that comes later."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.nodes.collider_motion import box_mesh
from usd_io.collider_meshes import StageMeshes

pytest.importorskip("pxr")
BOX = box_mesh((1.0, 0.4, 0.4))


def way(*places):
    """Return a matrix (row vectors) for each frame from 1 on: shifts along x [m]."""
    matrices = {}
    for frame, place in enumerate(places, 1):
        matrices[frame] = np.eye(4)
        matrices[frame][3, 0] = place
    return matrices


def bent(*places):
    """Return points for each frame from 1 on: one corner is pulled along x [m]."""
    points = {}
    for frame, place in enumerate(places, 1):
        points[frame] = BOX.points + np.where(np.arange(8)[:, None] == 0, (place, 0.0, 0.0), 0.0)
    return points


def keys_of(kind, path, frames=range(1, 5), **knobs):
    """Return the lineage keys of a node that reads a file, frame by frame."""
    graph = Graph(base=path.parent, fps=24.0, start=1, end=9)
    graph.add("material_snow", "snow") if kind.startswith("emit") else None
    graph.add(kind, "reader", path=path.name, **({"material": graph["snow"]} if kind.startswith("emit") else {}), **knobs)
    plan = plan_graph(graph)
    return [plan.key("reader", frame) for frame in frames]


@pytest.mark.parametrize("how", ["matrices", "points"])
def test_a_longer_animation_is_the_same_one_on_the_frames_before(write_usd, how):
    """Frames 1 to 4 have the keys that they had before frame 5 came; a change at frame 3 counts from there on."""
    made = {"matrices": way, "points": bent}[how]
    before = keys_of("collide_usd", write_usd(BOX, **{how: made(0.0, 0.1, 0.2, 0.3)}))
    assert keys_of("collide_usd", write_usd(BOX, **{how: made(0.0, 0.1, 0.2, 0.3, 0.4, 0.5)})) == before
    changed = keys_of("collide_usd", write_usd(BOX, **{how: made(0.0, 0.1, 0.25, 0.3)}))
    assert changed[:2] == before[:2] and not set(changed[2:]) & set(before)


def test_what_lies_between_two_frames_counts(write_usd):
    """A sample half way between frames 2 and 3 is part of frame 3."""
    before = keys_of("collide_usd", write_usd(BOX, matrices=way(0.0, 0.1, 0.2, 0.3)))
    between = way(0.0, 0.1, 0.2, 0.3) | {2.5: way(0.4)[1]}
    changed = keys_of("collide_usd", write_usd(BOX, matrices=dict(sorted(between.items()))))
    assert [one == other for one, other in zip(changed, before, strict=True)] == [True, True, False, True]


def test_the_first_frame_counts_for_all(write_usd):
    """Level sets of bodies that move are made where these begin, so another beginning is another body."""
    before = keys_of("collide_usd", write_usd(BOX, matrices=way(0.0, 0.1, 0.2, 0.3)))
    assert not set(keys_of("collide_usd", write_usd(BOX, matrices=way(0.05, 0.1, 0.2, 0.3)))) & set(before)


def test_what_stood_still_and_moves_later_is_another_body(write_usd):
    """Caches write what never moves once, and bodies that bend are taken in another way: neither is taken over."""
    still = keys_of("collide_usd", write_usd(BOX))
    moving = keys_of("collide_usd", write_usd(BOX, matrices=way(0.0, 0.0, 0.0, 0.0, 0.1)))
    bending = keys_of("collide_usd", write_usd(BOX, points=bent(0.0, 0.0, 0.0, 0.0, 0.1)))
    assert not set(still) & set(moving) and not set(moving) & set(bending)


def test_an_emitter_reads_one_frame_and_the_first(write_usd):
    """A mesh is filled where it is at `frame`; with the lattice of the body where the shot begins counts too."""

    def keys(places, **knobs):
        return keys_of("emit_mesh", write_usd(BOX, matrices=way(*places)), frames=[1], **knobs)

    before = keys((0.0, 0.1, 0.2), frame=2.0)
    assert keys((0.0, 0.1, 0.2, 0.3), frame=2.0) == before == keys((0.05, 0.1, 0.2), frame=2.0)
    assert keys((0.0, 0.15, 0.2), frame=2.0) != before
    carried = keys((0.0, 0.1, 0.2), frame=2.0, lattice="body")
    assert keys((0.0, 0.1, 0.2, 0.3), frame=2.0, lattice="body") == carried != keys((0.05, 0.1, 0.2), frame=2.0, lattice="body")


WHOLE = {"read_points", "retime_points", "emit_secondary", "rest_positions", "emit_stream", "field_curve", "field_image"}
"""They read finished caches, or a curve, which count as a whole: the file that is named, and none that it names."""


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
def test_every_reader_of_what_may_grow_says_what_it_reads_of_it():
    """Nodes that take a file for one of a sequence, or meshes of a stage: another frame that comes changes no frame before."""
    readers = {
        name
        for name, each in registry.default().nodes().items()
        if {knob.name for knob in each.knobs if knob.kind == "path"} and {knob.name for knob in each.knobs} & {"sequence", "prim"}
    }
    silent = {name for name in readers if "path" not in registry.default().nodes()[name].contents}
    assert len(readers) > 8 and silent == WHOLE


@pytest.mark.parametrize(("interpolation", "same"), [("linear", [True, False, False, True]), ("held", [True, True, False, True])])
def test_a_frame_of_a_field_has_the_files_around_it(tmp_path, interpolation, same):
    """Files that come later, or change at another frame, leave its key; without `sequence` the one file counts."""
    for frame in range(1, 5):
        (tmp_path / f"warm.{frame:04d}.vdb").write_bytes(b"%d" % frame)
    path, knobs = tmp_path / "warm.0001.vdb", {"sequence": True, "interpolation": interpolation}
    before, alone = keys_of("field_vdb", path, **knobs), keys_of("field_vdb", path)
    (tmp_path / "warm.0005.vdb").write_bytes(b"5")
    (tmp_path / "warm.0002.vdb").write_bytes(b"other")
    changed = keys_of("field_vdb", path, **knobs)
    assert [one == other for one, other in zip(changed, before, strict=True)] == same
    assert keys_of("field_vdb", path) == alone


def test_a_growing_sequence_of_volumes_keeps_its_frames(tmp_path):
    """A new file of the sequence counts for its own frame and the next; without `sequence` the one file counts."""
    for frame in range(1, 5):
        (tmp_path / f"ball.{frame:04d}.vdb").write_bytes(b"%d" % frame)
    path = tmp_path / "ball.0001.vdb"
    before, alone = keys_of("collide_vdb", path, sequence=True), keys_of("collide_vdb", path)
    (tmp_path / "ball.0005.vdb").write_bytes(b"5")
    assert keys_of("collide_vdb", path, sequence=True) == before and keys_of("collide_vdb", path) == alone
    (tmp_path / "ball.0002.vdb").write_bytes(b"other")
    changed = keys_of("collide_vdb", path, sequence=True)
    assert [one == other for one, other in zip(changed, before, strict=True)] == [True, False, False, True]
    assert keys_of("collide_vdb", path) == alone


def test_a_file_that_cannot_be_read_counts_as_a_whole(tmp_path):
    """Planning does not stop at it; the node says what is wrong with it."""
    path = tmp_path / "broken.usda"
    path.write_text("#usda 1.0\ndef Mesh {{{")
    before = keys_of("collide_usd", path)
    path.write_text("#usda 1.0\ndef Mesh {{{{")
    assert not set(keys_of("collide_usd", path)) & set(before)


def test_a_file_is_read_as_it_is_now(write_usd):
    """A stage that this process still holds open does not hide what was written since."""
    path = write_usd(BOX, matrices=way(0.0, 0.1))
    held = StageMeshes(path)
    before = held.points(2.0)
    write_usd(BOX, matrices=way(0.0, 0.7), name="other.usda").replace(path)
    now = StageMeshes(path)
    np.testing.assert_allclose(now.points(2.0) - before, np.broadcast_to((0.6, 0.0, 0.0), before.shape), atol=1e-6)
