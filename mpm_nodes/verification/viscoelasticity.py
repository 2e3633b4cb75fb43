"""Oldroyd-B at the material point, through the compiled loops that a solve runs, and its volume in a solve.

| symbol | meaning | unit |
|---|---|---|
| B | Oldroyd strain, I at rest | - |
| t_r, mu | relaxation time, shear modulus | s, Pa |
| g, W | shear or stretch rate, g t_r | 1/s, - |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mpm_nodes.materials.law_loops import law_loops
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column, full
from mpm_nodes.verification.scenes import block, chain, changed, material

_PAD = 16
MU, LAM, T_R, VISCOSITY = 50.0, 500.0, 0.5, 3.0
PARAMS = {"shear_modulus": MU, "lame_parameter": LAM, "relaxation_time": T_R}
AS_PRINTED = {**PARAMS, "exact_convection": False}
"""The convection of R15 eq. 14, linear in the step."""


class _FluidPoints:
    """Material points of one Oldroyd-B fluid in the solver's layout.

    Attributes:
        strain: Entries xx xy xz yy yz zz of B - I, shape (6, count).
        volume_change: J - 1, shape (count,).
    """

    def __init__(self, count: int, dtype: Any = np.float64, params: Mapping[str, Any] = PARAMS) -> None:
        self.loops, self.count, self.stride = law_loops("oldroyd_b", dtype), count, count + _PAD
        self.coeffs = np.append(self.loops.law.coefficients(params), VISCOSITY)
        self._arrays = np.zeros(self.stride, dtype), np.zeros(6 * self.stride, dtype)
        self._segments = np.array([(0, count, 0)], np.int64)

    @property
    def volume_change(self) -> np.ndarray:
        return self._arrays[0][: self.count]

    @property
    def strain(self) -> np.ndarray:
        return self._arrays[1].reshape(6, self.stride)[:, : self.count]

    def left_strain(self) -> np.ndarray:
        """Return b = J^(2/3) det(B)^(-1/3) B in float64, shape (count, 3, 3)."""
        state = {"volume_change": self.volume_change.astype(float), "elastic_strain": self.strain.astype(float).T}
        J, b = call_law("oldroyd_b", "left_strain", state)
        return np.cbrt(J)[:, None, None] ** 2 * b

    def advance(self, L: np.ndarray, dt: float, steps: int = 1) -> None:
        """Deform all points at the velocity gradients L [1/s], shape (count, 3, 3)."""
        gradient = self._gradient(L)
        for _ in range(steps):
            self.loops.advance(*self._arrays, gradient, self.stride, self._segments, self.coeffs, dt)

    def stress(self, L: np.ndarray) -> np.ndarray:
        """Return the Kirchhoff stress [Pa], viscosity included, shape (6, count)."""
        tau = np.zeros(6 * self.stride, self.strain.dtype)
        self.loops.stress(
            *self._arrays, self._gradient(L), np.zeros(0, tau.dtype), tau, self.stride, self._segments, self.coeffs, 1e-3
        )
        return tau.reshape(6, self.stride)[:, : self.count].astype(float)

    def _gradient(self, L: np.ndarray) -> np.ndarray:
        rows = np.zeros((9, self.stride), self.strain.dtype)
        rows[:, : self.count] = L.reshape(self.count, 9).T
        return rows.ravel()


def _shear(rates: np.ndarray) -> np.ndarray:
    """Return L of simple shear v_x = rate y."""
    L = np.zeros((len(rates), 3, 3))
    L[:, 0, 1] = rates
    return L


def _worst(measured: np.ndarray, exact: np.ndarray) -> float:
    """Return the ratio measured / exact that is farthest from 1."""
    ratio = (measured / exact).ravel()
    return float(ratio[np.argmax(np.abs(ratio - 1.0))])


class OldroydStartUp(VerificationProblem):
    """The Oldroyd strain of a fluid that is sheared from rest grows by the closed form.

    Scene: material points at W = 0.1, 0.5, 2, 10 with dt = t_r / 200, float64 and float32; looked at at eight times up to 5 t_r.
    Exact: B_xy = W (1 - q), B_xx = 1 + 2 W^2 (1 - q (1 + t / t_r)), q = exp(-t / t_r); Cauchy stress of the volume-preserving
        law, det b = 1: mu B_xy / (B_xx - B_xy^2)^(1/3) + mu_v g.
    Tolerance: 1 %; the steps are of first order.
    """

    name = "oldroyd_start_up"
    source = "R15 eq. 3, 4 and 14"

    def findings(self) -> Iterator[Finding]:
        """Shear all rates at once."""
        W, per_time = np.array([0.1, 0.5, 2.0, 10.0]), 125
        for dtype in (np.float64, np.float32):
            points, L, ratios, seen = _FluidPoints(len(W), dtype), _shear(W / T_R), [], []
            for k in range(1, 9):
                points.advance(L, T_R / 200, per_time)
                t = k * per_time / 200  # in relaxation times
                xy, xx, stress = self.exact(W, np.full(len(W), t))
                B = points.strain.astype(float)
                ratios.append((B[1] / xy, B[0] / (xx - 1), points.stress(L)[1] / stress))
                seen.append((np.full(len(W), t), points.stress(L)[1]))
            for index, what in enumerate(("B_xy", "B_xx - 1", "shear stress")):
                measured = np.array([ratio[index] for ratio in ratios])
                yield Finding(1.0, _worst(measured, np.ones_like(measured)), 0.01, f"{what} {np.dtype(dtype)}")
        through = np.linspace(0.05, 5.0, 100)
        for rate, (time, measured) in zip(W, np.array(seen).transpose(2, 1, 0), strict=True):
            exact, axes = self.exact(np.full(len(through), rate), through)[2], ("time over t_r", "shear stress [Pa]")
            self.show(f"W = {rate:g}", axes, (time, measured), (through, exact), 0.01 * exact.max())

    @staticmethod
    def exact(W: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return B_xy, B_xx and the shear stress [Pa] at Weissenberg numbers W after times t [t_r]."""
        q = np.exp(-t)
        xy, xx = W * (1 - q), 1 + 2 * W**2 * (1 - q * (1 + t))
        return xy, xx, MU * xy / np.cbrt(xx - xy**2) + VISCOSITY * W / T_R


