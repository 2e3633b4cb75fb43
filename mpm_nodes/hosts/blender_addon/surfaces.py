"""Surfaces of objects of the scene, frame by frame, and the axes and units that a graph tells them in.

Blender's Z is up, a graph's Y: a point (x, y, z) of the scene is (x, z, -y) in the graph. A Blender unit is as many metres as the
scene's Unit Scale says.
"""

from array import array

import bpy
from mathutils import Matrix

from . import timeline

Y_UP = Matrix(((1, 0, 0), (0, 0, 1), (0, -1, 0)))
MESHES = ("MESH", "CURVE", "SURFACE", "META", "FONT")

RIGID = 1e-4
"""How far a motion may be from a rotation: matrices of the scene are single precision."""


def has_surface(thing):
    """Return whether an object is of a kind that has a surface: a mesh or what becomes one, or an instance of a collection."""
    return thing.type in MESHES or (thing.instance_type == "COLLECTION" and thing.instance_collection is not None)


def metres(scene):
    """Return how many metres a Blender unit of the scene is."""
    units = scene.unit_settings
    return 1.0 if units.system == "NONE" else units.scale_length


def surfaces(thing):
    """Yield (mesh, matrix to the world) of an object's surface and of its instances; the mesh is gone with the next."""
    for each in bpy.context.evaluated_depsgraph_get().object_instances:
        owner = each.parent if each.is_instance else each.object
        if owner is None or owner.original is not thing or each.object.type not in MESHES:
            continue
        mesh = each.object.to_mesh()
        if mesh is not None and len(mesh.vertices):
            yield mesh, each.matrix_world.copy()
        each.object.to_mesh_clear()


def pieces(thing):
    """Yield (matrix to the world, vertices) of an object's surface and of the instances that it makes."""
    for mesh, matrix in surfaces(thing):
        yield matrix, [vertex.co.copy() for vertex in mesh.vertices]


def changes(thing, scene, frames):
    """Return whether an object's surface is not the same at all frames.

    It is looked at where Blender has evaluated the object again: a dense mesh that stands still is not compared in every frame.
    """
    first = None
    with timeline.updates() as updated:
        for _ in timeline.at_frames(scene, frames):
            # what stands in for others may change with them, and instances of vertices and faces do without a word
            whole = thing.instance_type != "NONE" and (updated or thing.instance_type != "COLLECTION")
            if first is None:
                first = _shape(thing)
            elif (whole or thing in updated) and _shape(thing) != first:
                return True
            updated.clear()
    return False


def motion(thing, scene, frames):
    """Return how an object's surface moves from the first of some frames to each: matrices, or None when it changes its shape.

    A surface that stands still gives the unit matrix at every frame.
    """
    first, found = [], []
    for _ in timeline.at_frames(scene, frames):
        now = _shape(thing)
        first = first or now
        if [points for _, points in now] != [points for _, points in first]:
            return None
        ways = [_between(before, after) for (before, _), (after, _) in zip(first, now, strict=True)]
        if not ways or any(way is None or not _alike(way, ways[0]) for way in ways):
            return None
        found.append(ways[0])
    return found


def _shape(thing):
    """Return (matrix to the world, coordinates) of every piece of a surface."""
    found = []
    for mesh, matrix in surfaces(thing):
        points = array("f", bytes(12 * len(mesh.vertices)))
        mesh.vertices.foreach_get("co", points)
        found.append((matrix, points))
    return found


def _between(before, after):
    """Return the rigid motion between two matrices to the world, or None where there is none: they are scaled or sheared."""
    if before == after:
        return Matrix.Identity(4)
    if abs(before.determinant()) < 1e-30:
        return None
    way = after @ before.inverted()
    turn = way.to_3x3()
    return way if turn.determinant() > 0.0 and _alike(turn @ turn.transposed(), Matrix.Identity(3)) else None


def _alike(one, other):
    """Return whether two matrices are the same up to rounding."""
    pairs = ((a, b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right, strict=True))
    return all(abs(a - b) <= RIGID * (1.0 + abs(b)) for a, b in pairs)
