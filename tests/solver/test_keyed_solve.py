"""Keys in a cook: walls, materials, streams and nozzles follow theirs at every substep, and what moves gives its velocity."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from solver_scenes import LIQUID, cube, shot

from mpm_nodes.data import Emitter, MpmNodesError
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.materials.contract import LawError
from mpm_nodes.solver.emission import Stream
from mpm_nodes.solver.run import SubstepSolver

FLOATING = {"gravity": (0.0, 0.0, 0.0), "precision": "double"}


def mean(graph, frame: int, name: str = "position") -> np.ndarray:
    return Evaluator(graph).value("sim.particles", frame)[name].astype(float).mean(axis=0)


# ---------------------------------------------------------------- walls
def driven_bar(duration: float, c: float) -> float:
    """Return the mean speed [m/s], half way, of an elastic bar of 0.2 m whose foot rises by 0.24 m along a smooth key.

    By d'Alembert's waves: (c / L) (H(t) - 2 H(t - 2 L / c) + 2 H(t - 4 L / c) - ...), H the height of the foot. c lies between the
    speeds of a rod that is free to widen and of a layer that is not.
    """
    total, back, sign, shift = 0.0, 0.4 / c, 1.0, 0.0
    while shift < 0.5 * duration:
        s = (0.5 * duration - shift) / duration
        total += sign * (1.0 if shift == 0.0 else 2.0) * 0.24 * (3.0 * s**2 - 2.0 * s**3)
        sign, shift = -sign, shift + back
    return c / 0.2 * total


@pytest.mark.parametrize("rule", ["slip", "sticky", "separate"])
@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("substeps", ["explicit_apic", "implicit_apic"])
def test_a_rising_floor_lifts_what_lies_on_it(rule, scale, substeps):
    """A floor keyed to rise by 0.24 m in 6 frames carries a jelly block along, whatever the rule and the pace."""
    graph = shot(
        end=9,
        size=0.2,
        centre=(0.0, 0.1, 0.0),
        material="material_neo_hookean",
        knobs={"youngs_modulus": 1e5},
        wall_low=(-5.0, 0.0, -5.0),
        wall_high=(5.0, 5.0, 5.0),
        wall_y_low=rule,
        time_scale=scale,
        precision="double",
        substeps=substeps,
    )
    for frame, height in ((1, 0.0), (3, 0.0), (9, 0.24)):
        graph.key("sim.wall_low", frame, [-5.0, height, -5.0], "smooth")
    evaluator = Evaluator(graph)
    last = evaluator.value("sim.particles", 9)
    assert last["position"][:, 1].min() > 0.24 + 0.01  # nothing is left below
    # half way of a smooth key the floor's speed is 3/2 of the mean, per second of the shot; behind it a body that may let go does
    middle = evaluator.value("sim.particles", 6)
    speed = middle["velocity"][:, 1].mean()
    if substeps == "implicit_apic":  # long steps damp the waves that the floor sends through the block
        assert speed == pytest.approx(1.5 * 0.24 * 24 / 6, rel=0.2)
    else:
        driven = [scale * driven_bar(0.25 * scale, np.sqrt(modulus / 1000.0)) for modulus in (1.0e5, 1.35e5)]
        # a floor that may let go pushes but does not pull: the block is only as fast as it, to 20 %
        slowest = 0.8 * 1.5 * 0.24 * 24 / 6 if rule == "separate" else 0.9 * min(driven)
        assert slowest < speed < 1.1 * max(driven)
    assert middle["position"][:, 1].mean() == pytest.approx(0.12 + 0.1, abs=0.03)
    if rule != "separate" and scale == 1.0:
        assert last["position"][:, 1].mean() == pytest.approx(0.34, abs=0.03)


def test_walls_pass_each_other_nowhere():
    """Keys that turn the box inside out are refused as they do, with the cure."""
    graph = shot(end=4, wall_low=(-5.0, 0.0, -5.0), wall_high=(5.0, 2.0, 5.0), wall_y_low="slip")
    graph.key("sim.wall_low", 1, [-5.0, 0.0, -5.0])
    graph.key("sim.wall_low", 4, [-5.0, 3.0, -5.0])
    with pytest.raises(MpmNodesError, match=r"wall_low .* is not below wall_high .*give the corners of a box"):
        Evaluator(graph).value("sim.particles", 4)


def test_wall_friction_follows_its_keys():
    """A block slides freely until friction 2 comes with frame 4; from there it is held."""
    speeds = {}
    for name, rows in {"free": [[1, 0.0, "step"]], "keyed": [[1, 0.0, "step"], [4, 2.0, "step"]]}.items():
        graph = shot(
            end=6,
            size=0.2,
            centre=(0.0, 0.1, 0.0),
            velocity=(0.5, 0.0, 0.0),
            material="material_neo_hookean",
            knobs={"youngs_modulus": 5e4},
            wall_low=(-5.0, 0.0, -5.0),
            wall_high=(5.0, 5.0, 5.0),
            wall_y_low="separate",
        )
        graph.nodes["sim"].knobs["wall_friction"] = {"keys": rows}
        evaluator = Evaluator(graph)
        speeds[name] = [evaluator.value("sim.particles", frame)["velocity"][:, 0].mean() for frame in (4, 6)]
    assert speeds["free"] == pytest.approx([0.5, 0.5], rel=1e-3)
    assert speeds["keyed"][0] == pytest.approx(0.5, rel=1e-3) and speeds["keyed"][1] < 0.1


# ---------------------------------------------------------------- materials
def test_a_material_stiffens_at_its_key():
    """A block that spins apart while soft holds together as stiff as its key says: positions leave those of the soft one there."""
    found = {}
    for name, rows in {
        "soft": [[1, 1e3, "step"]],
        "keyed": [[1, 1e3, "step"], [4, 1e5, "step"]],
        "stiff": [[1, 1e5, "step"]],
    }.items():
        graph = shot(end=7, material="material_neo_hookean", **FLOATING)
        graph.nodes["block"].knobs["angular_velocity"] = [0.0, 12.0, 0.0]
        graph.nodes["matter"].knobs["youngs_modulus"] = {"keys": rows}
        evaluator = Evaluator(graph)
        frames = [evaluator.value("sim.particles", frame) for frame in range(1, 8)]
        found[name] = [np.ptp(p["position"][:, 0]) for p in frames], frames[-1].materials[0].params["youngs_modulus"]
    assert found["keyed"][0][:4] == found["soft"][0][:4]
    assert found["keyed"][0][6] < 0.97 * found["soft"][0][6]
    assert [found[name][1] for name in ("soft", "keyed", "stiff")] == [1e3, 1e5, 1e5]  # what is published is that of the frame


def test_two_materials_that_differ_by_a_key_stay_two():
    """Equal at first, different later: each keeps its own curve, merged emitters or not."""
    rows = [[1, 1e4, "linear"], [5, 1e5, "linear"]]
    graph = shot(end=3, material="material_neo_hookean", knobs={"youngs_modulus": {"keys": rows}})
    other = graph.add("material_neo_hookean", "other", youngs_modulus=1e4)
    second = graph.add("emit_box", "second", material=other, size=(0.2,) * 3, centre=(3.0, 1.0, 0.0))
    merged = graph.add("merge_particles", "merged", sources=[graph["block"], second])
    graph.nodes["sim"].connect("sources", [merged])
    state = Evaluator(graph).value("sim.state", 3)
    laws = state.solver.particles.laws
    moduli = [material.params["youngs_modulus"] for material in state.solver.snapshot(frame=3).materials]
    assert len(laws) == 2 and moduli == [5.5e4, 1e4] and not np.array_equal(laws[0].coefficients, laws[1].coefficients)


def test_a_key_that_a_law_does_not_allow_is_refused_as_the_solve_begins():
    """Every key's parameters are checked together before anything moves."""
    knobs = {"youngs_modulus": 1e4, "poisson_ratio": {"keys": [[1, 0.3, "linear"], [9, 0.499, "linear"]]}}
    assert len(Evaluator(shot(end=2, material="material_neo_hookean", knobs=knobs)).value("sim.particles", 2)) == 216
    bad = cube(LIQUID)
    material = LIQUID.__class__("liquid", {"bulk_modulus": keys.KeyedNumber([[1, 1e4, "linear"], [2, -1.0, "linear"]])}, 1000.0)
    with pytest.raises(LawError, match="bulk_modulus"):
        SubstepSolver(bad.__class__(dict(bad.attributes), (material,), bad.spacing))


