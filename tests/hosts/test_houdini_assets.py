"""The generated Houdini assets: up to date, true to the specification, and within the rules of expanded assets."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mpm_nodes.data import InputError, MpmNodesError, OutputError
from mpm_nodes.hosts.houdini import assets, specifications
from mpm_nodes.hosts.houdini import package as package_folder
from tests.houdini_assets import dialog_script
from tests.houdini_assets.check import check_asset, check_folder

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "hda_specs"


def test_committed_specifications_are_those_of_the_registry(spec):
    """hda_specs/ is what the registry gives today."""
    found = specifications.differences(spec, COMMITTED)
    assert found == [], f"{len(found)} files of hda_specs differ; run `mpm-nodes host houdini --specs hda_specs` and commit it"


def test_libraries_built_from_the_committed_files_are_those_of_the_registry(spec):
    """Nothing is lost on the way through hda_specs/: the same bytes, expanded and packed."""
    read = specifications.read(COMMITTED, spec["presets"])
    for form in package_folder.FORMS:
        assert package_folder.all_files(read, form) == package_folder.all_files(spec, form)


def test_differences_are_found(spec, tmp_path):
    """A changed, a missing and a foreign specification are each reported; writing fixes them."""
    specifications.write(spec, tmp_path)
    (tmp_path / "solve.json").write_text('{"scope": "graph"}')
    (tmp_path / "emit_box.json").unlink()
    (tmp_path / "gone.json").write_text('{"scope": "substeps"}')
    found = ["emit_box.json: missing", "gone.json: not of this registry", "solve.json: differs"]
    assert specifications.differences(spec, tmp_path) == found
    specifications.write(spec, tmp_path)
    assert specifications.differences(spec, tmp_path) == []
    (tmp_path / "package.json").write_text('{"name": "a file of somebody else"}')
    specifications.write(spec, tmp_path)
    assert specifications.differences(spec, tmp_path) == ["package.json: not of this registry"]


def test_a_folder_without_specifications_is_refused(spec, tmp_path):
    """No shared.json, and a file that lacks a field, are named with what to do."""
    with pytest.raises(InputError, match=r"holds no shared\.json"):
        specifications.read(tmp_path, spec["presets"])
    specifications.write(spec, tmp_path)
    (tmp_path / "mine.json").write_text('{"scope": "graph", "id": "mine"}')
    with pytest.raises(InputError, match=r"mine\.json: has no category, doc"):
        specifications.read(tmp_path, spec["presets"])


def test_a_written_package_forgets_nodes_that_are_gone(spec, tmp_path):
    """Libraries of an earlier build, of either form, are replaced; what is not from one stays, and is not written over."""
    otls = tmp_path / "mpm_nodes" / "otls"
    older = {**spec, "nodes": [*spec["nodes"], {**spec["nodes"][0], "id": "gone"}]}
    package_folder.write(older, tmp_path, "expanded")
    (otls / "mpm_nodes.mine.hda").write_bytes(b"INDX")
    assert (otls / "mpm_nodes.gone.hda").is_dir()
    package_folder.write(spec, tmp_path, "packed")
    own = {f"mpm_nodes.{asset.id}.hda" for asset in assets.assets_of(spec)}
    assert {path.name for path in otls.iterdir()} == own | {"mpm_nodes.mine.hda"} and all(path.is_file() for path in otls.iterdir())
    (tmp_path / "other" / "mpm_nodes" / "otls").mkdir(parents=True)
    (tmp_path / "other" / "mpm_nodes" / "otls" / "mpm_nodes.solve.hda").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"solve\.hda: was not written by"):
        package_folder.write(spec, tmp_path / "other", "packed")
    assert (tmp_path / "other" / "mpm_nodes" / "otls" / "mpm_nodes.solve.hda").read_bytes() == b"mine"


def test_every_node_and_stage_has_one_asset(spec, package):
    """Each is in a folder of its own, beside the cook and the start of a substep."""
    names = {path.name.split(".")[1] for path in (package / "mpm_nodes" / "otls").iterdir()}
    wanted = {record["id"] for record in (*spec["nodes"], *spec["stages"])}
    assert names == wanted | {"cook_graph", "substep_begin", "cached_points", "source", "guides"}


def test_ours_pass_every_check(package):
    """No rule of expanded assets is broken, and nothing is worth a warning."""
    folders, findings = check_folder(package)
    assert len(folders) == len(list((package / "mpm_nodes" / "otls").iterdir())) and [str(each) for each in findings] == []


def test_parameters_say_what_the_knobs_say(spec, package):
    """Unit, hard limits, menu, help, file pattern and default of every knob stand in the DialogScript."""
    for record in (*spec["nodes"], *spec["stages"]):
        folder = next((package / "mpm_nodes" / "otls" / f"mpm_nodes.{record['id']}.hda").glob("mpm__nodes*"))
        dialog = dialog_script.parse((folder / "DialogScript").read_text(encoding="utf-8"))
        parms = {parm.name: parm for parm in dialog.parms}
        assert dialog.label == record["label"]
        for knob in record["knobs"]:
            parm, limits = parms[knob["name"]], knob["range"] or {}
            assert parm.size == knob["size"] and knob["doc"] in parm.help
            if knob["kind"] in ("int", "float", "vector"):
                low, high = parm.range
                assert low.endswith("!") == (limits.get("min") is not None and not (limits["log"] and limits["min"] <= 0))
                assert high.endswith("!") == (limits.get("max") is not None)
                if knob["unit"]:
                    assert parm.tags.get("units") or knob["unit"] in parm.label
            if knob["choices"]:
                assert [token for token, _ in parm.menu] == [str(choice) for choice in knob["choices"]]
            if knob["kind"] == "path" and knob["file"]["patterns"]:
                assert parm.tags["filechooser_pattern"] == " ".join(knob["file"]["patterns"])


def test_new_nodes_hold_the_defaults(spec, houdini):
    """A node of every kind can be made; its untouched parameters read as the knobs' defaults; it takes its colour."""
    from mpm_nodes_houdini.values import read_knob

    for record in (*spec["nodes"], *spec["stages"]):
        node = houdini.work.createNode(f"mpm_nodes::{record['id']}::{record['version']}.0", record["id"])
        for knob in record["knobs"]:
            wanted = "" if knob["required"] else knob["default"]
            assert read_knob(node, knob, (1, 2)) == wanted, (record["id"], knob["name"])
        assert node._color is not None


