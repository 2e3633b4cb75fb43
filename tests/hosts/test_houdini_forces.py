"""Forces of POP and DOP networks as nodes: accelerations after SideFX's pages, with keys, in a graph that the program takes."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from test_houdini_cook import graph_of, small_shot
from test_houdini_docs import DOCS

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.solver.field_programs import field_values

PLACES = np.random.default_rng(0).uniform(-1.5, 1.5, (400, 3))
KEYS = ((1, 0.0), (3, 4.0))


@pytest.fixture
def shot(houdini):
    """A session with a shot, and a DOP network beside it."""
    cook = small_shot(houdini, end=5)
    dops = houdini.roots["obj"].createNode("dopnet", "dopnet1")

    def make(kind, name="push", **values):
        node = dops.createNode(next(each for each in houdini.types if each.split("::")[0] == kind), name)
        for label, value in values.items():
            for parm, part in zip(parms(node, label), value if isinstance(value, tuple) else [value], strict=True):
                parm.set(part)
        return node

    return SimpleNamespace(cook=cook, solve=houdini.work.node("fall"), make=make, houdini=houdini)


def parms(node, label):
    """Return the parameters of a label that hold values."""
    found = [each for each in node.parmTuples() if each.parmTemplate().label().lower() == label.replace("_", " ").lower()]
    chosen = next(each for each in found if each.parmTemplate().type() != "another")
    return [chosen[number] for number in range(len(chosen))]


def key(parm, *keys, shape="linear()"):
    """Give a parameter keys: (frame, value)."""
    hou = sys.modules["hou"]
    for frame, value in keys:
        one = hou.Keyframe()
        one.setFrame(frame)
        one.setValue(value)
        one.setExpression(shape, hou.exprLanguage.Hscript)
        parm.setKeyframe(one)


def taken(shot, *nodes):
    """Add forces; return them by name as the solver has them, and what was left out. The graph passes the check before a cook."""
    import mpm_nodes_houdini

    made, left = mpm_nodes_houdini.add_forces(nodes, shot.solve)
    graph = graph_of(shot.cook)
    shot.cook.parm("mpm_check").pressButton()
    assert all(each.warnings() == () and each.errors() == () for each in (shot.cook, shot.solve, *made))
    wired = graph["nodes"]["fall"]["inputs"].get("forces", [])
    assert len(wired) == len(made)
    found = Evaluator(load_graph(graph))
    return {name: found.value(name, 1) for name in wired}, left


def field(force, part="value", frame=1.0, places=PLACES):
    """Return a field of a force at places."""
    return field_values(getattr(force, part), places, frame)


EVEN = {
    "popforce": ("popforce", {"Force": (1.0, 2.0, -3.0), "Ignore_Mass": 1}, (1.0, 2.0, -3.0)),
    "gravity": ("gravity", {"Force": (0.0, -1.62, 0.0)}, (0.0, -1.62, 0.0)),
    "uniform": ("uniformforce", {"Force": (0.5, 0.0, 0.0)}, (0.5, 0.0, 0.0)),
}


@pytest.mark.parametrize("name", EVEN)
def test_forces_accelerate_a_kilogram(shot, name):
    """Force over a mass of one: the same everywhere."""
    kind, values, expected = EVEN[name]
    forces, left = taken(shot, shot.make(kind, **values))
    np.testing.assert_allclose(field(forces["push"]), np.tile(expected, (len(PLACES), 1)), atol=1e-6)
    assert [("Gravity of the MPM Solve" in each) for each in left] == [True] * (kind == "gravity")


WINDS = {
    "wind": ("popwind", {"Wind_Velocity": (1.0, 0.0, 2.0), "Wind_Speed": 3.0, "Air_Resistance": 0.5}, (3.0, 0.0, 6.0), 0.5, True),
    "drag": ("popdrag", {"Air_Resistance": 1.5}, (0.0, 0.0, 0.0), 1.5, True),
    "drag force": ("drag", {"Goal_Velocity": (0.0, 1.0, 0.0), "Scale_Force": 2.5}, (0.0, 1.0, 0.0), 2.5, False),
}


@pytest.mark.parametrize("exponent", [None, 1.0, 2.0, 1.7])
@pytest.mark.parametrize("name", WINDS)
def test_winds_draw_towards_their_velocity(shot, name, exponent):
    """Velocity times speed, resistance as rate, and the POP Solver's exponent; a DOP's drag is always linear."""
    kind, values, velocity, rate, by_solver = WINDS[name]
    if exponent is not None:
        shot.make("popsolver", "solver", Drag_Exponent=exponent)
    forces, left = taken(shot, shot.make(kind, **values))
    (force,) = forces.values()
    np.testing.assert_allclose(field(force), np.tile(velocity, (len(PLACES), 1)), atol=1e-6)
    np.testing.assert_allclose(field(force, "rate"), rate, atol=1e-6)
    assert force.quadratic == (by_solver and exponent != 1.0)
    assert bool(left) == (by_solver and exponent == 1.7)


def axis_law(centre, axis, speeds, shape):
    """Return what the page of POP Axis Force says of a sphere, around, along and towards the axis, at the places."""
    (orbit, lift, suction), (radius, height, soft, inner, outer) = speeds, shape
    axis = np.array(axis) / np.linalg.norm(axis)
    arm = PLACES - centre
    along = arm @ axis
    across = arm - along[:, None] * axis
    away = across / np.linalg.norm(across, axis=1)[:, None]
    distance = np.linalg.norm(arm - np.clip(along, -height / 2, height / 2)[:, None] * axis, axis=1)
    share = np.clip((radius - distance) / (soft * radius), 0.0, 1.0)
    strength = np.where(distance < radius, outer + (inner - outer) * share, 0.0)
    return strength, orbit * np.cross(axis, away) - suction * away + lift * axis


@pytest.mark.parametrize("wind", [False, True])
@pytest.mark.parametrize("axis", [(0.0, 2.0, 0.0), (1.0, 1.0, -0.5), (0.0, -1.0, 0.0)])
def test_axis_forces_turn_lift_and_draw(shot, axis, wind):
    """Around, along and towards the axis, with the soft edge; as wind they are velocities, and resistance holds the strength."""
    values = {"Center": (0.2, -0.1, 0.0), "Axis_Direction": axis, "Radius": 1.2, "Height": 0.8, "Orbit_Speed": 3.0}
    values |= {"Lift_Speed": 0.5, "Suction_Speed": 1.5, "Soft_Edge": 0.4, "Inner_Strength": 2.0, "Outer_Strength": 0.25}
    forces, left = taken(shot, shot.make("popaxisforce", **values, Treat_as_Wind=int(wind), Air_Resistance=0.7))
    strength, motion = axis_law((0.2, -0.1, 0.0), axis, (3.0, 0.5, 1.5), (1.2, 0.8, 0.4, 2.0, 0.25))
    assert not left and 50 < (strength > 0.0).sum() < 350
    if wind:
        (force,) = forces.values()
        assert force.quadratic
        np.testing.assert_allclose(field(force, "rate"), 0.7 * strength, atol=1e-5)
        np.testing.assert_allclose(field(force), motion, atol=2e-3)
    else:
        assert len(forces) == 2
        np.testing.assert_allclose(sum(map(field, forces.values())), strength[:, None] * motion, atol=1e-4)


def test_attraction_goes_to_the_goal(shot):
    """With the same strength from everywhere; what is not on SideFX's page is said to be left out."""
    forces, left = taken(shot, shot.make("popattract", Goal=(0.5, 0.0, 1.0), Force_Scale=4.0))
    arm = np.array((0.5, 0.0, 1.0)) - PLACES
    np.testing.assert_allclose(field(forces["push"]), 4.0 * arm / np.linalg.norm(arm, axis=1)[:, None], atol=1e-5)
    assert "distances" in left[0]