def test_keyed_materials_survive_a_resume(tmp_path):
    """A cook that is resumed in the middle of a curve gives the bytes of one that was not interrupted."""

    def graph():
        made = shot(end=5, material="material_neo_hookean", centre=(0.0, 0.16, 0.0), velocity=(0.0, -1.0, 0.0))
        made.nodes["matter"].knobs["youngs_modulus"] = {"keys": [[1, 1e4, "linear"], [5, 8e4, "smooth"]]}
        made.nodes["sim"].knobs["time_scale"] = {"keys": [[1, 1.0, "smooth"], [5, 0.2, "linear"]]}
        made.add("emit_stream", "stream", template=made["block"], velocity=(2.0, 0.0, 0.0))
        made.nodes["stream"].knobs["velocity"] = {"keys": [[1, [2.0, 0.0, 0.0], "linear"], [5, [4.0, 1.0, 0.0], "linear"]]}
        nozzle = made.add("emit_box", "nozzle", material=made["matter"], size=(0.1,) * 3, centre=(2.0, 1.0, 0.0))
        made.nodes["nozzle"].knobs["centre"] = {"keys": [[1, [2.0, 1.0, 0.0], "linear"], [5, [2.0, 1.4, 0.0], "linear"]]}
        made.nodes["nozzle"].knobs["rotation"] = {"keys": [[1, [0, 0, 0], "linear"], [5, [0, 0, 40.0], "linear"]]}
        made.nodes["stream"].connect("template", nozzle)
        made.nodes["sim"].connect("emitters", [made["stream"]])
        made.add("write_cache", "cache", particles=made["sim"], attributes=("velocity", "id", "material"))
        return made

    def points(folder):
        return {file.name: file.read_bytes() for file in sorted(folder.rglob("cache.*.usdc"))}

    execute(graph(), out=tmp_path / "whole")
    execute(graph(), out=tmp_path / "cut", frames=(1, 3))
    execute(graph(), out=tmp_path / "cut", frames=(1, 5), resume=True)
    whole, cut = points(tmp_path / "whole"), points(tmp_path / "cut")
    assert len(whole) == 5 and whole == cut


