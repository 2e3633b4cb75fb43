"""What a solve begins with: a deformation that is held twice agrees, viscosity acts from the first substep, ends can be clamped."""

from __future__ import annotations

import numpy as np
import pytest
from solver_scenes import JELLY, cube

from mpm_nodes import SubstepSolver
from mpm_nodes.data import Collider, CollisionRule, FrameContext, Material, MpmNodesError, Particles
from mpm_nodes.kernels.level_sets.level_set import BOX, PosedLevelSets
from mpm_nodes.materials.library import named_material
from mpm_nodes.nodes.collide import collide_box

FOAM = named_material("shaving_cream")
HONEY = Material("liquid", {"bulk_modulus": 1e4, "viscosity": 10.0}, 1000.0)
STILL = (0.0, 0.0, 0.0)


def foam(**columns) -> Particles:
    """Return a lattice of foam with more columns."""
    lattice = 0.01 * (np.stack(np.meshgrid(*(np.arange(4.0),) * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5)
    return Particles({"position": lattice, **columns}, (FOAM,), 0.01)


# ---------------------------------------------------------------- J, held by the foam and by its total deformation
def test_a_given_total_deformation_gives_the_foam_its_volume():
    """Swollen by 1.1 along x, it pushes back: J - 1 is that of det F, and the first substep moves it as with both given."""
    F = np.broadcast_to(np.diag([1.1, 1.0, 1.0]), (64, 3, 3))
    both = foam(total_deformation=F, volume_change=np.full(64, 0.1))
    solvers = [SubstepSolver(part, "continuum_foam", gravity=STILL, dtype=np.float64) for part in (foam(total_deformation=F), both)]
    assert np.allclose(solvers[0].particles.unpack("volume_change"), 0.1, rtol=1e-12)
    for solver in solvers:
        solver.step(1e-5)
    velocities = [solver.snapshot(["velocity"])["velocity"] for solver in solvers]
    assert np.abs(velocities[0]).max() > 1e-3 and np.abs(velocities[0] - velocities[1]).max() < 1e-12


def test_volumes_that_contradict_each_other_are_refused():
    """A given J that is not the determinant of the given F names the particle and both numbers."""
    F = np.broadcast_to(np.diag([1.1, 1.0, 1.0]), (64, 3, 3))
    with pytest.raises(MpmNodesError, match=r"volume_change of particle 0 is 0\.2, but the determinant .* less 1 is 0\.1"):
        SubstepSolver(foam(total_deformation=F, volume_change=np.full(64, 0.2)), "continuum_foam")


# ---------------------------------------------------------------- viscosity
def test_viscosity_acts_in_the_first_substep():
    """Honey that flows as u = 2 y^2 is slowed by mu u'' / rho = 0.04 m/s^2 from its first substep on, as deep as splines reach."""
    dt, start = 1e-5, cube(HONEY, cells=10)
    y = start["position"][:, 1]
    velocity = np.stack([2.0 * y**2, 0.0 * y, 0.0 * y], axis=1)
    given = {"given": {"velocity_gradient": np.zeros((len(y), 3, 3))}, "measured": {}}  # no gradient given: it is measured
    speeds = {}
    for name, columns in given.items():
        moving = Particles({**start.attributes, "velocity": velocity, **columns}, start.materials, start.spacing)
        solver = SubstepSolver(moving, gravity=STILL, dtype=np.float64)
        solver.step(dt)
        speeds[name] = solver.snapshot(["velocity"])["velocity"][:, 0]
    inside = (np.abs(start["position"] - 0.5) < 0.05).all(axis=1)
    gained = (speeds["measured"] - speeds["given"])[inside] / dt
    assert inside.sum() == 8 and np.abs(gained - 10.0 * 4.0 / 1000.0).max() < 0.001


# ---------------------------------------------------------------- clamped ends
def pulled(clamp: bool) -> np.ndarray:
    """Return how far particles at the heart of a clamp, which moves at 1 m/s, lag behind it after 0.05 s [cells]."""
    start = cube(JELLY)
    low, high = start["position"].min(axis=0), start["position"].max(axis=0)
    cell = 2.0 * start.spacing
    middle = np.array([low[0], *(0.5 * (low + high))[1:]])
    half = (2.5 * cell, *(high - low)[1:])
    times = np.array([0.0, 1.0])
    shape = PosedLevelSets(
        BOX, half, pose_times=times, rotations=np.eye(4)[[0, 0]], translations=np.stack([middle, middle - [1.0, 0, 0]])
    )
    body = Collider("clamp", CollisionRule.STICKY, 0.0, shape, clamp=clamp)
    solver = SubstepSolver(start, colliders=[body], gravity=STILL, dtype=np.float64)
    solver.advance(0.05)
    held = start["position"][:, 0] < low[0] + 0.5 * cell
    return (solver.snapshot(["position"])["position"] - start["position"])[held] / cell + [0.05 / cell, 0.0, 0.0]


def test_an_end_is_clamped_by_embedding_it_where_that_is_asked():
    """What lies two cells inside a sticky body that clamps goes with it to 1 % of a cell; else it is pushed out."""
    assert np.abs(pulled(True)).max() < 0.01
    assert np.abs(pulled(False)).max() > 1.0


def test_only_what_sticks_can_clamp():
    """The rule says so by name."""
    with pytest.raises(MpmNodesError, match="collider 'jaw': clamp holds by the rule sticky, and the rule is slip"):
        collide_box(FrameContext(1), rule=CollisionRule.SLIP, clamp=True, name="jaw")
    assert collide_box(FrameContext(1), rule=CollisionRule.STICKY, clamp=True).clamp
