"""Render frames of a USD stage with Cycles: `python THIS job.json`, run with Blender's Python in its own process.

Imports nothing of this package: bpy brings its own copy of the USD libraries.
"""

import json
import math
import os
import sys
import traceback

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from blender_materials import add_grain, computed, draw_pattern, plain_material, read_attribute, stick_pattern
from blender_set import focus, place_set, raise_set

sys.path.pop()  # Blender has modules of the same names as others that lie here


def main(path: str) -> None:
    """Import the stage that the job names, dress it, and render its frames."""
    with open(path, encoding="utf-8") as stream:
        job = json.load(stream)
    import bpy
    from mathutils import Matrix

    bpy.ops.wm.read_factory_settings(use_empty=True)
    forms = {"import_proxy": True, "import_visible_only": False} if job["every_form"] else {}
    bpy.ops.wm.usd_import(filepath=job["stage"], set_frame_range=False, import_materials=True, import_lights=True, **forms)
    if job["floor"]:  # `_surroundings` lays one for all caches that are compared
        bpy.data.objects.remove(bpy.data.objects[job["floor"]])
    own = next((item for item in bpy.data.objects if item.type == "CAMERA"), None)
    for lamp in (item for item in bpy.data.objects if item.type == "LIGHT" and item.data.type == "SUN"):
        lamp.matrix_world = Matrix.Rotation(job["sun_turn"], 4, "Z") @ lamp.matrix_world
    scene = bpy.context.scene
    _settings(bpy, scene, job)
    if job["set"]:
        raise_set(bpy, scene, job)
    if scene.world is None or not job["set"]:
        _lights(bpy, scene)
    if not job["set"]:
        _surroundings(bpy, scene, job)
    _finish_looks(bpy, job)
    for done, picture in enumerate(job["pictures"]):
        scene.frame_set(picture["frame"])
        _camera(bpy, scene, job, own, picture["camera"])
        place_set(bpy, picture)
        focus(bpy, picture)
        _dress(bpy, scene, job, picture["floors"])
        scene.render.filepath = picture["image"]
        bpy.ops.render.render(write_still=True)
        print(f"MPM_FRAME {done + 1}", flush=True)


def _settings(bpy, scene, job) -> None:
    scene.render.engine = "CYCLES"
    scene.cycles.device = "CPU"
    scene.cycles.samples = job["samples"]
    scene.cycles.use_denoising = True
    scene.render.resolution_x, scene.render.resolution_y = job["size"]
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "PNG"
    scene.view_settings.view_transform = "Standard"
    if job["shutter"]:
        scene.render.use_motion_blur = True
        scene.render.motion_blur_shutter = job["shutter"]
        scene.render.motion_blur_position = "CENTER"


def _camera(bpy, scene, job, own, given) -> None:
    """Use the picture's camera, whose axes are Y up, where it has one, else the stage's own (Blender's axes are Z up)."""
    from mathutils import Matrix

    found = own
    if given is not None:
        found = bpy.data.objects.get("framing")
        if found is None:
            found = bpy.data.objects.new("framing", bpy.data.cameras.new("framing"))
            scene.collection.objects.link(found)
        axes = [given["right"], given["up"], [-c for c in given["forward"]], given["eye"]]
        columns = [_z_up(axis) for axis in axes]
        found.matrix_world = Matrix([[columns[c][r] for c in range(4)] for r in range(3)] + [[0, 0, 0, 1]])
        found.data.sensor_fit = "HORIZONTAL"
        found.data.lens = given["focal"] * found.data.sensor_width
    if found is not None:
        found.data.clip_end = max(found.data.clip_end, 40.0 * job["extent"])
        found.data.clip_start = min(found.data.clip_start, 0.01 * job["extent"])
    scene.camera = found


def _z_up(vector):
    return [vector[0], -vector[2], vector[1]]


def _lights(bpy, scene) -> None:
    """Add a sun and a sky where there is none."""
    if not any(item.type == "LIGHT" for item in scene.objects):
        lamp = bpy.data.lights.new("sun", "SUN")
        lamp.energy, lamp.angle = 2.4, math.radians(3.0)
        sun = bpy.data.objects.new("sun", lamp)
        sun.rotation_euler = (math.radians(54.0), 0.0, math.radians(-23.0))
        scene.collection.objects.link(sun)
    if scene.world is None:  # a dome light of the stage has become a world
        scene.world = bpy.data.worlds.new("sky")
        scene.world.use_nodes = True
        tree = scene.world.node_tree
        background = tree.nodes.get("Background") or tree.nodes.new("ShaderNodeBackground")
        background.inputs[0].default_value = (0.62, 0.70, 0.82, 1.0)
        background.inputs[1].default_value = 0.35


