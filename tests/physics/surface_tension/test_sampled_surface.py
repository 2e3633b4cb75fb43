"""The sampled surface as a mesh: closed, where matter ends, with the area and the tension that samples have."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpm_nodes.data import MpmNodesError, Particles, SurfaceTension
from mpm_nodes.nodes.derived import column
from mpm_nodes.nodes.surface import surface_particles
from mpm_nodes.physics.surface_tension.nodes.sampled_surface import sampled_surface
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import material

SPACING = 0.01
MARANGONI = SurfaceTension(0.07, 0.02, 300.0, 400.0)


def liquid(label: str, tension: SurfaceTension | None):
    return dataclasses.replace(material("liquid", bulk_modulus=1e3), label=label, surface_tension=tension)


def ball(*materials, radius=8, **columns):
    """Particles on a lattice in a ball; those of a second material above the first."""
    line = np.arange(-radius, radius) + 0.5
    position = SPACING * np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    position = position[(position**2).sum(axis=1) < (SPACING * radius) ** 2]
    given = {"position": position, "velocity": np.zeros_like(position), "volume": np.full(len(position), SPACING**3)}
    if len(materials) > 1:
        given["material"] = (position[:, 1] > 0.0).astype(np.int32)
    given.update({name: values(position) for name, values in columns.items()})
    return Particles(given, materials=materials, spacing=SPACING)


def open_sides(mesh):
    """Return how many sides of triangles are not met by one of the other direction."""
    corners = mesh.indices.reshape(-1, 3)
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]]).astype(np.int64)
    edges, way = np.unique(np.sort(sides, axis=1), axis=0, return_inverse=True)
    return int(np.count_nonzero(np.bincount(way.ravel(), np.sign(sides[:, 1] - sides[:, 0]), len(edges))))


def volume(mesh):
    a, b, c = (mesh.points[mesh.indices.reshape(-1, 3)[:, n]] for n in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0)


def test_mesh_is_closed_outward_and_where_matter_ends():
    """No open side, the particles' volume to 5 % on eight cells, normals away from it; 0.6 cells further without `shift`."""
    particles = ball(liquid("water", MARANGONI))
    mesh, bare = sampled_surface(particles), sampled_surface(particles, shift=False)
    assert open_sides(mesh) == open_sides(bare) == 0
    assert volume(mesh) == pytest.approx(len(particles) * SPACING**3, rel=0.05)
    assert np.einsum("ij,ij->i", mesh.normals, mesh.points).min() > 0.0
    away = np.linalg.norm(bare.points, axis=1).mean() - np.linalg.norm(mesh.points, axis=1).mean()
    assert away == pytest.approx(0.6 * 2.0 * SPACING, rel=0.15)


@pytest.mark.parametrize("cloud", [np.array([[0.31, 0.12, -0.07]]), np.random.default_rng(5).uniform(-0.05, 0.05, (120, 3))])
def test_mesh_of_any_cloud_is_closed(cloud):
    """A lone particle and a loose cloud have closed surfaces too."""
    one = Particles({"position": cloud, "velocity": 0.0 * cloud}, materials=(liquid("water", MARANGONI),), spacing=SPACING)
    mesh = sampled_surface(one)
    assert len(mesh.counts) > 0 and open_sides(mesh) == 0 and volume(mesh) > 0.0


def areas(mesh):
    corners = mesh.points[mesh.indices.reshape(-1, 3)]
    return 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)


def test_area_and_energy_are_those_of_a_substep():
    """With a node where the solve has one, the mesh has the area of the samples, and with its tension their energy to 1 %."""
    matter = liquid("water", MARANGONI)
    particles = ball(matter, radius=5, temperature=lambda x: 350.0 + 800.0 * x[:, 0], tension_scale=lambda x: 1.5 + 5.0 * x[:, 1])
    run = SubstepSolver(particles, "surface_tension", cell_size=2.0 * SPACING)
    run.step(dt=1e-6)
    told = run.step_context.report["surface"]
    mesh = sampled_surface(particles, origin=tuple(particles["position"].min(axis=0)))
    area = areas(mesh)
    assert area.sum() == pytest.approx(told["area"], rel=1e-5)
    tension = mesh.attributes["surface_tension"][mesh.indices.reshape(-1, 3)].mean(axis=1)
    assert area @ tension == pytest.approx(told["energy"], rel=0.01)


