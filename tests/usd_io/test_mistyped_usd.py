"""Any attribute of a stage may hold any type, and any number any value: what is read is right, or refused in a sentence of ours."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

pytest.importorskip("pxr")

from pxr import Sdf

from mpm_nodes import cli
from mpm_nodes.data import GraphSettings, InputError
from mpm_nodes.nodes.collider_files import point_codes
from mpm_nodes.preview.scene import open_scene
from usd_io.check import check_cache
from usd_io.collider_meshes import StageMeshes
from usd_io.packing import rounding_of
from usd_io.stage_reader import frames_of, open_stage, read_points

POINTS = "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]"
MESH = {
    "points": POINTS,
    "faceVertexCounts": "int[] faceVertexCounts = [3]",
    "faceVertexIndices": "int[] faceVertexIndices = [0, 1, 2]",
    "xformOpOrder": 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:transform"]',
    "xformOp:translate": "double3 xformOp:translate = (0, 0, 0)",
    "xformOp:transform": "matrix4d xformOp:transform = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))",
}
PACKED = {f"mpm:packed:points_{axis}": f"custom int[] mpm:packed:points_{axis} = [1, 2, 3]" for axis in "xyz"}
PACKED["mpm:packed:points_step"] = "custom double mpm:packed:points_step = 0.5"
INSTANCES = {
    "protoIndices": "int[] protoIndices = [0, 0]",
    "positions": "point3f[] positions = [(0, 0, 0), (1, 0, 0)]",
    "orientations": "quath[] orientations = [(1, 0, 0, 0), (1, 0, 0, 0)]",
    "scales": "float3[] scales = [(1, 1, 1), (1, 1, 1)]",
    "prototypes": "rel prototypes = </p/m>",
    "m": 'def Mesh "m"\n{\n' + "\n".join(list(MESH.values())[:3]) + "\n}",
}
LITERALS = {
    "string": '"x"',
    "asset": "@x@",
    "timecode": "1",
    "pathExpression": '"/a"',
    "double": "nan",
    "int64": "9223372036854775807",
    "float3": "(1, 2, 3)",
    "string[]": '["x", "y", "z"]',
    "token[]": '["a", "b", "c"]',
    "bool[]": "[1, 0, 1]",
    "int[]": "[1, 2, 3]",
    "uint64[]": "[18446744073709551615, 1, 2]",
    "half[]": "[1, 2, 3]",
    "float[]": "[nan, inf, -inf]",
    "float2[]": "[(0, 0), (1, 1), (2, 2)]",
    "double3[]": "[(0, 0, 0), (1, 1, 1), (1e308, 1e308, 1e308)]",
    "float4[]": "[(1, 2, 3, 4), (1, 2, 3, 4)]",
    "quatf[]": "[(1, 0, 0, 0), (1, 0, 0, 0)]",
    "matrix4d[]": "[((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))]",
}


def stage(path: Path, body: str, **metadata: str) -> Path:
    """Write a stage of one prim; metadata replace those that are sound."""
    facts = {"metersPerUnit": "1", "upAxis": '"Y"', "startTimeCode": "1", "endTimeCode": "3", "timeCodesPerSecond": "24"}
    told = "\n".join(f"{name} = {value}" for name, value in (facts | metadata).items())
    path.write_text(f"#usda 1.0\n(\n{told}\n)\n{body}\n")
    assert Sdf.Layer.OpenAsAnonymous(str(path)), "the text itself is sound"
    return path


def prim(kind: str, attributes, custom: str = "") -> str:
    return f'def {kind} "{kind[0].lower()}" (\ncustomData = {{\n{custom}\n}}\n)\n{{\n' + "\n".join(attributes) + "\n}\n"


def read_all(path: Path) -> dict[str, str]:
    """Read a stage by every reader; return what each of them says, "" where it reads. Anything but an `InputError` goes on."""

    def points():
        opened = open_stage(path)
        read_points(opened, 1, "", point_codes(GraphSettings(start=1, end=3), opened))

    def meshes():
        found = StageMeshes(path)
        found.topology(1.0), found.points(1.0), found.deforms(), found.authored_codes(0.0, 9.0), found.stands_still()
        found.rigid_motion(1.0, [1.0, 2.0]), found.way(1.0, 2.0), found.digest([1.0], [2.0], "w"), found.values("w", 1.0)

    said = {}
    for name, read in {
        "points": points,
        "meshes": meshes,
        "frames": lambda: frames_of(path),
        "check": lambda: check_cache(path),
        "scene": lambda: open_scene(path),
        "notes": lambda: list(rounding_of(open_stage(path))),
    }.items():
        try:
            read()
            said[name] = ""
        except InputError as error:
            said[name] = str(error)
    return said


TRIED = {
    "Points": (
        {"points": POINTS},
        "velocities ids widths extent mpm:spacing mpm:time primvars:v primvars:F_0 primvars:material primvars:displayColor "
        "primvars:displayColor:indices primvars:volume primvars:mass primvars:id mpm:volume",
    ),
    "Scope": (PACKED, "mpm:packed:velocities_x mpm:packed:velocities_step"),
    "Mesh": (MESH, "holeIndices orientation purpose visibility velocities extent primvars:w mpm:matter_volume"),
    "PointInstancer": (INSTANCES, "ids invisibleIds velocities"),
}


@pytest.mark.parametrize("kind", TRIED)
def test_every_attribute_of_every_type(tmp_path, kind, capfd):
    """Whatever type an attribute has, readers read it or refuse the file; none ends in another exception."""
    base, further = TRIED[kind]
    refused = 0
    for number, name in enumerate([*base, *further.split()]):
        for other, (written, literal) in enumerate(LITERALS.items()):
            if name in ("m", "prototypes"):
                continue
            attributes = {**base, name: f"custom {written} {name} = {literal}"}
            refused += any(read_all(stage(tmp_path / f"{number}_{other}.usda", prim(kind, attributes.values()))).values())
    assert refused > 20


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-1", "1e308", "1e-320"])
@pytest.mark.parametrize("name", ["metersPerUnit", "timeCodesPerSecond", "startTimeCode", "endTimeCode"])
def test_every_number_of_a_stage(tmp_path, name, value):
    """Units that are not lengths, times that do not run: refused by name, or read where nothing needs them."""
    for kind, base in (("Points", {"points": POINTS}), ("Mesh", MESH), ("PointInstancer", INSTANCES)):
        said = read_all(stage(tmp_path / f"{kind}.usda", prim(kind, base.values()), **{name: value}))
        if "n" in value and name.endswith("TimeCode"):
            assert "time codes from" in said["frames"] and "time codes from" in said["scene"]
        if value in ("0", "-1", "nan", "inf") and name == "metersPerUnit":
            assert "metersPerUnit is" in (said["points"] if kind == "Points" else said["meshes"])


INSTANCE_CASES = {
    "too many": {"protoIndices": "int[] protoIndices = [0, 0, 0]"},
    "too few": {"protoIndices": "int[] protoIndices = [0]"},
    "negative": {"protoIndices": "int[] protoIndices = [-1, 0]"},
    "unknown": {"protoIndices": "int[] protoIndices = [7, 0]"},
    "none": {"protoIndices": ""},
    "nowhere": {"positions": ""},
    "few turns": {"orientations": "quath[] orientations = [(1, 0, 0, 0)]"},
    "few scales": {"scales": "float3[] scales = [(1, 1, 1)]"},
    "not a place": {"positions": "point3f[] positions = [(nan, 0, 0), (1, 0, 0)]"},
}


@pytest.mark.parametrize("case", INSTANCE_CASES)
def test_instances_that_do_not_go_together(tmp_path, case):
    """Columns of a point instancer that differ in length, or name no prototype."""
    said = read_all(stage(tmp_path / "i.usda", prim("PointInstancer", (INSTANCES | INSTANCE_CASES[case]).values())))
    assert any(words in said["meshes"] for words in (" protoIndices at time code", "protoIndices go from", "NaN"))


def test_instances_and_scales_that_are_sound(tmp_path):
    """The sound form of the cases above is read; a mesh with a scale of 0 is told by name."""
    said = read_all(stage(tmp_path / "i.usda", prim("PointInstancer", INSTANCES.values())))
    assert "has no primvar 'w'" in said["meshes"]
    nothing = MESH | {"xformOp:transform": MESH["xformOp:transform"].replace("1", "0")}
    with pytest.raises(InputError, match="mesh /m: its transform has a scale of 0"):
        StageMeshes(stage(tmp_path / "m.usda", prim("Mesh", nothing.values()))).rigid_motion(1.0, [1.0])


@pytest.mark.parametrize("name", ["F_²", "F_٣", "F_" + "9" * 5000, "_1", "F_00", "_", "F_01"])
def test_names_that_end_in_what_looks_like_a_number(tmp_path, name):
    """Digits of other scripts and numbers of thousands of digits belong to a name, not to the rows of a matrix."""
    body = prim("Points", [POINTS, f"float3[] primvars:{name} = [(1, 2, 3), (1, 2, 3), (1, 2, 3)]"])
    path = tmp_path / "p.usda"
    path.write_text(f"#usda 1.0\n(\nstartTimeCode = 1\nendTimeCode = 1\n)\n{body}", "utf-8")
    try:
        opened = open_stage(path)
    except InputError:  # not every script is one of names
        return
    assert len(read_points(opened, 1).attributes) == 3


MATERIAL = {"law": "snow", "params": {}, "density": 400.0}
MATERIALS = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "digits": "[" + "9" * 5000 + "]",
    "number": "1",
    "null": "null",
    "text": '"x"',
    "list of numbers": "[1]",
    "list of lists": "[[1]]",
    "not a number": json.dumps([MATERIAL | {"density": math.nan}]),
}
MEMBERS = {
    **dict.fromkeys(("law", "label", "look"), ("x",)),
    **dict.fromkeys(("density", "viscosity", "tear_threshold"), (1,)),
    **dict.fromkeys(("params", "tables", "thermal", "surface_tension"), ()),
}
"""Members of a material, and what of the values that are tried is sound there."""


def test_materials_of_every_form(tmp_path):
    """Text that is not JSON, nested too deeply, or of other types than a material has, is told as such."""
    texts = list(MATERIALS.values())
    for member, sound in MEMBERS.items():
        wrong = [value for value in (1, "x", [1], {"x": [1]}, {"a": {"b": 1}}, True) if value not in sound]
        texts += [json.dumps([{**MATERIAL, member: value}]) for value in wrong]
    for number, text in enumerate(texts):
        custom = f"string mpm_materials = '{text}'"
        path = tmp_path / f"{number}.usdc"  # a text layer would be refused for its brackets
        Sdf.Layer.OpenAsAnonymous(str(stage(tmp_path / f"{number}.usda", prim("Points", [POINTS], custom)))).Export(str(path))
        with pytest.raises(InputError, match="materials cannot be read"):
            read_points(path, 1)


def test_check_tells_of_the_time_that_does_not_run(tmp_path, capsys):
    """A range without end is a problem of the stage, and its frames are not counted one by one."""
    path = stage(tmp_path / "p.usda", prim("Points", [POINTS]), endTimeCode="1e12")
    assert cli.main(["check", str(path)]) == 1
    assert "time codes from 1 to 1e+12" in capsys.readouterr().out
