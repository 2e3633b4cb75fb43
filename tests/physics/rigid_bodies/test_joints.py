"""Joints and motors: where they hold, what they turn, and that a cook takes them up where it goes on."""

from __future__ import annotations

import numpy as np
import pytest
from rigid_scenes import splash, world_of

from mpm_nodes.data import FrameContext, MpmNodesError
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.nodes.collide import collide_box
from mpm_nodes.physics.rigid_bodies.nodes.rigid_bodies import rigid_body

FIRST = FrameContext(1)


def test_a_joint_stays_where_it_was_made(tmp_path):
    """Keys of a body's collider count as it begins: later ones move neither it nor the place that it hangs on; and so resumed."""
    ends = []
    for keyed, cut in ((False, False), (True, False), (True, True)):
        graph = splash()
        joint = graph.add("hinge_joint", "joint", collider=graph["body"], anchor=(0.3, 0.5, 0.0))
        graph.nodes["sim"].connect("colliders", [graph["floor"], joint])
        graph.nodes["there"].inputs["collider"] = []
        graph.nodes["there"].connect("collider", [joint])
        if keyed:
            graph.nodes["box"].knobs["centre"] = {"keys": [[1, [0.02, 0.5, 0.0], "linear"], [6, [3.0, 2.0, 0.0], "linear"]]}
        out = tmp_path / f"{keyed}{cut}"
        if cut:
            execute(graph, frames=(1, 3), out=out)
        result = execute(graph, out=out, resume=cut)
        ends.append(result.revision_folder / "cache" / "cache.0006.usdc")
    one, other, resumed = (_middle(end) for end in ends)
    assert other == pytest.approx(one, abs=2e-6) and resumed.tobytes() == other.tobytes() and one[1] < 0.45


def _middle(layer):
    """Return the middle of the points of the collider that a frame of a cache draws."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.Open(str(layer))
    prims = [prim for prim in stage.TraverseAll() if prim.IsA(UsdGeom.Mesh) and "box" in prim.GetName()]
    return np.mean(UsdGeom.Mesh(prims[0]).GetPointsAttr().Get(6), axis=0)


@pytest.mark.parametrize(
    ("knobs", "wires", "said"),
    [
        ({}, {"collider": "box"}, "hinge_joint.collider: only rigid bodies have joints"),
        ({}, {"collider": "body", "parent": "floor"}, "hinge_joint.parent: is not a rigid body"),
        ({}, {"collider": "body", "parent": "other"}, "a joint holds on to the rigid body 'other', which is not among them"),
        ({"axis": (0.0, 0.0, 0.0)}, {"collider": "body"}, "hinge_joint.axis: is 0"),
        ({"low": 5.0, "high": 10.0}, {"collider": "body"}, "the body begins at 0, and low is 5, high 10"),
    ],
)
def test_joints_that_cannot_be_are_refused_before_the_cook(tmp_path, knobs, wires, said):
    """What has no joint, nothing to hold on to, no axis, no way."""
    graph = splash()
    ball = graph.add("collide_sphere", "ball", centre=(2.0, 1.0, 0.0))
    graph.add("rigid_body", "other", collider=ball, name="other")
    joint = graph.add("hinge_joint", "joint", **{port: graph[name] for port, name in wires.items()}, **knobs)
    graph.nodes["sim"].connect("colliders", [graph["floor"], joint])
    graph.nodes["there"].inputs["collider"] = []
    graph.nodes["there"].connect("collider", [joint])
    with pytest.raises(MpmNodesError, match=said):
        execute(graph, out=tmp_path)


@pytest.mark.parametrize("to", ["jointed", "free"])
def test_joints_stay_when_a_shot_is_cooked_again(tmp_path, to):
    """From a frame on bodies go on with what they hang on, and with another density; else it is told."""
    graph = splash()
    joint = graph.add("hinge_joint", "joint", collider=graph["body"], anchor=(0.3, 0.5, 0.0))
    with_joint, without = [graph["floor"], joint], [graph["floor"], graph["body"]]
    graph.nodes["sim"].connect("colliders", without if to == "jointed" else with_joint)
    execute(graph, frames=(1, 3), out=tmp_path)
    graph.nodes["body"].knobs["density"] = 5000.0
    execute(graph, again_from=3, out=tmp_path)
    graph.nodes["sim"].connect("colliders", with_joint if to == "jointed" else without)
    with pytest.raises(MpmNodesError, match="the rigid_bodies joints of the matter that is there lack dice"):
        execute(graph, again_from=3, out=tmp_path)


@pytest.mark.parametrize("torque", [50.0, 1e5])
def test_motors_turn_their_own_joints_as_fast_as_they_should(torque):
    """In whatever order bodies that hang on each other are wired in, and by a torque that would throw them beyond in a substep."""
    from mpm_nodes.physics.rigid_bodies.nodes.joints import hinge_joint

    def arm(name, x, parent, speed):
        box = rigid_body(collide_box(FIRST, centre=(x, 0.0, 0.0), size=(0.2, 0.2, 0.2)), name=name)
        return hinge_joint(box, parent, anchor=(x, 0.0, 0.0), axis=(0.0, 1.0, 0.0), speed=speed, torque=torque)

    inner = arm("inner", 0.0, None, 1.0)
    outer = arm("outer", 1.0, inner, 5.0)
    for order, spins in (((inner, outer), (1.0, 6.0)), ((outer, inner), (6.0, 1.0))):
        world = world_of(*order)
        for _ in range(2000):
            world.go_on()
            world.advance(1e-3, (0.0, 0.0, 0.0), np.zeros((2, 6)))
        assert world.twists()[:, 4] == pytest.approx(spins, rel=1e-3)


@pytest.mark.parametrize(("joint", "strength"), [("hinge_joint", "torque"), ("slider_joint", "force")])
def test_keys_switch_a_motor_on_and_off(joint, strength, tmp_path):
    """A motor may begin, and end, in the middle of a shot, and a cook that resumes before it begins goes on to the same bits."""
    graph = splash()
    keys = {"keys": [[1, 0.0, "step"], [4, 500.0, "step"], [6, 0.0, "step"]]}
    hung = graph.add(joint, "joint", collider=graph["body"], axis=(0.0, 1.0, 0.0), speed=3.0, **{strength: keys})
    graph.nodes["sim"].connect("colliders", [hung])
    graph.nodes["sim"].knobs["gravity"] = graph.nodes["body"].knobs["velocity"] = (0.0, 0.0, 0.0)
    whole = execute(graph, out=tmp_path / "whole")
    execute(graph, frames=(1, 3), out=tmp_path / "parts")
    parts = execute(graph, out=tmp_path / "parts", resume=True)
    last = [result.revision_folder / "cache" / "cache.0006.usdc" for result in (whole, parts)]
    assert last[0].read_bytes() == last[1].read_bytes()
    evaluator = Evaluator(graph)
    turns, places = zip(*(evaluator.value("sim.bodies", frame).poses["dice"] for frame in range(1, 6)), strict=True)
    moved = [
        float(np.abs(np.concatenate([turn[1] - turns[0][1], place[1] - places[0][1]])).max())
        for turn, place in zip(turns, places, strict=True)
    ]
    assert moved[2] < 1e-9 and moved[4] > 0.05