GONE = {
    "aifc",
    "asynchat",
    "asyncore",
    "audioop",
    "cgi",
    "cgitb",
    "chunk",
    "crypt",
    "distutils",
    "imghdr",
    "imp",
    "lib2to3",
    "mailcap",
}
GONE |= {"msilib", "nis", "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"}
"""What the standard library of Python 3.11 has, of Houdini 20.5 and 21, and that of 3.13 has not, of Houdini 22."""


@pytest.mark.parametrize("minor", [11, 13])
def test_the_package_brings_no_other_python(package, minor):
    """The folder on Houdini's Python path (not `python3.13libs`) holds our module alone; it imports what every version has."""
    described = json.loads((package / "mpm_nodes.json").read_text())
    paths = [part["PYTHONPATH"]["value"] for part in described["env"]]
    assert described["hpath"] == "$HOUDINI_PACKAGE_PATH/mpm_nodes" and paths == ["$HOUDINI_PACKAGE_PATH/mpm_nodes/python"]
    assert described["enable"] == "houdini_version >= '20.5'"
    assert {path.name for path in (package / "mpm_nodes").iterdir()} == {"otls", "python", "toolbar", "written.json"}
    folder = package / "mpm_nodes" / "python"
    assert [path.name for path in folder.iterdir()] == ["mpm_nodes_houdini"]  # its pxr is Houdini's own
    for path in (folder / "mpm_nodes_houdini").glob("*.py"):
        for item in ast.walk(ast.parse(path.read_text(), feature_version=(3, minor))):
            names = [alias.name for alias in item.names] if isinstance(item, ast.Import) else []
            names += [item.module] if isinstance(item, ast.ImportFrom) and not item.level else []
            assert all(name.split(".")[0] in {"hou", "pxr", *sys.stdlib_module_names} - GONE for name in names), (path.name, names)


def test_a_knob_that_takes_our_name_is_refused(spec):
    """A user's knob called like one of the assets' own parameters gives a sentence, not a broken asset."""
    bad = json.loads(json.dumps(spec))
    bad["nodes"][0]["knobs"][0]["name"] = "mpm_id"
    with pytest.raises(MpmNodesError, match="knob mpm_id has a name"):
        assets.assets_of(bad)


