"""Pictures of the quick presets in Blender's panel and dialog: NAME.jpg beside NAME.json, also of presets of one's own."""

import bpy.utils.previews

from . import quick_presets

LOADED = {}
"""The collection of pictures while the extension is on."""


def icon(name, own=""):
    """Return the number by which Blender draws the picture of a preset, 0 where it has none.

    Args:
        name: Of the preset.
        own: A folder of presets, as for `quick_presets.folders`; a later folder's picture replaces an earlier one.
    """
    paths = [folder / f"{name}.jpg" for folder in quick_presets.folders(own)]
    path = next((str(path) for path in reversed(paths) if path.is_file()), "")
    if not path or "pictures" not in LOADED:
        return 0
    pictures = LOADED["pictures"]
    return (pictures[path] if path in pictures else pictures.load(path, path, "IMAGE")).icon_id


def register():
    """Make room for pictures; each is read when it is first drawn."""
    LOADED["pictures"] = bpy.utils.previews.new()


def unregister():
    """Let go of them."""
    bpy.utils.previews.remove(LOADED.pop("pictures"))
