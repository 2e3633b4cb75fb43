"""Edits of a substep graph: the small patch that stands beside a preset instead of a copy of its whole document.

```json
{"preset": "explicit_apic",
 "edits": [{"insert": "wind", "after": "add_stress_forces", "type": "wind", "knobs": {"push": 30.0}},
           {"bypass": "apply_plasticity"}]}
```

An edit names what it does and to which stage; the wires follow by domain. A stage that is inserted takes every domain of its own
from the stage that carries it there, and whoever comes later takes the domain from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpm_nodes.data import domain_names
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.declare.declarations import StageDeclaration
from mpm_nodes.graph.declare.registry import Registry, nearest_type
from mpm_nodes.graph.document.entries import ID, Entry
from mpm_nodes.graph.files.strict_json import refuse
from mpm_nodes.graph.reports.problems import GraphError, Problem, Problems

__all__ = ["EDITS", "Stages", "apply_edits"]

EDITS: dict[str, tuple[str, ...]] = {
    "insert": ("type", "version", "knobs", "after", "before"),
    "remove": (),
    "bypass": (),
    "enable": (),
    "replace": ("type", "version", "knobs"),
    "rename": ("to",),
    "connect": ("from",),
    "disconnect": ("from",),
    "set": (),
}
"""What an edit can do, and the fields that may stand beside it."""
MOST_EDITS = 300
"""Edits of one list: each looks at every stage."""

Wire = tuple[str, str]
"""Where a wire comes from: (stage, domain); stage "" is the state as the substep begins."""


@dataclass
class Stages:
    """The stages of a substep graph as they are written, while they are edited.

    Attributes:
        entries: Stages by name.
        parameters: Promoted knobs: by name, places "stage.knob".
        registry: Stages that may be used.
        settings: What edits have set: a parameter or "stage.knob", and its value.
    """

    entries: dict[str, Entry]
    parameters: dict[str, list[str]]
    registry: Registry
    settings: dict[str, Any] = field(default_factory=dict)

    # ------------------------------------------------------------ what there is
    def declaration(self, name: str) -> StageDeclaration | None:
        """Return what a stage is; None when its type is unknown."""
        found = self.registry.find(self.entries[name].type)
        return found if isinstance(found, StageDeclaration) else None

    def outputs(self, name: str) -> tuple[str, ...]:
        """Return the domains that leave a stage."""
        declaration = self.declaration(name)
        return declaration.outputs if declaration else ()

    def wires(self, name: str, port: str) -> list[Wire]:
        """Return the wires into a port."""
        return [self._wire(source, port) for source in self.entries[name].inputs.get(port, [])]

    def _wire(self, source: str, port: str) -> Wire:
        stage, dot, output = source.partition(".")
        return ("", stage) if stage in domain_names() and not dot else (stage, output or port)

    def _rewire(self, name: str, port: str, wires: Iterable[Wire]) -> None:
        kept = [stage or domain for stage, domain in dict.fromkeys(wires)]
        self.entries[name].connect(port, kept if len(kept) != 1 else kept[0])

    def ancestors(self, name: str) -> set[str]:
        """Return the stages that come before one along wires."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            entry = self.entries[waiting.pop()]
            for port in entry.inputs:
                for stage, _ in [self._wire(source, port) for source in entry.inputs[port]]:
                    if stage in self.entries and stage not in found:
                        found.add(stage)
                        waiting.append(stage)
        return found

    def _carriers(self, domain: str, done: Collection[str]) -> list[Wire]:
        """Return where a domain is after the stages `done` (and all before them) have run."""
        carrying = [name for name in self.entries if name in done and domain in self.outputs(name)]
        continued = {stage for name in carrying for stage, _ in self.wires(name, domain)}
        return [(name, domain) for name in carrying if name not in continued] or [("", domain)]

    def _put_in(self, name: str, domain: str, done: Collection[str]) -> None:
        """Wire a stage's domain from where it is after `done`; whoever comes later takes the domain from this stage."""
        carriers = self._carriers(domain, done)
        self._rewire(name, domain, carriers)
        if domain not in self.outputs(name):
            return
        for other, entry in self.entries.items():
            if other != name and other not in done and domain in entry.inputs:
                given = self.wires(other, domain)
                if any(wire in carriers for wire in given):
                    self._rewire(other, domain, [(name, domain) if wire in carriers else wire for wire in given])

    def _rejoin(self, name: str, domain: str) -> None:
        """Give the wires from a stage's domain to what is wired into its port of that name."""
        through = self.wires(name, domain)
        for other, entry in self.entries.items():
            if other != name and (name, domain) in [self._wire(s, domain) for s in entry.inputs.get(domain, [])]:
                given = self.wires(other, domain)
                at = given.index((name, domain))
                self._rewire(other, domain, [*given[:at], *through, *given[at + 1 :]])

    # ------------------------------------------------------------ edits
    def insert(self, name: str, entry: Entry, after: str | None = None, before: str | None = None) -> None:
        """Put a stage right after or right before another one.

        Raises:
            GraphError: The name is taken or no name, the type is not a stage, or there is no such place.
        """
        if (after is None) == (before is None):
            refuse(name, "has no place, or two", 'say "after" or "before" which stage')
        anchor = self._known(str(after if after is not None else before))
        self._check_new(name)
        declaration = self._declared(name, entry)
        done = self.ancestors(anchor) | ({anchor} if after is not None else set())
        self.entries[name] = entry
        for domain in declaration.domains:
            self._put_in(name, domain.name, done)

    def remove(self, name: str) -> None:
        """Take a stage out; its wires are joined by domain."""
        self._known(name)
        for domain in self.outputs(name):
            self._rejoin(name, domain)
        del self.entries[name]
        self._keep_parameters(lambda stage, knob: stage != name)

    def replace(self, name: str, entry: Entry) -> None:
        """Put another stage in the place of one; it keeps its name, its wires by domain, and the knobs that both have."""
        old, declaration = self.entries[self._known(name)], self._declared(name, entry)
        ports = [domain.name for domain in declaration.domains]
        for domain in set(self.outputs(name)) - set(declaration.outputs):
            self._rejoin(name, domain)
        before = self.ancestors(name)
        entry.inputs = {port: sources for port, sources in old.inputs.items() if port in ports}
        entry.many = old.many & set(ports)
        entry.knobs = {k: value for k, value in old.knobs.items() if declaration.knob(k)} | entry.knobs
        entry.position, entry.comment, entry.bypass = old.position, old.comment, old.bypass
        self.entries[name] = entry
        for port in ports:
            if port not in entry.inputs:
                self._put_in(name, port, before)
        self._keep_parameters(lambda stage, knob: stage != name or declaration.knob(knob) is not None)

    def rename(self, name: str, to: str) -> None:
        """Give a stage another name; wires and parameters follow."""
        self._known(name)
        self._check_new(to)
        for entry in self.entries.values():
            for port, sources in entry.inputs.items():
                split = [source.partition(".") for source in sources]
                entry.inputs[port] = [(to if stage == name else stage) + dot + output for stage, dot, output in split]
        renamed = {to if each == name else each: entry for each, entry in self.entries.items()}
        self.entries.clear()
        self.entries.update(renamed)
        for places in self.parameters.values():
            split = [place.partition(".") for place in places]
            places[:] = [(to if stage == name else stage) + dot + knob for stage, dot, knob in split]

    def bypass(self, name: str, on: bool = True) -> None:
        """Let the domains pass by a stage, or through it again."""
        self.entries[self._known(name)].bypass = on

    def connect(self, place: str, source: str | Sequence[str]) -> None:
        """Wire "stage.port" from a stage, "stage.domain", a domain's name, or several of these, in place of what it had."""
        name, port = self._port(place)
        self.entries[name].connect(port, [str(item) for item in source] if isinstance(source, (list, tuple)) else source)

    def disconnect(self, place: str, source: str | None = None) -> None:
        """Take all wires off "stage.port", or the one from a source."""
        name, port = self._port(place)
        given = self.entries[name].inputs.get(port, [])
        if source is not None and source not in given:
            refuse(place, f"is not wired from {source}", nearest(source, given))
        kept = [] if source is None else [each for each in given if each != source]
        if kept:
            self.entries[name].connect(port, kept)
        else:
            self.entries[name].inputs.pop(port, None)

    def set(self, values: Mapping[str, Any]) -> None:
        """Set parameters, or "stage.knob"; what does not exist is reported with the other settings."""
        self.settings.update(values)

    # ------------------------------------------------------------ checks
    def _known(self, name: str) -> str:
        if name not in self.entries:
            refuse(name, "is not a stage of these substeps", nearest(name, self.entries))
        return name

    def _check_new(self, name: str) -> None:
        if name in self.entries:
            refuse(name, "is taken", "choose another name for the stage")
        if name in domain_names() or not ID.fullmatch(name):
            refuse(name, "is not a name for a stage", "choose letters, digits, _ and -, not the name of a domain")

    def _declared(self, name: str, entry: Entry) -> StageDeclaration:
        declaration = self.registry.find(entry.type)
        if not isinstance(declaration, StageDeclaration):
            what = "unknown" if declaration is None else "a node, not a stage"
            refuse(name, f"is of type {entry.type}, which is {what}", nearest_type(entry.type, self.registry.stages()))
        entry.upgrade(declaration)
        return declaration

    def _port(self, place: str) -> tuple[str, str]:
        name, _, port = place.partition(".")
        declaration = self.declaration(self._known(name))
        ports = [domain.name for domain in declaration.domains] if declaration else [port]
        if port not in ports:
            refuse(place, "is not a port", nearest(port, ports))
        return name, port

    def _keep_parameters(self, keep: Any) -> None:
        for name, places in list(self.parameters.items()):
            split = [place.partition(".") for place in places]
            places[:] = [stage + dot + knob for stage, dot, knob in split if keep(stage, knob)]
            if not places:
                del self.parameters[name]


