"""Materials of the pictures in Blender's nodes; `blender_script` finds it beside itself, and it imports nothing of this package."""

PORES = ((2.4, 0.1, 0.5), (1.1, 0.1, 0.5), (0.45, 0.15, 0.5))
"""Kinds of a sponge's pores: their distance from one another over their size, and their least and greatest radius over that."""
PIT = (0.16, 0.10, 0.05, 1.0)
"""Share of a sponge's colour that its pores show."""
PATTERN = "pattern"
"""Name of the node that says where a pattern is looked up."""


def plain_material(bpy, name, colour, roughness):
    material = bpy.data.materials.get(name)
    if material is None:
        material = bpy.data.materials.new(name)
        material.use_nodes = True
        # The nodes that a new material starts with depend on the active object (a volume shader beside volumes).
        tree = material.node_tree
        tree.nodes.clear()
        shader, output = tree.nodes.new("ShaderNodeBsdfPrincipled"), tree.nodes.new("ShaderNodeOutputMaterial")
        tree.links.new(shader.outputs["BSDF"], output.inputs["Surface"])
        shader.inputs["Base Color"].default_value = (*colour, 1.0)
        shader.inputs["Roughness"].default_value = roughness
    return material


def read_attribute(tree, attribute, colour_by) -> None:
    """Let a material take its colour from an attribute: as it is, or by the scale of a legend."""
    if "attribute" in tree.nodes:
        return
    source = tree.nodes.new("ShaderNodeAttribute")
    source.name, source.attribute_name = "attribute", attribute
    shader = next(node for node in tree.nodes if node.type == "BSDF_PRINCIPLED")
    if colour_by is None:
        tree.links.new(source.outputs["Color"], shader.inputs["Base Color"])
        return
    scale = tree.nodes.new("ShaderNodeMapRange")
    scale.inputs["From Min"].default_value, scale.inputs["From Max"].default_value = colour_by["low"], colour_by["high"]
    tree.links.new(source.outputs["Fac"], scale.inputs["Value"])
    ramp = tree.nodes.new("ShaderNodeValToRGB")
    stops, elements = colour_by["stops"], ramp.color_ramp.elements
    for n, stop in enumerate(stops):
        place = n / (len(stops) - 1)
        element = elements[n] if n in (0, 1) and n < len(elements) else elements.new(place)
        element.position, element.color = place, (*stop, 1.0)
    tree.links.new(scale.outputs["Result"], ramp.inputs["Fac"])
    tree.links.new(ramp.outputs["Color"], shader.inputs["Base Color"])


def computed(tree, operation, *values):
    """Return the output of a node that computes one number from others."""
    node = tree.nodes.new("ShaderNodeMath")
    node.operation = operation
    for place, value in zip(node.inputs, values, strict=False):
        if isinstance(value, float):
            place.default_value = value
        else:
            tree.links.new(value, place)
    return node.outputs[0]


def draw_pattern(tree, shader, pattern, tile) -> None:
    """Draw the pattern of a look with squares or planks of this size; without a pattern it keeps its one colour."""
    if not pattern:
        return
    kind, colour, second = pattern
    where, mapping = tree.nodes.new("ShaderNodeTexCoord"), tree.nodes.new("ShaderNodeMapping")
    mapping.name = PATTERN
    mapping.inputs["Scale"].default_value = [1.0 / tile] * 3
    mapping.inputs["Location"].default_value[2] = 0.5  # no face of a floor lies between two layers of squares
    tree.links.new(where.outputs["Object"], mapping.inputs["Vector"])
    scaled = mapping.outputs["Vector"]
    if kind == "checker":
        squares = _texture(tree, "Checker", scaled, Scale=1.0, Color1=(*colour, 1.0), Color2=(*second, 1.0))
        tree.links.new(squares.outputs["Color"], shader.inputs["Base Color"])
        return
    stops = {"grain": (0.3, 0.75), "veins": (0.0, 0.035), "crumbs": (0.35, 0.7)}[kind]
    if kind == "grain":
        mapping.inputs["Scale"].default_value[0] *= 0.05
        fibres = _texture(tree, "Noise", scaled, Scale=14.0, Detail=5.0).outputs[0]
        rings = _texture(tree, "Wave", scaled, Scale=0.35, Distortion=9.0, Detail=4.0)
        rings.bands_direction = "Y"
        planks = _texture(tree, "Noise", _stepped(tree, scaled), Scale=3.7, Detail=0.0).outputs[0]
        parts = [computed(tree, "MULTIPLY", *each) for each in ((fibres, 0.5), (rings.outputs["Fac"], 0.15), (planks, 0.5))]
        share = computed(tree, "ADD", computed(tree, "ADD", parts[0], parts[1]), parts[2])
    elif kind == "veins":
        clouds = _texture(tree, "Noise", scaled, Scale=0.35, Detail=9.0, Distortion=0.6).outputs[0]
        share = computed(tree, "ABSOLUTE", computed(tree, "SUBTRACT", clouds, 0.5))
        colour, second = second, colour
    else:
        share = _texture(tree, "Noise", scaled, Scale=9.0, Detail=6.0).outputs[0]
        bump = tree.nodes.new("ShaderNodeBump")
        bump.inputs["Strength"].default_value, bump.inputs["Distance"].default_value = 0.4, 0.05 * tile
        tree.links.new(share, bump.inputs["Height"])
        tree.links.new(bump.outputs["Normal"], shader.inputs["Normal"])
    ramp = tree.nodes.new("ShaderNodeValToRGB")
    for element, stop, shown in zip(ramp.color_ramp.elements, stops, (colour, second), strict=True):
        element.position, element.color = stop, (*shown, 1.0)
    tree.links.new(share, ramp.inputs["Fac"])
    tree.links.new(ramp.outputs["Color"], shader.inputs["Base Color"])


