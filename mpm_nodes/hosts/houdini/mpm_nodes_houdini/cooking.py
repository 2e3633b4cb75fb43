"""A running cook: in a window beside Houdini's interface, which shows frames as they come; without windows until it ends."""

from __future__ import annotations

import os
import re
import time

import hou

from . import process
from .messages import Trouble, ending, in_own_words, recook, say, trouble_of
from .nodes import put

SHOW_EVERY = 1.0
"""Seconds at least between two times that new frames are shown while a cook goes on."""

RUNNING = {}
"""Cooks beside the interface by the session id of their MPM Cook node."""


class CookProgress:
    """What a cook has said so far.

    Attributes:
        stages: USD stages of the whole cache, as they were first written.
        status: Where it is, for people.
        fraction: Share of the frames that is done.
        fresh: Whether frames were finished since this was last set to False.
    """

    def __init__(self, cook):
        self.cook, self.stages, self.status, self.fraction, self.fresh = cook, [], "starting", 0.0, False
        self._first = self._last = self._frame = 1
        self._steps = {}

    def take(self, event):
        """Take in an event."""
        kind = event["event"]
        if kind == "plan":
            self._first, self._last = event["frames"]
            self._frame = self._first
        elif kind in ("frame_start", "substep"):
            self._frame = event["frame"]
            self._steps = {name: event[name] for name in ("dt", "limit") if name in event} or self._steps
            self.status = _status(self._frame, self._last, {**self._steps, **event})
        elif kind == "wrote" and _is_stage(event["path"]) and event["path"] not in self.stages:
            self.stages.append(event["path"])
        elif kind in ("note", "compiling"):
            self.status = in_own_words(self.cook, event["message"])
        elif kind == "warning":
            say(in_own_words(self.cook, event["message"]), hou.severityType.Warning)
        elif kind == "frame_done":
            self.status, self.fresh = _status(self._frame, self._last, {**self._steps, **event}), True
            self._frame += 1
        self.fraction = min(1.0, max(0.0, (self._frame - self._first) / max(self._last - self._first + 1, 1)))


class BackgroundCook:
    """A cook that Houdini's event loop looks at.

    Args:
        cook: The MPM Cook node.
        running: The program.
        out: Folder that it writes to.
    """

    def __init__(self, cook, running, out):
        self.node_id, self.running, self.out, self.progress = cook.sessionId(), running, out, CookProgress(cook)
        self.asked, self._said, self._shown = False, "", 0.0
        self._callback = self.look
        RUNNING[self.node_id] = self
        hou.ui.addEventLoopCallback(self._callback)

    def look(self):
        """Take in what the program has said; called by Houdini between two events of its window."""
        cook = hou.nodeBySessionId(self.node_id)
        over = self.running.is_over()
        for event in self.running.pending():
            self.progress.take(event)
        if cook is None:  # deleted: there is nothing left to show frames
            if not self.asked:
                self.stop()
        elif self.progress.status != self._said:
            self._said = self.progress.status
            say(f"{cook.name()}: {self._said}")
        if over:
            hou.ui.removeEventLoopCallback(self._callback)
            RUNNING.pop(self.node_id, None)
            code, text = self.running.finish()
        if cook is not None and self.progress.fresh and (over or time.monotonic() - self._shown >= SHOW_EVERY):
            self.progress.fresh, self._shown = False, time.monotonic()
            for stage in self.progress.stages:
                bring_in(cook, stage)
        if over and cook is not None:
            self._finish(cook, code, text)

    def stop(self):
        """Ask the program to stop after its substep; asked again, end it."""
        (self.running.kill if self.asked else self.running.ask_to_stop)()
        self.asked = True

    def _finish(self, cook, code, text):
        if code == 0:
            say(f"{cook.name()}: cooked into {self.out}")
        elif self.asked:
            say(f"{cook.name()}: stopped. Whole frames are kept; press Continue to go on")
        else:
            trouble_of(cook, ending(cook, code, text))


def cook(node, arguments, out):
    """Cook: beside the interface where there is one, else until the end.

    Args:
        node: The MPM Cook node.
        arguments: Command line of the program.
        out: Folder that it writes to.

    Raises:
        Trouble: This node cooks already; without windows also when the cook was stopped or failed.
    """
    if node.sessionId() in RUNNING:
        raise Trouble(f"{node.name()}: is cooking already; press Cancel first")
    running = process.Process(arguments)
    if hou.isUIAvailable():
        BackgroundCook(node, running, out)
        say(f"{node.name()}: starting")
        return
    progress, stopped = CookProgress(node), False
    try:
        with hou.InterruptableOperation("Cooking MPM", "Frames", open_interrupt_dialog=True) as operation:
            for event in running.events():
                if event:
                    progress.take(event)
                operation.updateLongProgress(progress.fraction, progress.status)
    except hou.OperationInterrupted:
        stopped = True
        say("stopping after this substep")
        running.stop()
    except BaseException:
        running.stop()
        raise
    code, text = running.finish()
    for stage in progress.stages:
        bring_in(node, stage)
    if stopped:
        raise Trouble("Stopped. Whole frames are kept; press Continue to go on.")
    if code != 0:
        raise Trouble(ending(node, code, text))
    say(f"cooked into {out}")


def _is_stage(path):
    """Return whether a written file is the stage of the whole cache: it lies in the revision folder itself."""
    folder = os.path.basename(os.path.dirname(path))
    return path.endswith((".usd", ".usda", ".usdc")) and folder[:1] == "r" and folder[1:].isdigit()


def _status(frame, last, event):
    parts = [f"frame {frame} of {last}"]
    if event.get("particles") is not None:
        parts.append(f"{event['particles']:,} particles")
    if event.get("dt"):
        held = f", held by {event['limit']}" if event.get("limit") else ""
        parts.append(f"steps of {1e3 * event['dt']:.3g} ms{held}")
    if event.get("seconds_left") is not None:
        left = round(event["seconds_left"])
        parts.append(f"{left // 60}:{left % 60:02d} left")
    return ", ".join(parts)


def bring_in(cook, stage):
    """Show a cache by Houdini's own USD import; its node is made once and then pointed at the newest cook."""
    way = cook.parm("mpm_import").evalAsString()
    if way == "none":
        return
    parent, kind = (cook.parent(), "usdimport") if way == "sop" else (hou.node("/stage"), "sublayer")
    name = f"{cook.name()}_{os.path.splitext(os.path.basename(stage))[0]}"
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    node = parent.node(name)
    if node is None:
        node = parent.createNode(kind, name)
        if way == "sop":
            x, y = cook.position()
            node.setPosition(hou.Vector2((x, y - 1.0)))
            node.setDisplayFlag(True)  # once: what the artist looks at later stays
    if node.parm("filepath1") is None or node.parm("filepath1").evalAsString() != stage:
        put(node, "filepath1", stage)
    else:
        refresh(node)
    if way == "sop":
        show_points(cook, stage)


def show_points(cook, stage):
    """Point the node of the cache's particles at a stage, with the attributes that Houdini's own nodes know."""
    name = f"{cook.name()}_points"
    node = cook.parent().node(name)
    if node is None:
        node = cook.parent().createNode("mpm_nodes::cached_points::1.0", name, exact_type_name=True)
        x, y = cook.position()
        node.setPosition(hou.Vector2((x + 2.0, y - 1.0)))
    put(node, "mpm_stage", stage)
    recook(node)


def refresh(node):
    """Let one of Houdini's importers read its file again: by its button, else by cooking it again."""
    button = node.parm("reload")
    if button is not None:
        button.pressButton()
    else:
        recook(node)
