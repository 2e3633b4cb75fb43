"""Assets that no single node of the graph stands behind: points of a cache, outlines, a source in one node; the tab of farms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mpm_nodes.hosts.houdini.asset import GUIDES, POINTS, SOURCE, Asset
from mpm_nodes.hosts.houdini.parameters import Parm, ParmFolder, Spec, knob_parms

SOURCE_KNOBS = (
    ("Source", "material_library", ("name",)),
    ("Source", "emit_mesh", ("thickness", "velocity", "angular_velocity", "seeding")),
    ("Emission", "emit_stream", ("start_frame", "duration")),
)
"""Tab, node and knobs that a source has of the nodes that it stands for."""


def points_asset() -> Asset:
    """Return the asset that reads the particles of a cache."""
    parms = (
        Parm(
            "mpm_stage",
            "Stage",
            "file",
            ("",),
            help="The cache.usda of a cook; MPM Cook fills it in.",
            tags={"filechooser_pattern": "*.usd *.usda *.usdc", "filechooser_mode": "read"},
        ),
        Parm("mpm_prim", "Prim", "string", ("",), help="Path of the points in the stage; empty takes the first ones."),
        Parm("mpm_frame", "Frame", "float", ("$FF",), help="Time code that is read."),
    )
    doc = "The particles of a cooked cache as points with P, v, id, pscale and the cache's own attributes."
    return _helper(POINTS, "MPM Points", "Cache", doc, _facts(POINTS, "points", (0.36, 0.62, 0.9)), {"MPM Points": parms})


def guides_asset(spec: Spec) -> Asset:
    """Return the asset that draws emitters, colliders and walls of the nodes above it."""
    nodes = {
        "name": "graph",
        "kind": "graph",
        "label": "Nodes (merge several)",
        "optional": True,
        "many": True,
        "accepts": [each["id"] for each in spec["types"] if each["scope"] == "graph"],
        "doc": "Any end of the graph; all that is wired above it is drawn.",
    }
    facts = {**_facts(GUIDES, "guides", (0.9, 0.62, 0.36)), "inputs": [nodes]}
    text = ("Template this node to see the outlines.",)
    note = Parm("mpm_note", "Use", "label", text, help="Nothing here goes into the graph.")
    doc = (
        "Outlines of emitters (blue), colliders (grey) and closed walls (orange) of all nodes above, as open polygons. Bodies "
        "whose geometry is wired in are left out: it is there."
    )
    return _helper(GUIDES, "MPM Guides", "Solve", doc, facts, {"MPM Guides": (note,)})


def source_asset(
    spec: Spec, colours: Mapping[str, tuple[float, ...]], geometry_parms: Callable[[Spec, bool, str], list[Parm]]
) -> list[Asset]:
    """Return the asset of a mesh, its material and its emission in one; none where the nodes that it makes are not there."""
    records = {record["id"]: record for record in spec["nodes"]}
    if not {kind for _, kind, _ in SOURCE_KNOBS} <= records.keys():
        return []
    port = {
        "name": "path",
        "kind": "geometry",
        "label": "Geometry",
        "accepts": [],
        "optional": True,
        "many": False,
        "writer": "usd",
        "doc": "Polygons to fill with matter; they are written to a file beside the graph file before the cook.",
    }
    tabs: dict[str, list[Parm | ParmFolder]] = {}
    makes: list[dict[str, Any]] = []
    knobs = []
    for tab, kind, names in SOURCE_KNOBS:
        own = {knob["name"]: knob for knob in records[kind]["knobs"]}
        for name in names:
            tabs.setdefault(tab, []).extend(knob_parms(own[name], ()))
            kept = ("name", "kind", "default", "size", "optional", "keyable", "choices", "element")
            knobs.append({key: own[name][key] for key in kept if key in own[name]})
        makes.append({"type": kind, "version": records[kind]["version"], "knobs": list(names)})
    makes[-1]["knobs"].append("velocity")
    tabs["Source"].extend(geometry_parms(port, False, "hasinput(0)"))
    tabs["Graph"] = [
        Parm("mpm_id", "Name in the Graph", "string", ("",), help="Empty: the name of this node."),
        Parm("mpm_bypass", "Bypass in the Graph", "toggle", ("0",), help="The nodes that this one makes are marked as bypassed."),
    ]
    outputs = [{"name": "particles", "type": "Particles"}, {"name": "emitter", "type": "Emitter"}]
    facts = _facts(SOURCE, "source", colours.get("Particles", (0.36, 0.62, 0.9)))
    facts |= {"inputs": [port], "outputs": outputs, "knobs": knobs, "makes": makes}
    doc = (
        "A mesh full of matter in one node: geometry, a material of the library, and emission. Wired into Sources of a solve it is "
        "filled once, into Emitters matter streams out of it. In the graph file it is two or three nodes."
    )
    return [_helper(SOURCE, "MPM Source", "Emit", doc, facts, tabs)]


def farm_parms(button: Callable[[str, str, str, str], Parm]) -> tuple[Parm, ...]:
    """Return the parameters of MPM Cook that make jobs for farms."""
    return (
        Parm(
            "mpm_wedges",
            "Wedges",
            "string",
            ("",),
            help="Knobs with their values, such as matter.viscosity=1,10,100; several, separated by spaces, are combined.",
        ),
        Parm(
            "mpm_job", "Job Folder", "directory", ("$HIP/mpm/$OS.job",), help="The job is written here; all machines must see it."
        ),
        button(
            "mpm_farm",
            "Write Farm Job",
            "write_job",
            "Write template.json (Open Job Description), commands.txt with one command for each wedge, and a page that says how to "
            "submit them.",
        ),
        button("mpm_rops", "Make Farm ROPs", "make_rops", "Write the job, and make a Shell ROP in /out for each of its commands."),
    )


def _facts(kind: str, scope: str, colour: tuple[float, ...]) -> dict[str, Any]:
    return {"id": kind, "version": 1, "scope": scope, "inputs": [], "outputs": [], "knobs": [], "colour": list(colour)}


def _helper(kind: str, label: str, category: str, doc: str, facts: dict[str, Any], tabs: Mapping[str, Any]) -> Asset:
    folders = tuple(ParmFolder(name, tuple(parms)) for name, parms in tabs.items())
    return Asset(kind, label, "1.0", category, doc, tuple(facts["colour"]), folders, facts)
