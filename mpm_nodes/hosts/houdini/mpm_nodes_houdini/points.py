"""Particles of a cache as Houdini's points: P, v, id, pscale, and every attribute that the cache holds, under Houdini's names."""

from __future__ import annotations

import hou

NAMES = {"displayColor": "Cd"}
"""Houdini's names of attributes that are called differently in USD; P, v, id and pscale have calls of their own."""


def read_points(node):
    """Fill a node's geometry with the particles of a stage at its frame.

    Raises:
        hou.NodeError: The stage cannot be read, or holds no points.
    """
    from pxr import Sdf, Tf, Usd, UsdGeom  # Houdini's own

    path, wanted = node.parm("mpm_stage").evalAsString(), node.parm("mpm_prim").evalAsString()
    frame = Usd.TimeCode(node.parm("mpm_frame").eval())
    if not path:
        raise hou.NodeError(f"{node.name()}: no stage is given; cook a graph, or give a cache.usda as Stage")
    known = Sdf.Layer.Find(path)
    if known is not None:
        known.Reload()  # a cook that goes on writes it again
    try:
        stage = Usd.Stage.Open(path)
    except Tf.ErrorException as error:
        raise hou.NodeError(f"{node.name()}: {path} cannot be read; give the cache.usda of a cook as Stage") from error
    prim = stage.GetPrimAtPath(wanted) if wanted else next(filter(_holds_points, stage.TraverseAll()), None)
    if not prim or not _holds_points(prim):
        raise hou.NodeError(
            f"{node.name()}: {path} holds no points{' at ' + wanted if wanted else ''}; choose another stage or prim"
        )
    places = _vectors(prim, "points", frame)
    geometry = node.geometry()
    geometry.clear()
    if not places:
        return
    geometry.createPoints(tuple(tuple(float(part) for part in place) for place in places))
    _put(geometry, "v", _vectors(prim, "velocities", frame), len(places))
    _put(geometry, "id", _values(prim, "ids", frame), len(places))
    widths = _values(prim, "widths", frame)
    if widths:
        each = widths if len(widths) == len(places) else [widths[0]] * len(places)
        _put(geometry, "pscale", [0.5 * width for width in each], len(places))
    for primvar in UsdGeom.PrimvarsAPI(prim).GetPrimvars():
        values = primvar.ComputeFlattened(frame)
        if primvar.GetInterpolation() == UsdGeom.Tokens.constant and hasattr(values, "__len__") and len(values) == 1:
            values = [values[0]] * len(places)
        _put(geometry, NAMES.get(primvar.GetPrimvarName(), primvar.GetPrimvarName()), values, len(places))


def _holds_points(prim):
    """Whether a prim has particles: as points, or packed in whole steps."""
    return prim.GetTypeName() == "Points" or bool(prim.GetAttribute("mpm:packed:points_x"))


def _values(prim, name, frame):
    """Return an attribute's value, None where there is none."""
    attribute = prim.GetAttribute(name)
    return attribute.Get(frame) if attribute else None


def _vectors(prim, name, frame):
    """Return points or velocities, as they are written or packed in whole steps; None where there are none."""
    plain = _values(prim, name, frame)
    columns = [prim.GetAttribute(f"mpm:packed:{name}_{axis}") for axis in "xyz"]
    if plain is not None or not all(columns):
        return plain
    step = prim.GetAttribute(f"mpm:packed:{name}_step").Get(frame)
    x, y, z = (column.Get(frame) or () for column in columns)
    return [(step * x[i], step * y[i], step * z[i]) for i in range(len(x))]


def _put(geometry, name, values, count):
    """Add an attribute with one number or vector for each point; leave out what is not of that form."""
    if values is None or isinstance(values, str) or not hasattr(values, "__len__") or len(values) != count:
        return
    first = values[0]
    if isinstance(first, str):
        return
    rows = [[value] for value in values] if isinstance(first, (bool, int, float)) else [list(value) for value in values]
    if not isinstance(rows[0][0], (bool, int, float)) or (name in ("P", "pscale") and geometry.findPointAttrib(name) is not None):
        return
    whole = all(isinstance(part, int) for part in rows[0])
    default = tuple([0 if whole else 0.0] * len(rows[0]))
    if geometry.findPointAttrib(name) is None:
        geometry.addAttrib(hou.attribType.Point, name, default if len(default) > 1 else default[0])
    flat = tuple(int(part) if whole else float(part) for row in rows for part in row)
    (geometry.setPointIntAttribValues if whole else geometry.setPointFloatAttribValues)(name, flat)
