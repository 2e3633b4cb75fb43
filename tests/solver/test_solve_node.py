"""The solve node: its knobs mean what they say, and what it refuses it names."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes.data import MpmNodesError, StepContext
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.preflight import estimate, warnings_of
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.solver.divergence import SimulationDiverged
from mpm_nodes.solver.stages.gather import flip_share

G = 9.81


def centre(graph, frame: int, evaluator=None) -> tuple[np.ndarray, np.ndarray]:
    """Return mean position [m] and velocity [m/s] at a frame."""
    particles = (evaluator or Evaluator(graph)).value("sim.particles", frame)
    return particles["position"].mean(axis=0), particles["velocity"].mean(axis=0, dtype=float)


# ---------------------------------------------------------------- time
@pytest.mark.parametrize("scale", [1.0, 0.5, 2.0])
def test_time_scale_scales_the_time_of_free_fall(scale):
    """After n frames T = n scale / fps, v = -g T scale per second of the shot, and the fall is g T^2/2 + g T dt/2."""
    graph = shot(end=5, time_scale=scale, precision="double", dt_max=1e-3)
    begin, _ = centre(graph, 1)
    end, velocity = centre(graph, 5)
    time = 4 / 24 * scale
    assert velocity[1] == pytest.approx(-G * time * scale, rel=1e-9)
    assert begin[1] - end[1] == pytest.approx(0.5 * G * time**2, abs=0.51 * G * time * 1e-3)


def test_substep_length_never_shows_in_time():
    """Each frame ends at its time: 4 frames are 4/24 s of free fall whatever the substeps."""
    speeds = {dt: centre(shot(end=5, dt_max=dt, precision="double"), 5)[1][1] for dt in (1e-3, 7e-3, 1.0)}
    assert speeds == pytest.approx(dict.fromkeys(speeds, -G * 4 / 24), rel=1e-9)


def lift(scale: float, **knobs) -> tuple[float, np.ndarray]:
    """Return the height of a plate that rises by 0.3 m in six frames, and the heights of the matter stuck to it."""
    graph = shot(
        end=7,
        centre=(0.0, 0.14, 0.0),
        size=0.2,
        time_scale=scale,
        precision="double",
        knobs={"youngs_modulus": 1e5},
        colliders=[("plate", "collide_box", {"size": (1.0, 0.1, 1.0), "rule": "sticky", "centre": (0.0, -0.01, 0.0)})],
        **knobs,
    )
    for frame, height in ((1, -0.01), (7, 0.29)):
        graph.key("plate.centre", frame, [0.0, height, 0.0])
    evaluator = Evaluator(graph)
    return evaluator.value("plate", 7).shape.translations[-1][1], evaluator.value("sim.particles", 7)["position"][:, 1]


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_matter_rides_a_moving_collider_at_any_time_scale(scale):
    """A plate keyed in frames carries matter stuck to it: at the last frame it stands on the plate, not through or above it."""
    plate, heights = lift(scale)
    assert plate == pytest.approx(0.29)
    assert heights.min() == pytest.approx(plate + 0.05 + 0.015, abs=0.02)  # lowest layer: 25 mm above the plate, minus its give
    assert heights.max() < plate + 0.05 + 0.25


def test_before_its_start_frame_everything_stands_still():
    """start_frame = 3: frames 1 to 3 hold the initial state bit for bit, frame 4 is what frame 2 would have been."""
    held, free = Evaluator(shot(end=4, start_frame=3, precision="double")), Evaluator(shot(end=2, precision="double"))
    first = held.value("sim.particles", 1)
    for frame in (2, 3):
        assert np.array_equal(held.value("sim.particles", frame)["position"], first["position"])
    later, sooner = held.value("sim.particles", 4), free.value("sim.particles", 2)
    assert np.array_equal(later["position"], sooner["position"]) and np.array_equal(later["velocity"], sooner["velocity"])


def test_a_shot_may_start_at_any_frame():
    """Frames are numbers: a shot over -2..1 is the shot over 1..4."""
    early = shot(start=-2, end=1, start_frame=-2)
    assert np.array_equal(centre(early, 1)[0], centre(shot(end=4), 4)[0])


# ---------------------------------------------------------------- keyed knobs
def test_keyed_gravity_is_sampled_at_every_substep():
    """Gravity 0 -> (6, -12, 3) over 4 frames: v is the sum of g(t_k) dt exactly, and g T / 2 to first order in dt."""
    target, time, errors = np.array([6.0, -12.0, 3.0]), 4 / 24, []
    for dt in (1 / 480, 1 / 960):
        graph = shot(end=5, precision="double", dt_max=dt)
        graph.key("sim.gravity", 1, [0.0, 0.0, 0.0])
        graph.key("sim.gravity", 5, target.tolist())
        velocity = centre(graph, 5)[1]
        steps = 4 * round(1 / 24 / dt)
        np.testing.assert_allclose(velocity, target * time * 0.5 * (1.0 - 1.0 / steps), rtol=1e-7)
        errors.append(np.abs(velocity - 0.5 * target * time).max())
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=0.03)


def test_stepped_gravity_switches_at_its_key():
    """Gravity with step keys: off after frame 3, so the speed of frame 3 stays."""
    graph = shot(end=6, precision="double")
    graph.key("sim.gravity", 1, [0.0, -G, 0.0], "step")
    graph.key("sim.gravity", 3, [0.0, 0.0, 0.0], "step")
    evaluator = Evaluator(graph)
    speeds = [centre(graph, frame, evaluator)[1][1] for frame in (3, 4, 6)]
    assert speeds == pytest.approx([-G * 2 / 24] * 3, rel=1e-9)


def test_keyed_knob_of_a_stage_is_sampled_at_every_substep():
    """flip_fraction keyed inside the substep graph reaches the stage: from frame 3 on PIC damps a vibration."""
    kinetic = {}
    for name, keys in {"flip": [[1, 1.0, "step"]], "keyed": [[1, 1.0, "step"], [3, 0.0, "step"]]}.items():
        graph = shot(end=4, gravity=(0.0, 0.0, 0.0), material="material_neo_hookean")
        graph.nodes["block"].knobs["angular_velocity"] = [0.0, 30.0, 0.0]
        graph.nodes["sim"].knobs["substeps"] = {
            "preset": "explicit_apic",
            "set": {"transfer": "flip", "gather.flip_fraction": {"keys": keys}},
        }
        evaluator = Evaluator(graph)
        kinetic[name] = [float((evaluator.value("sim.particles", f)["velocity"].astype(float) ** 2).sum()) for f in range(1, 5)]
    assert kinetic["keyed"][:3] == kinetic["flip"][:3]
    assert kinetic["keyed"][3] < 0.9 * kinetic["flip"][3]


# ---------------------------------------------------------------- walls, materials, precision
def test_a_deleting_wall_takes_what_passes_it():
    """A block that leaves through a deleting floor: nothing lies below it, fewer are left each frame, in the end none."""
    graph = shot(
        end=8,
        centre=(0.0, 0.2, 0.0),
        velocity=(0.0, -2.0, 0.0),
        wall_y_low="delete",
        wall_low=(-5.0, 0.0, -5.0),
        wall_high=(5.0, 5.0, 5.0),
    )
    evaluator = Evaluator(graph)
    frames = [evaluator.value("sim.particles", frame) for frame in range(1, 9)]
    counts = [len(particles) for particles in frames]
    assert counts[0] == 216 and counts[-1] == 0 and counts == sorted(counts, reverse=True) and len(set(counts)) > 3
    assert all(particles["position"][:, 1].min() > 0.0 for particles in frames if len(particles))
    half = frames[counts.index(next(c for c in counts if c < 216))]
    assert np.isin(half["id"], frames[0]["id"]).all() and len(np.unique(half["id"])) == len(half)


def test_sticky_walls_hold_and_separating_ones_let_go():
    """A block thrown at the ceiling hangs on when it is sticky, and falls off when it separates."""
    heights = {}
    for rule in ("sticky", "separate"):
        graph = shot(
            end=9,
            centre=(0.0, 0.84, 0.0),
            velocity=(0.0, 1.0, 0.0),
            size=0.2,
            cell_size=0.05,
            knobs={"youngs_modulus": 1e5, "critical_stretch": 0.5},
            wall_y_high=rule,
            wall_low=(-1.0, -1.0, -1.0),
            wall_high=(1.0, 1.0, 1.0),
        )
        heights[rule] = centre(graph, 9)[0][1]
    assert heights["sticky"] > 0.83 and heights["separate"] < 0.7


def test_sticky_walls_stop_what_slides_along_them():
    """The lowest layer of a block that slides goes on where the floor slips, and stays where it sticks."""
    moved = {}
    for rule in ("sticky", "slip"):
        graph = shot(
            end=5,
            centre=(0.0, -0.9, 0.0),
            velocity=(0.5, 0.0, 0.0),
            size=0.2,
            cell_size=0.05,
            knobs={"youngs_modulus": 1e5, "critical_stretch": 0.5},
            wall_y_low=rule,
            wall_low=(-1.0, -1.0, -1.0),
            wall_high=(1.0, 1.0, 1.0),
        )
        evaluator = Evaluator(graph)
        begin, end = (evaluator.value("sim.particles", frame)["position"] for frame in (1, 5))
        lowest = begin[:, 1] < begin[:, 1].min() + 0.01
        moved[rule] = (end - begin)[lowest, 0].mean()
    way = 0.5 * 4 / 24
    assert abs(moved["sticky"]) < 0.1 * way and moved["slip"] == pytest.approx(way, rel=0.02)


def two_blocks(**solve):
    """Return a shot of a jelly block above a liquid one, 8 m apart."""
    graph = shot(end=3, material="material_liquid", knobs={"label": "brine", "bulk_modulus": 1e5}, **solve)
    jelly = graph.add("material_neo_hookean", "jelly", label="jelly", youngs_modulus=1e6)
    block = graph.add("emit_box", "second", material=jelly, size=(0.3, 0.3, 0.3), centre=(0.0, 9.0, 0.0))
    graph.nodes["sim"].connect("sources", [graph["block"], block])
    return graph


def test_several_materials_keep_their_laws():
    """Two materials in one solve: each particle has its own law's state, and the stiffest limits dt by name."""
    events = []
    graph = two_blocks()
    result = execute(graph, on_event=events.append)
    out = result.outputs["sim"]["particles"]
    assert [material.label for material in out.materials] == ["brine", "jelly"]
    liquid = out["material"] == 0
    assert liquid.sum() == 216 and (out["position"][liquid][:, 1] < 2).all() and (out["position"][~liquid][:, 1] > 8).all()
    assert np.array_equal(out["deformation"][liquid], np.broadcast_to(np.eye(3), (216, 3, 3)))  # never touched
    limits = {
        (event["limit"], event["limit_material"]) for event in events if event["event"] == "frame_done" and event["frame"] > 1
    }
    assert limits == {("elastic wave", "jelly")}


