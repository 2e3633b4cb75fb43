"""Signature, hints and docstring of a function, as nodes and stages are declared by them.

What is missing (a hint, a line of help, a return type) is refused with one sentence.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.declare.declarations import UpgradeFunction, type_name
from mpm_nodes.graph.declare.knobs import MISSING, Knob, knob_from_hint
from mpm_nodes.physics import all_physics

__all__ = ["DeclarationError", "SignatureReader", "bare", "parse_docstring"]


class DeclarationError(MpmNodesError):
    """A node or stage cannot be declared as it is written."""


class SignatureReader:
    """Reads what nodes and stages have in common off a function, and fails with one sentence that names it.

    Args:
        kind: What messages call it.
        function: The function.

    Raises:
        DeclarationError: Here and in every method, when something is missing or wrong.
    """

    def __init__(self, kind: str, function: Callable) -> None:
        self.kind, self.function = kind, function
        self.file, self.line = _place(function)
        self.parameters = list(inspect.signature(function).parameters.values())
        try:
            self.hints = typing.get_type_hints(function, include_extras=True)
        except Exception as error:
            self.fail(f"has a type hint that cannot be resolved ({error}); import the name at module level")
        self.doc, self.help = parse_docstring(function.__doc__ or "")
        all_physics("")  # domains know their fields from now on

    def fail(self, what: str) -> NoReturn:
        """Raise a `DeclarationError` that names the function."""
        raise DeclarationError(f"{self.file}:{self.line}: {self.kind} {self.function.__name__} {what}")

    def check_names(self, label: str, version: int, upgrades: Mapping[int, UpgradeFunction]) -> None:
        """Refuse a name, label, version or docstring that hosts and files cannot use."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.function.__name__):
            self.fail("is not named in lower case with underscores; rename it")
        if not label.strip():
            self.fail("has no label; write label='...'")
        if not self.doc:
            self.fail("has no docstring; write one imperative line")
        if version < 1 or any(not 1 <= old < version for old in upgrades):
            self.fail(f"has version {version} and upgrades from {sorted(upgrades)}; upgrade from versions 1 to {version - 1}")

    def hint(self, parameter: inspect.Parameter) -> Any:
        """Return the type hint of a parameter."""
        if parameter.name not in self.hints:
            self.fail(f"has no type hint for {parameter.name}; write {parameter.name}: ...")
        return self.hints[parameter.name]

    def help_of(self, name: str) -> str:
        """Return the help of a parameter."""
        if not self.help.get(name):
            self.fail(f"has no help for {name}; add the line '{name}: ...' under Args: in its docstring")
        return self.help[name]

    def positional(self) -> list[inspect.Parameter]:
        """Return the parameters before the `*`."""
        for parameter in self.parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                self.fail(f"takes *{parameter.name}; name each port and knob")
        return [p for p in self.parameters if p.kind != p.KEYWORD_ONLY]

    def common(self, label: str, version: int, upgrades: Mapping[int, UpgradeFunction]) -> dict[str, Any]:
        """Return what every declaration holds, by name."""
        unknown = sorted(set(self.help) - {parameter.name for parameter in self.parameters})
        if unknown:
            self.fail(f"has help for {', '.join(unknown)}, which it does not take; remove or rename the line")
        return {
            "id": self.function.__name__,
            "label": label,
            "version": version,
            "doc": self.doc,
            "knobs": self.knobs(),
            "function": self.function,
            "upgrades": dict(upgrades),
            "file": self.file,
            "line": self.line,
        }

    def knobs(self) -> tuple[Knob, ...]:
        """Return the knobs: the parameters after the `*`."""
        knobs = []
        for parameter in self.parameters:
            if parameter.kind != parameter.KEYWORD_ONLY:
                continue
            default = MISSING if parameter.default is parameter.empty else parameter.default
            knob = knob_from_hint(parameter.name, self.hint(parameter), default, self.help_of(parameter.name))
            if knob is None:
                self.fail(
                    f"has knob {parameter.name} of type {type_name(self.hint(parameter))}; use bool, int, float, str, "
                    "an Enum, Path, OutputPath, a tuple of numbers, tuple[str, ...] or SubstepGraph"
                )
            fault = None if knob.required else knob.fault(default)
            if fault is not None:
                self.fail(f"has knob {knob.name} whose default {default!r} {fault[0]}; allowed: {fault[1]}")
            knobs.append(knob)
        return tuple(knobs)


def _place(function: Callable) -> tuple[str, int]:
    """Return file and line of a function; a generated one belongs to the module that it says, not to its factory's."""
    code = getattr(function, "__code__", None)
    written = code.co_filename if code else "<unknown>"
    home = getattr(sys.modules.get(function.__module__), "__file__", None) or written
    return (written, code.co_firstlineno) if code and home == written else (home, 1)


def bare(hint: Any) -> Any:
    """Return a type hint without what `Annotated` adds to it."""
    return typing.get_args(hint)[0] if getattr(hint, "__metadata__", ()) else hint


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a docstring's first paragraph and the help of each name under `Args:` or `Attributes:`."""
    lines = inspect.cleandoc(text).splitlines()
    summary = " ".join(line.strip() for line in _until_blank(lines))
    entries: dict[str, str] = {}
    inside, name = False, ""
    for line in lines:
        if re.match(r"\S", line):
            inside = line.strip() in ("Args:", "Attributes:")
            continue
        start = re.match(r"    (\w+)(?: \([^)]*\))?:(?:\s+(.*))?$", line) if inside else None
        if start:
            name = start[1]
            entries[name] = start[2] or ""
        elif inside and name and line.strip():
            entries[name] = f"{entries[name]} {line.strip()}".strip()
    return summary, entries


def _until_blank(lines: list[str]) -> list[str]:
    end = next((number for number, line in enumerate(lines) if not line.strip()), len(lines))
    return lines[:end]