def test_noise_reaches_its_amplitude(shot):
    """Its largest values are the amplitude, where one octave is asked for; it becomes another within a pulse."""
    noise = {"Amplitude": 2.0, "Swirl_Size": 0.3, "Turbulence": 0, "Pulse_Length": 0.5}
    pushed, _ = taken(shot, shot.make("popforce", **noise), shot.make("popwind", "gusts", Wind_Speed=0.0, **noise))
    places = np.random.default_rng(2).uniform(-9.0, 9.0, (50000, 3))
    for force in pushed.values():
        values = field(force, places=places)
        lengths = np.linalg.norm(values, axis=1)
        assert np.quantile(lengths, 0.999) == pytest.approx(2.0, rel=0.03) and np.abs(values.mean(axis=0)).max() < 0.05
        later = field(force, frame=13.0, places=places)  # half a second
        assert abs(np.mean(np.sum(values * later, axis=1))) < 0.15 * np.mean(lengths**2)


def test_keys_come_along(shot):
    """Keys of one parameter stay keys; where two move, or an expression does, every frame is one."""
    wind = shot.make("popwind", "gust", Wind_Velocity=(1.0, 0.0, 2.0))
    key(parms(wind, "Wind Speed")[0], *KEYS)
    both = shot.make("popwind", "both", Wind_Velocity=(0.0, 0.0, 2.0))
    key(parms(both, "Wind Speed")[0], *KEYS)
    key(parms(both, "Wind Velocity")[0], *KEYS)
    rising = shot.make("popforce", "rising")
    parms(rising, "Force")[1].setKeyframe(_expression("$F * 2"))
    forces, _ = taken(shot, wind, both, rising)
    for frame in (1.0, 2.0, 3.0):
        speed = 2.0 * (frame - 1.0)
        assert field(forces["gust"], frame=frame)[0] == pytest.approx((speed, 0.0, 2.0 * speed))
        assert field(forces["both"], frame=frame)[0] == pytest.approx((speed * speed, 0.0, 2.0 * speed))
        assert field(forces["rising"], frame=frame)[0] == pytest.approx((0.0, 2.0 * frame, 0.0))
    nodes = graph_of(shot.cook)["nodes"]
    assert nodes["gust"]["knobs"]["velocity"]["keys"][1] == [3, [4.0, 0.0, 8.0], "linear"]


