"""A node class for every node and stage of the specification, and two that stand for what is none of them."""

import json

import bpy

from . import axes, curves, knobs, memory, older, preset_settings, sockets
from .specification import CATEGORIES, DOMAINS, NODES, STAGES, TYPES, outputs
from .trees import GRAPH_TREE, SUBSTEP_TREE

FEW_ROWS = 11
"""Rows of knobs that a node shows before its button More Knobs is pressed."""

LETTER = 6.6
"""Width of a letter on a node, in its units."""
NARROWEST, WIDEST = 190.0, 340.0
"""Widths that a new node may have."""

BESIDE = dict.fromkeys(("enum", "str", "path", "output_path", "strings"), 14)
"""Letters that the fields of such knobs take beside their labels."""

PLACED = {"centre", "translate"}
"""Knobs that an object of the scene can stand for."""

FOLLOWERS = []
"""Called with a node and the object that it stood for, when another one has taken its place."""


def _remember_object(node, _context):
    """Keep the name of a node's object: Blender empties the pointer when the object is deleted, and tells nobody.

    What is painted on the object before is read from the one that takes its place.
    """
    before = bpy.data.objects.get(node.object_name)
    node.object_name = node.scene_object.name if node.scene_object else ""
    if before is not None and node.scene_object not in (None, before):
        for follow in FOLLOWERS:
            follow(node, before)


class MpmNode:
    """What all nodes share. `record` is the node's entry in the specification."""

    record = None
    tree_kind = GRAPH_TREE
    bl_width_default = 190.0

    as_loaded: memory.loaded_property()
    file_version: bpy.props.IntProperty(name="Version", description="Version of the node that the knobs are written for")
    in_scene_axes: bpy.props.BoolProperty(name="Scene Axes", description="Knobs are in the scene's axes", options={"HIDDEN"})
    comment: bpy.props.StringProperty(name="Comment", description="A note for whoever opens the graph next")
    problem: bpy.props.StringProperty(name="Problem", options={"HIDDEN", "SKIP_SAVE"})
    notice: bpy.props.StringProperty(name="Notice", options={"HIDDEN", "SKIP_SAVE"})
    all_knobs: bpy.props.BoolProperty(name="All Knobs", description="Show every knob on the node")
    advanced: bpy.props.BoolProperty(name="Advanced", description="Show how it is computed")
    all_settings: bpy.props.BoolProperty(name="Settings", description="Show what the preset of the substeps lets you set")
    object_name: bpy.props.StringProperty(name="Object Name", options={"HIDDEN"})
    scene_object: bpy.props.PointerProperty(
        type=bpy.types.Object,
        name="Scene Object",
        update=_remember_object,
        description="Object of this scene that takes the place of the file or of the "
        "placement below; it is written out, with its animation, whenever the graph is cooked",
    )

    @classmethod
    def poll(cls, tree):
        """Return whether the node may stand in a tree."""
        return tree.bl_idname == cls.tree_kind

    def init(self, _context):
        """Add the sockets, and take the colour of the category that the node is in."""
        self.file_version = self.record["version"]
        self.use_custom_color, self.color = True, CATEGORIES[self.record["category"]]
        for port in self.record["inputs"]:
            _add_input(self, port)
        for port in outputs(self.record):
            _add_output(self, port)
        self.in_scene_axes = True
        for knob in self.record["knobs"]:
            if knob["kind"] == "table":
                curves.show(self, knob["name"], knob["default"])
            elif axes.unit_of(knob) and knobs.unit_now() != 1.0:
                knobs.show(self, knob, knob["default"])

    def copy(self, node):
        """Forget the problems of the node that this one is a copy of, and take curves of its own."""
        self.problem = self.notice = ""
        for knob in self.record["knobs"] if self.record else ():
            if knob["kind"] == "table":
                curves.part(self, knob["name"])

    def takes_object(self):
        """Return "mesh" or "points" when an object can stand for the node's USD file, "place" for its placement, else ""."""
        for knob in self.record["knobs"] if self.record else ():
            if self.record["id"] == "read_points":
                return "points"
            if knob["kind"] == "path" and "*.usd" in (knob["file"] or {}).get("patterns", ()) and knob["required"]:
                return "mesh" if any(each["name"] in ("thickness", "primvar") for each in self.record["knobs"]) else ""
            if knob["name"] in PLACED and knob["kind"] == "vector":
                return "place"
        return ""

    def draw_buttons(self, context, layout):
        """Draw problems and knobs."""
        draw_problem(self, layout)
        if self.file_version < self.record["version"]:
            layout.label(text=f"Version {self.file_version}, now {self.record['version']}", icon="FILE_REFRESH")
            layout.operator("mpm_nodes.upgrade", text="Upgrade")
        if self.takes_object():
            layout.prop(self, "scene_object", text="")
        all_of, few = plain_knobs(self.record), first_knobs(self.record)
        for knob in all_of if self.all_knobs else few:
            draw_knob(self, layout, knob)
        if len(all_of) > len(few):
            layout.prop(self, "all_knobs", toggle=True, text=f"{'Fewer' if self.all_knobs else 'More'} Knobs")
        draw_advanced(self, layout)

    def draw_buttons_ext(self, context, layout):
        """Draw help and every knob in the sidebar."""
        layout.label(text=self.record["doc"][:90])
        layout.prop(self, "comment")
        for knob in plain_knobs(self.record):
            draw_knob(self, layout, knob)
        draw_advanced(self, layout)


