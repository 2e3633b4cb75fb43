"""Surface tension in a solve: forces, shares of mass, limits of dt, contact angles, and what users are told."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Material, MpmNodesError, Particles, SurfaceTension, Thermal
from mpm_nodes.kernels.level_sets.level_set import BOX, PosedLevelSets
from mpm_nodes.kernels.transfers.weights import STENCIL
from mpm_nodes.nodes.attributes import set_attribute
from mpm_nodes.physics.surface_tension.nodes.contact_angles import collider_contact_angle
from mpm_nodes.physics.surface_tension.nodes.tension import material_surface_tension, material_surfactant
from mpm_nodes.physics.surface_tension.numerics import samples as sharing
from mpm_nodes.physics.surface_tension.numerics.surface_energy import SurfaceEnergy
from mpm_nodes.physics.surface_tension.problems.surface_tension import disc, liquid, slab
from mpm_nodes.physics.surface_tension.stages.surface_tension import longest_step
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import OPEN, SLIP, walled

H = 0.1
STILL = (0.0, 0.0, 0.0)
WATER = Material("liquid", {"bulk_modulus": 100.0}, 1.0, "water", surface_tension=SurfaceTension(1.0, 0.25, 300.0, 400.0))


def drop(matter: Material = WATER, count: int = 60, **columns) -> Particles:
    """Return a random cloud that moves at random."""
    random = np.random.default_rng(1)
    given = {"position": random.uniform(0.0, 2.2 * H, (count, 3)), "velocity": random.normal(0.0, 0.2, (count, 3))}
    given |= {"affine": random.normal(0.0, 0.5, (count, 3, 3)), "volume": random.uniform(0.5, 1.5, count) * (0.5 * H) ** 3}
    return Particles({**given, **columns}, (matter,), 0.5 * H)


def solver(particles: Particles, preset: str = "surface_tension", **options) -> SubstepSolver:
    """Return a solve in double precision, without gravity."""
    options = {"gravity": STILL, "dtype": np.float64, "origin": STILL, **options}
    return SubstepSolver(particles, preset, cell_size=H, **options)


def run_until(run: SubstepSolver, stage: str, dt: float = 1e-3) -> None:
    """Run the stages of a substep up to one, which is the last to run."""
    step = run.step_context
    for store in run.stores.values():
        store.begin_substep()
    run._prepare()
    step.dt = dt
    for planned, call in zip(run.dispatch.stages, run.dispatch.calls, strict=True):
        if not planned.sets:
            call()
        if planned.id == stage:
            return
    raise AssertionError(f"{stage} is not a stage of its own")


@pytest.fixture(scope="module")
def forced() -> SubstepSolver:
    """Return a solve after the force of the surface, not fused; every particle has the same temperature but one."""
    run = solver(drop(temperature=np.full(60, 350.0)), fuse=False)
    run_until(run, "rasterize_samples")
    run.grid.clear("force")
    SurfaceEnergy(run.stores["samples"], run.grid, STENCIL["quadratic"]).add_force(run.grid.array("force"))
    return run


def test_forces_of_the_surface_have_no_sum_and_no_torque(forced):
    """On a closed surface and on any part of it: 1e-13 of the sum of their sizes."""
    force, position = forced.grid.unpack("force"), forced.grid.unpack("position")
    size = np.abs(force).sum()
    assert size > 0.01
    assert np.abs(force.sum(axis=0)).max() < 1e-13 * size
    assert np.abs(np.cross(position, force).sum(axis=0)).max() < 1e-13 * size


def test_every_node_that_a_sample_pushes_has_mass(forced):
    """Nodes without mass have no force: nothing is lost."""
    mass, force = forced.grid.unpack("mass"), np.abs(forced.grid.unpack("force")).max(axis=1)
    assert not force[mass == 0.0].any() and (force > 0).sum() > 100


def test_shares_carry_the_mass_and_motion_of_their_owners(forced):
    """The grid holds the mass, centre, momentum and angular momentum of the particles that were given, to rounding."""
    given, grid = drop(), forced.grid
    m = given["volume"] * 1.0
    mass, momentum, position = grid.unpack("mass"), grid.unpack("momentum"), grid.unpack("position")
    spin = given["affine"]
    own = (
        0.25
        * H
        * H
        * np.stack([spin[:, 2, 1] - spin[:, 1, 2], spin[:, 0, 2] - spin[:, 2, 0], spin[:, 1, 0] - spin[:, 0, 1]], axis=1)
    )
    turning = m @ (np.cross(given["position"], given["velocity"]) + own)
    assert mass.sum() == pytest.approx(m.sum(), rel=1e-13)
    np.testing.assert_allclose(mass @ position, m @ given["position"], rtol=1e-12)
    np.testing.assert_allclose(momentum.sum(axis=0), m @ given["velocity"], atol=1e-13 * m.sum())
    np.testing.assert_allclose(np.cross(position, momentum).sum(axis=0), turning, atol=1e-13 * m.sum())


@pytest.mark.parametrize("preset", ["surface_tension", "implicit_surface_tension"])
@pytest.mark.parametrize(("dtype", "most"), [(np.float64, 1e-10), (np.float32, 1.2e-7)])
def test_the_surface_is_closed_in_every_substep(preset, dtype, most):
    """Area vectors sum to rounding, in space, between mirrors, and where half of the matter has no tension."""
    plain = dataclasses.replace(WATER, surface_tension=None)
    half = Particles({**drop().attributes, "material": np.arange(60) % 2}, (WATER, plain), 0.5 * H)
    walls = walled((0.0, -9.0, 0.0), (9.0, 9.0, 9.0), SLIP, OPEN, OPEN, OPEN, SLIP, OPEN)
    mirrored = {"preset": preset, "set": {"mirrors": "xz"}}
    for given, substeps, box in ((drop(), preset, None), (half, preset, None), (drop(), mirrored, walls)):
        run = solver(given, substeps, dtype=dtype, walls=box, checked=given is half)
        for _ in range(3):
            run.step(1e-3)
        told = run.step_context.report["surface"]
        assert 0.0 <= told["open"] < most and told["area"] > 0.01


def test_a_hole_in_the_surface_is_seen(monkeypatch):
    """Without the samples of one cell the fact is above rounding, by their area; checked mode refuses to go on."""
    whole = sharing.sample_union

    def holed(*given):
        points = whole(*given)
        keep = np.ones(len(points.owner), bool)
        keep[np.linalg.norm(points.position - points.position[7], axis=1) < 0.5] = False
        before = np.concatenate([[0], np.cumsum(keep)])
        return points._replace(start=before[points.start], **{name: getattr(points, name)[keep] for name in points._fields[1:]})

    monkeypatch.setattr(sharing, "sample_union", holed)
    for dtype in (np.float64, np.float32):
        run = solver(drop(), dtype=dtype)
        run.step(1e-3)
        assert 1e-4 < run.step_context.report["surface"]["open"] < 0.1
        with pytest.raises(MpmNodesError, match=r"the surface is open: its area vectors sum to \S+ of its area, where rounding"):
            solver(drop(), dtype=dtype, checked=True).step(1e-3)


def test_tension_follows_the_temperature(forced):
    """Half way between 300 and 400 K it is the mean of 1 and 0.25 N/m; beyond them it is constant."""
    samples = forced.stores["samples"]
    mine = samples.unpack("area") > 0
    assert mine.sum() * 2 == samples.count
    np.testing.assert_allclose(samples.unpack("tension")[mine], 0.625, rtol=1e-15)
    np.testing.assert_allclose(WATER.surface_tension.at(np.array([200.0, 325.0, 500.0])), [1.0, 0.8125, 0.25])


def test_tension_follows_the_concentration():
    """A quarter of soap takes a quarter of the way to the tension of soap; the owner's own concentration counts."""
    soapy = material_surfactant(dataclasses.replace(WATER, surface_tension=SurfaceTension(1.0)), tension=0.2)
    random = np.random.default_rng(8).uniform(0.0, 1.0, 60)
    matter = set_attribute(drop(soapy), FrameContext(1), attribute="concentration", value=0.25)
    for given in (matter, drop(soapy, concentration=random)):
        run = solver(given, fuse=False)
        run_until(run, "set_tension")
        samples = run.stores["samples"]
        own = run.particles.unpack("concentration")[samples.unpack("owner")]
        np.testing.assert_allclose(samples.unpack("tension"), 1.0 - 0.8 * own, rtol=1e-12)
        assert np.ptp(own) == 0.0 if given is matter else np.ptp(own) > 0.5
    assert soapy.surface_tension.largest == 1.0
    assert Material.from_json(soapy.to_json()) == soapy
    with pytest.raises(MpmNodesError, match=r"material water: it has no surface tension.*wire material_surface_tension before"):
        material_surfactant(dataclasses.replace(WATER, surface_tension=None))


