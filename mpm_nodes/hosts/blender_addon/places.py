"""Where the files of a graph lie: every .blend file, graph and object has a place of its own."""

import hashlib
import json
import uuid
from pathlib import Path

import bpy

from .trees import GRAPH_TREE

_UNSAVED = {}
FILES = {"mesh": "object.usdc", "points": "points.usdc"}


def folder_of(tree):
    """Return the folder of a tree's graph file, inputs and caches."""
    if tree.folder:
        return Path(bpy.path.abspath(tree.folder))
    if bpy.data.filepath:
        return Path(bpy.path.abspath("//")) / "mpm" / Path(bpy.data.filepath).stem
    return _unsaved_folder()


def _unsaved_folder():
    """Return a folder that outlives Blender for what a file without a name cooks."""
    if "name" not in _UNSAVED:
        _UNSAVED["name"] = uuid.uuid4().hex[:12]
    return Path(bpy.utils.user_resource("DATAFILES", path="mpm_nodes")) / "unsaved" / _UNSAVED["name"]


@bpy.app.handlers.persistent
def after_load(*_):
    """Give the next unsaved file another folder."""
    _UNSAVED.clear()


def graph_path(tree):
    """Return the file that a tree is written to before it is cooked."""
    return folder_of(tree) / f"{_name(tree)}.json"


def out_path(tree):
    """Return the output root of a tree; every cook gets a folder rNNN in it."""
    return folder_of(tree) / f"{_name(tree)}_cache"


def published_path(tree):
    """Return the folder of a tree's published cooks, and the name that they have before their number."""
    return folder_of(tree) / "published", _name(tree)


def input_path(graph, thing, kind="mesh"):
    """Return the file that an object's surface, or its points, are exported to for the graph file `graph`.

    The folder has the object's name, the file none: programs take files that differ in a number for the frames of a sequence.
    """
    names = [each.name_full for each in bpy.data.objects]
    return inputs_path(graph) / distinct(thing.name_full, names) / FILES[kind]


def inputs_path(graph):
    """Return the folder of the files that objects are exported to for the graph file `graph`."""
    return Path(graph).parent / f"{Path(graph).stem}_inputs"


def _name(tree):
    return distinct(tree.name_full, [each.name_full for each in bpy.data.node_groups if each.bl_idname == GRAPH_TREE])


def file_name(name):
    """Return a name with what file systems do not like replaced."""
    return "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in name)


def distinct(name, names):
    """Return a file name for a name that no other of `names` gets, on file systems that ignore case too."""
    plain = file_name(name)
    alike = {each for each in names if file_name(each).casefold() == plain.casefold()} | {name}
    # a name that needs no change keeps it; the others are told apart by a digest of theirs
    if min(alike, key=lambda each: (file_name(each) != each, each)) == name:
        return plain
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


# ---------------------------------------------------------------- whose graph file it is
def mark_owner(document):
    """Say in a graph document which .blend file writes it."""
    if bpy.data.filepath:
        editor = document.setdefault("editor", {})
        editor["blender"] = {**editor.get("blender", {}), "file": Path(bpy.data.filepath).as_posix()}


def other_owner(path):
    """Return the .blend file that wrote a graph file, where that is another one that still exists; else ""."""
    try:
        written = json.loads(Path(path).read_text(encoding="utf-8"))["editor"]["blender"]["file"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    ours = Path(bpy.data.filepath).as_posix() if bpy.data.filepath else ""
    return written if written != ours and Path(written).is_file() else ""
