"""Records of cooks with a sound seal and values of other kinds: each command says so, or goes on with what it does not need."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest

from mpm_nodes import cli
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.files.folder import json_bytes
from mpm_nodes.graph.revisions.records import _seal

pytest.importorskip("pxr")

WRONG = (None, -1, "x", [1], float("nan"))
MISSING = object()


@pytest.fixture(scope="module")
def cooked(tmp_path_factory):
    """A graph with a whole cook of it, and one in parts."""
    folder = tmp_path_factory.mktemp("cooked")
    graph = Graph(registry=registry.load(path="", entry_points=False), start=1, end=2, cell_size=0.1)
    ball = graph.add("emit_sphere", "ball", radius=0.15, material=graph.add("material_neo_hookean", "stuff"))
    graph.add("write_cache", "cache", name="cache", particles=graph.add("solve", "fall", sources=[ball]))
    file, quiet = str(graph.save(folder / "shot.json")), ("--events", "none")
    assert cli.main(["cook", file, "--out", str(folder / "out"), *quiet]) == 0
    assert cli.main(["cook", file, "--out", str(folder / "solve"), "--part", "solve", *quiet]) == 0
    parts = ["cook", file, "--out", str(folder / "parts/all"), "--part", "frames", "--solved", str(folder / "solve"), *quiet]
    assert cli.main(parts) == 0
    return folder


COMMANDS = {
    "check": ("out", ["check", "@/out"]),
    "clean": ("out", ["clean", "@/out"]),
    "resume": ("out", ["cook", "@/shot.json", "--out", "@/out", "--resume", "--events", "none"]),
    "again": ("out", ["cook", "@/shot.json", "--out", "@/out", "--again-from", "2", "--events", "none"]),
    "join": ("parts/all", ["join", "@/parts", "--frames", "1-2", "--out", "@/joined"]),
}


def places(document, place=()):
    """Yield the places of all values to a depth of two, and of the settings of a manifest's graph."""
    for name, value in document.items():
        yield (*place, name)
        if isinstance(value, dict) and (len(place) < 1 or (*place, name) == ("graph", "settings")):
            yield from places(value, (*place, name))


def changed(document: dict, place: tuple[str, ...], value) -> dict:
    document = copy.deepcopy(document)
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    if value is MISSING:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return document


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("file", ["cook.json", "frames/0001.commit.json"])
def test_values_of_other_kinds(cooked, tmp_path, command, file, capsys):
    """No value of a manifest or of a sealed commit record is a defect of ours, whatever its kind."""
    root, arguments = COMMANDS[command]
    whole = json.loads((cooked / root / "r001" / file).read_text())
    for number, place in enumerate(places(whole)):
        if place in (("seal",), ("format",)):
            continue
        for value in (WRONG[number % len(WRONG)], MISSING):
            document = changed(whole, place, value)
            if file != "cook.json":
                document["seal"] = _seal({name: kept for name, kept in document.items() if name != "seal"})
            shutil.rmtree(tmp_path / "try", ignore_errors=True)
            shutil.copytree(cooked, tmp_path / "try")
            Path(tmp_path / "try" / root / "r001" / file).write_bytes(json_bytes(document))
            code = cli.main([text.replace("@", str(tmp_path / "try")) for text in arguments])
            said = capsys.readouterr().err
            assert code in (0, 2, 5) or (command == "check" and code == 1), (place, value, said)
            assert "defect" not in said and "Traceback" not in said, (place, value, said)
