"""Measure what the graph machinery costs: planning, dispatch and events."""

from __future__ import annotations

import argparse


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("--overhead", action="store_true", help="time of planning, dispatch and events (the default)")
    command.add_argument(
        "--particles", type=int, default=100_000, metavar="N", help="size of the substep to compare with"
    )
    command.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from mpm_nodes import bench

    return bench.main(args)
