"""A set around the subject, in Blender: ground, lamps, light from all around, and a lens with an opening.

`blender_script` finds it beside itself, and it imports nothing of this package. The set is made around an empty at the subject,
whose y axis points away from the camera, as large as it must be for the first picture; `place_set` turns it to the camera of each.
"""

import math

from blender_materials import add_grain, computed, draw_pattern, plain_material

LAMP_DISTANCE = 5.0
"""Of the lamps from the subject, over its radius."""
SIDES = 256
"""Of what is round."""
DRIFT = 0.3
"""Height of the drifts of a field, over the subject's radius."""
TILE = (0.034, 0.017)
"""Width and height of a tile of a wall, over its distance from the camera."""
HILL = 0.02
"""Slope up to its hills, so low that the horizon stays where it is."""


def raise_set(bpy, scene, job) -> None:
    """Put a set in the place of lights and sky."""
    for item in [item for item in bpy.data.objects if item.type == "LIGHT"]:
        bpy.data.objects.remove(item)
    given = job["set"]
    if given["file"]:
        _import(bpy, scene, given["file"])
        return
    scene.view_settings.view_transform = "AgX"
    scene.view_settings.look = "AgX - Punchy"
    scene.view_settings.exposure = given["exposure"]
    _sky(bpy, scene, given["sky"])
    stand = bpy.data.objects.new("stand", None)
    x, _, z = given["middle"]
    stand.location = (x, -z, job["ground"])
    scene.collection.objects.link(stand)
    _ground(bpy, scene, stand, given, job["pictures"][0]["set"])
    if given["wall"]:
        _wall(bpy, scene, stand, given["wall"], job["pictures"][0]["set"])
    height = given["middle"][1] - job["ground"]
    for number, lamp in enumerate(given["lamps"]):
        _lamp(bpy, scene, stand, number, lamp, given["radius"], height, given["shape"] == "field")


def place_set(bpy, picture) -> None:
    """Turn the set to the camera of a picture."""
    stand = bpy.data.objects.get("stand")
    if stand is not None and picture["set"]:
        x, y = picture["set"]["ahead"]
        stand.rotation_euler = (0.0, 0.0, math.atan2(-x, y))


def focus(bpy, picture) -> None:
    """Open the lens of a picture's own camera."""
    camera = bpy.data.objects.get("framing")
    if camera is None or not picture["set"] or not picture["camera"]:
        return
    camera.data.dof.use_dof = True
    camera.data.dof.focus_distance = picture["set"]["focus"]
    camera.data.dof.aperture_fstop = 1e-3 * camera.data.lens / picture["set"]["aperture"]
    camera.data.dof.aperture_blades = 0


def _import(bpy, scene, path) -> None:
    """Bring a USD file as it is, with its lights and its dome; without a dome the usual sky remains."""
    held = set(bpy.data.objects)
    scene.world = None
    bpy.ops.wm.usd_import(filepath=path, set_frame_range=False, import_materials=True, import_lights=True)
    for item in set(bpy.data.objects) - held:
        item["of_set"] = True


def _sky(bpy, scene, sky) -> None:
    """Light from all around: one colour at the horizon and below, another overhead."""
    scene.world = bpy.data.worlds.new("set")
    scene.world.use_nodes = True
    tree = scene.world.node_tree
    tree.nodes.clear()
    place, parts = tree.nodes.new("ShaderNodeTexCoord"), tree.nodes.new("ShaderNodeSeparateXYZ")
    tree.links.new(place.outputs["Generated"], parts.inputs["Vector"])
    mix = tree.nodes.new("ShaderNodeMix")
    mix.data_type = "RGBA"
    sides = {socket.identifier: socket for socket in mix.inputs}
    share = computed(tree, "POWER", computed(tree, "MAXIMUM", parts.outputs["Z"], 0.0), 0.6)
    tree.links.new(share, sides["Factor_Float"])
    sides["A_Color"].default_value, sides["B_Color"].default_value = (*sky["horizon"], 1.0), (*sky["zenith"], 1.0)
    light, output = tree.nodes.new("ShaderNodeBackground"), tree.nodes.new("ShaderNodeOutputWorld")
    mixed = next(socket for socket in mix.outputs if socket.identifier == "Result_Color")
    tree.links.new(mixed, light.inputs["Color"])
    tree.links.new(light.outputs["Background"], output.inputs["Surface"])


