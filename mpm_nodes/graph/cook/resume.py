"""Begin a revision, or find out how far an older cook came and whether this one may continue it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mpm_nodes
from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.repair import find_faults, repair
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.reports.events import EventStream
from mpm_nodes.graph.revisions.records import STATE_FORMAT
from mpm_nodes.graph.revisions.revision import TAKEN, Revision
from mpm_nodes.graph.revisions.transaction import frame_offset
from mpm_nodes.graph.time import keys

__all__ = ["ResumeRefused", "continue_from", "graph_digest", "is_whole", "manifest_of"]

Span = tuple[int, int]
_BEGIN = "cook again without --resume, or from a frame on with --again-from"


class ResumeRefused(MpmNodesError):
    """The cook on disk cannot be continued with this graph or this version; the reason is the message."""


def manifest_of(graph: Graph, span: Span, overrides: Sequence[str], part: str = "all") -> dict[str, Any]:
    """Return the manifest of a new revision: everything that says how its files came about, and no times.

    Parts of one shot number their files alike, so that they can be joined.
    """
    document = graph.to_json()
    first = span[0] if part == "all" else graph.settings.start
    return {
        **({} if part == "all" else {"part": part}),
        "package_version": mpm_nodes.__version__,
        "graph": document,
        "graph_digest": graph_digest(document),
        "overrides": list(overrides),
        "frames": list(span),
        "frame_offset": frame_offset(first),
    }


def graph_digest(document: Mapping[str, Any]) -> str:
    """Return a digest of what decides the results of a graph document: no positions, comments or last frame."""
    return hashlib.sha256(json.dumps(_essence(document), sort_keys=True).encode()).hexdigest()


def _essence(document: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in document["settings"].items() if name != "end"}
    fields = ("type", "version", "knobs", "inputs", "bypass")
    nodes = {name: {key: node[key] for key in fields} for name, node in document["nodes"].items()}
    return {"settings": settings, "nodes": nodes}


def continue_from(
    root: Path,
    evaluator: Evaluator,
    manifest: Mapping[str, Any],
    span: Span | None,
    resume: bool,
    events: EventStream,
    deep: bool = False,
    name: str = "",
) -> tuple[Revision, Span, list[int], list[int]]:
    """Open the revision to write to.

    Args:
        root: Output root.
        evaluator: Gets the states of the sequential nodes when a cook is continued.
        manifest: Manifest of this cook.
        span: First and last frame asked for, None when left to the settings.
        resume: Whether to continue a revision.
        events: Where notes and warnings go.
        deep: Whether every file is read to find damage; else missing ones, changed sizes and damage of the last frame are found.
        name: The revision to continue ("r001"); "" continues the newest.

    Returns:
        The revision, the frames to cook, the frames that are there already, and those of them that were repaired.

    Raises:
        ResumeRefused: The revision was cooked from another graph, input or state format.
        OutputError: Another cook writes it, or the disk refuses.
    """
    revision = Revision.resume(root, manifest, name) if resume else None
    if revision is None:
        new = Revision.create(root, manifest)
        return new, (manifest["frames"][0], manifest["frames"][1]), [], []
    try:
        _check_same(revision, manifest, evaluator.graph.registry)
        if revision.taken is not None:
            evaluator.plan.take(revision.taken, revision.manifest[TAKEN]["lineage"])
        first, end = revision.manifest["frames"]
        # ranks go back to the last good frame instead: what is cooked between frames only one of them would know of
        repaired = [] if evaluator.team is not None else _repair(revision, evaluator, first, events, deep)
        last = revision.resume_frame(evaluator.sequential(), first)
        _refuse_lost(revision, last)
        chosen = _span(revision, span, first, _end(revision.manifest, manifest), last)
        had = revision.committed()
        if last is not None:
            _restore(revision, evaluator, last)
        removed = revision.roll_back(last)
        if removed:
            why = "is damaged" if last is not None and last >= first else "cannot be continued (damaged, or no checkpoint)"
            events.emit(
                "warning",
                where=str(revision.folder),
                message=f"frame {removed[0]} {why}; it is cooked again, with those after it",
            )
        elif had and last is not None:
            events.emit("note", message=f"{revision.folder}: continuing after frame {last}")
        version = revision.manifest["package_version"]
        if version != manifest["package_version"]:
            events.emit(
                "warning",
                where=str(revision.folder),
                message=f"was begun by version {version}; version {mpm_nodes.__version__} reads its state and goes on",
            )
        own = {name: manifest[name] for name in ("graph", "graph_digest", "overrides")}
        revision.update(frames=[first, max(end, chosen[1])], **own)
    except BaseException:
        revision.close()
        raise
    return revision, (first, chosen[1]), revision.committed(), repaired


def _repair(revision: Revision, evaluator: Evaluator, first: int, events: EventStream, deep: bool) -> list[int]:
    """Cook missing and damaged files again as far as the newest checkpoint holds up what follows; return the repaired frames."""
    last = revision.newest_state(evaluator.sequential())
    if last is None or last < first or _changed_inputs(revision, evaluator, last):
        return []
    taken = revision.taken
    faults = find_faults(revision, first, last, digests=range(first, last + 1) if deep else [last])
    if taken is not None and any(fault.frame <= taken for fault in faults):
        _refuse_lost(revision, None)
    frames = sorted({fault.frame for fault in faults if not fault.name.startswith("checkpoints/")})
    if not frames:
        return []
    several = "frames " + ", ".join(map(str, frames[:20])) + (" ..." if len(frames) > 20 else "")
    text = f"frame {frames[0]} is damaged; it is" if len(frames) == 1 else f"{several} are damaged; they are"
    events.emit("warning", where=str(revision.folder), message=f"{text} cooked again, the others stay")
    repaired = repair(revision, evaluator, faults, first if taken is None else taken, events)
    if repaired != frames:  # what was cooked in vain must not be taken for a frame's own work
        evaluator.forget()
    return repaired


def _refuse_lost(revision: Revision, last: int | None) -> None:
    """Refuse to go on where frames that came from another cook are damaged: this graph does not make them."""
    taken = revision.taken
    if taken is not None and (last is None or last < taken):
        raise ResumeRefused(
            f"{revision.folder}: frames up to {taken} came from {revision.manifest[TAKEN]['from']}, and some are damaged; "
            f"cook again from frame {taken + 1} of that cook"
        )


def _end(old: Mapping[str, Any], new: Mapping[str, Any]) -> int:
    """Return the last frame when none is asked for: the settings', or that of the cook continued where it went further."""
    before, now = (manifest["graph"]["settings"]["end"] for manifest in (old, new))
    return int(max(old["frames"][1], now) if before == now else now)


