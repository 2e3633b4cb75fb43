"""Milliseconds of a substep of the samples of C21 in the sizes of its Table 1, by its three parts, beside its own.

    python benchmarks/tension_steps.py                              # all eight, the last two of four substeps each
    python benchmarks/tension_steps.py drop_impacts metal_drop      # two of them
    python benchmarks/tension_steps.py soap_on_water --size quick   # the same on the quick size: tries the command

The parts are those of the table: (1) samples and balance points, (2) particles to grid and the update there, (3) grid to
particles, merging, and what particles do by themselves. A sort counts to (2). Solves alone: no surfaces, pictures and files. The
source's machine has 24 cores. The exit code is 1 when a sample that has a target misses it in the paper's size.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

from environments import busy_warning
from paper_sizes import parsed, sample_parser, solve_alone

from mpm_nodes.data import Cancelled
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.packaged_samples import samples_folder

samples_folder()
from mpm_nodes_samples.shots.shot import Progress  # noqa: E402


class Row(NamedTuple):
    """A row of the source's table.

    Attributes:
        interior, surface: Its particles, and those on the surface.
        parts: Its milliseconds of the three parts.
        faster: How many times less than their sum a substep should take; 0 where nothing is aimed at.
    """

    interior: int
    surface: int
    parts: tuple[float, float, float]
    faster: float = 10.0


TABLE = {
    "drop_impacts": Row(794_000, 100_000, (2224, 7705, 2360)),
    "drops_on_ramps": Row(70_000, 100_000, (258, 1147, 287)),
    "drops_on_plates": Row(230_000, 250_000, (492, 3715, 571)),
    "soap_on_water": Row(4_000_000, 200_000, (2166, 32099, 3205)),
    "tears_of_wine": Row(1_600_000, 500_000, (1549, 11268, 1172)),
    "candles": Row(618_000, 50_000, (1420, 27500, 1662), 0.0),
    "candle_letters": Row(3_100_000, 100_000, (4601, 170048, 2739), 0.0),
    "metal_drop": Row(235_000, 200_000, (29991, 8812, 3244)),
}
"""Table 1 of C21, by sample."""

SAMPLING = ("sample_surface", "set_tension", "split_surface_mass")
TO_PARTICLES = (
    "gather",
    "gather_heat",
    "gather_concentration",
    "merge_surface_mass",
    "update_deformation",
    "apply_plasticity",
    "collide_particles",
    "move_particles",
    "update_phase",
)
"""Stages of the first part and of the third, by the beginning of their names; all others are the second."""

FRAMES = 2
"""Frames of as many substeps as `--count`; kernels are compiled in the first, and the second is timed."""


class Measured(NamedTuple):
    """What was measured of a sample.

    Attributes:
        particles, samples: Of the last frame.
        parts: Milliseconds of a substep, in the three parts.
    """

    particles: int
    samples: int
    parts: tuple[float, float, float]


@dataclass
class _Watch(Progress):
    """Counts particles and samples as well, and can end the cook at its first substep, whose length is `first_dt` [s]."""

    until_dt: bool = False
    first_dt: float = math.nan
    particles: int = 0
    samples: int = 0

    def __call__(self, event: dict[str, Any]) -> None:
        """Keep what is of use of an event.

        Raises:
            Cancelled: The length of the first substep is known, and nothing more was asked for.
        """
        super().__call__(event)
        self.particles = event.get("particles", self.particles)
        if event["event"] == "surface":
            self.samples = event["samples"]
        if event["event"] == "substep" and self.until_dt:
            self.first_dt = event["dt"]
            raise Cancelled


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table; 1 when a sample with a target misses it in the paper's size."""
    args = arguments_of(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    print("| sample | particles (source) | samples (source) | sampling, ms (source) | to the grid, update | to the particles "
          "| times less | target |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    missed = False
    for name in args.names:
        row, found = TABLE[name], measured(name, args.size, args.count, args.overrides)
        times = sum(row.parts) / sum(found.parts)
        parts = (f"{mine:.0f} ({its:,.0f})" for mine, its in zip(found.parts, row.parts, strict=True))
        cells = (f"{found.particles:,} ({row.interior:,})", f"{found.samples:,} ({row.surface:,})", *parts, f"{times:.1f}")
        print(f"| {name} | {' | '.join(cells)} | {f'{row.faster:g}' if row.faster else ''} |", flush=True)
        missed |= times < row.faster
    return int(missed and args.size == "paper")


def measured(name: str, size: str, count: int, overrides: list[str]) -> Measured:
    """Return what a sample's substeps take.

    Args:
        name: The sample.
        size: "quick" or "paper".
        count: Substeps that are timed, after as many that are not.
        overrides: Changes of knobs, as `--set` takes them.
    """
    graph, solver = solve_alone(name, size, overrides)
    first, look = graph.settings.start, _Watch(until_dt=True)
    with contextlib.suppress(Cancelled):
        execute(graph, frames=(first, first + 1), on_event=look)
    graph.set(f"{solver}.time_scale", count * look.first_dt * graph.settings.fps)
    watch = _Watch()
    execute(graph, frames=(first, first + FRAMES), on_event=watch)
    last = first + FRAMES
    spent = [0.0, 0.0, 0.0]
    for stage, seconds in watch.stages[last].items():
        spent[_part_of(stage)] += 1e3 * seconds / watch.substeps[last]
    return Measured(watch.particles, watch.samples, (spent[0], spent[1], spent[2]))


def _part_of(stage: str) -> int:
    """Return to which of the three parts a stage, or the first of fused ones, belongs."""
    first = stage.split("+")[0]
    return 0 if first in SAMPLING else (2 if first in TO_PARTICLES else 1)


def arguments_of(arguments: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = sample_parser(__doc__, TABLE)
    parser.add_argument("--count", type=int, default=2, metavar="N", help="substeps that are timed, after as many (default: 2)")
    return parsed(parser, arguments, TABLE)


if __name__ == "__main__":
    sys.exit(main())
