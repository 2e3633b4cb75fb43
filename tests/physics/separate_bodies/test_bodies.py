"""Bodies that keep velocities of their own: gaps, normals, impulses, numbers, and what stays as it was without the stage."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpm_nodes.data import CollisionRule, GraphSettings, Material, MpmNodesError, Particles
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.kernels.collisions.rules import SEPARATE, SLIP, STICKY
from mpm_nodes.kernels.compile.jit import compiled
from mpm_nodes.nodes.emit import emit_box, merge_particles
from mpm_nodes.physics.separate_bodies.kernels import contacts as kernels
from mpm_nodes.physics.separate_bodies.kernels import half_spaces
from mpm_nodes.physics.separate_bodies.numerics.meeting import cloud_of, meeting_of
from mpm_nodes.physics.separate_bodies.numerics.pairs import pair_rules
from mpm_nodes.physics.separate_bodies.problems.bodies import apart, between, bodies, moving
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification import run
from mpm_nodes.verification.scenes import block, material

H = 0.05
JELLY = material("neo_hookean", youngs_modulus=1e5)


def test_verification():
    """Nothing across a gap; momentum and energy of what meets."""
    for record in run(["bodies_apart"]):
        assert record.passed, record


@pytest.mark.slow
@pytest.mark.parametrize("name", ["block_on_block", "stack_of_five", "glued_bodies", "poured_body"])
def test_slow_verification(name):
    """Coulomb's law at three offsets, a stack that rests, glue, and liquid from a tap."""
    for record in run([name]):
        assert record.passed, record


# ---------------------------------------------------------------- gaps and normals
@compiled
def contact_at(a, b, node, moments, table, cloud, points, contact):
    """Call from Python what only kernels can call."""
    kernels.find_contact(a, b, node, moments, table, cloud, points, contact)


