"""Snow on a roof, as docs/first_movies.md makes it by hand.

Run it in Blender's text editor, in a file that is saved as snow.blend.
"""

import math

import bpy
from bl_ext.user_default.mpm_nodes import cook, nodes

scene = bpy.context.scene
scene.frame_start, scene.frame_end, scene.render.fps = 1, 48, 24


def cube(name, size, place, turn=0.0):
    bpy.ops.mesh.primitive_cube_add(size=1.0, location=place, rotation=(0.0, math.radians(turn), 0.0))
    thing = bpy.context.object
    thing.name, thing.scale = name, size
    return thing


house = [
    cube("House", (1.2, 1.0, 0.8), (0.0, 0.0, 0.4)),
    cube("Roof left", (1.2, 1.3, 0.1), (-0.45, 0.0, 0.95), -35.0),
    cube("Roof right", (1.2, 1.28, 0.1), (0.45, 0.0, 0.95), 35.0),  # shallower: faces that coincide flicker
]
bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.k_cell_size = 0.06
made = {node.bl_idname[len("MpmNode_") :]: node for node in tree.nodes}
for name in ("emit_sphere", "material_library"):
    tree.nodes.remove(made.pop(name))
made["collide_plane"].k_friction = 0.8

snow = tree.nodes.new("MpmNode_material_snow")
snow.k_youngs_modulus, snow.k_hardening, snow.k_density = 2e4, 3.0, 300.0
clump, drops = tree.nodes.new("MpmNode_emit_box"), tree.nodes.new("MpmNode_emit_drops")
clump.k_size, clump.k_centre, clump.k_jitter = (0.3, 0.3, 0.2), (0.0, 0.0, 2.2), 0.5
drops.k_count, drops.k_interval = 36, 1.0
drops.k_spread, drops.k_turn, drops.k_velocity = (1.7, 0.9, 0.3), (360.0, 360.0, 360.0), (0.0, 0.0, -3.0)
nodes.connect(snow, "", clump, "material")
nodes.connect(clump, "", drops, "template")
nodes.connect(drops, "", made["solve"], "emitters")

for thing in house:
    thing.select_set(True)
bpy.ops.mpm_nodes.add_objects(tree=tree.name, role="COLLIDER")
for node in tree.nodes:
    if node.bl_idname == "MpmNode_collide_usd":
        node.k_friction = 0.5

surface = tree.nodes.new("MpmNode_surface_particles")
nodes.connect(made["solve"], "particles", surface, "particles")
nodes.connect(surface, "mesh", made["write_cache"], "mesh")
bpy.ops.mpm_nodes.cook(tree=tree.name)
cook.wait(tree, 600)
look = {
    "colour": (0.9, 0.93, 0.97),
    "things": (0.25, 0.09, 0.06),
    "eye": (2.2, -3.6, 1.9),
    "target": (0.0, 0.0, 0.75),
    "lamp": 300.0,
    "size": 1.0,
}
