"""Cooked frames in the scene: points, meshes and volumes that follow the cache, with the artist's materials."""

import contextlib
import json
import os
import re
import uuid
from pathlib import Path

import bpy

from . import environment, looks, places, point_materials, results, revisions, rigid_bodies, unkeyed
from .point_materials import MARK
from .results import OWNER

SHOWN = ("POINTCLOUD", "MESH", "VOLUME")
DATA = {"POINTCLOUD": "pointclouds", "MESH": "meshes", "VOLUME": "volumes", "CAMERA": "cameras", "LIGHT": "lights"}
IMPORT = {
    "set_frame_range": False,
    "import_cameras": False,
    "import_lights": False,
    "import_materials": True,
    "import_usd_preview": True,
    "mtl_name_collision_mode": "REFERENCE_EXISTING",
    "create_world_material": False,
    "relative_path": True,
    "import_proxy": True,  # a cache hides all but one form of its matter; here the artist chooses
    "import_visible_only": False,
}


class CacheFault(Exception):
    """A cache that cannot be shown; the message says why."""


def frames_of(revision):
    """Return the whole frames of a revision folder, ascending."""
    offset = _frame_offset(Path(revision))
    names = (path.name.split(".")[0] for path in (Path(revision) / "frames").glob("[!.]*.commit.json"))
    return sorted(int(name) - offset for name in names if name.isdigit())


def show(tree, revision, scene, frames):
    """Show the frames of a revision folder: bring it in, point what is there to it, or read what is new in it.

    Returns whether objects have come in or follow other files.

    Raises:
        CacheFault: Blender cannot read it.
    """
    if environment.lacks("usd"):
        raise CacheFault(
            f"This Blender was built without USD and shows no caches; {environment.OTHER_BUILD}. They are in {revision}"
        )
    with unkeyed.kept():  # an import evaluates the scene
        changed = _follow(tree, Path(revision), scene, frames)
        scene.view_layers[0].update()
    tree.revision = str(revision)
    return changed


def _follow(tree, revision, scene, frames):
    """Let a tree's objects in a scene follow a revision folder; return whether any came in or followed others before."""
    stages = sorted(path for path in revision.glob("*.usda") if not path.name.startswith("."))
    holder, changed = collection_of(tree, scene), False
    for stage in stages:
        ours = objects_of(holder, stage.stem)
        files = {Path(bpy.path.abspath(cache.filepath)) for cache in _cache_files(ours)}
        volumes = [thing for thing in ours.values() if thing.type == "VOLUME"]
        if files == {stage} and all(_lies_in(volume, stage.parent) for volume in volumes):
            for cache in _cache_files(ours):
                _reload(cache)
        else:
            bring_in(tree, stage, holder, scene, ours)
            changed = True
        for thing in objects_of(holder, stage.stem).values():
            if thing.type == "VOLUME":
                _span(thing.data, frames, _frame_offset(stage.parent))
    found = [thing for stage in stages for thing in objects_of(holder, stage.stem).values()]
    results.offer(tree, [thing for thing in found if not thing.name.startswith("collider_")])
    return changed


def shown_folder(tree):
    """Return the revision folder whose frames a tree's objects show, wherever it has been moved; None where there is none.

    Where the objects do not say, it is that of the tree's last cook.
    """
    prefix, found = f"{tree.get(MARK)}/", set()
    for thing in bpy.data.objects:
        if str(thing.get(MARK, "")).startswith(prefix):
            modifier = cache_modifier(thing)
            block = thing.data if thing.type == "VOLUME" else modifier and modifier.cache_file
            if block:
                parents = Path(os.path.normpath(bpy.path.abspath(block.filepath))).parents
                found.update([each for each in parents if re.fullmatch("r[0-9]+", each.name)][:1])
    if len(found) == 1:
        return found.pop()
    return Path(tree.revision) if tree.revision else None


def shown_revision(tree):
    """Return the name of the cook that is shown, its path where the graph has another folder; "" where there is none: the newest.

    Raises:
        CacheFault: It is not there: its folder was moved.
    """
    path = shown_folder(tree)
    if path is None:
        return ""
    if path in revisions.found(places.out_path(tree)):
        return path.name
    if not (path / "cook.json").is_file():
        raise CacheFault(f"The cook that is shown, {path}, is not there; show one of the panel Caches first")
    return str(path.resolve())


def collection_of(tree, scene):
    """Return the collection that holds a tree's caches in a scene; made when there is none."""
    name = tree.get(MARK)
    holder = next((each for each in bpy.data.collections if name and each.get(MARK) == name), None)
    if holder is None or holder.get(OWNER) != tree:  # the tree is new, or a copy of the one that the collection belongs to
        name = tree[MARK] = uuid.uuid4().hex
        holder = bpy.data.collections.new(tree.name)
        holder[MARK], holder[OWNER] = name, tree
    if holder.name not in scene.collection.children:
        scene.collection.children.link(holder)
    if scene.get(followed(holder)) != tree:
        scene[followed(holder)] = tree
    return holder


