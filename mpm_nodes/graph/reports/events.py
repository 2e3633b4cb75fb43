"""Progress of a cook as flat JSON-able dictionaries, shown as lines for people or JSON lines for programs.

Events: "plan" (frames, nodes, out, done), "estimate" (memory, disk, unknown), "frame_start" (frame, last), "node" (node,
frame, seconds), "substep" (frame, substep, dt, limit, limit_material, particles; on the command line at most ten a second), "pace"
(frame, substeps_expected, share, seconds_left: how far a frame has come that takes more than five seconds), "stages" (frame,
seconds of a frame of a solve, stages: seconds of each stage), "removed" (particles, mass, momentum) and "resampling" (calls,
inserted, merged, discarded, centre_shift) of a frame, "implicit" (substeps, newton, krylov, halved, shortened, residual,
decrease, reason) of a frame, "choice" (chosen, dt, cost by candidate) where `substeps="auto"` has chosen, "inside_collider"
(collider, particles, depth), "frame_done" (frame, seconds, particles, substeps, dt_min, limit, limit_material, seconds_left),
"wrote" (path), "compiling" (message, kernel, compiled, total where it is known, seconds: every 1.5 seconds while kernels
are compiled, from a thread of its own), "warning" (message, where), "note" (message), "done", "cancelled", "error" (message,
exit_code). Every event has "time", Unix seconds.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

from mpm_nodes.graph.reports.figures import FrameTally
from mpm_nodes.terminal import plain

__all__ = ["ConsoleLines", "Event", "EventStream", "JobLines", "JsonLines", "Thinned"]

Event = dict[str, Any]
Sink = Callable[[Event], None]

SUBSTEP_INTERVAL = 0.1


class EventStream:
    """Pass every event to the sinks, and count what a frame took. Sinks for people and pipes are thinned with `Thinned`."""

    def __init__(self, *sinks: Sink) -> None:
        self.sinks = list(sinks)
        self._guard = threading.RLock()
        self.start_frame(0)

    def start_frame(self, frame: int) -> None:
        """Forget the figures of the frame before; `frame` is added to every event that nodes report from now on."""
        self.frame = frame
        self.tally = FrameTally(frame)

    @property
    def substeps(self) -> int:
        """Substeps of the frame so far."""
        return self.tally.substeps

    def emit(self, event: str, **facts: Any) -> None:
        """Publish an event now."""
        if event == "node":
            seconds = self.tally.nodes.get(facts["node"], 0.0)
            self.tally.nodes[facts["node"]] = seconds + facts["seconds"]
        if self.sinks:
            message = {"event": event, "time": time.time(), **facts}
            with self._guard:  # what compiles is told by another thread
                for sink in self.sinks:
                    sink(message)

    def report(self, event: str, **facts: Any) -> None:
        """Publish what a node reports (`FrameContext.report`), and count it among the figures of the frame."""
        facts = {"frame": self.frame, **facts}
        if event == "substep":
            self.tally.substep(facts)
            facts["substep"] = self.tally.substeps
        elif event not in ("warning", "note"):
            self.tally.facts.setdefault(event, []).append(facts)
        self.emit(event, **facts)

    def frame_figures(self) -> Event:
        """Return a summary of the frame so far: substeps, shortest dt [s] and what limited it, particles."""
        return self.tally.summary()


class Thinned:
    """A sink that passes on all events but those of substeps, and of these one in `interval` seconds."""

    def __init__(self, sink: Sink, interval: float = SUBSTEP_INTERVAL) -> None:
        self.sink, self.interval = sink, interval
        self._next = 0.0
        self._frame: Any = None

    def __call__(self, event: Event) -> None:
        """Pass an event on, or not; a frame's first substep always."""
        if event["event"] == "substep":
            now = time.perf_counter()
            if now < self._next and event.get("frame") == self._frame:
                return
            self._next, self._frame = now + self.interval, event.get("frame")
        self.sink(event)


# ---------------------------------------------------------------- for programs
class JsonLines:
    """Write every event as one line of JSON, flushed at once. NaN and infinities become null."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream: IO[str] | None = stream

    def __call__(self, event: Event) -> None:
        """Write one event; a reader that has gone away is not missed."""
        if self.stream is None:
            return
        try:
            self.stream.write(json.dumps(_plain(event), separators=(",", ":"), allow_nan=False) + "\n")
            self.stream.flush()
        except (BrokenPipeError, ValueError):
            self.stream = None


class JobLines:
    """Print what runners of Open Job Description read: `openjd_progress: 12.5` (percent) and `openjd_status: ...`."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream: IO[str] | None = stream
        self._first, self._last = 0, 0

    def __call__(self, event: Event) -> None:
        """Show one event; kinds that it does not know are passed over."""
        handler = getattr(self, "_on_" + event["event"], None)
        if handler is not None:
            handler(event)

    def progress(self, done: float, total: int, status: str) -> None:
        """Tell how much is done, and what that is."""
        self._line(f"openjd_progress: {100.0 * done / max(total, 1):.1f}")
        self._line(f"openjd_status: {status}")

    def _line(self, text: str) -> None:
        if self.stream is None:
            return
        try:
            self.stream.write(plain(text) + "\n")
            self.stream.flush()
        except (BrokenPipeError, ValueError):
            self.stream = None

    def _on_plan(self, event: Event) -> None:
        self._first, self._last = event["frames"]

    def _on_pace(self, event: Event) -> None:
        done = event["frame"] - self._first + event["share"]
        self.progress(done, self._last - self._first + 1, f"frame {event['frame']} of {self._last}")

    def _on_frame_done(self, event: Event) -> None:
        particles = f", {event['particles']:,} particles" if event.get("particles") is not None else ""
        done = event["frame"] - self._first + 1
        self.progress(done, self._last - self._first + 1, f"frame {event['frame']} of {self._last} is done{particles}")

    def _on_compiling(self, event: Event) -> None:
        self._line(f"openjd_status: {event['message']}")

    def _on_done(self, event: Event) -> None:
        self._line("openjd_progress: 100.0")

    def _on_warning(self, event: Event) -> None:
        where = f"{event['where']}: " if event.get("where") else ""
        self._line(f"warning: {where}{event['message']}")

    def _on_error(self, event: Event) -> None:
        self._line(f"openjd_fail: {event['message']}")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool)) or value is None else str(value)


