"""Thin plates keep their two sides apart in implicit steps too (`test_sides` has the explicit ones)."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import CollisionRule, FrameContext, GraphSettings
from mpm_nodes.nodes.collide import collide_box
from mpm_nodes.nodes.emit import merge_particles
from mpm_nodes.solver.minimisation import Minimisation
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block, changed, material

H = 0.05
JELLY = material("neo_hookean", youngs_modulus=1e5)
IMPLICIT = {"preset": "implicit_apic", "set": {"tolerance": 1e-9}}
SEMI = {
    "preset": "implicit_apic",
    "edits": [{"replace": "minimise_energy", "type": "semi_implicit_update", "knobs": {"krylov_tolerance": 1e-10}}],
}


def plate(size, **knobs):
    """Return a box that slips, its size in cells."""
    context = FrameContext(1, GraphSettings(cell_size=H))
    return collide_box(context, size=tuple(H * edge for edge in size), **{"rule": CollisionRule.SLIP, **knobs})


def moving(part, *velocity):
    """Return a block that moves [m/s]."""
    return changed(part, velocity=np.tile(np.array(velocity, float), (len(part), 1)))


def solve(particles, *colliders, substeps=IMPLICIT, **options):
    """Return a solve in double precision without gravity."""
    given = {"cell_size": H, "dtype": np.float64, "gravity": (0.0, 0.0, 0.0), "origin": (0.0, 0.0, 0.0), **options}
    return SubstepSolver(particles, substeps, colliders=colliders, **given)


@pytest.mark.parametrize(("substeps", "offset"), [(IMPLICIT, 0.5), (IMPLICIT, 0.0), (SEMI, 0.3)])
def test_a_plate_without_friction_drags_nothing(substeps, offset):
    """A block that slides along one side leaves the one on the other side at rest, and neither loses momentum."""
    low = block(JELLY, (0, -4.1 * H, 0), (6 * H, -0.1 * H, 4 * H), H)
    high = moving(block(JELLY, (0, 0.1 * H, 0), (6 * H, 4.1 * H, 4 * H), H), 1.0, 0.0, 0.0)
    both = merge_particles([low, high])
    both = changed(both, position=both["position"] + [0.0, offset * H, 0.0])
    thin = plate((40, 0.2, 40), centre=(0.0, offset * H, 0.0))
    solver = solve(both, thin, substeps=substeps)
    solver.advance(0.05, 5e-3)
    velocity = solver.snapshot(["velocity"])["velocity"]
    assert np.abs(velocity[: len(low)]).max() < 1e-12
    assert np.abs(velocity[len(low) :] - [1.0, 0.0, 0.0]).max() < 1e-11


def test_pressed_on_both_sides_each_side_feels_its_own():
    """Blocks thrown at both sides of a plate of a hundredth of a cell: the one above moves as if it were alone, to 1e-9 m/s."""
    low = moving(block(JELLY, (0, -4.2 * H, 0), (4 * H, -0.2 * H, 4 * H), H), 0.0, 3.0, 0.0)
    high = moving(block(JELLY, (0, 0.2 * H, 0), (4 * H, 4.2 * H, 4 * H), H), 0.5, -1.0, 0.0)
    thin = plate((40, 0.01, 40), rule=CollisionRule.SEPARATE)
    solver, alone = solve(merge_particles([low, high]), thin), solve(high, thin)
    for _ in range(10):
        solver.step(2e-3)
        alone.step(2e-3)
    position = solver.snapshot([])["position"][:, 1]
    assert position[: len(low)].max() < 0.0 < position[len(low) :].min()
    velocity = solver.snapshot(["velocity"])["velocity"][len(low) :]
    assert np.abs(velocity - alone.snapshot(["velocity"])["velocity"]).max() < 1e-9


def test_the_energy_of_a_search_is_that_of_the_velocities_it_takes(monkeypatch):
    """Nodes that a step would drive into a plate are stopped: E is asked for after that, else no later step seems to lower it."""
    told, run = [], Minimisation.run

    def watched(self):
        search = self._search

        def searched(value):
            lower, halvings = search(value)
            if lower is not None:
                told.append((lower, self.value(self.velocity)[0], self.clamped))
            return lower, halvings

        self._search = searched
        return run(self)

    monkeypatch.setattr(Minimisation, "run", watched)
    low = moving(block(JELLY, (0, -4.2 * H, 0), (4 * H, -0.2 * H, 4 * H), H), 0.0, 3.0, 0.0)
    high = moving(block(JELLY, (0, 0.2 * H, 0), (4 * H, 4.2 * H, 4 * H), H), 0.5, -1.0, 0.0)
    solver = solve(merge_particles([low, high]), plate((40, 0.01, 40), rule=CollisionRule.SEPARATE))
    for _ in range(10):
        solver.step(2e-3)
    assert any(clamped for _, _, clamped in told)
    np.testing.assert_allclose([lower for lower, _, _ in told], [there for _, there, _ in told], rtol=1e-13)


@pytest.mark.parametrize("substeps", [IMPLICIT, SEMI], ids=["minimised", "semi-implicit"])
def test_a_block_around_the_rim_moves_as_without_the_plate(substeps):
    """A block that spins beside the rim, astride the plate's plane, where nodes have copies that are one, to 1e-8 m/s."""
    thin = plate((10, 0.2, 40), centre=(-5 * H, 0.0, 0.0))
    spun = block(JELLY, (2.6 * H, -2 * H, 0), (6.6 * H, 2 * H, 4 * H), H)
    spun = changed(spun, velocity=np.cross([0.0, 0.0, 8.0], spun["position"] - spun["position"].mean(axis=0)))
    ends = []
    for colliders in ((), (thin,)):
        solver = solve(spun, *colliders, substeps=substeps)
        for _ in range(8):
            solver.step(2.5e-3)
        ends.append(solver.snapshot(["velocity"])["velocity"])
    assert len(solver.particles.block_sides) == 3
    assert np.abs(ends[0] - ends[1]).max() < 1e-8


