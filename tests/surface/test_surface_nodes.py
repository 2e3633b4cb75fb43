"""Surfacing: a ball of particles becomes the ball; meshes are closed; fields are sparse, exact where they can be."""

import math

import numba
import numpy as np
import pytest

from mpm_nodes import Graph, execute
from mpm_nodes.data import GraphSettings, LevelSet, Material, Mesh, MpmNodesError, Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.kernels.surfaces import filter as surface_filter
from mpm_nodes.nodes.emit import emit_box, emit_sphere
from mpm_nodes.nodes.seeding import Seeding
from mpm_nodes.nodes.surface import density_volume, surface_particles, velocity_volume

CHEESE = Material("snow", {}, 400.0)
RADIUS, SPACING = 0.5, 0.025
SETTINGS = GraphSettings(cell_size=2 * SPACING)


@pytest.fixture(scope="module")
def ball() -> Particles:
    return emit_sphere(SETTINGS, CHEESE, radius=RADIUS, centre=(0.0, 0.0, 0.0), velocity=(1.0, -2.0, 3.0))


def moved(particles: Particles, shift) -> Particles:
    columns = {**particles.attributes, "position": particles["position"] + np.asarray(shift)}
    return Particles(columns, particles.materials, particles.spacing)


def triangles_of(mesh: Mesh) -> np.ndarray:
    """Triangles of a mesh of triangles and quads."""
    starts = np.cumsum(mesh.counts) - mesh.counts
    four = starts[mesh.counts == 4]
    corners = [starts[:, None] + [0, 1, 2], four[:, None] + [0, 2, 3]]
    return mesh.indices[np.concatenate(corners)]


def volume_and_area(mesh: Mesh) -> tuple[float, float]:
    a, b, c = (mesh.points[triangles_of(mesh)[:, n]] for n in range(3))
    normal = np.cross(b - a, c - a)
    return float((a * normal).sum() / 6.0), float(np.linalg.norm(normal, axis=1).sum() / 2.0)


@pytest.mark.parametrize("seeds", list(Seeding))
def test_ball_of_particles_becomes_the_ball(seeds):
    """Volume and area within 2 %, every point within half a voxel of the sphere (radius = 20 voxels)."""
    particles = emit_sphere(SETTINGS, CHEESE, radius=RADIUS, centre=(0.0, 0.0, 0.0), seeding=seeds)
    mesh = surface_particles(particles).mesh
    volume, area = volume_and_area(mesh)
    assert volume == pytest.approx(4 / 3 * math.pi * RADIUS**3, rel=0.02)
    assert area == pytest.approx(4 * math.pi * RADIUS**2, rel=0.02)
    assert np.abs(np.linalg.norm(mesh.points, axis=1) - RADIUS).max() < 0.75 * SPACING


def grown(particles: Particles, factor) -> Particles:
    return Particles({**particles.attributes, "fat": np.broadcast_to(factor, len(particles))}, particles.materials, SPACING)


@pytest.mark.parametrize("keep_volume", [True, False])
@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_an_attribute_scales_the_radius(ball, factor, keep_volume):
    """The surface stands 0.665 spacings times what the factor adds farther out, within a fifth of a spacing."""
    mesh = surface_particles(grown(ball, factor), radius_attribute="fat", keep_volume=keep_volume).mesh
    out = np.linalg.norm(mesh.points, axis=1) - RADIUS - 0.665 * SPACING * (factor - 1.0)
    assert abs(out.mean()) < 0.1 * SPACING and np.abs(out).max() < 0.3 * SPACING


