"""Active rigid bodies of the scene, which a solve moves: what Blender says of them, and the nodes that they become.

A body that is animated (kinematic) or passive stays a collider with its keys.
"""

from . import knobs, nodes

MOVING = ("explicit_apic", "continuum_foam", "explicit_heat", "implicit_apic", "surface_tension", "separate_bodies")
"""Presets of substeps that move rigid bodies, and are in use here; with others they stay colliders."""


def is_active(thing):
    """Return whether Blender would move an object as a rigid body by itself."""
    body = thing.rigid_body
    return body is not None and body.type == "ACTIVE" and body.enabled and not body.kinematic


def facts(thing, volume):
    """Return (knobs of its collider, knobs of its rigid body) of an active object that encloses a volume [m^3]; None: it is none.

    Blender's default of 1 kg counts as it stands.
    """
    if not (is_active(thing) and volume > 0.0):
        return None
    body = thing.rigid_body
    density = float(f"{body.mass / volume:.4g}")
    own = {"name": thing.name, "density": density, "restitution": float(f"{min(body.restitution, 0.99):.4g}")}
    return {"friction": float(f"{body.friction:.4g}")}, own


def moved(document, name, found):
    """Let a collider of a graph document be a rigid body that its solve moves and its cache shows; return whether it can.

    Args:
        document: The graph, changed.
        name: The collider's entry.
        found: What `facts` gave.
    """
    entries = document["nodes"]
    solve = next((key for key, entry in entries.items() if entry["type"] == "solve"), None)
    substeps = entries[solve].get("knobs", {}).get("substeps", "explicit_apic") if solve else None
    preset = substeps.get("preset") if isinstance(substeps, dict) else substeps
    if preset not in MOVING:
        return False
    body, there = f"{name}_body", f"{name}_there"
    for entry in entries.values():
        for port, given in entry.get("inputs", {}).items():
            many = isinstance(given, list)
            wires = [body if wire == name else wire for wire in (given if many else [given])]
            entry["inputs"][port] = wires if many else wires[0]
    entries[name].setdefault("knobs", {}).update(found[0])
    entries[body] = {"type": "rigid_body", "knobs": found[1], "inputs": {"collider": name}}
    entries[there] = {"type": "moved_body", "inputs": {"collider": body, "bodies": f"{solve}.bodies"}}
    for entry in entries.values():
        if entry["type"] == "write_cache":
            drawn = entry.setdefault("inputs", {}).get("colliders", [])
            entry["inputs"]["colliders"] = [*(drawn if isinstance(drawn, list) else [drawn]), there]
    return True


def add_body(tree, node, found, solve):
    """Add the nodes of a rigid body behind a collider's node, and wire them into a solve and the caches of its graph."""
    for name, value in found[0].items():
        setattr(node, knobs.prop(name), value)
    body, there = tree.nodes.new("MpmNode_rigid_body"), tree.nodes.new("MpmNode_moved_body")
    for name, value in found[1].items():
        setattr(body, knobs.prop(name), value)
    body.location = (node.location[0] + 220.0, node.location[1])
    there.location = (node.location[0] + 700.0, node.location[1] - 160.0)
    nodes.connect(node, "collider", body, "collider")
    nodes.connect(body, "collider", there, "collider")
    if solve is None:
        return
    nodes.connect(body, "collider", solve, "colliders")
    nodes.connect(solve, "bodies", there, "bodies")
    for cache in [each for each in tree.nodes if getattr(each, "record", None) and each.record["id"] == "write_cache"]:
        nodes.connect(there, "collider", cache, "colliders")


def is_body(node):
    """Return whether the collider that a node makes becomes a rigid body."""
    links = [link for socket in node.outputs if hasattr(socket, "type_id") for link in socket.links]
    below = [link.to_node for link in links]
    return any(getattr(each, "record", None) and each.record["id"] == "rigid_body" for each in below)
