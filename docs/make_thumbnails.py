"""Draw the small pictures that `mpm-nodes edit` offers, of packaged samples and quick presets, from the pictures of these pages.

    python docs/make_thumbnails.py

Of a contact sheet one picture is taken, past the middle of the shot; of the quick presets the tiles of `blender_quick.jpg`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from mpm_nodes.editor.quick import FOLDER, quick_names

DOCS = Path(__file__).resolve().parent
SAMPLES = DOCS.parent / "samples"
SIZE = (240, 180)
PAPER = np.array([28, 29, 31])
"""Ground of contact sheets, as `mpm_nodes.preview.sheet` draws it."""
LABEL = 0.09
"""Share of a picture's height in which a sheet says which frame it is."""
TILE, ACROSS = (420, 280), 3
"""Tiles of the sheet of quick presets, as `make_blender_pictures.py` lays them."""
MATTER = (24, 40, 384, 280)
"""What of a tile is taken: there the matter is."""
SMALL = (216, 144)
LEAST = 100
"""Pixels of a picture on a sheet; what is smaller is its footer."""


def spans(empty: np.ndarray) -> list[tuple[int, int]]:
    """Return where a line is not empty, as (first, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[1], empty.astype(np.int8), [1]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= LEAST]


def thumbnail(path: Path) -> Image.Image:
    """Return the small picture of a picture or contact sheet."""
    image = Image.open(path).convert("RGB")
    paper = np.abs(np.asarray(image).astype(int) - PAPER).max(axis=2) <= 12
    rows, columns = spans(paper.mean(axis=1) > 0.97), spans(paper.mean(axis=0) > 0.97)
    cells = [(left, top, right, bottom) for top, bottom in rows for left, right in columns]
    cell = image.crop(cells[(3 * len(cells)) // 5]) if cells else image
    cell = cell.crop((0, round(LABEL * cell.height), cell.width, cell.height))
    scale = max(SIZE[0] / cell.width, SIZE[1] / cell.height)
    small = cell.resize((round(cell.width * scale), round(cell.height * scale)), Image.Resampling.LANCZOS)
    left, top = (small.width - SIZE[0]) // 2, (small.height - SIZE[1]) // 2
    return small.crop((left, top, left + SIZE[0], top + SIZE[1]))


def quick_tiles() -> None:
    """Cut the sheet of the quick presets into tiles, in its order."""
    with Image.open(DOCS / "blender_quick.jpg") as sheet:
        for place, name in enumerate(quick_names()):
            left, top = place % ACROSS * TILE[0], place // ACROSS * TILE[1]
            tile = sheet.crop((left + MATTER[0], top + MATTER[1], left + MATTER[2], top + MATTER[3]))
            tile.resize(SMALL, Image.Resampling.LANCZOS).save(FOLDER / f"{name}.jpg", quality=80, optimize=True)


def main() -> None:
    """Draw them all."""
    quick_tiles()
    folder = SAMPLES / "pictures"
    folder.mkdir(exist_ok=True)
    pages = [path for part in ("*", "front") for path in sorted(DOCS.glob(f"{part}/*.jpg")) if path.parent.name != "movies"]
    found = {path.stem: path for path in pages}  # those of the front page are single pictures
    for graph in sorted(SAMPLES.glob("*.json")):
        if graph.stem in found:
            thumbnail(found[graph.stem]).save(folder / f"{graph.stem}.jpg", quality=72, optimize=True)


if __name__ == "__main__":
    main()
