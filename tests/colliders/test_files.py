"""Colliders from .vdb files and USD stages, through the nodes."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import CollisionRule, FrameContext, GraphSettings, InputError, Mesh
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore
from mpm_nodes.kernels.collisions.posing import body_velocity, sample_body
from mpm_nodes.kernels.level_sets.level_set import Bodies
from mpm_nodes.nodes.collide import collide_box, collide_plane, collide_sphere, collide_usd, collide_vdb
from mpm_nodes.nodes.collider_motion import box_mesh, sphere_mesh
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.solver.colliders import ColliderSet
from usd_io.openvdb_module import find_openvdb

pytest.importorskip("pxr")
SETTINGS = GraphSettings(cell_size=0.1, fps=24.0, start=1, end=10)


class Shot:
    """A frame being cooked: collects warnings, animates knobs by functions of the frame."""

    def __init__(self, frame: int, **knobs) -> None:
        self.warnings: list[str] = []
        rest = {"orientation": (1.0, 0.0, 0.0, 0.0)}
        sample = (lambda knob, f: knobs[knob](f) if knob in knobs else rest.get(knob, (0.0, 0.0, 0.0))) if knobs else None
        self.context = FrameContext(frame, SETTINGS, self._report, sample=sample)

    def _report(self, kind: str, **facts) -> None:
        assert kind == "warning" and facts["where"]
        self.warnings.append(facts["message"])


class Posed:
    """One collider at an instant of its frame, to be asked in world coordinates."""

    def __init__(self, collider, time: float, dt: float = 1e-4) -> None:
        colliders = ColliderSet([collider])
        colliders.pose(time - dt, time)
        self.bodies, self.dt = Bodies(colliders._integer, colliders._real, *colliders._lattices), dt
        self.turn, self.shift = colliders._real[0, 17:26].reshape(3, 3), colliders._real[0, 26:29]

    def phi(self, *points) -> np.ndarray:
        local = (np.array(points) - self.shift) @ self.turn
        return np.array([sample_body(0, 1.0, *point, self.bodies)[0] for point in local])

    def velocity(self, point) -> np.ndarray:
        return np.array(body_velocity(0, self.dt, *(self.turn.T @ (np.array(point) - self.shift)), self.bodies))


def similar(scale: float, degrees=(0.0, 0.0, 0.0), move=(0.0, 0.0, 0.0)) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = scale * rotation_matrix(degrees)
    matrix[:3, 3] = move
    return matrix


# ---------------------------------------------------------------- OpenVDB
def test_vdb_with_rotated_transform(tmp_path):
    """A level set written by OpenVDB with a turned, scaled and moved transform stands where that puts it, once scaled."""
    vdb = find_openvdb()
    grid = vdb.FloatGrid(0.3)
    node = np.stack(np.meshgrid(*(np.arange(-16, 17),) * 3, indexing="ij"), -1)
    half = np.array([10.0, 6.0, 4.0])
    q = np.abs(node) - half
    distance = 0.1 * (np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(axis=-1), 0))
    grid.copyFromArray(np.ascontiguousarray(np.where(np.abs(distance) < 0.3, distance, 0.3), np.float32), (-16, -16, -16))
    grid.signedFloodFill()
    grid.name, grid.gridClass = "surface", "level set"
    matrix = similar(0.1, (10.0, 50.0, 20.0), (1.0, 2.0, 3.0))
    grid.transform = vdb.createLinearTransform(matrix.T.tolist())
    vdb.write(str(tmp_path / "turned.vdb"), [grid])
    collider = collide_vdb(Shot(1).context, path=tmp_path / "turned.vdb")
    assert collider.name == "turned"
    turn = rotation_matrix((10.0, 50.0, 20.0))
    places = np.array([[1.0, 0.0, 0.0], [1.15, 0.1, 0.1], [0.0, 0.65, 0.1], [0.0, 0.0, 0.0], [0.2, 0.1, 0.3]])
    expected = np.array([0.0, 0.15, 0.05, -0.4, -0.1])
    phi = Posed(collider, 0.0).phi(*(places @ turn.T + (1.0, 2.0, 3.0)))
    np.testing.assert_allclose(phi[[0, 1, 2, 4]], expected[[0, 1, 2, 4]], atol=0.01)
    assert phi[3] < -0.2  # deep inside
    np.testing.assert_allclose(collider.mesh.points.mean(axis=0), (1.0, 2.0, 3.0), atol=0.02)
    moved = collide_vdb(Shot(1).context, path=tmp_path / "turned.vdb", scale=2.0, translate=(0.0, 1.0, 0.0))
    np.testing.assert_allclose(
        Posed(moved, 0.0).phi(*(2.0 * (places @ turn.T + (1.0, 2.0, 3.0)) + (0.0, 1.0, 0.0)))[:3], 2.0 * expected[:3], atol=0.02
    )


def test_vdb_velocity_grid_is_a_belt(tmp_path):
    """A still level set with a velocity grid carries what touches it, like a conveyor belt."""
    vdb = find_openvdb()
    ball = vdb.createLevelSetSphere(radius=0.5, voxelSize=0.05)
    ball.name = "surface"
    field = vdb.Vec3SGrid((0.0, 0.0, 0.0))
    field.name = "vel"
    field.fill((-16, -16, -16), (16, 16, 16), (2.0, 0.0, -1.0))
    field.transform = vdb.createLinearTransform(0.05)
    vdb.write(str(tmp_path / "belt.vdb"), [ball, field])
    posed = Posed(collide_vdb(Shot(2).context, path=tmp_path / "belt.vdb"), 1.0 / 24.0)
    np.testing.assert_allclose(posed.velocity((0.0, 0.5, 0.0)), (2.0, 0.0, -1.0), atol=1e-5)


def test_vdb_sequence_moves_between_its_files(tmp_path):
    """Half way between two files of a moving ball there is one ball half way, with its velocity."""
    vdb = find_openvdb()
    for frame, x in ((1, 0.0), (2, 0.6), (3, 1.2)):
        grid = vdb.createLevelSetSphere(radius=0.3, center=(x, 0.0, 0.0), voxelSize=0.05)
        grid.name = "surface"
        vdb.write(str(tmp_path / f"ball.{frame:04d}.vdb"), [grid])
    for pattern in ("ball.####.vdb", "ball.0001.vdb"):
        collider = collide_vdb(Shot(2).context, path=tmp_path / pattern, sequence=True)
        posed = Posed(collider, 0.5 / 24.0)
        phi = posed.phi((0.6, 0.0, 0.0), (0.3, 0.3, 0.0), (0.0, 0.0, 0.0))
        np.testing.assert_allclose(phi, (0.0, 0.0, 0.0), atol=0.02)
        np.testing.assert_allclose(posed.velocity((0.6, 0.0, 0.0)), (0.6 * 24.0, 0.0, 0.0), rtol=0.02, atol=0.2)
    with pytest.raises(InputError, match=r"ball\.0008\.vdb: no such file"):
        collide_vdb(Shot(9).context, path=tmp_path / "ball.####.vdb", sequence=True)
    with pytest.raises(InputError, match="no frame number"):
        collide_vdb(Shot(2).context, path=tmp_path / "ball.vdb", sequence=True)


def test_vdb_with_flat_voxels_is_refused_or_resampled(tmp_path):
    """Voxels that are not cubes hold no distances: refused, or measured again when asked."""
    vdb = find_openvdb()
    grid = vdb.createLevelSetSphere(radius=0.5, voxelSize=0.05)
    grid.name = "surface"
    grid.transform = vdb.createLinearTransform(np.diag([0.05, 0.1, 0.05, 1.0]).tolist())
    path = tmp_path / "flat.vdb"
    vdb.write(str(path), [grid])
    with pytest.raises(InputError, match=r"not cubes.*resample"):
        collide_vdb(Shot(1).context, path=path)
    phi = Posed(collide_vdb(Shot(1).context, path=path, resample=True), 0.0).phi((0.0, 1.1, 0.0), (0.6, 0.0, 0.0))
    np.testing.assert_allclose(phi, (0.1, 0.1), atol=0.02)


def test_vdb_that_cannot_be_used(tmp_path):
    """Missing, damaged, fog and nameless grids are refused with the file's name and what is there."""
    vdb = find_openvdb()
    fog = vdb.FloatGrid(0.0)
    fog.fill((0, 0, 0), (9, 9, 9), 1.0)
    fog.name, fog.gridClass = "density", "fog volume"
    vdb.write(str(tmp_path / "fog.vdb"), [fog])
    cases = [
        ("absent.vdb", "surface", "no such file"),
        ("fog.vdb", "surface", "no grid 'surface'; it has density"),
        ("fog.vdb", "density", "not a level set"),
    ]
    whole = (tmp_path / "fog.vdb").read_bytes()
    (tmp_path / "cut.vdb").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.vdb").write_text("this is not a volume")
    cases += [("cut.vdb", "density", "cut.vdb"), ("text.vdb", "surface", "text.vdb")]
    for name, grid, message in cases:
        with pytest.raises(InputError, match=message):
            collide_vdb(Shot(1).context, path=tmp_path / name, grid=grid)


