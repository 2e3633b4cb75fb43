"""Tension of pairs of liquids: surfaces of their own, what covers samples, conservation, and what is refused."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from test_surface_tension import STILL, H, run_until

from mpm_nodes.data import Material, MpmNodesError, Particles, SurfaceTension, Thermal
from mpm_nodes.physics.surface_tension.materials import covering, pairs_of
from mpm_nodes.physics.surface_tension.nodes.tension import material_interface_tension, material_surface_tension
from mpm_nodes.physics.surface_tension.stages.surface_tension import longest_step
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import OPEN, SLIP, walled

WATER = Material("liquid", {"bulk_modulus": 100.0}, 1.0, "water", surface_tension=SurfaceTension(1.0))
OIL = material_interface_tension(
    dataclasses.replace(WATER, label="oil", surface_tension=SurfaceTension(0.5)), other="water", tension=0.25
)


def cube(*materials: Material, cells: int = 4, **columns) -> Particles:
    """Return a cube of eight particles a cell that spins and drifts, one material behind the other along x."""
    axis = (np.arange(2 * cells) + 0.5) * 0.5 * H
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    material = np.minimum((x[:, 0] / (cells * H) * len(materials)).astype(np.int32), len(materials) - 1)
    velocity = np.cross([0.2, -0.1, 0.4], x - 0.5 * cells * H) + [0.3, 0.1, 0.0]
    given = {"position": x, "material": material, "velocity": velocity, "volume": np.full(len(x), (0.5 * H) ** 3), **columns}
    return Particles(given, materials, 0.5 * H)


def solver(particles: Particles, preset: object = "surface_tension", **options) -> SubstepSolver:
    """Return a solve in double precision, without gravity."""
    options = {"gravity": STILL, "dtype": np.float64, "origin": STILL, **options}
    return SubstepSolver(particles, preset, cell_size=H, **options)


@pytest.fixture(scope="module")
def parted() -> dict[str, np.ndarray]:
    """Return the samples of a cube, half oil and half water, with the material of their owners."""
    run = solver(cube(OIL, WATER), fuse=False)
    run_until(run, "set_tension")
    samples = run.stores["samples"]
    names = ("position", "normal", "area", "covered", "interface", "tension")
    owner = run.particles.unpack("material")[samples.unpack("owner")]
    return {name: samples.unpack(name) for name in names} | {"material": owner}


def test_the_interface_bears_the_tension_of_the_pair(parted):
    """In the plane between them both surfaces lie within a tenth of a cell, and bear half of it each; away from it that of air."""
    x, n, covered = parted["position"], parted["normal"], parted["covered"]
    # away from the rim, where both meet air
    middle = (np.abs(x[:, 1:] - 2.0 * H) < 0.8 * H).all(axis=1) & (np.abs(x[:, 0] - 2.0 * H) < H)
    for material, sign in ((0, 1.0), (1, -1.0)):
        mine = middle & (parted["material"] == material)
        assert mine.sum() > 5
        np.testing.assert_allclose(x[mine, 0], 2.0 * H, atol=0.1 * H)
        np.testing.assert_allclose(covered[mine], 1.0)
        np.testing.assert_allclose(parted["tension"][mine], 0.125, rtol=1e-12)
        area = parted["area"][mine] @ (sign * n[mine, 0])
        assert area == pytest.approx(parted["area"][mine].sum(), rel=0.02)
    for material, own in ((0, 0.5), (1, 1.0)):
        free = (parted["material"] == material) & (np.abs(x[:, 0] - 2.0 * H) > 1.6 * H)
        np.testing.assert_allclose(covered[free], 0.0)
        np.testing.assert_allclose(parted["tension"][free], own, rtol=1e-12)


WARM = material_interface_tension(
    dataclasses.replace(WATER, label="oil", surface_tension=SurfaceTension(0.5)), other="water", table=((300.0, 0.4), (400.0, 0.1))
)


def test_the_tension_of_a_pair_follows_the_temperature():
    """Each side bears half of it at its owner's temperature, by the curve; its largest value is what limits the step."""
    height = cube(WARM, WATER)["position"][:, 1]
    run = solver(cube(WARM, WATER, temperature=310.0 + 80.0 * height / (4.0 * H)), fuse=False)
    run_until(run, "set_tension")
    samples = run.stores["samples"]
    x, warm = samples.unpack("position"), run.particles.unpack("temperature")[samples.unpack("owner")]
    middle = (np.abs(x[:, 1:] - 2.0 * H) < 1.2 * H).all(axis=1) & (np.abs(x[:, 0] - 2.0 * H) < 0.5 * H)
    middle &= samples.unpack("covered") == 1.0
    assert middle.sum() > 10 and np.ptp(warm[middle]) > 20.0
    np.testing.assert_allclose(samples.unpack("tension")[middle], 0.5 * (0.4 - 0.003 * (warm[middle] - 300.0)), rtol=1e-12)
    assert pairs_of([WARM, WATER]).most(0) == 0.4
    assert Material.from_json(WARM.to_json()) == WARM


