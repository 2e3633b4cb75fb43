"""Streams: what comes out depends on neither the length of the substeps nor on where frames begin."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from solver_scenes import JELLY, LIQUID, cube, shot

from mpm_nodes.data import BIRTH, Emitter, Metering, MpmNodesError, Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.time.keys import KeyedVector
from mpm_nodes.solver.emission import Flow, Stream
from mpm_nodes.solver.metering import emission_of
from mpm_nodes.solver.run import SubstepSolver

SPEED = 2.0
NOZZLE = cube(LIQUID, (0.0, 0.0, 0.0), cells=2)
"""0.2 m long along every axis, 64 particles 0.05 m apart."""


def emitted(stream: Stream, times: np.ndarray, end: float) -> dict[str, np.ndarray]:
    """Return all that a stream gave in the spans between `times`, carried on to `end`, in the order of their places."""
    times = np.concatenate([[-np.inf], times])  # what is there at the initial state comes first
    parts = [stream.between(begin, stop) for begin, stop in itertools.pairwise(times)]
    kept = [(part, stop) for part, stop in zip(parts, times[1:], strict=True) if part is not None]
    position = np.concatenate([part["position"] + (end - stop) * stream.flow.velocity(stop) for part, stop in kept])
    position = position[np.lexsort(position.round(9).T)]
    return {"position": position, "velocity": np.concatenate([part["velocity"] for part, _ in kept])}


@pytest.mark.parametrize("direction", [(0.0, -1.0, 0.0), (0.6, 0.0, 0.8)])
def test_a_stream_is_the_same_for_any_substeps(direction):
    """The stream after 0.37 s is the same point set, to 1e-12, whether cut into 1, 7, 1,000 or random spans."""
    stream = Stream(Emitter(NOZZLE, tuple(SPEED * np.array(direction)), 0.05), np.zeros(1, np.int32))
    end, random = 0.37, np.random.default_rng(1)
    cuts = [np.linspace(0.0, end, n + 1) for n in (1, 7, 1000)] + [np.concatenate([[0.0], np.sort(random.random(90)) * end, [end]])]
    found = [emitted(stream, times, end) for times in cuts]
    for other in found[1:]:
        assert len(other["position"]) == len(found[0]["position"]) > 0
        np.testing.assert_allclose(other["position"], found[0]["position"], atol=1e-12)


def test_particles_know_when_they_came_out():
    """With a column of births each lies as far from the exit as it moved since its own."""
    nozzle = Particles({**NOZZLE.attributes, BIRTH: np.zeros(len(NOZZLE))}, NOZZLE.materials, NOZZLE.spacing)
    found = Stream(Emitter(nozzle, (0.0, -SPEED, 0.0)), np.zeros(1, np.int32)).between(0.1, 0.37)
    exits = found["position"][:, 1] + SPEED * (0.37 - found[BIRTH])
    assert np.ptp(exits) < 1e-12 and found[BIRTH].min() < 0.13 and found[BIRTH].max() > 0.34


def test_a_stream_has_no_seam():
    """Along an axis of the lattice the stream is one lattice: neighbours are one spacing apart, across repetitions too."""
    stream = Stream(Emitter(NOZZLE, (0.0, -SPEED, 0.0)), np.zeros(1, np.int32))
    position = emitted(stream, np.linspace(0.0, 1.0, 300), 1.0)["position"]
    heights = np.unique(position[:, 1].round(9))
    np.testing.assert_allclose(np.diff(heights), 0.05, atol=1e-9)
    assert len(position) == 16 * len(heights) == 16 * 41  # 2 m of stream, and the layer that stands at the exit


def test_jitter_opens_no_gap_between_copies():
    """Particles that were shifted by a quarter of their spacing come in the period and in the layers of the lattice."""
    shifted = NOZZLE["position"] + np.random.default_rng(3).uniform(-0.0125, 0.0125, (len(NOZZLE), 3))
    nozzle = Particles({**NOZZLE.attributes, "position": shifted}, NOZZLE.materials, NOZZLE.spacing)
    stream = Stream(Emitter(nozzle, (0.0, -SPEED, 0.0)), np.zeros(1, np.int32))
    assert stream.length == pytest.approx(0.2, abs=1e-12)
    heights = emitted(stream, np.linspace(0.0, 1.0, 300), 1.0)["position"][:, 1]
    layers = np.bincount(np.rint((heights.max() - heights) / 0.05).astype(int))
    assert (layers[1:-1] > 0).all() and layers.sum() == pytest.approx(16 * 40, abs=16)


def births(jitter: float, metering: Metering | None, times: np.ndarray, axis=(0.0, -1.0, 0.0)) -> np.ndarray:
    """Return where what comes in the spans between `times` is at their end [m], by particle of the template and time of birth."""
    named = {**NOZZLE.attributes, BIRTH: np.zeros(len(NOZZLE)), "who": np.arange(len(NOZZLE))}
    nozzle = Particles(named, NOZZLE.materials, NOZZLE.spacing)
    velocity = tuple(SPEED * np.array(axis))
    stream = emission_of(Emitter(nozzle, velocity, metering=metering, jitter=jitter), np.zeros(1, np.int32))
    spans = [(stop, stream.between(begin, stop)) for begin, stop in itertools.pairwise([-np.inf, *times])]
    found = [(part[BIRTH], part["who"], part["position"] + (times[-1] - stop) * part["velocity"]) for stop, part in spans if part]
    birth, who, place = (np.concatenate(part) for part in zip(*found, strict=True))
    return place[np.lexsort((birth, who))]


@pytest.mark.parametrize("metering", [None, Metering(rate=0.08)], ids=["plain", "metered"])
def test_births_are_shifted_across_the_stream_each_by_itself(metering):
    """As many come as without, as far along, whatever the substeps; shifts fill a spacing evenly, and none is that before."""
    times = np.linspace(0.0, 1.0, 301)
    still, moved, half = (births(jitter, metering, times) for jitter in (0.0, 1.0, 0.5))
    shift = (moved - still) / NOZZLE.spacing
    assert np.abs(shift[:, 1]).max() < 1e-12 and np.abs(shift).max() <= 0.5
    assert len(np.unique(shift.round(6), axis=0)) == len(shift) > 600
    np.testing.assert_allclose(shift.mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose(np.cov(shift[:, [0, 2]].T), np.eye(2) / 12.0, atol=0.02)
    np.testing.assert_allclose(half - still, 0.5 * (moved - still), atol=1e-12)
    others = np.append(np.sort(np.random.default_rng(4).uniform(0.0, 1.0, 40)), 1.0)
    np.testing.assert_allclose(births(1.0, metering, others), moved, atol=1e-9)
    askew = births(1.0, metering, times, (0.6, 0.0, 0.8)) - births(0.0, metering, times, (0.6, 0.0, 0.8))
    assert np.abs(askew @ (0.6, 0.0, 0.8)).max() < 1e-12 < np.ptp(askew @ (0.8, 0.0, -0.6))


def test_mass_rate():
    """density * area * speed: 1000 * 0.04 * 2 kg/s, to one layer of particles, in a solve with its own substeps."""
    still = cube(LIQUID, (5.0, 0.0, 0.0))
    solver = SubstepSolver(still, emitters=[Emitter(NOZZLE, (0.0, -SPEED, 0.0), 0.0, 0.3)], gravity=(0, 0, 0))
    before = float(solver.particles.unpack("mass")[: len(still)].sum())  # a layer of the stream is there from the start
    masses = []
    for _ in range(5):
        solver.advance(0.1)
        masses.append(float(solver.particles.unpack("mass").sum()) - before)
    layer = 1000.0 * 0.05**3 * 16
    assert masses[0] == pytest.approx(8.0, abs=1.01 * layer) and masses[1] == pytest.approx(16.0, abs=1.01 * layer)
    assert masses[2] == masses[3] == masses[4] == pytest.approx(24.0, rel=1e-6)  # it ended at 0.3 s: exactly its book
    ids = solver.particles.unpack("id")
    assert len(np.unique(ids)) == len(ids) and ids.max() == len(ids) - 1


@pytest.mark.parametrize(("duration", "layers"), [(0.3, 12), (0.31, 13), (0.024, 1), (0.025, 1), (0.026, 2)])
def test_a_stream_that_ends_brings_what_its_time_says(duration, layers):
    """Layers of 0.05 m at 2 m/s come every 0.025 s, from its start on and before its end: no fencepost, for any spans."""
    stream = Stream(Emitter(NOZZLE, (0.0, -SPEED, 0.0), 0.1, 0.1 + duration), np.zeros(1, np.int32))
    for times in (np.array([0.0, 1.0]), np.linspace(0.0, 1.0, 334), np.array([0.0, 0.1, 0.1 + duration, 1.0])):
        assert len(emitted(stream, times, 1.0)["position"]) == 16 * layers


def test_free_stream_in_a_solve_stays_a_lattice():
    """Without gravity and contact a liquid stream leaves the nozzle unstrained: no seam makes pressure, J - 1 stays 0."""
    solver = SubstepSolver(
        cube(LIQUID, (5.0, 0.0, 0.0)), emitters=[Emitter(NOZZLE, (0.0, -SPEED, 0.0))], gravity=(0, 0, 0), dtype=np.float64
    )
    solver.advance(0.25)
    out = solver.snapshot()
    stream = out["position"][:, 0] < 3.0
    assert stream.sum() == 16 * 11  # 0.5 m, and the layer that stands at the exit
    assert np.abs(out["velocity"][stream] - [0.0, -SPEED, 0.0]).max() < 1e-9
    assert np.abs(out["volume_change"][stream]).max() < 1e-9


def test_a_stream_may_end_within_rounding_of_a_substep():
    """A substep that ends just before a stream does, as far as doubles tell, leaves nothing for the next: not less than nothing."""
    for end in (0.1, 0.2, 0.25, 0.3):  # whole layers
        stream = Stream(Emitter(NOZZLE, (0.0, -SPEED, 0.0), end=end), np.zeros(1, np.int32))
        spans = (-np.inf, 0.0), (0.0, end - 1e-12), (end - 1e-12, end + 0.01)
        parts = [stream.between(*span) for span in spans]
        assert len(parts[0]["position"]) == 16 and parts[2] is None
        assert len(parts[1]["position"]) == 16 * round(SPEED * end / 0.05)


def test_streams_bring_their_own_material_and_columns():
    """Two streams of two materials into a third: each particle has the material, density and columns of its source."""
    jelly = cube(JELLY, cells=2, heat=7.0)
    emitters = [Emitter(NOZZLE, (0.0, -SPEED, 0.0)), Emitter(jelly, (0.0, SPEED, 0.0))]
    solver = SubstepSolver(cube(LIQUID, (5.0, 0.0, 0.0), stiffness_scale=1.5), emitters=emitters, gravity=(0, 0, 0))
    solver.advance(0.05)
    out = solver.snapshot()
    assert [m.label for m in out.materials] == ["syrup", "jelly"]
    rising = out["velocity"][:, 1] > 1.0
    assert set(out["material"][rising]) == {1} and set(out["material"][~rising]) == {0}
    assert set(out["heat"][rising]) == {7.0} and set(out["heat"][~rising]) == {0.0}
    assert set(out["stiffness_scale"][:216]) == {1.5} and set(out["stiffness_scale"][216:]) == {1.0}


def test_a_graph_may_begin_with_a_stream_alone():
    """emit_stream in a graph without sources: empty before its start frame, one layer there, then the rate of the stream."""
    graph = shot(end=4, material="material_liquid", size=0.2, cell_size=0.1)
    graph.nodes["sim"].inputs.pop("sources")
    stream = graph.add("emit_stream", "stream", template=graph["block"], velocity=(0.0, -2.4, 0.0), start_frame=2)
    graph.nodes["sim"].connect("emitters", [stream])
    evaluator = Evaluator(graph)
    counts = [len(evaluator.value("sim.particles", frame)) for frame in range(1, 5)]
    assert counts == [0, 16, 48, 80]  # 0.1 m a frame: two layers of 16


@pytest.mark.parametrize(
    ("velocity", "says"), [((0.0, 0.0, 0.0), "64 particles at 0 m/s; a stream needs particles and a speed > 0")]
)
def test_a_stream_without_speed_is_refused(velocity, says):
    """A stream that would never come is an error."""
    with pytest.raises(MpmNodesError, match=says):
        Stream(Emitter(NOZZLE, velocity), np.zeros(1, np.int32))


def test_what_has_come_out_of_a_keyed_stream_is_the_integral_of_its_speed():
    """Eased from 1 to 3 m/s over a second: u + 2 u^3 - u^4 metres after u seconds."""
    clock = Clock(fps=24.0)
    velocity = KeyedVector([(clock.origin, (0.0, -1.0, 0.0), "smooth"), (clock.origin + 24.0, (0.0, -3.0, 0.0), "smooth")])
    flow = Flow(velocity, clock, 0.0)
    for u in (0.1, 0.31, 0.77, 1.0):
        assert flow.length(u) == pytest.approx(u + 2.0 * u**3 - u**4, rel=1e-9)


def test_a_nozzle_with_other_particles_moves_as_its_middle_does():
    """What comes out of a template that has changed takes the motion of its middle along: 0.24 m in 1/24 s."""
    emitter = Emitter(NOZZLE, (0.0, -SPEED, 0.0))
    stream, clock = Stream(emitter, np.zeros(1, np.int32)), Clock(fps=24.0)
    half = np.arange(len(NOZZLE)) % 4 != 0
    columns = {name: column[half] for name, column in NOZZLE.attributes.items()}
    place = NOZZLE["position"][half]
    columns["position"] = place - place.mean(axis=0) + NOZZLE["position"].mean(axis=0) + [0.01, 0.0, 0.0]
    stream.follow(
        Emitter(Particles(columns, NOZZLE.materials, NOZZLE.spacing), (0.0, -SPEED, 0.0)),
        np.zeros(1, np.int32),
        clock.over(int(clock.origin) + 1),
    )
    found = stream.between(0.0, 1.0 / 24.0)
    np.testing.assert_allclose(found["velocity"], np.tile([0.24, -SPEED, 0.0], (len(found["velocity"]), 1)), atol=1e-12)
