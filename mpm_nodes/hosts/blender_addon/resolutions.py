"""Two cooks of a graph in one scene: a coarse one that the viewport shows, and a fine one that renders read.

Both are caches of the same objects, so that materials, modifiers and places are the same: an object has a second modifier that
follows the fine cook in renders alone. Blender keeps that in the file, so that it renders the same where this extension is not.
"""

import json
import uuid
from pathlib import Path

import bpy

from . import cache_import, environment, revisions, trees

NAME = "MPM Render"
"""Name of the second modifier."""


def given(tree, high):
    """Return the resolution that a cook of a graph is started with; None for the graph's own."""
    return tree.k_resolution * tree.high_resolution if high else None


def cooked_at(revision):
    """Return the resolution that a revision folder was cooked at in place of its graph's; None for the graph's own."""
    found = None
    for text in revisions.record(Path(revision) / "cook.json").get("overrides", ()):
        name, _, value = str(text).partition("=")
        if name == "settings.resolution":
            found = float(json.loads(value))
    return found


def arguments(resolution):
    """Return the program's arguments for a resolution, none for None."""
    return [word.format(resolution=resolution) for word in environment.SPEC["cook"]["resolution"]] if resolution else []


def second(thing):
    """Return the modifier by which renders of an object follow another cook than the viewport, or None."""
    return next((each for each in thing.modifiers if each.type == "MESH_SEQUENCE_CACHE" and each.name == NAME), None)


def of_tree(tree):
    """Return the objects of a tree's caches."""
    mark = tree.get(cache_import.MARK)
    return [thing for thing in bpy.data.objects if mark and str(thing.get(cache_import.MARK, "")).startswith(f"{mark}/")]


def rendered_folder(tree):
    """Return the revision folder that renders of a tree's objects read, None where it is the one that the viewport shows."""
    for thing in of_tree(tree):
        modifier = second(thing)
        if modifier is not None and modifier.cache_file is not None:
            return Path(bpy.path.abspath(modifier.cache_file.filepath)).resolve().parent
    return None


def render(tree, revision, scene):
    """Let renders of a tree's objects read a revision folder that the viewport does not show; return whether they did not yet.

    Volumes render as the viewport shows them.

    Raises:
        cache_import.CacheFault: Blender cannot read it, or nothing of the graph is shown.
    """
    holder, changed = cache_import.collection_of(tree, scene), False
    if not of_tree(tree):
        raise cache_import.CacheFault("Show a cook first: renders take the place of what is shown")
    for stage in sorted(path for path in Path(revision).glob("*.usda") if not path.name.startswith(".")):
        ours = cache_import.objects_of(holder, stage.stem)
        caches = {modifier.cache_file for thing in ours.values() if (modifier := second(thing)) and modifier.cache_file}
        if {Path(bpy.path.abspath(cache.filepath)).resolve() for cache in caches} == {stage.resolve()}:
            for cache in caches:
                with bpy.context.temp_override(edit_cachefile=cache):
                    bpy.ops.cachefile.reload()
            continue
        changed = True
        spare = bpy.data.collections.new(NAME)
        spare[cache_import.MARK] = uuid.uuid4().hex
        cache_import.bring_in(tree, stage, spare, scene, {})
        fine = cache_import.objects_of(spare, stage.stem)
        for key, thing in ours.items():
            _follow(thing, fine.get(key))
        bpy.data.batch_remove([*fine.values(), *{thing.data for thing in fine.values() if thing.data}, spare])
    switch(tree)
    return changed


def _follow(thing, fine):
    """Let renders of an object follow the cache that another one follows; of one that does not move yet they do not."""
    shown, other = cache_import.cache_modifier(thing), fine and cache_import.cache_modifier(fine)
    if shown is None or not other:
        return
    own = second(thing)
    if own is None:
        own = thing.modifiers.new(NAME, "MESH_SEQUENCE_CACHE")
        thing.modifiers.move(len(thing.modifiers) - 1, thing.modifiers.find(shown.name) + 1)
    own.cache_file, own.object_path, own.read_data = other.cache_file, other.object_path, set(other.read_data)


def switch(tree):
    """Let renders read the fine cook, or the one that the viewport shows, as the tree says."""
    for thing in of_tree(tree):
        own, shown = second(thing), cache_import.cache_modifier(thing)
        if own is not None and shown is not None:
            own.show_viewport, own.show_render = False, tree.render_high
            shown.show_render = not tree.render_high


trees.SWITCHES.append(switch)


def forget(tree):
    """Let renders read what the viewport shows, for good."""
    for thing in of_tree(tree):
        own, shown = second(thing), cache_import.cache_modifier(thing)
        if own is not None:
            thing.modifiers.remove(own)
            shown.show_render = True
    bpy.data.batch_remove([cache for cache in bpy.data.cache_files if cache.users == 0])
