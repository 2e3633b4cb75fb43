"""Surfaces of objects of the scene, frame by frame, and the axes and units that a graph tells them in.

Blender's Z is up, a graph's Y: a point (x, y, z) of the scene is (x, z, -y) in the graph. A Blender unit is as many metres as the
scene's Unit Scale says.
"""

from array import array
from typing import NamedTuple

from mathutils import Matrix, Vector

from . import mesh_attributes

Y_UP = Matrix(((1, 0, 0), (0, 0, 1), (0, -1, 0)))
MESHES = ("MESH", "CURVE", "SURFACE", "META", "FONT")
BY_NODES = ("CURVES", "POINTCLOUD", "VOLUME")
"""Kinds of objects that have a surface where Geometry Nodes make one."""

RIGID = 1e-4
"""How far a motion may be from a rotation: matrices of the scene are single precision."""


def has_surface(thing):
    """Return whether an object is of a kind that has a surface: a mesh or what becomes one, or an instance of a collection."""
    if thing.type in BY_NODES:
        return any(modifier.type == "NODES" for modifier in thing.modifiers)
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
        counts: Corners of each face.
        indices: The points at these corners.
        painted: By name what `mesh_attributes.read` gives.
    """

    matrix: Matrix
    points: array
    counts: array
    indices: array
    painted: dict

    def vertices(self):
        """Return its points in the world."""
        return [self.matrix @ Vector(self.points[at : at + 3]) for at in range(0, len(self.points), 3)]


def visit(thing, take, depsgraph):
    """Call `take(mesh, matrix to the world)` for an evaluated object's surface and for each of the instances that it makes.

    Blender lists text, curves and metaballs as themselves and as the mesh that they become: the first is left out where there
    is the second. The mesh is gone when `take` returns; one that outlives its object would end Blender.
    """
    _visit(thing, lambda mesh, matrix, _: take(mesh, matrix), depsgraph)


def _visit(thing, take, depsgraph):
    """Do as `visit`; `take` is given the evaluated object of the mesh as well."""
    both = thing.type != "MESH" and any(each.is_instance and _owned(each, thing) for each in depsgraph.object_instances)
    for each in depsgraph.object_instances:
        if not _owned(each, thing) or (both and not each.is_instance):
            continue
        mesh = each.object.to_mesh()
        try:
            if mesh is not None and len(mesh.vertices):
                take(mesh, each.matrix_world.copy(), each.object)
        finally:
            each.object.to_mesh_clear()


def _owned(each, thing):
    owner = each.parent if each.is_instance else each.object
    return owner is not None and owner.original is thing and each.object.type in MESHES


def pieces(thing, depsgraph, painted=()):
    """Return the pieces of an evaluated object's surface and of the instances that it makes, with what is painted on them."""
    found = []

    def take(mesh, matrix, holder):
        points = array("f", bytes(12 * len(mesh.vertices)))
        counts, indices = array("i", bytes(4 * len(mesh.polygons))), array("i", bytes(4 * len(mesh.loops)))
        mesh.vertices.foreach_get("co", points)
        mesh.polygons.foreach_get("loop_total", counts)
        mesh.loops.foreach_get("vertex_index", indices)
        values = {name: mesh_attributes.read(holder, mesh, name) for name in painted}
        found.append(Piece(matrix, points, counts, indices, {name: value for name, value in values.items() if value}))

    _visit(thing, take, depsgraph)
    return found


def motion(shapes):
    """Return how a surface moves from the first of some frames to each: matrices, or None when it changes its shape.

    A surface that stands still gives the unit matrix at every frame. `shapes` is what `ArrayFile.shapes` gives, by frame.
    """
    found = []
    for now in shapes:
        if [piece["points"] for piece in now] != [piece["points"] for piece in shapes[0]]:
            return None
        ways = [_between(_matrix(before), _matrix(after)) for before, after in zip(shapes[0], now, strict=True)]
        if not ways or any(way is None or not _alike(way, ways[0]) for way in ways):
            return None
        found.append(ways[0])
    return found


def _matrix(piece):
    rows = piece["matrix"]
    return Matrix((rows[0:4], rows[4:8], rows[8:12], rows[12:16]))


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
