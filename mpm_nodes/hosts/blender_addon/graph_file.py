"""Graphs and substep graphs as Blender trees: read from documents and written back without loss."""

import json
import os
import re
from pathlib import Path

import bpy

from . import knobs, layout, memory, nodes
from .specification import DOMAINS, GRAPH_FORMAT, NAME, NODES, SETTINGS, STAGES, SUBSTEPS_FORMAT, outputs
from .trees import GRAPH_TREE, SUBSTEP_TREE, new_tree

STATE_NODE = "Substep Begins"


class FileFault(Exception):
    """A file that is not a graph, or cannot be read or written; the message says where and what to do."""


# ---------------------------------------------------------------- files
def read(path):
    """Return the document of a graph or substeps file.

    Raises:
        FileFault: It cannot be read, or is no such file.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileFault(f"{path}: cannot be read ({error})") from error
    formats = (GRAPH_FORMAT["name"], SUBSTEPS_FORMAT["name"])
    if not isinstance(document, dict) or document.get("format") not in formats or not isinstance(document.get("nodes"), dict):
        raise FileFault(f"{path}: is not a file of format {' or '.join(formats)}; choose a graph that mpm-nodes can cook")
    return document


def write(document, path):
    """Write a document; it appears under its name only when it is complete.

    Raises:
        FileFault: It cannot be written.
    """
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise FileFault(f"{path}: cannot be written ({error.strerror or error}); choose another folder") from error


def is_old(document):
    """Return whether a node of the document is of an older version than this add-on knows."""
    for entry in document["nodes"].values():
        record = NODES.get(entry.get("type")) or STAGES.get(entry.get("type"))
        if record and (entry.get("version") or record["version"]) < record["version"]:
            return True
        inner = entry.get("knobs", {}).get("substeps")
        if isinstance(inner, dict) and isinstance(inner.get("nodes"), dict) and is_old(inner):
            return True
    return False


# ---------------------------------------------------------------- document to tree
def load(document, name, base="", tree=None):
    """Return a tree that shows a graph document.

    Args:
        document: Content of a graph file.
        name: Name of a new tree.
        base: Folder that the file's relative paths start from.
        tree: Tree to fill again instead of making one.
    """
    tree = tree or new_tree(GRAPH_TREE, name)
    tree.nodes.clear()
    tree.as_loaded = ""
    tree.base = str(base)
    fields = ("format", "version", "settings", "nodes")
    tree.rest = json.dumps({key: value for key, value in document.items() if key not in fields})
    settings = document.get("settings", {})
    for name_, knob in SETTINGS.items():
        knobs.set_value(tree, constant(knob), settings.get(name_, knob["default"]))
    _fill(tree, document["nodes"])
    return tree


def load_substeps(document, name):
    """Return a new tree that shows a substeps document."""
    tree = new_tree(SUBSTEP_TREE, document.get("label") or name)
    tree.title, tree.doc = document.get("label", ""), document.get("doc", "")
    fields = ("format", "version", "label", "doc", "nodes")
    rest = {key: value for key, value in document.items() if key not in fields}
    tree.rest = json.dumps(rest | {"has": [key for key in ("label", "doc") if key in document]})
    _fill(tree, document["nodes"])
    return tree


def constant(knob):
    """Return the knob of a setting as one that cannot be keyed."""
    return {**knob, "keyable": False}


def add(tree, entries, there):
    """Add nodes to a graph below those that it has; return them by the names that their entries have.

    Args:
        tree: The graph.
        entries: The nodes by name, as in a document.
        there: Nodes of the graph by the names that wires of the entries know them by.
    """
    bottom = min((node.location[1] - layout.height(node) for node in tree.nodes if isinstance(node, nodes.MpmNode)), default=0.0)
    return _fill(tree, entries, there, bottom - layout.GAP)


def _fill(tree, entries, there=None, top=0.0):
    """Add the nodes of a document to a tree, wire them, and set their knobs; return all by name."""
    made = dict(there or {})
    if tree.bl_idname == SUBSTEP_TREE:
        state = tree.nodes.new(nodes.MpmSubstepState.bl_idname)
        state.name, state.location = STATE_NODE, (-260.0, 0.0)
        made.update(dict.fromkeys(DOMAINS, state))
    for name, entry in entries.items():
        made[name] = _node(tree, name, entry)
    for name, entry in entries.items():
        for port, given in entry.get("inputs", {}).items():
            for source in given if isinstance(given, list) else [given]:
                _wire(made, source, made[name], port)
    layout.place([(made[name], entry.get("position", [0, 0])) for name, entry in entries.items()])
    for name, entry in entries.items():
        made[name].location[1] += top
        memory.remember(made[name], "/position", entry.get("position", [0, 0]), list(made[name].location))
        memory.remember(made[name], "/inputs", entry.get("inputs", {}), wires(made[name]))
    tree.message = ""
    return made


def _node(tree, name, entry):
    node = tree.nodes.new(nodes.class_of(entry["type"], tree.bl_idname).bl_idname)
    node.name = name
    memory.remember(node, "/id", name, node.name)
    node.mute, node.comment = entry.get("bypass", False), entry.get("comment", "")
    memory.remember(node, "/editor", entry.get("editor"), None)
    wanted = (entry.get("editor") or {}).get("blender", {}).get("object", "")
    node.scene_object = bpy.data.objects.get(wanted)
    if isinstance(node, nodes.MpmUnknownNode):
        node.show(entry)
        return node
    node.file_version = entry.get("version") or node.record["version"]
    given = dict(entry.get("knobs", {}))
    for knob in node.record["knobs"]:
        if knob["name"] in given:
            knobs.set_value(node, knob, given.pop(knob["name"]), lambda document: load_substeps(document, name))
    memory.remember(node, "/others", given, None)
    return node


def _wire(made, source, target, port):
    """Wire an input as a file spells it; what cannot be is left out, kept in the file, and reported by validation."""
    name, _, output = source.partition(".")
    start = made.get(name)
    if start is None:
        return
    if isinstance(start, nodes.MpmUnknownNode):
        start.output(output)
        output = output or "output"
    elif name in DOMAINS and isinstance(start, nodes.MpmSubstepState):
        output = name
    elif target.id_data.bl_idname == SUBSTEP_TREE:
        output = output or port
    try:
        nodes.connect(start, output, target, port)
    except ValueError:
        pass


# ---------------------------------------------------------------- tree to document
def wires(node):
    """Return by input the [node name, output] of every wire, reroutes followed, in the order of the sockets."""
    found = {}
    for link in node.id_data.links:
        if link.to_node == node and not link.is_muted:
            source = _origin(link)
            if source is not None:
                found.setdefault(link.to_socket.identifier, []).append([source.node.name, source.identifier])
    return {port: sorted(sources) for port, sources in found.items()}


def _origin(link):
    """Return the socket that a link comes from, past reroutes; None for an open end."""
    for _ in range(1000):
        if link.from_node.bl_idname != "NodeReroute":
            return link.from_socket
        before = link.from_node.inputs[0].links
        if not before:
            return None
        link = before[0]
    return None


def names_in_file(tree):
    """Return what each of our nodes is called in the file, by its name in Blender.

    Raises:
        FileFault: A node is of a type that this extension does not know, so that it would be lost.
    """
    for node in tree.nodes:
        if not isinstance(node, nodes.MpmNode) and node.bl_idname not in ("NodeReroute", "NodeFrame"):
            raise FileFault(
                f"{tree.name}: {node.name} is of a type that this extension does not know; use the extension "
                "that it was made with, or remove it"
            )
    found, taken = {}, set(DOMAINS) if tree.bl_idname == SUBSTEP_TREE else set()
    ours = [node for node in tree.nodes if isinstance(node, nodes.MpmNode) and not isinstance(node, nodes.MpmSubstepState)]
    for node in ours:
        kept = memory.recall(node, "/id", node.name)
        if kept is not memory.NOTHING and kept not in taken:
            found[node.name] = kept
            taken.add(kept)
    for node in ours:
        if node.name not in found:
            name = re.sub(r"[^\w-]", "_", node.name)
            name = name if NAME.fullmatch(name) else f"n_{name}"
            while name in taken:
                name += "_"
            found[node.name] = name
            taken.add(name)
    return found


def save(tree, folder=None, objects=None):
    """Return the document of a graph tree.

    Args:
        tree: The tree.
        folder: Folder that the file is meant for; relative paths of another folder are made absolute.
        objects: By node name, the knob values that scene objects give.
    """
    nodes.turn(tree)
    names = names_in_file(tree)
    document = {"format": GRAPH_FORMAT["name"], "version": GRAPH_FORMAT["version"]}
    document["settings"] = {name: knobs.value(tree, constant(knob)) for name, knob in SETTINGS.items()}
    if document["settings"].get("resolution") == 1.0:
        del document["settings"]["resolution"]  # as graphs without it are written
    document["nodes"] = {}
    for node in tree.nodes:
        if node.name in names:
            entry = _entry(node, names)
            _anchor(node, entry, tree.base, folder)
            entry["knobs"].update((objects or {}).get(node.name, {}))
            document["nodes"][names[node.name]] = entry
    return document | json.loads(tree.rest or "{}")


def save_substeps(tree):
    """Return the document of a substep tree."""
    nodes.turn(tree)
    names = names_in_file(tree)
    rest = json.loads(tree.rest or "{}")
    has = rest.pop("has", [])
    document = {"format": SUBSTEPS_FORMAT["name"], "version": SUBSTEPS_FORMAT["version"]}
    document |= {key: text for key, text in (("label", tree.title), ("doc", tree.doc)) if text or key in has}
    if isinstance(rest.get("parameters"), dict):
        rest["parameters"] = _renamed_parameters(tree, names, rest["parameters"])
    document["nodes"] = {names[node.name]: _entry(node, names) for node in tree.nodes if node.name in names}
    return document | rest


def _renamed_parameters(tree, names, parameters):
    """Return promoted parameters with the names that stages have now; those of stages that are gone are left out."""
    now = {memory.stored(node, "/id"): names[node.name] for node in tree.nodes if node.name in names}
    found = {}
    for name, places in parameters.items():
        split = [str(place).partition(".") for place in places] if isinstance(places, list) else []
        kept = [f"{now[stage]}.{knob}" for stage, _, knob in split if stage in now]
        if kept or not split:
            found[name] = kept or places
    return found


def _entry(node, names):
    if isinstance(node, nodes.MpmUnknownNode):
        entry = json.loads(node.entry or "{}")
        return entry | {"bypass": node.mute} if node.mute or "bypass" in entry else entry
    values = {knob["name"]: knobs.value(node, knob, save_substeps) for knob in node.record["knobs"]}
    others = memory.stored(node, "/others")
    editor = _editor(node)
    location = list(node.location)
    position = memory.recall(node, "/position", location)
    return {
        "type": node.record["id"],
        "version": node.file_version or node.record["version"],
        "knobs": {name: value for name, value in values.items() if value is not memory.NOTHING}
        | ({} if others is memory.NOTHING else others),
        "inputs": _inputs(node, names),
        "bypass": bool(node.mute),
        "position": [round(each, 1) for each in location] if position is memory.NOTHING else position,
        "comment": node.comment,
    } | ({} if editor is None else {"editor": editor})


def _editor(node):
    kept = memory.stored(node, "/editor")
    kept = None if kept is memory.NOTHING else kept
    known = (kept or {}).get("blender", {}).get("object", "")
    wanted = node.scene_object.name if node.scene_object else ""
    if wanted == known or (not wanted and known not in bpy.data.objects):
        return kept
    blender = {**(kept or {}).get("blender", {}), "object": wanted}
    return {**(kept or {}), "blender": blender}


def _inputs(node, names):
    """Return the wires as a graph file spells them: as loaded where nothing was rewired, in our own words else."""
    seen = wires(node)
    kept = memory.recall(node, "/inputs", seen)
    if kept is not memory.NOTHING and _names_hold(node, seen, names):
        return kept
    tree, found = node.id_data, {}
    for port in node.record["inputs"]:
        ordered = [source for source in _in_order(node, port["name"]) if source in seen.get(port["name"], [])]
        spelled = [_spelled(tree.nodes[name], output, port["name"], names) for name, output in ordered]
        if spelled:
            found[port["name"]] = spelled if port["many"] and (len(spelled) > 1 or tree.bl_idname == GRAPH_TREE) else spelled[0]
    return found


def _names_hold(node, seen, names):
    """Return whether every source is still called in the file what it was when it was loaded."""
    sources = {name for ports in seen.values() for name, _ in ports}
    return all(memory.stored(node.id_data.nodes[name], "/id") == names[name] for name in sources if name in names)


def _in_order(node, port):
    """Return the [node name, output] wired into an input, in the order in which Blender draws them."""
    links = [link for link in node.id_data.links if link.to_node == node and link.to_socket.identifier == port]
    links.sort(key=lambda link: getattr(link, "multi_input_sort_id", 0))
    origins = [_origin(link) for link in links if not link.is_muted]
    return [[socket.node.name, socket.identifier] for socket in origins if socket is not None]


def _spelled(source, output, port, names):
    if isinstance(source, nodes.MpmSubstepState):
        return output
    name = names[source.name]
    if source.id_data.bl_idname == SUBSTEP_TREE:
        return name if output == port else f"{name}.{output}"
    first = source.record is None or (len(outputs(source.record)) == 1 and len(source.record["outputs"]) == 1)
    return name if first else f"{name}.{output}"


def _anchor(node, entry, base, folder):
    """Make relative input paths absolute when the file is meant for another folder than they start from."""
    if not base or folder is None or Path(base) == Path(folder):
        return
    for knob in node.record["knobs"] if node.record else ():
        value = entry["knobs"].get(knob["name"])
        if knob["kind"] == "path" and isinstance(value, str) and value and not os.path.isabs(value):
            entry["knobs"][knob["name"]] = (Path(base) / value).as_posix()
