"""Write the Houdini assets of every node and stage, or check expanded assets."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("--out", type=Path, default=Path("hda_specs"), metavar="DIR", help="folder to write (default: hda_specs)")


def run(args: argparse.Namespace) -> int:
    """Write the assets."""
    raise NotImplementedError("mpm-nodes host houdini")
