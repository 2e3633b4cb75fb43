"""Level sets, fogs and vector grids to and from .vdb files, and level sets to meshes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import InputError, LevelSet, Mesh, OutputError
from mpm_nodes.regular_files import check_utf8
from usd_io.openvdb_module import find_openvdb
from usd_io.vdb_file import grid_table, stamp_digest
from usd_io.vdb_grids import LARGEST_READ, VolumeInfo, grid_from_level_set
from usd_io.vdb_reader import read_in_child

__all__ = ["mesh_level_set", "read_volumes", "write_volumes"]


# ---------------------------------------------------------------- writing
def write_volumes(
    path: str | Path,
    volumes: Sequence[LevelSet],
    metadata: Mapping[str, Any] | None = None,
    half: bool = False,
) -> None:
    """Write grids into one .vdb file; equal input gives equal bytes.

    Args:
        path: File to write, replaced when it exists. The caller renames it into place.
        volumes: Grids with different names.
        metadata: File metadata: numbers, strings, booleans, 3-tuples.
        half: Store values in 16 bits.

    Raises:
        OutputError: Equal names, misshapen or non-finite values, or the file cannot be written whole.
    """
    path = Path(path)
    names = [volume.name for volume in volumes]
    if len(set(names)) < len(names) or not names:
        raise OutputError(f"{path}: grids named {names}; give at least one grid and every grid a name of its own")
    vdb = find_openvdb()
    grids = []
    for volume in volumes:
        grid = grid_from_level_set(volume)
        grid.saveFloatAsHalf = half
        grids.append(grid)
    try:
        check_utf8(path)
        vdb.write(str(path), grids, dict(metadata or {}))
        end = max(entry.end for entry in grid_table(path))  # the library does not always notice a full disk
        if end != os.path.getsize(path):
            raise OutputError(f"{path}: written only in part; free some disk space and resume")
        stamp_digest(path)
    except (OSError, RuntimeError, InputError) as error:
        raise OutputError(f"{path}: cannot be written ({error}); check folder, permissions and free space") from error


def mesh_level_set(volume: LevelSet, adaptivity: float = 0.0, isovalue: float = 0.0) -> Mesh:
    """Return the surface of a level set as triangles and quads, counter-clockwise seen from outside.

    Args:
        volume: Level set in world units.
        adaptivity: 0 (quads of a voxel) to 1 (few, large polygons).
        isovalue: Distance [m] of the surface.

    Returns:
        Mesh: float64 points [m], without normals; no points for a level set without a surface.

    The mesher works in float32 world space, so the level set is meshed beside the origin and moved back in float64.
    """
    if not len(volume.origins):
        return Mesh(np.zeros((0, 3)), np.zeros(0, np.int32), np.zeros(0, np.int32))
    base = np.asarray(volume.origins, np.int64).min(axis=0)
    near = replace(volume, origins=np.asarray(volume.origins, np.int64) - base, origin=(0.0, 0.0, 0.0))
    points, triangles, quads = grid_from_level_set(near).convertToPolygons(isovalue, adaptivity)
    points = points.astype(np.float64) + (base * volume.voxel_size + np.asarray(volume.origin, np.float64))
    # OpenVDB winds its polygons inward for a right-handed reader.
    faces = (quads[:, ::-1].reshape(-1), triangles[:, ::-1].reshape(-1))
    counts = np.repeat(np.array([4, 3], np.int32), (len(quads), len(triangles)))
    return Mesh(points, counts, np.concatenate(faces).astype(np.int32))


# ---------------------------------------------------------------- reading
def read_volumes(
    path: str | Path,
    names: Sequence[str] | None = None,
    timeout: float = 60.0,
    largest: int = LARGEST_READ,
) -> dict[str, VolumeInfo]:
    """Read float and vector grids of a .vdb file of any origin, in a child process with a time limit.

    Damaged files can crash or hang the library, which must not take this process along. Constant tiles (the solid
    inside of a level set) come back as leaves, so that a point inside is seen as inside.

    Args:
        path: The file.
        names: Grids wanted; all that can be read when None.
        timeout: Seconds allowed.
        largest: Bytes of voxels allowed.

    Raises:
        InputError: Missing, damaged or too large file, a grid that is absent or of a type that is not read.
    """
    check_utf8(path)
    return read_in_child(Path(path), None if names is None else list(names), timeout, largest)
