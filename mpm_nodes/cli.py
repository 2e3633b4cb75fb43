"""The command line, `mpm-nodes COMMAND`: demo sample cook validate upgrade nodes verify bench render clean kernels host.

Exit codes: 0 ok, 1 a defect (of this program or of a node) or a failed check, 2 invalid graph or arguments,
3 cancelled, 4 diverged, 5 input or output.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

import mpm_nodes
from mpm_nodes.data import Cancelled, MpmNodesError

COMMANDS = ("demo", "sample", "cook", "validate", "upgrade", "nodes", "verify", "bench", "render", "clean", "kernels", "host")
EPILOG = "exit codes: 0 ok, 1 defect, 2 invalid graph or arguments, 3 cancelled, 4 diverged, 5 input or output"
CANCELLED = 3


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of all commands."""
    top = argparse.ArgumentParser(
        prog="mpm-nodes",
        description="Cook node graphs of the Material Point Method.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"mpm-nodes {mpm_nodes.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"mpm_nodes.commands.{name}")
        summary = (module.__doc__ or "").split("\n")[0]
        command = commands.add_parser(name, help=summary, description=summary, epilog=EPILOG, allow_abbrev=False)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        module.add(command)
        command.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. Errors become one line each on stderr."""
    try:
        args = parser().parse_args(argv)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    try:
        return args.run(args)
    except MpmNodesError as error:
        if args.debug:
            raise
        for line in str(error).splitlines():
            print(f"mpm-nodes: {'' if isinstance(error, Cancelled) else 'error: '}{line}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("mpm-nodes: stopped", file=sys.stderr)
        return CANCELLED
    except BrokenPipeError:  # the reader of our output went away (`mpm-nodes nodes | head`)
        sys.stderr.close()
        return 0
    except Exception as error:
        if args.debug:
            raise
        print(
            f"mpm-nodes: defect: {type(error).__name__}: {error}; run again with --debug and report it", file=sys.stderr
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
