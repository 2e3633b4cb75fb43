"""Streams that are counted: exact numbers for any substeps, up to a volume, and born only where there is room."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from solver_scenes import LIQUID, shot

from mpm_nodes.data import GraphSettings, InputError, MpmNodesError, Particles, SpatialField, WallRule, Walls
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.fields import FieldShape, NoiseKind, constant, field_noise, field_ramp, field_shape
from mpm_nodes.nodes.fields_of_particles import own
from mpm_nodes.nodes.profiles import parabolic
from mpm_nodes.nodes.streams import FlowUnit, Profile, emit_stream
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.metering import MeteredStream
from mpm_nodes.solver.room import RoomAround, filled_share
from mpm_nodes.solver.run import SubstepSolver

SETTINGS = GraphSettings(cell_size=0.02, fps=24.0, start=1, end=49)
NOZZLE = emit_box(SETTINGS, LIQUID, size=(0.08, 0.04, 0.08), centre=(0.0, 0.5, 0.0))
"""8 x 8 particles across, 4 along: 256 of 1e-6 m^3."""
BURSTS = KeyedNumber([(1, 2e-3, "step"), (4.5, 0.0, "step"), (7, 1e-3, "smooth"), (13, 3e-3, "step")])


RISE = field_ramp(direction=(1.0, 0.0, 0.0), low=-0.04, high=0.04, from_value=0.5, to_value=1.5)
"""Speed across the nozzle: from 0.5 to 1.5 of the mean."""


def made(**knobs) -> MeteredStream:
    """Return a stream of the nozzle."""
    return MeteredStream(emit_stream(SETTINGS, NOZZLE, **knobs), np.zeros(1, np.int32), Clock.of(SETTINGS))


def emitted(stream: MeteredStream, times: np.ndarray) -> np.ndarray:
    """Return where what came in spans between times is at the last of them, sorted."""
    parts = []
    for begin, end in itertools.pairwise([-np.inf, *times]):
        columns = stream.between(begin, end)
        if columns is not None:
            parts.append(columns["position"] + (times[-1] - end) * columns["velocity"])
    found = np.concatenate(parts)
    return found[np.lexsort(found.round(9).T)]


@pytest.mark.parametrize(
    "knobs",
    [
        {"rate": 2e-3},
        {"rate": BURSTS},
        {"rate": 2e-3, "profile": Profile.PARABOLIC},
        {"volume": 5e-4},
        {"rate": 2e-3, "opening": RISE, "velocity_field": constant((0.3, 0.1, 0.0))},
    ],
    ids=["rate", "bursts", "profile", "volume", "fields"],
)
def test_a_metered_stream_is_the_same_for_any_substeps(knobs):
    """Cut into 1, 7, 300 or random spans the same particles are there; with a keyed rate as many, less than a spacing off."""
    end, random = 1.0, np.random.default_rng(2)
    cuts = [np.linspace(0.0, end, n + 1) for n in (1, 7, 300)] + [np.concatenate([[0.0], np.sort(random.random(50)), [end]])]
    found = [emitted(made(**knobs), times) for times in cuts]
    for other in found[1:]:
        assert len(other) == len(found[0]) > 300
        if "rate" not in knobs or knobs["rate"] is not BURSTS:
            np.testing.assert_allclose(other, found[0], atol=1e-9)


def test_bursts_bring_the_integral_of_their_keys():
    """2e-3 over 3.5 frames, nothing, a smooth rise from 1e-3 to 3e-3 over 6, 3e-3 over 12: to half a particle at every frame."""
    stream = made(rate=BURSTS)
    exact = {5: 2e-3 * 3.5, 7: 2e-3 * 3.5, 13: 2e-3 * 3.5 + 2e-3 * 6, 25: 2e-3 * 3.5 + 2e-3 * 6 + 3e-3 * 12}
    for frame, volume in exact.items():
        columns = made(rate=BURSTS).between(-np.inf, (frame - 1) / 24.0)
        assert len(columns["position"]) == pytest.approx(volume / 24.0 / stream.each, abs=0.5 + 1e-6)
    assert stream.between(4.0 / 24, 5.9 / 24) is None  # between the bursts


def test_a_rate_says_how_fast_the_stream_is():
    """2e-3 m^3/s through 0.0064 m^2; 2 kg/s of 1000 kg/m^3 is as much; the velocity's length says nothing."""
    by_volume = emit_stream(SETTINGS, NOZZLE, velocity=(0.0, -9.0, 0.0), rate=2e-3)
    by_mass = emit_stream(SETTINGS, NOZZLE, rate=2.0, rate_unit=FlowUnit.MASS)
    assert by_volume.velocity == pytest.approx((0.0, -2e-3 / 0.0064, 0.0))
    assert by_mass.velocity == pytest.approx(by_volume.velocity)
    columns = made(rate=2e-3).between(0.1, 0.2)
    np.testing.assert_allclose(columns["velocity"], [[0.0, -0.3125, 0.0]] * len(columns["velocity"]))


