"""What streams out of a template that is not equally long everywhere along the velocity.

Copies of a template follow one another at the distance of its whole length along the velocity. A box askew to its stream, a ball or
a bunny is shorter than that at its rims, and copies of it leave gaps there: the stream comes in pulses. Such a template stands for
its outline, seen along the velocity, which is filled with new particles, one layer after the other.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import Particles

GAP = 1.5
"""Longest gap between copies that no grid sees, in spacings: less than a cell."""
FEW = 0.02
"""Share of the particles beside which gaps may be longer: corners that are rounded, and seeds that lie at random."""
LAYERS = 4
"""Layers of an outline: as many as differ in which particles they take their attributes from."""
MANY = 5
"""Neighbours of eight that a column without particles needs to have points: seeds at random leave some columns empty."""


def nozzle(template: Particles, axis: np.ndarray) -> tuple[Particles, float]:
    """Return what fills a stream without gaps: the template, or its outline with new particles; and the longest gap otherwise [m].

    A layer of an outline is a square lattice across the stream, a spacing wide; layers lie a spacing apart, the foremost where the
    foremost particles of the template are. Each point has the attributes of a particle before or behind which it lies.

    Args:
        template: Particles, n > 0.
        axis: Direction of the stream, shape (3,), of length 1.
    """
    spacing = template.spacing
    across = np.stack(_beside(axis))
    position = np.asarray(template["position"], np.float64)
    along, places = position @ axis, position @ across.T
    cells = np.floor((places - places.min(axis=0)) / spacing + 0.5).astype(np.int64)
    shape = (int(cells[:, 0].max()) + 3, int(cells[:, 1].max()) + 3)  # a free row all around
    front, back = np.full(shape, -np.inf), np.full(shape, np.inf)
    at = (cells[:, 0] + 1, cells[:, 1] + 1)
    np.maximum.at(front, at, along)
    np.minimum.at(back, at, along)
    gaps = np.ptp(along) - (_around(front) + _around(-back))[at]
    if np.mean(gaps > GAP * spacing) <= FEW:
        return template, 0.0
    owners, filled = _owners(at, along, shape)
    points = (np.argwhere(filled) - 1.0) * spacing + places.min(axis=0)
    layers = [points @ across + (along.max() - layer * spacing) * axis for layer in range(LAYERS)]
    columns = {name: column[owners] for name, column in template.attributes.items()}
    columns["position"] = np.concatenate(layers)
    return Particles(columns, template.materials, spacing, template.time), float(gaps.max())


def _beside(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two directions across a third, along the axes of space where it is one of them."""
    first = np.eye(3)[np.argmin(np.abs(axis))]
    first = first - (first @ axis) * axis
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _around(values: np.ndarray) -> np.ndarray:
    """Return the largest of 3 x 3 values, with a free row all around."""
    for axis in (0, 1):
        low, high = np.roll(values, 1, axis), np.roll(values, -1, axis)
        values = np.maximum(values, np.maximum(low, high))
    return values


def _owners(at: tuple[np.ndarray, np.ndarray], along: np.ndarray, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the particles that the points of all layers take after, and which columns have points, of the given shape.

    Particles of a column are taken from front to back, so that layers differ where the template does.
    """
    column = np.ravel_multi_index(at, shape)
    order = np.lexsort((-along, column))
    counts = np.bincount(column, minlength=shape[0] * shape[1])
    first = np.cumsum(counts) - counts
    stands_for = np.where(counts > 0, np.arange(len(counts)), -1).reshape(shape)
    around = np.stack([np.roll(stands_for, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)])
    held = (stands_for < 0) & ((around >= 0).sum(axis=0) >= MANY)
    stands_for[held] = around.max(axis=0)[held]
    chosen = stands_for[stands_for >= 0]
    depths = [first[chosen] + counts[chosen] * (2 * layer + 1) // (2 * LAYERS) for layer in range(LAYERS)]
    return order[np.concatenate(depths)], stands_for >= 0
