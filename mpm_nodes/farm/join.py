"""Join cooks of spans of frames into one cache, as if one cook had made them: same files, same bytes.

The frames' own files are linked where the disk can (a joined cache then takes no space), else copied, and compared with the digests
in their records on the way. The stages that tie the frames together are made again over all of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.cook.resume import is_whole
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.revisions.records import read_manifest, read_record
from mpm_nodes.graph.revisions.revision import Revision, list_revisions
from mpm_nodes.graph.revisions.transaction import FrameTransaction, file_frame, writing
from mpm_nodes.nodes.caches import export_layer, provenance

__all__ = ["join_parts"]

_LAYER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)/\1\.\d{4,}\.usdc")
_SAME = ("graph_digest", "frame_offset", "part")
"""What the manifests of all parts must have in common."""


class _Part:
    """A cook of some frames."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = Folder(folder)
        manifest = read_manifest(self.files)
        if manifest is None or not is_whole(manifest):
            raise InputError(f"{folder}: holds no whole cook.json; cook it again")
        self.manifest: Mapping[str, Any] = manifest

    def record(self, frame: int) -> dict[str, Any] | None:
        """Return the commit record of a frame, None where there is none that counts."""
        name = f"frames/{file_frame(frame, int(self.manifest['frame_offset'])):04d}.commit.json"
        return read_record(self.files, name, frame)


def join_parts(
    parts: Sequence[str | Path], frames: tuple[int, int], out: str | Path, progress: Callable[[int, int], None] | None = None
) -> Path:
    """Join cooks of the part "frames" into one revision, and return its folder. What is joined already is not touched.

    Args:
        parts: Their output roots, or folders that hold these.
        frames: First and last frame to join.
        out: Output root of the joined cache.
        progress: Called with (frames joined, frames wanted).

    Raises:
        InputError: A frame is missing or damaged, or the parts were cooked from different graphs.
        OutputError: The cache cannot be written, or the parts hold files that no frame owns alone.
    """
    found = [_Part(folder) for folder in _folders(parts)]
    if not found:
        raise InputError(f"{parts[0] if parts else 'join'}: holds no cook; give the folders of cooks with --part frames")
    for other in found[1:]:
        if any(other.manifest.get(name) != found[0].manifest.get(name) for name in _SAME):
            raise InputError(f"{other.folder}: was cooked from another graph than {found[0].folder}, or is another part of it")
    owners = _owners(found, frames)
    shared = _shared(found, owners)
    kept = {name: value for name, value in found[0].manifest.items() if name not in ("format", "state_format")}
    # it has no checkpoints: a cook that resumed it would begin at the first frame, and is refused for the name of its part
    revision = _open(Path(out), {**kept, "frames": [*frames], "part": "joined"}, owners, shared)
    total = frames[1] - frames[0] + 1
    try:
        done = set(revision.committed())
        for count, frame in enumerate(range(frames[0], frames[1] + 1), start=1):
            if frame not in done:
                _join_frame(revision, frame, owners[frame], shared, last=frame == frames[1])
            if progress is not None:
                progress(count, total)
        folder = revision.folder
    finally:
        if not revision.discard_if_empty():
            revision.close()
    return folder


_Owners = Mapping[int, tuple[_Part, Mapping[str, Any]]]
"""By frame, the part that holds it and its record."""


def _folders(parts: Sequence[str | Path]) -> list[Path]:
    """Return the revisions of the parts: of each root the newest."""
    found = []
    for place in map(Path, parts):
        if not place.is_dir():
            raise InputError(f"{place}: no such folder; give the folders of cooks with --part frames")
        roots = (
            [place]
            if (place / "cook.json").is_file() or list_revisions(place)
            else sorted(p for p in place.iterdir() if p.is_dir())
        )
        for root in roots:
            revisions = [root] if (root / "cook.json").is_file() else list_revisions(root)[-1:]
            found.extend(revisions)
    return found


def _owners(parts: Sequence[_Part], frames: tuple[int, int]) -> _Owners:
    owners: dict[int, tuple[_Part, Mapping[str, Any]]] = {}
    for frame in range(frames[0], frames[1] + 1):
        for part in parts:
            record = part.record(frame)
            if record is not None:
                owners[frame] = part, record
                break
        else:
            raise InputError(f"{parts[0].folder.parent.parent}: no part holds frame {frame}; cook it with --part frames --resume")
    return owners


