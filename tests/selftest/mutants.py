"""Structured mutants of graph files: sound graphs of every node, changed as a mistake, a program or a stranger would change them.

A mutant follows from a seed and a number. It is a sound document, one to four changes of its structure, and now and then one of its
bytes.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpm_nodes.graph.declare.decorators import NodeDeclaration
from mpm_nodes.graph.declare.registry import Registry

__all__ = ["VALUES", "Mutant", "documents", "mutant"]

Document = Any

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    0.5,
    -0.5,
    1e-300,
    1e300,
    -1e300,
    1e12,
    1e20,
    2**31,
    2**63,
    -(2**63),
    2**64,
    10**400,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "x",
    " ",
    "a" * 5000,
    "d/" * 2500,
    "../../victim",
    "/etc/passwd",
    "/dev/zero",
    "con",
    "\x00",
    "\ud800",
    "\u202e",
    "\x1b[2J\x07",
    "%s%n{0}",
    "nan",
    "1",
    "é" * 300,
    [],
    [[]],
    [0],
    [1, 2, 3],
    [1e300] * 3,
    ["x"] * 3,
    [None] * 3,
    {},
    {"keys": []},
    {"keys": [[1, 0, "linear"]]},
    {"keys": [[1, [0, 0, 0], "step"], [9, [1, 1, 1], "smooth"]]},
    {"keys": [[1, 1e300, "step"], [1, 0, "step"]]},
    {"preset": "explicit_apic"},
    {"preset": "x"},
    {"preset": "explicit_apic", "set": {"x": 1}},
    {"preset": "explicit_apic", "edits": [{}]},
    {"format": "mpm_nodes.substeps", "version": 1, "nodes": {}},
)
"""What is put in the place of a value: bounds of the types, paths, controls, half characters, keys and substeps."""
NAMES = (
    "",
    "x",
    "material",
    "emit_box",
    "solve",
    "settings",
    "nodes",
    "sim.particles",
    ".",
    "a.b.c",
    "\x1b]0;\x07",
    "\ud800",
    "k" * 3000,
)


class Mutant:
    """A changed document.

    Attributes:
        base: The sound document.
        changes: Seeds of the changes to its structure.
        bytes_seed: Seed of the change to its bytes, None for none.
    """

    def __init__(self, base: Document, changes: list[int], bytes_seed: int | None) -> None:
        self.base, self.changes, self.bytes_seed = base, changes, bytes_seed

    def document(self) -> Document:
        """Return the document with its changes."""
        document = copy.deepcopy(self.base)
        for seed in self.changes:
            chance = random.Random(seed)
            document = chance.choice(_CHANGES)(document, chance)
        return document

    def content(self) -> bytes:
        """Return the bytes of the graph file."""
        text = json.dumps(self.document())
        return _spoilt(text, random.Random(self.bytes_seed)) if self.bytes_seed is not None else text.encode()

    def simpler(self) -> Iterator[Mutant]:
        """Yield mutants with a change less."""
        if self.bytes_seed is not None:
            yield Mutant(self.base, self.changes, None)
        for place in range(len(self.changes)):
            yield Mutant(self.base, self.changes[:place] + self.changes[place + 1 :], self.bytes_seed)


def mutant(bases: list[Document], seed: int, number: int) -> Mutant:
    """Return the mutant of a seed and a number."""
    chance = random.Random(f"{seed} {number}")
    changes = [chance.getrandbits(48) for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4)))]
    return Mutant(chance.choice(bases), changes, chance.getrandbits(48) if chance.random() < 0.15 else None)


# ---------------------------------------------------------------- sound documents
def documents(registry: Registry, samples: Path) -> list[Document]:
    """Return the graphs of a folder and one graph of every node of the registry, as JSON values."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(samples.glob("*.json"))]
    settings = {"cell_size": 0.05, "fps": 24.0, "start": 1, "end": 3}
    every = {f"n_{name}": _node(declaration, registry) for name, declaration in registry.nodes().items()}
    every["n_solve"]["knobs"]["substeps"] = "incompressible"  # a bulk modulus of the projection is refused without one
    every["n_solve"]["inputs"].pop("ambient")  # which substeps with heat alone take
    every["n_material_thermal"]["knobs"]["freezing_temperature"] = 300.0  # what has a melt melts
    joints = [name for name in registry.nodes() if name.endswith("_joint")]
    for name in joints:
        every[f"n_{name}"]["inputs"].pop("parent")
    wires = {
        "material_surfactant.material": "material_surface_tension",
        "material_tearing.material": "material_surface_tension",
        "emit_box.material": "material_tearing",
        "vary_tear_strength.particles": "emit_box",
        "sampled_surface.particles": "emit_box",
        "attribute_volume.particles": "set_temperature",
        **{f"{name}.collider": "rigid_body" for name in joints},
        "moved_body.collider": "rigid_body",
        "moved_body.bodies": "solve_of_bodies.bodies",
        "label_pieces.particles": "grains_at_rest",
    }
    every["n_solve_of_bodies"] = {**every["n_solve"], "knobs": {}, "inputs": {"sources": "n_grains", "colliders": "n_rigid_body"}}
    every["n_grains"] = {"type": "emit_sphere", "inputs": {"material": "n_material_snow"}}
    every["n_grains_at_rest"] = {"type": "rest_positions", "inputs": {"particles": "n_grains"}}
    for place, source in wires.items():  # what these ask of their inputs
        name, _, port = place.partition(".")
        every[f"n_{name}"]["inputs"][port] = f"n_{source}"
    readers = [name for name, declaration in registry.nodes().items() if any(k.kind == "path" for k in declaration.knobs)]
    for nodes in (every, {name: entry for name, entry in every.items() if name[2:] not in readers}):
        found += [{"format": "mpm_nodes.graph", "version": 1, "settings": settings, "nodes": nodes}] * 4
    return found