def test_an_interface_is_pulled_to_where_its_tension_is_larger():
    """Matter beside it starts down or up as the curve falls or rises, twice as fast as with one tension; momentum stays."""
    begun = {}
    for name, table in {"falls": (0.4, 0.1), "even": (0.25, 0.25), "rises": (0.1, 0.4)}.items():
        curve = ((300.0, table[0]), (400.0, table[1]))
        oil = dataclasses.replace(WATER, label="oil", surface_tension=SurfaceTension(0.5))
        oil = material_interface_tension(oil, other="water", table=curve)
        height = cube(oil, WATER)["position"][:, 1]
        run = solver(cube(oil, WATER, velocity=np.zeros((512, 3)), temperature=310.0 + 200.0 * height))
        for _ in range(4):
            run.step(1e-3)
        end = run.snapshot()
        v = end["velocity"].astype(float)
        inner = (np.abs(end["position"] - 2.0 * H) < 0.8 * H).all(axis=1)
        begun[name] = float(v[inner, 1].mean())
        assert np.abs(end["mass"] @ v).max() < 1e-10 * (end["mass"] @ np.linalg.norm(v, axis=1))
    assert begun["falls"] < -2.0 * abs(begun["even"]) and begun["rises"] > 2.0 * abs(begun["even"])


def test_on_a_body_the_tension_against_air_counts():
    """Side by side on a floor both liquids have the energy of their angle in air up to the line where they meet."""
    walls = walled((-H, 0.0, -H), (9 * H, 9 * H, 9 * H), OPEN, OPEN, SLIP, OPEN, OPEN, OPEN)
    run = solver(cube(OIL, WATER), {"preset": "surface_tension", "set": {"contact_angle": 60.0}}, fuse=False, walls=walls)
    run_until(run, "set_tension")
    samples = run.stores["samples"]
    x, n, tension, covered = (samples.unpack(name) for name in ("position", "normal", "tension", "covered"))
    owner = run.particles.unpack("material")[samples.unpack("owner")]
    under = (x[:, 1] < 0.25 * H) & (n[:, 1] < -0.5)
    assert (covered[under] > 0.0).any()
    for material, own in ((0, 0.5), (1, 1.0)):
        mine = under & (owner == material)
        assert mine.sum() > 20
        np.testing.assert_allclose(tension[mine], -0.5 * own, rtol=1e-12)


def test_without_a_pair_there_is_one_surface():
    """Two liquids that no pair names have the samples of one, bit for bit, and nothing covers them."""
    other = dataclasses.replace(WATER, label="oil")
    both, one = (solver(cube(*matter), fuse=False) for matter in ((other, WATER), (WATER,)))
    for run in (both, one):
        run_until(run, "set_tension")
    for name in ("position", "area", "tension"):
        np.testing.assert_array_equal(both.stores["samples"].unpack(name), one.stores["samples"].unpack(name))
    assert not both.stores["samples"].rows("covered").any()


@pytest.mark.parametrize("preset", ["surface_tension", "implicit_surface_tension"])
def test_momentum_stays(preset):
    """Linear momentum to 1e-12 explicitly and 1e-9 implicitly, angular momentum explicitly; masses come back."""
    substeps = {"preset": preset, "set": {"tolerance": 1e-10} if preset.startswith("implicit") else {}}
    run = solver(cube(OIL, WATER), substeps)
    mass, before = run.snapshot()["mass"], measured(run)
    for _ in range(4):
        run.step(2e-3)
    after, size = measured(run), float(mass.sum())
    assert np.array_equal(mass, run.snapshot()["mass"])
    bar = 1e-12 if preset == "surface_tension" else 1e-9
    assert np.abs(after[:3] - before[:3]).max() < bar * size
    if preset == "surface_tension":
        assert np.abs(after[3:] - before[3:]).max() < 1e-12 * size


def measured(run: SubstepSolver) -> np.ndarray:
    """Return momentum and angular momentum, that of the affine parts included."""
    found = run.particles
    m, x, v, c = (found.unpack(name) for name in ("mass", "position", "velocity", "affine"))
    own = 0.25 * H * H * np.stack([c[:, 2, 1] - c[:, 1, 2], c[:, 0, 2] - c[:, 2, 0], c[:, 1, 0] - c[:, 0, 1]], axis=1)
    return np.concatenate([m @ v, m @ (np.cross(x, v) + own)])


