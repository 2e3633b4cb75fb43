"""The host specification: complete, plain, stable, and true to the registry and to what a cook says."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from emitted_events import kinds_emitted

from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.document.substep_document import load_substeps
from mpm_nodes.hosts import spec as spec_module
from mpm_nodes.hosts import words
from mpm_nodes.solver.auto_steps import CHOICE

HOSTS = Path(spec_module.__file__).parent


def test_it_is_plain_json_and_the_same_every_time(spec):
    """What a host reads back equals what was described, and two descriptions are equal byte by byte."""
    text = json.dumps(spec, allow_nan=False)
    assert json.loads(text) == spec
    assert json.dumps(spec_module.host_spec(registries.load(path="", entry_points=False))) == text


def test_it_names_every_node_stage_preset_and_knob(spec):
    """Nothing of the registry is left out."""
    registry = registries.load(path="", entry_points=False)
    for records, declarations in ((spec["nodes"], registry.nodes()), (spec["stages"], registry.stages())):
        assert [record["id"] for record in records] == list(declarations)
        for record, declaration in zip(records, declarations.values(), strict=True):
            assert [knob["name"] for knob in record["knobs"]] == [knob.name for knob in declaration.knobs]
            assert record["version"] == declaration.version and record["doc"]
    assert [preset["name"] for preset in spec["presets"]] == sorted(registry.presets)
    assert {m["name"] for m in spec["materials"]} == {
        item["value"] for node in spec["nodes"] if node["id"] == "material_library" for item in node["knobs"][0]["menu"]
    }


SYMBOLS = {"Alg11", "Apic", "Beta", "Cfl", "Dt", "Fps", "Krylov", "Lame", "Poisson", "Uv", "Youngs"}
"""Words that are of names and not of a language."""


def test_labels_are_words_of_artists_and_help_keeps_the_terms(spec):
    """No label is a symbol, none stands twice on a node, each renamed knob is there, and its help begins with term and unit."""
    owners = [*spec["nodes"], *spec["stages"], {"knobs": spec["settings"]}, *({"knobs": p["parameters"]} for p in spec["presets"])]
    for owner in owners:
        labels = [knob["label"] for knob in owner["knobs"]]
        assert len(set(labels)) == len(labels), owner.get("id")
        assert not SYMBOLS & {word for label in labels for word in label.split()}, labels
    every = {knob["name"]: knob for owner in reversed(owners[:-1]) for knob in owner["knobs"]}
    assert words.LABELS.keys() | words.ADVANCED <= every.keys()
    for name, (label, term) in words.LABELS.items():
        unit = f", {every[name]['unit']}" if every[name]["unit"] else ""
        assert every[name]["label"] == label and every[name]["doc"].startswith(f"{term}{unit}. "), name
    wanted = {"youngs_modulus": "Stiffness", "viscosity": "Thickness", "adhesion": "Stickiness", "tear_threshold": "Tears At"}
    assert {name: every[name]["label"] for name in wanted} == wanted and every["restitution"]["label"] == "Bounciness"
    solve = next(record for record in spec["nodes"] if record["id"] == "solve")
    assert {knob["name"] for knob in solve["knobs"] if knob["advanced"]} == {"substeps", "dt_max", "dt_min", "precision", "device"}


def test_accepted_types_are_what_the_package_accepts(spec):
    """A host that links only accepted types makes the same wires as the validator allows, and refuses the same."""
    nodes = registries.load(path="", entry_points=False).nodes()
    for record in spec["nodes"]:
        for port in record["inputs"]:
            declared = nodes[record["id"]].port(port["name"])
            for other in spec["nodes"]:
                for output in other["outputs"]:
                    allowed = declared.accepts(nodes[other["id"]].output(output["name"]).type)
                    assert (output["type"] in port["accepts"]) == allowed, (record["id"], port["name"], other["id"])
    known = {each["id"] for each in spec["types"]}
    used = {name for record in (*spec["nodes"], *spec["stages"]) for port in record["inputs"] for name in port["accepts"]}
    assert used <= known and len(known) == len(spec["types"])
    assert all(len(each["colour"]) == 3 and all(0 <= value <= 1 for value in each["colour"]) for each in spec["types"])


def test_presets_in_it_are_whole_documents(spec):
    """A host can put a preset's document where its name stands; one without stages names presets that have some."""
    names = {preset["name"] for preset in spec["presets"]}
    for preset in spec["presets"]:
        assert ("nodes" in preset["document"]) == (preset["candidates"] == []) and set(preset["candidates"]) <= names
        assert preset["candidates"] or load_substeps(preset["document"])[1] == []


def test_only_internal_outputs_are_hidden(spec):
    """The state that a node hands to its next frame is not a socket; everything else is."""
    hidden = [(node["id"], output["name"]) for node in spec["nodes"] for output in node["outputs"] if output["internal"]]
    assert hidden == [("label_pieces", "state"), ("solve", "state")]


def test_graph_format_and_names_are_the_packages_own(spec):
    """A graph that a host writes by the specification's words is taken."""
    form = spec["graph_format"]
    graph = {
        "format": form["name"],
        "version": form["version"],
        "settings": {k["name"]: k["default"] for k in spec["settings"]},
        "nodes": {"plane": {"type": "collide_plane"}},
    }
    assert list(load_graph(graph)) == ["plane"]
    assert re.fullmatch(spec["name_pattern"], "plane") and not re.fullmatch(spec["name_pattern"], "1 plane")