def test_a_metered_stream_has_no_gaps():
    """Columns are staggered, and particles of each one spacing apart, across repetitions of the template."""
    found = emitted(made(rate=2e-3), np.linspace(0.0, 1.0, 100))
    column = found[np.hypot(found[:, 0] - 0.005, found[:, 2] - 0.005) < 1e-6]
    np.testing.assert_allclose(np.diff(np.sort(column[:, 1])), 0.01, atol=1e-9)
    layers = np.unique(found[:, 1].round(6))
    assert len(layers) > 0.5 * len(found)  # and not in layers


def test_a_profile_carries_the_same_volume():
    """Faster in the middle of a square than at its corners, mean 1 of all; the count is the rate's all the same."""
    speed = parabolic(NOZZLE, np.array([0.0, -1.0, 0.0]))
    off = np.hypot(NOZZLE["position"][:, 0], NOZZLE["position"][:, 2])
    assert speed.mean() == pytest.approx(1.0) and speed[off < 0.01].min() > 1.8 and speed[off > 0.045].max() < 0.3
    assert len(emitted(made(rate=2e-3, profile=Profile.PARABOLIC), np.linspace(0, 1, 50))) == 2000


def test_an_opening_is_a_stencil_and_carries_the_same_volume():
    """What comes of half of a nozzle is what comes of half a nozzle; speeds are those of the field, the count that of the rate."""
    times = np.linspace(0.0, 1.0, 50)
    right = field_shape(shape=FieldShape.HALF_SPACE, rotation=(0.0, 0.0, 90.0))
    kept = NOZZLE["position"][:, 0] > 0.0
    half = dataclasses.replace(NOZZLE, attributes={name: column[kept] for name, column in NOZZLE.attributes.items()})
    for knobs in ({"rate": 2e-3}, {"volume": 5e-4}):
        alone = MeteredStream(emit_stream(SETTINGS, half, **knobs), np.zeros(1, np.int32), Clock.of(SETTINGS))
        assert np.array_equal(emitted(made(opening=right, **knobs), times), emitted(alone, times))
    columns = made(rate=2e-3, opening=RISE).between(-np.inf, 1.0)
    assert len(columns["position"]) == 2000
    expected = -0.3125 * (1.0 + columns["position"][:, 0] / 0.08)
    np.testing.assert_allclose(columns["velocity"][:, 1], expected, rtol=1e-6)
    both = made(rate=2e-3, opening=RISE, profile=Profile.PARABOLIC)
    assert both.factors.mean() == pytest.approx(1.0) and len(emitted(both, times)) == 2000


def test_velocities_at_birth_take_a_field():
    """At the place where a particle comes out, at the frame of its birth; as many come as without it."""
    noise = field_noise(SETTINGS, kind=NoiseKind.CURL, size=0.05, amplitude=0.2, evolution=2.0)
    out = NOZZLE["position"][:, 1].min()
    plain, blown = made(rate=2e-3), made(rate=2e-3, velocity_field=noise)
    for begin, end in itertools.pairwise(np.linspace(0.1, 0.5, 9)):
        one, other = plain.between(begin, end), blown.between(begin, end)
        exits = one["position"] + (out - one["position"][:, 1:2]) / one["velocity"][:, 1:2] * one["velocity"]
        added = field_values(noise, exits, 1.0 + 24.0 * end)
        np.testing.assert_allclose(other["velocity"] - one["velocity"], added, atol=1e-7)
        late = (one["position"][:, 1:2] - out) / one["velocity"][:, 1:2]
        np.testing.assert_allclose(other["position"] - one["position"], late * added, atol=1e-7)