def test_tension_follows_curves():
    """A curve over the temperature takes the place of the two numbers; a curve of shares that of the concentration itself."""
    curve = material_surface_tension(WATER, tension=9.0, table=((300.0, 1.0), (320.0, 0.9), (400.0, 0.5)))
    np.testing.assert_allclose(curve.surface_tension.at(np.array([200.0, 310.0, 360.0, 500.0])), [1.0, 0.95, 0.7, 0.5])
    soapy = material_surfactant(curve, tension=0.1, table=((0.0, 0.0), (0.1, 0.8), (1.0, 1.0)), diffusivity=1e-3)
    np.testing.assert_allclose(soapy.surface_tension.at(np.full(3, 300.0), np.array([0.05, 0.1, 2.0])), [0.64, 0.28, 0.1])
    assert soapy.surface_tension.largest == 1.0 and curve.surface_tension.varies
    assert Material.from_json(soapy.to_json()) == soapy
    with pytest.raises(MpmNodesError, match=r"rows of the solute's table do not ascend; sort them"):
        SurfaceTension(1.0, solute_table=((0.2, 0.0), (0.1, 1.0)))
    with pytest.raises(MpmNodesError, match=r"a share of the solute's table is above 1"):
        SurfaceTension(1.0, solute_table=((0.0, 0.0), (1.0, 1.5)))
    with pytest.raises(MpmNodesError, match=r"solute_diffusivity = -1 m\^2/s; give a finite value >= 0"):
        SurfaceTension(1.0, solute_diffusivity=-1.0)


