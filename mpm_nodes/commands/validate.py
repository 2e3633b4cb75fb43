"""Check a graph file and list everything that is wrong with it; nothing is cooked."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpm_nodes.commands.cook import add_graph_options, load
from mpm_nodes.data import MpmNodesError

if TYPE_CHECKING:
    from mpm_nodes.graph.reports.problems import GraphError


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


def needs_of(loaded: Callable[[], Any]) -> dict[str, Any]:
    """Return what `--json --needs` prints of the graph that `loaded` returns, or that it raises a `GraphError` for."""
    from mpm_nodes.graph.plan import preflight
    from mpm_nodes.graph.plan.plan import plan_graph
    from mpm_nodes.graph.reports.problems import GraphError

    try:
        graph = loaded()
        plan = plan_graph(graph)
        estimates = preflight.estimate(plan, graph.settings.start)
        preflight.check_memory(estimates, plan.settings)
    except GraphError as error:
        return {"problems": problems_in(error), "needs": {}}
    needed = preflight.needs_of(estimates, graph.settings.end - graph.settings.start + 1)
    solves = [node.id for node in plan.nodes if node.is_sequential]
    particles = sum(int(estimates[name].get("particles", 0)) for name in solves)
    needs = {"particles": particles, "memory": needed.memory, "disk": needed.disk}
    if needed.unknown:
        needs["unknown"] = list(needed.unknown)
    warnings = [{"place": node, "message": text} for node, text in preflight.warnings_of(estimates)]
    said = "; ".join(filter(None, [f"about {particles} particles" if particles else "", needed.in_words()]))
    nodes = {name: told["memory"] for name, told in estimates.items() if told.get("memory")}
    return {"problems": [], "needs": needs, "said": said, "warnings": warnings, "nodes": nodes}


def check_here(folder: str) -> None:
    """Print the needs of a graph that would lie in `folder`, a line of JSON on standard input: the editor asks so in a child."""
    from mpm_nodes.graph.document.document import load_graph

    document = json.loads(sys.stdin.readline())
    try:
        found = needs_of(lambda: load_graph(document, base=Path(folder)))
    except MpmNodesError as error:  # a file that a node needs is missing, say
        node, _, rest = str(error).partition(": ")
        place, message = (node, rest) if node in document.get("nodes", {}) else ("graph", str(error))
        found = {"problems": [{"place": place, "message": message}], "needs": {}}
    print(json.dumps(found, default=str))


def problems_in(error: GraphError) -> list[dict[str, Any]]:
    """Return the problems of an error as they are printed, and how many more there are."""
    from mpm_nodes.graph.reports.problems import Problem

    more = [Problem("graph", f"has {error.more:,} more problems")] if error.more else []
    return [vars(problem) for problem in (*error.problems, *more)]


def run(args: argparse.Namespace) -> int:
    """Validate; 2 when there is a problem."""
    from mpm_nodes.graph.plan import preflight
    from mpm_nodes.graph.plan.plan import plan_graph
    from mpm_nodes.graph.reports.problems import GraphError

    if args.json:
        answer = needs_of(lambda: load(args.graph, args.overrides))
        shown = answer if args.needs else answer["problems"]
        print(json.dumps(shown, indent=1 if answer["problems"] else None, default=str), file=args.stream)
        return GraphError.exit_code if answer["problems"] else 0
    graph = load(args.graph, args.overrides)
    plan = plan_graph(graph)
    estimates = preflight.estimate(plan, graph.settings.start)
    preflight.check_memory(estimates, graph.settings)
    settings = graph.settings
    print(f"{args.graph}: valid; {len(graph.nodes)} nodes, frames {settings.start} to {settings.end}")
    if text := preflight.needs_of(estimates, settings.end - settings.start + 1).in_words():
        print(text)
    for node, text in preflight.warnings_of(estimates):
        print(f"warning: {node}: {text}")
    for node, text in preflight.warnings_of(estimates, "notes"):
        print(f"note: {node}: {text}")
    return 0
