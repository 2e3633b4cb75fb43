"""Contacts of grid nodes as constraints: projectors, the order of bodies, release, and friction by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.kernels.collisions import contacts, friction
from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP, STICKY

X, Y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
OBLIQUE = np.array([-0.6, 0.8, 0.0])
EPS = 1e-3


def contact(rule, normal, body=(0.0, 0.0, 0.0), node=0, friction=0.0):
    """Return a contact's row."""
    return [node, rule, friction, *normal, *body, -1, 0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0, 0.0]


def following(row, image, ratio, body=(0.0, 0.0, 0.0)):
    """Return a contact's row with a image."""
    return [*row[:9], image, ratio, *body, *row[14:]]


class Scene:
    """Contacts of a few nodes, as a minimisation sets them up."""

    def __init__(self, *rows, velocity):
        self.rows = np.array(rows, float)
        self.velocity = np.zeros(4 * len(velocity))
        self.velocity.reshape(-1, 4)[:, :3] = velocity
        self.slot, self.of_row = np.full(len(velocity), -1, np.int32), np.empty(len(rows), np.int64)
        self.count = contacts.number_nodes(self.rows, self.slot, self.of_row)
        self.free, self.held = np.empty(6 * self.count), np.empty(6 * len(rows))
        self.active, self.releases = np.zeros(len(rows), np.uint8), np.zeros(len(rows), np.uint8)
        self.impulse = np.zeros(len(rows))

    def constrain(self, choose=True):
        """Constrain, and return the nodes' velocities."""
        contacts.constrain(self.rows, self.of_row, self.active, self.velocity, self.free, self.held, choose)
        return self.velocity.reshape(-1, 4)[:, :3]

    def projector(self, number=0):
        """Return the projector of a node in contact."""
        xx, xy, xz, yy, yz, zz = self.free[6 * number : 6 * number + 6]
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def test_nodes_are_numbered_in_the_order_of_their_contacts():
    """A node in two contacts has one number."""
    scene = Scene(contact(SLIP, X, node=2), contact(SLIP, Y, node=0), contact(SLIP, Y, node=2), velocity=np.zeros((3, 3)))
    assert scene.count == 2 and scene.of_row.tolist() == [0, 1, 0] and scene.slot.tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    ("rule", "expected", "rank"), [(STICKY, (0.5, 0.1, -0.2), 0), (SLIP, (1.0, 0.1, 2.0), 2), (SEPARATE, (1.0, 0.1, 2.0), 2)]
)
def test_each_rule_takes_its_components_of_a_moving_body(rule, expected, rank):
    """Sticky takes all, slip and an approached separating body the normal one; P projects on what is left."""
    scene = Scene(contact(rule, Y, (0.5, 0.1, -0.2)), velocity=[(1.0, -3.0, 2.0)])
    np.testing.assert_allclose(scene.constrain()[0], expected, atol=1e-15)
    P = scene.projector()
    np.testing.assert_allclose(P @ P, P, atol=1e-15)
    assert np.linalg.matrix_rank(P) == rank and (rank == 0 or np.abs(P @ Y).max() < 1e-15)


def test_a_separating_body_lets_a_receding_node_go():
    """Only what approaches, relative to the body, is held."""
    scene = Scene(contact(SEPARATE, Y, (0.0, 0.5, 0.0)), velocity=[(1.0, 0.7, 0.0)])
    assert scene.constrain()[0].tolist() == [1.0, 0.7, 0.0] and not scene.active[0]
    scene = Scene(contact(SEPARATE, Y, (0.0, 0.9, 0.0)), velocity=[(1.0, 0.7, 0.0)])
    assert scene.constrain()[0].tolist() == [1.0, 0.9, 0.0] and scene.active[0]


@pytest.mark.parametrize("first", [SLIP, SEPARATE, STICKY])
def test_the_last_of_two_bodies_has_the_last_word(first):
    """The condition of the last one holds exactly; a sticky one leaves nothing to the others."""
    rows = [contact(first, Y, (0.0, 2.0, 0.0)), contact(SLIP, OBLIQUE, (0.3, 0.0, 0.0))]
    scene = Scene(*rows, velocity=[(1.0, -3.0, 2.0)])
    assert scene.constrain()[0] @ OBLIQUE == pytest.approx(np.dot((0.3, 0.0, 0.0), OBLIQUE), abs=1e-14)
    if first != STICKY:  # in the corner of two planes both hold, along their line nothing does
        assert scene.constrain()[0, 1] == pytest.approx(2.0) and scene.constrain()[0, 2] == 2.0
    sticky = Scene(rows[0], contact(STICKY, Y, (0.4, 0.5, 0.6)), velocity=[(1.0, -3.0, 2.0)])
    np.testing.assert_allclose(sticky.constrain()[0], (0.4, 0.5, 0.6), atol=1e-15)