def _surroundings(bpy, scene, job) -> None:
    """Show a sky, and add a ground."""
    _show_sky(scene.world.node_tree, job["sky"])
    reach = 60.0 * job["extent"]
    mesh = bpy.data.meshes.new("ground")
    corners = [(-reach, -reach, 0), (reach, -reach, 0), (reach, reach, 0), (-reach, reach, 0)]
    mesh.from_pydata(corners, [], [(0, 1, 2, 3)])
    ground = bpy.data.objects.new("ground", mesh)
    ground.location.z = job["ground"]
    ground.data.materials.append(_ground(bpy, job))
    _fade_ground(ground.data.materials[0].node_tree, job["sky"])
    scene.collection.objects.link(ground)


def _ground(bpy, job):
    """Return the material of the floor."""
    look = job["floor_look"]
    material = plain_material(bpy, "ground", look["colour"], look["roughness"])
    shader = next(node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    shader.inputs["Metallic"].default_value = look["metallic"]
    for socket, value in job["looks"].get(look["name"], {}).items():
        shader.inputs[socket].default_value = value
    draw_pattern(material.node_tree, shader, job["patterns"].get(look["name"]), job["checker"])
    return material


def _show_sky(tree, sky) -> None:
    """Let the camera see the sky of our own pictures in place of what lights the scene."""
    output = next(node for node in tree.nodes if node.type == "OUTPUT_WORLD")
    seen = tree.nodes.new("ShaderNodeBackground")
    tree.links.new(_sky_colour(tree, sky), seen.inputs["Color"])
    _mix(tree, output, seen.outputs["Background"], tree.nodes.new("ShaderNodeLightPath").outputs["Is Camera Ray"])


def _fade_ground(tree, sky) -> None:
    """Let the ground fade into the sky far from the camera, which sees no end of it."""
    output = next(node for node in tree.nodes if node.type == "OUTPUT_MATERIAL")
    far = tree.nodes.new("ShaderNodeEmission")
    tree.links.new(_sky_colour(tree, sky), far.inputs["Color"])
    fade = tree.nodes.new("ShaderNodeMapRange")
    fade.inputs["From Min"].default_value, fade.inputs["From Max"].default_value = sky["fade"]
    tree.links.new(tree.nodes.new("ShaderNodeCameraData").outputs["View Distance"], fade.inputs["Value"])
    seen = tree.nodes.new("ShaderNodeLightPath").outputs["Is Camera Ray"]
    _mix(tree, output, far.outputs["Emission"], computed(tree, "MULTIPLY", fade.outputs["Result"], seen))


def _sky_colour(tree, sky):
    """Return the colour of the sky, darker towards the lower edge of the picture."""
    place, parts = tree.nodes.new("ShaderNodeTexCoord"), tree.nodes.new("ShaderNodeSeparateXYZ")
    tree.links.new(place.outputs["Window"], parts.inputs["Vector"])
    share, colour = tree.nodes.new("ShaderNodeMapRange"), tree.nodes.new("ShaderNodeVectorMath")
    share.inputs["To Min"].default_value, share.inputs["To Max"].default_value = sky["shares"]
    tree.links.new(parts.outputs["Y"], share.inputs["Value"])
    colour.operation = "SCALE"
    colour.inputs[0].default_value = sky["colour"]
    tree.links.new(share.outputs["Result"], colour.inputs["Scale"])
    return colour.outputs["Vector"]


def _mix(tree, output, other, share) -> None:
    """Put another shader in the place of the one that an output shows, by a share."""
    mix = tree.nodes.new("ShaderNodeMixShader")
    tree.links.new(share, mix.inputs[0])
    tree.links.new(output.inputs["Surface"].links[0].from_socket, mix.inputs[1])
    tree.links.new(other, mix.inputs[2])
    tree.links.new(mix.outputs["Shader"], output.inputs["Surface"])


def _finish_looks(bpy, job) -> None:
    """Give imported materials what preview surfaces cannot say; those that show the matter's own colours keep them."""
    for material in bpy.data.materials:
        look, _, kind = material.name.split(".")[0].rpartition("_")
        nodes = material.node_tree.nodes if material.node_tree else ()
        shader = next((node for node in nodes if node.type == "BSDF_PRINCIPLED"), None)
        if shader is None or kind not in ("look", "painted"):
            continue
        for link in shader.inputs["Emission Color"].links:
            if getattr(link.from_node, "attribute_name", "") == "glow":
                material.node_tree.links.remove(link)  # computed for one white; `_let_glow` knows the white of this picture
                shader.inputs["Emission Strength"].default_value = 0.0  # it lights what has temperatures, and nothing else
        for socket, value in job["looks"].get(look, {}).items():
            if not shader.inputs[socket].is_linked:
                shader.inputs[socket].default_value = value
        if kind == "look":
            draw_pattern(material.node_tree, shader, job["patterns"].get(look), job["checker"])


def _dress(bpy, scene, job, floors) -> None:
    """Hide what is not to be seen, and give points the material that the import lost; slots of the object last.

    `floors` are the names of meshes in whose place the ground lies.
    """
    meshes = [item for item in scene.objects if item.type == "MESH" and not item.get("of_set")]
    surfaces = [item for item in meshes if _is_surface(item) and _faces(bpy, item)]
    clouds = [item for item in scene.objects if item.type == "POINTCLOUD"]
    take_surface = bool(surfaces) and (job["show"] == "surface" or not clouds)
    for item in scene.objects:
        if item.type == "VOLUME":
            item.hide_render = True
        elif item.type == "POINTCLOUD":
            item.hide_render = take_surface
            _assign(bpy, item, job, (0.95, 0.62, 0.16), _attribute(bpy, item, job))
            _let_glow(bpy, item, job)
        elif item.type == "MESH" and item.name != "ground" and not item.get("of_set"):
            item.hide_render = (_is_surface(item) and not take_surface) or item.name.split(".")[0] in floors
            shown = _attribute(bpy, item, job) if job["colour_by"] and _is_surface(item) else None
            if shown is not None:
                _assign(bpy, item, job, (0.95, 0.62, 0.16), shown)
            elif not any(slot.material for slot in item.material_slots):
                _assign(bpy, item, job, (0.95, 0.62, 0.16) if _is_surface(item) else (0.36, 0.42, 0.50))
            elif shown is None:
                _shade_parts(bpy, item, job["parts"].get(item.name.split(".")[0], ()))
                _roughen(bpy, item, job["grains"])
            _let_glow(bpy, item, job)


def _faces(bpy, item) -> int:
    """Return the faces of an object in this frame: its own data stay those of the frame that was imported."""
    return len(item.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.polygons)


def _is_surface(item) -> bool:
    return any(each is not None and each.name.lower().split(".")[0] in ("surface", "mesh", "skin") for each in (item, item.parent))


def _shade_parts(bpy, item, names) -> None:
    """Give each face the material of its first corner in every frame: Blender reads the faces of materials once, at the import.

    `names` are those of the materials, in the order that the attribute `material` counts.
    """
    if not names or "parts" in item.modifiers:
        return
    group = bpy.data.node_groups.new("parts", "GeometryNodeTree")
    for way in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=way, socket_type="NodeSocketGeometry")
    begin, end = group.nodes.new("NodeGroupInput"), group.nodes.new("NodeGroupOutput")
    source = group.nodes.new("GeometryNodeInputNamedAttribute")
    source.data_type = "INT"
    source.inputs["Name"].default_value = "material"
    corner, point = group.nodes.new("GeometryNodeCornersOfFace"), group.nodes.new("GeometryNodeVertexOfCorner")
    first = group.nodes.new("GeometryNodeFieldAtIndex")
    first.data_type, first.domain = "INT", "POINT"
    group.links.new(corner.outputs["Corner Index"], point.inputs["Corner Index"])
    group.links.new(point.outputs["Vertex Index"], first.inputs["Index"])
    group.links.new(source.outputs["Attribute"], first.inputs["Value"])
    geometry = begin.outputs["Geometry"]
    for number, name in enumerate(names):
        chosen, place = group.nodes.new("FunctionNodeCompare"), group.nodes.new("GeometryNodeSetMaterialIndex")
        chosen.data_type, chosen.operation = "INT", "EQUAL"
        sides = {socket.identifier: socket for socket in chosen.inputs}
        group.links.new(first.outputs["Value"], sides["A_INT"])
        sides["B_INT"].default_value = number
        place.inputs["Material Index"].default_value = _slot(bpy, item, name)
        group.links.new(chosen.outputs["Result"], place.inputs["Selection"])
        group.links.new(geometry, place.inputs["Geometry"])
        geometry = place.outputs["Geometry"]
    group.links.new(geometry, end.inputs["Geometry"])
    item.modifiers.new("parts", "NODES").node_group = group


