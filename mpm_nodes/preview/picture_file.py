"""Pictures as files: each says in a text of its own what it was made from, so that an interrupted run can go on."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import OutputError
from mpm_nodes.graph.files.folder import Folder

__all__ = ["put", "save", "stamp", "stamped"]

KEY = "mpm_nodes"
"""Name of the PNG's text."""


def stamp(made_from: Mapping[str, Any]) -> str:
    """Return a short text that is equal for pictures made from the same things."""
    return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:32]


def save(image: Any, path: Path, mark: str = "") -> Path:
    """Write a PIL image as PNG, with its stamp.

    Raises:
        OutputError: It cannot be written.
    """
    from PIL.PngImagePlugin import PngInfo

    texts = PngInfo()
    texts.add_text(KEY, mark)  # an empty one, too: it says that the picture is ours
    data = io.BytesIO()
    image.save(data, "PNG", pnginfo=texts)
    return put(data.getvalue(), path)


def stamped(path: Path) -> str:
    """Return the stamp of a picture, "" where it has none, is damaged, or is not there."""
    from PIL import Image

    if path.is_symlink() or not path.is_file():
        return ""
    try:
        with Image.open(path) as opened:
            opened.load()  # a picture that was cut off is made again
            return str(opened.info.get(KEY, ""))
    except (OSError, ValueError, SyntaxError):
        return ""


def put(data: bytes, path: Path) -> Path:
    """Write a file; a link that has its name is replaced, not followed.

    Raises:
        OutputError: It cannot be written.
    """
    try:
        Folder(path.parent.resolve()).replace(path.name, data)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error}); free some space or choose another folder") from error
    return path
