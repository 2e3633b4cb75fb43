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
    cells = np.floor((places - places.min(axis=0)) / spacing + 0.5).astype(np.int64) + 1
    width = int(cells[:, 1].max()) + 2
    columns, column = np.unique(cells[:, 0] * width + cells[:, 1], return_inverse=True)
    beside = np.array([i * width + j for i in (-1, 0, 1) for j in (-1, 0, 1)])
    gaps = np.ptp(along) - _lengths(columns, column, along, beside)
    if np.mean(gaps > GAP * spacing) <= FEW:
        return template, 0.0
    filled, stand_for = _outline(columns, beside)
    points = np.stack(np.divmod(filled, width), axis=1) - 1.0
    points = (points * spacing + places.min(axis=0)) @ across
    layers = [points + (along.max() - layer * spacing) * axis for layer in range(LAYERS)]
    owners = _owners(column, along, stand_for)
    attributes = {name: values[owners] for name, values in template.attributes.items()}
    attributes["position"] = np.concatenate(layers)
    return Particles(attributes, template.materials, spacing, template.time), float(gaps.max())


def columns_across(template: Particles, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of an outline as whole places across the stream, shape (m, 2), and that of each particle, shape (n,).

    Args:
        template: Particles, n > 0.
        axis: Direction of the stream, shape (3,), of length 1.
    """
    places = np.asarray(template["position"], np.float64) @ np.stack(_beside(axis)).T
    cells = np.floor((places - places.min(axis=0)) / template.spacing + 0.5).astype(np.int64) + 1
    width = int(cells[:, 1].max()) + 2
    columns, column = np.unique(cells[:, 0] * width + cells[:, 1], return_inverse=True)
    filled, _ = _outline(columns, np.array([i * width + j for i in (-1, 0, 1) for j in (-1, 0, 1)]))
    return np.stack(np.divmod(filled, width), axis=1), column


def _beside(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two directions across a third, along the axes of space where it is one of them."""
    first = np.eye(3)[np.argmin(np.abs(axis))]
    first = first - (first @ axis) * axis
    first /= np.linalg.norm(first)
    return first, np.cross(axis, first)


def _found(columns: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return where columns are among the sorted ones, and -1 where they are not."""
    at = np.minimum(np.searchsorted(columns, wanted), len(columns) - 1)
    return np.where(columns[at] == wanted, at, -1)


def _lengths(columns: np.ndarray, column: np.ndarray, along: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """Return how far the template reaches along the stream in each particle's column and those beside it [m]."""
    front, back = np.full(len(columns), -np.inf), np.full(len(columns), np.inf)
    np.maximum.at(front, column, along)
    np.minimum.at(back, column, along)
    rows = _found(columns, columns[:, None] + beside)
    longest = np.where(rows >= 0, front[rows], -np.inf).max(axis=1) - np.where(rows >= 0, back[rows], np.inf).min(axis=1)
    return longest[column]


def _outline(columns: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns that have points, holes included, and which of the given ones each takes after."""
    holes = np.setdiff1d(columns[:, None] + beside, columns)
    rows = _found(columns, holes[:, None] + beside)
    held = (rows >= 0).sum(axis=1) >= MANY
    return np.concatenate([columns, holes[held]]), np.concatenate([np.arange(len(columns)), rows[held].max(axis=1, initial=-1)])


def _owners(column: np.ndarray, along: np.ndarray, stand_for: np.ndarray) -> np.ndarray:
    """Return the particles that the points of all layers take after.

    Particles of a column are taken from front to back, so that layers differ where the template does.
    """
    order = np.lexsort((-along, column))
    counts = np.bincount(column)
    first = np.cumsum(counts) - counts
    depths = [first[stand_for] + counts[stand_for] * (2 * layer + 1) // (2 * LAYERS) for layer in range(LAYERS)]
    return order[np.concatenate(depths)]