def test_half_of_the_nozzle_s_velocity_is_inherited():
    """A nozzle that moves at 1 m/s gives half of it where that is asked for."""
    frames = Clock.of(SETTINGS)
    for percent in (0.0, 50.0, 100.0):
        emitter = emit_stream(SETTINGS, NOZZLE, rate=2e-3, inherit_velocity=percent)
        stream = MeteredStream(emitter, np.zeros(1, np.int32), frames)
        shifted = {**emitter.template.attributes, "position": emitter.template["position"] + [1.0 / 24, 0.0, 0.0]}
        moved = dataclasses.replace(emitter.template, attributes=shifted)
        stream.follow(dataclasses.replace(emitter, template=moved), np.zeros(1, np.int32), frames.over(2))
        columns = stream.between(0.0, 1.0 / 24)
        np.testing.assert_allclose(columns["velocity"][:, 0], 0.01 * percent, atol=1e-9)


def wired(**knobs) -> Graph:
    """Return a graph of a stream into a box of 6 x 6 cells of 5 cm, with a region around it."""
    graph = shot(end=5, material="material_liquid", size=0.1, cell_size=0.05)
    graph.nodes["sim"].inputs.pop("sources")
    region = graph.add("field_shape", "region", shape="box", centre=(0.0, 0.5, 0.0), size=(3.0, 3.0, 3.0))
    stream = graph.add("emit_stream", "stream", template=graph["block"], region=region, velocity=(0.0, -1.0, 0.0), **knobs)
    graph.nodes["sim"].connect("emitters", [stream])
    return graph


def test_a_region_stops_the_stream_when_it_is_full():
    """0.5 litres of a litre a frame at 0.024 m^3/s: to a particle, in a solve."""
    graph = wired(rate=0.024, volume=2.5e-3)
    last = Evaluator(graph).value("sim.particles", 5)
    assert len(last) == round(2.5e-3 / 0.025**3)


@pytest.mark.parametrize("room", [False, True])
def test_an_interrupted_stream_goes_on_with_the_same_bits(tmp_path, room):
    """A cook that is resumed after frame 3 has the particles of one that was not interrupted, closed streams included."""
    graph = wired(rate=0.024, volume=2.5e-3, room_only=room)
    ramp = graph.add("field_ramp", "ramp", direction=(1.0, 0.0, 0.0), low=-0.2, high=0.2)
    swirl = graph.add("field_noise", "swirl", kind="curl", evolution=2.0)
    graph.nodes["stream"].connect("opening", ramp)
    graph.nodes["stream"].connect("velocity_field", swirl)
    graph.add("write_cache", "cache", particles="sim.particles", name="stream")
    whole = execute(graph, out=tmp_path / "whole")
    execute(graph, frames=(1, 3), out=tmp_path / "parts")
    parts = execute(graph, out=tmp_path / "parts", resume=True)
    pytest.importorskip("pxr")
    from usd_io.stage_reader import read_points

    found = [read_points(each.revision_folder / "stream.usda", 5) for each in (whole, parts)]
    assert len(found[0]) == round(2.5e-3 / 0.025**3) or room
    for name in ("position", "velocity"):
        np.testing.assert_array_equal(found[0][name], found[1][name])


def test_a_thin_region_at_a_level_stops_the_stream_there():
    """A box of 6 x 6 cells is filled until half of the layer from 5 to 6 cells is full: to 5.5 cells, within one."""
    h, half = 0.02, 0.06
    layer = field_shape(shape=FieldShape.BOX, centre=(0.0, 5.5 * h, 0.0), size=(1.0, h, 1.0))
    spout = emit_box(SETTINGS, LIQUID, size=(2 * h, 2 * h, 2 * h), centre=(0.0, 9 * h, 0.0))
    emitter = emit_stream(SETTINGS, spout, layer, velocity=(0.0, -1.0, 0.0), rate=2e-3, volume=0.5 * h * (2 * half) ** 2)
    nothing = Particles({"position": np.zeros((0, 3))}, spout.materials, spout.spacing)
    walls = Walls((-half, 0.0, -half), (half, 1.0, half), (WallRule.SLIP,) * 6)
    solver = SubstepSolver(nothing, emitters=[emitter], cell_size=h, walls=walls, dt_max=0.004)
    solver.advance(1.2)
    (stream,) = solver.matter.streams
    brought = stream.born * stream.each / (2 * half) ** 2
    assert stream.closed and brought == pytest.approx(5.5 * h, abs=h)


