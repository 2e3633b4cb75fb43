"""Particles as UsdGeomPoints: one frame into a layer, and points of any stage back into particles.

What readers accept decides how columns are stored. Blender drops a primvar of an unknown type together with every
later one, so matrices and long vectors go as triples of floats (`primvars:F_0` is the first row of F), and wide
integers as plain attributes, which readers ignore without harm. Doubles are stored twice: as plain attributes to be
exact, and as float primvars to be seen. Colours are tables (`usd_io.tables`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from pxr import Gf, Sdf, Tf, Vt

from mpm_nodes.data import ATTRIBUTES, Field, InputError, Material, MpmNodesError, OutputError, Particles
from mpm_nodes.graph.files import strict_json
from mpm_nodes.materials.looks import looks_of
from usd_io.estimate import refuse_far
from usd_io.layers import LOOKS_KEY, set_sample
from usd_io.packing import PACKED, add_packed, power_of_two, rounded, unpacked
from usd_io.tables import COLOURS, INDICES, table_of
from usd_io.typed import number, numbers

__all__ = ["add_points", "particle_widths", "particles_from_prim"]

PRIMVAR_TYPES = {
    ("b", ()): (Sdf.ValueTypeNames.BoolArray, Vt.BoolArray, np.bool_),
    ("i", ()): (Sdf.ValueTypeNames.IntArray, Vt.IntArray, np.int32),
    ("f", ()): (Sdf.ValueTypeNames.FloatArray, Vt.FloatArray, np.float32),
    ("f", (2,)): (Sdf.ValueTypeNames.Float2Array, Vt.Vec2fArray, np.float32),
    ("f", (3,)): (Sdf.ValueTypeNames.Float3Array, Vt.Vec3fArray, np.float32),
}
PLAIN_TYPES = {
    ("d", ()): (Sdf.ValueTypeNames.DoubleArray, Vt.DoubleArray, np.float64),
    ("d", (3,)): (Sdf.ValueTypeNames.Double3Array, Vt.Vec3dArray, np.float64),
    ("l", ()): (Sdf.ValueTypeNames.Int64Array, Vt.Int64Array, np.int64),
}


# ---------------------------------------------------------------- writing
def add_points(
    layer: Sdf.Layer,
    path: str,
    particles: Particles,
    frame: int,
    names: Iterable[str],
    width_scale: float = 1.0,
    precision: float = 0.0,
) -> Vt.Vec3fArray:
    """Define a Points prim, or a Scope of packed particles, at `path` of `layer`, with every value as a time sample at `frame`.

    Args:
        layer: The frame's layer.
        path: Prim path.
        particles: Positions [m] and the columns to store.
        frame: Time code of the samples.
        names: Columns to store besides the position; those that the particles lack are left out.
        width_scale: Drawn diameter over the diameter of the particle's own volume.
        precision: Most that packed positions may be off along an axis [m], and velocities what makes as much of a frame's motion;
            0 stores both exactly, as the schema has them.

    Returns:
        Vt.Vec3fArray: Extent of the particles with the diameters of their own volumes.

    Raises:
        OutputError: Non-finite positions or velocities, ids beyond 32 bits, a column that USD cannot hold.
    """
    prim = Sdf.CreatePrimInLayer(layer, path)
    prim.specifier, prim.typeName = Sdf.SpecifierDef, "Scope" if precision else "Points"
    position = np.asarray(particles["position"], np.float32)
    own_widths = particle_widths(particles)
    widths = own_widths * np.float32(width_scale)
    _finite(path, "position", position)
    refuse_far(path, float(np.abs(position).max(initial=0.0)), float(particles.spacing))
    step = power_of_two(precision) if precision else 0.0
    if step:
        whole = rounded(path, particles["position"], step)
        add_packed(prim, "points", whole, step, frame)
        position = (whole * step).astype(np.float32)
    else:
        set_sample(prim, "points", Sdf.ValueTypeNames.Point3fArray, Vt.Vec3fArray.FromNumpy(position), frame)
    set_sample(prim, "widths", Sdf.ValueTypeNames.FloatArray, Vt.FloatArray.FromNumpy(widths), frame, "vertex")
    set_sample(prim, "extent", Sdf.ValueTypeNames.Float3Array, extent_of(position, widths), frame)
    set_sample(prim, "mpm:spacing", Sdf.ValueTypeNames.Double, float(particles.spacing), frame, custom=True)
    set_sample(prim, "mpm:time", Sdf.ValueTypeNames.Double, float(particles.time), frame, custom=True)
    for name in dict.fromkeys(names):
        if name != "position" and name in particles:
            _add_column(prim, name, particles[name], frame, particles.field(name), step * layer.framesPerSecond)
    if particles.materials:
        facts = [material.to_json() for material in particles.materials]
        prim.customData["mpm_materials"] = json.dumps(facts, sort_keys=True)
        prim.customData[LOOKS_KEY] = " ".join(looks_of(particles.materials))
    return extent_of(position, own_widths)


def _add_column(prim: Sdf.PrimSpec, name: str, column: np.ndarray, frame: int, known: Field | None, step: float) -> None:
    """Store a column; velocities in multiples of the power of two below `step` [m/s] where that is not 0."""
    if name == "velocity":
        velocity = np.asarray(column, np.float32)
        _finite(str(prim.path), name, velocity)
        if step:
            step = power_of_two(0.5 * step)
            add_packed(prim, "velocities", rounded(str(prim.path), velocity, step), step, frame)
            return
        set_sample(prim, "velocities", Sdf.ValueTypeNames.Vector3fArray, Vt.Vec3fArray.FromNumpy(velocity), frame)
    elif name == "id":
        ids = np.asarray(column, np.int64)
        if len(ids) and not (ids.min() >= 0 and ids.max() < 2**31):
            raise OutputError(f"{prim.path}: ids from {ids.min()} to {ids.max()}; readers keep 32 bits: number from 0")
        set_sample(prim, "ids", Sdf.ValueTypeNames.Int64Array, Vt.Int64Array.FromNumpy(ids), frame)
        set_sample(prim, "primvars:id", Sdf.ValueTypeNames.IntArray, Vt.IntArray.FromNumpy(ids.astype(np.int32)), frame, "vertex")
    else:
        add_primvars(prim, name, column, frame, known)


def add_primvars(prim: Sdf.PrimSpec, name: str, column: np.ndarray, frame: int | None, known: Field | None = None) -> None:
    """Store a column under its USD name: one primvar, several triples (`F_0`, `F_1`, ...), or a plain attribute.

    Raises:
        OutputError: A shape or type that has no place.
    """
    known = known or ATTRIBUTES.get(name)
    usd_name = Tf.MakeValidIdentifier(known.usd.removeprefix("primvars:") if known else name)
    column = np.asarray(column)
    if (known and known.kind == "real") or column.dtype == np.float16:
        column = column.astype(np.float32)
    flat = column.reshape(len(column), math.prod(column.shape[1:])) if column.ndim > 1 else column
    components = flat.shape[1] if flat.ndim > 1 else 1
    if flat.ndim > 1 and components > 3 and components % 3 == 0:
        for k in range(components // 3):
            _add_array(prim, f"{usd_name}_{k}", np.ascontiguousarray(flat[:, 3 * k : 3 * k + 3]), frame)
    else:
        array = flat[:, 0] if flat.ndim > 1 and components == 1 else flat
        _add_array(prim, usd_name, array, frame)
        if array.dtype == np.float64:
            _add_array(prim, usd_name, array.astype(np.float32), frame)


def _add_array(prim: Sdf.PrimSpec, name: str, array: np.ndarray, frame: int | None) -> None:
    kind = {"bool": "b", "int64": "l", "uint32": "l", "float32": "f", "float64": "d"}.get(array.dtype.name)
    kind = kind or ("i" if array.dtype.kind in "iu" and array.dtype.itemsize <= 4 else "?")
    key = (kind, array.shape[1:])
    if key not in PRIMVAR_TYPES and key not in PLAIN_TYPES:
        raise OutputError(
            f"{prim.path}: column {name!r} of {array.dtype}, shape {array.shape[1:]}, has no place; "
            "leave it out of `attributes`, or store numbers, 2- or 3-vectors or 3x3 matrices"
        )
    primvar = key in PRIMVAR_TYPES
    usd_type, vt_type, dtype = (PRIMVAR_TYPES if primvar else PLAIN_TYPES)[key]
    if name in COLOURS and key == ("f", (3,)):
        usd_type = Sdf.ValueTypeNames.Color3fArray
        array, indices = table_of(array)
        numbers = Vt.IntArray.FromNumpy(indices)
        set_sample(prim, f"primvars:{name}{INDICES}", Sdf.ValueTypeNames.IntArray, numbers, frame)
    values = vt_type.FromNumpy(np.ascontiguousarray(array, dtype))
    if primvar:
        set_sample(prim, f"primvars:{name}", usd_type, values, frame, "vertex")
    else:
        set_sample(prim, f"mpm:{name}", usd_type, values, frame, custom=True)


def particle_widths(particles: Particles) -> np.ndarray:
    """Return diameters [m], shape (n,), float32: of a ball of each particle's volume, else the lattice spacing."""
    if "volume" in particles:
        return np.cbrt(np.maximum(particles["volume"], 0.0) * (6.0 / math.pi)).astype(np.float32)
    return np.full(len(particles), particles.spacing, np.float32)


