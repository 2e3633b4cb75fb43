"""beads_on_string: its thread, the slender thread that it is held against, and its measures on made-up caches."""

from __future__ import annotations

import importlib.util
import json
import math

import numpy as np
import pytest
from sample_numbers import SAMPLES as FOLDER

from mpm_nodes.data import Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan import preflight
from mpm_nodes.verification import viscoelasticity
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.shot import Shot
from tests.reproduction import beads, slender

SAMPLE = SAMPLES["beads_on_string"]


def script():
    """Return samples/make_thread.py as a module."""
    spec = importlib.util.spec_from_file_location("make_thread", FOLDER / "make_thread.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("size", sizes.SIZES)
def test_both_sizes_have_the_volume_of_the_thread(size: str):
    """Eight particles a cell of a quarter of a thread 14 radii long, to 2 %, and walls on planes of nodes."""
    graph = sizes.graph_of(SAMPLE, size)
    h = graph.settings.cell_size
    count = preflight.estimate(Evaluator(graph).plan, graph.settings.start)["thread"]["particles"]
    assert count == pytest.approx(8 * 0.25 * math.pi * 14.0 / h**3, rel=0.02)
    assert 14.0 / h == pytest.approx(round(14.0 / h), abs=1e-6)


def test_the_thread_is_what_its_script_makes(tmp_path):
    """The mesh in the repository has the bytes of make_thread.py, and the graph turns it back to the axes."""
    made = script()
    made.main(tmp_path / "made.usda")
    assert (tmp_path / "made.usda").read_bytes() == (FOLDER / "thread.usda").read_bytes()
    w, *u = json.loads((FOLDER / "beads_on_string.json").read_text())["nodes"]["thread"]["knobs"]["orientation"]
    back = [v + 2.0 * np.cross(u, np.cross(u, v) + w * v) for v in made.ASKEW]
    np.testing.assert_allclose(back, np.eye(3), atol=1e-8)


def test_the_lattice_of_the_thread_stays_even_however_far_it_is_drawn_out():
    """No two of its points come nearer than 0.85 of their spacing; a lattice along the axes closes to a tenth of it."""
    axis = np.arange(-20, 21)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    points = points[(points != 0).any(axis=1)]
    for stretch in np.geomspace(1.0, 100.0, 30):
        drawn = [stretch**-0.5, stretch**-0.5, stretch]
        assert np.linalg.norm(points @ script().ASKEW.T * drawn, axis=1).min() > 0.85
    assert np.linalg.norm(points * drawn, axis=1).min() == pytest.approx(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("mu", "t_r"), [(0.0, 1.0), (0.1, 2.0), (0.4, 5.0)])
def test_small_waves_of_the_slender_thread_grow_as_linear_theory_says(mu: float, t_r: float):
    """The rate at which a wave of 0.2 % grows, once its other modes have gone, is the root of the dispersion relation to 2 %."""
    found = slender.slender_thread(mu, t_r, 7.0, 0.002, (25.0, 0.8))
    exact = slender.linear_growth(mu, t_r, math.pi / 7.0)
    later = found.time > found.time[-1] - 5.0
    rate = np.polyfit(found.time[later], np.log(found.wave[later]), 1)[0]
    assert rate == pytest.approx(exact, rel=0.02)


def test_the_thinning_law_is_that_of_the_material():
    """Drawn out at e = 4 / (5 t_r), R15's strain grows at e / 2: as the stress k / a of a string whose radius falls at e / 2."""
    points, t_r = viscoelasticity._FluidPoints(1), viscoelasticity.T_R
    rate = 0.8 / t_r
    pull = rate * np.diag([-0.5, -0.5, 1.0])[None]
    points.advance(pull, t_r / 1000, 15_000)
    before = points.left_strain()[0, 2, 2]
    points.advance(pull, t_r / 1000, 1000)
    assert math.log(points.left_strain()[0, 2, 2] / before) / t_r == pytest.approx(0.5 * rate, rel=0.01)


def thread(radius: np.ndarray, stretch: float) -> Particles:
    """Return a quarter of a thread with these radii of its 84 slices, whose strain is that of a stretch along it."""
    random, places = np.random.default_rng(1), []
    for n, a in enumerate(radius):
        disc = a * np.sqrt(random.random((round(200 * a * a), 1)))
        turn = 0.5 * np.pi * random.random(disc.shape)
        places.append(np.column_stack([disc * np.cos(turn), disc * np.sin(turn), (n + random.random(disc.shape)) / 6.0]))
    x = np.concatenate(places)
    strain = np.zeros((len(x), 6))
    strain[:, [0, 3, 5]] = np.array([1.0 / stretch, 1.0 / stretch, stretch**2]) - 1.0
    columns = {
        "position": x,
        "velocity": np.zeros_like(x),
        "mass": np.full(len(x), 0.25 * math.pi / 1200.0),
        "volume": np.full(len(x), 0.25 * math.pi / 1200.0),
        "volume_change": np.zeros(len(x)),
        "elastic_strain": strain,
        "material": np.zeros(len(x), np.int32),
    }
    graph = sizes.graph_of(SAMPLE)
    material = Evaluator(graph).value("liquid", graph.settings.start)
    return Particles(columns, (material,), 1.0 / 12.0)


@pytest.mark.parametrize(("pace", "torn", "holds"), [(1.0, False, (True, True, True)), (0.75, True, (False, False, False))])
def test_a_string_that_thins_as_the_slender_thread_holds_and_a_slower_or_torn_one_does_not(pace, torn, holds, monkeypatch):
    """At the slender thread's pace all targets of the string hold; a third slower its times are missed, and a gap is seen."""
    exact = slender.slender_thread(0.4, 5.0, 7.0, 0.2, (20.0, 0.25))
    graph = sizes.graph_of(SAMPLE)
    frames = range(graph.settings.start, graph.settings.end + 13)
    time = 0.25 * np.arange(len(frames))
    rows = slender.ThreadCourse(time, *(np.interp(pace * time, exact.time, each) for each in exact[1:]))
    monkeypatch.setattr(beads, "balances", lambda shot: [])
    monkeypatch.setattr(beads, "course", lambda shot: rows)
    monkeypatch.setattr(Shot, "matter_volume", lambda shot, frame: 1.0)
    radius = np.full(84, 0.4)
    radius[21:-21] = 1.5
    whole, parted = thread(radius, 3.0), thread(np.where(np.arange(84) == 4, 0.0, radius), 3.0)
    kept = {frame: parted if torn and frame > 20 else whole for frame in frames}
    shot = Shot(FOLDER, tuple(frames), graph.settings.cell_size, graph=graph, kept=kept)
    found = {each.name: each for each in beads.beads_on_string(shot)}
    half = found["time until the string has half the radius, over theory"]
    assert half.measured == pytest.approx(1.0 / pace, rel=0.01)
    rate = found["rate at which it thins to two cells, over theory"]
    assert rate.measured == pytest.approx(pace, rel=0.02)
    gaps = found["slices without matter until then"]
    assert (half.ok, rate.ok, gaps.ok) == holds
    assert found["thinnest slice between the beads then, over their median"].ok is holds[2]


def test_radius_and_stress_of_a_string_are_measured():
    """An even thread of radius 0.4 stretched threefold: the radius to 2 %, and C = mu (9 - 1 / 3) a."""
    particles = thread(np.full(84, 0.4), 3.0)
    near = np.abs(particles["position"][:, 2] - 7.0) < 0.5
    a, stress = beads.string(particles, near, 0.4)
    assert a == pytest.approx(0.4, rel=0.02)
    assert stress == pytest.approx(0.4 * (9.0 - 1.0 / 3.0) * a, rel=1e-6)
    np.testing.assert_allclose(beads.radii(particles, 1.0 / 6.0), 0.4, rtol=0.02)
