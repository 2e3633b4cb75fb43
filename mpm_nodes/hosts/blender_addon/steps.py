"""Work that takes a while, in steps between which Blender draws: beside progress and Esc in a window, in one go without one.

Such work is a generator that yields how much of it is done, from 0 to 1, and returns its result.
"""

import time

import bpy

SLICE = 0.05
"""Seconds of steps between two looks at the window."""

RUNNING = []
"""Operators that go on in steps: meanwhile nothing else may change the scene."""


def finish(steps):
    """Take all steps at once; return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as over:
            return over.value


class Stepwise:
    """Operators whose `steps(context)` are such work, with the operator's answer as their result. Scripts get them in one go."""

    def execute(self, context):
        """Do it at once."""
        return finish(self.steps(context))

    def invoke(self, context, _event):
        """Begin; Blender calls `modal` from now on."""
        if bpy.app.background or context.window is None:
            return self.execute(context)
        self.begin(context)
        return {"RUNNING_MODAL"}

    def begin(self, context):
        """Ask Blender for calls of `modal`, and show progress."""
        manager = context.window_manager
        self.work = self.steps(context)
        self.timer = manager.event_timer_add(0.01, window=context.window)
        manager.progress_begin(0, 100)
        manager.modal_handler_add(self)
        RUNNING.append(self)

    def modal(self, context, event):
        """Go on for a moment; Esc stops, and leaves everything as it was."""
        if event.type == "ESC":
            self.report({"INFO"}, "Stopped")
            self.end(context)
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}  # the artist's input waits: it could take away what is being read
        until = time.monotonic() + SLICE
        try:
            while True:
                context.window_manager.progress_update(round(100.0 * next(self.work)))
                if time.monotonic() >= until:
                    break
        except StopIteration as over:
            self.end(context)
            return over.value
        except BaseException:
            self.end(context)
            raise
        if context.area is not None:
            context.area.tag_redraw()
        return {"RUNNING_MODAL"}

    def cancel(self, context):
        """Stop; Blender calls it when it takes the operator away."""
        self.end(context)

    def end(self, context):
        """Let the work put back what it holds, and take the progress away."""
        self.work.close()
        if self in RUNNING:
            RUNNING.remove(self)
            context.window_manager.event_timer_remove(self.timer)
            context.window_manager.progress_end()
