"""What other programs, or a cook of our own, wrote as USD: stages, the way from a prim to the world, and particles."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
from pxr import Sdf, Tf, Usd, UsdGeom

from mpm_nodes import reads
from mpm_nodes.data import InputError, Particles
from usd_io import reading_usd, usd_reason
from usd_io.clips import clips_of, left_behind
from usd_io.dependencies import checked_layers
from usd_io.formats import refuse_unless_usd
from usd_io.layers import PROVENANCE
from usd_io.packing import holds_points, sampled, unpacked
from usd_io.points import particles_from_prim
from usd_io.relink import refuse_missing
from usd_io.time_codes import Codes, StageFrames, frames_of_samples, per_second
from usd_io.typed import code_range
from usd_io.units import stage_to_si

__all__ = ["frames_of", "is_ours", "open_stage", "read_points", "sample_times"]


def open_stage(path: str | Path) -> Usd.Stage:
    """Open a USD file.

    Raises:
        InputError: Missing, damaged, or not USD.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a .usd, .usda, .usdc or .usdz file")
    refuse_unless_usd(path)
    try:
        held = checked_layers(path)
        with reads.reading(path):
            known = Sdf.Layer.Find(str(path))
            if known:  # open elsewhere in this process, perhaps from before the newest frame
                known.Reload()
            stage = Usd.Stage.Open(str(path))
        del held
        return stage
    except Tf.ErrorException as error:
        raise InputError(f"{path}: cannot be opened as USD ({usd_reason(error)}); export it again") from error


def frames_of(path: str | Path, prim: str = "") -> StageFrames:
    """Return the frames of a USD file: each sample of its points; in a cache of ours, and where it has none, each time code.

    Args:
        path: USD file.
        prim: Path or name of the Points prim; the only one when empty.

    Raises:
        InputError: Missing, damaged, or not USD; or it does not say which frames it holds.
    """
    stage = open_stage(path)
    if not stage.HasAuthoredTimeCodeRange():
        raise InputError(f"{path}: does not say which frames it holds; export it with start and end")
    with reading_usd(path):
        matching = [] if is_ours(stage) else _matching(stage, prim)[1]
        samples = sample_times(sampled(matching[0])) if len(matching) == 1 else []
        found = frames_of_samples(*code_range(stage), per_second(stage), samples)
        return dataclasses.replace(found, numbered=is_ours(stage))


def is_ours(stage: Usd.Stage) -> bool:
    """Whether a stage is a cache that `write_cache` wrote: its frames are its time codes."""
    return PROVENANCE in stage.GetRootLayer().customLayerData


def _matching(stage: Usd.Stage, prim: str) -> tuple[list[Usd.Prim], list[Usd.Prim]]:
    """Return all prims that hold points, and those of them that a path or name, or none, means."""
    found = [p for p in stage.Traverse() if holds_points(p)]
    return found, [p for p in found if not prim or str(p.GetPath()) == prim or p.GetName() == prim]


def sample_times(attribute: Usd.Attribute) -> list[float]:
    """Return the times of an attribute's samples; that which ends the motion behind a cache's last frame is none."""
    animated = [(offset, facts["active"]) for _, offset, facts in clips_of(attribute.GetPrim())]
    if animated and attribute.GetResolveInfo().GetSource() == Usd.ResolveInfoSourceValueClips:
        offset, active = animated[0]  # the clips are not opened: each has the frame at which it begins
        return [offset * start for start, _ in active]
    ends = {offset * (active[-1][0] + 1.0) for offset, active in animated}
    return [time for time in attribute.GetTimeSamples() if time not in ends]


def _world_matrix(prim: Usd.Prim, frame: float) -> np.ndarray:
    """Return the matrix from a prim's space to the world in metres, Y up, shape (4, 4), column vectors."""
    local = np.array(UsdGeom.Imageable(prim).ComputeLocalToWorldTransform(frame)).T
    return stage_to_si(prim.GetStage()) @ local


def read_points(source: str | Path | Usd.Stage, frame: float, prim: str = "", codes: Codes | None = None) -> Particles:
    """Return the particles of a stage at a frame, in metres, Y up, with every numeric primvar.

    Args:
        source: USD file, or one that is open.
        frame: Frame.
        prim: Path of the Points prim; the only one when empty.
        codes: Time codes of the frames; none: a frame is its time code.

    Raises:
        InputError: Missing file or prim, several candidates, or a frame that has no sample of its own.
    """
    stage = source if isinstance(source, Usd.Stage) else open_stage(source)
    path = stage.GetRootLayer().identifier if isinstance(source, Usd.Stage) else source
    with reading_usd(path):
        found, wanted = _matching(stage, prim)
        if len(wanted) != 1:
            held = ", ".join(str(p.GetPath()) for p in found) or "none"
            raise InputError(f"{path}: {len(wanted)} Points prims match {prim!r}; it holds {held}: name one with `prim`")
        counted = codes or Codes()
        if unpacked(wanted[0], "points", counted.code(frame)) is None:
            refuse_missing(stage)
            if told := left_behind(wanted[0]):
                raise InputError(told)
        code = _sample_of(path, wanted[0], frame, counted)
        return particles_from_prim(wanted[0], code, _world_matrix(wanted[0], code))


def _sample_of(path: str | Path, prim: Usd.Prim, frame: float, codes: Codes) -> float:
    """Return the time code of a frame's sample, or of the frame where nothing is animated.

    Frames without a sample, sub-frame samples and gaps are refused: particles are not interpolated when counts change.
    """
    times = sample_times(sampled(prim))
    if not times:
        return codes.code(frame)
    where, per = f"{path}: {prim.GetPath()}", per_second(prim.GetStage())
    frames = [codes.frame(time) for time in times]
    rate = f"; it counts {per:g} time codes a second, and the frames are {per / codes.step:g} a second"
    cure = "" if codes.step == 1.0 else f"{rate}: give the graph the file's rate, or play it with retime_points"
    odd = [time for time, at in zip(times, frames, strict=True) if at != round(at)]
    if odd:
        raise InputError(f"{where}: has a sample at time code {odd[0]:g}; export one sample a frame, at whole frames{cure}")
    gaps = [int(a) + 1 for a, b in itertools.pairwise(frames) if b - a != 1]
    if gaps:
        raise InputError(f"{where}: has no sample at frame {gaps[0]}; export all from {frames[0]:g} to {frames[-1]:g}{cure}")
    if frame not in frames:
        raise InputError(
            f"{where}: has no sample at frame {frame:g}, only {frames[0]:g} to {frames[-1]:g}; "
            "set frame_offset so that the frames meet"
        )
    return times[frames.index(frame)]
