"""The packaged samples of surface tension: sizes, and measures on made-up caches."""

from __future__ import annotations

import argparse
import importlib.util
import math

import numpy as np
import pytest
from sample_numbers import SAMPLES as FOLDER

from mpm_nodes.data import Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan import preflight
from mpm_nodes_samples.shots import run, sizes
from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.shot import Shot
from tests.reproduction import propelled, tension

NAMES = [name for name, sample in SAMPLES.items() if "C21" in sample.source]


@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name in NAMES for size in sizes.SIZES if size == "quick" or SAMPLES[name].paper]
)
def test_both_sizes_can_be_planned_and_the_paper_s_has_its_particles_and_cells(name: str, size: str):
    """Every size is a valid graph; the paper's has three frames, the source's cells, and its particles where it states them."""
    graph = sizes.graph_of(SAMPLES[name], size)
    estimates = preflight.estimate(Evaluator(graph).plan, graph.settings.start)
    solves = [entry for entry in graph.nodes.values() if entry.type == "solve"]
    begin = sum(estimates[wire.partition(".")[0]]["particles"] for solve in solves for wire in solve.inputs["sources"])
    if size == "quick":
        assert 1000 < begin < 100_000
        return
    paper = SAMPLES[name].paper
    assert graph.settings.end - graph.settings.start == 3
    # 4 million particles do not fit into the source's pool with its cells, and the plates are drawn in millimetres
    assert name in ("soap_on_water", "drops_on_plates") or round(1.0 / graph.settings.cell_size) in (63, 127)
    assert not paper.particles or begin == pytest.approx(paper.particles, rel=0.05)


def test_the_ellipse_is_what_its_script_makes(tmp_path):
    """The mesh in the repository has the bytes of make_ellipse.py."""
    spec = importlib.util.spec_from_file_location("make_ellipse", FOLDER / "make_ellipse.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path / "made.usda")
    assert (tmp_path / "made.usda").read_bytes() == (FOLDER / "ellipse.usda").read_bytes()


def shot_of(name: str, frames: dict[int, Particles]) -> Shot:
    """Return a shot of a sample whose frames are given."""
    graph = sizes.graph_of(SAMPLES[name])
    return Shot(FOLDER, tuple(frames), graph.settings.cell_size, graph=graph, kept=frames)


def figures(found: list) -> dict:
    """Return figures by name."""
    return {each.name: each for each in found}


def turning_cavity(sense: float) -> dict[int, Particles]:
    """Return two frames of a full cavity that turns as a rigid body, clockwise where `sense` is 1, by a tenth of a turn."""
    axis = (np.arange(48) + 0.5) / 48
    x = np.stack(np.meshgrid(axis, 0.93 * axis, [0.02], indexing="ij"), axis=-1).reshape(-1, 3)
    warm, away = 294.15 - x[:, 0], x - [0.5, 0.465, 0.0]
    turn = 0.2 * math.pi * sense
    moved = np.stack(
        [away[:, 0] * math.cos(turn) + away[:, 1] * math.sin(turn), away[:, 1] * math.cos(turn) - away[:, 0] * math.sin(turn)], 1
    )
    end = np.column_stack([moved + [0.5, 0.465], x[:, 2]])
    velocity = sense * np.column_stack([moved[:, 1], -moved[:, 0], 0.0 * x[:, 0]])
    common = {"id": np.arange(len(x)), "mass": np.ones(len(x)), "temperature": warm}
    return {
        1: Particles({"position": x, "velocity": 0.0 * x, **common}, (), 0.02),
        51: Particles({"position": end, "velocity": velocity, **common}, (), 0.02),
    }


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_the_sense_of_a_circulation_is_seen(sense: float, monkeypatch):
    """One that turns towards the cold side along its surface holds all targets of the flow, one that turns back none of them."""
    monkeypatch.setattr(tension, "balances", lambda shot: [])
    found = figures(tension.heated_cavity(shot_of("heated_cavity", turning_cavity(sense))))
    flow = [each for name, each in found.items() if name.startswith(("mean speed", "angular", "warmer"))]
    assert len(flow) == 4 and {each.ok for each in flow} == {sense > 0.0}


def test_momentum_that_comes_up_is_seen(monkeypatch):
    """A drop that swings in place keeps everything; one that drifts by a hundredth of its speed does not."""
    monkeypatch.setattr(tension, "balances", lambda shot: [])
    angle = 2.0 * math.pi * np.arange(400) / 400
    ring = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)

    def frame(n: int, drift: float) -> Particles:
        speed = np.sin(0.3 * n)
        one = 0.2 * ring * [1.0 + 0.1 * math.cos(0.3 * n), 1.0 - 0.1 * math.cos(0.3 * n), 0.0]
        v = speed * ring * [-1.0, 1.0, 0.0]
        x = np.concatenate([one - [0.5, 0.0, 0.0] + [drift * n, 0, 0], one + [0.5 + 1e-3 * n, 0.0, 0.0]])
        v = np.concatenate([v + [drift, 0.0, 0.0], v + [0.01, 0.0, 0.0]])
        return Particles({"position": x, "velocity": v, "mass": np.ones(800), "affine": np.zeros((800, 3, 3))}, (), 0.02)

    for drift, kept in ((0.0, True), (0.001, False)):
        found = figures(tension.ellipse(shot_of("ellipse", {n + 1: frame(n, drift) for n in range(43)})))
        assert found["momentum that came up, over sum m v"].ok is kept
        assert found["way of the centre of mass, over R"].ok is kept
        assert found["its way of the centre, over R"].ok


