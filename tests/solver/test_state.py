"""The particle store: whatever comes, goes, moves or is sorted, a particle keeps its identity and all that it carries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_scenes import JELLY, LIQUID, SNOW, cube

from mpm_nodes.data import ATTRIBUTES, Attribute, MpmNodesError, Particles, concatenate
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.state import ParticleStore

HEAT = Attribute("heat", "q", (2,), "J", "primvars:heat", "heat", "Carried.")
LABEL = Attribute("label", "l", (), "", "primvars:label", "label", "Carried.", "int64")
MARKS = (1 << 40) + 12345


def columns(ids: np.ndarray, random: np.random.Generator, spread: float = 1.0) -> dict[str, np.ndarray]:
    """Return columns whose every value tells the id that it belongs to."""
    count = len(ids)
    return {
        "id": ids,
        "position": random.uniform(-spread, spread, (count, 3)),
        "velocity": ids[:, None] * [1.0, 2.0, 3.0],
        "mass": 1.0 + ids,
        "material": (ids % 2).astype(np.int32),
        "deformation": ids[:, None, None] + np.arange(9.0).reshape(3, 3),
        "heat": np.stack([ids, -ids], 1).astype(float),
        "label": ids + MARKS,
    }


def store(dtype=np.float32) -> ParticleStore:
    """Return an empty store with attributes of every kind and two of the user's."""
    names = ("position", "velocity", "deformation", "heat", "label")
    return ParticleStore(names, cell_size=0.05, dtype=dtype, materials=2, origin=(-3.0, 0.25, 1.0), own_fields=(HEAT, LABEL))


def check(particles: ParticleStore, where: dict[int, np.ndarray]) -> None:
    """Assert that exactly the particles of `where` are there, each where it belongs and with what it carries."""
    ids = particles.unpack("id")
    assert sorted(ids) == sorted(where) and particles.count == len(where)
    expected = columns(ids, np.random.default_rng(0))
    for name in ("velocity", "mass", "material", "deformation", "heat", "label"):
        assert np.array_equal(particles.unpack(name), expected[name].astype(particles.unpack(name).dtype)), name
    position = particles.unpack("position")
    target = np.array([where[i] for i in ids]).reshape(-1, 3)
    assert np.abs(position - target).max(initial=0.0) <= particles.h / particles.unit + 1e-14  # a unit, and float64 itself
    # runs of equal material cover every particle once
    material, seen = particles.unpack("material"), np.zeros(particles.count, int)
    for m, segments in enumerate(particles.segments):
        for begin, end, _block in segments:
            assert (material[begin:end] == m).all()
            seen[begin:end] += 1
    assert (seen == 1).all()


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(["append", "delete", "sort", "shift", "scatter"]), min_size=1, max_size=8),
    st.integers(0, 2**31),
    st.sampled_from([np.float32, np.float64]),
)
def test_identity_survives_any_sequence(actions, seed, dtype):
    """Append, delete, sort, small and large moves in any order: ids, user attributes and places stay together."""
    random, particles, where, next_id = np.random.default_rng(seed), store(dtype), {}, 0
    for action in ("append", *actions):
        if action == "append":
            new = columns(np.arange(next_id, next_id + random.integers(0, 40)), random)
            next_id += len(new["id"])
            particles.append(new)
            where |= dict(zip(new["id"].tolist(), new["position"], strict=True))
        elif action == "delete":
            dead = random.random(particles.count) < 0.4
            for i in particles.unpack("id")[dead].tolist():
                del where[i]
            particles.delete(dead)
        elif action == "sort":
            particles.sort()
        else:
            reach = 0.01 if action == "shift" else 1.0
            moved = particles.unpack("position") + random.uniform(-reach, reach, (particles.count, 3))
            ids = particles.unpack("id").tolist()
            particles.pack("position", moved)
            where |= dict(zip(ids, moved, strict=True))
        check(particles, where)