def block_of(low: tuple[float, float, float], high: tuple[float, float, float]) -> Particles:
    """Return a block of liquid on cells of 2 cm."""
    size, centre = np.subtract(high, low), 0.5 * np.add(low, high)
    return emit_box(SETTINGS, LIQUID, size=tuple(size), centre=tuple(centre))


def test_room_is_where_no_matter_is():
    """Full inside of a block, half on its face, empty beside it: places take particles there and not in it."""
    solver = SubstepSolver(block_of((-0.2, -0.2, -0.2), (0.2, 0.2, 0.2)), cell_size=0.02)
    places = np.array([[0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.3, 0.0, 0.0]])
    np.testing.assert_allclose(filled_share(places, solver.particles), [1.0, 0.5, 0.0], atol=0.05)
    full = RoomAround(np.zeros((1, 3)), solver.particles)
    assert full.free(1e-6).all() and not full.free(64e-6).any()  # one more of 64 around it, or as much as there is
    crowd = RoomAround(np.zeros((20, 3)), solver.particles).free(1e-6)
    assert 0 < crowd.sum() < 20 and crowd[: crowd.sum()].all()  # one after the other, until it is full


def test_what_is_born_in_matter_presses_it():
    """Into a full block a particle brings its volume: J of it and of those around falls by as much, together."""
    solver = SubstepSolver(block_of((-0.2, -0.2, -0.2), (0.2, 0.2, 0.2)), cell_size=0.02, dtype=np.float64)
    columns = {"position": np.zeros((1, 3)), "material": np.zeros(1, np.int32)}
    born = RoomAround(columns["position"], solver.particles).press(columns, np.ones(1, bool), 1e-6)
    change = solver.particles.unpack("volume_change")
    assert born["volume_change"][0] < -0.003 and change.min() < -0.003 and (change <= 1e-12).all()
    assert 1e-6 * (change.sum() + born["volume_change"][0]) == pytest.approx(-1e-6, rel=0.15)


def test_streams_that_cannot_be_are_refused():
    """A rate that is never above 0; a region without a volume, or of vectors; each with its knob."""
    region = field_shape(shape=FieldShape.BALL)
    for knobs, says in (
        ({"rate": KeyedNumber([(1, 0.0, "step")])}, "emit_stream.rate"),
        ({"region": region}, "emit_stream.volume"),
        ({"region": SpatialField("PLACE", vector=True), "volume": 1.0}, "emit_stream.region"),
        ({"opening": SpatialField("PLACE", vector=True)}, "emit_stream.opening: is a field of vectors"),
        ({"opening": own("age")}, "emit_stream.opening: this field is looked at where there are no particles"),
        ({"velocity_field": region}, "emit_stream.velocity_field: is a field of numbers"),
    ):
        with pytest.raises(MpmNodesError, match=says):
            emit_stream(SETTINGS, NOZZLE, **knobs)


def test_a_nozzle_may_leave_its_opening_and_come_back():
    """Nothing comes while it is away, which is told, and then as much as without."""
    opening, clock, found = field_shape(radius=0.03, centre=(0.0, 0.5, 0.0)), Clock.of(SETTINGS), []
    stream = made(rate=2e-3, opening=opening)
    for frame, way in ((2, 0.0), (3, 0.2), (4, 0.0)):
        places = {**NOZZLE.attributes, "position": NOZZLE["position"] + [way, 0.0, 0.0]}
        template = dataclasses.replace(NOZZLE, attributes=places)
        if way:
            with pytest.warns(UserWarning, match=r"emit_stream.opening: is nowhere above 0 in the template"):
                emitter = emit_stream(SETTINGS, template, rate=2e-3, opening=opening)
        else:
            emitter = emit_stream(SETTINGS, template, rate=2e-3, opening=opening)
        stream.follow(emitter, np.zeros(1, np.int32), clock.over(frame))
        columns = stream.between(clock.over(frame).begin, clock.over(frame).end)
        found.append(0 if columns is None else len(columns["position"]))
    assert found[1] == 0 and found[::2] == pytest.approx([2e-3 / 24.0 / 1e-6] * 2, abs=1)


def test_a_stream_up_to_a_volume_is_over_then():
    """Half a litre at 6.4 litres a second: all of it after 0.08 s, and nothing later."""
    stream = made(volume=5e-4)
    columns = stream.between(-math.inf, 0.2)
    assert len(columns["position"]) == 500 and stream.between(0.2, 1.0) is None