def _node(declaration: NodeDeclaration, registry: Registry) -> Document:
    """Return the entry of a node with every knob written out and every port wired from the first node that fits."""
    inputs = {}
    for port in declaration.ports:
        for name, other in registry.nodes().items():
            fitting = [output.name for output in other.outputs if port.accepts(output.type)]
            of_vectors = declaration.id.startswith("force_") and port.name == "field"
            if name.endswith("_joint") or name in ("rigid_body", "moved_body"):
                continue  # these ask of colliders what others do not have, and solves of what they give
            if name.startswith("field_") and name != ("field_vector" if of_vectors else "field_constant"):
                continue  # of the fields, forces take those of vectors, and all else those of numbers
            if fitting and name != declaration.id and not any(knob.kind == "path" for knob in other.knobs):
                inputs[port.name] = f"n_{name}.{fitting[0]}"
                break
    knobs = {knob.name: "file.usda" if knob.required and knob.kind == "path" else knob.json_default() for knob in declaration.knobs}
    return {"type": declaration.id, "version": declaration.version, "knobs": knobs, "inputs": inputs}


# ---------------------------------------------------------------- changes of the structure
def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every value in a document."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        pairs = list(item.items()) if isinstance(item, dict) else list(enumerate(item)) if isinstance(item, list) else []
        for key, child in pairs:
            yield item, key
            if isinstance(child, (dict, list)):
                waiting.append(child)


def _place(document: Document, chance: random.Random) -> tuple[Any, Any] | None:
    places = list(_places(document))
    return chance.choice(places) if places else None


def _entries(document: Document) -> list[tuple[str, dict[str, Any]]]:
    nodes = document.get("nodes") if isinstance(document, dict) else None
    return [(name, entry) for name, entry in nodes.items() if isinstance(entry, dict)] if isinstance(nodes, dict) else []


