"""Geometry of the scene as files that the cook reads: polygons by Houdini's USD Export, level sets as .vdb."""

from __future__ import annotations

import contextlib
import os

import hou

from . import shapes
from .nodes import put

STATIC, RIGID = 0, 1
"""How geometry moves, as its node says; what is neither deforms."""


def write_geometry(collected, graph_file):
    """Write every geometry that a node takes from the scene beside the graph file, and put the paths into the graph.

    Raises:
        hou.OperationFailed: Houdini could not write a file, or what is called rigid is not.
    """
    for name, knob, writer, node, index in collected.geometry:
        folder = os.path.join(os.path.dirname(graph_file), "inputs")
        os.makedirs(folder, exist_ok=True)
        motion = node.parm("mpm_animated").eval()
        knobs = collected.graph["nodes"][name]["knobs"]
        with _source(name, node, index) as source:
            if motion == RIGID:
                _refuse_changes(name, source, collected.frames)
            if writer == "vdb":
                knobs[knob] = "inputs/" + _write_vdb(source, folder, name, collected.frames, motion != STATIC)
                if "sequence" in knobs:
                    knobs["sequence"] = motion != STATIC
            else:
                knobs[knob] = "inputs/" + _write_usd(source, folder, name, collected.frames, motion != STATIC)


@contextlib.contextmanager
def _source(name, node, index):
    """Give the SOP to write: what is wired in, or an object with its transforms; height fields as polygons."""
    made, inputs, parent = [], node.inputs(), node.parent()
    try:
        source = inputs[index] if index < len(inputs) else None
        if source is None:
            path = node.parm("mpm_object").evalAsString()
            thing = node.node(path) or hou.node(path)
            if thing is None:
                raise hou.OperationFailed(f"{name}: there is no object {path}; choose another one, or wire geometry in")
            source = parent.createNode("object_merge", f"{name}_object")
            made.append(source)
            put(source, "objpath1", thing.path())
            put(source, "xformtype", 1)  # into the space of the geometry object that the graph is in
        if source.geometry().containsPrimType(hou.primType.Volume):
            made.append(parent.createNode("convertheightfield", f"{name}_polygons"))
            made[-1].setInput(0, source)
            source = made[-1]
        yield source
    finally:
        for each in reversed(made):
            each.destroy()


def _refuse_changes(name, source, frames):
    """Refuse geometry that is called rigid and has other points, or another shape, at some frame."""
    first = shapes.places(source.geometryAtFrame(frames[0]))
    body = shapes.RigidShape(first)
    for frame in range(int(frames[0]) + 1, int(frames[1]) + 1):
        here = shapes.places(source.geometryAtFrame(frame))
        if len(here) != len(first):
            what = f"has {len(first)} points at frame {frames[0]} and {len(here)} at frame {frame}"
        else:
            share = body.change(here)
            if share <= shapes.TOLERANCE:
                continue
            what = f"its shape changes by {100.0 * share:.3g} % of its size from frame {frames[0]} to {frame}"
        raise hou.OperationFailed(f"{name}: is set to Rigid, and {what}; set Motion of the Geometry to Deforming")


def _write_vdb(source, folder, name, frames, moves):
    if not moves:
        source.geometryAtFrame(frames[0]).saveToFile(os.path.join(folder, f"{name}.vdb"))
        return f"{name}.vdb"
    for frame in range(int(frames[0]), int(frames[1]) + 1):
        source.geometryAtFrame(frame).saveToFile(os.path.join(folder, f"{name}.{frame:04d}.vdb"))
    return f"{name}.####.vdb"


def _write_usd(source, folder, name, frames, moves):
    """Write polygons with a USD Export node that lives as long as it writes."""
    path = os.path.join(folder, f"{name}.usd")
    export = source.parent().createNode("usdexport", f"{name}_export")
    try:
        export.setInput(0, source)
        last = frames[1] if moves else frames[0]
        for parm, value in (("lopoutput", path), ("trange", 1), ("f1", frames[0]), ("f2", last), ("f3", 1)):
            put(export, parm, value)
        export.parm("execute").pressButton()
    finally:
        export.destroy()
    if not os.path.isfile(path):
        raise hou.OperationFailed(f"{name}: USD Export wrote no {path}; export {source.name()} by hand and give the file as Path")
    return f"{name}.usd"