def test_equal_bodies_count_once():
    """Two planes in one place leave what one leaves: the second has nothing to remove and does not divide by it."""
    scene = Scene(contact(SLIP, OBLIQUE), contact(SLIP, OBLIQUE), velocity=[(1.0, -3.0, 2.0)])
    velocity = scene.constrain()[0]
    np.testing.assert_allclose(velocity, np.array([1.0, -3.0, 2.0]) + 3.0 * OBLIQUE, atol=1e-14)
    assert np.trace(scene.projector()) == pytest.approx(2.0)


def test_a_contact_that_pulls_lets_go_but_not_for_ever():
    """A negative normal impulse frees a separating contact so often at most; slip and sticky ones hold."""
    rows = [contact(SEPARATE, Y), contact(SLIP, Y, node=1), contact(SEPARATE, Y, node=2)]
    scene = Scene(*rows, velocity=[(0.0, -1.0, 0.0)] * 3)
    scene.constrain()
    gradient = np.zeros(12)
    gradient[[1, 5, 9]] = -2.0, -2.0, 3.0
    assert contacts.let_go(scene.rows, scene.active, gradient, scene.impulse, scene.releases, 1) == 1
    assert scene.active.tolist() == [0, 1, 1] and scene.impulse.tolist() == [0.0, 0.0, 3.0]
    scene.active[0] = 1
    assert contacts.let_go(scene.rows, scene.active, gradient, scene.impulse, scene.releases, 1) == 0 and scene.active[0]


def test_a_step_into_a_body_is_stopped_there():
    """`clamp` gives an inactive contact the body's normal velocity and makes it hold; others it leaves alone."""
    scene = Scene(contact(SEPARATE, Y, (0.0, 0.1, 0.0)), contact(SEPARATE, Y, node=1), velocity=[(1.0, 1.0, 0.0)] * 2)
    scene.constrain()
    scene.velocity[1] = -0.5
    assert contacts.clamp(scene.rows, scene.of_row, scene.active, scene.free, scene.velocity) == 1
    assert scene.active.tolist() == [1, 0] and scene.velocity[:3] == pytest.approx([1.0, 0.1, 0.0], abs=1e-15)


# ---------------------------------------------------------------- friction
def rubbing(speed):
    """Return a scene of one node that slips at `speed` [m/s] on an oblique plane, with its friction's slope."""
    t = np.array([0.8, 0.6, 0.0]) * np.cos(0.3) + np.array([0.0, 0.0, 1.0]) * np.sin(0.3)
    scene = Scene(contact(SEPARATE, OBLIQUE, (0.3, -0.2, 0.1), friction=0.6), velocity=[(0.3, -0.2, 0.1) + speed * t])
    scene.active[:], scene.impulse[:] = 1, 5.0
    return scene, t


def drag(scene, velocity):
    """Return energy and slope of the friction."""
    slope = np.empty(3)
    value = friction.drag_of(rubbed(scene), velocity, slope)
    return value, slope


def rubbed(scene):
    """Return the contacts of a scene as friction takes them."""
    return friction.Rubbing(scene.rows, scene.of_row, np.full(len(scene.rows), -1), scene.active, scene.impulse, EPS)


def curvature(scene, gradient, mass=1.0):
    """Return the matrix that Newton's method takes for the friction."""
    packed, momentum = np.empty(6), np.array([0.0, 0.0, 0.0, mass])
    friction.drag_curvature(rubbed(scene), momentum, scene.velocity, np.append(gradient, 0.0), packed)
    xx, xy, xz, yy, yz, zz = packed
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize("speed", [0.3 * EPS, 0.9 * EPS, 1.1 * EPS, 2.0])
def test_friction_is_the_slope_of_its_dissipation(speed):
    """Central differences of the dissipation, below and above the speed under which friction holds."""
    scene, t = rubbing(speed)
    _, slope = drag(scene, scene.velocity)
    step, found = 1e-2 * min(speed, EPS), np.empty(3)
    for axis in range(3):
        moved = [scene.velocity.copy() for _ in range(2)]
        moved[0][axis] -= step
        moved[1][axis] += step
        found[axis] = (drag(scene, moved[1])[0] - drag(scene, moved[0])[0]) / (2 * step)
    np.testing.assert_allclose(found, slope, atol=1e-3 * 3.0)  # curvature changes by its own size over the speed: step^2
    np.testing.assert_allclose(slope, 0.6 * 5.0 * min(speed / EPS, 1.0) * t, atol=1e-12)


@pytest.mark.parametrize("speed", [0.3 * EPS, 2.0])
def test_the_curvature_of_friction_is_exact_where_friction_holds_and_where_it_slips_on(speed):
    """Without a push against the slip it is the second derivative: central differences of the slope."""
    scene, _ = rubbing(speed)
    step, found = 1e-3 * speed, np.empty((3, 3))
    for axis in range(3):
        moved = [scene.velocity.copy() for _ in range(2)]
        moved[0][axis] -= step
        moved[1][axis] += step
        found[:, axis] = (drag(scene, moved[1])[1] - drag(scene, moved[0])[1]) / (2 * step)
    np.testing.assert_allclose(curvature(scene, np.zeros(3)), found, atol=1e-5 * np.abs(found).max())


