"""A cache as one Alembic file (.abc), which Blender writes in a process of its own."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from mpm_nodes import children
from mpm_nodes.preview.cycles import EngineMissing, blender_problem
from mpm_nodes.preview.scene import Scene

__all__ = ["is_alembic", "scene_as_alembic"]

_ALEMBIC_SCRIPT = Path(__file__).with_name("alembic_script.py")
_OGAWA, _HDF5 = b"Ogawa", b"\x89HDF"


def is_alembic(old: bytes) -> bool:
    """Whether a file is an Alembic archive."""
    return old[:5] == _OGAWA or old[:4] == _HDF5


def scene_as_alembic(scene: Scene, frames: Sequence[int]) -> bytes:
    """Return the surfaces and bodies of a span of frames of a cache as an Alembic file, as Blender writes it: metres, Y up.

    Args:
        scene: The cache.
        frames: First to last frame, without gaps.

    Raises:
        EngineMissing: Blender cannot run here, or fails.
    """
    names = {shape.path.rsplit("/", 1)[-1] for frame in frames for shape in scene.shapes(frame, "surface").surfaces}
    rate = Fraction(scene.fps).limit_denominator(1001)
    whole = max(1, round(float(rate)))
    with tempfile.TemporaryDirectory(prefix="mpm_nodes_") as scratch:
        written, job = Path(scratch) / "cache.abc", Path(scratch) / "job.json"
        record = {
            "stage": str(scene.path.absolute()),
            "file": str(written),
            "first": frames[0],
            "last": frames[-1],
            "prims": sorted(names),
            "rate": [whole, float(whole / rate)],
        }
        job.write_text(json.dumps(record), encoding="utf-8")
        child = children.start(
            _ALEMBIC_SCRIPT, [str(job)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=scratch
        )
        lines = child.communicate()[0].splitlines()
        if child.returncode != 0 or not written.exists():
            raise EngineMissing(blender_problem(lines, child.returncode))
        return written.read_bytes()
