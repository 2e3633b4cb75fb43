"""A cooked sample, as its figures see it: what the cook reported, and the particles that lie in its cache."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import Cancelled, Particles
from mpm_nodes.graph.cook.executor import CookResult
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.materials.volumes import volume_ratios


@dataclass(frozen=True)
class Target:
    """What a number must be: the one place that is printed, and enforced.

    Attributes:
        least: Smallest number that holds.
        most: Largest number that holds.
    """

    least: float = -math.inf
    most: float = math.inf

    def holds(self, measured: float) -> bool:
        """Whether a number holds; what is not a number never does."""
        return bool(self.least <= measured <= self.most)

    def __str__(self) -> str:
        """Return it in words, every digit of it."""
        if self.least == self.most:
            return f"exactly {self.most:.15g}"
        if math.isinf(self.most):
            return f"at least {self.least:.15g}"
        return f"at most {self.most:.15g}" if math.isinf(self.least) else f"from {self.least:.15g} to {self.most:.15g}"


@dataclass(frozen=True)
class Figure:
    """One measured number of a sample.

    Attributes:
        name: What was measured, with its unit in brackets.
        measured: The number.
        target: What it must be; None where nothing is claimed.
        says: What the source says, or why the target is where it is.
        known: Whether its page in samples/ says that it misses its target, and why.
    """

    name: str
    measured: float
    target: Target | None = None
    says: str = ""
    known: bool = False

    @property
    def expected(self) -> str:
        """What is printed beside the number: words, and the target that is enforced."""
        return ": ".join(part for part in (self.says, "" if self.target is None else str(self.target)) if part)

    @property
    def ok(self) -> bool | None:
        """Whether it holds; None where nothing is claimed."""
        return None if self.target is None else self.target.holds(self.measured)

    @property
    def verdict(self) -> str:
        """Whether it holds, in words: `ok`, `known miss`, `MISSED`, or nothing where nothing is claimed."""
        if self.ok is None:
            return ""
        return "ok" if self.ok else "known miss" if self.known else "MISSED"

    @property
    def printed(self) -> str:
        """The number for people: whole ones in full, others with four digits, or as many as show the side of its target."""
        if math.isfinite(self.measured) and float(self.measured).is_integer() and abs(self.measured) < 1e12:
            return f"{int(self.measured):,}"
        texts = (f"{self.measured:.{digits}g}" for digits in range(4, 18))
        return next(text for text in texts if self.target is None or self.target.holds(float(text)) == self.ok)

    def to_json(self) -> dict[str, Any]:
        """Return it as figures.json holds it."""
        return {
            "name": self.name, "measured": self.measured, "printed": self.printed, "expected": self.expected, "ok": self.ok,
            "verdict": self.verdict,
        }  # fmt: skip


@dataclass
class Progress:
    """Collects the figures of each frame from the events of a cook, and ends it when its time is over: call it with every event.

    Attributes:
        limit: Most seconds that the cook may take; it then ends with `Cancelled`.
        substeps: Substeps by frame.
        seconds: Seconds that the solve took, by frame.
        stages: Seconds of each stage, by frame and stage.
        heat: Heat that came from bodies, air and sources [J].
        made: Of that, what came from sources and flames [J].
        evaporated: Solute that left through the surface [m^3].
        open: What area vectors of a surface with a tension sum to over its area, the most of any substep; None without one.
        done: Frames that were cooked.
        folder: Where the cook writes.
        files: Names of what it wrote, in that folder.
        begun: Unix seconds at which the cook began.
        cut: Frame, substeps done and seconds spent in the frame in which the time was over.
    """

    limit: float = math.inf
    substeps: dict[int, int] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    stages: dict[int, dict[str, float]] = field(default_factory=dict)
    heat: float = 0.0
    made: float = 0.0
    evaporated: float = 0.0
    open: float | None = None
    done: list[int] = field(default_factory=list)
    folder: Path | None = None
    files: list[str] = field(default_factory=list)
    begun: float = math.nan
    cut: tuple[int, int, float] | None = None
    _started: float = math.nan

    def __call__(self, event: dict[str, Any]) -> None:
        """Keep what is of use of an event.

        Raises:
            Cancelled: The time is over.
        """
        kind, now = event["event"], event["time"]
        if kind == "plan":
            self.begun, self.folder = now, None if event["out"] is None else Path(event["out"])
        elif kind == "frame_start":
            self._started = now
        elif kind == "stages":
            frame = event["frame"]  # a shot may have several solves
            self.seconds[frame] = self.seconds.get(frame, 0.0) + event["seconds"]
            spent = self.stages.setdefault(frame, {})
            for name, seconds in event["stages"].items():
                spent[name] = spent.get(name, 0.0) + seconds
        elif kind == "heat":
            self.heat += sum(event[name] for name in ("from_bodies", "from_air", "from_sources"))
            self.made += event["from_sources"]
        elif kind == "solute":
            self.evaporated += event["evaporated"]
        elif kind == "surface":
            self.open = max(self.open or 0.0, event["open"])
        elif kind == "frame_done":
            self.substeps[event["frame"]] = event.get("substeps", 0)
            self.done.append(event["frame"])
        elif kind == "wrote":
            self.files.append(str(Path(event["path"]).relative_to(self.folder)))
        elif kind == "substep" and now - self.begun > self.limit:
            self.cut = (event["frame"], event["substep"], now - self._started)
            raise Cancelled

    def left_behind(self) -> CookResult:
        """Return what a cook that was ended has written."""
        return CookResult(self.folder, tuple(self.done), tuple(self.done), tuple(dict.fromkeys(self.files)), seconds=self.limit)

    def settled(self) -> list[int]:
        """Return the solved frames without the first, in which kernels are compiled or loaded; all when there is only one."""
        frames = sorted(self.seconds)
        return frames[1:] or frames

    def stage_seconds(self) -> dict[str, float]:
        """Return the seconds of each stage over the settled frames, in the order of the substep graph."""
        total: dict[str, float] = {}
        for frame in self.settled():
            for name, seconds in self.stages[frame].items():
                total[name] = total.get(name, 0.0) + seconds
        return total


@dataclass(frozen=True)
class Shot:
    """A cooked sample.

    Attributes:
        stage: Root stage of its cache.
        frames: Frames in it, ascending.
        cell_size: Grid spacing h [m].
        progress: What the cook reported.
        graph: The graph that was cooked.
        kept: Particles of the frames that were read.
    """

    stage: Path
    frames: tuple[int, ...]
    cell_size: float
    progress: Progress = field(default_factory=Progress)
    graph: Graph = field(default_factory=Graph)
    kept: dict[int, Particles] = field(default_factory=dict, repr=False)

    @property
    def first(self) -> int:
        """First frame."""
        return self.frames[0]

    @property
    def last(self) -> int:
        """Last frame."""
        return self.frames[-1]

    @property
    def time_scale(self) -> float:
        """Seconds that are simulated in a second of the shot."""
        return float(next((node.knobs.get("time_scale", 1.0) for node in self.graph.nodes.values() if node.type == "solve"), 1.0))

    @property
    def frame_seconds(self) -> float:
        """Seconds that are simulated in a frame."""
        return self.time_scale / self.graph.settings.fps

    def at(self, frame: int) -> Particles:
        """Return the particles of a frame."""
        from usd_io.stage_reader import read_points

        if frame not in self.kept:
            self.kept[frame] = read_points(self.stage, frame)
        return self.kept[frame]

    def positions(self, frame: int, material: int | None = None) -> np.ndarray:
        """Return the positions of a frame's particles, or of those of one material [m], shape (n, 3)."""
        particles = self.at(frame)
        chosen = slice(None) if material is None else particles["material"] == material
        return np.asarray(particles["position"], float)[chosen]

    def mass(self, frame: int, material: int | None = None) -> float:
        """Return the mass of a frame's particles, or of those of one material [kg]."""
        particles = self.at(frame)
        chosen = slice(None) if material is None else particles["material"] == material
        return float(particles["mass"][chosen].sum(dtype=float))

    @cached_property
    def sampled(self) -> tuple[int, ...]:
        """Nine frames spread evenly, for figures that would take long on all."""
        return tuple(sorted({round(frame) for frame in np.linspace(self.first, self.last, 9).tolist()}))

    def matter_volume(self, frame: int) -> float:
        """Return the volume of a frame's particles as deformed [m^3]: as the mesh tells it, else as far as the points do.

        Points carry the state of their laws, by which volumes are known, only where the cache was asked for it.
        """
        from usd_io.collider_meshes import StageMeshes

        meshes = StageMeshes(self.stage, "mesh")  # keeps the stage
        told = meshes.sources[0].mesh.GetPrim().GetAttribute("mpm:matter_volume")
        if told and told.Get(frame) is not None:
            return float(told.Get(frame))
        particles = self.at(frame)
        return float((np.asarray(particles["volume"], float) * volume_ratios(particles)).sum())

    def skin_volume(self, frame: int) -> float:
        """Return the volume that the surface mesh encloses [m^3]."""
        from usd_io.collider_meshes import StageMeshes
        from usd_io.mesh_volumes import enclosed_volume

        meshes = StageMeshes(self.stage, "mesh")
        topology = meshes.topology(frame)
        return enclosed_volume(meshes.points(frame), topology.counts, topology.indices)