def test_each_liquid_of_a_pair_has_a_surface():
    """Oil on water: half of the pair's tension where they meet, the tension against air elsewhere, and each surface closed."""
    water, oil = liquid("water", SurfaceTension(0.07, interfaces=(("oil", 0.05),))), liquid("oil", SurfaceTension(0.03))
    mesh = sampled_surface(ball(water, oil))
    tension, covered, height = mesh.attributes["surface_tension"], mesh.attributes["covered"], mesh.points[:, 1]
    assert open_sides(mesh) == 0
    assert (tension[covered == 1.0] == pytest.approx(0.025)) and np.abs(height[covered == 1.0]).max() < SPACING
    assert tension[height < -2.0 * SPACING] == pytest.approx(0.07) and tension[height > 2.0 * SPACING] == pytest.approx(0.03)
    assert set(np.unique(mesh.attributes["material"])) == {0, 1}


def test_tension_of_a_pair_is_that_at_rest_without_temperatures():
    """A curve is taken at the 293.15 K that a solve gives matter without a temperature, and matter that never pulls is left out."""
    curve = ((273.15, 0.09), (313.15, 0.01))
    water = liquid("water", SurfaceTension(0.07, interfaces=(("oil", 0.09),), interface_tables=(("oil", curve),)))
    oil, sand = liquid("oil", SurfaceTension(0.03)), liquid("sand", None)
    particles = ball(water, oil)
    aside = np.arange(len(particles)) % 7 == 0
    apart = particles["position"] + np.where(aside, 1.0, 0.0)[:, None]
    columns = {**particles.attributes, "position": apart, "material": np.where(aside, 2, particles["material"]).astype(np.int32)}
    mesh = sampled_surface(dataclasses.replace(particles, attributes=columns, materials=(water, oil, sand)))
    assert mesh.points.max() < 0.5
    covered = mesh.attributes["covered"] == 1.0
    assert covered.any() and mesh.attributes["surface_tension"][covered] == pytest.approx(0.025)


def test_smooth_surface_carries_the_tension_too():
    """surface_particles takes surface_tension as a computed attribute, constant where the tension is."""
    particles = ball(liquid("water", SurfaceTension(0.07)), radius=5)
    mesh = surface_particles(particles, attributes=("surface_tension",)).mesh
    assert mesh.attributes["surface_tension"] == pytest.approx(0.07)


def test_tension_of_particles_follows_heat_solute_and_paint():
    """0.07 N/m cold, 0.02 hot, 0.01 with soap, times the paint; matter without a tension has none."""
    soapy = SurfaceTension(0.07, 0.02, 300.0, 400.0, solute_tension=0.01)
    rows = {"temperature": [300.0, 400.0, 300.0, 300.0, 300.0], "concentration": [0.0, 0.0, 1.0, 0.0, 0.0]}
    given = {name: np.array(values) for name, values in rows.items()}
    given.update(tension_scale=np.array([1.0, 1.0, 1.0, 2.0, 1.0]), material=np.array([0, 0, 0, 0, 1], np.int32))
    given.update(position=np.zeros((5, 3)), velocity=np.zeros((5, 3)))
    particles = Particles(given, materials=(liquid("soap", soapy), liquid("oil", None)), spacing=SPACING)
    assert column("test", particles, "surface_tension") == pytest.approx([0.07, 0.02, 0.01, 0.14, 0.0])


def test_matter_without_a_tension_is_told():
    """The message names the materials and what to wire."""
    with pytest.raises(MpmNodesError, match=r"no material has a surface tension \(oil\); wire material_surface_tension"):
        sampled_surface(ball(liquid("oil", None), radius=3))


def test_no_particles_have_an_empty_mesh():
    """A stream that has not begun has one."""
    empty = Particles({"position": np.zeros((0, 3))}, materials=(liquid("water", MARANGONI),), spacing=SPACING)
    assert len(sampled_surface(empty).points) == 0
