"""Cook a shot in two parts: the solves frame after frame, then whatever is made of them, in any frames on any machine.

A cook of the part "solve" writes what the sequential nodes hand to the others, a file an output and frame, into its revision::

    r001/solved/0007.fall.particles.value

Where several ranks share the solves, each writes its own part, ranks beside the first as `0007.fall.particles.rank1.value`.

A cook of the part "frames" reads these in place of cooking the nodes. Each file belongs to the commit of its frame, whose record
holds the lineage key of the node: values of another graph or of other input files are refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError
from mpm_nodes.graph.files.archive import read_archive, rebuilt, write_archive
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.plan.plan import Plan, PlannedNode
from mpm_nodes.graph.reports.problems import GraphError, Problem, Problems
from mpm_nodes.graph.revisions.checkpoints import write_file
from mpm_nodes.graph.revisions.records import read_manifest, read_record
from mpm_nodes.graph.revisions.revision import latest_revision
from mpm_nodes.graph.revisions.transaction import FrameTransaction, file_frame, writing
from mpm_nodes.graph.values.store import freeze

__all__ = ["PARTS", "Parts", "SolvedFrames"]

PARTS = ("all", "solve", "frames")
ROW_BYTES = 300
"""What a particle of a solve takes on disk in a frame, with all its columns, about."""


@dataclasses.dataclass(frozen=True)
class Parts:
    """What of a plan belongs to a part.

    Attributes:
        plan: The plan.
        part: One of `PARTS`.
    """

    plan: Plan
    part: str = "all"

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise GraphError([Problem("part", "is unknown", self.part, ", ".join(PARTS), "give one of them")])

    def check(self) -> None:
        """Raise `GraphError` where the part is empty, or what it hands on cannot be stored."""
        problems = Problems()
        if not self.targets():
            what = "has no solve" if self.part == "solve" else "makes nothing of its solves"
            cure = "cook it in one part" if self.part == "solve" else "wire a write_cache behind them"
            problems.add("graph", what, cure=cure)
        for name, output in self.handed() if self.part != "all" else ():
            found = self.plan[name].declaration.output(output)
            if found is None or not (hasattr(found.type, "to_arrays") and hasattr(found.type, "from_arrays")):
                what = "is read behind the solve and cannot be stored (its type has no to_arrays and from_arrays)"
                problems.add(f"{name}.{output}", what, cure="cook the graph in one part")
        if problems:
            raise GraphError(problems)

    def targets(self) -> list[str]:
        """Return the nodes to evaluate at each frame."""
        if self.part == "solve":
            return [node.id for node in self.plan.nodes if node.is_sequential]
        return [node.id for node in self.plan.sinks if self.part == "all" or not node.is_sequential]

    def nodes(self) -> set[str]:
        """Return the nodes that are cooked."""
        if self.part != "frames":
            return {node.id for node in self.plan.needed(*self.targets())}
        return {name for name in self._reached() if not self.plan[name].is_sequential}

    def handed(self) -> list[tuple[str, str]]:
        """Return the outputs, as (node, output), that the solves hand to the part "frames"."""
        frames = dataclasses.replace(self, part="frames").nodes()
        wires = {wire for name in frames for sources in self.plan[name].inputs.values() for wire in sources}
        return sorted(wire for wire in wires if self.plan[wire[0]].is_sequential)

    def by_ranks(self) -> list[tuple[str, str]]:
        """Return the outputs of those that each of several ranks writes for itself: all, or none where a node reads all matter."""
        kinds = [node.declaration.previous_type for node in self.plan.nodes if node.is_sequential]
        return self.handed() if self.part == "solve" and all(hasattr(kind, "joined") for kind in kinds) else []

    def estimates(self, found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return what the nodes of this part told of their needs, and what reading and writing between the parts takes."""
        kept = {name: dict(facts) for name, facts in found.items() if name in self.nodes()}
        if self.part != "all":
            for name in dict.fromkeys(name for name, _ in self.handed()):
                size = ROW_BYTES * int(found[name].get("particles", 0))
                facts = kept.setdefault(name, {})
                what = "disk" if self.part == "solve" else "memory"
                facts[what] = int(facts.get(what, 0)) + size
        return kept

    def _reached(self) -> set[str]:
        """Return what the targets are made from, up to the sequential nodes."""
        reached: set[str] = set()
        stack = list(dataclasses.replace(self, part="frames").targets())
        while stack:
            name = stack.pop()
            if name not in reached:
                reached.add(name)
                if not self.plan[name].is_sequential:
                    stack.extend(source for wires in self.plan[name].inputs.values() for source, _ in wires)
        return reached