def test_stages_read_and_write_what_they_say():
    """A checked substep with heat, in which the interface takes none from the air: only the free surface of either liquid does."""
    warm = Thermal(1.0, 0.1, 1.0, 0.1)
    matter = [dataclasses.replace(each, thermal=warm) for each in (OIL, WATER)]
    settings = {"air_temperature": 280.0, "air_convection": 3.0}
    areas = []
    for parts in (matter, matter[1:]):
        run = solver(
            cube(*parts, temperature=np.full(512, 300.0)), {"preset": "surface_tension_heat", "set": settings}, checked=True
        )
        run.step(1e-4)
        areas.append(run.step_context.report["heat"]["surface"])
    assert areas[0] == pytest.approx(areas[1], rel=0.05)


def test_the_pair_limits_the_substep():
    """Capillary waves of the interface hold dt where its tension is the largest, also in the liquid that does not name it."""
    strong = material_interface_tension(dataclasses.replace(WATER, label="oil", density=5.0), other="water", tension=1e4)
    given = cube(strong, WATER, velocity=np.zeros((512, 3)))
    run = solver(given)
    run.step(time_left=1.0)
    assert run.step_context.limit.name == "capillary wave"
    assert run.step_context.dt == pytest.approx(longest_step(1e4, 1.0, H), rel=1e-3)


def test_shares_say_what_covers():
    """Half of space other matter: covered; a quarter of what is not one's own, or less: not; several liquids by their shares."""
    lean = dataclasses.replace(WATER, label="fat", surface_tension=SurfaceTension(0.0, interfaces=(("water", 0.1),)))
    pairs = pairs_of([WATER, OIL, lean, dataclasses.replace(WATER, label="ice", surface_tension=None)])
    fat, oil, water, rest = (pairs.group[n] for n in (2, 1, 0, 3))
    assert rest == 0 and {fat, oil, water} == {1, 2, 3}
    assert pairs.tension[oil, water] == 0.25 and pairs.tension[water, fat] == 0.1 and pairs.tension[oil, fat] == 0.0
    shares = np.zeros((4, 4))
    shares[water] = 0.5
    shares[oil] = [0.5, 0.125, 0.25, 0.2]
    shares[fat] = [0.0, 0.0, 0.0, 0.3]
    covered, side = covering(int(water), shares, pairs)
    np.testing.assert_allclose(covered, [1.0, 0.0, 0.5, 1.0])
    np.testing.assert_allclose(side, [0.125, 0.125, 0.125, 0.5 * (0.4 * 0.25 + 0.6 * 0.1)])


def test_pairs_are_kept_and_mistakes_told():
    """JSON holds them; unknown labels, contradictions, negative tensions and pairs with oneself have sentences with a cure."""
    assert Material.from_json(OIL.to_json()) == OIL
    assert material_surface_tension(OIL, tension=0.3).surface_tension.interfaces == OIL.surface_tension.interfaces
    with pytest.raises(MpmNodesError, match=r"material oil: has a tension against 'water', and no other material.*: 'fat'"):
        solver(cube(OIL, dataclasses.replace(WATER, label="fat"))).step(1e-3)
    steep = dataclasses.replace(WATER, surface_tension=SurfaceTension(1.0, interfaces=(("oil", 0.4),)))
    with pytest.raises(
        MpmNodesError, match=r"material water: its tension against 'oil' follows the temperature otherwise than oil says"
    ):
        pairs_of([WARM, steep])
    with pytest.raises(MpmNodesError, match=r"the rows of that against 'water' do not ascend; sort them"):
        material_interface_tension(WATER, other="water", table=((400.0, 0.1), (300.0, 0.4)))
    with pytest.raises(MpmNodesError, match=r"the curve against 'water' and its largest tension do not belong together"):
        SurfaceTension(1.0, interface_tables=(("water", ((300.0, 0.1),)),))
    with pytest.raises(MpmNodesError, match=r"material oil: has a tension against 'oil', and no other material"):
        pairs_of([material_interface_tension(OIL, other="oil"), WATER])
    other = material_interface_tension(WATER, other="oil", tension=0.3)
    with pytest.raises(MpmNodesError, match=r"0\.3 N/m against 'oil', and oil says 0\.25 N/m; say it once, or say the same"):
        pairs_of([OIL, other])
    with pytest.raises(MpmNodesError, match=r"that against 'fat' = -1 N/m; give a finite value >= 0"):
        material_interface_tension(WATER, other="fat", tension=-1.0)
    with pytest.raises(MpmNodesError, match=r"named twice among the interfaces"):
        material_interface_tension(OIL, other="water")
    with pytest.raises(MpmNodesError, match=r"material_interface_tension\.other is empty"):
        material_interface_tension(OIL, other="")
    assert math.isinf(longest_step(0.0, 1.0, H))
