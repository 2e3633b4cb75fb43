"""Houdini assets of every node and stage, made from the host specification.

Each asset is a Python SOP. What flows along its wire is not matter but the graph: one point for each node above (see
`mpm_nodes_houdini.wires`), so that Houdini's own Null, Merge, Switch and Object Merge work between our nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mpm_nodes.data import MpmNodesError
from mpm_nodes.hosts.houdini.asset import BEGIN, COOK, Asset, flat
from mpm_nodes.hosts.houdini.further_assets import farm_parms, guides_asset, points_asset, source_asset
from mpm_nodes.hosts.houdini.parameters import Parm, ParmFolder, Spec, knob_parms

PROGRAM = ("needs", "upgrade", "cook", "resume", "again", "farm", "wedge", "exit_codes", "wording")
"""What the code in Houdini needs to know about the command line."""


def assets_of(spec: Spec) -> list[Asset]:
    """Return the assets of a host specification, sorted by id.

    Raises:
        MpmNodesError: A node has a name that the assets need themselves.
    """
    colours = {each["id"]: tuple(each["colour"]) for each in spec["types"]}
    found = [_begin_asset(spec, colours), _cook_asset(spec), points_asset(), guides_asset(spec)]
    found += source_asset(spec, colours, _geometry_parms)
    found += [_asset(record, "graph", spec, colours) for record in spec["nodes"]]
    found += [_asset(record, "substeps", spec, colours) for record in spec["stages"]]
    for asset in found:
        names = [parm.name for folder in asset.folders for parm in flat(folder.parms)]
        taken = [knob["name"] for knob in asset.facts["knobs"] if knob["name"].startswith("mpm_") or names.count(knob["name"]) > 1]
        if taken or sum(other.id == asset.id for other in found) > 1:
            what = f"knob {taken[0]}" if taken else f"node {asset.id}"
            raise MpmNodesError(f"{asset.id}: {what} has a name that the Houdini assets use themselves; rename it")
    return sorted(found, key=lambda asset: asset.id)


def _asset(record: Spec, scope: str, spec: Spec, colours: Mapping[str, tuple[float, ...]]) -> Asset:
    outputs = [{"name": each["name"], "type": each["type"]} for each in record["outputs"] if not each["internal"]]
    inputs = [
        {
            "name": each["name"],
            "kind": "graph",
            "label": _input_label(each),
            "accepts": each["accepts"],
            "optional": each["optional"],
            "many": each["many"],
            "doc": each["doc"],
        }
        for each in record["inputs"]
    ]
    own: list[Parm | ParmFolder] = []
    folders: dict[str, list[Parm | ParmFolder]] = {record["label"]: own}
    for knob in record["knobs"]:
        port = _substeps_input(knob, spec) if knob["kind"] == "substeps" else _geometry_input(knob)
        wired = f"hasinput({len(inputs)})" if port else ""
        parms = knob_parms(knob, spec["presets"], f"{{ {wired} == 1 }}" if port else "")
        folders.setdefault(_folder_of(knob, record), []).extend(parms)
        if port:
            inputs.append(port)
        if port and port["kind"] == "substeps":
            own.append(
                button(
                    "mpm_unfold",
                    "Make Stages of the Preset",
                    "unfold_preset",
                    "Make the preset's stages as nodes and wire them in, to change, add or leave out some.",
                )
            )
        if port and port["kind"] == "geometry":
            own.extend(_geometry_parms(port, record["time_dependent"], wired))
    folders["Graph"] = [
        Parm("mpm_id", "Name in the Graph", "string", ("",), help="Empty: the name of this node."),
        Parm(
            "mpm_bypass",
            "Bypass in the Graph",
            "toggle",
            ("0",),
            help="The node stays in the graph file, marked as bypassed: what comes in leaves by the port of the same name.",
        ),
    ]
    facts = {
        "id": record["id"],
        "version": record["version"],
        "scope": scope,
        "inputs": inputs,
        "outputs": outputs,
        "knobs": [_knob_facts(knob) for knob in record["knobs"]],
        "colour": _colour(outputs, colours),
    }
    if any(port["kind"] == "substeps" for port in inputs):
        facts["presets"] = {preset["name"]: preset["document"] for preset in spec["presets"]}
    tabs = tuple(ParmFolder(label, tuple(parms)) for label, parms in folders.items() if parms)
    return Asset(
        record["id"],
        record["label"],
        f"{record['version']}.0",
        record["category"],
        record["doc"],
        tuple(facts["colour"]),
        tabs,
        facts,
    )


def button(name: str, label: str, function: str, help: str) -> Parm:
    """Return a button that calls a function of `mpm_nodes_houdini` with its node."""
    call = f"import mpm_nodes_houdini; mpm_nodes_houdini.{function}(kwargs['node'])"
    return Parm(
        name,
        label,
        "button",
        ("0",),
        help=help,
        join_next=name in ("mpm_cook", "mpm_continue", "mpm_again", "mpm_farm"),
        tags={"script_callback": call, "script_callback_language": "python"},
    )


def _input_label(port: Spec) -> str:
    marks = [*(["merge several"] if port["many"] else []), *(["optional"] if port["optional"] else [])]
    return port["label"] + (f" ({', '.join(marks)})" if marks else "")


def _folder_of(knob: Spec, record: Spec) -> str:
    """Return the tab of a knob: families of at least four knobs (wall_low, wall_high, ...) get their own."""
    family = knob["name"].split("_")[0]
    members = [each for each in record["knobs"] if each["name"].startswith(family + "_")]
    return family.capitalize() if len(members) >= 4 else record["label"]


def _substeps_input(knob: Spec, spec: Spec) -> dict[str, Any]:
    domains = [each["id"] for each in spec["types"] if each["scope"] == "substeps"]
    return {
        "name": knob["name"],
        "kind": "substeps",
        "label": "Substep Stages (optional)",
        "accepts": domains,
        "optional": True,
        "many": True,
        "doc": "The end of a network of stages that begins with Substep Begin; it takes the preset's place.",
    }


def _geometry_input(knob: Spec) -> dict[str, Any] | None:
    """Return the input for geometry of the scene in the place of a file that Houdini can write, else None."""
    if knob["kind"] != "path" or not knob["file"]["patterns"]:
        return None
    writer = "vdb" if "*.vdb" in knob["file"]["patterns"] else "usd"
    return {
        "name": knob["name"],
        "kind": "geometry",
        "label": "Geometry (instead of the file)",
        "accepts": [],
        "optional": True,
        "many": False,
        "writer": writer,
        "doc": f"Geometry of this scene; it is written to a .{writer} file beside the graph file before the cook.",
    }


def _geometry_parms(port: Spec, moves: bool, wired: str) -> list[Parm]:
    """Return what says where geometry comes from and how it moves."""
    what = port["label"].lower().split(" (")[0]
    thing = Parm(
        "mpm_object",
        "Object",
        "oppath",
        ("",),
        disable=f"{{ {wired} == 1 }}",
        help=f"An object of the scene in the place of a wire: its {what} with all transforms of the object and of those above it.",
        tags={"opfilter": "!!OBJ!!", "oprelative": "."},
    )
    motion = Parm(
        "mpm_animated",
        "Motion of the Geometry",
        "ordinal",
        ("2" if moves else "0",),
        menu=(("0", "Static: stands still"), ("1", "Rigid: moves and turns"), ("2", "Deforming: changes its shape")),
        disable=f'{{ {wired} == 0 mpm_object == "" }}',
        help="Static writes the first frame, Rigid and Deforming every one. Rigid is refused where points or shape change. "
        "A rigid motion takes one level set, a deforming body several a frame.",
    )
    return [thing, motion]


def _knob_facts(knob: Spec) -> dict[str, Any]:
    kept = ("name", "kind", "default", "size", "optional", "keyable")
    facts = {key: knob[key] for key in kept}
    facts |= {"element": knob["element"]} if "element" in knob else {}
    return facts | ({"choices": knob["choices"]} if knob["choices"] else {})


def _colour(outputs: Sequence[Spec], colours: Mapping[str, tuple[float, ...]]) -> list[float]:
    return list(colours.get(outputs[0]["type"], (0.7, 0.7, 0.7))) if outputs else [0.7, 0.7, 0.7]


def _begin_asset(spec: Spec, colours: Mapping[str, tuple[float, ...]]) -> Asset:
    """Return the asset that stands for the state as a substep begins."""
    outputs = [{"name": name, "type": f"domain_{name}"} for name in spec["reserved_names"]]
    facts = {
        "id": BEGIN,
        "version": 1,
        "scope": "substeps",
        "inputs": [],
        "outputs": outputs,
        "knobs": [],
        "colour": _colour(outputs, colours),
    }
    note = Parm("mpm_note", "Use", "label", ("Wire this into the first stages.",), help="All domains leave by one output.")
    stages = tuple((record["id"], record["label"]) for record in spec["stages"])
    choice = Parm(
        "mpm_stage",
        "Stage",
        "ordinal",
        (stages[0][0],),
        menu=stages,
        help="Stages are not in the TAB menu; add them here.",
        join_next=True,
    )
    add = button("mpm_add", "Add", "add_stage", "Make this stage beside the node, to be wired in.")
    return Asset(
        BEGIN,
        "Substep Begin",
        "1.0",
        "Substep Stages",
        "The solve's particles, grid and colliders as a substep begins; every network of stages starts here.",
        tuple(facts["colour"]),
        (ParmFolder("Substep Begin", (note, choice, add)),),
        facts,
    )


def _cook_asset(spec: Spec) -> Asset:
    """Return the asset that collects the graph, cooks it and brings the cache in."""
    variables = {"fps": "$FPS", "start": "$FSTART", "end": "$FEND"}

    settings = []
    for knob in spec["settings"]:
        parm = knob_parms(knob, ())[0]
        assert isinstance(parm, Parm)
        default = (variables[knob["name"]],) if knob["name"] in variables else parm.defaults
        settings.append(Parm(parm.name, parm.label, parm.type, default, help=parm.help, range=parm.range, tags=parm.tags))
    bring = (("sop", "Geometry (USD Import beside this node)"), ("lop", "Solaris (Sublayer in /stage)"), ("none", "Nothing"))
    cook = (
        button(
            "mpm_cook",
            "Cook",
            "cook_graph",
            "Write the graph file and cook it in another process; Houdini stays usable, and frames appear as they come.",
        ),
        button("mpm_continue", "Continue", "continue_graph", "Go on after the last whole frame of the newest cook."),
        button(
            "mpm_again",
            "Cook Again from This Frame",
            "cook_again",
            "Cook the changed graph from the current frame on; frames before it are taken from the newest cook.",
        ),
        button(
            "mpm_cancel", "Cancel", "cancel_cook", "Stop the cook after its substep; pressed again, at once. Whole frames stay."
        ),
        *settings,
        Parm("mpm_import", "Bring In", "ordinal", ("sop",), menu=bring, help="Where the cooked cache appears."),
    )
    files = (
        Parm(
            "mpm_graph",
            "Graph File",
            "file",
            ("$HIP/mpm/$OS.json",),
            help="The graph as a file; relative paths start beside it.",
            tags={"filechooser_mode": "read_and_write", "filechooser_pattern": "*.json"},
        ),
        button("mpm_check", "Check Graph", "check_graph", "List everything that is wrong with the graph; nothing is cooked."),
        button("mpm_save", "Save Graph File", "save_graph", "Write the graph file."),
        button("mpm_load", "Load Graph File", "load_graph", "Make the nodes of the graph file beside this node and wire them in."),
        Parm("mpm_out", "Cache Folder", "directory", ("$HIP/mpm/$OS",), help="Each cook gets a new folder rNNN in it."),
    )
    program = (
        Parm(
            "mpm_program",
            "Program",
            "string",
            ("",),
            help="Command of the mpm-nodes program, for instance /opt/mpm/bin/mpm-nodes; empty takes the environment variable "
            "MPM_NODES_PROGRAM, else mpm-nodes.",
        ),
        Parm("mpm_threads", "Threads", "integer", ("0",), range=("0!", "64"), help="Threads of the solve; 0 takes all cores."),
    )
    graph_input = {
        "name": "graph",
        "kind": "graph",
        "label": "Caches (merge several)",
        "optional": True,
        "many": True,
        "accepts": [each["id"] for each in spec["types"] if each["scope"] == "graph"],
        "doc": "Ends of the graph: Write Cache and others. All that is wired above them is cooked.",
    }
    facts = {
        "id": COOK,
        "version": 1,
        "scope": "cook",
        "inputs": [graph_input],
        "outputs": [],
        "knobs": [_knob_facts(knob) for knob in spec["settings"]],
        "colour": [0.9, 0.82, 0.36],
        "graph_format": spec["graph_format"],
        "substeps_format": spec["substeps_format"],
        "program": {key: spec["cook"][key] for key in PROGRAM},
    }
    return Asset(
        COOK,
        "MPM Cook",
        "1.0",
        "Solve",
        "Collect the graph that is wired in, cook it with the mpm-nodes program, and bring the cache in.",
        tuple(facts["colour"]),
        (
            ParmFolder("Cook", cook),
            ParmFolder("Files", files),
            ParmFolder("Farm", farm_parms(button)),
            ParmFolder("Program", program),
        ),
        facts,
    )