def followed(holder):
    """Return the property of a scene that names a collection's tree.

    Blender plays the keys of a tree that a scene refers to; 4.2 and 5.0 do not play those of one that a collection refers to.
    """
    return f"{OWNER}_{holder[MARK]}"


def take_away(tree):
    """Remove the collection of a tree with all that it has brought in."""
    for holder in [each for each in bpy.data.collections if each.get(MARK) and each.get(MARK) == tree.get(MARK)]:
        for thing in [each for each in bpy.data.objects if str(each.get(MARK, "")).startswith(f"{holder[MARK]}/")]:
            _remove(thing)
        for scene in bpy.data.scenes:
            if followed(holder) in scene:
                del scene[followed(holder)]
        bpy.data.collections.remove(holder)
    _drop_unused_caches()


def objects_of(holder, stage):
    """Return our objects of a stage by their key, those that the artist has moved to other collections included."""
    prefix = f"{holder[MARK]}/{stage}/"
    marked = {str(thing.get(MARK, "")): thing for thing in bpy.data.objects}
    return {key[len(prefix) :]: thing for key, thing in marked.items() if key.startswith(prefix)}


def _cache_files(things):
    found = []
    for thing in things.values():
        modifier = cache_modifier(thing)
        if modifier and modifier.cache_file and modifier.cache_file not in found:
            found.append(modifier.cache_file)
    return found


def cache_modifier(thing):
    """Return the modifier that lets an object follow a cache, or None."""
    return next((each for each in thing.modifiers if each.type == "MESH_SEQUENCE_CACHE"), None)


def _lies_in(volume, folder):
    return folder in Path(bpy.path.abspath(volume.data.filepath)).parents


def _reload(cache):
    """Let Blender read a cache file again: frames have been added to it."""
    try:
        with bpy.context.temp_override(edit_cachefile=cache):
            bpy.ops.cachefile.reload()
    except RuntimeError as error:
        raise CacheFault(f"{cache.filepath}: Blender cannot read it again ({error})") from error


def _span(volume, frames, offset):
    """Tell Blender which frames a volume has: it counts up the digits of the first file's name by itself."""
    first = min(frames)
    volume.is_sequence, volume.sequence_mode = True, "CLIP"
    volume.frame_start, volume.frame_offset, volume.frame_duration = first, first + offset - 1, len(frames)


# ---------------------------------------------------------------- bringing in
def bring_in(tree, stage, holder, scene, ours):
    """Import a stage; what is there already keeps its object, its materials and all else, and follows the new files.

    Args:
        tree: The graph.
        stage: The USD file.
        holder: Collection of the tree.
        scene: The scene.
        ours: Objects of the same stage that are there, by key.
    """
    new = _imported(stage, scene)
    offset = _frame_offset(stage.parent)
    for thing in sorted(new, key=lambda each: each.name):
        key = f"{thing.type}:{re.sub(r'[.][0-9]{3,}$', '', thing.name)}"
        old = ours.pop(key, None)
        if old is not None and old.type == thing.type:
            _repoint(old, thing, stage)
            _remove(thing)
            continue
        for collection in list(thing.users_collection):
            collection.objects.unlink(thing)
        holder.objects.link(thing)
        thing[MARK] = f"{holder[MARK]}/{stage.stem}/{key}"
        _dress(thing, tree)
    for old in ours.values():
        _remove(old)
    things = objects_of(holder, stage.stem)
    for cache in _cache_files(things):
        cache.frame_offset = -offset
        _make_relative(cache)
    for thing in things.values():
        if thing.type == "VOLUME":
            _make_relative(thing.data)
    _choose_what_renders([thing for thing in things.values() if thing in new], things)
    _drop_unused_caches()


def _make_relative(block):
    """Let a file be found after the folder has been moved; Blender 4.2 imports a stage with its whole path."""
    if bpy.data.filepath and not block.filepath.startswith("//"):
        with contextlib.suppress(ValueError):  # on another drive
            block.filepath = bpy.path.relpath(block.filepath)


