"""Write the Houdini assets of every node and stage, or check expanded assets."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("--out", type=Path, default=Path("hda_specs"), metavar="DIR", help="folder to write (default: hda_specs)")
    command.add_argument("--check", type=Path, metavar="DIR", help="check every expanded asset in a folder; nothing is written")


def run(args: argparse.Namespace) -> int:
    """Write or check the assets; 1 when a check fails."""
    if args.check is not None:
        return check(args.check)
    from mpm_nodes.hosts.houdini.assets import write
    from mpm_nodes.hosts.spec import host_spec

    folders = write(host_spec(), args.out)
    print(f"{len(folders)} assets and the package file are in {args.out}")
    print(f"next: copy what is in {args.out} into the folder packages of Houdini's user preferences; docs/houdini.md has the steps")
    return 0


def check(folder: Path) -> int:
    """Print what is wrong with the expanded assets below a folder."""
    from mpm_nodes.hosts.houdini.check import check_folder

    assets, findings = check_folder(folder)
    for finding in findings:
        print(finding)
    errors = sum(finding.is_error for finding in findings)
    print(f"{len(assets)} assets, {errors} errors, {len(findings) - errors} warnings")
    return 1 if errors else 0
