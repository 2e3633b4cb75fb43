"""Check a graph file and list everything that is wrong with it; nothing is cooked."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mpm_nodes.commands.cook import add_graph_options, load


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("graph", type=Path, metavar="GRAPH", help="graph file (JSON)")
    add_graph_options(command)
    command.add_argument("--json", action="store_true", help="print the problems as a JSON list")
    command.add_argument(
        "--needs",
        action="store_true",
        help="with --json: print an object: problems, warnings, particles, memory and disk [bytes], and these as people read them",
    )


def run(args: argparse.Namespace) -> int:
    """Validate; 2 when there is a problem."""
    from mpm_nodes.graph.plan import preflight
    from mpm_nodes.graph.plan.plan import plan_graph
    from mpm_nodes.graph.reports.problems import GraphError, Problem

    try:
        graph = load(args.graph, args.overrides)
        plan = plan_graph(graph)
        estimates = preflight.estimate(plan, graph.settings.start)
        preflight.check_memory(estimates, plan.settings)
    except GraphError as error:
        if not args.json:
            raise
        more = [Problem("graph", f"has {error.more:,} more problems")] if error.more else []
        found = [vars(problem) for problem in (*error.problems, *more)]
        print(json.dumps({"problems": found, "needs": {}} if args.needs else found, indent=1, default=str), file=args.stream)
        return error.exit_code
    settings = graph.settings
    needed = preflight.needs_of(estimates, settings.end - settings.start + 1)
    if args.json:
        solves = [node.id for node in plan.nodes if node.is_sequential]
        particles = sum(int(estimates[name].get("particles", 0)) for name in solves)
        needs = {"particles": particles, "memory": needed.memory, "disk": needed.disk}
        if needed.unknown:
            needs["unknown"] = list(needed.unknown)
        warnings = [{"place": node, "message": text} for node, text in preflight.warnings_of(estimates)]
        said = "; ".join(filter(None, [f"about {particles} particles" if particles else "", needed.in_words()]))
        answer = {"problems": [], "needs": needs, "said": said, "warnings": warnings}
        print(json.dumps(answer) if args.needs else "[]", file=args.stream)
        return 0
    print(f"{args.graph}: valid; {len(graph.nodes)} nodes, frames {settings.start} to {settings.end}")
    if text := needed.in_words():
        print(text)
    for node, text in preflight.warnings_of(estimates):
        print(f"warning: {node}: {text}")
    for node, text in preflight.warnings_of(estimates, "notes"):
        print(f"note: {node}: {text}")
    return 0
