"""A generated module: what it imports, its functions, and its text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["Module", "call"]

_FOREIGN = "user_"
"""How the names begin that modules outside the package have in a generated one."""


def call(name: str, values: Sequence[str]) -> str:
    """Return a call in lines of the usual length."""
    text = f"{name}({', '.join(values)})"
    if len(text) <= 112:
        return text
    inside = textwrap.fill(", ".join(values), 112, break_long_words=False, break_on_hyphens=False)
    return f"{name}(\n{textwrap.indent(inside, '    ')}\n)"


def _import_line(module: str, names: Iterable[str]) -> str:
    """Return an import statement, constants first."""
    names = sorted(names, key=lambda name: (not name.isupper(), name))
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= 120 else f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


class Module:
    """Collects the functions of a module and what they need of others.

    Whoever writes a name that is not the function's own asks for it here (`use`, `numpy`, `called`, `bound`) and gets what it is
    called in the source. So the head of the module is known without a look at its text.
    """

    def __init__(self) -> None:
        self._imports: dict[str, set[str]] = {}
        self._bound: dict[str, str] = {}
        self._numpy = False
        self._functions: list[str] = []

    # ---------------------------------------------------------------- names
    def use(self, module: str, *names: str) -> str:
        """Import names from a module; return the last."""
        self._imports.setdefault(module, set()).update(names)
        return names[-1]

    def numpy(self, name: str) -> str:
        """Return what a name of NumPy is called here."""
        self._numpy = True
        return f"np.{name}"

    def bound(self, name: str, module: str) -> str:
        """Give a name to a module that Python has loaded, wherever from; return it."""
        self._bound[name] = module
        return name

    def called(self, function: Callable[..., Any]) -> str:
        """Return what a function is called here: by its own name where it can be imported, else behind its module's."""
        module, name = function.__module__, function.__name__
        if module.split(".")[0] == "mpm_nodes":
            return self.use(module, name)
        known = {of: alias for alias, of in self._bound.items() if alias.startswith(_FOREIGN)}
        return f"{self.bound(known.get(module, f'{_FOREIGN}{len(known) + 1}'), module)}.{name}"

    @property
    def loaded(self) -> tuple[str, ...]:
        """Names of the modules that Python must have loaded before this one."""
        return tuple(sorted(set(self._bound.values())))

    # ---------------------------------------------------------------- text
    def add(self, function: str) -> None:
        """Add a function, behind those that are there."""
        self._functions.append(function)

    def text(self, about: str) -> str:
        """Return the module.

        Args:
            about: First line of its docstring.
        """
        ours = {module: names for module, names in self._imports.items() if module != "numba"}
        groups = [
            ["import sys"] if self._bound else [],
            ["import numpy as np"] if self._numpy else [],
            [_import_line(module, names) for module, names in sorted(ours.items())],
            [f'{alias} = sys.modules["{module}"]' for alias, module in sorted(self._bound.items())],
        ]
        if "numba" in self._imports:
            groups[1].append(_import_line("numba", self._imports["numba"]))
        head = "\n\n".join("\n".join(group) for group in groups if group)
        title = textwrap.fill(f'"""{about}', 120)
        return "\n\n".join([f'{title}\n\nWritten by {__name__}.\n"""\n\n{head}\n', *self._functions])
