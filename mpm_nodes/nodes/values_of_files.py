"""Values of files at places: VDB grids through space, primvars over the faces of USD meshes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import GraphSettings, InputError, MpmNodesError, SurfaceField, Vec3
from mpm_nodes.graph.clock import Clock
from mpm_nodes.graph.declare import ContentsContext
from mpm_nodes.graph.kept import Kept
from mpm_nodes.nodes.collider_files import open_meshes, stamp

__all__ = ["GridValues", "field_of", "grid_values", "primvar_contents", "primvar_values", "volume_of", "voxels"]


def field_of(where: str, places: np.ndarray, values: np.ndarray, edge: float, rest: float) -> SurfaceField:
    """Return the field of samples; `where` is the node and knob that messages name."""
    try:
        return SurfaceField.of_samples(places, values, edge, rest)
    except MpmNodesError as error:
        raise MpmNodesError(f"{where}: {error}") from None


def primvar_values(
    where: str, file: tuple[Path, str, str], frame: float, settings: GraphSettings, kept: Kept
) -> tuple[np.ndarray, np.ndarray]:
    """Return places on USD meshes [m], shape (n, 3), and what a primvar has there, shape (n,).

    Args:
        where: Node that messages name.
        file: Path, prim at or below which meshes are taken, and name of the primvar.
        frame: Frame at which they are read.
        settings: Of the graph.
        kept: What the node keeps between frames.

    Raises:
        InputError: The file cannot be read, or a mesh has no such primvar.
        MpmNodesError: The meshes are too large for the cells.
    """
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

    path, prim, primvar = file
    meshes = open_meshes(kept, path, prim)
    code = Clock.of(settings).code(frame, float(meshes.stage.GetTimeCodesPerSecond()))
    topology, points, values = meshes.topology(code), meshes.points(code), meshes.values(primvar, code)
    return _over_faces(where, points, values, triangulate(topology.counts, topology.indices)[0], 0.5 * settings.cell_size)


def primvar_contents(told: ContentsContext) -> str:
    """Say what counts of meshes and their primvar: at the frame that the node names, or at that of the shot."""
    meshes = open_meshes(told.kept, told.path, told.knobs["prim"])
    frame = told.knobs["frame"] if "frame" in told.knobs else told.frame + told.knobs["frame_offset"]
    code = Clock.of(told.settings).code(frame, float(meshes.stage.GetTimeCodesPerSecond()))
    return str(meshes.digest([code], primvar=told.knobs["primvar"]))


def volume_of(kept: Kept, path: Path, grid: str) -> Any:
    """Return a grid of numbers of a .vdb file (`usd_io.vdb_grids.VolumeInfo`)."""
    return kept.get(("values", *stamp(path), grid), lambda: _read(path, grid))


def _read(path: Path, grid: str) -> Any:
    from usd_io.volumes import read_volumes

    found = read_volumes(path, [grid])[grid]
    if found.kind in ("vector", "level_set"):
        raise InputError(f"{path}: grid '{grid}' is a {found.kind.replace('_', ' ')}; name a grid of numbers")
    return found


@dataclass(frozen=True, eq=False)
class GridValues:
    """A grid of numbers of a .vdb file, through space and trilinear.

    Attributes:
        origins: First voxel of each leaf, shape (leaves, 3).
        values: Sum of what is known, shape (leaves, 8, 8, 8, 3): the value, whether there is one, nothing.
        to_index: From the file's metres to voxel indices, shape (4, 4).
        translate: Moves the grid [m].
        scale: Factor on all lengths of the file.
        outside: Value where the grid holds none.
        fades: Whether values fall off to `outside` over a voxel where the grid ends; else they stay up to half a voxel beyond.
        factor: On the grid's values.
    """

    origins: np.ndarray
    values: np.ndarray
    to_index: np.ndarray
    translate: Vec3 = (0.0, 0.0, 0.0)
    scale: float = 1.0
    outside: float = 0.0
    fades: bool = False
    factor: float = 1.0

    @classmethod
    def of(cls, volume: Any, fades: bool) -> GridValues:
        """Return the values of a grid (`usd_io.vdb_grids.VolumeInfo`)."""
        leaves = volume.level_set
        # the voxels of a leaf that nobody wrote hold the background
        held = leaves.values != np.float32(leaves.background)
        known = np.stack([np.where(held, leaves.values, 0.0), held, np.zeros_like(leaves.values)], axis=-1)
        origins = np.asarray(leaves.origins, np.int64).reshape(-1, 3)
        if fades:
            # voxels outside every leaf are left out of averages: empty leaves all around count as 0
            around = np.stack(np.meshgrid(*(np.array([-8, 0, 8]),) * 3, indexing="ij"), -1).reshape(-1, 3)
            whole, place = np.unique((origins[:, None] + around).reshape(-1, 3), axis=0, return_inverse=True)
            wide = np.zeros((len(whole), *known.shape[1:]), np.float32)
            wide[place.reshape(len(origins), 27)[:, 13]] = known
            origins, known = whole, wide
        return cls(origins, known, np.linalg.inv(volume.transform), fades=fades)

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places [m], shape (n, 3) to (n,)."""
        from mpm_nodes.kernels.level_sets.vector_leaves import sample_vectors

        index = ((places - np.asarray(self.translate)) / self.scale) @ self.to_index[:3, :3].T + self.to_index[:3, 3]
        found, held = sample_vectors(self.origins, self.values, index)
        total, share = found[:, 0], found[:, 1]
        if self.fades:
            return self.factor * total + self.outside * (1.0 - share)
        return np.where(held & (share > 1e-3), self.factor * total / np.maximum(share, 1e-3), self.outside)


def grid_values(kept: Kept, path: Path, grid: str, fades: bool = False) -> GridValues:
    """Return a grid of numbers of a .vdb file as values through space; `fades` as in `GridValues`."""
    return kept.get(("through space", *stamp(path), grid, fades), lambda: GridValues.of(_read(path, grid), fades))


def voxels(volume: Any, scale: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return places [m] and values of all voxels of a grid that differ from its background, and how far apart they lie [m].

    A field of cubes smaller than that would have holes.
    """
    leaves = volume.level_set
    leaf, i, j, k = np.nonzero(leaves.values != np.float32(leaves.background))
    index = np.asarray(leaves.origins, float)[leaf] + np.stack([i, j, k], axis=1)
    apart = scale * float(np.linalg.norm(volume.transform[:3, :3], axis=0).max())
    places = scale * (index @ volume.transform[:3, :3].T + volume.transform[:3, 3])
    return places, leaves.values[leaf, i, j, k].astype(float), apart


def _over_faces(
    where: str, points: np.ndarray, values: np.ndarray, triangles: np.ndarray, spacing: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return places on triangles, no farther than a spacing apart, and the values there, straight between corners."""
    corners, told = points[triangles], values[triangles]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1, initial=0.0)
    parts = np.maximum(np.ceil(longest / spacing), 1.0).astype(np.int64)
    if float((parts.astype(float) ** 2).sum()) > 2e8:
        raise MpmNodesError(f"{where}.path: the meshes are too large for these cells; raise settings.cell_size")
    places, samples = [points], [values]
    for n in np.unique(parts):
        chosen = parts == n
        i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
        a, b = (each[i + j <= n] / n for each in (i, j))
        weights = np.stack([a, b, 1.0 - a - b], axis=1)
        places.append((weights @ corners[chosen]).reshape(-1, 3))
        samples.append((told[chosen] @ weights.T).reshape(-1))
    return np.concatenate(places), np.concatenate(samples)
