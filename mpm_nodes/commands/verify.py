"""Run physics checks with exact answers: expected, measured, tolerance, passed."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpm_nodes.commands.listing import add_list, listed

FIELDS = ("name", "source", "expected", "measured", "tolerance", "passed", "seconds")
"""Columns of the table; a record in the JSON list also has "advice", a text that is empty where nothing is advised, and "known":
whether it is known to miss."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("names", nargs="*", metavar="NAME", help="checks to run (default: the fast ones)")
    speed = command.add_mutually_exclusive_group()
    speed.add_argument("--fast", action="store_true", help="only checks that take seconds")
    speed.add_argument("--all", action="store_true", help="every check, also those that take minutes")
    add_list(command, "the checks")
    command.add_argument("--strict", action="store_true", help="exit with 1 for known misses, too")
    command.add_argument("--law", metavar="LAW", help="check this law instead: its id, or the Python file of a law of your own")
    command.add_argument("--json", type=Path, metavar="FILE", help="write the records as a JSON list")
    command.add_argument(
        "--plots",
        type=Path,
        metavar="DIR",
        help="draw each check into DIR as PNG and SVG: curves over closed forms, and each difference over its tolerance",
    )


def run(args: argparse.Namespace) -> int:
    """Run the checks; 1 when one fails that is not known to."""
    from mpm_nodes import verification
    from mpm_nodes.data import MpmNodesError
    from mpm_nodes.graph.declare import registry

    if args.list:
        print(listed("verify", topics_of(verification.topics()), args.names))
        return 0
    finished = None
    if args.plots:
        from mpm_nodes.plots.check_pictures import check_folder, draw_check

        if args.law:
            raise MpmNodesError("verify: --plots draws checks, and not those of a law; leave one of --law and --plots away")
        check_folder(args.plots)
        finished = functools.partial(draw_check, args.plots)
    if args.law:
        registry.default()  # files on MPM_NODES_PATH may register laws
        found = verification.run_law(args.law, show_record)
    else:
        found = verification.run(args.names, fast=args.fast or None, all=args.all, progress=show_record, finished=finished)
    records = [_as_dict(record) for record in found]
    print(table(records))
    for record in records:
        if record["advice"]:
            print(f"{record['name']}: {record['advice']}")
    if args.json:
        from mpm_nodes.graph.files.folder import holds_json, replace_named

        def ours(old: bytes) -> bool:
            return holds_json(old, lambda found: isinstance(found, list) and all(set(FIELDS) <= set(each) for each in found))

        replace_named(args.json, (json.dumps(records, indent=1) + "\n").encode(), ours)
    known = [record.name for record in found if record.verdict == "known miss"]
    failed = [record.name for record in found if record.verdict == "MISSED"]
    text = f"{len(records) - len(failed) - len(known)} of {len(records)} passed"
    text += f"; known misses: {', '.join(known)}" if known else ""
    print(text + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed or (known and args.strict) else 0


def topics_of(problems: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, str]]:
    """Return by topic what each check is, with what is slow or known to miss."""
    return {topic: {each.name: f"{_marks(each)}{each.summary()}" for each in group} for topic, group in problems.items()}


def _marks(problem: Any) -> str:
    marks = [*(["slow"] if problem.slow else []), *([f"known misses: {len(problem.misses)}"] if problem.misses else [])]
    return f"({', '.join(marks)}) " if marks else ""


def show_record(record: Any) -> None:
    """Print a check as soon as it is there: some take minutes, and a run that is stopped has not been for nothing."""
    used = f"{record.used:.0%} of the tolerance"
    print(f"{record.verdict:2}  {record.name}  {used}  {record.seconds:.1f} s", file=sys.stderr, flush=True)


def _as_dict(record: Any) -> dict[str, Any]:
    facts = dataclasses.asdict(record)
    return {name: facts[name].item() if hasattr(facts[name], "item") else facts[name] for name in (*FIELDS, "advice", "known")}


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return the records as columns of text."""
    shown = [{**record, "passed": "known miss"} if record["known"] and not record["passed"] else record for record in records]
    rows = [FIELDS, *(tuple(_cell(record[name]) for name in FIELDS) for record in shown)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(FIELDS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