def _imported(stage, scene):
    """Import a stage into a scene; return the new objects."""
    before = set(bpy.data.objects)
    known = set(bpy.ops.wm.usd_import.get_rna_type().properties.keys())
    options = {name: value for name, value in IMPORT.items() if name in known}
    if not bpy.data.filepath:
        options.pop("relative_path", None)
    if "prim_path_mask" in known:  # camera, lights and floor stand beside it
        options["prim_path_mask"] = f"/{stage.stem}"
    units = scene.unit_settings
    if units.system != "NONE" and units.scale_length != 1.0:
        options["scale"] = 1.0 / units.scale_length
    layer = scene.view_layers[0]
    layer.update()  # it may still list what has just been removed
    selected, active = [thing for thing in layer.objects if thing.select_get(view_layer=layer)], layer.objects.active
    try:
        with bpy.context.temp_override(**_place(scene)):
            bpy.ops.wm.usd_import(filepath=str(stage), **options)
    except RuntimeError as error:
        raise CacheFault(f"{stage}: Blender cannot import it ({error})") from error
    new = _only_shown([thing for thing in bpy.data.objects if thing not in before])
    layer.update()
    for thing in layer.objects:
        thing.select_set(thing in selected, view_layer=layer)
    layer.objects.active = active
    return new


def _only_shown(new):
    """Remove what the artist's scene has itself (camera, lights) and empties that hold nothing; return the rest."""
    kept = set()
    for thing in new:
        while thing is not None and (thing.type in SHOWN or kept & set(thing.children)):
            kept.add(thing)
            thing = thing.parent
    for thing in new:
        if thing not in kept:
            _remove(thing)
    return list(kept)


def _place(scene):
    """Return the context that an importer needs, also when it is called from a timer."""
    windows = bpy.context.window_manager.windows if bpy.context.window_manager else []
    window = next((each for each in windows if each.scene == scene), None)
    return {"window": window} if window else {"scene": scene, "view_layer": scene.view_layers[0]}


def _frame_offset(revision):
    """Return what is added to frame numbers in file names (shots that begin below zero)."""
    try:
        return int(json.loads((revision / "cook.json").read_text(encoding="utf-8"))["frame_offset"])
    except (OSError, ValueError, KeyError):
        return 0


def _repoint(old, new, stage):
    """Let an object follow the files that a newly imported one follows."""
    mine, theirs = cache_modifier(old), cache_modifier(new)
    if theirs is not None:
        if mine is None:  # what was imported when it had a single frame does not move
            mine = old.modifiers.new(theirs.name, "MESH_SEQUENCE_CACHE")
            old.modifiers.move(len(old.modifiers) - 1, 0)
        mine.cache_file, mine.object_path = theirs.cache_file, theirs.object_path
    elif mine is not None and mine.cache_file is not None:
        mine.cache_file.filepath = str(stage)
    if old.type == "VOLUME":
        old.data.filepath = new.data.filepath


def _remove(thing):
    data, kind = thing.data, thing.type
    bpy.data.objects.remove(thing)
    if data is not None and data.users == 0 and kind in DATA:
        getattr(bpy.data, DATA[kind]).remove(data)


def _drop_unused_caches():
    for cache in list(bpy.data.cache_files):
        if cache.users == 0:
            bpy.data.batch_remove([cache])


# ---------------------------------------------------------------- looks
def _dress(thing, tree):
    """Give a new object a material in a slot of the object: one of the data is lost when the number of points changes."""
    if thing.type not in SHOWN:
        return
    if thing.type == "VOLUME":
        thing.data.velocity_unit = "SECOND"
        grid = velocity_grid(thing.data)
        if grid:
            thing.data.velocity_grid = grid
    if not thing.data.materials:
        thing.data.materials.append(None)
    for slot in thing.material_slots:
        material = looks.preset_material(thing, tree) or slot.material or looks.default_material(thing)
        slot.link = "OBJECT"
        slot.material = material
    point_materials.hold(thing)
    if thing.name.startswith("collider_") and _stands_for_object(thing, tree):
        thing.hide_render = thing.hide_viewport = True


def velocity_grid(volume):
    """Return the name of a volume's vector grid of velocities, "" when it has none."""
    volume.grids.load()
    vectors = [grid.name for grid in volume.grids if grid.data_type.startswith("VECTOR")]
    return next((name for name in ("velocity", "vel", "v") if name in vectors), vectors[0] if vectors else "")


def _stands_for_object(thing, tree):
    """Return whether a collider of the cache is an object of the scene, which is there anyway; a solve moves others."""
    still = [node for node in tree.nodes if getattr(node, "scene_object", None) and not rigid_bodies.is_body(node)]
    names = {getattr(node, "k_name", "") for node in still}
    return re.sub(r"[.][0-9]{3,}$", "", thing.name)[len("collider_") :] in names


def _choose_what_renders(new, things):
    """Render the surface where there is one, else the points, else the volume; only of what has just come in."""
    kinds = {thing.type for thing in things.values() if not thing.name.startswith("collider_")}
    for thing in new:
        if thing.type == "POINTCLOUD":
            thing.hide_render = "MESH" in kinds
        elif thing.type == "VOLUME":
            thing.hide_render = bool(kinds & {"MESH", "POINTCLOUD"})
