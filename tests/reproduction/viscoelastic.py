"""The figures of the viscoelastic samples (R15): measured on a cache, beside what the source shows or what must hold."""

from __future__ import annotations

import numpy as np

from mpm_nodes_samples.shots.shot import Figure, Shot, Target


# ---------------------------------------------------------------- measures
def pieces(positions: np.ndarray, cell: float) -> np.ndarray:
    """Return a number for each particle: equal where particles hang together through cells that touch; 0 is the largest.

    The same as `measures.pieces`, for matter that flew far: only cells with particles are held.
    """
    index = np.floor(positions / cell).astype(np.int64)
    index -= index.min(axis=0) - 1
    shape = index.max(axis=0) + 2
    keys, mine = np.unique((index[:, 0] * shape[1] + index[:, 1]) * shape[2] + index[:, 2], return_inverse=True)
    low, high = [], []
    for step in range(14, 27):  # half of the 26 neighbours
        i, j, k = step // 9 - 1, step // 3 % 3 - 1, step % 3 - 1
        wanted = keys + (i * shape[1] + j) * shape[2] + k
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        here = np.flatnonzero(keys[place] == wanted)
        low.append(here)
        high.append(place[here])
    first, second = np.concatenate(low), np.concatenate(high)
    label = np.arange(len(keys))
    while True:
        least = np.minimum(label[first], label[second])
        found = label.copy()
        np.minimum.at(found, label[first], least)
        np.minimum.at(found, label[second], least)
        found = found[found]
        if (found == label).all():
            break
        label = found
    _, piece = np.unique(label[mine], return_inverse=True)
    order = np.argsort(-np.bincount(piece), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[piece]


def parted(points: np.ndarray, cell: float, low: np.ndarray, high: np.ndarray) -> bool:
    """Return whether no piece of matter reaches from the particles `low` to the particles `high` (masks of shape (n,))."""
    piece = pieces(points, cell)
    return not set(piece[low]) & set(piece[high])


def nearest_strangers(now: np.ndarray, before: np.ndarray, apart: float, cell: float) -> float:
    """Return the least distance [m] between particles that began farther than `apart` from each other; inf where none meet.

    Only particles that share a cell of that size are looked at.

    Args:
        now: Positions [m], shape (n, 3).
        before: Positions of the same particles at the start [m], shape (n, 3).
        apart: [m].
        cell: Edge of those cells [m]; the grid lets matter meet at one to one and a half of its own.
    """
    index = np.floor(now / cell).astype(np.int64)
    index -= index.min(axis=0)
    _, mine = np.unique(np.ravel_multi_index(tuple(index.T), tuple(index.max(axis=0) + 1)), return_inverse=True)
    low, high = np.full((mine.max() + 1, 3), np.inf), np.full((mine.max() + 1, 3), -np.inf)
    np.minimum.at(low, mine, before)
    np.maximum.at(high, mine, before)
    least = np.inf
    for number in np.flatnonzero(np.linalg.norm(high - low, axis=1) > apart):
        here = np.flatnonzero(mine == number)
        far = np.linalg.norm(before[here, None] - before[None, here], axis=2) > apart
        gaps = np.linalg.norm(now[here, None] - now[None, here], axis=2)
        least = min(least, float(gaps[far].min(initial=np.inf)))
    return least


def same_order(shot: Shot, frame: int) -> np.ndarray:
    """Return a frame's positions in the order of ids, so that rows of two frames are the same particle."""
    particles = shot.at(frame)
    return np.asarray(particles["position"], float)[np.argsort(particles["id"], kind="stable")]


# ---------------------------------------------------------------- sponges
def twisted_sponge(shot: Shot) -> list[Figure]:
    """Return when the bar tears, what is left, and that matter which was far apart touches."""
    start, cell = same_order(shot, shot.first), shot.cell_size
    low, high = start[:, 1] < start[:, 1].min() + 0.03, start[:, 1] > start[:, 1].max() - 0.03
    torn = next((frame for frame in shot.frames if parted(same_order(shot, frame), cell, low, high)), 0)
    counts = np.bincount(pieces(same_order(shot, torn or shot.last), cell))  # later its halves fall onto each other
    large = int((counts > 0.01 * len(start)).sum())
    strip = float((counts[counts <= 0.01 * len(start)]).sum()) / len(start)
    nearest = [nearest_strangers(same_order(shot, frame), start, 0.05, 2.0 * cell) for frame in shot.frames]
    touched = next((frame for frame, gap in zip(shot.frames, nearest, strict=True) if gap < 1.5 * cell), 0)
    return [
        Figure("first frame in two", torn, Target(shot.first + 11), "tears, after it was wound up"),
        Figure("pieces of more than 1 % when it tears", large, Target(2), "tears"),
        Figure("in pieces smaller than that [%]", 100.0 * strip, Target(most=5.0), "tears, but does not crumble"),
        Figure("first frame in which it touches itself (0.05 m apart at first)", touched, Target(1), "collides with itself"),
        Figure("least distance then and later, over the cell", min(nearest) / cell, Target(most=1.5), "touches"),
    ]


def sponge_bullet(shot: Shot) -> list[Figure]:
    """Return the hole that the bullet leaves, what is torn, and how far the block swings out and back."""
    start, cell = same_order(shot, shot.first), shot.cell_size
    middle = np.abs(start[:, 1]) < 0.05
    swing = {frame: float((same_order(shot, frame)[middle, 0] - start[middle, 0]).mean()) for frame in shot.frames}
    farthest = max(swing, key=swing.__getitem__)
    back = min(swing[frame] for frame in shot.frames if frame >= farthest)
    holes = {frame: 1e4 * hole_along_x(shot.positions(frame), 0.08, 0.06, cell) for frame in shot.frames}
    torn = 100.0 * torn_apart(start, same_order(shot, shot.last), 3.0 * cell)[1].mean()
    return [
        Figure("largest hole that can be looked through [cm^2]", max(holes.values()), Target(1.0), "a cavity"),
        Figure("the same at the end [cm^2]", holes[shot.last], Target(most=round(0.5 * max(holes.values()), 2)), "closes by half"),
        Figure("neighbours torn apart, of all [%]", torn, Target(0.1, 20.0), "fracture"),
        Figure("middle swings out by [mm]", 1e3 * swing[farthest], Target(50.0), "significant deformation"),
        Figure("and back to [mm]", 1e3 * back, Target(most=0.0), "elastic recovery"),
    ]


def hole_along_x(points: np.ndarray, half_height: float, half_width: float, cell: float) -> float:
    """Return the area within |y| < half_height, |z| < half_width through which no matter lies along x [m^2]."""
    shape = np.array([round(2.0 * half_height / cell), round(2.0 * half_width / cell)])
    place = np.floor((points[:, 1:] + [half_height, half_width]) / cell).astype(int)
    inside = ((place >= 0) & (place < shape)).all(axis=1)
    seen = np.zeros(shape, bool)
    seen[tuple(place[inside].T)] = True
    return float((~seen).sum()) * cell**2


def torn_apart(before: np.ndarray, now: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of neighbours of a lattice (rows of `before`, shape (m, 2)), and which are farther than `reach` [m] now.

    Args:
        before: Points of a lattice along the axes, of any spacing along each [m], shape (n, 3).
        now: The same points later [m], shape (n, 3).
        reach: [m]; where it is the support of the kernel, matter beyond it no longer acts on each other.
    """
    columns = [np.unique(np.round(before[:, axis], 7), return_inverse=True)[1] for axis in range(3)]
    shape = tuple(int(column.max()) + 2 for column in columns)
    place = np.ravel_multi_index(tuple(columns), shape)
    row = np.full(int(np.prod(shape)), -1, np.int64)
    row[place] = np.arange(len(before))
    pairs = []
    for axis in range(3):
        other = row[place + int(np.prod(shape[axis + 1 :]))]
        pairs.append(np.stack([np.flatnonzero(other >= 0), other[other >= 0]], axis=1))
    found = np.concatenate(pairs)
    return found, np.linalg.norm(now[found[:, 0]] - now[found[:, 1]], axis=1) > reach


# ---------------------------------------------------------------- streams
def centreline(shot: Shot, frame: int, slices: int = 8) -> np.ndarray:
    """Return the middle of each slice of a stream in the order in which they left the nozzle [m], shape (m, 3).

    Ids follow the order of emission; what is there at the start is as long as the nozzle's filling, which is cut into `slices`.
    """
    first = len(shot.at(shot.first))
    points, thick = same_order(shot, frame)[first:], first // slices
    count = len(points) // thick
    return points[: count * thick].reshape(count, thick, 3).mean(axis=1)


def turns(heights: np.ndarray, least: float) -> np.ndarray:
    """Return the indices at which a curve turns, up or down, by more than `least` since the turn before."""
    found, place, way = [], 0, 0
    for n, value in enumerate(heights):
        if way == 0:
            if abs(value - heights[0]) > least:
                way, place = (1 if value > heights[0] else -1), n
        elif way * (value - heights[place]) > 0.0:
            place = n
        elif way * (heights[place] - value) > least:
            found.append(place)
            place, way = n, -way
    return np.array(found, int)


def foam_stream(shot: Shot) -> list[Figure]:
    """Return the folds of the stream along its own length, and how its pile grows and closes."""
    line = centreline(shot, shot.last)
    across = _main_axis(line)
    found = turns(line @ across, 0.0015)
    lengths = np.diff(found) * FOAM_SLICE
    height = float(line[: len(line) * 2 // 3, 1].max())
    counts = np.bincount(pieces(shot.positions(shot.last), shot.cell_size))
    merged = float(counts[0]) / counts.sum()
    mean = float(lengths.mean()) if len(lengths) else 0.0
    return [
        Figure("turns to the other side", len(found), Target(4), "S-shaped folds"),
        Figure("length from turn to turn, of the stream as it leaves the nozzle [mm]", 1e3 * mean),
        Figure("its standard deviation, over the mean", float(lengths.std() / mean) if mean else 0.0),
        Figure("height of its older two thirds [mm]", 1e3 * height, Target(3.0), "piles up, over its thickness"),
        Figure("share of the foam in one piece [%]", 100.0 * merged, Target(90.0), "folds merge"),
    ]


FOAM_SLICE = 0.0005
"""Length of a slice of the foam as it leaves the nozzle [m]."""


def _main_axis(line: np.ndarray) -> np.ndarray:
    """Return the horizontal direction along which a curve spreads most."""
    flat = (line - line.mean(axis=0)) * [1.0, 0.0, 1.0]
    return np.linalg.svd(flat, full_matrices=False)[2][0]


def toothpaste(shot: Shot) -> list[Figure]:
    """Return how the strand coils on the brush, how high it stands, and that its coils flow together."""
    line, tips = centreline(shot, shot.last), 0.015
    laid = line[line[:, 1] < 0.04]
    coils = winding(laid, 0.0005)
    height = float(line[: len(line) // 2, 1].max()) - tips
    points = shot.positions(shot.last)
    above = 100.0 * float((points[:, 1] > tips - shot.cell_size).mean())
    counts = np.bincount(pieces(points, shot.cell_size))
    whole = 100.0 * float(counts[0]) / counts.sum()
    return [
        Figure("turns of the strand around itself", coils, Target(1.0), "coils"),
        Figure("height of its older half above the bristles [mm]", 1e3 * height, Target(3.0), "stands up"),
        Figure("share above the tips of the bristles [%]", above, Target(60.0), "stays on the brush"),
        Figure("share in one piece [%]", whole, Target(95.0), "coils flow together"),
    ]


def winding(line: np.ndarray, least: float) -> float:
    """Return how many times the horizontal direction of a curve turns around, by steps of `least` or more [m] along it."""
    kept = [line[0, [0, 2]]]
    for point in line[1:, [0, 2]]:
        if np.hypot(*(point - kept[-1])) >= least:
            kept.append(point)
    step = np.diff(kept, axis=0)
    angle = np.diff(np.unwrap(np.arctan2(step[:, 1], step[:, 0])))
    return float(abs(angle.sum()) / (2.0 * np.pi))


def viennetta(shot: Shot) -> list[Figure]:
    """Return the folds of the sheet: how many, how even, and that the belt's speed sets their distance.

    The first does not count: it falls on the bare belt, all others on the one before.
    """
    line = centreline(shot, shot.last)
    found = turns(line[:, 0], 0.001)
    fronts = found[line[found, 0] > line[found - 1, 0]]  # turns at the side to which the belt runs
    fronts = fronts[line[fronts, 0] > LAID][1:]
    period = np.diff(fronts) * SHEET_SLICE / SHEET_SPEED
    apart = -np.diff(line[fronts, 0])
    mean, every, even, lean, along = 0.0, 0.0, 1.0, 0.0, 0.0
    if len(apart) > 1:
        mean, every = float(apart.mean()), float(period.mean())
        even, lean, along = float(period.std()) / every, float(apart.std()) / mean, mean / (BELT_SPEED * every)
    return [
        Figure("folds that lie on the belt", len(fronts), Target(5), "folds"),
        Figure("time from fold to fold [s]", every),
        Figure("its standard deviation, over the mean", even, Target(most=0.2), "even"),
        Figure("distance of folds on the belt [mm]", 1e3 * mean),
        Figure("its standard deviation, over the mean", lean, Target(most=0.3), "even"),
        Figure("distance over belt speed and time", along, Target(0.85, 1.15), "set by the belt's speed"),
    ]


SHEET_SLICE, SHEET_SPEED, BELT_SPEED = 0.0005, 0.05, 0.03
"""Length of a slice of the sheet as it leaves the slot [m], its speed there and the speed of the belt [m/s]."""
LAID = 0.01
"""Folds that far from the slot [m] have left the heap below it, and lie on the belt."""


# ---------------------------------------------------------------- pie
CREAM, CRUST, SCORES = 0, 1, 2
"""Materials of the pie."""


def scored_pie(shot: Shot) -> list[Figure]:
    """Return where the crust breaks, into how many pieces, and that the cream splits and stays on the face."""
    start, end, kinds = same_order(shot, shot.first), same_order(shot, shot.last), _kinds(shot)
    spacing = 0.5 * shot.cell_size
    pairs = close_pairs(start[kinds != CREAM], 1.05 * spacing)
    gap = np.zeros(len(pairs))
    for frame in shot.frames:
        crust = same_order(shot, frame)[kinds != CREAM]
        np.maximum(gap, np.linalg.norm(crust[pairs[:, 0]] - crust[pairs[:, 1]], axis=1), out=gap)
    apart, widest = gap > 2.0 * shot.cell_size, float(gap.max())
    scored = (kinds[kinds != CREAM][pairs] == SCORES).any(axis=1)
    share, extent = 100.0 * float(scored[apart].mean()) if apart.any() else 0.0, 100.0 * float(scored.mean())
    drops = np.bincount(pieces(end[kinds == CREAM], shot.cell_size))
    split, elsewhere = int((drops > 0.001 * drops.sum()).sum()), 100.0 * float(apart[~scored].mean())
    plates, before = (np.bincount(pieces(points[kinds == CRUST], shot.cell_size)) for points in (end, start))
    whole, broken = (int((counts > 0.01 * counts.sum()).sum()) for counts in (before, plates))
    return [
        Figure("neighbours in the crust torn two cells apart", float(apart.sum()), Target(1), "breaks"),
        Figure("of these, at a score [%]", share, Target(90.0), "breaks along its scores"),
        Figure("of all neighbours in the crust, at a score [%]", extent, Target(most=50.0), "much less"),
        Figure("stiff neighbours torn apart, of theirs [%]", elsewhere, Target(most=1.0), "breaks nowhere else"),
        Figure("farthest that neighbours came apart [mm]", 1e3 * widest, Target(3.0), "pieces fly off"),
        Figure("pieces of stiff crust of more than 1 %, at the start", whole),
        Figure("and at the end", broken, Target(whole + 1), "breaks"),
        Figure("pieces of cream of more than 0.1 %", split, Target(2), "splits"),
    ]


def _kinds(shot: Shot) -> np.ndarray:
    particles = shot.at(shot.first)
    return np.asarray(particles["material"])[np.argsort(particles["id"], kind="stable")]


def close_pairs(points: np.ndarray, reach: float) -> np.ndarray:
    """Return the pairs of points nearer than `reach` [m], shape (m, 2); for points about that far apart."""
    index = np.floor(points / reach).astype(np.int64)
    index -= index.min(axis=0) - 1
    key = np.ravel_multi_index(tuple(index.T), tuple(index.max(axis=0) + 2))
    shape = index.max(axis=0) + 2
    order = np.argsort(key, kind="stable")
    sorted_key, found = key[order], []
    for i in (-1, 0, 1):
        for j in (-1, 0, 1):
            for k in (-1, 0, 1):
                wanted = key + (i * shape[1] + j) * shape[2] + k
                low, high = np.searchsorted(sorted_key, wanted), np.searchsorted(sorted_key, wanted, side="right")
                for nth in range(int((high - low).max(initial=0))):
                    mine = np.flatnonzero(low + nth < high)
                    other = order[low[mine] + nth]
                    near = (mine < other) & (np.linalg.norm(points[mine] - points[other], axis=1) < reach)
                    found.append(np.stack([mine[near], other[near]], axis=1))
    return np.concatenate(found)
