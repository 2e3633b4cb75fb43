"""Vertex groups, colours and attributes of objects as fields of their matter: the nodes that they become.

A vertex group and a colour go from 0 to 1, for which a ramp has the lowest and the highest value; other attributes count as they
stand, until its knobs say otherwise. What is called Pin is held by ties to the object, with which it goes along.
"""

from typing import NamedTuple

import bpy
from mathutils import Vector

from . import knobs, mesh_attributes, nodes, places, surfaces

EXACT = 1e9
"""Stiffness of ties [N/m] beyond what any substep lets them have: matter there goes where the object goes."""
STICKY = 1000.0
"""Adhesion [Pa] of a collider that has none, where it is painted."""
BEFORE = "mpm_nodes_adhesion_before"
"""Custom property of the node that takes a painted adhesion: what the collider had before."""


class Role(NamedTuple):
    """What may be painted.

    Attributes:
        label: Its name, and that of groups and attributes which are taken by themselves.
        attribute: Of particles; "" for none.
        lowest, highest: What 0 and 1 stand for.
        doc: Help.
    """

    label: str
    attribute: str
    lowest: float
    highest: float
    doc: str


ROLES = {
    "STIFFNESS": Role("Stiffness", "stiffness_scale", 1.0, 10.0, "Factor on how stiff the matter is"),
    "STRENGTH": Role("Strength", "tear_scale", 1.0, 10.0, "Factor on what the matter bears before it tears"),
    "TEMPERATURE": Role("Temperature", "temperature", 293.15, 373.15, "Temperature of the matter as it begins [K]"),
    "PIN": Role("Pin", "", 0.0, 1.0, "Matter is held where this is above a half, and goes along with the object"),
    "STICKINESS": Role("Stickiness", "", 0.0, 1.0, "Factor on the adhesion of the collider"),
}


# ---------------------------------------------------------------- what is read
def reads(node):
    """Return whether a node reads what is painted on its object."""
    return node.record is not None and node.record["id"] == "field_primvar"


def wanted(held):
    """Return, by object, the names of what nodes read; `held` has the object of each node."""
    found = {}
    for node, thing in held.items():
        if reads(node):
            found.setdefault(thing, {})[node.k_primvar] = None
    return {thing: tuple(names) for thing, names in found.items()}


def seen(pieces):
    """Return, by name, whether what is painted on the pieces of a surface is a vertex group that holds nothing."""
    found = {}
    for piece in pieces:
        for name, (_, numbers, is_group) in piece.painted.items():
            found[name] = found.get(name, True) and is_group and not any(numbers)
    return found


def fault(node, found):
    """Return what is wrong with what a node reads, "" for nothing; `found` is what `seen` gave for its object."""
    if not reads(node):
        return ""
    name, thing = node.k_primvar, node.scene_object
    if name not in found:
        there = ", ".join(painted_on(thing)) or "none"
        unfit = _unfit(thing).get(name, f"{thing.name} has no vertex group or attribute '{name}'")
        return f"{unfit}; it has {there}"
    return f"{_empty(thing, name)}; paint it, or choose another" if found[name] else ""


def painted_on(thing):
    """Return the names of what is painted on an object, with what its modifiers make where it is shown."""
    return list(dict.fromkeys(name for each in _states(thing) for name in mesh_attributes.names(each, each.data)))


def _states(thing):
    """Yield an object as it is, as its modifiers make it where it is shown, and what it instances, where these are meshes.

    What is instanced is gone when the next one comes.
    """
    depsgraph = bpy.context.evaluated_depsgraph_get()
    yield from (each for each in (thing, thing.evaluated_get(depsgraph)) if each.type == "MESH")
    known = set()
    for each in depsgraph.object_instances:
        if each.is_instance and each.parent.original is thing and each.object.type == "MESH":
            mesh = each.object.data.as_pointer()
            if mesh not in known:
                known.add(mesh)
                yield each.object


def _unfit(thing):
    """Return by name, in words, the attributes of an object that cannot be read: on edges, or of other types than numbers."""
    found = {name: why for each in _states(thing) for name, why in mesh_attributes.unfit(each.data).items()}
    return {name: f"the attribute {name} of {thing.name} {why}" for name, why in found.items()}


