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
from mpm_nodes.data import (
    LAW_STATE,
    Domain,
    Facts,
    Field,
    Limit,
    MpmNodesError,
    Reads,
    Stage,
    StageMemory,
    Writes,
    all_domains,
    domain_of,
)
from mpm_nodes.graph.declarations import (
    Declaration,
    DomainPort,
    NodeDeclaration,
    OfferedLimit,
    Output,
    Port,
    Preflight,
    PreflightContext,
    StageDeclaration,
    UpgradeFunction,
    members,
    type_name,
)
from mpm_nodes.graph.kept import Kept
from mpm_nodes.graph.keys import TakenAtStart
from mpm_nodes.graph.knobs import MISSING, Knob, knob_from_hint

__all__ = [
    "Declaration",
    "DeclarationError",
    "NodeDeclaration",
    "PreflightContext",
    "StageDeclaration",
    "node",
    "parse_docstring",
    "stage",
    "type_name",
]


F = typing.TypeVar("F", bound=Callable[..., Any])


class DeclarationError(MpmNodesError):
    """A node or stage cannot be declared as it is written."""


# ---------------------------------------------------------------- decorators
def node(
    *,
    category: str,
    label: str,
    version: int = 1,
    upgrades: Mapping[int, UpgradeFunction] | None = None,
    preflight: Preflight | None = None,
) -> Callable[[F], F]:
    """Declare a function as a node: parameters before `*` are input ports, those after it are knobs.

    Args:
        category: Where menus put it ("Emit", "Collide", ...).
        label: Name that artists see.
        version: Raise it when results or meanings change.
        upgrades: For each old version whose names or meanings changed, `function(knobs, inputs) -> (knobs, inputs)`.
        preflight: Called before a cook with a `PreflightContext`; says what the node will need, and raises where that is too much.

    Raises:
        DeclarationError: With one sentence, when a hint, a line of help or a return type is missing.
    """

    def decorate(function: F) -> F:
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
            preflight=preflight,
        )
        return function

    return decorate


