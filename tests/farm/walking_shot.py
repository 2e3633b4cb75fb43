"""What tests of farms look at: the files of a cook, and what was cooked."""

from __future__ import annotations

from pathlib import Path


def content(folder: Path) -> dict[str, bytes]:
    """Return the files that a cook made, without what differs by design: manifest, lock, records, checkpoints."""
    ours = ("cook.json", "cook.lock", "frames/", "checkpoints/", "preview/")
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(ours)}


def cooked(folder: Path, what: str) -> list[int]:
    """Return the frames that nodes of a kind cooked, in order."""
    log = folder / "walk.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith(what)]
