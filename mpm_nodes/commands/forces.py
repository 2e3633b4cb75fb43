"""Print force and torque of the matter on the colliders of a cache as CSV, a line for each collider and frame."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("cache", type=Path, metavar="CACHE", help="root stage of a cache (.usda)")
    command.add_argument("--out", type=Path, metavar="FILE", help="file to write (default: print it)")


def run(args: argparse.Namespace) -> int:
    """Read, and write; numbers are as exact as the cache has them."""
    from usd_io import require_usd

    require_usd()
    from usd_io.forces import read_forces

    rows = [
        (each.frame, each.collider, *(f"{number:.9g}" for number in (*each.force, *each.torque)))
        for each in read_forces(args.cache)
    ]
    head = ("frame", "collider", *(f"{what}_{axis}" for what in ("force", "torque") for axis in "xyz"))
    if args.out is None:
        csv.writer(args.stream, lineterminator="\n").writerows([head, *rows])
        return 0
    with args.out.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    print(args.out, file=args.stream)
    return 0
