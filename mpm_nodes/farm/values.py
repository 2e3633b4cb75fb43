"""Wedges: which knobs take which values, and what each combination is called."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mpm_nodes.graph.declare.knobs import to_json
from mpm_nodes.graph.document.document import Graph, override_value
from mpm_nodes.graph.files.strict_json import refuse
from mpm_nodes.graph.reports.problems import GraphError, Problem
from mpm_nodes.terminal import plain

__all__ = ["MOST_WEDGES", "combinations", "label_of", "parse_wedges", "pieces"]

MOST_WEDGES = 1000
_OPEN, _CLOSE = "[{", "]}"


def parse_wedges(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values of each place from texts "node.knob=a,b,c"; a value is JSON, or a bare word.

    Raises:
        GraphError: A text is no such list, or a place stands twice.
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        place, equals, rest = text.partition("=")
        place = place.strip()
        values = pieces(rest)
        if not equals or not place or not all(values):
            refuse(f"--wedge {text}", "is not a list of values", "write --wedge node.knob=a,b,c")
        if place in found:
            refuse(f"--wedge {place}", "is given twice", "write all its values after one =")
        found[place] = [override_value(value, f"--wedge {place}") for value in values]
    return found


def pieces(text: str) -> list[str]:
    """Return the parts of a text between commas that stand outside of brackets and quotation marks."""
    parts, depth, quoted, escaped = [""], 0, False, False
    for letter in text:
        if letter == '"' and not escaped:
            quoted = not quoted
        escaped = letter == "\\" and quoted and not escaped
        depth += 0 if quoted else (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def combinations(knobs: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every combination of values by place, the last place changing fastest; one empty combination without knobs.

    Raises:
        GraphError: A place has no values, is the shot's span, or there are more than `MOST_WEDGES` combinations.
    """
    count = 1
    for place, values in knobs.items():
        if not len(values):
            refuse(place, "has no values", "give at least one")
        if place in ("settings.start", "settings.end"):
            refuse(place, "cannot differ between wedges", "give the span of all with --frames")
        count *= len(values)
    if count > MOST_WEDGES:
        raise GraphError([Problem("wedges", "are too many", count, f"1 to {MOST_WEDGES}", "give fewer values")])
    rows = itertools.product(*(list(values) for values in knobs.values()))
    return [dict(zip(knobs, (to_json(value) for value in row), strict=True)) for row in rows]


def label_of(values: Mapping[str, Any]) -> str:
    """Return what a combination is called: "youngs_modulus=4000 density=500"; whole places where the last words are not enough."""
    short = [place.rpartition(".")[2] for place in values]
    names = short if len(set(short)) == len(short) else list(values)
    return " ".join(f"{name}={in_short(value)}" for name, value in zip(names, values.values(), strict=True))


def in_short(value: Any) -> str:
    """Return a value as it stands on pictures and in tables."""
    if isinstance(value, float):
        return f"{value:g}"
    text = plain(value if isinstance(value, str) else json.dumps(value, separators=(",", ":")))
    return text if len(text) <= 40 else text[:37] + "..."


def set_values(graph: Graph, values: Mapping[str, Any]) -> Graph:
    """Set the values of one combination in a graph and return it.

    Raises:
        GraphError: A place does not exist.
    """
    for place, value in values.items():
        graph.set(place, value)
    return graph
