"""The panel of a graph's cooks: show, render, compare, note, publish, verify, free and delete them; and their queue."""

import json
import time
from pathlib import Path

import bpy

from . import cache_import, cook, environment, figures, history, places, problems, resolutions, revisions
from .interface import Sidebar
from .nodes import broken
from .operators import OnGraph, tree_of

FACTS = {}
"""What is said of revision folders by path and time of change: a panel must not walk through them while it is drawn."""


def facts_of(revision):
    """Return the frames of a revision, and when the last of them came with its size, in words: two lines, as wide as a sidebar."""
    folder = Path(revision) / "frames"
    changed = folder.stat().st_mtime if folder.is_dir() else 0.0
    key = str(revision), changed
    if key not in FACTS:
        frames = cache_import.frames_of(revision)
        fine = resolutions.cooked_at(revision)
        size = f"{fine:g}x, " if fine else ""
        said = f"{size}frames {frames[0]} to {frames[-1]}" if len(frames) > 1 else f"frame {frames[0]}" if frames else "no frame"
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(changed)) if frames else ""
        FACTS[key] = said, ", ".join(filter(None, [when, figures.bytes_in_words(revisions.size(revision))]))
    return FACTS[key]


class _OnRevision(OnGraph):
    """Operators on a revision folder of a graph, named by the folder's name: they do `act`, and report what hinders it."""

    revision: bpy.props.StringProperty(name="Revision", options={"HIDDEN", "SKIP_SAVE"})

    frames_needed = False
    """Whether a cook without whole frames is refused."""

    def folder(self, context):
        """Return (tree, revision folder); (None, None), with a report, when there is none."""
        tree = self.graph(context)
        path = next((each for each in revisions.found(places.out_path(tree)) if each.name == self.revision), None) if tree else None
        if path is None:
            self.report({"ERROR"}, f"There is no cook {self.revision}")
            return None, None
        return tree, path

    def execute(self, context):
        """Do it to the cook."""
        tree, path = self.folder(context)
        if path is None:
            return {"CANCELLED"}
        if self.frames_needed and not cache_import.frames_of(path):
            self.report({"ERROR"}, f"{self.revision} holds no whole frame")
            return {"CANCELLED"}
        try:
            self.act(context, tree, path)
        except (cache_import.CacheFault, environment.EnvironmentFault, revisions.RevisionFault) as fault:
            self.report({"ERROR"}, str(fault))
            return {"CANCELLED"}
        return {"FINISHED"}


class MPM_OT_show_revision(_OnRevision, bpy.types.Operator):
    """Show this cook in the scene"""

    bl_idname = "mpm_nodes.show_revision"
    bl_label = "Show"
    frames_needed = True

    def act(self, context, tree, path):
        """Show it."""
        frames = cache_import.frames_of(path)
        history.show(tree, path, context.scene, frames)
        problems.report(tree, f"Frames {frames[0]} to {frames[-1]} of {path.name}", False)


class MPM_OT_render_revision(_OnRevision, bpy.types.Operator):
    """Let renders read this cook, and the viewport go on showing what it shows"""

    bl_idname = "mpm_nodes.render_revision"
    bl_label = "Render"
    frames_needed = True

    def act(self, context, tree, path):
        """Let them."""
        if cache_import.shown_folder(tree) == path:
            history.forget_rendered(tree)
            history.remember("Render what is shown")
        else:
            history.render(tree, path, context.scene)
        problems.report(tree, f"Renders read {path.name}", False)


class MPM_OT_note_revision(_OnRevision, bpy.types.Operator):
    """Write down what this cook is, for whoever looks at the list next"""

    bl_idname = "mpm_nodes.note_revision"
    bl_label = "Note"

    note: bpy.props.StringProperty(name="Note", options={"SKIP_SAVE"})

    def invoke(self, context, _event):
        """Ask for it."""
        _, path = self.folder(context)
        if path is None:
            return {"CANCELLED"}
        self.note = revisions.notes(path)[0]
        return context.window_manager.invoke_props_dialog(self)

    def draw(self, _context):
        """Draw the text alone, to be typed at once."""
        self.layout.label(text=self.revision)
        self.layout.activate_init = True
        self.layout.prop(self, "note", text="")

    def act(self, context, _tree, path):
        """Keep it."""
        revisions.write_notes(path, self.note, revisions.notes(path)[1])
        if context.area is not None:  # Blender does not draw the sidebar again after a dialog over the nodes
            context.area.tag_redraw()


class MPM_OT_publish_revision(_OnRevision, bpy.types.Operator):
    """Put this cook's files under the next number into the folder published, for other files and programs: no cook changes them"""

    bl_idname = "mpm_nodes.publish_revision"
    bl_label = "Publish"
    frames_needed = True

    def act(self, _context, tree, path):
        """Publish it."""
        target = revisions.publish(path, *places.published_path(tree), [job.revision for job in cook.JOBS.values()])
        problems.report(tree, f"{path.name} is published as {target}", False)


class MPM_OT_queue(OnGraph, bpy.types.Operator):
    """Cook the graph, as it is by then, when the cooks that run and wait are over"""

    bl_idname = "mpm_nodes.queue"
    bl_label = "Queue"

    high: bpy.props.BoolProperty(name="High", description="Cook at the High resolution", options={"SKIP_SAVE"})

    def execute(self, context):
        """Put it last."""
        tree = self.graph(context)
        if tree is None or cook.waits(tree):
            self.report({"ERROR"}, f"{tree.name} waits already" if tree else "There is no graph")
            return {"CANCELLED"}
        cook.queue(tree, context.scene, self.high)
        return {"FINISHED"}