def _ground(bpy, scene, stand, given, before) -> None:
    """Make what the subject stands on, from the height of the empty down: a plate on a table, or the ground alone."""
    radius, plate = given["radius"], given["plate"]
    if given["shape"] == "table":
        drawn = _table(before["edge"], 0.25 * radius)
    elif given["shape"] == "cove":
        drawn = _cove(before["distance"], max(before["edge"], 3.0 * radius), radius)
    else:
        drawn = _field(given["held"], radius)
    ground = _laid(bpy, scene, stand, "ground", drawn, given["ground"])
    if plate:
        ground.location.z = -plate["foot"] * plate["radius"]
        outline = [(plate["radius"] * r, plate["radius"] * z) for r, z in _plate(plate["foot"], *plate["rim"])]
        _laid(bpy, scene, stand, "plate", _lathed(outline), plate)


def _wall(bpy, scene, stand, colour, before) -> None:
    """Raise a tiled wall as far behind the subject as the camera is before it, in the soft light of a window on the left.

    The camera sees it, and mirrors and clear matter do; it shines by itself and takes no light from the subject.
    """
    behind = max(before["distance"], 1.2 * before["edge"])
    far = before["distance"] + behind
    mesh = bpy.data.meshes.new("wall")
    mesh.from_pydata([(x * far, y * far, 0.0) for x, y in ((-9, -9), (9, -9), (9, 9), (-9, 9))], [], [(0, 1, 2, 3)])
    item = bpy.data.objects.new("wall", mesh)
    item.parent, item.location, item.rotation_euler = stand, (0.0, behind, 0.0), (math.pi / 2, 0.0, 0.0)
    item.visible_diffuse = item.visible_shadow = False
    material = bpy.data.materials.new("set_wall")
    material.use_nodes = True
    material.cycles.emission_sampling = "NONE"
    tree = material.node_tree
    tree.nodes.clear()
    place, tiles = tree.nodes.new("ShaderNodeTexCoord"), tree.nodes.new("ShaderNodeTexBrick")
    tree.links.new(place.outputs["Object"], tiles.inputs["Vector"])
    shades = {"Color1": 0.86, "Color2": 1.1, "Mortar": 1.5}
    sizes = {"Scale": 1.0 / far, "Brick Width": TILE[0], "Row Height": TILE[1], "Mortar Size": 0.05 * TILE[1], "Mortar Smooth": 0.0}
    for name, value in sizes.items():
        tiles.inputs[name].default_value = value
    for name, share in shades.items():
        tiles.inputs[name].default_value = (*(share * part for part in colour), 1.0)
    away = tree.nodes.new("ShaderNodeVectorMath")
    away.operation = "DISTANCE"
    tree.links.new(place.outputs["Object"], away.inputs[0])
    away.inputs[1].default_value = (-0.13 * far, -0.02 * far, 0.0)
    fall = computed(tree, "ADD", computed(tree, "POWER", computed(tree, "DIVIDE", away.outputs["Value"], 0.2 * far), 2.0), 1.0)
    light, output = tree.nodes.new("ShaderNodeEmission"), tree.nodes.new("ShaderNodeOutputMaterial")
    tree.links.new(tiles.outputs["Color"], light.inputs["Color"])
    tree.links.new(computed(tree, "ADD", computed(tree, "DIVIDE", 1.2, fall), 0.4), light.inputs["Strength"])
    tree.links.new(light.outputs["Emission"], output.inputs["Surface"])
    mesh.materials.append(material)
    scene.collection.objects.link(item)


