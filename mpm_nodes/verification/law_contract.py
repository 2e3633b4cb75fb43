"""What every law must keep, checked by finite differences: for laws of your own, `mpm-nodes verify --law FILE`.

States are those that random steps reach from rest, through the law's own `advance` and `project`, so that nothing need be known of
them. Errors of stresses and energies are in units of M = rho c^2, the stiffness of the law at rest.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES, MpmNodesError
from mpm_nodes.materials.codegen import law_kernels
from mpm_nodes.materials.contract import Law, LawError, law, register_law
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.verification.contract import Finding, Problem

__all__ = ["LawContract", "law_named"]

COUNT, STEP, NO_TIME = 200, 1e-3, 1e-30
_SYMMETRIC = [0, 1, 2, 4, 5, 8]


def law_named(name: str) -> str:
    """Return the id of a law: `name` itself, or the one that the Python file `name` defines, which is registered.

    Raises:
        MpmNodesError: There is no such law or file, or the module breaks the contract: says how.
    """
    if not name.endswith(".py"):
        return law(name).id
    path = Path(name)
    if not path.is_file():
        raise MpmNodesError(f"verify: {name} is no file; give the id of a law or a Python file that defines one")
    spec = importlib.util.spec_from_file_location(f"mpm_nodes_law_of_user_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
    except MpmNodesError:
        raise
    except Exception as error:
        raise MpmNodesError(f"verify: {name}: {type(error).__name__}: {error}; mend the file") from error
    return register_law(module).id


class LawContract(Problem):
    """A law keeps the contract of `materials.contract`.

    Scene: 200 states reached by random steps of up to a tenth from rest, and a further such step A; dt = 1 ms.
    Exact: T = dpsi/dA, dT its self-adjoint derivative, and what else the contract says of each function.
    Tolerance: 1e-6 of M for differences of the energy, 1e-5 for those of the stress, rounding elsewhere.

    Args:
        law_id: Which law.
        params: Some of its parameters; the others keep their defaults.
        compiled: Compile its loops and compare them, too.
    """

    def __init__(self, law_id: str, params: Mapping[str, Any] | None = None, compiled: bool = True) -> None:
        self.law: Law = law(law_id)
        self.name, self.source = law_id, self.law.source
        self.params, self.compiled = dict(params or {}), compiled

    def findings(self) -> Iterator[Finding]:
        """Check function after function."""
        speed = float(self._call("wave_speed")[0])
        yield Finding(1.0, float(np.isfinite(speed) and speed > 0.0), 0.0, "wave_speed: positive at rest")
        self._size = self.law.params.density * speed**2
        self._state, self._A = self._reached()
        yield from self._rest()
        yield from self._derivatives()
        yield from self._kirchhoff()
        yield from self._feasibility()
        yield from self._step()
        yield from self._waves()
        yield from self._volume()
        yield from self._scale_and_precision()
        if self.compiled:
            yield from self._loops()

    # ---------------------------------------------------------------- the sample
    def _call(self, function: str, state: Any = None, A: Any = None, dt: float = STEP, **given: Any) -> Any:
        params = given.pop("params", self.params)
        return call_law(self.law.id, function, state, A, params=params, dt=dt, **given)

    def _elastic(self) -> dict[str, Any]:
        """Return the parameters without viscosity, where it is a parameter of the same name."""
        return {**self.params, **({self.law.names[self.law.viscosity]: 0.0} if self._viscous_knob() else {})}

    def _viscous_knob(self) -> bool:
        return self.law.viscosity is not None and self.law.names[self.law.viscosity] in self.law.params.__dataclass_fields__

    def _reached(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return states that steps reach, and a feasible step from each."""
        random, state = np.random.default_rng(1), self.law.rest_state(COUNT)
        for _ in range(4):
            A = self._feasible_step(random, state)
            state = self._call("advance", state, A)
            if self.law.function("project"):
                state = self._call("project", state)
        return state, self._feasible_step(random, state)

    def _feasible_step(self, random: np.random.Generator, state: Mapping[str, np.ndarray]) -> np.ndarray:
        A = 0.1 * random.standard_normal((COUNT, 3, 3))
        for _ in range(8):
            A[~self._call("feasible", state, A)] *= 0.5
        return 0.9 * A

    @staticmethod
    def _directions(seed: int) -> np.ndarray:
        Q = np.random.default_rng(seed).standard_normal((COUNT, 3, 3))
        return Q / np.linalg.norm(Q, axis=(1, 2), keepdims=True)

    def _worst(self, error: np.ndarray) -> float:
        """Return the largest |error| in units of M."""
        return float(np.abs(error).max() / self._size)

    # ---------------------------------------------------------------- the checks
    def _rest(self) -> Iterator[Finding]:
        rest = self.law.rest_state(1)
        yield Finding(0.0, self._worst(self._call("stress")), 1e-12, "stress: none at rest, of M")
        yield Finding(1.0, float(self._call("feasible")[0]), 0.0, "feasible: the empty step at rest")
        for function in ("advance", "project"):
            if self.law.function(function):
                moved = max(np.abs(value - rest[name]).max() for name, value in self._call(function).items())
                yield Finding(0.0, float(moved), 1e-12, f"{function}: leaves the rest state alone")

    def _derivatives(self) -> Iterator[Finding]:
        state, A, Q, R = self._state, self._A, self._directions(2), self._directions(3)
        T = self._call("stress", state, A)
        work = (T * Q).sum((1, 2))
        slope = _derivative(lambda h: self._call("energy", state, A + h * Q))
        yield Finding(0.0, self._worst(slope - work), 1e-6, "stress: T : dA against differences of energy, of M")
        dQ, dR = (self._call("stress_differential", state, A, dA=each) for each in (Q, R))
        slope = _derivative(lambda h: self._call("stress", state, A + h * Q))
        largest = max(float(np.abs(dQ).max() / self._size), 1.0)
        yield Finding(0.0, self._worst(slope - dQ) / largest, 1e-5, "stress_differential: against differences of stress, of M")
        lopsided = (R * dQ).sum((1, 2)) - (Q * dR).sum((1, 2))
        yield Finding(0.0, self._worst(lopsided) / largest, 1e-11, "stress_differential: Q : dT(R) - R : dT(Q), of M")

    def _kirchhoff(self) -> Iterator[Finding]:
        T = self._call("stress", self._state, dt=NO_TIME)
        yield Finding(0.0, self._worst(T - T.transpose(0, 2, 1)), 1e-12, "stress: symmetric at A = 0, of M")
        if self.law.function("kirchhoff"):
            yield Finding(0.0, self._worst(self._call("kirchhoff", self._state) - T), 1e-12, "kirchhoff: T at A = 0, dt = 0, of M")
        if self._viscous_knob():
            params, dt = {**self.params, self.law.names[self.law.viscosity]: 1e-2 * self._size}, 1e-9
            L = self._directions(4)
            viscous = self._call("viscous_stress", self._state, L=L, params=params)
            grown = (self._call("stress", self._state, dt * L, dt=dt, params=params)
                     - self._call("stress", self._state, dt=dt, params=params))
            yield Finding(0.0, self._worst(grown - viscous), 1e-7, "viscous_stress: what a rate adds to stress, of M")

    def _feasibility(self) -> Iterator[Finding]:
        small = 1e-3 * self._directions(5)
        yield Finding(1.0, float(self._call("feasible", self._state, small).mean()), 0.0, "feasible: steps of 1e-3")
        large = np.random.default_rng(6).normal(0.0, 0.5, (COUNT, 3, 3))
        good = self._call("feasible", self._state, large)
        broken = ~np.isfinite(self._call("energy", self._state, large)) | ~np.isfinite(
            self._call("stress", self._state, large)).all((1, 2))
        yield Finding(0.0, float((good & broken).sum()), 0.0, "feasible: steps of 0.5 without a finite energy or stress")

    def _step(self) -> Iterator[Finding]:
        elastic = self._elastic()
        after = self._call("advance", self._state, self._A, params=elastic)
        error = (self._call("energy", after, dt=NO_TIME, params=elastic)
                 - self._call("energy", self._state, self._A, params=elastic))
        yield Finding(0.0, self._worst(error), 1e-9, "advance: energy of its state less that of the step, of M")
        violent = self._call("advance", self._state, np.random.default_rng(7).normal(0.0, 1.0, (COUNT, 3, 3)))
        lost = sum(float((~np.isfinite(values)).sum()) for values in violent.values())
        yield Finding(0.0, lost, 0.0, "advance: values that are not finite after steps of 1")

    def _waves(self) -> Iterator[Finding]:
        n = np.random.default_rng(8).standard_normal((COUNT, 3))
        n /= np.linalg.norm(n, axis=1, keepdims=True)
        Q, elastic = np.einsum("ni,nj->nij", n, n), self._elastic()
        for name, state, waves in (("at rest", self.law.rest_state(COUNT), Q), ("when strained", self._state, Q)):
            def stress(h: float, state: Any = state, waves: Any = waves) -> np.ndarray:
                return self._call("stress", self._call("advance", state, h * waves, dt=NO_TIME, params=elastic), dt=NO_TIME,
                                  params=elastic)

            # what explicit steps meet: the change of the stress, less T L^T, in current space
            stiffness = ((_derivative(stress) - stress(0.0) @ waves.transpose(0, 2, 1)) * waves).sum((1, 2))
            bound = self.law.params.density * self._call("wave_speed", state) ** 2
            yield Finding(0.0, max(float((stiffness / bound).max()) - 1.0, 0.0), 1e-6, f"wave_speed: too slow {name}")

    def _volume(self) -> Iterator[Finding]:
        if self.law.function("left_strain"):
            _, b = self._call("left_strain", self._state)
            yield Finding(0.0, float(np.abs(np.linalg.det(b) - 1).max()), 1e-9, "left_strain: det b - 1")
        named = next((name for name in ("volume_ratio", "left_strain") if self.law.function(name)), None)
        if named:
            def volume(state: Any) -> np.ndarray:
                value = self._call(named, state)
                return value[0] if isinstance(value, tuple) else value

            rate = _derivative(lambda h: volume(self._call("advance", self._state, h * self._directions(9), dt=NO_TIME)))
            exact = volume(self._state) * np.trace(self._directions(9), axis1=1, axis2=2)
            yield Finding(0.0, float(np.abs(rate - exact).max()), 1e-6, f"{named}: growth of J against J tr L")

    def _scale_and_precision(self) -> Iterator[Finding]:
        elastic = self._elastic()
        once, twice = (self._call("stress", self._state, dt=NO_TIME, params=elastic, stiffness_scale=s) for s in (1.0, 2.0))
        yield Finding(0.0, self._worst(twice - 2 * once), 1e-11, "STIFFNESS: twice the stress at stiffness_scale 2, of M")
        state = {name: values.astype(np.float32) for name, values in self._state.items()}
        single, double = (self._call("stress", state, dtype=dtype) for dtype in (np.float32, np.float64))
        yield Finding(0.0, self._worst(single - double) / float(np.finfo(np.float32).eps), 200.0,
                      "stress: single precision, in rounding units of M")

    def _loops(self) -> Iterator[Finding]:
        """Compare the compiled loops with the same functions on NumPy columns, in single precision."""
        stride, eps = COUNT + 16, float(np.finfo(np.float32).eps)
        state = {name: values.astype(np.float32) for name, values in self._state.items()}
        L = (self._A / STEP).astype(np.float32)

        def rows(values: np.ndarray) -> np.ndarray:
            out = np.zeros((values.reshape(COUNT, -1).shape[1], stride), np.float32)
            out[:, :COUNT] = values.reshape(COUNT, -1).T
            return out.ravel()

        arrays, gradient, scale = [rows(state[name]) for name in self.law.state], rows(L), np.zeros(0, np.float32)
        tau, segments = np.zeros(6 * stride, np.float32), np.array([(0, COUNT, 0)], np.int64)
        tail = (stride, segments, self.law.coefficients(self.params))
        try:
            kernels = law_kernels(self.law.id, np.float32)
            kernels.stress(*arrays, gradient, scale, tau, *tail, STEP)
            kernels.advance(*arrays, gradient, *tail, STEP)
        except Exception as error:  # numba's own errors are of many kinds
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise LawError(f"law {self.law.id}: does not compile in lanes: {type(error).__name__}: "
                           f"{' '.join(lines[:2])[:300]}; write literals as const(x, ...) and branches as select") from error
        T = self._call("kirchhoff" if self.law.function("kirchhoff") else "stress", state, dtype=np.float32)
        if self.law.function("viscous_stress"):
            T = T + self._call("viscous_stress", state, L=L, dtype=np.float32)
        got = tau.reshape(6, stride)[:, :COUNT].T
        size = self._size + float(np.abs(T).max())
        yield Finding(0.0, float(np.abs(got - T.reshape(-1, 9)[:, _SYMMETRIC]).max() / (size * eps)), 200.0,
                      "compiled stress, in rounding units")
        after = self._call("advance", state, np.float32(STEP) * L, dtype=np.float32)
        for name, array in zip(self.law.state, arrays, strict=True):
            got = array.reshape(-1, stride)[:, :COUNT].T.reshape(COUNT, *ATTRIBUTES[name].shape)
            error = np.abs(got - after[name]).max() / max(1.0, float(np.abs(after[name]).max()))
            yield Finding(0.0, float(error / eps), 100.0, f"compiled advance: {name}, in rounding units")


def _derivative(function: Callable[[float], np.ndarray], h: float = 1e-4) -> np.ndarray:
    """Return the fourth-order central difference at zero."""
    return (8 * (function(h) - function(-h)) - function(2 * h) + function(-2 * h)) / (12 * h)
