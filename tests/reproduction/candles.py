"""What the candles show: wax that melts under its flame, runs, and freezes again."""

from __future__ import annotations

import numpy as np

from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.measures import pieces
from tests.reproduction.melting import balances, enthalpy
from tests.reproduction.phases import by_id

TENSIONS = (0.05, 0.1, 0.2, 0.4)
"""Of the candles from left to right; their solids come first in the list of materials, in this order."""
PITCH, RADIUS = 0.9, 0.16
"""From wick to wick, and of a candle at the start [m]."""
AIR, FREEZING = 298.0, 303.0


def percent(which: np.ndarray) -> float:
    """Return how much of a mask is set [%]; 0 of an empty one."""
    return 100.0 * float(which.mean()) if len(which) else 0.0


def ever_molten(shot: Shot, last: int) -> np.ndarray:
    """Return which particles, in the order of their ids, were liquid in any frame up to `last`."""
    found = by_id(shot, shot.first, "phase") == 1
    for frame in shot.frames:
        if frame <= last:
            found |= by_id(shot, frame, "phase") == 1
    return found


def _kept(shot: Shot) -> list[Figure]:
    """Return what holds for wax wherever it is: it stays above the floor, no colder than the air, and keeps its volume."""
    lowest = min(float(shot.positions(frame)[:, 1].min()) for frame in shot.frames)
    coldest = min(float(shot.at(frame)["temperature"].min()) for frame in shot.frames)
    volume = shot.matter_volume(shot.last) / shot.matter_volume(shot.first)
    return [
        _turnover(shot),
        Figure("lowest particle above the floor, at any time [cells]", lowest / shot.cell_size, Target(0.0)),
        Figure("coldest particle at any time [K]", coldest, Target(AIR - 0.01), "air of 298 K"),
        Figure("volume of the wax at the end, over that at the start", volume, Target(0.95, 1.05), "kept"),
    ]


def _turnover(shot: Shot) -> Figure:
    """Return the enthalpy that is missing over the heat of the flames: wax that cools again has gained next to nothing."""
    missing = enthalpy(shot.at(shot.last)) - enthalpy(shot.at(shot.first)) - shot.progress.heat
    share = abs(missing) / (shot.progress.made or 1.0)
    return Figure("enthalpy that is missing, over the heat of the flames", share, Target(most=1e-4), "conserved")


def candles(shot: Shot) -> list[Figure]:
    """Return the balances, how far each wax spreads, what of it freezes where it has run, and the pool under each flame."""
    h, kind = shot.cell_size, by_id(shot, shot.first, "material")
    wicks = PITCH * (np.arange(4) - 1.5)
    begin, lit, x = (by_id(shot, frame, "position").astype(float) for frame in (shot.first, flames_out(shot), shot.last))
    solid, melted = by_id(shot, shot.last, "phase") == 0, ever_molten(shot, shot.last)
    burning, height = by_id(shot, flames_out(shot), "phase") == 1, lit[:, 1]
    away, under = (np.hypot(each[:, 0] - wicks[kind], each[:, 2]) for each in (x, lit))
    widths = [float(np.quantile(away[kind == k], 0.98)) / RADIUS for k in range(4)]
    ran = (kind == 0) & (away > RADIUS + h)
    pools, feet = [], []
    for k in range(4):
        near = (kind == k) & (under < 0.5 * RADIUS)
        pools.append(percent(burning[near & (height > height[near].max(initial=0.0) - 2.0 * h)]))
        feet.append(percent(~burning[(kind == k) & (begin[:, 1] < 0.1)]))
    found = balances(shot) + _kept(shot)
    for k, tension in enumerate(TENSIONS):
        found.append(Figure(f"radius that holds 98 % of the wax with k = {tension:g}, over the candle's", widths[k]))
        if k:
            pair = f"the same, over that with k = {TENSIONS[k - 1]:g}"
            found.append(Figure(pair, widths[k] / widths[k - 1], Target(most=1.0), "spreads less with more tension"))
    found += [
        Figure("k = 0.05 over k = 0.4", widths[0] / widths[3], Target(1.2), "significantly less"),
        Figure(
            "molten two cells under the flames as they go out, least of four [%]", min(pools), Target(90.0), "a pool at the wick"
        ),
        Figure("solid of the lowest 0.1 m of the candles then, least of four [%]", min(feet), Target(90.0), "candles stand"),
        Figure("more than a cell outside of its candle with k = 0.05 [%]", percent(ran[kind == 0]), Target(5.0), "runs"),
        Figure("of that frozen again [%]", percent((solid & melted)[ran]), Target(50.0), "re-solidified layers"),
    ]
    for k, tension in enumerate(TENSIONS):
        again = percent((solid & melted)[kind == k])
        found.append(Figure(f"molten and frozen again with k = {tension:g} [%]", again, Target(2.0) if k == 0 else None))
    return found


def candle_letters(shot: Shot) -> list[Figure]:
    """Return the balances, whether the pools of the letters become one, and what is solid long after the flames."""
    h, end = shot.cell_size, flames_out(shot)
    letter = by_id(shot, shot.first, "position")[:, 0]
    letter = np.digitize(letter, LETTER_GAPS)
    apart = pieces(by_id(shot, shot.first, "position").astype(float), h)
    x, liquid = by_id(shot, end, "position").astype(float), by_id(shot, end, "phase") == 1
    piece = pieces(x[liquid], h)
    together = min(percent(piece[letter[liquid] == n] == 0) for n in range(3))
    solid, melted = by_id(shot, shot.last, "phase") == 0, ever_molten(shot, shot.last)
    hottest = float(shot.at(shot.last)["temperature"].max())
    covered = [np.unique(np.floor(shot.positions(frame)[:, ::2] / h), axis=0).shape[0] for frame in (shot.first, shot.last)]
    return [
        *balances(shot),
        *_kept(shot),
        Figure("pieces of more than 2 % at the start", _large(apart), Target(3, 3), "three letters"),
        Figure("molten when the flames go out [%]", percent(liquid), Target(50.0), "melts"),
        Figure("pools of more than 2 % of the molten wax then", _large(piece), Target(1, 1), "pools merge"),
        Figure("of a letter's molten wax in the largest pool, least of three [%]", together, Target(90.0), "pools merge"),
        Figure("hottest particle at the end [K]", hottest, Target(most=FREEZING), "heat is off"),
        Figure("solid at the end [%]", percent(solid), Target(99.9), "re-solidifies"),
        Figure("molten and frozen again at the end [%]", percent(solid & melted), Target(50.0), "re-solidifies"),
        Figure("floor under the wax at the end, over that at the start", covered[1] / covered[0], Target(1.2), "spreads"),
    ]


LETTER_GAPS = (-0.0855, 0.21)
"""Where W, A and X are told apart at the start: x [m]."""


def flames_out(shot: Shot) -> int:
    """Return the last frame before the flames go out."""
    substeps = next(node.knobs["substeps"] for node in shot.graph.nodes.values() if node.type == "solve")
    seconds = dict(substeps["set"])["flame_end"]
    return max(frame for frame in shot.frames if (frame - shot.first) * shot.frame_seconds <= seconds + 1e-9)


def _large(piece: np.ndarray) -> int:
    return int((np.bincount(piece) > 0.02 * len(piece)).sum())
