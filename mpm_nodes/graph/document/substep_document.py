"""Substep documents: presets, parameters, settings and bypasses resolved, every problem collected.

Stages change the solver's state in place, so the wires alone order them; `hazards` proves that they do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from mpm_nodes.data import domain_names
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.declarations import StageDeclaration
from mpm_nodes.graph.declare.knobs import Knob, to_json
from mpm_nodes.graph.declare.registry import LISTING, Registry, nearest_type
from mpm_nodes.graph.document import entries as entry_files
from mpm_nodes.graph.document import order
from mpm_nodes.graph.document.entries import Entry
from mpm_nodes.graph.document.stage_edits import Stages, apply_edits
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.reports.problems import GraphError, Problem, Problems
from mpm_nodes.graph.time import keys

FORMAT = "mpm_nodes.substeps"
FIELDS = ("label", "doc", "parameters", "set", "nodes", "editor")
MOST_STAGES = 300
"""Stages of a substep graph: every pair of them is looked at; the longest preset has some thirty."""


@dataclass
class Substeps:
    """A substep graph with presets, parameters and bypasses resolved.

    Attributes:
        declarations: What each stage is.
        knobs: Raw values of each stage's knobs.
        wires: By stage and port, the (stage, domain) of each source; stage "" is the state as the substep begins.
        others: Further candidates, which the solve chooses from.
        recipe: What it was resolved from: a preset name, {"preset": ..., "set": ..., "edits": ...}, or a document.
        plan: Its plan for laws without states, where `substeps.plan_of` was asked for it.
        touched: What `substeps.fields_touched` has found.
    """

    declarations: dict[str, StageDeclaration] = field(default_factory=dict)
    knobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    wires: dict[str, dict[str, list[tuple[str, str]]]] = field(default_factory=dict)
    others: tuple[Substeps, ...] = ()
    recipe: Any = None
    plan: Any = field(default=None, repr=False, compare=False)
    touched: dict[Any, set[str]] = field(default_factory=dict, repr=False, compare=False)

    def identity(self, fact: Callable[[Knob, Any], Any]) -> dict[str, str]:
        """Return what each stage is, names left out; `fact` says what of a knob's raw value counts."""
        result = {}
        for name, declaration in self.declarations.items():
            values = {knob.name: fact(knob, self.knobs[name][knob.name]) for knob in declaration.knobs}
            result[name] = json.dumps(
                [declaration.id, declaration.version, declaration.code_digest, to_json(values)], sort_keys=True
            )
        return result

    def ordered(self, fact: Callable[[Knob, Any], Any]) -> order.Ordered:
        """Return the canonical order and the stages' lineage hashes."""
        transparent = {name for name, declaration in self.declarations.items() if declaration.is_transparent}
        return order.canonical(self.wires, self.identity(fact), transparent, merging=True)

    def signature(self, fact: Callable[[Knob, Any], Any]) -> str:
        """Return a digest of the whole substep graph, names left out."""
        return order.digest(*sorted(self.ordered(fact).hashes.values()), *(other.signature(fact) for other in self.others))

    @cached_property
    def whole_signature(self) -> str:
        """The digest in which the whole raw value of every knob counts."""
        return self.signature(raw_fact)


def raw_fact(knob: Knob, raw: Any) -> Any:
    """Return a knob's whole raw value in one spelling: equal for equal curves of values."""
    if keys.is_keyed(raw):
        return {"keys": [[float(frame), to_json(knob.convert(value)), mode] for frame, value, mode in raw["keys"]]}
    return to_json(knob.convert(raw))


def load_substeps(value: Any, registry: Registry | None = None) -> tuple[Substeps, Problems]:
    """Resolve a substep graph: preset name, {"preset": name, "set": {...}, "edits": [...]}, a document, or the path of one.

    Returns:
        The resolved graph and what is wrong with it; places are relative to it ("rasterize.kernel").
    """
    registry = registry or registries.default()
    problems = Problems()
    try:
        raw = document_of(value, registry, problems)
        if problems:
            return Substeps(), problems
        if isinstance(raw, Mapping) and "candidates" in raw:
            return _first_of(value, _candidates(value, raw, registry), registry)
        written = read_stages(value, raw, registry, problems)
    except GraphError as error:
        return Substeps(), Problems(error.problems)
    return _resolved(written, value, problems), problems


def document_of(value: Any, registry: Registry, problems: Problems) -> Any:
    """Return the document that a `substeps` value means, without its settings and edits."""
    if isinstance(value, Path):
        return strict_json.read(value)
    if isinstance(value, str):
        value = {"preset": value}
    if not isinstance(value, Mapping) or "preset" not in value:
        return value
    for key in value:
        if key not in ("preset", "set", "edits"):
            problems.add(key, "does not stand beside a preset", None, "preset, set, edits", "remove it")
    name = value["preset"]
    if not isinstance(name, str) or name not in registry.presets:
        problems.append(Problem("preset", "is not a preset", name, "", nearest(name, registry.presets, LISTING)))
        return {}
    return strict_json.read(registry.presets[name])


