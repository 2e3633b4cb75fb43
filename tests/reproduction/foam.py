"""The figures of the samples of Y15: measured on their caches, beside what the source says or what must hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.materials.volumes import volume_ratios
from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.measures import interior_densities, pieces, pushed_out, seen_from_the_side, thread_length

LOST_MASS = 0.28
"""Y15 figure 8: mass that subgrid removal took over the whole run [%]."""
COUNTS = 5.0
"""Largest change of the number of particles [%], where the source's is 0.3 to 3."""


def particle_change(shot: Shot, says: str, target: Target | None = None) -> Figure:
    """Return the largest change of the number of particles over the frames, in percent of the start, beside the source's."""
    counts = [len(shot.at(frame)) for frame in shot.sampled]
    change = 100.0 * max(abs(count - counts[0]) for count in counts) / counts[0]
    return Figure("largest change of the particle count [%]", change, target, says)


def lost_mass(shot: Shot) -> Figure:
    """Return the mass that was removed, in percent."""
    lost = 100.0 * (1.0 - shot.mass(shot.last) / shot.mass(shot.first))
    return Figure("mass removed [%]", lost, Target(most=LOST_MASS), "in the source")


# ---------------------------------------------------------------- shaving foam
def shaving_foam(shot: Shot) -> list[Figure]:
    """Return counts, mass, density and volume of the shaken dollop, and whether it tore and fell."""
    density = 77.7
    found = [spread for spread in (_density_spread(shot, frame) for frame in shot.sampled) if spread is not None]
    if not found:
        raise InputError(f"{shot.stage}: the grid is too coarse to have an interior; lower settings.cell_size")
    share = 100.0 * float(np.mean([near for near, _, _, _ in found]))
    off = 100.0 * max(abs(mean / density - 1.0) for _, mean, _, _ in found)
    volumes = [shot.skin_volume(frame) for frame in shot.sampled]
    change = 100.0 * max(abs(volume / volumes[0] - 1.0) for volume in volumes)
    own = [_own_volume(shot, frame) for frame in shot.sampled]
    swelling = 100.0 * max(abs(volume / own[0] - 1.0) for volume in own)
    lowest = [float(shot.positions(frame)[:, 1].min()) for frame in shot.frames]
    floor = 1.5 * shot.cell_size
    landed = next((frame for frame, low in zip(shot.frames, lowest, strict=True) if low < floor), 0)
    last = shot.positions(shot.last)
    fallen = 100.0 * float((last[:, 1] < 0.1).mean())
    return [
        particle_change(shot, "33 in the source", Target(most=35.0)),
        lost_mass(shot),
        Figure("interior density within 5 % of its mean [% of nodes]", share, Target(95.7), "the source's"),
        Figure("largest deviation of the mean interior density [%]", off, Target(most=0.89), "the source's"),
        Figure("least interior density [kg/m^3]", min(low for _, _, low, _ in found), Target(18.0), "the source's"),
        Figure("greatest interior density [kg/m^3]", max(high for _, _, _, high in found), Target(most=93.5), "the source's"),
        Figure("largest change of the volume inside the surface [%]", change, Target(most=2.7), "the source's"),
        Figure("largest change of the particles' own volume, sum of J V0 [%]", swelling, Target(most=2.7), "the source's surface"),
        Figure("first frame on the floor", landed, Target(21), "stretches for some swings, then tears and falls"),
        Figure("share that fell by the last frame [%]", fallen, Target(5.0, 99.0), "a part stays on the block"),
    ]


def _density_spread(shot: Shot, frame: int) -> tuple[float, float, float, float] | None:
    """Return the share of interior nodes within 5 % of the mean, the mean, the least and the greatest [kg/m^3].

    None while hardly any node lies that deep inside: a body in the middle of tearing.
    """
    values = interior_densities(shot.positions(frame), np.asarray(shot.at(frame)["mass"], float), shot.cell_size)
    if len(values) < 20:
        return None
    mean = float(values.mean())
    return float((np.abs(values / mean - 1.0) < 0.05).mean()), mean, float(values.min()), float(values.max())


