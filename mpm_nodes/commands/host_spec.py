"""Print the specification that hosts are made from: nodes, stages, types, presets and how to cook, as JSON."""

from __future__ import annotations

import argparse
import json


def add(command: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from mpm_nodes.hosts.spec import host_spec

    print(json.dumps(host_spec(), indent=1, ensure_ascii=False), file=args.stream)
    return 0
