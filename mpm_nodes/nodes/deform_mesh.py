"""A mesh that rides along with the matter that fills it, so that its edges stay as sharp as they were modelled."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import A, Degrees, GraphSettings, InputError, Mesh, Metres, MpmNodesError, Orientation, Particles, Vec3
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.declare.decorators import ContentsContext, node
from mpm_nodes.graph.values.kept import NOTHING_KEPT, Kept
from mpm_nodes.nodes.collider_files import open_meshes, shot_codes, stamp
from mpm_nodes.nodes.libraries import OPENUSD
from mpm_nodes.nodes.looks import REST
from mpm_nodes.nodes.mesh_deformation import bound, carried
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
    """Carry a mesh along with the particles that fill it: a biscuit, a bar, a toy keep their edges. Nothing is torn.

    Every vertex follows the affine motion of the particles that were nearest to it (Schaefer, McPhail and Warren 2006). Take path,
    prim and place of the emit_mesh that made the matter, wire rest_positions behind that one, and give it this body's particles.

    Args:
        particles: Of the body, with the places at rest that rest_positions gave them before the solve.
        path: USD file; its mesh is that of the shot's first frame.
        prim: Path or name of a mesh, or of a prim above meshes; empty for the whole stage.
        rotation: Turns about x, then y, then z, about the origin.
        orientation: Turns by a quaternion (w, x, y, z), in place of the angles.
        translation: Shift after turning.

    Raises:
        InputError: The mesh cannot be read.
        MpmNodesError: The particles have no places at rest, or there are none.
    """
    meshes = open_meshes(kept, path, prim)
    if REST not in particles:
        raise MpmNodesError(NO_REST)
    if not len(particles):
        raise MpmNodesError("deform_mesh.particles: there are none that the mesh could follow; wire in those of its body")
    code = shot_codes(settings, meshes.stage).code(float(settings.start))
    topology, turn = meshes.topology(code), turn_matrix(rotation, orientation)
    first = meshes.points(code) @ turn.T + np.asarray(translation, float)
    if not len(first):
        raise InputError(f"deform_mesh: {path.name}: holds no points; choose a mesh by prim")
    rest, now = (np.asarray(particles[name], float) for name in (REST, "position"))
    told = hashlib.sha256(rest.tobytes() + first.tobytes()).hexdigest()
    binding = kept.get(("bound vertices", *stamp(path), prim, told), lambda: bound(first, rest))
    nearest = binding.vertices[np.arange(len(first)), binding.weights.argmax(axis=1)]
    attributes: dict[str, np.ndarray] = {REST: first.astype(np.float32)}
    attributes |= {"material": particles["material"][nearest]} if "material" in particles else {}
    velocities = np.asarray(particles["velocity"], float)[nearest] if "velocity" in particles else None
    points = carried(binding, now)
    return Mesh(points, topology.counts, topology.indices, None, velocities, attributes, particles.materials)
