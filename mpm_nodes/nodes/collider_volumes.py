"""Collider shapes from .vdb files: level sets, of one file or of a sequence."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import FrameContext, GraphSettings, InputError, LevelSet, Mesh
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.nodes.collider_files import stamp
from mpm_nodes.nodes.collider_motion import key_times


@dataclass(frozen=True, eq=False)
class VdbBody:
    """One .vdb file as a body: its level set ready to sample, and the mesh that shows it (in the body's frame)."""

    level_set: Any
    mesh: Mesh


def numbered(path: Path, frame: int) -> Path:
    """Return the file of a sequence for a frame: #### or the last number of the name is replaced.

    Raises:
        InputError: The name has no number.
    """
    hashes = re.search(r"#+", path.name)
    if hashes:
        return path.with_name(path.name.replace(hashes[0], f"{frame:0{len(hashes[0])}d}", 1))
    digits = re.search(r"(\d+)(\D*)$", path.stem)
    if not digits:
        raise InputError(f"{path}: the name has no frame number; name the files like name.0001.vdb or give name.####.vdb")
    return path.with_name(f"{path.stem[: digits.start()]}{frame:0{len(digits[1])}d}{digits[2]}{path.suffix}")


def vdb_body(kept: Kept, path: Path, grid: str, velocity_grid: str, scale: float, resample: bool) -> VdbBody:
    """Return the body in a .vdb file.

    Args:
        kept: Where bodies are kept between frames.
        path: The file.
        grid: Name of the level set.
        velocity_grid: Name of the velocity grid [m/s], used when the file has it; empty for none.
        scale: Factor on all lengths.
        resample: Rebuild the distances of a level set whose voxels are not cubes, instead of refusing it.

    Raises:
        InputError: The file cannot be read, the grid is missing or is not a level set, or its voxels are not cubes.
    """
    key = ("vdb", *stamp(path), grid, velocity_grid, scale, resample)
    return kept.get(key, lambda: _vdb_body(path, grid, velocity_grid, scale, resample))


def _vdb_body(path: Path, grid: str, velocity_grid: str, scale: float, resample: bool) -> VdbBody:
    from mpm_nodes.kernels.level_sets.build import leaf_level_set
    from usd_io.volumes import read_volumes

    found = read_volumes(path)
    if grid not in found:
        raise InputError(f"{path}: has no grid '{grid}'; it has {', '.join(sorted(found)) or 'none that can be read'}")
    info = found[grid]
    where = f"{path}: grid '{grid}'"
    if info.kind in ("fog", "vector") or not info.level_set.background > 0.0:
        raise InputError(f"{where} is a {info.kind} grid, not a level set; write signed distances with class level set")
    matrix = np.diag([scale, scale, scale, 1.0]) @ info.transform
    mesh = _index_mesh(info.level_set, matrix)
    if not info.uniform:
        if not resample:
            axes = " x ".join(f"{length:.4g}" for length in np.linalg.norm(matrix[:3, :3], axis=0))
            raise InputError(
                f"{where}: its voxels are not cubes ({axes} m), so its values are not distances; "
                f"turn resample on or write it with a uniform transform"
            )
        return VdbBody(_redistanced(mesh, matrix, where), mesh)
    voxel = float(np.cbrt(abs(np.linalg.det(matrix[:3, :3]))))
    origins, values = np.asarray(info.level_set.origins, np.int64), info.level_set.values * np.float32(scale)
    band = float(info.level_set.background) * scale
    if band < 2.0 * voxel:
        raise InputError(
            f"{where}: its band is {band / voxel:.2g} voxels wide, at least 2 are needed (3 is usual); write it with half width 3"
        )
    solid = (np.abs(values) < 0.999 * band).any(axis=(1, 2, 3))  # constant leaves come back as signs of the table
    origins, values = origins[solid], values[solid]
    speeds = None
    if velocity_grid and velocity_grid in found and found[velocity_grid].kind == "vector":
        speeds = _velocities_at(found[velocity_grid], origins, values, band, matrix, scale)
    to_index = np.linalg.inv(matrix)[:3]
    return VdbBody(leaf_level_set(origins, values, band, to_index, voxel, speeds, where), mesh)


def _index_mesh(level_set: LevelSet, matrix: np.ndarray) -> Mesh:
    """Return the zero surface, meshed in voxel units and carried by the transform."""
    from usd_io.volumes import mesh_level_set

    mesh = mesh_level_set(replace(level_set, voxel_size=1.0, origin=(0.0, 0.0, 0.0), kind="level_set"))
    indices = np.asarray(mesh.indices)
    if np.linalg.det(matrix[:3, :3]) < 0.0 and len(indices):
        indices = indices[::-1]
        return Mesh(mesh.points @ matrix[:3, :3].T + matrix[:3, 3], np.asarray(mesh.counts)[::-1], indices)
    return Mesh(mesh.points @ matrix[:3, :3].T + matrix[:3, 3], mesh.counts, indices)


def _redistanced(mesh: Mesh, matrix: np.ndarray, where: str) -> Any:
    """Return true distances to a mesh, at the finest edge of the voxels that it came from."""
    from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate

    if not len(mesh.counts):
        raise InputError(f"{where}: the level set has no surface; a collider needs one")
    triangles, _ = triangulate(mesh.counts, mesh.indices)
    return mesh_level_set(mesh.points, triangles, float(np.linalg.norm(matrix[:3, :3], axis=0).min()), name=where)


def _velocities_at(info: Any, origins: np.ndarray, values: np.ndarray, band: float, matrix: np.ndarray, scale: float) -> np.ndarray:
    """Return the velocity grid at the voxels of a level set, shape (n, 8, 8, 8, 3) [m/s].

    Voxels beyond the band, where velocity grids hold nothing, take the mean of their leaf's band.
    """
    from mpm_nodes.kernels.level_sets.vector_leaves import sample_vectors

    node = np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1)
    index = (origins[:, None, None, None, :] + node).reshape(-1, 3)
    world = index @ matrix[:3, :3].T + matrix[:3, 3]
    there = np.linalg.inv(np.diag([scale, scale, scale, 1.0]) @ info.transform)
    speeds, held = sample_vectors(info.level_set.origins, info.level_set.values, world @ there[:3, :3].T + there[:3, 3])
    speeds = scale * speeds.reshape(-1, 512, 3)
    trusted = (np.abs(values.reshape(-1, 512)) < 0.999 * band) & held.reshape(-1, 512)
    number = np.maximum(trusted.sum(axis=1, keepdims=True), 1)
    mean = (speeds * trusted[..., None]).sum(axis=1) / number
    speeds = np.where(trusted[..., None], speeds, mean[:, None])
    return speeds.reshape(-1, 8, 8, 8, 3).astype(np.float32)


def vdb_sequence(
    ctx: FrameContext, path: Path, first: Callable[[Path], VdbBody], offset: int
) -> tuple[tuple[VdbBody, ...], np.ndarray]:
    """Return the bodies at the start and the end of this frame and their times [s]."""
    bodies = tuple(first(file) for file in sequence_files(ctx.frame, ctx.settings, path, offset))
    return bodies, key_times(ctx, np.arange(ctx.frame + 1 - len(bodies), ctx.frame + 1, dtype=float))


def sequence_files(frame: int, settings: GraphSettings, path: Path, offset: int) -> list[Path]:
    """Return the files of a sequence at the start and the end of a frame; that of the frame alone where the shot begins.

    Raises:
        InputError: The name has no number.
    """
    frames = [frame] if frame <= settings.start else [frame - 1, frame]
    return [numbered(path, each + offset) for each in frames]