def test_small_moves_keep_the_memory_order_and_large_ones_do_not_lose_it():
    """A position pack within the tile leaves every row in place; one across blocks lays memory out again, once."""
    particles = store()
    particles.append(columns(np.arange(500), np.random.default_rng(1)))
    particles.sort()
    order, generation = particles.unpack("id"), particles.generation
    particles.pack("position", particles.unpack("position") + 0.4 * particles.h)
    assert np.array_equal(order, particles.unpack("id")) and particles.generation == generation
    assert particles.drift == pytest.approx(2.4, abs=1e-3)
    particles.pack("position", particles.unpack("position") + 40 * particles.h)
    assert particles.generation == generation + 1 and not particles.sorted


@pytest.mark.parametrize(("bad", "says"), [
    (np.nan, r"position of particle 3 is \[.*nan.*\]; positions must be finite"),
    (np.inf, "positions must be finite"),
    (1e9, r"a particle lies 1e\+09 m from the solve's origin; at most 2.62e\+04 m .* raise the cell size"),
])  # fmt: skip
def test_bad_positions_are_refused(bad, says):
    """NaN, infinity and places beyond the block table are refused with the particle and the cure, by append and pack."""
    particles = store()
    new = columns(np.arange(8), np.random.default_rng(2))
    particles.append(new)
    for give in (lambda c: particles.append(c), lambda c: particles.pack("position", c["position"])):
        changed = {**new, "position": new["position"].copy()}
        changed["position"][3, 1] = bad
        with pytest.raises(MpmNodesError, match=says):
            give(changed)
        assert particles.count == 8


def test_wrong_shapes_and_names_are_refused():
    """pack names the shape that it needs; an attribute that was not allocated is refused with the list of those that are."""
    particles = store()
    particles.append(columns(np.arange(8), np.random.default_rng(2)))
    with pytest.raises(MpmNodesError, match=r"pack 'deformation': shape \(8, 9\) given, \(8, 3, 3\) needed"):
        particles.pack("deformation", np.zeros((8, 9)))
    with pytest.raises(MpmNodesError, match=r"'stress' is not allocated .*velocity.*Reads or Writes"):
        particles.array("stress")


def test_slow_creep_adds_up_a_kilometre_away():
    """A shift of 1e-3 cells, 1,000 times, 1 km from the origin: off by half a unit of the fixed point each time at most."""
    particles = ParticleStore(("position",), cell_size=0.01, origin=(1000.0, 0.0, 0.0))
    particles.append({"position": np.array([[1000.5, 0.5, 0.5]]), "velocity": np.zeros((1, 3)), "mass": np.ones(1)})
    begin = particles.unpack("position")
    for _ in range(1000):
        particles.pack("position", particles.unpack("position") + [1e-5, 0.0, 0.0])
        particles.sort()
    assert np.abs(particles.unpack("position") - begin - [1e-2, 0.0, 0.0]).max() <= 1000 * (0.5 * 0.01 / particles.unit + 2e-13)


def test_a_graph_allocates_what_its_stages_touch_and_no_more():
    """A liquid never has a deformation gradient, and stiffness multipliers are there only when a source brings them."""
    names = SubstepSolver(cube(LIQUID)).particles.names
    assert "volume_change" in names and not {"deformation", "plastic_volume_ratio", "stiffness_scale"} & set(names)
    both = SubstepSolver(concatenate([cube(SNOW), cube(LIQUID, (1.0, 0.0, 0.0), stiffness_scale=2.0)])).particles
    assert {"volume_change", "deformation", "plastic_volume_ratio", "stiffness_scale"} <= set(both.names)
    scale = both.unpack("stiffness_scale")
    assert sorted(set(scale.tolist())) == [1.0, 2.0]  # rest value where the source had none


def test_missing_mass_and_volume_follow_from_density_and_spacing():
    """Without a mass column a particle weighs density * spacing^3; a bad mass is refused with the number."""
    solver = SubstepSolver(concatenate([cube(SNOW), cube(JELLY, (1.0, 0.0, 0.0))]))
    assert set(np.round(solver.particles.unpack("mass") / 0.05**3).tolist()) == {400.0, 1000.0}
    with pytest.raises(MpmNodesError, match="particle mass must be finite and > 0; the smallest is -1"):
        SubstepSolver(cube(SNOW, mass=-1.0))


