"""A solve that would never end says so within ten seconds: substeps expected, what limits them, what to do."""

from __future__ import annotations

import threading
import time

import pytest

from mpm_nodes.data import Cancelled, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.solver import frame_progress
from mpm_nodes.solver.frame_progress import FrameProgress, TooManySubsteps, lasting


def jumping_floor() -> Graph:
    """A floor that falls by a hundred kilometres in one frame."""
    graph = shot()
    graph.add("collide_plane", "floor", centre=(0.0, 0.0, 0.0))
    graph.connect("fall.colliders", "floor")
    graph.key("floor.centre", 1, (0.0, 0.0, 0.0), "linear")
    graph.key("floor.centre", 2, (0.0, -1e5, 0.0), "step")
    return graph


def shot(material=None, **knobs) -> Graph:
    graph = Graph(registry=registry.load(path="", entry_points=False), start=1, end=3, cell_size=0.1)
    stuff = graph.add("material_neo_hookean", "stuff", **(material or {}))
    body = graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), centre=(0.0, 0.5, 0.0), material=stuff)
    graph.add("solve", "fall", sources=[body], **knobs)
    return graph


class Clock:
    """Seconds that pass by command."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watched(**options):
    said, clock = [], Clock()
    return FrameProgress(3, 1.0, lambda event, **facts: said.append({"event": event, **facts}), clock=clock, **options), said, clock


def test_a_quick_frame_says_nothing():
    """A thousand substeps in four seconds are nobody's concern."""
    watch, said, clock = watched()
    for number in range(1000):
        clock.now += 0.004
        watch.after(1e-3, 1.0 - 1e-3 * (number + 1), {"limit": "cfl"})
    assert said == []


def test_compiling_says_nothing_of_the_pace():
    """Of a first substep that compiles kernels for 40 s nothing is concluded; one that takes so long by itself is warned of."""
    for cold in (True, False):
        watch, said, clock = watched(cold=cold)
        clock.now += 40.0
        watch.after(1.0 / 64, 63.0 / 64, {"limit": "cfl"})
        for number in range(2, 40):
            clock.now += 0.3
            watch.after(1.0 / 64, 1.0 - number / 64, {"limit": "cfl"})
        assert [each["event"] for each in said if each["event"] == "warning"] == ([] if cold else ["warning"])
        first = next(each for each in said if each["event"] == "pace")
        assert (first["seconds_left"] < 20.0) == cold


def test_a_long_frame_tells_how_far_it_is_every_ten_seconds():
    """Share, substeps and seconds left follow from the frame's own progress; no warning below ten minutes."""
    watch, said, clock = watched()
    for number in range(100):
        clock.now += 0.3
        watch.after(1e-2, 1.0 - 1e-2 * (number + 1), {"limit": "elastic wave", "limit_material": "stuff"})
    assert [entry["event"] for entry in said] == ["pace"] * 3
    first = said[0]
    assert first["share"] == pytest.approx(0.17) and first["substeps_expected"] == pytest.approx(100.0)
    assert first["seconds_left"] == pytest.approx(0.3 * 83)


@pytest.mark.parametrize("limit", ["dt_max", "elastic wave"])
def test_a_frame_that_never_ends_warns_once_with_limit_and_cure(limit):
    """The advice is that against the limit; the second word does not repeat the warning."""
    watch, said, clock = watched(advise=lambda *of: f"against {of}")
    for _ in range(30):
        clock.now += 1.0
        watch.after(1e-9, 1.0 - 1e-9 * watch.substeps - 1e-9, {"limit": limit, "limit_material": "stuff"})
    warnings = [entry["message"] for entry in said if entry["event"] == "warning"]
    assert (
        len(warnings) == 1 and f"; against ('{limit}', 'stuff')" in warnings[0] and f"limited by {limit} of 'stuff'" in warnings[0]
    )
    assert "about 1e+09 substeps are expected" in warnings[0] and "32 years at this pace" in warnings[0]


