"""Attachments: regions of matter that springs tie to their place or to a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpm_nodes.data.spatial import BodyForce, SpatialField

__all__ = ["Attachment", "BodyMotion", "attached_column", "attachments_of"]


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """How the material points of a body move over the frame that ends at the cooked one.

    Attributes:
        frames: (Fractional) frames of its poses, ascending, shape (k,).
        rotations: Unit quaternions w x y z, shape (k, 4).
        translations: [m], shape (k, 3).
        points: Vertices of its surface before it is posed, at the beginning and the end of the frame, shape (n, 3) each [m];
            straight in between. None: its points keep their places in its axes.
        triangles: Of the surface, shape (m, 3).
        frame: The cooked frame, at which `points` end.
    """

    frames: np.ndarray
    rotations: np.ndarray
    translations: np.ndarray
    points: tuple[np.ndarray, np.ndarray] | None = None
    triangles: np.ndarray | None = None
    frame: float = 0.0


@dataclass(frozen=True, eq=False)
class Attachment:
    """Springs that tie particles.

    Attributes:
        stiffness: Of all its ties together [N/m]; may carry keys. At 0 it lets go, and ties anew when it is above 0 again.
        damping: Share of the critical damping of what is tied.
        breaking_force: Pull of all its springs together at which its ties break [N], 0 for none; may carry keys.
        mask: Field that is above 1/2 where particles are tied; None: everywhere.
        body: What they are tied to; None: their places.
    """

    stiffness: float
    damping: float = 1.0
    breaking_force: float = 0.0
    mask: SpatialField | None = None
    body: BodyMotion | None = None


def attachments_of(forces: Iterable[BodyForce]) -> tuple[Attachment, ...]:
    """Return the attachments among forces, in their order."""
    return tuple(force.attachment for force in forces if force.attachment is not None)


def attached_column(number: int) -> tuple[str, str]:
    """Return the columns that hold the ties of an attachment: what became of each particle, and where its tie begins.

    Args:
        number: Place among the attachments of the solve, from 0.
    """
    return f"attached_{number + 1}", f"attached_{number + 1}_place"
