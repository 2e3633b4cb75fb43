"""One pass over frames of what a graph takes from the scene.

It is evaluated in a scene of its own that holds the graph's objects: Blender evaluates these and what they depend on, and nothing
else. Blender writes what it evaluates back to the scene in the window alone, so that nothing of the artist's changes, keyed or not.
"""

import contextlib

import bpy

from . import knobs, painting, point_clouds, simulations, surfaces, timeline, unkeyed

SCENE = ("frame_start", "frame_end", "gravity", "use_gravity", "camera")
RENDER = ("fps", "fps_base", "frame_map_old", "frame_map_new", "use_simplify")
LEVELS = (("levels", "render_levels"), ("steps", "render_steps"), ("viewport_resolution", "resolution"))
"""Fields of modifiers for the viewport and for renders."""


class Stage:
    """Where objects are evaluated.

    Attributes:
        scene: The scene that holds them.
        stands: The object that stands for each of them there: itself, or a copy.
    """

    def __init__(self, scene, stands, layer):
        self.scene, self.stands, self._layer = scene, stands, layer

    @property
    def depsgraph(self):
        """What Blender has evaluated, at the frame that the stage is at."""
        return self._layer.depsgraph

    def evaluated(self, thing):
        """Return an object as it is evaluated."""
        return self.stands[thing].evaluated_get(self.depsgraph)

    def pieces(self, thing, painted=()):
        """Return the pieces of an object's surface, with what is painted on them of some names."""
        return surfaces.pieces(self.stands[thing], self.depsgraph, painted)

    def clouds(self, thing):
        """Return the point clouds that an object is or makes."""
        return point_clouds.clouds(self.stands[thing], self.depsgraph)

    def may_change(self, thing, updated):
        """Return whether an object's surface may be another than before, where Blender has evaluated `updated` again."""
        # what stands in for others may change with them, and instances of vertices and faces do without a word
        whole = thing.instance_type != "NONE" and (updated or thing.instance_type != "COLLECTION")
        return bool(whole) or self.stands[thing] in updated


class Pass:
    """What one pass over the frames has found.

    Attributes:
        shapes: Of every object that is written, with what of it: what `ArrayFile` gives for its surface or points, by frame.
        painted: Of those with a surface: what is painted on them at the first frame, as `painting.seen` gives it.
        worlds: Of every object that gives a place: its matrix to the world, by frame.
        first: Of these with a surface: its pieces at the first frame.
        driven: Of every driven knob: its values.
    """

    def __init__(self, held, inputs, driven):
        self.held, self._driven = held, driven
        self.shapes = {each: [] for each in inputs}
        self.worlds = {thing: [] for node, thing in held.items() if node.takes_object() == "place"}
        self.first, self.driven = {}, [[] for _ in driven]
        self.painted, self._wanted = {}, painting.wanted(held)

    def look(self, stage, updated, store):
        """Note what a frame has."""
        for (thing, kind), found in self.shapes.items():
            if found and not stage.may_change(thing, updated):
                found.append(found[-1])
            elif kind == "points":
                found.append(store.clouds(stage.clouds(thing)))
            else:
                names = self._wanted.get(thing, ())
                pieces = stage.pieces(thing, names)
                self.painted.setdefault(thing, painting.seen(pieces))
                found.append(store.shapes(pieces, names))
        for thing, found in self.worlds.items():
            if not found and surfaces.has_surface(thing):
                self.first[thing] = stage.pieces(thing)
            found.append(stage.evaluated(thing).matrix_world.copy())
        for values, (owner, knob) in zip(self.driven, self._driven, strict=True):
            node = owner.id_data.evaluated_get(stage.depsgraph).nodes[owner.name]
            values.append(knobs.number_of(node, knob))


def over_frames(scene, things, tree, frames):
    """Yield (stage, objects evaluated again) at each frame; close it to stop early.

    Args:
        scene: The artist's scene.
        things: Objects of it.
        tree: Graph whose knobs follow the frames; None for none.
        frames: The frames.
    """
    with apart(scene, things, tree) as stage, timeline.updates(stage.scene) as updated:
        for frame in frames:
            updated.clear()
            stage.scene.frame_set(frame)
            if frame == frames[0] and (_meets_rigid_bodies(stage, scene) or _copies_simulation(stage)):
                break
            yield stage, updated
        else:
            return
    with contextlib.ExitStack() as stack:  # a rigid body moves in the scene of its world alone, and a copy has no baked frames
        stands = stack.enter_context(_stand_ins(things, keep=lambda thing: thing.rigid_body or simulations.simulates(thing)))
        for thing, stand in stands.items():
            if stand is thing:
                stack.enter_context(shown(thing, scene))
            else:
                scene.collection.objects.link(stand)
        stage = Stage(scene, stands, bpy.context.view_layer)
        updated = stack.enter_context(timeline.updates(scene))
        updated.update(stands.values())
        for frame in timeline.at_frames(scene, range(min(scene.frame_start, frames[0]), frames[-1] + 1)):
            if frame >= frames[0]:  # those before are played
                yield stage, updated
                updated.clear()


