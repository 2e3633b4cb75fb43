"""Herschel-Bulkley flow at the material point, through the compiled loops that a solve runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mpm_nodes.materials.law_loops import law_loops
from mpm_nodes.materials.library import LIBRARY
from mpm_nodes.verification.contract import Finding, VerificationProblem

_PAD = 16
_FULL = [0, 1, 2, 1, 3, 4, 2, 4, 5]
"""Where the nine entries of a symmetric matrix lie among its six."""


class _FoamPoints:
    """Material points of one foam in the solver's layout.

    Attributes:
        strain: Entries xx xy xz yy yz zz of b - I, shape (6, count).
    """

    def __init__(self, params: Mapping[str, float], strain: np.ndarray, dtype: Any) -> None:
        self.loops = law_loops("herschel_bulkley", dtype)
        self.coeffs = self.loops.law.coefficients(params)
        self.count, self.stride = strain.shape[1], strain.shape[1] + _PAD
        rows = np.zeros((6, self.stride), dtype)
        rows[:, : self.count] = strain
        self._volume, self._strain, self._scale = np.zeros(self.stride, dtype), rows.ravel(), np.zeros(0, dtype)
        # chunks as a solve has them: short runs, spread over the threads
        starts = np.arange(0, self.count, 512)
        self._segments = np.column_stack([starts, np.minimum(starts + 512, self.count), np.zeros_like(starts)])

    @property
    def strain(self) -> np.ndarray:
        return self._strain.reshape(6, self.stride)[:, : self.count]

    def project(self, dt: float) -> None:
        self.loops.project(self._volume, self._strain, self._scale, self.stride, self._segments, self.coeffs, dt)

    def shear(self, rate: float, strain_step: float, steps: int) -> float:
        """Shear all points at a constant rate [1/s] and return the shear stress [Pa] of the first."""
        L = np.zeros((9, self.stride), self._strain.dtype)
        L[1] = rate
        dt = strain_step / rate
        for _ in range(steps):
            self.loops.advance(self._volume, self._strain, L.ravel(), self.stride, self._segments, self.coeffs, dt)
            self.project(dt)
        return float(self.coeffs[1] * self.strain[1, 0])


class SteadyShear(VerificationProblem):
    """Foams sheared at a constant rate carry the stress of the Herschel-Bulkley law.

    Scene: one material point each of shaving cream, s'more interior, viscoplastic fluid, oobleck (h = 0.22, 0.43, 1, 2.8) and of
        cream with eta = 0, float64, sheared in steps of 1e-3 to a strain of 12 at rates over three decades (0.1 to 100/s, oobleck
        0.01 to 10/s), the shear modulus ten times that of the table so that elastic strains stay small; cream at 1/s also
        with the modulus of the table.
    Exact: tau_xy = sigma_Y / sqrt 3 + (eta / sqrt 2) (rate / sqrt 2)^h for small elastic strain; with the modulus of the
        table 35.83 Pa (independent integration; elastic strain 0.18).
    Tolerance: 2 %; the largest deviation is that of the largest elastic strain s / mu, about 0.4 (s / mu)^2. 0.5 % for 35.83 Pa.
    """

    name = "steady_shear"
    source = "Y15 eq. 7"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Sweep the materials and rates."""
        for name in ("shaving_cream", "smore_interior", "viscoplastic", "oobleck", "perfectly plastic"):
            plastic = name not in LIBRARY
            given = dict(LIBRARY["shaving_cream" if plastic else name].params)
            given |= {"consistency": 0.0} if plastic else {}
            rates = np.array([0.01, 0.1, 1.0, 10.0]) * (1.0 if name == "oobleck" else 10.0)
            flow = given["consistency"] / np.sqrt(2.0) * (rates / np.sqrt(2.0)) ** given["flow_index"]
            exact = given["yield_stress"] / np.sqrt(3.0) + flow
            stiff = {**given, "shear_modulus": 10.0 * given["shear_modulus"]}
            ratio = [self._steady(stiff, rate) / stress for rate, stress in zip(rates, exact, strict=True)]
            yield Finding(1.0, max(ratio, key=lambda value: abs(value - 1.0)), 0.02, f"{name}, farthest of {len(rates)} rates")
        cream = self._steady(LIBRARY["shaving_cream"].params, 1.0)
        yield Finding.relative(35.83, cream, 0.005, "shaving_cream at 1/s, modulus of the table [Pa]")

    @staticmethod
    def _steady(params: Mapping[str, float], rate: float) -> float:
        return _FoamPoints(params, np.zeros((6, 1)), np.float64).shear(rate, 1e-3, 12_000)


