"""Meshes that a host hands over as arrays, written as USD: `python -m usd_io.scene_meshes REQUEST`.

The request is a JSON file: `arrays`, a file of raw numbers; `places`, where each of them lies there by name, as [offset in bytes,
numbers, "f" or "i"]; and `meshes`, each with `path`, `digest`, `metres` a unit, `frames` (none: it stands still), `rate` (frames
a second) and, for each frame, `shapes`: pieces with their `matrix` (rows of 4 x 4, for column vectors), its `parts` (shift, turn
as a quaternion w, x, y, z, and scale; null where it is sheared), the names of `points`, `counts` and `indices`, and where there are
any `primvars`: by name the interpolation and the name of the numbers. A point cloud has the `kind` "points", and its shapes the
names of their `columns`. Z is up.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Gf, Sdf, UsdGeom, Vt

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.files.names import temporary
from usd_io.layers import outlive, set_sample, set_units
from usd_io.scene_points import add_clouds

__all__ = ["write_meshes"]

MOST_PIECES = 256
"""More pieces than this, or another number at another frame, become one mesh."""

TYPES = {"f": np.dtype("<f4"), "i": np.dtype("<i4")}
Shape = dict[str, Any]


def write_meshes(request: Path) -> None:
    """Write every mesh of a request, and beside each a file with its digest.

    Raises:
        InputError: The request or its arrays cannot be read.
        OutputError: A file cannot be written.
    """
    try:
        asked = json.loads(request.read_text(encoding="utf-8"))
        raw = np.fromfile(asked["arrays"], np.uint8) if asked["places"] else np.zeros(0, np.uint8)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{request}: cannot be read ({error})") from error
    arrays = {}
    for name, (offset, count, code) in asked["places"].items():
        kind = TYPES[code]
        arrays[name] = raw[offset : offset + count * kind.itemsize].view(kind)
    for mesh in asked["meshes"]:
        path = Path(mesh["path"])
        layer = _layer(mesh, arrays)
        folder = Folder(path.parent)
        folder.unlink(f"{path.name}.digest")
        layer.Export(str(path.parent / temporary(path.name)))
        folder.finish(path.name)
        folder.replace(f"{path.name}.digest", mesh["digest"].encode())


def _layer(mesh: dict[str, Any], arrays: dict[str, np.ndarray]) -> Sdf.Layer:
    """Return the layer of a mesh in memory: an Xform with a Mesh for each of its pieces, or the Points of a point cloud."""
    frames = mesh["frames"] or [None]
    layer = Sdf.Layer.CreateAnonymous("scene.usdc")
    set_units(layer, mesh.get("rate", 24.0), frames[0] or 0, frames[-1] or 0)
    layer.pseudoRoot.SetInfo("upAxis", "Z")
    layer.pseudoRoot.SetInfo("metersPerUnit", mesh["metres"])
    top = Sdf.CreatePrimInLayer(layer, "/object")
    top.specifier, top.typeName = Sdf.SpecifierDef, "Xform"
    layer.defaultPrim = "object"
    shapes: list[list[Shape]] = mesh["shapes"]
    if mesh.get("kind") == "points":
        add_clouds(layer, "/object/points", shapes, frames, arrays)
        outlive(layer)
        return layer
    number = len(shapes[0])
    if number > MOST_PIECES or any(len(each) != number for each in shapes):
        arrays = dict(arrays)
        shapes = [[_joined(each, arrays)] for each in shapes]
    for index in range(len(shapes[0])):
        _add_piece(layer, f"/object/mesh_{index}", [each[index] for each in shapes], frames, arrays)
    outlive(layer)
    return layer


def _joined(pieces: list[Shape], arrays: dict[str, np.ndarray]) -> Shape:
    """Return one piece in the world made of several; its arrays are added."""
    points, indices, first = [np.zeros((0, 3), np.float32)], [np.zeros(0, np.int32)], 0
    for piece in pieces:
        matrix, own = np.reshape(piece["matrix"], (4, 4)), arrays[piece["points"]].reshape(-1, 3)
        points.append((own @ matrix[:3, :3].T + matrix[:3, 3]).astype(np.float32))
        indices.append(arrays[piece["indices"]] + np.int32(first))
        first += len(own)
    name = f"joined {len(arrays)}"
    counts = [np.zeros(0, np.int32), *(arrays[piece["counts"]] for piece in pieces)]
    for kind, parts in (("points", points), ("counts", counts), ("indices", indices)):
        arrays[f"{name} {kind}"] = np.concatenate(parts).reshape(-1)
    kinds: Shape = {kind: f"{name} {kind}" for kind in ("points", "counts", "indices")}
    for primvar in pieces[0].get("primvars", {}) if pieces else ():
        arrays[f"{name} {primvar}"] = np.concatenate([_at_corners(piece, primvar, arrays) for piece in pieces])
        kinds.setdefault("primvars", {})[primvar] = [UsdGeom.Tokens.faceVarying, f"{name} {primvar}"]
    return {"matrix": np.eye(4).ravel().tolist(), "parts": None, **kinds}


def _at_corners(piece: Shape, primvar: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the numbers of a primvar at the corners of a piece's faces."""
    where, values = piece["primvars"][primvar][0], arrays[piece["primvars"][primvar][1]]
    if where == UsdGeom.Tokens.vertex:
        return values[arrays[piece["indices"]]]
    return np.repeat(values, arrays[piece["counts"]]) if where == UsdGeom.Tokens.uniform else values


