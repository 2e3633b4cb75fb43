"""What a user's node prints, and how it ends the program, disturbs nobody who reads events; settings of Python do not either."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mpm_nodes
from mpm_nodes.graph.document.document import Graph

ROOT = Path(mpm_nodes.__file__).parent
PROGRAM = [sys.executable, "-P", "-m", "mpm_nodes.cli"]
NODE = """
import ctypes, os, sys
from typing import Annotated as A
from mpm_nodes.data import Particles, Unitless
from mpm_nodes.graph.declare import node
print("at import")
os.write(1, b"3" + bytes([10]))

@node(category="Emit", label="Loud", version=1)
def loud(particles: Particles, *, ends: A[float, Unitless] = 0.0) -> Particles:
    \"\"\"Print.

    Args:
        particles: Matter.
        ends: Whether to end the program.
    \"\"\"
    print('{"event": 7}')
    os.write(1, b"[1, 2]" + bytes([10]))
    ctypes.CDLL(None).printf(b"from C" + bytes([10]))
    if ends == 2.0:
        os._exit(0)
    if ends:
        sys.exit(0)
    return particles
"""


def run(tmp_path: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "MPM_NODES_PATH": str(tmp_path / "nodes"), "PYTHONPATH": str(ROOT.parent), **variables}
    return subprocess.run(
        [*PROGRAM, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def loud(tmp_path):
    """A graph of one loud node, and the folder with its file."""
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "loud.py").write_text(NODE)
    graph = Graph(start=1, end=2, cell_size=0.1)
    graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), material=graph.add("material_neo_hookean", "stuff"))
    document = graph.to_json()
    entry = {"type": "loud", "inputs": {"particles": "body"}}
    document["nodes"]["loud"] = entry
    document["nodes"]["cache"] = {"type": "export_points", "inputs": {"particles": "loud"}}
    (tmp_path / "g.json").write_text(json.dumps(document))
    entry["knobs"] = {"ends": 1.0}
    (tmp_path / "ends.json").write_text(json.dumps(document))
    entry["knobs"] = {"ends": 2.0}
    (tmp_path / "leaves.json").write_text(json.dumps(document))
    return tmp_path


def test_stdout_holds_events_alone(loud):
    """Prints of Python and writes past it, at import and in a call, are found on stderr; every line of stdout is an event."""
    done = run(loud, "cook", "g.json", "--out", "o", "--events", "jsonl")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(isinstance(event, dict) and isinstance(event["event"], str) for event in events)
    assert {"plan", "frame_done"} <= {event["event"] for event in events}
    assert all(text in done.stderr for text in ("at import", "3", '{"event": 7}', "[1, 2]", "from C"))


@pytest.mark.parametrize(
    "words",
    [
        "nodes --json",
        "nodes loud --json",
        "validate g.json --json",
        "validate g.json --json --needs",
        "host spec",
        "upgrade g.json",
    ],
)
def test_stdout_holds_json_alone(loud, words):
    """What a node file prints at import goes to stderr where a command prints JSON."""
    done = run(loud, *words.split())
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    assert "at import" in done.stderr or words == "host spec"


def test_a_node_that_leaves_without_a_word_is_told(loud):
    """os._exit(0) in a node fails the cook, and the task of a job."""
    done = run(loud, "cook", "leaves.json", "--out", "o")
    assert done.returncode == 1 and "ended the program with exit code 0; look for os._exit" in done.stderr
    assert run(loud, "farm", "leaves.json", "--out", "job").returncode == 0
    done = run(loud, "farm", "job", "--jobs", "1")
    assert done.returncode == 1 and "failed" in done.stderr + done.stdout


def test_a_node_that_ends_the_program_is_told(loud):
    """sys.exit(0) in a call or at import is an error with its place, not a silent success."""
    done = run(loud, "cook", "ends.json", "--out", "o")
    assert done.returncode == 1 and "loud, frame 1: loud.py, line 23: SystemExit: 0" in done.stderr
    (loud / "nodes" / "gone.py").write_text("import sys\n\nsys.exit(0)\n")
    done = run(loud, "nodes")
    assert done.returncode == 2 and "gone.py:3: SystemExit: 0" in done.stderr


@pytest.mark.parametrize("setting", ["PYTHONOPTIMIZE", "PYTHONINSPECT"])
def test_settings_of_python_change_nothing(tmp_path, setting):
    """Without docstrings there is no help, and an interpreter that stays open waits: the program starts again without them."""
    (tmp_path / "nodes").mkdir()
    done = run(tmp_path, "nodes", "emit_box", **{setting: "2"})
    assert done.returncode == 0 and "Fill a box with particles" in done.stdout, done.stderr


# ---------------------------------------------------------------- hosts
def loaded(path: str):
    spec = importlib.util.spec_from_file_location(Path(path).stem + "_alone", ROOT / "hosts" / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FOREIGN = {
    "PYTHONPATH": "/x",
    "PYTHONHOME": "/x",
    "PYTHONINSPECT": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHONSTARTUP": "/x",
    "PYTHONWARNINGS": "error",
}


def test_hosts_hand_no_settings_on(monkeypatch):
    """What a host's own Python was told stays with it; a safe path alone is asked for."""
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    terminal = loaded("../../docs/examples/mpm_terminal.py")
    started = {}
    monkeypatch.setattr(terminal.subprocess, "Popen", lambda words, **options: started.update(options["env"]))
    terminal.program([])
    for environment in (started, loaded("houdini/mpm_nodes_houdini/process.py").environment()):
        assert {name for name in environment if name.startswith("PYTHON")} == {"PYTHONSAFEPATH"}


@pytest.mark.parametrize("line", ["", "text", "3", "[1]", '"event"', '{"event": 7}', "{}", "null"])
def test_other_lines_are_passed_over(line):
    """Readers in Houdini and in Blender, which are alike, take objects with the name of an event alone."""
    houdini = loaded("houdini/mpm_nodes_houdini/process.py")
    assert houdini.event_of(line) is None and houdini.event_of('{"event": "plan"}') == {"event": "plan"}
    sources = [(ROOT / "hosts" / path).read_text() for path in ("houdini/mpm_nodes_houdini/process.py", "blender_addon/running.py")]
    bodies = {source.partition("def event_of(line):")[2].partition("\n\n\n")[0] for source in sources}
    assert len(bodies) == 1
