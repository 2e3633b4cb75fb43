"""Orientations: quaternions in place of angles, for everything that takes a rotation; exact, keyed by slerp, never both."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mpm_nodes
from mpm_nodes.data import FrameContext, GraphSettings, MpmNodesError, Orientation
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.declarations import NodeDeclaration
from mpm_nodes.graph.declare.signatures import DeclarationError
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.lineage import knob_fact
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.time import keys
from mpm_nodes.kernels.level_sets.level_set import POSE
from mpm_nodes.nodes.collide import collide_box, collide_plane
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.materials import material_neo_hookean
from mpm_nodes.nodes.rotations import TURNS, quaternion_matrix, rotation_matrix, turn_matrix
from mpm_nodes.solver.colliders import ColliderSet

TURNED = [each for each in registries.default().nodes().values() if each.knob("rotation") is not None]
QUARTERS = list(itertools.product((0.0, 90.0, 180.0, -90.0), repeat=3))
ABOUT_Z = {"keys": [[1, [1.0, 0.0, 0.0, 0.0], "linear"], [5, [1.0, 0.0, 0.0, 1.0], "linear"]]}
"""None at frame 1, 90 degrees about z at frame 5."""


@pytest.mark.parametrize("declaration", TURNED, ids=lambda each: each.id)
def test_what_takes_a_rotation_takes_an_orientation(declaration: NodeDeclaration):
    """Both knobs, of which one may be given; where the angles can be keyed the quaternion can."""
    rotation, orientation = (declaration.knob(name) for name in TURNS)
    assert declaration.alternatives == TURNS and orientation.turns and orientation.size == 4
    assert orientation.animatable == rotation.animatable
    assert turn_matrix(orientation=orientation.default).tolist() == np.eye(3).tolist()
    assert orientation.fault([0.0, 0.0, 0.0, 0.0])[0] == "is not a rotation"


def test_quarter_turns_from_matrices_are_exact():
    """A matrix of 0 and 1 becomes a quaternion that gives the same matrix to the bit, in sources and as bodies are posed."""
    for degrees in QUARTERS:
        turn = rotation_matrix(degrees)
        given = mpm_nodes.orientation(turn)
        assert (quaternion_matrix(given) == turn).all(), degrees
        colliders = ColliderSet([collide_plane(FrameContext(1), orientation=given)])
        colliders.pose(0.0, 1e-3)
        assert (colliders._real[0, POSE : POSE + 9].reshape(3, 3) == turn).all(), degrees


def test_any_length_stands_for_the_same_turn():
    """A third of a turn about the diagonal is exact in whole numbers; any other turn is the angles' to rounding."""
    assert quaternion_matrix((1, 1, 1, 1)).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    turn = rotation_matrix((20.0, -35.0, 110.0))
    given = 3.0 * np.array(mpm_nodes.orientation(turn))
    np.testing.assert_allclose(quaternion_matrix(given), turn, rtol=0.0, atol=1e-15)
    np.testing.assert_allclose(quaternion_matrix(-given), turn, rtol=0.0, atol=1e-15)


