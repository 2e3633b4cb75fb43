"""What the readers of colliders from files share: which version of a file it is.

What is costly (reading, distances) is kept within the cook's memory limit: a still collider is built once a shot, and the
solver sees that it is the same object.
"""

from __future__ import annotations

from pathlib import Path

from mpm_nodes.data import InputError


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