def _add_piece(layer: Sdf.Layer, path: str, shapes: list[Shape], frames: list[int | None], arrays: dict[str, np.ndarray]) -> None:
    """Define a Mesh; only what changes has samples."""
    prim = Sdf.CreatePrimInLayer(layer, path)
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Mesh"
    scheme = Sdf.AttributeSpec(prim, "subdivisionScheme", Sdf.ValueTypeNames.Token, Sdf.VariabilityUniform)
    scheme.default = "none"
    names = Sdf.ValueTypeNames
    for name, kind, usd, made in (
        ("points", "points", names.Point3fArray, _points),
        ("faceVertexCounts", "counts", names.IntArray, Vt.IntArray.FromNumpy),
        ("faceVertexIndices", "indices", names.IntArray, Vt.IntArray.FromNumpy),
    ):
        _set(prim, name, usd, [shape[kind] for shape in shapes], frames, lambda key, made=made: made(arrays[key]))
    for name in shapes[0].get("primvars", {}):
        _add_primvar(prim, name, shapes, frames, arrays)
    moves = any(shape["matrix"] != shapes[0]["matrix"] for shape in shapes)
    if moves and all(shape["parts"] for shape in shapes):
        for index, (name, usd, made) in enumerate(
            (
                ("xformOp:translate", names.Double3, lambda value: Gf.Vec3d(*value)),
                ("xformOp:orient", names.Quatd, lambda value: Gf.Quatd(value[0], Gf.Vec3d(*value[1:]))),
                ("xformOp:scale", names.Double3, lambda value: Gf.Vec3d(*value)),
            )
        ):
            _set(prim, name, usd, [shape["parts"][index] for shape in shapes], frames, made)
        order = ["xformOp:translate", "xformOp:orient", "xformOp:scale"]
    else:
        matrices = [shape["matrix"] for shape in shapes]
        _set(prim, "xformOp:transform", names.Matrix4d, matrices, frames, lambda value: Gf.Matrix4d(*value).GetTranspose())
        order = ["xformOp:transform"]
    ops = Sdf.AttributeSpec(prim, UsdGeom.Tokens.xformOpOrder, names.TokenArray, Sdf.VariabilityUniform)
    ops.default = order


def _add_primvar(
    prim: Sdf.PrimSpec, name: str, shapes: list[Shape], frames: list[int | None], arrays: dict[str, np.ndarray]
) -> None:
    """Define a primvar of numbers; where it does not belong to the same at all frames, it is given at the corners of faces."""
    given = [shape["primvars"][name] for shape in shapes]
    where = given[0][0]
    values = [arrays[key] for _, key in given]
    if any(each != where for each, _ in given):
        where, values = UsdGeom.Tokens.faceVarying, [_at_corners(shape, name, arrays) for shape in shapes]
    raw = [each.tobytes() for each in values]
    usd = Sdf.ValueTypeNames.FloatArray
    _set(prim, f"primvars:{name}", usd, raw, frames, lambda each: Vt.FloatArray.FromNumpy(np.frombuffer(each, TYPES["f"])))
    prim.attributes[f"primvars:{name}"].SetInfo("interpolation", where)


def _points(values: np.ndarray) -> Vt.Vec3fArray:
    return Vt.Vec3fArray.FromNumpy(values.reshape(-1, 3))


def _set(prim: Sdf.PrimSpec, name: str, usd: Any, values: list[Any], frames: list[int | None], made: Any) -> None:
    """Give an attribute one value, or where they differ one at every frame."""
    if all(value == values[0] for value in values):
        set_sample(prim, name, usd, made(values[0]), None)
        return
    before, last = None, None
    for frame, value in zip(frames, values, strict=True):
        if last is None or value != before:
            before, last = value, made(value)
        set_sample(prim, name, usd, last, frame)


if __name__ == "__main__":
    try:
        write_meshes(Path(sys.argv[1]))
    except MpmNodesError as error:
        sys.exit(str(error))
