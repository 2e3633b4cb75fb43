"""Cook again from a frame: a revision whose first frames are those of an older one, and that goes on with other settings.

The frames before the chosen one are linked, or copied where the file system knows no links, so they take no room and no time. The
manifest says where they came from, and their commit records stay those of the older cook. The state that the new frames begin with
is a checkpoint of the older cook; where none was kept, the older cook's own graph makes it again from the nearest one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.repair import find_faults, go_back
from mpm_nodes.graph.cook.resume import is_whole
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.files.archive import write_archive
from mpm_nodes.graph.files.names import temporary
from mpm_nodes.graph.reports.events import EventStream
from mpm_nodes.graph.reports.problems import GraphError, Problem
from mpm_nodes.graph.revisions.records import STATE_FORMAT, resealed
from mpm_nodes.graph.revisions.revision import TAKEN, Revision, for_other_settings, list_revisions
from mpm_nodes.graph.revisions.transaction import writing

__all__ = ["AgainRefused", "refuse_resumed", "take_frames"]

_FIXED = {"cell_size": None, "fps": None, "start": None, "resolution": 1.0}
"""Settings that frames of one revision share, with what those mean that lack them."""


class AgainRefused(MpmNodesError):
    """The frames of the older cook cannot be taken over; the reason and the cure are the message."""


def take_frames(
    root: Path, name: str, frame: int, evaluator: Evaluator, manifest: Mapping[str, Any], last: int, events: EventStream
) -> Revision:
    """Begin a revision with the frames before `frame` of an older one, and hand their last state to the evaluator.

    Args:
        root: Output root.
        name: The older revision ("r001"), or the whole path of one of another root; "" takes the newest.
        frame: First frame that is cooked again.
        evaluator: That of the new graph.
        manifest: Manifest of the new cook.
        last: Last frame of the new cook.
        events: Where notes go.

    Raises:
        AgainRefused: The frames or the state cannot be taken over.
        InputError: There is no such revision.
        OutputError: Another cook writes it, or the disk refuses.
    """
    old = Revision.open(_found(root, name))
    try:
        first = _checked(old, manifest, frame)
        if last < frame:
            raise AgainRefused(f"frame {frame}: lies after the last frame {last}; raise settings.end, or choose an earlier frame")
        before = frame - 1
        keys = _lineage(old, before)
        _check_solves(old, keys, evaluator)
        states = _states(old, evaluator, before, first, events)
        facts = {"from": old.folder.name, "last": before, "graph_digest": old.manifest["graph_digest"], "lineage": keys}
        own = {**manifest, "frames": [first, last], "frame_offset": old.offset, TAKEN: facts}
        new = Revision.create(root, own)
        try:
            _take_files(old, new, before, states)
        except BaseException:
            new.discard_if_empty(taken_too=True)
            new.close()
            raise
    finally:
        old.close()
    evaluator.plan.take(before, keys)
    for node, state in states.items():
        evaluator.restore(node, before, for_other_settings(state))
    events.emit("note", message=f"{new.folder}: frames {first} to {before} are those of {old.folder.name}; going on with {frame}")
    return new


def _found(root: Path, name: str) -> Path:
    if Path(name).is_absolute():
        if not (Path(name) / "cook.json").is_file():
            raise InputError(f"{name}: is not the folder of a cook; name one that holds cook.json")
        return Path(name)
    folders = list_revisions(root)
    if not folders:
        raise InputError(f"{root}: holds no cook whose frames could be taken; cook it from the beginning first")
    found = next((folder for folder in folders if folder.name == name), None) if name else folders[-1]
    if found is None:
        raise InputError(f"{root}: holds no revision {name!r}; it has {', '.join(folder.name for folder in folders[-5:])}")
    return found


# ---------------------------------------------------------------- what cannot be taken over
def _checked(old: Revision, manifest: Mapping[str, Any], frame: int) -> int:
    """Return the first frame of the older cook after a look whether its frames fit the new one."""
    stored, place = old.manifest, f"{old.folder}: "
    beginning = "cook from the beginning instead"
    if not is_whole(stored):
        raise AgainRefused(f"{place}its cook.json lacks the frames or the graph of the cook; {beginning}")
    if stored.get("state_format") != STATE_FORMAT:
        raise AgainRefused(f"{place}was cooked by version {stored['package_version']}, whose states are others; {beginning}")
    if stored.get("part") != manifest.get("part") or manifest.get("part"):
        raise AgainRefused(f"{place}a cook in parts cannot be cooked again from a frame; {beginning}")
    before, now = (each["graph"]["settings"] for each in (stored, manifest))
    for name, otherwise in _FIXED.items():
        was, new = (settings.get(name, otherwise) for settings in (before, now))
        if was != new:
            raise AgainRefused(
                f"settings.{name}: was {was:g}, is {new:g}; the frames of {old.folder.name} do not fit: set it back, or {beginning}"
            )
    first, committed = stored["frames"][0], old.committed()
    whole = next((number for number in range(first, first + len(committed) + 1) if number not in committed), first)
    if not first < frame <= whole:
        kept = f"frames {first} to {whole - 1}" if whole > first else "no whole frame"
        cure = f"choose one of {first + 1} to {whole}" if whole > first else beginning
        raise AgainRefused(f"{place}holds {kept}, so it cannot be cooked again from frame {frame}; {cure}")
    fault = next(iter(_faults(old, first, frame - 1)), "")
    if fault:
        raise AgainRefused(f"{place}{fault}; resume that cook to repair it, or choose an earlier frame")
    return int(first)


def _faults(old: Revision, first: int, last: int) -> Iterator[str]:
    later = set(_written_later(old, last))
    for fault in find_faults(old, first, last, digests=()):
        if fault.name not in later:
            yield f"{fault.name or f'the record of frame {fault.frame}'} {fault.what}"


def _written_later(old: Revision, last: int) -> Iterator[str]:
    """Yield what frames after `last` have written: where earlier ones have too, what lies there is not theirs."""
    for frame in old.committed():
        if frame > last:
            yield from (old.record(frame) or {"files": {}})["files"]


def _lineage(old: Revision, frame: int) -> dict[str, str]:
    return dict((old.record(frame) or {}).get("facts", {}).get("lineage", {}))


def _check_solves(old: Revision, keys: Mapping[str, str], evaluator: Evaluator) -> None:
    """Refuse a solve that the older cook did not have: nothing says what it did before the chosen frame."""
    before = old.manifest["graph"]["nodes"]
    for name in evaluator.sequential():
        kind = evaluator.graph.nodes[name].type
        was = before.get(name, {}).get("type")
        if name not in keys or was != kind:
            what = f"was a {was}" if was and was != kind else f"has no state in {old.folder.name}"
            raise AgainRefused(f"{name}: {what}; give it the name and type that it had, or cook from the beginning instead")


# ---------------------------------------------------------------- states
def _states(old: Revision, evaluator: Evaluator, frame: int, first: int, events: EventStream) -> dict[str, Any]:
    """Return the values of the sequential nodes after `frame`, as they are restored."""
    nodes = evaluator.sequential()
    try:
        return {node: old.load_checkpoint(frame, node, kind) for node, kind in nodes.items()}
    except (InputError, OSError):
        pass  # most are let go
    _try(old, evaluator, frame)
    made = _made_again(old, evaluator, frame, first, events)
    return {node: kind.from_arrays(*made[node].to_arrays()) for node, kind in nodes.items()}


def _try(old: Revision, evaluator: Evaluator, frame: int) -> None:
    """Let each solve look at a state of the older cook that is kept, of whichever frame: what cannot be taken up is refused now.

    Making the state again takes as long as its frames did, and the matter's laws are the same in all of them.
    """
    nodes = evaluator.sequential()
    for node, kind in nodes.items():
        if any(other.is_sequential and other.id != node for other in evaluator.plan.needed(node)):
            continue  # what it is given would be cooked from the beginning
        kept = next((number for number in reversed(old.committed()) if _keeps(old, number, node)), None)
        if kept is None:
            continue
        state = old.load_checkpoint(kept, node, kind)
        if not hasattr(state, "for_trial"):
            continue
        trial = Evaluator(evaluator.graph, disk=evaluator.disk, cancel=evaluator.cancel, fuse=evaluator.fuse)
        trial.restore(node, frame, state.for_trial())
        trial.evaluate([node], frame + 1)


def _keeps(old: Revision, frame: int, node: str) -> bool:
    return old.files.size(old.checkpoint_name(frame, node)) is not None


def _made_again(old: Revision, evaluator: Evaluator, frame: int, first: int, events: EventStream) -> Mapping[str, Any]:
    """Return the states after `frame`, made by the graph of the older cook from the nearest checkpoint before."""
    where = f"{old.folder}: no state of frame {frame} is kept"
    kept = [number for number in old.committed() if all(_keeps(old, number, node) for node in evaluator.sequential())]
    offered = ", ".join(str(number + 1) for number in kept[-6:])
    cure = f"choose frame {offered}, or cook from the beginning" if kept else "cook from the beginning"
    try:
        graph = load_graph(old.manifest["graph"], registry=evaluator.graph.registry, base=evaluator.graph.base)
        again = Evaluator(graph, events=events, cancel=evaluator.cancel, fuse=evaluator.fuse)
    except (GraphError, InputError) as error:
        raise AgainRefused(f"{where}, and its graph is no longer valid ({error}); {cure}") from error
    taken = old.taken
    if taken is not None:
        again.plan.take(taken, old.manifest[TAKEN]["lineage"])
    changed = [node for node, key in again.lineage(frame).items() if _lineage(old, frame).get(node) != key]
    if changed or (taken is not None and frame < taken):
        what = (
            f"an input file or the code of a node that {changed[0]} depends on has changed" if changed else "it came from elsewhere"
        )
        raise AgainRefused(f"{where}, and {what}; {cure}")
    nearest = max([number for number in kept if number < frame], default=first - 1)
    events.emit("note", message=f"the state of frame {frame} was not kept; making it again with the settings of {old.folder.name}")
    go_back(old, again, frame + 1, max(first, nearest))
    return again.states(frame)


# ---------------------------------------------------------------- files
def _take_files(old: Revision, new: Revision, last: int, states: Mapping[str, Any]) -> None:
    """Link what the frames up to `last` have written, give them records of what they hold here, and write the states."""
    later = set(_written_later(old, last))
    for frame in old.committed():
        record = old.record(frame)
        if frame > last or record is None:
            continue
        files = {name: facts for name, facts in record["files"].items() if name not in later and old.files.size(name) is not None}
        for name in files:
            if new.files.size(name) is None:
                _take_file(old, new, name)
        if frame == last:
            files |= _write_states(new, frame, states, files)
        with writing(str(new.folder)):
            new.files.replace_json(new.record_name(frame), resealed(record, files))


def _take_file(old: Revision, new: Revision, name: str) -> None:
    source, target = old.folder / name, new.folder / name
    with writing(str(target)):
        if "/" in name:
            new.files.make(name.rpartition("/")[0])
        try:
            os.link(source, target, follow_symlinks=False)
        except (OSError, NotImplementedError):  # another file system, or one without links
            shutil.copyfile(source, target, follow_symlinks=False)


def _write_states(new: Revision, frame: int, states: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Write the checkpoints that were not taken, and return their sizes and digests."""
    written = {}
    for node, value in states.items():
        name = new.checkpoint_name(frame, node)
        if name in known:
            continue
        with writing(str(new.folder / name)):
            new.files.make("checkpoints")
            facts, arrays = value.to_arrays()
            header = {"node": node, "frame": frame, "format": getattr(value, "STATE_FORMAT", 1), "facts": facts}
            write_archive(new.folder / temporary(name), header, arrays)
            new.files.finish(name)
            written[name] = new.files.facts(name, sync=True)
    return written


def refuse_resumed(frame: int) -> None:
    """Raise for a cook that is to be resumed and to begin again at a frame."""
    cure = "resume it, or cook it again from a frame"
    raise GraphError([Problem("again_from", f"is {frame} for a cook that is resumed", cure=cure)])