def _replace(document: Document, chance: random.Random) -> Document:
    place = _place(document, chance)
    if place is None or chance.random() < 0.01:
        return copy.deepcopy(chance.choice(VALUES))
    place[0][place[1]] = copy.deepcopy(chance.choice(VALUES))
    return document


def _knob(document: Document, chance: random.Random) -> Document:
    entries = [entry for _, entry in _entries(document) if isinstance(entry.get("knobs"), dict) and entry["knobs"]]
    if entries:
        knobs = chance.choice(entries)["knobs"]
        name = chance.choice(list(knobs))
        knobs[name] = chance.choice((_near, _keyed, lambda *_: copy.deepcopy(chance.choice(VALUES))))(knobs[name], chance)
    return document


def _near(value: Any, chance: random.Random) -> Any:
    """Return a value of the same kind."""
    factor = chance.choice((-1, 0, 1e-9, 1e-3, 0.5, 2, 1e3, 1e9, 1e200))
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)) and abs(value) < 1e50:
        return value * factor
    if isinstance(value, list):
        return [_near(item, chance) for item in value][: chance.choice((None, 1, 2, -1))]
    if isinstance(value, str):
        return chance.choice((value[::-1], value * 2, value[:-1], value.upper(), value + "/.."))
    return value


def _keyed(value: Any, chance: random.Random) -> Any:
    frames = [chance.choice((-5, 0, 1, 1.5, 2, 3, 1e9, -1e300, None, "1")) for _ in range(chance.randrange(5))]
    kinds = ("linear", "step", "smooth", "cubic", None)
    keys = [[frame, _near(value, chance), chance.choice(kinds)][: chance.choice((3, 3, 3, 2, 1))] for frame in frames]
    return {"keys": keys, **({"x": 1} if chance.random() < 0.1 else {})}


def _delete(document: Document, chance: random.Random) -> Document:
    place = _place(document, chance)
    if place is not None:
        del place[0][place[1]]
    return document


def _rename(document: Document, chance: random.Random) -> Document:
    place = _place(document, chance)
    if place is not None and isinstance(place[0], dict):
        place[0][chance.choice((*NAMES, str(place[1]) + "_"))] = place[0].pop(place[1])
    return document


def _copy(document: Document, chance: random.Random) -> Document:
    places = list(_places(document))
    if places:
        (to, key), (whence, other) = chance.choice(places), chance.choice(places)
        to[key] = copy.deepcopy(whence[other])
    return document


def _wrap(document: Document, chance: random.Random) -> Document:
    place = _place(document, chance)
    if place is not None:
        value = place[0][place[1]]
        for _ in range(chance.choice((1, 2, 30, 40, 300))):
            value = [value] if chance.random() < 0.5 else {"x": value}
        place[0][place[1]] = value
    return document


def _flood(document: Document, chance: random.Random) -> Document:
    place = _place(document, chance)
    if place is not None:
        value, many = place[0][place[1]], chance.choice((10, 100, 1000, 5000))
        if isinstance(value, list):
            place[0][place[1]] = (value or [0]) * many
        elif isinstance(value, dict):
            value.update({f"z{number}": 1 for number in range(many)})
        else:
            place[0][place[1]] = [value] * many
    return document


def _rewire(document: Document, chance: random.Random) -> Document:
    entries = _entries(document)
    if entries:
        entry = chance.choice(entries)[1]
        sources = [chance.choice(entries)[0] + chance.choice(("", ".particles", ".mesh", ".state", ".x")) for _ in range(3)]
        inputs = entry.get("inputs")
        if isinstance(inputs, dict):
            port = chance.choice([*inputs, "sources", "particles", "colliders", "material"])
            inputs[port] = chance.choice((sources, sources[0], sources * 500))
    return document


def _retype(document: Document, chance: random.Random) -> Document:
    entries = _entries(document)
    if entries:
        entry, other = chance.choice(entries)[1], chance.choice(entries)[1]
        entry[chance.choice(("type", "type", "version"))] = chance.choice((other.get("type"), "rasterize", 0, 2, 10**9, "nope"))
    return document


