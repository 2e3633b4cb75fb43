"""MPM Source: one node for a mesh, its material and its emission, which are two or three nodes of the graph."""

from __future__ import annotations

from .nodes import chosen_output
from .values import read_knob

ENDINGS = {"material_library": "_material", "emit_mesh": "", "emit_stream": "_stream"}
"""What the nodes are called, behind the source's own name."""


def name_of(source, output):
    """Return the node of the graph that a wire from a source comes from."""
    return source + ENDINGS["emit_stream" if output is not None and output["name"] == "emitter" else "emit_mesh"]


def streams(source, network, found):
    """Return whether matter streams out of a source, by its session id: something takes it as an emitter."""
    for node_id, wires in network.wires.items():
        for port in found[node_id][1]["inputs"]:
            if source in wires.get(port["name"], ()) and (chosen_output(found[source][1], port) or {}).get("name") == "emitter":
                return True
    return False


def entries(node, facts, name, pours, frames):
    """Return the nodes of the graph that a source stands for, by name; the stream only where it pours."""
    values = {knob["name"]: read_knob(node, knob, frames) for knob in facts["knobs"]}
    inputs = {"emit_mesh": {"material": name + ENDINGS["material_library"]}, "emit_stream": {"template": name}}
    found = {}
    for made in facts["makes"]:
        if made["type"] != "emit_stream" or pours:
            found[name + ENDINGS[made["type"]]] = {
                "type": made["type"],
                "version": made["version"],
                "knobs": {knob: values[knob] for knob in made["knobs"]},
                "inputs": inputs.get(made["type"], {}),
                "bypass": bool(node.parm("mpm_bypass").eval()),
                "comment": node.comment(),
            }
    if pours and node.parm("mpm_animated").eval():  # where it is at every frame; what keeps its shape takes its particles along
        found[name]["knobs"]["frame"] = {"keys": [[frame, float(frame), "linear"] for frame in frames]}
        found[name]["knobs"].setdefault("lattice", "body")
    return found
