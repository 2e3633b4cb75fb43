"""Curves over the frames of a cache: what its records and its particles tell, without matplotlib.

A panel holds lines of one quantity. Energies are those of translation, sum m v^2 / 2, and of gravity, -sum m g . x, zero at the
origin: what is stored in the matter and in the grid's small motions is in no cache.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from mpm_nodes.graph.files.folder import Folder
from mpm_nodes.graph.revisions.records import read_manifest, read_record
from mpm_nodes.preview.pictures import find_root
from mpm_nodes.preview.scene import Scene, open_scene
from mpm_nodes.regular_files import open_regular

__all__ = ["Line", "Panel", "cache_panels", "event_panels"]

LARGEST_LOG = 1 << 28
"""Bytes of a file of events that are read."""
MOST_STAGES = 5
"""Stages that have a line of their own; the others are one."""
_RECORD = re.compile(r"(\d{4,10})\.commit\.json")


@dataclass
class Line:
    """Values over frames.

    Attributes:
        name: What it is; "" where its panel says all.
        frames: Frame numbers, ascending.
        values: As many, in the panel's unit.
    """

    name: str
    frames: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, frame: int, value: float | None) -> None:
        """Append a value; what is not a finite number is left out."""
        if value is not None and math.isfinite(value):
            self.frames.append(frame)
            self.values.append(float(value))


@dataclass
class Panel:
    """Lines of one quantity.

    Attributes:
        name: What it shows.
        unit: "" for counts.
        lines: In order.
        log: Whether its axis is logarithmic.
        notes: Words about a frame, by frame: what limits the time step.
    """

    name: str
    unit: str = ""
    lines: list[Line] = field(default_factory=list)
    log: bool = False
    notes: dict[int, str] = field(default_factory=dict)

    def line(self, name: str = "") -> Line:
        """Return the line of a name, a new one where there is none."""
        found = next((line for line in self.lines if line.name == name), None)
        if found is None:
            self.lines.append(found := Line(name))
        return found


class Panels:
    """Panels by name, in the order in which they were first asked for."""

    def __init__(self) -> None:
        self._found: dict[str, Panel] = {}

    def panel(self, name: str, unit: str = "", log: bool = False) -> Panel:
        """Return a panel, a new one where there is none of this name."""
        return self._found.setdefault(name, Panel(name, unit, log=log))

    def drawn(self) -> list[Panel]:
        """Return the panels that have a value."""
        for panel in self._found.values():
            panel.lines = [line for line in panel.lines if line.values]
        return [panel for panel in self._found.values() if panel.lines]


def cache_panels(folder: Path, frames: tuple[int, int] | None = None, events: Path | None = None) -> list[Panel]:
    """Return the panels of a revision folder.

    Args:
        folder: The revision.
        frames: First and last frame that is read; None reads all.
        events: What `cook --events jsonl` printed while it was cooked: seconds of frames and stages stand nowhere else.

    Raises:
        InputError: It is not the folder of a cook, holds none of the frames, or cannot be read.
    """
    files = Folder(folder)
    manifest = read_manifest(files)
    if manifest is None:
        raise InputError(f"{folder}: holds no cook.json; give the folder that a cook wrote")
    first, last = frames or (-sys.maxsize, sys.maxsize)
    held = dict(_records(files, manifest["frame_offset"]))
    records = {frame: facts for frame, facts in held.items() if first <= frame <= last}
    if held and not records:
        raise InputError(f"{folder}: holds frames {min(held)} to {max(held)}, none of those asked for")
    found = Panels()
    counted = found.panel("Particles").line()
    _from_matter(folder, manifest, records, found)
    step, substeps = found.panel("Shortest time step", "s", log=True), found.panel("Substeps")
    told = not counted.values  # by particles that are in no stage
    for frame, facts in records.items():
        if told:
            counted.add(frame, facts.get("particles"))
        step.line().add(frame, facts.get("dt_min"))
        substeps.line().add(frame, facts.get("substeps") or None)
        limit = ", ".join(str(facts[name]) for name in ("limit", "limit_material") if facts.get(name))
        if limit:
            step.notes[frame] = limit
    seconds = event_panels(_lines(events), first, last) if events else _seconds_of_a_sample(folder, first, last)
    return [*found.drawn(), *seconds]


def _records(files: Folder, offset: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the frames that are whole with the facts of their records, ascending; also of a cook that goes on."""
    numbers = sorted(int(match[1]) for name in files.names("frames") if (match := _RECORD.fullmatch(name)))
    for number in numbers:
        record = read_record(files, f"frames/{number:04d}.commit.json", number - offset)
        if record is not None:
            yield number - offset, record["facts"]


# ---------------------------------------------------------------- what the particles tell
def _from_matter(folder: Path, manifest: Mapping[str, Any], frames: Iterable[int], found: Panels) -> None:
    if not any(folder.glob("*.usd?")):
        return  # a cook without a stage has records alone
    scene, gravity = open_scene(find_root(folder)), _gravity(manifest)
    for frame in frames:
        if scene.first <= frame <= scene.last:
            _from_frame(scene, frame, gravity, found)


