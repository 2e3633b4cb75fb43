"""What colliders from files will take, told before the cook: of meshes by the voxels that they will choose."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, FrameContext, InputError, MpmNodesError
from mpm_nodes.graph.declare.decorators import PreflightContext
from mpm_nodes.graph.plan.preflight import UNKNOWN
from mpm_nodes.nodes.collider_files import open_meshes, shot_codes, stamp
from mpm_nodes.nodes.collider_meshes import COARSEST, MeshOptions, Solid, keys_of, voxels_moved
from mpm_nodes.nodes.collider_motion import key_frames
from mpm_nodes.nodes.collider_volumes import sequence_files, vdb_body
from mpm_nodes.nodes.libraries import OPENUSD, OPENVDB, refuse_without_openvdb
from mpm_nodes.nodes.start_inside import DEEP, SHOWS, Distances, solids_of

LEAF_EDGE, LEAVES = 8, 2.2
"""Voxels along a leaf, and leaves that a leaf's area of surface touches."""
BUILT_BYTES, HELD_BYTES = 18 << 10, 48 << 10
"""What a leaf takes: while distances and velocities are found; and as part of a deforming mesh, whose level sets of two frames are
held, as values and packed for the solve."""
STILL_COPIES, SEQUENCE_COPIES = 2, 6
"""How many times the level set of a file is held: as value and packed; of a sequence that of three files."""
LOOKS = 5
"""Frames of the shot at which a deforming mesh is looked at."""


def mesh_needs(told: PreflightContext) -> dict[str, Any]:
    """Return memory, points and notes of a mesh collider, by its surface and by the voxels and keys that it will take.

    Raises:
        InputError: The file or the mesh cannot be used, among others because it is a sheet that has no thickness.
    """
    knobs, settings = told.knobs, told.settings
    stamp(knobs["path"])  # says what is wrong with the file, if anything
    meshes = open_meshes(told.kept, knobs["path"], knobs["prim"])
    codes = shot_codes(settings, meshes.stage)
    frames = np.unique(np.linspace(settings.start, settings.end, LOOKS).round())
    places = [codes.code(frame + knobs["frame_offset"]) for frame in frames]
    moves = not meshes.stands_still() and meshes.rigid_motion(places[0], places) is None
    options = MeshOptions(knobs["voxel_size"], settings.cell_size, knobs["thickness"])
    needs, notes, solids = list[float](), dict[str, None](), tuple[Distances, ...]()
    for frame, place in zip(frames, places, strict=True):
        points = np.asarray(meshes.points(place), float)
        solid = Solid(meshes, meshes.topology(place), points, options)
        solid.choose([points], moves)
        if frame == settings.start and not knobs["clamp"]:
            solids = (partial(_first_distances, solid, points),)
        edge = LEAF_EDGE * solid.voxel
        # the two faces of what is thin lie in the same leaves
        wide = 1.0 + options.thickness / edge if options.thickness else 1.0 - 0.4 * solid.thin_share(points, 0.25 * edge)
        leaves = LEAVES * wide * _area(points, solid.triangles) / edge**2
        keys = 1
        if moves and frame > settings.start:
            ends = key_frames(FrameContext(frame=int(frame), settings=settings), 1) + knobs["frame_offset"]
            same = meshes.topology(codes.code(ends[0])).digest == meshes.topology(codes.code(ends[1])).digest
            keys = keys_of(voxels_moved(meshes, codes.code, ends, options.voxel) if same else None)
        needs.append(leaves * (HELD_BYTES * keys if moves else BUILT_BYTES))
        notes |= dict.fromkeys(solid.warnings)
        if not moves:
            break
    still = len(points) if meshes.stands_still() else 0
    memory = int(min(max(needs), 2.0**62))
    told_of = {"memory": memory, "mesh_points": len(points), "still_points": still, "shared": OPENUSD, "notes": tuple(notes)}
    fixed = [why for why, holds in (("deforms", moves), ("is a sheet", options.thickness > 0.0)) if holds]
    return {**told_of, "solids": solids, "fixed": tuple(fixed), "deforming": int(moves)}


def _first_distances(solid: Solid, points: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the distances of places [m] from a mesh whose points are given [m], as `start_inside.Distances`.

    A level set is built only where there is something to warn of, of the voxels that a cook takes as a rule. What these miss is
    too thin for anything to be deep in it.
    """
    from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PosedLevelSets

    thickness, cell = solid.options.thickness, solid.options.cell_size
    phi, reach = np.full(len(place), np.inf), 0.5 * thickness
    if 0.0 < reach <= DEEP * cell:
        return phi
    within = ((place > points.min(axis=0) - reach) & (place < points.max(axis=0) + reach)).all(axis=1)
    if within.any() and not thickness:
        within[within] = solid.inside(points, place[within])
    if within.mean() < SHOWS:
        return phi
    try:
        level_set = solid.level_set(points, None, max(solid.voxel, COARSEST * cell))
    except InputError:
        return phi
    body = Collider(solid.name, CollisionRule.SEPARATE, 0.0, PosedLevelSets(LEVEL_SET, level_sets=(level_set,)), None)
    phi[within] = solids_of(body)[0](place[within])
    return phi


def volume_needs(told: PreflightContext) -> dict[str, Any]:
    """Return memory and points of a collider from a .vdb file, as read; of a sequence by its first file.

    Where that one cannot be read the needs are unknown: the node itself says why, at the frame that lacks it.

    Raises:
        InputError: OpenVDB is not installed; the one file cannot be read, or holds no level set of that name.
    """
    refuse_without_openvdb("collide_vdb")
    knobs, settings, path = told.knobs, told.settings, told.knobs["path"]
    how = (knobs["grid"], knobs["velocity_grid"], knobs["scale"], knobs["resample"])
    if not knobs["sequence"]:
        body = vdb_body(told.kept, path, *how)
    else:
        try:
            body = vdb_body(told.kept, sequence_files(settings.start, settings, path, knobs["frame_offset"])[0], *how)
        except MpmNodesError:
            return {UNKNOWN: True}
    points, copies = len(body.mesh.points), SEQUENCE_COPIES if knobs["sequence"] else STILL_COPIES
    still = 0 if knobs["sequence"] else points
    return {"memory": copies * body.level_set.nbytes, "mesh_points": points, "still_points": still, "shared": OPENVDB}


def _area(points: np.ndarray, triangles: np.ndarray) -> float:
    """Return the area of those triangles that have no points of their own added [m^2]."""
    corners = points[triangles[(triangles < len(points)).all(axis=1)]]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return 0.5 * float(np.linalg.norm(normal, axis=1).sum())
