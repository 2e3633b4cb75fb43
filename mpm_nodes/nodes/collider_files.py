"""Collider shapes from files: level sets of .vdb files, and meshes of USD stages turned into level sets.

What is costly (reading, distances) is kept within the cook's memory limit: a still collider is built once a shot, and the
solver sees that it is the same object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import FrameContext, InputError, LevelSet, Mesh
from mpm_nodes.graph.clock import Clock
from mpm_nodes.graph.kept import Kept
from mpm_nodes.nodes.collider_motion import Motion, key_frames, key_times, sampled

MOST_KEYS = 16
"""Level sets that a deforming mesh may take per frame."""


def untold(kept: Kept, key: tuple[Hashable, ...], warnings: Sequence[str], anew: bool) -> tuple[str, ...]:
    """Return the warnings that were not given for this key before; `anew` (a shot begins) forgets what was."""
    told: set[str] = kept.get(("told", *key), set)
    if anew:
        told.clear()
    new = tuple(warning for warning in warnings if warning not in told)
    told.update(new)
    return new


def stamp(path: Path) -> tuple[str, int, int]:
    """Return what tells versions of a file apart.

    Raises:
        InputError: There is no such file.
    """
    try:
        facts = path.stat()
    except OSError:
        raise InputError(f"{path}: no such file; give the path of a file that is there") from None
    return str(path), facts.st_size, facts.st_mtime_ns


# ---------------------------------------------------------------- OpenVDB
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
                f"{where}: its voxels are not cubes ({axes} m), so its values are no distances; "
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
    frames = [ctx.frame] if ctx.frame <= ctx.settings.start else [ctx.frame - 1, ctx.frame]
    bodies = tuple(first(numbered(path, frame + offset)) for frame in frames)
    return bodies, key_times(ctx, np.array(frames, float))


# ---------------------------------------------------------------- USD
@dataclass(frozen=True)
class MeshOptions:
    """How meshes become level sets.

    Attributes:
        voxel_size: [m]; 0 chooses half a cell, less where the mesh is thinner.
        cell_size: [m].
        thickness: 0 for the inside of a closed mesh, else the thickness of a sheet [m].
    """

    voxel_size: float
    cell_size: float
    thickness: float

    @property
    def voxel(self) -> float:
        """Voxel edge to begin with [m]."""
        if self.voxel_size > 0.0:
            return self.voxel_size
        half = 0.5 * self.cell_size
        return min(half, 0.5 * self.thickness) if self.thickness > 0.0 else half


@dataclass(frozen=True, eq=False)
class MeshBody:
    """Level sets of a mesh over one frame.

    Attributes:
        level_sets: One, or one per key.
        times: Their times [s].
        motion: Rigid motion of the level sets.
        mesh: The mesh at the end of the frame, or None.
        warnings: What the user should know and was not told yet.
    """

    level_sets: tuple[Any, ...]
    times: np.ndarray
    motion: Motion
    mesh: Mesh
    warnings: tuple[str, ...]


def usd_body(ctx: FrameContext, kept: Kept, path: Path, prim: str, options: MeshOptions, offset: float) -> MeshBody:
    """Return the body that the meshes at or below a prim make during this frame.

    Raises:
        InputError: As `usd_io.collider_meshes.StageMeshes`, or the mesh has no inside.
    """
    from usd_io.collider_meshes import StageMeshes

    file = stamp(path)
    meshes = kept.get(("stage", *file, prim), lambda: StageMeshes(path, prim), lambda _: file[1])  # as much as its file
    frames = key_frames(ctx)
    clock, codes = Clock.of(ctx.settings), float(meshes.stage.GetTimeCodesPerSecond())

    def code(frame: float) -> float:
        return clock.code(frame + sampled(ctx, "frame_offset", offset, frame), codes)

    reference, last = code(ctx.settings.start), code(frames[-1])
    topology = meshes.topology(last)
    shown = Mesh(meshes.points(last), topology.counts, topology.indices)
    key, begins = ("mesh", *file, prim, reference, options), ctx.frame <= ctx.settings.start
    found = _rigid_poses(meshes, code, ctx.settings.start, frames)
    if found is not None:
        frames, motions = found
        level_set, centre, warnings = kept.get(key, lambda: _rigid(meshes, reference, options))
        poses = Motion(
            key_times(ctx, frames),
            np.array([_nearest_rotation(m[:3, :3]) for m in motions]),
            np.array([m[:3, :3] @ centre + m[:3, 3] for m in motions]),
        )
        return MeshBody((level_set,), np.zeros(1), poses, shown, untold(kept, key, warnings, begins))
    level_sets, times, warnings = _deforming(ctx, meshes, code, options)
    still = Motion(np.zeros(1), np.eye(3)[None], np.zeros((1, 3)))
    return MeshBody(level_sets, times, still, shown, untold(kept, key, warnings, begins))


def _rigid_poses(
    meshes: Any, code: Callable[[float], float], start: float, frames: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return frames and the rigid motions from the start frame to them, or None for a body that deforms.

    Stages that animate matrices interpolate them entry by entry, which is no rotation between two samples. So the samples
    decide, and the frames between them are left out where the stage gives no rotation there.
    """
    first, last = code(frames[0]), code(frames[-1])
    scale = (frames[-1] - frames[0]) / (last - first) if last > first else 0.0
    authored = [frames[0] + scale * (sample - first) for sample in meshes.authored_codes(first, last)]
    sure = np.unique([frames[0], *authored, frames[-1]])
    motions = meshes.rigid_motion(code(start), [code(frame) for frame in sure])
    if motions is None:
        return None
    if all(np.array_equal(motion, motions[-1]) for motion in motions):
        return frames[-1:], motions[-1:]
    every = np.unique([*sure, *frames])
    finer = meshes.rigid_motion(code(start), [code(frame) for frame in every])
    return (sure, motions) if finer is None else (every, finer)


