"""What the readers of colliders from files share: which version of a file it is, and stages that stay open.

What is costly (reading, distances) is kept within the cook's memory limit: a still collider is built once a shot, and the
solver sees that it is the same object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError
from mpm_nodes.graph.kept import Kept


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


def open_meshes(kept: Kept, path: Path, prim: str) -> Any:
    """Return the meshes at or below a prim of a file (`usd_io.collider_meshes.StageMeshes`), open from frame to frame."""
    from usd_io.collider_meshes import StageMeshes

    file = stamp(path)
    return kept.get(("stage", *file, prim), lambda: StageMeshes(path, prim), lambda _: file[1])  # as much as its file
