"""What the assets take from a Houdini scene and give to it: sources, objects, height fields, outlines, farms, a second try."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest
from test_houdini_cook import graph_of, make, small_shot, wire


def test_a_source_is_mesh_material_and_emission_in_one(houdini, tmp_path):
    """Wired into Sources it is two nodes of the graph, into Emitters a third streams out of it; the program takes both."""
    cook, fall = small_shot(houdini), houdini.work.node("fall")
    box = houdini.work.createNode("box", "box1")
    toy = make(houdini, "source", "toy")
    toy.parm("name").set("honey")
    toy.setInput(0, box)
    toy.parm("velocityy").set(-2.0)
    wire(fall, sources=toy)
    nodes = graph_of(cook)["nodes"]
    assert set(nodes) == {"toy", "toy_material", "fall", "writer"}
    assert nodes["toy_material"]["knobs"] == {"name": "honey"} and nodes["toy"]["inputs"] == {"material": "toy_material"}
    assert nodes["toy"]["knobs"]["path"] == "inputs/toy.usd" and (tmp_path / "mpm" / "inputs" / "toy.usd").is_file()
    assert nodes["fall"]["inputs"]["sources"] == ["toy"] and nodes["toy"]["knobs"]["velocity"] == [0.0, -2.0, 0.0]
    cook.parm("mpm_check").pressButton()
    fall.setInput(0, None)
    wire(fall, emitters=toy)
    toy.parm("duration").set(1.0)
    nodes = graph_of(cook)["nodes"]
    assert nodes["fall"]["inputs"] == {"emitters": ["toy_stream"]} and nodes["toy_stream"]["inputs"] == {"template": "toy"}
    assert nodes["toy_stream"]["knobs"] == {"start_frame": 1.0, "duration": 1.0, "velocity": [0.0, -2.0, 0.0]}
    assert "frame" not in nodes["toy"]["knobs"]
    cook.parm("mpm_check").pressButton()
    toy.parm("mpm_animated").set(2)
    knobs = graph_of(cook)["nodes"]["toy"]["knobs"]
    assert knobs["frame"] == {"keys": [[1, 1.0, "linear"], [2, 2.0, "linear"]]} and knobs["lattice"] == "body"
    cook.parm("mpm_check").pressButton()


def test_an_objects_transform_makes_a_collider(houdini, tmp_path):
    """Named in place of a wire, an object is merged into the graph's space and written; one that is not there is told by name."""
    cook = small_shot(houdini)
    shape = make(houdini, "collide_usd", "shape")
    wire(houdini.work.node("fall"), colliders=shape)
    houdini.roots["obj"].createNode("geo", "train")
    shape.parm("mpm_object").set("/obj/train")
    merged = []
    created = type(houdini.work).createNode

    def createNode(self, name, *args, **options):
        node = created(self, name, *args, **options)
        merged.extend([node] if name == "object_merge" else [])
        return node

    type(houdini.work).createNode = createNode
    try:
        graph = graph_of(cook)
    finally:
        type(houdini.work).createNode = created
    assert graph["nodes"]["shape"]["knobs"]["path"] == "inputs/shape.usd" and (tmp_path / "mpm" / "inputs" / "shape.usd").is_file()
    assert [node.parm("objpath1").evalAsString() for node in merged] == ["/obj/train"] and merged[0].parm("xformtype").eval() == 1
    assert {node.name() for node in houdini.work.children()} == {"snow", "ball", "fall", "writer", "cook", "shape"}
    shape.parm("mpm_object").set("/obj/gone")
    with pytest.raises(sys.modules["hou"].NodeError, match="there is no object /obj/gone"):
        graph_of(cook)


def test_a_height_field_is_written_as_polygons(houdini, monkeypatch):
    """Volumes go through Convert HeightField on their way to the file, and no helper stays behind."""
    cook = small_shot(houdini)
    field = houdini.work.createNode("null", "field")
    shape = wire(make(houdini, "collide_usd", "land"), path=field)
    wire(houdini.work.node("fall"), colliders=shape)
    import mpm_nodes_houdini.writers as writers

    seen = []
    write = writers._write_usd
    monkeypatch.setattr(writers, "_write_usd", lambda source, *more: seen.append(source.type().name()) or write(source, *more))
    graph_of(cook)
    field.geometry()._types.add(sys.modules["hou"].primType.Volume)
    graph_of(cook)
    assert seen == ["null", "convertheightfield"]
    assert not [node for node in houdini.work.children() if "polygons" in node.name() or "export" in node.name()]


