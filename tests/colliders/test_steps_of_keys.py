"""A key that steps cuts: the body is elsewhere in the next frame, moves nothing on its way, and matter that it held is let go."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes import Graph, execute
from mpm_nodes.data import FrameContext, GraphSettings
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.time import keys
from mpm_nodes.nodes import collide
from mpm_nodes.solver.frame_progress import COLLAPSE, LEAST_COLLAPSE, FrameProgress, TooManySubsteps

STEPS = [[1, (-0.2, 1.0, 0.0), "step"], [3, (-0.2, 3.0, 0.0), "step"]]


def context(frame: int, rows: list, knob: str) -> FrameContext:
    """A frame of a node of which one knob is keyed."""

    def sample(name: str, at: float):
        return keys.sample(rows, at) if name == knob else {"rotation": (0.0, 0.0, 0.0), "orientation": (1.0, 0.0, 0.0, 0.0)}[name]

    def sample_uncut(name: str, at: float):
        return keys.sample(keys.before_cut(rows, frame - 1, frame), at) if name == knob else sample(name, at)

    return FrameContext(frame, GraphSettings(start=1, end=9), sample=sample, sample_uncut=sample_uncut, keyed=frozenset({knob}))


@pytest.mark.parametrize("kind", ["sphere", "box", "capsule", "plane"])
@pytest.mark.parametrize("at", [3, 2.25])
def test_a_body_that_steps_does_not_move(kind, at):
    """In the frame of the step it keeps its pose; it is shown where it is then, and stands there in the next frame."""
    rows = [STEPS[0], [at, STEPS[1][1], "step"]]
    node = getattr(collide, f"collide_{kind}")
    made = {frame: node(context(frame, rows, "centre"), centre=keys.sample(rows, frame)) for frame in (2, 3, 4)}
    for frame, height in ((2, 1.0), (3, 1.0), (4, 3.0)):
        np.testing.assert_allclose(made[frame].shape.translations, [(-0.2, height, 0.0)])
    middles = {frame: made[frame].mesh.points[:, 1].mean() for frame in made}
    assert middles == pytest.approx({2: 1.0, 3: 3.0, 4: 3.0})


def test_it_moves_until_it_steps():
    """A straight way that a step ends: the pose keys follow it to the step, and stay there."""
    rows = [[1, (0.0, 0.0, 0.0), "linear"], [2.5, (1.5, 0.0, 0.0), "step"], [3, (9.0, 0.0, 0.0), "step"]]
    shape = collide.collide_sphere(context(3, rows, "centre"), centre=(9.0, 0.0, 0.0)).shape
    expected = np.minimum(2.0 + np.arange(9) / 8, 2.5) - 1.0
    np.testing.assert_allclose(shape.translations[:, 0], expected)


def test_turns_step_as_places_do():
    """A box that is turned by a quarter at once drags nothing around."""
    rows = [[1, (0.0, 0.0, 0.0), "step"], [3, (0.0, 0.0, 90.0), "step"]]
    given = context(3, rows, "rotation")
    whole = given.sample
    object.__setattr__(given, "sample", lambda name, at: (0.0, 0.0, 0.0) if name == "centre" else whole(name, at))
    uncut = given.sample_uncut
    object.__setattr__(given, "sample_uncut", lambda name, at: (0.0, 0.0, 0.0) if name == "centre" else uncut(name, at))
    box = collide.collide_box(given, size=(0.4, 0.2, 0.2), rotation=(0.0, 0.0, 90.0))
    assert len(box.shape.pose_times) == 1
    np.testing.assert_allclose(np.ptp(box.mesh.points, axis=0), (0.2, 0.4, 0.2), atol=1e-12)


def test_equal_keys_are_no_step():
    """A key that repeats the value changes nothing, and neither does a step outside of the frame."""
    rows = [[1, 2.0, "step"], [3, 2.0, "linear"], [5, 4.0, "step"], [7, 5.0, "step"]]
    assert keys.before_cut(rows, 2, 3) == rows and keys.before_cut(rows, 5, 6) == rows
    assert keys.before_cut(rows, 6, 7) == rows[:3] and keys.before_cut(rows, 0, 9) == rows[:3]


@pytest.mark.parametrize("clamp", [True, False])
@pytest.mark.parametrize("moved", ["box", "walls"])
def test_matter_is_let_go_without_velocity(clamp, moved):
    """What hung on a body that steps two metres up, or on walls, falls freely: no faster than free fall, in as many substeps."""
    graph = Graph(cell_size=0.04, fps=24, start=1, end=5)
    gel = graph.add("material_neo_hookean", "gel", youngs_modulus=1e5)
    bar = graph.add("emit_box", "bar", material=gel, size=(0.4, 0.12, 0.12), centre=(0.0, 1.0, 0.0))
    sides = {} if moved == "box" else {f"wall_{axis}_{end}": "sticky" for axis in "xyz" for end in ("low", "high")}
    pin = graph.add("collide_box", "pin", size=(0.1, 0.2, 0.2), centre=(-0.2, 1.0, 0.0), rule="sticky", clamp=clamp)
    graph.add("solve", "hang", sources=[bar], colliders=[pin], wall_low=(-1, 0, -1), wall_high=(1, 4, 1), **sides)
    for row in STEPS if moved == "box" else ():
        graph.key("pin.centre", *row)
    for frame, low in ((1, -1.0), (3, -3.0)) if moved == "walls" else ():
        graph.key("hang.wall_low", frame, (low, 0.0, -1.0), "step")
    count: dict[int, int] = {}

    def hear(event):
        if event["event"] == "substep":
            count[event["frame"]] = count.get(event["frame"], 0) + 1

    found = execute(graph, on_event=hear).outputs["hang"]["particles"]
    assert np.linalg.norm(found["velocity"], axis=1).max() < 2.0 * 9.81 * 4 / 24
    assert max(count.values()) <= 2 * count[2]
    assert found["position"][:, 1].max() < 1.1


# ---------------------------------------------------------------- keys of choices
def ceiling(**keyed):
    """Return a cube of jelly that hangs on a box above it, some of whose knobs have keys."""
    graph = Graph(cell_size=0.05, fps=24, start=1, end=7)
    gel = graph.add("material_neo_hookean", "gel", youngs_modulus=1e5)
    cube = graph.add("emit_box", "cube", material=gel, size=(0.2, 0.2, 0.2), centre=(0.0, 0.9, 0.0))
    roof = graph.add("collide_box", "roof", size=(0.4, 0.2, 0.4), centre=(0.0, 1.1, 0.0), **{"rule": "sticky", **keyed})
    graph.add("solve", "hang", sources=[cube], colliders=[roof])
    return graph


def test_a_rule_steps_to_another():
    """What sticks to a ceiling falls freely from the frame of the key on, and not before."""
    graph, speeds = ceiling(rule={"keys": [[1, "sticky", "step"], [5, "separate", "step"]]}), {}
    evaluator = Evaluator(graph)
    for frame in range(1, 8):
        speeds[frame] = evaluator.value("hang.particles", frame)["velocity"][:, 1].mean()
    assert abs(speeds[5]) < 0.1 and speeds[7] - speeds[5] == pytest.approx(-9.81 * 2 / 24, rel=0.1)


def test_what_does_not_fit_the_rule_of_the_moment_rests():
    """A clamp and an adhesion that are valid by turns: each counts under its rule, and neither check nor cook refuses the other."""
    rows = [[1, "sticky", "step"], [3, "separate", "step"], [5, "slip", "step"]]
    graph = ceiling(rule={"keys": rows}, clamp=True, adhesion=500.0)
    assert not validate(graph)
    evaluator = Evaluator(graph)
    made = {frame: evaluator.value("roof", frame) for frame in range(1, 8)}
    told = {frame: (body.rule.value, body.clamp, body.adhesion) for frame, body in made.items()}
    held, stuck, slips = ("sticky", True, 0.0), ("separate", False, 500.0), ("slip", False, 0.0)
    assert told == {1: held, 2: held, 3: held, 4: stuck, 5: stuck, 6: slips, 7: slips}
    graph = ceiling(clamp={"keys": [[1, True, "step"], [4, False, "step"]]})
    evaluator = Evaluator(graph)
    assert [evaluator.value("roof", frame).clamp for frame in range(1, 7)] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([[1, "sticky", "linear"], [5, "separate", "step"]], "at frame 1 goes linear to another choice"),
        ([[1, "sticky", "step"], [5, "glue", "step"]], "at frame 5 is not one of the choices"),
        ([[1, "sticky", "step"], [5, None, "step"]], "at frame 5 has no value"),
    ],
)
def test_keys_of_a_choice_step_between_choices(rows, says):
    problems = [str(problem) for problem in validate(ceiling(rule={"keys": rows}))]
    assert len(problems) == 1 and says in problems[0]
    assert "cannot be keyframed" in str(validate(ceiling(name={"keys": [[1, "a", "step"]]}))[0])


# ---------------------------------------------------------------- a dt that collapses
def test_a_frame_whose_dt_collapses_is_stopped():
    """Fifty times the substeps of the frames before it, when a tenth of them has been taken: the limit and the way on are named."""
    pace = FrameProgress(7, 1.0, lambda *_, **__: None, before=100.0)
    dt, left, facts = 1.0 / (2.0 * COLLAPSE * 100.0), 1.0, {"limit": "particle speed"}
    with pytest.raises(
        TooManySubsteps,
        match=r"frame 7: .*particle speed.*those before it took 100.*allow 1\d{4} \(--max-substeps\) and continue with --resume",
    ):
        for _ in range(10_000):
            left -= dt
            pace.after(dt, left, facts)
    assert pace.substeps == pytest.approx(0.1 * COLLAPSE * 100.0, abs=2)
    assert TooManySubsteps.exit_code == 4


@pytest.mark.parametrize(
    "told", [{"before": 0.0}, {"before": 100.0, "most": 10**6}, {"before": LEAST_COLLAPSE}], ids=["first", "asked", "as before"]
)
def test_frames_that_may_take_long_do(told):
    """The first frame, one whose number was asked for, and one of a shot that takes as many, go on."""
    pace = FrameProgress(7, 1.0, lambda *_, **__: None, **told)
    for number in range(6000):
        pace.after(1e-4, 1.0 - 1e-4 * (number + 1), {"limit": "particle speed"})
    assert pace.substeps == 6000


def test_a_short_stretch_of_small_steps_is_no_collapse():
    """Matter that is thrown takes short substeps for a while."""
    pace = FrameProgress(7, 1.0, lambda *_, **__: None, before=100.0)
    for number in range(400):
        pace.after(1e-6, 1.0 - 1e-6 * (number + 1), {"limit": "particle speed"})
    pace.after(1e-2, 0.9, {"limit": "particle speed"})
