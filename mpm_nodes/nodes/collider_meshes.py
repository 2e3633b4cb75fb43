"""Collider shapes from the meshes of USD stages as level sets: one for a rigid mesh, as many as its motion needs for another."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import FrameContext, InputError, Mesh
from mpm_nodes.graph.declare.decorators import ContentsContext
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.nodes.collider_files import open_meshes, shot_codes, stamp
from mpm_nodes.nodes.collider_motion import Motion, key_frames, key_times, sampled

MOST_KEYS = 16
"""Level sets that a deforming mesh may take per frame."""
COARSEST, FINER, FINEST = 0.5, 0.25, 0.125
"""Voxels that are chosen [cells]: as a rule, where parts are thinner, and where the grid would miss the body otherwise.

Nodes lie a cell apart, and voxels of a quarter put four samples between two of them: a crease that ends an eighth of a cell early
acts on the same nodes. A body that is a thin sheet, though, keeps its sides apart only where its level set has it. A rigid body
takes one level set for the shot, a deforming one as many as `MOST_KEYS` + 1 a frame.
"""
THIN, SHEET = 0.005, 0.1
"""Share of the area on parts thinner than a voxel that asks for finer ones, and that makes a deforming body a sheet."""


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
        half = COARSEST * self.cell_size
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
        still: Whether it stands still in every frame.
        before: Points of the mesh as the frame begins, those of `mesh` where it is rigid, None where its topology changes.
    """

    level_sets: tuple[Any, ...]
    times: np.ndarray
    motion: Motion
    mesh: Mesh
    warnings: tuple[str, ...]
    still: bool = False
    before: np.ndarray | None = None


def mesh_contents(told: ContentsContext) -> str:
    """Say what a collider's reader finds in a file at a frame: the meshes at the first frame, and on the way to this one."""
    meshes = open_meshes(told.kept, told.path, told.knobs["prim"])
    codes = shot_codes(told.settings, meshes.stage)
    frames = key_frames(FrameContext(frame=told.frame, settings=told.settings))
    poses = [codes.code(frame + told.sample("frame_offset", frame)) for frame in frames]
    first = codes.code(told.settings.start + told.sample("frame_offset", told.settings.start))
    inside = meshes.authored_codes(min(poses), max(poses))
    return meshes.digest([first, min(poses), *inside, max(poses)], poses)


def usd_body(ctx: FrameContext, kept: Kept, path: Path, prim: str, options: MeshOptions, offset: float) -> MeshBody:
    """Return the body that the meshes at or below a prim make during this frame.

    Raises:
        InputError: As `usd_io.collider_meshes.StageMeshes`, or the mesh has no inside.
    """
    file, meshes = stamp(path), open_meshes(kept, path, prim)
    frames, codes = key_frames(ctx), shot_codes(ctx.settings, meshes.stage)

    def code(frame: float) -> float:
        return float(codes.code(frame + sampled(ctx, "frame_offset", offset, frame)))

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
        return MeshBody(
            (level_set,), np.zeros(1), poses, shown, _untold(kept, key, warnings, begins), meshes.stands_still(), shown.points
        )
    level_sets, times, warnings, before = _deforming(ctx, meshes, code, options)
    still = Motion(np.zeros(1), np.eye(3)[None], np.zeros((1, 3)))
    return MeshBody(level_sets, times, still, shown, _untold(kept, key, warnings, begins), before=before)


