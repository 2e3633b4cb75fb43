"""Write the terminal host: one Python file that builds graphs and cooks them, the smallest host there is."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="folder for the file (default: this one)")


def run(args: argparse.Namespace) -> int:
    """Write the file and say how it is started."""
    from mpm_nodes.graph.files.folder import replace_named
    from mpm_nodes.hosts import terminal

    data = Path(terminal.__file__).with_name("mpm_terminal.py").read_bytes()
    path = replace_named(args.out / "mpm_terminal.py", data, lambda old: b"MPM_NODES_PROGRAM" in old, make=True)
    print(f"{path}\nstart it with any Python: python3 {path}; `help` lists its commands")
    return 0
