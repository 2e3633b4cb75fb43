"""What the samples in which matter melts and sets show, beside their balances."""

from __future__ import annotations

import numpy as np

from mpm_nodes.verification.cells import cells_of, grown
from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.measures import seen_from_the_side
from tests.reproduction.melting import balances, between


def exposure(positions: np.ndarray, cell: float, reach: int = 2) -> np.ndarray:
    """Return for each particle what share of the (2 reach + 1)^3 cells around it holds none: 1/2 at a plane, 7/8 at a corner."""
    index, filled = cells_of(positions, cell, margin=reach + 1)
    total = filled.astype(float)
    for axis in range(3):
        total = sum(np.roll(total, step, axis) for step in range(-reach, reach + 1))
    return 1.0 - total[tuple(index.T)] / (2 * reach + 1) ** 3


def layers(positions: np.ndarray, cell: float) -> np.ndarray:
    """Return in which layer of cells each particle lies: 1 beside empty cells, 2 below that; the floor y = 0 counts as matter."""
    index, filled = cells_of(positions, cell)
    floor = np.floor(positions[:, 1] / cell).astype(np.int64) - index[:, 1]
    filled[:, : max(0, -int(floor[0]))] = True
    found, layer = np.zeros(len(positions), np.int64), 0
    while (found == 0).any():
        layer += 1
        rim = filled & grown(~filled)
        found[rim[tuple(index.T)] & (found == 0)] = layer
        filled &= ~rim
    return found


def by_id(shot: Shot, frame: int, name: str) -> np.ndarray:
    """Return a column in the order of the particles' ids."""
    particles = shot.at(frame)
    return np.asarray(particles[name])[np.argsort(particles["id"])]


def hot_air(shot: Shot) -> list[Figure]:
    """Return the balances, what melts first, and how deep melting has come when a quarter has melted."""
    start = by_id(shot, shot.first, "position").astype(float)
    bare, layer = exposure(start, shot.cell_size), layers(start, shot.cell_size)
    corners = bare >= np.quantile(bare, 0.9)
    liquid = {frame: by_id(shot, frame, "phase") == 1 for frame in shot.frames}

    def half(who: np.ndarray) -> float:
        return float(next((frame - shot.first for frame in shot.frames if liquid[frame][who].mean() >= 0.5), np.inf))

    early, late = half(corners), half(np.ones(len(start), bool))
    quarter = next((frame for frame in shot.frames if liquid[frame].mean() >= 0.25), shot.last)
    outer, inner = (_percent(liquid[quarter][mine]) for mine in (layer == 1, layer > 3))
    return [
        *balances(shot),
        Figure("frames until half of the barest tenth is molten", early),
        Figure("frames until half of all is molten", late),
        Figure("the first, over the second", early / late, Target(most=0.7), "corners go first"),
        Figure("molten of the outer layer, a quarter of all being so [%]", outer, Target(50.0), "from outside"),
        Figure("molten of what lies deeper than three cells, then [%]", inner, Target(most=5.0), "inwards"),
        Figure("molten at the end [%]", _percent(liquid[shot.last]), Target(60.0, 100.0), "melts"),
    ]


def _percent(which: np.ndarray) -> float:
    return 100.0 * float(which.mean()) if len(which) else 0.0


def hot_stream(shot: Shot) -> list[Figure]:
    """Return the balances, what melts of the cold body, and what sets of the stream, on the body and on the floor."""
    last, count = shot.at(shot.last), len(shot.at(shot.first))
    body, solid = last["id"] < count, last["phase"] == 0
    cold = by_id(shot, shot.first, "phase") == 0
    body &= np.isin(last["id"], np.flatnonzero(cold))
    high = last["position"][:, 1] > 0.02
    return [
        *balances(shot),
        Figure("molten of the cold body at the end [%]", _percent(~solid[body]), Target(1.0, 60.0), "some solid melts"),
        Figure("set of the stream at the end [%]", _percent(solid[~body]), Target(5.0, 95.0), "some liquid freezes"),
        Figure("of what has set, higher than 20 mm, on the body [%]", _percent(high[~body & solid]), Target(10.0), "on the body"),
        Figure("height of the body's solid, over that at the start", _height(shot), Target(0.7), "the body stands"),
    ]


def _height(shot: Shot) -> float:
    first, last = shot.at(shot.first), shot.at(shot.last)
    body = (last["id"] < len(first)) & (last["phase"] == 0)
    return float(last["position"][body, 1].max() / first["position"][first["phase"] == 0, 1].max())


def butter_on_pan(shot: Shot) -> list[Figure]:
    """Return the balances, how much is molten, how hot it is, and where the solid has slid on its melt."""
    last = shot.at(shot.last)
    solid = last["phase"] == 0
    middle = float(last["position"][solid, 0].mean())
    return [
        *balances(shot),
        Figure("molten at the end [%]", _percent(~solid), between(77.6, 5.0)),
        Figure("hottest particle at the end [K]", float(last["temperature"].max()), between(449.7, 1.5)),
        Figure("middle of what is solid at the end: x [m]", middle, between(0.035, 0.012), "slides on its melt"),
    ]