def _add_input(node, port):
    sockets.add_input(node, port["name"], port["label"], port["type"], port["accepts"], port["many"])


def _add_output(node, port):
    sockets.add_output(node, port["name"], port["label"], port["type"])


def rows(knob):
    """Return how many rows a knob takes on a node."""
    return knob["size"] + 1 if knob["kind"] == "vector" else {"substeps": 3, "table": 5}.get(knob["kind"], 1)


def plain_knobs(record):
    """Return the knobs that are not advanced."""
    return [knob for knob in record["knobs"] if not knob.get("advanced")]


def first_knobs(record):
    """Return the knobs that a node always shows."""
    found, used = [], 0
    for knob in plain_knobs(record):
        used += rows(knob)
        if found and used > FEW_ROWS:
            break
        found.append(knob)
    return found


def draw_advanced(node, layout):
    """Draw the knobs of how a node is computed, folded until they are asked for."""
    folded = [knob for knob in node.record["knobs"] if knob.get("advanced")]
    if folded:
        layout.prop(node, "advanced", icon="DISCLOSURE_TRI_DOWN" if node.advanced else "DISCLOSURE_TRI_RIGHT", emboss=False)
    for knob in folded if node.advanced else ():
        draw_knob(node, layout, knob)


def draw_problem(node, layout):
    """Draw what is wrong with a node in red, and what else there is to say below it, broken into short lines."""
    for text, bad in ((node.problem, True), (node.notice, False)):
        if text:
            box = layout.box()
            box.alert = bad
            for line in broken(text, max(20, int(node.width / 6.5))):
                box.label(text=line)


def broken(text, width):
    """Return a text in lines of at most `width` characters where words allow it."""
    lines = []
    for paragraph in text.splitlines():
        line = ""
        for word in paragraph.split():
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}".strip()
        lines.append(line)
    return lines


def draw_knob(node, layout, knob):
    """Draw one knob; vectors and menus get a line of their own for the label."""
    name = knobs.prop(knob["name"])
    if knob["kind"] == "substeps":
        layout.prop(node, name, text="")
        if getattr(node, name) == knobs.OWN:
            layout.prop(node, knobs.tree_prop(knob["name"]), text="")
        else:
            _draw_settings(node, layout, knob["name"])
        layout.operator("mpm_nodes.edit_substeps", icon="NODETREE").knob = knob["name"]
        return
    if knob["kind"] == "table":
        curves.draw(node, layout, knob, knobs.title(knob))
        return
    row = layout.row() if knob["kind"] not in ("vector",) else layout.column(align=True)
    if node.scene_object is not None and (knob["kind"] == "path" or knob["name"] in (*PLACED, "rotation", "orientation")):
        row.enabled = False
    if knob["kind"] == "vector":
        draw_vector(node, row, knob)
    elif beside := BESIDE.get(knob["kind"]):  # Blender gives such a label a third of the row, and cuts it
        letters = len(knobs.title(knob)) + 1
        row = row.split(factor=letters / (letters + beside), align=True)
        row.label(text=knobs.title(knob))
        row.prop(node, name, text="")
    else:
        row.prop(node, name)


