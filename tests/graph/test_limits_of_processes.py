"""What a system or a scheduler does to a process: closed streams, processor time that ends, signals before a job's end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")

PROGRAM = [sys.executable, "-P", "-m", "mpm_nodes.cli"]
ENDLESS = '''
"""A node that never ends."""
import os
from pathlib import Path
from mpm_nodes import node
from mpm_nodes.data import FrameContext, Particles

@node(category="Test", label="Endless", version=1)
def endless(ctx: FrameContext, particles: Particles) -> Particles:
    """Turn round and round.

    Args:
        particles: What is never passed on.
    """
    part = Path(os.environ["ENDLESS_MARK"] + ".part")
    part.write_text(str(os.getpid()))
    part.rename(os.environ["ENDLESS_MARK"])
    while True:
        pass
'''


def shell(script: str, *arguments: str, **options) -> subprocess.CompletedProcess:
    """Run the program in a shell that first does something; `"$@"` in the script is the program."""
    command = ["sh", "-c", script, "sh", *PROGRAM, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.fixture
def endless(tmp_path, monkeypatch):
    """A graph that cooks for ever."""
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "endless.py").write_text(ENDLESS)
    monkeypatch.setenv("MPM_NODES_PATH", str(tmp_path / "nodes"))
    monkeypatch.setenv("ENDLESS_MARK", str(tmp_path / "mark"))
    graph = Graph(registry=registry.load(), base=tmp_path, start=1, end=1, cell_size=0.1)
    body = graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), material=graph.add("material_neo_hookean", "stuff"))
    graph.add("write_cache", "cache", name="cache", particles=graph.add("endless", "busy", particles=body["particles"]))
    return graph.save(tmp_path / "shot.json")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command, code", [("nodes", 0), ("check", 5)])
def test_closed_streams_are_no_defect(tmp_path, command, code, closed):
    """A command without streams does what it does with them, and says nothing elsewhere: `check` is run in a child of its own."""
    arguments = ("nodes", "--json") if command == "nodes" else ("check", tmp_path)
    done = shell(f'exec "$@" {closed}', *arguments)
    assert done.returncode == code
    assert "defect" not in done.stderr
    if command == "check":
        assert not done.stdout and bool(done.stderr) == ("2>" not in closed)
    elif ">&-" not in closed.replace("2>&-", ""):
        assert json.loads(done.stdout)


def test_processor_time_that_ends_is_told(endless, tmp_path):
    """`ulimit -t`: exit code 5 and the limit by its name, not a crash of a library."""
    done = shell('ulimit -S -t 4; exec "$@"', "cook", endless, "--out", tmp_path / "out", "--events", "none")
    assert done.returncode == 5, done.stderr
    assert "processor time is used up (SIGXCPU; ulimit -t" in done.stderr and "--resume" in done.stderr


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
def test_a_scheduler_s_warning_stops_as_other_stops_do(endless, tmp_path, name):
    """Schedulers warn a whole job: the supervised child leaves the signal to its parent, which stops it."""
    command = [*PROGRAM, "cook", str(endless), "--out", str(tmp_path / "out"), "--events", "none"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not (tmp_path / "mark").exists():
        assert child.poll() is None
        time.sleep(0.02)
    inner = int((tmp_path / "mark").read_text())
    os.kill(inner, getattr(signal, name))
    os.kill(child.pid, getattr(signal, name))
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 3 and "stopped" in said and "defect" not in said
