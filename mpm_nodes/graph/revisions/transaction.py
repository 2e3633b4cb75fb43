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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mpm_nodes.data import OutputError
from mpm_nodes.graph.files.archive import write_archive
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.files.names import checked_parts, temporary
from mpm_nodes.graph.revisions.background import Background, Task
from mpm_nodes.graph.revisions.checkpoints import header_of
from mpm_nodes.graph.revisions.records import RESERVED, sealed_record

__all__ = ["FrameTransaction", "file_frame", "frame_offset"]


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


# ---------------------------------------------------------------- one frame
class Place(Protocol):
    """What a transaction needs of the revision folder that its frame belongs to."""

    folder: Path
    files: Folder
    manifest: Mapping[str, Any]

    @property
    def offset(self) -> int:
        """Added to frame numbers in file names."""
        ...

    def record(self, frame: int) -> dict[str, Any] | None:
        """Return the commit record of a frame, None when there is none that counts."""
        ...

    def committed(self) -> list[int]:
        """Return the frames that have a commit record, ascending."""
        ...

    def record_name(self, frame: int) -> str:
        """Return the name of the commit record of `frame`."""
        ...

    def checkpoint_name(self, frame: int, node: str) -> str:
        """Return the name of a node's checkpoint after `frame`."""
        ...

    def finish(self, record: Mapping[str, Any], crash: Callable[[str], None]) -> None:
        """Rename the files of a written record to their places, the record last."""
        ...


@dataclass
class FrameTransaction:
    """The files of one frame, written under temporary names until `commit`.

    Attributes:
        revision: The revision folder that the frame belongs to.
        frame: Frame number in the graph.
        crash: Called with a label between the steps of a commit; tests raise or die in it.
        reserved: How often a path was given out.
    """

    revision: Place
    frame: int
    crash: Callable[[str], None] = lambda label: None
    reserved: int = 0
    _files: dict[str, Path] = field(default_factory=dict)
    _facts: dict[str, Task[dict[str, Any]]] = field(default_factory=dict)
    _states: dict[str, Any] = field(default_factory=dict)
    _worker: Background = field(default_factory=Background)

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
        if parts[0].lower() in RESERVED:
            raise OutputError(f"output file {str(relative)!r}: {parts[0]!r} belongs to the cook itself; choose another name")
        self.reserved += 1
        return self._reserve(parts)

    def _reserve(self, parts: tuple[str, ...]) -> Path:
        name = "/".join(parts)
        with writing(str(self.folder / name)):
            files = self.revision.files
            if len(parts) > 1:
                files.make("/".join(parts[:-1]))
            if (self.folder / name).is_symlink():
                raise OutputError(f"output file {name!r}: {self.folder / name} is a link; remove it, links are not followed")
            if name not in self._files:  # what lies there is nobody's: libraries open it by its path and would follow a link
                files.unlink(temporary(name))
        self._files[name] = self.folder / temporary(name)
        self._facts.pop(name, None)
        return self._files[name]

    def finished(self, path: Path) -> None:
        """Note that the file at `path`, from `path()`, is whole: it is digested and synced while the node goes on."""
        name = next(name for name, temporary in self._files.items() if temporary == path)
        self._facts[name] = self._worker.start(functools.partial(self._describe, name, path))

    def begin_checkpoint(self, node: str, value: Any) -> None:
        """Begin to write the value of a sequential node; it must not change before `commit` or `abort` returns."""
        name = self.revision.checkpoint_name(self.frame, node)
        path = self._reserve(checked_parts(name))
        facts, arrays = value.to_arrays()
        header = header_of(node, self.frame, value, facts)
        self._states[node] = value
        self._facts[name] = self._worker.start(functools.partial(self._write_state, name, path, header, arrays))

    def adopt(self, name: str, facts: dict[str, Any]) -> None:
        """Let a file belong to the frame that another rank has written under its temporary name, with its size and digest."""
        self._files[name] = self.folder / temporary(name)
        self._facts[name] = self._worker.start(lambda: facts)

    def checkpoint(self, states: Mapping[str, Any]) -> None:
        """Write the values of the sequential nodes, by node id, so that a resumed cook can go on after this frame."""
        for node, value in states.items():
            if self._states.get(node) is not value:
                self.begin_checkpoint(node, value)

    def commit(self, **facts: Any) -> list[str]:
        """Make the frame exist; `facts` (JSON-able) are kept in its record. Return the files' names.

        Raises:
            OutputError: A reserved file was never written, or the disk is full. The frame then does not exist.
        """
        with writing(str(self.folder)):
            files = self.described()
            self.crash("synced")
            record = self.write_record(files, facts)
            self.crash("recorded")
            self.revision.finish(record, self.crash)
        return [name for name in files if not name.startswith("checkpoints/")]

    def described(self) -> dict[str, dict[str, Any]]:
        """Wait until every file is written and synced; return their sizes and digests by name."""
        self._worker.settle()
        written = {name: task.result() for name, task in self._facts.items()}
        return {name: written.get(name) or self._describe(name, path) for name, path in sorted(self._files.items())}

    def write_record(self, files: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write the frame's record under its temporary name and return it."""
        record = sealed_record(frame=self.frame, files=files, graph_digest=self.revision.manifest["graph_digest"], facts=facts)
        self.revision.files.write_json(temporary(self.revision.record_name(self.frame)), record)
        self.revision.files.sync("frames")
        return record

    def _describe(self, name: str, path: Path) -> dict[str, Any]:
        """Sync a written file and return its size and digest."""
        if self.revision.files.size(temporary(name)) is None:
            raise OutputError(f"frame {self.frame}: {name} was announced but never written; the node that writes it is at fault")
        return self.revision.files.facts(temporary(name), sync=True)

    def abort(self) -> None:
        """Remove the temporary files; what was committed before is untouched."""
        self._worker.rest()  # a file that is being written is written to its end, others are not begun
        for path in self._files.values():
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._files.clear()

    def _write_state(self, name: str, path: Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Write a checkpoint, sync it, and return its size and digest."""
        with writing(str(path)):
            digest = write_archive(path, header, arrays, cached=False)
            return {"bytes": self.revision.files.synced_size(temporary(name)), "sha256": digest}