def read_stages(value: Any, raw: Any, registry: Registry, problems: Problems) -> Stages:
    """Return the stages of a document with the edits and settings that stand beside its preset in `value`.

    Raises:
        GraphError: When it is another kind of file.
    """
    entry_files.check_format(raw, "", FORMAT, FIELDS, problems)
    entries = entry_files.read_entries(raw.get("nodes", {}), problems)
    entry_files.upgrade_entries(entries, registry, problems)
    parameters = raw.get("parameters", {})
    if not _are_parameters(parameters):
        problems.append(Problem("parameters", "names no knobs", parameters, '{"name": ["stage.knob", ...]}', "fix it"))
        parameters = {}
    stages = Stages(entries, {name: list(places) for name, places in parameters.items()}, registry)
    beside = value if isinstance(value, Mapping) and "preset" in value else {}
    for settings in (raw.get("set", {}), beside.get("set", {})):
        if not isinstance(settings, Mapping):
            problems.append(Problem("set", "is not an object", settings, '{"name": value}', "fix it"))
    stages.set(_object(raw.get("set", {})))
    apply_edits(stages, beside.get("edits", []), problems)
    stages.set(_object(beside.get("set", {})))
    return stages


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _are_parameters(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(places, list) and places and all(isinstance(place, str) for place in places) for places in value.values()
    )


def _resolved(written: Stages, recipe: Any, problems: Problems) -> Substeps:
    """Return the substep graph that stages as they are written stand for."""
    entries, substeps = written.entries, Substeps(recipe=recipe)
    if len(entries) > MOST_STAGES:
        problems.add(
            "nodes", f"holds {len(entries):,} stages", allowed=f"at most {MOST_STAGES}", cure="keep those that do something"
        )
        return substeps
    for name, entry in entries.items():
        declaration = written.registry.find(entry.type)
        if name in domain_names():
            problems.append(Problem(name, "is a reserved name", cure="rename the stage"))
        elif isinstance(declaration, StageDeclaration):
            substeps.declarations[name] = declaration
            substeps.knobs[name] = entry.complete(declaration)
            problems.extend(version_problems(name, entry, declaration))
        else:
            message = "is of type {}, which is {}".format(entry.type, "a node, not a stage" if declaration else "unknown")
            problems.append(Problem(name, message, cure=nearest_type(entry.type, written.registry.stages)))
    if not entries and not problems:
        problems.append(Problem("nodes", "holds no stage", cure="add stages, or name a preset"))
    _apply_settings(substeps, written, problems)
    for name, declaration in substeps.declarations.items():
        check_knobs(name, declaration, substeps.knobs[name], problems)
    substeps.wires = _wires(substeps, entries, problems)
    if not problems:
        _bypass(substeps, [name for name, entry in entries.items() if entry.bypass])
    return substeps


# ---------------------------------------------------------------- presets that leave the choice to the solve
def _candidates(value: Any, raw: Mapping[str, Any], registry: Registry) -> list[dict[str, Any]]:
    """Return the substep graphs that a preset leaves to the solve to choose from.

    Settings of such a preset, and those beside it, go to every candidate that has a parameter or stage of that name, edits to all
    of them.
    """
    beside = value if isinstance(value, Mapping) else {}
    settings, edits = {**_object(raw.get("set", {})), **_object(beside.get("set", {}))}, beside.get("edits", [])
    found = []
    for name in raw["candidates"]:
        candidate = {"preset": name, **({"edits": edits} if edits else {})}
        stages = read_stages(candidate, strict_json.read(registry.presets[name]), registry, Problems())
        known = {*stages.parameters, *stages.entries}
        found.append({**candidate, "set": {key: each for key, each in settings.items() if key.split(".")[0] in known}})
    return found


def _first_of(value: Any, candidates: Sequence[Any], registry: Registry) -> tuple[Substeps, Problems]:
    """Resolve every candidate of a preset; return the first, and what is wrong with any."""
    loaded = [load_substeps(candidate, registry) for candidate in candidates]
    once: dict[tuple[str, str], Problem] = {}
    for _, found in loaded:
        for problem in found:
            once.setdefault((problem.place, problem.message), problem)
    problems = Problems(once.values())
    problems.more += max(found.more for _, found in loaded)
    settings = value.get("set", {}) if isinstance(value, Mapping) else {}
    if not isinstance(settings, Mapping):
        problems.add("set", "is not an object", settings, '{"name": value}', "fix it")
    taken = {name for candidate in candidates for name in candidate["set"]}
    for name in _object(settings):
        if name not in taken:
            problems.add(f"set.{name}", "is a parameter or stage of no candidate", cure="remove it")
    first = loaded[0][0]
    first.others = tuple(other for other, _ in loaded[1:])
    return first, problems


def version_problems(place: str, entry: Entry, declaration: Any) -> Iterator[Problem]:
    """Yield the problem of an entry that was written by a newer package."""
    if entry.version is not None and entry.version > declaration.version:
        yield Problem(
            place,
            f"is version {entry.version} of {entry.type}, this package has {declaration.version}",
            cure="install a newer mpm-nodes",
        )


