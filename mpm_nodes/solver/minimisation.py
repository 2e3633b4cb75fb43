"""Implicit steps as minimisation: Newton's method with matrix-free Krylov solves, contacts and a guarded line search.

| symbol | meaning | unit | source |
|---|---|---|---|
| v, v~ | unknown velocities, those without internal forces: v^n + dt g | m/s | Gast 2015 |
| theta, u | share of v in the mean u = theta v + (1 - theta) v^n; 1 is backward Euler (`numerical_damping`) | -, m/s | |
| E | sum m/2 abs(v - v~)^2 + Phi(x + theta dt u) / theta^2 + friction: the incremental potential | J | R15 sec. 4, Gast 2015 |
| H | m + theta^2 dt^2 Phi'' + friction | kg | |
| P, B | projector on the directions that contacts leave free; what follows it outside (`contacts`) | - | |

    repeat: solve B^T H B dv = - B^T dE/dv; v += alpha dv, alpha = 1, 1/2, 1/4, ... until E falls and all points are feasible
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpm_nodes.data import Krylov, Preconditioner
from mpm_nodes.kernels.algebra import potential, vectors
from mpm_nodes.kernels.algebra.krylov import Equations, Method, Stop, Until, krylov
from mpm_nodes.kernels.transfers import node_blocks, tiles
from mpm_nodes.solver.active_contacts import ActiveContacts
from mpm_nodes.solver.numerical_damping import MeanVelocities, share_of
from mpm_nodes.solver.ranks.together import together_on
from mpm_nodes.solver.terms.energy_store import EnergyStore

__all__ = ["Minimisation", "MinimisationOutcome", "MinimisationSettings"]

FALL = 1e-4
"""Share of the decrease predicted by the slope that a step must reach (Armijo)."""

REBUILD = 5
"""Newton iterations that share a preconditioner; friction changes it too much for that."""

METHODS = {Krylov.CONJUGATE_GRADIENT: Method.GRADIENTS, Krylov.CONJUGATE_RESIDUAL: Method.RESIDUALS}
WORK = ("preconditioned", "direction", "product", "second", "third")
"""Grid vectors that the methods work in."""

SHORTEST = 2.0**-14
"""Shortest share of a Newton step that the line search tries."""


FINE_ITERATIONS = 60
"""Newton iterations that lower tolerances than those of the settings need."""

ROUNDING = 32.0
"""Units of the float type's rounding that tolerances are at least: what is below it is noise, which halves dt for nothing."""


@dataclass(frozen=True)
class MinimisationSettings:
    """How hard to minimise; see the knobs of `minimise_energy`."""

    newton_iterations: int = 20
    tolerance: float = 1e-3
    krylov: Krylov = Krylov.CONJUGATE_GRADIENT
    krylov_iterations: int = 1000
    krylov_tolerance: float = 0.1
    preconditioner: Preconditioner = Preconditioner.BLOCK_JACOBI
    guards: bool = True
    numerical_damping: float = 1.0

    def reachable(self, dtype: np.dtype) -> MinimisationSettings:
        """Return the settings with tolerances that solves in this float type can reach."""
        least = ROUNDING * float(np.finfo(dtype).eps)
        return dataclasses.replace(self, tolerance=max(self.tolerance, least), krylov_tolerance=max(self.krylov_tolerance, least))

    def finer(self, tolerance: float) -> MinimisationSettings:
        """Return the settings with a tolerance [cells] that is lower, and with iterations that suffice for it."""
        least, most = min(self.tolerance, tolerance), max(self.newton_iterations, FINE_ITERATIONS)
        return dataclasses.replace(self, tolerance=least, newton_iterations=most)


@dataclass
class MinimisationOutcome:
    """What a minimisation came to.

    Attributes:
        converged: Whether the last Newton step was short enough.
        newton: Newton iterations.
        krylov: Krylov iterations of all of them.
        residual: Largest |P dE/dv| / m at the start of the last iteration [m/s].
        residuals: The same at the start of every iteration [m/s].
        last_step: Length of the last Newton step [cells].
        decrease: Fall of E from the first velocities to the last [J].
        halvings: How often the line search shortened a step.
        reason: Why it did not converge, or "".
    """

    converged: bool = False
    newton: int = 0
    krylov: int = 0
    residual: float = math.inf
    residuals: list[float] = field(default_factory=list)
    last_step: float = math.inf
    decrease: float = 0.0
    halvings: int = 0
    reason: str = ""