class OldroydSteadyShear(VerificationProblem):
    """A fluid in steady shear carries the stress of the volume-preserving law: it thins.

    Scene: material points at ten W from 0.05 to 20 with dt = t_r / 1000, sheared for 20 t_r, float64.
    Exact: sigma_xy = mu W / (1 + W^2)^(1/3) + mu_v g.
    Tolerance: 1e-3; steps of t_r / 1000 raise W by 0.05 %.
    """

    name = "oldroyd_steady_shear"
    source = "R15 eq. 9 at steady B"

    def findings(self) -> Iterator[Finding]:
        """Shear all rates at once."""
        W = np.geomspace(0.05, 20.0, 10)
        points, L = _FluidPoints(len(W)), _shear(W / T_R)
        points.advance(L, T_R / 1000, 20_000)
        through = np.geomspace(0.05, 20.0, 100)
        self.show("shear stress", ("W", "stress [Pa]"), (W, points.stress(L)[1]), (through, self.exact(through)))
        yield Finding(1.0, _worst(points.stress(L)[1], self.exact(W)), 1e-3, f"farthest of {len(W)} rates")

    @staticmethod
    def exact(W: np.ndarray) -> np.ndarray:
        """Return the shear stress [Pa] at Weissenberg numbers."""
        stress: np.ndarray = MU * W / np.cbrt(1 + W**2) + VISCOSITY * W / T_R
        return stress