def _shared(parts: Sequence[_Part], owners: _Owners) -> dict[str, list[str]]:
    """Return by cache the files that each frame replaces; other files of that kind cannot be joined."""
    held = {name for _, record in owners.values() for name in record["files"]}
    caches = sorted({match[1] for name in held if (match := _LAYER.fullmatch(name))})
    there = held | {still for name in caches if parts[0].files.size(still := _still(name)) is not None}
    shared = {name: sorted(there & set(_ties(name))) for name in caches}
    known = {file for files in shared.values() for file in files}
    seen: set[str] = set()
    for _, record in owners.values():
        again = sorted((seen & record["files"].keys()) - known)
        if again:
            raise OutputError(
                f"{parts[0].folder}: {again[0]} is written by every frame, so parts cannot be joined; cook the shot in one piece"
            )
        seen |= record["files"].keys()
    return shared


def _ties(name: str) -> list[str]:
    """Return the files of a cache that are not of one frame alone."""
    from usd_io.stage import CacheNames

    names = CacheNames(name)
    return [names.stage, names.manifest, names.set, names.still]


def _still(name: str) -> str:
    """Return the file of the colliders that never move, which every part writes with its first frame."""
    return _ties(name)[-1]


def _open(root: Path, manifest: Mapping[str, Any], owners: _Owners, shared: Mapping[str, Sequence[str]]) -> Revision:
    """Return the revision to write to: a new one, or the newest with the frames that are joined as they would be today."""
    revision = Revision.resume(root, manifest)
    if revision is None:
        return Revision.create(root, manifest)
    if any(revision.manifest.get(name) != manifest.get(name) for name in (*_SAME, "frames")):
        revision.close()
        return Revision.create(root, manifest)
    ties = {file for files in shared.values() for file in files}
    good = None
    for frame in sorted(owners):
        record, theirs = revision.record(frame), owners[frame][1]["files"]
        own = {name: facts for name, facts in (record or {"files": {}})["files"].items() if name not in ties}
        same = own == {name: facts for name, facts in theirs.items() if name not in ties}
        if record is None or not same or any(revision.files.size(name) != facts["bytes"] for name, facts in own.items()):
            break
        if frame == max(owners) and any(revision.files.size(name) is None for name in ties):
            break
        good = frame
    revision.roll_back(good)
    return revision


def _join_frame(
    revision: Revision, frame: int, owner: tuple[_Part, Mapping[str, Any]], shared: Mapping[str, Any], last: bool
) -> None:
    part, record = owner
    ties = {file for files in shared.values() for file in files}
    transaction = revision.begin(frame)
    try:
        for name in sorted(record["files"]):
            if name not in ties:
                path = transaction.path(name)
                _bring(part, name, path)
                transaction.finished(path)
        if frame == min(transaction.frames()):
            for name in sorted(ties & {_still(name) for name in shared}):
                _bring(part, name, transaction.path(name))
        if last:
            for name in shared:
                _tie(revision, transaction, name, part)
        made = transaction.described()
        for name, facts in record["files"].items():
            if name not in ties and made[name] != facts:
                raise InputError(f"{part.folder / name}: is not what its cook wrote; cook the frame again with --resume")
        transaction.commit(**record["facts"])
    except BaseException:
        transaction.abort()
        raise


def _bring(part: _Part, name: str, path: Path) -> None:
    """Link a file of a part to a place, or copy it."""
    if part.files.size(name) is None:
        raise InputError(f"{part.folder / name}: is missing; cook the frame again with --resume")
    with contextlib.suppress(OSError, NotImplementedError):
        os.link(part.folder / name, path, follow_symlinks=False)
        return
    with writing(str(path)), part.files.stream(name) as source, open(path, "xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _tie(revision: Revision, transaction: FrameTransaction, name: str, part: _Part) -> None:
    """Write the root stage of a cache over all frames, with its manifest of clips, its set, and what every part holds alike."""
    from usd_io import require_usd

    require_usd()
    from usd_io.stage import CacheNames, read_layer, root_layers, root_so_far, still_prims

    names, number = CacheNames(name), transaction.number
    first = file_frame(min(transaction.frames()), revision.offset)
    fps, made_by = float(revision.manifest["graph"]["settings"]["fps"]), provenance(transaction)
    layer = read_layer(transaction.path(names.layer(number)))
    before = root_so_far(names, revision.folder, first, number - 1, fps, made_by)
    still = still_prims(read_layer(part.folder / names.still) if part.files.size(names.still) is not None else None)
    around = root_layers(names, layer, first, number, fps, made_by, before, still)
    export_layer(around.manifest, transaction.path(names.manifest))
    export_layer(around.set, transaction.path(names.set))
    export_layer(around.root, transaction.path(names.stage))
