"""Reads .vdb files in a child process: the parent half asks and waits, the child half loads the library.

The child answers on its standard output with one JSON line, then the raw arrays that the line describes.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes import children
from mpm_nodes.data import InputError, LevelSet
from usd_io.openvdb_module import find_openvdb
from usd_io.vdb_file import damaged, grid_table, verify_digest
from usd_io.vdb_grids import VolumeInfo, index_to_world, level_set_from_grid

READABLE = ("float", "double", "vec3s", "vec3d")


# ---------------------------------------------------------------- parent
def read_in_child(path: Path, names: list[str] | None, timeout: float, largest: int) -> dict[str, VolumeInfo]:
    """Read grids of `path` in a child process; see `usd_io.volumes.read_volumes`."""
    held = {entry.name for entry in grid_table(path)}
    verify_digest(path)
    missing = [name for name in names or () if name not in held]
    if missing:
        raise InputError(f"{path}: no grid named {missing[0]!r}; it holds {', '.join(sorted(map(repr, held)))}")
    find_openvdb()  # a missing library is told here, not as a failure of the child
    request = json.dumps({"path": str(path.resolve()), "names": names, "largest": largest})
    try:
        done = children.run("usd_io.vdb_reader:child", [request], capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{path}: not read after {timeout:g} s; the file is damaged or too large: copy it again from "
            "its source, or allow more time"
        ) from error
    return _answer(path, done)


def _failed(path: Path, how: str, done: subprocess.CompletedProcess[bytes]) -> InputError:
    """Return the error for a child that ended without an answer: it may be the file, or what the child was allowed."""
    return InputError(
        f"{path}: {how}: the process that reads it ended with {children.last_words(done.stderr, done.returncode)}; "
        "the file may be damaged, or the memory too little (ulimit -v, a container's limit): copy it again, or allow more"
    )


def _answer(path: Path, done: subprocess.CompletedProcess[bytes]) -> dict[str, VolumeInfo]:
    line, _, rest = done.stdout.partition(b"\n") if done.stdout[:1] == b"{" else (b"", b"", b"")
    if not line:
        raise _failed(path, "could not be read", done)
    head = json.loads(line)
    if "error" in head:
        raise InputError(head["error"])
    if len(rest) != head["bytes"]:
        raise _failed(path, "was read only half way", done)
    volumes, at = {}, 0
    for grid in head["grids"]:
        arrays: list[np.ndarray] = []
        for dtype, shape in (("int32", grid.pop("origins")), ("float32", grid.pop("values"))):
            count = math.prod(shape)
            arrays.append(np.frombuffer(rest, dtype, count, at).reshape(shape))
            at += 4 * count
        info = grid.pop("info")
        origins, values = arrays
        volume = LevelSet(origins, values, **{**grid, "origin": tuple(grid["origin"])})
        volumes[volume.name] = VolumeInfo(volume, np.array(info.pop("transform")), **info)
    return volumes


# ---------------------------------------------------------------- child
def child(request: str) -> None:
    """Answer one request on standard output, then leave at once (the library's own exit can hang)."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints must not mix with the answer
    _limit_memory()
    ask = json.loads(request)
    try:
        head, arrays = _read(ask["path"], ask["names"], ask["largest"])
    except InputError as error:
        head, arrays = {"error": str(error)}, []
    except MemoryError:
        head, arrays = {"error": str(damaged(Path(ask["path"]), "asks for more memory than there is"))}, []
    except Exception as error:
        head, arrays = {"error": str(damaged(Path(ask["path"]), f"is refused by OpenVDB ({error})"))}, []
    answer.write(json.dumps(head).encode() + b"\n")
    for array in arrays:
        answer.write(memoryview(array.data).cast("B") if array.size else b"")
    answer.flush()
    os._exit(0)


def _limit_memory() -> None:
    """Cap the child's memory, so that a damaged size ends in an error and not in a machine that swaps."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    cap = int(0.8 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft > cap:  # never above what was set for us
        resource.setrlimit(resource.RLIMIT_AS, (cap, hard))


def _read(path: str, names: list[str] | None, largest: int) -> tuple[dict[str, Any], list[np.ndarray]]:
    vdb = find_openvdb()
    held = {grid.name: grid for grid in vdb.readAllGridMetadata(path)}
    wanted = names if names is not None else [name for name, grid in held.items() if grid.valueTypeName in READABLE]
    if not wanted:
        raise InputError(f"{path}: its grids are {_types(held)}; float and 3-vector grids are read")
    described, arrays = [], []
    for name in wanted:
        if held[name].valueTypeName not in READABLE:
            raise InputError(
                f"{path}: grid {name!r} holds {held[name].valueTypeName} values; float and 3-vector grids "
                f"are read, give one of {_types(held)}"
            )
        if not held[name].transform.isLinear:
            raise InputError(f"{path}: grid {name!r} has a perspective transform; resample it to a linear one")
        grid = vdb.read(path, name)
        volume = level_set_from_grid(grid, name, largest)
        matrix = index_to_world(grid)
        _check_values(path, volume, matrix)
        unknown = volume.kind == "fog" and str(grid.gridClass) != "fog volume"
        described.append(
            {
                "origins": volume.origins.shape,
                "values": volume.values.shape,
                "voxel_size": volume.voxel_size,
                "origin": volume.origin,
                "background": volume.background,
                "kind": volume.kind,
                "name": name,
                "info": {
                    "transform": matrix.tolist(),
                    "uniform": _is_uniform(matrix),
                    "value_type": grid.valueTypeName,
                    "kind": "unknown" if unknown else volume.kind,
                },
            }
        )
        arrays += [volume.origins, volume.values]
    return {"grids": described, "bytes": sum(array.nbytes for array in arrays)}, arrays


def _types(held: dict[str, Any]) -> str:
    return ", ".join(f"{name!r} ({grid.valueTypeName})" for name, grid in held.items())


def _is_uniform(matrix: np.ndarray) -> bool:
    """Return whether the linear part is a rotation or mirroring times one scale."""
    gram = matrix[:3, :3].T @ matrix[:3, :3]
    scale = np.trace(gram) / 3.0
    return bool(np.abs(gram - scale * np.eye(3)).max() <= 1e-6 * scale)


def _check_values(path: str, volume: LevelSet, matrix: np.ndarray) -> None:
    if not (np.isfinite(matrix).all() and abs(np.linalg.det(matrix[:3, :3])) > 0):
        raise InputError(f"{path}: grid {volume.name!r} has a singular transform; give every axis a size")
    if not (np.isfinite(volume.values).all() and math.isfinite(volume.background)):
        raise InputError(f"{path}: grid {volume.name!r} holds NaN or infinite values; write it again without them")
    if volume.kind != "level_set" or not len(volume.origins):
        return
    # A distance cannot exceed the box that holds both ends of it: larger ones are damage that stayed finite.
    corners = np.array([volume.origins.min(axis=0), volume.origins.max(axis=0) + 8], float) @ matrix[:3, :3].T
    limit = 2.0 * float(np.linalg.norm(corners[1] - corners[0])) + abs(volume.background)
    worst = float(np.abs(volume.values).max())
    if worst > limit:
        raise InputError(
            f"{path}: level set {volume.name!r} holds the distance {worst:g} m, {limit:g} m fit its box; "
            "the file is damaged, or the grid is not a level set: write it again"
        )