def test_double_precision_agrees_with_single_to_its_rounding():
    """The same source in float64: attributes are float64, and differ from float32 by its rounding only."""
    found = {name: Evaluator(shot(end=3, precision=name, dt_max=2e-3)).value("sim.particles", 3) for name in ("single", "double")}
    assert found["double"]["velocity"].dtype == np.float64 and found["single"]["velocity"].dtype == np.float32
    assert np.abs(found["double"]["position"] - found["single"]["position"]).max() < 1e-6
    assert np.abs(found["double"]["velocity"] - found["single"]["velocity"]).max() < 1e-5


# ---------------------------------------------------------------- what is refused
def test_a_dt_min_that_is_too_long_diverges_and_says_so():
    """Frame, substep, dt, particle, place, speed, cause, cure and exit code 4; the frame before is kept."""
    graph = shot(
        end=9,
        dt_min=0.02,
        dt_max=0.03,
        material="material_neo_hookean",
        knobs={"youngs_modulus": 1e7},
        colliders=[("ground", "collide_plane", {"centre": (0.0, 0.83, 0.0)})],
    )
    frames = []
    with pytest.raises(SimulationDiverged) as caught:
        execute(graph, on_event=lambda e: frames.append(e["frame"]) if e["event"] == "frame_done" else None)
    message = str(caught.value)
    assert caught.value.exit_code == 4 and "\n" not in message
    for part in (
        "sim, frame",
        "substep",
        "dt 0.0208",
        "particle ",
        " m has speed ",
        "allowed is one cell of 0.1 m",
        "likely cause: dt was held at dt_min = 0.02",
        "cure: lower the dt_min of the solve",
    ):
        assert part in message, (part, message)
    assert frames and max(frames) < 9


