"""Surfaces of objects of the scene, frame by frame, and the axes and units that a graph tells them in.

Blender's Z is up, a graph's Y: a point (x, y, z) of the scene is (x, z, -y) in the graph. A Blender unit is as many metres as the
scene's Unit Scale says.
"""

from array import array
from typing import NamedTuple

import bpy
from mathutils import Matrix, Vector

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


class Piece(NamedTuple):
    """One mesh of an object's surface.

    Attributes:
        matrix: Its place in the world.
        points: Coordinates, a flat array of 3 n numbers.
        faces: How many faces it has.
    """

    matrix: Matrix
    points: array
    faces: int

    def vertices(self):
        """Return its points in the world."""
        return [self.matrix @ Vector(self.points[at : at + 3]) for at in range(0, len(self.points), 3)]


def visit(thing, take):
    """Call `take(mesh, matrix to the world)` for an object's surface and for each of the instances that it makes.

    Blender lists text, curves and metaballs as themselves and as the mesh that they become: the first is left out where there
    is the second. The mesh is gone when `take` returns; one that outlives its object would end Blender.
    """
    listed = bpy.context.evaluated_depsgraph_get().object_instances
    both = thing.type != "MESH" and makes_instances(thing)
    for each in listed:
        if not _owned(each, thing) or (both and not each.is_instance):
            continue
        mesh = each.object.to_mesh()
        try:
            if mesh is not None and len(mesh.vertices):
                take(mesh, each.matrix_world.copy())
        finally:
            each.object.to_mesh_clear()


def makes_instances(thing):
    """Return whether Blender lists instances of an object with a surface; those of a curve or text may be its own mesh."""
    listed = bpy.context.evaluated_depsgraph_get().object_instances
    return any(each.is_instance and _owned(each, thing) for each in listed)


def _owned(each, thing):
    owner = each.parent if each.is_instance else each.object
    return owner is not None and owner.original is thing and each.object.type in MESHES


def pieces(thing):
    """Return the pieces of an object's surface and of the instances that it makes."""
    found = []

    def take(mesh, matrix):
        points = array("f", bytes(12 * len(mesh.vertices)))
        mesh.vertices.foreach_get("co", points)
        found.append(Piece(matrix, points, len(mesh.polygons)))

    visit(thing, take)
    return found


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
                first = pieces(thing)
            elif (whole or thing in updated) and pieces(thing) != first:
                return True
            updated.clear()
    return False


def motion(thing, scene, frames):
    """Return how an object's surface moves from the first of some frames to each: matrices, or None when it changes its shape.

    A surface that stands still gives the unit matrix at every frame.
    """
    first, found = [], []
    for _ in timeline.at_frames(scene, frames):
        now = pieces(thing)
        first = first or now
        if [piece.points for piece in now] != [piece.points for piece in first]:
            return None
        ways = [_between(before.matrix, after.matrix) for before, after in zip(first, now, strict=True)]
        if not ways or any(way is None or not _alike(way, ways[0]) for way in ways):
            return None
        found.append(ways[0])
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