def extent_of(points: np.ndarray, widths: np.ndarray | float = 0.0) -> Vt.Vec3fArray:
    """Return USD's extent (least and greatest corner) of balls of these diameters; USD's empty range for no points."""
    if not len(points):
        largest = float(np.finfo(np.float32).max)
        return Vt.Vec3fArray([Gf.Vec3f(largest), Gf.Vec3f(-largest)])
    radius = 0.5 * np.max(widths) if np.size(widths) else 0.0
    columns = points.T  # one axis at a time: a reduction along rows of three numbers takes twenty times longer
    low, high = (np.array([bound(column) for column in columns], points.dtype) for bound in (np.min, np.max))
    corners = np.stack([low - radius, high + radius])
    return Vt.Vec3fArray.FromNumpy(corners.astype(np.float32))


def _finite(path: str, name: str, values: np.ndarray) -> None:
    if np.isfinite(values).all():
        return
    bad = np.flatnonzero(~np.isfinite(values).all(axis=tuple(range(1, values.ndim))))
    raise OutputError(
        f"{path}: {name} of particle {bad[0]} is {values[bad[0]].tolist()} ({len(bad)} of them); "
        "the solve diverged: take a smaller time step"
    )


# ---------------------------------------------------------------- reading
def particles_from_prim(prim: Any, frame: float, matrix: np.ndarray | None = None) -> Particles:
    """Return the particles of a UsdGeomPoints prim at one of its samples.

    Args:
        prim: `Usd.Prim` of type Points.
        frame: Time code, one of the samples (any, when nothing is animated).
        matrix: Shape (4, 4), column vectors: from the prim's space to world space in metres, Y up.

    Returns:
        Particles: Columns under our names where a name, paper symbol or Houdini name is ours, others as they are named.
    """
    columns: dict[str, np.ndarray] = {}
    split: dict[str, dict[int, np.ndarray]] = {}
    points = unpacked(prim, "points", frame)
    if points is None:
        raise InputError(f"{prim.GetPath()}: has no points at frame {frame:g}; give a frame that holds points")
    columns["position"] = points.astype(np.float64)
    count = len(points)
    # Plain attributes come first: they are exact where a primvar beside them is a copy for other readers.
    for attribute in sorted(prim.GetAttributes(), key=lambda a: a.GetName().startswith("primvars:")):
        name = _our_name(attribute.GetName())
        if name is None:
            continue
        column = _column(prim, attribute.GetName(), frame)
        if column is None:
            continue
        column = _per_particle(prim, attribute, column, count, frame)
        stem, _, row = name.rpartition("_")
        if re.fullmatch("[0-9]{1,4}", row) and column.shape[1:] == (3,):
            split.setdefault(stem, {})[int(row)] = column
        else:
            columns.setdefault(name, column)
    for stem, rows in split.items():
        if len(rows) < 2 or sorted(rows) != list(range(len(rows))):
            columns.update({f"{stem}_{k}": rows[k] for k in rows})  # a name that merely ends in a number
            continue
        name = _our_name(f"primvars:{stem}") or stem
        shape = ATTRIBUTES[name].shape if name in ATTRIBUTES else (len(rows), 3)
        columns[name] = np.concatenate([rows[k] for k in range(len(rows))], axis=1).reshape(count, *shape)
    velocities = None if "velocity" in columns else unpacked(prim, "velocities", frame)
    if velocities is not None:
        columns["velocity"] = velocities.astype(np.float32)
    columns.setdefault("id", np.arange(count))
    _to_table_types(prim, columns)
    if matrix is not None:
        _transform(columns, matrix)
    scale = 1.0 if matrix is None else float(np.cbrt(abs(np.linalg.det(matrix[:3, :3]))))
    spacing = scale * (number(prim.GetAttribute("mpm:spacing"), frame) or _width(prim, frame))
    if not spacing and len(columns.get("volume", ())):
        spacing = float(np.cbrt(np.mean(columns["volume"])))
    time = number(prim.GetAttribute("mpm:time"), frame) or 0.0
    return Particles(columns, _materials(prim), spacing, time)