# ---------------------------------------------------------------- USD
def test_usd_units_and_axes(write_usd):
    """A ball in centimetres, Z up, arrives in metres, Y up."""
    mesh = sphere_mesh(50.0, rings=24)
    path = write_usd(Mesh(mesh.points + (0.0, 0.0, 200.0), mesh.counts, mesh.indices), metres=0.01, up="Z")
    shot = Shot(1)
    collider = collide_usd(shot.context, SETTINGS, path=path)
    posed = Posed(collider, 0.0)
    np.testing.assert_allclose(posed.phi((0.0, 2.6, 0.0), (0.5, 2.0, 0.0), (0.0, 2.0, 0.55)), (0.1, 0.0, 0.05), atol=0.02)
    np.testing.assert_allclose(collider.mesh.points.mean(axis=0), (0.0, 2.0, 0.0), atol=1e-5)
    assert shot.warnings == [] and len(collider.shape.level_sets) == 1


def test_usd_rigid_animation(write_usd):
    """A turning, moving prim is one level set with a motion: velocities are V + Omega x r at sub-frames too."""
    matrices = {}
    for code in range(1, 6):
        matrix = np.eye(4)
        matrix[:3, :3] = rotation_matrix((0.0, 30.0 * (code - 1), 0.0)).T
        matrix[3, :3] = (0.2 * (code - 1), 0.0, 0.0)
        matrices[code] = matrix
    path = write_usd(box_mesh((1.0, 0.4, 0.4)), matrices=matrices)
    kept = Kept(MemoryStore(1 << 30))
    collider = collide_usd(Shot(3).context, SETTINGS, kept, path=path)
    assert len(collider.shape.level_sets) == 1
    posed = Posed(collider, 2.0 / 24.0)
    turn = rotation_matrix((0.0, 60.0, 0.0))
    tip = turn @ (0.5, 0.0, 0.0)
    np.testing.assert_allclose(posed.phi(tip + (0.4, 0.0, 0.0), (0.4, 0.3, 0.0)), (0.0, 0.1), atol=0.02)
    omega = np.array([0.0, np.radians(30.0) * 24.0, 0.0])
    expected = np.array([0.2 * 24.0, 0.0, 0.0]) + np.cross(omega, tip)
    np.testing.assert_allclose(posed.velocity(tip + (0.4, 0.0, 0.0)), expected, rtol=0.03, atol=0.1)
    again = collide_usd(Shot(4).context, SETTINGS, kept, path=path)
    assert again.shape.level_sets[0] is collider.shape.level_sets[0]  # built once for the shot