def _slot(bpy, item, name):
    """Return the number of the slot that holds a material of this name; a new one where the import made none."""
    held = [slot.material.name if slot.material else "" for slot in item.material_slots]
    if name in held or name not in bpy.data.materials:
        return held.index(name) if name in held else 0
    item.data.materials.append(bpy.data.materials[name])
    return len(held)


def _attribute(bpy, item, job):
    """Return the attribute that colours points: the one asked for, their own colours, or none."""
    held = item.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.attributes
    if job["colour_by"] is None:
        return "displayColor" if "displayColor" in held else None
    name = {"velocities": "velocity"}.get(job["colour_by"]["attribute"], job["colour_by"]["attribute"])
    if name not in held:
        return None
    return _length(bpy, item, name) if held[name].data_type == "FLOAT_VECTOR" else _seen(bpy, item, name)


def _length(bpy, item, name):
    """Give points the length of a vector as an attribute and return its name: shaders do not see velocities."""
    return _stored(bpy, item, name, f"{name}_length", True)


def _seen(bpy, item, name):
    """Return the name under which shaders see a number: "temperature" is to Cycles that of a volume."""
    return _stored(bpy, item, name, "kelvin", False) if name == "temperature" else name


def _stored(bpy, item, name, shown, vector):
    """Store a number, or the length of a vector, as another attribute of an object, by geometry nodes; return its name."""
    if shown in item.modifiers:
        return shown
    group = bpy.data.node_groups.new(shown, "GeometryNodeTree")
    for way in ("INPUT", "OUTPUT"):
        group.interface.new_socket("Geometry", in_out=way, socket_type="NodeSocketGeometry")
    begin, end = group.nodes.new("NodeGroupInput"), group.nodes.new("NodeGroupOutput")
    source = group.nodes.new("GeometryNodeInputNamedAttribute")
    source.data_type = "FLOAT_VECTOR" if vector else "FLOAT"
    source.inputs["Name"].default_value = name
    value = source.outputs["Attribute"]
    if vector:
        length = group.nodes.new("ShaderNodeVectorMath")
        length.operation = "LENGTH"
        group.links.new(value, length.inputs[0])
        value = length.outputs["Value"]
    store = group.nodes.new("GeometryNodeStoreNamedAttribute")
    store.data_type, store.domain = "FLOAT", "POINT"
    store.inputs["Name"].default_value = shown
    group.links.new(begin.outputs["Geometry"], store.inputs["Geometry"])
    group.links.new(value, store.inputs["Value"])
    group.links.new(store.outputs["Geometry"], end.inputs["Geometry"])
    item.modifiers.new(shown, "NODES").node_group = group
    return shown