# ---------------------------------------------------------------- edits in a file
def apply_edits(stages: Stages, edits: Any, problems: Problems) -> None:
    """Apply the edits of a file in order; what is wrong with one is added to `problems`, and the others go on."""
    if not isinstance(edits, (list, tuple)):
        problems.append(Problem("edits", "is not a list of edits", edits, '[{"insert": "name", "after": "stage", ...}, ...]'))
        return
    if len(edits) > MOST_EDITS:
        message = f"holds {len(edits):,} edits"
        problems.add("edits", message, allowed=f"at most {MOST_EDITS}", cure="write a substeps document of your own")
        return
    for number, edit in enumerate(edits):
        found = _form_problems(edit)
        if not found:
            try:
                _apply(stages, edit)
            except GraphError as error:
                found = list(error.problems)
        problems.extend_inside(f"edits[{number}]", found)


def _form_problems(edit: Any) -> list[Problem]:
    verbs = [verb for verb in EDITS if verb in edit] if isinstance(edit, Mapping) else []
    if len(verbs) != 1:
        given = "does nothing that is known" if not verbs else f"does {len(verbs)} things"
        return [Problem("", given, edit, f"one of {', '.join(EDITS)}", 'write {"insert": "name", "after": "stage"}')]
    verb = verbs[0]
    kinds: dict[str, Any] = {verb: Mapping if verb == "set" else str, "knobs": Mapping, "version": int}
    kinds |= {"type": str, "after": str, "before": str, "to": str, "from": (str, list, tuple)}
    problems = [
        Problem(name, f"does not stand beside {verb}", None, ", ".join(EDITS[verb]) or "nothing", "remove it")
        for name in edit
        if name != verb and name not in EDITS[verb]
    ]
    needed = {"replace": ("type",), "rename": ("to",), "connect": ("from",)}.get(verb, ())
    problems += [Problem(name, "is missing", None, "text", f"say it beside {verb}") for name in needed if name not in edit]
    for name, value in edit.items():
        if name in (verb, *EDITS[verb]) and (not isinstance(value, kinds[name]) or isinstance(value, bool)):
            allowed = {Mapping: "an object", int: "a whole number"}.get(kinds[name], "text")
            problems.append(Problem(name, "is of the wrong kind", value, allowed, "fix it"))
    if isinstance(edit.get("from"), (list, tuple)) and not all(isinstance(item, str) for item in edit["from"]):
        problems.append(Problem("from", "is not a wire", edit["from"], '"stage", "stage.domain" or a list of these', "fix it"))
    return problems


def _apply(stages: Stages, edit: Mapping[str, Any]) -> None:
    verb = next(verb for verb in EDITS if verb in edit)
    subject = edit[verb]
    if verb in ("insert", "replace"):
        entry = Entry(edit.get("type", subject), edit.get("version"), dict(edit.get("knobs", {})))
        places = {name: edit[name] for name in ("after", "before") if name in edit}
        getattr(stages, verb)(subject, entry, **places)
    elif verb in ("bypass", "enable"):
        stages.bypass(subject, verb == "bypass")
    elif verb in ("connect", "disconnect"):
        getattr(stages, verb)(subject, edit.get("from"))
    elif verb == "rename":
        stages.rename(subject, edit["to"])
    else:
        getattr(stages, verb)(subject)