def _laid(bpy, scene, stand, name, drawn, look):
    """Return a new object of points, edges and faces, covered as a look has it; what is level stays flat."""
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(*drawn)
    for face in mesh.polygons:
        face.use_smooth = len(face.vertices) == 4
    item = bpy.data.objects.new(name, mesh)
    item.parent = stand
    material = plain_material(bpy, f"set_{name}", look["colour"], 0.5)
    shader = next(node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    for socket, value in look["inputs"].items():
        shader.inputs[socket].default_value = value
    draw_pattern(material.node_tree, shader, look["pattern"], look["tile"])
    if look["grain"]:
        add_grain(material.node_tree, shader, look["grain"], False, "")
    mesh.materials.append(material)
    scene.collection.objects.link(item)
    return item


def _table(reach, thick):
    """Return a round board with a rounded edge: points, edges, faces."""
    rounding = [(math.sin(a), 1.0 - math.cos(a)) for a in (math.pi * n / 12 for n in range(13))]
    return _lathed([(reach - thick / 2 + thick / 2 * out, -thick / 2 * down) for out, down in rounding])


def _plate(foot, wide, tall):
    """Return the outline of a plate from the edge of its level part, of radius 1 and height 0, over its rim to below its middle."""
    thick = 0.055
    bend = [(1.0 + 0.2 * math.sin(a), 0.2 * (1.0 - math.cos(a)) * 0.9) for a in (math.pi / 3 * n / 8 for n in range(9))]
    (r, z), lip = bend[-1], 0.5 * thick
    rim = [(r + (wide - r) * t, z + (tall - z) * (1.0 - (1.0 - t) ** 2)) for t in (n / 8 for n in range(1, 9))]
    turn = [(wide + lip * math.sin(a), tall - lip + lip * math.cos(a)) for a in (math.pi * n / 8 for n in range(1, 9))]
    under = [(r, z - thick) for r, z in reversed((*bend[::2], *rim[:-1]))]
    ring = [(0.86, -thick), (0.84, 0.1 - thick - foot), (0.83, -foot), (0.79, -foot), (0.77, -thick), (0.0, -thick)]
    return [*bend, *rim, *turn, *under, *ring]


def _lathed(outline):
    """Return a body that is round about the upward axis, with a level top within the first of its rings: points, edges, faces."""
    turns = [(math.cos(2 * math.pi * n / SIDES), math.sin(2 * math.pi * n / SIDES)) for n in range(SIDES)]
    points = [(r * x, r * y, z) for r, z in outline for x, y in turns]
    faces = [tuple(range(SIDES))]
    for ring in range(len(outline) - 1):
        for n in range(SIDES):
            here, there = ring * SIDES + n, ring * SIDES + (n + 1) % SIDES
            faces.append((here, here + SIDES, there + SIDES, there))
    return points, [], faces


def _cove(distance, back, radius):
    """Return a floor that rises in an arc behind the subject: points, edges, faces."""
    arc, wide, top = 9.0 * radius, 40.0 * radius, 40.0 * radius
    profile = [(-1.5 * distance - 20.0 * radius, 0.0)]
    profile += [(back + arc * math.sin(a), arc * (1.0 - math.cos(a))) for a in (math.pi / 2 * n / 32 for n in range(33))]
    profile.append((back + arc, top))
    points = [(side * wide, y, z) for y, z in profile for side in (-1, 1)]
    return points, [], [(2 * n, 2 * n + 1, 2 * n + 3, 2 * n + 2) for n in range(len(profile) - 1)]


def _field(held, radius):
    """Return a wide ground, level under the subject, that drifts around it and rolls far away: points, edges, faces."""
    from mathutils import Vector, noise

    level = 1.2 * held
    points, edges, faces = _lathed([(level * (400.0 * radius / level) ** (n / 160), 0.0) for n in range(161)])
    for n, (x, y, _) in enumerate(points):
        far = math.hypot(x, y)
        begun = min((far - level) / (3.0 * radius), 1.0)
        # The wind has drawn the drifts out from side to side.
        drift = DRIFT * radius * noise.fractal(Vector((x, 1.8 * y, 0.0)) / (2.6 * radius), 1.2, 2.0, 4)
        hill = HILL * far * min(far / (100.0 * radius), 1.0) * noise.fractal(Vector((x, y, 0.0)) / (50.0 * radius), 1.0, 2.0, 3)
        points[n] = (x, y, begun**2 * (3.0 - 2.0 * begun) * (drift + hill))
    return points, edges, faces


def _lamp(bpy, scene, stand, number, lamp, radius, height, far) -> None:
    """Hang a square lamp that points at the subject, or one so far that it lights a field evenly; the camera does not see it."""
    from mathutils import Vector

    distance = LAMP_DISTANCE * radius
    data = bpy.data.lights.new(f"lamp_{number}", "SUN" if far else "AREA")
    if far:
        data.angle, data.energy = 2.0 * math.atan(lamp["size"] / 2.0), lamp["strength"]
    else:
        data.size, data.energy = lamp["size"] * distance, lamp["strength"] * math.pi * distance**2
    data.color = lamp["colour"]
    item = bpy.data.objects.new(f"lamp_{number}", data)
    item.parent = stand
    aside, up = math.radians(lamp["aside"]), math.radians(lamp["height"])
    way = Vector((math.sin(aside) * math.cos(up), -math.cos(aside) * math.cos(up), math.sin(up)))
    item.location = Vector((0.0, 0.0, height)) + distance * way
    item.rotation_euler = way.to_track_quat("Z", "Y").to_euler()
    item.visible_camera = False
    scene.collection.objects.link(item)