USER_NODE = '''
import enum
from pathlib import Path
from mpm_nodes.data import A, Degrees, OutputPath, Particles, Range, Unit
from mpm_nodes.graph.declare import node

class Count(enum.Enum):
    """How many."""
    ONE = 1
    TWO = 2

@node(category="Mine & Yours", label="Every \\"Kind\\"", version=3)
def every_kind(
    particles: Particles, other: Particles = None, *,
    maybe: A[float, Unit("N/m"), Range(min=0.0)] | None = None, given: int | None = 4, pair: tuple[int, int] = (1, -2),
    four: tuple[float, float, float, float] = (0.0, 1.0, 2.5, -1e-7), cells: A[int, Range(min=1, max=512, log=True)] = 8,
    count: Count = Count.TWO, words: tuple[str, ...] = ("a b", "c"), any_file: Path = Path("x y.txt"),
    out: OutputPath = Path("o/p"), text: str = 'say "x" \\\\ y', angle: A[float, Degrees] = -1e20, flag: bool = True,
) -> Particles:
    """Hold a knob of every kind.

    Args:
        particles: P.
        other: O.
        maybe: M.
        given: G.
        pair: P.
        four: F.
        cells: C.
        count: C.
        words: W.
        any_file: A.
        out: O.
        text: Has "quotes" and \\\\ in its help.
        angle: A.
        flag: F.
    """
    return particles
'''


def test_a_users_node_gets_an_asset_too(tmp_path, monkeypatch):
    """A node with knobs of every kind, far values and quotes in its texts: its asset passes, and its values come back."""
    import fake_hou

    from mpm_nodes.graph.declare import registry as registries
    from mpm_nodes.hosts.spec import host_spec

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.py").write_text(USER_NODE)
    spec = host_spec(registries.load(path=str(tmp_path / "mine"), entry_points=False))
    package_folder.write(spec, tmp_path / "package")
    _, findings = check_folder(tmp_path / "package")
    assert [str(each) for each in findings] == []
    with fake_hou.session(tmp_path / "package", tmp_path, monkeypatch) as houdini:
        from mpm_nodes_houdini.values import read_knob, write_knob

        node = houdini.work.createNode("mpm_nodes::every_kind::3.0", "one")
        record = next(record for record in spec["nodes"] if record["id"] == "every_kind")
        assert (record["builtin"], record["inputs"][1]["optional"]) == (False, True)
        others = {
            "maybe": 0.5,
            "given": None,
            "pair": [-3, 4],
            "four": [1e-9, 2.0, 3.0, 4.0],
            "cells": 64,
            "count": 1,
            "words": [],
            "any_file": "b.txt",
            "out": "c/d",
            "text": "it's",
            "angle": 7.5,
            "flag": False,
        }
        for knob in record["knobs"]:
            assert read_knob(node, knob, (1, 2)) == knob["default"], knob["name"]
            write_knob(node, knob, others[knob["name"]])
            assert read_knob(node, knob, (1, 2)) == others[knob["name"]], knob["name"]


# ---------------------------------------------------------------- broken copies
def _replace(name: str, old: str, new: str) -> Callable[[Path, Path], None]:
    """Return what replaces a text in a file of the asset's folder, or of the operator's."""

    def change(asset: Path, operator: Path) -> None:
        path = asset / name[4:] if name.startswith("top:") else operator / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{name} does not hold {old!r}"
        path.write_bytes(text.replace(old, new, 1).encode("utf-8"))

    return change


def _dialog(old: str, new: str) -> Callable[[Path, Path], None]:
    return _replace("DialogScript", old, new)


def _index(old: str, new: str) -> Callable[[Path, Path], None]:
    return _replace("top:INDEX__SECTION", old, new)


def _add(name: str, text: str) -> Callable[[Path, Path], None]:
    return lambda asset, operator: (operator / name).write_bytes((text).encode("latin-1")) and None


def _remove(name: str) -> Callable[[Path, Path], None]:
    def change(asset: Path, operator: Path) -> None:
        (operator / name).unlink()
        listing = operator / "Sections.list"
        listing.write_text(listing.read_text().replace(f"{name}\t{name}\n", ""))

    return change


