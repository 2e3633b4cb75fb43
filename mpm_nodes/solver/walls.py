"""The walls of a solve as the kernels see them: where they stand at the end of a substep, and how fast they move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError, WallRule, Walls
from mpm_nodes.kernels.collisions import rules as collision

__all__ = ["WallSet"]

WALL_RULES = {
    WallRule.STICKY: collision.STICKY,
    WallRule.SLIP: collision.SLIP,
    WallRule.SEPARATE: collision.SEPARATE,
    WallRule.OPEN: collision.OPEN,
    WallRule.DELETE: collision.DELETE,
    WallRule.PERIODIC: collision.OPEN,
}
OPEN_WALLS = Walls((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (WallRule.OPEN,) * 6)
SPEED = 7
"""Place of the sides' speeds among the numbers of `WallSet.rules`."""
PROBES = 9
"""Times at which a frame's motion is looked at for a bound on the walls' speeds."""


class WallSet:
    """Six walls, still or moving along their axes.

    Args:
        walls: The walls, or None for an unbounded domain.
        origin: Point that kernels measure positions from [m].
        motion: The walls at simulated seconds, where they move or their friction changes.
        span: Simulated seconds that `motion` will be asked for.

    Attributes:
        box: Corners (2, 3) [m] from `origin`, at the end of the posed substep.
        rules: Rules of the sides -x +x -y +y -z +z, one friction, and the sides' speeds along their axes [m/s], shape (13,).
        fastest: Bound on the speed of any wall [m/s].
    """

    def __init__(
        self,
        walls: Walls | None,
        origin: np.ndarray,
        motion: Callable[[float], Walls] | None = None,
        span: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.walls = OPEN_WALLS if walls is None else walls
        self._origin, self._motion = origin, motion
        self.box = self._corners(self.walls)
        sides = [WALL_RULES[side] for side in self.walls.sides]
        self.rules = np.array([*sides, self.walls.friction, *[0.0] * 6], np.float64)
        self.fastest = 0.0
        if motion is not None:
            times = np.linspace(*span, PROBES)
            places = np.array([self._corners(motion(time)) for time in times])
            steps = np.abs(np.diff(places, axis=0))
            if (steps * self._marked(WallRule.PERIODIC)).any():
                raise MpmNodesError("solve: a periodic side moves; give wall_low and wall_high no keys along its axis")
            steps *= ~self._marked(WallRule.OPEN)
            self.fastest = float((steps / np.maximum(np.diff(times), 1e-300)[:, None, None]).max())

    def _corners(self, walls: Walls) -> np.ndarray:
        return np.stack([np.array(walls.low, np.float64), np.array(walls.high, np.float64)]) - self._origin

    def _marked(self, rule: WallRule) -> np.ndarray:
        """Return which sides have a rule, shape (2, 3)."""
        return np.array([side is rule for side in self.walls.sides]).reshape(3, 2).T

    @property
    def idle(self) -> bool:
        """Whether no wall does anything."""
        return all(side in (WallRule.OPEN, WallRule.PERIODIC) for side in self.walls.sides)

    @property
    def deletes(self) -> bool:
        """Whether some wall deletes."""
        return WallRule.DELETE in self.walls.sides

    def pose(self, begin: float, end: float) -> None:
        """Place the walls for a substep (simulated seconds)."""
        if self._motion is None:
            return
        before, now = self._motion(begin), self._motion(end)
        check_box(now.low, now.high)
        self.box = self._corners(now)
        self.rules[6] = before.friction
        self.rules[SPEED:] = ((self.box - self._corners(before)) / (end - begin)).T.ravel() if end > begin else 0.0


def check_box(low: Any, high: Any) -> None:
    """Refuse walls the wrong way round.

    Raises:
        MpmNodesError: A low corner is not below the high one.
    """
    if not all(a < b for a, b in zip(low, high, strict=True)):
        raise MpmNodesError(f"solve: wall_low {tuple(low)} is not below wall_high {tuple(high)}; give the corners of a box")
