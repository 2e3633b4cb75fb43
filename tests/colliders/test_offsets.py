"""Walls between nodes: what they do does not hang on where they lie, and rounding does not decide what they hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule, FrameContext, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import POSE
from mpm_nodes.nodes.collide import collide_plane
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block, material

H = 0.05
OPEN = WallRule.OPEN


def hanging(offset, rule=CollisionRule.STICKY, substeps="explicit_apic", time=0.06, **options):
    """Return how far a jelly cube sinks [m] that hangs under a ceiling `offset` cells off the nodes."""
    jelly = material("neo_hookean", youngs_modulus=5e4)
    start = block(jelly, (0, -4 * H, 0), (4 * H, 0, 4 * H), H)
    ceiling = collide_plane(FrameContext(1), centre=(0, 0, 0), rotation=(180, 0, 0), rule=rule)
    solver = SubstepSolver(
        start, substeps, cell_size=H, dtype=np.float64, colliders=[ceiling], origin=(0, -offset * H, 0), **options
    )
    before = start["position"][:, 1].mean()
    solver.advance(time, 2e-4 if substeps == "explicit_apic" else 4e-3)
    return before - solver.particles.unpack("position")[:, 1].mean()


def test_a_sticky_ceiling_holds_wherever_it_lies_between_the_nodes():
    """A cube that touches it sinks alike at eight offsets, within 5 %, and does not come off."""
    ways = np.array([hanging(offset / 8) for offset in range(8)])
    assert np.abs(ways / ways.mean() - 1).max() < 0.05
    assert 0.002 < ways.mean() < 0.006  # free fall is 18 mm


def test_implicit_steps_hold_it_like_explicit_ones():
    """Two offsets agree within 5 %; with explicit steps, a twentieth as long, it is 10 %, for the damping of the long ones."""
    ways = np.array([hanging(offset, substeps={"preset": "implicit_apic", "set": {"tolerance": 1e-6}}) for offset in (0.0, 0.4)])
    assert abs(ways[1] / ways[0] - 1) < 0.05
    assert abs(ways[0] / hanging(0.0) - 1) < 0.10


def held_by(kind, rule, turn, offset, step):
    """Return how far a jelly cube goes along a surface and off it [m] in 50 ms, under a gravity that is aslant.

    A sticky or slipping surface is pulled at, a separating one pressed. The cube stands on the plane y = 0, and all is turned.

    Args:
        kind: "wall" (one of a solve) or "plane" (a collider).
        rule: Name of the rule.
        turn: Matrix that turns the scene.
        offset: Cells from the surface to the next layer of nodes.
        step: Time step [s].
    """
    start = block(material("neo_hookean", youngs_modulus=5e4), (0, 0, 0), (4 * H, 4 * H, 4 * H), H)
    normal = turn @ (0.0, 1.0, 0.0)
    colliders, walls = [], None
    if kind == "wall":
        axis = int(np.abs(normal).argmax())
        rules, low, high = [OPEN] * 6, np.full(3, -2.0), np.full(3, 2.0)
        rules[2 * axis + int(normal[axis] < 0)] = WallRule(rule)
        (low if normal[axis] > 0 else high)[axis] = 0.0
        walls = Walls(tuple(low), tuple(high), tuple(rules))
    else:
        w, axis = 0.5 * np.sqrt(max(1.0 + np.trace(turn), 0.0)), turn - turn.T
        orientation = (w, *(np.array((axis[2, 1], axis[0, 2], axis[1, 0])) / (4.0 * w)))
        colliders = [collide_plane(FrameContext(1), orientation=orientation, rule=CollisionRule(rule))]
    gravity = turn @ (4.0, -9.81 if rule == "separate" else 9.81, 0.0)
    moved = type(start)({**start.attributes, "position": start["position"] @ turn.T}, start.materials, start.spacing)
    solver = SubstepSolver(
        moved,
        cell_size=H,
        dtype=np.float64,
        colliders=colliders,
        walls=walls,
        gravity=tuple(gravity),
        origin=tuple(-offset * H * normal),
    )
    solver.advance(0.05, step)
    way = (solver.particles.unpack("position").mean(axis=0) - moved["position"].mean(axis=0)) @ turn
    return way[0], way[1]


AXES = {"y": np.eye(3), "x": np.eye(3)[[1, 2, 0]], "z": np.eye(3)[[2, 0, 1]]}
ASLANT = {"level": np.eye(3), "30 degrees": rotation_matrix((0.0, 0.0, 30.0)), "askew": rotation_matrix((25.0, 10.0, 40.0))}


KINDS = [
    pytest.param("wall", AXES, 1e-3, id="wall"),
    pytest.param("plane", ASLANT, 2.5e-4, id="plane", marks=pytest.mark.slow),  # aslant to the grid steps of 1 ms are 6 % off
]


@pytest.mark.parametrize("rule", ["sticky", "slip", "separate"])
@pytest.mark.parametrize(("kind", "turns", "step"), KINDS)
def test_surfaces_do_alike_at_eight_offsets_and_three_orientations(kind, turns, step, rule):
    """Ways off the surface and along it are those of all offsets and orientations within 5 %, and those of what the rule says."""
    ways = np.array([[held_by(kind, rule, turn, offset / 8, step) for offset in range(8)] for turn in turns.values()])
    free = 0.5 * np.array((4.0, 9.81)) * 0.05**2
    middle = ways.mean(axis=(0, 1))
    assert np.abs(ways / middle - 1).max() < 0.05
    assert abs(middle[1]) < 0.5 * free[1]
    assert middle[0] == pytest.approx(free[0], rel=0.05) if rule != "sticky" else middle[0] < 0.8 * free[0]


def walled_scene(turn, axis, offset=0.0):
    """Return positions after a cube has fallen on a wall at the end of `axis`, turned back, and the same on a plane.

    The nodes lie `offset` cells away from where the wall has a layer of them.
    """
    results = []
    for use_plane in (False, True):
        start = block(material("neo_hookean", youngs_modulus=1e5), (0, 0.3, 0), (0.2, 0.5, 0.2), H)
        position = start["position"] @ turn.T
        down = turn @ np.array([0.0, -1.0, 0.0])
        side = 2 * axis + int(down[axis] > 0)
        rules = [OPEN] * 6
        low, high = np.full(3, -2.0), np.full(3, 2.0)
        colliders, walls = [], None
        if use_plane:
            rotation = {(1, -1): (0, 0, 0), (1, 1): (180, 0, 0), (0, -1): (0, 0, -90), (0, 1): (0, 0, 90)}[
                axis, int(np.sign(down[axis]))
            ]
            colliders = [collide_plane(FrameContext(1), centre=tuple(-0.25 * down), rotation=rotation, rule=CollisionRule.SEPARATE)]
        else:
            rules[side] = WallRule.SEPARATE
            (high if side & 1 else low)[axis] = -0.25 * down[axis]
            walls = Walls(tuple(low), tuple(high), tuple(rules))
        columns = {**start.attributes, "position": position}
        solver = SubstepSolver(
            type(start)(columns, start.materials, start.spacing),
            cell_size=H,
            dtype=np.float64,
            colliders=colliders,
            walls=walls,
            gravity=tuple(9.81 * down),
            origin=tuple(offset * H * down),
        )
        solver.advance(0.12, 4e-4)
        results.append(solver.snapshot(["position"])["position"] @ turn)
    return results


TURNS = {
    "as it is": (np.eye(3), 1),
    "upside down": (np.diag([1.0, -1.0, -1.0]), 1),
    "on its side": (np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), 0),
    "on the other side": (np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), 0),
}


@pytest.mark.parametrize("offset", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("name", list(TURNS))
def test_quarter_turns_and_kinds_of_walls_agree(name, offset):
    """A wall and a plane, on a layer of nodes and off it, and both turned by quarter turns, give one motion to rounding."""
    reference = walled_scene(*TURNS["as it is"], offset)[0]
    wall, plane = walled_scene(*TURNS[name], offset)
    np.testing.assert_allclose(wall, reference, atol=1e-6 * H)
    np.testing.assert_allclose(plane, reference, atol=1e-6 * H)


def test_matter_between_two_plates_a_cell_apart_is_not_strained():
    """Opposite slip walls one cell apart leave no image between them: a block pressed by its own weight keeps its width."""
    start = block(material("neo_hookean", youngs_modulus=1e5), (0, 0, 0), (8 * H, 4 * H, H), H)
    slip = WallRule.SLIP
    walls = Walls((-1.0, 0.0, 0.0), (2.0, 2.0, H), (OPEN, OPEN, slip, OPEN, slip, slip))
    solver = SubstepSolver(start, cell_size=H, dtype=np.float64, walls=walls)
    solver.advance(0.1)
    across = solver.particles.unpack("deformation")[:, 2, 2]
    np.testing.assert_allclose(across, 1.0, atol=1e-9)


def test_no_contact_adds_kinetic_energy():
    """Random velocities against a moving ball in a box: the kinetic energy relative to what does not move never grows."""
    start = block(material("neo_hookean"), (0, 0, 0), (6 * H, 6 * H, 6 * H), H)
    velocity = np.random.default_rng(2).normal(size=(len(start), 3))
    for rule in (WallRule.STICKY, WallRule.SLIP, WallRule.SEPARATE):
        walls = Walls((0.3 * H,) * 3, (5.6 * H,) * 3, (rule,) * 6, 0.4)
        columns = {**start.attributes, "velocity": velocity}
        solver = SubstepSolver(type(start)(columns, start.materials, start.spacing), cell_size=H, dtype=np.float64, walls=walls)
        solver.step(1e-5, keep=True)
        grid = solver.grid
        mass = grid.unpack("mass")
        before = grid.unpack("momentum") / np.where(mass > 0, mass, 1)[:, None]
        grid.pack("velocity", before)
        solver.colliders.pose(0.0, 1e-5)
        solver.colliders.collide_grid(grid)
        energy = [float(mass @ (v**2).sum(axis=1)) for v in (before, grid.unpack("velocity"))]
        assert energy[1] <= energy[0] * (1 + 1e-12), rule


def test_collider_without_mass_nearby_changes_nothing():
    """A body out of reach lists no contact."""
    start = block(material("neo_hookean"), (0, 0, 0), (4 * H, 4 * H, 4 * H), H)
    far = collide_plane(FrameContext(1), centre=(0, -3 * H, 0))
    solver = SubstepSolver(start, cell_size=H, colliders=[far])
    solver.step(1e-5)
    assert isinstance(far, Collider) and len(solver.colliders.grid_contacts(solver.grid)) == 0


def test_quarter_turns_are_exact():
    """Degrees that are multiples of 90 give matrices of 0 and 1 alone, in nodes and as bodies are posed in a substep."""
    for degrees in itertools.product((0.0, 90.0, 180.0, -90.0, 450.0), repeat=3):
        turn = rotation_matrix(degrees)
        assert set(np.abs(turn).ravel()) == {0.0, 1.0} and np.linalg.det(turn) == 1.0
        colliders = ColliderSet([collide_plane(FrameContext(1), rotation=degrees)])
        colliders.pose(0.0, 1e-3)
        assert (colliders._real[0, POSE : POSE + 9].reshape(3, 3) == turn).all(), degrees
    np.testing.assert_allclose(rotation_matrix((0.0, 0.0, 30.0))[0, 1], -0.5, rtol=1e-15)


@pytest.mark.parametrize("offset", [0.2, 0.4, 0.7])
def test_what_a_contact_takes_from_a_node_its_image_answers_for(offset, monkeypatch):
    """On a sticky floor v_i = r v_j, by the least change in the mass norm: m_j dv_j + sum r m_i dv_i = 0 for every image j."""
    met = []

    def collided(colliders, grid, tells):
        found = colliders._listed(grid)
        rows = np.concatenate([np.arange(a, a + n) for a, n in zip(found.start, found.counts, strict=True)])
        (node, image), ratio = found.places[rows, :2].T.copy(), found.ratios[rows].copy()
        before = np.array(grid.array("velocity"), float).reshape(-1, 4)[:, :3]
        told = collide(colliders, grid, tells)
        after = np.array(grid.array("velocity"), float).reshape(-1, 4)[:, :3]
        met.append((node, image, ratio, before, after, np.array(grid.array("momentum"), float).reshape(-1, 4)[:, 3]))
        return told

    collide = ColliderSet.collide_grid
    monkeypatch.setattr(ColliderSet, "collide_grid", collided)
    start = block(material("neo_hookean", youngs_modulus=5e4), (0, 0, 0), (4 * H, 4 * H, 4 * H), H)
    start.attributes["velocity"] = np.tile([0.3, -1.0, 0.2], (len(start), 1))
    floor = collide_plane(FrameContext(1), rule=CollisionRule.STICKY)
    SubstepSolver(start, cell_size=H, dtype=np.float64, colliders=[floor], origin=(0, -offset * H, 0)).step(1e-4)
    node, image, ratio, before, after, mass = met[0]
    held = image >= 0
    assert held.sum() > 20 and np.abs(ratio[held]).max() > 0.1
    np.testing.assert_allclose(after[node[held]], ratio[held, None] * after[image[held]], atol=1e-12)
    balance = np.zeros_like(before)
    np.add.at(balance, image[held], (ratio * mass[node])[held, None] * (after - before)[node[held]])
    led = np.unique(image[held])
    np.testing.assert_allclose(mass[led, None] * (after - before)[led], -balance[led], atol=1e-12 * mass.max())
