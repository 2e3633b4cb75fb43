"""What an artist has changed without a key, kept while Blender evaluates animation.

Whatever makes Blender evaluate an action, a strip or a driver (another frame, an object that is shown for a moment, an import)
writes its values over those of the artist. They are read before and put back afterwards, for all of the file that is animated.
"""

import contextlib

import bpy

from . import animation


@contextlib.contextmanager
def kept():
    """Leave every animated value of the file as it is now."""
    before = [(owner, path, value) for owner, path in _animated() if (value := _read(owner, path)) is not None]
    try:
        yield
    finally:
        for owner, path, value in before:
            with contextlib.suppress(ReferenceError):  # it was removed meanwhile
                if _read(owner, path) != value:
                    _write(owner, path, value)


def _animated():
    """Yield (data-block, data path) of all that is animated in the file."""
    for prop in bpy.data.bl_rna.properties:
        if prop.type != "COLLECTION":
            continue
        for block in getattr(bpy.data, prop.identifier):
            # materials, lights, worlds and scenes hold a node tree, which is animated by itself
            inner = getattr(block, "node_tree", None)
            for owner in (block, inner) if inner is not None and inner.is_embedded_data else (block,):
                if getattr(owner, "animation_data", None) is not None:
                    yield from ((owner, path) for path in animation.paths_of(owner))


def _read(owner, path):
    """Return a copy of a value; None where the path leads nowhere."""
    try:
        value = owner.path_resolve(path)
    except ValueError:
        return None
    return tuple(value) if hasattr(value, "__len__") and not isinstance(value, (str, set)) else value


def _write(owner, path, value):
    """Set a value, unless it cannot be set."""
    holder, key = owner, path
    with contextlib.suppress(AttributeError, TypeError, ValueError):
        if path.endswith('"]'):
            place, _, name = path.rpartition('["')
            holder = owner.path_resolve(place) if place else owner
            holder[bpy.utils.unescape_identifier(name[:-2])] = value
            owner.update_tag()
        else:
            place, _, key = path.rpartition(".")
            setattr(owner.path_resolve(place) if place else owner, key, value)
