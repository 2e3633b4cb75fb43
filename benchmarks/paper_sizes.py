"""Seconds a frame of the samples of S14 in the sizes of its Table 2, by stage, beside its minutes on 16 cores.

    python benchmarks/paper_sizes.py                                   # six samples, two parts of a frame each
    python benchmarks/paper_sizes.py letters --parts 1 --count 1       # one of them, a whole frame of 1/30 s
    python benchmarks/paper_sizes.py letters --size quick              # the same on the quick size: tries the command
    python benchmarks/paper_sizes.py letters --set drop.dt_max=0.002   # with other knobs, for instance a longer step

A frame of 1/30 s is solved in `--parts` parts by slow motion (keyed bodies move as much slower), and `--count` of them are timed; a
frame takes as much as a part times parts. Solves alone: no surfaces, pictures and files. The quick size is run before, so that
kernels are loaded. The exit code is 1 when a sample misses its target in the paper's size.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from typing import Any

from environments import busy_warning

from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.packaged_samples import samples_folder

samples_folder()
from mpm_nodes_samples.shots.index import sample_named  # noqa: E402
from mpm_nodes_samples.shots.shot import Progress  # noqa: E402
from mpm_nodes_samples.shots.sizes import SIZES, graph_of, remove  # noqa: E402

FASTER = {"letters": 15.0, "hot_stream": 5.0, "hot_air": 5.0, "candied_apple": 5.0, "butter_on_pan": 5.0, "lava": 5.0}
"""Samples of Table 2, and how many times less than its minutes a frame should take."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and print a table and the stages of each sample; 1 when one misses its target in the paper's size."""
    args = arguments_of(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    rows = [
        "| sample | particles | substeps a frame | s a frame | source, s | times less | target |",
        "|---|---|---|---|---|---|---|",
    ]
    missed = False
    for name in args.names:
        row, lines, holds = measured(name, args)
        rows.append(row)
        print(row, *lines, sep="\n", flush=True)
        missed |= not holds
    print("\n" + "\n".join(rows))
    return int(missed and args.size == "paper")


def measured(name: str, args: argparse.Namespace) -> tuple[str, list[str], bool]:
    """Return a row of the table, the stages of a sample with their shares, and whether it holds its target."""
    stated, least = 60.0 * sample_named(name).paper.minutes, FASTER[name]
    solved(name, "quick", args, 1)
    watch, particles, fps = solved(name, args.size, args, args.count)
    parts = args.parts * fps / 30.0
    substeps = parts * sum(watch.substeps[frame] for frame in watch.seconds) / args.count
    seconds = parts * sum(watch.seconds.values()) / args.count
    times = stated / seconds
    row = f"| {name} | {particles:,} | {substeps:.0f} | {seconds:.1f} | {stated:.0f} | {times:.1f} | {least:g} |"
    spent: dict[str, float] = {}
    for stages in watch.stages.values():
        for stage, each in stages.items():
            spent[stage] = spent.get(stage, 0.0) + each
    total = sum(spent.values()) or 1.0
    order = sorted(spent.items(), key=lambda item: -item[1])
    return row, [f"  {100.0 * each / total:5.1f} %  {stage}" for stage, each in order if each > 0.005 * total], times >= least


def solved(name: str, size: str, args: argparse.Namespace, count: int) -> tuple[Progress, int, float]:
    """Solve `count` parts of a frame; return what the cook told, the particles at the end, and frames a second."""
    graph, solver = solve_alone(name, size, args.overrides)
    graph.set(f"{solver}.time_scale", 1.0 / args.parts)
    watch, particles = Progress(), [0]

    def sink(event: dict[str, Any]) -> None:
        particles[0] = event.get("particles", particles[0])
        watch(event)

    first = graph.settings.start
    execute(graph, frames=(first, first + count), on_event=sink)
    return watch, particles[0], graph.settings.fps


def solve_alone(name: str, size: str, overrides: list[str]) -> tuple[Any, str]:
    """Return a sample's graph in one of its sizes with nothing but its solve and what that hangs on, and the name of the solve."""
    graph = graph_of(sample_named(name), size, overrides)
    solver = next(node for node, entry in graph.nodes.items() if entry.type == "solve")
    for node in set(graph.nodes) - upstream(graph, solver):
        remove(graph, node)
    return graph, solver


def upstream(graph: Any, node: str) -> set[str]:
    """Return a node and all that it hangs on."""
    found, left = set(), [node]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [wire.partition(".")[0] for wires in graph.nodes[name].inputs.values() for wire in wires]
    return found


def arguments_of(arguments: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = sample_parser(__doc__, FASTER)
    parser.add_argument("--parts", type=int, default=10, metavar="N", help="parts of a frame of 1/30 s (default: 10)")
    parser.add_argument("--count", type=int, default=2, metavar="N", help="parts that are timed (default: 2)")
    return parsed(parser, arguments, FASTER)


def sample_parser(text: str | None, names: Collection[str]) -> argparse.ArgumentParser:
    """Return a parser of names of samples, of their size, and of overrides of their knobs.

    Args:
        text: What the command does.
        names: The samples that it knows.
    """
    known = list(names)
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=known, help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--size", choices=SIZES, default="paper")
    parser.add_argument("--set", action="append", default=[], dest="overrides", metavar="NODE.KNOB=VALUE")
    return parser


def parsed(parser: argparse.ArgumentParser, arguments: list[str] | None, names: Collection[str]) -> argparse.Namespace:
    """Return the parsed command line; a name of none of the samples ends the command with those that there are."""
    args = parser.parse_args(arguments)
    if unknown := [name for name in args.names if name not in names]:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(names)}")
    return args


if __name__ == "__main__":
    sys.exit(main())
