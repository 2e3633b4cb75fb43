"""The projection: what moves, what holds, what it keeps, and its bits."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from solver_scenes import LIQUID, cube

from mpm_nodes.data import Collider, CollisionRule, GraphSettings, Material, MpmNodesError, Particles, WallRule, Walls
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.physics.projection.kernels import velocity_extrapolation
from mpm_nodes.physics.projection.kernels.face_volumes import trim_volumes
from mpm_nodes.physics.projection.kernels.pressure import INTERIOR, Fields
from mpm_nodes.physics.projection.kernels.solid_faces import FREE, SLIDING
from mpm_nodes.physics.projection.numerics.face_step import FaceStep
from mpm_nodes.physics.projection.numerics.projection import project_faces
from mpm_nodes.physics.projection.problems.face_contact import LiquidAtACeiling
from mpm_nodes.physics.projection.problems.projection import PoolFromRest, PressureOfPool, Projection
from mpm_nodes.solver.run import SubstepSolver

BOX = (0.0, 0.0, 0.0), (0.6, 1.2, 0.6)


def liquid(cells: int = 4, **columns: object) -> Particles:
    """Return a cube of liquid."""
    return cube(LIQUID, cells=cells, **columns)


def solver(
    start: Particles,
    *,
    sides: WallRule = WallRule.SLIP,
    high: object = BOX[1],
    preset: object = "incompressible",
    **options: object,
) -> SubstepSolver:
    """Return a solver of incompressible matter in a box."""
    walls = Walls(BOX[0], high, (sides,) * 6, 0.3)
    return SubstepSolver(start, preset, cell_size=0.1, walls=walls, **{"dtype": np.float64, "dt_max": 5e-3, **options})


@pytest.mark.parametrize("problem", [PoolFromRest, PressureOfPool, Projection, LiquidAtACeiling])
def test_the_problems_hold(problem):
    """A pool stays at rest under its own weight, a projection does what it says, and matter leaves what separates."""
    records = list(problem().records())
    assert records and all(record.passed for record in records), records


def test_a_falling_cube_of_liquid_falls_freely_and_keeps_its_shape():
    """Without walls near, the projection leaves free fall alone."""
    run = solver(liquid(), high=(9.0, 9.0, 9.0), gravity=(0.0, -9.81, 0.0))
    run.particles.pack("position", run.particles.unpack("position") + [4.0, 4.0, 4.0])
    for _ in range(5):
        run.step(1e-3)
    assert np.allclose(run.particles.unpack("velocity"), [0.0, -9.81 * 5e-3, 0.0], atol=1e-9)


def test_a_column_collapses_and_keeps_its_volume():
    """A dam breaks: the front runs along the floor, nothing leaves the box, and volume ratios stay near one."""
    run = solver(liquid(4), dtype=np.float32)
    run.advance(0.3)
    position = run.particles.unpack("position")
    assert position[:, 0].max() > 0.55 and position[:, 1].mean() < 0.19
    assert position.min() > -0.02 and position[:, [0, 2]].max() < 0.62
    assert abs(float(run.particles.unpack("volume_change").mean())) < 0.05
    assert run.step_context.report["projection"]["unsolved"] == 0


def test_sticky_walls_hold_and_slipping_ones_do_not():
    """A layer that slides over a slip floor keeps its speed; a sticky floor takes momentum from it."""
    speeds = {}
    for sides in (WallRule.SLIP, WallRule.STICKY):
        start = liquid(4, velocity=np.array([0.1, 0.0, 0.0]))
        run = solver(start, sides=sides, high=(6.0, 6.0, 6.0), gravity=(0.0, 0.0, 0.0))
        run.particles.pack("position", run.particles.unpack("position") + [2.0, 0.0, 2.0])
        for _ in range(5):
            run.step(1e-3)
        speeds[sides] = float(run.particles.unpack("velocity")[:, 0].mean())
    assert speeds[WallRule.SLIP] == pytest.approx(0.1, rel=1e-6)
    assert speeds[WallRule.STICKY] < 0.099


def test_a_full_box_has_no_free_surface_and_a_solution():
    """A pocket's right side is made compatible: the solve converges and nothing moves."""
    run = solver(liquid(6), high=(0.6, 0.6, 0.6))
    run.step(1e-3)
    told = run.step_context.report["projection"]
    assert told["pockets"] == 1 and told["unsolved"] == 0
    print("SPEED", np.abs(run.particles.unpack("velocity")).max() / (9.81 * run.time))
    assert np.abs(run.particles.unpack("velocity")).max() < 0.05 * 9.81e-3


