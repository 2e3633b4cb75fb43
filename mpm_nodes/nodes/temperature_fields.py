"""Temperatures from files: VDB grids over matter and bodies, and primvars of USD meshes over bodies."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import (
    A,
    Collider,
    FrameContext,
    GraphSettings,
    InputError,
    Kelvins,
    Metres,
    MpmNodesError,
    Particles,
    Range,
    TemperatureField,
    Unitless,
    Vec3,
    WattsPerSquareMetreKelvin,
)
from mpm_nodes.graph.clock import Clock
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.kept import NOTHING_KEPT, Kept
from mpm_nodes.graph.keys import NotKeyable
from mpm_nodes.nodes.bodies import collider_passed_on, passed_on
from mpm_nodes.nodes.collider_files import stamp

_START = NotKeyable("it is what particles begin with")
_Temperature = Range(min=0.0, soft_min=200.0, soft_max=2000.0)
_Conductance = A[float, WattsPerSquareMetreKelvin, Range(min=0.0, exclusive_min=True, soft_min=10.0, soft_max=1e6, log=True)]
_Scale = Range(min=0.0, exclusive_min=True, soft_max=100.0)


@node(category="Emit", label="Temperature from VDB", preflight=passed_on)
def set_temperature_vdb(
    particles: Particles,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "temperature",
    outside: A[float, Kelvins, _Temperature, _START] = 293.15,
    translate: A[Vec3, Metres, _START] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale, _START] = 1.0,
) -> Particles:
    """Give particles the temperature that a grid of a .vdb file has where they are.

    Args:
        particles: Particles of an emitter, or the template of a stream.
        path: The file.
        grid: Name of a grid of numbers: temperatures in kelvin.
        outside: Temperature where the grid holds nothing.
        translate: Moves the grid.
        scale: Factor on all lengths of the file, for files that are not in metres.

    Raises:
        InputError: The file cannot be read, or has no such grid of numbers.
        MpmNodesError: A particle's temperature is below 0 K.
    """
    volume = _volume(kept, path, grid)
    values = _sampled(volume, particles["position"], translate, scale, outside)
    if len(values) and not (values.min() >= 0.0 and np.isfinite(values).all()):
        raise MpmNodesError(
            f"set_temperature_vdb.grid: '{grid}' in {path} has {values.min():g} K where there is matter; write kelvin"
        )
    return dataclasses.replace(particles, attributes={**particles.attributes, "temperature": values})


@node(category="Collide", label="Collider Temperature from VDB", preflight=collider_passed_on)
def collider_temperature_vdb(
    collider: Collider,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    grid: str = "temperature",
    outside: A[float, Kelvins, _Temperature] = 293.15,
    translate: A[Vec3, Metres] = (0.0, 0.0, 0.0),
    scale: A[float, Unitless, _Scale] = 1.0,
    conductance: _Conductance = 1e4,
) -> Collider:
    """Give the surface of a collider the temperatures of a grid of a .vdb file; the grid stands still while the body moves.

    Args:
        collider: Any collider.
        path: The file.
        grid: Name of a grid of numbers: temperatures in kelvin.
        outside: Temperature where the grid holds nothing.
        translate: Moves the grid; keys carry it along with a body.
        scale: Factor on all lengths of the file, for files that are not in metres.
        conductance: Heat through a square metre of contact, a kelvin of difference: 1000 loose, 1e4 firm, 1e6 as one piece.

    Raises:
        InputError: The file cannot be read, or has no such grid of numbers.
        MpmNodesError: A temperature is below 0 K.
    """
    volume = _volume(kept, path, grid)
    places, values = _voxels(volume, scale)
    field = _told("collider_temperature_vdb.grid", places + np.asarray(translate), values, settings.cell_size, outside)
    return dataclasses.replace(collider, temperature=outside, temperatures=field, conductance=conductance)


@node(category="Collide", label="Collider Temperature from USD", preflight=collider_passed_on)
def collider_temperature_usd(
    collider: Collider,
    ctx: FrameContext,
    settings: GraphSettings,
    kept: Kept = NOTHING_KEPT,
    *,
    path: Path,
    prim: str = "",
    primvar: str = "temperature",
    frame_offset: A[float, Unitless] = 0.0,
    outside: A[float, Kelvins, _Temperature] = 293.15,
    conductance: _Conductance = 1e4,
) -> Collider:
    """Give the surface of a collider the temperatures that a primvar of USD meshes has; both may be animated.

    Args:
        collider: Any collider, as a rule that of the same meshes (collide_usd).
        path: The USD file.
        prim: Prim at or below which meshes are taken; empty takes all.
        primvar: Name of the primvar, one value a point, or one for all: temperatures in kelvin.
        frame_offset: Added to the frame number before the stage is read.
        outside: Temperature away from the meshes.
        conductance: Heat through a square metre of contact, a kelvin of difference: 1000 loose, 1e4 firm, 1e6 as one piece.

    Raises:
        InputError: The file cannot be read, or a mesh has no such primvar.
        MpmNodesError: A temperature is below 0 K.
    """
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
    from usd_io.collider_meshes import StageMeshes

    file = stamp(path)
    meshes = kept.get(("stage", *file, prim), lambda: StageMeshes(path, prim), lambda _: file[1])
    code = Clock.of(settings).code(ctx.frame + frame_offset, float(meshes.stage.GetTimeCodesPerSecond()))
    topology, points, values = meshes.topology(code), meshes.points(code), meshes.values(primvar, code)
    places, samples = _over_faces(points, values, triangulate(topology.counts, topology.indices)[0], 0.5 * settings.cell_size)
    field = _told("collider_temperature_usd.primvar", places, samples, settings.cell_size, outside)
    return dataclasses.replace(collider, temperature=outside, temperatures=field, conductance=conductance)


# ---------------------------------------------------------------- what they share
def _told(where: str, places: np.ndarray, values: np.ndarray, edge: float, rest: float) -> TemperatureField:
    """Return the field of samples, with the place in messages."""
    try:
        return TemperatureField.of_samples(places, values, edge, rest)
    except MpmNodesError as error:
        raise MpmNodesError(f"{where}: {error}") from None


def _volume(kept: Kept, path: Path, grid: str) -> Any:
    """Return a grid of numbers of a .vdb file (`usd_io.vdb_grids.VolumeInfo`)."""
    return kept.get(("temperatures", *stamp(path), grid), lambda: _read(path, grid))


def _read(path: Path, grid: str) -> Any:
    from usd_io.volumes import read_volumes

    found = read_volumes(path, [grid])[grid]
    if found.kind in ("vector", "level_set"):
        raise InputError(f"{path}: grid '{grid}' is a {found.kind.replace('_', ' ')}; name a grid of temperatures")
    return found


def _sampled(volume: Any, position: np.ndarray, translate: Vec3, scale: float, outside: float) -> np.ndarray:
    """Return a grid's values at positions [m], trilinear, shape (n,)."""
    from mpm_nodes.kernels.level_sets.vector_leaves import sample_vectors

    there = np.linalg.inv(volume.transform)
    index = ((position - np.asarray(translate)) / scale) @ there[:3, :3].T + there[:3, 3]
    leaves = volume.level_set
    # the voxels of a leaf that nobody wrote hold the background
    known = np.stack([leaves.values, leaves.values != np.float32(leaves.background), np.zeros_like(leaves.values)], axis=-1)
    values, held = sample_vectors(leaves.origins, np.where(known[..., 1:2] > 0.0, known, 0.0), index)
    inside = held & (values[:, 1] > 1e-3)
    return np.where(inside, values[:, 0] / np.maximum(values[:, 1], 1e-3), outside)