def test_an_attribute_scales_the_radius_where_it_says_so(ball):
    """One half is fat, the other is as it was; a factor beyond the limits is cut; a vector or an unknown name is refused."""
    mesh = surface_particles(grown(ball, 1.0 + 2.0 * (ball["position"][:, 0] > 0.0)), radius_attribute="fat").mesh
    out, side = np.linalg.norm(mesh.points, axis=1) - RADIUS, mesh.points[:, 0]
    assert out[side > 4 * SPACING].mean() == pytest.approx(1.33 * SPACING, abs=0.1 * SPACING)
    assert abs(out[side < -4 * SPACING].mean()) < 0.05 * SPACING
    with pytest.warns(UserWarning, match=r"surface_particles\.radius_attribute: 'fat' times the radius is not from 0\.1 to 4"):
        fat = surface_particles(grown(ball, 9.0), radius_attribute="fat").mesh
    most = surface_particles(grown(ball, 4.0), radius_attribute="fat").mesh
    assert np.array_equal(fat.points, most.points)
    for name, said in (("velocity", "'velocity' of the particles is a vector"), ("thin", "the particles have no 'thin'")):
        with pytest.raises(MpmNodesError, match=f"surface_particles.radius_attribute: {said}"):
            surface_particles(ball, radius_attribute=name)


def test_a_field_scales_the_radius_behind_the_solve():
    """Painted by set_attribute behind the solve, keyed; voxels take keys as well."""
    graph = Graph(cell_size=0.05, start=1, end=2)
    jelly = graph.add("material_neo_hookean", "jelly")
    body = graph.add("emit_sphere", "body", material=jelly, radius=0.2, centre=(0.0, 0.0, 0.0))
    solve = graph.add("solve", "sim", sources=[body], gravity=(0.0, 0.0, 0.0))
    wide = graph.add("field_constant", "wide", value={"keys": [[1, 1.0, "step"], [2, 3.0, "step"]]})
    fat = graph.add("set_attribute", "fat", particles=solve, field=wide, attribute="fat")
    voxel = {"keys": [[1, 0.02, "step"], [2, 0.03, "step"]]}
    graph.add("surface_particles", "skin", particles=fat, radius_attribute="fat", voxel_size=voxel)
    graph.nodes["skin"].knobs["radius_attribute"] = "velocity"
    with pytest.raises(MpmNodesError, match=r"surface_particles.radius_attribute: 'velocity' of the particles is a vector"):
        preflight.estimate(plan_graph(graph), 1)
    graph.nodes["skin"].knobs["radius_attribute"] = "fat"
    cook = Evaluator(graph)
    meshes, sets = ([cook.value(f"skin.{name}", frame) for frame in (1, 2)] for name in ("mesh", "surface"))
    thin, thick = (np.linalg.norm(mesh.points, axis=1).mean() for mesh in meshes)
    assert thick - thin == pytest.approx(2.0 * 0.665 * 0.025, abs=3e-3) and [each.voxel_size for each in sets] == [0.02, 0.03]


@pytest.mark.parametrize("adaptivity", [0.0, 0.5])
def test_mesh_is_closed_and_points_outward(ball, adaptivity):
    """Every edge is walked once each way; signed volume is positive; normals point away from the middle."""
    mesh = surface_particles(ball, adaptivity=adaptivity).mesh
    starts = np.cumsum(mesh.counts) - mesh.counts
    following = np.arange(len(mesh.indices)) + 1
    following[np.cumsum(mesh.counts) - 1] = starts
    edges = np.stack([mesh.indices, mesh.indices[following]], axis=1)
    forward, backward = ({tuple(edge) for edge in pairs.tolist()} for pairs in (edges, edges[:, ::-1]))
    assert len(forward) == len(edges) and forward == backward
    assert volume_and_area(mesh)[0] > 0.0
    outward = mesh.points / np.linalg.norm(mesh.points, axis=1, keepdims=True)
    assert (mesh.normals * outward).sum(axis=1).min() > 0.9


def test_two_drops_far_apart_cost_what_two_drops_cost(ball):
    """100 m apart along the diagonal: twice the leaves of one, and a mesh of both."""
    far = moved(ball, (100.0, 100.0, 100.0))
    pair = Particles({name: np.concatenate([ball[name], far[name]]) for name in ball.attributes}, ball.materials, SPACING)
    one, two = (surface_particles(each, voxel_size=SPACING) for each in (ball, pair))  # 100 m are a whole number of leaves
    assert len(two.surface.origins) == 2 * len(one.surface.origins)
    assert len(density_volume(pair).origins) == 2 * len(density_volume(ball).origins)
    assert volume_and_area(two.mesh)[0] == pytest.approx(2 * volume_and_area(one.mesh)[0], rel=1e-4)