@pytest.mark.parametrize(("speed", "belt"), [(1.0, 0.0), (10.0, 0.0), (0.0, 1.0)], ids=["slow", "fast", "belt"])
def test_a_layer_loses_or_gains_what_coulomb_says(speed, belt):
    """Friction is mu times the floor's push, told by the fall, however fast a layer slides; a belt takes it along by as much."""
    side, friction, steps = WallRule.SLIP, 0.3, 5
    walls = Walls((-9.0, -1.0, 0.0), (9.0, 1.2, 0.4), (*(WallRule.OPEN,) * 4, side, side))
    start = liquid(4, velocity=np.array([speed, 0.0, 0.0]))
    flat = start["position"][:, 1] < 0.2
    start = Particles({name: values[flat] for name, values in start.attributes.items()}, start.materials, start.spacing)
    still = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    moved = np.array([[0.0, 0.0, 0.0], [belt, 0.0, 0.0]])
    shape = PosedLevelSets(PLANE, pose_times=np.array([0.0, 1.0]), rotations=still, translations=moved)
    run = SubstepSolver(
        start,
        "incompressible",
        cell_size=0.1,
        walls=walls,
        colliders=[Collider("belt", CollisionRule.SEPARATE, friction, shape)],
        dtype=np.float64,
        dt_max=1e-3,
    )
    for _ in range(steps):
        run.step(1e-3)
    mass = run.particles.unpack("mass")
    along, down, _ = mass @ run.particles.unpack("velocity") / mass.sum()
    pressed = friction * (9.81 * 1e-3 * steps + down)
    assert np.sign(belt - speed) * (along - speed) == pytest.approx(pressed, rel=0.1)
    assert run.step_context.report["projection"]["solves"] > 1


@pytest.mark.parametrize("sides", [WallRule.SLIP, WallRule.SEPARATE])
def test_bits_do_not_hang_on_threads_or_checked_mode(sides):
    """One thread, two, and checked mode give the same bits, contact and friction included."""
    most, ends = numba.config.NUMBA_NUM_THREADS, []
    for threads, checked in ((most, False), (1, False), (most, True)):
        numba.set_num_threads(threads)
        try:
            run = solver(liquid(3, velocity=np.array([1.0, 0.0, 0.5])), sides=sides, dtype=np.float32, checked=checked)
            for _ in range(4):
                run.step()
        finally:
            numba.set_num_threads(most)
        ends.append(run.snapshot().attributes)
    for other in ends[1:]:
        assert all(np.array_equal(ends[0][name], other[name]) for name in ends[0])


def test_a_material_says_what_resists_its_compression():
    """Its own modulus goes before that of the stage, and that of its law where the stage asks for it; 0 stands for infinity."""
    own = dataclasses.replace(LIQUID, bulk_modulus=5e5)
    endless = dataclasses.replace(LIQUID, bulk_modulus=0.0)
    for material, knobs, modulus in (
        (LIQUID, {}, np.inf),
        (LIQUID, {"bulk_modulus": 1e6}, 1e6),
        (LIQUID, {"bulk_modulus": 1e6, "of_laws": True}, LIQUID.params["bulk_modulus"]),
        (own, {"bulk_modulus": 1e6}, 5e5),
        (endless, {"of_laws": True}, np.inf),
    ):
        run = SubstepSolver(
            cube(material, cells=2), {"preset": "incompressible", "set": knobs}, cell_size=0.1, dtype=np.float64, dt_max=1e-3
        )
        run.step(1e-3)
        assert run.particles.unpack("compressibility")[0] == pytest.approx(1.0 / modulus, rel=1e-6)


def test_a_modulus_for_projections_is_refused_where_none_is():
    """Infinity in an explicit solve would be ignored without a word."""
    with pytest.raises(MpmNodesError, match=r"syrup.*infinity.*incompressible"):
        SubstepSolver(cube(dataclasses.replace(LIQUID, bulk_modulus=0.0), cells=2), "explicit_apic", cell_size=0.1)


