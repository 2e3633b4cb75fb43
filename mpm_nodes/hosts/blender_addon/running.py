"""One running cook: the program in a process of its own, whose words are read without waiting."""

import json
import queue
import signal
import threading
import time

from . import environment
from .history import key_of

SHOW_EVERY = 1.0
"""Seconds at least between two times that new frames are shown while a cook goes on."""


def event_of(line):
    """Return the event that a line of the program's stdout holds, None where it holds something else."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


class RunningCook:
    """One running cook.

    Attributes:
        process: The program.
        scene: `key_of` the scene that the frames appear in.
        revision: Folder that it writes, "" before it says so.
        state: "running", "done", "cancelled" or "failed".
        frames: Frames that are done.
        lines: What the program wrote on stderr, last lines.
        unseen: Why its frames are not shown, "" where they are.
        warned: What the panel says of its warnings.
        high: Whether it cooks at the High resolution.
        rendered: Whether its frames are those that renders read, and not those that the viewport shows.
        on_failure: Is called when it ends without a frame, or with frames that cannot be shown; None for nothing.
    """

    def __init__(self, arguments, folder, scene):
        self.scene, self.revision, self.state = key_of(scene), "", "running"
        self.frames, self.lines, self.error, self.warnings = [], [], "", []
        self.span, self.stop_asked, self._shown, self._waiting = (0, 0), False, 0.0, False
        self.high = self.rendered = False
        self.alone_since, self.on_failure, self.unseen, self.warned = None, None, "", ""
        self._events = queue.SimpleQueue()
        self.process = environment.start(arguments, folder)
        self._threads = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_events(self):
        for line in self.process.stdout:
            event = event_of(line)
            if event is None:
                self.lines.append(line.rstrip())
            else:
                self._events.put(event)

    def _read_errors(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            del self.lines[:-200]

    def events(self):
        """Return the events that have come since the last call."""
        found = []
        while not self._events.empty():
            found.append(self._events.get())
        return found

    def is_over(self):
        """Return whether the program has ended and all that it wrote has been read."""
        return self.process.poll() is not None and not any(t.is_alive() for t in self._threads) and self._events.empty()

    def stop(self):
        """Ask the program to stop after its substep; asked again, end it."""
        if self.process.poll() is None:
            if environment.is_windows() and not self.stop_asked:
                self.process.send_signal(signal.CTRL_BREAK_EVENT)
            elif self.stop_asked:
                self.process.kill()
            else:
                self.process.terminate()
        self.stop_asked = True

    def take(self, event):
        """Note what an event says."""
        kind = event.get("event")
        if kind == "plan":
            self.revision, self.span = event["out"] or "", tuple(event["frames"])
            self.frames = list(range(self.span[0], self.span[0] + event["done"]))
            self._waiting = bool(self.frames)  # of an earlier cook: there may be nothing left to do
        elif kind == "frame_done":
            self.frames.append(event["frame"])
            self._waiting = True
        elif kind == "warning":
            node, where = event.get("node") or "", event.get("where") or ""
            text = event["message"] if where in ("", node) else f"{where}: {event['message']}"
            self.warnings.append((node, text))
        elif kind in ("error", "cancelled"):
            self.error = event.get("message", "")

    def wants_to_show(self):
        """Return whether finished frames should be shown now."""
        if self._waiting and (time.monotonic() - self._shown >= SHOW_EVERY or self.process.poll() is not None):
            self._waiting, self._shown = False, time.monotonic()
            return True
        return False