def test_a_knife_cuts_a_falling_block():
    """A block falls on an upright blade between its particles, which slips: in two parts, as fast as it would fall."""
    blade = plate((0.1, 20, 40), centre=(0.0, -10 * H, 0.0), rule=CollisionRule.SEPARATE)
    start = moving(block(JELLY, (-3 * H, 0.5 * H, 0), (3 * H, 4.5 * H, 4 * H), H), 0.0, -2.0, 0.0)
    solver = solve(start, blade, gravity=(0.0, -9.81, 0.0))
    solver.advance(0.1, 2.5e-3)
    end = solver.snapshot(["velocity"])
    fall = (start["position"] - end["position"])[:, 1].mean()
    assert fall == pytest.approx(2.0 * 0.1 + 0.5 * 9.81 * 0.1 * (0.1 + 2.5e-3), rel=1e-3)
    assert (np.sign(start["position"][:, 0]) == np.sign(end["position"][:, 0])).all()


def test_implicit_steps_agree_with_explicit_ones_around_a_plate():
    """Blocks on both sides and past the rim, in steps of a hundredth of a cell of sound: to 2 % of the speed."""
    start = moving(block(JELLY, (-4 * H, 0.1 * H, 0), (4 * H, 3.1 * H, 4 * H), H), 0.0, -1.0, 0.0)
    below = block(JELLY, (-4 * H, -3.1 * H, 0), (4 * H, -0.1 * H, 4 * H), H)
    thin = plate((10, 0.2, 40), centre=(-5 * H, 0.0, 0.0))
    ends = []
    for substeps in ("explicit_apic", IMPLICIT):
        solver = solve(merge_particles([start, below]), thin, substeps=substeps)
        for _ in range(20):
            solver.step(5e-5)
        ends.append(solver.snapshot(["velocity"])["velocity"])
    assert np.abs(ends[0]).max() > 0.5
    assert np.abs(ends[0] - ends[1]).max() < 0.02