def test_viscosity_limits_no_step_and_keeps_momentum():
    """Steps 60 times longer than explicit ones: random motion becomes rigid, and the linear solve keeps the faces' momentum.

    Particles thrown about pack cells, which then push them apart: this is left out.
    """
    honey = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 1000.0}, 1000.0, "honey")
    start, random = cube(honey, cells=3), np.random.default_rng(4)
    columns = {"velocity": random.normal(size=(len(start), 3)), "position": start["position"] + 2.0}
    start = Particles({**start.attributes, **columns}, start.materials, start.spacing)
    run = solver(
        start, high=(9.0, 9.0, 9.0), gravity=(0.0, 0.0, 0.0), preset={"preset": "incompressible", "set": {"density_rate": 0.0}}
    )
    run.step(1e-9)
    staggered = run.stores["staggered"]
    mass = [staggered.unpack(f"mass_{axis}") for axis in "xyz"]
    for axis in "xyz":
        staggered.pack(f"velocity_{axis}", random.normal(size=len(mass[0])))
    before = [m @ staggered.unpack(f"velocity_{axis}") for m, axis in zip(mass, "xyz", strict=True)]
    assert FaceStep(run.particles, staggered, run.colliders, 0.05, 0.5).solve(1e-10, 1000).converged
    after = [m @ staggered.unpack(f"velocity_{axis}") for m, axis in zip(mass, "xyz", strict=True)]
    assert np.allclose(after, before, rtol=0.0, atol=1e-8 * sum(m.sum() for m in mass))
    for _ in range(5):
        run.step(0.05)
    L = run.particles.unpack("velocity_gradient")
    assert run.step_context.report["shear"]["unsolved"] == 0
    assert np.abs(L + L.transpose(0, 2, 1)).max() < 0.01 / 0.1


def on_floor(start: Particles, height: float, **options: object) -> SubstepSolver:
    """Return a solver of matter on a floor that lies `height` cells above a layer of faces."""
    floor = Collider("floor", CollisionRule.SEPARATE, 0.4, PosedLevelSets(PLANE))
    start = Particles({**start.attributes, "position": start["position"] + [0.0, 0.1, 0.0]}, start.materials, start.spacing)
    return SubstepSolver(
        start, "incompressible", cell_size=0.1, colliders=[floor], origin=(0.0, -0.1 * height, 0.0), dtype=np.float64, **options
    )


@pytest.mark.parametrize("height", [0.0, 0.6, 0.75])
def test_soft_rubber_lands_on_a_floor_between_faces(height):
    """A bulk modulus of four shear moduli: its corners neither jump nor burst when it lands, wherever the floor lies in the grid.

    The cells that the floor cuts are solved for the velocities that their faces end with, those along the floor included.
    """
    rubber = dataclasses.replace(Material("neo_hookean", {"youngs_modulus": 2e4}, 1000.0, "rubber"), bulk_modulus=3e4)
    start = cube(rubber, (0.0, 0.05, 0.0), cells=4, cell_size=0.05, velocity=np.array([0.0, -0.7, 0.0]))
    floor = Collider("floor", CollisionRule.SEPARATE, 0.4, PosedLevelSets(PLANE))
    # particles on faces: those have hardly any mass beyond them
    origin = (0.0125, -0.05 * height, 0.0125)
    run = SubstepSolver(start, "incompressible", cell_size=0.05, colliders=[floor], origin=origin, dtype=np.float64, dt_max=2e-3)
    fastest = worst = 0.0
    least = 1.0
    while run.time < 0.1:
        dt = run.step()
        fastest = max(fastest, float(np.abs(run.particles.unpack("velocity")).max()))
        least = min(least, float(np.linalg.det(run.particles.unpack("deformation").reshape(-1, 3, 3)).min()))
        worst = max(worst, dt * run.step_context.report["projection"]["divergence"])
    # it falls 5 cm, to 1.2 m/s
    assert fastest < 1.4 and least > 0.7 and worst < 0.2, (fastest, least, worst)


@pytest.mark.parametrize("rule", [WallRule.SLIP, WallRule.SEPARATE])
@pytest.mark.parametrize("off", [(0.5, 0.5, 0.5), (0.15, 0.37, 0.85)], ids=["halfway", "askew"])
def test_a_pool_between_walls_off_the_nodes_stays_at_rest(off, rule):
    """Nothing flows through the edges of walls that lie between nodes, and the faces there weigh what fills them."""
    low, size = 0.1 * np.array(off), np.array([0.45, 0.4, 0.45])
    start = emit_box(GraphSettings(cell_size=0.1), LIQUID, size=tuple(size), centre=tuple(low + 0.5 * size))
    run = SubstepSolver(
        start,
        {"preset": "incompressible", "set": {"density_rate": 0.0}},
        cell_size=0.1,
        walls=Walls(tuple(low), tuple(low + [0.45, 1.2, 0.45]), (rule,) * 6),
        dtype=np.float64,
        origin=(0.0, 0.0, 0.0),
        gravity=(0.0, -9.81, 0.0),
        dt_max=2e-3,
    )
    for _ in range(10):
        run.step(2e-3)
    # nine tenths of a fall while it flowed out through the edges
    assert np.abs(run.particles.unpack("velocity")).max() < 0.05 * 9.81 * run.time


