"""Several pictures on one: contact sheets, and two caches side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["contact_sheet", "side_by_side"]

PAPER, INK, LIGHT = (28, 29, 31), (20, 20, 22), (255, 255, 255)
GAP = 6
WIDE = 2.0
"""Width over height from which on fewer pictures stand side by side."""


def contact_sheet(images: Sequence[Path], labels: Sequence[str], footer: str = "", cell: int = 400) -> Any:
    """Return a PIL image with all pictures, labelled, and a line below that says what they are.

    Pictures are at most `cell` pixels wide; of those more than twice as wide as high fewer stand side by side, each as much wider.
    """
    from PIL import Image, ImageDraw

    pictures = []
    for image in images:
        with Image.open(image) as opened:
            pictures.append(opened.convert("RGB"))
    along = int(np.ceil(np.sqrt(len(pictures))))
    flat = min(1.0, max(WIDE * p.height / p.width for p in pictures))
    columns = int(np.ceil(np.sqrt(len(pictures) * flat)))
    cell = cell * along // columns
    sizes = [(cell, max(1, round(p.height * cell / p.width))) for p in pictures]
    pictures = [p.resize(size, Image.Resampling.LANCZOS) if p.width > cell else p for p, size in zip(pictures, sizes, strict=True)]
    rows = -(-len(pictures) // columns)
    width, height = max(p.width for p in pictures), max(p.height for p in pictures)
    line = max(11, height // 16)
    below = line + 2 * GAP if footer else 0
    sheet = Image.new("RGB", (columns * (width + GAP) + GAP, rows * (height + GAP) + GAP + below), PAPER)
    pen = ImageDraw.Draw(sheet)
    for n, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        corner = (GAP + (n % columns) * (width + GAP), GAP + (n // columns) * (height + GAP))
        sheet.paste(picture, corner)
        _write(pen, (corner[0] + 8, corner[1] + 5), label, line)
    if footer:
        pen.text((GAP + 2, sheet.height - below), footer, fill=LIGHT, font=_font(line))
    return sheet


def side_by_side(left: Any, right: Any, labels: tuple[str, str]) -> Any:
    """Return one PIL image of two of the same size, each with its label below."""
    from PIL import Image, ImageDraw

    both = Image.new("RGB", (left.width + GAP + right.width, max(left.height, right.height)), PAPER)
    pen = ImageDraw.Draw(both)
    for picture, place, label in ((left, 0, labels[0]), (right, left.width + GAP, labels[1])):
        both.paste(picture.convert("RGB"), (place, 0))
        line = max(11, picture.height // 20)
        _write(pen, (place + 8, picture.height - 2 * line), label, line)
    return both


def _write(pen: Any, place: tuple[int, int], text: str, size: int) -> None:
    """Write dark letters with a light edge: they can be read on every picture."""
    font = _font(size)
    pen.text((place[0] + 1, place[1] + 1), text, fill=LIGHT, font=font)
    pen.text(place, text, fill=INK, font=font)


def _font(size: int) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size=size)
