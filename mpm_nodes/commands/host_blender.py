"""Write the Blender extension: a zip that Blender 4.2 and later install from disk."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="folder for the zip (default: this one)")


def run(args: argparse.Namespace) -> int:
    """Write the zip and say how it is installed."""
    from mpm_nodes.hosts.blender import build

    print(build(args.out))
    print("install it in Blender: Edit > Preferences > Add-ons > Install from Disk, then choose this Python environment there:")
    print(f"  {_environment()}")
    return 0


def _environment() -> str:
    """Return the folder of the Python environment that runs this."""
    import sys

    return sys.prefix