def test_streams_with_a_look_for_room_count_what_was_born():
    """Where there is room for all, as many are born as the volume holds, and no more."""
    emitter = emit_stream(SETTINGS, NOZZLE, velocity=(0.0, -1.0, 0.0), volume=5e-4, room_only=True)
    nothing = Particles({"position": np.zeros((0, 3))}, NOZZLE.materials, NOZZLE.spacing)
    solver = SubstepSolver(nothing, emitters=[emitter], cell_size=0.02, gravity=(0, 0, 0))
    solver.advance(0.2)
    assert solver.particles.count == 500
    assert solver.step_context.report["emitted"]["volume"][0] == pytest.approx(5e-4)


def test_a_narrower_nozzle_goes_on_in_a_checkpoint():
    """Half of the template is gone, and then it only moves: what comes is as fast as without the checkpoint."""
    stream, clock = made(rate=2e-3), Clock.of(SETTINGS)
    half = NOZZLE["position"][:, 0] < 0.0
    narrow = dataclasses.replace(NOZZLE, attributes={name: column[half] for name, column in NOZZLE.attributes.items()})
    moved = dataclasses.replace(narrow, attributes={**narrow.attributes, "position": narrow["position"] + [0.01, 0.0, 0.0]})
    emitters = [emit_stream(SETTINGS, template, rate=2e-3) for template in (narrow, moved)]
    stream.follow(emitters[0], np.zeros(1, np.int32), clock.over(2))
    other = made(rate=2e-3)
    state = stream.state()
    assert state is not None
    other.restore(state)
    found = []
    for each in (stream, other):
        each.follow(emitters[1], np.zeros(1, np.int32), clock.over(3))
        found.append(each.between(1.0 / 24.0, 2.0 / 24.0))
    assert len(found[0]["position"]) > 50
    for name, column in found[0].items():
        assert np.array_equal(found[1][name], column), name


def test_a_closed_stream_stays_closed_in_a_checkpoint():
    """It knows what it has brought, that it is full, and of a nozzle that moved all that it was."""
    emitter = emit_stream(SETTINGS, NOZZLE, rate=2e-3, volume=1.0)
    stream, other = (MeteredStream(emitter, np.zeros(1, np.int32), Clock.of(SETTINGS)) for _ in range(2))
    shifted = {**emitter.template.attributes, "position": emitter.template["position"] + [0.01, 0.0, 0.0]}
    moved = dataclasses.replace(emitter, template=dataclasses.replace(emitter.template, attributes=shifted))
    stream.follow(moved, np.zeros(1, np.int32), Clock.of(SETTINGS).over(2))
    stream.closed, stream.born = True, 7
    state = stream.state()
    assert other.fits(state)
    other.restore(state)
    assert other.closed and other.born == 7 and other.between(0.0, 1.0) is None and not other.lasts_beyond(0.0)
    np.testing.assert_array_equal(other.phases, stream.phases)


