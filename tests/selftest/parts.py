"""The parts of the selftest: how many cases the short and the long form have, and what must hold of each."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PARTS", "Part"]


@dataclass(frozen=True)
class Part:
    """One part.

    Attributes:
        name: What --only calls it.
        module: Where its `cases(job)` is.
        promise: What must hold of each case.
        short: Cases of the short form.
        long: Cases of the long form; parts that have as many as there are say about how many.
        share: Share of the hours of a long run.
        workers: Processes at once; 0 for one a core.
        numbered: Whether every case is one number and gives one outcome: a run that was stopped goes on behind the last one.
    """

    name: str
    module: str
    promise: str
    short: int
    long: int
    share: float
    workers: int = 0
    numbered: bool = False


_PACKAGE = "tests.selftest"

PARTS = (
    Part(
        "graphs",
        f"{_PACKAGE}.graphs",
        "valid, or one error of the family with a bounded message; under 1 s and 200 MB; a valid one is the same when saved",
        20_000,
        1_000_000,
        40,
        numbered=True,
    ),
    Part(
        "files",
        f"{_PACKAGE}.files",
        "read without NaN, or refused in a sentence; nothing reaches the process that asks; cooks go on byte-equal",
        300,
        10_000,
        20,
        numbered=True,
    ),
    Part("kills", f"{_PACKAGE}.kills", "a resumed cook has the bytes of one that nobody killed", 20, 500, 10),
    Part(
        "writes",
        f"{_PACKAGE}.writes",
        "exit code 5 and a sentence, or whole; then resumed byte-equal",
        200,
        600,
        10,
    ),
    Part("memory", f"{_PACKAGE}.memory", "exit code 0 or 5, or a library ends it, which is told; resumed byte-equal", 5, 30, 10),
    Part("cooks", f"{_PACKAGE}.cooks", "equal bits; one writer at a time; gone within 2 s and resumed byte-equal", 5, 100, 10, 1),
    Part("soak", f"{_PACKAGE}.soak", "cooks end well; resident memory grows less than 1 %", 30, 2000, 10, 1),
)
"""In the order in which they run."""
