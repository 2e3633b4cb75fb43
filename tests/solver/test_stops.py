"""A stop is honoured within two seconds, whatever the program is busy with, and the cook can be resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from mpm_nodes import supervisor
from mpm_nodes.graph.document.document import Graph
from tests.selftest.real import seconds_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes have no groups")

LIMIT, PATIENCE = 2.0, supervisor.PATIENCE
STUBBORN = '''
"""A node that a library keeps busy: the interpreter's lock is held, and no signal handler can run."""
import ctypes
import os
from pathlib import Path
from mpm_nodes import node
from mpm_nodes.data import FrameContext, Particles

@node(category="Test", label="Stubborn", version=1)
def stubborn(ctx: FrameContext, particles: Particles) -> Particles:
    """Pass particles on; at frame 2 hold the interpreter for minutes unless a mark says that this was done.

    Args:
        particles: What to pass on.
    """
    mark = Path(os.environ["STUBBORN_MARKS"]) / "mark"
    if ctx.frame == 2 and not mark.exists():
        mark.touch()
        libc = ctypes.PyDLL(None)
        for _ in range(600):
            libc.usleep(100_000)
            libc.sleep(1)
    return particles
'''


PATIENT = """
import os, sys
from pathlib import Path
from mpm_nodes import cli, search_path, supervisor
search_path.PROGRAM, supervisor.PATIENCE = True, 600.0
stop = supervisor._SignalWatch.stop
def noted(self, number, frame):
    stop(self, number, frame)
    Path(os.environ["STUBBORN_MARKS"], "asked").touch()
supervisor._SignalWatch.stop = noted
sys.exit(cli.main())
"""


def commandline(*arguments) -> list[str]:
    return [sys.executable, "-P", "-m", "mpm_nodes.cli", *map(str, arguments)]


@pytest.fixture
def shot(tmp_path, monkeypatch):
    """A graph whose second frame is busy in a library, its node on MPM_NODES_PATH."""
    (tmp_path / "nodes").mkdir()
    (tmp_path / "marks").mkdir()
    (tmp_path / "nodes" / "stubborn.py").write_text(STUBBORN)
    monkeypatch.setenv("STUBBORN_MARKS", str(tmp_path / "marks"))
    monkeypatch.setenv("MPM_NODES_PATH", str(tmp_path / "nodes"))
    monkeypatch.setenv("MPM_NODES_COMPILE_HELPER", "0")
    from mpm_nodes.graph.declare import registry

    graph = Graph(registry=registry.load(), base=tmp_path, start=1, end=3, cell_size=0.1)
    body = graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), material=graph.add("material_neo_hookean", "stuff"))
    busy = graph.add("stubborn", "busy", particles=body["particles"])
    graph.add("write_cache", "cache", name="cache", particles=busy["particles"])
    return graph.save(tmp_path / "shot.json")


def busy(shot: Path, program: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a cook and return when its node holds the interpreter."""
    pipe = subprocess.PIPE
    arguments = map(str, ("cook", shot, "--out", shot.parent / "out", "--events", "jsonl"))
    command = [*(program or commandline()), *arguments]
    child = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    wait_for(shot.parent / "marks" / "mark", child)
    time.sleep(0.1)
    return child


def wait_for(mark: Path, child: subprocess.Popen[str]) -> None:
    """Wait until a process has left a mark."""
    deadline = time.monotonic() + 120.0
    while not mark.exists():
        assert child.poll() is None and time.monotonic() < deadline, child.communicate()
        time.sleep(0.02)


def seconds_until_gone(child: subprocess.Popen[str], patience: float = 0.0) -> float:
    """Wait for a process to end; return its seconds on a machine that does nothing else."""
    try:
        return seconds_until(lambda: child.poll() is not None, patience)
    finally:
        child.kill()


def resumed(shot: Path) -> subprocess.CompletedProcess[str]:
    """Continue the cook to its end."""
    command = commandline("cook", shot, "--out", shot.parent / "out", "--resume")
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def group_of(child: subprocess.Popen) -> list[int]:
    """Return the processes that a process has started (Linux)."""
    try:
        return [int(text) for text in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_stop_while_a_library_is_busy(shot, number):
    """Gone within two seconds with exit code 3, its child too; the first frame is kept and the rest is cooked by --resume."""
    child = busy(shot)
    started = group_of(child)
    child.send_signal(number)
    assert seconds_until_gone(child, PATIENCE) < LIMIT
    out, error = child.communicate()
    assert child.returncode == 3 and "continue with --resume" in error
    assert json.loads(out.splitlines()[-1])["event"] == "cancelled"
    assert not [process for process in started if Path(f"/proc/{process}/stat").exists()]
    done = subprocess.run(
        commandline("cook", shot, "--out", shot.parent / "out", "--resume"), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "cooked 2 frames" in done.stdout, done.stderr


def test_a_second_stop_ends_it_at_once(shot):
    """Who asks twice does not wait, however long the program would wait for its child."""
    child = busy(shot, [sys.executable, "-P", "-c", PATIENT])
    child.send_signal(signal.SIGINT)
    wait_for(shot.parent / "marks" / "asked", child)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert seconds_until_gone(child) < 0.8
    child.communicate()
    assert child.returncode == 3


def test_a_killed_cook_leaves_no_process_behind(shot):
    """kill -9 of what the user started ends what it has started, and the next cook finds the folder unlocked."""
    child = busy(shot)
    started = group_of(child)
    child.kill()
    child.communicate()
    assert seconds_until(lambda: not any(Path(f"/proc/{process}/stat").exists() for process in started)) < LIMIT
    done = subprocess.run(
        commandline("cook", shot, "--out", shot.parent / "out", "--resume"), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number, code, words", [(9, 5, "memory ran out"), (11, 1, "a library crashed (SIGSEGV)")])
def test_a_crash_of_a_library_is_told_in_words(shot, number, code, words):
    """The child that the system or a library ends leaves a sentence and an exit code, no silence."""
    child = busy(shot)
    started = group_of(child)
    if not started:
        child.kill()
        pytest.skip("needs /proc")
    os.kill(started[0], number)
    error = child.communicate(timeout=120)[1]
    assert child.returncode == code and words in error and "--resume" in error


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "socket"])
def test_only_regular_files_are_read(tmp_path, kind, capsys):
    """A pipe, a device, a folder or a socket as graph, VDB or USD file is refused at once; nothing waits for it."""
    import socket

    from mpm_nodes import cli
    from mpm_nodes.data import InputError
    from usd_io.collider_meshes import StageMeshes
    from usd_io.volumes import read_volumes

    pytest.importorskip("pxr")
    path = {"device": Path("/dev/zero")}.get(kind, tmp_path / "thing.usdc")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
    begin = time.process_time()  # who waits for the other end of a pipe waits for ever
    assert cli.main(["validate", str(path)]) in (2, 5)
    assert cli.main(["cook", str(path), "--out", str(tmp_path / "out")]) in (2, 5)
    for read in (read_volumes, StageMeshes):
        with pytest.raises(InputError, match=r"is not a regular file|cannot be read"):
            read(path)
    assert time.process_time() - begin < LIMIT and "defect" not in capsys.readouterr().err