def test_matter_follows_the_wind_of_a_pop(shot, tmp_path):
    """A ball at rest, exponent 2: dv/dt = a (W - v)^2, so that v = W s / (1 + s) and x = W t - ln(1 + s) / a, with s = W a t."""
    wind, resistance, seconds = 3.0, 1.0, 0.5
    taken(shot, shot.make("popwind", "gust", Wind_Velocity=(wind, 0.0, 0.0), Air_Resistance=resistance))
    for number in range(3):
        shot.solve.parmTuple("gravity")[number].set(0.0)
    shot.cook.parm("end").set(1 + round(24 * seconds))
    shot.cook.parm("mpm_cook").pressButton()
    points = shot.houdini.work.createNode("mpm_nodes::cached_points::1.0", "points")
    points.parm("mpm_stage").set(str(tmp_path / "mpm" / "cook" / "r001" / "cache.usda"))
    middles = []
    for frame in (1.0, 1.0 + 24.0 * seconds):
        shot.houdini.current_frame = frame
        points.cook(force=True)
        found = points.geometry()
        speeds = np.reshape(found.pointFloatAttribValues("v"), (-1, 3))
        middles.append((np.mean(found._points, axis=0), speeds.mean(axis=0)))
    (start, _), (place, velocity) = middles
    reached = wind * resistance * seconds
    np.testing.assert_allclose(velocity, (wind * reached / (1.0 + reached), 0.0, 0.0), atol=0.018)
    np.testing.assert_allclose(place - start, (wind * seconds - np.log(1.0 + reached) / resistance, 0.0, 0.0), atol=0.006)


def _expression(text):
    hou = sys.modules["hou"]
    one = hou.Keyframe()
    one.setFrame(1)
    one.setExpression(text, hou.exprLanguage.Hscript)
    return one


