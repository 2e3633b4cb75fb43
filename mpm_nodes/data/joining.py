"""Particles of several sources as one set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpm_nodes.data.errors import MpmNodesError
from mpm_nodes.data.values import Material, Particles

__all__ = ["concatenate", "merge_materials"]


def merge_materials(parts: Sequence[Particles]) -> tuple[tuple[Material, ...], list[np.ndarray]]:
    """Return the distinct materials of all parts, and for each part the new index of each of its materials."""
    materials: list[Material] = []
    remaps = [np.array([_index_of(materials, material) for material in part.materials] or [0], np.int32) for part in parts]
    return tuple(materials), remaps


def concatenate(parts: Sequence[Particles]) -> Particles:
    """Join particles; columns missing in a part take the attribute's rest value, ids are renumbered, materials merged."""
    parts = [part for part in parts if part is not None]
    names: list[str] = list(dict.fromkeys(name for part in parts for name in part.attributes))
    if any(part.materials for part in parts) and "material" not in names:
        names.append("material")
    materials, remaps = merge_materials(parts)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for part, remap in zip(parts, remaps, strict=True):
        for name in names:
            column = part.attributes.get(name)
            if name == "material":
                column = remap[np.zeros(len(part), np.int32) if column is None else column]
            elif column is None:
                known = next((p.field(name) for p in parts if p.field(name)), None)
                if known is None:
                    like = next(p[name] for p in parts if name in p)
                    column = np.zeros((len(part), *like.shape[1:]), like.dtype)
                else:
                    column = known.rest_values(len(part))
            columns[name].append(column)
    for name, given in columns.items():
        kinds = {np.shape(each)[1:] for each in given}
        if len(kinds) > 1:
            raise MpmNodesError(
                f"attribute '{name}' has numbers on some particles and vectors on others; name one of them otherwise"
            )
    merged = {name: np.concatenate(column) for name, column in columns.items()} if parts else {"position": np.zeros((0, 3))}
    merged["id"] = np.arange(len(merged["position"]), dtype=np.int64)
    spacing = min((part.spacing for part in parts), default=0.01)
    own = {name: description for part in parts for name, description in part.fields.items()}
    return Particles(merged, materials, spacing, max((part.time for part in parts), default=0.0), own)


def _index_of(materials: list[Material], material: Material) -> int:
    if material not in materials:
        materials.append(material)
    return materials.index(material)
