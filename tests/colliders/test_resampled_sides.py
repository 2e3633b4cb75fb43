"""Resampling does not reach across thin plates: what it puts in and merges on one side comes from that side."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import CollisionRule, FrameContext, GraphSettings
from mpm_nodes.nodes.collide import collide_box
from mpm_nodes.nodes.emit import merge_particles
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block, changed, material

H = 0.05
JELLY = material("neo_hookean", youngs_modulus=1e5)
FILLED = {
    "preset": "explicit_apic",
    "edits": [{"insert": "fill", "after": "move_particles", "type": "avoid_a_void", "knobs": {"interval": 1}}],
}


def two_sides():
    """Return blocks on both faces of a plate, drawn out until voids open, the upper one in motion along it, and the plate."""
    low = block(JELLY, (0, -5.1 * H, 0), (8 * H, -0.1 * H, 6 * H), H)
    high = block(JELLY, (0, 0.1 * H, 0), (8 * H, 5.1 * H, 6 * H), H)
    high = changed(high, velocity=np.tile([1.0, 0.0, 0.0], (len(high), 1)))
    both = merge_particles([low, high])
    drawn_out = changed(both, position=both["position"] * [1.35, 1.0, 1.1])
    context = FrameContext(1, GraphSettings(cell_size=H))
    thin = collide_box(context, size=(60 * H, 0.2 * H, 60 * H), rule=CollisionRule.SLIP)
    return drawn_out, thin


def test_what_is_put_in_comes_from_its_own_side():
    """Mass of each side and its momentum along the plate stay to rounding while hundreds are put in; what rests stays at rest.

    What is put in above turns a little: its donors' angular momentum is kept, here as without a plate.
    """
    particles, thin = two_sides()
    given = {"cell_size": H, "dtype": np.float64, "gravity": (0.0, 0.0, 0.0), "origin": (0.0, 0.0, 0.0)}
    solver = SubstepSolver(particles, FILLED, colliders=[thin], **given)
    count, before = solver.particles.count, solver.particles.unpack("mass").sum() / 2
    solver.advance(3e-3, 1e-3)
    assert len(solver.particles.block_sides) > 1
    end = solver.snapshot(["mass", "velocity"])
    above = end["position"][:, 1] > 0.0
    assert len(end) > count + 100
    for side, speed in ((above, 1.0), (~above, 0.0)):
        assert np.sum(end["mass"][side], dtype=float) == pytest.approx(before, rel=1e-12)
        momentum = end["mass"][side] @ end["velocity"][side]
        assert np.abs(momentum[[0, 2]] - [speed * before, 0.0]).max() < 1e-12 * before
    assert np.abs(end["velocity"][~above]).max() < 1e-12


def test_matter_around_a_rim_is_resampled():
    """Where nodes beyond the rim are one, particles are put in as well: all that rests stays at rest, mass to rounding."""
    start = block(JELLY, (-6 * H, -4.1 * H, 0), (6 * H, 3.9 * H, 6 * H), H)
    start = changed(start, position=start["position"] * [1.35, 1.0, 1.1])
    context = FrameContext(1, GraphSettings(cell_size=H))
    thin = collide_box(context, size=(40 * H, 0.1 * H, 60 * H), centre=(-20 * H, 0.0, 0.0), rule=CollisionRule.SLIP)
    given = {"cell_size": H, "dtype": np.float64, "gravity": (0.0, 0.0, 0.0), "origin": (0.0, 0.0, 0.0)}
    solver = SubstepSolver(start, FILLED, colliders=[thin], **given)
    before = solver.particles.unpack("mass").sum()
    solver.advance(3e-3, 1e-3)
    end = solver.snapshot(["mass", "velocity"])
    assert len(solver.particles.block_sides) > 1
    assert len(end) > len(start) + 100
    assert np.sum(end["mass"], dtype=float) == pytest.approx(before, rel=1e-12)
    assert np.abs(end["velocity"]).max() < 1e-12
