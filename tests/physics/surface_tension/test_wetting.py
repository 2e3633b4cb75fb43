"""How bodies are wetted: painted contact angles and what they pull, hysteresis, and what users are told."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from test_surface_tension import WATER, H, drop, run_until, solver

from mpm_nodes.data import (
    Collider,
    CollisionRule,
    FrameContext,
    GraphSettings,
    Kernel,
    LevelSet,
    MpmNodesError,
    SurfaceField,
    SurfaceTension,
)
from mpm_nodes.kernels.level_sets.level_set import BOX, PosedLevelSets
from mpm_nodes.physics.surface_tension.nodes.contact_angles import (
    Wetting,
    collider_contact_angle,
    collider_contact_angle_usd,
    collider_contact_angle_vdb,
)
from mpm_nodes.physics.surface_tension.numerics import wetting
from mpm_nodes.physics.surface_tension.numerics.wetting import pin_lines, pulls
from mpm_nodes.solver.surroundings import collider_at

SETTINGS = GraphSettings(cell_size=H)
MATTER = dataclasses.replace(WATER, surface_tension=SurfaceTension(2.0))


def plate(velocity: float = 0.0) -> Collider:
    """Return a plate whose upper side is y = 0 and that moves along x."""
    places = np.array([[0.1, -0.05, 0.1], [0.1 + velocity, -0.05, 0.1]])
    shape = PosedLevelSets(BOX, (1.0, 0.05, 1.0), np.array([0.0, 1.0]), np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)), places)
    return Collider("plate", CollisionRule.SLIP, 0.0, shape)


def sloped(slope: float) -> Collider:
    """Return the plate with k_SL / k = slope x."""
    axis = (np.arange(-8, 12) + 0.5) * H
    places = np.stack(np.meshgrid(axis, [-0.5 * H, 0.5 * H], axis, indexing="ij"), axis=-1).reshape(-1, 3)
    field = SurfaceField.of_samples(places, slope * places[:, 0], H, 0.0)
    return dataclasses.replace(plate(), contact_angle=90.0, wetting=field)


def test_painted_wetting_is_that_of_the_place():
    """k_SL = k r(x) where the body is touched, k from 0.8 cells on; the pull sums to - k grad r times the wetted area."""
    run = solver(drop(MATTER), colliders=[sloped(0.8)], fuse=False)
    run_until(run, "rasterize_samples")
    samples = run.stores["samples"]
    x, n, area, tension = (samples.unpack(name) for name in ("position", "normal", "area", "tension"))
    share = np.where((area > 0.0) & (n[:, 1] < 0.0), np.clip(1.0 - (x[:, 1] / H - 0.3) / 0.5, 0.0, 1.0), 0.0)
    assert (share == 1.0).sum() > 20
    mine = area > 0.0
    np.testing.assert_allclose(tension[mine], (2.0 + share * (2.0 * 0.8 * x[:, 0] - 2.0))[mine], atol=1e-12)
    force = pulls(samples, run.grid, Kernel.QUADRATIC)
    along = -2.0 * 0.8 * (area * share * (1.0 - n[:, 0] ** 2)).sum()
    assert force.reshape(-1, 4)[:, 0].sum() == pytest.approx(along, rel=1e-9)
    assert not force.reshape(-1, 4)[:, 3].any()


@pytest.mark.parametrize("preset", ["surface_tension", "implicit_surface_tension"])
def test_matter_moves_to_where_it_is_wetted(preset):
    """Without gravity, from rest: along - x, where k_SL is lower; not at all where it is even."""
    still = {"velocity": np.zeros((60, 3)), "affine": np.zeros((60, 3, 3))}
    moved = {}
    for slope in (0.8, 0.0):
        run = solver(drop(MATTER, **still), preset, colliders=[sloped(slope)])
        for _ in range(3):
            run.step(1e-3)
        end = run.snapshot()
        moved[slope] = float(end["mass"] @ end["velocity"][:, 0])
    assert moved[0.8] < 0.0 and abs(moved[0.0]) < 1e-3 * abs(moved[0.8])


def test_a_grip_holds_lines_to_their_body():
    """Nodes at the edge take the velocity of the plate when the grip is strong, none of it when there is none."""
    change = {}
    for hysteresis in (0.0, 40.0):
        body = collider_contact_angle(plate(0.5), angle=90.0, hysteresis=hysteresis)
        run = solver(drop(MATTER), {"preset": "surface_tension"}, colliders=[body], fuse=False)
        run_until(run, "collide_grid")
        samples, velocity = run.stores["samples"], run.grid.array("velocity")
        before = velocity.copy()
        assert samples.unpack("pinning").max() == pytest.approx(2.0 * math.sin(math.radians(0.5 * hysteresis)), abs=1e-12)
        pin_lines(samples, run.grid, Kernel.QUADRATIC, 1e-3)
        change[hysteresis] = float(np.abs(velocity - before).max())
        if hysteresis:
            wet = samples.unpack("pinning") > 0.0
            np.testing.assert_allclose(samples.unpack("footing")[wet], [[0.5, 0.0, 0.0]] * int(wet.sum()), atol=1e-9)
            loss = (run.grid.array("momentum")[3::4] * ((velocity - before)[0::4])).sum()
            edge = 2.0 * 4.0 * 2.2 * H  # at most, and twice for what is ragged
            assert abs(loss) <= 1e-3 * 2.0 * math.sin(math.radians(20.0)) * edge
    assert change[0.0] == 0.0 < change[40.0]


def test_a_strong_grip_leaves_no_speed_across_the_line(monkeypatch):
    """Each node for itself: in a step in which the grip holds everything nodes keep what lies along the line alone."""
    monkeypatch.setattr(wetting, "_pooled", lambda place, across, columns: columns)
    body = collider_contact_angle(plate(0.5), angle=90.0, hysteresis=40.0)
    run = solver(drop(MATTER), {"preset": "surface_tension"}, colliders=[body], fuse=False)
    run_until(run, "collide_grid")
    velocity = run.grid.array("velocity")
    before = velocity.copy().reshape(-1, 4)[:, :3]
    pin_lines(run.stores["samples"], run.grid, Kernel.QUADRATIC, 1e9)
    after = velocity.reshape(-1, 4)[:, :3]
    change = after - before
    held = np.linalg.norm(change, axis=1) > 1e-9
    left = ((after - [0.5, 0.0, 0.0]) * change).sum(axis=1)[held] / (change**2).sum(axis=1)[held]
    assert held.sum() > 20 and np.abs(left).max() < 1e-6


def grid_of(folder, value: float):
    """Write a grid of 8^3 voxels of 5 cm, which hold one number."""
    from usd_io.volumes import write_volumes

    values = np.full((1, 8, 8, 8), value, np.float32)
    path = folder / "paint.vdb"
    write_volumes(path, [LevelSet(np.zeros((1, 3), np.int32), values, 0.05, background=-9.0, kind="fog", name="contact_angle")])
    return path


@pytest.mark.parametrize(
    ("values", "number", "ratio"), [("angle", 60.0, -0.5), ("ratio", 0.25, 0.25), ("mask", 0.5, -0.25), ("mask", 1.0000001, -0.5)]
)
def test_a_grid_paints_angles_ratios_and_masks(tmp_path, values, number, ratio):
    """Inside the grid what it says; outside, the angle given: 90 degrees. A mask of a half is half way to 60 degrees."""
    body = collider_contact_angle_vdb(plate(), SETTINGS, path=grid_of(tmp_path, number), values=Wetting(values), painted=60.0)
    found = body.wetting.at(np.array([[0.2, 0.2, 0.2], [9.0, 0.2, 0.2]]))
    np.testing.assert_allclose(found, [ratio, 0.0], atol=1e-6)
    assert body.contact_angle == 90.0


@pytest.mark.parametrize(
    ("values", "number", "words"),
    [
        ("angle", 190.0, "value of 190; contact angles lie from 0 to 180 degrees"),
        ("ratio", -1.5, r"value of -1\.5; with \|k_SL\| > k_LG there is no contact angle"),
        ("mask", 2.0, "value of 2; masks lie from 0 to 1"),
    ],
)
def test_numbers_out_of_range_are_told(tmp_path, values, number, words):
    """With the grid, the number, and what is allowed."""
    with pytest.raises(MpmNodesError, match=rf"collider_contact_angle_vdb\.grid: 'contact_angle' has a {words}"):
        collider_contact_angle_vdb(plate(), SETTINGS, path=grid_of(tmp_path, number), values=Wetting(values))


def test_hysteresis_beyond_the_angles_is_told():
    """Both angles lie from 0 to 180 degrees, of nodes and of walls."""
    with pytest.raises(MpmNodesError, match=r"hysteresis: 60 degrees around 20 recede at -10 and advance at 50"):
        collider_contact_angle(plate(), angle=20.0, hysteresis=60.0)
    substeps = {"preset": "surface_tension", "set": {"contact_angle": 170.0, "hysteresis": 40.0}}
    with pytest.raises(MpmNodesError, match=r"set_tension: a contact angle of 170 degrees with a hysteresis of 40 recedes at 150"):
        solver(drop(MATTER), substeps, colliders=[plate()]).step(1e-3)


def test_a_primvar_paints_angles(tmp_path):
    """Straight between the corners of a face, as cosines are; and a mesh without it is told."""
    from pxr import Sdf, Usd, UsdGeom

    stage = Usd.Stage.CreateNew(str(tmp_path / "floor.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/floor")
    mesh.GetPointsAttr().Set([(-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)])
    mesh.GetFaceVertexCountsAttr().Set([4])
    mesh.GetFaceVertexIndicesAttr().Set([3, 2, 1, 0])
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("mask", Sdf.ValueTypeNames.FloatArray, UsdGeom.Tokens.vertex)
    primvar.Set([0.0, 1.0, 1.0, 0.0])
    stage.Save()
    ctx = FrameContext(1, SETTINGS)
    options = {"path": tmp_path / "floor.usda", "primvar": "mask", "values": Wetting.MASK, "outside": 90.0, "painted": 0.0}
    body = collider_contact_angle_usd(plate(), ctx, SETTINGS, **options)
    x = np.linspace(-0.8, 0.8, 9)
    found = body.wetting.at(np.stack([x, np.zeros(9), 0.3 * x], axis=1))
    np.testing.assert_allclose(found, -0.5 * (x + 1.0), atol=0.03)
    primvar.Set([0.0, 0.0, 0.0, 0.0], 1)
    primvar.Set([1.0, 1.0, 1.0, 1.0], 2)
    stage.Save()
    later = collider_contact_angle_usd(plate(), FrameContext(2, SETTINGS), SETTINGS, **options)
    for moment, ratio in ((1.0, 0.0), (1.25, -0.25), (2.0, -1.0)):
        np.testing.assert_allclose(collider_at(later, moment).wetting.at(np.zeros((1, 3))), ratio, atol=1e-6)
    with pytest.raises(MpmNodesError, match="has no primvar 'contact_angle'"):
        collider_contact_angle_usd(plate(), ctx, SETTINGS, path=tmp_path / "floor.usda")
