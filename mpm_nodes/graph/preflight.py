"""What a cook will need, compared with what the machine has, before anything is allocated or written.

A node takes part by the preflight that it declares, `@node(..., preflight=function)`; see `declarations.Preflight`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import GraphSettings, MpmNodesError, OutputError
from mpm_nodes.graph.declarations import PreflightContext
from mpm_nodes.graph.kept import NOTHING_KEPT, Kept
from mpm_nodes.graph.plan import Plan
from mpm_nodes.graph.problems import GraphError, Problem

__all__ = ["check_disk", "check_memory", "estimate", "free_memory", "in_words", "warnings_of"]

_CGROUP = (
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
"""Folder, limit and use of memory of the container, in versions 2 and 1 of the kernel's interface."""


def estimate(
    plan: Plan, frame: int, kept: Kept = NOTHING_KEPT, last: int | None = None, ranks: int = 1
) -> dict[str, dict[str, Any]]:
    """Return every node's own estimate, {} for those that make none. Nothing is cooked.

    Args:
        plan: The plan.
        frame: Frame at which keyed knobs are taken.
        kept: Where nodes keep what their cook will need as well.
        last: Last frame that will be cooked; None for the shot's.
        ranks: How many processes cook the solves together.

    Raises:
        MpmNodesError: A node's preflight refuses; the message names the node.
    """
    found: dict[str, dict[str, Any]] = {}
    settings = plan.settings if last is None else dataclasses.replace(plan.settings, end=last)
    for node in plan.nodes:
        inputs = {port: tuple(found[source] for source, _ in wires) for port, wires in node.inputs.items()}
        preflight = node.declaration.preflight
        try:
            told = {} if preflight is None else preflight(PreflightContext(node.knobs(frame), settings, inputs, kept, ranks))
        except OverflowError as error:
            problem = Problem(
                node.id, "is of a size that numbers do not hold", cure="give it a smaller size, or raise settings.cell_size"
            )
            raise GraphError([problem]) from error
        except MpmNodesError as error:
            error.args = (f"{node.id}: {error}", *error.args[1:])
            raise
        found[node.id] = dict(told)
    return found


def warnings_of(estimates: Mapping[str, Mapping[str, Any]], fact: str = "warnings") -> Iterator[tuple[str, str]]:
    """Yield (node, text) of everything that nodes warn of before the cook, or of their "notes"."""
    for name, facts in estimates.items():
        for text in facts.get(fact, ()):
            yield name, text


def check_memory(estimates: Mapping[str, Mapping[str, Any]], settings: GraphSettings, free: int | None = None) -> None:
    """Raise `GraphError` when the nodes together need more memory than is free."""
    need = {name: int(facts.get("memory", 0)) for name, facts in estimates.items()}
    free = free_memory() if free is None else free
    if not need or sum(need.values()) <= free:
        return
    worst = max(need, key=lambda name: need[name])
    whole = in_words(sum(need.values()))
    message = f"needs about {in_words(need[worst])} of memory, the whole graph {whole}, and {in_words(free)} are free"
    cure = f"raise settings.cell_size (now {settings.cell_size:g} m; twice as much needs about an eighth)"
    raise GraphError([Problem(worst, message, cure=cure)])


def check_disk(estimates: Mapping[str, Mapping[str, Any]], frames: int, out: Path, free: int | None = None) -> int:
    """Return the bytes that `frames` frames need; raise `OutputError` when `out` has less space."""
    need = sum(int(facts.get("disk", 0)) for facts in estimates.values()) * frames
    free = free_space(out) if free is None else free
    if need > free:
        raise OutputError(
            f"{out}: the cook needs about {in_words(need)} for {frames} frames, and {in_words(free)} are free; "
            "choose another disk with --out, cook fewer frames with --frames, or write fewer attributes"
        )
    return need


def free_space(folder: Path) -> int:
    """Return the free bytes on the disk of a folder that need not exist yet."""
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def free_memory() -> int:
    """Return the bytes of memory that this process may still take: the machine's, or its container's limit."""
    candidates = [_machine_memory()]
    for folder, limit, used in _CGROUP:
        with contextlib.suppress(OSError, ValueError):
            held = int(Path(folder, used).read_text()) - _reclaimable(Path(folder, "memory.stat"))
            candidates.append(int(Path(folder, limit).read_text()) - held)
    return max(0, min(candidates))


def _reclaimable(statistics: Path) -> int:
    """Return the bytes of the container's page cache that the kernel gives back on demand."""
    lines = statistics.read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)


def _machine_memory() -> int:
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 1 << 62  # unknown: then nothing is refused


def in_words(size: float) -> str:
    """Return bytes as people read them: "3.2 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