def test_a_solute_spreads_among_the_matter_and_stays_there():
    """Differences shrink, sum V0 c stays to 1e-9, and in checked mode the stage reads and writes what it says."""
    soapy = material_surfactant(dataclasses.replace(WATER, surface_tension=SurfaceTension(1.0)), tension=0.2, diffusivity=0.5)
    given = drop(soapy, concentration=np.random.default_rng(8).uniform(0.0, 1.0, 60))
    run = solver(given, "surface_tension_solute", checked=True)
    before = run.snapshot()
    for _ in range(3):
        run.step(1e-3)
    after = run.snapshot()
    assert after["volume"] @ after["concentration"] == pytest.approx(before["volume"] @ before["concentration"], rel=1e-9)
    assert after["concentration"].std() < 0.98 * before["concentration"].std()
    assert run.step_context.report["solute"]["content"] == pytest.approx(before["volume"] @ before["concentration"], rel=1e-9)


@pytest.mark.parametrize("preset", ["surface_tension", "implicit_surface_tension", "explicit_apic"])
def test_a_diffusivity_that_no_stage_reads_is_refused(preset):
    """With the presets that let a solute spread; without a diffusivity the matter carries it in every preset."""
    soapy = material_surfactant(WATER, tension=0.2, diffusivity=0.5)
    words = r"material water: its solute has a diffusivity of 0\.5 m\^2/s.*take the preset surface_tension_solute or"
    with pytest.raises(MpmNodesError, match=words):
        solver(drop(soapy), preset)
    solver(drop(material_surfactant(WATER, tension=0.2)), preset)


def test_tables_of_a_solute_do_not_speak_of_temperatures():
    """Their rows stand at concentrations, which have no unit."""
    table = next(knob for knob in material_surfactant.declaration.knobs if knob.name == "table")
    told = " ".join(table.fault([[0.2, 1.0], [0.1, 0.5]]))
    assert "row 2 at 0.1 does not follow 0.2" in told
    assert "rows [place, value]" in " ".join(table.fault([0.2]))
    assert not any(word in told for word in ("kelvin", " K", "temperature"))
    with pytest.raises(MpmNodesError, match=r"a concentration of the solute's table lies outside 0 to 1"):
        material_surfactant(WATER, table=((0.0, 0.0), (35.0, 1.0)))


