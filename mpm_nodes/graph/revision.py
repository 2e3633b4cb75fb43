"""Revision folders: manifest, what a cook that died left behind, how far back a resume goes, which checkpoints stay."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.archive import read_archive
from mpm_nodes.graph.lock import FolderLock
from mpm_nodes.graph.transaction import (
    STATE_FORMAT,
    TEMPORARY,
    FrameTransaction,
    digest_file,
    file_frame,
    read_record,
    replace_json,
    sync,
    writing,
)

__all__ = ["Revision", "latest_revision", "list_revisions"]

MANIFEST_FORMAT = "mpm_nodes.cook"
KEEP_LAST = 2
KEEP_EVERY = 24
_REVISION = re.compile(r"r(\d{3,})")
_RECORD = re.compile(r"(\d+)\.commit\.json")


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
        return folder
    revisions = list_revisions(folder)
    if not revisions:
        raise InputError(f"{folder}: holds no cook (no rNNN folder with a cook.json); give the folder named with --out")
    return revisions[-1]


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a revision folder, None when it was never finished.

    Raises:
        InputError: It is there and cannot be read.
    """
    path = folder / "cook.json"
    if not path.exists():
        return None
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != MANIFEST_FORMAT:
            raise ValueError("another format")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is damaged or not a manifest of ours ({error}); cook without --resume") from error
    return manifest


def check_writable(root: Path) -> None:
    """Raise `OutputError` when revisions cannot be made in `root`; makes the folder itself when it is missing."""
    with writing(str(root)):
        if root.exists() and not root.is_dir():
            raise OutputError(f"{root}: is a file; give a folder with --out")
        root.mkdir(parents=True, exist_ok=True)
        probe = root / f"{TEMPORARY}probe-{os.getpid()}"
        probe.touch()
        probe.unlink()


