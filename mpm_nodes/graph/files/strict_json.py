"""Read JSON from outside: bounded in size and depth, no duplicate keys, no NaN or infinity."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from mpm_nodes.data import InputError
from mpm_nodes.graph.reports.problems import GraphError, Problem
from mpm_nodes.regular_files import open_regular, shown

LARGEST_FILE = 16 * 2**20
DEEPEST = 32
MOST_VALUES = 500_000
"""Values of a file, keys counted: each takes up to 240 bytes, of which an empty object of three letters takes 70."""


LONGEST_KEY = 200
"""Letters of a key that a message repeats."""


PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types whose values stand in files as they are: asked first, as most values have them."""


class _Refused(Exception):
    """Carries a message and a cure out of the JSON parser's hooks."""


def read(path: Path, largest: int = LARGEST_FILE) -> Any:
    """Return the content of a JSON file.

    Raises:
        InputError: When the file cannot be read.
        GraphError: When its content is refused.
    """
    try:
        with open_regular(path, "check the path") as file:
            content = file.read(largest + 1)
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read ({error.strerror or error}); check the path") from error
    if len(content) > largest:
        refuse(str(path), f"is larger than {largest:,} bytes", "keep data in caches, not in graph files")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse(str(path), "is not UTF-8 text", "write it as UTF-8 JSON")
    return parse(text, str(path))


def parse(text: str, place: str) -> Any:
    """Return the value of a JSON text; `place` is what messages call it.

    Raises:
        GraphError: When the text is not JSON, or holds duplicate keys, NaN, infinity, deep nesting or too many values.
    """
    if sum(map(text.count, ",:[{")) > MOST_VALUES:  # at least as many as there are values
        refuse(place, f"holds more than {MOST_VALUES:,} values", "keep data in caches, not in graph files")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except _Refused as refused:
        refuse(place, *refused.args)
    except json.JSONDecodeError as error:
        refuse(f"{place}:{error.lineno}", f"is not JSON: {error.msg} at column {error.colno}", "fix it there")
    except RecursionError:
        refuse(place, f"is nested deeper than {DEEPEST} levels", "flatten it")
    except ValueError as error:  # integers of thousands of digits
        refuse(place, f"is not usable JSON: {error}", "write shorter numbers")
    if depth(value) > DEEPEST:
        refuse(place, f"is nested deeper than {DEEPEST} levels", "flatten it")
    return value


def depth(value: Any) -> int:
    """Return how deep lists and objects are nested in a JSON value (0 for a scalar), without recursion."""
    deepest, level = 0, [value] if isinstance(value, (dict, list, tuple)) else []
    while level:
        deepest += 1
        inside = (item.values() if isinstance(item, dict) else item for item in level)
        level = [
            child
            for children in inside
            for child in children
            if type(child) not in PLAIN and isinstance(child, (dict, list, tuple))
        ]
    return deepest


def refuse(place: str, message: str, cure: str, value: Any = None, allowed: str = "") -> NoReturn:
    """Raise a `GraphError` with one problem."""
    raise GraphError([Problem(place, message, value, allowed, cure)])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise _Refused(f"gives the key {twice[:LONGEST_KEY]!r} twice in one object", "remove one")
    return result


def _no_constant(text: str) -> NoReturn:
    raise _Refused(f"holds {text}", "write a finite number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused(f"holds the number {text[:40]}, which is too large", "write a finite number")
    return value