def test_what_is_not_taken_over_is_named(shot):
    """Nodes without a translation, those that are off, other shapes, and parameters that only Houdini has."""
    off, bypassed = shot.make("popforce", "off", Activation=0.0), shot.make("popforce", "bypassed")
    bypassed.bypass(True)
    torus, surface = shot.make("popaxisforce", "torus", Type="torus"), shot.make("popattract", "skin", Attraction_Type="points")
    some = shot.make("popwind", "some", Group="light", Use_VEXpressions=1, Swirl_Scale=(1.0, 2.0, 3.0), Amplitude=1.0)
    key(parms(some, "Activation")[0], *KEYS)
    others = [shot.make(kind, name) for kind, name in (("popfan", "fan"), ("popfireworks", "sparks"), ("popsolver", "solver"))]
    nodes = [off, bypassed, torus, surface, some, *others]
    forces, left = taken(shot, *nodes)
    assert list(forces) == ["some"] and not any(each.startswith("solver") for each in left)
    words = {"off": "switched off", "bypassed": "switched off", "torus": "Torus", "skin": "geometry", "fan": "field_shape",
             "sparks": "a popfireworks is not taken over"}  # fmt: skip
    said = {name: [each for each in left if each.startswith(name + ":")] for name in (*words, "some")}
    assert all(len(said[name]) == 1 and word in said[name][0] for name, word in words.items())
    assert [any(word in each for each in said["some"]) for word in ("Group", "VEX", "Swirl Scale", "Activation")] == [True] * 4


def test_other_labels_of_another_houdini_are_told(shot):
    """A node whose parameter is called something else is left out by name, and the others are made."""
    shot.houdini.types["popdrag"]._dialog.parms[2].label = "Air Velocity"
    forces, left = taken(shot, shot.make("popdrag", "odd"), shot.make("popforce", "fine"))
    assert list(forces) == ["fine"] and left[0].startswith("odd: has no parameter Wind Velocity")


def test_the_tool_takes_the_selection_and_the_only_solve(shot):
    """Forces join those that are wired in already; names do not clash; without forces or with two solves it says what to select."""
    import mpm_nodes_houdini

    hou = sys.modules["hou"]
    with pytest.raises(hou.OperationFailed, match="No forces are selected"):
        mpm_nodes_houdini.choose_forces({})
    with pytest.raises(hou.OperationFailed, match="is no MPM Solve"):
        mpm_nodes_houdini.add_forces([], shot.cook)
    shot.houdini.selected = [shot.make("popforce", "ball", Force=(1.0, 0.0, 0.0))]
    first = mpm_nodes_houdini.choose_forces({})
    second = mpm_nodes_houdini.choose_forces({})
    assert [each.name() for each in (*first, *second)] == ["ball_2", "ball_3"]
    assert graph_of(shot.cook)["nodes"]["fall"]["inputs"]["forces"] == ["ball_2", "ball_3"]
    other = shot.houdini.work.createNode(shot.solve.type().name(), "other")
    with pytest.raises(hou.OperationFailed, match="2 MPM Solves"):
        mpm_nodes_houdini.choose_forces({})
    shot.houdini.selected.append(other)
    third = mpm_nodes_houdini.choose_forces({})
    assert third[0] in other.inputs()


def test_the_page_says_how_in_python(shot):
    """The lines of docs/houdini.md run as they stand."""
    (lines,) = re.findall(r"<!-- python: tested -->\n```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    shot.make("popforce"), shot.make("popsolver", "solver")
    names = {"hou": sys.modules["hou"]}
    exec(lines, names)
    assert [node.name() for node in names["made"]] == ["push"] and names["left_out"] == []


def test_a_window_shows_what_was_left_out(shot):
    """With windows the tool says so in one, else in the status line."""
    import mpm_nodes_houdini

    shot.houdini.add_ui(sys.modules["hou"])
    shot.houdini.selected = [shot.make("popforce"), shot.make("popfan", "fan")]
    mpm_nodes_houdini.choose_forces({})
    assert shot.houdini.shown[-1].startswith("made 1 forces\nfan: ")
    shot.houdini.selected = []
    assert mpm_nodes_houdini.choose_forces({}) == [] and "No forces" in shot.houdini.shown[-1]
