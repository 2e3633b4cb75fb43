"""What a verification problem is: a scene with an exact answer, and the record of one run of it."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mpm_nodes.data import MpmNodesError

__all__ = ["Curve", "Finding", "Record", "VerificationProblem", "registered"]

_REGISTERED: list[type[VerificationProblem]] = []


@dataclass(frozen=True)
class Finding:
    """One number that a problem checks: |measured - expected| <= tolerance.

    Attributes:
        expected: The exact answer.
        measured: What the solver gave.
        tolerance: Largest difference allowed, in the same unit.
        what: Which number it is, for problems that check several.
        advice: Where it failed and what to do, for checks of what users write.
    """

    expected: float
    measured: float
    tolerance: float
    what: str = ""
    advice: str = ""

    @classmethod
    def relative(cls, expected: float, measured: float, tolerance: float, what: str = "") -> Finding:
        """Return a finding whose tolerance is a fraction of the expected value."""
        return cls(expected, measured, tolerance * abs(expected), what)

    @property
    def passed(self) -> bool:
        """Whether the difference is within the tolerance (never for NaN)."""
        return bool(abs(self.measured - self.expected) <= self.tolerance)


@dataclass(frozen=True)
class Record:
    """Outcome of one check, as written to JSON.

    Attributes:
        name: Name of the problem and of the number.
        source: Where scene and answer come from.
        expected: The exact answer.
        measured: What the solver gave; words where there is no number.
        tolerance: Largest difference allowed.
        passed: Whether the difference is within it.
        seconds: Wall-clock time.
        advice: Where it failed and what to do, where the check knows; "" when it passed.
        known: Whether it is one of those that are known to miss.
    """

    name: str
    source: str
    expected: float
    measured: float | str
    tolerance: float
    passed: bool
    seconds: float
    advice: str = ""
    known: bool = False

    @property
    def used(self) -> float:
        """Share of the tolerance that the difference takes: above 1 where the check fails, 0 where an exact answer is met."""
        if isinstance(self.measured, str):
            return math.inf
        difference = abs(self.measured - self.expected)
        return difference / self.tolerance if self.tolerance > 0.0 else math.inf if difference else 0.0

    @property
    def verdict(self) -> str:
        """Whether it holds, in the words of the samples: `ok`, `known miss` or `MISSED`."""
        return "ok" if self.passed else "known miss" if self.known else "MISSED"


@dataclass(frozen=True)
class Curve:
    """A measured curve over an exact one, for pictures; what is checked are findings.

    Attributes:
        what: Which case it is.
        axes: Words of the abscissa and of the ordinate, with units.
        measured: Abscissas and ordinates, shape (n,) each.
        exact: The same of the exact answer, shape (m,) each.
        tolerance: Largest difference allowed everywhere [unit of the ordinate]; 0 where the tolerance is not one of the curve.
    """

    what: str
    axes: tuple[str, str]
    measured: tuple[np.ndarray, np.ndarray]
    exact: tuple[np.ndarray, np.ndarray]
    tolerance: float = 0.0


class VerificationProblem:
    """A scene with an exact answer; subclasses register themselves.

    The docstring of a problem says what must hold, and then, each on its own line: "Scene:" what is simulated,
    "Exact:" the answer with its formula, "Tolerance:" how close and why.

    Attributes:
        name: What users type.
        source: Paper or textbook.
        slow: True for problems that take more than a few seconds: they run with --all or by name.
        misses: Those of its numbers (`Finding.what`) that are known to miss; the docstring says why. Their tolerance stays, and
            one that comes to hold leaves the list.
        curves: What its last run showed.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    slow: ClassVar[bool] = False
    misses: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.curves: list[Curve] = []

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):  # classes without a name are bases of others
            taken = next((other for other in _REGISTERED if other.name == cls.name), None)
            if taken is not None:
                raise TypeError(
                    f"problem {cls.__qualname__}: '{cls.name}' is {taken.__module__}.{taken.__qualname__}; name it otherwise"
                )
            _REGISTERED.append(cls)

    def findings(self) -> Iterator[Finding]:
        """Run the scene and yield what was measured."""
        raise NotImplementedError

    def show(
        self,
        what: str,
        axes: tuple[str, str],
        measured: tuple[np.ndarray, np.ndarray],
        exact: tuple[np.ndarray, np.ndarray],
        tolerance: float = 0.0,
    ) -> None:
        """Keep a curve for `mpm-nodes verify --plots`; its points need not be in order. See `Curve` for the arguments."""
        drawn = []
        for x, y in (measured, exact):
            order = np.argsort(x, kind="stable")
            drawn.append((np.asarray(x, float)[order], np.asarray(y, float)[order]))
        self.curves.append(Curve(what, axes, drawn[0], drawn[1], tolerance))

    def records(self) -> Iterator[Record]:
        """Run the scene and yield its records; an error of the solver is a failed record, not a traceback."""
        begin = time.perf_counter()
        try:
            for finding in self.findings():
                end = time.perf_counter()
                yield self._record(finding, end - begin)
                begin = end
        except MpmNodesError as error:
            yield Record(self.name, self.source, 0.0, str(error), 0.0, False, time.perf_counter() - begin)

    def _record(self, finding: Finding, seconds: float) -> Record:
        measured = float(finding.measured)
        return Record(
            f"{self.name} {finding.what}".strip(),
            self.source,
            float(finding.expected),
            measured if math.isfinite(measured) else str(measured),
            float(finding.tolerance),
            finding.passed,
            round(seconds, 3),
            "" if finding.passed else finding.advice,
            finding.what in self.misses,
        )

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return inspect.getdoc(cls).splitlines()[0]


def registered() -> tuple[type[VerificationProblem], ...]:
    """Return every problem defined so far."""
    return tuple(_REGISTERED)
