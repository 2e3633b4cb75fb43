"""What other programs, or a cook of our own, wrote as USD: stages, the way from a prim to the world, and particles."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from pxr import Sdf, Tf, Usd, UsdGeom

from mpm_nodes.data import InputError, Particles
from usd_io import reading_usd, usd_reason
from usd_io.layers import PROVENANCE
from usd_io.packing import holds_points, sampled, unpacked
from usd_io.points import particles_from_prim
from usd_io.relink import refuse_missing
from usd_io.units import stage_to_si

__all__ = ["frames_of", "open_stage", "read_points", "sample_times"]


def open_stage(path: str | Path) -> Usd.Stage:
    """Open a USD file.

    Raises:
        InputError: Missing, damaged, or not USD.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file; give a .usd, .usda, .usdc or .usdz file")
    try:
        known = Sdf.Layer.Find(str(path))
        if known:  # open elsewhere in this process, perhaps from before the newest frame
            known.Reload()
        return Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        raise InputError(f"{path}: cannot be opened as USD ({usd_reason(error)}); export it again") from error


def frames_of(path: str | Path) -> tuple[int, int, float]:
    """Return first and last frame of a USD file, and its frames per second.

    Raises:
        InputError: Missing, damaged, or not USD; or it does not say which frames it holds.
    """
    stage = open_stage(path)
    if not stage.HasAuthoredTimeCodeRange():
        raise InputError(f"{path}: does not say which frames it holds; export it with start and end")
    return round(stage.GetStartTimeCode()), round(stage.GetEndTimeCode()), float(stage.GetTimeCodesPerSecond())


def sample_times(attribute: Usd.Attribute) -> list[float]:
    """Return the times of an attribute's samples; that which ends the motion behind a cache's last frame is none."""
    stage, times = attribute.GetStage(), attribute.GetTimeSamples()
    ours = PROVENANCE in stage.GetRootLayer().customLayerData
    active = Usd.ClipsAPI(stage.GetDefaultPrim()).GetClipActive() if ours and stage.GetDefaultPrim() else None
    return [time for time in times if not (active and time == active[-1][0] + 1)]


def _world_matrix(prim: Usd.Prim, frame: float) -> np.ndarray:
    """Return the matrix from a prim's space to the world in metres, Y up, shape (4, 4), column vectors."""
    local = np.array(UsdGeom.Imageable(prim).ComputeLocalToWorldTransform(frame)).T
    return stage_to_si(prim.GetStage()) @ local


def read_points(path: str | Path, frame: int, prim: str = "") -> Particles:
    """Return the particles of a stage at a frame, in metres, Y up, with every numeric primvar.

    Args:
        path: USD file.
        frame: Frame (time code).
        prim: Path of the Points prim; the only one when empty.

    Raises:
        InputError: Missing file or prim, several candidates, or a frame that has no sample of its own.
    """
    stage = open_stage(path)
    with reading_usd(path):
        found = [p for p in stage.Traverse() if holds_points(p)]
        wanted = [p for p in found if not prim or str(p.GetPath()) == prim or p.GetName() == prim]
        if len(wanted) != 1:
            held = ", ".join(str(p.GetPath()) for p in found) or "none"
            raise InputError(f"{path}: {len(wanted)} Points prims match {prim!r}; it holds {held}: name one with `prim`")
        if unpacked(wanted[0], "points", frame) is None:
            refuse_missing(path)
        _check_samples(path, wanted[0], frame)
        return particles_from_prim(wanted[0], frame, _world_matrix(wanted[0], frame))


def _check_samples(path: str | Path, prim: Usd.Prim, frame: int) -> None:
    """Refuse frames without a sample, sub-frame samples and gaps: particles are not interpolated when counts change."""
    times = sample_times(sampled(prim))
    if not times:
        return
    where = f"{path}: {prim.GetPath()}"
    odd = [t for t in times if t != round(t)]
    if odd:
        raise InputError(f"{where}: has a sample at time code {odd[0]:g}; export one sample a frame, at whole frames")
    gaps = [int(a) + 1 for a, b in itertools.pairwise(times) if b - a != 1]
    if gaps:
        raise InputError(f"{where}: has no sample at frame {gaps[0]}; export all from {times[0]:g} to {times[-1]:g}")
    if frame not in times:
        raise InputError(
            f"{where}: has no sample at frame {frame}, only {times[0]:g} to {times[-1]:g}; set frame_offset so that the frames meet"
        )
