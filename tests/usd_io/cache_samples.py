"""Small exact things to cache: spheres as level sets, particles with every kind of column, a cook in a folder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, FrameContext, GraphSettings, LevelSet, Material, Mesh, Particles
from mpm_nodes.graph.revisions.revision import Revision
from mpm_nodes.nodes.caches import CacheFrame, write_cache

MATERIAL = Material("snow", {"youngs_modulus": 1.4e5}, 400.0, "cheese")
ALL = ("*",)


def sphere(centre: tuple[float, float, float], radius: float, voxel: float, name: str = "surface") -> LevelSet:
    """Return the exact distance to a sphere in a band of three voxels, only in leaves that the band touches."""
    background = 3 * voxel
    middle = np.asarray(centre)
    low = np.floor((middle - radius - background) / voxel).astype(int) // 8 * 8
    high = np.ceil((middle + radius + background) / voxel).astype(int)
    axes = [np.arange(lo, hi + 1, 8) for lo, hi in zip(low, high, strict=True)]
    origins = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    inside = np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), axis=-1)
    places = (origins[:, None, None, None] + inside) * voxel - middle
    distance = np.linalg.norm(places, axis=-1) - radius
    near = (np.abs(distance) < background).any(axis=(1, 2, 3))
    leaves = origins[near].astype(np.int32), distance[near].astype(np.float32)
    return LevelSet(*leaves, voxel, background=background, name=name)


def joined(*volumes: LevelSet) -> LevelSet:
    """Return one volume with the leaves of several."""
    return dataclasses.replace(
        volumes[0],
        origins=np.concatenate([volume.origins for volume in volumes]),
        values=np.concatenate([volume.values for volume in volumes]),
    )


def fog_and_velocity(surface: LevelSet) -> tuple[LevelSet, LevelSet]:
    """Return a fog and a velocity grid in the leaves of a level set."""
    depth = np.clip(-surface.values, 0.0, 1.0)
    flow = np.repeat(depth[..., None], 3, axis=-1) * np.array([1.0, -2.0, 0.5], np.float32)
    fog = dataclasses.replace(surface, values=depth, background=0.0, kind="fog", name="density")
    return fog, dataclasses.replace(surface, values=flow, background=0.0, kind="vector", name="vel")


def particles(count: int, seed: int = 0) -> Particles:
    """Return particles with every attribute of interest and three columns of a user's own."""
    rng = np.random.default_rng(seed)
    columns = {
        "position": rng.uniform(-0.5, 0.5, (count, 3)),
        "velocity": rng.normal(size=(count, 3)),
        "id": np.arange(count) + 7,
        "material": np.zeros(count, np.int32),
        "mass": np.full(count, 4e-4),
        "volume": np.full(count, 1e-6),
        "deformation": rng.normal(size=(count, 3, 3)),
        "stress": rng.normal(size=(count, 6)),
        "stiffness_scale": rng.uniform(0.5, 2.0, count),
        "precise": rng.normal(size=count),
        "displayColor": rng.uniform(size=(count, 3)).astype(np.float32),
        "flag": rng.uniform(size=count) > 0.5,
    }
    return Particles(columns, (MATERIAL,), 0.01, 0.25)


def tetrahedron(scale: float = 1.0) -> Mesh:
    """Return a tetrahedron with normals, velocities and a carried attribute."""
    points = scale * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float64)
    faces = np.array([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3], np.int32)
    return Mesh(points, np.full(4, 3, np.int32), faces, points.astype(np.float32), points, {"heat": points[:, 0]})


def write_frames(folder: Path, frames: int = 3, name: str = "shot", first: int = 1) -> tuple[Path, list[CacheFrame]]:
    """Cook a cache of growing particles, mesh and volumes; return its folder and what each frame returned."""
    revision = Revision.create(folder, manifest(first))
    written = []
    for frame in range(first, first + frames):
        written.append(write_frame(revision, frame, name))
    revision.close()
    return revision.folder, written


def manifest(first: int = 1) -> dict:
    """Return what a cook stores about itself."""
    return {
        "package_version": "0.1.0",
        "graph": {"nodes": {}},
        "graph_digest": "0",
        "overrides": ["sim.gravity=0"],
        "frames": [first, first + 9],
        "frame_offset": max(0, -first),
    }


def write_frame(revision: Revision, frame: int, name: str = "shot") -> CacheFrame:
    """Cook and commit one frame; its content depends on the frame alone."""
    from usd_io.volumes import mesh_level_set

    step = frame % 10
    surface = sphere((0.0, 0.0, 0.0), 0.15 + 0.02 * step, 0.02)
    mesh = mesh_level_set(surface)
    mesh = dataclasses.replace(mesh, velocities=np.ones_like(mesh.points), attributes={"heat": mesh.points[:, 1]})
    bowl = Collider("bowl", CollisionRule.STICKY, 0.0, None, tetrahedron(), still=True)
    with_files = FrameContext(frame, GraphSettings(), files=revision.begin(frame))
    volumes = (surface, *fog_and_velocity(surface))
    cloud = particles(50 * (step + 1), step)
    result = write_cache(with_files, cloud, mesh, volumes, (bowl,), name=name, attributes=ALL)
    with_files.files.commit()
    return result
