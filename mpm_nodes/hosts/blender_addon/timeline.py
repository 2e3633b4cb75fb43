"""The scene's timeline and a graph: what is shown at a frame, and values sampled frame by frame."""

import contextlib

import bpy

from . import animation, cache_import, knobs, unkeyed


def follow(tree, scene):
    """Let the knobs of a graph follow the timeline: Blender evaluates what a scene refers to.

    Returns whether something had to be made for that, which an undo step must hold.
    """
    before = len(bpy.data.collections), len(scene.collection.children), len(scene.keys())
    cache_import.collection_of(tree, scene)
    return before != (len(bpy.data.collections), len(scene.collection.children), len(scene.keys()))


def at_frames(scene, frames):
    """Go to each frame of a scene and yield it; afterwards the scene is where it was, with what was changed there without a key."""
    before = scene.frame_current, scene.frame_subframe
    moves = any((frame, 0.0) != before for frame in frames)
    with unkeyed.kept() if moves else contextlib.nullcontext():
        try:
            for frame in frames:
                if moves:
                    scene.frame_set(frame)
                yield frame
        finally:
            if moves:
                scene.frame_set(before[0], subframe=before[1])


@contextlib.contextmanager
def updates(scene):
    """Give a set to which every change of a scene's frame adds the data that Blender has evaluated again."""
    found, name = set(), scene.name

    def note(changed, graph):
        if changed.name == name:
            found.update(each.id.original for each in graph.updates if each.is_updated_geometry or each.is_updated_transform)

    bpy.app.handlers.frame_change_post.append(note)
    try:
        yield found
    finally:
        bpy.app.handlers.frame_change_post.remove(note)


def driven(owners):
    """Return the (node, knob) of knobs that drivers or NLA strips move."""
    return [
        (owner, knob)
        for owner in owners
        for knob in (owner.record["knobs"] if owner.record else ())
        if knob["keyable"] and any(animation.is_driven(owner, name) for name, _ in set(knobs.homes(knob)))
    ]


def keyed(frames, values):
    """Return one value when nothing changes, else a key a frame."""
    if all(value == values[0] for value in values):
        return values[0]
    return {"keys": [[frame, value, "linear"] for frame, value in zip(frames, values, strict=True)]}


def ends_before(scene, frames):
    """Return what to do where a scene ends before the last of some frames; "" where it does not, or is gone."""
    if scene is None or not frames or scene.frame_end >= frames[-1]:
        return ""
    return f". The scene ends at frame {scene.frame_end}: set its End to {frames[-1]} (Output properties) to see the rest"


def rate_differs(tree, scene):
    """Return what to do where a graph and a scene have different frame rates; "" where they agree, or there is no scene."""
    rate = tree.k_fps if scene is None else scene.render.fps / scene.render.fps_base
    if abs(rate - tree.k_fps) < 1e-3 * rate:
        return ""
    return (
        f". The scene has {rate:g} frames a second and the graph {tree.k_fps:g}: points, meshes and volumes are shown at "
        "times of their own until both have the same (Output properties, or Fps here)"
    )