@pytest.mark.parametrize(("change", "says"), [
    (lambda g: g.nodes["sim"].inputs.pop("sources"), "no wire into sources or emitters.*wire something into sources"),
    (lambda g: g.set("block.size", [1e-6, 0.3, 0.3]), None),
    (lambda g: (g.set("sim.wall_low", [0.0, 9.0, 0.0]), g.set("sim.wall_high", [1.0, 1.0, 1.0]), g.set("sim.wall_y_low", "slip")),
     r"wall_low \(0.0, 9.0, 0.0\) is not below wall_high"),
])  # fmt: skip
def test_an_impossible_solve_is_refused(change, says):
    """No matter at all, and walls the wrong way round: one line with the cure, exit code 2. A thin box keeps one layer."""
    graph = shot(end=2)
    change(graph)
    if says is None:
        assert len(Evaluator(graph).value("sim.particles", 2)) == 36
        return
    with pytest.raises(MpmNodesError, match=says) as caught:
        execute(graph)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


def test_a_ball_too_small_for_any_particle_is_refused():
    """Zero particles is an error of the emitter that names size, spacing and cure, not an empty solve."""
    graph = shot(end=2)
    ball = graph.add("emit_sphere", "ball", material=graph["matter"], radius=0.001, centre=(0.0, 1.0, 0.0))
    graph.nodes["sim"].connect("sources", [ball])
    with pytest.raises(
        MpmNodesError, match=r"no particle fits .* spacing of 0.05 m; make the region larger or settings.cell_size smaller"
    ):
        execute(graph)


