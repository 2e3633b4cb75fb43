"""A mesh that rides along with the matter that fills it, so that its edges stay as sharp as they were modelled."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import A, Degrees, GraphSettings, InputError, Mesh, Metres, MpmNodesError, Orientation, Particles, Vec3
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.declare.decorators import ContentsContext, node
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.collider_files import open_meshes, shot_codes, stamp
from mpm_nodes.nodes.cut_mesh import INNER, CutMesh, Voters, cut_along, refuse_without_manifold
from mpm_nodes.nodes.libraries import OPENUSD
from mpm_nodes.nodes.looks import REST
from mpm_nodes.nodes.mesh_deformation import Binding, bound, carried, carried_affinely
from mpm_nodes.nodes.pieces import CRUMB, PIECE
from mpm_nodes.nodes.rotations import TURNS, UNTURNED, turn_matrix

__all__ = ["deform_mesh"]

NO_REST = "deform_mesh.particles: have no rest places; wire rest_positions in before the solve"


def _needs(told: PreflightContext) -> dict[str, Any]:
    """Preflight: refuse a mesh that cannot be read, and matter without its places at rest; tell the points."""
    meshes = open_meshes(told.kept, told.knobs["path"], told.knobs["prim"])
    code = shot_codes(told.settings, meshes.stage).code(float(told.settings.start))
    points = len(meshes.points(code))
    for facts in told.inputs.get("particles", ()):
        if facts.get("columns") is not None and REST not in facts["columns"]:
            raise MpmNodesError(NO_REST)
        if facts.get("columns") is not None and PIECE in facts["columns"]:
            refuse_without_manifold()
            _solid(meshes, code)
    return {"memory": 1000 * points, "mesh_points": points, "shared": OPENUSD}


def _contents(told: ContentsContext) -> str:
    """Say what counts of a stage: its meshes as the shot begins."""
    meshes = open_meshes(told.kept, told.path, told.knobs["prim"])
    return str(meshes.digest([shot_codes(told.settings, meshes.stage).code(float(told.settings.start))]))


@node(category="Surface", label="Deform Mesh", preflight=_needs, alternatives=TURNS, contents={"path": _contents})
def deform_mesh(
    settings: GraphSettings,
    particles: Particles,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    rotation: A[Vec3, Degrees] = (0.0, 0.0, 0.0),
    orientation: Orientation = UNTURNED,
    translation: A[Vec3, Metres] = (0.0, 0.0, 0.0),
) -> Mesh:
    """Carry a mesh along with the particles that fill it: a biscuit, a bar, a toy keep edges, texture coordinates and normals.

    Every vertex follows the affine motion of the particles that were nearest to it (Schaefer, McPhail and Warren 2006). Take path,
    prim and place of the emit_mesh that made the matter, wire rest_positions behind that one, and give it this body's particles.
    With label_pieces in between the mesh comes apart where they tear: each piece is closed by inner faces, whose corners have
    `inner` 1 and a box's map as fine as the mesh's, and follows its own particles. Between two breaks its topology stays. Where no
    particle is left the mesh is empty.

    Args:
        particles: Of the body, with the places at rest that rest_positions gave them before the solve, and their pieces if any.
        path: USD file; its mesh is that of the shot's first frame.
        prim: Path or name of a mesh, or of a prim above meshes; empty for the whole stage.
        rotation: Turns about x, then y, then z, about the origin.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        translation: Shift after turning.

    Raises:
        InputError: The mesh cannot be read, or is not closed and has to be cut.
        MpmNodesError: The particles have no places at rest; or Manifold is not installed and the mesh is cut.
    """
    meshes = open_meshes(kept, path, prim)
    if REST not in particles:
        raise MpmNodesError(NO_REST)
    code = shot_codes(settings, meshes.stage).code(float(settings.start))
    turn = turn_matrix(rotation, orientation)
    first = meshes.points(code) @ turn.T + np.asarray(translation, float)
    if not len(first):
        raise InputError(f"deform_mesh: {path.name}: holds no points; choose a mesh by prim")
    where = (*stamp(path), prim, code)
    source = kept.get(("corners", *where, turn.tobytes()), lambda: _source(meshes, code, turn))
    if not len(particles):  # drains, and walls that delete, took all
        return _nothing_left(source, particles)
    shape = _Shape(first, source.counts, source.indices, source.corners, source.normals, np.zeros(len(first), np.int64))
    if PIECE in particles and len(np.unique(particles[PIECE])) > 1:
        shape = kept.get(
            ("cut mesh", *where, _digest(first, particles[REST], particles[PIECE])),
            lambda: _cut(meshes, code, first, source, Voters(particles[REST], particles[PIECE], particles.spacing)),
        )
    return _carried(shape, particles, kept, (*stamp(path), prim))


class _Shape(NamedTuple):
    """A mesh at rest: points [m], faces, what its corners have, and the piece of each point."""

    points: np.ndarray
    counts: np.ndarray
    indices: np.ndarray
    corners: dict[str, np.ndarray]
    normals: np.ndarray | None
    piece: np.ndarray


def _source(meshes: Any, code: float, turn: np.ndarray) -> _Shape:
    """Return the faces of a file's mesh and what its corners have, normals turned; without its points."""
    from usd_io.mesh_corners import corner_values

    topology, (corners, normals) = meshes.topology(code), corner_values(meshes, code)
    none = np.zeros(0)
    return _Shape(none, topology.counts, topology.indices, corners, None if normals is None else normals @ turn.T, none)


