"""Build the Houdini assets of every node and stage, expanded and packed, or write their specifications."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "--out", type=Path, default=Path("houdini"), metavar="DIR",
        help="folder to build into, which gets DIR/expanded and DIR/packed (default: houdini)",
    )  # fmt: skip
    source = command.add_mutually_exclusive_group()
    source.add_argument("--from", dest="source", type=Path, metavar="DIR", help="build from specification files")
    source.add_argument("--specs", type=Path, metavar="DIR", help="write the specification files of the registry; nothing is built")


def run(args: argparse.Namespace) -> int:
    """Build or write."""
    from mpm_nodes.hosts.houdini import package, specifications
    from mpm_nodes.hosts.spec import host_spec

    spec = host_spec()
    if args.specs is not None:
        print(f"{len(specifications.write(spec, args.specs))} specification files are in {args.specs}")
        return 0
    if args.source is not None:
        spec = specifications.read(args.source, spec["presets"])
    for form in package.FORMS:
        libraries = package.write(spec, args.out / form, form)
        print(f"{len(libraries)} assets, {form}, and their package file are in {args.out / form}")
    print(f"next: copy what is in {args.out / package.FORMS[0]} into the folder packages of Houdini's user preferences; "
          "docs/houdini.md has the steps")  # fmt: skip
    return 0