class ReturnMap(VerificationProblem):
    """The return map of a million random states converges, keeps det b = 1 and the direction, and stops at the yield.

    Scene: 1e6 random states b = G G^T / det^(2/3), strains from 1e-3 to 0.5, for each foam of the library, dt = 1e-4 s, float32;
        1e5 of them in float64.
    Exact: z + beta z^(1/h) = 1 for the part z of the excess that is left (Algorithm 13 without units), none without consistency;
        det b = 1; dev b keeps its direction; mu |dev b| between s_Y and its trial value before b is scaled to det b = 1.
    Tolerance: float64: 1e-12 plus what the rounding of s does to the residual, 50 eps s / (z D h); float32 the same with its eps.
        det b - 1: 50 eps |b|^3, |b| the largest entry.
    """

    name = "return_map"
    source = "Y15 section 5.2, Algorithm 13"

    def findings(self) -> Iterator[Finding]:
        """Project the states of each foam."""
        states = _random_strains(1_000_000)
        for dtype, strain in ((np.float64, states[:, :100_000]), (np.float32, states)):
            for name, entry in LIBRARY.items():
                if entry.law == "herschel_bulkley":
                    yield from self._projected(name, entry.params, strain, dtype)

    @staticmethod
    def _projected(name: str, params: Mapping[str, float], strain: np.ndarray, dtype: Any) -> Iterator[Finding]:
        dt, eps = 1e-4, float(np.finfo(dtype).eps)
        _FoamPoints(params, strain[:, :32], dtype).project(dt)  # compiles, outside of the time below
        points = _FoamPoints(params, strain, dtype)
        begin = time.perf_counter()
        points.project(dt)
        nanoseconds = (time.perf_counter() - begin) * 1e9 / points.count
        before, after = _Parts(strain.astype(dtype)), _Parts(points.strain)
        mu, s_y, eta, n = (float(points.coeffs[k]) for k in (1, 3, 4, 5))
        trial, stress = mu * before.size, mu * after.size * before.trace / after.trace
        flows = trial > s_y * (1 + 4 * eps)
        excess = (trial - s_y)[flows]
        if eta > 0.0:
            log_beta = np.log(2 * mu * before.trace[flows] / 3 * dt) + (1 / n - 1) * np.log(excess) - np.log(eta) / n
            left = np.maximum((stress[flows] - s_y) / excess, 1e-300)
            residual = np.abs(left + np.exp(log_beta + np.log(left) / n) - 1.0)
            allowed = 1e-12 + 50 * eps * trial[flows] / (excess * left * min(n, 1.0))
        else:
            residual, allowed = np.abs(stress[flows] - s_y), 50 * eps * trial[flows]
        where = f"{name} {np.dtype(dtype)}"
        yield Finding(
            0.0,
            float((~(residual <= allowed)).sum()),
            0.0,
            f"{where}, unconverged of {flows.sum()} that flow ({nanoseconds:.1f} ns a state)",
        )
        yield Finding(0.0, float((np.abs(after.det - 1.0) / after.largest**3).max()) / eps, 50.0, f"{where}, |det b - 1| / eps")
        turned = 1.0 - (before.deviator * after.deviator).sum(0) / (before.size * after.size)
        yield Finding(0.0, float(turned[before.size > 1e-2].max()) / eps, 1e3, f"{where}, turn of s / eps")
        beyond = np.maximum(stress[flows] - trial[flows], s_y - stress[flows]) / trial[flows]
        yield Finding(0.0, max(float(beyond.max()) / eps, 0.0), 50.0, f"{where}, outside [s_Y, trial] / eps")


class _Parts:
    """Determinant, trace, deviator (9, n), its size and the largest entry of I + E, in float64."""

    def __init__(self, strain: np.ndarray) -> None:
        b = strain.astype(np.float64)[_FULL] + np.eye(3).reshape(9, 1)
        self.det = np.linalg.det(b.T.reshape(-1, 3, 3))
        self.trace = b[0] + b[4] + b[8]
        self.deviator = b - np.eye(3).reshape(9, 1) * self.trace / 3
        self.size = np.linalg.norm(self.deviator, axis=0)
        self.largest = np.abs(b).max(0)


def _random_strains(count: int) -> np.ndarray:
    """Return b - I of random unimodular b, shape (6, count)."""
    random = np.random.default_rng(20)
    size = 10.0 ** random.uniform(-3.0, np.log10(0.5), (count, 1, 1))
    G = np.eye(3) + size * random.standard_normal((count, 3, 3))
    b = np.einsum("nab,ncb->nac", G, G)
    b /= np.cbrt(np.linalg.det(b))[:, None, None]
    return np.ascontiguousarray((b - np.eye(3))[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]].T)
