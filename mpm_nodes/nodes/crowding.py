"""Matter that lies on top of other matter as a solve begins: sources or emitters on one spot, bodies that overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mpm_nodes.data import Emitter, Particles, concatenate

__all__ = ["crowded_share", "crowding", "crowds"]

WITHIN = 0.5
"""Share of the space around a particle that other sources fill from which on it lies in them: on a surface it is half."""
DENSE = 1 << 23
"""Nodes of a slab."""


SHOWS = 0.02
"""Share of the matter from which on it is worth a warning."""


def crowds(sources: Sequence[Particles], emitters: Sequence[Emitter], cell_size: float) -> Iterator[tuple[str, str]]:
    """Yield the port and a warning where sources, emitters, or both lie on top of each other.

    A source in the place of an emitter counts where the emitter begins with the solve: later the source may have gone.

    Args:
        sources: Particles of each source.
        emitters: Streams, and drops by the copies that come first.
        cell_size: [m].
    """
    first = [first_matter(emitter) for emitter in emitters]
    parts = {"sources": list(sources), "emitters": [each for _, each in first]}
    for port, each in parts.items():
        text = crowding(each, cell_size, port)
        if text:
            yield port, text
    at_once = [each for time, each in first if time <= 0.0 and len(each)]
    lying = [each for each in sources if len(each)]
    if not at_once or not lying:
        return
    there, coming = (sum(float(_volumes(each).sum()) for each in parts) for parts in (lying, at_once))
    double = crowded_share([concatenate(lying), concatenate(at_once)], cell_size) * (there + coming)
    share = double / min(there, coming)
    if share >= SHOWS:
        yield (
            "emitters",
            f"sources lie where emitters bring matter from the start on: {100.0 * min(share, 1.0):.0f} % of the smaller of both is "
            "where the other is, and will burst apart; move them apart, or let the emitter begin later",
        )


def first_matter(emitter: Emitter) -> tuple[float, Particles]:
    """Return when an emitter begins [s since the start frame], and what it brings then, where it brings it."""
    template = emitter.template
    if not emitter.drops:
        return emitter.start, template
    time = min(drop.time for drop in emitter.drops)
    drop = next(drop for drop in emitter.drops if drop.time == time)
    place = np.asarray(template["position"], float) @ np.asarray(drop.rotation, float).T + drop.offset
    return time, Particles({**template.attributes, "position": place}, template.materials, template.spacing)


def crowding(parts: Sequence[Particles], cell_size: float, what: str = "sources") -> str:
    """Return a warning where several sources lie on top of each other, "" where they do not.

    Args:
        parts: Particles of each source.
        cell_size: [m].
        what: What the sources are called.
    """
    if len(parts) < 2:
        return ""
    share = crowded_share(parts, cell_size)
    if share < SHOWS:
        return ""
    return (
        f"the {len(parts)} {what} lie on top of each other: {100.0 * share:.0f} % of their matter is where other matter is, "
        "and will burst apart; move them apart, or leave one out"
    )


def crowded_share(parts: Sequence[Particles], cell_size: float) -> float:
    """Return the share of the matter that lies where that of other sources is already, from 0 to below 1.

    Volumes are shared out to the nodes of a grid by linear weights, which sum up to exactly 1 a cell inside any lattice of two
    particles a cell and axis, and read again at the particles. Of a place that n sources fill, (n - 1) / n is too much.

    Args:
        parts: Particles of all sources; volumes default to that of a lattice of their spacing.
        cell_size: [m].
    """
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return 0.0
    volume = np.concatenate([_volumes(part) for part in parts])
    place = np.concatenate([np.asarray(part["position"], float) for part in parts]) / cell_size
    base = np.floor(place).astype(np.int64)
    share, base, cells = place - base, _folded(base), volume / cell_size**3
    others = _filled(base, share, cells)
    begin = 0
    for part in parts:
        mine = slice(begin, begin + len(part))
        others[mine] -= _filled(_folded(base[mine]), share[mine], cells[mine])
        begin += len(part)
    count = np.maximum(np.floor(others + 1.0 - WITHIN), 0.0)
    return float((volume * count / (1.0 + count)).sum() / volume.sum())


def _volumes(part: Particles) -> np.ndarray:
    """Return the volumes of the particles [m^3], shape (n,)."""
    return np.asarray(part["volume"] if "volume" in part else np.full(len(part), part.spacing**3), float)


def _folded(base: np.ndarray) -> np.ndarray:
    """Return cells with the empty ones between bodies left out, all but two: neighbours stay neighbours."""
    folded = np.empty_like(base)
    for axis in range(3):
        used, number = np.unique(base[:, axis], return_inverse=True)
        folded[:, axis] = np.cumsum(np.minimum(np.diff(used, prepend=used[0]), 3))[number]
    return folded


def _filled(base: np.ndarray, share: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return how much of the space around each particle is filled, shape (n,), slab by slab of the grid.

    Args:
        base: Cells of the particles, shape (n, 3), from 0.
        share: Place within the cell, shape (n, 3).
        cells: Volumes, in cells, shape (n,).
    """
    across, up = base[:, 1:].max(axis=0) + 2
    order = np.argsort(base[:, 0], kind="stable")
    layers, found = base[order, 0], np.zeros(len(base))
    thick = min(max(1, DENSE // int(across * up)), int(layers[-1]) + 1)
    for first in range(0, int(layers[-1]) + 1, thick):
        # what fills the nodes of these layers: particles of the layers beside them, too
        around = order[np.searchsorted(layers, first - 1) : np.searchsorted(layers, first + thick + 1)]
        mine = order[np.searchsorted(layers, first) : np.searchsorted(layers, first + thick)]
        held = np.zeros((thick + 3) * across * up)
        for node, weight in _nodes(base[around], share[around], first - 1, (across, up)) if len(mine) else ():
            held += np.bincount(node, weight * cells[around], len(held))
        for node, weight in _nodes(base[mine], share[mine], first - 1, (across, up)) if len(mine) else ():
            found[mine] += weight * held[node]
    return found


def _nodes(base: np.ndarray, share: np.ndarray, first: int, size: tuple[int, int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the number of each of the eight nodes around particles, from layer `first` on, and its linear weight."""
    lowest = ((base[:, 0] - first) * size[0] + base[:, 1]) * size[1] + base[:, 2]
    x, y, z = ((1.0 - along, along) for along in share.T)
    for i, j, k in np.ndindex(2, 2, 2):
        yield lowest + ((i * size[0] + j) * size[1] + k), x[i] * y[j] * z[k]