def _own_volume(shot: Shot, frame: int) -> float:
    """Return the volume that the particles take up by their own strain, per mass that is left [m^3/kg]."""
    particles = shot.at(frame)
    volume = np.asarray(particles["volume"], float) * volume_ratios(particles)
    return float(volume.sum()) / shot.mass(frame)


# ---------------------------------------------------------------- s'mores
def uniform_smore(shot: Shot) -> list[Figure]:
    """Return how flat it was pressed, what came through the holes, and the peak that stays when the cracker is lifted."""
    heights = {frame: float(np.quantile(shot.positions(frame)[:, 1], 0.98)) for frame in shot.frames}
    pressed = min(heights, key=heights.__getitem__)
    upper = _cracker_bottom(shot, pressed)
    oozed = 100.0 * float((shot.positions(pressed)[:, 1] > upper + 0.002).mean())
    end = shot.positions(shot.last)
    rest = resting(end, shot.cell_size, _chocolate_top(shot, shot.last))
    peak = float(end[rest][:, 1].max()) if rest.any() else 0.0
    body = float(np.quantile(end[rest][:, 1], 0.5)) if rest.any() else 0.0
    above = 100.0 * float((~rest).mean())
    return [
        particle_change(shot, "0.4 in the source", Target(most=COUNTS)),
        Figure("marshmallow in the holes of the pressed cracker and above [%]", oozed, Target(1.0), "seeps through the holes"),
        Figure("lifted away with the upper cracker [%]", above, Target(1.0), "the neck tears"),
        Figure("height of the peak that stays [mm]", 1e3 * peak, says="a stiff peak"),
        Figure("of it above the middle of what stays [mm]", 1e3 * (peak - body), Target(10.0), "a stiff peak"),
    ]


def resting(points: np.ndarray, cell: float, top: float) -> np.ndarray:
    """Return which particles belong to pieces of more than 2 % that lie on a table, or hang over its edge.

    Args:
        points: Positions [m], shape (n, 3).
        cell: Grid spacing [m]; matter that lies on a body ends within one of it.
        top: Height of the table's top [m].
    """
    piece = pieces(points, cell)
    count = np.bincount(piece)
    lowest = np.full(len(count), np.inf)
    np.minimum.at(lowest, piece, points[:, 1])
    return ((lowest < top + cell) & (count > 0.02 * len(points)))[piece]


def _chocolate_top(shot: Shot, frame: int) -> float:
    """Return the height of the upper face of the chocolate [m], from its mesh in the cache."""
    from usd_io.collider_meshes import StageMeshes

    return float(StageMeshes(shot.stage, "collider_chocolate").points(frame)[:, 1].max())


def _cracker_bottom(shot: Shot, frame: int) -> float:
    """Return the height of the lower face of the upper cracker [m], from its mesh in the cache."""
    from usd_io.collider_meshes import StageMeshes

    return float(StageMeshes(shot.stage, "collider_upper").points(frame)[:, 1].min())


def toasted_smore(shot: Shot) -> list[Figure]:
    """Return where the soft interior lies open and how much of it has left the stiff shell, before and after that cracks."""
    opened = {frame: 100.0 * _open_side(shot, frame) for frame in shot.sampled}
    shares = {frame: 100.0 * _outside_shell(shot, frame) for frame in shot.sampled}
    cracked = next((frame for frame, share in opened.items() if share > 5.0), 0)
    return [
        particle_change(shot, "0.7 in the source", Target(most=COUNTS)),
        Figure("interior open to the side at the start [% of the side]", opened[shot.first], Target(0.0, 0.0), "whole"),
        Figure("first frame looked at with 5 % open", cracked, Target(shot.sampled[1] + 1), "after a critical compression"),
        Figure("interior open to the side at the end [% of the side]", opened[shot.last], Target(15.0), "cracks"),
        Figure("interior outside the shell at the start [%]", shares[shot.first], Target(most=0.1), "none"),
        Figure("interior outside the shell at the end [%]", shares[shot.last], Target(5.0), "flows out"),
    ]


def _open_side(shot: Shot, frame: int) -> float:
    return seen_from_the_side(shot.positions(frame, 0), shot.positions(frame, 1), 2.0 * shot.cell_size)


def _outside_shell(shot: Shot, frame: int) -> float:
    return pushed_out(shot.positions(frame, 0), shot.positions(frame, 1), 2.0 * shot.cell_size)


