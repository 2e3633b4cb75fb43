"""What all wedges of a job come to: one contact sheet, one table of figures, one stage with a variant each."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.farm.job import FarmJob, Wedge, write_text
from mpm_nodes.farm.values import in_short
from mpm_nodes.graph.cook.resume import is_whole
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.revisions.records import read_manifest, read_record
from mpm_nodes.graph.revisions.revision import latest_revision, list_revisions
from mpm_nodes.graph.revisions.transaction import file_frame

__all__ = ["Gathered", "figures_of", "gather"]

SHEET_SIZE = (320, 240)


@dataclass(frozen=True)
class Gathered:
    """What was written of all wedges; None where there was nothing to show.

    Attributes:
        table: CSV with a row a wedge.
        sheet: PNG with a picture a wedge, all from one camera.
        stage: USD stage with a variant a wedge.
        figures: The rows of the table.
    """

    table: Path
    sheet: Path | None
    stage: Path | None
    figures: tuple[Mapping[str, Any], ...]


def gather(job: FarmJob) -> Gathered:
    """Write contact sheet, table and stage of the wedges that are there; those that are not stand in the table as such.

    Raises:
        OutputError: A file cannot be written.
    """
    rows = rows_of(job)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows({name: in_table(value) for name, value in row.items()} for row in rows)
    path = job.folder / "wedges.csv"
    write_text(job.folder, path.name, text.getvalue())
    caches = {wedge.number: stage for wedge in job.wedges if (stage := _stage(job, wedge)) is not None}
    shown = [wedge for wedge in job.wedges if wedge.number in caches]
    sheet = _sheet(job, shown, caches) if shown else None
    return Gathered(path, sheet, _variants(job, shown, caches) if shown else None, tuple(rows))


def rows_of(job: FarmJob) -> list[dict[str, Any]]:
    """Return the rows of the table: number, values and figures of each wedge."""
    return [{"wedge": wedge.number, **wedge.values, **figures_of(job, wedge)} for wedge in job.wedges]


def is_number(value: Any) -> bool:
    """Whether a fact of a record is a finite number, as all are that the table shows."""
    return math.isfinite(value) if type(value) is float else type(value) is int and abs(value) < 1 << 63


def in_table(value: Any) -> Any:
    """Return a value as it stands in the table: numbers in full, everything else in short."""
    return value if isinstance(value, (int, float, str)) else "" if value is None else in_short(value)


# ---------------------------------------------------------------- figures
def figures_of(job: FarmJob, wedge: Wedge) -> dict[str, Any]:
    """Return the figures of a wedge: how far it came, what its solves took, and how its matter lies in the last frame.

    `frames` are solved, or made where nothing is solved; `substeps` are those of all, `dt_min` is the shortest [s]; `low` and
    `high` are the heights between which the matter lies [m], `width` its longer extent along x or z [m], `centre_x` to `centre_z`
    its centre of mass [m], and `speed` the mean speed [m/s], all of the last frame.
    """
    alone = bool(wedge.solve_bytes) and job.chunk is not None
    wanted = job.frames[1] - (job.start if alone else job.frames[0]) + 1
    records = list(_records(job.folder / wedge.folder / ("solve" if alone else "cache")))
    facts = [{name: value for name, value in record["facts"].items() if is_number(value)} for record in records]
    shortest = min((each["dt_min"] for each in facts if each.get("dt_min")), default=None)
    found: dict[str, Any] = {
        "state": "done" if len(records) >= wanted else "unfinished" if records else "not begun",
        "frames": len(records),
        "substeps": sum(int(each.get("substeps", 0)) for each in facts),
        "dt_min": shortest,
        "particles": facts[-1].get("particles") if facts else None,
    }
    stage = _stage(job, wedge)
    if alone and wedge.frames_bytes and found["state"] == "done" and not list_revisions(job.folder / wedge.folder / "cache"):
        found["state"] = "not joined"
    return {**found, **(_matter(stage, job.frames[1]) if stage is not None else {})}


def _records(root: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the commit records of the newest revision below a folder, in order."""
    try:
        folder = latest_revision(root)
        files = Folder(folder)
        manifest = read_manifest(files)
    except InputError:
        return
    if manifest is None or not is_whole(manifest):
        return
    first, last = (int(frame) for frame in manifest["frames"])
    for frame in range(first, last + 1):
        name = f"frames/{file_frame(frame, int(manifest['frame_offset'])):04d}.commit.json"
        record = read_record(files, name, frame)
        if record is None:
            return
        yield record


