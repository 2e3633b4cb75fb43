"""Print a graph file with every node and stage brought to its newest version, every knob written out."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("graph", type=Path, metavar="GRAPH", help="graph file (JSON)")
    command.add_argument("--out", type=Path, metavar="FILE", help="file to write (default: print it)")


def run(args: argparse.Namespace) -> int:
    """Upgrade; problems other than those of the file's shape are left to `validate`."""
    from mpm_nodes.graph.document.document import load_graph

    graph = load_graph(args.graph)
    for entry in graph.nodes.values():
        declaration = graph.registry.find(entry.type)
        for knob in declaration.knobs if declaration else ():
            value = entry.knobs.get(knob.name)
            if knob.kind == "substeps" and isinstance(value, dict) and isinstance(value.get("nodes"), dict):
                entry.knobs[knob.name] = upgraded_substeps(value, graph.registry)
    if args.out is not None:
        print(graph.save(args.out), file=args.stream)
        return 0
    print(json.dumps(graph.to_json(), indent=1, ensure_ascii=False), file=args.stream)
    return 0


def upgraded_substeps(document: dict[str, Any], registry: Any) -> dict[str, Any]:
    """Return a substeps document with its stages brought to their newest versions.

    Raises:
        GraphError: Its nodes are malformed, or one cannot be upgraded.
    """
    from mpm_nodes.graph.document.entries import read_entries, upgrade_entries
    from mpm_nodes.graph.reports.problems import GraphError

    problems: list[Any] = []
    entries = read_entries(document["nodes"], problems)
    upgrade_entries(entries, registry, problems)
    if problems:
        raise GraphError(problems)
    nodes = {name: entry.to_json(registry.find(entry.type)) for name, entry in entries.items()}
    return {**document, "nodes": nodes}