def _runs_to_one(thing, name):
    """Return whether what is painted under a name goes from 0 to 1."""
    for each in _states(thing):
        held = each.data.attributes.get(name)
        if each.vertex_groups.get(name) is not None or (held and held.data_type in ("BYTE_COLOR", "FLOAT_COLOR", "BOOLEAN")):
            return True
    return False


def _is_empty(thing, name):
    """Return whether what is painted under a name is a vertex group that holds nothing, with what modifiers make."""
    return seen(surfaces.pieces(thing, bpy.context.evaluated_depsgraph_get(), (name,))).get(name, False)


def _empty(thing, name):
    """Return, in words, who has left a vertex group empty."""
    own = mesh_attributes.read(thing, thing.data, name) if thing.type == "MESH" else None
    if own is not None and any(own[1]):
        return f"the modifiers of {thing.name} leave nothing of its vertex group {name}"
    return f"the vertex group {name} of {thing.name} holds no vertex"


# ---------------------------------------------------------------- the nodes
def roles_of(node):
    """Return what may be painted on the object of a node: names of ROLES."""
    if getattr(node, "record", None) is None or getattr(node, "scene_object", None) is None or node.takes_object() != "mesh":
        return ()
    if node.record["category"] == "Emit":
        return ("STIFFNESS", "STRENGTH", "TEMPERATURE", "PIN")
    return ("STICKINESS",) if node.record["id"] == "collide_usd" else ()


def painted(node, role, thing=None):
    """Return (the node that reads, the ramp or None, the node that takes the field) of what is painted; None where nothing is.

    `thing` is the object that it is painted on, None for the node's.
    """
    if role == "PIN":
        ends = [each for each in node.id_data.nodes if _is(each, "force_attach")]
    else:
        ends = [each for each in _below(node) if _is(each, "set_attribute", "collider_contact")]
    for end in ends:
        if role in ROLES and ROLES[role].attribute and getattr(end, "k_attribute", "") != ROLES[role].attribute:
            continue
        for socket in end.inputs:
            for link in socket.links if socket.identifier in ("field", "mask", "adhesion") else ():
                ramp = link.from_node if _is(link.from_node, "field_ramp") else None
                above = [each.from_node for each in nodes.socket_of(ramp.inputs, "field").links] if ramp else [link.from_node]
                for source in above:
                    if _is(source, "field_primvar") and source.scene_object == (thing or node.scene_object):
                        return source, ramp, end
    return None


def _is(node, *kinds):
    return getattr(node, "record", None) is not None and node.record["id"] in kinds


def _below(node):
    """Return the nodes that a node's matter or collider goes through, one after the other."""
    found, ahead = [], [node]
    while ahead:
        after = [link.to_node for socket in ahead.pop().outputs for link in socket.links]
        ahead += [each for each in after if each not in found and _is(each, "set_attribute", "collider_contact")]
        found += [each for each in after if each not in found]
    return found


def paint(node, role, name):
    """Let a field follow what is painted on the object of an emitter or a collider; return the node that reads it.

    Args:
        node: The emitter or the collider.
        role: One of `roles_of` it.
        name: Vertex group, colour or attribute.
    """
    there = painted(node, role)
    if there is not None:
        there[0].k_primvar = name
        return there[0]
    known, place = ROLES[role], _Place(node)
    source = place.add("field_primvar", -240.0, primvar=name, inside=role != "STICKINESS")
    source.scene_object = node.scene_object
    if role == "PIN":
        source.k_animated = False  # what is tied stays tied
        _hold(node, source, place)
        return source
    as_it_stands = not _runs_to_one(node.scene_object, name)
    lowest, highest = (0.0, 1.0) if as_it_stands else (known.lowest, known.highest)
    ramp = place.add("field_ramp", 0.0, from_value=lowest, to_value=highest)
    if as_it_stands:
        ramp.k_interpolation = "endless"
    nodes.connect(source, "", ramp, "field")
    if role == "STICKINESS":
        end = place.between("collider", "collider_contact")
        end[BEFORE] = node.k_adhesion
        node.k_adhesion = node.k_adhesion or STICKY
        nodes.connect(ramp, "", end, "adhesion")
    else:
        end = place.between("particles", "set_attribute", attribute=known.attribute)
        nodes.connect(ramp, "", end, "field")
    return source