def test_level_set_is_a_distance_in_its_band(ball):
    """|phi - (|x| - R)| below 0.6 voxels everywhere in the band, +-3 voxels outside it, no leaf stored in vain."""
    surface = surface_particles(ball, smoothing=0, voxel_size=SPACING).surface
    x = (surface.origins[:, None, None, None, :] + np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1)) * SPACING
    exact = np.clip(np.linalg.norm(x, axis=-1) - RADIUS, -3 * SPACING, 3 * SPACING)
    assert np.abs(surface.values - exact).max() < 0.6 * SPACING
    assert (surface.kind, surface.name) == ("level_set", "surface")
    assert surface.background == pytest.approx(3 * SPACING)
    assert (surface.values < surface.background).any(axis=(1, 2, 3)).all()


def test_redistancing_a_squared_distance_gives_the_distance():
    """From phi = |x|^2 - R^2 (right sign, wrong slope): within 0.35 voxels of |x| - R (first-order scheme)."""
    dx, radius, n = 0.1, 1.0, 4
    origins = 8 * (np.stack(np.meshgrid(*[np.arange(n)] * 3, indexing="ij"), -1).reshape(-1, 3) - n // 2)
    x = (origins[:, None, None, None, :] + np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1)) * dx
    distance = np.linalg.norm(x, axis=-1)
    keys, origins, values = surface_filter.sort_leaves(origins, (distance**2 - radius**2).astype(np.float32))
    neighbours = surface_filter.leaf_neighbours(keys, origins)
    found = surface_filter.redistance(values, neighbours, dx, 3 * dx)
    assert np.abs(found - np.clip(distance - radius, -3 * dx, 3 * dx)).max() < 0.35 * dx


def test_smoothing_keeps_the_volume_and_flattens_noise():
    """Poisson particles: 10 pairs of steps change the volume by < 0.5 % and lessen the spread of the radius."""
    particles = emit_sphere(SETTINGS, CHEESE, radius=RADIUS, centre=(0.0, 0.0, 0.0), seeding=Seeding.POISSON)
    knobs = {"keep_volume": False, "voxel_size": SPACING}
    rough, smooth = (surface_particles(particles, smoothing=steps, **knobs).mesh for steps in (0, 10))
    assert volume_and_area(smooth)[0] == pytest.approx(volume_and_area(rough)[0], rel=0.005)
    spread = [np.linalg.norm(mesh.points, axis=1).std() for mesh in (rough, smooth)]
    assert spread[1] < 0.9 * spread[0]


def test_smoothing_goes_by_the_spacing_and_not_by_the_voxel():
    """Twelve pairs at the default voxel, 0.6 of a spacing, leave less than seven tenths of the slopes of random seeds (steps of a
    voxel left nine tenths) and move nothing else: as many particles are outside, to a hundredth, and the volume is held."""
    particles = emit_sphere(SETTINGS, CHEESE, radius=RADIUS, centre=(0.0, 0.0, 0.0), seeding=Seeding.POISSON)
    rough, even = (surface_particles(particles, smoothing=steps).mesh for steps in (0, 12))
    slopes, outside = [], []
    for mesh in (rough, even):
        radius = np.linalg.norm(mesh.points, axis=1)
        across = np.linalg.norm(np.cross(mesh.normals, mesh.points / radius[:, None]), axis=1)
        slopes.append(np.sqrt((across**2).mean()))
        outside.append((np.linalg.norm(particles["position"], axis=1) > radius.min()).mean())
    assert slopes[1] < 0.7 * slopes[0]
    assert outside[1] <= outside[0] + 0.01
    assert volume_and_area(even)[0] == pytest.approx(particles["volume"].sum(), rel=1e-4)


