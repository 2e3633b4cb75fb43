"""Write the terminal host: one Python file that builds graphs and cooks them, the smallest host there is."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="folder for the file (default: this one)")


def run(args: argparse.Namespace) -> int:
    """Write the file and say how it is started."""
    from mpm_nodes.data import OutputError
    from mpm_nodes.hosts import terminal

    source, path = Path(terminal.__file__).with_name("mpm_terminal.py"), args.out / "mpm_terminal.py"
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.read_bytes())
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}); choose another folder with --out") from error
    print(f"{path}\nstart it with any Python: python3 {path}; `help` lists its commands")
    return 0