def stick_pattern(tree, attribute) -> None:
    """Let the pattern of a look stick to the places at rest that an attribute holds, where it has a pattern."""
    mapping = tree.nodes.get(PATTERN)
    if mapping is None or mapping.inputs["Vector"].links[0].from_node.type == "ATTRIBUTE":
        return
    place = tree.nodes.new("ShaderNodeAttribute")
    place.attribute_name = attribute
    tree.links.new(place.outputs["Vector"], mapping.inputs["Vector"])


def add_grain(tree, shader, size, pores, attribute) -> None:
    """Make a surface uneven by bumps or pores of a size [m], which stick to places at rest, or without these to the object."""
    if shader.inputs["Normal"].is_linked:
        return
    place = tree.nodes.new("ShaderNodeAttribute" if attribute else "ShaderNodeTexCoord")
    if attribute:
        place.attribute_name = attribute
    place = place.outputs["Vector" if attribute else "Object"]
    bump = tree.nodes.new("ShaderNodeBump")
    bump.inputs["Distance"].default_value = 0.6 * size
    height = _pores(tree, place, size) if pores else _texture(tree, "Noise", place, Scale=1.0 / size, Detail=5.0).outputs[0]
    tree.links.new(height, bump.inputs["Height"])
    tree.links.new(bump.outputs["Normal"], shader.inputs["Normal"])
    if pores:
        _darken(tree, shader.inputs["Base Color"], height)


def _pores(tree, place, size):
    """Return the height of a sponge's surface: 0 at the bottom of round pits of many sizes, 1 between them.

    Each pit is a ball around a point in space that the surface cuts, so there are as many small cuts as there are in a real sponge.
    """
    shift = tree.nodes.new("ShaderNodeVectorMath")
    shift.operation = "MULTIPLY_ADD"  # no pit is quite round
    tree.links.new(_texture(tree, "Noise", place, Scale=0.8 / size, Detail=3.0).outputs["Color"], shift.inputs[0])
    shift.inputs[1].default_value = [0.5 * size] * 3
    tree.links.new(place, shift.inputs[2])
    height = None
    for wide, least, most in PORES:
        cells = _texture(tree, "Voronoi", shift.outputs["Vector"], Scale=1.0 / (wide * size))
        parts = tree.nodes.new("ShaderNodeSeparateColor")
        tree.links.new(cells.outputs["Color"], parts.inputs["Color"])
        radius = computed(tree, "MULTIPLY_ADD", parts.outputs["Red"], most - least, least)
        rim = tree.nodes.new("ShaderNodeMapRange")
        rim.interpolation_type = "SMOOTHSTEP"
        rim.inputs["From Min"].default_value, rim.inputs["From Max"].default_value = 0.5, 1.05
        tree.links.new(computed(tree, "DIVIDE", cells.outputs["Distance"], radius), rim.inputs["Value"])
        level = rim.outputs["Result"]
        height = level if height is None else computed(tree, "MULTIPLY", height, level)
    return height


def _darken(tree, colour, height) -> None:
    """Let a colour be darker where a surface is low: little light comes out of a pit."""
    before = colour.links[0].from_socket if colour.links else tuple(colour.default_value)
    tree.links.new(_blended(tree, "MULTIPLY", 1.0, before, _blended(tree, "MIX", height, PIT, (1.0, 1.0, 1.0, 1.0))), colour)


def _blended(tree, kind, share, first, second):
    """Return the output of a node that blends two colours; each of its inputs is a value or an output."""
    node = tree.nodes.new("ShaderNodeMix")
    node.data_type, node.blend_type = "RGBA", kind
    sides = {socket.identifier: socket for socket in node.inputs}
    for place, value in (("Factor_Float", share), ("A_Color", first), ("B_Color", second)):
        if isinstance(value, (float, tuple)):
            sides[place].default_value = value
        else:
            tree.links.new(value, sides[place])
    return next(socket for socket in node.outputs if socket.identifier == "Result_Color")


def _texture(tree, kind, place, **values):
    """Return a texture node that is looked up at a place."""
    node = tree.nodes.new(f"ShaderNodeTex{kind}")
    tree.links.new(place, node.inputs["Vector"])
    for name, value in values.items():
        node.inputs[name].default_value = value
    return node


def _stepped(tree, place):
    """Return places that are the same all over a plank."""
    node = tree.nodes.new("ShaderNodeVectorMath")
    node.operation = "FLOOR"
    tree.links.new(place, node.inputs[0])
    return node.outputs["Vector"]
