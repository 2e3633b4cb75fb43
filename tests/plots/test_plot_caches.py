"""Curves of a cache: a ball that falls freely has the energies and the momentum that mechanics says; pictures of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pxr")

from mpm_nodes import cli
from mpm_nodes.data import InputError, MpmNodesError, OutputError
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.plots.cache_curves import Line, Panel, cache_panels, event_panels
from mpm_nodes.plots.pictures import COLOURS, draw_panels

G, FPS, LAST = 9.81, 24.0, 5


@pytest.fixture(scope="module")
def fallen(tmp_path_factory) -> Path:
    """The revision folder of a ball in free fall, thrown along x, and what its cook printed."""
    folder = tmp_path_factory.mktemp("fallen")
    graph = Graph(registry=registry.load(path="", entry_points=False), start=1, end=LAST, cell_size=0.1)
    stuff = graph.add("material_neo_hookean", "stuff")
    ball = graph.add("emit_sphere", "ball", radius=0.2, centre=(0.0, 1.0, 0.0), velocity=(2.0, 0.0, 0.0), material=stuff)
    graph.add("write_cache", "cache", name="cache", particles=graph.add("solve", "fall", sources=[ball]))
    file = str(graph.save(folder / "shot.json"))
    with open(folder / "events.jsonl", "w") as out, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        assert cli.main(["cook", file, "--out", str(folder / "out"), "--events", "jsonl"]) == 0
    return folder / "out" / "r001"


def lines(panels: list[Panel], name: str) -> dict[str, np.ndarray]:
    (panel,) = (each for each in panels if each.name == name)
    return {line.name: np.array(line.values) for line in panel.lines}


def test_a_free_fall_has_the_curves_of_mechanics(fallen):
    """Momentum grows by m g t, mechanical energy stays, the centre of mass falls on its parabola, mass and volume are kept."""
    panels = cache_panels(fallen)
    time = np.arange(LAST) / FPS
    mass = lines(panels, "Mass")[""]
    assert np.ptp(mass) <= 1e-6 * mass[0] and lines(panels, "Particles")[""].min() > 100
    momentum, energy, height = (lines(panels, name) for name in ("Momentum", "Energy", "Height"))
    scale = mass[0] * G * time[-1]
    np.testing.assert_allclose(momentum["y"], -mass * G * time, atol=1e-4 * scale)
    np.testing.assert_allclose(momentum["x"], 2.0 * mass, rtol=1e-4)
    assert np.abs(momentum["z"]).max() < 1e-4 * scale
    np.testing.assert_allclose(energy["kinetic"], 0.5 * mass * (4.0 + (G * time) ** 2), rtol=1e-3)
    np.testing.assert_allclose(energy["both"], energy["kinetic"] + energy["of gravity"], rtol=1e-9)
    np.testing.assert_allclose(energy["of gravity"], mass * G * height["centre of mass"], rtol=1e-6)
    np.testing.assert_allclose(height["centre of mass"], height["centre of mass"][0] - 0.5 * G * time**2, atol=5e-3)
    assert np.ptp(lines(panels, "Volume")[""]) <= 1e-3 * lines(panels, "Volume")[""][0]
    names = [panel.name for panel in panels]
    assert "Temperature" not in names and "Seconds a frame" not in names
    (step,) = (panel for panel in panels if panel.name == "Shortest time step")
    assert step.log and step.unit == "s" and step.lines[0].frames == [2, 3, 4, 5] and "wave" in step.notes[3]


def test_frames_can_be_chosen(fallen):
    """A span is read alone."""
    assert all(line.frames == [2, 3] for panel in cache_panels(fallen, (2, 3)) for line in panel.lines)


def test_seconds_come_from_the_events_of_the_cook(fallen):
    """Seconds of a frame, and of its stages, which take no longer than the frame."""
    events = fallen.parents[1] / "events.jsonl"
    panels = cache_panels(fallen, events=events)
    whole, stages = lines(panels, "Seconds a frame")[""], lines(panels, "Seconds by stage")
    assert len(whole) == LAST and "all others" in stages and len(stages) == 6
    assert 0.0 < sum(stages.values())[1] <= whole[2] + 1e-6
    (fallen.parents[1] / "none.jsonl").write_text("no events\n[1]\n{}\n")
    with pytest.raises(InputError, match="holds no events"):
        cache_panels(fallen, events=fallen.parents[1] / "none.jsonl")


def test_events_of_others_are_passed_over():
    """What is not a number gives no point."""
    odd = [{"event": "frame_done", "frame": "2"}, {"event": "stages", "frame": 1, "stages": {"sort": "x"}}, {"event": "x"}, {}]
    assert event_panels(odd) == []
    line = Line("")
    for value in (None, float("nan"), float("inf"), 1.0):
        line.add(1, value)
    assert line.values == [1.0]


def test_the_command_draws_one_cache_or_several(fallen, tmp_path, monkeypatch, capsys):
    """PNG and SVG, the same bytes again; strangers' files stay."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["plot", str(fallen.parent)]) == 0
    png = fallen / "preview" / "plot.png"
    assert capsys.readouterr().out.strip() == str(png) and png.read_bytes().startswith(b"\x89PNG")
    for name in ("a.svg", "a.svg", "b.svg"):
        assert cli.main(["plot", str(fallen), "-o", name, "--frames", "2-4"]) == 0
    text = Path("a.svg").read_text()
    assert text == Path("b.svg").read_text() and text.count("<!-- frame -->") >= 6 and "[kg m/s]" in text
    shutil.copytree(fallen, tmp_path / "other" / "r001")
    assert cli.main(["plot", str(fallen), "other", "-o", "c.svg"]) == 0
    both = Path("c.svg").read_text()
    assert "<!-- out/r001 -->" in both and "<!-- other/r001 -->" in both and COLOURS[1].lower() in both.lower()
    Path("mine.png").write_bytes(b"mine")
    assert cli.main(["plot", str(fallen), "-o", "mine.png"]) == 5 and Path("mine.png").read_bytes() == b"mine"
    assert cli.main(["plot", str(fallen), "-o", "a.pdf"]) == 2
    assert cli.main(["plot", str(fallen), "--events", "x", "--events", "y"]) == 2
    assert cli.main(["plot", str(tmp_path)]) == 5


