"""The lists of commands that take names: by topic, a line each, the whole list or some topics of it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from mpm_nodes.data import MpmNodesError
from mpm_nodes.data.suggestions import nearest

__all__ = ["add_list", "listed"]


def add_list(command: argparse.ArgumentParser, what: str) -> None:
    """Declare `--list`."""
    command.add_argument("--list", action="store_true", help=f"list {what} by topic, and run nothing")


def listed(command: str, topics: Mapping[str, Mapping[str, str]], names: Sequence[str] = ()) -> str:
    """Return names by topic, a line each with what it is.

    Args:
        command: What lists them.
        topics: By topic, what each name is.
        names: Topics, or names, to list; none for all of them.

    Raises:
        MpmNodesError: A name is neither.
    """
    every = {name for group in topics.values() for name in group}
    for name in names:
        if name not in topics and name not in every:
            cure = nearest(name, [*topics, *every], f"mpm-nodes {command} --list")
            raise MpmNodesError(f"{command}: '{name}' is not in the list; {cure}")
    lines = []
    for topic, group in topics.items():
        chosen = {name: text for name, text in group.items() if not names or topic in names or name in names}
        width = max(map(len, chosen), default=0)
        lines += [f"{topic}:"] if chosen else []
        lines += [f"  {name:{width}}  {text}".rstrip() for name, text in chosen.items()]
    return "\n".join(lines)
