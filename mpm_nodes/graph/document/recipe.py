"""The substeps of a solve as Python edits them; what is written is a preset with a short list of edits, or a document."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.declarations import Declaration
from mpm_nodes.graph.declare.knobs import to_json
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.stage_edits import Stages, apply_edits
from mpm_nodes.graph.document.substep_document import Substeps, document_of, load_substeps, read_stages
from mpm_nodes.graph.reports.problems import GraphError, Problem, Problems

__all__ = ["SubstepRecipe", "declared_type"]


class SubstepRecipe:
    """A substep graph under construction.

    ```python
    graph["sim"].substeps.insert_after("add_stress_forces", wind, push=30.0)  # in a graph
    recipe = SubstepRecipe("explicit_apic")                                   # for a SubstepSolver
    recipe.insert_after("add_stress_forces", wind)
    ```

    Every edit is tried at once and refused with a `GraphError` where it cannot be done; knobs, wires and the order of the stages
    are checked when the graph is validated.

    Args:
        value: Preset name, {"preset": name, "set": {...}, "edits": [...]}, or a substeps document.
        registry: Stages that may be used; None takes the shared registry.
        changed: Called with the new value and the registry after every change.
    """

    def __init__(
        self,
        value: Any = "explicit_apic",
        *,
        registry: Registry | None = None,
        changed: Callable[[Any, Registry], None] = lambda value, registry: None,
    ) -> None:
        self._value = copy.deepcopy(to_json(value))
        self.registry = registry or registries.default()
        self._changed = changed

    @property
    def value(self) -> Any:
        """The recipe as it stands in a graph file."""
        return copy.deepcopy(self._value)

    def resolve(self) -> Substeps:
        """Return the resolved substep graph.

        Raises:
            GraphError: With everything that is wrong.
        """
        substeps, problems = load_substeps(self._value, self.registry)
        if problems:
            raise GraphError(problems)
        return substeps

    def __iter__(self) -> Iterator[str]:
        return iter(self._stages(self._value).entries)

    def __contains__(self, name: str) -> bool:
        return name in self._stages(self._value).entries

    # ------------------------------------------------------------ edits
    def insert_after(self, stage: str, what: Any, id: str | None = None, /, **knobs: Any) -> str:
        """Put a stage right after another one and return its name.

        Args:
            stage: The stage that is there.
            what: Id of the new stage's declaration, or a function declared with `@stage`.
            id: Its name; made from the type when left out.
            knobs: Its knobs.

        Raises:
            GraphError: There is no such stage or type, or the name is taken.
        """
        return self._insert("after", stage, what, id, knobs)

    def insert_before(self, stage: str, what: Any, id: str | None = None, /, **knobs: Any) -> str:
        """Put a stage right before another one and return its name; see `insert_after`."""
        return self._insert("before", stage, what, id, knobs)

    def remove(self, stage: str) -> None:
        """Take a stage out; its wires are joined by domain."""
        self._edit({"remove": stage})

    def bypass(self, stage: str, on: bool = True) -> None:
        """Let the domains pass by a stage, or through it again."""
        self._edit({"bypass" if on else "enable": stage})

    def replace(self, stage: str, what: Any, /, **knobs: Any) -> None:
        """Put another stage in the place of one; name, wires by domain and the knobs that both have stay."""
        self._edit({"replace": stage} | self._described(what, knobs))

    def rename(self, stage: str, name: str) -> None:
        """Give a stage another name."""
        self._edit({"rename": stage, "to": name})

    def connect(self, place: str, *sources: str) -> None:
        """Wire "stage.port" from stages, "stage.domain" or the name of a domain, in place of what it had."""
        self._edit({"connect": place, "from": sources[0] if len(sources) == 1 else list(sources)})

    def disconnect(self, place: str, source: str | None = None) -> None:
        """Take all wires off "stage.port", or the one from a source."""
        edit = {"disconnect": place}
        self._edit(edit if source is None else edit | {"from": source})

    def set(self, name: str, value: Any) -> None:
        """Set a parameter of the preset, or "stage.knob"; `validate` checks name and value."""
        whole: dict[str, Any] = {"preset": self._value} if isinstance(self._value, str) else dict(self._value)
        whole["set"] = {**whole.get("set", {}), name: to_json(value)}
        self._store(whole)

    # ------------------------------------------------------------ how
    def _insert(self, where: str, stage: str, what: Any, id: str | None, knobs: Mapping[str, Any]) -> str:
        described = self._described(what, knobs)
        name = id or self._free_name(described["type"])
        self._edit({"insert": name, where: stage, **described})
        return name

    def _described(self, what: Any, knobs: Mapping[str, Any]) -> dict[str, Any]:
        type, self.registry = declared_type(what, self.registry)
        found = self.registry.find(type)
        described: dict[str, Any] = {"type": type} | ({} if found is None else {"version": found.version})
        return described | ({"knobs": to_json(knobs)} if knobs else {})

    def _free_name(self, type: str) -> str:
        names, name, number = set(self), type, 1
        while name in names:
            number += 1
            name = f"{type}_{number}"
        return name

    def _stages(self, value: Any) -> Stages:
        problems = Problems()
        raw = document_of(value, self.registry, problems)
        if not problems and "candidates" in raw:  # what goes for all of them goes for the first
            raw = document_of(raw["candidates"][0], self.registry, problems)
        if problems:
            raise GraphError(problems)
        return read_stages(value, raw, self.registry, problems)

    def _edit(self, edit: dict[str, Any]) -> None:
        stages, problems = self._stages(self._value), Problems()
        apply_edits(stages, [edit], problems)
        if problems:
            raise GraphError([Problem(p.place.partition(".")[2], p.message, p.value, p.allowed, p.cure) for p in problems])
        if isinstance(self._value, Mapping) and "preset" not in self._value:
            nodes = {name: entry.to_json(stages.declaration(name)) for name, entry in stages.entries.items()}
            parameters = {"parameters": stages.parameters} if stages.parameters else {}
            kept = {key: each for key, each in self._value.items() if key not in ("parameters", "nodes")}
            self._store({**kept, **parameters, "nodes": nodes})
            return
        whole: dict[str, Any] = {"preset": self._value} if isinstance(self._value, str) else dict(self._value)
        whole["edits"] = [*whole.get("edits", []), edit]
        self._store(whole)

    def _store(self, value: Any) -> None:
        self._value = value
        self._changed(self.value, self.registry)


def declared_type(what: Any, registry: Registry) -> tuple[str, Registry]:
    """Return the id of a type given by name or as a declared function, and a registry that knows it.

    A function that the registry does not hold yet is added to a registry of its own: the shared one stays as it is.
    """
    if isinstance(what, str):
        return what, registry
    declaration = getattr(what, "declaration", None)
    if not isinstance(declaration, Declaration):
        raise GraphError(
            [Problem("type", "is neither an id nor a declared function", repr(what), cure="decorate it with @node or @stage")]
        )
    known = registry.find(declaration.id)
    if known is not None and known.function is declaration.function:
        return declaration.id, registry
    return declaration.id, registry.extended(declaration)