def _our_name(usd_name: str) -> str | None:
    """Return the column that an attribute fills, None for the schema's own attributes."""
    base = usd_name.removeprefix("primvars:")
    if usd_name == base:
        if usd_name.startswith("mpm:") and usd_name not in ("mpm:spacing", "mpm:time") and not usd_name.startswith(PACKED):
            base = usd_name.removeprefix("mpm:")
        else:
            return {"velocities": "velocity", "ids": "id"}.get(usd_name)
    if base.endswith(":indices"):
        return None
    for known in ATTRIBUTES.values():
        if base in (known.name, known.usd.removeprefix("primvars:"), known.houdini):
            return known.name
    return base


def _column(prim: Any, name: str, frame: float) -> np.ndarray | None:
    from pxr import UsdGeom

    attribute = prim.GetAttribute(name)
    primvar = UsdGeom.Primvar(attribute)
    value = primvar.ComputeFlattened(frame) if primvar and primvar.IsIndexed() else attribute.Get(frame)
    if value is None:
        return None
    array = np.array(value)
    return array if array.dtype.kind in "biuf" else None


def _per_particle(prim: Any, attribute: Any, column: np.ndarray, count: int, frame: float) -> np.ndarray:
    """Return a column of one row a particle from a constant, an `elementSize` or a plain array."""
    from pxr import UsdGeom

    column = column if column.ndim else column[None]
    primvar = UsdGeom.Primvar(attribute)
    size = primvar.GetElementSize() if primvar else 1
    if size > 1 and len(column) % size == 0:
        column = column.reshape(-1, size)
    if len(column) == 1 and count != 1:
        column = np.repeat(column, count, axis=0)
    if len(column) != count:
        raise InputError(
            f"{prim.GetPath()}: {attribute.GetName()} has {len(column)} values for {count} points at "
            f"frame {frame:g}; export it with one value a point"
        )
    return column


