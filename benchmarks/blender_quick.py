"""What Quick takes in Blender: clicks, and processor seconds from the click until the first two frames are in the scene. Needs bpy.

python benchmarks/blender_quick.py [NAME ...]      # prints the table of docs/measured.md, or those of its rows

Seconds are those of Blender's process and of all that it starts, of the second of two cooks: the first one compiles.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from mpm_nodes.hosts.blender import build

PARTICLES = 30_000
FRAMES = 2
PRESETS = ("snow", "foam", "cream", "cheese", "toothpaste", "honey", "jelly", "wax", "chocolate")


class Task(NamedTuple):
    """What is done.

    Attributes:
        label: What it is called in the table.
        clicks: What is pressed after the objects are selected, one press each.
        preset: The matter.
        way: What becomes of the object.
        more: Whether a second object's matter is added to the graph.
    """

    label: str
    clicks: tuple[str, ...]
    preset: str
    way: str = "FILL"
    more: bool = False


CHOOSE = ("More Options", "Matter", "its name")
TASKS = {
    **{name: Task(name.replace("_", " ").capitalize(), ("the preset",), name) for name in PRESETS},
    "meet": Task("own object falls on two others", ("the preset",), "jelly"),
    "pour": Task("own object pours honey", (*CHOOSE, "Pour", "OK"), "honey", "POUR"),
    "drop": Task("own object drops", (*CHOOSE, "Drop", "OK"), "jelly", "DROP"),
    "throw": Task("own object is thrown", (*CHOOSE, "Throw", "OK"), "snow", "THROW"),
    "two": Task(
        "own objects of two matters meet",
        ("the preset", "the other object", *CHOOSE, "Add To", "the graph", "OK"),
        "jelly",
        more=True,
    ),
}


def measure(bpy: Any, task: Task, folder: Path) -> float:
    """Return the processor seconds of a task in a new file."""
    import addon_utils
    from bl_ext.user_default.mpm_nodes import cook, problems

    bpy.ops.wm.read_factory_settings(use_empty=True)
    addon_utils.enable("bl_ext.user_default.mpm_nodes", default_set=True)
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "shot.blend"))
    scene = bpy.context.scene
    others = []
    for place in (-0.5, 0.5) if task.label.endswith("two others") else ():
        bpy.ops.mesh.primitive_uv_sphere_add(radius=0.2, location=(place, 0.0, 0.2))
        others.append(bpy.context.object)
    bpy.ops.mesh.primitive_monkey_add(size=1.0, location=(0.0, 0.0, 0.9))
    monkey = bpy.context.object
    for other in others:
        other.select_set(True)
    before = _seconds()
    bpy.ops.mpm_nodes.quick(preset=task.preset, way=task.way, particles=PARTICLES, cook=False)
    (tree,) = problems.graph_trees(bpy.data)
    if task.more:
        bpy.ops.mesh.primitive_cube_add(size=0.4, location=(0.0, 0.0, 1.8))
        bpy.ops.mpm_nodes.quick(preset="honey", graph=tree.name, cook=False)
    tree.k_end = tree.k_start + FRAMES - 1
    cook.start(tree, scene)
    state = cook.wait(tree, 900)
    if state != "done":
        said = {node.name: node.problem for node in tree.nodes if getattr(node, "problem", "")}
        raise SystemExit(f"{task.label}: {state}, {tree.status} {said}")
    if not any(thing.type == "MESH" and thing not in (monkey, *others) for thing in scene.objects):
        raise SystemExit(f"{task.label}: no frame came into the scene")
    return _seconds() - before


def _seconds() -> float:
    """Return the processor seconds of this process and of those that it has started and that are over."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main(names: list[str]) -> None:
    """Print a row of each task."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["BLENDER_USER_RESOURCES"] = str(Path(scratch) / "user")
        os.environ.setdefault("MPM_NODES_PYTHON", sys.executable)
        (Path(scratch) / "user").mkdir()
        import bpy

        bpy.ops.extensions.package_install_files(
            filepath=str(build(Path(scratch) / "zip")), repo="user_default", enable_on_install=True
        )
        print("| task | clicks | s of processor |\n|---|---|---|", file=sys.stderr)
        for name in names or list(TASKS):
            taken = []
            for number in (1, 2):
                folder = Path(scratch) / f"{name}{number}"
                folder.mkdir()
                taken.append(measure(bpy, TASKS[name], folder))
            print(f"| {TASKS[name].label} | {len(TASKS[name].clicks)} | {taken[1]:.1f} |", file=sys.stderr, flush=True)
    sys.stderr.flush()
    os._exit(0)  # Blender can hang in its own exit


if __name__ == "__main__":
    main(sys.argv[1:])
