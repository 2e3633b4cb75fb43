"""Particle-grid transfers: the identities of the B-splines, conservation, affine fields, free fall."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.data import Kernel, Transfer
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages.gather import gather
from mpm_nodes.solver.stages.rasterize import rasterize
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import angular_momentum, column, momentum, momentum_scale
from mpm_nodes.verification.scenes import block, changed, cloud, material, preset

CELL = 0.1
TYPES = (np.float32, np.float64)


def _cloud_solver(dtype: type) -> SubstepSolver:
    """Return 300 random particles over six cells, on a grid that is ready for transfers."""
    solver = SubstepSolver(cloud(material("neo_hookean"), 300, 6 * CELL, CELL), cell_size=CELL, dtype=dtype)
    solver.particles.sort()
    solver.grid.follow()
    return solver


def _bspline(kernel: Kernel, x: np.ndarray) -> np.ndarray:
    """Return N(x), x in cells (Stomakhin 2013)."""
    a = np.abs(x)
    if kernel is Kernel.QUADRATIC:
        return np.where(a < 0.5, 0.75 - a * a, np.where(a < 1.5, 0.5 * (1.5 - a) ** 2, 0.0))
    return np.where(a < 1.0, a**3 / 2 - a * a + 2 / 3, np.where(a < 2.0, (2 - a) ** 3 / 6, 0.0))


class KernelIdentities(VerificationProblem):
    """The weights are the B-splines: they sum to one, give positions, and their gradients those of linear fields.

    Scene: 300 random particles gather, per particle, a constant field, the field v = x, and a field that is zero but
        on one node.
    Exact: sum w = 1, sum grad w = 0, sum w x_i = x_p, sum x_i (grad w)^T = I, sum w (x_i - x_p)(x_i - x_p)^T = D, w =
        N(x) N(y) N(z).
    Tolerance: 1e-12 in float64; 1e-5 in float32: sums of up to 64 terms at 6e-8 each, values up to 6 cells, times
        h^2/D = 4.
    """

    name = "kernel_identities"
    source = "Stomakhin 2013; Jiang 2015"

    def findings(self) -> Iterator[Finding]:
        """Compare both kernels in both float types."""
        for dtype in TYPES:
            tolerance = 1e-12 if dtype is np.float64 else 1e-5
            solver = _cloud_solver(dtype)
            node = solver.grid.unpack("position") / CELL
            x = solver.particles.unpack("position") / CELL
            for kernel in Kernel:
                label = f"{kernel.value} {np.dtype(dtype).name}"
                v, c, slope = self._gathered(solver, kernel, np.ones_like(node))
                error = max(np.abs(v - 1).max(), np.abs(c).max(), np.abs(slope).max())
                yield Finding(0.0, error, tolerance, f"constant {label}")
                v, c, slope = self._gathered(solver, kernel, node)
                error = max(np.abs(v - x).max(), np.abs(c - np.eye(3)).max(), np.abs(slope - np.eye(3)).max())
                yield Finding(0.0, error, tolerance, f"linear {label}")
                only = np.argmin((node**2).sum(1))
                peak = np.zeros_like(node)
                peak[only] = 1.0
                v, _, _ = self._gathered(solver, kernel, peak)
                exact = _bspline(kernel, x - node[only]).prod(1)
                yield Finding(0.0, np.abs(v - exact[:, None]).max(), tolerance, f"weights {label}")

    @staticmethod
    def _gathered(solver: SubstepSolver, kernel: Kernel, field: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return velocity, C and L of a grid velocity field, lengths in cells."""
        solver.grid.pack("velocity", field)
        gather(solver.particles, solver.grid, solver.step_context, kernel=kernel)
        return column(solver, "velocity"), column(solver, "affine") * CELL, column(solver, "velocity_gradient") * CELL