@pytest.mark.parametrize("basis", ["linear", "bezier", "catmullRom"])
def test_a_nozzle_travels_a_curve_by_its_arc_length(tmp_path, basis):
    """A quarter of a circle of 0.5 m in centimetres: halfway along it lies at 45 degrees; the stage's units are taken off."""
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.CreateNew(str(tmp_path / "way.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    curve = UsdGeom.BasisCurves.Define(stage, "/way")
    curve.CreateTypeAttr("linear" if basis == "linear" else "cubic")
    if basis != "linear":
        curve.CreateBasisAttr(basis)
    if basis == "bezier":
        bow = 0.5522847498
        points = [(1, 0, 0), (1, 0, bow), (bow, 0, 1), (0, 0, 1)]
    else:
        ends = (0, 65) if basis == "linear" else (-1, 66)
        points = [(math.cos(k * math.pi / 128), 0, math.sin(k * math.pi / 128)) for k in range(*ends)]
    curve.CreatePointsAttr([tuple(50.0 * each for each in point) for point in points])
    curve.CreateCurveVertexCountsAttr([len(points)])
    stage.GetRootLayer().Save()
    travel = KeyedNumber([(1, 0.0, "linear"), (25, 1.0, "linear")])
    path = emit_stream(SETTINGS, NOZZLE, path=tmp_path / "way.usda", travel=travel).path
    assert path.lengths[-1] == pytest.approx(0.25 * math.pi, rel=3e-4)
    np.testing.assert_allclose(path.at(0.5), 0.5 * np.array([math.sqrt(0.5), 0.0, math.sqrt(0.5)]), atol=3e-4)
    with pytest.raises(InputError, match="0 curves are called 'there'; name one"):
        emit_stream(SETTINGS, NOZZLE, path=tmp_path / "way.usda", prim="there")


def test_a_frame_that_is_solved_again_takes_births_back():
    """A stream comes back to what it had brought, and is open again, where implicit substeps fail."""
    emitter = emit_stream(SETTINGS, NOZZLE, velocity=(0.0, -1.0, 0.0), volume=5e-4, room_only=True)
    nothing = Particles({"position": np.zeros((0, 3))}, NOZZLE.materials, NOZZLE.spacing)
    solver = SubstepSolver(nothing, emitters=[emitter], cell_size=0.02, gravity=(0, 0, 0))
    solver.advance(0.02)
    (stream,) = solver.matter.streams
    before, back = stream.born, solver.mark()
    solver.advance(0.2)
    assert stream.closed and stream.born == 500
    back()
    assert not stream.closed and stream.born == before < 500 and stream.lasts_beyond(solver.time)
    solver.advance(0.2)
    assert solver.particles.count == 500


RATES = [({"rate": 0.024}, 256), ({"rate": 24.0, "rate_unit": "mass"}, 256), ({"volume": 1e-3}, 64)]


@pytest.mark.parametrize(("knobs", "come"), RATES)
def test_the_estimate_is_what_comes(knobs, come):
    """Before the cook it is told to a layer how many particles come in four frames: by volume, by mass, up to a volume."""
    graph = wired(**knobs)
    graph.nodes["stream"].inputs.pop("region")
    told = preflight.estimate(Evaluator(graph).plan, 1)["sim"]["particles"]
    assert told == pytest.approx(come, abs=2) and len(Evaluator(graph).value("sim.particles", 5)) == pytest.approx(come, abs=1)


def test_a_stencil_is_estimated_and_refused_before_the_cook():
    """Half of a nozzle brings half; one that is closed brings nothing, which is told."""
    graph = wired()
    graph.nodes["stream"].inputs.pop("region")
    right = graph.add("field_shape", "right", shape="half_space", rotation=(0.0, 0.0, 90.0))
    graph.nodes["stream"].connect("opening", right)
    told = preflight.estimate(Evaluator(graph).plan, 1)["sim"]["particles"]
    assert told == pytest.approx(len(Evaluator(graph).value("sim.particles", 5)), abs=8)
    graph.nodes["right"].knobs["centre"] = (5.0, 0.0, 0.0)
    with pytest.raises(MpmNodesError, match=r"emit_stream.opening: is nowhere above 0"):
        preflight.estimate(Evaluator(graph).plan, 1)


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"rate": 0.1}, "emit_stream.volume"),
        ({"rate": {"keys": [[1, 0.0, "step"]]}, "volume": 1.0}, "emit_stream.rate"),
        ({"volume": 1.0, "path": "nothing.usda"}, "nothing.usda"),
    ],
)
def test_what_cannot_be_is_told_before_the_cook(knobs, says):
    """A region without a volume, a rate that is never above 0, and a curve that is not there."""
    with pytest.raises(MpmNodesError, match=says):
        preflight.estimate(Evaluator(wired(**knobs)).plan, 1)


def test_what_does_nothing_is_told_before_the_cook():
    """An opening that keys change, and what is of a path where there is none."""
    swept = {"keys": [[1, [0.0, 0.5, 0.0], "linear"], [3, [1.0, 0.5, 0.0], "linear"]]}
    keyed = {"keys": [[1, 0.0, "linear"], [3, 1.0, "linear"]]}

    def warned(centre: object = (0.0, 0.5, 0.0), **knobs: object) -> str:
        graph = shot(material="material_liquid")
        opening = graph.add("field_shape", "hole", centre=centre, radius=9.0)
        graph.add("emit_stream", "stream", template=graph["block"], opening=opening, **knobs)
        return " ".join(text for _, text in preflight.warnings_of(preflight.estimate(plan_graph(graph), 1)))

    assert warned() == "" and "emit_stream.opening: this field changes over time" in warned(swept)
    assert "emit_stream.follow_path: is given without a path" in warned(follow_path=True)
    assert "emit_stream.travel: is given without a path" in warned(travel=keyed)
