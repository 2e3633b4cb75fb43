"""What nodes are told about the frame, and stages about the substep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mpm_nodes.data.ambient import Ambient
from mpm_nodes.data.facts import Facts, Limit, Report
from mpm_nodes.data.single_rank import SINGLE_RANK, SingleRank
from mpm_nodes.data.spatial import AttributeUpdate, BodyForce, Drain, Moment
from mpm_nodes.data.units import Vec3


@dataclass(frozen=True)
class GraphSettings:
    """Settings of the whole graph, part of every lineage key of a node that asks for them.

    Attributes:
        cell_size: Edge of a background grid cell [m]; seeding follows it.
        fps: Frames per second.
        start: First frame of the shot.
        end: Last frame of the shot.
        resolution: Cells of the shot for each of `cell_size`, along an axis: 0.5 for tests, 2 for finer detail. Edges of
            voxels follow it, and how many secondary particles each particle emits.
    """

    cell_size: float = 0.02
    fps: float = 24.0
    start: int = 1
    end: int = 48
    resolution: float = 1.0

    def resolved(self) -> GraphSettings:
        """Return the settings that nodes are told: `cell_size` is that of the cells that the shot is cooked with."""
        return replace(self, cell_size=self.cell_size / self.resolution)


@dataclass(frozen=True)
class FrameContext:
    """What a time-dependent node is told about the frame being cooked.

    Attributes:
        frame: Frame number. The state at the start frame is the initial state; cooking frame f advances f-1 -> f.
        settings: The graph's settings.
        report: Call with keyword arguments to publish a progress event (`report("substep", dt=..., particles=...)`).
        check_cancel: Raises `Cancelled` when the user asked to stop.
        sample: `sample(knob_name, frame)` gives this node's knob at a fractional frame (keyed knobs are interpolated).
        sample_uncut: As `sample`, for what moves bodies within the frame: where a key steps, the body is elsewhere when the
            frame is over, and does not move there.
        keyed: Names of this node's knobs that have keys.
        files: The frame's transaction (`graph.revisions.transaction.FrameTransaction`) for nodes that write files, else None.
        checked: Whether stages are run twice to catch declarations that lie (`--checked`).
        fuse: Whether neighbouring stages may run as one kernel (not with `--no-fuse`).
        max_substeps: Substeps that a frame of a solve may take (`--max-substeps`); None for any number.
        team: The ranks that cook the solves of the graph together (`solver.ranks.team.Team`); None where there is one process.
        wired: Names of the nodes that are wired into each port, in the order of the wires.
    """

    frame: int
    settings: GraphSettings = field(default_factory=GraphSettings)
    report: Callable[..., None] = lambda *args, **kwargs: None
    check_cancel: Callable[[], None] = lambda: None
    sample: Callable[[str, float], Any] | None = None
    sample_uncut: Callable[[str, float], Any] | None = None
    keyed: frozenset[str] = frozenset()
    files: Any = None
    checked: bool = False
    fuse: bool = True
    max_substeps: int | None = None
    team: Any = None
    wired: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class StepContext:
    """What a stage is told about the substep: `step: StepContext` is an argument, not a wire.

    Attributes:
        dt: Length of the substep [s]; written by the one stage declared with `sets=("dt",)`.
        time: Simulated seconds at the start of the substep, since the initial state.
        time_left: Seconds to the end of the frame; dt never exceeds it.
        tick: Length of the parts of frames on whose ends steps end whatever the frame rate, and seconds to the end of this one.
        frame: Frame being advanced to.
        substep: Index of the substep within the frame.
        substeps_done: Substeps before this one, over all frames; a resumed solve goes on counting.
        dt_min: Shortest substep that the artist allows [s].
        dt_max: Longest substep that the artist allows [s].
        dt_factor: Factor on the dt that is chosen: below 1 where a frame is solved again, because a longer substep failed.
        gravity: Acceleration [m/s^2], sampled at this substep.
        cell_size: Grid spacing h [m].
        keep: Whether attributes that no later substep reads are to be stored, for those who look at the state afterwards.
        report: What stages told in this frame, by event; they add to it with `tell`.
        limit: What holds dt, None before it is chosen.
        limits: What may limit dt, as the stages of the plan declare it: (limit, call that returns seconds or None).
        check_cancel: Raises when the user asked to stop; for stages that take seconds.
        ambient: Air and heat in places during this frame; empty where none is wired.
        forces: What pushes the matter during this frame; empty where nothing is wired.
        strongest: Largest acceleration that they gave in the substep before [m/s^2]; None: not known in this frame.
        drains: What takes matter away during this frame.
        updates: What changes attributes of particles during this frame.
        contact_forces: Whether the forces on colliders are to be told.
        frame_at: Returns the (fractional) frame at simulated seconds; None where there are no frames.
        frame_seconds: Simulated seconds that the frame takes.
        further_reads: Fields of particles that stages read besides those that they declare, by stage: those that forces name.
        attached: Of each attachment the mass of what is tied [kg], and how many particles these are, as the substep begins.
        tied_to: Name of each attachment, and what its body is, which made the ties that there are; empty before the first substep.
        severed: Numbers of the attachments whose ties broke, until they are let go.
        missed: How many attachments have just found nothing to tie.
        pulled: What each attachment gave in the substep (`solver.attachments.Pulled`), once it has.
        share: What this process agrees on with others where a simulation runs on several (`solver.ranks.share.Share`).
        checked: Whether stages are run twice to catch declarations that lie; they may also raise where what must hold does not.
        advise: Returns what to do about a limit of dt, half a sentence: its name, and what it is due to.
    """

    dt: float = 0.0
    time: float = 0.0
    time_left: float = float("inf")
    tick: tuple[float, float] = (float("inf"), float("inf"))
    frame: int = 0
    substep: int = 0
    substeps_done: int = 0
    dt_min: float = 0.0
    dt_max: float = 0.01
    dt_factor: float = 1.0
    gravity: Vec3 = (0.0, -9.81, 0.0)
    cell_size: float = 0.02
    keep: bool = True
    report: Report = field(default_factory=Report)
    limit: Limit | None = None
    limits: tuple[tuple[Limit, Callable[[], float] | None], ...] = ()
    check_cancel: Callable[[], None] = lambda: None
    ambient: tuple[Ambient, ...] = ()
    forces: tuple[BodyForce, ...] = ()
    strongest: float | None = None
    drains: tuple[Drain, ...] = ()
    updates: tuple[AttributeUpdate, ...] = ()
    contact_forces: bool = False
    frame_at: Callable[[float], float] | None = None
    frame_seconds: float = 1.0
    further_reads: Mapping[str, frozenset[str]] = field(default_factory=dict)
    attached: tuple[tuple[float, int], ...] = ()
    tied_to: tuple[str, ...] = ()
    severed: frozenset[int] = frozenset()
    missed: int = 0
    pulled: tuple[Any, ...] = ()
    share: SingleRank = SINGLE_RANK
    checked: bool = False
    advise: Callable[[str, str], str] = lambda limit, name: ""

    @property
    def beginning(self) -> float:
        """The (fractional) frame at the start of the substep; -infinity where there are no frames."""
        return -float("inf") if self.frame_at is None else self.frame_at(self.time)

    @property
    def middle(self) -> float:
        """The (fractional) frame in the middle of the substep, where what changes over a frame is looked at; else -infinity."""
        return -float("inf") if self.frame_at is None else self.frame_at(self.time + 0.5 * self.dt)

    def moment(self, later: float) -> Moment:
        """Return the moment some seconds after the start of the substep."""
        time = self.time + later
        frame = -float("inf") if self.frame_at is None else self.frame_at(time)
        return Moment(frame, time, self.frame_seconds, self.gravity)

    def tell(self, group: Facts, **values: Any) -> None:
        """Tell the facts of a group that the stage declares; over the frame they are reduced as declared."""
        self.report.tell(group, self.frame, values)