# ---------------------------------------------------------------- pie
def pie(shot: Shot) -> list[Figure]:
    """Return how much of the pie stays on the face, and that it stretches and tears."""
    from usd_io.collider_meshes import StageMeshes

    corners = StageMeshes(shot.stage, "collider_head").points(shot.last)
    end = shot.positions(shot.last)
    near = np.concatenate([_nearest(part, corners) for part in np.array_split(end, 1 + len(end) // 20000)])
    on_head = 100.0 * float((near < 0.035).mean())
    piece = pieces(end, 1.5 * shot.cell_size)
    chunks = int((np.bincount(piece) > 0.002 * len(end)).sum())
    return [
        particle_change(shot, "0.3 in the source", Target(most=COUNTS)),
        Figure("share of the mass on the head at the end [%]", on_head, Target(5.0, 98.0), "chunks stay on the face"),
        Figure("pieces of more than 0.2 % at the end", chunks, Target(2), "stretches and tears"),
    ]


def _nearest(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    square = (points**2).sum(1)[:, None] - 2.0 * points @ corners.T + (corners**2).sum(1)
    return np.sqrt(np.maximum(square.min(axis=1), 0.0))


# ---------------------------------------------------------------- spheres
def spheres(shot: Shot) -> list[Figure]:
    """Return how high each sphere leaves the ground again after it first touched it."""
    least = 2e3 * shot.cell_size
    gaps = [rebound(bottoms(shot.positions, shot.frames, material), shot.cell_size) for material in (0, 1)]
    return [
        particle_change(shot, "3.0 and 2.0 in the source", Target(most=COUNTS)),
        Figure("gap under the viscoplastic sphere after the impact [mm]", 1e3 * gaps[0], Target(most=least), "less than 2 h"),
        Figure("gap under the oobleck sphere after the impact [mm]", 1e3 * gaps[1], Target(least), "2 h or more"),
    ]  # fmt: skip


def bottoms(positions, frames: Sequence[int], material: int) -> list[float]:
    """Return the height of the lowest particle of a material at each frame [m]; `positions(frame, material)` gives them."""
    return [float(positions(frame, material)[:, 1].min()) for frame in frames]


def rebound(heights: Sequence[float], cell: float) -> float:
    """Return the greatest height above its resting place that the lowest particle reaches after the first contact [m].

    The resting place is a quarter of a cell above the floor, half a particle spacing.
    """
    touched = next((n for n, height in enumerate(heights) if height < 0.75 * cell), None)
    return 0.0 if touched is None else max(0.0, max(heights[touched:]) - 0.25 * cell)


# ---------------------------------------------------------------- pachinko
UPPER = 0.3
"""Height above which the board's pins are far apart [m]."""


def pachinko(shot: Shot) -> list[Figure]:
    """Return how many penguins came, that they bounce off the upper pins, and that they lose their shape among the lower ones.

    Resampling gives particles new ids, so that penguins are told apart as pieces that hang together; a piece counts while it
    weighs a half to one and a half of a penguin.
    """
    whole, start = shot.mass(shot.first), _spread(shot.positions(shot.first))
    seen = [track for frame in shot.frames[1:] for track in _bodies(shot, frame, whole)]
    upper = [spread / start for height, spread, _ in seen if height > UPPER]
    bounces = sum(speed > 0.05 and height > UPPER for height, _, speed in seen)
    kept = float(np.mean(upper)) if upper else 0.0
    height, end = np.ptp(shot.positions(shot.first)[:, 1]), shot.positions(shot.last)[:, 1]
    heap = float(np.quantile(end[end < 1.5 * height], 0.9)) if (end < height).any() else height
    return [
        Figure("penguins dropped", round(shot.mass(shot.last) / whole)),
        Figure("penguins seen on their way up, summed over frames", bounces, Target(1), "bounce at speed"),
        Figure("radius over that of the first, upper part of the board", kept, Target(0.5, 1.3), "keep their shape"),
        Figure(
            "height of nine tenths of the heap at the bottom [mm]",
            1e3 * heap,
            Target(most=round(500.0 * height, 1)),
            "flow when slow: half of their height",
        ),
    ]


def _bodies(shot: Shot, frame: int, whole: float) -> list[tuple[float, float, float]]:
    """Return height [m], radius [m] and upward speed [m/s] of each piece that weighs about as much as a whole body."""
    particles, points = shot.at(frame), shot.positions(frame)
    mass, speed = np.asarray(particles["mass"], float), np.asarray(particles["velocity"][:, 1], float) / shot.time_scale
    piece = pieces(points, shot.cell_size)
    weight = np.bincount(piece, mass)
    found = []
    for number in np.flatnonzero((weight > 0.5 * whole) & (weight < 1.5 * whole)):
        mine = piece == number
        found.append((float(points[mine, 1].mean()), _spread(points[mine]), float(np.average(speed[mine], weights=mass[mine]))))
    return found


def _spread(points: np.ndarray) -> float:
    """Return the root mean square distance from the middle [m]."""
    return float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))


# ---------------------------------------------------------------- tendril
def tendril(shot: Shot) -> list[Figure]:
    """Return when each stretched column comes apart: torn and healing, torn for good, and without tearing."""
    parted = [_first_parted(shot, material) for material in range(3)]
    weak = [_torn(shot, shot.last, material) for material in range(3)]
    most = [max(_torn(shot, frame, material) for frame in shot.sampled) for material in range(3)]
    return [
        lost_mass(shot),
        Figure("sticky (recovers in 0.3 s): first frame in two", parted[0], Target(1), "tears"),
        Figure("without tearing: first frame in two", parted[2], Target(0, 0), "the thread stays"),
        Figure("sticky: torn at most, share of the particles [%]", most[0], Target(1.0), "tears"),
        Figure("sticky: still torn at the end [%]", weak[0], Target(most=round(0.1 * most[0], 3)), "heals"),
        Figure("brittle (recovers in 100 s): still torn at the end [%]", weak[1], Target(round(0.9 * most[1], 3)), "stays torn"),
    ]


def _first_parted(shot: Shot, material: int) -> int:
    """Return the first frame in which a material is in two, else 0."""
    return next((frame for frame in shot.frames if _parted(shot.positions(frame, material), shot.cell_size)), 0)


def _parted(points: np.ndarray, cell: float) -> bool:
    """Whether no piece reaches from the lowest to the highest of some particles [m]."""
    piece = pieces(points, cell)
    low, high = points[:, 1].min() + cell, points[:, 1].max() - cell
    return not set(piece[points[:, 1] < low]) & set(piece[points[:, 1] > high])


def _torn(shot: Shot, frame: int, material: int) -> float:
    particles = shot.at(frame)
    return 100.0 * float(particles["weak"][particles["material"] == material].mean(dtype=float))


# ---------------------------------------------------------------- threads
THREAD = 0.25
"""Width of what the grid does not resolve, in cells: half of what lies between two particles of a lattice."""


def threads(shot: Shot) -> list[Figure]:
    """Return how long the threads are that the grid does not resolve, left as they come and right removed, and what that costs."""
    cell, kept, cleaned = shot.cell_size, [], []
    for frame in shot.frames:
        points = shot.positions(frame)
        for side, found in ((points[points[:, 0] < 0.0], kept), (points[points[:, 0] > 0.0], cleaned)):
            found.append((thread_length(side, cell, THREAD), frame if _parted(side, cell) else 0))
    masses = [shot.at(frame)["mass"][shot.positions(frame)[:, 0] > 0.0].sum(dtype=float) for frame in (shot.first, shot.last)]
    lost = 100.0 * (1.0 - masses[1] / masses[0])
    longest = kept[-1][0]
    return [
        Figure("mass removed from the column on the right [%]", lost, Target(most=LOST_MASS), "in the source"),
        Figure("left: length of threads thinner than a quarter of a cell at the end [cells]", longest, Target(4.0), "they stay"),
        Figure("right: the same [cells]", cleaned[-1][0], Target(most=round(0.1 * longest, 3)), "a tenth of it"),
        Figure("left: first frame in two", next((frame for _, frame in kept if frame), 0), Target(0, 0), "the thread holds"),
        Figure("right: first frame in two", next((frame for _, frame in cleaned if frame), 0), Target(1), "it comes apart"),
    ]