# ---------------------------------------------------------------- streams
def test_a_keyed_stream_brings_the_integral_of_its_speed():
    """Speed 1 to 3 m/s over 0.5 s through 0.2 x 0.2 m: 1 m of matter, each layer with the speed of its time."""
    velocity = keys.KeyedVector([[0, (0.0, -1.0, 0.0), "linear"], [0.5, (0.0, -3.0, 0.0), "linear"]])
    nozzle = cube(LIQUID, cells=2)
    for steps in (7, 100):
        stream, times = Stream(Emitter(nozzle, velocity), np.zeros(1, np.int32)), np.linspace(0.0, 0.5, steps + 1)
        parts = [stream.between(-np.inf, 0.0), *(stream.between(a, b) for a, b in itertools.pairwise(times))]
        born = [(part["velocity"][:, 1], end) for part, end in zip(parts, times, strict=True) if part is not None]
        assert sum(len(speeds) for speeds, _ in born) == 16 * 21
        for speeds, end in born:
            assert (np.abs(-speeds - (1.0 + 4.0 * end)) <= 4.0 * 0.5 / steps + 1e-9).all()


def test_a_stream_that_stops_and_starts_again():
    """Speed 0 between two keys brings nothing there, and no gap nor overlap afterwards."""
    rows = [[0, (1.0, 0, 0), "step"], [0.2, (0.0, 0, 0), "step"], [0.4, (1.0, 0, 0), "step"]]
    stream = Stream(Emitter(cube(LIQUID, cells=2), keys.KeyedVector(rows), 0.0), np.zeros(1, np.int32))
    counts = [
        0 if part is None else len(part["position"])
        for part in (stream.between(a, a + 0.1) for a in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5))
    ]
    assert sum(counts[2:4]) <= 16 and sum(counts) == pytest.approx(16 * 8, abs=16)


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_a_moving_nozzle_takes_its_matter_along(scale):
    """A nozzle keyed to move at 1.2 m/s of the shot: what comes out has that velocity too, and its layers stay a lattice."""
    graph = shot(end=7, material="material_liquid", size=0.2, **FLOATING, time_scale=scale)
    graph.nodes["sim"].inputs.pop("sources")
    for frame, x in ((1, 0.0), (7, 0.3)):
        graph.key("block.centre", frame, [x, 1.0, 0.0])
    graph.add("emit_stream", "stream", template=graph["block"], velocity=(0.0, -2.0, 0.0), start_frame=2)
    graph.nodes["sim"].connect("emitters", [graph["stream"]])
    out = Evaluator(graph).value("sim.particles", 7)
    assert out["velocity"][:, 0] == pytest.approx(1.2, rel=1e-6)  # per second of the shot
    assert out["velocity"][:, 1] == pytest.approx(-2.0 * scale, rel=1e-6)
    # without forces the stream is as it left the nozzle: all of it stands below where the nozzle is now
    assert np.ptp(out["position"][:, 0]) == pytest.approx(0.15, abs=1e-6)
    assert out["position"][:, 0].mean() == pytest.approx(0.3, abs=1e-6)
    assert np.diff(np.unique(out["position"][:, 1].round(6))) == pytest.approx(0.05, abs=1e-5)


