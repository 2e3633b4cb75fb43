"""Cook a packaged sample, draw its contact sheet, and print the figures that it must show; 1 when one misses unexpectedly."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mpm_nodes.commands import cook
from mpm_nodes.commands.listing import add_list, listed
from mpm_nodes.commands.numbers import real
from mpm_nodes.data import InputError
from mpm_nodes.packaged_samples import samples_folder

TOPICS = {"Y15": "foam", "R15": "viscoelastic matter", "S14": "melting", "C21": "surface tension", "cho": "directed matter"}
"""What samples show, by the beginning of what they follow."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    samples_folder()
    from mpm_nodes_samples.shots.sizes import SIZES

    command.add_argument("name", nargs="?", metavar="NAME", help="the sample; none lists them all")
    command.add_argument(
        "--size", choices=SIZES, default="quick",
        help="quick: minutes on two cores; paper: particles, grid and time step of the source, three frames of them",
    )  # fmt: skip
    command.add_argument(
        "--study",
        action="store_true",
        help="dough_on_step: cook it at resolutions 0.5, 1 and 2 and draw them side by side",
    )
    command.add_argument(
        "--minutes", type=real(0.0, above=True), metavar="N", help="end the cook after so long (default: 19 for --size paper)"
    )
    add_list(command, "the samples")
    command.add_argument("--strict", action="store_true", help="exit with 1 for known misses, too")
    cook.add_graph_options(command)
    cook.add_cook_options(command)
    command.add_argument("--out", type=Path, metavar="DIR", help="output root (default: out/NAME)")
    command.add_argument("--engine", choices=("auto", "cycles", "splat"), default="splat", help="who renders the contact sheet")


def tell_samples() -> None:
    """Print what samples there are, as JSON, with a line and a topic for each: the editor asks so in a child."""
    samples_folder()
    from mpm_nodes_samples.shots.index import SAMPLES

    topics = {name: TOPICS.get(each.source[:3], "several at once") for name, each in SAMPLES.items()}
    print(json.dumps([{"name": name, "doc": each.doc, "topic": topics[name]} for name, each in SAMPLES.items()]))


def run(args: argparse.Namespace) -> int:
    """List the samples, or run one or its study."""
    from mpm_nodes_samples.shots.index import SAMPLES, sample_named

    if args.list or args.name is None:
        topics: dict[str, dict[str, str]] = {}
        for sample in SAMPLES.values():
            topics.setdefault(TOPICS.get(sample.source[:3], "several at once"), {})[sample.name] = sample.doc
        print(listed("sample", topics, [args.name] if args.name else []))
        return 0
    chosen = sample_named(args.name)
    if args.study:
        if chosen.name != "dough_on_step":
            raise InputError(f"--study: is for the sample 'dough_on_step', and this is '{chosen.name}'; leave it out")
        from mpm_nodes_samples.shots.resolutions import at_resolutions

        return at_resolutions(chosen, args)
    from mpm_nodes_samples.shots.run import run as run_sample

    return run_sample(chosen, args)
