"""The surface that substeps with surface tension sample, as a mesh that carries what the samples carry."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES, A, Material, Mesh, Metres, MpmNodesError, Particles, Range, Unitless, Vec3
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.kernels.surfaces.spheres import REACH
from mpm_nodes.nodes.bodies import passed_on
from mpm_nodes.nodes.derived import known_as, refuse_unknown
from mpm_nodes.nodes.dressing import dressed, with_columns

BYTES = 250
"""What a particle takes at the peak."""
TENSION = "surface_tension"
CARRIED = (TENSION, "temperature", "concentration")
"""What samples carry."""


def _sampled(told: PreflightContext) -> dict[str, Any]:
    particles, matter = told.total("particles", "particles"), passed_on(told)
    refuse_unknown("sampled_surface.attributes", told, *told.knobs["attributes"])
    if not matter["untold"]:
        _refuse_slack([body.material for body in matter["bodies"]])
    # two triangles a cell of each side of a cube, both sides of what falls and spreads
    return {"memory": BYTES * int(particles), "mesh_points": int(12.0 * (particles / 8.0) ** (2.0 / 3.0))}


def _refuse_slack(materials: Sequence[Material]) -> None:
    if all(each.surface_tension is None for each in materials):
        labels = ", ".join(dict.fromkeys(each.label or each.law for each in materials)) or "none"
        raise MpmNodesError(
            f"sampled_surface: no material has a surface tension ({labels}); wire material_surface_tension, or take "
            "surface_particles"
        )


@node(category="Surface", label="Sampled Surface", version=1, preflight=_sampled)
def sampled_surface(
    particles: Particles,
    *,
    radius: A[float, Unitless, Range(min=0.5, max=1.0)] = 0.867,
    shift: bool = True,
    origin: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    attributes: tuple[str, ...] = (),
) -> Mesh:
    """Mesh the surface on which substeps with surface tension put their samples, with the tension that they have.

    It is closed, and as coarse as the grid: for a look at what drives the matter, and for textures that follow soap or heat. For
    smooth pictures take surface_particles, which carries the same values if its attributes name them. Liquids of a pair
    (material_interface_tension) have a surface each, and `covered` tells how far other matter lies behind it, from 0 to 1.

    Args:
        particles: Particles of a solve.
        radius: Of the spheres, in cells of two spacings; the one of the stage sample_surface.
        shift: Whether the surface is drawn in to where the matter ends; as in the stage.
        origin: A node of the grid. The low corner of the solve's walls puts the nodes where the stage has them.
        attributes: Further particle attributes carried to the mesh points, besides velocity, `surface_tension` [N/m], `temperature`
            and `concentration`.

    Raises:
        MpmNodesError: No material has a surface tension, or particles lack an attribute.

    Source: C21 sections 3.3 and 4.1.
    """
    from mpm_nodes.kernels.surfaces.splat import bin_particles
    from mpm_nodes.physics.surface_tension.materials import covering, pairs_of
    from mpm_nodes.physics.surface_tension.numerics.sampled_mesh import sampled_meshes

    _refuse_slack(particles.materials)
    names = (*(name for name in CARRIED if known_as(particles, name)), *attributes)
    particles = with_columns("sampled_surface.attributes", particles, names)
    reach = REACH * particles.spacing
    pairs, parts = pairs_of(particles.materials), []
    for part in sampled_meshes(particles, radius, shift, origin):
        own = dataclasses.replace(particles, attributes={name: held[part.inside] for name, held in particles.attributes.items()})
        counts = np.full(len(part.corners), 3, np.int32)
        mesh = Mesh(part.points, counts, part.corners.astype(np.int32).ravel(), _normals(part.points, part.corners))
        mesh = dressed(mesh, own, bin_particles(own["position"], reach), reach, names)
        told = dict(mesh.attributes)
        if pairs is not None:
            warmth = told.get("temperature", ATTRIBUTES["temperature"].rest_values(len(mesh.points), np.float64))
            covered, interface = covering(part.group, part.shares, pairs, warmth)
            told["covered"] = covered.astype(np.float32)
            told[TENSION] = (told[TENSION] + covered * (interface - told[TENSION])).astype(np.float32)
        parts.append(dataclasses.replace(mesh, attributes=told))
    return _joined(parts) if parts else Mesh(np.zeros((0, 3)), np.zeros(0, np.int32), np.zeros(0, np.int32))


def _normals(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return the mean outward normals of the triangles around each point, by area, shape (n, 3)."""
    a, b, c = (points[corners[:, n]] for n in range(3))
    found, around = np.zeros_like(points), np.cross(b - a, c - a)
    for n in range(3):
        np.add.at(found, corners[:, n], around)
    return (found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)).astype(np.float32)


def _joined(parts: list[Mesh]) -> Mesh:
    """Return meshes that carry the same as one."""
    before = np.cumsum([0, *(len(part.points) for part in parts)])

    def all_of(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])

    return dataclasses.replace(
        parts[0],
        points=all_of("points"),
        counts=all_of("counts"),
        indices=np.concatenate([part.indices + shift for part, shift in zip(parts, before.astype(np.int32), strict=False)]),
        normals=all_of("normals"),
        velocities=all_of("velocities") if parts[0].velocities is not None else None,
        attributes={name: np.concatenate([part.attributes[name] for part in parts]) for name in parts[0].attributes},
    )
