"""Python source as text: calls and imports in lines of the usual length."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence


def call(name: str, values: Sequence[str]) -> str:
    """Return a call in lines of the usual length."""
    text = f"{name}({', '.join(values)})"
    if len(text) <= 112:
        return text
    inside = textwrap.fill(", ".join(values), 112, break_long_words=False, break_on_hyphens=False)
    return f"{name}(\n{textwrap.indent(inside, '    ')}\n)"


def in_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of import statements: constants first."""
    return sorted(names, key=lambda name: (not name.isupper(), name))


def import_line(module: str, names: list[str]) -> str:
    """Return an import statement."""
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= 120 else f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"