def test_user_columns_travel_through_a_solve_untouched():
    """Columns outside the table (vectors, integers) leave a solve bit for bit, at their particle, deletions included."""
    source = cube(SNOW)
    n = len(source)
    source = Particles(
        {**source.attributes, "uv": np.random.default_rng(1).random((n, 2), np.float32), "piece": np.arange(n) + MARKS},
        source.materials,
        source.spacing,
    )
    solver = SubstepSolver(source)
    for _ in range(20):
        solver.step()
    solver.particles.delete(solver.particles.unpack("id") % 3 == 0)
    solver.step()
    end = solver.snapshot()
    kept = end["id"]
    assert len(end) == n - -(-n // 3) and np.array_equal(end["piece"], source["piece"][kept])
    assert np.array_equal(end["uv"], source["uv"][kept]) and end["uv"].dtype == np.float32


def test_grid_arrays_go_out_and_in():
    """unpack / pack of the grid are inverse, node positions match their block table, and total mass is the particles'."""
    solver = SubstepSolver(cube(SNOW), colliders=())
    solver.step()
    grid: GridStore = solver.grid
    for name in ("mass", "momentum", "force", "velocity"):
        value = np.random.default_rng(1).random(grid.unpack(name).shape).astype(grid.dtype)
        grid.pack(name, value)
        assert np.array_equal(grid.unpack(name), value)
    position = grid.unpack("position")
    assert len(position) == 64 * grid.count and len(np.unique(position.round(6), axis=0)) == len(position)


def test_attribute_table_allocates_every_attribute():
    """Every attribute of the table can be held, with its shape and rest value."""
    particles = ParticleStore(ATTRIBUTES, cell_size=0.1)
    particles.append({"position": np.zeros((5, 3))})
    for name, attribute in ATTRIBUTES.items():
        if name not in ("position",):
            assert np.array_equal(particles.unpack(name), attribute.rest_values(5)), name


def test_flip_survives_nodes_of_vanishing_mass():
    """A particle within 1e-4 cells of a node gives the far corner of its cubic stencil a mass near 1e-41 kg: it falls freely."""
    h, low = 0.1, 1e-4
    columns = {"position": np.full((1, 3), low * h), "velocity": np.ones((1, 3)), "mass": np.full(1, 1e-2)}
    particles = Particles(columns, (JELLY,), h / 2)
    solver = SubstepSolver(
        particles, {"preset": "explicit_apic", "set": {"kernel": "cubic", "transfer": "flip"}}, cell_size=h, origin=(0.0, 0.0, 0.0)
    )
    solver.step(1e-4)
    np.testing.assert_allclose(solver.particles.unpack("velocity"), [[1.0, 1.0 - 9.81e-4, 1.0]], rtol=1e-6)


def test_unpack_gives_a_copy():
    """What `unpack` gave of a scalar or a matrix stays as it was when the field is written afterwards."""
    particles = store(np.float32)
    for name in ("mass", "deformation"):
        before = particles.unpack(name)
        kept = before.copy()
        particles.pack(name, before + 1.0)
        assert np.array_equal(before, kept) and not np.shares_memory(before, particles.rows(name)), name


@pytest.mark.phenomena("projection")
def test_arrays_on_faces_have_room_for_the_blocks_of_now():
    """Whoever clears them reaches them by their memory, before anyone reads them."""
    run = SubstepSolver(cube(LIQUID), "incompressible")
    run.particles.sort()
    run.grid.follow()
    faces = run.stores["staggered"]
    arrays = {field.array for field in faces.fields.values()}
    assert arrays and all(faces.kept(name).size >= 256 * run.grid.count for name in arrays)


@pytest.mark.phenomena("surface_tension")
def test_samples_are_reached_as_particles_are():
    samples = SubstepSolver(cube(LIQUID), "surface_tension").stores["samples"]
    assert samples.array("area") is samples.kept("area")