def _voxels(volume: Any, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Return places [m] and values of all voxels of a grid that differ from its background."""
    leaves = volume.level_set
    leaf, i, j, k = np.nonzero(leaves.values != np.float32(leaves.background))
    index = np.asarray(leaves.origins, float)[leaf] + np.stack([i, j, k], axis=1)
    return scale * (index @ volume.transform[:3, :3].T + volume.transform[:3, 3]), leaves.values[leaf, i, j, k].astype(float)


def _over_faces(points: np.ndarray, values: np.ndarray, triangles: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return places on triangles, no farther than a spacing apart, and the values there, straight between corners."""
    corners, told = points[triangles], values[triangles]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1, initial=0.0)
    parts = np.maximum(np.ceil(longest / spacing), 1.0).astype(np.int64)
    if float((parts.astype(float) ** 2).sum()) > 2e8:
        raise MpmNodesError("collider_temperature_usd.path: the meshes are too large for these cells; raise settings.cell_size")
    places, samples = [points], [values]
    for n in np.unique(parts):
        chosen = parts == n
        i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
        a, b = (each[i + j <= n] / n for each in (i, j))
        weights = np.stack([a, b, 1.0 - a - b], axis=1)
        places.append((weights @ corners[chosen]).reshape(-1, 3))
        samples.append((told[chosen] @ weights.T).reshape(-1))
    return np.concatenate(places), np.concatenate(samples)
