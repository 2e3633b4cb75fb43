"""Emitters: counts, volumes, masses and motion have exact values."""

import math
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes.data import Emitter, GraphSettings, InputError, Material, MpmNodesError, Particles
from mpm_nodes.graph.declare.decorators import PreflightContext
from mpm_nodes.nodes import emit, streams
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.nodes.seeding import Seeding
from mpm_nodes.solver.emission import Stream

SETTINGS = GraphSettings(cell_size=0.1)
CHEESE = Material("snow", {}, 400.0, "cheese")


@pytest.mark.parametrize("seeds", list(Seeding))
@pytest.mark.parametrize("shape", ["box", "sphere"])
def test_total_mass_is_density_times_volume(seeds, shape):
    """Sum m = rho |region| to 1e-12, and every particle has the same share."""
    if shape == "box":
        made = emit.emit_box(SETTINGS, CHEESE, size=(0.7, 0.33, 0.51), seeding=seeds)
        volume = 0.7 * 0.33 * 0.51
    else:
        made = emit.emit_sphere(SETTINGS, CHEESE, radius=0.37, seeding=seeds)
        volume = 4.0 / 3.0 * math.pi * 0.37**3
    assert math.fsum(made["mass"]) == pytest.approx(400.0 * volume, rel=1e-12)
    assert math.fsum(made["volume"]) == pytest.approx(volume, rel=1e-12)
    assert made["mass"].min() == made["mass"].max()


def test_lattice_has_eight_particles_a_cell_at_their_places():
    """A box of 4 x 2 x 3 cells on the grid: 8 * 24 points at ((i + 1/2) / 2) h."""
    made = emit.emit_box(SETTINGS, CHEESE, size=(0.4, 0.2, 0.3), centre=(0.2, 0.1, 0.15))
    assert len(made) == 8 * 24
    steps = made["position"] / 0.05 - 0.5
    assert np.abs(steps - np.rint(steps)).max() < 1e-9
    assert made.spacing == 0.05
    assert made["position"].dtype == np.float64


