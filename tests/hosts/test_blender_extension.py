"""The Blender extension as a package: its zip, its manifest, what it imports, how it registers, what its classes offer."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from blender_process import in_blender

import mpm_nodes
from mpm_nodes.cli import main
from mpm_nodes.graph.declare import registry
from mpm_nodes.hosts.blender import FOLDER, build

ALLOWED = {"bmesh", "bpy", "bpy_extras", "gpu", "gpu_extras", "mathutils", *sys.stdlib_module_names}

REGISTER = """
def known():
    find = bpy.types.Node.bl_rna_get_subclass_py
    return [sum(find(cls.bl_idname) is not None for cls in nodes.CLASSES),
            sum(name.startswith(("MPM_", "Mpm")) for name in dir(bpy.types))]
counts = [known()]
for _ in range(2):
    addon_utils.disable("bl_ext.user_default.mpm_nodes", default_set=True)
    counts.append(known())
    addon_utils.enable("bl_ext.user_default.mpm_nodes", default_set=True)
    counts.append(known())
answer["counts"] = counts
from bl_ext.user_default.mpm_nodes import quick_pictures
for name in [*quick_presets.found()[0], "nothing", "honey"]:
    quick_pictures.icon(name)
loaded = quick_pictures.LOADED["pictures"]
answer["pictures"] = {os.path.basename(path): list(picture.image_size) for path, picture in loaded.items()}
answer["presets"] = list(quick_presets.found()[0])
answer["heavy"] = sorted({"numba", "pxr", "mpm_nodes"} & set(sys.modules))
"""

CLASSES = """
offered = {}
for cls in [*nodes.NODE_CLASSES.values(), *nodes.STAGE_CLASSES.values()]:
    rna = cls.bl_rna.properties
    found = {}
    for knob in cls.record["knobs"]:
        one = rna[knobs.prop(knob["name"])]
        facts = {"kind": one.type, "help": one.description, "label": one.name}
        if one.type in ("FLOAT", "INT"):
            facts.update(unit=one.unit, size=one.array_length, low=one.hard_min, high=one.hard_max, soft_high=one.soft_max)
        if one.type == "ENUM":
            facts["menu"] = [item.identifier for item in one.enum_items]
        found[knob["name"]] = facts
    offered[cls.record["id"]] = found
answer["offered"] = offered
answer["menus"] = {menu.bl_label: menu.bl_idname for menu in [*interface.MENUS, interface.STAGE_MENU]}
answer["colours"] = len({cls.colour for cls in __import__("bl_ext.user_default.mpm_nodes.sockets", fromlist=["x"]).CLASSES})
tree = trees.new_tree(trees.GRAPH_TREE, "all")
inner = trees.new_tree(trees.SUBSTEP_TREE, "all stages")
for name in nodes.NODE_CLASSES:
    tree.nodes.new(f"MpmNode_{name}")
for name in nodes.STAGE_CLASSES:
    inner.nodes.new(f"MpmStage_{name}")
answer["sockets"] = {node.record["id"]: [[s.identifier for s in node.inputs], [s.identifier for s in node.outputs]]
                     for node in [*tree.nodes, *inner.nodes]}
"""

ENVIRONMENT = """
def said(path):
    preferences.environment = path
    try:
        return bpy.ops.mpm_nodes.check_environment() and "", preferences.answer
    except RuntimeError:
        return "error", preferences.answer