def test_a_picture_hangs_on_no_settings(tmp_path):
    """Whatever a file of settings says that matplotlib has read, the bytes are the same."""
    matplotlib = pytest.importorskip("matplotlib")
    panels = [("shot/r001", [Panel("Mass", "kg", [Line("", [1, 2], [2.0, 3.0])])])]
    plain = draw_panels(panels, tmp_path / "plain.svg").read_bytes()
    with matplotlib.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "axes.facecolor": "black"}):
        assert draw_panels(panels, tmp_path / "set.svg").read_bytes() == plain


def test_without_matplotlib_it_says_what_to_install(fallen, monkeypatch, capsys):
    """Before anything is read."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert cli.main(["plot", str(fallen)]) == 2
    assert "pip install 'mpm-nodes[plots]'" in capsys.readouterr().err


def test_nothing_to_plot_is_told(tmp_path):
    """Instead of an empty picture."""
    pytest.importorskip("matplotlib")
    with pytest.raises(MpmNodesError, match="nothing to plot"):
        draw_panels([("shot/r001", [])], tmp_path / "a.png")
    with pytest.raises(OutputError):
        draw_panels([("shot/r001", [Panel("Mass", "kg", [Line("", [1], [2.0])])])], Path("/proc/none/a.png"))


def test_frames_that_are_not_there_are_told(fallen):
    """With those that are; a cook that has no frame yet is told otherwise."""
    with pytest.raises(InputError, match=f"holds frames 1 to {LAST}, none of those asked for"):
        cache_panels(fallen, (90, 99))