def test_voxels_may_be_as_fine_as_one_likes():
    """At a tenth of a spacing, which is longer than a leaf then, the surface of one particle is still one bead of its volume."""
    one = emit_box(SETTINGS, CHEESE, size=(SPACING,) * 3, centre=(0.0, 0.0, 0.0))
    pair = Particles({**one.attributes, "position": one["position"] + [0.013, 0.007, 0.002]}, one.materials, SPACING)
    for particles in (pair, emit_sphere(SETTINGS, CHEESE, radius=3 * SPACING, centre=(0.01, 0.0, 0.0))):
        mesh = surface_particles(particles, voxel_size=0.1 * SPACING, smoothing=12).mesh
        assert volume_and_area(mesh)[0] == pytest.approx(particles["volume"].sum(), rel=1e-3)


def test_gap_between_two_bodies_stays_open():
    """Slabs three spacings apart: the middle of the gap is outside, which blended spheres alone call inside."""
    slabs = [emit_box(SETTINGS, CHEESE, size=(0.4, 0.4, 0.1), centre=(0.0, 0.0, z)) for z in (-0.0875, 0.0875)]
    pair = Particles({name: np.concatenate([s[name] for s in slabs]) for name in slabs[0].attributes}, (CHEESE,), SPACING)
    mesh = surface_particles(pair, smoothing=0).mesh
    assert volume_and_area(mesh)[0] == pytest.approx(2 * 0.4 * 0.4 * 0.1, rel=0.12)
    middle = (np.abs(mesh.points[:, :2]) < 0.15).all(axis=1)
    assert np.abs(mesh.points[middle, 2]).min() > 0.02


def test_velocities_and_attributes_arrive_on_the_mesh(ball):
    """Constants are carried exactly; a linear field to within the kernel's reach times its slope."""
    columns = {**ball.attributes, "temperature": 300.0 + ball["position"][:, 0]}
    mesh = surface_particles(Particles(columns, ball.materials, SPACING), attributes=("temperature",)).mesh
    assert np.allclose(mesh.velocities, [1.0, -2.0, 3.0], atol=1e-5)
    assert mesh.attributes["temperature"].shape == (len(mesh.points),)
    error = mesh.attributes["temperature"] - (300.0 + mesh.points[:, 0])
    assert np.abs(error).max() < 1.5 * SPACING
    with pytest.raises(MpmNodesError, match=r"attributes: the particles have no 'colour'; they have .*velocity"):
        surface_particles(ball, attributes=("colour",))


def test_same_result_on_one_thread_and_one_kilometre_away(ball):
    """Bytes do not depend on the number of threads; a shift by whole leaves 1 km away changes rounding only."""
    both = surface_particles(ball)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    alone = surface_particles(ball)
    numba.set_num_threads(threads)
    assert both.surface.values.tobytes() == alone.surface.values.tobytes()
    assert both.mesh.points.tobytes() == alone.mesh.points.tobytes()
    shift = 5000 * 8 * both.surface.voxel_size
    far = surface_particles(moved(ball, (shift, 0.0, 0.0))).surface
    assert np.array_equal(far.origins, both.surface.origins + np.array([40000, 0, 0]))
    assert np.abs(far.values - both.surface.values).max() < 1e-3 * SPACING


def test_density_sums_to_the_volume_and_is_one_inside(ball):
    """Integral of the fog = sum of V0 to 1e-5 (float32 sums); 1 to 1e-5 in the middle of a lattice."""
    fog = density_volume(ball)
    assert float(fog.values.sum(dtype=np.float64)) * SPACING**3 == pytest.approx(ball["volume"].sum(), rel=1e-5)
    assert fog.kind == "fog" and fog.name == "density"
    middle = fog.values[(fog.origins == 0).all(axis=1)][0][:4, :4, :4]
    assert np.abs(middle - ball["volume"][0] / SPACING**3).max() < 1e-5


