"""Toothpaste on a brush, as docs/first_movies.md makes it by hand.

Run it in Blender's text editor, in a file that is saved as paste.blend.
"""

import bpy
from bl_ext.user_default.mpm_nodes import cook, nodes

scene = bpy.context.scene
scene.frame_start, scene.frame_end, scene.render.fps = 1, 30, 24
bpy.context.preferences.edit.keyframe_new_interpolation_type = "LINEAR"
bpy.ops.mesh.primitive_cube_add(size=1.0)
brush = bpy.context.object
brush.name, brush.scale = "Brush", (0.12, 0.02, 0.012)
for frame, x in ((1, 0.035), (30, -0.035)):
    brush.location.x = x
    brush.keyframe_insert("location", frame=frame)

bpy.ops.mpm_nodes.new_graph()
tree = bpy.data.node_groups["MPM Graph"]
tree.k_cell_size = 0.0018
made = {node.bl_idname[len("MpmNode_") :]: node for node in tree.nodes}
for name in ("emit_sphere", "collide_plane"):
    tree.nodes.remove(made.pop(name))
made["material_library"].k_name = "toothpaste"
made["solve"].k_gravity = (0.0, 0.0, -0.981)
nozzle, stream = tree.nodes.new("MpmNode_emit_box"), tree.nodes.new("MpmNode_emit_stream")
nozzle.k_size, nozzle.k_centre, stream.k_velocity = (0.006, 0.006, 0.003), (0.0, 0.0, 0.016), (0.0, 0.0, -0.15)
nodes.connect(made["material_library"], "", nozzle, "material")
nodes.connect(nozzle, "", stream, "template")
nodes.connect(stream, "", made["solve"], "emitters")
bpy.ops.mpm_nodes.add_objects(tree=tree.name, role="COLLIDER")  # the brush is selected
next(node for node in tree.nodes if node.bl_idname == "MpmNode_collide_usd").k_rule = "sticky"
surface = tree.nodes.new("MpmNode_surface_particles")
nodes.connect(made["solve"], "particles", surface, "particles")
nodes.connect(surface, "mesh", made["write_cache"], "mesh")
bpy.ops.mpm_nodes.cook(tree=tree.name)
cook.wait(tree, 600)
look = {
    "colour": (0.35, 0.75, 0.85),
    "things": (0.7, 0.08, 0.08),
    "eye": (0.05, -0.11, 0.07),
    "target": (0.0, 0.0, 0.012),
    "lamp": 0.35,
    "size": 0.03,
}
