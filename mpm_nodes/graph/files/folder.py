"""Files of one folder by names relative to it: no step and no file on the way may be a link, whoever put it there.

Where the system can open relative to a folder (`openat` with O_NOFOLLOW), every step is opened and held while the next one is
taken: what is swapped meanwhile is met as it is, never followed. Elsewhere (Windows) every step is looked at first, and links,
junctions and other reparse points are refused.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from mpm_nodes.data import OutputError
from mpm_nodes.graph.files.names import temporary

__all__ = ["Folder", "holds_json", "json_bytes", "refuse_foreign", "replace_named"]

HELD = hasattr(os, "O_NOFOLLOW") and {os.open, os.stat, os.unlink, os.mkdir, os.rename} <= os.supports_dir_fd
"""Whether steps are held open; else they are looked at."""
_NOFOLLOW = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NONBLOCK"))
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of a document's file: each document has one text."""
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode("utf-8")


class Folder:
    """A folder whose own place was chosen by the user; nothing below it is followed out of it.

    Names are relative, with "/" between their parts.

    Raises:
        OutputError: A step of a name is a link or no folder, or the file is not a regular one.
        OSError: As the system says.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    # ------------------------------------------------------------ reading
    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """Return a descriptor of a regular file; with os.O_CREAT it is made with `mode`."""
        with self._place(name) as (place, last):
            self._refuse_link(place, last, name)
            handle = os.open(last, flags | _NOFOLLOW, mode, dir_fd=place)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OutputError(f"{self.path / name}: is not a regular file; remove it")
        return handle

    def stream(self, name: str) -> BufferedReader:
        """Open a file for reading."""
        return open(self.open(name), "rb")

    def read(self, name: str, largest: int = 1 << 28) -> bytes:
        """Return the bytes of a file; ValueError when it has more than `largest`."""
        with self.stream(name) as stream:
            data = stream.read(largest + 1)
        if len(data) > largest:
            raise ValueError(f"more than {largest} bytes")
        return data

    def facts(self, name: str, sync: bool = False) -> dict[str, Any]:
        """Return size [bytes] and SHA-256 of a file; with `sync` it is forced to disk first."""
        if sync:
            self.synced_size(name)
        with self.stream(name) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return {"bytes": os.fstat(stream.fileno()).st_size, "sha256": digest}

    def synced_size(self, name: str) -> int:
        """Force a file to disk and return its size [bytes]."""
        handle = self.open(name, os.O_RDWR if os.name == "nt" else os.O_RDONLY)  # Windows syncs only what may be written
        try:
            os.fsync(handle)
            return os.fstat(handle).st_size
        finally:
            os.close(handle)

    def size(self, name: str) -> int | None:
        """Return the size of a regular file [bytes]; None where there is none: nothing, something else, or behind a link."""
        try:
            with self._place(name) as (place, last):
                found = os.stat(last, dir_fd=place, follow_symlinks=False)
        except (OSError, OutputError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def names(self, name: str = "") -> list[str]:
        """Return the names of the regular files in a folder below this one, sorted; none when it is missing."""
        try:
            with self._place(f"{name}/." if name else ".") as (place, _):
                with os.scandir(self.path / name if place is None else place) as entries:
                    return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        except FileNotFoundError:
            return []

    # ------------------------------------------------------------ writing
    def write_json(self, name: str, document: Mapping[str, Any]) -> None:
        """Write a new file and sync it; what had its name is removed, not written to."""
        self.unlink(name)
        with open(self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
            stream.write(json_bytes(document))
            stream.flush()
            os.fsync(stream.fileno())

    def replace_json(self, name: str, document: Mapping[str, Any]) -> None:
        """Write a file under its temporary name, then give it its own, and sync both."""
        self.write_json(temporary(name), document)
        self.finish(name)
        self.sync(name.rpartition("/")[0])

    def replace(self, name: str, data: bytes, mode: int | None = None) -> None:
        """Write a file under its temporary name, then give it its own; what cannot be written leaves nothing behind.

        `mode` are the permissions that it gets; None leaves them to the system.
        """
        part = temporary(name)
        self.unlink(part)
        try:
            with open(self.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600), "wb") as stream:
                stream.write(data)
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(stream.fileno(), mode)
            self.finish(name)
        except OSError:
            self.unlink(part)
            raise

    def finish(self, name: str) -> None:
        """Give the file that has the temporary name of `name` its own; a link that has that name is replaced, not followed."""
        with self._place(temporary(name)) as (place, last):
            self._refuse_link(place, last, temporary(name))
            final = name.rpartition("/")[2] if place is not None else str(self.path / name)
            os.replace(last, final, src_dir_fd=place, dst_dir_fd=place)

    def unlink(self, name: str) -> None:
        """Remove a file, or a link itself; it may be missing."""
        with contextlib.suppress(FileNotFoundError), self._place(name) as (place, last):
            os.unlink(last, dir_fd=place)

    def make(self, name: str) -> None:
        """Make a folder below this one with those above it; they may be there."""
        parts = name.split("/")
        for count in range(1, len(parts) + 1):
            with self._place("/".join(parts[:count])) as (place, last), contextlib.suppress(FileExistsError):
                os.mkdir(last, dir_fd=place)
        with self._place(f"{name}/."):
            pass  # every step is a folder now, and none a link

    def sync(self, name: str = "") -> None:
        """Force the names in a folder below this one to disk, where the system knows how."""
        with self._place(f"{name}/." if name else ".") as (place, _):
            if place is not None:
                os.fsync(place)

    # ------------------------------------------------------------ the way there
    @contextlib.contextmanager
    def _place(self, name: str) -> Iterator[tuple[int | None, str]]:
        """Give the folder that holds a name as an open descriptor, and the name in it; or None and the whole path."""
        *steps, last = name.split("/")
        if any(part in ("", ".", "..") or set(part) & set("\\\0") for part in steps) or last in ("", "..") or "\0" in last:
            raise OutputError(f"{name!r}: is not a name below {self.path}")
        if not HELD:
            yield None, self._looked_at(steps, last)
            return
        place = self._step(None, str(self.path), self.path)
        try:
            for count, step in enumerate(steps, 1):
                above, place = place, self._step(place, step, self.path.joinpath(*steps[:count]))
                os.close(above)
            yield place, last
        finally:
            os.close(place)

    @staticmethod
    def _step(place: int | None, name: str, path: Path) -> int:
        try:
            return os.open(name, _DIRECTORY, dir_fd=place)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            if stat.S_ISLNK(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode):
                raise _is_link(path) from error
            raise OutputError(f"{path}: is not a folder; remove it") from error

    def _looked_at(self, steps: list[str], last: str) -> str:
        path = self.path
        for step in ("", *steps):
            path = path / step
            found = os.lstat(path)
            if stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_reparse_tag", 0)):
                raise _is_link(path)
            if not stat.S_ISDIR(found.st_mode):
                raise OutputError(f"{path}: is not a folder; remove it")
        return str(path / last)

    def _refuse_link(self, place: int | None, last: str, name: str) -> None:
        """Refuse a link by name; where steps are held, opening refuses one that appears after this look."""
        try:
            found = os.stat(last, dir_fd=place, follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISLNK(found.st_mode) or bool(getattr(found, "st_reparse_tag", 0)):
            raise _is_link(self.path / name)


def replace_named(path: str | Path, data: bytes, ours: Callable[[bytes], bool], make: bool = False) -> Path:
    """Write a file that the user named; one that is there is replaced only if we wrote it, and keeps its permissions.

    A pipe, a terminal or another device is written to, and stays what it is.

    Args:
        path: The file.
        data: What it shall hold.
        ours: Returns whether a file with these bytes is one that we wrote.
        make: Make the folders above it.

    Raises:
        OutputError: It is a link to a file, or a folder, is not ours, or cannot be written.
    """
    path = Path(path)
    try:
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
        files = Folder(path.parent.resolve())
        if _is_stream(path):
            handle = os.open(path, os.O_WRONLY | _NOFOLLOW & ~getattr(os, "O_NOFOLLOW", 0))  # a pipe that nobody reads is an error
            os.set_blocking(handle, True)
            with open(handle, "wb") as stream:
                stream.write(data)
            return path
        refuse_foreign(path, ours)
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        files.replace(path.name, data, mode)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}); choose another folder") from error
    return path


def refuse_foreign(path: Path, ours: Callable[[bytes], bool]) -> None:
    """Refuse the name of a file to write where it is a link, a folder, or a file that we did not write; see `replace_named`.

    Raises:
        OutputError: It is one of these, or cannot be read.
    """
    try:
        if not os.path.lexists(path) or _is_stream(path):
            return
        with Folder(path.parent.resolve()).stream(path.name) as stream:
            if not ours(stream.read()):
                raise OutputError(f"{path}: was not written by mpm-nodes; choose another name, or remove it")
    except OSError as error:
        raise OutputError(f"{path}: cannot be read ({error.strerror or error}); choose another name") from error


def _is_stream(path: Path) -> bool:
    """Whether a path is a pipe, a terminal or another device, which takes what is written and has nothing to lose."""
    return path.exists() and not path.is_file() and not path.is_dir()


def holds_json(data: bytes, like: Callable[[Any], bool]) -> bool:
    """Return whether a file's bytes are JSON of a kind."""
    try:
        return bool(like(json.loads(data)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _is_link(path: Path) -> OutputError:
    return OutputError(f"{path} is a link; remove it, links are not followed")
