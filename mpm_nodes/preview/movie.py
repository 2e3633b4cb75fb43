"""Put rendered frames together to a movie that browsers and viewers play, with nothing but Pillow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from mpm_nodes.data import MpmNodesError, OutputError
from mpm_nodes.graph.folder import Folder

__all__ = ["FORMATS", "check_movie", "write_movie"]

FORMATS = {".webp": "WEBP", ".gif": "GIF"}
"""Endings of movies: WebP has all colours and is the smaller one, GIF is played everywhere."""


def check_movie(path: Path) -> None:
    """Refuse a movie that cannot be written, before anything is rendered for it.

    Raises:
        MpmNodesError: The ending is not known.
    """
    if path.suffix.lower() not in FORMATS:
        raise MpmNodesError(
            f"render: a movie '{path.name}' cannot be written; its name ends in {' or '.join(FORMATS)}. For other formats: "
            "ffmpeg -framerate 24 -i FOLDER/frame.%04d.png movie.mp4, or Blender"
        )


def write_movie(images: Sequence[Path], path: Path, fps: float) -> Path:
    """Write pictures of one size as a movie that plays without end; return its path.

    Args:
        images: The frames, in order.
        path: The file; its ending says the format.
        fps: Frames a second [1/s].

    Raises:
        MpmNodesError: The ending is not known.
        OutputError: The file cannot be written.
    """
    from PIL import Image

    check_movie(path)
    frames = []
    for image in images:
        with Image.open(image) as opened:
            frames.append(opened.convert("RGB"))
    # times are whole milliseconds, hundredths in GIF: frames end where they should, and rounding does not add up
    step = 10 if path.suffix.lower() == ".gif" else 1
    ends = [step * round(1000.0 * (n + 1) / fps / step) for n in range(len(frames))]
    durations = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    data = io.BytesIO()
    kind = FORMATS[path.suffix.lower()]
    frames[0].save(data, kind, save_all=True, append_images=frames[1:], duration=durations, loop=0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Folder(path.parent.resolve()).replace(path.name, data.getvalue())
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error}); free some space or choose another folder") from error
    return path
