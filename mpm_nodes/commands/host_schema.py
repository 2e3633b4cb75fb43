"""Print a JSON Schema of graph files: text editors complete nodes and knobs by it, and check what is typed."""

from __future__ import annotations

import argparse
import json


def add(command: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from mpm_nodes.hosts.schema import graph_schema

    print(json.dumps(graph_schema(), indent=1, ensure_ascii=False), file=args.stream)
    return 0
