"""Write what other programs load: Houdini assets, Blender's extension, the specification of hosts, a schema of graph files."""

from __future__ import annotations

import argparse
import importlib

HOSTS = ("spec", "schema", "houdini", "blender")
"""Each is a module `mpm_nodes.commands.host_NAME` with `add(command)` and `run(args)`; its first line is its help."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the hosts."""
    hosts = command.add_subparsers(dest="host", metavar="HOST", required=True)
    for name in HOSTS:
        module = importlib.import_module(f"mpm_nodes.commands.host_{name}")
        summary = (module.__doc__ or "").split("\n")[0]
        sub = hosts.add_parser(name, help=summary, description=summary, epilog=command.epilog, allow_abbrev=False)
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error")
        module.add(sub)
        sub.set_defaults(run_host=module.run)


def run(args: argparse.Namespace) -> int:
    """Hand over to the host."""
    return args.run_host(args)