def test_usd_deforming_mesh(write_usd):
    """A slab whose points are animated gets keys within the frame, and the velocity of its points."""
    mesh = box_mesh((1.0, 0.2, 1.0))
    lift = np.array([0.0, 0.3, 0.0])
    stretched = mesh.points * (1.0, 1.0, 1.2) + lift
    path = write_usd(mesh, points={1: mesh.points, 2: stretched})
    collider = collide_usd(Shot(2).context, SETTINGS, path=path)
    assert len(collider.shape.level_sets) >= 7  # 0.3 m in a frame, voxels of 0.05 m
    posed = Posed(collider, 0.5 / 24.0)
    np.testing.assert_allclose(posed.phi((0.0, 0.25, 0.0), (0.0, 0.3, 0.0), (0.0, 0.15, 0.0)), (0.0, 0.05, -0.1), atol=0.03)
    np.testing.assert_allclose(posed.velocity((0.1, 0.25, 0.0)), 24.0 * lift, atol=0.05)
    still = collide_usd(Shot(1).context, SETTINGS, path=path)
    assert len(still.shape.level_sets) == 1  # the start frame has no interval before it


def test_usd_warns_and_refuses(write_usd, tmp_path):
    """Imperfect meshes warn with counts; sheets, empty meshes, wrong prims and damaged files are refused by name."""
    ball = sphere_mesh(0.5, rings=10)
    starts = np.concatenate([[0], np.cumsum(ball.counts)])
    holed = Mesh(ball.points, ball.counts[1:], ball.indices[starts[1] :])
    shot = Shot(1)
    collide_usd(shot.context, SETTINGS, path=write_usd(holed, name="holed.usda"), friction=0.2, rule=CollisionRule.SLIP)
    assert len(shot.warnings) == 1 and "4 open edges around 1 holes" in shot.warnings[0]
    sheet = write_usd(Mesh(np.array([(0.0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 0)]), [4], [0, 1, 2, 3]), name="sheet.usda")
    with pytest.raises(InputError, match="thickness"):
        collide_usd(Shot(1).context, SETTINGS, path=sheet)
    shell = collide_usd(Shot(1).context, SETTINGS, path=sheet, thickness=0.1)
    np.testing.assert_allclose(Posed(shell, 0.0).phi((0.5, 0.0, 0.5), (0.5, 0.1, 0.5)), (-0.05, 0.05), atol=0.01)
    with pytest.raises(InputError, match=r"prim 'nose' is not in this stage; meshes there: /body/mesh"):
        collide_usd(Shot(1).context, SETTINGS, path=sheet, prim="nose")
    empty = write_usd(Mesh(np.zeros((0, 3)), [], []), name="empty.usda")
    with pytest.raises(InputError, match="no faces"):
        collide_usd(Shot(1).context, SETTINGS, path=empty)
    bad = write_usd(Mesh(ball.points, [3], [0, 1, 99999]), name="bad.usda")
    with pytest.raises(InputError, match="index lies outside"):
        collide_usd(Shot(1).context, SETTINGS, path=bad)
    (tmp_path / "broken.usda").write_text("#usda 1.0\ndef Mesh {{{")
    with pytest.raises(InputError, match=r"broken\.usda: cannot be opened"):
        collide_usd(Shot(1).context, SETTINGS, path=tmp_path / "broken.usda")
    with pytest.raises(InputError, match="no such file"):
        collide_usd(Shot(1).context, SETTINGS, path=tmp_path / "absent.usda")


