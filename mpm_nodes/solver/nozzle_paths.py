"""Where the path of a nozzle has led it, how fast it leads it on, and how it has turned."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import CurvePath
from mpm_nodes.graph.time import keys
from mpm_nodes.graph.time.clock import Clock

__all__ = ["Led", "course"]

NEAR = 1e-3
"""Frames over which the velocity along a path is taken."""


class Led(NamedTuple):
    """Where a path has led a nozzle.

    Attributes:
        place: Way from where it began [m], shape (3,).
        speed: [m/s], shape (3,).
        turn: How it has turned, shape (3, 3); None where it does not turn.
        rate: How fast that changes [1/s], shape (3, 3).
    """

    place: np.ndarray
    speed: np.ndarray
    turn: np.ndarray | None = None
    rate: np.ndarray | None = None


def course(path: CurvePath, clock: Clock) -> Callable[[float], Led]:
    """Return a function from simulated seconds to where a path has led since its start frame.

    A jump of stepped keys, or of the direction in a corner, has no velocity: of the differences before and after the slower one
    counts.
    """
    keyed, first = keys.carries_keys(path.travel), float(path.travel)
    away, still = clock.simulated(clock.origin + NEAR), np.zeros(3)

    def share(simulated: float) -> float:
        return float(keys.at(path.travel, clock.frame_at(simulated)))

    def differences(at: Callable[[float], np.ndarray], simulated: float) -> tuple[np.ndarray, np.ndarray]:
        here = at(share(simulated))
        both = (here - at(share(max(simulated - away, 0.0)))) / away, (at(share(simulated + away)) - here) / away
        return here, min(both, key=lambda each: float(np.linalg.norm(each)))

    @functools.lru_cache(maxsize=4096)
    def led(simulated: float) -> Led:
        if not keyed:
            return Led(still, still)
        here, speed = differences(path.at, simulated)
        if not path.follows:
            return Led(here - path.at(first), speed)
        turn, rate = differences(path.turn, simulated)
        return Led(here - path.at(first), speed, turn @ path.turn(first).T, rate @ path.turn(first).T)

    return led
