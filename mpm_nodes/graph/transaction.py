"""A frame on disk is all there or not there: revision folders, frame transactions, commit records, resume, clean.

Layout below an output root::

    r001/                         one revision: one cook, and the cooks that resumed it
      cook.json                   manifest: graph, overrides, versions, frame offset
      cook.lock                   held (by the operating system) while a cook writes here
      frames/0007.commit.json     frame 7 exists: files with sizes and digests, checkpoint, versions
      checkpoints/0007.sim.state  value of the sequential node "sim" after frame 7
      ...                         whatever the nodes write

A commit is a redo log. Every file is written beside its place under a temporary name and synced; then the record is
written and synced under its temporary name; then the files are renamed, the record last. A cook that dies before the
record is complete leaves temporary files that resume deletes; one that dies later left all that resume needs to finish.

Checkpoints are written in a thread while the nodes behind the solve are cooked, which leave a core free. Nothing is
written during the next frame's solve: that keeps every core busy, and a writer beside it costs as much as one before it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import mpm_nodes
from mpm_nodes.data import OutputError
from mpm_nodes.graph.archive import write_archive

if TYPE_CHECKING:
    from mpm_nodes.graph.revision import Revision

__all__ = ["FrameTransaction", "file_frame", "frame_offset"]

TEMPORARY = ".tmp-"
"""Prefix of a file that is not yet committed; a prefix, since libraries choose the format by the extension."""

RECORD_FORMAT = "mpm_nodes.commit"
STATE_FORMAT = 1
"""Raise when checkpoints of an older version can no longer be continued."""

_DEVICE_NAMES = {"con", "prn", "aux", "nul", *(f"{kind}{n}" for kind in ("com", "lpt") for n in range(1, 10))}
_RESERVED = {"frames", "checkpoints", "cook.json", "cook.lock"}


# ---------------------------------------------------------------- frame numbers
def frame_offset(first: int) -> int:
    """Return what is added to the frames of a cook that starts at `first`, so that no file number is negative."""
    return max(0, -first)


def file_frame(frame: int, offset: int) -> int:
    """Return the number that stands in the names of the files of `frame`.

    Raises:
        OutputError: The number would be negative: consumers count digits and know no minus sign.
    """
    if frame + offset < 0:
        raise OutputError(
            f"frame {frame}: with the stored offset {offset} its files would be numbered {frame + offset}; "
            f"start at frame {-offset} or later, or cook without --resume so that a new offset is stored"
        )
    return frame + offset


# ---------------------------------------------------------------- small file operations
def writing(what: str) -> contextlib.AbstractContextManager[None]:
    """Turn the operating system's errors inside the block into `OutputError` saying `what` could not be written."""
    return _Writing(what)


class _Writing(contextlib.AbstractContextManager):
    def __init__(self, what: str) -> None:
        self.what = what

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OSError):
            raise output_error(self.what, error) from error