@contextlib.contextmanager
def apart(scene, things, tree=None):
    """Give a stage in a scene of its own, which is taken away afterwards."""
    held = bpy.data.scenes.new("MPM pass")
    try:
        for name in SCENE:
            setattr(held, name, getattr(scene, name))
        for name in RENDER:
            setattr(held.render, name, getattr(scene.render, name))
        held.render.simplify_subdivision = scene.render.simplify_subdivision_render
        for name in ("system", "scale_length"):
            setattr(held.unit_settings, name, getattr(scene.unit_settings, name))
        for name, value in scene.items():  # drivers may read the artist's own properties
            with contextlib.suppress(TypeError):
                held[name] = value
        if tree is not None:
            held["MPM graph"] = tree  # Blender evaluates what a scene refers to
        with _stand_ins(things) as stands:
            for thing in dict.fromkeys([*stands.values(), *_beside(scene, things)]):
                held.collection.objects.link(thing)
            yield Stage(held, stands, held.view_layers[0])
    finally:
        bpy.data.scenes.remove(held)


@contextlib.contextmanager
def _stand_ins(things, keep=lambda thing: False):
    """Give the object that stands for each of some objects; those that were made are removed afterwards."""
    copies = []
    try:
        yield {thing: thing if keep(thing) else _stand_in(thing, copies) for thing in things}
    finally:
        for copy in copies:
            data = copy.data
            bpy.data.objects.remove(copy)
            if data is not None and not data.users:
                bpy.data.batch_remove([data])


def _stand_in(thing, copies):
    """Return an object that has in the viewport the surface that a render has of one: itself, or a copy, which is noted."""
    curve = thing.type in ("CURVE", "SURFACE", "FONT") and (
        thing.data.render_resolution_u not in (0, thing.data.resolution_u)
        or thing.data.render_resolution_v not in (0, thing.data.resolution_v)
    )
    if not (thing.hide_viewport or curve or any(_differs(each) for each in thing.modifiers)):
        return thing
    copy = thing.copy()
    copies.append(copy)
    copy.hide_viewport = False
    for modifier in copy.modifiers:
        modifier.show_viewport = modifier.show_render
        for seen, rendered in LEVELS:
            if hasattr(modifier, seen) and hasattr(modifier, rendered):
                setattr(modifier, seen, getattr(modifier, rendered))
    if curve:
        copy.data = thing.data.copy()
        copy.data.resolution_u = thing.data.render_resolution_u or thing.data.resolution_u
        copy.data.resolution_v = thing.data.render_resolution_v or thing.data.resolution_v
    return copy


def _differs(modifier):
    pairs = [(getattr(modifier, seen, None), getattr(modifier, rendered, None)) for seen, rendered in LEVELS]
    return modifier.show_viewport != modifier.show_render or any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _beside(scene, things):
    """Return what Blender must find in the same scene: children that vertices and faces copy, and the family of a metaball."""
    found = [child for thing in things if thing.instance_type in ("VERTS", "FACES") for child in thing.children_recursive]
    if any(thing.type == "META" for thing in things):
        found += [thing for thing in scene.objects if thing.type == "META"]
    return found


def _meets_rigid_bodies(stage, scene):
    """Return whether a rigid body that is simulated has a say in what is evaluated."""
    world = scene.rigidbody_world
    if world is None or not world.enabled:
        return False
    bodies = [each.original.rigid_body for each in stage.depsgraph.ids if isinstance(each, bpy.types.Object)]
    return any(body is not None and body.type == "ACTIVE" and body.enabled for body in bodies)


def _copies_simulation(stage):
    return any(stand is not thing and simulations.simulates(thing) for thing, stand in stage.stands.items())


@contextlib.contextmanager
def shown(thing, scene):
    """Let an object be evaluated in the artist's scene for a while, whatever hides it."""
    layer, linked, hidden, off = bpy.context.view_layer, False, None, thing.hide_viewport
    try:
        with unkeyed.kept():  # what comes into view is evaluated
            thing.hide_viewport = False
            if layer.objects.get(thing.name) is thing:
                hidden = thing.hide_get()
                thing.hide_set(False)
            if not thing.visible_get() and scene.collection.objects.get(thing.name) is not thing:
                scene.collection.objects.link(thing)
                linked = True
            layer.update()
        yield
    finally:
        with unkeyed.kept():
            if linked:
                scene.collection.objects.unlink(thing)
            if hidden is not None:
                thing.hide_set(hidden)
            thing.hide_viewport = off
            layer.update()
