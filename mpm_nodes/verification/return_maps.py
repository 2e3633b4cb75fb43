"""What every return map must keep: idempotent, onto the yield surface, never against the flow (see `law_contract`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mpm_nodes.verification.contract import Finding

__all__ = ["ReturnMapChecks", "numbers", "point"]

LONG = 1e100
"""Seconds in which all flow is done, also that of an overstress that decays with a small power of time [s]."""

CRUSHED = (0.5, 2.0)
"""Volume ratios of trial steps: elastic energies need not be sensible where matter is crushed."""

ROUNDING = 1e-9
"""Share of what the trial states exceed that may be left, by rounding alone."""


def numbers(values: Any) -> str:
    """Return a value or the entries of a matrix with four digits, in one line."""
    return np.array2string(np.asarray(values, float), precision=4, separator=", ", max_line_width=10**6).replace("\n", "")


def point(state: Mapping[str, np.ndarray], index: int) -> str:
    """Return the state of one material point in words."""
    return "worst at " + ", ".join(f"{name} = {numbers(values[index])}" for name, values in state.items())


class ReturnMapChecks:
    """The checks of `project` for one law.

    Args:
        contract: The `LawContract` that holds the law, its parameters and its states.
    """

    def __init__(self, contract: Any) -> None:
        self.contract, self.law = contract, contract.law
        elastic = getattr(self.law.module, "ELASTIC", None)
        self.elastic = tuple(getattr(field, "name", field) for field in elastic.STATE) if elastic is not None else self.law.state

    def findings(self) -> Iterator[Finding]:
        """Project trial states, once and twice, with the time of a step and with all time."""
        if self.law.function("yield_function") is None:
            cure = "write def yield_function(state, coeffs): <= 0 where the material does not flow, in any unit"
            yield Finding(1.0, 0.0, 0.0, "project: names its yield function", cure)
            return
        trial = self._trial()
        f = self._call("yield_function", trial)
        largest = float(f.max())
        flows = int((f > 0.0).sum())
        yield Finding(
            1.0,
            float(flows > 0 and bool((f < 0.0).any())),
            0.0,
            "project: trial states on both sides of yield_function",
            f"yield_function is > 0 in {flows} of {len(f)} states after steps of up to a third: is its sign wrong?",
        )
        once = self._call("project", trial, LONG)
        left = self._call("yield_function", once)
        yield self._finding(
            np.maximum(left, 0.0) / max(largest, 1e-300),
            trial,
            "onto the yield surface, of the largest excess",
            "yield_function must be <= 0 after project and a long time: it does not go far enough",
        )
        twice = self._call("project", once, LONG)
        yield self._finding(
            _distance(twice, once),
            trial,
            "twice is once",
            "what project has returned lies on the yield surface, and must come back as it is (idempotent)",
        )
        inside = f < -ROUNDING * max(largest, float(np.abs(f).max()))
        yield self._finding(
            np.where(inside, _distance(once, trial), 0.0),
            trial,
            "leaves alone what does not flow",
            "states inside the yield surface must come back as they are",
        )
        yield from self._dissipation(trial, f)

    def _dissipation(self, trial: dict[str, np.ndarray], f: np.ndarray) -> Iterator[Finding]:
        """Compare energies before and after the flow of a step and of all time, at the packing before it."""
        before = self._call("energy", trial)
        size = np.maximum(np.abs(before), 1e-12 * self.contract._size)
        for time, what in ((None, "in a step"), (LONG, "in a long time")):
            after = self._call("project", trial, time)
            # a return map's own state may stiffen the material: that is not the work of this flow
            held = {name: (after if name in self.elastic else trial)[name] for name in self.law.state}
            yield self._finding(
                np.maximum(self._call("energy", held) - before, 0.0) / size,
                trial,
                f"energy that it adds {what}, of what there was",
                "flow dissipates: the elastic energy must not grow in project",
            )
            yield self._finding(
                np.maximum(self._call("yield_function", after) - np.maximum(f, 0.0), 0.0) / max(float(f.max()), 1e-300),
                trial,
                f"excess that it adds {what}",
                "flow must not lead away from the yield surface",
            )

    def _trial(self) -> dict[str, np.ndarray]:
        """Return states on both sides of the yield surface: elastic steps of a third, a thirtieth, ... from the reached states."""
        contract, random = self.contract, np.random.default_rng(12)
        state = contract._state
        count = len(next(iter(state.values())))
        A = random.standard_normal((count, 3, 3)) * (0.3 * 0.1 ** (np.arange(count) % 4))[:, None, None]
        for _ in range(8):
            J = np.linalg.det(np.eye(3) + A)
            A[~contract._call("feasible", state, A) | (J < CRUSHED[0]) | (J > CRUSHED[1])] *= 0.5
        rest = self.law.rest_state(count)
        near = np.arange(count) % 8 > 3  # half of them start at rest: a return map that always flows would leave none inside
        start = {name: np.where(near.reshape(-1, *[1] * (v.ndim - 1)), rest[name], v) for name, v in state.items()}
        return contract._call("advance", start, A)

    def _call(self, function: str, state: Mapping[str, np.ndarray], dt: float | None = None) -> Any:
        return self.contract._call(function, state) if dt is None else self.contract._call(function, state, dt=dt)

    @staticmethod
    def _finding(error: np.ndarray, trial: Mapping[str, np.ndarray], what: str, cure: str) -> Finding:
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        return Finding(0.0, float(error[worst]), ROUNDING, f"project: {what}", f"{cure}; {point(trial, worst)}")


def _distance(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the largest difference of two states at each point."""
    return np.max([np.abs(a[name] - b[name]).reshape(len(a[name]), -1).max(axis=1) for name in a], axis=0)