def test_event_kinds_are_those_that_the_package_emits(spec):
    """Every kind of event in the source is described, with all of its facts, and no other."""
    described = {each["kind"]: set(each["facts"]) for each in spec["cook"]["events"]}
    emitted = kinds_emitted()
    for group in (group for declaration in registries.default().stages().values() for group in declaration.facts):
        kinds = ("substep", "frame_done") if group.per_substep else (group.event,)
        for kind in kinds:
            emitted.setdefault(kind, set()).update(fact.name for fact in group.facts)
    emitted["choice"] = {fact.name for fact in CHOICE.facts}
    assert set(described) == set(emitted)
    for kind, facts in emitted.items():
        assert facts <= described[kind] | {"event", "time", "node", "frame"}, kind


def test_cook_arguments_are_the_programs_own(spec):
    """The command lines in the specification are understood by the program's parser."""
    from mpm_nodes.cli import parser

    facts = spec["cook"]
    filled = [
        text.replace("{graph}", "a.json").replace("{out}", "b").replace("{first}-{last}", "1-2")
        for text in [*facts["cook"], *facts["frames"], *facts["resume"]]
    ]
    args = parser().parse_args(filled)
    assert (args.command, args.resume, args.frames, args.events) == ("cook", True, (1, 2), "jsonl")
    assert parser().parse_args(["validate", "a.json", *facts["validate"][2:]]).json is True
    assert {each["code"] for each in facts["exit_codes"]} == {0, 1, 2, 3, 4, 5}


def test_the_command_prints_it():
    """`mpm-nodes host spec` prints the specification, and nothing else, on stdout."""
    done = subprocess.run([sys.executable, "-m", "mpm_nodes.cli", "host", "spec"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["format"] == spec_module.FORMAT


def test_the_room_knows_only_the_graph_and_data():
    """Hosts import the graph package and the data types; the material library is the one table more. Code for a host: nothing."""
    allowed = ("mpm_nodes.graph", "mpm_nodes.data", "mpm_nodes.hosts", "mpm_nodes.materials.library")
    for path in HOSTS.rglob("*.py"):
        for item in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in item.names] if isinstance(item, ast.Import) else []
            names += [item.module] if isinstance(item, ast.ImportFrom) and item.module and not item.level else []
            for name in names:
                assert not name.startswith("usd_io"), f"{path.name} imports {name}"
                if name.startswith("mpm_nodes."):
                    inside = "mpm_nodes_houdini" in path.parts
                    assert name.startswith(allowed) and not inside, f"{path.name}:{item.lineno} imports {name}"


def test_the_extension_carries_its_licence_from_wherever_it_is(tmp_path, monkeypatch):
    """Of a checkout, else of the installed distribution; none is built without."""
    from importlib import metadata

    from mpm_nodes.data import OutputError
    from mpm_nodes.hosts import blender

    here = blender.extension_files({})["LICENSE"]
    assert b"MIT License" in here
    monkeypatch.setattr(blender.mpm_nodes, "__file__", str(tmp_path / "mpm_nodes" / "__init__.py"))
    kept = tmp_path / "mpm_nodes-1.2.3.dist-info" / "licenses" / "LICENSE"

    class Entry:
        name = "LICENSE"

        def locate(self):
            return kept

    monkeypatch.setattr(metadata, "files", lambda name: [Entry()])
    with pytest.raises(OutputError, match="install it again"):
        blender.extension_files({})
    kept.parent.mkdir(parents=True)
    kept.write_bytes(here)
    assert blender.extension_files({})["LICENSE"] == here


def test_every_number_has_a_slider_with_two_ends(spec):
    """Each slider holds its default, keeps the limits and ends that were declared, and a logarithmic one does not reach zero."""
    groups = [record["knobs"] for record in (*spec["nodes"], *spec["stages"])]
    groups += [spec["settings"], *(preset["parameters"] for preset in spec["presets"])]
    for knob in (knob for group in groups for knob in group):
        limits, default = knob["range"], knob["default"]
        if knob["kind"] not in ("int", "float", "vector"):
            assert limits is None, knob["name"]
            continue
        low, high = limits["soft_min"], limits["soft_max"]
        assert low < high and (low > 0 or not limits["log"]), knob
        assert limits["min"] is None or low >= limits["min"] or limits["exclusive_min"], knob
        assert limits["max"] is None or high <= limits["max"], knob
        for value in [] if default is None else default if knob["kind"] == "vector" else [default]:
            assert low <= value <= high, knob


def test_the_parameters_of_a_preset_are_knobs_of_its_stages(spec):
    """Kind and menu are the stage's, and the default is what the preset gives it."""
    stages = {record["id"]: {knob["name"]: knob for knob in record["knobs"]} for record in spec["stages"]}
    count = 0
    for preset in spec["presets"]:
        document = preset["document"]
        assert [each["name"] for each in preset["parameters"]] == list(document.get("parameters", {}))
        for each in preset["parameters"]:
            stage, _, name = document["parameters"][each["name"]][0].partition(".")
            entry = document["nodes"][stage]
            knob = stages[entry["type"]][name]
            assert (each["kind"], each["menu"], each["unit"]) == (knob["kind"], knob["menu"], knob["unit"])
            assert each["default"] == entry.get("knobs", {}).get(name, knob["default"]) or "set" in document
            count += 1
    assert count > 50
