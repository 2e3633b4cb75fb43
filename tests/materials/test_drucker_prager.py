"""Sand on top of other matter, and wet sand under tension."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import Material
from mpm_nodes.materials.contract import law
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.nodes.emit import merge_particles
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.poured_sand import gaps, sectors
from mpm_nodes.verification.scenes import OPEN, SLIP, STICKY, block, settle, walled

LAW = "drucker_prager"


def stretched(state, factor, **params):
    """Return the state after an equal stretch in all directions."""
    given = {"params": params, "dt": 1e-3}
    A = (factor - 1.0) * np.eye(3)[None]
    return call_law(LAW, "project", call_law(LAW, "advance", state, A, **given), **given)


def mean_stress(state, **params):
    """Return a third of the trace of the stress [Pa]."""
    return np.trace(call_law(LAW, "kirchhoff", state, params=params)[0]) / 3


def test_wet_sand_bears_tension_up_to_its_strength_and_then_none():
    """c / tan(phi) breaks it; what is broken bears no tension at all, until it is pressed together again."""
    params = {"friction_angle": 30.0, "cohesion": 1e3}
    strength = 1e3 / np.tan(np.radians(30.0))
    mu, lam, *_ = law(LAW).coefficients(params)
    bulk = lam + 2.0 / 3.0 * mu
    nearly = stretched(None, np.exp(0.99 * strength / bulk / 3), **params)
    assert mean_stress(nearly, **params) == pytest.approx(0.99 * strength, rel=1e-6)
    broken = stretched(None, np.exp(1.01 * strength / bulk / 3), **params)
    assert mean_stress(broken, **params) == 0.0 and broken["plastic_volume_ratio"] > 1.0
    closing = stretched(broken, np.exp(-0.5 * strength / bulk / 3), **params)
    assert mean_stress(closing, **params) == 0.0
    pressed = stretched(closing, 0.99, **params)
    assert mean_stress(pressed, **params) < 0.0
    pulled = stretched(pressed, np.exp(0.5 * strength / bulk / 3) / pressed["deformation"][0, 0, 0], **params)
    assert mean_stress(pulled, **params) == pytest.approx(0.5 * strength, rel=1e-6)


def test_ridges_around_a_heap_are_told_from_a_cone():
    """Sand of a cone at random: what chance makes. Drawn together to 40 lines: gaps; and half of it twice as deep: the mass."""
    random = np.random.default_rng(3)
    away, turn = 0.12 * random.uniform(0.0, 1.0, 12000) ** 0.5, random.uniform(0.0, 2.0 * np.pi, 12000)
    kept = random.uniform(size=12000) < 1.0 - away / 0.12
    away, turn = away[kept], turn[kept]

    def heap(turn):
        return np.stack([away * np.cos(turn), 0.0 * away, away * np.sin(turn)], axis=1)

    foot, mass = sectors(heap(turn))
    assert foot.std() < 0.03 * foot.mean() and mass.std() < 0.15 * mass.mean() and gaps(heap(turn), 0.05, 0.005) < 0.05
    ridged = heap(np.floor(turn / (2.0 * np.pi) * 40) / 40 * 2.0 * np.pi)
    assert gaps(ridged, 0.1, 0.005) > 0.3
    moved = (turn > np.pi) & (random.uniform(size=len(turn)) < 0.5)
    uneven = sectors(heap(np.where(moved, turn - np.pi, turn)))[1]
    assert uneven.std() > 0.3 * uneven.mean()


@pytest.mark.slow
@pytest.mark.phenomena("separate_bodies")
@pytest.mark.parametrize(("friction", "rule"), [(0.3, "separate"), (0.7, "separate"), (0.0, "sticky")])
def test_sand_slides_off_jelly(friction, rule):
    """Sand on a slab of jelly that leans by 30 degrees: off it goes by Coulomb, within 5 % of g, where the friction is too small.

    Two seconds later there is none left on the slab, and none of it is held back by nodes that both have; more friction than the
    slope, and sticking, hold it.
    """
    h, lean = 0.05, np.radians(30.0)
    jelly = Material("neo_hookean", {"youngs_modulus": 1e6}, 1000.0, "jelly")
    grains = Material(LAW, {"friction_angle": 40.0, "youngs_modulus": 1e6}, 1600.0, "sand")
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
