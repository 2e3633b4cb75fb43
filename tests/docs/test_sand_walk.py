"""The sand of the docs: the file of the page under 90 lines, checked as users check it, and what sand must do."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from test_walks import run, written

from mpm_nodes.data import Material, Particles
from mpm_nodes.materials import contract
from mpm_nodes.materials.contract import law_in
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.nodes.emit import merge_particles
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.law_contract import LawContract
from mpm_nodes.verification.scenes import OPEN, SLIP, STICKY, block, settle, walled

PAGE = "a_law_in_90_lines.md"


@pytest.fixture(scope="module")
def sand(tmp_path_factory):
    """Load the page's law, and forget it afterwards."""
    before = dict(contract._LAWS)
    path = tmp_path_factory.mktemp("walk")
    written(PAGE, path)
    spec = importlib.util.spec_from_file_location("sand_of_the_docs", path / "my_nodes/sand.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield law_in(path / "my_nodes/sand.py").id
    contract._LAWS.clear()
    contract._LAWS.update(before)


def test_the_walk(tmp_path):
    """The page's law is under 90 lines, its commands run, and every check of it passes."""
    files = written(PAGE, tmp_path)
    assert len(files["my_nodes/sand.py"].splitlines()) < 90
    told = run(PAGE, tmp_path)
    assert "failed" not in told and "sand project: onto the yield surface" in told and "pile.json: valid" in told


def test_every_check_of_the_law_passes(sand):
    """Derivatives, return map, volume: as the built-in laws."""
    assert [record for record in LawContract(sand, compiled=False).records() if not record.passed] == []


@pytest.mark.parametrize("angle", [10.0, 30.0, 45.0])
def test_a_sheared_layer_carries_its_friction(sand, angle):
    """Simple shear at a pressure: shear stress over pressure comes to tan(friction angle), to the square of the elastic strain."""
    given = {"params": {"friction_angle": angle}, "dt": 1e-3}
    state = {"deformation": 0.999 * np.eye(3)[None], "plastic_volume_ratio": np.ones(1)}
    A = np.zeros((1, 3, 3))
    A[0, 0, 1] = 1e-4
    for _ in range(400):
        state = call_law(sand, "project", call_law(sand, "advance", state, A, **given), **given)
    tau = call_law(sand, "kirchhoff", state, **given)[0]
    assert tau[0, 1] / (-np.trace(tau) / 3) == pytest.approx(np.tan(np.radians(angle)), rel=5e-3)


def test_volume_that_it_gained_comes_back_first(sand):
    """Pulled apart by 6 % it has no stress; pressed again it has none until that volume is gone (Tampubolon 2017)."""

    def moved(state, factor):
        A = (factor - 1.0) * np.eye(3)[None]
        return call_law(sand, "project", call_law(sand, "advance", state, A))

    state = {"deformation": np.eye(3)[None], "plastic_volume_ratio": np.ones(1)}
    loose = moved(state, 1.02)
    assert np.abs(call_law(sand, "kirchhoff", loose)).max() == 0.0
    assert call_law(sand, "volume_ratio", loose) == pytest.approx(1.02**3, rel=1e-12)
    half = moved(loose, 0.99)
    assert np.abs(call_law(sand, "kirchhoff", half)).max() == 0.0
    pressed = moved(half, 0.96)
    assert call_law(sand, "kirchhoff", pressed)[0, 0, 0] < 0.0 and pressed["plastic_volume_ratio"] == 1.0
    assert call_law(sand, "volume_ratio", pressed) == pytest.approx((1.02 * 0.99 * 0.96) ** 3, rel=1e-12)


def test_a_gentle_heap_comes_to_rest_at_the_friction_angle(sand):
    """A heap of ten cells, made a quarter too steep, slides until its side has the friction angle of 20 degrees, within 10 %."""
    angle = 20.0
    h, side = 0.05, 1.28 * np.tan(np.radians(angle))
    matter = Material(sand, {"friction_angle": angle, "youngs_modulus": 3e5}, 1600.0, "sand")
    start = block(matter, (0, 0, 0), (20 * h, 10 * h, 2 * h), h)
    start = _kept(start, start["position"][:, 1] < (20 * h - start["position"][:, 0]) * side)
    walls = walled((0, 0, 0), (60 * h, 30 * h, 2 * h), SLIP, OPEN, STICKY, OPEN, SLIP, SLIP)
    solver = SubstepSolver(start, cell_size=h, walls=walls)
    solver.advance(2.0)
    x, y = solver.snapshot()["position"].T[:2]
    column = np.floor(x / h).astype(int)
    known = np.unique(column)
    top = np.array([y[column == c].max() for c in known]) + h / 4
    within = (top < 0.85 * top.max()) & (top > 0.2 * top.max())
    slope = np.degrees(np.arctan(-np.polyfit((known[within] + 0.5) * h, top[within], 1)[0]))
    assert slope == pytest.approx(angle, rel=0.1)
    assert np.abs(solver.particles.unpack("velocity")).max() < 0.15


@pytest.mark.slow
@pytest.mark.parametrize(("friction", "rule"), [(0.3, "separate"), (0.7, "separate"), (0.0, "sticky")])
def test_sand_slides_off_jelly(sand, friction, rule):
    """Sand on a slab of jelly that leans by 30 degrees: off it goes by Coulomb, within 5 % of g, where the friction is too small.

    Two seconds later there is none left on the slab, and none of it is held back by nodes that both have; more friction than the
    slope, and sticking, hold it.
    """
    h, lean = 0.05, np.radians(30.0)
    jelly = Material("neo_hookean", {"youngs_modulus": 1e6}, 1000.0, "jelly")
    grains = Material(sand, {"friction_angle": 40.0, "youngs_modulus": 1e6}, 1600.0, "sand")
    slab = block(jelly, (0, 0, 0), (20 * h, 3 * h, 6 * h), h)
    heap = block(grains, (2 * h, 3 * h, 0), (8 * h, 5 * h, 6 * h), h)
    solver = SubstepSolver(
        merge_particles([slab, heap], bodies=True),
        {"preset": "separate_bodies", "set": {"rule": rule, "friction": friction}},
        cell_size=h,
        walls=walled((-h, 0, 0), (60 * h, 30 * h, 6 * h), OPEN, OPEN, STICKY, OPEN, SLIP, SLIP),
        dtype=np.float64,
        gravity=(0.0, -9.81, 0.0),
    )
    settle(solver, 0.2, 40.0)
    solver.gravity = (9.81 * float(np.sin(lean)), -9.81 * float(np.cos(lean)), 0.0)

    def mean(name):
        return solver.particles.unpack(name)[solver.particles.unpack("body") == 1, 0].mean()

    begin, length = mean("velocity"), 0.4
    solver.advance(length)
    slides = rule == "separate" and friction < np.tan(lean)
    exact = 9.81 * (np.sin(lean) - friction * np.cos(lean)) if slides else 0.0
    assert (mean("velocity") - begin) / length == pytest.approx(exact, abs=0.05 * 9.81)
    if slides:
        solver.advance(1.2)
        grain = solver.particles.unpack("body") == 1
        assert (solver.particles.unpack("position")[grain, 0] > 20 * h).mean() > 0.95


def _kept(particles, mask):
    return Particles({name: values[mask] for name, values in particles.attributes.items()}, particles.materials, particles.spacing)