def _rigid_poses(
    meshes: Any, code: Callable[[float], float], start: float, frames: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return frames and the rigid motions from the start frame to them, or None for a body that deforms.

    Stages that animate matrices interpolate them entry by entry, which is not a rotation between two samples. So the samples
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
    solid = Solid(meshes, meshes.topology(reference), points, options)
    solid.choose([points], deforms=False)
    used = points[np.unique(solid.triangles[solid.triangles < len(points)])]
    centre = 0.5 * (used.min(axis=0) + used.max(axis=0))
    level_set = solid.level_set(points - centre, None)
    return level_set, centre, tuple(solid.warnings)


class Solid:
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

    def choose(self, poses: Sequence[np.ndarray], deforms: bool) -> None:
        """Choose the voxel by the thinnest of some poses [m], unless it is given; warn where it is not the usual, or too wide."""
        if self.options.thickness > 0.0:
            return
        cell = self.options.cell_size
        while (thin := max(self.thin_share(points, self.voxel) for points in poses)) >= THIN:
            floor = FINER if deforms and thin < SHEET else FINEST
            if self.options.voxel_size > 0.0 or self.voxel < 1.5 * floor * cell:
                break
            self.voxel *= 0.5
        size = f"{self.voxel:.3g} m, {self.voxel / cell:.3g} cells"
        if thin >= THIN:
            cure = "lower voxel_size" if self.options.voxel_size > 0.0 else "set voxel_size"
            text = f"parts of it are thinner than its voxels of {size}, and may leak; {cure} or give a thickness"
            self.warnings.append(f"{self.name}: {text}")
        elif self.voxel < self.options.voxel:
            text = f"parts of it are thinner than {COARSEST:g} cells: its voxels are {size}; a larger voxel_size takes less memory"
            self.warnings.append(f"{self.name}: {text}")

    def thin_share(self, points: np.ndarray, depth: float) -> float:
        """Return the share of its area at these points [m] that lies on parts thinner than `depth` [m]."""
        from mpm_nodes.kernels.level_sets.mesh_level_set import thin_share
        from mpm_nodes.kernels.level_sets.winding import winding_tree

        return thin_share(winding_tree(self._extended(points), self.triangles), depth)

    def _extended(self, points: np.ndarray) -> np.ndarray:
        return points if self.repair is None else self.repair.extended(points)

    def inside(self, points: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Tell which places [m] a closed mesh at these points [m] encloses, shape (places,)."""
        from mpm_nodes.kernels.level_sets.winding import winding_numbers, winding_tree

        return winding_numbers(winding_tree(self._extended(points), self.triangles), place) > 0.5

    def level_set(self, points: np.ndarray, velocities: np.ndarray | None, voxel: float | None = None) -> Any:
        """Return the level set at these points [m], whose velocities are [m/s]; of voxels that are given, or those chosen."""
        from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set

        velocities, voxel = None if velocities is None else self._extended(velocities), voxel or self.voxel
        return mesh_level_set(self._extended(points), self.triangles, voxel, self.options.thickness, velocities, self.name)


def _deforming(
    ctx: FrameContext, meshes: Any, code: Callable[[float], float], options: MeshOptions
) -> tuple[tuple[Any, ...], np.ndarray, tuple[str, ...], np.ndarray | None]:
    """Return level sets of a deforming mesh, as many as its motion needs, their times [s], warnings, and its first points.

    There are first points [m] where the topology stays the same.
    """
    frames = key_frames(ctx, 1)
    topology = meshes.topology(code(frames[-1]))
    final = meshes.points(code(frames[-1]))
    solid = Solid(meshes, topology, final, options)
    warnings: list[str] = []
    same = all(meshes.topology(code(frame)).digest == topology.digest for frame in frames)
    if len(frames) == 2:
        moved = voxels_moved(meshes, code, frames, options.voxel) if same else None
        if moved is not None and moved > MOST_KEYS:
            warnings.append(
                f"{meshes.name}: vertices move up to {moved:.0f} voxels in frame {frames[-1]:g}, "
                f"{MOST_KEYS} are followed exactly; raise voxel_size or slow the collider down"
            )
        frames = np.linspace(frames[0], frames[-1], keys_of(moved))
    times = key_times(ctx, frames)
    poses = [meshes.points(code(frame)) for frame in frames[:-1]] + [final]
    if not same:
        warnings.append(
            f"{meshes.name}: the topology changes between frame {frames[0]:g} and {frames[-1]:g}; "
            f"its velocity is estimated from the moving surface"
        )
        solids = [Solid(meshes, meshes.topology(code(frame)), points, options) for frame, points in zip(frames, poses, strict=True)]
        for one, points in zip(solids, poses, strict=True):
            one.choose([points], deforms=True)
        made = tuple(one.level_set(points, None) for one, points in zip(solids, poses, strict=True))
        return made, times, tuple(dict.fromkeys([*warnings, *solid.warnings])), None
    solid.choose([poses[0], poses[-1]], deforms=True)
    speeds = [_velocity(poses, times, k) for k in range(len(poses))]
    made = tuple(solid.level_set(points, speed) for points, speed in zip(poses, speeds, strict=True))
    return made, times, tuple(dict.fromkeys([*warnings, *solid.warnings])), poses[0]


def _velocity(poses: list[np.ndarray], times: np.ndarray, k: int) -> np.ndarray:
    """Return the points' velocities [m/s] at key k: central differences, one-sided at the ends."""
    before, after = max(k - 1, 0), min(k + 1, len(poses) - 1)
    if before == after:
        return np.zeros_like(poses[k])
    return (poses[after] - poses[before]) / (times[after] - times[before])


def voxels_moved(meshes: Any, code: Callable[[float], float], frames: np.ndarray, voxel: float) -> float:
    """Return how far a vertex moves at most between two frames, in voxels, at the pace of the fastest quarter."""
    probes = [meshes.points(code(frame)) for frame in np.linspace(frames[0], frames[-1], 5)]
    return 4.0 * max(np.linalg.norm(b - a, axis=1).max(initial=0.0) for a, b in pairwise(probes)) / voxel


def keys_of(moved: float | None) -> int:
    """Return how many level sets a frame takes in which vertices move by so many voxels; None: the topology changes."""
    return 5 if moved is None else int(min(max(np.ceil(moved), 1), MOST_KEYS)) + 1


def _untold(kept: Kept, key: tuple[Hashable, ...], warnings: Sequence[str], begins: bool) -> tuple[str, ...]:
    """Return the warnings that were not given for this key before; `begins` (a shot begins) forgets what was."""
    told: set[str] = kept.get(("told", *key), set)
    if begins:
        told.clear()
    new = tuple(warning for warning in warnings if warning not in told)
    told.update(new)
    return new
