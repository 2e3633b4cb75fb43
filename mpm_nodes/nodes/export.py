"""Points for other programs: OBJ and PLY files, one a frame."""

from __future__ import annotations

import enum
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import ATTRIBUTES, A, FrameContext, OutputError, OutputPath, Particles, Range, Unitless
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.nodes.derived import column, own_name, refuse_unknown

_PLY_TYPES = {"f": ("float", "<f4"), "i": ("int", "<i4"), "u": ("int", "<i4"), "b": ("uchar", "u1")}


class PointFormat(enum.Enum):
    """Format of exported points."""

    OBJ = "obj"
    PLY = "ply"


class ExportedPoints(NamedTuple):
    """What `export_points` gives: the file's name below the output folder, empty where the frame was skipped."""

    file: str


OBJ_BYTES = 39
"""A line of an OBJ file."""
ATTRIBUTES_KNOB = "export_points.attributes"


def _exported(told: PreflightContext) -> dict[str, Any]:
    """Tell what it writes, and refuse attributes that the particles will not have."""
    form, names = told.knobs["format"], {"position", *map(own_name, told.knobs["attributes"])}
    if form is PointFormat.PLY:
        refuse_unknown(ATTRIBUTES_KNOB, told, *told.knobs["attributes"])
    ply = sum(4 * (ATTRIBUTES[name].rows if name in ATTRIBUTES else 1) for name in names)
    each = OBJ_BYTES if form is PointFormat.OBJ else ply
    writes = (_file_name(told.knobs["path"], told.settings.start, form),)
    return {"disk": each * told.mean("particles") // told.knobs["every"], "writes": writes}


def _file_name(path: Path, number: int, format: PointFormat) -> str:
    name = numbered(str(path), number)
    return name + ("" if name.endswith(f".{format.value}") else f".{format.value}")


@node(category="Cache", label="Export Points", version=1, preflight=_exported)
def export_points(
    ctx: FrameContext,
    particles: Particles,
    *,
    path: OutputPath = Path("points/points.####"),
    format: PointFormat = PointFormat.OBJ,
    every: A[int, Unitless, Range(min=1, soft_max=48), NotKeyable("frames are counted from the first")] = 1,
    attributes: tuple[str, ...] = ("velocity",),
) -> ExportedPoints:
    """Write the points of every n-th frame as OBJ (positions) or PLY (positions and attributes).

    Args:
        particles: What to write.
        path: File below the output folder; #### stands for the frame number, the format's ending is added.
        format: OBJ: text, a `v` line a point; PLY: binary, little endian.
        every: Write every n-th frame, counted from the first.
        attributes: Particle attributes in PLY files, besides the position, also computed ones (speed, age, J); OBJ holds none.
    """
    if ctx.files is None:
        raise OutputError("export_points: there is no output folder; cook the graph (mpm-nodes cook GRAPH --out DIR)")
    from usd_io.estimate import refuse_far

    if (ctx.frame - ctx.settings.start) % every:
        return ExportedPoints("")
    name = _file_name(path, ctx.files.number, format)
    refuse_far("export_points", float(np.abs(particles["position"]).max(initial=0.0)), particles.spacing)
    content = obj_bytes(particles) if format is PointFormat.OBJ else ply_bytes(particles, attributes)
    target = ctx.files.path(name)
    try:
        target.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written ({error.strerror}); free some disk space and resume") from error
    return ExportedPoints(name)


def numbered(pattern: str, number: int) -> str:
    """Return a file name with its run of # replaced by the number, or with the number appended where there is none.

    Raises:
        OutputError: several runs of #.
    """
    first, count = pattern.find("#"), pattern.count("#")
    if not count:
        return f"{pattern}.{number:04d}"
    if pattern[first : first + count] != "#" * count:
        raise OutputError(f"export_points.path: '{pattern}' has # in several places; keep one run, as in points.####.obj")
    return pattern[:first] + f"{number:0{count}d}" + pattern[first + count :]


def obj_bytes(particles: Particles) -> bytes:
    """Return a Wavefront OBJ file: one `v x y z` line [m] a particle, in 9 digits."""
    lines = [f"# mpm_nodes: {len(particles)} points, metres"]
    lines += [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in particles["position"].tolist()]
    return ("\n".join(lines) + "\n").encode()


def ply_bytes(particles: Particles, attributes: tuple[str, ...] = ("velocity",)) -> bytes:
    """Return a binary little-endian PLY file: x, y, z [m], vx, vy, vz [m/s], and further attributes by component.

    Raises:
        MpmNodesError: an attribute that the particles do not have.
    """
    fields: list[tuple[str, str, str, np.ndarray]] = []
    for name in ("position", *(name for name in attributes if name != "position")):
        held = column(ATTRIBUTES_KNOB, particles, name)
        held = held.reshape(len(particles), math.prod(held.shape[1:]))
        ply, code = _PLY_TYPES[held.dtype.kind]
        fields += [(label, ply, code, held[:, n]) for n, label in enumerate(_labels(name, held.shape[1]))]
    record = np.empty(len(particles), [(label, code) for label, _, code, _ in fields])
    for label, _, _, values in fields:
        record[label] = values
    header = [
        "ply",
        "format binary_little_endian 1.0",
        "comment mpm_nodes, metres and seconds",
        f"element vertex {len(particles)}",
    ]
    header += [f"property {ply} {label}" for label, ply, _, _ in fields]
    return ("\n".join([*header, "end_header"]) + "\n").encode() + record.tobytes()


def _labels(name: str, count: int) -> list[str]:
    known = {"position": ["x", "y", "z"], "velocity": ["vx", "vy", "vz"]}
    return known.get(name, [name] if count == 1 else [f"{name}_{n}" for n in range(count)])
