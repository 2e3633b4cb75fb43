"""What was loaded, kept beside what Blender shows.

Blender holds numbers in single precision, clamps them, and knows neither null nor the spelling of a wire. So every loaded value is
kept as it stood in the file, together with what Blender showed for it. As long as Blender still shows the same, the file's own
value is written back; once the artist has changed it, Blender's is.
"""

import json

import bpy

NOTHING = object()


def loaded_property():
    """Return the property that holds the memory of an owner."""
    return bpy.props.StringProperty(name="As Loaded", description="Values as they stood in the graph file", options={"HIDDEN"})


def remember(owner, key, raw, shown):
    """Keep a value as it stood in the file, with what is shown for it."""
    kept = json.loads(owner.as_loaded or "{}")
    kept[key] = [raw, shown]
    owner.as_loaded = json.dumps(kept)


def recall(owner, key, shown):
    """Return the value as it stood in the file when `shown` is still what is shown, else NOTHING."""
    kept = json.loads(owner.as_loaded or "{}").get(key)
    return kept[0] if kept is not None and kept[1] == json.loads(json.dumps(shown)) else NOTHING


def stored(owner, key):
    """Return the value as it stood in the file whatever is shown now, or NOTHING."""
    kept = json.loads(owner.as_loaded or "{}").get(key)
    return NOTHING if kept is None else kept[0]
