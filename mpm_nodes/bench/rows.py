"""The rows of the table: which scene, law, kernel, transfer, number of particles and of threads are measured."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import argparse

SCENES = ("cube", "dam_break", "two_materials", "foam")
LAWS = ("neo_hookean", "fixed_corotated", "snow", "liquid")
MATERIALS = ("smore_interior", "smore_exterior")
"""Materials of the library that may stand for a law; `--all` does without them."""
KERNELS = ("quadratic", "cubic")
TRANSFERS = ("apic", "flip")
PRECISIONS = ("float32", "float64")
PARTICLES = (10_000, 100_000, 1_000_000, 4_000_000)
THREADS = (1, 2)
TWO_LAWS = ("neo_hookean", "snow")
"""Of the scene "two_materials", whatever `--law` says."""
FOAM = ("herschel_bulkley", "cubic", "flip")
"""Law, kernel and transfer of the scene "foam", whatever is listed: it runs the preset `continuum_foam` as it is wired."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        scene: One of `SCENES`.
        law: One of `LAWS` or `MATERIALS`, two laws joined by a plus, or that of `FOAM`.
        kernel: One of `KERNELS`.
        transfer: One of `TRANSFERS`.
        particles: Exact number of particles.
        threads: Number of threads.
        precision: Float type of the solve.
        fuse: Whether the planner may fuse neighbouring stages.
    """

    scene: str = "cube"
    law: str = "neo_hookean"
    kernel: str = "quadratic"
    transfer: str = "apic"
    particles: int = 1_000_000
    threads: int = 2
    precision: str = "float32"
    fuse: bool = True


def chosen(args: argparse.Namespace, available: int) -> list[Row]:
    """Return the rows that the command line asks for, on a machine with `available` threads.

    Without any list: a short selection. With lists: every combination, with one value for what is not listed, or with all of
    them after `--all`.
    """
    most = min(2, available)
    precision, fuse = args.precision, not args.no_fuse
    listed = any((args.scene, args.law, args.kernel, args.transfer, args.particles, args.threads))
    if args.all:
        rows = combinations(
            args.scene or SCENES,
            args.law or LAWS,
            args.kernel or KERNELS,
            args.transfer or ("apic",),
            args.particles or PARTICLES,
            args.threads or [n for n in THREADS if n <= available],
            how=Running(precision, fuse, bool(args.law)),
        )
        if not args.transfer:
            rows += [
                Row(r.scene, r.law, r.kernel, "flip", r.particles, r.threads, precision, fuse)
                for r in rows
                if (r.scene, r.law, r.kernel) == ("cube", "neo_hookean", "cubic")
            ]
    elif listed:
        rows = combinations(
            args.scene or ("cube",),
            args.law or LAWS[:1],
            args.kernel or KERNELS[:1],
            args.transfer or TRANSFERS[:1],
            args.particles or [10_000 if args.quick else 1_000_000],
            args.threads or [most],
            how=Running(precision, fuse, bool(args.law)),
        )
    else:
        rows = quick(most, precision, fuse) if args.quick else short(most, precision, fuse)
    return list(dict.fromkeys(rows))


class Running(NamedTuple):
    """What all combinations share: float type, whether stages are fused, and whether the command line names laws."""

    precision: str
    fuse: bool
    law_is_given: bool


def combinations(
    scenes: Sequence[str],
    laws: Sequence[str],
    kernels: Sequence[str],
    transfers: Sequence[str],
    particles: Sequence[int],
    threads: Sequence[int],
    how: Running,
) -> list[Row]:
    """Return every combination; a dam is of liquid unless a law was given, and two materials and foams have their own laws."""
    rows = []
    for scene, law, count, kernel, transfer, number in itertools.product(scenes, laws, particles, kernels, transfers, threads):
        if scene == "two_materials":
            law = "+".join(TWO_LAWS)
        elif scene == "dam_break" and not how.law_is_given:
            law = "liquid"
        elif scene == "foam":
            law, kernel, transfer = FOAM
        rows.append(Row(scene, law, kernel, transfer, count, number, how.precision, how.fuse))
    return rows


def short(threads: int, precision: str = "float32", fuse: bool = True) -> list[Row]:
    """Return the rows that are measured when nothing is said: some minutes; `benchmarks/goals.py` finds all that it asks for."""

    def row(
        scene: str = "cube",
        law: str = "neo_hookean",
        kernel: str = "quadratic",
        transfer: str = "apic",
        particles: int = 1_000_000,
        threads: int = threads,
    ) -> Row:
        return Row(scene, law, kernel, transfer, particles, threads, precision, fuse)

    return [
        row(),
        row(threads=1),
        row(particles=100_000),
        row(particles=10_000),
        row(kernel="cubic"),
        row(kernel="cubic", transfer="flip"),
        row(law="fixed_corotated"),
        row(law="snow"),
        row(law="liquid"),
        row("dam_break", "liquid"),
        row("two_materials", "+".join(TWO_LAWS)),
        row("foam", *FOAM),
    ]


def quick(threads: int, precision: str = "float32", fuse: bool = True) -> list[Row]:
    """Return rows of ten thousand particles: seconds, to see that everything runs."""
    return [
        Row("cube", "neo_hookean", "quadratic", "apic", 10_000, threads, precision, fuse),
        Row("cube", "neo_hookean", "cubic", "flip", 10_000, threads, precision, fuse),
        Row("cube", "snow", "quadratic", "apic", 10_000, threads, precision, fuse),
        Row("dam_break", "liquid", "quadratic", "apic", 10_000, threads, precision, fuse),
        Row("two_materials", "+".join(TWO_LAWS), "quadratic", "apic", 10_000, threads, precision, fuse),
        Row("foam", *FOAM, 10_000, threads, precision, fuse),
    ]