def test_heat_comes_in_through_the_surface():
    """What owners gain is what is told; walls that the matter touches let none in; a flame heats what faces it."""
    thermal = Thermal(1.0, 0.1, 1.0, 0.1)
    matter = dataclasses.replace(WATER, thermal=thermal)
    walls = walled((-9.0, 0.0, -9.0), (9.0, 9.0, 9.0), OPEN, OPEN, SLIP, OPEN, OPEN, OPEN)
    settings = {
        "air_temperature": 280.0,
        "air_convection": 3.0,
        "flames": ("0.11 0.11",),
        "flame_flux": 500.0,
        "flame_radius": 0.3,
        "flame_height": 0.1,
    }
    areas = {}
    for name, given in (("floor", walls), ("free", None)):
        substeps = {"preset": "surface_tension_heat", "set": settings}
        run = solver(drop(matter, temperature=np.full(60, 300.0)), substeps, walls=given, checked=given is not None)
        mass = run.snapshot()["mass"]
        run.step(1e-4)
        told, after = run.step_context.report["heat"], run.snapshot()["temperature"]
        assert mass @ (after - 300.0) == pytest.approx(told["from_air"] + told["from_sources"], rel=1e-5)
        assert told["from_air"] < 0.0 < told["from_sources"] and after.max() > 300.0
        areas[name] = told["surface"]
    assert areas["floor"] < 0.99 * areas["free"]
    with pytest.raises(MpmNodesError, match=r"flames: 'here' is not a place; give x and z in metres"):
        solver(drop(matter), {"preset": "surface_tension_heat", "set": {**settings, "flames": ("here",)}}).step(1e-4)


