"""Materials that cooked matter comes in with; artists give it others."""

import json
import re

import bpy


def quick_facts(tree):
    """Return what the quick preset of a graph says of itself, {} for a graph of another origin."""
    try:
        facts = json.loads(tree.rest or "{}")["editor"]["quick"]
    except (ValueError, KeyError, TypeError):
        return {}
    return facts if isinstance(facts, dict) else {}


def preset_material(thing, tree):
    """Return the material that the quick preset of a graph wants for a new object, or None."""
    facts, name = quick_facts(tree), f"MPM {tree.name}"
    look = facts.get("look")  # inputs of Blender's Principled shader
    for label, other in facts.get("looks", {}).items():  # of matter that was added later, which has a mesh of its own
        if re.sub(r"[.][0-9]{3,}$", "", thing.name) == f"mesh_{label}":
            look, name = other, f"{name} {label}"
    if not isinstance(look, dict) or thing.type == "VOLUME" or thing.name.startswith("collider_"):
        return None
    material = bpy.data.materials.get(name)
    if material is not None:
        return material
    material = bpy.data.materials.new(name)
    material.use_nodes = True
    shader = next(node for node in material.node_tree.nodes if node.type == "BSDF_PRINCIPLED")
    for socket, value in look.items():
        if socket in shader.inputs:  # versions of Blender name some of them differently
            try:
                shader.inputs[socket].default_value = value
            except (TypeError, ValueError):
                continue
    material.diffuse_color = shader.inputs["Base Color"].default_value  # what the viewport shows
    return material


def add_look(tree, labels, look):
    """Keep the look that meshes of materials of these labels come in with."""
    rest = json.loads(tree.rest or "{}")
    looks = rest.setdefault("editor", {}).setdefault("quick", {}).setdefault("looks", {})
    looks.update({re.sub(r"\W", "_", label): look for label in labels})
    tree.rest = json.dumps(rest)


def default_material(thing):
    """Return a plain material for an object; points and meshes show the colour that the cache carries."""
    name = f"MPM {thing.type.title()}"
    material = bpy.data.materials.get(name)
    if material is not None:
        return material
    material = bpy.data.materials.new(name)
    material.use_nodes = True
    tree = material.node_tree
    tree.nodes.clear()
    output = tree.nodes.new("ShaderNodeOutputMaterial")
    if thing.type == "VOLUME":
        shader = tree.nodes.new("ShaderNodeVolumePrincipled")
        shader.inputs["Density"].default_value = 20.0
        tree.links.new(shader.outputs["Volume"], output.inputs["Volume"])
        return material
    shader = tree.nodes.new("ShaderNodeBsdfPrincipled")
    shader.inputs["Base Color"].default_value = (0.95, 0.62, 0.16, 1.0)
    shader.inputs["Roughness"].default_value = 0.45
    if "displayColor" in getattr(thing.data, "attributes", ()):
        colour = tree.nodes.new("ShaderNodeAttribute")
        colour.attribute_name = "displayColor"
        tree.links.new(colour.outputs["Color"], shader.inputs["Base Color"])
        colour.location = (-300, 0)
        material.name = f"{name} Coloured"
    tree.links.new(shader.outputs["BSDF"], output.inputs["Surface"])
    output.location = (300, 0)
    return material
