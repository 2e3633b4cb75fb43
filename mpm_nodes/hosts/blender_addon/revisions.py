"""The cooks of a graph that lie in its cache folder: sizes, differences, checks, deletion. Knows nothing of bpy."""

import json
import shutil
from pathlib import Path

MOST_LINES = 30


class RevisionFault(Exception):
    """A revision that is not there or must not be touched; the message says why and what to do."""


def found(out):
    """Return the revision folders of an output root, oldest first."""
    folders = (path for path in Path(out).glob("r[0-9]*") if path.is_dir() and path.name[1:].isdigit())
    return sorted(folders, key=lambda path: int(path.name[1:]))


def size(revision):
    """Return the bytes that a revision takes on disk."""
    return sum(path.stat().st_size for path in Path(revision).rglob("*") if path.is_file() and not path.is_symlink())


def differences(one, other):
    """Return in lines what differs between the graphs that two revisions were cooked from, and between their last frames."""
    lines = []
    graphs = [record(Path(each) / "cook.json").get("graph", {}) for each in (one, other)]
    flat = [dict(_leaves(graph, "")) for graph in graphs]
    for place in sorted(flat[0].keys() | flat[1].keys()):
        before, after = (each.get(place, "nothing") for each in flat)
        if before != after:
            lines.append(f"{place}: {json.dumps(before)[:40]} -> {json.dumps(after)[:40]}")
    facts = [_last_frame(each) for each in (one, other)]
    for name in ("number", "particles", "substeps", "dt_min"):
        before, after = (each.get(name) for each in facts)
        if before != after:
            lines.append(f"last frame's {name}: {before} -> {after}")
    kept = lines[:MOST_LINES]
    return kept + ([f"and {len(lines) - len(kept)} more"] if len(lines) > len(kept) else []) or ["cooked from the same graph"]


def _leaves(value, place):
    """Yield (place, value) of every knob, setting and wire; where nodes stand and what editors note does not count."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("position", "editor", "comment"):
                yield from _leaves(inner, f"{place}.{name}" if place else name)
    else:
        yield place.replace("nodes.", "", 1).replace(".knobs.", ".", 1), value


def record(path):
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _last_frame(revision):
    paths = sorted((Path(revision) / "frames").glob("[!.]*.commit.json"))
    last = record(paths[-1]) if paths else {}
    return {**last.get("facts", {}), "number": last.get("frame")}


def delete(revision, out, busy=()):
    """Delete a revision folder.

    Args:
        revision: The folder.
        out: Output root that it must lie in.
        busy: Folders that are being cooked.

    Raises:
        RevisionFault: It is not a revision of this root, or is being cooked, or cannot be deleted.
    """
    revision = Path(revision)
    if revision not in found(out) or not (revision / "cook.json").is_file():
        raise RevisionFault(f"{revision} is not a cook of this graph; choose one of the list")
    if str(revision) in map(str, busy):
        raise RevisionFault(f"{revision.name} is being cooked; cancel that first")
    try:
        (revision / "cook.json").unlink()  # what is left of it then is not a cook any longer
        shutil.rmtree(revision)
    except OSError as error:
        raise RevisionFault(f"{revision}: cannot be deleted ({error.strerror or error}); close what has its files open") from error