@pytest.mark.parametrize("cell_size", [1e-4, 1e-7])
def test_a_cell_size_that_needs_more_memory_than_there_is_is_refused_before_the_run(cell_size):
    """The preflight names node, need, what is free, the knob and its value; nothing is written."""
    with pytest.raises(GraphError) as caught:
        execute(shot(cell_size=cell_size, size=2.0))
    message = str(caught.value)
    assert "of memory" in message and "are free" in message and f"raise settings.cell_size (now {cell_size:g} m" in message


@pytest.mark.parametrize(("knobs", "says"), [
    ({"substeps": "implicit_apic"}, "they are implicit"),
    ({"substeps": "auto"}, "they are implicit"),
    ({"precision": "double"}, "double precision runs on the CPU only"),
])  # fmt: skip
def test_what_cannot_run_on_a_gpu_is_refused_before_the_run(knobs, says):
    """The graph knows it, whether there is a GPU or not."""
    with pytest.raises(MpmNodesError, match=rf"sim.*solve\.device: .*{says}"):
        estimate(plan_graph(shot(device="cuda", **knobs)), 1)


def test_unknown_substep_settings_are_refused_before_the_run():
    """A misspelt parameter names its place and the nearest ones."""
    graph = shot()
    graph.nodes["sim"].knobs["substeps"] = {"preset": "explicit_apic", "set": {"kernl": "cubic"}}
    with pytest.raises(GraphError, match=r"sim.substeps.kernl: .*kernel"):
        execute(graph)


def test_what_foam_puts_in_and_takes_out_is_reported():
    """Each frame of a cream thrown on the ground tells of its resampling: counts that explain the number of particles."""
    events = []
    foam = {"preset": "continuum_foam", "set": {"resampling_interval": 5}}
    graph = shot(
        end=4,
        cell_size=0.05,
        centre=(0.0, 0.2, 0.0),
        velocity=(0.0, -3.0, 0.0),
        material="material_herschel_bulkley",
        colliders=[("ground", "collide_plane", {})],
        substeps=foam,
        fps=120.0,
    )
    result = execute(graph, on_event=events.append)
    told = [event for event in events if event["event"] == "resampling"]
    assert len(told) == 3 and all(event["calls"] > 0 for event in told)
    count = 6**3 * 8 + sum(event["inserted"] - event["merged"] for event in told)
    assert len(result.outputs["sim"]["particles"]) == count
    assert not [event for event in events if event["event"] == "removed"]  # it never tears: nothing to remove


@pytest.mark.parametrize(
    ("substeps", "after"),
    [
        ("continuum_foam", {"preset": "continuum_foam", "set": {"gather.per_substep": True}}),
        (
            {"preset": "continuum_foam", "set": {"cfl": 0.3}},
            {"preset": "continuum_foam", "set": {"gather.per_substep": True, "cfl": 0.3}},
        ),
        ("explicit_apic", "explicit_apic"),
        ({"preset": "implicit_apic", "set": {"cfl": 0.3}}, {"preset": "implicit_apic", "set": {"cfl": 0.3}}),
    ],
    ids=["foam", "foam with settings", "APIC", "other settings"],
)
def test_solves_of_version_3_keep_their_share_of_flip_in_every_substep(substeps, after):
    """Later ones damp by time."""
    graph = shot(end=2)
    raw = graph.to_json()
    raw["nodes"]["sim"]["version"], raw["nodes"]["sim"]["knobs"]["substeps"] = 3, substeps
    assert load_graph(raw).nodes["sim"].knobs["substeps"] == after
    raw["nodes"]["sim"]["version"] = 4
    assert load_graph(raw).nodes["sim"].knobs["substeps"] == substeps


def test_the_share_of_flip_damps_by_time():
    """As a power: two half steps take what one takes, and the source's step on its cells 0.95."""
    step = StepContext(dt=2e-4, cell_size=0.01)
    assert flip_share(step, 0.9, True) == 0.9
    halves = flip_share(dataclasses.replace(step, dt=1e-4), 0.9, False)
    assert halves < 1.0 and flip_share(step, 0.9, False) == pytest.approx(halves**2)
    assert flip_share(StepContext(dt=1e-5, cell_size=1.6e-3), 0.95, False) == pytest.approx(0.95)


def test_a_least_step_above_the_longest_is_told_before_the_cook():
    """dt_min counts then, so that dt_max would do nothing without a word."""

    def warned(**knobs: float) -> list[str]:
        return [text for _, text in warnings_of(estimate(plan_graph(shot(**knobs)), 1)) if "dt_min" in text]

    assert warned(dt_min=2e-3, dt_max=1e-3) == [
        "solve.dt_min: 0.002 s is longer than dt_max, 0.001 s, and holds; lower it, or raise dt_max"
    ]
    assert warned(dt_min=1e-3, dt_max=1e-3) == []
