"""Edits that are not saved, beside their graph files: `.NAME.json.unsaved` holds the text until it is saved or thrown away.

A page that was closed by a crash, or a server that was, finds them again.
"""

from __future__ import annotations

import json
import os
from typing import Any

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.editor.project import Project, check_graph
from mpm_nodes.graph.files import strict_json

__all__ = ["Drafts"]

FORMAT, SUFFIX = "mpm_nodes.draft", ".unsaved"


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

    def read(self, given: str) -> dict[str, Any]:
        """Return text, time [Unix seconds] and digest of the file that it was made from; {} where there is none that is whole."""
        name = self._name(given)
        try:
            found = json.loads(self.project.files.read(name, 2 * strict_json.LARGEST_FILE))
            if found["format"] != FORMAT or not isinstance(found["digest"], str):
                return {}
            check_graph(found["text"], name)
            return {"text": found["text"], "digest": found["digest"], "time": os.stat(self.project.root / name).st_mtime}
        except (OSError, ValueError, KeyError, TypeError, RecursionError, MpmNodesError):
            return {}

    def keep(self, given: str, text: str, digest: str) -> None:
        """Write a draft; only the user may read it.

        Raises:
            InputError: The text is not a graph, or holds half a character.
            MpmNodesError: It cannot be written.
        """
        name = self._name(given)
        check_graph(text, name)
        try:
            data = json.dumps({"format": FORMAT, "digest": digest, "text": text}, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{name}: holds half a character; take it out") from error
        if "/" in name:
            self.project.files.make(name.rpartition("/")[0])
        self.project.files.replace(name, data, 0o600)

    def drop(self, given: str) -> None:
        """Throw a draft away, where there is one."""
        name = self._name(given)
        if self.project.files.size(name) is not None:
            self.project.files.unlink(name)

    def lost(self) -> list[str]:
        """Return graphs in the project's own folder that have a draft and no file: they were never saved."""
        names = set(self.project.files.names())
        drafts = (name[1 : -len(SUFFIX)] for name in names if name.startswith(".") and name.endswith(f".json{SUFFIX}"))
        return sorted(name for name in drafts if name not in names)
