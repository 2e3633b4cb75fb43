"""Nothing of the artist's changes: every value of the file, keyed or not, is the same before and after every operator."""

from __future__ import annotations

from blender_process import in_blender

SCENE = """
OURS = ("[kept]", "[cache]", "[particles]", "[MPM Result kept]", " cache", " particles", ".collection_children")
CACHES = ("].cache_file",)
SKIPPED = set('''rna_type bl_rna animation_data depsgraph view_layers keyframe_points edit_bones tool_settings is_updated tag
    is_updated_data users session_uid vertices edges loops polygons attributes uv_layers uv_layer_clone uv_layer_stencil
    dimensions matrix_local matrix_world'''.split())
KINDS = ("objects", "lights", "cameras", "meshes", "shape_keys", "materials", "worlds", "scenes", "armatures", "collections",
         "actions", "node_groups", "curves", "textures")

def plain(value):
    if hasattr(value, "__len__") and not isinstance(value, str):
        return [plain(each) for each in value]
    return round(value, 5) if isinstance(value, float) else str(value)

def walk(found, place, struct, seen, depth=0):
    if struct.as_pointer() in seen or depth > 5:
        return
    seen.add(struct.as_pointer())
    for prop in struct.bl_rna.properties:
        name = prop.identifier
        if name in SKIPPED or prop.is_readonly and prop.type not in ("POINTER", "COLLECTION"):
            continue
        try:
            value = getattr(struct, name)
        except Exception:
            continue
        if prop.type == "COLLECTION":
            for index, each in enumerate(value):
                if isinstance(each, bpy.types.ID) and not each.is_embedded_data:
                    found[f"{place}.{name}[{each.name}]"] = ""
                elif hasattr(each, "as_pointer"):
                    walk(found, f"{place}.{name}[{getattr(each, 'name', index)}]", each, seen, depth + 1)
        elif prop.type != "POINTER":
            found[f"{place}.{name}"] = plain(value)
        elif isinstance(value, bpy.types.ID) and not value.is_embedded_data:
            found[f"{place}.{name}"] = value.name
        elif value is not None and hasattr(value, "as_pointer"):
            walk(found, f"{place}.{name}", value, seen, depth + 1)
    if hasattr(struct, "keys"):
        try:
            for key in struct.keys():
                if isinstance(struct[key], (int, float, str)):
                    found[f"{place}[{key}]"] = plain(struct[key])
        except TypeError:
            pass

def snapshot():
    found, seen = {}, set()
    for kind in KINDS:
        for each in getattr(bpy.data, kind):
            if not each.bl_rna.identifier.startswith("Mpm"):
                walk(found, f"{kind}[{each.name}]", each, seen)
    for thing in scene.view_layers[0].objects:
        found[f"selected {thing.name}"], found[f"hidden {thing.name}"] = thing.select_get(), thing.hide_get()
    found["active"] = str(scene.view_layers[0].objects.active)
    return found

scene = bpy.context.scene
scene.frame_start = scene.frame_end = 1  # the graph is longer
bpy.ops.wm.save_as_mainfile(filepath=given["blend"])
def cube(name, **values):
    bpy.ops.mesh.primitive_cube_add(size=0.3)
    thing = bpy.context.object
    thing.name = name
    for key, value in values.items():
        setattr(thing, key, value)
    return thing
def keyed(owner, path, first, last, own):
    for frame, value in ((1, first), (2, last)):
        owner.path_resolve(path)  # it is there
        set_value(owner, path, value)
        owner.keyframe_insert(path, frame=frame)
    return lambda: set_value(owner, path, own)
def set_value(owner, path, value):
    if path.endswith('"]'):
        owner[path[2:-2]] = value
    else:
        setattr(owner, path, value)

prop, met, body, stone = cube("Prop"), cube("Met", location=(0.0, 0.0, -0.4)), cube("Body"), cube("Stone", location=(3.0, 0.0, 0.1))
unkeyed = cube("Unkeyed", location=(9.0, 0.0, 0.0))
edits = [keyed(prop, "location", (3.0, 0.0, 0.0), (4.0, 0.0, 0.0), (0.7, 0.0, 0.0)),
         keyed(met, "rotation_euler", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.3, 0.0, 0.0)),
         keyed(body, "location", (0.0, 0.0, 1.0), (0.0, 0.0, 1.5), (0.0, 0.2, 1.2)),
         keyed(prop, "scale", (1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (1.5, 0.5, 1.0))]
prop["weight"] = 1.0
edits.append(keyed(prop, '["weight"]', 1.0, 2.0, 5.0))
limit = prop.constraints.new("LIMIT_SCALE")
edits.append(keyed(limit, "influence", 0.0, 1.0, 0.37))
lamp = bpy.data.objects.new("Lamp", bpy.data.lights.new("Lamp", "POINT"))
camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
for each in (lamp, camera):
    scene.collection.objects.link(each)
edits += [keyed(lamp.data, "energy", 10.0, 20.0, 500.0),
          keyed(lamp.data, "color", (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
          keyed(camera.data, "lens", 35.0, 50.0, 85.0)]
for thing in (met, unkeyed, prop, body):
    thing.shape_key_add(name="Basis")
    wide = thing.shape_key_add(name="Wide")
    for point in wide.data:
        point.co.x *= 1.2
    edits.append(keyed(wide, "value", 0.0, 0.2, 0.9))
wave = prop.modifiers.new("Wave", "WAVE")
edits.append(keyed(wave, "height", 0.1, 0.2, 0.8))
red = bpy.data.materials.new("Red")
red.use_nodes = True
unkeyed.data.materials.append(red)
shade = red.node_tree.nodes.new("ShaderNodeValue")
edits.append(keyed(shade.outputs[0], "default_value", 0.0, 1.0, 7.0))
edits.append(keyed(red, "roughness", 0.0, 1.0, 0.25))
world = scene.world = bpy.data.worlds.new("World")
edits.append(keyed(world, "color", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (0.5, 0.2, 0.1)))
edits.append(keyed(scene.render, "motion_blur_shutter", 0.1, 0.2, 0.9))
edits.append(keyed(scene, "gravity", (0.0, 0.0, -9.81), (0.0, 0.0, -1.0), (0.0, 0.0, -9.81)))
rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
scene.collection.objects.link(rig)
scene.view_layers[0].objects.active = rig
bpy.ops.object.mode_set(mode="EDIT")
bone = rig.data.edit_bones.new("Bone.dot")
bone.tail = (0.0, 0.0, 1.0)
bpy.ops.object.mode_set(mode="OBJECT")
edits.append(keyed(rig.pose.bones[0], "location", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 2.0, 0.0)))
nla = cube("Strips")
keyed(nla, "location", (0.0, 5.0, 0.0), (0.0, 6.0, 0.0), None)
track = nla.animation_data.nla_tracks.new()
track.strips.new("Strip", 1, nla.animation_data.action)
nla.animation_data.action = None
edits.append(lambda: setattr(nla, "location", (0.0, 7.5, 0.0)))
driven = cube("Driven")
curve = driven.driver_add("location", 0).driver
variable = curve.variables.new()
variable.name = "x"
variable.targets[0].id, variable.targets[0].data_path = prop, "location.x"
curve.expression = "x + 1"
met.hide_viewport = True
body.hide_set(True)
for thing in scene.view_layers[0].objects:
    thing.select_set(thing in (prop, lamp))
scene.view_layers[0].objects.active = prop
tree = trees.new_tree(trees.GRAPH_TREE, "kept")
tree.k_cell_size, tree.k_end = 0.15, 2
fall, cache = add(tree, "solve", "fall"), add(tree, "write_cache", "cache")
nodes.connect(fall, "particles", cache, "particles")
scene_input.add_source(tree, body, fall)
scene_input.add_collider(tree, met, fall)
scene.frame_set(1)

def edit():
    for each in edits:
        each()
    unkeyed.location.z, unkeyed["free"] = 0.77, 3.0
    scene.view_layers[0].update()

def changed(what, call, allowed=CACHES):
    edit()
    before = snapshot()
    call()
    scene.view_layers[0].update()
    after = snapshot()
    answer[what] = sorted(f"{key}: {before[key]} -> {after.get(key)}" for key in before
                          if before[key] != after.get(key) and not any(part in key for part in allowed))

def quick(cooks):
    body.hide_set(False)
    def press():
        with bpy.context.temp_override(object=body, active_object=body, selected_objects=[body, met]):
            bpy.ops.mpm_nodes.quick(preset="jelly", particles=100, cook=False)
        made = [each for each in problems.graph_trees(bpy.data) if each != tree][-1]
        if cooks:
            made.k_end = 2
            cook.start(made, scene)
            answer["quick cooked"] = cook.wait(made, 300)
    return press

def cooked(**how):
    def press():
        bpy.ops.mpm_nodes.cook(tree="kept", **how)
        answer.setdefault("states", []).append(cook.wait(tree, 300))
    return press

def again():
    scene.frame_set(2)
    def press():
        bpy.ops.mpm_nodes.cook_again(tree="kept")
        answer["states"].append(cook.wait(tree, 300))
    changed("cook again", press)
    scene.frame_set(1)

def operator(name, **how):
    return lambda: getattr(bpy.ops.mpm_nodes, name)(tree="kept", **how)
"""

