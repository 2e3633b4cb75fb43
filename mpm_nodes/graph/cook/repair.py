"""Find what is missing or damaged in a revision, and cook that again, leaving the frames after it as they are.

A frame's files follow from the graph and the state before it, byte for byte. So a lost file is made again from the nearest
checkpoint before its frame, and counts only when it has the digest that the frame's record holds.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mpm_nodes.data import InputError
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.files.names import temporary
from mpm_nodes.graph.reports.events import EventStream
from mpm_nodes.graph.revisions.revision import Revision
from mpm_nodes.graph.revisions.transaction import FrameTransaction, writing

__all__ = ["Fault", "find_faults", "go_back", "repair"]


@dataclass(frozen=True)
class Fault:
    """Something that is not as its cook left it: its frame, the file's name ("" for the frame's record), and what is wrong."""

    frame: int
    name: str
    what: str


def find_faults(revision: Revision, first: int, last: int, *, digests: Collection[int]) -> list[Fault]:
    """Return what is missing or damaged in the frames `first` to `last`, frame by frame.

    Args:
        revision: The revision.
        first: First frame.
        last: Last frame.
        digests: Frames whose files are read; of the others, missing files and changed sizes are found.
    """
    records = {frame: revision.record(frame) for frame in range(first, last + 1)}
    written = {frame: record["files"] for frame, record in records.items() if record}
    newest = {name: frame for frame in sorted(written) for name in written[frame]}
    once = collections.Counter(name for files in written.values() for name in files)
    lost = [frame for frame, record in records.items() if record is None]
    faults = [Fault(frame, "", "its commit record is missing or altered") for frame in lost]
    for name, frame in newest.items():
        facts, size = written[frame][name], revision.files.size(name)
        if name.startswith("checkpoints/") and size is None:
            continue  # most were let go
        if lost and lost[-1] > frame and once[name] > 1:
            continue  # written again by a frame whose record is lost: nothing says what it held
        if size is None:
            faults.append(Fault(frame, name, "is missing"))
        elif size != facts["bytes"]:
            faults.append(Fault(frame, name, f"has {size} bytes, {facts['bytes']} were written"))
        elif frame in digests and revision.files.facts(name)["sha256"] != facts["sha256"]:
            faults.append(Fault(frame, name, "holds other bytes than were written"))
    return sorted(faults, key=lambda fault: (fault.frame, fault.name))


def repair(revision: Revision, evaluator: Evaluator, faults: Sequence[Fault], first: int, events: EventStream) -> list[int]:
    """Cook the files of `faults` again; return the frames that are whole again.

    The evaluator's graph must be the one that the revision was cooked from. Frames are repaired in order; the first that does not
    come out as it was ends the work, since later ones may need it.
    """
    sinks = [node.id for node in evaluator.plan.sinks]
    repaired = []
    frames = sorted({fault.frame for fault in faults})
    for frame in frames:
        wanted = [fault.name for fault in faults if fault.frame == frame]
        if all(name.startswith("checkpoints/") for name in wanted):
            continue  # a checkpoint that cannot be read is passed over; the frame itself is whole
        go_back(revision, evaluator, frame, first)
        events.start_frame(frame)
        events.emit("frame_start", frame=frame, last=frames[-1])
        transaction, begin = _Repairing(revision, frame), time.perf_counter()
        evaluator.files = transaction
        try:
            evaluator.evaluate(sinks, frame)
            transaction.checkpoint(evaluator.states(frame))
            whole = transaction.restore(
                [name for name in wanted if name], **events.frame_figures(), lineage=evaluator.lineage(frame)
            )
        finally:
            evaluator.files = None
            transaction.abort()
        if not whole:
            break
        repaired.append(frame)
        events.emit("frame_done", frame=frame, seconds=time.perf_counter() - begin, **events.frame_figures())
    return repaired


def go_back(revision: Revision, evaluator: Evaluator, frame: int, first: int) -> None:
    """Give the sequential nodes the states after the frame before `frame`, from the nearest checkpoint or the first frame on."""
    nodes = evaluator.sequential()
    at_hand = [held for held in map(evaluator.held, nodes) if held is not None and held < frame]
    nearest = min(at_hand) if at_hand and len(at_hand) == len(nodes) else first - 1
    for other in range(frame - 1, nearest, -1):
        names = {node: revision.checkpoint_name(other, node) for node in nodes}
        if any(revision.files.size(name) is None for name in names.values()):
            continue
        try:
            states = {node: revision.load_checkpoint(other, node, kind) for node, kind in nodes.items()}
        except InputError:
            continue
        for node, state in states.items():
            evaluator.restore(node, other, state)
        break
    behind = [name for name in nodes if evaluator.held(name) != frame - 1]
    if behind and frame > evaluator.graph.settings.start:
        evaluator.evaluate(behind, frame - 1, force=behind)


class _Repairing(FrameTransaction):
    """The files of one frame once more; only those that are wanted and come out as they were take their places."""

    def frames(self) -> list[int]:
        """Return the frames up to this one: those after it are not looked at."""
        return [frame for frame in super().frames() if frame <= self.frame]

    def restore(self, wanted: Sequence[str], **facts: object) -> bool:
        """Put the wanted files in their places, and the record where it is lost; return whether all came out as they were."""
        with writing(str(self.folder)):
            record = self.revision.record(self.frame)
            made = self.described()
            if record is None:
                known = {name: found for name, found in made.items() if not name.startswith("checkpoints/")}
                wanted = [name for name in known if not self._belongs_to_later(name)]
                self.write_record(made, facts)
            elif any(made.get(name) != record["files"].get(name) for name in wanted):
                return False
            for name in wanted:
                if self.revision.files.size(temporary(name)) is not None:
                    self.revision.files.finish(name)
            if record is None:
                self.revision.files.finish(self.revision.record_name(self.frame))
            self.revision.files.sync("frames")
        return True

    def _belongs_to_later(self, name: str) -> bool:
        later = (self.revision.record(frame) for frame in self.revision.committed() if frame > self.frame)
        return any(record is not None and name in record["files"] for record in later)
