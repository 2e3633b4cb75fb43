"""Fields: numbers or vectors through space and time, as trees of operations that a kernel runs at each place."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data.menus import CollisionRule
from mpm_nodes.data.units import Vec3

__all__ = [
    "AGE",
    "ActiveMask",
    "Attachment",
    "AttributeUpdate",
    "AxesPart",
    "BodyForce",
    "BodyMotion",
    "Drain",
    "FieldGrid",
    "Gravity",
    "Moment",
    "MovingAxes",
    "PerFrame",
    "SpatialField",
    "TimeLeft",
    "attached_column",
    "attachments_of",
    "attributes_of",
]

AGE = "age"
"""Name of the simulated seconds since a particle came in, which fields may read as an attribute."""


@dataclass(frozen=True)
class Moment:
    """When a field is looked at.

    Attributes:
        frame: (Fractional) frame; -infinity where there are none.
        time: Simulated seconds since the initial state.
        frame_seconds: Simulated seconds that a frame takes now.
        gravity: Of the solve [m/s^2].
    """

    frame: float = -float("inf")
    time: float = 0.0
    frame_seconds: float = 1.0
    gravity: Vec3 = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class PerFrame:
    """A number that grows with the frame: `rate` a frame."""

    rate: float

    def at(self, moment: Moment) -> float:
        """Return it at a moment; 0 where there are no frames."""
        return moment.frame * self.rate if np.isfinite(moment.frame) else 0.0


@dataclass(frozen=True)
class TimeLeft:
    """The simulated seconds to a frame, if time goes on as fast as now, and not below those of `least` frames."""

    until: float
    least: float

    def at(self, moment: Moment) -> float:
        """Return it at a moment."""
        return max(self.until - moment.frame, self.least) * moment.frame_seconds


@dataclass(frozen=True)
class Gravity:
    """The gravity of the solve [m/s^2], a vector."""

    def at(self, moment: Moment) -> Vec3:
        """Return it at a moment."""
        return moment.gravity


@dataclass(frozen=True, eq=False)
class FieldGrid:
    """Voxels of a sparse grid, or values on cubes of a lattice.

    Attributes:
        leaves: Keys of leaves of 8^3 voxels (`kernels.level_sets.vector_leaves.leaf_keys`), or of cubes, ascending, int64.
        voxels: Shape (512 leaves c,), float32: c numbers a voxel, one or three, NaN where it holds none; of cubes (leaves,).
        to_index: From metres to indices of voxels or cubes, shape (3, 4).
        parts: c.
    """

    leaves: np.ndarray
    voxels: np.ndarray
    to_index: np.ndarray
    parts: int


@dataclass(frozen=True, eq=False)
class SpatialField:
    """A number or a vector at every place and frame.

    Attributes:
        operation: What makes it of the inputs: a name of `kernels.fields.codes`, or COURSE: the inputs, one a frame of its numbers,
            straight in between.
        inputs: Fields, three at most; of a COURSE any number.
        numbers: Numbers of the operation; they may carry keys, and be `PerFrame`, `TimeLeft`, `Gravity` or `MovingAxes`.
        grid: Of a GRID, whose numbers are the value outside and whether what the grid does not hold is left out; of CUBES.
        vector: Whether it is a vector; a number is the same along all three axes.
        attribute: Of an ATTRIBUTE, which one of a particle it is: a column, or `AGE`.
    """

    operation: str
    inputs: tuple[SpatialField, ...] = ()
    numbers: tuple[Any, ...] = ()
    vector: bool = False
    grid: FieldGrid | None = None
    attribute: str = ""


def attributes_of(*fields: SpatialField | None) -> frozenset[str]:
    """Return the attributes of particles that fields read."""
    waiting, seen, found = [each for each in fields if each is not None], set[int](), set[str]()
    while waiting:
        field = waiting.pop()
        if field.attribute:
            found.add(field.attribute)
        fresh = [each for each in field.inputs if id(each) not in seen]
        seen.update(map(id, fresh))
        waiting += fresh
    return frozenset(found)


@dataclass(frozen=True, eq=False)
class Drain:
    """A place that takes matter away.

    Attributes:
        field: Where it is above 1/2, particles go.
    """

    field: SpatialField

    @property
    def attributes(self) -> frozenset[str]:
        """What it reads of particles."""
        return attributes_of(self.field)


@dataclass(frozen=True)
class Sleep:
    """When matter counts as at rest.

    Attributes:
        motion: Cells that particles may be from where they were as the window began.
        window: Length of the window [s].
    """

    motion: float
    window: float


@dataclass(frozen=True, eq=False)
class ActiveMask:
    """Which matter moves.

    Attributes:
        field: Where it is above 1/2 as a frame begins, particles are active; elsewhere they are passive.
        rule: What passive matter does to the velocity of active matter that meets it.
        friction: Coulomb coefficient, used by `CollisionRule.SEPARATE`.
        sleep: Let what is at rest be passive until something comes near, wherever the field is; None: as the field says.
    """

    field: SpatialField
    rule: CollisionRule = CollisionRule.STICKY
    friction: float = 0.0
    sleep: Sleep | None = None

    @property
    def attributes(self) -> frozenset[str]:
        """What it reads of particles."""
        return attributes_of(self.field)


@dataclass(frozen=True, eq=False)
class AttributeUpdate:
    """What becomes of an attribute of particles while a solve runs.

    Attributes:
        attribute: Its name.
        value: What it is set to, or what is added to it or multiplies it.
        mask: Share of the change that a particle takes, from 0 to 1; None: all of it.
        combination: "set", "add" or "multiply".
        limits: Least and largest value; what goes beyond them is brought back.
        each_substep: Whether it is done as every substep begins, and not as every frame begins.
        name: What messages call it: its node.
    """

    attribute: str
    value: SpatialField
    mask: SpatialField | None = None
    combination: str = "set"
    limits: tuple[float, float] = (-float("inf"), float("inf"))
    each_substep: bool = False
    name: str = ""

    @property
    def attributes(self) -> frozenset[str]:
        """What it reads of particles."""
        return attributes_of(self.value, self.mask)


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


class AxesPart(enum.Enum):
    """What numbers say of moving axes, with the rotation R and the place t of their origin.

    INWARD: R row by row and t, which a MOVED takes to bring places in. TURNED_IN: R and 0, for vectors. OUTWARD: R^T and 0, which
    turn vectors back. SPIN: W^T and t, with which a MOVED gives the velocity of what turns with the axes, W = dR/dt R^T. DRIFT:
    dt/dt [m/s].
    """

    INWARD = enum.auto()
    TURNED_IN = enum.auto()
    OUTWARD = enum.auto()
    SPIN = enum.auto()
    DRIFT = enum.auto()


@dataclass(frozen=True)
class MovingAxes:
    """Numbers of a field that follow the axes of a body.

    Attributes:
        body: Its motion.
        part: Which numbers they are.
    """

    body: BodyMotion
    part: AxesPart


@dataclass(frozen=True, eq=False)
class Attachment:
    """Springs that tie particles.

    Attributes:
        stiffness: Of all its ties together [N/m]; may carry keys. At 0 it lets go, and ties again when it is above 0.
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