def draw_vector(node, column, knob):
    """Draw the numbers of a vector by the scene's axes."""
    name = knobs.prop(knob["name"])
    if not knob["axes"]:
        column.prop(node, name)
        return
    column.label(text=f"{knobs.title(knob)}:")
    for index, text in enumerate("WXYZ"[-knob["size"] :]):
        column.prop(node, name, index=index, text=text)


def _draw_settings(node, layout, name):
    """Draw a field for each parameter of the chosen preset, folded until it is asked for."""
    icon = "DISCLOSURE_TRI_DOWN" if node.all_settings else "DISCLOSURE_TRI_RIGHT"
    layout.prop(node, "all_settings", icon=icon, emboss=False)
    if not node.all_settings:
        return
    column = layout.column(align=True)
    for knob in preset_settings.fields(name, getattr(node, knobs.prop(name))).values():
        if knob["kind"] == "vector":
            draw_vector(node, column, knob)
        else:
            column.prop(node, knobs.prop(knob["name"]))
    layout.prop(node, preset_settings.text_prop(name))


class MpmUnknownNode(MpmNode, bpy.types.Node):
    """A node of a type that this add-on does not know: kept whole, so that saving the file again loses nothing."""

    bl_idname = "MpmUnknownNode"
    bl_label = "Unknown Node"
    tree_kind = None

    __annotations__ = {
        **MpmNode.__annotations__,
        "entry": bpy.props.StringProperty(name="Entry", description="The node as it stands in the graph file"),
    }

    @classmethod
    def poll(cls, tree):
        """It may stand in both kinds of trees."""
        return tree.bl_idname in (GRAPH_TREE, SUBSTEP_TREE)

    def init(self, _context):
        """It has no sockets until an entry is given."""

    def show(self, entry):
        """Keep an entry of a graph file and make a socket for each of its ports."""
        self.entry = json.dumps(entry)
        for name in entry.get("inputs", {}):
            sockets.add_input(self, name, name, "unknown", list(TYPES), True)

    def output(self, name):
        """Return the output of a name, made when it is first asked for."""
        return self.outputs.get(name or "output") or sockets.add_output(self, name or "output", name or "output", "unknown")

    def draw_buttons(self, context, layout):
        """Draw what type it is of."""
        draw_problem(self, layout)
        layout.label(text=json.loads(self.entry or "{}").get("type", "?"), icon="QUESTION")

    def draw_buttons_ext(self, context, layout):
        """Draw the entry."""
        layout.prop(self, "entry")


class MpmSubstepState(MpmNode, bpy.types.Node):
    """The solver's state as a substep begins."""

    bl_idname = "MpmSubstepState"
    bl_label = "Substep Begins"
    tree_kind = SUBSTEP_TREE

    __annotations__ = dict(MpmNode.__annotations__)

    def init(self, _context):
        """Add an output for each domain."""
        for name in DOMAINS:
            sockets.add_output(self, name, name.capitalize(), f"domain_{name}")

    def draw_buttons(self, context, layout):
        """It has no knobs."""

    def draw_buttons_ext(self, context, layout):
        """It has no knobs."""