def test_a_frame_of_capillary_waves_names_the_presets_that_are_free_of_them():
    """A strong tension on fine cells: the message names the limit and both presets."""
    graph = Graph(registry=registry.load(path="", entry_points=False), start=1, end=2, cell_size=0.1)
    water = graph.add("material_liquid", "water", bulk_modulus=10.0)
    tense = graph.add("material_surface_tension", "tense", material=water, tension=1e9)
    drop = graph.add("emit_box", "drop", size=(0.2, 0.2, 0.2), centre=(0.0, 0.5, 0.0), material=tense)
    graph.add("solve", "fall", sources=[drop], substeps="surface_tension")
    with pytest.raises(TooManySubsteps) as caught:
        execute(graph, max_substeps=3)
    text = str(caught.value)
    assert "limited by capillary wave" in text and "lower the surface tension" in text
    assert all(f'"{preset}"' in text for preset in ("implicit_surface_tension", "auto_surface_tension"))


def test_a_cap_stops_before_time_is_spent():
    """The first substep shows what the frame would take; exactly as many as allowed pass."""
    watch, _, _ = watched(most=100)
    watch.after(0.01, 0.99, {})
    with pytest.raises(TooManySubsteps, match=r"frame 3: about 1e\+03 substeps .* 100 are allowed \(--max-substeps\)"):
        watched(most=100)[0].after(1e-3, 0.999, {})


LENGTHS = [(30, "30 seconds"), (3000, "50 minutes"), (8e4, "22 hours"), (3e5, "3.5 days"), (1e9, "32 years")]


@pytest.mark.parametrize("seconds, text", LENGTHS)
def test_lengths_of_time_in_words(seconds, text):
    """The unit that people would use."""
    assert lasting(seconds) == text


@pytest.mark.parametrize(
    "graph, limit, cure",
    [
        (lambda: shot(dt_max=1e-12), "dt_max", "raise the solve's dt_max"),
        (lambda: shot({"youngs_modulus": 1e12}), "elastic wave", "lower youngs_modulus of 'Neo-Hookean Solid'"),
        (jumping_floor, "collider speed", "slow collider 'plane' down"),
    ],
    ids=["dt_max 1e-12", "E 1e12", "a falling floor"],
)
def test_a_cook_that_would_never_end_says_so(graph, limit, cure, monkeypatch):
    """Tiny steps, stiff matter, a collider that jumps: a warning with the limit comes while a frame runs, and stopping works."""
    monkeypatch.setattr(frame_progress, "FIRST_WORD", 0.3)
    monkeypatch.setattr(frame_progress, "LONG_FRAME", 1.0)
    cancel, found, begin = threading.Event(), [], time.monotonic()

    def look(event):
        if event["event"] == "warning" and "substeps are expected" in event["message"]:
            found.append(event["message"])
        if found or time.monotonic() - begin > 60.0:
            cancel.set()

    with pytest.raises(Cancelled):
        execute(graph(), on_event=look, cancel=cancel)
    assert limit in found[0] and cure in found[0]


@pytest.mark.parametrize("modulus", [1e24, 1e30, 1e36, 1e60, 1e300])
def test_absurd_stiffness_is_no_divergence_of_a_particle(modulus):
    """Before anything has moved, the message names the material's stiffness and not some particle at rest."""
    with pytest.raises(MpmNodesError) as caught:
        execute(shot({"youngs_modulus": modulus}))
    text = str(caught.value)
    assert caught.value.exit_code in (2, 4) and "speed 0 m/s" not in text and "accelerated" not in text
    assert "youngs_modulus" in text


def test_the_cap_is_an_option_of_the_command_line(tmp_path, capsys):
    """`--max-substeps` ends the cook with exit code 4 and the cure; nonsense is refused as an argument."""
    from mpm_nodes import cli

    file = shot({"youngs_modulus": 1e8}).save(tmp_path / "shot.json")
    command = ["cook", str(file), "--out", str(tmp_path / "out"), "--events", "none"]
    assert cli.main([*command, "--max-substeps", "5"]) == 4
    assert "5 are allowed (--max-substeps); lower youngs_modulus" in capsys.readouterr().err
    assert cli.main([*command, "--max-substeps", "0"]) == 2
