"""Matter that lies on top of other matter as a solve begins: sources or emitters on one spot, bodies that overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mpm_nodes.data import Emitter, Particles

__all__ = ["crowded_share", "crowding", "crowds"]

FULL = 1.7
"""Share of a cell's volume that its matter fills from which on two bodies lie there: even matter fills 1, random seeds to 1.4."""
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
    double = crowded_share([*lying, *at_once], cell_size) * (there + coming)
    double -= crowded_share(lying, cell_size) * there + crowded_share(at_once, cell_size) * coming
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
    if share >= SHOWS:  # solved matter lies on top of itself in places, which no source is to blame for
        volumes = [float(_volumes(part).sum()) for part in parts]
        own = (volume * crowded_share([part], cell_size) for part, volume in zip(parts, volumes, strict=True))
        share -= sum(own) / sum(volumes)
    if share < SHOWS:
        return ""
    return (
        f"the {len(parts)} {what} lie on top of each other: {100.0 * share:.0f} % of their matter is where other matter is, "
        "and will burst apart; move them apart, or leave one out"
    )


def crowded_share(parts: Sequence[Particles], cell_size: float) -> float:
    """Return the share of the matter that lies where other matter is already, from 0 to below 1.

    Volumes are shared out to the nodes of a grid by linear weights, which sum up to exactly 1 a cell inside any lattice of two
    particles a cell and axis; what a node holds beyond its cell's volume is too much.

    Args:
        parts: Particles of all sources; volumes default to that of a lattice of their spacing.
        cell_size: [m].
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        return 0.0
    volume = np.concatenate([_volumes(part) for part in parts])
    place = np.concatenate([np.asarray(part["position"], float) for part in parts]) / cell_size
    base = np.floor(place).astype(np.int64)
    share, base = place - base, _folded(base)
    filled = np.concatenate(list(_slabs(base, share, volume / cell_size**3)))
    return float((filled[filled > FULL] - 1.0).sum() * cell_size**3 / volume.sum())


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


def _slabs(base: np.ndarray, share: np.ndarray, cells: np.ndarray) -> Iterator[np.ndarray]:
    """Yield what nodes hold, in cells, slab by slab of the grid.

    Args:
        base: Cells of the particles, shape (n, 3), from 0.
        share: Place within the cell, shape (n, 3).
        cells: Volumes, in cells, shape (n,).
    """
    across, up = base[:, 1:].max(axis=0) + 2
    thick = max(1, DENSE // int(across * up))
    order = np.argsort(base[:, 0], kind="stable")
    layers = base[order, 0]
    for first in range(0, int(layers[-1]) + 2, thick):
        mine = order[np.searchsorted(layers, first - 1) : np.searchsorted(layers, first + thick)]
        held = np.zeros((thick + 2) * across * up)  # a layer of nodes more on either side, which other slabs count
        for bits in range(8 if len(mine) else 0):
            far = np.array([bits >> 2 & 1, bits >> 1 & 1, bits & 1])
            node = base[mine] + far - [first - 1, 0, 0]
            weight = np.prod(np.where(far, share[mine], 1.0 - share[mine]), axis=1)
            held += np.bincount((node[:, 0] * across + node[:, 1]) * up + node[:, 2], weight * cells[mine], len(held))
        yield held[across * up : -across * up]
