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

from mpm_nodes.data import MpmNodesError
from mpm_nodes.materials.contract import OPTIONAL, REQUIRED, Law, law, law_in, register_law
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.law_calls import functions_of, in_lanes
from mpm_nodes.verification.return_maps import ReturnMapChecks, numbers, point

__all__ = ["LawContract", "law_named"]

COUNT, STEP, NO_TIME = 200, 1e-3, 1e-30


def law_named(name: str) -> str:
    """Return the id of a law: `name` itself, or the one that the Python file `name` defines, which is registered.

    Raises:
        MpmNodesError: There is no such law or file, or the module breaks the contract: says how.
    """
    if not name.endswith(".py"):
        return law(name).id
    path = Path(name)
    if not path.is_file():
        raise MpmNodesError(f"verify: {name} is not a file; give the id of a law or a Python file that defines one")
    known = law_in(path)
    if known is not None:
        return known.id
    spec = importlib.util.spec_from_file_location(f"mpm_nodes_law_of_user_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
    except MpmNodesError:
        raise
    except Exception as error:
        raise MpmNodesError(f"verify: {name}: {type(error).__name__}: {error}; fix the file") from error
    # a file may register its laws itself, under whatever module they stand in
    known = law_in(path)
    return register_law(module).id if known is None else known.id


class LawContract(VerificationProblem):
    """A law keeps the contract of `materials.contract`.

    Scene: 200 states reached by random steps of up to a tenth from rest, and a further such step A; dt = 1 ms. For `project`, steps
        of up to a third from them, and a time so long that all flow is done.
    Exact: T = dpsi/dA, dT its self-adjoint derivative, a return map that is idempotent, onto the yield surface and dissipates, and
        what else the contract says of each function; every function the same in lanes, where a NaN stays one.
    Tolerance: 1e-6 of M for differences of the energy, 1e-5 for those of the stress, rounding elsewhere.

    Args:
        law_id: Which law.
        params: Some of its parameters; the others keep their defaults.
        compiled: Compile its functions to lanes and compare them, too.
    """

    def __init__(self, law_id: str, params: Mapping[str, Any] | None = None, compiled: bool = True) -> None:
        self.law: Law = law(law_id)
        self.name, self.source = law_id, self.law.source
        self.params, self.compiled = dict(params or {}), compiled

    def findings(self) -> Iterator[Finding]:
        """Check function after function; what is not finite is the last thing said."""
        speed = float(self._call("wave_speed")[0])
        yield Finding(
            1.0,
            float(np.isfinite(speed) and speed > 0.0),
            0.0,
            "wave_speed: positive at rest",
            f"it returns {speed:g} m/s; fix it",
        )
        self._size = self.law.params.density * speed**2
        if not (np.isfinite(self._size) and self._size > 0.0):
            return
        self._state = self.law.rest_state(COUNT)
        self._state, self._A = self._reached()
        finite = True
        for finding in self._finiteness():
            finite = finite and finding.passed
            yield finding
        if not finite:
            return
        yield from self._rest()
        yield from self._derivatives()
        yield from self._kirchhoff()
        yield from self._stretched()
        yield from self._feasibility()
        yield from self._step()
        yield from self._waves()
        yield from self._volume()
        yield from self._scale_and_precision()
        if self.law.function("project"):
            yield from ReturnMapChecks(self).findings()
        if self.compiled:
            yield from in_lanes(self.law, self.params, self._state, self._A)

    # ---------------------------------------------------------------- the sample
    def _call(self, function: str, state: Any = None, A: Any = None, dt: float = STEP, **given: Any) -> Any:
        params = given.pop("params", self.params)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # the findings say what is not finite
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

    def _at(self, error: np.ndarray, cure: str, step: bool = True) -> str:
        """Return the cure, and the state (and step) where an error, one entry or matrix a point, is largest."""
        error = np.abs(np.asarray(error, float).reshape(len(error), -1))
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error).max(axis=1)))
        return f"{cure}; {point(self._state, worst)}" + (f", A = {numbers(self._A[worst])}" if step else "")

    # ---------------------------------------------------------------- the checks
    def _finiteness(self) -> Iterator[Finding]:
        """Look for what is not finite at the reached states, before anything is compared."""
        given = {"A": self._A, "dA": self._directions(2), "L": self._A / STEP}
        for name in functions_of(self.law):
            takes = {**REQUIRED, **OPTIONAL}[name]
            found = self._call(name, self._state, **{key: value for key, value in given.items() if key in takes})
            parts = list(found.values()) if isinstance(found, dict) else list(found) if isinstance(found, tuple) else [found]
            lost = ~np.concatenate([np.isfinite(part).reshape(COUNT, -1) for part in parts], axis=1).all(axis=1)
            yield Finding(
                0.0,
                float(lost.sum()),
                0.0,
                f"{name}: states where it is not finite",
                self._at(lost, f"{name} gives NaN or infinity inside the law's domain: fix it, or let feasible say no"),
            )

    def _rest(self) -> Iterator[Finding]:
        rest = self.law.rest_state(1)
        yield Finding(0.0, self._worst(self._call("stress")), 1e-12, "stress: none at rest, of M", "energy must be least at rest")
        yield Finding(
            1.0, float(self._call("feasible")[0]), 0.0, "feasible: the empty step at rest", "it must allow A = 0; fix its mask"
        )
        for function in ("advance", "advance_minimised", "project"):
            if self.law.function(function):
                moved = max(np.abs(value - rest[name]).max() for name, value in self._call(function).items())
                yield Finding(
                    0.0, float(moved), 1e-12, f"{function}: leaves the rest state alone", "at rest with A = 0 nothing may change"
                )

    def _derivatives(self) -> Iterator[Finding]:
        state, A, Q, R = self._state, self._A, self._directions(2), self._directions(3)
        T = self._call("stress", state, A)
        work = (T * Q).sum((1, 2))
        slope = _derivative(lambda h: self._call("energy", state, A + h * Q))
        advice = self._at(slope - work, "stress must be the derivative of energy by A: look for a wrong sign or factor in either")
        yield Finding(0.0, self._worst(slope - work), 1e-6, "stress: T : dA against differences of energy, of M", advice)
        dQ, dR = (self._call("stress_differential", state, A, dA=each) for each in (Q, R))
        slope = _derivative(lambda h: self._call("stress", state, A + h * Q))
        largest = max(float(np.abs(dQ).max() / self._size), 1.0)
        advice = self._at(slope - dQ, "stress_differential must be the derivative of stress along dA")
        yield Finding(
            0.0, self._worst(slope - dQ) / largest, 1e-5, "stress_differential: against differences of stress, of M", advice
        )
        lopsided = (R * dQ).sum((1, 2)) - (Q * dR).sum((1, 2))
        advice = self._at(lopsided, "the second derivative of an energy is self-adjoint")
        yield Finding(0.0, self._worst(lopsided) / largest, 1e-11, "stress_differential: Q : dT(R) - R : dT(Q), of M", advice)

    def _stretched(self) -> Iterator[Finding]:
        """Compare what a law makes of the left stretch with what it makes of F."""
        if not self.law.function("left_stretch"):
            return
        packed, Q = self._call("left_stretch", self._state), self._directions(5)
        V = packed[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
        F = self._state["deformation"]
        error = V @ V - F @ F.transpose(0, 2, 1)
        advice = self._at(error, "left_stretch must be V of F = V R", False)
        yield Finding(0.0, float(np.abs(error).max()), 1e-11, "left_stretch: V V - F F^T", advice)
        turned = {**self._state, "deformation": V}
        for whole, given in (("stress", {}), ("stress_differential", {"dA": Q})):
            name = whole.replace("stress", "stretched_stress") if not given else "stretched_differential"
            exact = self._call(whole, self._state, dt=NO_TIME, **given)
            error = self._call(name, turned, **given) - exact
            advice = self._at(error, f"{name} must be {whole} at A = 0, and the law isotropic", False)
            yield Finding(0.0, self._worst(error), 1e-10, f"{name}: against {whole} of F, of M", advice)

    def _kirchhoff(self) -> Iterator[Finding]:
        T = self._call("stress", self._state, dt=NO_TIME)
        advice = self._at(
            T - T.transpose(0, 2, 1), "T at A = 0 is the Kirchhoff stress: turning all must not change the energy", False
        )
        yield Finding(0.0, self._worst(T - T.transpose(0, 2, 1)), 1e-12, "stress: symmetric at A = 0, of M", advice)
        if self.law.function("kirchhoff"):
            error = self._call("kirchhoff", self._state) - T
            advice = self._at(error, "kirchhoff must be stress at A = 0 and dt = 0, or be left out", False)
            yield Finding(0.0, self._worst(error), 1e-12, "kirchhoff: T at A = 0, dt = 0, of M", advice)
        if self._viscous_knob():
            params, dt = {**self.params, self.law.names[self.law.viscosity]: 1e-2 * self._size}, 1e-9
            L = self._directions(4)
            viscous = self._call("viscous_stress", self._state, L=L, params=params)
            grown = self._call("stress", self._state, dt * L, dt=dt, params=params) - self._call(
                "stress", self._state, dt=dt, params=params
            )
            yield Finding(0.0, self._worst(grown - viscous), 1e-7, "viscous_stress: what a rate adds to stress, of M")

    def _feasibility(self) -> Iterator[Finding]:
        small = 1e-3 * self._directions(5)
        allowed = self._call("feasible", self._state, small)
        advice = self._at(~allowed, "feasible must allow small steps from every state that is reached: it forbids too much", False)
        yield Finding(1.0, float(allowed.mean()), 0.0, "feasible: steps of 1e-3", advice)
        large = np.random.default_rng(6).normal(0.0, 0.5, (COUNT, 3, 3))
        good = self._call("feasible", self._state, large)
        broken = ~np.isfinite(self._call("energy", self._state, large)) | ~np.isfinite(
            self._call("stress", self._state, large)
        ).all((1, 2))
        advice = self._at(good & broken, "feasible must say no where energy or stress is not finite: it forbids too little", False)
        yield Finding(0.0, float((good & broken).sum()), 0.0, "feasible: steps of 0.5 without a finite energy or stress", advice)

    def _step(self) -> Iterator[Finding]:
        elastic = self._elastic()
        minimised = "advance_minimised" if self.law.function("advance_minimised") else "advance"
        after = self._call(minimised, self._state, self._A, params=elastic)
        error = self._call("energy", after, dt=NO_TIME, params=elastic) - self._call("energy", self._state, self._A, params=elastic)
        advice = self._at(error, f"the state after {minimised} must hold the strain whose energy `energy` gives for the step")
        yield Finding(0.0, self._worst(error), 1e-9, f"{minimised}: energy of its state less that of the step, of M", advice)
        for function in sorted({"advance", minimised}):
            violent = self._call(function, self._state, np.random.default_rng(7).normal(0.0, 1.0, (COUNT, 3, 3)))
            lost = sum(float((~np.isfinite(values)).sum()) for values in violent.values())
            cure = f"{function} must survive any finite step: see mat3.advance_deformation"
            yield Finding(0.0, lost, 0.0, f"{function}: values that are not finite after steps of 1", cure)

    def _waves(self) -> Iterator[Finding]:
        n = np.random.default_rng(8).standard_normal((COUNT, 3))
        n /= np.linalg.norm(n, axis=1, keepdims=True)
        Q, elastic = np.einsum("ni,nj->nij", n, n), self._elastic()
        for name, state, waves in (("at rest", self.law.rest_state(COUNT), Q), ("when strained", self._state, Q)):

            def stress(h: float, state: Any = state, waves: Any = waves) -> np.ndarray:
                return self._call(
                    "stress", self._call("advance", state, h * waves, dt=NO_TIME, params=elastic), dt=NO_TIME, params=elastic
                )

            # what explicit steps meet: the change of the stress, less T L^T, in current space
            stiffness = ((_derivative(stress) - stress(0.0) @ waves.transpose(0, 2, 1)) * waves).sum((1, 2))
            bound = self.law.params.density * self._call("wave_speed", state) ** 2
            advice = self._at(stiffness / bound, "wave_speed must bound the fastest wave, or explicit steps are unstable", False)
            yield Finding(0.0, max(float((stiffness / bound).max()) - 1.0, 0.0), 1e-6, f"wave_speed: too slow {name}", advice)

    def _volume(self) -> Iterator[Finding]:
        if self.law.function("left_strain"):
            _, b = self._call("left_strain", self._state)
            error = np.linalg.det(b) - 1
            advice = self._at(error, "b must be unimodular: J^(-2/3) F F^T", False)
            yield Finding(0.0, float(np.abs(error).max()), 1e-9, "left_strain: det b - 1", advice)
        named = next((name for name in ("volume_ratio", "left_strain") if self.law.function(name)), None)
        if named:

            def volume(state: Any) -> np.ndarray:
                value = self._call(named, state)
                return value[0] if isinstance(value, tuple) else value

            rate = _derivative(lambda h: volume(self._call("advance", self._state, h * self._directions(9), dt=NO_TIME)))
            exact = volume(self._state) * np.trace(self._directions(9), axis1=1, axis2=2)
            advice = self._at(rate - exact, "J must be the volume ratio of the state that advance leaves", False)
            yield Finding(0.0, float(np.abs(rate - exact).max()), 1e-6, f"{named}: growth of J against J tr L", advice)

    def _scale_and_precision(self) -> Iterator[Finding]:
        elastic = self._elastic()
        once, twice = (self._call("stress", self._state, dt=NO_TIME, params=elastic, stiffness_scale=s) for s in (1.0, 2.0))
        advice = self._at(
            twice - 2 * once, "STIFFNESS must name every coefficient that the elastic stress is proportional to", False
        )
        yield Finding(0.0, self._worst(twice - 2 * once), 1e-11, "STIFFNESS: twice the stress at stiffness_scale 2, of M", advice)
        state = {name: values.astype(np.float32) for name, values in self._state.items()}
        single, double = (self._call("stress", state, dtype=dtype) for dtype in (np.float32, np.float64))
        yield Finding(
            0.0,
            self._worst(single - double) / float(np.finfo(np.float32).eps),
            200.0,
            "stress: single precision, in rounding units of M",
            self._at(single - double, "differences of nearly equal numbers lose digits; form them from differences to rest", False),
        )


def _derivative(function: Callable[[float], np.ndarray], h: float = 1e-4) -> np.ndarray:
    """Return the fourth-order central difference at zero."""
    return (8 * (function(h) - function(-h)) - function(2 * h) + function(-2 * h)) / (12 * h)
