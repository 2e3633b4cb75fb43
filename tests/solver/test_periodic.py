"""Periodic sides: nothing happens where they are, wherever matter lies."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import MpmNodesError, WallRule
from mpm_nodes.nodes.forces import force_air
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from mpm_nodes.verification.implicit import SHARP
from mpm_nodes.verification.quantities import momentum
from mpm_nodes.verification.scenes import block, changed, material, walled

H = 0.05
L = 8 * H
AROUND, OPEN, SLIP = WallRule.PERIODIC, WallRule.OPEN, WallRule.SLIP
JELLY = material("neo_hookean", youngs_modulus=1e5)


def wave(shift, axes=(0, 1, 2), substeps="explicit_apic", walls=None):
    """Return particles of a periodic jelly after 30 steps of a smooth motion that began `shift` cells further on."""
    turn = list(axes)
    start = block(JELLY, (0, 0, 0), (L, 2 * L, L), H)
    x = start["position"]
    velocity = 0.3 * np.stack(
        [np.sin(2 * np.pi * x[:, 1] / (2 * L)), np.cos(2 * np.pi * x[:, 2] / L), np.sin(2 * np.pi * x[:, 0] / L)], 1
    )
    position = (x + H * np.asarray(shift))[:, turn]
    low, high = np.zeros(3), np.array([L, 2 * L, L])[turn]
    walls = walled(low, high, AROUND) if walls is None else walls
    columns = {"position": low + np.mod(position - low, high - low), "velocity": velocity[:, turn]}
    solver = SubstepSolver(
        changed(start, **columns), substeps, cell_size=H, dtype=np.float64, walls=walls, gravity=(0, 0, 0), origin=(0, 0, 0)
    )
    before = momentum(solver)
    for _ in range(30):
        solver.step(1e-3)
    assert np.abs(momentum(solver) - before).max() < 1e-12
    found = solver.snapshot(["velocity"])
    assert (found["position"] >= low).all() and (found["position"] < high).all()
    back = np.argsort(turn)
    return found["position"][:, back] - H * np.asarray(shift), found["velocity"][:, back]


def test_a_motion_is_the_same_wherever_the_sides_are():
    """Moved by whole cells, so that others lie at the sides, and with the axes in another order: one motion, to rounding."""
    place, velocity = wave((0, 0, 0))
    for shift, axes in (((3, 0, 5), (0, 1, 2)), ((0, 0, 0), (2, 0, 1))):
        there, other = wave(shift, axes)
        way = there - place
        assert np.abs(way - [L, 2 * L, L] * np.rint(way / [L, 2 * L, L])).max() < 1e-12
        assert np.abs(other - velocity).max() < 1e-11


@pytest.mark.parametrize("cells", [1, 2, 5])
@pytest.mark.parametrize("across", [8, 16])
def test_air_presses_on_a_plate_between_periodic_sides_as_if_it_had_no_edges(cells, across):
    """The force of its area, to a hundredth for a layer of one cell: also where the block before a block is the one behind it."""
    start = block(JELLY, (0.52 * L, 0, 0), (0.52 * L + cells * H, across * H, across * H), H)
    walls = walled((0, 0, 0), (2 * L, across * H, across * H), OPEN, OPEN, AROUND, AROUND, AROUND, AROUND)
    solver = SubstepSolver(start, "explicit_apic", cell_size=H, dtype=np.float64, walls=walls, gravity=(0, 0, 0), origin=(0, 0, 0))
    push(solver, [force_air(velocity=(10.0, 0.0, 0.0), density=2.0)])
    solver.step(1e-5)
    impulse = solver.step_context.report["forces"]["impulse"]
    assert impulse[0] / (100.0 * (across * H) ** 2 * 1e-5) == pytest.approx(1.0, rel=0.0125)


@pytest.mark.parametrize("substeps", ["explicit_apic", "implicit_apic"])
def test_a_slab_between_periodic_sides_is_a_plane(substeps):
    """What is even along z stays even to rounding, whatever the depth: a block that turns and rebounds, 8 and 16 cells deep."""
    ends = []
    for cells in (8, 16):
        start = block(JELLY, (0.05, 0.05, 0), (0.25, 0.25, cells * H), H)
        x = start["position"]
        velocity = np.stack([3.0 * (x[:, 1] - 0.15), -2.0 * (x[:, 0] - 0.15) - 1.0, np.zeros(len(x))], 1)
        walls = walled((0, 0, 0), (L, 2 * L, cells * H), SLIP, SLIP, WallRule.STICKY, OPEN, AROUND, AROUND)
        sharp = {"preset": substeps, "set": SHARP if substeps == "implicit_apic" else {}}
        solver = SubstepSolver(
            changed(start, velocity=velocity), sharp, cell_size=H, walls=walls, dtype=np.float64, origin=(0, 0, 0)
        )
        for _ in range(60):
            solver.step(2e-3)
        end = solver.snapshot(["velocity"])
        assert end["velocity"][:, 1].mean() > -1.0 and np.abs(end["velocity"][:, 2]).max() < 1e-9
        order = np.lexsort((x[:, 2], x[:, 1], x[:, 0]))
        layers = end["position"][order].reshape(-1, 2 * cells, 3)[..., :2]
        assert np.ptp(layers, axis=1).max() < 1e-12
        ends.append(layers[:, 0])
    assert np.abs(ends[0] - ends[1]).max() < 1e-12


def test_matter_goes_around():
    """A block without forces leaves on one side and comes in at the other; it keeps its velocity and its shape."""
    start = block(JELLY, (0, 0, 0), (4 * H, 4 * H, 4 * H), H)
    start = changed(start, velocity=np.tile([3.0, -1.0, 0.0], (len(start), 1)))
    walls = walled((0, 0, 0), (L, L, L), AROUND, AROUND, AROUND, AROUND, OPEN, OPEN)
    solver = SubstepSolver(start, cell_size=H, walls=walls, gravity=(0, 0, 0), dtype=np.float64)
    solver.advance(0.4, 2e-3)
    end = solver.snapshot(["velocity"])
    assert np.abs(end["velocity"] - [3.0, -1.0, 0.0]).max() < 1e-12
    way = end["position"] - start["position"] - [1.2, -0.4, 0.0]
    assert np.abs(way - np.array([L, L, 1.0]) * np.rint(way / [L, L, 1.0])).max() < 1e-6 * H


@pytest.mark.parametrize(
    ("sides", "high", "substeps", "text"),
    [
        ((AROUND, SLIP, OPEN, OPEN, OPEN, OPEN), L, "explicit_apic", "make both periodic"),
        ((AROUND,) * 6, 10 * H, "explicit_apic", "not a multiple of 8 cells"),
        pytest.param(
            *((AROUND,) * 6, L, "separate_bodies", "stage collide_bodies does not look beyond periodic sides"),
            marks=pytest.mark.phenomena("separate_bodies"),
        ),
    ],
)
def test_periodic_sides_that_cannot_be_are_refused(sides, high, substeps, text):
    """One side alone, another length, and stages that do not look beyond them: each by name, with what to do."""
    start = block(JELLY, (0, 0, 0), (L, L, L), H)
    with pytest.raises(MpmNodesError, match=text):
        SubstepSolver(start, substeps, cell_size=H, walls=walled((0, 0, 0), (high,) * 3, *sides))