SWEEP = """
changed("check", operator("validate"))
answer["status"] = tree.status, problems_of(tree)
changed("save", operator("save_graph", filepath=os.path.join(given["folder"], "saved.json")))
changed("cook", cooked())
changed("show newest", operator("show_frames"))
changed("cook another", cooked())
changed("resume", cooked(resume=True))
changed("show revision", operator("show_revision", revision="r001"))
again()
cache_import.take_away(tree)
changed("show after taking away", operator("show_frames"))
changed("compare", operator("compare_revisions", revision="r001"))
changed("delete", operator("delete_revision", revision=tree.revision[-4:]), (*CACHES, *OURS))
changed("add", operator("add_objects", role="COLLIDER"))
changed("draw", lambda: [guides.outlines(each, scene) for each in problems.graph_trees(bpy.data)])
hides = (*CACHES, "objects[Body].hide_render", "hidden Body")
changed("quick", quick(False), hides)
changed("quick cooks", quick(True), hides)
"""


def test_no_operator_changes_what_is_the_artists(tmp_path):
    """Values moved without a key, selection, visibility and frame range outlive every operator, and the frames that come in."""
    seen = in_blender(SCENE + SWEEP, blend=str(tmp_path / "kept.blend"), folder=str(tmp_path))
    assert seen.pop("states") == ["done"] * 4 and seen.pop("quick cooked") == "done"
    status, said = seen.pop("status")
    assert status.startswith("The graph is valid") and said == {}, (status, said)
    assert len(seen) == 15
    changed = [f"{what}: {line}" for what, lines in seen.items() for line in lines]
    assert not changed, "\n".join(changed[:40])
