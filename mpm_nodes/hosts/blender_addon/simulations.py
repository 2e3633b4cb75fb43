"""Simulations of Blender that objects of a graph hang on: what is written must be what plays.

Blender simulates frame by frame in the scene that plays. A rigid body or cloth that is not baked stands still where frames are read
in another way, so it is refused with the cure. Whether a simulation of geometry nodes is baked Blender does not tell; it keeps the
frames that it has played, so these are played before they are read.
"""

import bpy

from . import timeline

CACHES = {
    "CLOTH": ("cloth", "Physics properties, Cloth, Cache, Bake"),
    "SOFT_BODY": ("soft body", "Physics properties, Soft Body, Cache, Bake"),
}
"""Modifiers with a point cache: what they are called, and where it is baked."""

KEPT = (*CACHES, "DYNAMIC_PAINT", "FLUID", "PARTICLE_SYSTEM")
"""Modifiers that keep frames which have been simulated."""

FOLLOWERS = ("EXPLODE", "PARTICLE_INSTANCE")
"""Modifiers that make a surface of particles."""


def dependencies(things):
    """Return, by object, all data that it hangs on, itself included."""
    used = {}
    for block, users in bpy.data.user_map().items():
        for user in users:
            used.setdefault(user, set()).add(block)
    found = {}
    for thing in things:
        seen, ahead = {thing}, [thing]
        while ahead:
            new = {each for each in used.get(ahead.pop(), ()) if not isinstance(each, bpy.types.Scene)} - seen
            seen |= new
            ahead += new
        found[thing] = seen
    return found


def unbaked(blocks, scene):
    """Return what is simulated among some data-blocks and not baked, with the cure; "" where there is nothing."""
    objects = sorted((each for each in blocks if isinstance(each, bpy.types.Object)), key=lambda each: each.name)
    follow = any(modifier.type in FOLLOWERS for thing in objects for modifier in thing.modifiers)
    for thing in objects:
        kind, where = _rigid_body(thing, scene) or next(
            filter(None, (_modifier(each, follow) for each in thing.modifiers)), ("", "")
        )
        if kind:
            return (
                f"{thing.name} is simulated ({kind}) and not baked, so that it would not move as it plays; bake it first: {where}"
            )
    return ""


def _rigid_body(thing, scene):
    body, world = thing.rigid_body, scene.rigidbody_world
    if body is None or body.type != "ACTIVE" or not body.enabled or body.kinematic or world is None or not world.enabled:
        return None
    return None if world.point_cache.is_baked else ("rigid body", "Scene properties, Rigid Body World, Cache, Bake")


def _modifier(modifier, follow):
    """Return (what a modifier simulates, where it is baked); None where it is baked, or does not simulate a surface."""
    if not modifier.show_render:
        return None
    if modifier.type in CACHES:
        return None if modifier.point_cache.is_baked else CACHES[modifier.type]
    if modifier.type == "DYNAMIC_PAINT" and modifier.canvas_settings:
        surfaces = [each for each in modifier.canvas_settings.canvas_surfaces if each.is_active]
        moved = [each for each in surfaces if each.surface_format == "VERTEX" and each.surface_type in ("DISPLACE", "WAVE")]
        if not all(each.point_cache.is_baked for each in moved):
            return "dynamic paint", "Physics properties, Dynamic Paint, Cache, Bake"
    if modifier.type == "FLUID" and modifier.fluid_type == "DOMAIN":
        domain = modifier.domain_settings
        if domain.domain_type == "LIQUID" and domain.use_mesh and not (domain.has_cache_baked_mesh or domain.has_cache_baked_any):
            return "fluid", "Physics properties, Fluid, Cache, Type All, Bake All"
    if modifier.type == "PARTICLE_SYSTEM":
        system = modifier.particle_system
        still = system.settings.type == "HAIR" and not system.use_hair_dynamics
        drawn = follow or system.settings.render_type in ("OBJECT", "COLLECTION")
        if drawn and not still and not system.point_cache.is_baked:
            return "particles", "Particle properties, Cache, Bake"
    return None


def play(blocks, scene, last):
    """Play the simulations of geometry nodes among some data-blocks up to a frame, so that Blender has their frames."""
    found = [thing for thing in blocks if isinstance(thing, bpy.types.Object) and any(map(_has_zone, thing.modifiers))]
    if not found:
        return
    own = [bake.frame_start for thing in found for bake in _bakes(thing) if bake.use_custom_simulation_frame_range]
    for _ in timeline.at_frames(scene, range(min([scene.frame_start, *own]), last + 1)):
        pass


def simulates(thing):
    """Return whether a modifier of an object keeps frames that Blender has simulated."""
    return any(modifier.type in KEPT or _has_zone(modifier) for modifier in thing.modifiers)


def _bakes(thing):
    return [bake for modifier in thing.modifiers if modifier.type == "NODES" for bake in modifier.bakes]


def _has_zone(modifier):
    return (
        modifier.type == "NODES"
        and modifier.show_render
        and any(bake.node is not None and bake.node.bl_idname == "GeometryNodeSimulationOutput" for bake in modifier.bakes)
    )