answer["good"] = said(os.environ["MPM_NODES_PYTHON"])
answer["folder"] = said(given["folder"])
answer["gone"] = said("/nowhere/at/all")
answer["no_python"] = said(given["empty"])
answer["other"] = said(given["other"])
"""


def test_the_zip_is_what_blender_takes(tmp_path: Path):
    """The zip holds manifest, specification and every module; two builds are equal; Blender's own validator accepts it."""
    path = build(tmp_path / "a")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        facts = tomllib.loads(archive.read("blender_manifest.toml").decode())
        spec = json.loads(archive.read("spec.json"))
    assert {"__init__.py", "blender_manifest.toml", "spec.json", "LICENSE"} <= set(names)
    assert {file.name for file in FOLDER.glob("*.py")} <= set(names)
    assert facts["schema_version"] == "1.0.0" and facts["id"] == "mpm_nodes" and facts["license"] == ["SPDX:MIT"]
    assert facts["blender_version_min"] == "4.2.0" and facts["type"] == "add-on" and len(facts["tagline"]) <= 64
    assert not facts["tagline"].endswith(".") and all(len(text) <= 64 for text in facts["permissions"].values())
    assert [each["id"] for each in spec["nodes"]] == list(registry.nodes())
    assert build(tmp_path / "b").read_bytes() == path.read_bytes()
    found = [Path(entry) / "bpy" for entry in sys.path if (Path(entry) / "bpy").is_dir()]
    tools = [tool for folder in found for tool in folder.glob("*/scripts/addons_core/bl_pkg/cli/blender_ext.py")]
    if tools:
        done = subprocess.run([sys.executable, tools[0], "validate", path], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """`mpm-nodes host blender` names the zip, how to install it, and the environment to choose; a file in the way is said."""
    assert main(["host", "blender", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert (tmp_path / f"mpm_nodes-{mpm_nodes.__version__}.zip").is_file() and sys.prefix in out and "Install from Disk" in out
    (tmp_path / "file").write_text("")
    assert main(["host", "blender", "--out", str(tmp_path / "file")]) == 5
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_the_addon_imports_blender_and_python_alone(path: Path):
    """No module of the add-on imports numba, pxr, numpy or this package."""
    for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in item.names] if isinstance(item, ast.Import) else []
        if isinstance(item, ast.ImportFrom) and not item.level:
            names = [item.module or ""]
        assert {name.split(".")[0] for name in names} <= ALLOWED, f"{path.name}:{item.lineno}"


def test_it_registers_twice():
    """Switched off, every class is gone; switched on again, every class is back; nothing heavy came into Blender's process."""
    seen = in_blender(REGISTER)
    on, off = seen["counts"][0], seen["counts"][1]
    assert seen["counts"] == [on, off, on, off, on] and off == [0, 0]
    assert on[0] == len(registry.nodes()) + len(registry.stages()) + 2 and on[1] >= 16
    assert seen["heavy"] == []
    assert seen["pictures"] == {f"{name}.jpg": [216, 144] for name in seen["presets"]}


def test_every_node_and_knob_of_the_registry_is_offered():
    """Each node and stage is a class with its ports as sockets; each knob a property with help, unit, range and menu."""
    seen = in_blender(CLASSES)
    declared = {**registry.nodes(), **registry.stages()}
    assert set(seen["offered"]) == set(declared)
    kinds = {
        "bool": "BOOLEAN",
        "int": "INT",
        "float": "FLOAT",
        "vector": "FLOAT",
        "enum": "ENUM",
        "substeps": "ENUM",
        "table": "POINTER",
    }
    for name, declaration in declared.items():
        for knob in declaration.knobs:
            one = seen["offered"][name][knob.name]
            assert one["kind"] == kinds.get(knob.kind, "STRING"), (name, knob.name)
            doc = knob.doc.replace(f" [{knob.unit}]", "").rstrip(".")[:40]
            if knob.kind == "vector" or knob.name[:5] == "wall_":  # by the scene's axes: test_blender_axes.py
                doc = re.split(r"\b(?:low |high )?[xyz]\b", doc)[0]
            assert doc in one["help"].replace(f" [{knob.unit}]", ""), "renamed knobs have the field's term before it"
            assert knob.unit in one["label"] or one["unit"] != "NONE", "Blender writes its own units"
            assert one.get("size", 0) == (knob.size if knob.kind == "vector" else 0)
            if knob.kind == "enum":
                assert one["menu"] == [str(choice) for choice in knob.choices]
            if knob.range is not None and knob.range.max is not None:
                assert one["high"] == pytest.approx(knob.range.max, rel=1e-6)
            if knob.range is not None and knob.range.min is not None:
                assert one["low"] == pytest.approx(knob.range.min, rel=1e-6)
            if knob.range is not None and knob.range.soft_max is not None:
                assert one["soft_high"] == pytest.approx(knob.range.soft_max, rel=1e-6)
    assert set(seen["menus"]) == {d.category for d in registry.nodes().values()} | {"Stages"}
    assert seen["colours"] >= 9
    for name, declaration in registry.nodes().items():
        inputs, outputs = seen["sockets"][name]
        assert inputs == [port.name for port in declaration.ports]
        assert set(outputs) <= {output.name for output in declaration.outputs}
    for name, declaration in registry.stages().items():
        assert seen["sockets"][name] == [[domain.name for domain in declaration.domains], list(declaration.outputs)]


def test_the_check_button_says_what_is_wrong(tmp_path: Path):
    """A good environment gives its versions, also by its folder; a bad one says what is missing and what to do."""
    (tmp_path / "empty").mkdir()
    other = tmp_path / "other"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    other.chmod(0o755)
    seen = in_blender(ENVIRONMENT, folder=sys.prefix, empty=str(tmp_path / "empty"), other=str(other))
    assert seen["good"][0] == "" and f"mpm-nodes {mpm_nodes.__version__} on Python" in seen["good"][1]
    assert seen["folder"] == seen["good"]
    wanted = {"gone": "does not exist. Choose", "no_python": "holds no Python. Choose", "other": "has no mpm_nodes"}
    for case, words in wanted.items():
        assert seen[case][0] == "error" and words in seen[case][1], seen[case]