def stage(
    *,
    label: str,
    version: int = 1,
    sets: Iterable[str] = (),
    facts: Iterable[Facts] = (),
    limits: Iterable[Limit] = (),
    removes: Iterable[str] = (),
    upgrades: Mapping[int, UpgradeFunction] | None = None,
    fragments: Any = (),
) -> Callable[[F], F]:
    """Declare a function as a stage: parameters before `*` are the domains that it touches, those after it are knobs.

    Args:
        label: Name that artists see.
        version: Raise it when results or meanings change.
        sets: ("dt",) for the stage that chooses the time step, else ().
        facts: What it tells with `step.tell`.
        limits: What it may limit the time step by.
        removes: Domains of which it may remove elements.
        upgrades: As for `node`.
        fragments: What it does to the particles of one block, for loops that it shares with its neighbours
            (`kernels.composition.fragments`); where that hangs on knobs, a function of them that returns it.

    Raises:
        DeclarationError: With one sentence, when a hint, a line of help or a return type is missing, or a name unknown.
    """

    def decorate(function: F) -> F:
        reader = _Reader("stage", function)
        reader.check_names(label, version, upgrades or {})
        ports, arguments = reader.domain_ports()
        outputs = reader.stage_outputs(ports)
        fields = tuple(sets)
        if not set(fields) <= {"dt"}:
            reader.fail(f"sets {', '.join(fields)}, but only dt can be set; write sets=('dt',)")
        if fields and "step" not in arguments:
            reader.fail("sets dt without a step; add the parameter step: StepContext")
        if fields and not outputs:
            reader.fail("sets dt but returns no domain, so that nothing can be ordered after it; return one")
        function.declaration = StageDeclaration(  # type: ignore[attr-defined]
            **reader.common(label, version, upgrades or {}),
            domains=ports,
            arguments=arguments,
            outputs=outputs,
            sets=fields,
            facts=reader.facts(facts, arguments),
            limits=tuple(reader.limit(limit) for limit in limits),
            removes=reader.removed(removes, outputs),
            memory=reader.memory,
            fragments=fragments,
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
        self.memory: type | None = None

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
            self.fail(f"has version {version} and upgrades from {sorted(upgrades)}; upgrade from versions 1 to {version - 1}")

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
            elif hint is Kept:
                special["kept"] = parameter.name
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
            self.fail(f"has port {parameter.name} with default {parameter.default!r}; only None, or () for Many, can be")
        wire_type = kinds[0] if len(kinds) == 1 else typing.Union[tuple(kinds)]  # noqa: UP007 (built from a list)
        optional = parameter.default is not parameter.empty
        at_start = any(isinstance(item, TakenAtStart) for item in getattr(self.hint(parameter), "__metadata__", ()))
        return Port(parameter.name, wire_type, optional, many, self.help_of(parameter.name), at_start)

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
    def domain_ports(self) -> tuple[tuple[DomainPort, ...], tuple[str, ...]]:
        ports, arguments = [], []
        for parameter in self.positional():
            hint = self.hint(parameter)
            arguments.append("step" if _bare(hint) is data.StepContext else parameter.name)
            if _bare(hint) is data.StepContext:
                continue
            if isinstance(hint, type) and issubclass(hint, StageMemory):
                self.remember(parameter.name, hint)
                continue
            domain = domain_of(_bare(hint))
            if domain is not None:
                ports.append(self.domain_port(domain, parameter, hint))
            else:
                self.fail(
                    f"has {parameter.name} of type {type_name(_bare(hint))} before the *; only domains "
                    f"({', '.join(domain.port.__name__ for domain in all_domains())}) and StepContext stand there"
                )
        if not ports:
            self.fail("touches no domain; add a parameter such as particles: A[Particles, Reads('position')]")
        return tuple(ports), tuple(arguments)

    def domain_port(self, domain: Domain, parameter: inspect.Parameter, hint: Any) -> DomainPort:
        name = domain.name
        if parameter.name != name:
            self.fail(f"calls its {_bare(hint).__name__} {parameter.name}; call it {name}")
        metadata = getattr(hint, "__metadata__", ())
        if not any(isinstance(item, (Reads, Writes)) for item in metadata):
            self.fail(f"does not say what it touches on {name}; write A[{_bare(hint).__name__}, Reads(...), Writes(...)]")
        own = self.own_fields(domain, metadata)
        known = {*domain.fields, *((LAW_STATE,) if domain.holds_law_state else ()), *(field.name for field in own)}
        reads = tuple(n for item in metadata if isinstance(item, Reads) for n in item.names)
        writes = tuple(n for item in metadata if isinstance(item, Writes) for n in item.names)
        for touched in (*reads, *writes):
            if touched not in known:
                self.fail(
                    f"touches {name}.{touched}, which is unknown; known are {', '.join(sorted(known))}"
                    + ("; describe your own with a Field in Reads(...) or Writes(...)" if domain.takes_fields else "")
                )
        conditions = tuple((n, *item.when) for item in metadata if isinstance(item, Reads) and item.when for n in item.names)
        for array, knob, _value in conditions:
            if knob not in [parameter.name for parameter in self.parameters]:
                self.fail(f"reads {name}.{array} depending on {knob}, which is none of its knobs")
        on_request = tuple(n for item in metadata if isinstance(item, Reads) and item.on_request for n in item.names)
        return DomainPort(name, reads, writes, own, conditions, on_request)

    def own_fields(self, domain: data.Domain, metadata: Iterable[Any]) -> tuple[Field, ...]:
        """Return the fields that the stage describes itself, each once."""
        given = [item for item in metadata if isinstance(item, Field)]
        given += [field for item in metadata if isinstance(item, (Reads, Writes)) for field in item.own]
        found: dict[str, Field] = {}
        for field in given:
            known = domain.fields.get(field.name) or found.get(field.name)
            if known is not None and known != field:
                self.fail(f"describes {domain.name}.{field.name} otherwise than it is known; rename it or take the known one")
            if domain.fields.get(field.name) is None:
                found[field.name] = field
        if found and not domain.takes_fields:
            self.fail(f"describes {domain.name}.{next(iter(found))}, but {domain.name} takes no further fields")
        return tuple(found.values())

    def remember(self, name: str, kind: type) -> None:
        """Note the type of what the stage remembers."""
        if name != "memory":
            self.fail(f"calls its memory {name}; call it memory")
        try:
            kind()
        except TypeError as error:
            self.fail(f"remembers {kind.__name__}, which does not begin by itself ({error}); give every field a default")
        self.memory = kind

    def facts(self, groups: Iterable[Facts], arguments: Iterable[str]) -> tuple[Facts, ...]:
        """Return what the stage tells."""
        if tuple(groups) and "step" not in arguments:
            self.fail("declares facts but takes no step to tell them; add the parameter step: StepContext")
        return tuple(groups)

    def removed(self, names: Iterable[str], outputs: Iterable[str]) -> tuple[str, ...]:
        """Return the domains that lose elements to the stage."""
        for name in names:
            if name not in outputs:
                self.fail(f"removes of {name}, which it does not return; return it, or take it out of removes")
        return tuple(names)

    def limit(self, limit: Limit) -> OfferedLimit:
        """Return a limit of the time step with what its function reads."""
        if limit.function is None:
            return OfferedLimit(limit)
        reader = _Reader(f"limit of {self.function.__name__}:", limit.function)
        ports, arguments = reader.domain_ports()
        if any(port.writes for port in ports) or reader.memory is not None:
            reader.fail("writes or remembers; a limit only reads")
        mine = [parameter.name for parameter in self.parameters if parameter.kind == parameter.KEYWORD_ONLY]
        knobs = tuple(parameter.name for parameter in reader.parameters if parameter.kind == parameter.KEYWORD_ONLY)
        for name in knobs:
            if name not in mine:
                reader.fail(f"takes {name}, which is no knob of {self.function.__name__}; it has {', '.join(mine) or 'none'}")
        return OfferedLimit(limit, ports, arguments, knobs)

    def stage_outputs(self, domains: tuple[DomainPort, ...]) -> tuple[str, ...]:
        hint = self.hints.get("return")
        if _bare(hint) is not Stage or not getattr(hint, "__metadata__", ()):
            self.fail('has no return type; write -> Stage["particles", ...] with each domain that it writes')
        outputs: tuple[str, ...] = tuple(getattr(hint, "__metadata__")[0])  # noqa: B009
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