def _span(revision: Revision, asked: Span | None, first: int, end: int, last: int | None) -> Span:
    if asked is None:
        return first, end
    following = first if last is None else last + 1
    if not first <= asked[0] <= following:
        raise ResumeRefused(
            f"{revision.folder}: --frames {asked[0]}-{asked[1]} would leave a gap, its frames are {first} to "
            f"{following - 1}; begin at {following}, or cook without --resume"
        )
    return asked


def _check_same(revision: Revision, manifest: Mapping[str, Any], registry: Registry) -> None:
    stored = revision.manifest
    if not is_whole(stored):
        raise InputError(
            f"{revision.folder / 'cook.json'}: is damaged or not a manifest of ours (frames or graph are not values that a cook "
            "writes); cook without --resume"
        )
    if stored.get("state_format") != STATE_FORMAT or type(stored["state_format"]) is not int:
        raise ResumeRefused(
            f"{revision.folder}: was cooked by version {stored['package_version']} with state format "
            f"{stored.get('state_format')}, this version continues format {STATE_FORMAT}; cook again without --resume"
        )
    if stored.get("part") != manifest.get("part"):
        parts = [each.get("part") or "all" for each in (stored, manifest)]
        raise ResumeRefused(f"{revision.folder}: holds part {parts[0]} of a cook, not {parts[1]}; cook into another folder")
    if stored["graph_digest"] != manifest["graph_digest"]:
        before, now = _essence(stored["graph"]), _essence(manifest["graph"])
        place = next(_differences(before, now), "the graph differs")
        whole = graph_digest(stored["graph"]) == stored["graph_digest"]
        _take_over_later_keys(before, now, registry, max(revision.committed(), default=stored["frames"][0]))
        if before != now or not whole:
            place = next(_differences(before, now), place)
            raise ResumeRefused(f"{revision.folder}: was cooked from another graph: {place}; {_BEGIN}")


def _take_over_later_keys(old: dict[str, Any], new: Mapping[str, Any], registry: Registry, last: int) -> None:
    """Give knobs of `old` the keys that they have in `new` where both run alike up to the frame `last`."""
    start, known = new["settings"]["start"], registry.nodes()
    for name, node in new["nodes"].items():
        before = old["nodes"].get(name, {})
        if before.get("type") != node["type"] or node["type"] not in known:
            continue
        knobs = dict(before["knobs"])
        for knob in known[node["type"]].knobs:
            raws: list[Any] = [knobs.get(knob.name), node["knobs"].get(knob.name)]
            if knob.animatable and all(map(keys.is_keyed, raws)):
                was, now = (keys.interval(raw["keys"], start - 1, last, straight=not knob.turns) for raw in raws)
                knobs[knob.name] = raws[1] if was == now else raws[0]
        old["nodes"][name] = {**before, "knobs": knobs}


def is_whole(manifest: Mapping[str, Any]) -> bool:
    """Return whether a manifest from disk has the frames and the graph that this module reads."""
    frames = manifest.get("frames")
    if not (isinstance(frames, list) and len(frames) == 2 and all(type(frame) is int for frame in frames)):
        return False
    try:
        _essence(manifest["graph"])
        settings = manifest["graph"]["settings"]
        numbers = [settings[name] for name in ("fps", "start", "end", "cell_size")]
        counts = all(type(number) in (int, float) and abs(number) < 1e15 for number in numbers) and settings["fps"] > 0
        return counts and type(settings["end"]) is int and abs(max(frames, key=abs)) < 1 << 31
    except (AttributeError, KeyError, TypeError):
        return False


def _differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new}, key=str):
            inner = f"{place}.{name}" if place and place not in ("nodes",) else str(name)
            if name not in old or name not in new:
                yield f"{inner} was {'added' if name in new else 'removed'}"
            else:
                yield from _differences(old[name], new[name], inner)
    elif old != new:
        yield f"{place.replace('.knobs.', '.')} was {_short(old)}, is {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:56] + " ..."


def _changed_inputs(revision: Revision, evaluator: Evaluator, last: int) -> list[str]:
    """Return the sequential nodes whose value at frame `last` would be another one today."""
    known = (revision.record(last) or {}).get("facts", {}).get("lineage", {})
    return [node for node, key in evaluator.lineage(last).items() if known.get(node) != key]


def _restore(revision: Revision, evaluator: Evaluator, last: int) -> None:
    changed = _changed_inputs(revision, evaluator, last)
    if changed:
        raise ResumeRefused(
            f"{revision.folder}: an input file, or the code of a node, that {changed[0]} depends on was changed since; {_BEGIN}"
        )
    for node, kind in evaluator.sequential().items():
        try:
            evaluator.restore(node, last, revision.load_checkpoint(last, node, kind))
        except InputError as error:
            raise ResumeRefused(str(error)) from error