def test_sources_and_colliders_lie_as_with_the_angles():
    """The same box of particles and the same body, whichever way the turn is given."""
    settings, matter, angles = GraphSettings(cell_size=0.1), material_neo_hookean(), (10.0, 20.0, 30.0)
    given = mpm_nodes.orientation(rotation_matrix(angles))
    by_angles, by_quaternion = (
        emit_box(settings, matter, size=(0.4, 0.2, 0.3), **turn) for turn in ({"rotation": angles}, {"orientation": given})
    )
    np.testing.assert_allclose(by_quaternion["position"], by_angles["position"], rtol=0.0, atol=1e-15)
    shapes = (collide_box(FrameContext(1), **turn).shape for turn in ({"rotation": angles}, {"orientation": given}))
    np.testing.assert_allclose(*(shape.rotations for shape in shapes), rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("matrix", [np.diag([1.0, 1.0, -1.0]), 2.0 * np.eye(3), np.ones((2, 2)), np.full((3, 3), np.nan)])
def test_what_is_no_rotation_is_refused(matrix):
    """Mirrored, scaled, misshapen and not finite."""
    with pytest.raises(MpmNodesError, match="rotation"):
        mpm_nodes.orientation(matrix)


# ---------------------------------------------------------------- one of two
@pytest.mark.parametrize(
    "rotation", [[0.0, 0.0, 10.0], {"keys": [[1, [0.0, 0.0, 0.0], "linear"], [5, [0.0, 0.0, 90.0], "linear"]]}]
)
def test_both_are_refused_before_the_cook(rotation):
    """By name, with the cure; a keyed one counts as given even where it begins at no turn."""
    graph = Graph(cell_size=0.1)
    graph.add("collide_box", "wall", rotation=rotation, orientation=[1.0, 0.0, 0.0, 1.0])
    (problem,) = validate(graph)
    assert problem.place == "wall.orientation" and "give rotation or orientation" in str(problem)
    graph.set("wall.rotation", [0.0, 0.0, 0.0])
    assert not validate(graph)


def test_both_are_refused_in_a_call():
    """As functions, nodes say it themselves."""
    with pytest.raises(MpmNodesError, match="both given"):
        collide_box(FrameContext(1), rotation=(0.0, 0.0, 10.0), orientation=(1.0, 0.0, 0.0, 1.0))


def test_alternatives_are_knobs_of_their_node():
    """A misspelt one is refused where the node is declared."""
    with pytest.raises(DeclarationError, match="alternatives names 'angle'"):

        @node(category="Test", label="Misspelt", alternatives=("angle", "turn"))
        def misspelt(*, turn: Orientation = (1.0, 0.0, 0.0, 0.0)) -> str:
            """Turn nothing.

            Args:
                turn: The turn.
            """
            return str(turn)


# ---------------------------------------------------------------- keys
def test_keys_turn_at_an_even_rate_along_the_shorter_arc():
    """A quarter turn in four frames is 22.5 degrees a frame, also where the second key has the other sign; step holds."""
    for sign in (1.0, -1.0):
        rows = [[1, [2.0, 0.0, 0.0, 0.0], "linear"], [5, [sign, 0.0, 0.0, sign], "step"], [9, [0.0, 1.0, 0.0, 0.0], "linear"]]
        for frame in range(1, 6):
            turn = quaternion_matrix(keys.slerp(rows, frame))
            np.testing.assert_allclose(turn, rotation_matrix((0.0, 0.0, 22.5 * (frame - 1))), rtol=0.0, atol=1e-15)
        assert keys.slerp(rows, 8.9) == (sign, 0.0, 0.0, sign) and keys.slerp(rows, 0.0) == (2.0, 0.0, 0.0, 0.0)
    smooth = [[1, [1.0, 0.0, 0.0, 0.0], "smooth"], [5, [1.0, 0.0, 0.0, 1.0], "linear"]]
    turn = quaternion_matrix(keys.slerp(smooth, 2.0))  # 3 / 16 - 2 / 64 of the way
    np.testing.assert_allclose(turn, rotation_matrix((0.0, 0.0, 90.0 * 0.15625)), rtol=0.0, atol=1e-15)


def test_a_keyed_collider_turns_evenly_within_a_frame():
    """Pose keys inside a frame lie on the arc between the knob's keys."""
    graph = Graph(cell_size=0.1, start=1, end=5)
    graph.add("collide_box", "wall", orientation=ABOUT_Z)
    evaluator = Evaluator(graph)
    shape = evaluator.value("wall", 3).shape
    angles = np.degrees(2.0 * np.arctan2(shape.rotations[:, 3], shape.rotations[:, 0]))
    np.testing.assert_allclose(angles, np.linspace(22.5, 45.0, len(angles)), rtol=0.0, atol=1e-12)


def test_curves_that_meet_at_both_ends_are_told_apart():
    """Of two arcs with the same chord over a frame, one is cached and the other cooked."""
    knob = next(each for each in TURNED if each.id == "collide_box").knob("orientation")
    bent = {"keys": [[1, [1.0, 0.0, 0.0, 0.0], "linear"], [3, [0.0, 0.0, 0.0, 3.0], "linear"]]}
    middle = [0.5, 0.0, 0.0, 1.5]
    straight = {"keys": [[1, [1.0, 0.0, 0.0, 0.0], "linear"], [2, middle, "linear"], [3, [0.0, 0.0, 0.0, 3.0], "linear"]]}
    assert knob_fact(knob, bent, 2, True) != knob_fact(knob, straight, 2, True)


def test_files_keep_it_and_sources_refuse_keys(tmp_path):
    """A key list comes back from a graph file as it was; a solve takes its sources at one frame, so there keys are refused."""
    graph = Graph(cell_size=0.1, start=1, end=3)
    graph.add("collide_box", "wall", orientation=ABOUT_Z)
    graph.save(tmp_path / "graph.json")
    assert mpm_nodes.load_graph(tmp_path / "graph.json").nodes["wall"].knobs["orientation"] == ABOUT_Z
    body = graph.add("emit_box", "body", material=graph.add("material_neo_hookean", "matter"), orientation=ABOUT_Z)
    graph.add("solve", "fall", sources=body)
    (problem,) = validate(graph)
    assert problem.place == "body.orientation" and "the keys would do nothing" in str(problem)