def _stage(job: FarmJob, wedge: Wedge) -> Path | None:
    """Return the root stage of the joined cache of a wedge, None where there is none."""
    from mpm_nodes.preview.pictures import find_root

    try:
        return find_root(job.folder / wedge.folder / "cache")
    except InputError:
        return None


def _matter(stage: Path, frame: int) -> dict[str, float]:
    """Return where the matter of a frame is; nothing where its cache holds no points."""
    from usd_io.stage_reader import read_points

    try:
        points = read_points(stage, _number(stage, frame))
    except MpmNodesError:
        return {}
    position = np.asarray(points["position"], np.float64)
    if not len(position):
        return {}
    mass = np.asarray(points["mass"], np.float64) if "mass" in points else np.ones(len(position))
    low, high = position.min(axis=0), position.max(axis=0)
    centre = (mass[:, None] * position).sum(axis=0) / mass.sum()
    values = {"low": low[1], "high": high[1], "width": max(high[0] - low[0], high[2] - low[2])}
    values |= {f"centre_{axis}": centre[n] for n, axis in enumerate("xyz")}
    if "velocity" in points:
        values["speed"] = float((mass * np.linalg.norm(points["velocity"], axis=1)).sum() / mass.sum())
    return {name: float(f"{value:.6g}") for name, value in values.items() if math.isfinite(value)}


def _number(stage: Path, frame: int) -> int:
    """Return the number that a frame has in the files of its cache."""
    offset = (read_manifest(Folder(stage.parent)) or {}).get("frame_offset", 0)
    return frame + (offset if type(offset) is int else 0)


# ---------------------------------------------------------------- pictures and the stage
def _sheet(job: FarmJob, wedges: Sequence[Wedge], caches: Mapping[int, Path]) -> Path | None:
    """Draw the last frame of every wedge from one camera, and write what it is on each picture."""
    from mpm_nodes.preview import picture_file
    from mpm_nodes.preview.pictures import Picture, prepared, rendered
    from mpm_nodes.preview.scene import framing, open_scene
    from mpm_nodes.preview.sheet import contact_sheet
    from usd_io.bounds import read_bounds

    scenes = [open_scene(caches[wedge.number]) for wedge in wedges]
    frame = _number(caches[wedges[0].number], job.frames[1])
    engine = next((each for each in job.renders if each != "splat"), "splat")
    boxes = [box for scene in scenes if (box := read_bounds(scene.stage.GetRootLayer())) is not None]
    camera: Any = "fit"
    if boxes:  # the matter of all frames of all wedges: floors reach far beyond it
        around = np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0)
        camera = framing(around, SHEET_SIZE[0] / SHEET_SIZE[1])
    try:
        ready = prepared(scenes, [frame], engine, Picture(size=SHEET_SIZE, camera=camera))
    except InputError:  # nothing to see in any
        return None
    images = []
    for wedge, one in zip(wedges, ready, strict=True):
        folder = job.folder / wedge.folder / "sheet"
        Folder(job.folder.resolve()).make(f"{wedge.folder}/sheet")
        result = rendered(one, folder, None, resume=True)
        result.contact_sheet.unlink(missing_ok=True)  # of one picture
        images += result.images
    labels = [wedge.label or job.name for wedge in wedges]
    footer = f"{job.name}, frame {job.frames[1]}"
    return picture_file.save(contact_sheet(images, labels, footer), job.folder / "wedges.png")


def _variants(job: FarmJob, wedges: Sequence[Wedge], caches: Mapping[int, Path]) -> Path:
    from mpm_nodes.preview.scene import open_scene
    from usd_io.variants import Variant, variants_layer

    scene = open_scene(caches[wedges[0].number])
    variants = [
        Variant(
            wedge.label or job.name,
            caches[wedge.number].relative_to(job.folder).as_posix(),
            {place.replace(".", "_"): in_short(value) for place, value in wedge.values.items()},
        )
        for wedge in wedges
    ]
    path = job.folder / "wedges.usda"
    write_text(job.folder, path.name, variants_layer("wedges", variants, scene.fps, scene.first, scene.last).ExportToString())
    return path