# ---------------------------------------------------------------- for people
class ConsoleLines:
    """Print progress: one line that rewrites itself on a terminal, plain lines (a frame each) elsewhere."""

    def __init__(self, stream: IO[str] | None = None, tty: bool | None = None, quiet_seconds: float = 15.0) -> None:
        self.stream = stream or sys.stderr
        self.tty = self.stream.isatty() if tty is None else tty
        self.quiet_seconds = quiet_seconds
        self._last_print = time.monotonic()
        self._open = False
        self._last_frame: int | None = None
        self._seconds: float | None = None
        self._left: float | None = None
        self._share = ""

    def __call__(self, event: Event) -> None:
        """Show one event; kinds that it does not know are passed over."""
        handler = getattr(self, "_on_" + event["event"], None)
        if handler is not None:
            handler(event)

    def _line(self, text: str, stay: bool = True) -> None:
        self._last_print = time.monotonic()
        text = plain(text)
        if self.tty:
            self.stream.write("\r" + text + "\x1b[K" + ("\n" if stay else ""))
            self._open = not stay
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def close(self) -> None:
        """End a line that was being rewritten."""
        if self._open:
            self.stream.write("\n")
            self.stream.flush()
            self._open = False

    def _on_plan(self, event: Event) -> None:
        first, last = event["frames"]
        self._last_frame = last
        self._line(
            f"cooking frames {first} to {last}, {event['nodes']} nodes" + (f", into {event['out']}" if event.get("out") else "")
        )

    def _on_substep(self, event: Event) -> None:
        if self.tty or time.monotonic() - self._last_print > self.quiet_seconds:
            self._line(
                self._frame_text(event) + f"  substep {event['substep']}" + self._share + self._facts(event) + self._pace(),
                stay=False,
            )

    def _on_pace(self, event: Event) -> None:
        self._share = f" of about {event['substeps_expected']:.3g}, {100.0 * event['share']:.0f} % of the frame"
        here, share, last = event.get("seconds_left"), event["share"], self._last_frame
        if here is None or not share < 1.0:
            return
        # frames after a long one are taken to be as long, whatever those before it were
        self._seconds = here / (1.0 - share)
        self._left = here + self._seconds * max(0, (event["frame"] if last is None else last) - event["frame"])

    def _on_frame_done(self, event: Event) -> None:
        self._share = ""
        self._seconds, self._left = event.get("seconds"), event.get("seconds_left")
        substeps = f"  {event['substeps']} substeps" if event.get("substeps") else ""
        dt = {"dt": event["dt_min"]} if "dt_min" in event else {}
        self._line(self._frame_text(event) + substeps + self._facts({**event, **dt}) + self._pace(), stay=not self.tty)

    def _on_warning(self, event: Event) -> None:
        where = f"{event['where']}: " if event.get("where") else ""
        self._line(f"warning: {where}{event['message']}")

    def _on_note(self, event: Event) -> None:
        self._line(str(event["message"]))

    def _on_compiling(self, event: Event) -> None:
        self._line(event["message"], stay=False)

    def _on_done(self, event: Event) -> None:
        self.close()

    _on_cancelled = _on_done
    _on_error = _on_done

    def _frame_text(self, event: Event) -> str:
        last = "" if self._last_frame is None else f"/{self._last_frame}"
        return f"frame {event['frame']}{last}"

    @staticmethod
    def _facts(event: Event) -> str:
        parts = []
        if event.get("particles") is not None:
            parts.append(f"{event['particles']:,} particles")
        if event.get("dt") is not None:
            cause = ", ".join(str(event[name]) for name in ("limit", "limit_material") if event.get(name))
            parts.append(f"dt {event['dt']:.2e} s" + (f" ({cause})" if cause else ""))
        return "".join("  " + part for part in parts)

    def _pace(self) -> str:
        pace = "" if self._seconds is None else f"  {self._seconds:.2f} s/frame"
        return pace + ("" if self._left is None else f"  {duration(self._left)} left")


def duration(seconds: float) -> str:
    """Return a length of time in words as short as "1:05" (minutes and seconds) or "2:01:05"."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
