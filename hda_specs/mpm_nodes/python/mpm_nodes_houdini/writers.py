"""Geometry of the scene as files that the cook reads: polygons by Houdini's USD Export, level sets as .vdb."""

from __future__ import annotations

import os

import hou

from .nodes import put


def write_geometry(collected, graph_file):
    """Write every geometry that is wired into a node beside the graph file, and put the paths into the graph.

    Raises:
        hou.OperationFailed: Houdini could not write a file.
    """
    for name, knob, writer, node, index in collected.geometry:
        folder = os.path.join(os.path.dirname(graph_file), "inputs")
        os.makedirs(folder, exist_ok=True)
        animated = bool(node.parm("mpm_animated").eval())
        knobs = collected.graph["nodes"][name]["knobs"]
        if writer == "vdb":
            knobs[knob] = "inputs/" + _write_vdb(node, index, folder, name, collected.frames, animated)
            if "sequence" in knobs:
                knobs["sequence"] = animated
        else:
            knobs[knob] = "inputs/" + _write_usd(node, index, folder, name, collected.frames, animated)


def _write_vdb(node, index, folder, name, frames, animated):
    if not animated:
        node.inputGeometryAtFrame(frames[0], index).saveToFile(os.path.join(folder, f"{name}.vdb"))
        return f"{name}.vdb"
    for frame in range(int(frames[0]), int(frames[1]) + 1):
        node.inputGeometryAtFrame(frame, index).saveToFile(os.path.join(folder, f"{name}.{frame:04d}.vdb"))
    return f"{name}.####.vdb"


def _write_usd(node, index, folder, name, frames, animated):
    """Write polygons with a USD Export node that lives as long as it writes."""
    path = os.path.join(folder, f"{name}.usd")
    source = node.inputs()[index]
    export = source.parent().createNode("usdexport", f"{name}_export")
    try:
        export.setInput(0, source)
        last = frames[1] if animated else frames[0]
        for parm, value in (("lopoutput", path), ("trange", 1), ("f1", frames[0]), ("f2", last), ("f3", 1)):
            put(export, parm, value)
        export.parm("execute").pressButton()
    finally:
        export.destroy()
    if not os.path.isfile(path):
        raise hou.OperationFailed(f"{name}: USD Export wrote no {path}; export {source.name()} by hand and give the file as Path")
    return f"{name}.usd"