def test_velocity_reaches_past_the_density(ball):
    """Wherever there is density, and `margin` voxels around it, the velocity is that of the particles."""
    fog, vel = density_volume(ball), velocity_volume(ball, name="v", margin=3)
    assert (vel.kind, vel.name, vel.values.shape[1:]) == ("vector", "v", (8, 8, 8, 3))
    known = {tuple(origin): leaf for origin, leaf in zip(vel.origins.tolist(), vel.values, strict=True)}
    for origin, leaf in zip(fog.origins.tolist(), fog.values, strict=True):
        assert np.allclose(known[tuple(origin)][leaf > 0], [1.0, -2.0, 3.0], atol=1e-4)

    def width(grid: LevelSet) -> int:
        """Filled voxels along the x axis."""
        row = (grid.origins[:, 1:] == 0).all(axis=1)
        return int((np.abs(grid.values[row, :, 0, 0]).reshape(-1, 1 if grid.kind == "fog" else 3).sum(axis=1) > 0).sum())

    assert width(vel) == width(fog) + 6


def test_voxels_are_coarsened_to_the_largest_number_allowed(ball):
    """A cap below the need raises the voxel size until the leaves fit, and says so."""
    with pytest.warns(UserWarning, match="surface_particles: voxel size raised from 0.015 to"):
        surface = surface_particles(ball, largest=2e4).surface
    assert surface.voxel_size > SPACING and 512 * len(surface.origins) <= 2e4


def test_no_particles_give_an_empty_surface():
    """A frame from which all matter has left is not an error."""
    none = Particles({"position": np.zeros((0, 3)), "velocity": np.zeros((0, 3))}, (), SPACING)
    surface, mesh = surface_particles(none)
    assert len(surface.origins) == 0 and len(mesh.points) == 0
    assert len(density_volume(none).origins) == 0 and len(velocity_volume(none).origins) == 0


def test_shots_that_begin_without_matter_are_written_with_all_their_columns(tmp_path):
    """Before a stream begins, points, coloured mesh and PLY file are empty frames like any other."""
    graph = Graph(cell_size=0.1, start=1, end=2)
    jelly = graph.add("material_neo_hookean", "jelly", youngs_modulus=1e4)
    template = graph.add("emit_box", "template", material=jelly, size=(0.2, 0.2, 0.2))
    stream = graph.add("emit_stream", "stream", template=template, start_frame=3.0)
    fall = graph.add("solve", "fall", emitters=[stream])
    colours = graph.add("colour_particles", "colours", particles=fall["particles"])
    skin = graph.add("surface_particles", "surface", particles=colours, attributes=["displayColor"])
    graph.add("write_cache", "cache", particles=colours, mesh=skin["mesh"], attributes=["velocity", "deformation", "displayColor"])
    graph.add("export_points", "points", particles=colours, format="ply", attributes=["velocity", "deformation", "displayColor"])
    execute(graph, out=tmp_path)
    (ply, _) = sorted(tmp_path.rglob("*.ply"))
    assert b"element vertex 0\n" in ply.read_bytes() and len(list(tmp_path.rglob("cache.000?.usdc"))) == 2


def test_a_stream_alone_has_the_surface_of_its_own_scale():
    """Without sources the spacing is that of the stream: a surface at a millimetre is as fine as one at a decimetre."""
    counts = []
    for scale in (1.0, 0.01):
        graph = Graph(cell_size=0.1 * scale, start=1, end=2)
        jelly = graph.add("material_neo_hookean", "jelly", youngs_modulus=1e4)
        template = graph.add("emit_box", "template", material=jelly, size=(0.4 * scale,) * 3)
        stream = graph.add("emit_stream", "stream", template=template, velocity=(0.0, -4.8 * scale, 0.0))
        fall = graph.add("solve", "fall", emitters=[stream], gravity=(0.0, 0.0, 0.0))
        graph.add("surface_particles", "surface", particles=fall["particles"])
        result = execute(graph)
        counts.append(len(result.outputs["surface"]["mesh"].points))
    assert counts[1] == pytest.approx(counts[0], rel=0.1) and counts[0] > 200