def _bypass(document: Document, chance: random.Random) -> Document:
    for _, entry in _entries(document):
        if chance.random() < 0.3:
            entry["bypass"] = chance.choice((True, True, True, 1, "yes"))
    return document


def _duplicate(document: Document, chance: random.Random) -> Document:
    entries = _entries(document)
    if entries:
        name, entry = chance.choice(entries)
        for number in range(chance.choice((1, 2, 50, 400))):
            document["nodes"][f"{name}_{number}"] = copy.deepcopy(entry)
    return document


def _remove(document: Document, chance: random.Random) -> Document:
    entries = _entries(document)
    if entries:
        del document["nodes"][chance.choice(entries)[0]]
    return document


def _substeps(document: Document, chance: random.Random) -> Document:
    """Change the substeps of a solve: a preset with settings and edits, whole or spoilt."""
    solves = [entry for _, entry in _entries(document) if entry.get("type") == "solve" and isinstance(entry.get("knobs"), dict)]
    if solves:
        preset = chance.choice(("explicit_apic", "continuum_foam", "semi_implicit", "implicit", "auto", "nope"))
        names = ("kernel", "transfer", "cfl", "rasterize.kernel", "gather.x", "x.y", "")
        given = {chance.choice(names): chance.choice((*VALUES[:12], "cubic", "flip")) for _ in range(chance.randrange(3))}
        edits = [
            {
                "edit": chance.choice(("insert", "remove", "replace", "bypass", "connect", "nope")),
                chance.choice(("stage", "node", "type")): chance.choice(("gather", "rasterize", "move_particles", "x", 3)),
                "after": chance.choice(("gather", "rasterize", "move_particles", "x", None)),
            }
            for _ in range(chance.randrange(3))
        ]
        chance.choice(solves)["knobs"]["substeps"] = {"preset": preset, "set": given, "edits": edits}
    return document


def _setting(document: Document, chance: random.Random) -> Document:
    if isinstance(document, dict) and isinstance(document.get("settings"), dict):
        value = chance.choice((*VALUES[:24], 1e-9, 1e-4, 10.0, 10**7))
        document["settings"][chance.choice(("cell_size", "fps", "start", "end", "x"))] = copy.deepcopy(value)
    return document


_CHANGES: tuple[Callable[[Document, random.Random], Document], ...] = (
    _replace, _replace, _knob, _knob, _knob, _knob, _delete, _rename, _copy, _wrap, _flood, _rewire, _rewire, _retype, _bypass,
    _duplicate, _remove, _substeps, _substeps, _setting,
)  # fmt: skip


# ---------------------------------------------------------------- changes of the bytes
def _spoilt(text: str, chance: random.Random) -> bytes:
    """Return the text with damage that no JSON value has."""
    data = bytearray(text.encode())
    place = chance.randrange(len(data) + 1)
    kind = chance.randrange(9)
    if kind == 0:
        return bytes(data[:place])
    if kind == 1 and data:
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        return bytes(data)
    if kind == 2:
        piece = chance.choice(
            (b"\xff\xfe", b"\x00", b"\xed\xa0\x80", b"NaN", b"1e999", b"-" * 9, b"[" * 50_000, b'{"a":' * 2000, b"9" * 5000)
        )
        return bytes(data[:place] + piece + data[place:])
    if kind == 3:
        return b"\xef\xbb\xbf" + bytes(data)
    if kind == 4:
        return text.encode(chance.choice(("utf-16", "utf-32", "cp500")))
    if kind == 5:
        return text.replace('"knobs"', '"knobs": {}, "knobs"', chance.randrange(1, 4)).encode()
    if kind == 6:
        return bytes(data) * 2
    if kind == 7:
        return bytes(data[place:])
    return text.replace(chance.choice(("0", "1", ",", ":", '"')), chance.choice(("", "0", "e", '"', "\\u0000")), 3).encode()
