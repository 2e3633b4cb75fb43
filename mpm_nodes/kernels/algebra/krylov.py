"""Krylov methods for symmetric systems A x = b of any size and origin: conjugate gradients and conjugate residuals.

| symbol | meaning | source |
|---|---|---|
| r, z | residual b - A x, preconditioned residual M^-1 r | |
| p, q | direction, A p | |
| y, w | A z, M^-1 q | conjugate residuals |

    gradients   x += (r.z / p.q) p,   p = z + (r'.z' / r.z) p               (Hestenes 1952)
    residuals   x += (z.y / q.w) p,   p = z + (z'.y' / z.y) p, q likewise   (Stiefel 1955; Stomakhin 2014 sec. 5.5)

Conjugate gradients want A and M positive definite. Conjugate residuals want M positive definite only: |r| in the norm of M^-1 never
grows. For definite A they walk as MINRES does; with an indefinite A they may break down (z.A z = 0) where MINRES would not.

Nothing here knows what a vector stands for. Vectors are touched through `vectors` alone; what the caller's functions return are
finished sums, in an order of their own choice: where a vector is shared among machines they join them in the order of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

__all__ = ["Equations", "Method", "Solution", "Stop", "Until", "Vectors", "krylov"]

Apply = Callable[[np.ndarray, np.ndarray], float | None]
Precondition = Callable[[np.ndarray, np.ndarray], tuple[float, float] | None]
Dot = Callable[[np.ndarray, np.ndarray], float]

CHECK_EVERY = 20
"""Iterations between calls of `check`."""


class Method(Enum):
    """Which method to walk by."""

    GRADIENTS = "conjugate gradients"
    RESIDUALS = "conjugate residuals"

    @property
    def work(self) -> int:
        """Working vectors that it takes beside x and b."""
        return 3 if self is Method.GRADIENTS else 5


class Stop(Enum):
    """Why a solve ended."""

    CONVERGED = "the residual is small enough"
    LIMIT = "as many iterations as were allowed"
    BREAKDOWN = "a direction without positive curvature, or a sum that is not finite"


class Vectors(Protocol):
    """Arithmetic of vectors; `kernels.algebra.vectors.BlockVectors` is one."""

    def new(self) -> np.ndarray:
        """Return a vector of zeros."""

    def clear(self, x: np.ndarray) -> None:
        """x = 0."""

    def copy(self, x: np.ndarray, result: np.ndarray) -> None:
        """Write x to `result`."""

    def combine(self, a: float, x: np.ndarray, b: float, y: np.ndarray, result: np.ndarray) -> None:
        """Write a x + b y to `result`, which may be x or y."""

    def step_along(self, a: float, p: np.ndarray, q: np.ndarray, x: np.ndarray, r: np.ndarray) -> None:
        """x += a p and r -= a q."""


@dataclass(frozen=True)
class Equations:
    """A system of equations, by what is done to its vectors.

    Attributes:
        apply: apply(p, q) writes A p to q; may return p.q where that comes cheaper with the product.
        precondition: precondition(r, z) writes M^-1 r to z; may return r.z and the square of the residual's size.
        dot: dot(x, y) returns x.y.
        vectors: Arithmetic of the vectors.
    """

    apply: Apply
    precondition: Precondition
    dot: Dot
    vectors: Vectors


@dataclass(frozen=True)
class Until:
    """When a solve ends.

    Attributes:
        tolerance: The residual's size over that of b at which to stop.
        most: Most iterations.
    """

    tolerance: float = 1e-8
    most: int = 1000


@dataclass
class Solution:
    """How a solve went.

    Attributes:
        stop: Why it ended.
        iterations: Products with A, but the one for a guess and the first of conjugate residuals.
        residuals: Size of the residual over that of b at the start and after each iteration.
        direction: The last direction p; after a breakdown in the first iteration the preconditioned b.
    """

    stop: Stop = Stop.LIMIT
    iterations: int = 0
    residuals: list[float] = field(default_factory=list)
    direction: np.ndarray | None = None

    @property
    def converged(self) -> bool:
        """Whether the residual is as small as was asked for."""
        return self.stop is Stop.CONVERGED


def krylov(
    equations: Equations,
    b: np.ndarray,
    x: np.ndarray,
    until: Until = Until(),
    *,
    method: Method = Method.GRADIENTS,
    guess: bool = False,
    work: Sequence[np.ndarray] = (),
    check: Callable[[], None] = lambda: None,
) -> Solution:
    """Solve A x = b.

    The residual's size is sqrt(r.r), or whatever `precondition` says. Singular systems are solved where b is consistent: let
    `apply` and `precondition` leave the null space out of what they write.

    Args:
        equations: A, M^-1 and the arithmetic of their vectors.
        b: Right side; holds the residual afterwards.
        x: Solution, written.
        until: When to stop.
        method: Conjugate gradients or residuals.
        guess: x is a first guess; else the solve begins at zero.
        work: Working vectors, `method.work` of them; made where none are given.
        check: Called now and then; raises to end the solve.
    """
    work = list(work) or [equations.vectors.new() for _ in range(method.work)]
    walk = _Walk(equations, b, x, work, until, check)
    if guess:
        walk.begin_from_guess()
    else:
        equations.vectors.clear(x)
    return walk.gradients() if method is Method.GRADIENTS else walk.residuals()


@dataclass
class _Walk:
    """One solve: what it was given, and the square of the size of b."""

    equations: Equations
    r: np.ndarray
    x: np.ndarray
    work: Sequence[np.ndarray]
    until: Until
    check: Callable[[], None]
    first: float | None = None

    @property
    def vectors(self) -> Vectors:
        """Arithmetic of the vectors."""
        return self.equations.vectors

    def applied(self, p: np.ndarray, q: np.ndarray) -> float:
        """Write A p to q; return p.q."""
        found = self.equations.apply(p, q)
        return self.equations.dot(p, q) if found is None else found

    def preconditioned(self, r: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        """Write M^-1 r to z; return r.z and the square of the size of r."""
        found, dot = self.equations.precondition(r, z), self.equations.dot
        return (dot(r, z), dot(r, r)) if found is None else found

    def begin_from_guess(self) -> None:
        """Replace b by the residual of x; its own size is what the residual is measured by."""
        self.first = self.preconditioned(self.r, self.work[0])[1]
        self.equations.apply(self.x, self.work[0])
        self.vectors.combine(1.0, self.r, -1.0, self.work[0], self.r)

    def begin(self, size: float, z: np.ndarray, p: np.ndarray) -> tuple[Solution, float]:
        """Return the record of the solve and the square of the size of b; p = z, unless there is nothing to do."""
        first = size if self.first is None else self.first
        found = Solution()
        self.note(found, size, first)
        if not found.converged:
            self.vectors.copy(z, p)
            found.direction = p
        return found, first

    def note(self, found: Solution, size: float, first: float) -> None:
        """Note the residual, and whether it is small enough."""
        found.residuals.append(math.sqrt(size / first) if first > 0.0 and size >= 0.0 else 0.0 if size == 0.0 else math.inf)
        if size <= self.until.tolerance * self.until.tolerance * first:
            found.stop = Stop.CONVERGED

    def gradients(self) -> Solution:
        """Walk by conjugate gradients."""
        z, p, q = self.work[:3]
        rz, size = self.preconditioned(self.r, z)
        found, first = self.begin(size, z, p)
        if found.converged:
            return found
        for found.iterations in range(1, self.until.most + 1):
            if found.iterations % CHECK_EVERY == 0:
                self.check()
            curvature = self.applied(p, q)
            if not 0.0 < curvature < math.inf:
                found.stop = Stop.BREAKDOWN
                break
            self.vectors.step_along(rz / curvature, p, q, self.x, self.r)
            before, (rz, size) = rz, self.preconditioned(self.r, z)
            self.note(found, size, first)
            if found.converged:
                break
            self.vectors.combine(1.0, z, rz / before, p, p)
        return found

    def residuals(self) -> Solution:
        """Walk by conjugate residuals."""
        z, p, q, y, w = self.work[:5]
        _, size = self.preconditioned(self.r, z)
        found, first = self.begin(size, z, p)
        if found.converged:
            return found
        zy = self.applied(z, y)
        self.vectors.copy(y, q)
        for found.iterations in range(1, self.until.most + 1):
            if found.iterations % CHECK_EVERY == 0:
                self.check()
            scale, _ = self.preconditioned(q, w)
            if not (scale > 0.0 and math.isfinite(zy)) or zy == 0.0:
                found.stop = Stop.BREAKDOWN
                break
            self.vectors.step_along(zy / scale, p, q, self.x, self.r)
            # what z becomes is z - (zy / scale) w; it is found with the residual's size anyway
            z, w = w, z
            self.note(found, self.preconditioned(self.r, z)[1], first)
            if found.converged:
                break
            before, zy = zy, self.applied(z, y)
            self.vectors.combine(1.0, z, zy / before, p, p)
            self.vectors.combine(1.0, y, zy / before, q, q)
        return found