@pytest.mark.parametrize(
    ("name", "seconds", "holds"), [("drop_impacts", 12.0, True), ("drop_impacts", 13.0, False), ("ellipse", 13.0, None)]
)
def test_a_paper_s_seconds_a_substep_are_held_to(name: str, seconds: float, holds: bool | None, monkeypatch):
    """Where the source states seconds a step, a tenth of them is the target; what it does not state is not asked for."""
    monkeypatch.setattr(run, "skin_figures", lambda shot: [])
    shot = shot_of(name, {1: turning_cavity(1.0)[1], 2: turning_cavity(1.0)[1]})
    shot.progress.substeps.update({1: 0, 2: 10})
    shot.progress.seconds.update({2: seconds})
    found = figures(run.figures_of(shot, SAMPLES[name], argparse.Namespace(size="paper"), None))
    assert "seconds for 1/30 s, solve" not in found
    assert (found["seconds a substep, solve"].ok if holds is not None else None) is holds
    assert ("seconds a substep, solve" in found) == (holds is not None)
    assert found["particles at the start"].ok is (None if holds is None else False)


@pytest.mark.parametrize(("name", "rounding"), [("ellipse", 1e-10), ("drop_impacts", 1.2e-7)])
def test_a_surface_that_was_open_in_one_substep_is_seen(name: str, rounding: float):
    """The most of all frames counts, against the rounding of the solve's precision; a shot without a tension says nothing."""
    for most in (0.5, 2.0):
        shot = shot_of(name, {})
        assert run.closed_figures(shot) == []
        for seen in (0.0, most * rounding, 1e-14):
            shot.progress({"event": "surface", "time": 0.0, "open": seen})
        (found,) = run.closed_figures(shot)
        assert found.measured == most * rounding and found.ok is (most < 1.0)


@pytest.mark.parametrize(
    ("front", "back", "holds"), [(0.1, 0.0, (True, True)), (-0.1, 0.0, (True, True)), (0.05, 0.01, (False, False))]
)
def test_a_drop_that_propels_itself_is_seen(front: float, back: float, holds: tuple[bool, bool], monkeypatch):
    """To either side it counts as a way of its own, and a drop without friction that moves is seen."""
    monkeypatch.setattr(propelled, "balances", lambda shot: [])
    axis = (np.arange(8) + 0.5) / 40.0 - 0.1
    ball = np.stack(np.meshgrid(axis, axis + 0.1, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    two = np.concatenate([ball + [0.0, 0.0, 0.4], ball - [0.0, 0.0, 0.4]])
    way = np.concatenate([np.full((512, 1), front), np.full((512, 1), back)]) * [1.0, 0.0, 0.0]
    columns = {"velocity": way + [0.0, 1e-6, 0.0], "mass": np.ones(1024), "temperature": 300.0 - 100.0 * two[:, 0]}
    frames = {n + 1: Particles({"position": two + n * way, **columns}, (), 0.02) for n in range(2)}
    found = figures(propelled.metal_drop(shot_of("metal_drop", frames)))
    assert found["way of the drop with friction, over its radius"].ok is holds[0]
    assert found["largest way without friction, over the radius"].ok is holds[1]
    assert found["the same towards the lamp"].measured == pytest.approx(-front / 0.1507, rel=1e-6)
    assert found["least share of a drop in its largest piece"].ok


@pytest.mark.parametrize(
    ("edge", "count"),
    [
        ([5.0] * 6, 0),
        ([5.0, 4.5, 5.0, 4.6, 5.0], 0),
        ([5.0, 3.0, 5.0], 1),
        ([3.0, 5.0, 3.0], 2),
        ([5.0, 3.0, 4.5, 2.0, 5.0, 5.0], 2),
        ([5.0, 3.0, 3.5, 3.0, 5.0], 1),
    ],
)
def test_fingers_of_an_edge_are_counted(edge: list[float], count: int):
    """A finger hangs by a cell from what is beside it; what is smaller is none, and one that is uneven is one."""
    assert propelled.fingers(np.array(edge), 1.0) == count


def test_a_ridge_at_the_lower_edge_of_a_film_is_seen():
    """An even film on the glass has none; where as much again lies at its lower edge the ridge is twice as thick."""
    height = np.repeat(np.linspace(0.505, 0.695, 20), 400)
    turn = np.tile(np.linspace(-math.pi, 0.0, 400), 20)
    up = (height - 0.7) / 0.6
    across = 0.4 * np.sqrt(1.0 - up**2)
    slope = np.hypot(1.0, 0.4 * up / (0.6 * np.sqrt(1.0 - up**2)))
    film = np.stack([0.5 + across * np.cos(turn), height, 0.5 + across * np.sin(turn)], axis=1)
    kept = np.random.default_rng(0).random(len(film)) < across * slope / (across * slope).max()
    even = film[kept]
    assert propelled.ridge(even, 0.05) == pytest.approx(1.0, abs=0.1)
    low = even[even[:, 1] < 0.55]
    assert propelled.ridge(np.concatenate([even, low]), 0.05) == pytest.approx(2.0, abs=0.2)
    assert np.allclose(propelled.lower_edge(film), 0.505)


def test_the_glass_is_what_its_script_makes(tmp_path):
    """The meshes in the repository have the bytes of make_glass.py."""
    spec = importlib.util.spec_from_file_location("make_glass", FOLDER / "make_glass.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path / "made.usda")
    assert (tmp_path / "made.usda").read_bytes() == (FOLDER / "glass.usda").read_bytes()
