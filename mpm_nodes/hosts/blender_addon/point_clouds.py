"""Point clouds of the scene, also those that Geometry Nodes make of another object, as particles with what they carry."""

from array import array
from typing import NamedTuple

import bpy
from mathutils import Matrix

from . import surfaces
from .painting import ROLES
from .specification import SPEC

CURE = "let Geometry Nodes make some (Mesh to Points, Distribute Points in Volume), or choose another object"
KINDS = {"FLOAT": ("f", "value", 1), "INT": ("i", "value", 1), "INT8": ("i", "value", 1), "BOOLEAN": ("i", "value", 1)}
VECTORS = ("position", "velocity")
OURS = {role.label.casefold(): role.attribute for role in ROLES.values() if role.attribute}
"""What attributes with the names of what may be painted are called as columns of particles."""


SHAPED = {name for each in SPEC["attributes"] if each["shape"] for name in (each["name"], each["usd"].removeprefix("primvars:"))}
"""Names under which particles have vectors and matrices, such as F: a number of the artist's is something else."""


class PointCloudPiece(NamedTuple):
    """Points.

    Attributes:
        matrix: Their place in the world.
        columns: By name what they carry, flat arrays: position, and where there are any velocity [units/s], radius, numbers.
    """

    matrix: Matrix
    columns: dict


def clouds(thing, depsgraph):
    """Return the point clouds that an evaluated object is, or that it makes and instances."""
    found = []
    for each in depsgraph.object_instances:
        owner = each.parent if each.is_instance else each.object
        if owner is not None and owner.original is thing and each.object.type == "POINTCLOUD":
            found.append(PointCloudPiece(each.matrix_world.copy(), _columns(each.object.data)))
    return found


def _columns(cloud):
    """Return what a point cloud carries."""
    found = {"position": array("f")}
    for attribute in cloud.attributes:
        name = attribute.name
        code, member, width = ("f", "vector", 3) if name in VECTORS else KINDS.get(attribute.data_type, ("", "", 0))
        if name[0] == "." or not code or (width == 1 and name in SHAPED) or (width == 3) != (attribute.data_type == "FLOAT_VECTOR"):
            continue
        values = [0.0 if code == "f" else 0] * (width * len(attribute.data))
        attribute.data.foreach_get(member, values)
        found[OURS.get(name.casefold(), name)] = array(code, values)
    return found


def may_have_points(thing):
    """Return whether an object is a point cloud, or its modifiers may make one."""
    return thing.type == "POINTCLOUD" or any(modifier.type == "NODES" for modifier in thing.modifiers)


def is_cloud(thing):
    """Return whether an object, as it is shown now, has points and no faces."""
    if not may_have_points(thing):
        return False
    depsgraph = bpy.context.evaluated_depsgraph_get()
    if any(piece.counts for piece in surfaces.pieces(thing, depsgraph)):
        return False
    return any(cloud.columns["position"] for cloud in clouds(thing, depsgraph))
