"""Walls that cut the surface of matter off: those of a slab, and planes of symmetry.

Behind such a wall the scene goes on as its mirror image. So the surface is open there, and does not touch the wall.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import MpmNodesError, WallRule
from mpm_nodes.solver.colliders import ColliderSet

__all__ = ["OPEN_PLANE", "Mirrors", "Slab", "Window", "window"]

OPEN_PLANE = 1 << 40
"""Number of a cell beyond all: where a surface is cut off at none."""


class Slab(enum.Enum):
    """Axis along which a scene is the same everywhere, cut out by two walls."""

    NONE = "none"
    X = "x"
    Y = "y"
    Z = "z"

    @property
    def axis(self) -> int | None:
        """Number of the axis."""
        return None if self is Slab.NONE else "xyz".index(self.value)

    @property
    def sides(self) -> tuple[int, ...]:
        """Numbers of its two walls, of -x +x -y +y -z +z."""
        return () if self.axis is None else (2 * self.axis, 2 * self.axis + 1)


class Mirrors(enum.Enum):
    """Axes along which the walls that slip are planes of symmetry."""

    NONE = "none"
    X = "x"
    Y = "y"
    Z = "z"
    XY = "xy"
    XZ = "xz"
    YZ = "yz"
    XYZ = "xyz"

    def sides(self, colliders: ColliderSet) -> tuple[int, ...]:
        """Return the numbers of the walls that are planes of symmetry, of -x +x -y +y -z +z.

        Args:
            colliders: Whose walls they are.
        """
        rules = colliders.walls.walls.sides
        axes = () if self is Mirrors.NONE else tuple("xyz".index(each) for each in self.value)
        return tuple(side for axis in axes for side in (2 * axis, 2 * axis + 1) if rules[side] is WallRule.SLIP)


class Window(NamedTuple):
    """The part of space whose surface counts."""

    low: np.ndarray
    """First cell along each axis, shape (3,), int64; -`OPEN_PLANE` where nothing is cut off."""
    high: np.ndarray
    """Last + 1 cell along each axis."""
    level: np.ndarray
    """Axes along which the scene is the same everywhere, shape (3,), bool."""


def window(slab: Slab, mirrors: Mirrors, colliders: ColliderSet, low: np.ndarray, h: float) -> Window:
    """Return the part of space that the walls of a slab and planes of symmetry leave.

    Args:
        slab: Both of its walls cut.
        mirrors: Of its walls those cut that slip.
        colliders: Whose walls they are.
        low: Where the particles' coordinates begin [m], shape (3,).
        h: Edge of a cell [m].

    Raises:
        MpmNodesError: Walls that cut are not a whole number of cells apart, on planes of nodes, or no wall is a plane of symmetry.
    """
    if mirrors is not Mirrors.NONE and not mirrors.sides(colliders):
        raise MpmNodesError(
            f"sample_surface.mirrors: no wall along {' or '.join(mirrors.value)} slips; place solve.wall_low or wall_high on the "
            "plane of symmetry and let that wall slip"
        )
    places = (colliders.walls.box + colliders.origin - low) / h
    ends = np.tile(np.array([-OPEN_PLANE, OPEN_PLANE], np.int64), (3, 1))
    for name, sides in (("slab", slab.sides), ("mirrors", mirrors.sides(colliders))):
        for axis in sorted({side // 2 for side in sides}):
            cutting = [side % 2 for side in sides if side // 2 == axis]
            at = places[cutting, axis]
            ends[axis, cutting] = np.rint(at)
            if np.abs(at - np.rint(at)).max() > 1e-6 or ends[axis, 0] >= ends[axis, 1]:
                found = " and ".join(f"{each:.6g}" for each in at)
                raise MpmNodesError(
                    f"sample_surface.{name}: the walls along {'xyz'[axis]} lie at {found} cells; place them on planes of nodes, a "
                    "whole number of cells apart"
                )
    return Window(ends[:, 0].copy(), ends[:, 1].copy(), np.arange(3) == (-1 if slab.axis is None else slab.axis))