def _to_table_types(prim: Any, columns: dict[str, np.ndarray]) -> None:
    for name, column in columns.items():
        known = ATTRIBUTES.get(name)
        if known is None:
            continue
        if column[:1].size != known.rows * len(column[:1]):
            raise InputError(
                f"{prim.GetPath()}: {known.usd} has shape {column.shape[1:]} a point; {name} needs {known.shape}: export it so"
            )
        column = column.reshape(len(column), *known.shape)
        if known.kind != "real":
            column = _whole(prim, known, column)
        elif column.dtype.kind != "f" or column.dtype == np.float16:
            column = column.astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(column.reshape(len(column), math.prod(known.shape))).all(axis=1))
        if len(bad):
            raise InputError(
                f"{prim.GetPath()}: {known.usd} of point {bad[0]} is not finite ({len(bad)} such points); "
                "remove them before the export"
            )
        columns[name] = column


def _whole(prim: Any, known: Field, column: np.ndarray) -> np.ndarray:
    """Return a column in the type of a field of integers or flags."""
    with np.errstate(invalid="ignore"):
        cast = column.astype(known.kind)
    if cast.dtype.kind != "b" and not np.array_equal(cast, column):
        raise InputError(
            f"{prim.GetPath()}: {known.usd} holds numbers that are not whole, or leave {cast.dtype.name}; export it as integers"
        )
    return cast


def _transform(columns: dict[str, np.ndarray], matrix: np.ndarray) -> None:
    """Carry positions, velocities and matrices from the file's space into world space (metres, Y up), in place."""
    linear = matrix[:3, :3]
    columns["position"] = columns["position"] @ linear.T + matrix[:3, 3]
    if "velocity" in columns:
        columns["velocity"] = (columns["velocity"] @ linear.T).astype(columns["velocity"].dtype)
    if np.allclose(linear, np.eye(3)):
        return
    inverse = np.linalg.inv(linear)
    for name in ("deformation", "affine", "velocity_gradient"):
        if name in columns:
            columns[name] = (linear @ columns[name] @ inverse).astype(columns[name].dtype)
    if "volume" in columns:
        columns["volume"] = columns["volume"] * abs(np.linalg.det(linear))


def _width(prim: Any, frame: float) -> float:
    """Return the mean width in units of the file, 0 without widths."""
    widths = numbers(prim.GetAttribute("widths"), frame)
    width = float(np.mean(widths, dtype=np.float64)) if widths is not None and widths.size else 0.0
    if not math.isfinite(width):
        raise InputError(f"{prim.GetPath()}: widths hold NaN or infinity at frame {frame:g}; export it again")
    return width


def _materials(prim: Any) -> tuple[Material, ...]:
    facts = prim.GetCustomDataByKey("mpm_materials")
    if not isinstance(facts, str):
        return ()
    try:
        listed = strict_json.parse(facts, "mpm_materials")
        if not isinstance(listed, list):
            raise MpmNodesError("they are not a list")
        return tuple(map(Material.from_json, listed))
    except MpmNodesError as error:
        raise InputError(f"{prim.GetPath()}: its materials cannot be read ({error}); wire a material into read_points") from error
