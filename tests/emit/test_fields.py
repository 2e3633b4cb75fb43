"""Fields as nodes: what they are of, what they give to particles, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, Material, MpmNodesError
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.nodes import fields
from mpm_nodes.nodes.attributes import FieldCombination, set_attribute
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.fields import FieldOperation, FieldShape, NoiseKind, RampForm, ShapeOutput
from mpm_nodes.nodes.forces import force_acceleration, force_attraction, force_vortex, force_wind
from mpm_nodes.nodes.rotations import turn_matrix
from mpm_nodes.solver.field_programs import field_values

SETTINGS, NOW = GraphSettings(cell_size=0.1), FrameContext(1)
JELLY = Material("neo_hookean", {}, 1000.0, "jelly")
NUMBER, VECTOR = fields.field_constant(value=2.0), fields.field_vector(vector=(1.0, 2.0, 3.0))
HUGE = fields.scaled(fields.constant(1e300), fields.constant(1e300))
PLACES = np.random.default_rng(5).normal(size=(400, 3))


@pytest.mark.parametrize(
    ("shape", "knobs", "distance"),
    [
        (FieldShape.BALL, {"radius": 0.7}, lambda x: np.linalg.norm(x, axis=1) - 0.7),
        (FieldShape.HALF_SPACE, {}, lambda x: x[:, 1]),
        (
            FieldShape.CAPSULE,
            {"radius": 0.2, "length": 1.0},
            lambda x: np.linalg.norm(x - np.clip(x[:, 1], -0.5, 0.5)[:, None] * [0, 1, 0], axis=1) - 0.2,
        ),
        (
            FieldShape.BOX,
            {"size": (1.0, 0.5, 2.0)},
            lambda x: (
                np.linalg.norm(np.maximum(abs(x) - [0.5, 0.25, 1.0], 0), axis=1)
                + np.minimum((abs(x) - [0.5, 0.25, 1.0]).max(axis=1), 0)
            ),
        ),
    ],
)
def test_shapes_are_distances_turned_and_moved(shape, knobs, distance):
    """Against the formula, also turned and moved; inside is where the distance is not above 0."""
    told = fields.field_shape(shape=shape, output=ShapeOutput.DISTANCE, **knobs)
    np.testing.assert_allclose(field_values(told, PLACES, 1.0), distance(PLACES), atol=1e-14)
    centre, rotation = (0.3, 0.1, -0.2), (10.0, -25.0, 40.0)
    turned = fields.field_shape(shape=shape, output=ShapeOutput.DISTANCE, centre=centre, rotation=rotation, **knobs)
    local = (PLACES - centre) @ turn_matrix(rotation)
    np.testing.assert_allclose(field_values(turned, PLACES, 1.0), distance(local), atol=1e-14)
    inside = field_values(fields.field_shape(shape=shape, **knobs), PLACES, 1.0)
    assert np.array_equal(inside == 1.0, distance(PLACES) <= 0.0) and set(inside) <= {0.0, 1.0}
    soft = field_values(fields.field_shape(shape=shape, falloff=0.4, **knobs), PLACES, 1.0)
    share = np.clip(distance(PLACES) / 0.4, 0.0, 1.0)
    np.testing.assert_allclose(soft, 1.0 - share**2 * (3.0 - 2.0 * share), atol=1e-12)


@pytest.mark.parametrize("form", RampForm)
def test_ramps_rise_between_their_ends(form):
    """Straight, smooth or without an end, along a direction of any length."""
    ramp = fields.field_ramp(
        origin=(0.0, 1.0, 0.0), direction=(0.0, 3.0, 0.0), low=-0.5, high=1.5, from_value=2.0, to_value=6.0, interpolation=form
    )
    share = (PLACES[:, 1] - 1.0 + 0.5) / 2.0
    share = share if form is RampForm.ENDLESS else np.clip(share, 0.0, 1.0)
    share = share**2 * (3.0 - 2.0 * share) if form is RampForm.SMOOTH else share
    np.testing.assert_allclose(field_values(ramp, PLACES, 1.0), 2.0 + 4.0 * share, atol=1e-13)


def test_noise_is_smooth_evolves_and_hangs_on_its_seed():
    """Steps of a hundredth of a size change little; another second or seed changes all; the first frame is any."""
    noise = fields.field_noise(SETTINGS, size=0.5, evolution=2.0, octaves=2)
    now = field_values(noise, PLACES, 1.0)
    assert np.abs(field_values(noise, PLACES + [0.005, 0.0, 0.0], 1.0) - now).max() < 0.15
    for other in (
        field_values(noise, PLACES, 1.0 + SETTINGS.fps),
        field_values(fields.field_noise(SETTINGS, size=0.5, seed=4), PLACES, 1.0),
    ):
        assert abs(np.corrcoef(now, other)[0, 1]) < 0.3
    rough = field_values(fields.field_noise(SETTINGS, kind=NoiseKind.TURBULENCE, size=0.5), PLACES, 1.0)
    assert rough.min() >= 0.0 and rough.mean() == pytest.approx(1.0, rel=0.15)


def test_math_says_whether_it_is_a_vector():
    """Lengths and dot products are numbers, crosses and unit vectors vectors; a number that meets a vector makes one."""
    for operation in FieldOperation:
        found = fields.field_math(VECTOR, NUMBER, operation=operation)
        assert found.vector == (operation not in (FieldOperation.LENGTH, FieldOperation.DOT)), operation
    assert not fields.field_math(NUMBER, operation=FieldOperation.ADD, b_value=3.0).vector
    assert field_values(fields.field_math(NUMBER, operation=FieldOperation.ADD, b_value=3.0), PLACES[:1], 1.0) == 5.0


@pytest.mark.parametrize("combination", FieldCombination)
def test_particles_take_values_where_they_are(combination):
    """Stiffness by the height, set, added to or times what there is; a velocity takes a vector."""
    start = emit_box(SETTINGS, JELLY, size=(0.4, 0.4, 0.4), stiffness_variation=0.2)
    height = start["position"][:, 1]
    ramp = fields.field_ramp(low=0.0, high=10.0, from_value=0.0, to_value=10.0)
    found = set_attribute(start, NOW, ramp, attribute="stiffness_scale", combination=combination)["stiffness_scale"]
    held = start["stiffness_scale"]
    expected = {FieldCombination.SET: height, FieldCombination.ADD: held + height, FieldCombination.MULTIPLY: held * height}
    np.testing.assert_allclose(found, expected[combination], rtol=1e-12)
    thrown = set_attribute(start, NOW, VECTOR, attribute="velocity")["velocity"]
    assert np.array_equal(thrown, np.tile([1.0, 2.0, 3.0], (len(start), 1)))
    assert np.array_equal(set_attribute(start, NOW, NUMBER, attribute="mine")["mine"], np.full(len(start), 2.0))
    even = set_attribute(start, NOW, attribute="stiffness_scale", value=3.0, combination=combination)["stiffness_scale"]
    np.testing.assert_allclose(even, {"set": 0.0 * held + 3.0, "add": held + 3.0, "multiply": 3.0 * held}[combination.value])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda start: set_attribute(start, NOW, NUMBER, attribute="mass"), "mass is what the solve finds"),
        (lambda start: set_attribute(start, NOW, NUMBER, attribute="velocity"), "velocity needs a field of vectors"),
        (lambda start: set_attribute(start, NOW, VECTOR, attribute="temperature"), "temperature needs a field of numbers"),
        (lambda start: set_attribute(start, NOW, NUMBER, attribute="no name"), "'no name' is not a name"),
        (lambda start: set_attribute(start, NOW, HUGE), "set_attribute.field: is not finite everywhere"),
        (lambda start: set_attribute(start, NOW, value=math.inf), "set_attribute.value: is inf; stiffness_scale lies from 1e-06"),
        (lambda start: set_attribute(start, NOW, value=0.0), "set_attribute.value: is 0; stiffness_scale lies from 1e-06"),
        (lambda start: fields.field_constant(value=math.inf), "a field has the value inf; give finite numbers"),
        (lambda start: fields.field_ramp(direction=(0.0, 0.0, 0.0)), r"field_ramp.direction: is \(0"),
        (lambda start: fields.field_ramp(VECTOR), "field_ramp.field: is a field of vectors"),
        (lambda start: force_acceleration(NUMBER), "is a field of numbers"),
        (lambda start: force_wind(NUMBER), "is a field of numbers"),
        (lambda start: force_wind(mask=VECTOR), "force_wind.mask: is a field of vectors"),
        (lambda start: force_vortex(axis=(0.0, 0.0, 0.0)), "force_vortex.axis"),
        (lambda start: force_attraction(VECTOR), "force_attraction.mask"),
    ],
)
def test_what_does_not_fit_is_told(make, said):
    """In a sentence that names node and knob."""
    with pytest.raises(MpmNodesError, match=said):
        make(emit_box(SETTINGS, JELLY, size=(0.2, 0.2, 0.2)))


@pytest.mark.parametrize(
    ("node", "port", "kind", "knobs", "said"),
    [
        ("set_attribute", "field", "field_constant", {"attribute": "velocity"}, "velocity needs a field of vectors"),
        ("set_attribute", "field", "field_vector", {"attribute": "mass"}, "mass is what the solve finds"),
        ("set_attribute", None, "", {"attribute": "velocity"}, "velocity needs a field of vectors"),
        ("set_attribute", None, "", {"attribute": "temperature", "value": -1.0}, "value: is -1; temperature lies from 0 to inf"),
        ("set_attribute", None, "", {"attribute": "concentration", "value": 1.5}, "value: is 1.5; concentration lies from 0 to 1"),
        ("force_wind", "field", "field_noise", {}, "is a field of numbers"),
        ("force_air", "mask", "field_vector", {}, "force_air.mask: is a field of vectors"),
        ("drain", "field", "field_vector", {}, "drain.field: is a field of vectors"),
        ("field_ramp", "field", "field_vector", {}, "field_ramp.field: is a field of vectors"),
    ],
)
def test_what_does_not_fit_is_told_before_the_cook(node, port, kind, knobs, said):
    """Nodes of fields say whether they are of vectors, through arithmetic too, and nothing is cooked."""
    graph = Graph(cell_size=0.1, start=1, end=2)
    body = graph.add("emit_box", "body", material=graph.add("material_library", "matter", name="jelly"))
    given = {"particles": body} if node == "set_attribute" else {}
    if port is not None:
        given[port] = graph.add("field_math", "same", a=graph.add(kind, "field"), operation="absolute")
    graph.add(node, "it", **given, **knobs)
    with pytest.raises(MpmNodesError, match=said):
        preflight.estimate(plan_graph(graph), 1)


def test_numbers_have_a_length_and_a_product():
    """Of numbers length is the absolute value and dot the product; what is of vectors alone is refused."""
    minus = fields.field_constant(value=-2.0)
    found = [fields.field_math(minus, NUMBER, operation=each) for each in (FieldOperation.LENGTH, FieldOperation.DOT)]
    assert [float(field_values(each, PLACES[:1], 1.0)[0]) for each in found] == [2.0, -4.0]
    for operation in (FieldOperation.NORMALIZE, FieldOperation.CROSS):
        with pytest.raises(MpmNodesError, match="is of vectors"):
            fields.field_math(minus, NUMBER, operation=operation)


def test_values_out_of_range_are_raised_and_told():
    """A stiffness below 0 becomes the least that there may be; a vector is not added to numbers of one's own."""
    start, told = emit_box(SETTINGS, JELLY, size=(0.2, 0.2, 0.2)), []
    ctx = FrameContext(1, report=lambda kind, **more: told.append((kind, more["message"])))
    found = set_attribute(start, ctx, fields.field_constant(value=-1.0))
    assert (found["stiffness_scale"] == 1e-6).all()
    says = "100 % of the particles would have a stiffness_scale from -1 to -1; they get 1e-06 at least and inf at most"
    assert told[0][0] == "warning" and says in told[0][1]
    soap = set_attribute(start, ctx, fields.field_constant(value=1.5), attribute="concentration")
    assert (soap["concentration"] == 1.0).all() and "a concentration from 1.5 to 1.5; they get 0 at least and 1 at most" in told[1][
        1
    ]
    mine = set_attribute(start, NOW, NUMBER, attribute="mine")
    with pytest.raises(MpmNodesError, match="another shape"):
        set_attribute(mine, NOW, VECTOR, attribute="mine", combination=FieldCombination.ADD)
