"""The cooks of a graph that lie in its cache folder: sizes, differences, checks, deletion. Knows nothing of bpy."""

import contextlib
import json
import os
import shutil
import stat
from pathlib import Path

MOST_LINES = 30

NOTES = "notes.json"
"""File of a revision folder with what the artist says of the cook: note, and published (folders, by name)."""

NOT_PUBLISHED = shutil.ignore_patterns("checkpoints", "cook.lock", ".*", NOTES, "preview")
"""What only this cook needs, to go on."""


class RevisionFault(Exception):
    """A revision that is not there or must not be touched; the message says why and what to do."""


def found(out):
    """Return the revision folders of an output root, oldest first."""
    folders = (path for path in Path(out).glob("r[0-9]*") if path.is_dir() and path.name[1:].isdigit())
    return sorted(folders, key=lambda path: int(path.name[1:]))


def size(revision):
    """Return the bytes that a revision takes on disk; files come and go meanwhile where a cook writes it."""
    total = 0
    for folder, _, names in os.walk(revision):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                facts = os.lstat(os.path.join(folder, name))
                total += facts.st_size if stat.S_ISREG(facts.st_mode) else 0
    return total


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


def notes(revision):
    """Return what the artist says of a revision: its note, "" for none, and the names that it is published by."""
    found = record(Path(revision) / NOTES)
    published = found.get("published")
    return str(found.get("note") or ""), [str(name) for name in published] if isinstance(published, list) else []


def write_notes(revision, note, published):
    """Keep what the artist says of a revision.

    Raises:
        RevisionFault: It cannot be written.
    """
    path = Path(revision) / NOTES
    part = path.with_name(f".{NOTES}.{os.getpid()}.part")
    try:
        part.write_text(json.dumps({"note": note, "published": published}, ensure_ascii=False), encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise RevisionFault(f"{path}: cannot be written ({error.strerror or error})") from error


def publish(revision, folder, name, busy=()):
    """Put a cook's files into a folder of the next number, NAME_v001 for the first, which no cook changes; return it.

    Its files are linked, or copied where the file system has no links, so the cook may be deleted.

    Args:
        revision: The revision folder.
        folder: Where published cooks lie.
        name: Of the shot.
        busy: Folders that are being cooked.

    Raises:
        RevisionFault: It is being cooked, or cannot be published there.
    """
    revision, folder = Path(revision), Path(folder)
    if str(revision) in map(str, busy):
        raise RevisionFault(f"{revision.name} is being cooked; publish it when that is over")
    taken = [path.name[len(name) + 2 :] for path in folder.glob(f"{name}_v*")]
    number = 1 + max((int(each) for each in taken if each.isdigit()), default=0)
    target = folder / f"{name}_v{number:03d}"
    part = folder / f".{target.name}.{os.getpid()}.part"
    note, published = notes(revision)
    try:
        shutil.copytree(revision, part, ignore=NOT_PUBLISHED, copy_function=_link)
        os.replace(part, target)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise RevisionFault(f"{target}: cannot be written ({error})") from error
    write_notes(target, note, [])
    write_notes(revision, note, [*published, target.name])
    return target


def _link(source, target):
    with contextlib.suppress(OSError):
        os.link(source, target)
        return target
    return shutil.copy2(source, target)


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
