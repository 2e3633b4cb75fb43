"""What must not matter: where a scene lies, how it is turned. And what must not happen: a body at rest that moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, FrameContext, Particles
from mpm_nodes.materials.contract import law_ids
from mpm_nodes.nodes.collide import collide_sphere
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import ball, block, changed, material

CELL = 0.05


def _tumbling_block() -> Particles:
    """Return a 5 x 4 x 3 cell neo-Hookean block above the origin, tumbling."""
    return block(
        material("neo_hookean", youngs_modulus=3e4),
        (-0.1, 0.22, -0.05),
        (0.15, 0.42, 0.1),
        CELL,
        velocity=(0.2, -1.0, 0.1),
        angular_velocity=(1.0, 2.0, 3.0),
        jitter=0.5,
        seed=4,
    )


def _obstacle(centre: Any = (0.0, 0.0, 0.0)) -> Collider:
    """Return a ball with friction: it looks the same from every side."""
    return collide_sphere(FrameContext(1), centre=tuple(centre), radius=0.2, rule=CollisionRule.SEPARATE, friction=0.3)


def _solver(start: Particles, gravity: Any, obstacle: Collider, dtype: type, origin: Any = None) -> SubstepSolver:
    return SubstepSolver(start, cell_size=CELL, colliders=[obstacle], gravity=tuple(gravity), dtype=dtype, origin=origin)


def _run(solver: SubstepSolver, steps: int, dt: float) -> Particles:
    """Run some steps and return positions and velocities in order of id."""
    for _ in range(steps):
        solver.step(dt)
    return solver.snapshot(["velocity"])


def turned(start: Particles, rotation: np.ndarray) -> Particles:
    """Return the particles and their velocities turned about the origin."""
    return changed(start, position=start["position"] @ rotation.T, velocity=start["velocity"] @ rotation.T)


class RotationInvariance(VerificationProblem):
    """A scene that is turned gives the turned result.

    Scene: a tumbling neo-Hookean block falls on a ball with friction, 120 steps, here and turned by 90 degrees about
        each axis, gravity included; an elastic ball of radius 4 cells in zero gravity, stretched and sheared by its
        initial velocity for 20 ms, here and turned by 37 degrees about (1, 2, 3).
    Exact: positions turned back are the same.
    Tolerance: quarter turns in float64 1e-10 cells: only the order of sums differs, and contact amplifies rounding.
        The general turn puts other nodes under the same matter: 2 % (rms) of the largest displacement, the size of
        (h/R)^2 / 4 of a quadratic kernel.
    """

    name = "rotation_invariance"
    source = "objectivity"

    def findings(self) -> Iterator[Finding]:
        """Run the scenes in their orientations."""
        start, gravity, quarters = _tumbling_block(), np.array([0.0, -9.81, 0.0]), []
        straight = self._fall(start, gravity)
        for axis in range(3):
            a, b = (axis + 1) % 3, (axis + 2) % 3
            quarter = np.zeros((3, 3))
            quarter[axis, axis], quarter[a, b], quarter[b, a] = 1.0, -1.0, 1.0
            quarters.append(np.abs(self._fall(turned(start, quarter), quarter @ gravity) @ quarter - straight).max())
        yield Finding(0.0, max(quarters) / CELL, 1e-10, "quarter turns, cells")
        general = _axis_angle(np.array([1.0, 2.0, 3.0]), np.radians(37.0))
        rest = ball(material("neo_hookean"), (0.0, 0.0, 0.0), 4 * CELL, CELL)
        flow = np.array([[10.0, 6.0, 0.0], [0.0, -5.0, 0.0], [-4.0, 0.0, -5.0]])
        here = self._stretch(rest, flow)
        there = self._stretch(changed(rest, position=rest["position"] @ general.T), general @ flow @ general.T) @ general
        error = np.sqrt(((there - here) ** 2).sum(1).mean()) / np.abs(here - rest["position"]).max()
        yield Finding(0.0, error, 0.02, "general turn, of the displacement")

    @staticmethod
    def _fall(start: Particles, gravity: np.ndarray) -> np.ndarray:
        solver = _solver(start, gravity, _obstacle(), np.float64, origin=(0.0, 0.0, 0.0))
        return _run(solver, 120, 1.5e-3)["position"]

    @staticmethod
    def _stretch(rest: Particles, flow: np.ndarray) -> np.ndarray:
        start = changed(rest, velocity=rest["position"] @ flow.T, affine=np.broadcast_to(flow, (len(rest), 3, 3)))
        solver = SubstepSolver(start, cell_size=CELL, gravity=(0.0, 0.0, 0.0), dtype=np.float64, origin=(0.0, 0.0, 0.0))
        return _run(solver, 40, 5e-4)["position"]


def _axis_angle(axis: np.ndarray, angle: float) -> np.ndarray:
    """Return a rotation matrix (Rodrigues)."""
    k = np.cross(np.eye(3), -axis / np.linalg.norm(axis))
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


STIFF = {
    "neo_hookean": {"youngs_modulus": 1e5},
    "fixed_corotated": {"youngs_modulus": 1e5},
    "snow": {"youngs_modulus": 1e5, "critical_compression": 0.5, "critical_stretch": 0.5, "hardening": 0.0},
    "herschel_bulkley": {"bulk_modulus": 8e4, "shear_modulus": 4e4, "yield_stress": 1e6},
    "oldroyd_b": {"shear_modulus": 4e4, "lame_parameter": 6e4, "relaxation_time": 1e30},
}
"""Materials that five radians a second strain by some thousandths; liquids hold no shape."""


class SpinningBall(VerificationProblem):
    """A ball that spins keeps its shape, whatever its law, with explicit and implicit substeps.

    Scene: a ball of radius 3 cells that spins at 5 rad/s for 4 s in zero gravity, steps of 1 ms, float64.
    Exact: across over along the axis stays 1: the centrifugal strain rho (w R)^2 / E is 0.006, and a fifth of that shows.
    Tolerance: 1 %; a strain that is carried along linearly in the step flattens it by 3.3 %.
    """

    name = "spinning_ball"
    source = "objectivity"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Spin one ball of each law with each kind of substep."""
        for law_id in STIFF:
            for substeps in ("explicit_apic", "implicit_apic"):
                yield Finding(1.0, spun(law_id, substeps), 0.01, f"{law_id} {substeps}: across over along the axis")


