"""Several pictures on one: contact sheets, and caches side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["contact_sheet", "opened", "side_by_side"]

PAPER, INK, LIGHT = (28, 29, 31), (20, 20, 22), (255, 255, 255)
GAP = 6
TALL, IN_A_ROW = 1.2, 4
"""Height over width from which on so few pictures stand in one row, each three quarters as wide."""
WIDE = 2.0
"""Width over height from which on fewer pictures stand side by side."""


def contact_sheet(
    images: Sequence[Path], labels: Sequence[str], footer: str = "", cell: int = 640, below: Sequence[Path] = (), columns: int = 0
) -> Any:
    """Return a PIL image with all pictures, labelled, and a line below that says what they are.

    Pictures are at most `cell` pixels wide; of those more than twice as wide as high fewer stand side by side, each as much wider.
    Those of `below` are small and stand in one row. `columns` pictures stand side by side, where it is not 0.
    """
    from PIL import Image, ImageDraw

    pictures = opened(images)
    along = int(np.ceil(np.sqrt(len(pictures))))
    shape = max(p.height / p.width for p in pictures)
    if columns:
        pass
    elif shape > TALL and len(pictures) <= IN_A_ROW:
        columns, cell = len(pictures), round(0.75 * cell)
    else:
        columns = int(np.ceil(np.sqrt(len(pictures) * min(1.0, WIDE * shape))))
        cell = cell * along // columns
    sizes = [(cell, max(1, round(p.height * cell / p.width))) for p in pictures]
    pictures = [p.resize(size, Image.Resampling.LANCZOS) if p.width > cell else p for p, size in zip(pictures, sizes, strict=True)]
    rows = -(-len(pictures) // columns)
    width, height = max(p.width for p in pictures), max(p.height for p in pictures)
    line = max(11, min(height // 16, width // 24))
    margin = line + 2 * GAP if footer else 0
    across = columns * (width + GAP) + GAP
    row = _in_a_row(opened(below), across) if below else None
    top = rows * (height + GAP) + GAP
    sheet = Image.new("RGB", (across, top + (row.height if row else 0) + margin), PAPER)
    if row:
        sheet.paste(row, (0, top))
    pen = ImageDraw.Draw(sheet)
    for n, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        corner = (GAP + (n % columns) * (width + GAP), GAP + (n // columns) * (height + GAP))
        sheet.paste(picture, corner)
        _write(pen, (corner[0] + 8, corner[1] + 5), label, line)
    if footer:
        pen.text((GAP + 2, sheet.height - margin), footer, fill=LIGHT, font=_font(line))
    return sheet


def opened(images: Sequence[Path]) -> list[Any]:
    """Return the pictures of files, as PIL images in RGB."""
    from PIL import Image

    found = []
    for image in images:
        with Image.open(image) as file:
            found.append(file.convert("RGB"))
    return found


def _in_a_row(pictures: Sequence[Any], across: int) -> Any:
    """Return pictures side by side, with a gap around them, in an image of a width."""
    from PIL import Image

    width = (across - GAP) // len(pictures) - GAP
    sizes = [(width, max(1, round(picture.height * width / picture.width))) for picture in pictures]
    row = Image.new("RGB", (across, max(height for _, height in sizes) + GAP), PAPER)
    for n, (picture, size) in enumerate(zip(pictures, sizes, strict=True)):
        row.paste(picture.resize(size, Image.Resampling.LANCZOS), (GAP + n * (width + GAP), 0))
    return row


def side_by_side(pictures: Sequence[Any], labels: Sequence[str]) -> Any:
    """Return one PIL image of pictures of the same size, each with its label below."""
    from PIL import Image, ImageDraw

    across, tall = (pictures[0].width + GAP) * len(pictures) - GAP, pictures[0].height
    row = Image.new("RGB", (across, tall), PAPER)
    pen, line = ImageDraw.Draw(row), max(11, tall // 20)
    for n, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        place = n * (picture.width + GAP)
        row.paste(picture.convert("RGB"), (place, 0))
        _write(pen, (place + 8, tall - 2 * line), label, line)
    return row


def _write(pen: Any, place: tuple[int, int], text: str, size: int) -> None:
    """Write dark letters with a light edge: they can be read on every picture."""
    font = _font(size)
    pen.text((place[0] + 1, place[1] + 1), text, fill=LIGHT, font=font)
    pen.text(place, text, fill=INK, font=font)


def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size=size)