class TransferConservation(VerificationProblem):
    """Going to the grid and back keeps mass, momentum, and with APIC angular momentum and affine fields.

    Scene: 300 random particles of random mass, velocity and C, rasterized and gathered, both kernels, APIC and FLIP.
    Exact: sum m_i = sum m_p; sum m_i v_i = sum m_p v_p, both ways; with APIC sum x_i x m_i v_i = sum x_p x m_p v_p +
        l_p, both ways; v_p = a + W x_p and C_p = W come back where every node got all of its mass from that field.
    Tolerance: float64, 1e-11 of sum m |v| (affine field 1e-10): a thousand roundings of 1e-16.
    """

    name = "transfer_conservation"
    source = "Jiang 2015; Stomakhin 2013"

    def findings(self) -> Iterator[Finding]:
        """Compare totals before, on the grid, and after."""
        for kernel in Kernel:
            for transfer in Transfer:
                yield from self._totals(kernel, transfer)
            yield self._affine_field(kernel)

    @staticmethod
    def _totals(kernel: Kernel, transfer: Transfer) -> Iterator[Finding]:
        solver, label = _cloud_solver(np.float64), f"{transfer.value} {kernel.value}"
        particles, grid = solver.particles, solver.grid
        mass, before, scale = column(solver, "mass").sum(), momentum(solver), momentum_scale(solver)
        spin = angular_momentum(solver, kernel.value)
        rasterize(particles, grid, transfer=transfer, kernel=kernel)
        m, p = grid.unpack("mass"), grid.unpack("momentum")
        grid.pack("velocity", np.divide(p, m[:, None], out=np.zeros_like(p), where=m[:, None] > 0))
        on_grid = np.cross(grid.unpack("position") - particles.origin, p).sum(0)
        gather(particles, grid, solver.step_context, transfer=transfer, kernel=kernel, flip_fraction=0.95)
        yield Finding(0.0, abs(m.sum() / mass - 1), 1e-11, f"mass {label}")
        error = max(np.abs(p.sum(0) - before).max(), np.abs(momentum(solver) - before).max())
        yield Finding(0.0, error / scale, 1e-11, f"momentum {label}")
        if transfer is Transfer.APIC:
            error = max(np.abs(on_grid - spin).max(), np.abs(angular_momentum(solver, kernel.value) - spin).max())
            yield Finding(0.0, error / (scale * 6 * CELL), 1e-11, f"angular momentum {label}")

    @staticmethod
    def _affine_field(kernel: Kernel) -> Finding:
        solver = _cloud_solver(np.float64)
        random = np.random.default_rng(1)
        a, w, x = random.normal(size=3), random.normal(size=(3, 3)), solver.particles.unpack("position")
        solver.particles.pack("velocity", a + x @ w.T)
        solver.particles.pack("affine", np.broadcast_to(w, (len(x), 3, 3)))
        rasterize(solver.particles, solver.grid, kernel=kernel)
        m, p = solver.grid.unpack("mass"), solver.grid.unpack("momentum")
        solver.grid.pack("velocity", np.divide(p, m[:, None], out=np.zeros_like(p), where=m[:, None] > 0))
        gather(solver.particles, solver.grid, solver.step_context, kernel=kernel)
        error = max(
            np.abs(column(solver, "velocity") - a - x @ w.T).max(),
            np.abs(column(solver, "affine") - w).max(),
            np.abs(column(solver, "velocity_gradient") - w).max(),
        )
        return Finding(0.0, error, 1e-10, f"affine field {kernel.value}")


class FreeFall(VerificationProblem):
    """Nothing but gravity acts on a falling block, whatever the transfer and the kernel.

    Scene: an undeformed neo-Hookean block of 4^3 cells thrown upwards in empty space, 40 steps of 1 ms.
    Exact: y_n = y_0 + n v_0 dt - g dt^2 n (n + 1) / 2, the sum of symplectic Euler steps.
    Tolerance: float64, 1e-11 of the distance travelled.
    """

    name = "free_fall"
    source = "textbook (symplectic Euler)"

    def findings(self) -> Iterator[Finding]:
        """Throw the block with every transfer and kernel."""
        steps, dt, g, v0 = 40, 1e-3, 9.81, 1.5
        for transfer in Transfer:
            for kernel in Kernel:
                start = block(material("neo_hookean"), (0, 0, 0), (0.4, 0.4, 0.4), CELL, velocity=(0.3, v0, 0.0))
                solver = SubstepSolver(
                    start,
                    preset(transfer=transfer.value, kernel=kernel.value),
                    cell_size=CELL,
                    gravity=(0.0, -g, 0.0),
                    dtype=np.float64,
                )
                for _ in range(steps):
                    solver.step(dt)
                fallen = solver.snapshot(["position"])["position"] - start["position"]
                exact = np.array([0.3 * steps * dt, steps * v0 * dt - g * dt**2 * steps * (steps + 1) / 2, 0.0])
                worst = np.abs(fallen - exact).max() / np.linalg.norm(exact)
                yield Finding(0.0, worst, 1e-11, f"{transfer.value} {kernel.value}")


class FlipSteps(VerificationProblem):
    """FLIP damps by time and not by substeps: what is left of a motion does not hang on dt.

    Scene: a cube of six cells of rubber in free space, cubic FLIP of 0.95; it spins for 20 ms, or swings in shear for 6 ms, in
        steps of 0.2, 0.1 and 0.05 ms.
    Exact: the kinetic energy left in the shortest steps. Taken in every substep, 0.95 leaves 0.30, 0.10 and 0.01 of the spin's.
    Tolerance: 2 % of that energy.
    """

    name = "flip_steps"
    source = "Y15 step 9"

    def findings(self) -> Iterator[Finding]:
        """Compare the steps."""
        for motion, seconds in (("spin", 0.02), ("shear", 6e-3)):
            *longer, least = (self._left(motion, seconds, dt) for dt in (2e-4, 1e-4, 5e-5))
            for times, left in zip((4, 2), longer, strict=True):
                yield Finding.relative(least, left, 0.02, f"{motion}, energy left in steps {times} times as long")

    @staticmethod
    def _left(motion: str, seconds: float, dt: float) -> float:
        """Return the share of the kinetic energy that is left."""
        h = 0.01
        start = block(material("neo_hookean", 450.0, youngs_modulus=1e4), (-3 * h,) * 3, (3 * h,) * 3, h)
        x, y, _ = start["position"].T
        flow = (-10.0 * y, 10.0 * x) if motion == "spin" else (0.2 * np.sin(np.pi * y / (6 * h)), 0.0 * x)
        solver = SubstepSolver(
            changed(start, velocity=np.stack([*flow, 0.0 * x], axis=1)),
            {"preset": "explicit_apic", "set": {"transfer": "flip", "kernel": "cubic", "gather.per_substep": False}},
            cell_size=h,
            gravity=(0.0, 0.0, 0.0),
            dtype=np.float64,
        )
        before = column(solver, "mass") @ (column(solver, "velocity") ** 2).sum(axis=1)
        solver.advance(seconds, dt)
        return float(column(solver, "mass") @ (column(solver, "velocity") ** 2).sum(axis=1) / before)