def spun(law_id: str, substeps: str, seconds: float = 4.0, **params: float) -> float:
    """Return how much wider than high, against the start, a ball is that spun at 5 rad/s about y."""
    rest = ball(material(law_id, **{**STIFF[law_id], **params}), (0.0, 0.0, 0.0), 3 * CELL, CELL)
    L = np.array([[0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [-5.0, 0.0, 0.0]])
    start = changed(rest, velocity=rest["position"] @ L.T, affine=np.broadcast_to(L, (len(rest), 3, 3)))
    solver = SubstepSolver(start, substeps, cell_size=CELL, gravity=(0.0, 0.0, 0.0), dtype=np.float64, origin=(0.0, 0.0, 0.0))
    solver.advance(seconds, 1e-3)
    before, after = (x.std(axis=0) for x in (rest["position"], solver.snapshot()["position"]))
    shape = [np.hypot(x[0], x[2]) / x[1] for x in (before, after)]
    return float(shape[1] / shape[0])


class DistantScene(VerificationProblem):
    """A scene 1 km from the origin gives the same result to rounding, in single precision.

    Scene: a tumbling neo-Hookean block falls on a ball with friction, 120 steps in float32; the same shifted by
        (1000, -2000, 700) m; and, with all positions representable there, shifted by whole powers of two.
    Exact: positions shifted back are the same; velocities too, to the bit where the shift itself rounds nothing.
    Tolerance: 1e-4 cells: float64 positions 2 km away are known to 5e-12 cells, which may turn the last bit of a
        2^-28 cell offset or of a float32 velocity (6e-8), amplified in 120 steps and one contact. None for the exact
        shift.
    """

    name = "distant_scene"
    source = "translation invariance"

    def findings(self) -> Iterator[Finding]:
        """Run it here and far away."""
        start, shift = _tumbling_block(), np.array([1000.0, -2000.0, 700.0])
        error = np.abs(self._fall(start, shift)["position"] - shift - self._fall(start, np.zeros(3))["position"]).max()
        yield Finding(0.0, error / CELL, 1e-4, "any shift, cells")
        start, shift = changed(start, position=np.round(start["position"] * 2.0**30) / 2.0**30), np.array([1024.0, -2048.0, 512.0])
        error = np.abs(self._fall(start, shift)["velocity"] - self._fall(start, np.zeros(3))["velocity"]).max()
        yield Finding(0.0, error, 0.0, "exact shift, velocities")

    @staticmethod
    def _fall(start: Particles, shift: np.ndarray) -> Particles:
        moved = changed(start, position=start["position"] + shift)
        return _run(_solver(moved, (0.0, -9.81, 0.0), _obstacle(shift), np.float32), 120, 1.5e-3)


class RestStaysAtRest(VerificationProblem):
    """An undeformed block in zero gravity does not move, whatever its law: there is no stress in the rest state.

    Scene: a jittered block of 4^3 cells of each law, 20 steps of 1 ms, zero gravity, float32.
    Exact: velocity and stress are 0.
    Tolerance: none: F = I gives a stress of exactly zero.
    """

    name = "rest_stays_at_rest"
    source = "stress-free rest state"

    def findings(self) -> Iterator[Finding]:
        """Watch one block of each law."""
        for law in law_ids():
            start = block(material(law), (0, 0, 0), (0.2, 0.2, 0.2), CELL, jitter=0.5)
            solver = SubstepSolver(start, cell_size=CELL, gravity=(0.0, 0.0, 0.0))
            for _ in range(20):
                solver.step(1e-3)
            moved = max(np.abs(column(solver, name)).max() for name in ("velocity", "stress"))
            yield Finding(0.0, moved, 0.0, law)


class ThreadCount(VerificationProblem):
    """Results do not depend on the number of threads.

    Scene: a tumbling neo-Hookean block falls on a ball with friction, 60 steps in float32, on one thread and on all.
    Exact: positions and velocities are the same to the bit: sums run over fixed chunks in a fixed order.
    Tolerance: none.
    """

    name = "thread_count"
    source = "reproducibility"

    def findings(self) -> Iterator[Finding]:
        """Run it twice."""
        import numba

        threads, results = numba.get_num_threads(), []
        try:
            for count in (1, numba.config.NUMBA_NUM_THREADS):
                numba.set_num_threads(count)
                results.append(_run(_solver(_tumbling_block(), (0.0, -9.81, 0.0), _obstacle(), np.float32), 60, 3e-3))
        finally:
            numba.set_num_threads(threads)
        for name in ("position", "velocity"):
            yield Finding(0.0, np.abs(results[1][name] - results[0][name]).max(), 0.0, name)