class Minimisation:
    """One implicit substep: minimises E over the grid's velocities.

    Args:
        energy: The terms, and room for vectors; its grid holds mass and momentum.
        rows: Contacts of grid nodes, as `ColliderSet.grid_contacts` gives them.
        dt: Substep [s].
        gravity: Acceleration [m/s^2].
        settings: How hard to minimise.
        check_cancel: Raises when the user asked to stop.

    Attributes:
        begin: Velocities to begin with, as the vectors of `energy`; None: those of its own.
    """

    def __init__(
        self,
        energy: EnergyStore,
        rows: np.ndarray,
        dt: float,
        gravity: Any,
        settings: MinimisationSettings,
        check_cancel: Callable[[], None] = lambda: None,
    ) -> None:
        self.energy, self.grid, self.dt = energy, energy.grid, dt
        self.settings = settings.reachable(energy.grid.dtype)
        self.check_cancel = check_cancel
        self.begin: np.ndarray | None = None
        # semi-implicit steps take the terms over a part of dt, and so does what damps less than backward Euler
        self.share = share_of(settings.numerical_damping)
        self.term_dt, self.scale = self.share * dt, 1.0
        grid = self.grid
        self.momentum, self.count = grid.array("momentum"), grid.count
        self.velocity, self.trial, self.gradient = (energy.vector(name) for name in ("velocity", "trial", "gradient"))
        self.predicted = energy.vector("predicted")
        self.change = energy.vector("change")
        self.together = together_on(grid)
        self.vectors = self.together.vectors()
        self._sums, self._pairs = np.empty(max(self.count, 1)), np.empty(2 * max(self.count, 1))
        self._start = potential.Start(self.momentum, self.predicted, dt, grid.least_mass, self.count)
        potential.predict(self._start, *(dt * g for g in gravity))
        self._mean = MeanVelocities(energy, self._start, self.share)
        # slip below a ten-thousandth of a cell a substep counts as none
        self.clamped = False
        self.contacts = ActiveContacts(rows, energy.slots(), self.count, 1e-4 * grid.h / dt, grid.halo.own)
        # what any rank has to do all ranks do
        self.met, self.linked, self.rubs = (
            self.together.any(f) for f in (bool(len(rows)), self.contacts.linked, self.contacts.rubs)
        )

    # ---------------------------------------------------------------- the potential
    def value(self, velocity: np.ndarray) -> tuple[float, int]:
        """Return E at `velocity` and the infeasible points; leaves dE/dv in `gradient` and the terms at these velocities."""
        stored, broken = self.energy.evaluate(self.term_dt, self._mean.of(velocity))
        self.friction = self._friction(velocity)
        return self._slope(velocity) + stored / self.share**2 + self.friction, broken

    def _friction(self, velocity: np.ndarray) -> float:
        found = self.contacts.friction(velocity)
        return self.together.number(found) if self.rubs else found

    def _slope(self, velocity: np.ndarray) -> float:
        """Write dE/dv for the grid's forces; return the kinetic part of E."""
        contacts, force = self.contacts, self.grid.array("force")
        potential.residual(self._start, velocity, force, contacts.drag_slope, contacts.slot, self.gradient, self._sums)
        return float(self.together.total(self._sums[: self.count]))

    def _largest(self, x: np.ndarray, by_mass: bool) -> float:
        potential.largest(x, self.momentum, by_mass, self.grid.least_mass, self.grid.particle_mass, self.count, self._sums)
        return self.together.largest(self._sums[: self.count])

    def product(self, p: np.ndarray, q: np.ndarray) -> float:
        """Write q = B^T H p at the velocities of the last `value`; return p.q."""
        direction, product = self.energy.rounded("direction"), self.energy.rounded("product")
        vectors.copy(p, direction, self.count)
        tiles.clear_grid(product, self.count)
        for term in self.energy.terms.values():
            term.apply(self.term_dt, direction, product)
        self.together.add_up(product)
        met = self.contacts
        held = potential.Held(met.slot, met.moving, met.drag)
        potential.finish_product(self._start, held, product, self.scale, p, q, self._sums)
        if not self.linked:
            return float(self.together.total(self._sums[: self.count]))
        met.reduce(q)
        self.together.agree(q)
        return self.vectors.dot(p, q)

    def _agree(self, velocity: np.ndarray) -> None:
        """Take what contacts make of nodes at a rim from the rank that sees all around them."""
        if self.met:
            self.together.agree(velocity)

    def _reduce(self) -> None:
        self.contacts.reduce(self.gradient)
        self._agree(self.gradient)

    # ---------------------------------------------------------------- Newton's method
    def start(self) -> tuple[float, int]:
        """Begin from the first feasible of `begin`, v~, half of it, and rest; return E and how many points are infeasible."""
        known = [] if self.begin is None else [(1.0, self.begin)]
        for share, first in (*known, *((share, self.predicted) for share in (1.0, 0.5, 0.0))):
            vectors.scale(share, first, self.velocity, self.count)
            self.contacts.choose(self.velocity)
            self._agree(self.velocity)
            value, broken = self.value(self.velocity)
            if not broken or not self.settings.guards:
                break
        return value, broken

    def run(self) -> MinimisationOutcome:
        """Minimise; the grid's velocity and the particles' velocity gradient are those of the last iterate."""
        found, settings = MinimisationOutcome(), self.settings
        value, broken = self.start()
        first = value
        if not math.isfinite(value) or (broken and settings.guards):
            found.reason = f"{broken} points leave the domain of their law even at rest"
            return found
        for iteration in range(settings.newton_iterations):
            self.check_cancel()
            value = self._settle_contacts(value)
            self._reduce()
            found.residual = self._largest(self.gradient, True)
            found.residuals.append(found.residual)
            # what is left below that is rounding, and a solve for it would only magnify it
            if found.residual <= sys.float_info.epsilon * found.residuals[0]:
                found.converged = True
                break
            forcing = min(settings.krylov_tolerance, math.sqrt(found.residual / found.residuals[0]) * settings.krylov_tolerance)
            found.krylov += self._find_change(forcing, iteration % REBUILD == 0 or self.rubs)
            found.newton += 1
            found.last_step = self._largest(self.change, False) * self.dt / self.grid.h
            lower, halvings = self._search(value)
            found.halvings += halvings
            if lower is None and self.clamped:
                value = self._hold_clamped(value)
                continue
            if lower is None:
                # nothing along the step is lower: at rounding level if the step is short, else a defect of the term
                found.converged = found.last_step <= 10.0 * settings.tolerance
                found.reason = "" if found.converged else "no step along Newton's direction lowers the energy"
                value = self.value(self.velocity)[0]
                break
            value = lower
            # a short step that the search shortens is at rounding level: there energies no longer tell what is lower
            if found.last_step <= settings.tolerance and not self.clamped:
                found.converged = True
                break
        else:
            found.reason = f"{settings.newton_iterations} Newton iterations, the last step {found.last_step:.2g} cells"
        found.decrease = first - value
        if self.share < 1.0:
            self.value(self.velocity)  # particles keep its gradient of the mean: `gather` leaves it
        vectors.copy(self.velocity, self.grid.array("velocity"), self.count)
        return found

    def run_once(self, beta: float) -> MinimisationOutcome:
        """Solve the linear system of a semi-implicit step (S14 eq. 22-26, in its own order: forces, collisions, solve).

        m (v - v~) - dt f(0) + beta dt^2 Phi'' v = 0, with the terms over beta dt: elastic ones get the factor beta, viscous ones,
        whose energy divides by dt, keep their full strength.

        Args:
            beta: 1/2 damps least, 1 is the first Newton step of backward Euler.
        """
        grid, found, rest = self.grid, MinimisationOutcome(), self.trial
        self.term_dt, self.scale = beta * self.dt, 1.0 / beta
        grid.clear("velocity")
        self.energy.evaluate(self.term_dt, grid.array("velocity"))
        self.energy.linearise(self.term_dt)
        force = grid.array("force")
        potential.kick(self._start, force, self.velocity)
        vectors.copy(self.velocity, rest, self.count)
        self.contacts.choose(self.velocity)
        self._agree(self.velocity)
        self.contacts.rub(self.momentum, rest)
        self.product(self.velocity, self.gradient)
        potential.add_forces(force, self.energy.rounded("product"), -self.scale / self.dt, self.count)
        self._slope(self.velocity)
        self._reduce()
        self._build_preconditioner()
        self.vectors.clear(self.change)
        found.residual = self._largest(self.gradient, True)
        if found.residual > 0.0:
            found.krylov, _ = self._solve(self.settings.krylov_tolerance)
            vectors.combine(1.0, self.velocity, 1.0, self.change, self.velocity, self.count)
        found.newton, found.last_step = 1, self._largest(self.change, False) * self.dt / grid.h
        found.converged = found.krylov < self.settings.krylov_iterations and math.isfinite(found.last_step)
        found.reason = "" if found.converged else f"{found.krylov} Krylov iterations did not solve the linear system"
        vectors.copy(self.velocity, grid.array("velocity"), self.count)
        return found

    def contact_impulses(self) -> tuple[np.ndarray, ...]:
        """Return what contacts gave to the bodies at the last iterate, as `contact_forces.tell_forces` takes it."""
        self.value(self.velocity)
        self._agree(self.gradient)
        return self.contacts.given_to_bodies(self.velocity, self.gradient)

    def _settle_contacts(self, value: float) -> float:
        """Lag the normal impulses, free contacts that would pull, and return E with the new friction."""
        if not self.met:
            return value
        self.contacts.let_go(self.velocity, self.gradient)
        self._agree(self.velocity)
        if not self.rubs:
            return value
        before = self.friction
        self.friction = self._friction(self.velocity)
        self._slope(self.velocity)
        self.contacts.bend(self.momentum, self.velocity, self.gradient)
        return value - before + self.friction

    def _build_preconditioner(self) -> None:
        self.inverse = self.energy.blocks()
        self.inverse[: 384 * self.count] = 0.0
        kind = self.settings.preconditioner
        blocks = kind in (Preconditioner.BLOCK_JACOBI, Preconditioner.JACOBI)
        if blocks:
            for term in self.energy.terms.values():
                term.add_blocks(self.term_dt, self.inverse)
            self.together.add_up(self.inverse, width=384)
            self.contacts.add_drag(1.0 / self.scale, self.inverse)
        node_blocks.invert_blocks(
            self.momentum, self.inverse, self.scale, self.count, self.grid.least_mass, kind is Preconditioner.JACOBI
        )
        if kind is Preconditioner.NONE:  # all nodes alike; CG and CR do not mind the factor
            nodes = self.inverse[: 384 * self.count].reshape(-1, 6)
            nodes[nodes[:, 0] > 0.0] = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0]) / self.grid.particle_mass

    def _search(self, value: float) -> tuple[float | None, int]:
        """Walk along `change` to lower energy inside the domain; returns E there (None: nowhere) and how often it halved."""
        slope = self.vectors.dot(self.gradient, self.change)
        # the force is known to the rounding of the solve's float type, and with it how far E can be told
        noise = 1e-12 * abs(value) + 8.0 * float(np.finfo(self.grid.dtype).eps) * abs(slope)
        share, halvings = 1.0, 0
        held = self.contacts.active.copy()
        while share >= SHORTEST:
            vectors.combine(1.0, self.velocity, share, self.change, self.trial, self.count)
            self.contacts.clamp(self.trial, held)
            self.clamped = self.met and self.together.any(bool(self.contacts.clamped))
            self._agree(self.trial)
            there, broken = self.value(self.trial)
            allowed = not broken or not self.settings.guards
            if allowed and math.isfinite(there) and (there <= value + FALL * share * slope + noise or not self.settings.guards):
                self.velocity, self.trial = self.trial, self.velocity
                return there, halvings
            share *= 0.5
            halvings += 1
        return None, halvings

    def _hold_clamped(self, value: float) -> float:
        """Hold for good the contacts that stopped even the shortest step, and return E at the velocities before it.

        They were let go, yet Newton's step drives them back: what is left of it when they stop it need not lead downhill.
        """
        self.contacts.hold_clamped(self.velocity)
        self._agree(self.velocity)
        there, broken = self.value(self.velocity)
        return value if broken else there

    # ---------------------------------------------------------------- the linear system
    def _find_change(self, tolerance: float, rebuild: bool) -> int:
        """Write Newton's step to `change`; returns the Krylov iterations it took.

        With all of H the method closes in quadratically. Where H bends down along the way, terms that can drop what does so.
        """
        self.energy.linearise(self.term_dt, whole=True)
        if rebuild:
            self._build_preconditioner()
        iterations, bends_down = self._solve(tolerance)
        if bends_down and self.energy.drops_parts:
            self.energy.linearise(self.term_dt)
            self._build_preconditioner()
            iterations += self._solve(tolerance)[0]
        return iterations

    def _solve(self, tolerance: float) -> tuple[int, bool]:
        """Solve P H P change = - gradient to a relative residual; returns the iterations, and whether H was seen to bend down."""
        method = METHODS[self.settings.krylov]
        b, x = self.energy.vector("residual"), self.change
        vectors.scale(-1.0, self.gradient, b, self.count)
        found = krylov(
            Equations(self.product, self._precondition, self.vectors.dot, self.vectors),
            b,
            x,
            Until(tolerance, self.settings.krylov_iterations),
            method=method,
            work=[self.energy.vector(name) for name in WORK[: method.work]],
            check=self.check_cancel,
        )
        bends_down = found.stop is Stop.BREAKDOWN
        if method is Method.GRADIENTS:
            if bends_down and found.iterations == 1:
                vectors.copy(found.direction, x, self.count)  # the energy bends down at once: go down the gradient
        elif not bends_down and self.vectors.dot(x, self.gradient) >= 0.0:
            bends_down = True
            vectors.scale(-1.0, self.gradient, b, self.count)  # not downhill: the preconditioned gradient is
            self._precondition(b, x)
        return found.iterations, bends_down

    def _precondition(self, r: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        """Write z = B P inverse r; return r.z and sum |r|^2 / m, which says when to stop whatever the preconditioner is."""
        potential.precondition(self.momentum, self.inverse, self.contacts.free, self.contacts.slot, r, z, self.count, self._pairs)
        self.contacts.follow(z)
        if self.linked:
            self.together.agree(z)
        both = self.together.total(self._pairs[: 2 * self.count].reshape(-1, 2))
        return float(both[0]), float(both[1])