def output_error(what: str, error: OSError) -> OutputError:
    """Return the `OutputError` for an operating system error met while writing `what`."""
    where = error.filename or what
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"{where}: the disk is full; free some space, then continue with --resume")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"{where}: cannot be written (permission denied); choose another folder with --out")
    return OutputError(f"{where}: cannot be written ({error.strerror or error}); choose another folder with --out")


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows has no handle to sync a folder by
    handle = os.open(path, os.O_RDONLY if path.is_dir() or os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def digest_file(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        json.dump(document, stream, indent=1, sort_keys=True)
        stream.write("\n")
        stream.flush()
        os.fsync(stream.fileno())


def replace_json(path: Path, document: Mapping[str, Any]) -> None:
    temporary = path.with_name(TEMPORARY + path.name)
    write_json(temporary, document)
    os.replace(temporary, path)
    sync(path.parent)


def _seal(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record with a digest of itself, so that half a record is never taken for a whole one."""
    body = json.dumps(record, sort_keys=True).encode()
    return {**record, "seal": hashlib.sha256(body).hexdigest()}


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the commit record at `path`, or None when it is missing, cut short or altered."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        body = {name: value for name, value in record.items() if name != "seal"}
        good = record.get("format") == RECORD_FORMAT and _seal(body) == record
    except (OSError, ValueError, AttributeError):
        return None
    return record if good else None


# ---------------------------------------------------------------- one frame
@dataclass
class FrameTransaction:
    """The files of one frame, written under temporary names until `commit`.

    Attributes:
        revision: The revision folder that the frame belongs to.
        frame: Frame number in the graph.
        crash: Called with a label between the steps of a commit; tests raise or die in it.
        reserved: How often a path was given out.
    """

    revision: Revision
    frame: int
    crash: Callable[[str], None] = lambda label: None
    reserved: int = 0
    _files: dict[str, Path] = field(default_factory=dict)
    _facts: dict[str, Future[dict[str, Any]]] = field(default_factory=dict)
    _states: dict[str, Any] = field(default_factory=dict)
    _worker: ThreadPoolExecutor | None = None

    @property
    def number(self) -> int:
        """Number that stands in file names: the frame plus the offset stored in the manifest."""
        return file_frame(self.frame, self.revision.offset)

    @property
    def folder(self) -> Path:
        """Folder that relative file names are resolved against: the revision."""
        return self.revision.folder

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Provenance: graph document, overrides, package version (`cook.json`)."""
        return self.revision.manifest

    def frames(self) -> list[int]:
        """Return the frames that exist once this one is committed, ascending."""
        return sorted({*self.revision.committed(), self.frame})

    def path(self, relative: str | Path) -> Path:
        """Return where to write the file that will be `relative` (to the revision folder) after the commit.

        The folder exists; the name is temporary, with the same extension. A file of an earlier frame may be named again
        (the stage that ties all frames together): the commit replaces it.

        Raises:
            OutputError: The name is absolute, climbs out, passes through a link, or is a device's or one of our own.
        """
        parts = checked_parts(str(relative))
        if parts[0].lower() in _RESERVED:
            raise OutputError(
                f"output file {str(relative)!r}: {parts[0]!r} belongs to the cook itself; choose another name"
            )
        self.reserved += 1
        return self._reserve(parts)

    def _reserve(self, parts: tuple[str, ...]) -> Path:
        final = self.folder.joinpath(*parts)
        with writing(str(final)):
            step = self.folder
            for part in parts:
                step = step / part
                if step.is_symlink():
                    raise OutputError(
                        f"output file {'/'.join(parts)!r}: {step} is a link; remove it, links are not followed"
                    )
            final.parent.mkdir(parents=True, exist_ok=True)
        temporary = final.with_name(TEMPORARY + final.name)
        self._files["/".join(parts)] = temporary
        self._facts.pop("/".join(parts), None)
        return temporary

    def finished(self, path: Path) -> None:
        """Note that the file at `path`, from `path()`, is whole: it is digested and synced while the node goes on."""
        name = next(name for name, temporary in self._files.items() if temporary == path)
        self._facts[name] = self._in_background(functools.partial(self._describe, name, path))

    def begin_checkpoint(self, node: str, value: Any) -> None:
        """Begin to write the value of a sequential node; it must not change before `commit` or `abort` returns."""
        name = self.revision.checkpoint_name(self.frame, node)
        path = self._reserve(checked_parts(name))
        facts, arrays = value.to_arrays()
        header = {"node": node, "frame": self.frame, "format": getattr(value, "STATE_FORMAT", 1), "facts": facts}
        self._states[node] = value
        self._facts[name] = self._in_background(functools.partial(_write_state, path, header, arrays))

    def checkpoint(self, states: Mapping[str, Any]) -> None:
        """Write the values of the sequential nodes, by node id, so that a resumed cook can go on after this frame."""
        for node, value in states.items():
            if self._states.get(node) is not value:
                self.begin_checkpoint(node, value)

    def _in_background(self, work: Callable[[], dict[str, Any]]) -> Future[dict[str, Any]]:
        """Run `work` in this frame's one thread, after what was given to it before."""
        self._worker = self._worker or ThreadPoolExecutor(1, "frame")
        return self._worker.submit(work)

    def commit(self, **facts: Any) -> list[str]:
        """Make the frame exist; `facts` (JSON-able) are kept in its record. Return the files' names.

        Raises:
            OutputError: A reserved file was never written, or the disk is full. The frame then does not exist.
        """
        with writing(str(self.folder)):
            written = {name: future.result() for name, future in self._facts.items()}
            self._rest()
            files = {
                name: written.get(name) or self._describe(name, temporary)
                for name, temporary in sorted(self._files.items())
            }
            self.crash("synced")
            record = _seal(
                {
                    "format": RECORD_FORMAT,
                    "frame": self.frame,
                    "files": files,
                    "state_format": STATE_FORMAT,
                    "package_version": mpm_nodes.__version__,
                    "graph_digest": self.revision.manifest["graph_digest"],
                    "facts": facts,
                }
            )
            final = self.revision.record_path(self.frame)
            write_json(final.with_name(TEMPORARY + final.name), record)
            sync(final.parent)
            self.crash("recorded")
            self.revision.finish(record, self.crash)
        return [name for name in files if not name.startswith("checkpoints/")]

    def _describe(self, name: str, temporary: Path) -> dict[str, Any]:
        """Sync a written file and return its size and digest."""
        if not temporary.is_file():
            raise OutputError(
                f"frame {self.frame}: {name} was announced but never written; the node that writes it is at fault"
            )
        sync(temporary)
        return {"bytes": temporary.stat().st_size, "sha256": digest_file(temporary)}

    def abort(self) -> None:
        """Remove the temporary files; what was committed before is untouched."""
        self._rest()
        for temporary in self._files.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        self._files.clear()

    def _rest(self) -> None:
        """End the thread; a file that it is writing is written to its end, others are not begun."""
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)
            self._worker = None


def _write_state(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Write a checkpoint, sync it, and return its size and digest."""
    with writing(str(path)):
        digest = write_archive(path, header, arrays, cached=False)
        sync(path)
        return {"bytes": path.stat().st_size, "sha256": digest}


def checked_parts(relative: str) -> tuple[str, ...]:
    """Return the parts of a relative file name, or raise `OutputError` when it could leave its folder or harm it."""

    def refuse(why: str) -> OutputError:
        return OutputError(f"output file {relative!r}: {why}; give a name relative to the output folder")

    windows = PureWindowsPath(relative)
    parts = PurePosixPath(relative.replace("\\", "/")).parts
    if windows.drive or windows.root or relative.startswith("/"):
        raise refuse("absolute names are refused")
    if not parts or ".." in parts:
        raise refuse("names that are empty or climb with '..' are refused")
    for part in parts:
        if part.split(".")[0].lower() in _DEVICE_NAMES:
            raise refuse(f"{part!r} is a device name")
        if part.startswith(TEMPORARY) or re.search(r'[<>:"|?*\x00-\x1f]', part) or part != part.rstrip(". "):
            raise refuse(f"{part!r} is no portable file name")
    return parts
