"""Colours of matter by an attribute, and the legend that says what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES, BIRTH, InputError
from mpm_nodes.physics import all_physics

__all__ = ["ColourBy", "draw_legend", "spanned"]

STOPS = np.array([[0.02, 0.02, 0.12], [0.30, 0.04, 0.40], [0.75, 0.15, 0.25], [0.98, 0.50, 0.05], [1.0, 0.95, 0.60]])
"""Linear colours at even shares of the interval, from low to high; their lightness grows evenly."""
COMPUTED = {"speed": "m/s", "age": "s", BIRTH: "s", "rest": "m", "restB": "m", "surface_tension": "N/m"}
"""Units of what nodes compute for surfaces and textures, beside the attributes of particles in a solve."""


@dataclass(frozen=True)
class ColourBy:
    """An attribute and the interval that its colours span.

    Attributes:
        name: Attribute; vectors show their length.
        low: Value of the first colour, in the attribute's unit.
        high: Value of the last colour.
    """

    name: str
    low: float
    high: float

    @property
    def unit(self) -> str:
        """Unit of the attribute, "" where it has none or is not known."""
        all_physics("")  # each brings its fields
        known = ATTRIBUTES.get(self.name)
        return known.unit if known is not None else COMPUTED.get(self.name, "")

    @property
    def usd_name(self) -> str:
        """Name of the attribute, or of the primvar, in a stage."""
        known = ATTRIBUTES.get(self.name)
        return known.usd.removeprefix("primvars:") if known is not None else self.name

    def colours(self, values: np.ndarray) -> np.ndarray:
        """Return linear colours (n, 3) of values (n,)."""
        share = np.clip((values - self.low) / max(self.high - self.low, 1e-30), 0.0, 1.0) * (len(STOPS) - 1)
        first = np.minimum(share.astype(int), len(STOPS) - 2)
        rest = (share - first)[:, None]
        return (STOPS[first] * (1.0 - rest) + STOPS[first + 1] * rest).astype(np.float32)


def spanned(name: str, values: Iterable[np.ndarray]) -> ColourBy:
    """Return colours that span all values given.

    Raises:
        InputError: There are none, or none is finite.
    """
    finite = [column[np.isfinite(column)] for column in values]
    finite = [column for column in finite if len(column)]
    if not finite:
        raise InputError(
            f"render: neither points nor surface carry '{name}'; name it in write_cache.attributes, or colour by another attribute"
        )
    return ColourBy(name, float(min(c.min() for c in finite)), float(max(c.max() for c in finite)))


def draw_legend(image: Any, colour_by: ColourBy) -> None:
    """Draw a bar of the colours with its ends into a PIL image, at its lower left."""
    from PIL import Image, ImageDraw

    width, height = max(60, image.width // 4), max(8, image.height // 40)
    bar = colour_by.colours(np.linspace(colour_by.low, colour_by.high, width))
    srgb = np.where(bar <= 0.0031308, 12.92 * bar, 1.055 * np.maximum(bar, 1e-9) ** (1 / 2.4) - 0.055)
    strip = np.broadcast_to((255.0 * np.clip(srgb, 0.0, 1.0)).astype(np.uint8), (height, width, 3))
    left, top = image.width // 40, image.height - 3 * height - image.height // 40
    draw = ImageDraw.Draw(image)
    draw.rectangle((left - 6, top - 18, left + width + 6, top + height + 18), fill=(245, 245, 245))
    image.paste(Image.fromarray(np.ascontiguousarray(strip)), (left, top))
    unit = f" [{colour_by.unit}]" if colour_by.unit else ""
    draw.text((left, top - 15), f"{colour_by.name.replace('_', ' ')}{unit}", fill=(20, 20, 20))
    draw.text((left, top + height + 3), f"{colour_by.low:.4g}", fill=(20, 20, 20))
    high = f"{colour_by.high:.4g}"
    draw.text((left + width - draw.textlength(high), top + height + 3), high, fill=(20, 20, 20))