def test_the_energy_term_has_the_derivatives_and_blocks_of_its_energy(forced):
    """Forces are differences of the energy, all of the Hessian those of forces (1e-6); its blocks are those of products (1e-10)."""
    grid, dt, random = forced.grid, 0.01, np.random.default_rng(6)
    term, size = SurfaceEnergy(forced.stores["samples"], grid, STENCIL["quadratic"]), 256 * grid.count
    velocity, direction, force = (np.zeros_like(grid.array("force")) for _ in range(3))
    for array, scale in ((velocity, 0.5), (direction, 1.0)):
        array[:size].reshape(-1, 4)[:, :3] = random.normal(0.0, scale, (size // 4, 3))
    step, energy, forces = 1e-4, [], np.zeros((2, len(force)))
    for sign, there in zip((1.0, -1.0), forces, strict=True):
        value, broken = term.evaluate(dt, velocity + sign * step * direction, there)
        assert broken == 0
        energy.append(value)
    term.evaluate(dt, velocity, force)
    term.linearise(dt)
    slope = -dt * float(force @ direction)
    assert (energy[0] - energy[1]) / (2 * step) == pytest.approx(slope, rel=1e-6)
    blocks, product = np.zeros(384 * grid.count + 64), np.zeros_like(force)
    term.add_blocks(dt, blocks)
    node = int(np.argmax(blocks[: 384 * grid.count].reshape(-1, 6)[:, 0]))
    unit = np.zeros_like(force)
    unit[4 * node] = 1.0
    term.apply(dt, unit, product)
    np.testing.assert_allclose(product[4 * node : 4 * node + 3], blocks[6 * node : 6 * node + 3], rtol=1e-10)
    product[:] = 0.0
    term.apply(dt, direction, product)
    assert direction @ product > 0.0
    term.linearise_whole(dt)
    whole = np.zeros_like(force)
    term.apply(dt, direction, whole)
    np.testing.assert_allclose(whole, -dt * (forces[0] - forces[1]) / (2 * step), atol=1e-6 * np.abs(whole).max())
    assert direction @ whole < 0.9 * (direction @ product)


def test_long_implicit_steps_of_a_surface_take_few_newton_steps():
    """At nine times the explicit substep six are enough; with the Hessian's positive part alone all four steps were halved."""
    run = slab(disc(6, liquid()), "implicit_surface_tension", placement="even")
    for _ in range(4):
        run.step(0.04)
    told = run.step_context.report["implicit"]
    assert told["substeps"] == 4 and told["halved"] == 0 and told["newton"] <= 24


def test_momentum_stays_and_mass_comes_back():
    """After fused substeps in single precision masses have their bits, and the momentum has moved by rounding only."""
    start = drop()
    run = solver(start, dtype=np.float32)
    mass = run.snapshot()["mass"]
    for _ in range(5):
        run.step(1e-3)
    end = run.snapshot()
    assert np.array_equal(mass, end["mass"])
    before, after = (each["mass"].astype(float) @ each["velocity"] for each in (solver(start).snapshot(), end))
    assert np.abs(after - before).max() < 1e-6 * mass.sum() and not np.array_equal(start["velocity"], end["velocity"])


def test_capillary_waves_limit_the_substep():
    """0.5 sqrt(rho h^3 / (4 pi k)) with the largest tension, told as what holds dt; implicit substeps are free of it."""
    strong = dataclasses.replace(WATER, surface_tension=SurfaceTension(1e4))
    run = solver(drop(strong, velocity=np.zeros((60, 3)), affine=np.zeros((60, 3, 3))))
    run.step(time_left=1.0)
    exact = 0.5 * math.sqrt(1.0 * H**3 / (4.0 * math.pi * 1e4))
    assert longest_step(1e4, 1.0, H) == exact
    assert run.step_context.limit.name == "capillary wave"
    assert run.step_context.dt == pytest.approx(exact, rel=1e-3)
    assert not any(
        limit.name == "capillary wave" for limit, _ in solver(drop(strong), "implicit_surface_tension").step_context.limits
    )


def test_bodies_and_walls_have_their_angle():
    """0.3 cells from bodies the tension is - k cos(angle), the body's or the solve's, and k from 0.8 on, whatever their rule."""
    plate = PosedLevelSets(BOX, (0.5, 0.02, 0.5), np.zeros(1), np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[0.1, -0.02, 0.1]]))
    body = collider_contact_angle(Collider("plate", CollisionRule.SEPARATE, 0.0, plate), FrameContext(1), angle=60.0)
    matter = dataclasses.replace(WATER, surface_tension=SurfaceTension(2.0))
    walls = walled((0.0, -1.0, 0.0), (9.0, 9.0, 3 * H), SLIP, OPEN, OPEN, OPEN, SLIP, SLIP)
    substeps = {"preset": "surface_tension", "set": {"slab": "z", "contact_angle": 120.0}}
    run = solver(drop(matter), substeps, colliders=[body], walls=walls, fuse=False)
    run_until(run, "set_tension")
    samples = run.stores["samples"]
    x, tension = samples.unpack("position"), samples.unpack("tension")
    n = samples.unpack("normal")
    near_wall, near_plate = (x[:, 0] < 0.8 * H) & (n[:, 0] < 0.0), (x[:, 1] < 0.8 * H) & (n[:, 1] < 0.0)
    at_wall, at_plate, free = near_wall & ~near_plate, near_plate & ~near_wall, ~near_wall & ~near_plate
    plate_only, wall_only = at_plate & (x[:, 1] < 0.3 * H), at_wall & (x[:, 0] < 0.3 * H)
    leaving, leaving_wall = at_plate & ~plate_only, at_wall & ~wall_only
    assert min(each.sum() for each in (plate_only, wall_only, leaving_wall, free)) > 3
    np.testing.assert_allclose(tension[plate_only], -1.0)
    np.testing.assert_allclose(tension[wall_only], 1.0)
    np.testing.assert_allclose(tension[free], 2.0)
    np.testing.assert_allclose(tension[leaving], -1.0 + 3.0 * (x[leaving, 1] / H - 0.3) / 0.5)
    pull = samples.unpack("pull")
    np.testing.assert_allclose(pull[leaving], [[0.0, -3.0 / (0.5 * H), 0.0]] * int(leaving.sum()))
    np.testing.assert_allclose(tension[leaving_wall], 1.0 + (x[leaving_wall, 0] / H - 0.3) / 0.5)
    np.testing.assert_allclose(pull[leaving_wall], [[-1.0 / (0.5 * H), 0.0, 0.0]] * int(leaving_wall.sum()))
    assert leaving.sum() > 3 and not pull[free | plate_only | wall_only].any()
    assert x[:, 2].min() >= 0.0 and x[:, 2].max() <= 3 * H


