"""Geometry of the scene as files that the cook reads: polygons by Houdini's USD Export, level sets as .vdb."""

from __future__ import annotations

import contextlib
import math
import os

import hou

from .nodes import put

STATIC, RIGID = 0, 1
"""How geometry moves, as its node says; what is neither deforms."""
SHAPE = 1e-3
"""Largest change of a distance, over the size, of what is still rigid: transforms in single precision change less."""


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
    """Refuse geometry that is called rigid and has another number of points, or another shape, at the middle or the last frame."""
    cure = "set Motion of the Geometry to Deforming"
    first = _places(source, frames[0])
    size = max((max(column) - min(column) for column in zip(*first, strict=True)), default=0.0)
    for frame in sorted({(int(frames[0]) + int(frames[1])) // 2, int(frames[1])}):
        later = _places(source, frame)
        if len(first) != len(later):
            raise hou.OperationFailed(
                f"{name}: is set to Rigid, and has {len(first)} points at frame {frames[0]} and {len(later)} at frame {frame}; "
                f"{cure}"
            )
        change = max((abs(a - b) for a, b in zip(_distances(first), _distances(later), strict=True)), default=0.0)
        if change > SHAPE * size:
            raise hou.OperationFailed(
                f"{name}: is set to Rigid, and distances between its points change by {change:.3g} from frame {frames[0]} "
                f"to {frame}, so its shape does; {cure}"
            )


def _places(source, frame):
    """Return the positions of the points at a frame."""
    flat = source.geometryAtFrame(frame).pointFloatAttribValues("P")
    return list(zip(flat[0::3], flat[1::3], flat[2::3], strict=True))


def _distances(places):
    """Yield the distances of every point from three of them: what moves and turns as a whole keeps them."""
    marks = [places[place] for place in (0, len(places) // 3, 2 * len(places) // 3)] if places else []
    for mark in marks:
        for place in places:
            yield math.dist(place, mark)


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
