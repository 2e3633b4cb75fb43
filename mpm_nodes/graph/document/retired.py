"""Types of nodes that are no more: what stands for them in graph files that have them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.document.entries import Entry
from mpm_nodes.graph.reports.problems import Problem, Problems
from mpm_nodes.physics import RetiredNode

__all__ = ["replace_retired"]

_APART = 100
"""How far new nodes are put to the left of the one that they stand for, and below each other."""


def replace_retired(
    entries: Mapping[str, Entry], rules: Mapping[str, RetiredNode], start: int, problems: Problems
) -> dict[str, Entry]:
    """Return entries with those of retired types replaced; one that cannot be becomes a problem.

    Args:
        entries: By name.
        rules: By type.
        start: Frame at which the shot starts.
        problems: Grows.
    """
    found: dict[str, Entry] = {}
    for name, entry in entries.items():
        rule = rules.get(entry.type)
        if rule is None:
            found[name] = entry
            continue
        for kind, given, known in (("a knob", entry.knobs, rule.knobs), ("an input", entry.inputs, rule.ports)):
            for unknown in [each for each in given if each not in known]:
                problems.add(f"{name}.{unknown}", f"is not {kind} of {entry.type}", cure=partial(nearest, unknown, known))
        try:
            made = rule.make(dict(entry.knobs), {port: entry.wire(port) for port in entry.inputs}, entry.version, start)
        except Exception as error:
            cure = "fix its knobs, or set the new nodes by hand"
            problems.append(Problem(name, f"is a {entry.type}, and cannot be brought to the nodes of today ({error})", cure=cure))
            continue
        names = {part: _unused(f"{name}_{part}", entries, found) if part else name for part in made}
        for row, (part, record) in enumerate(reversed(list(made.items()))):
            x, y = entry.position
            each = Entry(record["type"], 1, record.get("knobs", {}), position=[x - _APART, y + _APART * row], bypass=entry.bypass)
            if not part:
                each.position, each.comment, each.editor = entry.position, entry.comment, entry.editor
            for port, source in record.get("inputs", {}).items():
                new = isinstance(source, str) and source.startswith(".")
                each.connect(port, names[source[1:]] if new else source)
            found[names[part]] = each
    return found


def _unused(name: str, *taken: Mapping[str, Entry]) -> str:
    """Return a name that none of these have."""
    number, candidate = 1, name
    while any(candidate in each for each in taken):
        number += 1
        candidate = f"{name}_{number}"
    return candidate
