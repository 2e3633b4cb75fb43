"""Edits that are not saved, beside their graph files: `.NAME.json.unsaved` holds their text until it is saved or thrown away.

A page that was closed by a crash, or a server that was, finds them again. There may be several: edits are made before older ones
are restored or thrown away.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.editor.project import Project, check_graph
from mpm_nodes.graph.files import strict_json

__all__ = ["Drafts"]

FORMAT, SUFFIX = "mpm_nodes.draft", ".unsaved"
LARGEST = 2 * strict_json.LARGEST_FILE
"""Bytes of a file of drafts."""


class Drafts:
    """The drafts of a project.

    Attributes:
        project: The folder.
    """

    def __init__(self, project: Project) -> None:
        self.project = project

    def _name(self, given: str) -> str:
        folder, slash, name = self.project.name(given).rpartition("/")
        return f"{folder}{slash}.{name}{SUFFIX}"

    def read(self, given: str) -> list[dict[str, Any]]:
        """Return the drafts of a file, the last one first: text, time [Unix seconds], and digest of the file it was made from."""
        name = self._name(given)
        try:
            found = json.loads(self.project.files.read(name, LARGEST))
            drafts = found["drafts"] if "drafts" in found else [{**found, "time": os.stat(self.project.root / name).st_mtime}]
            if found["format"] != FORMAT:
                return []
            return [_checked(each, name) for each in drafts]
        except (OSError, ValueError, KeyError, TypeError, RecursionError, MpmNodesError):
            return []

    def keep(self, given: str, drafts: Sequence[Mapping[str, Any]]) -> None:
        """Write the drafts of a file, the last one first, or throw them away where there are none; only the user may read them.

        Args:
            given: The graph file.
            drafts: Text, digest and time of each; one without a time is made now.

        Raises:
            InputError: One is not a graph, or holds half a character.
            MpmNodesError: They cannot be written.
        """
        name = self._name(given)
        if not drafts:
            if self.project.files.size(name) is not None:
                self.project.files.unlink(name)
            return
        held = [_checked({"time": time.time(), **each}, name) for each in drafts]
        try:
            data = json.dumps({"format": FORMAT, "drafts": held}, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name}: holds half a character; take it out") from error
        if len(data) > LARGEST:
            raise InputError(f"{name}: is larger than {LARGEST:,} bytes; save, or throw older changes away")
        if "/" in name:
            self.project.files.make(name.rpartition("/")[0])
        self.project.files.replace(name, data, 0o600)

    def lost(self) -> list[str]:
        """Return graphs in the project's own folder that have a draft and no file: they were never saved."""
        names = set(self.project.files.names())
        drafts = (name[1 : -len(SUFFIX)] for name in names if name.startswith(".") and name.endswith(f".json{SUFFIX}"))
        return sorted(name for name in drafts if name not in names)


def _checked(draft: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return text, digest and time of a draft; raise where its text is not a graph, or one of the others is missing."""
    if not isinstance(draft["digest"], str) or not isinstance(draft["text"], str):
        raise InputError(f"{name}: is damaged")
    check_graph(draft["text"], name)
    return {"text": draft["text"], "digest": draft["digest"], "time": float(draft["time"])}