def _nearest_rotation(matrix: np.ndarray) -> np.ndarray:
    """Return the rotation nearest to a matrix that is one up to rounding."""
    u, _, v = np.linalg.svd(matrix)
    return u @ v


def _rigid(meshes: Any, reference: float, options: MeshOptions) -> tuple[Any, np.ndarray, tuple[str, ...]]:
    """Return the level set of a mesh about its middle, that middle [m], and warnings."""
    points = meshes.points(reference)
    solid = _Solid(meshes, meshes.topology(reference), points, options)
    used = points[np.unique(solid.triangles[solid.triangles < len(points)])]
    centre = 0.5 * (used.min(axis=0) + used.max(axis=0))
    level_set = solid.level_set(points - centre, None)
    return level_set, centre, tuple(solid.warnings)


class _Solid:
    """One topology made solid: triangles to measure distances to, for any points that it is given."""

    def __init__(self, meshes: Any, topology: Any, points: np.ndarray, options: MeshOptions) -> None:
        from mpm_nodes.kernels.level_sets.mesh_repair import solid_mesh, triangulate

        self.name, self.options, self.voxel = meshes.name, options, options.voxel
        self.warnings: list[str] = []
        triangles, _ = triangulate(topology.counts, topology.indices)
        if not len(triangles):
            raise InputError(f"{self.name}: the mesh has no faces; a collider needs a surface")
        self.repair = None
        if options.thickness > 0.0:
            self.triangles = triangles
            if options.voxel_size > 0.5 * options.thickness:
                self.warnings.append(
                    f"{self.name}: a thickness of {options.thickness:g} m is less than two voxels of "
                    f"{options.voxel_size:g} m and may leak; lower voxel_size or leave it 0"
                )
            return
        self.repair = solid_mesh(points, triangles, self.name)
        self.triangles = self.repair.triangles
        if self.repair.findings():
            self.warnings.append(f"{self.name}: imperfect mesh: {self.repair.findings()}; inside by winding number")

    def level_set(self, points: np.ndarray, velocities: np.ndarray | None) -> Any:
        """Return the level set at these points [m]; refines the voxels while thin parts are lost, when it may choose."""
        from mpm_nodes.kernels.level_sets.mesh_level_set import lost_share, mesh_level_set

        if self.repair is not None:
            points = self.repair.extended(points)
            velocities = None if velocities is None else self.repair.extended(velocities)
        for attempt in range(3):
            try:
                made = mesh_level_set(points, self.triangles, self.voxel, self.options.thickness, velocities, self.name)
                lost = 0.0 if self.options.thickness > 0.0 else lost_share(made, points, self.triangles)
            except InputError:
                if self.options.voxel_size > 0.0 or attempt == 2:
                    raise
                lost = 1.0
            if lost < 0.005:
                break
            if self.options.voxel_size > 0.0 or attempt == 2:
                self.warnings.append(
                    f"{self.name}: {100.0 * lost:.1f} % of the faces lie on parts thinner than the voxel of "
                    f"{self.voxel:g} m and may leak; lower voxel_size or give a thickness"
                )
                break
            self.voxel *= 0.5
        return made