class OldroydRelaxation(VerificationProblem):
    """A strain at fixed shape is forgotten exponentially, whatever the time step, and the volume is not.

    Scene: 100 material points with random strains of a tenth and volumes, held for 3 t_r in steps of t_r / 100, t_r / 3 and 3 t_r.
    Exact: B - I decays as exp(-t / t_r); the trace of the stress is that of the volume when it has gone.
    Tolerance: 1e-12 of the strain in float64, 2e-5 in float32 (rounding of 300 steps); none for the volume.
    """

    name = "oldroyd_relaxation"
    source = "R15 eq. 3 without flow, theta = 1 - exp(-dt / t_r)"

    def findings(self) -> Iterator[Finding]:
        """Hold them."""
        random = np.random.default_rng(6)
        strain, volume = random.uniform(-0.1, 0.1, (6, 100)), random.uniform(-0.1, 0.1, 100)
        for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 2e-5)):
            for steps in (300, 9, 1):
                points = _FluidPoints(100, dtype)
                points.strain[:], points.volume_change[:] = strain, volume
                points.advance(np.zeros((100, 3, 3)), 3 * T_R / steps, steps)
                error = np.abs(points.strain - np.exp(-3.0) * strain).max() / np.abs(np.exp(-3.0) * strain).max()
                yield Finding(0.0, error, tolerance, f"{steps} steps {np.dtype(dtype)}")
                yield Finding(0.0, np.abs(points.volume_change - volume.astype(dtype)).max(), 0.0, "volume")


class OldroydExtension(VerificationProblem):
    """A fluid that is stretched steadily at W < 1/2 comes to rest in its strain, and at W > 1/2 never.

    Scene: material points at W = 0.05, 0.2, 0.4 and 0.6, L = diag(-g/2, -g/2, g), dt = t_r / 1000, 60 t_r, float64.
    Exact: B_zz = 1 / (1 - 2 W), B_xx = B_yy = 1 / (1 + W); at W = 0.6 B_zz grows as exp((2 W - 1) t / t_r): beyond 1e4.
    Tolerance: 1 %.
    """

    name = "oldroyd_extension"
    source = "textbook (upper convected Maxwell fluid)"

    def findings(self) -> Iterator[Finding]:
        """Stretch all rates at once."""
        W = np.array([0.05, 0.2, 0.4, 0.6])
        points, L = _FluidPoints(len(W)), np.einsum("n,ab->nab", W / T_R, np.diag([-0.5, -0.5, 1.0]))
        points.advance(L, T_R / 1000, 60_000)
        B = 1 + points.strain[:, :3]
        yield Finding(1.0, _worst(B[5], 1 / (1 - 2 * W[:3])), 0.01, "along the stretch, W < 1/2")
        yield Finding(1.0, _worst(B[[0, 3]], np.tile(1 / (1 + W[:3]), (2, 1))), 0.01, "across")
        yield Finding(1.0, float(points.strain[5, 3] > 1e4), 0.0, "grows without bound at W = 0.6")


class OldroydVolume(VerificationProblem):
    """The strain that the stress sees has the determinant of the whole deformation, however much has relaxed.

    Scene: 64 material points under velocity gradients of about 1/s that turn and pulse with the time, 10,000 steps over 20
        relaxation times, float64 and float32; F carried separately in float64.
    Exact: det b = det(F)^2.
    Tolerance: 1e-11 in float64; 1e-4 in float32 (rounding of J in 10,000 steps).
    """

    name = "oldroyd_volume"
    source = "R15 section 3.3, eq. 8"

    def findings(self) -> Iterator[Finding]:
        """Carry state and F side by side."""
        count, steps = 64, 10_000
        dt = 20 * T_R / steps
        for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 1e-4)):
            random = np.random.default_rng(2)
            modes = random.standard_normal((2, count, 3, 3))
            phase, pulse = random.uniform(0.0, 2 * np.pi, (2, count, 1, 1)), random.uniform(1.0, 20.0, (2, count, 1, 1))
            points, F = _FluidPoints(count, dtype), np.tile(np.eye(3), (count, 1, 1))
            for step in range(steps):
                L = (modes * np.cos(phase + pulse * step * dt) * 0.3).sum(0).astype(dtype).astype(float)
                points.advance(L, dt)
                F += dt * L @ F
            ratio = np.linalg.det(points.left_strain()) / np.linalg.det(F) ** 2
            yield Finding(0.0, np.abs(ratio - 1.0).max(), tolerance, f"det b / det(F)^2 - 1 {np.dtype(dtype)}")
            yield Finding(1.0, float(np.ptp(np.linalg.det(F)) > 0.1), 0.0, "the volume did change")


