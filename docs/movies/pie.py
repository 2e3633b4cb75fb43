"""Cream on a pie, as docs/first_movies.md makes it by hand.

Run it in Blender's text editor, in a file that is saved as pie.blend.
"""

import math

import bpy
from bl_ext.user_default.mpm_nodes import cook, nodes

scene = bpy.context.scene
scene.frame_start, scene.frame_end, scene.render.fps = 1, 51, 24
bpy.ops.mesh.primitive_cylinder_add(radius=0.11, depth=0.03, location=(0.0, 0.0, 0.015))
pie = bpy.context.object
pie.name = "Pie"
bpy.ops.object.empty_add(type="CUBE", radius=0.012)
nozzle = bpy.context.object
nozzle.name = "Nozzle"
bpy.context.preferences.edit.keyframe_new_interpolation_type = "LINEAR"
for step in range(11):
    angle = 2.0 * math.pi * step / 10.0
    nozzle.location = (0.065 * math.cos(angle), 0.065 * math.sin(angle), 0.075)
    nozzle.keyframe_insert("location", frame=1 + 5 * step)

bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.k_cell_size, tree.k_end = 0.008, 51
made = {node.bl_idname[len("MpmNode_") :]: node for node in tree.nodes}
for name in ("emit_sphere", "material_library"):
    tree.nodes.remove(made.pop(name))
bpy.ops.mpm_nodes.add_objects(tree=tree.name, role="STREAM")  # the nozzle is selected
bpy.ops.object.select_all(action="DESELECT")
pie.select_set(True)
bpy.ops.mpm_nodes.add_objects(tree=tree.name, role="COLLIDER")
made = {node.bl_idname[len("MpmNode_") :]: node for node in tree.nodes}
made["emit_stream"].k_velocity = (0.0, 0.0, -0.3)
made["collide_usd"].k_rule = made["collide_plane"].k_rule = "sticky"

cream = tree.nodes.new("MpmNode_material_herschel_bulkley")
cream.k_density, cream.k_yield_stress, cream.k_shear_modulus = 275.0, 120.0, 1600.0
cream.k_bulk_modulus, cream.k_consistency, cream.k_flow_index = 20000.0, 5.0, 0.27
nodes.connect(cream, "", made["emit_box"], "material")
surface = tree.nodes.new("MpmNode_surface_particles")
nodes.connect(made["solve"], "particles", surface, "particles")
nodes.connect(surface, "mesh", made["write_cache"], "mesh")
bpy.ops.mpm_nodes.cook(tree=tree.name)
cook.wait(tree, 600)
look = {
    "colour": (0.95, 0.9, 0.78),
    "things": (0.4, 0.18, 0.06),
    "eye": (0.18, -0.36, 0.28),
    "target": (0.0, 0.0, 0.03),
    "lamp": 4.0,
    "size": 0.1,
}
