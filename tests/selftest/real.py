"""The command line as users start it, on a shot that solves: for limits, threads and stops."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpm_nodes import children
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph

__all__ = ["command_line", "falling_shot", "limited", "program", "run", "seconds_until", "start"]

LONGEST = 500.0
"""Seconds of a command: the first one on a machine compiles."""


def falling_shot(folder: Path, end: int = 3) -> Path:
    """Write the graph of a soft block that falls on a floor, with a surface, and return its file."""
    graph = Graph(registry=registry.load(path="", entry_points=False), base=folder, start=1, end=end, cell_size=0.1)
    stuff = graph.add("material_neo_hookean", "stuff", youngs_modulus=1e4)
    body = graph.add("emit_box", "body", size=(0.4, 0.4, 0.4), centre=(0.0, 0.3, 0.0), velocity=(0.0, -2.0, 0.0), material=stuff)
    floor = graph.add("collide_plane", "floor")
    fall = graph.add("solve", "fall", sources=[body], colliders=[floor])
    surface = graph.add("surface_particles", "surface", particles=fall["particles"])
    graph.add("write_cache", "cache", name="cache", particles=fall["particles"], mesh=surface["mesh"])
    return graph.save(folder / "shot.json")


def program(*arguments: str) -> None:
    """Be the program: what `mpm-nodes` runs, supervisor and all."""
    import sys

    from mpm_nodes import cli, search_path

    search_path.PROGRAM = True
    sys.argv = ["mpm-nodes", *arguments]
    sys.exit(cli.main())


def limited(size: str, *arguments: str) -> None:
    """Be the program within a limit of the address space [bytes]."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (int(size), int(size)))
    program(*arguments)


def command_line(graph: Path, out: Path, *more: str) -> list[str]:
    """Return the arguments of a cook."""
    return ["cook", str(graph), "--out", str(out), *more]


def _environment() -> dict[str, str]:
    return {**os.environ, "MPM_NODES_COMPILE_HELPER": "0"}


def run(entry: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the program to its end; `entry` is "program" or "limited"."""
    options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": LONGEST, "env": _environment()}
    return children.run(f"{__name__}:{entry}", arguments, **options)


def start(arguments: list[str]) -> subprocess.Popen[str]:
    """Start the program."""
    pipe = subprocess.PIPE
    return children.start(f"{__name__}:program", arguments, stdout=pipe, stderr=pipe, text=True, env=_environment())


def seconds_until(done: Callable[[], bool], patience: float = 0.0, longest: float = 60.0) -> float:
    """Wait for something; return after how many seconds it would have come on a machine that does nothing else.

    What is left after its patience is work, which a busy machine stretches: as much as it stretches this wait, which never sleeps.

    Args:
        done: Says whether it has come.
        patience: Seconds that pass on any machine.
        longest: Seconds after which it is given up.

    Raises:
        TimeoutError: It does not come.
    """
    begin, worked = time.monotonic(), time.thread_time()
    while not done():
        if time.monotonic() - begin > longest:
            raise TimeoutError(f"goes on after {longest:g} s")
    elapsed = time.monotonic() - begin
    share = (time.thread_time() - worked) / max(elapsed, 1e-9)
    return elapsed if elapsed < patience else patience + (elapsed - patience) * min(share, 1.0)