def test_thin_mesh_gets_finer_voxels(write_usd):
    """A closed plate a fifth of a cell thick is held by voxels finer than half a cell, chosen by itself."""
    path = write_usd(box_mesh((0.6, 0.02, 0.6)), name="plate.usda")
    shot = Shot(1)
    collider = collide_usd(shot.context, SETTINGS, path=path)
    assert collider.shape.level_sets[0].voxel_size < 0.05
    assert Posed(collider, 0.0).phi((0.0, 0.0, 0.0))[0] < -0.005
    collide_usd(shot.context, SETTINGS, path=path, voxel_size=0.05, thickness=0.06)
    assert any("thickness" in message for message in shot.warnings)


# ---------------------------------------------------------------- knobs
def test_keyed_knobs_move_analytic_colliders():
    """A keyed centre and rotation give a body its velocity; without keys it has one pose."""
    shot = Shot(3, centre=lambda f: (0.1 * f, 0.0, 0.0), rotation=lambda f: (0.0, 0.0, 90.0 * f))
    collider = collide_sphere(shot.context, centre=(0.3, 0.0, 0.0), radius=0.5)
    posed = Posed(collider, 2.0 / 24.0)
    spin = np.array([0.0, 0.0, np.radians(90.0) * 24.0])
    np.testing.assert_allclose(posed.velocity((0.3, 0.5, 0.0)), np.array([2.4, 0.0, 0.0]) + np.cross(spin, (0, 0.5, 0)), atol=0.1)
    assert len(collide_box(Shot(3).context).shape.pose_times) == 1
    ramp = collide_plane(Shot(1).context, rotation=(0.0, 0.0, 30.0))
    normal = rotation_matrix((0.0, 0.0, 30.0)) @ (0.0, 1.0, 0.0)
    np.testing.assert_allclose(Posed(ramp, 0.0).phi(0.2 * normal, -0.1 * normal), (0.2, -0.1), atol=1e-12)


@pytest.mark.parametrize("mesh", [sphere_mesh(0.5), sphere_mesh(0.2, 0.4), box_mesh((1.0, 2.0, 3.0))])
def test_shown_meshes_are_wound_outward(mesh):
    """The meshes that show analytic colliders are closed and counter-clockwise seen from outside."""
    from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate
    from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree

    triangles, _ = triangulate(mesh.counts, mesh.indices)
    solid = solid_mesh(mesh.points, triangles)
    assert solid.findings() == ""
    assert winding_numbers(winding_tree(mesh.points, triangles), np.zeros((1, 3)))[0] == pytest.approx(1.0, abs=0.05)