class Revision:
    """One revision folder, locked while this object is open.

    Attributes:
        folder: The folder (`.../r001`).
        manifest: What `cook.json` holds.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], lock: FolderLock) -> None:
        self.folder = folder
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
    def resume(cls, root: Path, manifest: Mapping[str, Any]) -> Revision | None:
        """Open the newest revision below `root`, finish or remove what a dead cook left; None when there is none.

        Raises:
            OutputError: Another cook is writing it.
            InputError: Its manifest is damaged.
        """
        revisions = list_revisions(root)
        if not revisions:
            return None
        folder = revisions[-1]
        lock = FolderLock(folder)
        try:
            stored = read_manifest(folder)
            if stored is None:
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
            (folder / "frames").mkdir(exist_ok=True)
            replace_json(folder / "cook.json", {"format": MANIFEST_FORMAT, "state_format": STATE_FORMAT, **manifest})
            sync(folder.parent)
        return cls(folder, read_manifest(folder) or {}, lock)

    def update(self, **facts: Any) -> None:
        """Change facts of the manifest."""
        if any(self.manifest.get(name) != value for name, value in facts.items()):
            self.manifest = {**self.manifest, **facts}
            with writing(str(self.folder)):
                replace_json(self.folder / "cook.json", self.manifest)

    def close(self) -> None:
        """Let other cooks write this revision."""
        self._lock.release()

    def discard_if_empty(self) -> bool:
        """Remove a revision in which no frame was ever committed; say whether it was removed."""
        if self.committed():
            return False
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return True

    # ------------------------------------------------------------ frames
    @property
    def offset(self) -> int:
        """Added to frame numbers in file names."""
        return int(self.manifest["frame_offset"])

    def record_path(self, frame: int) -> Path:
        """Return where the commit record of `frame` lies."""
        return self.folder / "frames" / f"{file_frame(frame, self.offset):04d}.commit.json"

    def committed(self) -> list[int]:
        """Return the frames that have a commit record, ascending."""
        matches = (_RECORD.fullmatch(path.name) for path in (self.folder / "frames").glob("*.commit.json"))
        return sorted(int(match[1]) - self.offset for match in matches if match)

    def record(self, frame: int) -> dict[str, Any] | None:
        """Return the commit record of `frame`, None when it is missing or altered."""
        return read_record(self.record_path(frame))

    def begin(self, frame: int, crash: Callable[[str], None] = lambda label: None) -> FrameTransaction:
        """Start the transaction of `frame`."""
        return FrameTransaction(self, frame, crash)

    def finish(self, record: Mapping[str, Any], crash: Callable[[str], None] = lambda label: None) -> None:
        """Rename the files of a written record to their places, those that replace older ones last, then the record."""
        names = sorted(record["files"], key=lambda name: ((self.folder / name).exists(), name))
        folders = set()
        for name in names:
            final = self.folder / name
            temporary = final.with_name(TEMPORARY + final.name)
            if temporary.exists():
                os.replace(temporary, final)
                crash(f"renamed {name}")
            folders.add(final.parent)
        for folder in sorted(folders):
            sync(folder)
        final = self.record_path(record["frame"])
        crash("before record")
        os.replace(final.with_name(TEMPORARY + final.name), final)
        sync(final.parent)
        crash("committed")

    # ------------------------------------------------------------ after a death
    def recover(self) -> None:
        """Finish the commit that a cook died in, or remove its temporary files."""
        with writing(str(self.folder)):
            for path in (self.folder / "frames").glob(f"{TEMPORARY}*.commit.json"):
                record = read_record(path)
                if record is not None and all(self._at_hand(name, facts) for name, facts in record["files"].items()):
                    self.finish(record)
            for path in temporary_files(self.folder):
                path.unlink()

    def _at_hand(self, name: str, facts: Mapping[str, Any]) -> bool:
        final = self.folder / name
        return any(_matches(path, facts) for path in (final.with_name(TEMPORARY + final.name), final))

    def resume_frame(self, states: Collection[str], first: int) -> int | None:
        """Return the last frame that a resumed cook can build on, None to start over at `first`.

        Frames count up to the first gap or damaged file; the last one is checked byte by byte, and must have a sound
        checkpoint of every node in `states`. That an earlier frame has none is no damage: it was not retained.
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

        def own(frame: int, record: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
            for name, facts in record["files"].items():
                if newest[name] == frame and name not in replaced and not name.startswith("checkpoints/"):
                    yield self.folder / name, facts

        sound = [all(_sized(path, facts) for path, facts in own(*entry)) for entry in good]
        good = good[: sound.index(False)] if False in sound else good
        for frame, record in reversed(good):
            files = record["files"]
            checkpoints = [self.checkpoint_name(frame, node) for node in states]
            held = all(name in files and _matches(self.folder / name, files[name]) for name in checkpoints)
            if held and all(_matches(path, facts) for path, facts in own(frame, record)):
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
                        (self.folder / name).unlink(missing_ok=True)
                self.record_path(number).unlink()
        return gone

    # ------------------------------------------------------------ checkpoints
    def checkpoint_name(self, frame: int, node: str) -> str:
        """Return the name, relative to the revision, of the checkpoint of `node` after `frame`."""
        return f"checkpoints/{file_frame(frame, self.offset):04d}.{node}.state"

    def load_checkpoint(self, frame: int, node: str, kind: Any) -> Any:
        """Return the value of the sequential node `node` after `frame`, built by `kind.from_arrays`.

        Raises:
            InputError: The file is damaged, or holds a state of another format than `kind` reads.
        """
        path = self.folder / self.checkpoint_name(frame, node)
        header, arrays = read_archive(path)
        expected = getattr(kind, "STATE_FORMAT", 1)
        if header["format"] != expected:
            raise InputError(
                f"{path}: holds state format {header['format']}, this version reads {expected}; "
                "cook again without --resume"
            )
        return kind.from_arrays(header["facts"], arrays)

    def retain(self, last: int = KEEP_LAST, every: int = KEEP_EVERY) -> None:
        """Delete checkpoints but those of the last `last` frames and of the frames whose number divides by `every`."""
        with contextlib.suppress(OSError):
            for path in self.surplus_checkpoints(last, every):
                path.unlink()

    def surplus_checkpoints(self, last: int = KEEP_LAST, every: int = KEEP_EVERY) -> list[Path]:
        """Return the checkpoints that `retain` would delete."""
        newest = {file_frame(frame, self.offset) for frame in self.committed()[-last:]}

        def surplus(path: Path) -> bool:
            number = int(path.name.split(".")[0])
            return number not in newest and not (every and number % every == 0)

        return sorted(path for path in (self.folder / "checkpoints").glob("*.state") if surplus(path))


def _sized(path: Path, facts: Mapping[str, Any]) -> bool:
    return path.is_file() and path.stat().st_size == facts["bytes"]


def _matches(path: Path, facts: Mapping[str, Any]) -> bool:
    return _sized(path, facts) and digest_file(path) == facts["sha256"]


def temporary_files(folder: Path) -> list[Path]:
    """Return the uncommitted files below a revision folder; links are not followed."""
    found = (Path(base) / name for base, _, names in os.walk(folder) for name in names if name.startswith(TEMPORARY))
    return sorted(found)