def _hold(node, mask, place):
    """Tie matter to the object that it fills, where a mask says."""
    ties = place.add("force_attach", 240.0, stiffness=EXACT)
    body = place.add("collide_usd", 0.0, thickness=node.k_thickness)
    body.scene_object = node.scene_object
    if hasattr(body, "k_name"):
        body.k_name = node.scene_object.name
    nodes.connect(mask, "", ties, "mask")
    nodes.connect(body, "", ties, "collider")
    for solve in _solves(node):
        nodes.connect(ties, "", solve, "forces")


def _solves(node):
    """Return the solves that matter of a node flows into."""
    found, seen_nodes, ahead = [], {node.name}, [node]
    while ahead:
        for each in (link.to_node for socket in ahead.pop().outputs for link in socket.links):
            if nodes.socket_of(each.inputs, "forces") is not None:
                found += [each] if each not in found else []
            elif each.name not in seen_nodes:
                seen_nodes.add(each.name)
                ahead.append(each)
    return found


class _Place:
    """Where the nodes of what is painted on a node's object are put."""

    def __init__(self, node):
        self.node, self.tree = node, node.id_data
        below = [each.location[1] for each in self.tree.nodes if abs(each.location[0] - node.location[0]) < 400.0]
        self.corner = Vector((node.location[0], min(below) - 420.0))

    def add(self, kind, right, /, **values):
        """Return a new node with its knobs."""
        made = self.tree.nodes.new(f"MpmNode_{kind}")
        made.name = places.file_name(f"{self.node.scene_object.name}_{kind}")
        made.location = self.corner + Vector((right, 0.0))
        for name, value in values.items():
            setattr(made, knobs.prop(name), value)
        return made

    def between(self, port, kind, /, **values):
        """Return a new node between the node and what its output goes into."""
        made = self.add(kind, 240.0, **values)
        output = nodes.socket_of(self.node.outputs, port)
        after = [(link, link.to_node, link.to_socket.identifier) for link in output.links]
        for link, _, _ in after:
            self.tree.links.remove(link)
        nodes.connect(self.node, port, made, port)
        for _, end, socket in after:
            nodes.connect(made, port, end, socket)
        return made


def take_away(node, role):
    """Remove the nodes of what is painted on the object of a node; what they lay between is wired as before."""
    source, ramp, end = painted(node, role)
    tree = node.id_data
    if role == "PIN":
        body = _bodies(end)
    else:
        body, port = [], "particles" if _is(end, "set_attribute") else "collider"
        before = next(link.from_socket for link in nodes.socket_of(end.inputs, port).links)
        for link in list(nodes.socket_of(end.outputs, port).links):
            nodes.connect(before.node, before.identifier, link.to_node, link.to_socket.identifier)
    if end.get(BEFORE) == 0.0 and node.k_adhesion == STICKY:
        node.k_adhesion = 0.0
    for each in (end, ramp, source, *body):
        if each is not None and (each is end or not any(socket.links for socket in each.outputs)):
            tree.nodes.remove(each)


def _bodies(ties):
    """Return the nodes of what ties hold matter to."""
    return [link.from_node for link in nodes.socket_of(ties.inputs, "collider").links]


def follow(node, before):
    """Let what is painted on the object that a node stood for before be read from the one that it stands for now."""
    for role in roles_of(node):
        there = painted(node, role, before)
        if there is not None:
            for each in (there[0], *(_bodies(there[2]) if role == "PIN" else ())):
                each.scene_object = node.scene_object


nodes.FOLLOWERS.append(follow)


def take_known(node):
    """Let what is painted on the object of a node under a known name count; return what is left out, in sentences."""
    thing, left = node.scene_object, []
    there = {name.casefold(): name for name in painted_on(thing)} if roles_of(node) else {}
    unfit = {name.casefold(): why for name, why in _unfit(thing).items()} if roles_of(node) else {}
    for role in roles_of(node):
        known = ROLES[role].label.casefold()
        name = there.get(known)
        if name is None:
            left += [f"{unfit[known]}, and is left out"] if known in unfit else []
        elif _is_empty(thing, name):
            left.append(f"{_empty(thing, name)}, and is left out")
        else:
            paint(node, role, name)
    return left


def take_all_known(tree):
    """Do as `take_known` for every node of a tree; what is left out is said on the node."""
    for node in list(tree.nodes):
        if left := take_known(node):
            node.notice = "\n".join(left)
