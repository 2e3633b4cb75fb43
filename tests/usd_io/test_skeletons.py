"""Meshes that skeletons and blend shapes deform are read as renderers show them, by every node that reads meshes."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import mpm_nodes.nodes
from mpm_nodes.data import FrameContext, GraphSettings, InputError, Material
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore
from mpm_nodes.nodes.collide import collide_usd
from mpm_nodes.nodes.emit import emit_mesh
from mpm_nodes.nodes.fields_of_files import primvar_values
from usd_io.collider_meshes import StageMeshes

Gf, Sdf, Usd, UsdGeom, UsdSkel = (pytest.importorskip(f"pxr.{name}") for name in ("Gf", "Sdf", "Usd", "UsdGeom", "UsdSkel"))
SETTINGS = GraphSettings(cell_size=0.05, start=1, end=3)
BOX = 0.1 * np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
RISE = 0.03
KINDS = ("joints", "one_joint", "blend", "both", "instance", "instancer")


def written(path, kind):
    """Write a box of 0.2 m at x = 1 m that rises by RISE a frame, twice that for "both", while its authored points stay at y = 0.

    The skeleton lists its joints in another order than the mesh, and the mesh has a transform of its own that skinning leaves out.
    """
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    stage.SetTimeCodesPerSecond(24)
    top = "/class" if kind.startswith("inst") else "/shot"
    stage.DefinePrim(top, "Xform")
    root = UsdSkel.Root.Define(stage, f"{top}/root")
    UsdGeom.Xformable(root).AddTranslateOp().Set((1.0, 0.0, 0.0))
    skeleton = UsdSkel.Skeleton.Define(stage, f"{top}/root/skeleton")
    skeleton.CreateJointsAttr(["still", "still/rises"])
    skeleton.CreateBindTransformsAttr([Gf.Matrix4d(1.0)] * 2)
    skeleton.CreateRestTransformsAttr([Gf.Matrix4d(1.0)] * 2)
    animation = UsdSkel.Animation.Define(stage, f"{top}/root/animation")
    UsdSkel.BindingAPI.Apply(skeleton.GetPrim()).CreateAnimationSourceRel().SetTargets([animation.GetPath()])
    mesh = UsdGeom.Mesh.Define(stage, f"{top}/root/box")
    mesh.CreatePointsAttr(BOX.tolist())
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    mesh.CreateFaceVertexIndicesAttr([corner for face in FACES for corner in face])
    mesh.CreateSubdivisionSchemeAttr("none")
    UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("warmth", Sdf.ValueTypeNames.FloatArray).Set([300.0])
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    if kind != "blend":
        UsdGeom.Xformable(mesh).AddTranslateOp().Set((0.0, 7.0, 0.0))
        binding.CreateJointsAttr(["still/rises", "still"])
        constant = kind == "one_joint"
        binding.CreateJointIndicesPrimvar(constant, 1).Set([0] * (1 if constant else 8))
        binding.CreateJointWeightsPrimvar(constant, 1).Set([1.0] * (1 if constant else 8))
        animation.CreateJointsAttr(["still", "still/rises"])
        animation.CreateRotationsAttr([Gf.Quatf(1.0)] * 2)
        animation.CreateScalesAttr([Gf.Vec3h(1.0)] * 2)
        for code in (1, 3):
            animation.CreateTranslationsAttr().Set([(0.0, 0.0, 0.0), (0.0, RISE * (code - 1), 0.0)], code)
    if kind in ("blend", "both"):
        shape = UsdSkel.BlendShape.Define(stage, f"{top}/root/box/up")
        shape.CreateOffsetsAttr([(0.0, 2.0 * RISE, 0.0)] * 8)
        binding.CreateBlendShapesAttr(["up"])
        binding.CreateBlendShapeTargetsRel().SetTargets([shape.GetPath()])
        animation.CreateBlendShapesAttr(["up"])
        for code in (1, 3):
            animation.CreateBlendShapeWeightsAttr().Set([0.5 * (code - 1)], code)
    if kind == "instance":
        copy = stage.DefinePrim("/shot/copy", "Xform")
        copy.GetReferences().AddInternalReference(top)
        copy.SetInstanceable(True)
    if kind == "instancer":
        copies = UsdGeom.PointInstancer.Define(stage, "/shot/copies")
        copies.CreatePrototypesRel().SetTargets([f"{top}/root"])
        copies.CreateProtoIndicesAttr([0])
        copies.CreatePositionsAttr([(0.0, 0.0, 0.0)])
    stage.Save()
    return path


def height(kind, frame):
    return (2.0 if kind == "both" else 1.0) * RISE * (frame - 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_where_the_skeleton_and_the_shapes_put_them(tmp_path, kind):
    """At samples and between them, with the time codes of the animation; the digest changes with the pose, as a cache needs."""
    meshes = StageMeshes(written(tmp_path / "surface.usda", kind), "/shot")
    assert meshes.deforms() and not meshes.stands_still()
    assert set(meshes.authored_codes(0.0, 9.0)) == {1.0, 3.0}
    for code in (1.0, 2.0, 2.5, 3.0):
        np.testing.assert_allclose(meshes.points(code), BOX + (1.0, height(kind, code), 0.0), atol=1e-6)
    assert len({meshes.digest([code]) for code in (1.0, 2.0, 3.0)}) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_every_reader_takes_the_deformed_mesh(tmp_path, kind):
    """A collider has the surface, its level set and its speed there; particles and primvar samples lie there."""
    path, frame = written(tmp_path / "surface.usda", kind), 3
    rise = height(kind, frame)
    context = FrameContext(frame, SETTINGS, lambda kind, **facts: None)
    body = collide_usd(context, SETTINGS, Kept(MemoryStore(1 << 30)), path=path, prim="/shot")
    np.testing.assert_allclose(body.mesh.points.mean(axis=0), (1.0, rise, 0.0), atol=1e-6)
    speeds = np.concatenate([each.velocities.reshape(-1, 3) for each in body.shape.level_sets])
    moving = speeds[np.abs(speeds).max(axis=1) > 0.0]
    np.testing.assert_allclose(moving, np.broadcast_to((0.0, height(kind, 2) * 24.0, 0.0), moving.shape), atol=1e-3)
    matter = Material("liquid", {}, 1000.0, "water")
    places = emit_mesh(SETTINGS, matter, path=path, prim="/shot", frame=frame)["position"]
    np.testing.assert_allclose(places.mean(axis=0), (1.0, rise, 0.0), atol=0.02)
    samples, values = primvar_values("here", (path, "/shot", "warmth"), frame, SETTINGS, Kept(MemoryStore(1 << 30)))
    np.testing.assert_allclose(samples[:, 1].max(), rise + 0.1, atol=1e-6)
    np.testing.assert_allclose(values, 300.0)


def test_no_node_reads_points_of_meshes_past_the_shared_reader():
    """`usd_io.collider_meshes` is the one place where nodes get meshes, so that what is true of one is of all."""
    folder = Path(inspect.getfile(mpm_nodes.nodes)).parent
    readers = [
        file.name for file in folder.glob("*.py") if "UsdGeom.Mesh" in file.read_text() or "GetPointsAttr" in file.read_text()
    ]
    assert readers == []


def damaged(path, what):
    stage = Usd.Stage.Open(str(written(path, "blend" if what == "shape" else "joints")))
    mesh = stage.GetPrimAtPath("/shot/root/box")
    binding = UsdSkel.BindingAPI(mesh)
    if what == "shape":
        UsdSkel.BlendShape(stage.GetPrimAtPath("/shot/root/box/up")).CreatePointIndicesAttr([0, 1, 2, 3, 4, 5, 6, 800])
    elif what == "index":
        binding.GetJointIndicesAttr().Set([0, 1, 2, 3, 4, 5, 6, -7])
    elif what == "weights":
        binding.GetJointWeightsAttr().Set([1.0] * 5)
    else:
        UsdSkel.Skeleton(stage.GetPrimAtPath("/shot/root/skeleton")).GetBindTransformsAttr().Set([Gf.Matrix4d(1.0)])
    stage.Save()
    return path


@pytest.mark.parametrize("what", ["shape", "index", "weights", "bind"])
def test_damaged_skins_are_told_with_the_prim(tmp_path, what):
    with pytest.raises(InputError, match=r"mesh /shot/root/box: its (joints or weights|blend shapes) do not fit .*export"):
        StageMeshes(damaged(tmp_path / "surface.usda", what)).points(2.0)
