"""Turn a function's signature into the declaration of a node or a stage.

`@node` and `@stage` leave the function as it is and hang a declaration on it (`function.declaration`). Everything that
the validator, the planner, the command line, the hosts and the tests know about a node is read from there. What is
missing (a hint, a line of help, a return type) is refused at import with one sentence.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from mpm_nodes import data
from mpm_nodes.data import ATTRIBUTES, GRID_ARRAYS, LAW_STATE, Attribute, MpmNodesError, Reads, Stage, Writes
from mpm_nodes.graph.declarations import (
    Declaration,
    Domain,
    NodeDeclaration,
    Output,
    Port,
    StageDeclaration,
    UpgradeFunction,
    members,
    type_name,
)
from mpm_nodes.graph.knobs import MISSING, Knob, knob_from_hint

__all__ = [
    "DOMAINS",
    "DOMAIN_ARRAYS",
    "Declaration",
    "DeclarationError",
    "NodeDeclaration",
    "StageDeclaration",
    "node",
    "parse_docstring",
    "stage",
    "type_name",
]

DOMAINS: dict[type, str] = {data.Particles: "particles", data.Grid: "grid", data.Colliders: "colliders",
                            data.Energy: "energy"}
"""What stages touch, and the name that its ports have."""

DOMAIN_ARRAYS: dict[str, frozenset[str]] = {
    "particles": frozenset([*ATTRIBUTES, LAW_STATE]),
    "grid": frozenset(GRID_ARRAYS),
    "colliders": frozenset(["level_set"]),
    "energy": frozenset(["terms"]),
}


class DeclarationError(MpmNodesError):
    """A node or stage cannot be declared as it is written."""


# ---------------------------------------------------------------- decorators
def node(
    *, category: str, label: str, version: int = 1, upgrades: Mapping[int, UpgradeFunction] | None = None
) -> Callable[[Callable], Callable]:
    """Declare a function as a node: parameters before `*` are input ports, those after it are knobs.

    Args:
        category: Where menus put it ("Emit", "Collide", ...).
        label: Name that artists see.
        version: Raise it when results or meanings change.
        upgrades: For each old version whose names or meanings changed, `function(knobs, inputs) -> (knobs, inputs)`.

    Raises:
        DeclarationError: With one sentence, when a hint, a line of help or a return type is missing.
    """

    def decorate(function: Callable) -> Callable:
        reader = _Reader("node", function)
        reader.check_names(label, version, upgrades or {})
        ports, special = reader.ports()
        outputs = reader.node_outputs()
        previous = special.pop("previous_type", None)
        if previous is not None and not any(output.type == previous for output in outputs):
            reader.fail(f"asks for its previous {type_name(previous)} but returns none; return one")
        function.declaration = NodeDeclaration(  # type: ignore[attr-defined]
            **reader.common(label, version, upgrades or {}),
            category=category,
            ports=ports,
            outputs=outputs,
            special=special,
            wants_ctx="ctx" in special,
            wants_settings="settings" in special,
            previous_type=previous,
        )
        return function

    return decorate


def stage(
    *, label: str, version: int = 1, sets: Iterable[str] = (), upgrades: Mapping[int, UpgradeFunction] | None = None
) -> Callable[[Callable], Callable]:
    """Declare a function as a stage: parameters before `*` are the domains that it touches, those after it are knobs.

    Args:
        label: Name that artists see.
        version: Raise it when results or meanings change.
        sets: ("dt",) for the stage that chooses the time step, else ().
        upgrades: As for `node`.

    Raises:
        DeclarationError: With one sentence, when a hint, a line of help or a return type is missing, or a name unknown.
    """

    def decorate(function: Callable) -> Callable:
        reader = _Reader("stage", function)
        reader.check_names(label, version, upgrades or {})
        domains, arguments = reader.domains()
        outputs = reader.stage_outputs(domains)
        fields = tuple(sets)
        if not set(fields) <= {"dt"}:
            reader.fail(f"sets {', '.join(fields)}, but only dt can be set; write sets=('dt',)")
        if fields and "step" not in arguments:
            reader.fail("sets dt without a step; add the parameter step: StepContext")
        if fields and not outputs:
            reader.fail("sets dt but returns no domain, so that nothing can be ordered after it; return one")
        function.declaration = StageDeclaration(  # type: ignore[attr-defined]
            **reader.common(label, version, upgrades or {}),
            domains=domains,
            arguments=arguments,
            outputs=outputs,
            sets=fields,
        )
        return function

    return decorate


# ---------------------------------------------------------------- reading a function
class _Reader:
    """Reads signature, hints and docstring of one function, and fails with one sentence that names it."""

    def __init__(self, kind: str, function: Callable) -> None:
        self.kind, self.function = kind, function
        self.file, self.line = _place(function)
        self.parameters = list(inspect.signature(function).parameters.values())
        try:
            self.hints = typing.get_type_hints(function, include_extras=True)
        except Exception as error:
            self.fail(f"has a type hint that cannot be resolved ({error}); import the name at module level")
        self.doc, self.help = parse_docstring(function.__doc__ or "")

    def fail(self, what: str) -> NoReturn:
        raise DeclarationError(f"{self.file}:{self.line}: {self.kind} {self.function.__name__} {what}")

    def check_names(self, label: str, version: int, upgrades: Mapping[int, UpgradeFunction]) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", self.function.__name__):
            self.fail("is not named in lower case with underscores; rename it")
        if not label.strip():
            self.fail("has no label; write label='...'")
        if not self.doc:
            self.fail("has no docstring; write one imperative line")
        if version < 1 or any(not 1 <= old < version for old in upgrades):
            self.fail(
                f"has version {version} and upgrades from {sorted(upgrades)}; upgrade from versions 1 to {version - 1}"
            )

    def hint(self, parameter: inspect.Parameter) -> Any:
        if parameter.name not in self.hints:
            self.fail(f"has no type hint for {parameter.name}; write {parameter.name}: ...")
        return self.hints[parameter.name]

    def help_of(self, name: str) -> str:
        if not self.help.get(name):
            self.fail(f"has no help for {name}; add the line '{name}: ...' under Args: in its docstring")
        return self.help[name]

    def positional(self) -> list[inspect.Parameter]:
        for parameter in self.parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                self.fail(f"takes *{parameter.name}; name each port and knob")
        return [p for p in self.parameters if p.kind != p.KEYWORD_ONLY]

    def common(self, label: str, version: int, upgrades: Mapping[int, UpgradeFunction]) -> dict[str, Any]:
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

    # ------------------------------------------------------------ nodes
    def ports(self) -> tuple[tuple[Port, ...], dict[str, Any]]:
        ports, special = [], {}
        for parameter in self.positional():
            hint = _bare(self.hint(parameter))
            if hint is data.FrameContext:
                special["ctx"] = parameter.name
            elif hint is data.GraphSettings:
                special["settings"] = parameter.name
            elif typing.get_origin(hint) is data.Previous:
                special["previous"] = parameter.name
                special["previous_type"] = typing.get_args(hint)[0]
            else:
                ports.append(self.port(parameter, hint))
        return tuple(ports), special

    def port(self, parameter: inspect.Parameter, hint: Any) -> Port:
        many = typing.get_origin(hint) is data.Many
        bare = typing.get_args(hint)[0] if many else hint
        kinds = [part for part in members(bare) if part is not type(None)]
        if parameter.default not in (parameter.empty, None, ()):
            self.fail(
                f"has port {parameter.name} with default {parameter.default!r}; only None, or () for Many, can be"
            )
        wire_type = kinds[0] if len(kinds) == 1 else typing.Union[tuple(kinds)]  # noqa: UP007 (built from a list)
        optional = parameter.default is not parameter.empty
        return Port(parameter.name, wire_type, optional, many, self.help_of(parameter.name))

    def node_outputs(self) -> tuple[Output, ...]:
        if "return" not in self.hints:
            self.fail("has no return type; write -> Particles, a NamedTuple of outputs, or None")
        returned = _bare(self.hints["return"])
        if returned is type(None):
            return ()
        if isinstance(returned, type) and issubclass(returned, tuple) and hasattr(returned, "_fields"):
            hints = typing.get_type_hints(returned, include_extras=True)
            return tuple(Output(name, _bare(hints[name])) for name in returned._fields)
        return (Output(_snake(returned), returned),)

    # ------------------------------------------------------------ stages
    def domains(self) -> tuple[tuple[Domain, ...], tuple[str, ...]]:
        domains, arguments = [], []
        for parameter in self.positional():
            hint = self.hint(parameter)
            arguments.append("step" if _bare(hint) is data.StepContext else parameter.name)
            if _bare(hint) is data.StepContext:
                continue
            if _bare(hint) in DOMAINS:
                domains.append(self.domain(parameter, hint))
            else:
                self.fail(
                    f"has {parameter.name} of type {type_name(_bare(hint))} before the *; only domains "
                    f"({', '.join(kind.__name__ for kind in DOMAINS)}) and StepContext stand there"
                )
        if not domains:
            self.fail("touches no domain; add a parameter such as particles: A[Particles, Reads('position')]")
        return tuple(domains), tuple(arguments)

    def domain(self, parameter: inspect.Parameter, hint: Any) -> Domain:
        name = DOMAINS[_bare(hint)]
        if parameter.name != name:
            self.fail(f"calls its {_bare(hint).__name__} {parameter.name}; call it {name}")
        metadata = getattr(hint, "__metadata__", ())
        if not any(isinstance(item, (Reads, Writes)) for item in metadata):
            self.fail(
                f"does not say what it touches on {name}; write A[{_bare(hint).__name__}, Reads(...), Writes(...)]"
            )
        own = tuple(item for item in metadata if isinstance(item, Attribute))
        known = DOMAIN_ARRAYS[name] | {attribute.name for attribute in own}
        reads = tuple(n for item in metadata if isinstance(item, Reads) for n in item.names)
        writes = tuple(n for item in metadata if isinstance(item, Writes) for n in item.names)
        for touched in (*reads, *writes):
            if touched not in known:
                self.fail(
                    f"touches {name}.{touched}, which is unknown; known are {', '.join(sorted(known))}"
                    + ("; describe your own with an Attribute in A[...]" if name == "particles" else "")
                )
        conditions = tuple((n, *item.when) for item in metadata if isinstance(item, Reads) and item.when for n in item.names)
        for array, knob, _value in conditions:
            if knob not in [parameter.name for parameter in self.parameters]:
                self.fail(f"reads {name}.{array} depending on {knob}, which is none of its knobs")
        return Domain(name, reads, writes, own, conditions)

    def stage_outputs(self, domains: tuple[Domain, ...]) -> tuple[str, ...]:
        hint = self.hints.get("return")
        if _bare(hint) is not Stage or not getattr(hint, "__metadata__", ()):
            self.fail('has no return type; write -> Stage["particles", ...] with each domain that it writes')
        outputs = tuple(hint.__metadata__[0])
        given = [domain.name for domain in domains]
        for name in outputs:
            if name not in given:
                self.fail(f"returns {name}, which it does not take; it takes {', '.join(given)}")
        for domain in domains:
            if domain.writes and domain.name not in outputs:
                self.fail(f'writes {domain.name} but does not return it; write -> Stage["{domain.name}", ...]')
        return outputs


def _place(function: Callable) -> tuple[str, int]:
    """Return file and line of a function; a generated one belongs to the module that it says, not to its factory's."""
    code = getattr(function, "__code__", None)
    written = code.co_filename if code else "<unknown>"
    home = getattr(sys.modules.get(function.__module__), "__file__", None) or written
    return (written, code.co_firstlineno) if code and home == written else (home, 1)


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if getattr(hint, "__metadata__", ()) else hint


def _snake(hint: Any) -> str:
    if not isinstance(hint, type) or typing.get_args(hint):
        return "result"
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", hint.__name__).lower()


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
