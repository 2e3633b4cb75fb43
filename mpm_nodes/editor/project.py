"""Files of one project folder as the page names them: relative, never out of the folder, never through a link."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpm_nodes.data import InputError, MpmNodesError, OutputError
from mpm_nodes.graph.document.document import FORMAT
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.files.names import checked_parts
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.graph.revisions.records import read_manifest
from mpm_nodes.graph.revisions.revision import TAKEN, list_revisions
from mpm_nodes.packaged_samples import samples_folder
from mpm_nodes.regular_files import shown

__all__ = ["Conflict", "Project", "files_named", "samples"]

MOST_GRAPHS, DEEPEST = 200, 3
"""Graph files that are offered, and how many folders below the project they may lie."""
_REVISION = re.compile(r"r\d{3,9}")


class Conflict(MpmNodesError):
    """A file on disk is not the one that the page read.

    Attributes:
        digest: What is on disk now; "" where there is nothing.
    """

    exit_code = 5

    def __init__(self, message: str, digest: str) -> None:
        super().__init__(message)
        self.digest = digest


class Project:
    """The folder below which everything lies.

    Attributes:
        root: Absolute path.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.files = Folder(self.root)
        self._saving = threading.Lock()

    def name(self, given: str, suffix: str = ".json") -> str:
        """Return the name of a file below the root, or raise.

        Raises:
            InputError: It is absolute, climbs, is not a portable name, or has another suffix.
        """
        try:
            name = "/".join(checked_parts(given, "file"))
        except OutputError as error:
            raise InputError(f"{shown(given)!r}: is not a file below the project's folder") from error
        if not name.endswith(suffix):
            raise InputError(f"{name}: is not a graph file, whose name ends with {suffix}")
        return name

    def read(self, given: str) -> tuple[str, str]:
        """Return text and digest of a graph file.

        Raises:
            MpmNodesError: It is missing, behind a link, too large, or no graph file.
        """
        name = self.name(given)
        data = self._bytes(name)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: is not UTF-8 text; write it as UTF-8 JSON") from error
        check_graph(text, name)
        return text, hashlib.sha256(data).hexdigest()

    def digest(self, given: str) -> str:
        """Return the digest of a file as it is on disk, "" where there is none."""
        name = self.name(given)
        return hashlib.sha256(self._bytes(name)).hexdigest() if self.files.size(name) is not None else ""

    def save(self, given: str, text: str, read_as: str) -> str:
        """Write a graph file where it is still the one that was read; return its new digest.

        Args:
            given: Its name.
            text: What it shall hold.
            read_as: Digest of what the page read, "" for a new file.

        Raises:
            Conflict: Something else wrote it since.
            MpmNodesError: The text is not a graph, or the file cannot be written.
        """
        name = self.name(given)
        check_graph(text, name)
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(f"{name}: holds half a character ({shown(text[error.start])}); take it out") from error
        with self._saving:
            now = self.digest(name)
            if now != read_as:
                raise Conflict(f"{name}: {'was changed' if now else 'was removed'} on disk since it was read", now)
            if not now and os.path.lexists(self.root / name):
                raise InputError(f"{name}: is a link, a folder or no file; choose another name")
            if "/" in name:
                self.files.make(name.rpartition("/")[0])
            mode = (self.root / name).stat().st_mode & 0o777 if now else None
            self.files.replace(name, data, mode)
        return hashlib.sha256(data).hexdigest()

    def taken(self, given: str) -> bool:
        """Return whether something has that name, or lies where its cooks would."""
        path = self.root / self.name(given)
        return os.path.lexists(path) or os.path.lexists(path.with_name(f"{path.stem}_cache"))

    def graphs(self) -> list[str]:
        """Return the names of graph files below the root, in order; caches, hidden folders and deep ones are passed over."""
        found = []
        for name in self._names("", DEEPEST):
            if len(found) >= MOST_GRAPHS:
                break
            if self._begins_as_graph(name) or ("/" not in name and not self._why_not(name)):
                found.append(name)
        return found

    def others(self) -> list[dict[str, str]]:
        """Return `name` of the other JSON files in the root itself, and in a word `why` they are not offered."""
        told = [(name, self._why_not(name)) for name in self._names("", 0) if not self._begins_as_graph(name)]
        return [{"name": name, "why": why} for name, why in told if why][:MOST_GRAPHS]

    def _begins_as_graph(self, name: str) -> bool:
        try:
            with open(self.files.open(name), "rb") as file:
                return FORMAT.encode() in file.read(200)
        except (OSError, MpmNodesError):
            return False

    def _why_not(self, name: str) -> str:
        try:
            check_graph(self.files.read(name, strict_json.LARGEST_FILE).decode("utf-8-sig"), name)
        except (OSError, OutputError):
            return "unreadable"
        except (UnicodeError, GraphError):
            return "damaged"
        except ValueError:
            return "large"
        except MpmNodesError:
            return "other"
        return ""

    def _names(self, folder: str, depth: int) -> Iterator[str]:
        prefix = f"{folder}/" if folder else ""
        try:
            yield from (prefix + name for name in self.files.names(folder) if name.endswith(".json"))
            with os.scandir(self.root / folder) as entries:
                inner = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name[0] != ".")
        except (OSError, MpmNodesError):
            return  # a folder that may not be read hides no others
        for name in inner if depth else []:
            if not _REVISION.fullmatch(name) and name != "node_modules":
                yield from self._names(prefix + name, depth - 1)

    def cache(self, given: str) -> Path:
        """Return the output root of a graph file's cooks: it lies beside the file.

        Raises:
            InputError: A link on the way leads out of the project.
        """
        path = self.root / self.name(given)
        folder = path.with_name(f"{path.stem}_cache")
        if not folder.resolve().is_relative_to(self.root):
            raise InputError(f"{folder}: is a link out of the project; remove it")
        return folder

    def cooks(self, given: str) -> Path:
        """Return where the cooks of a graph file lie: `cache`, or for a wedge that a farm has cooked the folder beside its graph.

        Raises:
            InputError: A link on the way leads out of the project.
        """
        own = self.cache(given)
        wedge = own.with_name("cache")
        if own.name != "graph_cache" or own.exists() or not wedge.is_dir() or not wedge.resolve().is_relative_to(self.root):
            return own
        return wedge

    def revision(self, given: str, revision: str) -> Path:
        """Return a revision folder of a graph file's cooks.

        Raises:
            InputError: That is not the name of one, or a link leads out of the project.
        """
        folder = self.cooks(given) / revision
        if not _REVISION.fullmatch(revision) or folder.is_symlink() or not folder.is_dir():
            raise InputError(f"{revision!r}: is not a revision of {given}")
        return folder

    def holder(self, given: str, revision: str, frame: int) -> str:
        """Return the revision that cooked the frame before `frame`: a branch of a branch holds no states of what it took over.

        Args:
            given: The graph file.
            revision: Whose frames are wanted; "" for the newest.
            frame: The first frame that is cooked again.
        """
        known = [folder.name for folder in list_revisions(self.cache(given))]
        revision = revision or (known[-1] if known else "")
        while revision in known:
            taken = (read_manifest(Folder(self.cache(given) / revision)) or {}).get(TAKEN)
            if taken is None or frame - 1 >= taken["last"] or taken["from"] not in known[: known.index(revision)]:
                break
            revision = taken["from"]
        return revision

    def take_sample(self, name: str) -> str:
        """Copy a packaged sample with the files that it names into a folder of its own; return the graph's name here."""
        known = samples()
        if name not in known:
            raise InputError(f"{name!r}: there is no such sample")
        text = known[name].read_text(encoding="utf-8")
        for beside in sorted(files_named(json.loads(text), known[name].parent)):
            self._copy(known[name].parent / beside, f"{name}/{beside}")
        self._copy(known[name], f"{name}/{name}.json")
        return f"{name}/{name}.json"

    def _copy(self, source: Path, name: str) -> None:
        if self.files.size(name) is None:
            self.files.make(name.rpartition("/")[0])
            self.files.replace(name, source.read_bytes())

    def _bytes(self, name: str) -> bytes:
        try:
            return self.files.read(name, strict_json.LARGEST_FILE)
        except ValueError as error:
            raise InputError(f"{name}: is larger than {strict_json.LARGEST_FILE:,} bytes") from error
        except OSError as error:
            raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error


def check_graph(text: str, name: str) -> Mapping[str, Any]:
    """Return the document of a text; raise `MpmNodesError` where it is not JSON, or no graph."""
    document = strict_json.parse(text, name)
    if not isinstance(document, dict) or document.get("format") != FORMAT or not isinstance(document.get("nodes", {}), dict):
        raise InputError(f"{name}: is not a file of format {FORMAT}")
    return document


def samples() -> dict[str, Path]:
    """Return the graph files of the packaged samples by name, in order."""
    return {path.stem: path for path in sorted(samples_folder().glob("*.json"))}


def files_named(value: Any, folder: Path) -> set[str]:
    """Return the names of files in `folder` that texts in a document give, wherever they stand in it."""
    if isinstance(value, str):
        flat = 0 < len(value) < 200 and not set(value) & set("/\\\0") and not value.startswith(".")
        return {value} if flat and not value.endswith(".json") and (folder / value).is_file() else set()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*(files_named(item, folder) for item in inner))