def test_the_upper_side_of_a_film_is_dry():
    """A single layer 0.02 cells above the floor: its lower side is wetted, its upper side, though within 0.3 cells, is not."""
    axis = (np.arange(40) + 0.5) * 0.25 * H
    sheet = np.stack(np.meshgrid(axis, [0.02 * H], axis, indexing="ij"), axis=-1).reshape(-1, 3)
    matter = dataclasses.replace(WATER, surface_tension=SurfaceTension(1.0))
    film = Particles({"position": sheet, "volume": np.full(len(sheet), 0.03 * H**3)}, (matter,), 0.5 * H)
    walls = walled((-9.0, 0.0, -9.0), (9.0, 9.0, 9.0), OPEN, OPEN, SLIP, OPEN, OPEN, OPEN)
    run = solver(film, {"preset": "surface_tension", "set": {"contact_angle": 30.0}}, walls=walls, fuse=False)
    run_until(run, "set_tension")
    samples = run.stores["samples"]
    x, n, tension = samples.unpack("position"), samples.unpack("normal"), samples.unpack("tension")
    assert (x[n[:, 1] > 0.9, 1] < 0.3 * H).mean() > 0.9
    np.testing.assert_allclose(tension[n[:, 1] > 0.0], 1.0)
    np.testing.assert_allclose(tension[n[:, 1] < -0.9], -math.cos(math.radians(30.0)))


def test_matter_without_tension_has_no_surface():
    """Solids and liquids that nobody gave a tension move as without the stages, bit for bit."""
    plain = dataclasses.replace(WATER, surface_tension=None)
    runs = [solver(drop(plain), preset, fuse=False) for preset in ("surface_tension", "explicit_apic")]
    for run in runs:
        run.step(1e-3)
    assert runs[0].stores["samples"].count == 0
    np.testing.assert_allclose(runs[0].snapshot()["position"], runs[1].snapshot()["position"], atol=1e-14)


def test_mistakes_are_told():
    """Walls between node planes, exchanged temperatures, and an unknown kernel have sentences with a cure."""
    walls = walled((-9.0, -9.0, 0.0), (9.0, 9.0, 2.5 * H), OPEN, OPEN, OPEN, OPEN, SLIP, SLIP)
    with pytest.raises(
        MpmNodesError, match=r"sample_surface\.slab: the walls along z lie at 0 and 2\.5 cells; place them on planes"
    ):
        solver(drop(), {"preset": "surface_tension", "set": {"slab": "z"}}, walls=walls).step(1e-3)
    with pytest.raises(MpmNodesError, match=r"hot_temperature = 280 K is below temperature = 300 K; exchange"):
        material_surface_tension(WATER, temperature=300.0, hot_temperature=280.0)
    with pytest.raises(MpmNodesError, match=r"tension = -1 N/m; give a finite value >= 0"):
        SurfaceTension(-1.0)
    assert Material.from_json(WATER.to_json()) == WATER


def test_implicit_substeps_keep_momentum():
    """A long implicit step that is solved to 1e-9 cells keeps linear momentum to 1e-9 of its size, and pulls the drop together."""
    substeps = {"preset": "implicit_surface_tension", "set": {"tolerance": 1e-9}}
    run = solver(drop(velocity=np.zeros((60, 3)), affine=np.zeros((60, 3, 3))), substeps)
    extent = np.ptp(run.snapshot()["position"], axis=0).sum()
    run.step(0.02)
    end = run.snapshot()
    size = end["mass"] @ np.linalg.norm(end["velocity"], axis=1)
    assert np.abs(end["mass"] @ end["velocity"]).max() < 1e-9 * size
    assert np.ptp(end["position"], axis=0).sum() < extent
