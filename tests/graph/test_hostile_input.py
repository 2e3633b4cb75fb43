"""Whatever stands in a graph or in a file that it names: one sentence of ours, no defect, no flood, no control of the terminal."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpm_nodes import cli
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.terminal import MOST_LINES, plain, plain_lines


def document() -> dict:
    graph = Graph(registry=registry.load(path="", entry_points=False), start=1, end=1, cell_size=0.1)
    ball = graph.add("emit_sphere", "ball", radius=0.2, material=graph.add("material_neo_hookean", "stuff"))
    graph.add("solve", "fall", sources=[ball])
    return graph.to_json()


DOCUMENT = document()


def knob(node: str, **values):
    return lambda document: document["nodes"][node]["knobs"].update(values)


def reader(kind: str, name: str, **inputs):
    node = {"type": kind, "version": 1, "knobs": {"path": name}, "inputs": inputs}
    return lambda document: document["nodes"].update(v=node)


LONG, HALF = "a" * 5000, "a\ud800"
NAMES = {"long": LONG, "half": HALF, "deep": "d/" * 2500, "missing": "none", "latin": "latin", "noise": "noise"}
CASES = {
    "radius": knob("ball", radius=1e300),
    "centre": knob("ball", centre=[1e300, 0, 0]),
    "velocity": knob("ball", velocity=[1e300, 0, 0]),
    "seed": knob("ball", seed=-1, seeding="poisson", jitter=0.5),
    "modulus": knob("stuff", youngs_modulus=1e300),
    "density": knob("stuff", density=1e300),
    "label": knob("stuff", label="\ud800"),
    "gravity": knob("fall", gravity=[0, 1e300, 0]),
    **{
        f"{kind} {what}": reader(kind, name + ending, **inputs)
        for what, name in NAMES.items()
        for kind, ending, inputs in (
            ("collide_vdb", ".vdb", {}), ("collide_usd", ".usda", {}), ("read_points", ".usda", {}),
            ("emit_level_set", ".vdb", {"material": "stuff"}), ("emit_mesh", ".usda", {"material": "stuff"}),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_value_ends_in_a_sentence_or_a_cook(tmp_path, name, capsys):
    """Absurd sizes, names and files end validate and cook with a sentence, or cook; exit code 1 is for defects of ours."""
    pytest.importorskip("pxr")
    (tmp_path / "latin.usda").write_bytes('#usda 1.0\n(\n doc = "café"\n)\ndef Mesh "café" {}\n'.encode("latin-1"))
    (tmp_path / "noise.usda").write_bytes(os.urandom(300))
    (tmp_path / "noise.vdb").write_bytes(os.urandom(300))
    (tmp_path / "latin.vdb").write_bytes("café".encode("latin-1"))
    changed = copy.deepcopy(DOCUMENT)
    CASES[name](changed)
    (tmp_path / "shot.json").write_text(json.dumps(changed))
    for command in (["validate"], ["cook", "--out", str(tmp_path / "out"), "--events", "none"]):
        code = cli.main([command[0], str(tmp_path / "shot.json"), *command[1:]])
        said = capsys.readouterr().err
        assert code in (0, 2, 4, 5) and "pxr" not in said.replace("usd_io", ""), said
        assert code == 0 or said.startswith("mpm-nodes: error: ")
        assert "Warning" not in said and max(map(len, said.splitlines()), default=0) < 2100


def test_a_flood_of_mistakes_is_cut(tmp_path, capsys, stopwatch):
    """Two hundred thousand unknown knobs: a hundred lines, one that counts the others, and seconds, not minutes."""
    changed = copy.deepcopy(DOCUMENT)
    changed["nodes"]["ball"]["knobs"].update({f"z{number}": 1 for number in range(200_000)})
    (tmp_path / "shot.json").write_text(json.dumps(changed))
    with stopwatch() as taken:
        assert cli.main(["validate", str(tmp_path / "shot.json")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= MOST_LINES and lines[-1].endswith("199,901 more problems")
    assert taken.seconds < 10.0


@pytest.mark.parametrize("place", ["knob", "type", "node", "port", "value"])
def test_no_escape_code_reaches_the_terminal(tmp_path, place, capsys):
    """Names and values with control characters are shown as escapes, in errors and in progress."""
    code = "\x1b]0;owned\x07\x1b[2J\u202e"
    changed = copy.deepcopy(DOCUMENT)
    ball = changed["nodes"]["ball"]
    {
        "knob": lambda: ball["knobs"].update({code: 1}),
        "type": lambda: ball.update(type=code),
        "node": lambda: changed["nodes"].update({code: {"type": "nope"}}),
        "port": lambda: ball["inputs"].update({code: "stuff"}),
        "value": lambda: ball["knobs"].update(seeding=code),
    }[place]()
    (tmp_path / "shot.json").write_text(json.dumps(changed))
    assert cli.main(["validate", str(tmp_path / "shot.json")]) == 2
    both = "".join(capsys.readouterr())
    assert not set(both) & {"\x1b", "\x07", "\u202e"} and "owned" in both


def test_progress_shows_no_escape_code(capsys):
    """Messages of nodes and labels of materials go through the same filter."""
    from mpm_nodes.graph.reports.events import ConsoleLines

    show = ConsoleLines(sys.stderr, tty=False)
    show({"event": "warning", "message": "\x1b[2Jred", "where": "\x9bnode"})
    assert capsys.readouterr().err == "warning: \\x9bnode: \\x1b[2Jred\n"


def test_plain_keeps_what_people_write():
    """Letters of every script stay; controls, half characters and directions do not; long lines lose their middle."""
    assert plain("Käse, сыр, 芝士 ²") == "Käse, сыр, 芝士 ²"
    assert plain("a\tb\ud800\u2028c\x00") == "a\\tb\\ud800\\u2028c\\x00"
    assert len(plain("x" * 10**6)) < 2100 and len(plain_lines("x\n" * 10**5)) == MOST_LINES + 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["nodes", "--markdown"], ["validate"]])
def test_a_full_disk_behind_standard_output_is_no_defect(tmp_path, command):
    """Exit code 5 and a sentence; the interpreter adds nothing of its own."""
    (tmp_path / "shot.json").write_text(json.dumps(DOCUMENT))
    arguments = command if command != ["validate"] else ["validate", str(tmp_path / "shot.json")]
    program = "import sys; from mpm_nodes.cli import main; sys.exit(main(sys.argv[1:]))"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.returncode == 5 and "No space left on device" in done.stderr and "Exception ignored" not in done.stderr, done.stderr