def width_for(record):
    """Return how wide a node must be for its labels to be whole: each stands left of a field, or above one."""
    words = [len(record["label"]) + 4, *(len(port["label"]) + 4 for port in (*record["inputs"], *record["outputs"]))]
    for knob in record["knobs"]:
        beside = 8 if knob["kind"] in ("int", "float") else BESIDE.get(knob["kind"], 2 if knob["kind"] == "vector" else 14)
        words.append(len(knobs.title(knob)) + beside)
    return max(NARROWEST, min(WIDEST, LETTER * max(words)))


def _node_class(record, prefix, kind):
    fields = {
        "bl_idname": prefix + record["id"],
        "bl_label": record["label"],
        "bl_description": record["doc"].rstrip("."),
        "record": record,
        "bl_width_default": width_for(record),
        "tree_kind": kind,
        "__annotations__": {**MpmNode.__annotations__, **knobs.annotations(record)},
    }
    return type(prefix + record["id"], (MpmNode, bpy.types.Node), fields)


NODE_CLASSES = {name: _node_class(record, "MpmNode_", GRAPH_TREE) for name, record in NODES.items()}
STAGE_CLASSES = {name: _node_class(record, "MpmStage_", SUBSTEP_TREE) for name, record in STAGES.items()}
CLASSES = [*NODE_CLASSES.values(), *STAGE_CLASSES.values(), MpmUnknownNode, MpmSubstepState]


def class_of(type_id, kind):
    """Return the class of a type in a kind of tree; `MpmUnknownNode` for a type that is none."""
    classes = NODE_CLASSES if kind == GRAPH_TREE else STAGE_CLASSES
    return classes.get(type_id, MpmUnknownNode)


def socket_of(holder, name):
    """Return the socket of a port's name, or None."""
    return next((socket for socket in holder if socket.identifier == name), None)


def complete(node):
    """Give a node of an older .blend the sockets that its type has now; those that it has no longer go when nothing is wired."""
    for knob in node.record["knobs"]:
        if knob["kind"] == "substeps":  # settings had no fields once, and stood in the text
            preset = getattr(node, knobs.prop(knob["name"]))
            settings = knobs.settings_of(node, knob["name"], preset)
            if isinstance(settings, dict) and settings.keys() & preset_settings.fields(knob["name"], preset).keys():
                knobs.show_settings(node, knob["name"], preset, settings)
    for holder, ports, add in ((node.inputs, node.record["inputs"], _add_input), (node.outputs, outputs(node.record), _add_output)):
        for index, port in enumerate(ports):
            socket = socket_of(holder, port["name"])
            if socket is None:
                add(node, port)
                holder.move(len(holder) - 1, index)
            elif not socket.is_output:
                socket.accepts = " ".join(port["accepts"])
        names = {port["name"] for port in ports}
        for socket in [each for each in holder if each.identifier not in names and not each.is_linked]:
            holder.remove(socket)


def turn(tree):
    """Bring the nodes of an older .blend into the scene's axes and units."""
    for node in tree.nodes:
        left = older.turn(node) if isinstance(node, MpmNode) else []
        if left:
            node.notice = f"Knobs are in the scene's axes and units now; turn drivers and NLA strips of {', '.join(left)} yourself"


@bpy.app.handlers.persistent
def after_load(*_):
    """Complete the nodes of a .blend that has just been opened, or of which something was appended."""
    for tree in bpy.data.node_groups:
        turn(tree)
        for node in tree.nodes:
            if isinstance(node, MpmNode) and node.record is not None:
                complete(node)


def connect(source, output, target, port):
    """Wire an output to an input.

    Args:
        source: Node that the wire starts from.
        output: Name of its output; "" for the first one.
        target: Node that it goes to.
        port: Name of the input.

    Raises:
        ValueError: There is no such output or input, or they are of unlike types.
    """
    start = socket_of(source.outputs, output) if output else next(iter(source.outputs), None)
    end = socket_of(target.inputs, port)
    if start is None or end is None:
        raise ValueError(f"{source.name}.{output} -> {target.name}.{port}: there is no such socket")
    reason = sockets.fault(start, end)  # before the link is made, which would push out one that is there
    if reason:
        raise ValueError(reason)
    return source.id_data.links.new(start, end)
