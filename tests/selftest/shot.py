"""A cook that writes what real ones write (USD layers, volumes, checkpoints, records) and solves nothing: a twentieth of a second.

Its matter walks at random, so that each frame follows from the one before and from nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import FrameContext, InputError, LevelSet, Material, MpmNodesError, Particles, Previous
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.document.document import Graph

__all__ = ["Walk", "bounded", "cook", "digests", "has_volumes", "prepare", "walking_shot"]

INSIDE_USD = re.compile(r"\bpxr|\bTf_?[A-Z]\w+|\bSdf_?[A-Z]\w+|\bArAsset|\.cpp\b|\bin .+ at line \d+ of ")
"""What OpenUSD's own messages hold: its name space, its classes and the places in its sources."""
LONGEST_TEXT = 2_000_000
"""Letters of a message as it is raised; what is printed of each line is cut far below."""


class Walk:
    """Where the matter stands: changed in place, handed on."""

    STATE_FORMAT = 1

    def __init__(self, position: np.ndarray, seed: int) -> None:
        self.position, self.seed = position, seed

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return facts and arrays for a checkpoint."""
        return {"seed": self.seed}, {"position": self.position}

    @classmethod
    def from_arrays(cls, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Walk:
        """Return the state that `to_arrays` described.

        Raises:
            InputError: Something in it is of another kind.
        """
        position, seed = arrays.get("position"), facts.get("seed")
        if position is None or position.ndim != 2 or position.shape[1] != 3 or not isinstance(seed, int):
            raise InputError("the checkpoint holds no walk; cook again without --resume")
        return cls(position.astype(float), seed)


class Walked(NamedTuple):
    """Outputs of `walk`."""

    particles: Particles
    surface: LevelSet
    state: Walk


_STUFF = Material("neo_hookean", {"youngs_modulus": 1e4}, 1000.0, "stuff")


@node(category="Selftest", label="Walk")
def walk(previous: Previous[Walk], ctx: FrameContext, *, count: int = 200, step: float = 0.01) -> Walked:
    """Walk particles at random, with a ball around where they began.

    Args:
        count: Number of particles.
        step: Length of a step.
    """
    state = previous if previous is not None else Walk(np.linspace(0.0, 1.0, 3 * count).reshape(count, 3), 7)
    ctx.check_cancel()
    if previous is not None:
        state.seed = (state.seed * 1103515245 + 12345) % 2**31
        state.position += step * np.random.default_rng(state.seed).standard_normal(state.position.shape)
    columns = {
        "position": state.position.copy(),
        "velocity": np.full((count, 3), step),
        "id": np.arange(count),
        "material": np.zeros(count, np.int32),
        "mass": np.full(count, 1e-3),
        "volume": np.full(count, 1e-6),
    }
    return Walked(Particles(columns, (_STUFF,), 0.01), _ball(0.1 + 0.001 * ctx.frame), state)


def _ball(radius: float, voxel: float = 0.02) -> LevelSet:
    """Return the distance to a sphere in a band of three voxels."""
    reach = int(np.ceil((radius + 3 * voxel) / voxel / 8)) * 8
    edges = np.arange(-reach, reach, 8)
    origins = np.stack(np.meshgrid(edges, edges, edges, indexing="ij"), -1).reshape(-1, 3)
    places = (origins[:, None, None, None] + np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1)) * voxel
    distance = (np.linalg.norm(places, axis=-1) - radius).astype(np.float32)
    near = (np.abs(distance) < 3 * voxel).any(axis=(1, 2, 3))
    return LevelSet(origins[near].astype(np.int32), distance[near], voxel, background=3 * voxel)


@cache
def has_volumes() -> bool:
    """Return whether there is an OpenVDB to write volumes with."""
    from usd_io.openvdb_module import find_openvdb

    try:
        find_openvdb()
    except InputError:
        return False
    return True


def walking_shot(end: int = 3) -> Graph:
    """Return the graph: walk -> write_cache."""
    from mpm_nodes.graph.declare import registry

    graph = Graph(registry=registry.load(path="", entry_points=False).extended(walk.declaration), cell_size=0.1, start=1, end=end)
    graph.add("walk", "walk")
    volumes = {"volumes": [graph["walk"]["surface"]]} if has_volumes() else {}
    graph.add("write_cache", "cache", name="cache", particles=graph["walk"]["particles"], **volumes)
    return graph


def prepare() -> None:
    """Import all that a cook of the shot needs, so that forks have it."""
    from usd_io import require_usd

    require_usd()
    from usd_io import collider_meshes, stage, volumes  # noqa: F401

    walking_shot()


def cook(out: Path, end: int = 3, crash: Callable[[str], None] | None = None, **options: Any) -> int:
    """Cook or continue the shot in `out`; return the exit code that the command line would give."""
    try:
        execute(walking_shot(end), out=out, resume=True, crash=crash, **options)
    except MpmNodesError as error:
        bounded(str(error))
        return error.exit_code
    except MemoryError:
        return 5
    return 0


def bounded(text: str) -> None:
    """Raise AssertionError where a message is not a sentence for people: empty, endless, or about the inside of Python."""
    from mpm_nodes.terminal import MOST_LINES

    lines = text.count("\n") + 1
    if not text.strip() or lines > MOST_LINES or len(text) > LONGEST_TEXT:
        raise AssertionError(f"a message of {lines} lines and {len(text)} letters")
    if "Traceback (most recent" in text or " object at 0x" in text:
        raise AssertionError(f"a message about the inside of Python: {text[:300]}")
    if INSIDE_USD.search(text):
        raise AssertionError(f"a message about the inside of OpenUSD: {text[:300]}")


def digests(out: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of the only revision in `out` by name; half-written files count too, the lock does not."""
    found = {}
    for folder, _, names in os.walk(out):
        for name in names:
            path = Path(folder, name)
            if name != "cook.lock":
                found[path.relative_to(out).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