def _solid(meshes: Any, code: float) -> Any:
    """Return the closed triangles (`SolidMesh`) that a file's mesh makes; refused where there is none."""
    from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate

    topology = meshes.topology(code)
    return solid_mesh(meshes.points(code), triangulate(topology.counts, topology.indices)[0], f"deform_mesh: {meshes.name}")


def _cut(meshes: Any, code: float, first: np.ndarray, source: _Shape, voters: Voters) -> _Shape:
    """Return the mesh as its pieces are at rest."""
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

    solid, own = _solid(meshes, code), meshes.points(code)
    told = [*source.corners.values(), *(() if source.normals is None else (source.normals,))]
    widths = [each.shape[1] for each in told]
    each = np.concatenate([np.zeros((len(source.indices), 0)), *told], axis=1)
    corners, _ = triangulate(source.counts, np.arange(len(source.indices)))
    before = np.maximum(solid.source, 0)
    # seams are welded and faces turned: a corner is that of its face which lies where it does
    ways = solid.extended(own)[solid.triangles][:, :, None] - own[source.indices[corners[before]]][:, None]
    squares = np.square(ways).sum(axis=3)
    values = each[np.take_along_axis(corners[before], squares.argmin(axis=2), axis=1)]
    values[solid.source < 0] = 0.0
    found = cut_along(solid, first, values, voters, f"deform_mesh: {meshes.name}")
    parts = np.split(found.values.reshape(-1, found.values.shape[2]), np.cumsum(widths)[:-1], axis=1) if widths else []
    inner = np.repeat(found.inner, 3)
    parts = [np.where(inner[:, None], _mapped(found, part), part) if part.shape[1] == 2 else part for part in parts]
    normals = None
    if source.normals is not None:
        normals = np.where(inner[:, None], _smooth_normals(found), parts[-1])
    at_corners = {**dict(zip(source.corners, parts, strict=False)), INNER: inner.astype(np.float32)}
    counts, indices = np.full(len(found.triangles), 3, np.int32), found.triangles.ravel().astype(np.int32)
    return _Shape(found.points, counts, indices, at_corners, normals, found.piece)


def _mapped(cut: CutMesh, told: np.ndarray) -> np.ndarray:
    """Return texture coordinates for inner faces, shape (c, 2): a box's map, as fine as the mesh's own (`told`) on the whole.

    Every face is seen along the axis that it faces most, as it is at rest, so that both sides of a break fit each other.
    """
    corners = cut.points[cut.triangles]
    facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    (a, b), outer = np.moveaxis(np.diff(told.reshape(-1, 3, 2), axis=1), 1, 0), ~cut.inner
    covered = np.abs(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])[outer].sum() / np.linalg.norm(facing, axis=1)[outer].sum()
    axes = np.array([(2, 1), (0, 2), (0, 1)])[np.abs(facing).argmax(axis=1)]
    flat = np.take_along_axis(corners, np.repeat(axes[:, None], 3, axis=1), axis=2)
    return np.asarray(np.sqrt(covered) * flat.reshape(-1, 2))


