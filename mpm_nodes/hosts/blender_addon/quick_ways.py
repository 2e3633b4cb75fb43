"""What becomes of the object of a quick preset, and how its matter goes into another graph. Knows nothing of bpy."""

import copy
from typing import NamedTuple

GRAVITY = 9.81

WAYS = {
    "FILL": ("Fill", "The object's place is filled, and its matter let go"),
    "POUR": ("Pour", "Matter pours out of the object as long as the shot lasts"),
    "DROP": ("Drop", "The object's matter falls from above its place"),
    "THROW": ("Throw", "The object's matter begins with a velocity"),
}
"""Names and help by identifier."""


class Way(NamedTuple):
    """What becomes of the object.

    Attributes:
        kind: One of `WAYS`.
        velocity: Of a stream or a throw [m/s], Y up; all 0 for one that suits the object's size.
        height: How far above its place a drop begins [m]; 0 for twice the object's edge.
    """

    kind: str = "FILL"
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    height: float = 0.0


FILL = Way()
"""As the buttons of the panel have it."""


def suited(way, edge):
    """Return a way whose zeros are what suits a body of an edge [m]: speeds with which it falls by its own size."""
    fall = (GRAVITY * edge) ** 0.5
    velocity = {"POUR": (0.0, -fall, 0.0), "THROW": (2.0 * fall, fall, 0.0)}.get(way.kind, (0.0, 0.0, 0.0))
    return Way(way.kind, way.velocity if any(way.velocity) else velocity, way.height or 2.0 * edge)


def poured_volume(way, edge, seconds):
    """Return about what pours out of a body of an edge [m] in so many seconds [m^3]."""
    return edge**2 * sum(each**2 for each in way.velocity) ** 0.5 * seconds


def sent(document, source, way, start):
    """Return a filled preset whose object goes a way.

    Args:
        document: The preset.
        source: Name of the object's entry.
        way: The way, without zeros that stand for the object's size.
        start: First frame.
    """
    document = copy.deepcopy(document)
    nodes = document["nodes"]
    given = nodes[source].setdefault("knobs", {})
    if way.kind == "DROP":
        given["translation"] = [0.0, _short(way.height), 0.0]
    elif way.kind == "THROW":
        given["velocity"] = [_short(each) for each in way.velocity]
    elif way.kind == "POUR":
        solve = nodes[solve_of(nodes)]["inputs"]
        solve["emitters"] = [f"{name}_stream" for name in solve["sources"]]
        grains = any(entry["type"] == "material_drucker_prager" for entry in nodes.values())
        flow = {"velocity": [_short(each) for each in way.velocity], "start_frame": start, "jitter": 1.0 if grains else 0.0}
        for name in solve.pop("sources"):
            nodes[f"{name}_stream"] = {"type": "emit_stream", "knobs": dict(flow), "inputs": {"template": name}}
    return document


def solve_of(entries):
    """Return the name of the first solve among the entries of a document."""
    return next(name for name, entry in entries.items() if entry["type"] == "solve")


def for_graph(document, has_ground):
    """Return what of a filled preset goes into a graph that solves already: (entries, wires into the solve, wires into the cache).

    It is what the preset's solve is fed with, and the bodies that it moves. A wire is (input, source).

    Args:
        document: The preset.
        has_ground: Whether the graph has ground, so that the preset's is left out where nothing but the solve needs it.
    """
    entries = document["nodes"]
    solve = solve_of(entries)
    fed, more = set(), [solve]
    while more:
        for name in _feeding(entries[more.pop()]):
            if name not in fed:
                fed.add(name)
                more.append(name)
    fed |= {name for name, entry in entries.items() if entry["type"] == "moved_body"}
    for name in [name for name in fed if entries[name]["type"] == "collide_plane" and has_ground]:
        if not any(name in _feeding(entries[each]) for each in fed):
            fed.remove(name)
    cache = next((entry for entry in entries.values() if entry["type"] == "write_cache"), {})
    wires = [
        [
            (port, wire)
            for port, given in entry.get("inputs", {}).items()
            for wire in _listed(given)
            if wire.partition(".")[0] in fed
        ]
        for entry in (entries[solve], cache)
    ]
    return {name: entries[name] for name in entries if name in fed}, *wires


def _feeding(entry):
    return {wire.partition(".")[0] for given in entry.get("inputs", {}).values() for wire in _listed(given)}


def _listed(given):
    return given if isinstance(given, list) else [given]


def _short(number):
    return float(f"{number:.4g}")