WAXES = (("without latent heat", 46.8), ("with 15 kJ/kg", 43.4), ("with 45 kJ/kg", 38.0), ("with 135 kJ/kg", 28.1))
"""Blocks of wax from left to right, and how much of each is molten at the end [%]."""


def wax(shot: Shot) -> list[Figure]:
    """Return the balances, and how much of each block is molten: melts stand behind the four solids in the list of materials."""
    material = shot.at(shot.last)["material"]
    shares = [100.0 * float((material == 4 + n).sum() / ((material == n) | (material == 4 + n)).sum()) for n in range(4)]
    drop = float(np.diff(shares).max())
    return [
        *balances(shot),
        *(Figure(f"molten {name} [%]", share, between(stated, 4.0)) for (name, stated), share in zip(WAXES, shares, strict=True)),
        Figure(
            "most that a block with more latent heat melts beyond its neighbour [%]", drop, Target(most=0.0), "slower with more"
        ),
    ]


def on_slope(positions: np.ndarray, degrees: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """Return places along a slope that falls along x, and heights above it [m]."""
    turn = np.radians(degrees)
    x, y = np.asarray(positions[:, 0], float), np.asarray(positions[:, 1], float)
    return x * np.cos(turn) - y * np.sin(turn), x * np.sin(turn) + y * np.cos(turn)


def arcs(positions: np.ndarray) -> int:
    """Return how many crests the lava has along the middle of its flow, in steps of a cell of 20 mm."""
    along, height = (each[np.abs(positions[:, 2]) < 0.03] for each in on_slope(positions))
    places = np.digitize(along, np.arange(-0.6, 1.2, 0.02))
    top = np.array([height[places == k].max(initial=0.0) for k in range(1, 90)])
    return int(((top[1:-1] > top[:-2]) & (top[1:-1] > top[2:])).sum())


def lava(shot: Shot) -> list[Figure]:
    """Return the balances, temperatures, how far the flow has come, and its arcs."""
    last = shot.at(shot.last)
    return [
        *balances(shot),
        Figure("mass at the end: density, slit, speed, time [kg]", shot.mass(shot.last), between(74.4, 1.5)),
        Figure("hottest particle at the end [K]", float(last["temperature"].max()), between(1430.0, 0.5)),
        Figure("coldest particle at the end [K]", float(last["temperature"].min()), between(1199.0, 15.0)),
        Figure("front at the end, along the slope [m]", float(on_slope(last["position"])[0].max()), between(0.158, 0.04)),
        Figure("arcs on the middle line at the end", arcs(last["position"]), between(8.0, 3.0), "a pulse each"),
    ]


def caramel(shot: Shot) -> list[Figure]:
    """Return the balances, temperatures, how high the folds lie, and how little the first of them still move."""
    last, before = shot.at(shot.last), max(shot.first, shot.last - 16)
    moved = by_id(shot, shot.last, "position")[:8000] - by_id(shot, before, "position")[:8000]
    way = float(np.linalg.norm(moved.astype(float), axis=1).mean())
    return [
        *balances(shot),
        Figure("mass at the end: density, slit, speed, time [kg]", shot.mass(shot.last), between(0.12285, 0.0006)),
        Figure("hottest particle at the end [K]", float(last["temperature"].max()), between(398.6, 3.0)),
        Figure("coldest particle at the end [K]", float(last["temperature"].min()), between(306.9, 3.0)),
        Figure("highest particle at the end [m]", float(last["position"][:, 1].max()), between(0.048, 0.012), "lies on folds"),
        Figure("way of what came first in the last 16 frames [m]", way, between(0.002, 0.002), "stiffens"),
    ]


def marshmallow_on_plate(shot: Shot) -> list[Figure]:
    """Return the balances, how far the marshmallow sinks, how much tears, and how much of its inside comes out of its crust."""
    first, last, slab = shot.at(shot.first), shot.at(shot.last), 2.0 * shot.cell_size
    height = [float(np.quantile(each["position"][:, 1], 0.98)) for each in (first, last)]
    torn = max(_percent(np.asarray(shot.at(frame)["weak"], float) > 0.5) for frame in shot.sampled)
    open_ = [100.0 * seen_from_the_side(*(shot.positions(frame, k) for k in (0, 1)), slab) for frame in (shot.first, shot.last)]
    width = [float(np.quantile(np.hypot(each["position"][:, 0], each["position"][:, 2]), 0.98)) for each in (first, last)]
    return [
        *balances(shot),
        Figure("height at the end, over that at the start", height[1] / height[0], Target(most=0.8), "melts"),
        Figure("width at the end, over that at the start", width[1] / width[0], Target(1.1), "spreads"),
        Figure("torn at most [%]", torn, Target(1.0), "its crust tears"),
        Figure("inside open to the side at the start [% of the side]", open_[0], Target(0.0, 0.0), "whole"),
        Figure("inside open to the side at the end [% of the side]", open_[1], Target(5.0), "comes out"),
    ]