def write_solved(
    files: FrameTransaction, wires: Collection[tuple[str, str]], values: Mapping[str, Mapping[str, Any]], ranks: int = 1
) -> None:
    """Write outputs of sequential nodes into the frame of a transaction; of several ranks, those of rank 0."""
    for node, output in wires:
        value = values[node][output]
        path = files.path(_name(files.number, node, output))
        with writing(str(path)):
            write_archive(path, *_stored(value, ranks))
        files.finished(path)


def write_solved_part(
    folder: Path, number: int, wires: Collection[tuple[str, str]], values: Mapping[str, Mapping[str, Any]], team: Any
) -> list[tuple[str, dict[str, Any]]]:
    """Write this rank's outputs under temporary names; return names, and size and digest of each, for rank 0's commit."""
    files, written = Folder(folder), []
    for node, output in wires:
        if node in values and hasattr(values[node][output], "joined"):
            name = _name(number, node, output, team.rank)
            written.append((name, write_file(files, name, *_stored(values[node][output], team.size))))
    return written


def _stored(value: Any, ranks: int) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return what stands in the file of an output: header and arrays."""
    facts, arrays = value.to_arrays()
    header = {"format": getattr(value, "STATE_FORMAT", 1), "facts": facts}
    return (header if ranks == 1 or not hasattr(value, "joined") else {**header, "parts": ranks}), arrays


def _name(number: int, node: str, output: str, rank: int = 0) -> str:
    return f"solved/{number:04d}.{node}.{output}{f'.rank{rank}' if rank else ''}.value"


class SolvedFrames:
    """The values in a cook of the part "solve", which may still be growing.

    Args:
        folder: Its output root or revision folder.

    Raises:
        InputError: It is no such cook.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = latest_revision(folder)
        self.files = Folder(self.folder)
        manifest = read_manifest(self.files)
        if manifest is None or manifest.get("part") != "solve":
            raise InputError(f"{self.folder}: is not a cook of the solves alone; cook its part solve")
        self.offset = int(manifest["frame_offset"])

    def values(self, node: PlannedNode, frame: int, key: str, outputs: Collection[str]) -> dict[str, Any]:
        """Return outputs of a sequential node after a frame.

        Raises:
            InputError: The frame is not solved yet, was solved from something else, or its files are damaged.
        """
        number = file_frame(frame, self.offset)
        record = read_record(self.files, f"frames/{number:04d}.commit.json", frame)
        if record is None:
            raise InputError(f"{self.folder}: frame {frame} is not solved yet; go on with its part solve")
        if record["facts"].get("lineage", {}).get(node.id) != key:
            raise InputError(
                f"{self.folder}: frame {frame} of {node.id} was solved from another graph, other input files or by other code; "
                "cook its part solve again"
            )
        return {output: freeze(self._read(node, number, output)) for output in outputs}

    def _read(self, node: PlannedNode, number: int, output: str) -> Any:
        found = node.declaration.output(output)
        kind: Any = None if found is None else found.type
        first, parts = self._read_part(kind, _name(number, node.id, output))
        if parts == 1:
            return first
        others = (self._read_part(kind, _name(number, node.id, output, rank))[0] for rank in range(1, parts))
        return kind.joined([first, *others])

    def _read_part(self, kind: Any, name: str) -> tuple[Any, int]:
        path = self.folder / name
        try:
            with self.files.stream(name) as stream:
                header, arrays = read_archive(path, stream)
        except FileNotFoundError as error:
            raise InputError(f"{path}: is missing; cook its part solve again") from error
        return rebuilt(path, kind, header, arrays, "cook its part solve again")
