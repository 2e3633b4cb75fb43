"""Progress costs nothing, and says what a person waiting wants to know."""

from __future__ import annotations

import io
import json
import math
import threading

import fake_nodes
import numpy as np
import pytest
from fake_nodes import shot

from mpm_nodes import compiling
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.reports.events import ConsoleLines, EventStream, JsonLines, Thinned, duration
from mpm_nodes.graph.reports.figures import FrameTally, time_left


def cooked(**options) -> list[dict]:
    events: list[dict] = []
    execute(shot(end=3), on_event=events.append, **options)
    return events


def test_frames_that_compile_do_not_tell_how_long_a_cook_takes():
    """Two slow frames at first are forgotten with the third; later one slow frame among five is."""
    seconds = [38.0, 51.0, 0.5, 0.4, 0.6, 9.0, 0.5]
    figures = [FrameTally().figures(each) for each in seconds]
    left = [time_left(figures[:n], 10) for n in range(1, len(figures) + 1)]
    assert left == pytest.approx([380.0, 380.0, 5.0, 4.0, 6.0, 6.0, 5.0])


def test_a_cook_tells_its_frames_in_order(tmp_path):
    """Plan, then each frame from start to done with its figures, then done."""
    events = cooked(out=tmp_path)
    names = [event["event"] for event in events if event["event"] not in ("node", "wrote", "substep")]
    assert names == ["plan", *["frame_start", "frame_done"] * 3, "done"]
    last = [event for event in events if event["event"] == "frame_done"][-1]
    expected = {
        "frame": 3,
        "substeps": 3,
        "dt_min": 1e-3,
        "particles": 5,
        "limit": "cfl",
        "limit_material": "jam",
        "seconds_left": 0.0,
    }
    assert {name: last[name] for name in expected} == expected and last["seconds"] > 0.0
    wrote = [event["path"] for event in events if event["event"] == "wrote"]
    assert wrote[0].endswith("r001/points/points.0001.bin") and len(wrote) == 6


def test_every_event_is_flat_json():
    """What programs read is one flat JSON object with name and time."""
    for event in cooked():
        assert json.loads(json.dumps(event)) == event
        assert event["time"] > 1e9
        assert not any(isinstance(value, dict) for value in event.values())


def test_a_library_hears_of_every_substep():
    """Nothing is left out for a callback; the shortest dt and its cause are kept, and the particles at the end."""
    events: list[dict] = []
    stream = EventStream(events.append)
    stream.start_frame(7)
    for number in range(1000):
        stream.report("substep", dt=1.0 / (1 + (number == 400)), limit=f"limit {number}", particles=number)
    assert [event["substep"] for event in events] == [*range(1, 1001)]
    assert stream.frame_figures() == {"substeps": 1000, "dt_min": 0.5, "particles": 999, "limit": "limit 400"}
    stream.start_frame(8)
    assert stream.frame_figures() == {"substeps": 0}


def test_a_terminal_hears_of_a_few():
    """A thousand substeps in no time are one event a frame; what is not a substep passes."""
    events: list[dict] = []
    stream = EventStream(Thinned(events.append, interval=3600.0))
    for frame in (7, 8):
        stream.start_frame(frame)
        for _ in range(1000):
            stream.report("substep", dt=1.0)
        stream.report("removed", particles=3)
    assert [event["event"] for event in events] == ["substep", "removed"] * 2
    assert [event["substep"] for event in events[::2]] == [1, 1]


def test_a_cook_returns_the_figures_of_every_frame():
    """Per frame: wall-clock, substeps, dt, particles, seconds of every node, and whatever nodes report, by kind and node."""
    told: list[dict] = []
    result = execute(shot(end=3), on_event=told.append)
    assert [each.frame for each in result.figures] == [1, 2, 3]
    first, *_, last = result.figures
    assert (first.substeps, first.dt_min, first.particles) == (0, None, None)
    assert (last.substeps, last.dt_min, last.particles) == (3, 1e-3, 5)
    sim = last.solves["sim"]
    assert (sim.dt_max, sim.limit, sim.facts) == (3e-3, "cfl", {"limit": "cfl", "limit_material": "jam"}) and math.isclose(
        sim.dt_mean, 2e-3
    )
    assert set(first.nodes) == {"source", "sim", "cache"} and set(last.nodes) == {"sim", "cache"}
    assert 0.0 < sum(last.nodes.values()) <= last.seconds <= result.seconds
    assert sum(event["event"] == "substep" for event in told) == 6
    stream = EventStream()
    stream.start_frame(4)
    for node in ("a", "b"):
        stream.report("substep", node=node, dt=0.5 if node == "b" else 1.0, particles=10, limit=node)
        stream.report("temperature", node=node, highest=300.0)
    figures = stream.tally.figures(2.0)
    assert (figures.substeps, figures.particles, figures.dt_min, figures.seconds) == (2, 20, 0.5, 2.0)
    assert stream.frame_figures()["limit"] == "b"
    assert [event["highest"] for event in figures.facts["temperature"]] == [300.0] * 2
    assert list(figures.facts_of("a", "temperature")) == [{"frame": 4, "node": "a", "highest": 300.0}]