def _smooth_normals(cut: CutMesh) -> np.ndarray:
    """Return normals at the corners of inner faces, smooth over those of each piece, shape (c, 3); 0 elsewhere."""
    triangles = cut.triangles[cut.inner]
    a, b, c = (cut.points[triangles[:, k]] for k in range(3))
    sums = np.zeros_like(cut.points)
    np.add.at(sums, triangles.ravel(), np.repeat(np.cross(b - a, c - a), 3, axis=0))
    return np.asarray(sums[cut.triangles.ravel()])


def _carried(shape: _Shape, particles: Particles, kept: Kept, file: tuple[Any, ...]) -> Mesh:
    """Return the mesh where the particles of its pieces have it by now."""
    rest, now = (np.asarray(particles[name], float) for name in (REST, "position"))
    crumb = np.asarray(particles[CRUMB]) if CRUMB in particles else np.zeros(len(rest), np.uint8)
    several = len(np.unique(shape.piece)) > 1
    piece = np.asarray(particles[PIECE]) if several else np.zeros(len(rest), np.int32)
    told = hashlib.sha256(rest.tobytes() + shape.points.tobytes())
    if crumb.any() or several:
        told.update(piece.tobytes() + crumb.tobytes() + shape.piece.tobytes())
    binding = kept.get(("bound vertices", *file, told.hexdigest()), lambda: _bound(shape, rest, piece, crumb > 0))
    nearest = binding.vertices[np.arange(len(shape.points)), binding.weights.argmax(axis=1)]
    attributes: dict[str, np.ndarray] = {REST: shape.points.astype(np.float32)}
    attributes |= {"material": particles["material"][nearest]} if "material" in particles else {}
    attributes |= {PIECE: shape.piece.astype(np.int32)} if PIECE in particles else {}
    velocities = np.asarray(particles["velocity"], float)[nearest] if "velocity" in particles else None
    normals = None
    if shape.normals is None:
        points = carried(binding, now)
    else:
        points, gradients = carried_affinely(binding, now)
        moved = np.linalg.solve(np.swapaxes(gradients, 1, 2)[shape.indices], shape.normals[:, :, None])[:, :, 0]
        normals = moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-300)
        if len(points) == len(normals):  # as many points as corners: those of points are told apart from these by their number
            normals[shape.indices] = normals.copy()
    faces = (shape.counts, shape.indices)
    return Mesh(points, *faces, normals, velocities, attributes, particles.materials, corners=dict(shape.corners))


def _nothing_left(source: _Shape, particles: Particles) -> Mesh:
    """Return a mesh without points that has what the others of a shot have."""
    none = np.zeros((0, 3))
    attributes = {REST: none.astype(np.float32)} | ({PIECE: np.zeros(0, np.int32)} if PIECE in particles else {})
    faces, velocities = (source.counts[:0], source.indices[:0]), none if "velocity" in particles else None
    normals, corners = None if source.normals is None else none, {name: each[:0] for name, each in source.corners.items()}
    return Mesh(none, *faces, normals, velocities, attributes, particles.materials, corners=corners)


def _bound(shape: _Shape, rest: np.ndarray, piece: np.ndarray, crumb: np.ndarray) -> Binding:
    """Bind the points of each piece to the particles that are left of it."""
    numbers = np.unique(shape.piece)
    if len(numbers) == 1 and not crumb.any():
        return bound(shape.points, rest)
    parts = []
    for number in numbers:
        own = np.flatnonzero(~crumb & (piece == number))
        own = own if len(own) else np.flatnonzero(piece == number)
        at = np.flatnonzero(shape.piece == number)
        parts.append((at, own, bound(shape.points[at], rest[own])))
    width = max(part.vertices.shape[1] for _, _, part in parts)
    vertices, weights = np.zeros((len(shape.points), width), np.int64), np.zeros((len(shape.points), width))
    arms, way = np.zeros((len(shape.points), width, 3)), np.zeros((len(shape.points), 3))
    for at, own, part in parts:
        k = part.vertices.shape[1]
        vertices[at, :k], weights[at, :k] = own[part.vertices], part.weights
        arms[at, :k], way[at] = part.arms, part.way
    return Binding(vertices, weights, arms, way)


def _digest(*arrays: np.ndarray) -> str:
    told = hashlib.sha256()
    for each in arrays:
        told.update(np.ascontiguousarray(each).tobytes())
    return told.hexdigest()
