"""The cache of compiled kernels: compile ahead for presets and graphs, show where it is, clear it."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import mpm_nodes
from mpm_nodes import children
from mpm_nodes.data import MpmNodesError
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.reports.events import ConsoleLines, Event

if TYPE_CHECKING:
    from mpm_nodes.graph.document.document import Graph

FOLDER = re.compile(r"kernels-[0-9a-f]{20}")
KERNEL = re.compile(
    r".+-[0-9a-f]{24}\.(kernel|lock)|\.(kernel|loop)\w+|\w+_[0-9a-f]{16}\.py|\w+_[0-9a-f]{16}\.\w+-\d+\.pyc|[0-9a-f]{16,64}"
)
"""Names that we give to a cache folder, and to what lies in it."""
BUILT_IN = tuple(sorted(file.stem for file in (Path(mpm_nodes.__file__).parent / "solver" / "presets").glob("*.json")))
DEFAULT = ("explicit_apic", "demo")
"""What is compiled where nothing is named: a preset, and a packaged sample."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("action", choices=("warm", "where", "clear"), help="compile, show the folder, or empty it")
    command.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"with warm: presets of substeps ({', '.join(BUILT_IN)}) and graph files "
        f"(default: {DEFAULT[0]} with every law, and the demo)",
    )
    command.add_argument("--all", action="store_true", help="with warm: every preset")
    command.add_argument(
        "--cpu", metavar="NAME", help="with warm: compile for another processor that this machine can run, by LLVM's name"
    )


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from mpm_nodes.graph.plan.preflight import in_words
    from mpm_nodes.kernels.compile import jit

    if args.action != "warm" and (args.cpu or args.names or args.all):
        given = "--cpu" if args.cpu else "--all" if args.all else "names"
        raise MpmNodesError(f"kernels {args.action} takes no {given}; the kernels of all presets and processors lie in one folder")
    if args.action == "warm":
        started = time.perf_counter()
        names = list(BUILT_IN) if args.all else args.names
        if args.cpu:
            warm_for(args.cpu, names)
        else:
            warm(names)
        print(f"kernels are compiled ({time.perf_counter() - started:.1f} s), in {jit.CACHE_FOLDER}")
        if args.cpu:
            print(f"machines that are to use them: export NUMBA_CPU_NAME={args.cpu} NUMBA_CPU_FEATURES=")
        return 0
    folders = sorted(
        path
        for path in jit.cache_root().glob("kernels-*")
        if FOLDER.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    )
    for folder in folders:
        size = in_words(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))
        current = " (in use)" if folder == jit.CACHE_FOLDER else ""
        if args.action == "clear":
            clear(folder)
        print(f"{folder}{current}: {size}{' cleared' if args.action == 'clear' else ''}")
    if not folders:
        print(f"{jit.CACHE_FOLDER}: empty")
    return 0


def clear(folder: Path) -> None:
    """Delete the compiled kernels of a cache folder, known by their names, and the folders that are empty then."""
    for base, folders, names in os.walk(folder, topdown=False):
        for name in names:
            if KERNEL.fullmatch(name):
                with contextlib.suppress(OSError):  # another process clears it, too
                    os.unlink(os.path.join(base, name))
        for name in folders:
            with contextlib.suppress(OSError):  # something is left in it, or it is a link
                os.rmdir(os.path.join(base, name))
    with contextlib.suppress(OSError):
        folder.rmdir()


def warm_for(cpu: str, names: Sequence[str]) -> None:
    """Compile kernels for a named processor, in a process whose numba makes code for that; names are those of `warm`.

    Raises:
        MpmNodesError: LLVM knows no such processor, this machine cannot run what is made for it, or the process failed.
    """
    asked = children.run("mpm_nodes.commands.kernels:name_processor", [cpu], capture_output=True, text=True)
    if asked.returncode or "not a recognized processor" in asked.stderr:
        raise MpmNodesError(f'kernels warm --cpu: LLVM knows no processor "{cpu}" here; x86-64-v3 or znver3 are two that it knows')
    environment = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    done = children.run("mpm_nodes.commands.kernels:warm_here", names, stderr=subprocess.PIPE, text=True, env=environment)
    if done.returncode == -signal.SIGILL:
        raise MpmNodesError(f'kernels warm --cpu: this machine cannot run what is made for "{cpu}"; do it on one that can')
    if done.returncode:
        raise MpmNodesError(f"kernels warm --cpu {cpu}: the process ended with {children.last_words(done.stderr, done.returncode)}")


def name_processor(cpu: str) -> None:
    """Let LLVM write on standard error what it has against the name of a processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.Target.from_default_triple().create_target_machine(cpu=cpu)


def warm_here(*names: str) -> None:
    """Do as `warm`, in the process that `warm_for` starts."""
    warm(names)


def warm(names: Sequence[str]) -> None:
    """Compile the kernels of presets and of graph files, and say how far it is; of nothing, those of `DEFAULT`.

    Presets are compiled by as many processes as there are cores, a graph by a cook of its first two frames into a folder that is
    thrown away, in two processes.

    Raises:
        MpmNodesError: A name is neither a preset nor a file, or a process failed.
    """
    from mpm_nodes.graph.document.document import load_graph
    from mpm_nodes.packaged_samples import sample_graph
    from mpm_nodes.solver import ahead

    known = ahead.preset_names()
    presets = [name for name in dict.fromkeys(names) if name in known]
    graphs = {name: load_graph(_graph_file(name, known)) for name in names if name not in known}
    if not names:
        presets, graphs = [DEFAULT[0]], {DEFAULT[1]: load_graph(sample_graph(DEFAULT[1]))}
    lines = ConsoleLines(sys.stdout)
    try:
        _warm_presets(presets, lines)
        for name, graph in graphs.items():
            _say(lines, "note", f"compiling what the first two frames of {name} call")
            _warm_graph(graph, lines)
    finally:
        lines.close()


def _graph_file(name: str, known: Sequence[str]) -> Path:
    path = Path(name)
    if not path.exists() and path.suffix != ".json":
        raise MpmNodesError(f"kernels warm {name}: neither a preset nor a graph file; {nearest(name, known)}")
    return path


def _warm_presets(presets: Sequence[str], lines: ConsoleLines) -> None:
    from mpm_nodes.solver import ahead

    left = [preset for preset in presets if not ahead.is_ahead(preset)]
    for preset in presets:
        if preset not in left:
            _say(lines, "note", f"{preset}: compiled already")
    if not left:
        return
    cores = ahead.cores()
    words = f"compiling {', '.join(left)} in {cores} process{'' if cores == 1 else 'es'}"
    _say(lines, "note", words + ahead.in_words(left))
    ahead.compile_presets(left, cores, lambda now: _say(lines, "compiling", now.message))


def _warm_graph(graph: Graph, lines: ConsoleLines) -> None:
    from mpm_nodes.graph.cook.executor import execute

    def told(event: Event) -> None:
        if event["event"] in ("compiling", "warning"):
            lines(event)

    with tempfile.TemporaryDirectory() as folder:
        execute(graph, frames=(graph.settings.start, graph.settings.start + 1), out=folder, on_event=told)


def _say(lines: ConsoleLines, event: str, message: str) -> None:
    lines({"event": event, "message": message})