class OldroydVolumeInSolve(VerificationProblem):
    """det b = det(F)^2 for the particles of a solve, with F carried by its own stage.

    Scene: a spinning, pulsating block of 2^3 cells in zero gravity, 10,000 substeps of 2e-4 s, float64.
    Exact: det b = det(F)^2, F of the stage update_total_deformation.
    Tolerance: 1e-10.
    """

    name = "oldroyd_volume_in_solve"
    source = "R15 section 3.3, eq. 8"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Run it with a stage more."""
        h = 0.1
        start = block(material("oldroyd_b", 200.0, **PARAMS), (0, 0, 0), (2 * h, 2 * h, 2 * h), h)
        arm = start["position"] - h
        start = changed(start, velocity=np.cross([0.0, 0.0, 3.0], arm) + arm * [-2.0, 2.0, -2.0])
        graph = chain(
            "choose_time_step",
            "rasterize",
            "compute_stress",
            "add_stress_forces",
            "update_grid_velocity",
            "collide_grid",
            "gather",
            "update_deformation",
            "update_total_deformation",
            "collide_particles",
            "move_particles",
        )
        solver = SubstepSolver(start, graph, cell_size=h, gravity=(0, 0, 0), dtype=np.float64)
        for _ in range(10_000):
            solver.step(2e-4)
        state = {"volume_change": column(solver, "volume_change"), "elastic_strain": column(solver, "elastic_strain")}
        J, b = call_law("oldroyd_b", "left_strain", state)
        F = np.linalg.det(column(solver, "total_deformation").reshape(-1, 3, 3))
        yield Finding(0.0, np.abs(J**2 * np.linalg.det(b) / F**2 - 1).max(), 1e-10, "det b / det(F)^2 - 1")
        yield Finding(1.0, float(np.abs(F - 1).max() > 1e-3), 0.0, "the volume did change")


class OldroydDefinite(VerificationProblem):
    """The Oldroyd strain stays positive definite over violent steps, which the unguarded update of the paper does not survive.

    Scene: 512 material points, 200 steps of random A with entries of 0.3, dt = t_r / 20, in float64 and float32; beside them
        the same steps by eq. 14 alone.
    Exact: every eigenvalue of B is positive; every step of which the law says that it is feasible is positive definite without any
        guard; without guards some points end with a negative eigenvalue.
    Tolerance: none.
    """

    name = "oldroyd_definite"
    source = "R15 eq. 14 and section 6"

    def findings(self) -> Iterator[Finding]:
        """Shake them."""
        count, dt = 512, T_R / 20
        theta = 1 - np.exp(-dt / T_R)
        for dtype in (np.float64, np.float32):
            random, points, least, wrong = np.random.default_rng(3), _FluidPoints(count, dtype, AS_PRINTED), np.inf, 0
            bare = np.tile(np.eye(3), (count, 1, 1))
            for _ in range(200):
                A = 0.3 * random.standard_normal((count, 3, 3))
                state = {"volume_change": points.volume_change.astype(float), "elastic_strain": points.strain.astype(float).T}
                feasible = call_law("oldroyd_b", "feasible", state, A, params=AS_PRINTED, dt=dt)
                wrong += (_eigenvalues(_linear(full(state["elastic_strain"]) + np.eye(3), A, theta))[feasible] <= 0).sum()
                points.advance(A / dt, dt)
                points.volume_change[:] = 0.0  # random steps would shrink it beyond any float
                least = min(least, float(_eigenvalues(full(points.strain.T.astype(float)) + np.eye(3)).min()))
                bare = _linear(bare, A, theta)
            where = str(np.dtype(dtype))
            yield Finding(1.0, float(least > 0), 0.0, f"positive definite after every step, {where} (least {least:.1e})")
            yield Finding(0.0, float(wrong), 0.0, f"feasible steps that lose definiteness, {where}")
            yield Finding(1.0, float((_eigenvalues(bare) < 0).any()), 0.0, f"lost without guards, {where}")


def _linear(B: np.ndarray, A: np.ndarray, theta: float) -> np.ndarray:
    """Return (1 - theta) B + theta I + A B + B A^T."""
    AB = A @ B
    return (1 - theta) * B + theta * np.eye(3) + AB + AB.transpose(0, 2, 1)


def _eigenvalues(B: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(B)[:, 0]