def test_a_nozzle_that_turns_turns_its_stream():
    """Keys of direction and of the template's rotation together: matter leaves along the direction of its time."""
    clock = Clock()
    velocity = keys.KeyedVector([[0, (1.0, 0.0, 0.0), "linear"], [1, (0.0, 1.0, 0.0), "linear"]])
    stream = Stream(Emitter(cube(LIQUID, cells=2), velocity), np.zeros(1, np.int32), clock)
    late = stream.between(0.9, 1.0)
    assert late is not None and np.abs(late["velocity"][:, 1] - 1.0).max() < 0.11 and np.abs(late["velocity"][:, 0]).max() < 0.11


def test_drops_of_a_keyed_template_are_as_it_is_then():
    """Copies of a body that grows: the second one is larger."""
    graph = shot(end=3, material="material_liquid", size=0.2, **FLOATING)
    graph.nodes["sim"].inputs.pop("sources")
    for frame, size in ((1, 0.2), (3, 0.4)):
        graph.key("block.size", frame, [size] * 3)
    graph.add("emit_drops", "drops", template=graph["block"], count=2, interval=2.0)
    graph.nodes["drops"].knobs["velocity"] = {"keys": [[1, [0, 0, 1.0], "step"], [3, [0, 5.0, 0], "step"]]}
    graph.nodes["sim"].connect("emitters", [graph["drops"]])
    evaluator = Evaluator(graph)
    assert [len(evaluator.value("sim.particles", frame)) for frame in (1, 2, 3)] == [64, 64, 64 + 512]
    speeds = np.unique(evaluator.value("sim.particles", 3)["velocity"].round(5), axis=0).tolist()
    assert speeds == [[0.0, 0.0, 1.0], [0.0, 5.0, 0.0]]


# ---------------------------------------------------------------- said before it is too late
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda g: g.add("emit_stream", "late", template=g["block"], start_frame=9), "the stream never comes"),
        (lambda g: g.add("emit_stream", "past", template=g["block"], start_frame=-9, duration=3), "it never comes"),
        (lambda g: g.add("emit_drops", "late", template=g["block"], start_frame=9), "no copy ever comes"),
        (lambda g: g.set("sim.start_frame", 9), "nothing moves; lower start_frame"),
        (
            lambda g: setattr(g, "settings", dataclasses.replace(g.settings, start=-2)),
            "nothing moves before frame 1; set start_frame to -2",
        ),
    ],
)
def test_what_comes_after_the_last_frame_is_said(change, says):
    """A stream, drops or an initial state behind the end of the shot: the cook goes on, and a warning says what to change."""
    graph, events = shot(end=2, **FLOATING), []
    added = change(graph)
    if added is not None:
        graph.nodes["sim"].connect("emitters", [added])
    execute(graph, on_event=events.append)
    messages = [event["message"] for event in events if event["event"] == "warning"]
    assert len([message for message in messages if says in message]) == 1


def test_a_clamp_whose_key_steps_away_lets_go():
    """A pin holds a cube up until frame 5, and then it falls: by that frame's key the ball is far away."""
    away = {"keys": [[1, [0.0, 1.0, 0.0], "step"], [5, [0.0, 99.0, 0.0], "step"]]}
    pin = ("pin", "collide_sphere", {"radius": 0.12, "rule": "sticky", "clamp": True, "centre": away})
    graph = shot(end=9, cell_size=0.05, size=0.2, material="material_neo_hookean", colliders=[pin], knobs={"youngs_modulus": 1e5})
    evaluator = Evaluator(graph)
    heights = {frame: evaluator.value("sim.particles", frame)["position"][:, 1].mean() for frame in range(1, 10)}
    assert abs(heights[4] - 1.0) < 0.01 and heights[9] < 0.9