RADIUS = 'name    "radius"'
BROKEN: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "no marker": (lambda asset, _: (asset / "houdini.hdalibrary").unlink(), "must be there and be empty"),
    "marker not empty": (lambda asset, _: (asset / "houdini.hdalibrary").write_text("x"), "must be there and be empty"),
    "no first line in the top list": (_replace("top:Sections.list", '""\n', ""), 'must begin with a line ""'),
    "no first line in the list": (_replace("Sections.list", '""\n', ""), 'must begin with a line ""'),
    "a file that is not listed": (_add("Presets", "x"), "does not list Presets"),
    "a listed file that is missing": (lambda _, operator: (operator / "Help").unlink(), "lists Help, which is not there"),
    "a wrongly encoded file name": (_replace("Sections.list", "Help\tHelp", "Help\tHe_lp"), "its name must be He__lp"),
    "an operator without a folder": (_index("mpm_nodes::emit_sphere", "mpm_nodes::other"), "is missing; the index"),
    "a wrong path": (_index("oplib:/", "oplib:/x"), "Path is oplib:/x"),
    "an unknown table": (_index("Table:        Sop", "Table:        Pop"), "Table Pop is unknown"),
    "a version with letters": (_index("::emit_sphere::1.0\n", "::emit_sphere::a.0\n"), "digits and dots only"),
    "a key that is not padded": (_index("Label:        ", "Label: "), "padded to 14"),
    "a key too few": (_index("Empty:        false\n", ""), "keys are"),
    "inputs without a span": (_index("1 to 1", "1"), "write MIN to MAX"),
    "inputs backwards": (_index("1 to 1", "2 to 1"), "write MIN to MAX"),
    "a Python asset with a subnet": (_index("Subnet:       false", "Subnet:       true"), "Subnet must be false"),
    "an empty asset": (_index("Empty:        false", "Empty:        true"), "Empty must be false"),
    "a flag that is not a flag": (_index("Python:       true", "Python:       yes"), "must be true or false"),
    "no blank line at the end": (_index("2026\n\n", "2026\n"), "blank line"),
    "a foreign icon": (_index("opdef:/mpm_nodes", "opdef:/other"), "is of another operator"),
    "an icon that is missing": (_remove("IconSVG"), "has no section IconSVG"),
    "no PythonCook": (_remove("PythonCook"), "PythonCook: is missing"),
    "no FunctionName": (_remove("FunctionName"), "FunctionName: is missing"),
    "no DialogScript": (_remove("DialogScript"), "DialogScript: is missing"),
    "no Tools.shelf": (_remove("Tools.shelf"), "Tools.shelf: warning: is missing"),
    "a Python asset with a network": (lambda _, operator: (operator / "Contents.dir").mkdir(), "a Python asset has no network"),
    "a function name with a line feed": (_add("FunctionName", "mpm_nodes::emit_sphere::1.0\n"), "no line feed"),
    "a dialog that does not end": (_dialog("    }\n\n}\n", "    }\n"), "a } is missing"),
    "a word that the dialog grammar lacks": (_dialog("type    float", "type    float\n            colour"), "unknown here"),
    "a text that does not end": (_dialog('"Radius"', '"Radius'), "line"),
    "a type that is unknown": (_dialog("type    float", "type    real"), "type 'real' is unknown"),
    "a label before the name": (_dialog(RADIUS, 'label "x" name "radius"'), "'label' stands where name belongs"),
    "another operator's dialog": (_dialog("name\tmpm_nodes::emit_sphere", "name\tmpm_nodes::other"), "is named mpm_nodes::other"),
    "a label for an input that is not there": (_dialog("inputlabel\t1", "inputlabel\t5"), "labels input 5"),
    "an ordinal default that is not in its menu": (_dialog('{ "lattice" }', '{ "grid" }'), "has default grid"),
    "an ordinal without a menu": (_dialog("type    float", "type    ordinal"), "ordinal without a menu"),
    "more defaults than components": (_dialog('{ "0.5" }', '{ "0.5" "1" }'), "has 2 defaults and size 1"),
    "a vector of the wrong size": (_dialog("size    3", "size    2"), "a vector has 3"),
    "two parameters of one name": (_dialog('name    "jitter"', 'name    "seed"'), "two parameters seed"),
    "a parameter named like a component": (_dialog('name    "jitter"', 'name    "centrex"'), "two parameters centrex"),
    "a name with a space": (_dialog(RADIUS, 'name    "my radius"'), "letters, digits and _"),
    "a range that runs backwards": (_dialog("range   { 0! 10 }", "range   { 20! 10 }"), "has range 20! to 10"),
    "a condition on nothing": (
        _dialog("type    float", 'type    float\n            hidewhen "{ nothing == 1 } { seed == 2 }"'),
        "hidewhen names nothing",
    ),
    "a condition without an operator": (
        _dialog("type    float", 'type    float\n            hidewhen "{ seed }"'),
        "not a condition",
    ),
    "a menu with a token alone": (_dialog('"lattice" "Lattice"', '"lattice"'), "pairs of token and label"),
    "a property option too few": (_replace("TypePropertiesOptions", "MakeDefault := 1;\n", ""), "these 14 keys"),
    "a property option that is not a number": (
        _replace("TypePropertiesOptions", "MakeDefault := 1", "MakeDefault := on"),
        "these 14 keys",
    ),
    "options that are no JSON": (_add("ExtraFileOptions", "{"), "is no JSON"),
    "an option of another kind": (_replace("ExtraFileOptions", '"bool"', '"flag"'), '"bool" | "string" | "intarray"'),
    "a Python section that is not marked": (_add("ExtraFileOptions", "{}"), "does not say that OnCreated is Python"),
    "a shelf that is no XML": (_add("Tools.shelf", "<shelfDocument>"), "is no XML"),
    "a tool without a menu": (_replace("Tools.shelf", "toolSubmenu>", "toolMenu>"), "is no XML"),
    "an icon that is no XML": (_add("IconSVG", "<svg"), "is no XML"),
    "a create script without the version": (_replace("CreateScript", "___Version___", "Version"), "has no ___Version___"),
    "Python that does not compile": (_add("PythonCook", "def ("), "does not compile"),
    "carriage returns": (_add("Help", "= Sphere =\r\n"), "carriage returns"),
    "text in another encoding": (_add("Help", "= K\xfcgel =\n"), "is not UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_copy_is_caught(name, package, tmp_path):
    """Each rule, broken once in a good asset, is found and named."""
    asset = tmp_path / "mpm_nodes.emit_sphere.hda"
    shutil.copytree(package / "mpm_nodes" / "otls" / asset.name, asset)
    assert check_asset(asset) == []
    change, message = BROKEN[name]
    change(asset, next(asset.glob("mpm__nodes*")))
    assert any(message in str(finding) for finding in check_asset(asset)), [str(each) for each in check_asset(asset)]


SHIPPED = {
    "carriage returns": _add("Help", "= Sphere =\r\n"),
    "no help": _remove("Help"),
    "no options": _remove("ExtraFileOptions"),
    "no shelf tool": _remove("Tools.shelf"),
    "a picture that is not listed": _add("old.svg", "<svg/>"),
    "words of render nodes": _dialog(RADIUS, f'baseparm\n            label "Radius"\n            {RADIUS}'),
    "words of shaders": _dialog("parm {", 'rendermask { "*" }\n    parm {'),
    "a type of task nodes": _dialog("type    float", "type    geometrydata"),
    "a comment": _dialog("name\tmpm_nodes", "/* ours */\n    name\tmpm_nodes"),
    "a default that its menu has lost": _dialog('{ "lattice" }', '{ "grid" }'),
    "a condition on what is gone": _dialog("type    float", 'type    float\n            disablewhen "{ nothing == 1 }"'),
    "an icon of an older version": _index("opdef:/mpm_nodes", "opdef:/other"),
    "a function name with a line feed": _add("FunctionName", "mpm_nodes::emit_sphere::1.0\n"),
    "Python 2": _add("OnCreated", "try:\n    pass\nexcept IOError, error:\n    print error\n"),
    "Python that newer versions warn of": _add("OnCreated", "if 1 is 1:\n    pass\n"),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_what_shipped_assets_have_is_not_an_error(name, package, tmp_path):
    """Stand-ins for what public assets have and Houdini loads: at most warned of, and what no reader could take stays an error."""
    asset = tmp_path / "mpm_nodes.emit_sphere.hda"
    shutil.copytree(package / "mpm_nodes" / "otls" / asset.name, asset)
    SHIPPED[name](asset, next(asset.glob("mpm__nodes*")))
    findings = check_asset(asset)
    listed = [each for each in findings if "lists" in each.message]  # the stand-in's list names what was taken out of it
    assert not [str(each) for each in findings if each.is_error and each not in listed]
    assert findings or "warn" in name
    (next(asset.glob("mpm__nodes*")) / "DialogScript").write_text("{ {")
    assert any(each.is_error for each in check_asset(asset))


def test_a_button_that_does_not_compile_is_caught(package, tmp_path):
    """The Python of a button's callback is checked as well."""
    asset = tmp_path / "mpm_nodes.cook_graph.hda"
    shutil.copytree(package / "mpm_nodes" / "otls" / asset.name, asset)
    _dialog("import mpm_nodes_houdini;", "import;")(asset, next(asset.glob("mpm__nodes*")))
    assert any("script_callback: does not compile" in str(finding) for finding in check_asset(asset))


def test_a_folder_without_assets_is_refused(tmp_path):
    """Checking nothing is an error, not a success."""
    with pytest.raises(InputError, match="holds no asset"):
        check_folder(tmp_path)


def test_encoded_names_follow_the_rule():
    """_ / : are written as __ _1 _8, in an operator's name too."""
    from mpm_nodes.hosts.houdini.sections import encoded

    assert encoded("acme::Sop/mpm_demo::1.0") == "acme_8_8Sop_1mpm__demo_8_81.0"


def test_the_command_writes_and_checks(tmp_path):
    """`mpm-nodes host houdini` writes assets that pass the check; a broken one gives exit code 1."""

    def run(*arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)

    assert run("mpm_nodes.cli", "host", "houdini", "--out", str(tmp_path)).returncode == 0
    passed = run("tests.houdini_assets", str(tmp_path))
    assert passed.returncode == 0 and re.search(r"\d+ assets, 0 errors, 0 warnings", passed.stdout)
    asset = tmp_path / "expanded" / "mpm_nodes" / "otls" / "mpm_nodes.solve.hda"
    (asset / "houdini.hdalibrary").unlink()
    failed = run("tests.houdini_assets", str(asset))
    assert failed.returncode == 1 and "houdini.hdalibrary" in failed.stdout


def test_stages_are_not_in_the_tab_menu_and_recipes_are(package, spec):
    """A stage's tool names no menu and no context; each recipe has a tool that stands in the TAB menu and on a shelf.

    So has the tool for forces, in networks of DOPs too, where they are selected.
    """
    from xml.etree import ElementTree

    scopes = {record["id"]: "substeps" for record in spec["stages"]} | {assets.BEGIN: "substeps"}
    for folder in (package / "mpm_nodes" / "otls").iterdir():
        shelf = ElementTree.parse(next(folder.glob("mpm__nodes*/Tools.shelf"))).getroot()
        hidden = scopes.get(folder.name.split(".")[1]) == "substeps"
        assert (shelf.find(".//toolSubmenu") is None) == hidden and (shelf.find(".//toolMenuContext") is None) == hidden, (
            folder.name
        )
        assert shelf.find(".//script") is not None
    shelf = ElementTree.parse(package / "mpm_nodes" / "toolbar" / "mpm_nodes.shelf").getroot()
    tools = {tool.get("name"): tool for tool in shelf.findall("tool")}
    assert [member.get("name") for member in shelf.findall("toolshelf/memberTool")] == list(tools) and len(tools) >= 9
    forces = tools.pop("mpm_nodes_forces")
    assert forces.find("toolSubmenu").text == "MPM Nodes/Force" and forces.get("label") == "MPM Add Forces"
    assert [each.text for each in forces.findall("toolMenuContext/contextNetType")] == ["SOP", "DOP"]
    assert "mpm_nodes_houdini.choose_forces(kwargs)" in forces.find("script").text
    for tool in (*tools.values(), forces):
        compile(tool.find("script").text, "tool", "exec")
    for tool in tools.values():
        assert tool.find("toolSubmenu").text == "MPM Nodes/Configure" and tool.get("label").startswith("MPM Configure ")


def test_names_and_lists_stand_as_in_public_assets(package):
    """DialogScripts bear the full operator name; lists begin with the sections of public ones and end with the options."""
    for folder in (package / "mpm_nodes" / "otls").iterdir():
        home = next(folder.glob("mpm__nodes*"))
        operator = (home / "FunctionName").read_text()
        assert f"    name\t{operator}\n" in (home / "DialogScript").read_text() and operator.count("::") == 2
        listed = [line.split("\t")[1] for line in (home / "Sections.list").read_text().splitlines()[1:]]
        first = ["DialogScript", "CreateScript", "TypePropertiesOptions", "Help", "Tools.shelf"]
        assert listed[:5] == first and listed[-1] == "ExtraFileOptions"
        top = [line.split("\t")[0] for line in (folder / "Sections.list").read_text().splitlines()[1:]]
        assert top[:2] == ["INDEX__SECTION", "houdini.hdalibrary"] and len(top) == 3
