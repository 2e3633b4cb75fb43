"""A library that crashes in a file, or never comes back from it, ends its own process: the command says which file it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from argparse import Namespace

import pytest

pytest.importorskip("pxr")

from crates import nested_dictionaries

from mpm_nodes import children, cli, reads, supervisor
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands are supervised where processes have groups")

UNSUPERVISED = {
    "doctor": "looks at what is installed",
    "upgrade": "reads graphs",
    "nodes": "reads the registry",
    "edit": "reads caches in a child",
    "clean": "looks at names, sizes and records",
    "kernels": "compiles",
    "host": "writes files of our own",
}
CHILD = """
import os, sys, time
from mpm_nodes import reads
reads.follow(int(sys.argv[1]))
{before}
with reads.reading("/shot/body.usdc"):
    {what}
"""


def supervised(monkeypatch, tmp_path, command, what, before="", **facts):
    """Supervise a stand-in for a command; return its exit code."""
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(what=what, before=before))
    start = children.start
    monkeypatch.setattr(children, "start", lambda entry, given, **options: start(script, given, **options))
    return supervisor.supervise([], Namespace(command=command, events="", **facts))


def test_every_command_is_supervised_or_reads_nothing():
    """A new command must choose."""
    assert {*supervisor.COMMANDS} | {*UNSUPERVISED} == {*cli.COMMANDS} and not {*supervisor.COMMANDS} & {*UNSUPERVISED}
    assert not supervisor.wanted(Namespace(command="validate", debug=True))


@pytest.mark.parametrize("command", supervisor.COMMANDS)
def test_a_crash_names_the_file(command, monkeypatch, tmp_path, capfd):
    """Exit code 5: an input did it."""
    assert supervised(monkeypatch, tmp_path, command, "os.kill(os.getpid(), 11)") == 5
    said = capfd.readouterr().err
    assert f"error: {command}: /shot/body.usdc: a library crashed (SIGSEGV)" in said and "export it again" in said


@pytest.mark.parametrize("command", ["validate", "cook"])
def test_a_crash_elsewhere(command, monkeypatch, tmp_path, capfd):
    """Where nothing is read, commands that only read met a damaged file all the same; others may have a defect."""
    code = supervised(monkeypatch, tmp_path, command, "pass", before="os.kill(os.getpid(), 11)", resume=True)
    assert (code, "defect" in capfd.readouterr().err) == ((5, False) if command == "validate" else (1, True))


def test_memory_that_runs_out_in_a_file(monkeypatch, tmp_path, capfd):
    """The system ends a process without a word."""
    assert supervised(monkeypatch, tmp_path, "cook", "os.kill(os.getpid(), 9)", resume=True) == 5
    said = capfd.readouterr().err
    assert "while it read /shot/body.usdc" in said and "continue with --resume" in said


@pytest.mark.parametrize("command", ["validate", "cook"])
def test_what_never_ends_is_ended(command, monkeypatch, tmp_path, capfd):
    """The limit is of one reading: seconds are counted from its begin."""
    monkeypatch.setattr(supervisor, "LOOK", 0.05)
    monkeypatch.setattr(supervisor, "LONGEST_READ", 0.3)
    assert supervised(monkeypatch, tmp_path, command, "time.sleep(600.0)") == 5
    assert f"error: {command}: /shot/body.usdc: it did not end within" in capfd.readouterr().err


def test_what_goes_on_is_not_ended():
    """A loop over frames, or many files, may take as long as it likes; so may what reads nothing."""
    long = round(supervisor.LONGEST_READ / supervisor.LOOK)
    waited = supervisor.Waited()
    assert not any(waited.too_long((number, "a.usd")) for number in range(3 * long))
    assert not any(waited.too_long((3 * long, "")) for _ in range(3 * long))
    assert [waited.too_long((1, "b.usd")) for _ in range(long + 1)] == [False] * long + [True]


def test_marks(tmp_path):
    """The innermost reading counts, each is another one, and none is left behind."""
    mark = reads.new_mark()
    try:
        reads.follow(mark)
        seen = [reads.now_read(mark)]
        with reads.reading("é" * 2000):
            with reads.reading(tmp_path):
                seen.append(reads.now_read(mark))
                reads.go_on()
                seen.append(reads.now_read(mark))
            seen.append(reads.now_read(mark))
        seen.append(reads.now_read(mark))
    finally:
        reads._mark = None
        os.close(mark)
    names = [name for _, name in seen]
    assert names[1:3] == [str(tmp_path)] * 2 and names[3].startswith("ééé") and (names[0], names[4]) == ("", "")
    assert len({begun for begun, _ in seen}) == len(seen)


@pytest.mark.parametrize("command", ["validate", "cook", "farm", "check"])
def test_dictionaries_in_dictionaries(command, tmp_path):
    """A binary layer nested beyond any stack, in a layer that a stage refers to: no count shows it, and the command names it."""
    nested_dictionaries(tmp_path / "deep.usdc", 100_000, "clips")
    path = tmp_path / "stage.usda"
    path.write_text('#usda 1.0\n(\nstartTimeCode = 1\nendTimeCode = 3\n)\ndef "p" (\nreferences = @./deep.usdc@\n)\n{\n}\n')
    made = Graph(registry=registry.load(path="", entry_points=False), start=1, end=1, cell_size=0.1)
    made.add("collide_usd", "body", path=str(path))
    given = [str(path if command == "check" else made.save(tmp_path / "shot.json"))]
    given += [] if command in ("check", "validate") else ["--out", str(tmp_path / "out")]
    begin = [sys.executable, "-P", "-m", "mpm_nodes.cli", command]
    done = subprocess.run([*begin, *given], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "deep.usdc: a library crashed (SIGSEGV)" in done.stderr) == (5, True), done.stderr


def test_a_dictionary_that_holds_itself(tmp_path, capsys):
    """OpenUSD notices; so does whoever checks the stage."""
    path = nested_dictionaries(tmp_path / "ring.usdc", 3, loop=True)
    assert cli.main(["check", str(path)]) == 5
    assert "ring.usdc" in capsys.readouterr().err


def test_signals_of_this_process_are_its_own_again(monkeypatch, tmp_path):
    """Handlers and clocks are put back after a child that was ended."""
    before = [signal.getsignal(number) for number in supervisor.STOPS]
    supervised(monkeypatch, tmp_path, "check", "os.kill(os.getpid(), 11)")
    assert [signal.getsignal(number) for number in supervisor.STOPS] == before
