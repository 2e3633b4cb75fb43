"""The cache of compiled kernels: compile ahead for a graph, show where it is, clear it."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("action", choices=("warm", "where", "clear"), help="compile, show the folder, or empty it")
    command.add_argument(
        "graph", nargs="?", type=Path, metavar="GRAPH", help="graph whose kernels to compile (default: the demo and every law)"
    )


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from mpm_nodes.graph.preflight import in_words
    from mpm_nodes.kernels.compile import jit

    if args.action == "warm":
        started = time.perf_counter()
        warm(args.graph)
        print(f"kernels are compiled ({time.perf_counter() - started:.1f} s), in {jit.CACHE_FOLDER}")
        return 0
    folders = sorted(path for path in jit.cache_root().glob("kernels-*") if path.is_dir())
    for folder in folders:
        size = in_words(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))
        current = " (in use)" if folder == jit.CACHE_FOLDER else ""
        if args.action == "clear":
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{folder}{current}: {size}{' cleared' if args.action == 'clear' else ''}")
    if not folders:
        print(f"{jit.CACHE_FOLDER}: empty")
    return 0


def warm(path: Path | None) -> None:
    """Compile the kernels of a graph by cooking its first two frames into a folder that is thrown away.

    Without a graph these are the demo and a tiny solve of every built-in law; each solve compiles in two processes.
    """
    from mpm_nodes.commands.packaged_samples import sample_graph
    from mpm_nodes.graph.document import load_graph
    from mpm_nodes.graph.executor import execute
    from mpm_nodes.materials.contract import law_ids
    from mpm_nodes.solver.compile_helper import warm_law

    for law_id in law_ids() if path is None else ():
        warm_law(law_id)
    graph = load_graph(path or sample_graph("demo"))
    with tempfile.TemporaryDirectory() as folder:
        execute(graph, frames=(graph.settings.start, graph.settings.start + 1), out=folder)