def check_knobs(place: str, declaration: Any, values: Mapping[str, Any], problems: Problems) -> None:
    """Add what is wrong with the knobs of a node or stage to `problems`."""
    for knob in declaration.knobs:
        if knob.name not in values:
            problems.add(f"{place}.{knob.name}", "has no value", None, knob.allowed(), "give one")
            continue
        fault = knob.fault(values[knob.name])
        if fault is not None:
            problems.add(f"{place}.{knob.name}", fault[0], values[knob.name], fault[1], fault[2])
    known = [knob.name for knob in declaration.knobs]
    for name in values:
        if name not in known:
            problems.add(f"{place}.{name}", "is not a knob", cure=partial(declaration.nearest_knob, name))


def _apply_settings(substeps: Substeps, written: Stages, problems: Problems) -> None:
    """Write settings into the stages' knobs: promoted names first, so that "stage.knob" wins over them."""
    targets: dict[str, list[tuple[str, str]]] = {}
    for name, promoted in written.parameters.items():
        split = [place.partition(".") for place in promoted]
        targets[name] = [(stage, knob) for stage, _, knob in split]
        for stage, knob in targets[name]:
            declaration = substeps.declarations.get(stage)
            if stage not in written.entries:
                message = f"names stage {stage}, which does not exist"
                problems.add(f"parameters.{name}", message, cure=partial(nearest, stage, written.entries))
            elif declaration and declaration.knob(knob) is None:
                cure = declaration.nearest_knob(knob)
                problems.append(Problem(f"parameters.{name}", f"names {stage}.{knob}, which is not a knob", cure=cure))

    def choices() -> list[str]:
        return [*targets, *(f"{s}.{k.name}" for s, d in substeps.declarations.items() for k in d.knobs)]

    for name, value in sorted(written.settings.items(), key=lambda item: "." in item[0]):
        stage, dot, knob = name.partition(".")
        places = targets.get(name) or ([(stage, knob)] if dot else [])
        if not places or any(stage not in written.entries for stage, _ in places):
            problems.add(name, "is not a parameter of these substeps", cure=partial(nearest, name, choices))
            continue
        for stage, knob in places:
            if stage in substeps.knobs:
                substeps.knobs[stage][knob] = value


def _wires(substeps: Substeps, entries: Mapping[str, Entry], problems: Problems) -> dict[str, dict[str, list]]:
    """Return the wires of known stages; a stage's name alone means its output of the port's own name."""
    wires: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for name, declaration in substeps.declarations.items():
        wires[name] = {domain.name: [] for domain in declaration.domains}
        for port in entries[name].inputs:
            if port not in wires[name]:
                problems.add(f"{name}.{port}", "is not a port", cure=partial(nearest, port, wires[name]))
        for port, sources in wires[name].items():
            given = entries[name].inputs.get(port, [])
            if not given:
                near = f'wire it: "{port}": "{port}" takes the state at the start of the substep'
                problems.append(Problem(f"{name}.{port}", "has no wire", cure=near))
            for source in dict.fromkeys(given):
                found = _source_problem(f"{name}.{port}", port, source, substeps, entries)
                if isinstance(found, Problem):
                    problems.append(found)
                elif found:
                    sources.append(found)
    cycle = order.find_cycle(wires)
    if cycle:
        problems.append(Problem(cycle[0], f"lies on a cycle: {' -> '.join([*cycle, cycle[0]])}", cure="remove one wire of it"))
    return wires


def _source_problem(
    place: str, port: str, source: str, substeps: Substeps, entries: Mapping[str, Entry]
) -> Problem | tuple[str, str] | None:
    """Return the stage and domain that a wire comes from; a problem, or None when its stage has one already."""
    stage, dot, output = source.partition(".")
    if stage in domain_names() and not dot:
        output, stage = stage, ""
    elif stage not in entries:
        cure = nearest(stage, lambda: [*entries, *domain_names()])
        return Problem(place, f"is wired from {stage}, which does not exist", cure=cure)
    elif stage not in substeps.declarations:
        return None
    else:
        output = output or port
        outputs = substeps.declarations[stage].outputs
        if output not in outputs:
            return Problem(place, f"is wired from {stage}.{output}, which is not an output", cure=nearest(output, outputs))
    if output != port:
        return Problem(place, f"is wired from {source}, which carries {output}", None, port, f"wire {port} to {port}")
    return stage, output


def _bypass(substeps: Substeps, bypassed: Sequence[str]) -> None:
    """Take stages out: whoever was wired from one takes what was wired into its port of the same name."""
    for gone in bypassed:
        inputs = substeps.wires.pop(gone)
        del substeps.declarations[gone], substeps.knobs[gone]
        for ports in substeps.wires.values():
            for port, sources in ports.items():
                if (gone, port) in sources:
                    at = sources.index((gone, port))
                    sources[at : at + 1] = [source for source in inputs[port] if source not in sources]
