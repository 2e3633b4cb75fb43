"""Undo and redo beside cooks: they take back what the artist did, and leave the cooked frames in the scene.

Blender restores whole states of the file. What is made without a step of its own must not be there when it does so: it keeps the
data that did not change between two states, and these would still refer to what is gone. So whatever a cook makes is a step, and
frames that come back after an undo, which must not cut off the redo, are taken away before the next one.
"""

import contextlib
import traceback

import bpy

from . import cache_import, problems, resolutions

DELAY = 0.05
"""Seconds after an undo before frames come back: they are imported, which a handler must not do."""

_SHOWN = {}
"""(revision, `key_of` the scene) that a graph's frames come from, by the `key_of` it."""

_RENDERED = {}
"""Revision that renders of a graph's objects read in place of what is shown, by the `key_of` it."""

_LENT = {}
"""What takes away again what came back without a step, by the `key_of` its graph."""


def key_of(block):
    """Return what tells a tree or a scene from all others as long as Blender runs, undo and renaming included."""
    return getattr(block, "session_uid", None) or block.name


def scene_of(key):
    """Return the scene of a key, or None when it was deleted."""
    return next((each for each in bpy.data.scenes if key_of(each) == key), None)


def remember(what):
    """Make an undo step, so that the artist's next undo takes back what the artist did, and not this."""
    with contextlib.suppress(RuntimeError):  # there is no undo without a window
        bpy.ops.ed.undo_push(message=f"MPM: {what}")


def show(tree, revision, scene, frames):
    """Show frames of a revision folder, as a step of their own where anything new comes in.

    Raises:
        cache_import.CacheFault: Blender cannot read them.
    """
    fine = resolutions.rendered_folder(tree)
    changed = cache_import.show(tree, revision, scene, frames)
    if changed and fine is not None and fine.is_dir():
        resolutions.render(tree, fine, scene)
    _SHOWN[key_of(tree)] = str(revision), key_of(scene)
    if changed:
        _LENT.pop(key_of(tree), None)
        remember("Cooked frames")


def render(tree, revision, scene):
    """Let renders read a revision folder in place of what is shown, as a step of its own where they did not yet.

    Raises:
        cache_import.CacheFault: Blender cannot read it, or nothing is shown.
    """
    changed = resolutions.render(tree, revision, scene)
    _RENDERED[key_of(tree)] = str(revision)
    if changed:
        remember("Cooked frames for renders")


def forget_rendered(tree):
    """Let renders read what is shown, for good."""
    _RENDERED.pop(key_of(tree), None)
    resolutions.forget(tree)


def forget(tree):
    """Let a graph's frames go: they do not come back after an undo."""
    _SHOWN.pop(key_of(tree), None)
    _RENDERED.pop(key_of(tree), None)


def restore():
    """Bring back the frames that an undo or a redo has taken out of the scene; return None, as timers do that run once."""
    for tree in problems.graph_trees(bpy.data):
        revision, scene = _SHOWN.get(key_of(tree), ("", ""))
        scene, fine = scene_of(scene), _RENDERED.get(key_of(tree))
        frames = cache_import.frames_of(revision) if revision and scene else []
        if not frames or getattr(bpy.context, "mode", "OBJECT") != "OBJECT":
            continue
        whole = _is_whole(tree, scene, frames)
        if whole and (not fine or resolutions.rendered_folder(tree) is not None):
            continue
        try:
            if not whole:
                cache_import.take_away(tree)
                cache_import.show(tree, revision, scene, frames)
            if fine:
                resolutions.render(tree, fine, scene)
            _LENT[key_of(tree)] = resolutions.forget if whole else cache_import.take_away
        except cache_import.CacheFault as error:
            problems.report(tree, str(error), True)
        except Exception as error:
            traceback.print_exc()
            problems.report(tree, f"A defect of this extension: {error!r}; the console says where", True)


def _is_whole(tree, scene, frames):
    """Return whether frames of a graph are in a scene, and more than the single one that is shown as a cook begins."""
    holder = next((each for each in scene.collection.children_recursive if each.get(cache_import.OWNER) == tree), None)
    things = [thing for thing in holder.all_objects if thing.get(cache_import.MARK)] if holder else []
    follow = any(thing.type == "VOLUME" or cache_import.cache_modifier(thing) for thing in things)
    return bool(things) and (follow or len(frames) == 1)


def _settle():
    """Let view layers forget what was taken away: Blender 4.2 ends when it finds that out while it reads an undo step."""
    for scene in bpy.data.scenes:
        for layer in scene.view_layers:
            _ = layer.objects.active  # asked for it, a layer looks at its collections again


@bpy.app.handlers.persistent
def before(*_):
    """Take away, before an undo or a redo, what came back without a step."""
    for tree in problems.graph_trees(bpy.data):
        if key_of(tree) in _LENT:
            _LENT[key_of(tree)](tree)
    if _LENT:
        _settle()
    _LENT.clear()
    after()  # there may be nothing to undo, and then nobody says so


@bpy.app.handlers.persistent
def after(*_):
    """Look, as soon as Blender is done with it, whether an undo or a redo has taken frames away."""
    if _SHOWN and not bpy.app.background and not bpy.app.timers.is_registered(restore):
        bpy.app.timers.register(restore, first_interval=DELAY)


@bpy.app.handlers.persistent
def after_load(*_):
    """Forget the frames of the file that was open before."""
    _SHOWN.clear()
    _RENDERED.clear()
    _LENT.clear()


HANDLERS = {"undo_pre": before, "redo_pre": before, "undo_post": after, "redo_post": after, "load_post": after_load}


def register():
    """Follow undo and redo."""
    for name, handler in HANDLERS.items():
        getattr(bpy.app.handlers, name).append(handler)


def unregister():
    """Follow them no longer."""
    if bpy.app.timers.is_registered(restore):
        bpy.app.timers.unregister(restore)
    for name, handler in HANDLERS.items():
        getattr(bpy.app.handlers, name).remove(handler)
