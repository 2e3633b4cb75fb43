"""Turn a function's signature into the declaration of a node or a stage.

`@node` and `@stage` leave the function as it is and hang a declaration on it (`function.declaration`). Everything that
the validator, the planner, the command line, the hosts and the tests know about a node is read from there. What is
missing is refused at import.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mpm_nodes.data import Facts, Limit
from mpm_nodes.graph.declare.declarations import (
    Contents,
    ContentsContext,
    Declaration,
    NodeDeclaration,
    Preflight,
    PreflightContext,
    StageDeclaration,
    UpgradeFunction,
    type_name,
)
from mpm_nodes.graph.declare.node_signatures import NodeReader
from mpm_nodes.graph.declare.signatures import DeclarationError, parse_docstring
from mpm_nodes.graph.declare.stage_signatures import StageReader

__all__ = [
    "ContentsContext",
    "Declaration",
    "DeclarationError",
    "NodeDeclaration",
    "PreflightContext",
    "StageDeclaration",
    "ends_at_sides",
    "found_by",
    "node",
    "parse_docstring",
    "reads_of_materials",
    "stage",
    "type_name",
]


F = typing.TypeVar("F", bound=Callable[..., Any])


# ---------------------------------------------------------------- decorators
def node(
    *,
    category: str,
    label: str,
    version: int = 1,
    upgrades: Mapping[int, UpgradeFunction] | None = None,
    preflight: Preflight | None = None,
    needs_any: Iterable[str] = (),
    alternatives: Iterable[str] = (),
    contents: Mapping[str, Contents] | None = None,
) -> Callable[[F], F]:
    """Declare a function as a node: parameters before `*` are input ports, those after it are knobs.

    Args:
        category: Where menus put it ("Emit", "Collide", ...).
        label: Name that artists see.
        version: Raise it when results or meanings change.
        upgrades: For each old version whose names or meanings changed, `function(knobs, inputs) -> (knobs, inputs)`.
        preflight: Called before a cook with a `PreflightContext`; says what the node will need, and raises where that is too much.
        needs_any: Optional input ports of which one at least must be wired.
        alternatives: Knobs that say the same in other words: one at most may differ from its default.
        contents: For knobs that name a file, `function(ContentsContext)` that says what the node reads of it at a frame: what
            changes at later frames only does not count for those before. Without it the whole file counts.

    Raises:
        DeclarationError: With one sentence, when a hint, a line of help or a return type is missing, or a port of `needs_any` or
            a knob of `alternatives` or `contents`.
    """

    def decorate(function: F) -> F:
        reader = NodeReader("node", function)
        reader.check_names(label, version, upgrades or {})
        ports, special = reader.ports()
        outputs = reader.outputs()
        unknown = [name for name in needs_any if name not in (port.name for port in ports)]
        if unknown:
            reader.fail(f"needs_any names {unknown[0]!r}, which is not an input port; name ports only")
        common = reader.common(label, version, upgrades or {})
        strange = [name for name in alternatives if name not in (knob.name for knob in common["knobs"])]
        if strange:
            reader.fail(f"alternatives names {strange[0]!r}, which is not a knob; name knobs only")
        files = {knob.name for knob in common["knobs"] if knob.kind == "path"}
        wrong = next((name for name in contents or {} if name not in files), None)
        if wrong is not None:
            reader.fail(f"contents names {wrong!r}, which is not a knob for a file; name such knobs only")
        previous = special.pop("previous_type", None)
        if previous is not None and not any(output.type == previous for output in outputs):
            reader.fail(f"asks for its previous {type_name(previous)} but returns none; return one")
        function.declaration = NodeDeclaration(  # type: ignore[attr-defined]
            **common,
            category=category,
            ports=ports,
            outputs=outputs,
            special=special,
            wants_ctx="ctx" in special,
            wants_settings="settings" in special,
            previous_type=previous,
            preflight=preflight,
            needs_any=tuple(needs_any),
            alternatives=tuple(alternatives),
            contents=dict(contents or {}),
        )
        return function

    return decorate


def found_by(*words: str) -> Callable[[F], F]:
    """Give a node what artists call it, by which menus find it as well as by label and help; it stands above `@node`.

    Args:
        words: Single words in lower case ("tornado").

    Raises:
        DeclarationError: A word is not one word in lower case.
    """

    def decorate(function: F) -> F:
        wrong = [word for word in words if not re.fullmatch(r"[a-z]+", word)]
        if wrong:
            raise DeclarationError(f"{function.__name__} is to be found by {wrong[0]!r}, which is not one word in lower case")
        function.declaration = dataclasses.replace(function.declaration, words=words)  # type: ignore[attr-defined]
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
        reader = StageReader("stage", function)
        reader.check_names(label, version, upgrades or {})
        ports, arguments = reader.domain_ports()
        outputs = reader.outputs(ports)
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


def needs_whole_nodes(function: F) -> F:
    """Declare, above `stage`, that a stage needs grid nodes whole, or looks for neighbours among the particles.

    Matter on the two sides of a thin plate has copies of the nodes near it, which are summed up beyond its rim: what other stages
    do to each of them adds up, as a force in proportion to the node's mass does. With a stage that needs them whole, plates do not
    keep their sides apart, and a warning says so; periodic sides refuse it.
    """
    function.declaration = dataclasses.replace(function.declaration, copies=False)  # type: ignore[attr-defined]
    return function


def ends_at_sides(function: F) -> F:
    """Declare, above `stage`, that a stage looks for neighbours among particles on one side only: periodic sides refuse it."""
    function.declaration = dataclasses.replace(function.declaration, around=False)  # type: ignore[attr-defined]
    return function


def joins_copies(function: F) -> F:
    """Declare, above `stage`, that a stage meets bodies on the nodes of the grid.

    Before it, in a substep, the bodies are posed and the copies of nodes that no thin plate keeps apart become one. Plates keep
    their two sides apart in graphs with one such stage.
    """
    function.declaration = dataclasses.replace(function.declaration, joins=True)  # type: ignore[attr-defined]
    return function


def moves_rigid_bodies(*without: str) -> Callable[[F], F]:
    """Declare, above `stage`, that a stage moves rigid bodies by what matter gives them, but where one of these knobs is on."""

    def decorate(function: F) -> F:
        function.declaration = dataclasses.replace(function.declaration, moves_bodies=without)  # type: ignore[attr-defined]
        return function

    return decorate


def shared_among_ranks(function: F) -> F:
    """Declare, above `stage`, that a stage gives the same on several ranks: it knows of them, or what is around it sees to that.

    Stages that take particle by particle need not say so.
    """
    function.declaration = dataclasses.replace(function.declaration, shared=True)  # type: ignore[attr-defined]
    return function


def costs(passes: float) -> Callable[[F], F]:
    """Declare, above `stage`, the work of a stage besides what its facts count, in passes over the particles.

    A pass is what it takes to bring every particle to the grid once. Choices between presets count it.
    """

    def decorate(function: F) -> F:
        function.declaration = dataclasses.replace(function.declaration, passes=passes)  # type: ignore[attr-defined]
        return function

    return decorate


def reads_of_materials(*names: str) -> Callable[[F], F]:
    """Declare, above `stage`, which members of materials a stage reads, of those that no law reads itself.

    A material that has one is warned of where no stage reads it, in the words of `Physics.material_numbers`.
    """

    def decorate(function: F) -> F:
        function.declaration = dataclasses.replace(function.declaration, of_materials=names)  # type: ignore[attr-defined]
        return function

    return decorate