class MPM_OT_compare_revisions(_OnRevision, bpy.types.Operator):
    """Say what differs between this cook and the one that is shown"""

    bl_idname = "mpm_nodes.compare_revisions"
    bl_label = "Compare"

    def act(self, _context, tree, path):
        """Compare the two."""
        shown = cache_import.shown_folder(tree)
        if shown is None or not shown.is_dir() or shown == path:
            raise revisions.RevisionFault("Show another cook first; this one is compared with it")
        lines = revisions.differences(shown, path)
        problems.report(tree, "\n".join([f"{shown.name} -> {path.name}", *lines]), False)


class MPM_OT_verify_revision(_OnRevision, bpy.types.Operator):
    """Check every file of this cook against the digest that its frame's record holds"""

    bl_idname = "mpm_nodes.verify_revision"
    bl_label = "Verify"

    def act(self, _context, tree, path):
        """Let the program check it."""
        _, out, error = environment.run(environment.command("check", cache=str(path)), 600.0)
        try:
            answer = json.loads(out)
        except ValueError:
            raise environment.EnvironmentFault(error.strip()[-300:]) from None
        faults = [f"frame {each['frame']}: {each['name'] or 'its record'}: {each['what']}" for each in answer["faults"]]
        said = f"{path.name}: {len(faults)} faults" if faults else f"{path.name}: every file is as it was written"
        problems.report(tree, "\n".join([said, *faults[:10]]), bool(faults))


class MPM_OT_delete_revision(_OnRevision, bpy.types.Operator):
    """Delete this cook from the disk; this cannot be undone"""

    bl_idname = "mpm_nodes.delete_revision"
    bl_label = "Delete"

    def invoke(self, context, event):
        """Ask first."""
        return context.window_manager.invoke_confirm(self, event)

    def act(self, _context, tree, path):
        """Delete it."""
        revisions.delete(path, places.out_path(tree), [job.revision for job in cook.JOBS.values()])
        if resolutions.rendered_folder(tree) == path.resolve():
            history.forget_rendered(tree)
        if cache_import.shown_folder(tree) == path:
            history.forget(tree)
            cache_import.take_away(tree)
            tree.revision = ""
            history.remember("Delete cook")
        problems.report(tree, f"{path.name} is deleted", False)


class MPM_OT_free_caches(OnGraph, bpy.types.Operator):
    """Delete what the cooks of this graph can do without: temporary files and states that Resume does not need"""

    bl_idname = "mpm_nodes.free_caches"
    bl_label = "Free Disk Space"

    def execute(self, context):
        """Let the program clean every revision."""
        tree = self.graph(context)
        if tree is None or cook.job_of(tree) is not None:
            self.report({"ERROR"}, "This graph is cooking; cancel that first" if tree else "There is no graph")
            return {"CANCELLED"}
        before = after = 0
        for path in revisions.found(places.out_path(tree)):
            before += revisions.size(path)
            try:
                code, _, error = environment.run(environment.command("free", cache=str(path)))
            except environment.EnvironmentFault as fault:
                code, error = 1, str(fault)
            if code:
                self.report({"ERROR"}, environment.in_own_words(error.strip()[-300:]))
                return {"CANCELLED"}
            after += revisions.size(path)
        FACTS.clear()
        problems.report(tree, f"{figures.bytes_in_words(before - after)} freed; whole frames are kept", False)
        return {"FINISHED"}


class MPM_PT_caches(Sidebar, bpy.types.Panel):
    """Cooks of the graph"""

    bl_idname = "MPM_PT_caches"
    bl_label = "Caches"
    bl_order = 1  # below the buttons

    def draw(self, context):
        """Draw a row for each cook, the newest first."""
        tree, layout = tree_of(context), self.layout
        known, shown = revisions.found(places.out_path(tree)), cache_import.shown_folder(tree)
        rendered = resolutions.rendered_folder(tree)
        if rendered is not None:
            layout.prop(tree, "render_high", text=f"Render {rendered.name}", icon="RENDER_STILL")
        if shown is not None and shown not in known:  # after Save As, or under another name
            layout.label(text=f"Shown: {shown.name} in {shown.parent.name}", icon="HIDE_OFF")
        for path in reversed(known[-12:]):
            box, (frames, written) = layout.column(align=True), facts_of(path)
            icon = "RENDER_STILL" if rendered == path.resolve() else "HIDE_OFF" if shown == path else "FILE_CACHE"
            box.label(text=f"{path.name}: {frames}", icon=icon)
            note, published = revisions.notes(path)
            for text in filter(None, [written, *broken(note, 30), *published[-1:]]):
                box.label(text=text, icon="BLANK1")
            row = box.row(align=True)
            for name in ("show_revision", "render_revision", "compare_revisions"):
                row.operator(f"mpm_nodes.{name}").revision = path.name
            row = box.row(align=True)
            for name in ("note_revision", "publish_revision", "verify_revision", "delete_revision"):
                row.operator(f"mpm_nodes.{name}").revision = path.name
        if known:
            layout.operator("mpm_nodes.free_caches", icon="BRUSH_DATA")
        else:
            layout.label(text=f"Nothing is cooked in {places.out_path(tree).name}")


CLASSES = [
    MPM_OT_show_revision,
    MPM_OT_render_revision,
    MPM_OT_note_revision,
    MPM_OT_publish_revision,
    MPM_OT_queue,
    MPM_OT_compare_revisions,
    MPM_OT_verify_revision,
    MPM_OT_delete_revision,
    MPM_OT_free_caches,
    MPM_PT_caches,
]
