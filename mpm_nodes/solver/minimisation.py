"""Backward Euler as minimisation: Newton's method with matrix-free Krylov solves, contacts and a guarded line search.

| symbol | meaning | unit | source |
|---|---|---|---|
| v, v~ | unknown velocities, those without internal forces: v^n + dt g | m/s | method 7.2 |
| E | sum m/2 abs(v - v~)^2 + Phi(x + dt v) + friction: the incremental potential | J | R15 sec. 4, Gast 2015 |
| H | m + dt^2 Phi'' + friction | kg | |
| P | projector on the directions that contacts leave free | - | `contacts` |

    repeat: solve P H P dv = - P dE/dv; v += alpha dv, alpha = 1, 1/2, 1/4, ... until E falls and each point is in its law's domain
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpm_nodes.data import Krylov, Preconditioner
from mpm_nodes.kernels import contacts, krylov, node_blocks, tiles
from mpm_nodes.solver.terms.energy_store import EnergyStore

__all__ = ["Minimisation", "Outcome", "Settings"]

MOST_RELEASES = 3
"""A contact that let go so often in one substep stays: the active set must settle."""

FALL = 1e-4
"""Share of the decrease predicted by the slope that a step must reach (Armijo)."""

REBUILD = 5
"""Newton iterations that share a preconditioner; friction changes it too much for that."""

SHORTEST = 2.0**-14
"""Shortest share of a Newton step that the line search tries."""


@dataclass(frozen=True)
class Settings:
    """How hard to minimise; see the knobs of `minimise_energy`."""

    newton_iterations: int = 20
    tolerance: float = 1e-3
    krylov: Krylov = Krylov.CONJUGATE_GRADIENT
    krylov_iterations: int = 1000
    krylov_tolerance: float = 0.1
    preconditioner: Preconditioner = Preconditioner.BLOCK_JACOBI
    guards: bool = True


@dataclass
class Outcome:
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
    """

    def __init__(self, energy: EnergyStore, rows: np.ndarray, dt: float, gravity: Any, settings: Settings,
                 check_cancel: Callable[[], None] = lambda: None) -> None:
        self.energy, self.grid, self.rows, self.dt, self.settings = energy, energy.grid, rows, dt, settings
        self.check_cancel = check_cancel
        # semi-implicit steps take the terms over a part of dt
        self.term_dt, self.scale = dt, 1.0
        grid = self.grid
        self.momentum, self.count = grid.array("momentum"), grid.count
        self.velocity, self.trial, self.gradient = (energy.vector(name) for name in ("velocity", "trial", "gradient"))
        self.predicted = energy.vector("predicted")
        self.change = energy.vector("change")
        self._sums, self._pairs = np.empty(max(self.count, 1)), np.empty(2 * max(self.count, 1))
        krylov.predict(self.momentum, self.predicted, self.count, *(dt * g for g in gravity), grid.least_mass)
        self._meet_contacts()

    # ---------------------------------------------------------------- contacts
    def _meet_contacts(self) -> None:
        rows = self.rows
        self.slot = self.energy.slots()
        self.slot[: 64 * self.count] = -1
        self.of_row = np.empty(len(rows), np.int64)
        nodes = contacts.number_nodes(rows, self.slot, self.of_row) if len(rows) else 0
        self.free, self.drag_slope, self.drag = np.empty(6 * nodes), np.zeros(3 * nodes), np.zeros(6 * nodes)
        self.active, self.releases = np.zeros(len(rows), np.uint8), np.zeros(len(rows), np.uint8)
        self.impulse = np.zeros(len(rows))
        # slip below a ten-thousandth of a cell a substep counts as none
        self.slip = 1e-4 * self.grid.h / self.dt
        self.rubs = bool(len(rows)) and bool((rows[:, contacts.FRICTION] > 0).any())

    def _choose_contacts(self) -> None:
        """Choose which contacts hold at `velocity`, and constrain it; solves without any do not compile this."""
        if len(self.rows):
            contacts.constrain(self.rows, self.of_row, self.active, self.velocity, self.free, True)

    def _friction(self, velocity: np.ndarray) -> float:
        if not self.rubs:
            return 0.0
        return contacts.drag_of(self.rows, self.of_row, self.active, self.impulse, velocity, self.slip, self.drag_slope)

    # ---------------------------------------------------------------- the potential
    def value(self, velocity: np.ndarray) -> tuple[float, int]:
        """Return E at `velocity` and the infeasible points; leaves dE/dv in `gradient` and the terms at these velocities."""
        grid = self.grid
        rounded = grid.array("velocity")
        krylov.round_to(velocity, rounded, self.count)
        stored, broken = self.energy.evaluate(self.term_dt, rounded)
        self.friction = self._friction(velocity)
        return self._slope(velocity) + stored + self.friction, broken

    def _slope(self, velocity: np.ndarray) -> float:
        """Write dE/dv for the grid's forces; return the kinetic part of E."""
        krylov.residual(self.momentum, velocity, self.predicted, self.grid.array("force"), self.drag_slope, self.slot, self.dt,
                        self.grid.least_mass, self.gradient, self.count, self._sums)
        return float(self._sums[: self.count].sum())

    def _dot(self, x: np.ndarray, y: np.ndarray) -> float:
        krylov.dots(x, y, self.count, self._sums)
        return float(self._sums[: self.count].sum())

    def _largest(self, x: np.ndarray, by_mass: bool) -> float:
        krylov.largest(x, self.momentum, by_mass, self.grid.least_mass, self.grid.particle_mass, self.count, self._sums)
        return float(self._sums[: self.count].max(initial=0.0))

    def product(self, p: np.ndarray, q: np.ndarray) -> float:
        """Write q = P H p at the velocities of the last `value`; return p.q."""
        grid = self.grid
        direction, product = self.energy.rounded("direction"), self.energy.rounded("product")
        krylov.round_to(p, direction, self.count)
        tiles.clear_grid(product, self.count)
        for term in self.energy.terms.values():
            term.apply(self.term_dt, direction, product)
        krylov.finish_product(self.momentum, product, self.scale, p, self.drag, self.free, self.slot, grid.least_mass, q,
                              self.count, self._sums)
        return float(self._sums[: self.count].sum())

    # ---------------------------------------------------------------- Newton's method
    def start(self) -> tuple[float, int]:
        """Begin from the first feasible of v~, half of it, and rest; return E and how many points are infeasible."""
        for share in (1.0, 0.5, 0.0):
            krylov.scale(share, self.predicted, self.velocity, self.count)
            self._choose_contacts()
            value, broken = self.value(self.velocity)
            if not broken or not self.settings.guards:
                break
        return value, broken

    def run(self) -> Outcome:
        """Minimise; the grid's velocity and the particles' velocity gradient are those of the last iterate."""
        found, settings = Outcome(), self.settings
        value, broken = self.start()
        first = value
        if not math.isfinite(value) or (broken and settings.guards):
            found.reason = f"{broken} points leave the domain of their law even at rest"
            return found
        for iteration in range(settings.newton_iterations):
            self.check_cancel()
            value = self._settle_contacts(value)
            krylov.project(self.free, self.slot, self.gradient, self.count)
            found.residual = self._largest(self.gradient, True)
            found.residuals.append(found.residual)
            if found.residual == 0.0:
                found.converged = True
                break
            self.energy.linearise(self.term_dt)
            if iteration % REBUILD == 0 or self.rubs:
                self._build_preconditioner()
            forcing = min(settings.krylov_tolerance, math.sqrt(found.residual / found.residuals[0]) * settings.krylov_tolerance)
            found.krylov += self._solve(forcing)
            found.newton += 1
            found.last_step = self._largest(self.change, False) * self.dt / self.grid.h
            before = value
            value, halvings = self._search(value)
            found.halvings += halvings
            if value is None and self.clamped:
                value = self._hold_clamped(before)
                continue
            if value is None:
                # nothing along the step is lower: at rounding level if the step is short, else a defect of the term
                found.converged = found.last_step <= 10.0 * settings.tolerance
                found.reason = "" if found.converged else "no step along Newton's direction lowers the energy"
                value = self.value(self.velocity)[0]
                break
            # a short step that the search shortens is at rounding level: there energies no longer tell what is lower
            if found.last_step <= settings.tolerance and not self.clamped:
                found.converged = True
                break
        else:
            found.reason = f"{settings.newton_iterations} Newton iterations, the last step {found.last_step:.2g} cells"
        found.decrease = first - value
        krylov.round_to(self.velocity, self.grid.array("velocity"), self.count)
        return found

    def run_once(self, beta: float) -> Outcome:
        """Solve the linear system of a semi-implicit step (S14 eq. 22-26, in its own order: forces, collisions, solve).

        m (v - v~) - dt f(0) + beta dt^2 Phi'' v = 0, with the terms over beta dt: elastic ones get the factor beta, viscous ones,
        whose energy divides by dt, keep their full strength.

        Args:
            beta: 1/2 damps least, 1 is the first Newton step of backward Euler.
        """
        grid, found, rest = self.grid, Outcome(), self.trial
        self.term_dt, self.scale = beta * self.dt, 1.0 / beta
        grid.clear("velocity")
        self.energy.evaluate(self.term_dt, grid.array("velocity"))
        self.energy.linearise(self.term_dt)
        force = grid.array("force")
        krylov.kick(self.momentum, self.predicted, force, self.dt, grid.least_mass, self.velocity, self.count)
        krylov.scale(1.0, self.velocity, rest, self.count)
        self._choose_contacts()
        if len(self.rows):
            contacts.rub(self.rows, self.of_row, self.active, self.momentum, rest, self.drag_slope)
        self.product(self.velocity, self.gradient)
        krylov.add_forces(force, self.energy.rounded("product"), -self.scale / self.dt, self.count)
        self._slope(self.velocity)
        krylov.project(self.free, self.slot, self.gradient, self.count)
        self._build_preconditioner()
        self.change[: 256 * self.count] = 0.0
        found.residual = self._largest(self.gradient, True)
        if found.residual > 0.0:
            found.krylov = self._solve(self.settings.krylov_tolerance)
            krylov.combine(1.0, self.velocity, 1.0, self.change, self.velocity, self.count)
        found.newton, found.last_step = 1, self._largest(self.change, False) * self.dt / grid.h
        found.converged = found.krylov < self.settings.krylov_iterations and math.isfinite(found.last_step)
        found.reason = "" if found.converged else f"{found.krylov} Krylov iterations did not solve the linear system"
        krylov.round_to(self.velocity, grid.array("velocity"), self.count)
        return found

    def _settle_contacts(self, value: float) -> float:
        """Lag the normal impulses, free contacts that would pull, and return E with the new friction."""
        if not len(self.rows):
            return value
        freed = contacts.let_go(self.rows, self.active, self.gradient, self.impulse, self.releases, MOST_RELEASES)
        if freed or self.rubs:
            contacts.constrain(self.rows, self.of_row, self.active, self.velocity, self.free, False)
        if not self.rubs:
            return value
        before = self.friction
        self.friction = self._friction(self.velocity)
        self._slope(self.velocity)
        contacts.drag_curvature(self.rows, self.of_row, self.active, self.impulse, self.momentum, self.velocity, self.gradient,
                                self.slip, self.drag)
        return value - before + self.friction

    def _build_preconditioner(self) -> None:
        self.inverse = self.energy.blocks()
        self.inverse[: 384 * self.count] = 0.0
        kind = self.settings.preconditioner
        blocks = kind in (Preconditioner.BLOCK_JACOBI, Preconditioner.JACOBI)
        if blocks:
            for term in self.energy.terms.values():
                term.add_blocks(self.term_dt, self.inverse)
        if self.rubs and blocks:
            contacts.add_drag(self.rows, self.of_row, self.drag, 1.0 / self.scale, self.inverse)
        node_blocks.invert_blocks(self.momentum, self.inverse, self.scale, self.count, self.grid.least_mass,
                                  kind is Preconditioner.JACOBI)
        if kind is Preconditioner.NONE:  # all nodes alike; CG and CR do not mind the factor
            nodes = self.inverse[: 384 * self.count].reshape(-1, 6)
            nodes[nodes[:, 0] > 0.0] = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0]) / self.grid.particle_mass

    def _search(self, value: float) -> tuple[float | None, int]:
        """Walk along `change` to lower energy inside the domain; returns E there (None: nowhere) and how often it halved."""
        slope = self._dot(self.gradient, self.change)
        # the force is known to the rounding of the solve's float type, and with it how far E can be told
        noise = 1e-12 * abs(value) + 8.0 * float(np.finfo(self.grid.dtype).eps) * abs(slope)
        share, halvings = 1.0, 0
        held = self.active.copy()
        while share >= SHORTEST:
            krylov.combine(1.0, self.velocity, share, self.change, self.trial, self.count)
            self.active[:] = held  # a longer step may have met contacts that this one does not
            self.clamped = contacts.clamp(self.rows, self.of_row, self.active, self.free, self.trial) if len(self.rows) else 0
            there, broken = self.value(self.trial)
            allowed = not broken or not self.settings.guards
            if allowed and math.isfinite(there) and (there <= value + FALL * share * slope + noise or not self.settings.guards):
                self.velocity, self.trial = self.trial, self.velocity
                if self.clamped:
                    contacts.constrain(self.rows, self.of_row, self.active, self.velocity, self.free, False)
                return there, halvings
            share *= 0.5
            halvings += 1
        return None, halvings

    def _hold_clamped(self, value: float) -> float:
        """Hold for good the contacts that stopped even the shortest step, and return E at the velocities before it.

        They were let go, yet Newton's step drives them back: what is left of it when they stop it need not lead downhill.
        """
        self.releases[self.active == 1] = MOST_RELEASES
        contacts.constrain(self.rows, self.of_row, self.active, self.velocity, self.free, False)
        there, broken = self.value(self.velocity)
        return value if broken else there

    # ---------------------------------------------------------------- Krylov methods
    def _solve(self, tolerance: float) -> int:
        """Solve P H P change = - gradient to a relative residual; returns the iterations."""
        if self.settings.krylov is Krylov.CONJUGATE_GRADIENT:
            return self._conjugate_gradients(tolerance)
        return self._conjugate_residuals(tolerance)

    def _precondition(self, r: np.ndarray, z: np.ndarray) -> tuple[float, float]:
        """Write z = P inverse r; return r.z and sum |r|^2 / m, which says when to stop whatever the preconditioner is."""
        krylov.precondition(self.momentum, self.inverse, self.free, self.slot, r, z, self.count, self._pairs)
        both = self._pairs[: 2 * self.count].reshape(-1, 2).sum(axis=0)
        return float(both[0]), float(both[1])

    def _conjugate_gradients(self, tolerance: float) -> int:
        vectors = ("residual", "preconditioned", "direction", "product")
        r, z, p, q = (self.energy.vector(name) for name in vectors)
        x, count = self.change, self.count
        krylov.scale(-1.0, self.gradient, r, count)
        x[: 256 * count] = 0.0
        rz, first = self._precondition(r, z)
        krylov.scale(1.0, z, p, count)
        for iteration in range(1, self.settings.krylov_iterations + 1):
            if iteration % 20 == 0:
                self.check_cancel()
            curvature = self.product(p, q)
            if not curvature > 0.0:  # the energy bends down along p: keep what there is, or go down the gradient
                if iteration == 1:
                    krylov.scale(1.0, p, x, count)
                return iteration
            krylov.step_along(rz / curvature, p, q, x, r, count)
            before, (rz, size) = rz, self._precondition(r, z)
            if size <= tolerance * tolerance * first:
                return iteration
            krylov.combine(1.0, z, rz / before, p, p, count)
        return self.settings.krylov_iterations

    def _conjugate_residuals(self, tolerance: float) -> int:
        """As `_conjugate_gradients`, for Hessians that may be indefinite: |r| never grows (Stiefel 1955; S14 sec. 5.5)."""
        r, z, p, q = (self.energy.vector(name) for name in ("residual", "preconditioned", "direction", "product"))
        y, w = self.energy.vector("second"), self.energy.vector("third")  # H z and inverse q
        x, count = self.change, self.count
        krylov.scale(-1.0, self.gradient, r, count)
        x[: 256 * count] = 0.0
        _, first = self._precondition(r, z)
        krylov.scale(1.0, z, p, count)
        zy = self.product(z, y)
        krylov.scale(1.0, y, q, count)
        for iteration in range(1, self.settings.krylov_iterations + 1):
            if iteration % 20 == 0:
                self.check_cancel()
            scale, _ = self._precondition(q, w)
            if not (scale > 0.0 and math.isfinite(zy)) or zy == 0.0:
                return iteration
            krylov.step_along(zy / scale, p, q, x, r, count)
            krylov.combine(1.0, z, -zy / scale, w, z, count)
            if self._precondition(r, w)[1] <= tolerance * tolerance * first:
                break
            before, zy = zy, self.product(z, y)
            krylov.combine(1.0, z, zy / before, p, p, count)
            krylov.combine(1.0, y, zy / before, q, q, count)
        if self._dot(x, self.gradient) >= 0.0:  # not downhill: the preconditioned gradient is
            krylov.scale(-1.0, self.gradient, r, count)
            self._precondition(r, x)
        return iteration