def gaps(lower: Particles, upper: Particles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return place [cells], normal and gap [cells] of every node that two bodies share."""
    solver = apart(bodies(lower, upper), gravity=(0.0, 0.0, 0.0))
    solver.step(1e-9)
    meeting = meeting_of(solver.grid)
    moments = solver.grid.derived("meeting", lambda: None).moments
    place = solver.grid.positions().reshape(-1, 64, 3)[meeting.blocks] / H
    table = half_spaces.distances(3)
    cloud, points, found = cloud_of(meeting, solver.particles, solver.grid), np.empty((2, kernels.MOST_POINTS, 3)), []
    for a, _ in meeting.groups:
        for node in range(64):
            if min(moments[a, node, 0], moments[a + 1, node, 0]) > 1e-3 * H**3:
                contact = np.empty(4)
                contact_at(a, a + 1, node, moments, table, cloud, points, contact)
                found.append([*place[a, node], *contact])
    return np.split(np.array(found), [3, 6], axis=1)


def corner_contact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return normal and gap at a node between bodies of a few points [cells from the node] whose own normals say nothing."""
    points, rooms, found = np.concatenate([a, b]), np.empty((2, kernels.MOST_POINTS, 3)), np.empty(4)
    moments = np.tile([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], (2, 64, 1))
    pair, near = np.arange(2), np.arange(3)
    place = (np.ascontiguousarray((points - 3.5).T).ravel(), len(points), 1.0, np.zeros((2, 3), np.int32))
    matter = (np.array([0, len(a), len(points)]), np.full(len(points), 1e-3))
    cloud = kernels.NearbyParticles(pair, near, pair, *place, *matter, np.zeros((2, 3), np.int32), 1.0)
    contact_at(0, 1, 0, moments, half_spaces.distances(3), cloud, rooms, found)
    return found


def test_rounding_does_not_choose_a_corner():
    """Bodies of eight points that differ by rounding meet with the same normal, though steps leave points as far along the next."""
    rng, worst = np.random.default_rng(5), 0.0
    for _ in range(300):
        a, b = rng.uniform((-1.0, -1.0, -1.0), (1.0, -0.1, 1.0), (8, 3)), rng.uniform((-1.0, 0.1, -1.0), (1.0, 1.0, 1.0), (8, 3))
        stirred = [each * (1.0 + 1e-15 * rng.choice([-1.0, 1.0], each.shape)) for each in (a, b)]
        worst = max(worst, np.abs(corner_contact(a, b) - corner_contact(*stirred)).max())
    assert worst < 1e-9


@pytest.mark.parametrize("offset", [0.0, 0.1, 0.25, 0.4, 0.6, 0.85])
@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_the_gap_is_measured_wherever_the_faces_lie(offset, gap):
    """A small block over a table: under its face every node has the normal of the table and the true gap, at its rim nearly.

    Particles stand for the matter around them to the fourth order: a twentieth of a cell where only the outermost layer reaches.
    At the rim the steepness of an edge that passes for a face, 1.12, leaves its share in the normal: 14 degrees at most.
    """
    top = (3 + offset) * H
    table = block(JELLY, (0, offset * H, 0), (10 * H, top, 10 * H), H)
    where, normal, measured = gaps(table, block(JELLY, (3 * H, top + gap * H, 3 * H), (7 * H, top + (3 + gap) * H, 7 * H), H))
    under = (np.abs(where[:, [0, 2]] - 5.0) <= 2.0).all(axis=1) & (np.abs(where[:, 1] - 3 - offset - 0.5 * gap) < 0.6)
    assert under.sum() >= 25
    inner = under & (np.abs(where[:, [0, 2]] - 5.0) <= 0.5).all(axis=1)
    assert np.abs(normal[inner] - [0.0, 1.0, 0.0]).max() < 1e-3
    assert normal[under, 1].min() > np.cos(np.radians(14.0))
    assert np.abs(measured[under] - gap).max() < 0.05


def test_edges_on_each_other_have_the_normal_between_them():
    """Two equal blocks, one on the other: at their common edges the normal is that of their faces."""
    low, high = block(JELLY, (0, 0, 0), (0.2, 0.15, 0.2), H), block(JELLY, (0, 0.15, 0), (0.2, 0.3, 0.2), H)
    where, normal, measured = gaps(low, high)
    at_face = np.abs(where[:, 1] - 3.0) < 0.1
    assert np.abs(normal[at_face] - [0.0, 1.0, 0.0]).max() < 1e-6
    assert np.abs(measured[at_face]).max() < 0.01


@pytest.mark.parametrize("nodes", [3, 4])
def test_distances_are_those_of_half_spaces(nodes):
    """The table gives back the distance of a half space from the middle of its matter, by a quadrature of its own."""
    table, reach = half_spaces.distances(nodes), 0.5 * nodes
    for d in np.linspace(-0.8 * reach, 0.6 * reach, 9):
        s = np.linspace(-reach, d, 4001)
        a = np.abs(s)
        if nodes == 3:
            b = np.where(a < 0.5, 0.75 - a**2, 0.5 * (1.5 - a) ** 2)
        else:
            b = np.where(a < 1, (4 - 6 * a**2 + 3 * a**3) / 6, (2 - a) ** 3 / 6)
        ends = np.where((s == s[0]) | (s == s[-1]), 0.5, 1.0)
        middle = (s * b) @ ends / (b @ ends)
        assert half_spaces.half_space(middle, table, 0) == pytest.approx(d, abs=2e-3)
        assert half_spaces.half_space(middle, table, 1) == pytest.approx(b[-1], abs=2e-3)


@pytest.mark.parametrize("cubic", [False, True])
def test_spline_is_spread_over_the_particle(cubic):
    """Weights and moments are means over the particle's width, slopes the derivative: against a quadrature of the spline.

    What the fourth order leaves out is l^4/1920 times a fourth derivative of 4 at most: 3e-6 times a few.
    """

    def exact(s):
        a = np.abs(s)
        if cubic:
            return np.where(a < 1, (4 - 6 * a**2 + 3 * a**3) / 6, np.maximum(2 - a, 0) ** 3 / 6)
        return np.where(a < 0.5, 0.75 - a**2, 0.5 * np.maximum(1.5 - a, 0) ** 2)

    x, width = 2.3, 0.2  # no knot of the spline within the width
    first, w, m, slope = half_spaces.smeared_spline(cubic, x, width**2 / 24)
    s = x + width * (np.arange(2000) + 0.5) / 2000 - 0.5 * width
    for node in range(4 if cubic else 3):
        far = s - first - node
        assert w[node] == pytest.approx(exact(far).mean(), abs=1e-6)
        assert m[node] == pytest.approx((far * exact(far)).mean(), abs=3e-5)
        assert slope[node] == pytest.approx((exact(far + 1e-6) - exact(far - 1e-6))[1000] / 2e-6, abs=1e-2)


# ---------------------------------------------------------------- impulses
_SPEED = st.floats(-5.0, 5.0)


@given(
    rule=st.sampled_from([STICKY, SLIP, SEPARATE]),
    friction=st.floats(0.0, 2.0),
    masses=st.tuples(st.floats(1e-3, 10.0), st.floats(1e-3, 10.0)),
    u=st.tuples(_SPEED, _SPEED, _SPEED),
    leave=st.floats(-1.0, 2.0),
)
def test_impulses_never_add_energy(rule, friction, masses, u, leave):
    """The relative speed never grows, friction stays in Coulomb's cone, and what parts is left alone."""
    reduced = masses[0] * masses[1] / sum(masses)
    n = (0.6, 0.0, 0.8)
    j = np.array(kernels.impulse(rule, friction, reduced, u, n, leave, 0.0))
    after = np.array(u) - j / reduced
    assert np.linalg.norm(after) <= np.linalg.norm(u) * (1 + 1e-12)
    push = j @ np.array(n)
    if rule == SEPARATE:
        assert push >= 0.0
        assert np.linalg.norm(j - push * np.array(n)) <= friction * push + 1e-9
        if np.dot(u, n) <= max(0.0, leave):
            assert not j.any()
    elif leave < 0.0:
        assert after @ np.array(n) == pytest.approx(0.0, abs=1e-9)
        if rule == STICKY:
            assert np.abs(after).max() < 1e-9


# ---------------------------------------------------------------- glue
def pulled_apart(beside: float = 0.0, offset: float = 0.0, friction: float = 0.0, cells: int = 4, wide: int = 4) -> np.ndarray:
    """Return what a block is given that flies off one that it is glued to, over the strength of the face and the substep.

    The face has 4 by 4 cells, that of the lower one may be wider; both are some cells thick, and it lies some off the nodes. So
    many cells beside both there is a third block, if any.
    """
    low, dt, strength, rim, thick = offset * H, 1e-4, 100.0, 0.5 * (wide - 4) * H, cells * H
    parts = [
        block(JELLY, (-rim, low - thick, -rim), (0.2 + rim, low, 0.2 + rim), H),
        moving(block(JELLY, (0, low, 0), (0.2, low + thick, 0.2), H), 0.3, 1.0, 0.0),
    ]
    if beside:
        parts.append(block(JELLY, (0.2 + beside * H, low - 0.1, 0), (0.4, low + 0.1, 0.2), H))
    solver = apart(bodies(*parts), friction, strength, gravity=(0.0, 0.0, 0.0))
    solver.step(dt)
    upper = solver.particles.unpack("body") == 1
    given = solver.particles.unpack("mass")[upper] @ (solver.particles.unpack("velocity")[upper] - [0.3, 1.0, 0.0])
    return given / (strength * 0.2 * 0.2 * dt)


@pytest.mark.parametrize("offset", [0.0, 0.375, 0.7])
@pytest.mark.parametrize(("cells", "wide"), [(4, 4), (2, 4), (3, 8), (2, 8)])
def test_glue_pulls_by_its_strength_times_the_face(offset, cells, wide):
    """Wherever the face lies, of thin bodies and of one on a wider one to 3 %; there is no friction where all pulls that can."""
    pull = pulled_apart(offset=offset, friction=0.5, cells=cells, wide=wide)
    assert pull[1] == pytest.approx(-1.0, rel=0.01 if cells == wide else 0.03) and np.abs(pull[[0, 2]]).max() < 0.01


def test_glue_has_one_strength_in_all_sweeps():
    """A third body nearby makes the pairs meet four times; what glue has given is gone."""
    assert pulled_apart(beside=0.5)[1] == pytest.approx(-1.0, rel=0.01)


def test_what_is_glued_moves_as_one_and_what_has_parted_does_not():
    """Two blocks that are pushed apart within the strength stay together; a tenth of a cell apart nothing holds them."""
    for gap, holds in ((0.0, True), (0.12, False)):
        lower = block(JELLY, (0, 0, 0), (0.2, 0.2, 0.2), H)
        upper = moving(block(JELLY, (0, 0.2 + gap * H, 0), (0.2, 0.4 + gap * H, 0.2), H), 0.0, 0.1, 0.0)
        solver = apart(bodies(lower, upper), 0.5, 1e4, gravity=(0.0, 0.0, 0.0))
        for _ in range(200):
            solver.step(5e-4)
        which, velocity = solver.particles.unpack("body"), solver.particles.unpack("velocity")
        means = [velocity[which == n, 1].mean() for n in (0, 1)]
        assert means == (pytest.approx([0.05, 0.05], abs=0.02) if holds else pytest.approx([0.0, 0.1], abs=1e-9))


def test_keys_of_the_adhesion_let_go():
    """Held together until a frame; from then on one flies off."""
    keys = {"keys": [[1, 1e4, "step"], [5, 0.0, "step"]]}
    lower, upper = (block(JELLY, (0, y, 0), (0.2, y + 0.2, 0.2), H) for y in (0.0, 0.2))
    substeps = {"preset": "separate_bodies", "set": {"adhesion": keys}}
    solver = SubstepSolver(bodies(lower, upper), substeps, cell_size=H, dtype=np.float64, gravity=(0.0, 0.0, 0.0))
    for frame, goes in ((4.0, 0.0), (5.0, 1.0)):
        which = solver.particles.unpack("body") == 1
        solver.particles.pack("velocity", np.where(which, 0.1, 0.0)[:, None] * [0.0, 1.0, 0.0])
        begin = between(solver)
        for _ in range(200):
            solver.step(5e-4, frame=frame)
        assert (between(solver) - begin)[1] / (0.1 * 0.1) == pytest.approx(goes, abs=0.2)


# ---------------------------------------------------------------- pairs and numbers
def test_pairs_have_rules_of_their_own():
    """A pair's rule and friction stand in both orders; bodies that are not there are passed over."""
    rules, friction, adhesion = pair_rules(" 0 2 sticky; 2 5 separate 0.4 7e2;7 9 slip", [0, 2, 5], CollisionRule.SLIP, 0.1, 5.0)
    assert rules[0, 1] == rules[1, 0] == STICKY
    assert rules[1, 2] == rules[2, 1] == SEPARATE
    assert friction[1, 2] == friction[2, 1] == 0.4
    assert rules[0, 2] == SLIP
    assert adhesion[1, 2] == adhesion[2, 1] == 700.0 and adhesion[0, 1] == 5.0


@pytest.mark.parametrize(
    "text", ["0 1", "0 1 glue", "a b sticky", "0 1 separate -1", "0 1 separate 1e999", "0 1 separate 1e", "0 1 separate 1 -5"]
)
def test_pairs_that_cannot_be_read_are_named(text):
    """The message quotes the pair and shows how one is written."""
    with pytest.raises(MpmNodesError, match=r"collide_bodies.pairs: .* write two bodies, a rule"):
        pair_rules(text, [0, 1], CollisionRule.SEPARATE, 0.3)


def test_pairs_are_read_before_bodies_meet():
    """A mistake ends the first substep, with the bodies still far apart."""
    far = bodies(block(JELLY, (0, 0, 0), (0.2, 0.2, 0.2), H), block(JELLY, (3, 0, 0), (3.2, 0.2, 0.2), H))
    solver = SubstepSolver(far, {"preset": "separate_bodies", "set": {"pairs": "0 1 glue"}}, cell_size=H, dtype=np.float64)
    with pytest.raises(MpmNodesError, match=r"collide_bodies.pairs: '0 1 glue' cannot be read"):
        solver.step(1e-4)


def test_merged_sources_are_bodies():
    """Each source gets numbers of its own; one that holds several bodies keeps them apart."""
    settings = GraphSettings(cell_size=0.1)
    one, two = (emit_box(settings, JELLY, size=(0.2, 0.2, 0.2), centre=(x, 0.0, 0.0)) for x in (0.0, 1.0))
    pair = merge_particles([one, two], bodies=True)
    assert np.array_equal(np.unique(pair["body"]), [0, 1])
    three = merge_particles([two, pair], bodies=True)
    assert [len(np.unique(three["body"][part])) for part in (slice(0, len(two)), slice(len(two), None))] == [1, 2]
    assert len(np.unique(three["body"])) == 3
    assert "body" not in merge_particles([one, two])


def test_too_many_bodies_are_refused():
    """The message says how many there may be."""
    part = block(JELLY, (0, 0, 0), (0.2, 0.2, 0.2), H)
    numbered = Particles({**part.attributes, "body": np.full(len(part), 600, np.int32)}, part.materials, part.spacing)
    with pytest.raises(MpmNodesError, match="numbers from 0 to 511"):
        apart(numbered)


def pair_of(*materials: Material) -> list[Particles]:
    """Return two blocks that approach each other."""
    return [
        moving(block(materials[0], (0, 0, 0), (0.2, 0.2, 0.2), H), 0.0, 1.0, 0.2),
        moving(block(materials[-1], (0.05, 0.21, 0), (0.25, 0.41, 0.2), H), 0.3, -1.0, 0.0),
    ]


def test_materials_are_bodies_where_nothing_is_said():
    """Without a `body` column each material is one: they meet as numbered bodies do, bit for bit."""
    other = material("neo_hookean", youngs_modulus=2e5)
    by_material, numbered = merge_particles(pair_of(JELLY, other)), bodies(*pair_of(JELLY, other))
    runs = [apart(each, friction=0.3) for each in (by_material, numbered)]
    for each in runs:
        for _ in range(40):
            each.step(5e-4)
    assert np.array_equal(*(each.particles.unpack("position") for each in runs))
    assert runs[0].particles.unpack("velocity")[:, 1].max() > 0.0


def test_without_the_stage_bodies_share_the_grid():
    """A `body` column alone changes nothing: the numbers are those of particles without it."""
    runs = [
        SubstepSolver(each, cell_size=H, dtype=np.float64) for each in (bodies(*pair_of(JELLY)), merge_particles(pair_of(JELLY)))
    ]
    for each in runs:
        for _ in range(30):
            each.step(5e-4)
    assert np.array_equal(*(each.particles.unpack("position") for each in runs))


@pytest.mark.parametrize("kernel", ["quadratic", pytest.param("cubic", marks=pytest.mark.slow)])
def test_fused_threads_and_restored_solves_agree(kernel):
    """The same bits fused in turn, on one thread and after a save and restore in the middle of a contact."""
    import numba

    substeps = {"preset": "separate_bodies", "set": {"kernel": kernel, "pairs": "0 1 sticky"}}
    made = [SubstepSolver(bodies(*pair_of(JELLY)), substeps, cell_size=H) for _ in range(3)]
    threads = numba.get_num_threads()
    for n, each in enumerate(made):
        numba.set_num_threads(1 if n == 1 else threads)
        for step in range(40):
            if n == 2 and step == 20:
                saved = each.particles.save()
                each.particles.restore(saved)
            each.step(5e-4)
    numba.set_num_threads(threads)
    first, *others = (each.particles.unpack("position") for each in made)
    assert all(np.array_equal(first, other) for other in others)
    assert made[0].particles.block_body.max() == 1


def test_the_preset_is_the_explicit_one_with_one_stage_more():
    """What changes in explicit APIC changes here too."""
    explicit, own = (json.loads(registries.default().presets[name].read_text()) for name in ("explicit_apic", "separate_bodies"))
    stage = own["nodes"].pop("collide_bodies")
    own["nodes"]["collide_grid"]["inputs"]["grid"] = stage["inputs"]["grid"]
    own["nodes"]["gather"]["inputs"]["particles"] = stage["inputs"]["particles"]
    assert own["nodes"] == explicit["nodes"]
    assert explicit["parameters"].keys() < own["parameters"].keys()


def test_bodies_give_each_other_the_same_impulse():
    """Two cubes that meet askew and rub: momentum stays to rounding in every substep, whatever friction takes of their speed."""
    lower = block(JELLY, (0.0, 0.0, 0.0), (0.2, 0.2, 0.2), H)
    upper = moving(block(JELLY, (0.03, 0.2, 0.0), (0.23, 0.4, 0.2), H), 0.7, -1.0, 0.1)
    solver = apart(bodies(lower, upper), gravity=(0.0, 0.0, 0.0))
    mass, before = solver.particles.unpack("mass"), solver.particles.unpack("velocity")
    carried = mass @ before
    for _ in range(20):
        solver.step(2e-4)
    after = solver.particles.unpack("velocity")
    assert np.abs(after - before).max() > 0.1  # they did meet
    np.testing.assert_allclose(mass @ after, carried, atol=1e-12 * float(mass @ np.linalg.norm(before, axis=1)))