def test_poisson_particles_keep_042_cells_wherever_they_are_put():
    """Min distance r = 0.42 h holds after turning and moving 1 km away."""
    made = emit.emit_box(
        SETTINGS, CHEESE, size=(0.5, 0.5, 0.5), centre=(1000.0, -3.0, 7.0), rotation=(20.0, 30.0, 40.0),
        seeding=Seeding.POISSON)  # fmt: skip
    x = made["position"]
    square = ((x[:, None] - x[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    assert math.sqrt(square.min()) >= 0.042
    assert 5.0 < len(made) / 125.0 < 11.0  # about eight a cell


def test_jitter_moves_points_by_at_most_its_share_of_the_spacing():
    """Lattice points shift by less than jitter / 2 spacings along each axis, and stay in the box."""
    plain, moved = (emit.emit_box(SETTINGS, CHEESE, jitter=amount) for amount in (0.0, 0.5))
    shift = np.abs(moved["position"] - plain["position"])
    assert 0.0 < shift.max() <= 0.25 * 0.05
    assert np.abs(moved["position"] - [0.0, 1.0, 0.0]).max() <= 0.5


def test_velocity_and_spin():
    """v = v0 + w x (x - centre) exactly, in the turned box."""
    made = emit.emit_box(
        SETTINGS, CHEESE, size=(0.4, 0.2, 0.2), centre=(1.0, 2.0, 3.0), rotation=(0.0, 0.0, 90.0),
        velocity=(1.0, 0.0, 0.0), angular_velocity=(0.0, 0.0, 2.0))  # fmt: skip
    arm = made["position"] - [1.0, 2.0, 3.0]
    assert np.abs(arm[:, 1]).max() == pytest.approx(0.175)  # the long edge now points along y
    expected = np.stack([1.0 - 2.0 * arm[:, 1], 2.0 * arm[:, 0], 0.0 * arm[:, 0]], axis=1)
    assert np.allclose(made["velocity"], expected, atol=1e-14)


def test_rotation_turns_about_x_then_y_then_z():
    """90 deg about x then z carries y to z, which the turn about z leaves alone."""
    assert np.allclose(rotation_matrix((90.0, 0.0, 90.0)) @ [0, 1, 0], [0, 0, 1])
    assert np.allclose(rotation_matrix((90.0, 0.0, 90.0)) @ [1, 0, 0], [0, 1, 0])


def test_stiffness_variation_is_a_column_only_when_asked_for():
    """0 writes nothing; 0.3 spreads over 0.7..1.3 and repeats with the seed."""
    assert "stiffness_scale" not in emit.emit_sphere(SETTINGS, CHEESE)
    a, b = (emit.emit_sphere(SETTINGS, CHEESE, stiffness_variation=0.3, seed=5) for _ in range(2))
    assert np.array_equal(a["stiffness_scale"], b["stiffness_scale"])
    assert 0.7 <= a["stiffness_scale"].min() < 0.72 and 1.28 < a["stiffness_scale"].max() <= 1.3


def test_too_many_particles_are_refused_before_they_are_made():
    """The message holds the count, the need, what is free and the cell size that would fit."""
    with pytest.raises(MpmNodesError, match=r"about 5\.12e\+13 particles need .* GiB, but .* set settings.cell_size to"):
        emit.emit_box(GraphSettings(cell_size=1e-3), CHEESE, size=(20.0, 20.0, 16.0))
    context = PreflightContext({"size": (20.0, 20.0, 16.0), "seeding": Seeding.LATTICE}, SETTINGS)
    told = emit.emit_box.declaration.preflight(context)
    assert told["particles"] == pytest.approx(20 * 20 * 16 * 8000)
    assert told["memory"] > told["particles"] * 72  # the columns alone


def test_a_region_smaller_than_the_spacing_says_what_to_do():
    """Zero particles are an error that names region, spacing and the knobs to turn."""
    with pytest.raises(
        MpmNodesError, match=r"no particle fits into a region of 0\.02 x 0\.02 x 0\.02 m .*settings.cell_size smaller"
    ):
        emit.emit_sphere(SETTINGS, CHEESE, radius=0.01, centre=(0.0, 0.0, 0.0))


def _askew(shape: str, seeds: Seeding) -> tuple[Particles, tuple[float, float, float], float]:
    """Return a template with gaps between its copies, the stream's velocity, and the area of the outline seen along it [m^2]."""
    settings, slope = GraphSettings(cell_size=0.02), (0.35, -0.25, 0.0)
    if shape == "box":
        speed = math.hypot(*slope)
        area = 0.4 * (0.1 * 0.35 + 0.08 * 0.25) / speed
        return emit.emit_box(settings, CHEESE, size=(0.08, 0.1, 0.4), seeding=seeds), slope, area
    if shape == "slice":
        made = emit.emit_box(settings, CHEESE, size=(0.01, 0.2, 0.2), rotation=(0.0, 0.0, 45.0), seeding=seeds)
        return made, (1.0, 0.0, 0.0), 0.2 * (0.2 + 0.01) * math.sqrt(0.5)
    return emit.emit_sphere(settings, CHEESE, radius=0.1, seeding=seeds), (0.3, -1.0, 0.2), math.pi * 0.01


@pytest.mark.parametrize("seeds", list(Seeding))
@pytest.mark.parametrize("shape", ["box", "slice", "ball"])
def test_a_stream_is_even_whatever_the_shape_of_its_template(shape, seeds):
    """Of a metre of stream every layer, two spacings thick, holds as much, and so much as the outline's area says (a row at its
    rim is within 10 %), and no place inside, three spacings wide, is empty. Copies of the template leave such places empty."""
    template, velocity, area = _askew(shape, seeds)
    with pytest.warns(UserWarning, match="copies of it would leave gaps of up to"):
        emitter = streams.emit_stream(GraphSettings(cell_size=0.02), template, velocity=velocity)
    even, pulsing = (_along_and_across(each, velocity) for each in (emitter, Emitter(template, velocity)))
    layers = np.histogram(even[0], bins=np.arange(0.0, 1.0, 0.02))[0]
    assert layers.min() == layers.max()
    assert layers[0] * 0.01**3 == pytest.approx(area * 0.02, rel=0.1)
    assert not _empty_inside(*even)
    assert _empty_inside(*pulsing)


def _along_and_across(emitter: Emitter, velocity: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return how far behind the foremost of a metre of stream its particles are, shape (n,), and where across, shape (n, 2) [m]."""
    axis = np.asarray(velocity) / math.hypot(*velocity)
    come = Stream(emitter, np.zeros(1, np.int32)).between(-1.0, 1.0 / math.hypot(*velocity))["position"]
    across = np.linalg.svd(axis[None])[2][1:]
    return (come @ axis).max() + 0.005 - come @ axis, come @ across.T


def _empty_inside(along: np.ndarray, across: np.ndarray) -> bool:
    """Return whether a cube of three spacings is empty where four tenths as much passes as where most does."""
    low = across.min(axis=0)
    edges = [np.arange(0.0, 0.9, 0.03), *(np.arange(low[k], across[:, k].max() + 0.03, 0.03) for k in (0, 1))]
    counts = np.histogramdd(np.column_stack([along, across]), bins=edges)[0]
    passed = counts.sum(axis=0)
    return bool((counts[:, passed > 0.4 * passed.max()] == 0).any())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seeds", list(Seeding))
def test_a_template_with_straight_ends_streams_as_it_is(seeds):
    """Along its edges, also turned, a box has no gaps: its own particles stream, and nothing is said."""
    settings = GraphSettings(cell_size=0.02)
    jitter = 0.3 if seeds is Seeding.LATTICE else 0.0
    for velocity, turn in (((1.0, 0.0, 0.0), 0.0), ((0.35, -0.25, 0.0), math.degrees(math.atan2(-0.25, 0.35)))):
        made = emit.emit_box(settings, CHEESE, size=(0.08, 0.1, 0.4), rotation=(0.0, 0.0, turn), jitter=jitter, seeding=seeds)
        stream = streams.emit_stream(settings, made, velocity=velocity)
        np.testing.assert_array_equal(stream.template["position"], made["position"])


def test_an_outline_keeps_the_core_inside_its_shell():
    """A ball of two materials streams as a rod with the one around the other, in the places that they have in the template."""
    made = emit.emit_sphere(GraphSettings(cell_size=0.02), CHEESE, radius=0.1)
    inner = np.linalg.norm(made["position"][:, [0, 2]], axis=1) < 0.05
    both = Particles({**made.attributes, "material": inner.astype(np.int32)}, (CHEESE, CHEESE), made.spacing)
    with pytest.warns(UserWarning, match="is filled with a new lattice"):
        stream = streams.emit_stream(GraphSettings(cell_size=0.02), both, velocity=(0.0, -1.0, 0.0)).template
    from_axis = np.linalg.norm(stream["position"][:, [0, 2]], axis=1)
    np.testing.assert_array_equal(stream["material"] == 1, from_axis < 0.05)


def test_far_particles_of_a_template_take_no_memory():
    """Two balls of 0.1 m that are 20 km apart have outlines of as many columns as two that are not."""
    settings, counts = GraphSettings(cell_size=0.02), []
    for way in (0.5, 2e4):
        balls = [emit.emit_sphere(settings, CHEESE, radius=0.1, centre=(x, 0.0, 0.7 * x)) for x in (0.0, way)]
        both = Particles({"position": np.concatenate([b["position"] for b in balls])}, (CHEESE,), balls[0].spacing)
        with pytest.warns(UserWarning, match="is filled with a new lattice"):
            counts.append(len(streams.emit_stream(settings, both, velocity=(0.0, -1.0, 0.0)).template))
    assert counts[1] == pytest.approx(counts[0], rel=0.05)


def test_an_outline_moves_with_its_template():
    """A ball that moves between frames gives the same points, moved as far: what streams takes the nozzle's motion along."""
    settings, way = GraphSettings(cell_size=0.02), np.array([0.3, 0.1, -0.05])
    with pytest.warns(UserWarning, match="is filled with a new lattice"):
        balls = [emit.emit_sphere(settings, CHEESE, radius=0.1, centre=tuple(centre)) for centre in (np.zeros(3), way)]
        before, after = (streams.emit_stream(settings, ball, velocity=(0.0, -1.0, 0.0)) for ball in balls)
    moved = after.template["position"] - before.template["position"]
    np.testing.assert_allclose(moved, np.broadcast_to(way, moved.shape), atol=1e-12)


def test_stream_carries_its_velocity_and_times():
    """Frames become seconds since the start frame; the template moves at the stream's velocity."""
    template = emit.emit_sphere(SETTINGS, CHEESE, radius=0.2, velocity=(9.0, 0.0, 0.0))
    settings = GraphSettings(cell_size=0.1, fps=24.0, start=5)
    stream = streams.emit_stream(settings, template, velocity=(0.0, -2.0, 0.0), start_frame=11, duration=12)
    assert (stream.start, stream.end) == (6 / 24, 18 / 24)
    assert (stream.template["velocity"] == [0.0, -2.0, 0.0]).all()
    assert streams.emit_stream(settings, template, start_frame=1).start == 0.0
    with pytest.raises(MpmNodesError, match="velocity: is zero"):
        streams.emit_stream(settings, template, velocity=(0.0, 0.0, 0.0))


def test_merge_keeps_materials_apart_and_numbers_ids_anew():
    """Columns join; equal materials are one; ids are 0..n-1."""
    water = Material("liquid", {}, 1000.0, "water")
    a, b, c = (emit.emit_sphere(SETTINGS, m, radius=0.2) for m in (CHEESE, water, CHEESE))
    joined = emit.merge_particles((a, b, c))
    assert joined.materials == (CHEESE, water)
    assert np.array_equal(joined["material"], np.repeat([0, 1, 0], [len(a), len(b), len(c)]))
    assert np.array_equal(joined["id"], np.arange(len(joined)))
    with pytest.raises(MpmNodesError, match="nothing is wired in"):
        emit.merge_particles(())


def test_level_set_from_a_file_is_filled_and_placed(tmp_path: Path):
    """A ball of radius 0.4 written as .vdb, doubled, turned and moved: mass within 1 %, middle exact."""
    pytest.importorskip("usd_io.volumes")
    from mpm_nodes.nodes.surface import surface_particles
    from usd_io.volumes import write_volumes

    ball = emit.emit_sphere(SETTINGS, CHEESE, radius=0.4, centre=(0.0, 0.4, 0.0))
    write_volumes(tmp_path / "ball.vdb", [surface_particles(ball, smoothing=0).surface])
    made = emit.emit_level_set(
        SETTINGS, CHEESE, path=tmp_path / "ball.vdb", scale=2.0, rotation=(0.0, 0.0, 90.0), translation=(0.0, 1.0, 0.0)
    )
    assert made["mass"].sum() == pytest.approx(400.0 * 4 / 3 * math.pi * 0.8**3, rel=0.01)
    assert np.allclose(made["position"].mean(axis=0), [-0.8, 1.0, 0.0], atol=1e-3)
    with pytest.raises(InputError, match="no grid named 'smoke'"):
        emit.emit_level_set(SETTINGS, CHEESE, path=tmp_path / "ball.vdb", grid="smoke")
    with pytest.raises(InputError, match=r"nothere\.vdb: cannot be read"):
        emit.emit_level_set(SETTINGS, CHEESE, path=tmp_path / "nothere.vdb")


def write_cube(path: Path, edge: float, faces: int = 6) -> None:
    """Write a cube from the origin; fewer faces leave holes."""
    from pxr import Usd, UsdGeom, Vt

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    corners = edge * np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
    loops = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]][:faces]
    mesh = UsdGeom.Mesh.Define(stage, "/cube")
    mesh.GetPointsAttr().Set(Vt.Vec3fArray.FromNumpy(corners))
    mesh.GetFaceVertexCountsAttr().Set(Vt.IntArray([4] * faces))
    mesh.GetFaceVertexIndicesAttr().Set(Vt.IntArray([corner for loop in loops for corner in loop]))
    stage.Save()


def test_mesh_is_filled_to_its_faces(tmp_path: Path):
    """A cube of 0.7 m: all particles inside, mass within 0.5 %; an open one is closed with a warning that counts."""
    write_cube(tmp_path / "cube.usda", 0.7)
    made = emit.emit_mesh(SETTINGS, CHEESE, path=tmp_path / "cube.usda", seeding=Seeding.POISSON)
    assert made["position"].min() >= 0.0 and made["position"].max() <= 0.7 + 1e-6
    assert made["mass"].sum() == pytest.approx(400.0 * 0.7**3, rel=0.005)
    write_cube(tmp_path / "open.usda", 0.7, faces=5)
    with pytest.warns(UserWarning, match="4 open edges around 1 holes"):
        whole = emit.emit_mesh(SETTINGS, CHEESE, path=tmp_path / "open.usda")
    assert whole["mass"].sum() == pytest.approx(400.0 * 0.7**3, rel=0.005)


def test_outputs_are_particles_with_the_promised_columns():
    """Position, velocity, mass, volume, id and material, one row each."""
    made = emit.emit_sphere(SETTINGS, CHEESE)
    assert isinstance(made, Particles)
    assert set(made.attributes) == {"position", "velocity", "mass", "volume", "id", "material"}
    assert made["material"].dtype == np.int32 and made["id"].dtype == np.int64
