"""The cache of compiled kernels: compile ahead for a graph, show where it is, clear it."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import tempfile
import time
from pathlib import Path

from mpm_nodes import children
from mpm_nodes.data import MpmNodesError

FOLDER = re.compile(r"kernels-[0-9a-f]{20}")
KERNEL = re.compile(
    r".+-[0-9a-f]{24}\.(kernel|lock)|\.(kernel|loop)\w+|\w+_[0-9a-f]{16}\.py|\w+_[0-9a-f]{16}\.\w+-\d+\.pyc|[0-9a-f]{16,64}"
)
"""Names that we give to a cache folder, and to what lies in it."""


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("action", choices=("warm", "where", "clear"), help="compile, show the folder, or empty it")
    command.add_argument(
        "graph", nargs="?", type=Path, metavar="GRAPH", help="graph whose kernels to compile (default: the demo and every law)"
    )
    command.add_argument(
        "--cpu", metavar="NAME", help="with warm: compile for another processor that this machine can run, by LLVM's name"
    )


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from mpm_nodes.graph.preflight import in_words
    from mpm_nodes.kernels.compile import jit

    if args.cpu and args.action != "warm":
        raise MpmNodesError(f"kernels {args.action} takes no --cpu; all processors' kernels lie in one folder")
    if args.action == "warm":
        started = time.perf_counter()
        if args.cpu:
            warm_for(args.cpu, args.graph)
        else:
            warm(args.graph)
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


def warm_for(cpu: str, path: Path | None) -> None:
    """Compile the kernels of a graph for a named processor, in a process whose numba makes code for that.

    Raises:
        MpmNodesError: LLVM knows no such processor, this machine cannot run what is made for it, or the process failed.
    """
    asked = children.run("mpm_nodes.commands.kernels:name_processor", [cpu], capture_output=True, text=True)
    if asked.returncode or "not a recognized processor" in asked.stderr:
        raise MpmNodesError(f'kernels warm --cpu: LLVM knows no processor "{cpu}" here; x86-64-v3 or znver3 are two that it knows')
    environment = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    graph = [] if path is None else [str(path.absolute())]
    done = children.run("mpm_nodes.commands.kernels:warm_here", graph, capture_output=True, text=True, env=environment)
    if done.returncode == -signal.SIGILL:
        raise MpmNodesError(f'kernels warm --cpu: this machine cannot run what is made for "{cpu}"; do it on one that can')
    if done.returncode:
        raise MpmNodesError(f"kernels warm --cpu {cpu}: the process ended with {children.last_words(done.stderr, done.returncode)}")


def name_processor(cpu: str) -> None:
    """Let LLVM write on standard error what it has against the name of a processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.Target.from_default_triple().create_target_machine(cpu=cpu)


def warm_here(path: str = "") -> None:
    """Do as `warm`, in the process that `warm_for` starts."""
    warm(Path(path) if path else None)


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
