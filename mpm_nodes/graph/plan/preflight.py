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

from mpm_nodes.data import Emitter, GraphSettings, LevelSet, Mesh, MpmNodesError, OutputError, Particles
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.graph.plan.plan import Plan, PlannedNode
from mpm_nodes.graph.reports.problems import GraphError, Problem
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore

__all__ = ["Needs", "check_disk", "check_memory", "estimate", "free_memory", "in_words", "needs_of", "warnings_of"]

_CGROUP = (
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
"""Folder, limit and use of memory of the container, in versions 2 and 1 of the kernel's interface."""
_SIZES = {Particles: ("particles",), Emitter: ("particles", "flows"), Mesh: ("mesh_points",), LevelSet: ("voxels",)}
"""What a node must tell of a value of each type that has a size."""
MOST_HELD = 64 << 20
"""Bytes that a check of a graph holds of what several of its nodes need."""
UNKNOWN = "unknown"
"""Fact of a node whose size, or that of what it works on, cannot be known before the cook."""


@dataclasses.dataclass(frozen=True)
class Needs:
    """What nodes need together.

    Attributes:
        memory: [bytes], with the libraries that they load, and one more frame of the values that they publish.
        disk: [bytes], for all frames.
        unknown: Names of the nodes that are not in these, or only in part, since nothing is known of their size before the cook.
    """

    memory: int
    disk: int
    unknown: tuple[str, ...]

    def in_words(self) -> str:
        """Return them as people read them; empty where nothing is needed."""
        parts = [f"{in_words(size)} of {what}" for size, what in ((self.memory, "memory"), (self.disk, "disk")) if size]
        text = f"needs {'at least' if self.unknown else 'about'} {' and '.join(parts)}" if parts else ""
        if not self.unknown:
            return text
        listed = f"{', '.join(self.unknown[:8])}{f' and {len(self.unknown) - 8} more' if len(self.unknown) > 8 else ''}"
        return f"{text}{'; ' if text else ''}unknown before the cook: {listed}"


def needs_of(estimates: Mapping[str, Mapping[str, Any]], frames: int) -> Needs:
    """Return what nodes need together by their estimates, as `estimate` returns them, to cook so many frames.

    Facts, all in bytes: `memory`; `values`, what a node publishes in a frame; `shared`, by name what several nodes take together;
    `disk` of a frame; `disk_once`.
    """
    shared = {name: size for facts in estimates.values() for name, size in facts.get("shared", {}).items()}
    memory = sum(int(facts.get("memory", 0)) + int(facts.get("values", 0)) for facts in estimates.values())
    disk = sum(int(facts.get("disk", 0)) * frames + int(facts.get("disk_once", 0)) for facts in estimates.values())
    unknown = tuple(name for name, facts in estimates.items() if facts.get(UNKNOWN))
    return Needs(memory + sum(shared.values()), disk, unknown)


def estimate(
    plan: Plan, frame: int, kept: Kept | None = None, last: int | None = None, ranks: int = 1
) -> dict[str, dict[str, Any]]:
    """Return every node's own estimate, {} for those that make none. Nothing is cooked.

    Args:
        plan: The plan.
        frame: Frame at which keyed knobs are taken.
        kept: Where nodes keep what their cook will need as well; None keeps up to `MOST_HELD` during the call.
        last: Last frame that will be cooked; None for the shot's.
        ranks: How many processes cook the solves together.

    Raises:
        MpmNodesError: A node's preflight refuses; the message names the node.
        GraphError: Two nodes write files of one name.
    """
    found: dict[str, dict[str, Any]] = {}
    kept = Kept(MemoryStore(MOST_HELD)) if kept is None else kept
    settings = plan.settings if last is None else dataclasses.replace(plan.settings, end=last)
    for node in plan.nodes:
        inputs = {port: tuple(found[source] for source, _ in wires) for port, wires in node.inputs.items()}
        names = {port: tuple(source for source, _ in wires) for port, wires in node.inputs.items()}
        preflight = node.declaration.preflight
        try:
            given = PreflightContext(node.knobs(frame), settings, inputs, kept, ranks, names, node.keyed)
            told = {} if preflight is None else preflight(given)
        except OverflowError as error:
            problem = Problem(
                node.id, "is of a size that numbers do not hold", cure="give it a smaller size, or raise settings.cell_size"
            )
            raise GraphError([problem]) from error
        except MpmNodesError as error:
            error.args = (f"{node.id}: {error}", *error.args[1:])
            raise
        found[node.id] = dict(told)
        if _is_unknown(node, found):
            found[node.id][UNKNOWN] = True
    _refuse_shared_names(found)
    return found


def _refuse_shared_names(estimates: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse two nodes that write files of one name: some systems do not tell lower case from upper case."""
    first: dict[str, str] = {}
    for node, facts in estimates.items():
        for name in facts.get("writes", ()):
            other = first.setdefault(name.casefold(), node)
            if other != node:
                cure = "give it a name of its own; capitals alone do not tell files apart everywhere"
                raise GraphError([Problem(node, f"writes {name}, and so does {other}", cure=cure)])


def _is_unknown(node: PlannedNode, found: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether a node's size is not known: it says so, tells nothing of what it makes, or works on what is not known."""
    for output in node.declaration.outputs:
        wanted = [facts for type_, facts in _SIZES.items() if output.type is type_]
        if any(not any(fact in found[node.id] for fact in facts) for facts in wanted):
            return True
    sized = [port.name for port in node.declaration.ports if any(port.accepts(type_) for type_ in _SIZES)]
    wires = [source for name in sized for source, _ in node.inputs.get(name, ())]
    return bool(found[node.id].get(UNKNOWN)) or any(found[source].get(UNKNOWN) for source in wires)


def warnings_of(estimates: Mapping[str, Mapping[str, Any]], fact: str = "warnings") -> Iterator[tuple[str, str]]:
    """Yield (node, text) of everything that nodes warn of before the cook, or of their "notes"."""
    for name, facts in estimates.items():
        for text in facts.get(fact, ()):
            yield name, text


def check_memory(estimates: Mapping[str, Mapping[str, Any]], settings: GraphSettings, free: int | None = None) -> None:
    """Raise `GraphError` when the nodes together need more memory than is free."""
    need = {name: int(facts.get("memory", 0)) for name, facts in estimates.items()}
    free = free_memory() if free is None else free
    whole = sum(need.values()) + sum(int(facts.get("values", 0)) for facts in estimates.values())
    if whole <= free:
        return
    worst = max(need, key=lambda name: need[name])
    message = f"needs about {in_words(need[worst])} of memory, the whole graph {in_words(whole)}, and {in_words(free)} are free"
    cure = f"raise settings.cell_size (now {settings.cell_size:g} m; twice as much needs about an eighth)"
    raise GraphError([Problem(worst, message, cure=cure)])


def check_disk(estimates: Mapping[str, Mapping[str, Any]], frames: int, out: Path, free: int | None = None) -> int:
    """Return the bytes that `frames` frames need; raise `OutputError` when `out` has less space."""
    need = needs_of(estimates, frames).disk
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
