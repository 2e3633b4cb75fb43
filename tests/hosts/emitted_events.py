"""Finds the events that the package's source emits."""

from __future__ import annotations

import ast
from pathlib import Path

import mpm_nodes

PACKAGE = Path(mpm_nodes.__file__).parent


def kinds_emitted() -> dict[str, set[str]]:
    """Return, for every kind of event named in the source, the facts that are given by name."""
    found: dict[str, set[str]] = {}
    for folder in ("graph", "solver", "nodes"):
        for path in (PACKAGE / folder).rglob("*.py"):
            for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                named = isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr in ("emit", "report")
                if named and item.args and isinstance(item.args[0], ast.Constant) and isinstance(item.args[0].value, str):
                    facts = {keyword.arg for keyword in item.keywords if keyword.arg}
                    found.setdefault(item.args[0].value, set()).update(facts)
    return found