@dataclass(frozen=True, eq=False)
class BodyForce:
    """What pushes matter, over the frame interval that ends at the cooked frame.

    Attributes:
        value: Acceleration [m/s^2]; of a drag the velocity that it draws to [m/s].
        rate: Of a drag, what a second takes of the difference [1/s], where `quadratic` a metre of way [1/m]. None: it accelerates.
        quadratic: Whether the drag grows with the square of the difference.
        surface: Whether it acts on the surface to windward: the rate is then density / 2 of the air times a coefficient [kg/m^3].
        most_speed: Speed beyond which it makes nothing faster [m/s], 0 for none; may carry keys.
        name: What messages call it: its node.
        exchanges: Column whose values particles exchange, as a frame begins, where that brings them nearer to these places [m], and
            the column of the group among which they do, 0 for none; empty: they keep theirs.
        attachment: Springs that it is, which act after all forces that are none; `value` is then 0.
    """

    value: SpatialField
    rate: SpatialField | None = None
    quadratic: bool = False
    surface: bool = False
    most_speed: float = 0.0
    name: str = ""
    exchanges: tuple[str, str] | None = None
    attachment: Attachment | None = None

    @property
    def attributes(self) -> frozenset[str]:
        """What it reads of particles."""
        return attributes_of(self.value, self.rate, None if self.attachment is None else self.attachment.mask)


def attachments_of(forces: Iterable[BodyForce]) -> tuple[Attachment, ...]:
    """Return the attachments among forces, in their order."""
    return tuple(force.attachment for force in forces if force.attachment is not None)


def attached_column(number: int) -> tuple[str, str]:
    """Return the columns that hold the ties of an attachment: what became of each particle, and where its tie begins.

    Args:
        number: Place among the attachments of the solve, from 0.
    """
    return f"attached_{number + 1}", f"attached_{number + 1}_place"
