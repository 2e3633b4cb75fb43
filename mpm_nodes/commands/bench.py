"""Measure how fast solves run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from mpm_nodes.commands.listing import add_list, listed
from mpm_nodes.commands.numbers import positive


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    from mpm_nodes.bench import rows

    add_list(command, "scenes, laws, kernels and transfers")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="10 thousand particles only: seconds")
    which.add_argument("--all", action="store_true", help="every combination: the better part of an hour")
    for name, values in rows_by_option().items():
        command.add_argument(f"--{name}", nargs="+", choices=values, help="rows of these (default: a short selection)")
    command.add_argument("--particles", nargs="+", type=positive, metavar="N", help="rows of these sizes")
    command.add_argument("--threads", nargs="+", type=positive, metavar="N", help="rows of these numbers of threads")
    command.add_argument("--precision", choices=rows.PRECISIONS, default="float32", help="float type (default: float32)")
    command.add_argument("--no-fuse", action="store_true", help="run every stage of the graph by itself")
    command.add_argument("--cold", action="store_true", help="time compiling too, each row in a process with an empty cache")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON, rows as a list of records")


def rows_by_option() -> dict[str, Sequence[str]]:
    """Return what rows of the table may be of, by option."""
    from mpm_nodes.bench import rows

    laws = (*rows.LAWS, *rows.MATERIALS)
    return {"scene": rows.SCENES, "law": laws, "kernel": rows.KERNELS, "transfer": rows.TRANSFERS}


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    if args.list:
        print(listed("bench", {f"--{name}": dict.fromkeys(values, "") for name, values in rows_by_option().items()}))
        return 0
    from mpm_nodes.bench import table

    return table.main(args)
