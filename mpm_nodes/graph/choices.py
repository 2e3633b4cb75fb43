"""What nodes choose by measuring, kept in the manifest of the revision: cooks of one matter choose alike, whatever the clock says.

A choice is kept under the lineage key of its node at its frame, in the order in which the frame asked for choices. So a frame
that is cooked again, by a resumed cook, by a repair or into a new revision beside the old ones, takes each from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from mpm_nodes.data import InputError, OutputError
from mpm_nodes.graph.folder import Folder
from mpm_nodes.graph.records import read_manifest
from mpm_nodes.graph.revision import Revision, list_revisions

__all__ = ["Choices", "FrameChoices"]

T = TypeVar("T")
Table = Mapping[str, list[Any]]

MANIFEST_ENTRY = "choices"
LOOKED_BACK = 8
"""Revisions beside a cook's own in which it looks for choices, the newest first."""


class Choices:
    """The choices of a cook, and those of the cooks that its output root holds.

    Args:
        warn: Called with the place and a sentence where something kept cannot be read.
    """

    def __init__(self, warn: Callable[[str, str], None] = lambda where, message: None) -> None:
        self.warn = warn
        self._made: dict[str, list[Any]] = {}
        self._revision: Revision | None = None
        self._tables: list[Table] = []
        self._unread: Iterator[Table] = iter(())

    def follow(self, revision: Revision) -> None:
        """Take choices from a revision, then from the others beside it, and keep new ones there with `keep`."""
        self._revision = revision
        self._tables, self._unread = [], self._read(revision)

    def keep(self) -> None:
        """Write the choices made so far into the manifest of the revision."""
        if self._revision is not None and self._made:
            stored = self._revision.manifest.get(MANIFEST_ENTRY)
            self._revision.update(**{MANIFEST_ENTRY: {**(stored if isinstance(stored, dict) else {}), **self._made}})

    def of(self, key: str) -> FrameChoices:
        """Return the choices of a node at a frame, by its lineage key; those that it made before in this cook are made again."""
        return FrameChoices(self, key)

    def earlier(self, key: str) -> list[Any]:
        """Return what was chosen under a key, [] where nothing is known of it."""
        if key in self._made:
            return self._made[key]
        for table in self._tables:
            if key in table:
                return table[key]
        for table in self._unread:
            self._tables.append(table)
            if key in table:
                return table[key]
        return []

    def made(self, key: str, choices: list[Any]) -> None:
        """Take over what a node chose at a frame."""
        self._made[key] = choices

    def _read(self, revision: Revision) -> Iterator[Table]:
        yield self._table(revision.folder, revision.manifest)
        others = [folder for folder in reversed(list_revisions(revision.folder.parent)) if folder.name != revision.folder.name]
        for folder in others[:LOOKED_BACK]:
            try:
                manifest = read_manifest(Folder(folder))
            except (InputError, OutputError) as error:
                self.warn(str(folder), f"choices kept there are not followed: {error}")
                continue
            yield self._table(folder, manifest or {})

    def _table(self, folder: Path, manifest: Mapping[str, Any]) -> Table:
        """Return the choices in a manifest; whatever is not a list of choices is left out, with a sentence."""
        table = manifest.get(MANIFEST_ENTRY, {})
        sound = {key: kept for key, kept in table.items() if isinstance(kept, list)} if isinstance(table, dict) else {}
        if not isinstance(table, dict) or len(sound) < len(table):
            self.warn(str(folder / "cook.json"), "its choices are damaged; what is lost of them is chosen again")
        return sound


class FrameChoices:
    """The choices of one node at one frame, in their order: `FrameContext.choices`."""

    def __init__(self, choices: Choices, key: str) -> None:
        self._choices, self._key = choices, key
        self._made: list[Any] = []
        self._earlier: list[Any] | None = None

    def recall(self, understand: Callable[[Any], T | None]) -> T | None:
        """Return the choice that this place in the frame once led to, None where nothing is known of it.

        Args:
            understand: Makes a choice of what was given to `note`; None where it cannot, since files can be damaged.
        """
        if self._earlier is None:
            self._earlier = self._choices.earlier(self._key)
        place = len(self._made)
        if place >= len(self._earlier):
            return None
        found = understand(self._earlier[place])
        if found is None:
            self._choices.warn(
                "choices",
                f"what an earlier cook chose cannot be read or does not fit: {_short(self._earlier[place])}; it is chosen again",
            )
        return found

    def note(self, choice: Any) -> None:
        """Keep a choice (JSON-able), made or recalled."""
        self._made.append(choice)
        self._choices.made(self._key, self._made)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:76] + " ..."
