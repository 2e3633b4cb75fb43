"""Try what SECURITY.md promises about hostile input, deaths, full disks and stops on this machine, and print the figures.

`python -m tests.selftest` is the short form, minutes; docs/selftest.md tells of the others.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mpm_nodes.commands.listing import add_list, listed
from mpm_nodes.commands.numbers import real, whole
from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.files.folder import holds_json, replace_named
from mpm_nodes.packaged_samples import samples_folder
from tests.selftest import table
from tests.selftest.parts import PARTS, Part
from tests.selftest.session import Session, show_line

CANCELLED = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Try what the arguments ask for, or say in a line why not; return the exit code."""
    command = argparse.ArgumentParser(prog="python -m tests.selftest", description=__doc__.split("\n")[0], allow_abbrev=False)
    command.add_argument(
        "--hours", type=real(0.0, 1000.0, above=True), metavar="H", help="the long form, for so many hours (default: minutes)"
    )
    command.add_argument("--seed", type=whole(0), default=1, metavar="S", help="from which every case follows (default: 1)")
    add_list(command, "the parts")
    command.add_argument("--only", action="append", default=[], metavar="PART", help="only this part; may be given again")
    command.add_argument("--out", type=Path, metavar="FILE", help="write the figures: Markdown, or JSON for a name in .json")
    command.add_argument(
        "--resume", type=Path, metavar="FILE", help="go on with the run that wrote this table (.json), and write it there again"
    )
    command.add_argument(
        "--keep", type=Path, default=Path("selftest_faults"), metavar="DIR", help="folder for files that show a fault"
    )
    try:
        return run(command.parse_args(arguments))
    except MpmNodesError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def run(args: argparse.Namespace) -> int:
    """Try; 1 when something goes against a promise, 3 when it was stopped: what was found until then is printed."""
    names = {part.name: part.promise for part in PARTS}
    if args.list:
        print(listed("selftest", {"parts for --only": names}, args.only))
        return 0
    if sys.platform != "linux":
        raise InputError("selftest: kills, watches and limits processes as Linux lets it; run it there")
    unknown = [name for name in args.only if name not in names]
    if unknown:
        raise InputError(f"selftest: there is no part {unknown[0]!r}; {nearest(unknown[0], names, '--list')}")
    parts = [part for part in PARTS if not args.only or part.name in args.only]
    out = args.out or args.resume
    session = Session(args.seed, args.hours, args.keep, samples_folder(), show_line, lambda: _write(out, session, parts))
    if args.resume is not None:
        session.take_over(strict_json.read(args.resume), parts)
    stopped = False
    try:
        session.run(parts)
    except KeyboardInterrupt:
        stopped = True
    show_line("")
    print(table.text(session))
    for name in session.cut:
        print(f"{name}: ended by its share of the hours")
    _write(out, session, parts)
    tried = sum(row.cases for row in session.rows.values())
    print(f"{tried:,} cases in {sum(session.seconds.values()):.0f} s, {session.against} against a promise")
    if stopped:
        print("stopped; these are the figures until then", file=sys.stderr)
        return CANCELLED
    return 1 if session.against else 0


def _write(out: Path | None, session: Session, parts: Sequence[Part]) -> None:
    """Write the figures, where they are wanted: as JSON or as Markdown."""
    if out is not None:
        told = json.dumps(table.facts(session, parts), indent=1) + "\n" if out.suffix == ".json" else table.markdown(session, parts)

        def ours(old: bytes) -> bool:
            return old.startswith(b"`python -m tests.selftest") or holds_json(old, lambda found: "against_a_promise" in found)

        replace_named(out, told.encode(), ours)


if __name__ == "__main__":
    sys.exit(main())