def _deforming(
    ctx: FrameContext, meshes: Any, code: Callable[[float], float], options: MeshOptions
) -> tuple[tuple[Any, ...], np.ndarray, tuple[str, ...]]:
    """Return level sets of a deforming mesh, their times [s], and warnings: as many keys as its motion needs."""
    frames = key_frames(ctx, 1)
    topology = meshes.topology(code(frames[-1]))
    final = meshes.points(code(frames[-1]))
    solid = _Solid(meshes, topology, final, options)
    warnings: list[str] = []
    same = all(meshes.topology(code(frame)).digest == topology.digest for frame in frames)
    if len(frames) == 2:
        frames = _keys_for(meshes, code, frames, options.voxel, same, warnings)
    times = key_times(ctx, frames)
    poses = [meshes.points(code(frame)) for frame in frames[:-1]] + [final]
    if not same:
        warnings.append(
            f"{meshes.name}: the topology changes between frame {frames[0]:g} and {frames[-1]:g}; "
            f"its velocity is estimated from the moving surface"
        )
        solids = [
            _Solid(meshes, meshes.topology(code(frame)), points, options) for frame, points in zip(frames, poses, strict=True)
        ]
        made = tuple(one.level_set(points, None) for one, points in zip(solids, poses, strict=True))
        return made, times, tuple(dict.fromkeys([*warnings, *solid.warnings]))
    speeds = [_velocity(poses, times, k) for k in range(len(poses))]
    made = tuple(solid.level_set(points, speed) for points, speed in zip(poses, speeds, strict=True))
    return made, times, tuple(dict.fromkeys([*warnings, *solid.warnings]))


def _velocity(poses: list[np.ndarray], times: np.ndarray, k: int) -> np.ndarray:
    """Return the points' velocities [m/s] at key k: central differences, one-sided at the ends."""
    before, after = max(k - 1, 0), min(k + 1, len(poses) - 1)
    if before == after:
        return np.zeros_like(poses[k])
    return (poses[after] - poses[before]) / (times[after] - times[before])


def _keys_for(
    meshes: Any, code: Callable[[float], float], frames: np.ndarray, voxel: float, same: bool, warnings: list[str]
) -> np.ndarray:
    """Return frames of keys between which no vertex moves by more than a voxel, as far as MOST_KEYS allows."""
    first, last = frames
    if not same:
        return np.linspace(first, last, 5)
    probes = [meshes.points(code(frame)) for frame in np.linspace(first, last, 5)]
    steps = [np.linalg.norm(b - a, axis=1).max(initial=0.0) for a, b in pairwise(probes)]
    needed = int(np.ceil(4.0 * max(steps) / voxel))
    if needed > MOST_KEYS:
        warnings.append(
            f"{meshes.name}: vertices move up to {4.0 * max(steps) / voxel:.0f} voxels in frame {last:g}, "
            f"{MOST_KEYS} are followed exactly; raise voxel_size or slow the collider down"
        )
    return np.linspace(first, last, min(max(needed, 1), MOST_KEYS) + 1)