def _from_frame(scene: Scene, frame: int, gravity: np.ndarray | None, found: Panels) -> None:
    clouds = scene.shapes(frame).clouds
    if not clouds:
        return
    places = np.concatenate([cloud.positions for cloud in clouds])
    mass, volume, temperature = (
        _joined(clouds, lambda path, name=name: scene.numbers(path, name, frame)) for name in ("mass", "volume", "temperature")
    )
    velocity = _joined(clouds, lambda path: scene.vectors(path, "velocity", frame))
    found.panel("Particles").line().add(frame, len(places))
    total = None if mass is None else float(mass.sum())
    if mass is not None and total:
        found.panel("Mass", "kg").line().add(frame, total)
        found.panel("Height", "m").line("centre of mass").add(frame, float(mass @ places[:, 1]) / total)
    found.panel("Height", "m").line("highest").add(frame, places[:, 1].max())
    found.panel("Height", "m").line("lowest").add(frame, places[:, 1].min())
    if volume is not None:
        found.panel("Volume", "m³").line().add(frame, volume.sum())
    if velocity is not None:
        speed = np.linalg.norm(velocity, axis=1)
        found.panel("Speed", "m/s").line("greatest").add(frame, speed.max())
        found.panel("Speed", "m/s").line("mean").add(frame, speed.mean() if not total else mass @ speed / total)
    if mass is not None and velocity is not None:
        _energies(frame, mass, velocity, None if gravity is None else places @ gravity, found)
    if temperature is not None:
        heat = found.panel("Temperature", "K")
        heat.line("highest").add(frame, temperature.max())
        heat.line("mean").add(frame, temperature.mean() if not total else mass @ temperature / total)
        heat.line("lowest").add(frame, temperature.min())


def _energies(frame: int, mass: np.ndarray, velocity: np.ndarray, fallen: np.ndarray | None, found: Panels) -> None:
    energy, momentum = found.panel("Energy", "J"), found.panel("Momentum", "kg m/s")
    kinetic = 0.5 * float(mass @ (velocity**2).sum(axis=1))
    energy.line("kinetic").add(frame, kinetic)
    if fallen is not None:
        energy.line("of gravity").add(frame, -float(mass @ fallen))
        energy.line("both").add(frame, kinetic - float(mass @ fallen))
    for axis, name in enumerate("xyz"):
        momentum.line(name).add(frame, float(mass @ velocity[:, axis]))


def _joined(clouds: Sequence[Any], read: Callable[[str], np.ndarray | None]) -> np.ndarray | None:
    """Return the values of all clouds one after the other, None where one of them lacks them."""
    found = []
    for cloud in clouds:
        part, count = read(cloud.path), len(cloud.positions)
        if part is None or len(part) not in (1, count):
            return None
        found.append(np.broadcast_to(part, (count, *part.shape[1:])))
    return np.concatenate(found)


def _gravity(manifest: Mapping[str, Any]) -> np.ndarray | None:
    """Return the gravity of a cook's solves [m/s^2], None where it changes over time, differs among them, or is zero."""
    nodes = (manifest.get("graph") or {}).get("nodes", {})
    given = [node.get("knobs", {}).get("gravity") for node in nodes.values() if node.get("type") == "solve"]
    plain = given and all(isinstance(each, list) and len(each) == 3 and each == given[0] for each in given)
    if not plain or not all(isinstance(part, (int, float)) for part in given[0]):
        return None
    found = np.array(given[0], np.float64)
    return found if found.any() else None


# ---------------------------------------------------------------- seconds
def event_panels(events: Iterable[Mapping[str, Any]], first: int = -sys.maxsize, last: int = sys.maxsize) -> list[Panel]:
    """Return what events of a cook say of its time: seconds of each frame, and of the stages that took the most in all."""
    found, spent = Panels(), {}
    for event in events:
        frame = event.get("frame")
        if type(frame) is not int or not first <= frame <= last:
            continue
        if event.get("event") == "frame_done" and isinstance(event.get("seconds"), (int, float)):
            found.panel("Seconds a frame", "s").line().add(frame, event["seconds"])
        elif event.get("event") == "stages" and isinstance(event.get("stages"), dict):
            here = spent.setdefault(frame, {})
            for name, seconds in event["stages"].items():
                if isinstance(seconds, (int, float)):
                    here[name] = here.get(name, 0.0) + seconds
    totals: dict[str, float] = {}
    for here in spent.values():
        for name, seconds in here.items():
            totals[name] = totals.get(name, 0.0) + seconds
    most = sorted(totals, key=lambda name: -totals[name])[:MOST_STAGES]
    stages = found.panel("Seconds by stage", "s")
    for frame, here in sorted(spent.items()):
        for name in most:
            stages.line(_in_words(name)).add(frame, here.get(name, 0.0))
        if len(totals) > len(most):
            stages.line("all others").add(frame, sum(value for name, value in here.items() if name not in most))
    return found.drawn()


def _in_words(stage: str) -> str:
    """Return the name of a stage; of those that run in one loop the first and the last."""
    parts = stage.replace("_", " ").split("+")
    return parts[0] if len(parts) == 1 else f"{parts[0]} to {parts[-1]}"


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the events of a file of JSON lines; what else was printed in between is passed over."""
    with open_regular(path) as file:
        text = file.read(LARGEST_LOG)
    found = 0
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            found += 1
            yield event
    if not found:
        raise InputError(f"{path}: holds no events; give what `mpm-nodes cook --events jsonl` printed")


def _seconds_of_a_sample(folder: Path, first: int, last: int) -> list[Panel]:
    """Return the seconds of each frame that `mpm-nodes sample` wrote beside its pictures."""
    try:
        told = json.loads((folder / "preview" / "figures.json").read_text("utf-8")).get("seconds_by_frame", {})
        seconds = sorted((int(frame), float(value)) for frame, value in told.items())
    except (OSError, ValueError, TypeError, AttributeError):
        return []
    found = Panels()
    for frame, value in seconds:
        if first <= frame <= last:
            found.panel("Seconds a frame", "s").line().add(frame, value)
    return found.drawn()