def test_json_lines_have_no_nan_and_survive_a_reader_that_leaves():
    """NaN becomes null, NumPy values become numbers, a broken pipe ends the output and not the cook."""
    stream = io.StringIO()
    sink = JsonLines(stream)
    sink({"event": "x", "a": math.nan, "b": np.float32(0.5), "c": np.arange(2), "d": [math.inf]})
    assert json.loads(stream.getvalue()) == {"event": "x", "a": None, "b": 0.5, "c": [0, 1], "d": [None]}

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    sink = JsonLines(Gone())
    sink({"event": "x"})
    assert sink.stream is None
    sink({"event": "y"})


def test_plain_output_has_a_line_a_frame():
    """Where there is no terminal, each frame is one line with figures and causes, and warnings stand out."""
    stream = io.StringIO()
    console = ConsoleLines(stream, tty=False)
    execute(shot(end=2), on_event=console)
    console({"event": "warning", "time": 0.0, "where": "bowl", "message": "3 holes closed"})
    lines = stream.getvalue().splitlines()
    assert lines[0] == "cooking frames 1 to 2, 3 nodes"
    assert lines[2].startswith("frame 2/2  3 substeps  5 particles  dt 1.00e-03 s (cfl, jam)  0.0")
    assert lines[2].endswith("s/frame  0:00 left") and lines[3] == "warning: bowl: 3 holes closed" and len(lines) == 4


def test_a_terminal_shows_one_line_that_rewrites_itself():
    """On a terminal, progress stays on one line until the end."""
    stream = io.StringIO()
    execute(shot(end=4), on_event=ConsoleLines(stream, tty=True))
    text = stream.getvalue()
    assert text.count("\n") == 2 and text.endswith("left\x1b[K\n")  # after the plan and at the end
    assert "\rframe 4/4  substep 1  5 particles" in text


def test_the_time_left_is_that_of_the_running_frame():
    """A frame that takes hours after frames of seconds: the line on the terminal says hours, for it and for those after it."""
    stream = io.StringIO()
    console = ConsoleLines(stream, tty=True)
    console({"event": "plan", "frames": [1, 4], "nodes": 2})
    console({"event": "frame_done", "frame": 2, "seconds": 1.0, "seconds_left": 2.0})
    pace = {"event": "pace", "frame": 3, "substeps_expected": 1.7e6, "share": 0.1, "seconds_left": 9000.0}
    step = {"event": "substep", "frame": 3, "substep": 40, "dt": 1e-8}
    console(pace)
    console(step)
    assert stream.getvalue().rpartition("\r")[2].startswith("frame 3/4  substep 40 of about 1.7e+06, 10 % of the frame")
    assert "10000.00 s/frame  5:16:40 left" in stream.getvalue().rpartition("\r")[2]
    console({**pace, "seconds_left": None})  # nobody knows: what was said stays
    console(step)
    assert "5:16:40 left" in stream.getvalue().rpartition("\r")[2]


@pytest.mark.parametrize("seconds, text", [(0.2, "0:00"), (65, "1:05"), (3599.9, "1:00:00"), (7265, "2:01:05")])
def test_durations_are_short(seconds, text):
    """Minutes and seconds, hours when there are any."""
    assert duration(seconds) == text


def test_a_cook_tells_what_compiles(monkeypatch):
    """Whatever node it is in: an event of its own, from the first kernel on."""
    told, said = [], threading.Event()

    def hear(event):
        if event["event"] == "compiling":
            told.append(event)
            said.set()

    def compile_something(context):
        compiling.begin("loop")
        said.wait(60.0)
        compiling.end()
        return {}

    monkeypatch.setattr(compiling, "EVERY", 0.0)
    monkeypatch.setitem(fake_nodes.needs, "source", compile_something)
    execute(shot(end=1), on_event=hear)
    facts = {"kernel": "loop", "compiled": 0, "total": None, "message": "compiling kernel 1 (0 s): loop"}
    assert facts.items() <= told[0].items()