def test_what_has_flowed_presses_by_its_elastic_strain(monkeypatch):
    """In a full box at rest no pressure gradient is left: p = -(J_E - 1) k / J_P, J_P = J / J_E, the same everywhere."""
    ratio, elastic, modulus, found = 1.2, 0.96, 1e5, []

    def projected(staggered, *given):
        cells = staggered.array("cell").reshape(-1, 4)
        cells[:, :3] = cells[:, 3:] * [ratio - 1.0, elastic - 1.0, 1.0 / modulus]
        found.append(project_faces(staggered, *given))
        return found[-1]

    monkeypatch.setattr("mpm_nodes.physics.projection.stages.projection.project_faces", projected)
    solver(liquid(6), high=(0.6, 0.6, 0.6), gravity=(0.0, 0.0, 0.0)).step(1e-3)
    pressure = found[0].pressure[found[0].kind == INTERIOR]
    assert len(pressure) == 6**3
    np.testing.assert_allclose(pressure, -(elastic - 1.0) * modulus / (ratio / elastic), rtol=1e-6)


def test_faces_that_walls_cut_have_the_volume_of_their_particles_at_least(monkeypatch):
    """Matter packed by a tenth against walls between faces: what these leave of a spline is less than the matter around."""
    seen = []

    def trimmed(count, fields, crossed, rest):
        before = np.stack([fields.wx, fields.wy, fields.wz], axis=1).reshape(-1).copy()
        trim_volumes(count, fields, crossed, rest)
        seen.append((before, np.stack([fields.wx, fields.wy, fields.wz], axis=1).reshape(-1), rest))

    monkeypatch.setattr("mpm_nodes.physics.projection.numerics.projection.face_volumes.trim_volumes", trimmed)
    start = liquid(4)
    packed = dataclasses.replace(start, attributes={**start.attributes, "position": 0.9 * start["position"] + 0.031})
    walls = Walls((0.03, 0.03, 0.03), (0.6, 1.2, 0.6), (WallRule.SLIP,) * 6)
    SubstepSolver(packed, "incompressible", cell_size=0.1, walls=walls, dtype=np.float64, origin=(0.0, 0.0, 0.0)).step(1e-3)
    before, after, rest = seen[0]
    whole = 0.1**3
    lacking = (before < (1.0 - 1e-9) * whole) & (rest > 1.05 * before)
    assert lacking.sum() > 8
    np.testing.assert_allclose(after[lacking], np.minimum(rest[lacking], whole), rtol=0.02)


@pytest.mark.parametrize("masses", [(1e-9, 1.0, 0.5), (1e-9, 1e-7, 1.0), (1.0, 1e-9, 0.5), (0.5, 1.0, 1e-9)])
@pytest.mark.parametrize("second", [FREE, SLIDING + 4])
def test_a_face_that_weighs_nothing_beside_its_followers_does_not_push_them(masses, second):
    """The first face of a row leads: a slight one starts as they move, and they keep the momentum."""
    count, row, speeds = 1, np.array([20, 21, 22]), np.array([300.0, 1.0, 2.0])
    arrays = {name: np.zeros(256) for name in Fields._fields}
    arrays["around"] = np.full((count, 6), -1, np.int32)
    arrays["numbers"] = np.array([1e-3, 0.1, 1e-12, 1.0, 0.0])
    for name in ("sx", "sy", "sz"):
        arrays[name] = np.zeros(64, np.uint8)
    arrays["sx"][row[1]] = second
    arrays["mx"][4 * row + 3] = arrays["nx"][row] = masses
    arrays["vx"][4 * row] = speeds
    fields = Fields(**arrays)
    rank, left, offset = np.zeros(192, np.uint8), np.empty(192), np.zeros(192)
    rank[3 * row[0]] = 1
    velocity_extrapolation.fold(count, fields, rank, np.zeros(192), left, 2)
    velocity_extrapolation.find_offsets(count, fields, rank, offset, left, 2)
    assert list(rank[3 * row]) == [1, 2, 3]
    assert fields.nx[row[0]] == pytest.approx(sum(masses))
    if masses[0] < 1e-3:
        assert 1.0 <= fields.vx[4 * row[0]] <= 2.0 + 1e-4
    rank[3 * row[1:]] = 0
    velocity_extrapolation.extend(count, fields, rank, np.empty(192), offset, 2)
    assert np.dot(masses, fields.vx[4 * row]) == pytest.approx(np.dot(masses, speeds), rel=1e-12)