def test_geometry_that_is_called_rigid_and_is_not_is_refused(houdini, monkeypatch):
    """Static, Rigid and Deforming stand in the menu; Rigid holds geometry to its points and its shape in every frame."""
    cook = small_shot(houdini)
    cook.parm("end").set(3)
    box = houdini.work.createNode("box", "box1")
    shape = wire(make(houdini, "collide_usd", "shape", mpm_animated=1), path=box)
    wire(houdini.work.node("fall"), colliders=shape)
    corners = np.array([(x, y, z) for x in (0.0, 2.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
    turn = np.array([(0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)])
    poses = {}

    def at(node, frame, index=0):
        made = type(box.geometry())()
        made._points = [tuple(map(float, point)) for point in np.float32(poses.get(frame, corners))]
        return made

    monkeypatch.setattr(type(box), "geometryAtFrame", at)

    def refused(said):
        with pytest.raises(sys.modules["hou"].NodeError, match=f"is set to Rigid, and {said}.*Deforming"):
            graph_of(cook)

    graph_of(cook)
    poses.update({2: corners @ turn.T + (3.0, -1.0, 0.5), 3: corners + (500.0, 0.0, 0.0)})
    graph_of(cook)
    poses[3] = corners[:1]
    refused("has 8 points at frame 1 and 1 at frame 3")
    poses[3] = corners * (1.0, 1.1, 1.0)
    refused("its shape changes by .* % of its size from frame 1 to 3")
    poses[3] = corners * (-1.0, 1.0, 1.0)
    refused("its shape changes by 100 % of its size")
    bent = corners.copy()
    bent[0] += (0.0, 0.0, 0.01)
    poses.update({2: bent, 3: corners})
    refused("its shape changes by .* % of its size from frame 1 to 2")


def test_a_lid_that_opens_is_no_rigid_body_and_flat_or_few_points_are(houdini):
    """Edges keep their lengths while a sheet folds, distances do not; planes, lines and single points that move are rigid."""
    from mpm_nodes_houdini import shapes

    sheet = [(x, y, 0.0) for x in (0.0, 1.0, 2.0) for y in (0.0, 1.0)]
    folded = [(min(x, 1.0), y, max(x - 1.0, 0.0)) for x, y, _ in sheet]
    assert shapes.RigidShape(sheet).change(folded) > 0.1
    for points in (sheet, sheet[:2], sheet[:1], []):
        assert shapes.RigidShape(points).change([(y + 1.0, -x, z) for x, y, z in points]) < 1e-12


def test_guides_outline_what_is_wired_above(houdini):
    """The ball's circles, a turned box and the closed floor, at their places, each in its colour; an open wall draws nothing."""
    cook = small_shot(houdini)
    fall = houdini.work.node("fall")
    wire(fall, colliders=make(houdini, "collide_box", "block"))
    for name, values in (("size", (1.0, 2.0, 3.0)), ("centre", (4.0, 5.0, 6.0)), ("rotation", (0.0, 90.0, 0.0))):
        for parm, value in zip(houdini.work.node("block").parmTuple(name), values, strict=True):
            parm.set(value)
    fall.parm("wall_y_low").set("separate")
    guides = make(houdini, "guides", "guides")
    guides.setInput(0, fall)
    geometry = guides.geometry()
    assert guides.errors() == ()
    places, colours = np.array(geometry.points()), np.array(geometry._numbers["Cd"][1]).reshape(-1, 3)
    assert len(geometry.prims()) == 3 * 32 + 12 + 4 == len(places) // 2
    import mpm_nodes_houdini.guides as drawn

    block = places[(colours == drawn.COLOURS["collide"]).all(axis=1)]
    np.testing.assert_allclose([block.min(axis=0), block.max(axis=0)], [(2.5, 4.0, 5.5), (5.5, 6.0, 6.5)], atol=1e-12)
    ball = places[(colours == drawn.COLOURS["emit"]).all(axis=1)]
    np.testing.assert_allclose(np.linalg.norm(ball - (0.0, 1.0, 0.0), axis=1), 0.2)
    floor = places[(colours == drawn.COLOURS["wall"]).all(axis=1)]
    assert (floor[:, 1] == -10.0).all() and np.ptp(floor[:, 0]) == 20.0
    assert graph_of(cook)["nodes"].keys() == {"snow", "ball", "fall", "writer", "block"}


def test_a_job_has_a_command_for_each_wedge_and_shell_rops_run_them(houdini, tmp_path):
    """Three values are three commands in the file and three ROPs in a row; the first command cooks its wedge."""
    cook = small_shot(houdini)
    cook.parm("mpm_wedges").set("ball.radius=0.15,0.2,0.25")
    cook.parm("mpm_farm").pressButton()
    job = tmp_path / "mpm" / "cook.job"
    template = json.loads((job / "template.json").read_text())
    lines = [line for line in (job / "commands.txt").read_text().splitlines() if line.startswith("mpm-nodes")]
    assert template["specificationVersion"] == "jobtemplate-2023-09" and len(lines) >= 3
    cook.parm("mpm_rops").pressButton()
    rops = [houdini.roots["out"].node(f"cook_{number:03d}") for number in range(1, len(lines) + 1)]
    assert all(rop.type().name() == "shell" for rop in rops)
    assert [rop.inputs()[0] for rop in rops[1:]] == rops[:-1] and rops[0].inputs() == ()
    command = rops[0].parm("command").evalAsString()
    assert command.startswith(f"cd {shlex.quote(str(job))} && ")
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(job.rglob("0002.commit.json"))) == 1
    cook.parm("mpm_rops").pressButton()
    assert len(houdini.roots["out"].children()) == len(lines), "made once"
    cook.parm("mpm_wedges").set("ball.nothing=1,2")
    with pytest.raises(sys.modules["hou"].NodeError, match="nothing"):
        cook.parm("mpm_farm").pressButton()


def test_cook_again_goes_on_from_the_current_frame(houdini, tmp_path):
    """Frame 1 is taken from the first cook, frame 2 has the new knob; at the first frame it is a whole cook."""
    cook = small_shot(houdini)
    cook.parm("mpm_cook").pressButton()
    houdini.work.node("fall").parm("gravityy").set(3.0)
    houdini.current_frame = 2.0
    cook.parm("mpm_again").pressButton()
    out = tmp_path / "mpm" / "cook"
    assert json.loads((out / "r002" / "cook.json").read_text())["taken"]["last"] == 1
    assert (out / "r002" / "frames" / "0002.commit.json").is_file()
    assert houdini.work.node("cook_cache").parm("filepath1").evalAsString() == str(out / "r002" / "cache.usda")
    houdini.current_frame = 1.0
    cook.parm("mpm_again").pressButton()
    assert "taken" not in json.loads((out / "r003" / "cook.json").read_text())
