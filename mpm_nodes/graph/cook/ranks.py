"""A cook on several ranks: rank 0 cooks and writes as ever, the others cook the solves with it and write their checkpoints.

This package knows of a team what it takes to join in: `rank`, `from_first` (what rank 0 tells) and `to_first` (what the others do).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.parts import Parts, write_solved_part
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.revisions.checkpoints import read_state, write_parts
from mpm_nodes.graph.revisions.revision import Revision
from mpm_nodes.graph.revisions.transaction import FrameTransaction, file_frame

__all__ = ["adopt_parts", "follow", "tell_followers"]


def tell_followers(evaluator: Evaluator, revision: Revision | None, frames: Iterable[int], parts: Parts) -> None:
    """Tell the other ranks what is cooked, and where (on rank 0)."""
    frames = list(frames)
    evaluator.team.gathers = not parts.by_ranks()
    held = {name: evaluator.held(name) for name in evaluator.sequential()}
    folder = None if revision is None else (str(revision.folder), revision.offset)
    evaluator.team.from_first((folder, frames, held))


def adopt_parts(evaluator: Evaluator, transaction: FrameTransaction) -> None:
    """Take the checkpoints that the other ranks wrote into the frame (on rank 0)."""
    if evaluator.team is not None:
        for written in evaluator.team.to_first([]):
            for name, facts in written:
                transaction.adopt(name, facts)


def follow(evaluator: Evaluator, parts: Parts) -> tuple[int, ...]:
    """Cook the solves of a graph together with rank 0; return the frames."""
    team = evaluator.team
    folder, frames, held = team.from_first()
    for node, kind in evaluator.sequential().items():  # those before a solve as well
        if held[node] is not None:
            evaluator.restore(node, held[node], read_state(Folder(Path(folder[0])), file_frame(held[node], folder[1]), node, kind))
    shared = {name for name, kind in evaluator.sequential().items() if hasattr(kind, "joined")}
    solves = [node.id for node in evaluator.plan.nodes if node.id in shared]
    handed = parts.by_ranks()
    team.gathers = not handed
    for frame in frames:
        evaluator.events.start_frame(frame)
        values = evaluator.evaluate(solves, frame, outputs=handed)
        if folder is not None:
            root, number = Path(folder[0]), file_frame(frame, folder[1])
            written = write_parts(root, frame, number, evaluator.states(frame), team.rank)
            team.to_first([*written, *write_solved_part(root, number, handed, values, team)])
    return tuple(frames)