def _assign(bpy, item, job, fallback, attribute=None) -> None:
    colour = job["colours"].get(item.name.split(".")[0], fallback)
    material = plain_material(bpy, f"preview_{item.name}", colour, 0.45)
    if attribute is not None:
        read_attribute(material.node_tree, attribute, job["colour_by"])
    if not item.material_slots:
        item.data.materials.append(None)
    for slot in item.material_slots:
        slot.link = "OBJECT"
        slot.material = material


def _roughen(bpy, item, grains) -> None:
    """Make the materials of an object uneven; those of matter where it carries places at rest, to which all of this sticks."""
    rest = "rest" in item.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.attributes
    if _is_surface(item) and not rest:
        return
    for material in (slot.material for slot in item.material_slots if slot.material and slot.material.node_tree):
        look = material.name.split(".")[0].rpartition("_")[0]
        shader = next((node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED"), None)
        if rest:
            stick_pattern(material.node_tree, "rest")
        if shader is not None and look in grains:
            add_grain(material.node_tree, shader, *grains[look], "rest" if rest else "")


def _let_glow(bpy, item, job) -> None:
    """Let the materials of an object with temperatures emit what a black body does; those that emit already are left alone."""
    if not job["glow"] or "temperature" not in item.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.attributes:
        return
    for slot in item.material_slots:
        tree = slot.material.node_tree if slot.material is not None else None
        shader = next((node for node in tree.nodes if node.type == "BSDF_PRINCIPLED"), None) if tree is not None else None
        if shader is None or shader.inputs["Emission Color"].is_linked or "temperature" in tree.nodes:
            continue
        source = tree.nodes.new("ShaderNodeAttribute")
        source.name, source.attribute_name = "temperature", _seen(bpy, item, "temperature")
        warm = computed(tree, "MAXIMUM", source.outputs["Fac"], 1.0)
        colour = tree.nodes.new("ShaderNodeBlackbody")
        tree.links.new(warm, colour.inputs["Temperature"])
        a, b, c = job["glow"]["fit"]
        exponent = computed(tree, "SUBTRACT", a - math.log(job["glow"]["white"]), computed(tree, "DIVIDE", b, warm))
        strength = computed(tree, "MULTIPLY", computed(tree, "EXPONENT", exponent), computed(tree, "POWER", warm, c))
        tree.links.new(colour.outputs["Color"], shader.inputs["Emission Color"])
        tree.links.new(strength, shader.inputs["Emission Strength"])


if __name__ == "__main__":
    status = 1
    try:
        main(sys.argv[1])
        status = 0
    except BaseException as error:
        traceback.print_exc()
        print(f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # Blender can hang while it shuts down
