"""Choices that several stages and nodes offer."""

from __future__ import annotations

import enum


class Transfer(enum.Enum):
    """Particle-grid transfer."""

    APIC = "apic"
    FLIP = "flip"


class Kernel(enum.Enum):
    """B-spline interpolation kernel."""

    QUADRATIC = "quadratic"
    CUBIC = "cubic"


class Krylov(enum.Enum):
    """Method for the linear systems of an implicit update."""

    CONJUGATE_GRADIENT = "conjugate_gradient"
    CONJUGATE_RESIDUAL = "conjugate_residual"


class Preconditioner(enum.Enum):
    """What the linear systems of an implicit update are scaled by."""

    BLOCK_JACOBI = "block_jacobi"
    JACOBI = "jacobi"
    MASS = "mass"
    NONE = "none"


class CollisionRule(enum.Enum):
    """What a collider does to the relative velocity."""

    STICKY = "sticky"
    SLIP = "slip"
    SEPARATE = "separate"


class JointKind(enum.Enum):
    """What a joint leaves free of a rigid body."""

    FIXED = "fixed"
    BALL = "ball"
    HINGE = "hinge"
    SLIDER = "slider"


class WallRule(enum.Enum):
    """What one side of the domain does to matter that reaches it."""

    STICKY = "sticky"
    SLIP = "slip"
    SEPARATE = "separate"
    OPEN = "open"
    DELETE = "delete"
    PERIODIC = "periodic"
