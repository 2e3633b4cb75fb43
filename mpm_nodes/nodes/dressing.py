"""What a mesh around particles carries of them: velocities, attributes, materials and colours."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from mpm_nodes.data import Mesh, Particles
from mpm_nodes.materials.looks import find_look, looks_of
from mpm_nodes.nodes.colours import COLOUR, shown_colours
from mpm_nodes.nodes.derived import column

if TYPE_CHECKING:
    from mpm_nodes.kernels.surfaces.splat import SortedParticles

__all__ = ["dressed", "with_columns"]


def with_columns(where: str, particles: Particles, names: tuple[str, ...]) -> Particles:
    """Return particles that have a column under each of the names.

    Args:
        where: Node and knob, for messages.
        particles: Whose.
        names: Of columns, also of computed ones (`nodes.derived`).

    Raises:
        MpmNodesError: They have nothing of such a name.
    """
    asked = {name: column(where, particles, name) for name in names if name not in particles}
    return dataclasses.replace(particles, attributes={**particles.attributes, **asked}) if asked else particles


def dressed(mesh: Mesh, particles: Particles, bins: SortedParticles, reach: float, names: tuple[str, ...]) -> Mesh:
    """Return the mesh with velocities and attributes averaged from the particles.

    Materials do not mix: each point has the material, and the colour, of which most is near.

    Args:
        mesh: Bare mesh.
        particles: What it is around.
        bins: The same, sorted.
        reach: How far a particle counts [m].
        names: Of the particles' columns, besides the velocity and what looks ask for.
    """
    from mpm_nodes.kernels.surfaces.averages import average_at_points

    glowing = any(find_look(look).glows for look in looks_of(particles.materials))
    names = (*names, "temperature") if glowing else names
    carried = [name for name in dict.fromkeys(("velocity", *names)) if name in particles and name not in ("material", COLOUR)]
    columns = [
        np.asarray(particles[name], np.float32).reshape(len(particles), math.prod(particles[name].shape[1:])) for name in carried
    ]
    if columns and len(mesh.points):
        mixed = average_at_points(bins, np.concatenate(columns, axis=1), mesh.points, reach)
    else:
        mixed = np.zeros((len(mesh.points), sum(column.shape[1] for column in columns)), np.float32)
    parts = (
        dict(zip(carried, np.split(mixed, np.cumsum([c.shape[1] for c in columns])[:-1], axis=1), strict=True)) if columns else {}
    )
    shaped = {name: part.reshape(len(part), *particles[name].shape[1:]) for name, part in parts.items()}
    shaped.update(_paint(mesh, particles, bins, reach, "material" in names or len(particles.materials) > 1))
    return dataclasses.replace(mesh, velocities=shaped.pop("velocity", None), attributes=shaped, materials=particles.materials)


def _paint(mesh: Mesh, particles: Particles, bins: SortedParticles, reach: float, material: bool) -> dict[str, np.ndarray]:
    """Return colour and, where it is asked for, material of the mesh points: those of which most is near."""
    from mpm_nodes.kernels.surfaces.averages import average_at_points

    colours = shown_colours(particles)
    if colours is None and not material:
        return {}
    index = np.asarray(particles["material"], np.int32) if "material" in particles else np.zeros(len(particles), np.int32)
    present = np.unique(index) if len(index) else np.zeros(1, np.int32)
    seen = np.zeros((len(particles), 3), np.float32) if colours is None else colours
    weighted = [np.column_stack([here, here[:, None] * seen]) for here in ((index == k).astype(np.float32) for k in present)]
    if len(mesh.points) == 0:
        mixed = np.zeros((0, len(present), 4), np.float32)
    else:
        mixed = average_at_points(bins, np.concatenate(weighted, axis=1), mesh.points, reach).reshape(len(mesh.points), -1, 4)
    most = mixed[..., 0].argmax(axis=1)
    chosen = mixed[np.arange(len(mixed)), most]
    found: dict[str, np.ndarray] = {}
    if colours is not None:
        found[COLOUR] = chosen[:, 1:] / np.maximum(chosen[:, :1], np.float32(1e-6))
    if material:
        found["material"] = present[most].astype(np.int32)
    return found
