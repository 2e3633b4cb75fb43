"""Revision folders: manifest, what a cook that died left behind, how far back a resume goes, which checkpoints stay."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.files.names import TEMPORARY, temporary
from mpm_nodes.graph.revisions.checkpoints import are_held, read_state, state_name
from mpm_nodes.graph.revisions.lock import FolderLock
from mpm_nodes.graph.revisions.records import MANIFEST_FORMAT, STATE_FORMAT, read_manifest, read_record
from mpm_nodes.graph.revisions.transaction import FrameTransaction, file_frame, writing

__all__ = ["TAKEN", "Revision", "for_other_settings", "latest_revision", "list_revisions"]

TAKEN = "taken"
"""Entry of a manifest: the revision that the first frames came from, the last of them, and what its states were made of."""
KEEP_LAST = 2
KEEP_EVERY = 24
_REVISION = re.compile(r"r(\d{3,9})")
_RECORD = re.compile(r"(\d{4,10})\.commit\.json")
STATE = re.compile(r"(\d{4,10})\.[^/]+\.state")
_PROBE = re.compile(rf"{re.escape(TEMPORARY)}probe-\d+")
_OWN = {"cook.json", "cook.lock"}


def list_revisions(root: Path) -> list[Path]:
    """Return the revision folders below an output root, oldest first."""
    if not root.is_dir():
        return []
    folders = (path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    return sorted((path for path in folders if _REVISION.fullmatch(path.name)), key=lambda path: int(path.name[1:]))


def latest_revision(folder: Path) -> Path:
    """Return `folder` when it is a revision, else its newest revision.

    Raises:
        InputError: There is none.
    """
    if (folder / "cook.json").is_file():
        return folder.resolve() if folder.is_symlink() else folder  # the user's own link is not a stranger's
    revisions = list_revisions(folder)
    if not revisions:
        raise InputError(f"{folder}: holds no cook (no rNNN folder with a cook.json); give the folder named with --out")
    return revisions[-1]


def check_writable(root: Path) -> None:
    """Raise `OutputError` when revisions cannot be made in `root`; makes the folder itself when it is missing."""
    with writing(str(root)):
        if root.exists() and not root.is_dir():
            raise OutputError(f"{root}: is a file; give a folder with --out")
        root.mkdir(parents=True, exist_ok=True)
        files, probe = Folder(root.resolve()), f"{TEMPORARY}probe-{os.getpid()}"
        for left in files.names():
            if _PROBE.fullmatch(left):  # of a process that was killed here; a living one does not mind
                files.unlink(left)
        os.close(files.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        files.unlink(probe)


class Revision:
    """One revision folder, locked while this object is open.

    Attributes:
        folder: The folder (`.../r001`).
        files: The files in it, by names that are never followed out of it.
        manifest: What `cook.json` holds.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], lock: FolderLock) -> None:
        self.folder = folder
        self.files = Folder(folder)
        self.manifest = manifest
        self._lock = lock

    # ------------------------------------------------------------ making and finding
    @classmethod
    def create(cls, root: Path, manifest: Mapping[str, Any]) -> Revision:
        """Make the next revision below `root` and write its manifest."""
        check_writable(root)
        with writing(str(root)):
            number = 1 + max((int(path.name[1:]) for path in list_revisions(root)), default=0)
            while True:
                folder = root / f"r{number:03d}"
                try:
                    folder.mkdir()
                    break
                except FileExistsError:
                    number += 1
            return cls._begin(folder, manifest, FolderLock(folder))

    @classmethod
    def open(cls, folder: Path) -> Revision:
        """Open a revision folder, and finish or remove what a dead cook left.

        Raises:
            OutputError: Another cook is writing it, or it is not a folder of ours.
            InputError: Its manifest is damaged.
        """
        lock = FolderLock(folder)
        try:
            stored = read_manifest(Folder(folder))
            if stored is None:
                raise InputError(f"{folder}: holds no cook.json, so no cook began in it; choose another revision")
            revision = cls(folder, stored, lock)
            revision.recover()
        except BaseException:
            lock.release()
            raise
        return revision

    @classmethod
    def resume(cls, root: Path, manifest: Mapping[str, Any], name: str = "") -> Revision | None:
        """Open a revision below `root` (the newest unless named), finish or remove what a dead cook left; None when there is none.

        Raises:
            OutputError: Another cook is writing it, it holds links, or it is not a folder of ours.
            InputError: There is none of that name, its manifest is damaged, or a record names files that are not its own.
        """
        revisions = list_revisions(root)
        if name:
            folder = root / name
            if folder.is_symlink() or not folder.is_dir():
                raise InputError(f"{root}: holds no revision {name!r}; it has {', '.join(each.name for each in revisions[-5:])}")
        elif not revisions:
            return None
        else:
            folder = revisions[-1]
        lock = FolderLock(folder)
        try:
            stored = read_manifest(Folder(folder))
            if stored is None:
                _refuse_foreign(folder)
                return cls._begin(folder, manifest, lock)
            revision = cls(folder, stored, lock)
            revision.recover()
        except BaseException:
            lock.release()
            raise
        return revision

    @classmethod
    def _begin(cls, folder: Path, manifest: Mapping[str, Any], lock: FolderLock) -> Revision:
        with writing(str(folder)):
            files = Folder(folder)
            files.make("frames")
            files.replace_json("cook.json", {"format": MANIFEST_FORMAT, "state_format": STATE_FORMAT, **manifest})
            Folder(folder.parent.resolve()).sync()
        return cls(folder, read_manifest(files) or {}, lock)

    def update(self, **facts: Any) -> None:
        """Change facts of the manifest."""
        if any(self.manifest.get(name) != value for name, value in facts.items()):
            self.manifest = {**self.manifest, **facts}
            with writing(str(self.folder)):
                self.files.replace_json("cook.json", self.manifest)

    def close(self) -> None:
        """Let other cooks write this revision."""
        self._lock.release()

    def discard_if_empty(self, taken_too: bool = False) -> bool:
        """Remove a revision in which no frame was ever committed and that holds nothing else; say whether it was removed.

        Args:
            taken_too: Whether frames that were taken from another revision do not count.
        """
        if taken_too and self.taken is not None and not any(frame > self.taken for frame in self.committed()):
            self.roll_back(None)
        if self.committed():
            return False
        with contextlib.suppress(OSError, OutputError):
            for path in temporary_files(self.folder):
                self.files.unlink(path.relative_to(self.folder).as_posix())
        if _strangers(self.folder):
            return False
        self.close()
        with contextlib.suppress(OSError, OutputError):
            for name in _OWN:
                self.files.unlink(name)
            for base, folders, _ in os.walk(self.folder, topdown=False):
                for name in folders:
                    os.rmdir(os.path.join(base, name))
            os.rmdir(self.folder)
        return True

    # ------------------------------------------------------------ frames
    @property
    def offset(self) -> int:
        """Added to frame numbers in file names."""
        return int(self.manifest["frame_offset"])

    @property
    def taken(self) -> int | None:
        """Last frame that came from another revision, None where none did."""
        return self.manifest[TAKEN]["last"] if TAKEN in self.manifest else None

    def record_name(self, frame: int) -> str:
        """Return the name of the commit record of `frame`, relative to the revision."""
        return f"frames/{file_frame(frame, self.offset):04d}.commit.json"

    def committed(self) -> list[int]:
        """Return the frames that have a commit record, ascending."""
        numbers = (int(match[1]) for name in self.files.names("frames") if (match := _RECORD.fullmatch(name)))
        return sorted({number - self.offset for number in numbers})

    def record(self, frame: int) -> dict[str, Any] | None:
        """Return the commit record of `frame`, None when it is missing or altered.

        Raises:
            InputError: It names what no cook of ours would.
        """
        return read_record(self.files, self.record_name(frame), frame)

    def begin(self, frame: int, crash: Callable[[str], None] = lambda label: None) -> FrameTransaction:
        """Start the transaction of `frame`."""
        return FrameTransaction(self, frame, crash)

    def finish(self, record: Mapping[str, Any], crash: Callable[[str], None] = lambda label: None) -> None:
        """Rename the files of a written record to their places, those that replace older ones last, then the record."""
        names = sorted(record["files"], key=lambda name: (self.files.size(name) is not None, name))
        for name in names:
            if self.files.size(temporary(name)) is not None:
                self.files.finish(name)
                crash(f"renamed {name}")
        for folder in sorted({name.rpartition("/")[0] for name in names}):
            self.files.sync(folder)
        crash("before record")
        self.files.finish(self.record_name(record["frame"]))
        self.files.sync("frames")
        crash("committed")

    # ------------------------------------------------------------ after a death
    def recover(self) -> None:
        """Finish the commit that a cook died in, or remove its temporary files."""
        with writing(str(self.folder)):
            for name in self.files.names("frames"):
                match = _RECORD.fullmatch(name.removeprefix(TEMPORARY))
                if match is None or not name.startswith(TEMPORARY):
                    continue
                record = read_record(self.files, f"frames/{name}", int(match[1]) - self.offset)
                if record is not None and all(self._at_hand(*entry) for entry in record["files"].items()):
                    self.finish(record)
            for path in temporary_files(self.folder):
                self.files.unlink(path.relative_to(self.folder).as_posix())

    def _at_hand(self, name: str, facts: Mapping[str, Any]) -> bool:
        return self._matches(temporary(name), facts) or self._matches(name, facts)

    def _sized(self, name: str, facts: Mapping[str, Any]) -> bool:
        return self.files.size(name) == facts["bytes"]

    def _matches(self, name: str, facts: Mapping[str, Any]) -> bool:
        return self._sized(name, facts) and self.files.facts(name)["sha256"] == facts["sha256"]

    def resume_frame(self, states: Collection[str], first: int) -> int | None:
        """Return the last frame that a resumed cook can build on, None to start over at `first`.

        Frames count up to the first gap or damaged file; the last one is checked byte by byte, and must have a sound
        checkpoint of every node in `states`. That an earlier frame has none is not damage: it was not retained.
        """
        newest: dict[str, int] = {}
        shared: set[str] = set()
        good: list[tuple[int, dict[str, Any]]] = []
        committed = self.committed()
        for frame in committed:
            record = self.record(frame)
            if record is None or frame != first + len(good):
                break
            good.append((frame, record))
            shared.update(name for name in record["files"] if name in newest)
            newest.update(dict.fromkeys(record["files"], frame))
        replaced = shared if len(good) < len(committed) else set()  # by frames whose records cannot be read

        def own(frame: int, record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
            for name, facts in record["files"].items():
                if newest[name] == frame and name not in replaced and not name.startswith("checkpoints/"):
                    yield name, facts

        sound = [all(self._sized(*found) for found in own(*entry)) for entry in good]
        good = good[: sound.index(False)] if False in sound else good
        for frame, record in reversed(good):
            files = record["files"]
            checkpoints = are_held(files, file_frame(frame, self.offset), states) if states else []
            held = checkpoints is not None and all(self._matches(name, files[name]) for name in checkpoints)
            if held and all(self._matches(*found) for found in own(frame, record)):
                return frame
        return None

    def newest_state(self, states: Collection[str]) -> int | None:
        """Return the last frame with a record and a sound checkpoint of every node in `states`, whatever else is damaged."""
        for frame in reversed(self.committed()):
            files = (self.record(frame) or {"files": {}})["files"]
            names = are_held(files, file_frame(frame, self.offset), states) if states else []
            if files and names is not None and all(self._matches(name, files[name]) for name in names):
                return frame
        return None

    def roll_back(self, frame: int | None) -> list[int]:
        """Remove the frames after `frame` (all when None) with the files that only they hold; return which."""
        kept: set[str] = set()
        gone: list[int] = []
        for number in self.committed():
            if frame is not None and number <= frame:
                kept.update((self.record(number) or {"files": {}})["files"])
            else:
                gone.append(number)
        with writing(str(self.folder)):
            for number in reversed(gone):
                for name in (self.record(number) or {"files": {}})["files"]:
                    if name not in kept:
                        self.files.unlink(name)
                self.files.unlink(self.record_name(number))
        return gone

    # ------------------------------------------------------------ checkpoints
    def checkpoint_name(self, frame: int, node: str) -> str:
        """Return the name, relative to the revision, of the checkpoint of `node` after `frame`."""
        return state_name(file_frame(frame, self.offset), node)

    def load_checkpoint(self, frame: int, node: str, kind: Any) -> Any:
        """Return the value of the sequential node `node` after `frame`, built by `kind.from_arrays`.

        Raises:
            InputError: The file is damaged, or holds a state of another format than `kind` reads.
        """
        value = read_state(self.files, file_frame(frame, self.offset), node, kind)
        return for_other_settings(value) if frame == self.taken else value

    def retain(self, last: int = KEEP_LAST, every: int = KEEP_EVERY) -> None:
        """Delete checkpoints but those of the last `last` frames and of the frames whose number divides by `every`."""
        with contextlib.suppress(OSError):
            for name in self.surplus_checkpoints(last, every):
                self.files.unlink(name)

    def surplus_checkpoints(self, last: int = KEEP_LAST, every: int = KEEP_EVERY) -> list[str]:
        """Return the names, relative to the revision, of the checkpoints that `retain` would delete."""
        newest = {file_frame(frame, self.offset) for frame in self.committed()[-last:]}
        if self.taken is not None:  # frames after it are made from it, whatever those before were made from
            newest.add(file_frame(self.taken, self.offset))

        def surplus(name: str) -> bool:
            match = STATE.fullmatch(name)
            return match is not None and int(match[1]) not in newest and not (every and int(match[1]) % every == 0)

        return [f"checkpoints/{name}" for name in self.files.names("checkpoints") if surplus(name)]


def for_other_settings(state: Any) -> Any:
    """Return a state for a node whose settings are no longer those that made it; a type that has no such way takes it as it is."""
    changed: Callable[[], Any] | None = getattr(state, "for_other_settings", None)
    return state if changed is None else changed()


def temporary_files(folder: Path) -> list[Path]:
    """Return the uncommitted files below a revision folder; links are not followed."""
    found = (Path(base) / name for base, _, names in os.walk(folder) for name in names if name.startswith(TEMPORARY))
    return sorted(found)


def _strangers(folder: Path) -> list[str]:
    """Return what a revision folder holds besides empty folders and what a cook has made when its first frame begins."""
    found = []
    for base, folders, names in os.walk(folder):
        where = Path(base).relative_to(folder)
        links = [name for name in folders if (Path(base) / name).is_symlink()]
        ours = _OWN if where == Path() else set()
        found += [(where / name).as_posix() for name in (*names, *links) if name not in ours and not name.startswith(TEMPORARY)]
    return sorted(found)


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder without a manifest that holds more than a cook that died at its very beginning leaves."""
    found = _strangers(folder)
    if found:
        raise OutputError(
            f"{folder}: holds {found[0]!r} but no cook.json, so it is not a cook of ours and nothing in it was changed; "
            "move it away, or cook without --resume"
        )
