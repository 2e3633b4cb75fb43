"""MPM Nodes: build graphs of the Material Point Method in Blender's node editor and cook them outside Blender.

Imports nothing but bpy and Python's own library; the simulation runs in a Python environment that has mpm-nodes.
"""

import bpy

from . import (
    cache_panel,
    cook,
    curves,
    guides,
    history,
    interface,
    nodes,
    operators,
    painting_panel,
    places,
    point_materials,
    quick_operators,
    quick_pictures,
    sockets,
    substep_operators,
    trees,
)

bl_info = {  # for Blender before 4.2, which has no extensions
    "name": "MPM Nodes",
    "author": "The mpm_nodes authors",
    "version": (0, 1, 0),
    "blender": (3, 4, 0),
    "location": "Node Editor > MPM Graph",
    "description": "Simulate soft, sticky, melting and foaming matter with node graphs",
    "category": "Node",
}

CLASSES = [
    *trees.CLASSES,
    *sockets.CLASSES,
    *nodes.CLASSES,
    *curves.CLASSES,
    *operators.CLASSES,
    *substep_operators.CLASSES,
    *quick_operators.CLASSES,
    *cache_panel.CLASSES,
    *interface.CLASSES,
    *painting_panel.CLASSES,
]


def _opened():
    """Return the handlers that follow a file's opening, and an append, which Blender 4.2 has none for."""
    return [getattr(bpy.app.handlers, name) for name in ("load_post", "blend_import_post") if hasattr(bpy.app.handlers, name)]


def register():
    """Make everything known to Blender."""
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    quick_operators.register()
    quick_pictures.register()
    guides.register()
    interface.register()
    bpy.app.handlers.load_pre.append(cook.before_load)
    for handlers in _opened():
        handlers.append(nodes.after_load)
    bpy.app.handlers.load_post.append(places.after_load)
    history.register()
    point_materials.register()


def unregister():
    """Stop cooks and take everything back."""
    cook.stop_all()
    if bpy.app.timers.is_registered(cook.look):
        bpy.app.timers.unregister(cook.look)
    point_materials.unregister()
    history.unregister()
    bpy.app.handlers.load_post.remove(places.after_load)
    for handlers in _opened():
        handlers.remove(nodes.after_load)
    bpy.app.handlers.load_pre.remove(cook.before_load)
    interface.unregister()
    guides.unregister()
    quick_pictures.unregister()
    quick_operators.unregister()
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