def test_friction_that_stops_a_node_brings_it_to_rest_in_one_step():
    """A node of 1 kg at 2 m/s under an impulse of 3 kg m/s: Newton's step ends at rest, under one of 1.5 at 0.5 m/s."""
    for impulse, end in ((5.0, 0.0), (2.5, 0.5)):
        scene, t = rubbing(2.0)
        scene.impulse[:] = impulse
        _, slope = drag(scene, scene.velocity)
        step = np.linalg.solve(np.eye(3) + curvature(scene, slope), -slope)
        assert 2.0 + step @ t == pytest.approx(end, abs=1e-12)


def linked(seed=3):
    """Return five nodes: one sticks and one slips after a image, one slips after a slipping image; random velocities."""
    random = np.random.default_rng(seed)
    return Scene(
        following(contact(STICKY, Y, (0.1, 0.2, 0.3), node=0), 1, -0.7, (0.2, 0.1, 0.0)),
        following(contact(SLIP, OBLIQUE, (0.4, 0.0, 0.1), node=2), 1, 0.3),
        following(contact(SLIP, X, node=3), 2, -1.2),
        velocity=random.normal(size=(5, 3)),
    )


def test_a_node_takes_its_share_of_its_images_relative_velocity():
    """v_i - w_i = r (v_j - w_j), all of it where it sticks, along the normal where it slips, also after a image that follows."""
    scene = linked()
    v = scene.constrain().copy()
    np.testing.assert_allclose(v[0] - (0.1, 0.2, 0.3), -0.7 * (v[1] - (0.2, 0.1, 0.0)), atol=1e-14)
    assert (v[2] - (0.4, 0.0, 0.1)) @ OBLIQUE == pytest.approx(0.3 * v[1] @ OBLIQUE, abs=1e-14)
    assert v[3] @ X == pytest.approx(-1.2 * v[2] @ X, abs=1e-14)


def test_following_and_handing_over_are_adjoint():
    """(B x).g = x.(B^T g) for any vectors, so that the eliminated Hessian is symmetric; what is handed over leaves nothing held."""
    scene = linked()
    scene.constrain()
    random = np.random.default_rng(8)
    x, g = random.normal(size=(2, 20))
    x[3::4] = g[3::4] = 0.0
    followed, reduced = x.copy(), g.copy()
    contacts.follow(scene.rows, scene.active, scene.held, followed)
    contacts.hand_over(scene.rows, scene.active, scene.held, reduced)
    assert followed @ g == pytest.approx(x @ reduced, rel=1e-13)
    again = followed.copy()
    contacts.follow(scene.rows, scene.active, scene.held, again)
    np.testing.assert_allclose(again, followed, atol=1e-14)
    assert np.abs(reduced[:3]).max() < 1e-14 and abs(reduced[8:11] @ OBLIQUE) < 1e-14 and abs(reduced[12:15] @ X) < 1e-14


def test_a_followed_node_enters_by_what_is_left_of_its_speed():
    """A separating contact holds where v_i.n < r v_j.n: matter that shears along n without a speed at the surface is left alone."""
    row = following(contact(SEPARATE, Y, node=0), 1, 0.4)
    for speed, holds in ((-0.41, 1), (-0.39, 0)):
        scene = Scene(row, velocity=[(0.0, speed, 0.0), (0.0, -1.0, 0.0)])
        scene.constrain()
        assert scene.active[0] == holds


def test_the_dissipation_of_friction_has_no_jump():
    """mu lam |v_t| beyond the smoothing, and the parabola that meets it: eps / 2 of it is left at rest."""
    found = [drag(scene, scene.velocity)[0] for scene, _ in map(rubbing, (0.0, EPS * (1.0 - 1e-9), EPS * (1.0 + 1e-9), 2.0))]
    np.testing.assert_allclose(found, 0.6 * 5.0 * np.array([0.5 * EPS, EPS, EPS, 2.0]), rtol=1e-8)


@pytest.mark.parametrize("ratio", [0.0, -0.4])
def test_an_explicit_contact_rubs_for_its_image_too(ratio):
    """mu times all that the body gives: m mu (1 - r) times the approach of the node, and no more than stops it."""
    for along, share in ((5.0, 0.3 * (1.0 - ratio) * 2.0), (0.1, 0.1)):
        row = following(contact(SEPARATE, Y, friction=0.3), 1, ratio)
        scene = Scene(row, velocity=[(along, -2.0, 0.0), (0.0, 0.0, 0.0)])
        momentum, slope = np.array([0.0, 0.0, 0.0, 1.5] * 2), np.empty(3)
        friction.rub(scene.rows, scene.of_row, np.ones(1, np.uint8), momentum, scene.velocity, slope)
        np.testing.assert_allclose(slope, [1.5 * share, 0.0, 0.0], atol=1e-14)
