"""What of a cache can be seen: all forms of its matter, with their looks and places, and what a particle carries."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_cache import cook_walking

from mpm_nodes.data import InputError
from mpm_nodes.editor.frames import Opened
from mpm_nodes.materials.looks import find_look

pytest.importorskip("pxr")


@pytest.fixture(scope="module")
def revision(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cook of every form."""
    return cook_walking(tmp_path_factory.mktemp("layers"))


def asked(opened: Opened, what: str, **wanted: Any) -> dict:
    """Return the head of an answer."""
    data = opened.answer(what, **wanted)
    (length,) = struct.unpack_from("<I", data)
    head = json.loads(data[4 : 4 + length])
    shapes = [*head.get("clouds", ()), *head.get("meshes", ()), *head.get("fogs", ())]
    sizes = [8 * each["shown"] for each in head.get("clouds", ())]
    sizes += [8 * each["points"] + 12 * each["triangles"] for each in head.get("meshes", ())]
    sizes += [-(-int(np.prod(each["size"])) // 4) * 4 for each in head.get("fogs", ())]
    assert not shapes or len(data) == 4 + length + sum(sizes)
    return head


def frame(revision: Path, layers: list[str] | None = None, number: int | None = None, **more: Any) -> dict:
    return asked(
        Opened(), "frame", folder=str(revision), **{"frame": number, "layers": layers, "attribute": "", "most": 10**6, **more}
    )


def test_all_forms_are_offered_and_points_are_shown_first(revision):
    """Of both stages that the cook has written; a file in the folder that has no stage is passed over."""
    head = frame(revision)
    kinds = [(layer["kind"], layer["label"]) for layer in head["layers"]]
    assert ("points", "particles of cache") in kinds and ("points", "particles of drops") in kinds
    assert {kind for kind, _ in kinds} == {"points", "surface", "level_set", "fog", "bodies"}
    shown = {layer["name"]: layer["kind"] for layer in head["layers"] if layer["name"] in head["shown"]}
    assert sorted(shown.values()) == ["bodies", "points", "points"]
    assert (head["frame"], head["first"], head["last"]) == (3, 1, 3)


def test_level_set_mesh_and_fog_lie_where_the_particles_are(revision):
    """A ball of 0.2 m about (0.4, 0.3, 0) at frame 3, in every form, to a voxel of 0.025 m; the box stays at the origin."""
    every = [layer["name"] for layer in frame(revision)["layers"] if "drops" not in layer["name"]]
    head = frame(revision, every, 3)
    boxes = [np.array(head["clouds"][0]["box"])]
    boxes += [np.array(mesh["box"]) for mesh in head["meshes"] if mesh["matter"]]
    matrix = np.array(head["fogs"][0]["matrix"]).reshape(4, 4).T
    assert len(boxes) == 3
    for low, high in boxes:
        assert np.abs(0.5 * (low + high) - (0.4, 0.3, 0.0)).max() < 0.03
        assert np.abs(0.5 * (high - low) - 0.2).max() < 0.06
    middle = matrix @ (0.5, 0.5, 0.5, 1.0)
    assert np.abs(middle[:3] - (0.4, 0.3, 0.0)).max() < 0.2  # of whole leaves around it
    body = next(mesh for mesh in head["meshes"] if not mesh["matter"])
    assert np.allclose(body["box"], [[-0.1, -0.05, -0.1], [0.1, 0.05, 0.1]], atol=1e-6)


def test_fog_holds_the_mass_of_the_matter_where_it_is(revision):
    """Mean of the places of its voxels, by what they hold: the middle of the ball."""
    name = next(layer["name"] for layer in frame(revision)["layers"] if layer["kind"] == "fog")
    opened = Opened()
    data = opened.frame(str(revision), 3, [name], "", 10)
    head = asked(opened, "frame", folder=str(revision), frame=3, layers=[name], attribute="", most=10)
    fog = head["fogs"][0]
    size = int(np.prod(fog["size"]))
    voxels = np.frombuffer(data, np.uint8, size, len(data) - -(-size // 4) * 4).reshape(fog["size"][::-1]).astype(float)
    z, y, x = (np.arange(count) + 0.5 for count in voxels.shape)
    shares = [(voxels.sum(axis=axes) * at).sum() / voxels.sum() / len(at) for axes, at in (((0, 1), x), ((0, 2), y), ((1, 2), z))]
    place = np.array(fog["matrix"]).reshape(4, 4).T @ (*shares, 1.0)
    assert np.abs(place[:3] - (0.4, 0.3, 0.0)).max() < 0.005


def test_shapes_have_the_look_of_their_material(revision):
    """Roughness and opacity of the preview surface, its colour as sRGB."""
    names = [layer["name"] for layer in frame(revision)["layers"] if layer["kind"] in ("surface", "level_set")]
    jelly = find_look("jelly")
    for mesh in frame(revision, names)["meshes"]:
        (look,) = mesh["looks"]
        assert look["count"] == 3 * mesh["triangles"]
        assert look["roughness"] == pytest.approx(jelly.roughness) and look["opacity"] == pytest.approx(jelly.opacity)
        assert look["colour"][0] == pytest.approx(255 * (1.055 * jelly.colour[0] ** (1 / 2.4) - 0.055), abs=0.51)


def test_parts_of_a_mesh_have_the_look_of_their_own_material(tmp_path):
    """Of a stage of another program, in centimetres and Z up: a quad and a triangle of two materials, in metres and Y up."""
    from pxr import Gf, Usd, UsdGeom, UsdShade

    from usd_io.looks import add_material

    stage = Usd.Stage.CreateNew(str(tmp_path / "other.usda"))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    stage.SetStartTimeCode(1)
    stage.SetEndTimeCode(2)
    mesh = UsdGeom.Mesh.Define(stage, "/top/mesh")
    mesh.CreatePointsAttr([Gf.Vec3f(*map(float, p)) for p in ((0, 0, 5), (10, 0, 5), (10, 10, 5), (0, 10, 5), (20, 0, 5))])
    mesh.CreateFaceVertexCountsAttr([3, 4])
    mesh.CreateFaceVertexIndicesAttr([1, 4, 2, 0, 1, 2, 3])
    for name, face, look in (("quad", 1, "jelly"), ("corner", 0, "snow")):
        part = UsdGeom.Subset.CreateGeomSubset(mesh, name, UsdGeom.Tokens.face, [face])
        UsdShade.MaterialBindingAPI.Apply(part.GetPrim()).Bind(add_material(stage, f"/top/looks/{look}", find_look(look)))
    stage.Save()
    (mesh,) = frame(tmp_path / "other.usda")["meshes"]
    assert np.allclose(mesh["box"], [[0.0, 0.05, -0.1], [0.2, 0.05, 0.0]])
    assert [look["count"] for look in mesh["looks"]] == [6, 3] and mesh["matter"]
    assert [look["roughness"] for look in mesh["looks"]] == pytest.approx([find_look(n).roughness for n in ("jelly", "snow")])


def test_values_are_those_of_each_shape_and_of_all(revision):
    """Two clouds with the same masses: the span of the frame holds both."""
    head = frame(revision, attribute="mass")
    assert head["unit"] == "kg" and all(cloud["has_values"] for cloud in head["clouds"])
    assert head["values"] == [min(c["values"][0] for c in head["clouds"]), max(c["values"][1] for c in head["clouds"])]
    assert not any(cloud["has_values"] for cloud in frame(revision, attribute="")["clouds"])


def test_a_particle_is_followed_by_its_id(revision):
    """All that it carries at a frame, and its place through the frames, which moves with the ball: 0.2 m a frame."""
    opened, layer = Opened(), {"layer": "cache:/cache/particles", "path": "/cache/particles"}
    found = asked(opened, "particle", folder=str(revision), frame=2, index=5, **layer)
    assert {each["name"] for each in found["values"]} >= {"id", "mass", "volume", "velocity"}
    assert next(each for each in found["values"] if each["name"] == "velocity")["value"] == [0.0, 0.0, 0.0]
    over = asked(opened, "history", folder=str(revision), ident=found["id"], attribute="mass", begin=-5, **layer)
    assert over["frames"] == [1, 2, 3] and over["next"] is None and over["unit"] == "kg"
    assert over["places"][1] == pytest.approx(found["place"])
    assert np.allclose(np.diff(over["places"], axis=0), [[0.2, 0.0, 0.0]] * 2, atol=1e-5)
    gone = asked(opened, "history", folder=str(revision), ident=10**9, attribute="mass", begin=-5, **layer)
    assert gone["frames"] == []
    with pytest.raises(InputError, match="and no number"):
        opened.particle(str(revision), 2, index=10**6, **layer)
    with pytest.raises(InputError, match="is not a layer of points"):
        opened.particle(str(revision), 2, "cache:surface", "/cache/mesh", 0)


def test_a_volume_that_lies_elsewhere_is_not_read(revision, tmp_path):
    """A cache of a stranger may name any file; one outside of its folder is refused, and the points are drawn."""
    copy = shutil.copytree(revision, tmp_path / "cache" / "r001")
    for file in copy.rglob("*.vdb"):
        shutil.move(file, tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    name = next(layer["name"] for layer in frame(copy)["layers"] if layer["kind"] == "fog")
    with pytest.raises(InputError, match="lies outside of the folder"):
        frame(copy, [name])


@pytest.mark.parametrize("left", [0.1, 0.6, 0.99])
def test_a_damaged_volume_is_told(revision, tmp_path, left):
    """A file that was cut off: the layer is told of, and the points are drawn."""
    copy = shutil.copytree(revision, tmp_path / "cache" / "r001")
    for file in copy.rglob("*.vdb"):
        file.write_bytes(file.read_bytes()[: int(left * file.stat().st_size)])
    names = [layer["name"] for layer in frame(copy)["layers"] if layer["kind"] in ("fog", "level_set")]
    for name in names:
        with pytest.raises(InputError, match=r"\.vdb"):
            frame(copy, [name])


def test_a_cook_that_writes_more_is_opened_again(tmp_path):
    """What is held of a cache is given up when its stage changes."""
    revision, opened = cook_walking(tmp_path), Opened()
    wanted = {"folder": str(revision), "frame": None, "layers": None, "attribute": "", "most": 10}
    assert asked(opened, "frame", **wanted)["last"] == 3
    longer = cook_walking(tmp_path, "longer", end=4)
    shutil.rmtree(revision)
    shutil.move(longer, revision)
    assert asked(opened, "frame", **wanted)["last"] == 4
