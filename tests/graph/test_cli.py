"""The command line: one clear line for each mistake, the right exit code, and what to type next."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_nodes import REGISTRY, calls, needs, shot

from mpm_nodes import cli, verification
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.reports import events

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def fake_registry(monkeypatch):
    """Graph files name the fake nodes."""
    monkeypatch.setattr(registry, "default", lambda: REGISTRY)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder that holds shot.json."""
    monkeypatch.chdir(tmp_path)
    shot().save(tmp_path / "shot.json")
    calls.clear()
    return tmp_path


def run(capfd, *argv: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    code = cli.main(argv)
    return code, *capfd.readouterr()


def altered(folder: Path, change) -> str:
    """Save shot.json with a change made to its content; return the file's name."""
    document = json.loads((folder / "shot.json").read_text())
    change(document)
    (folder / "bad.json").write_text(json.dumps(document))
    return "bad.json"


# ---------------------------------------------------------------- cook
def test_cook_writes_and_says_what_and_what_next(folder, capfd):
    """A line a frame on stderr; folder, whole-shot files and the next command on stdout."""
    code, out, err = run(capfd, "cook", "shot.json")
    assert code == 0
    assert "cooked 6 frames in" in out and "7 files" in out and "out/shot/r001/stage.txt" in out
    assert out.rstrip().endswith("next: mpm-nodes render out/shot/r001")
    assert len([line for line in err.splitlines() if line.startswith("frame ")]) == 6
    assert (folder / "out" / "shot" / "r001" / "points" / "points.0006.bin").stat().st_size == 40


def test_overrides_frames_and_resume(folder, capfd):
    """--set and --frames reach the cook and its manifest; --resume goes on with the same ones only."""
    base = ["cook", "shot.json", "--out", "o", "--set", "sim.push=0.5", "--set", "source.count=3"]
    assert run(capfd, *base, "--frames", "1-3")[0] == 0
    manifest = json.loads((folder / "o" / "r001" / "cook.json").read_text())
    assert manifest["overrides"] == ["sim.push=0.5", "source.count=3"]
    assert manifest["graph"]["nodes"]["sim"]["knobs"]["push"] == 0.5
    code, out, _ = run(capfd, *base, "--frames", "1-4", "--resume", "--threads", "2", "--memory", "0.1", "--checked")
    assert code == 0 and "cooked 1 frame in" in out
    code, _, err = run(capfd, "cook", "shot.json", "--out", "o", "--resume")
    assert code == 2 and "sim.push was 0.5, is 0.25" in err
    code, out, _ = run(capfd, *base, "--frames", "1-4", "--resume")
    assert code == 0 and "nothing was left to cook" in out


def test_a_cache_folder_is_shared_between_cooks(folder, capfd):
    """With --cache, a value that does not change over time is cooked by the first of two processes only."""
    for out in ("a", "b"):
        assert run(capfd, "cook", "shot.json", "--out", out, "--cache", "values")[0] == 0
    assert len(list((folder / "values").iterdir())) == 1 and calls["source"] == 1


def test_events_as_json_lines_are_all_of_stdout(folder, capfd):
    """A program reads one JSON object a line, errors included."""
    code, out, _ = run(capfd, "cook", "shot.json", "--events", "jsonl", "--frames", "1-2")
    told = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and told[0]["event"] == "plan" and told[-1]["event"] == "done"
    assert [event["frame"] for event in told if event["event"] == "frame_done"] == [1, 2]
    code, out, err = run(capfd, "cook", "shot.json", "--events", "jsonl", "--set", "sim.dies=2")
    last = json.loads(out.splitlines()[-1])
    assert code == 4 and (last["event"], last["exit_code"]) == ("error", 4) and err.startswith("mpm-nodes: error: sim, frame 2:")


def test_interrupt_cancels_and_says_how_to_go_on(folder, capfd, monkeypatch):
    """Ctrl-C in the third frame: exit code 3, two frames kept, and the command that continues works."""
    report, handler = events.EventStream.report, signal.getsignal(signal.SIGINT)

    def interrupted(stream, event, **facts):
        if stream.frame == 3 and stream.substeps == 1:
            os.kill(os.getpid(), signal.SIGINT)
        report(stream, event, **facts)

    monkeypatch.setattr(events.EventStream, "report", interrupted)
    code, _, err = run(capfd, "cook", "shot.json", "--out", "o", "--set", "sim.steps=5")
    assert code == 3
    hint = "Continue with: "
    command = err[err.index(hint) + len(hint) :].split("\n")[0].split()
    assert command[:2] == ["mpm-nodes", "cook"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(registry, "default", lambda: REGISTRY)
    code, out, _ = run(capfd, *command[1:])
    assert code == 0 and "cooked 4 frames" in out
    assert signal.getsignal(signal.SIGINT) is handler


# ---------------------------------------------------------------- mistakes
@pytest.mark.parametrize(
    "change, words",
    [
        (lambda d: d["nodes"]["sim"].update(type="fake_solv"), "sim: .*fake_solv.*fake_solve"),
        (lambda d: d["nodes"]["sim"]["inputs"].update(cloud="sourse"), r"sim\.cloud: .*sourse.*source"),
        (lambda d: d["nodes"]["sim"]["inputs"].clear(), r"sim\.cloud: .*wire"),
        (lambda d: d["nodes"]["source"]["knobs"].update(size=-1.0), r"source\.size: -1\.0 .*>= 0"),
        (lambda d: d["nodes"]["source"]["knobs"].update(count="many"), r"source\.count: \"many\" .*whole number"),
        (lambda d: d["nodes"]["cache"]["inputs"].update(cloud="sim.state"), r"cache\.cloud: .*Solver.*Cloud"),
        (lambda d: d["settings"].update(end=0), r"settings\.end: 0"),
        (lambda d: d.update(format="other"), "format"),
    ],
)  # fmt: skip
def test_a_wrong_graph_gets_a_line_a_problem_and_exit_code_2(folder, capfd, change, words):
    """Place, value, what is allowed, the cure; nothing is written."""
    import re

    code, out, err = run(capfd, "cook", altered(folder, change))
    lines = err.splitlines()
    assert code == 2 and out == "" and all(line.startswith("mpm-nodes: error: ") for line in lines)
    assert any(re.search(words, line) for line in lines), err
    assert not (folder / "out").exists()


def test_all_problems_are_listed_at_once(folder, capfd):
    """Three mistakes, three lines; `validate` says the same, as text and as JSON."""

    def change(document):
        document["nodes"]["source"]["knobs"].update(size=-1.0, count=1.5)
        document["nodes"]["cache"]["inputs"] = {}

    name = altered(folder, change)
    for command in ("cook", "validate"):
        code, _, err = run(capfd, command, name)
        assert code == 2 and len(err.splitlines()) == 3
    code, out, _ = run(capfd, "validate", name, "--json")
    assert code == 2
    assert sorted(problem["place"] for problem in json.loads(out)) == ["cache.cloud", "source.count", "source.size"]


@pytest.mark.parametrize(
    "argv, code, words",
    [
        (["cook", "none.json"], 5, "none.json: cannot be read"),
        (["cook", "shot.json", "--out", "shot.json"], 5, "shot.json: is a file; give a folder with --out"),
        (["cook", "shot.json", "--set", "sim.pusch=1"], 2, "did you mean push"),
        (["cook", "shot.json", "--set", "sim.push"], 2, "is not an override"),
        (["cook", "shot.json", "--frames", "5-2"], 2, "runs backwards"),
        (["cook", "shot.json", "--frames", "x"], 2, "is not a span of frames; write A-B"),
        (["cook", "shot.json", "--frames", "0-2"], 2, "lower settings.start"),
        (["cook", "shot.json", "--threads", "0"], 2, "--threads: '0' is not a whole number from 1"),
        (["cook", "shot.json", "--set", "sim.dies=3"], 4, "sim, frame 3: frame 3: not a number; lower push"),
        (["cook", "shot.json", "--nonsense"], 2, "unrecognized arguments: --nonsense"),
        (["render", "nowhere"], 5, "nowhere: holds no cook"),
        (["clean", "nowhere"], 5, "nowhere: holds no cook"),
        (["nodes", "fake_solv"], 2, "did you mean fake_solve"),
        (["dance"], 2, "invalid choice: 'dance'"),
        ([], 2, "COMMAND"),
    ],
)  # fmt: skip
def test_mistakes_on_the_command_line(folder, capfd, argv, code, words):
    """Exit codes 2 and 5 (4 for divergence), never a traceback."""
    got, _, err = run(capfd, *argv)
    assert got == code and words in err and "Traceback" not in err


def test_malformed_json_names_the_line(folder, capfd):
    """A graph file that is no JSON."""
    (folder / "bad.json").write_text('{\n "format": "mpm_nodes.graph",\n "version": 1,,\n}')
    code, _, err = run(capfd, "cook", "bad.json")
    assert code == 2 and "bad.json:3: is not JSON" in err


def test_a_defect_of_a_node_is_exit_code_1_and_debug_shows_where(folder, capfd, monkeypatch):
    """Without --debug one line; with it the original exception."""
    graph = shot(write=False)
    graph.add("fake_join", "join", clouds=[graph["source"]], fail="bug")
    graph.save("bug.json")
    code, _, err = run(capfd, "cook", "bug.json")
    assert code == 1 and "join, frame 1: fake_nodes.py, line" in err and "ZeroDivisionError" in err and "Traceback" not in err
    with pytest.raises(Exception, match="ZeroDivisionError"):
        cli.main(["cook", "bug.json", "--debug"])


# ---------------------------------------------------------------- the other commands
def test_nodes_are_listed_and_described(capfd):
    """Every node with its help; one with ports, knobs, units and defaults; all as JSON."""
    code, out, _ = run(capfd, "nodes")
    assert code == 0 and all(name in out for name in REGISTRY.nodes())
    code, out, _ = run(capfd, "nodes", "fake_source")
    assert code == 0 and "size (float, m, min 0, default 1.0): Length of the line." in out
    code, out, _ = run(capfd, "nodes", "--json")
    assert code == 0 and {node["id"] for node in json.loads(out)["nodes"]} == set(REGISTRY.nodes())
    materials = {entry["name"]: entry for entry in json.loads(out)["materials"]}
    foams = {"shaving_cream", "smore_interior", "smore_exterior", "pie", "oobleck", "viscoplastic"}
    assert foams == {name for name, entry in materials.items() if entry["source"] == "Y15 Table I"}
    code, out, _ = run(capfd, "nodes", "fake_join", "--json")
    assert json.loads(out)["ports"][0]["many"] is True


def test_validate_says_what_a_graph_needs(folder, capfd, monkeypatch):
    """A valid graph: its size, and the estimates of its nodes."""
    monkeypatch.setitem(needs, "source", lambda told: {"memory": 2_000_000, "disk": 500_000})
    code, out, _ = run(capfd, "validate", "shot.json")
    assert code == 0 and "3 nodes, frames 1 to 6" in out and "needs about 2.0 MB of memory and 3.0 MB of disk" in out
    assert run(capfd, "validate", "shot.json", "--json")[:2] == (0, "[]\n")


def test_clean_shows_before_it_deletes(folder, capfd):
    """Without --yes nothing is touched."""
    for _ in range(2):
        run(capfd, "cook", "shot.json", "--out", "o")
    trash = folder / "o" / "r002" / "points" / ".tmp-points.0007.bin"
    trash.write_bytes(b"half a frame")
    code, out, _ = run(capfd, "clean", "o", "--old-revisions")
    assert code == 0 and "older revision" in out and "add --yes to do it" in out and trash.exists()
    code, out, _ = run(capfd, "clean", "o", "--old-revisions", "--yes")
    assert code == 0 and "3 items" in out and not trash.exists()
    assert [path.name for path in (folder / "o").iterdir()] == ["r002"]


def test_verify_prints_a_table_and_writes_records(folder, capfd, monkeypatch):
    """Names and speeds are handed on; a failed check makes the exit code 1 and is advised on; the JSON has just the nine keys."""

    def record(name: str, passed: bool, advice: str = "", known: bool = False) -> verification.Record:
        return verification.Record(name, "paper", 1.0, 1.25, 0.5, passed, 0.125, advice, known)

    asked = []

    def fake(names, fast=None, all=False, progress=None, finished=None):
        asked.append((list(names), fast, all))
        found = [record("free fall", True), record("bar wave", not names, "stretch it less" if names else "")]
        found += [record("old gap", False, known=True)] if fast is None and not all else []
        for each in found:
            progress(each)
        return found

    monkeypatch.setattr(verification, "run", fake, raising=False)
    code, out, _ = run(capfd, "verify", "--all")
    assert code == 0 and "free fall  paper   1         1.25" in out and "2 of 2 passed" in out and "stretch" not in out
    code, out, told = run(capfd, "verify", "bar", "--fast", "--json", "r.json")
    assert code == 1 and "failed: bar wave" in out and "\nbar wave: stretch it less\n" in out
    lines = [f"{verdict}  50% of the tolerance  0.1 s" for verdict in ("ok  free fall", "MISSED  bar wave")]
    assert told.splitlines() == lines  # while it runs
    assert asked == [([], None, True), (["bar"], True, False)]
    records = json.loads((folder / "r.json").read_text())
    keys = ["name", "source", "expected", "measured", "tolerance", "passed", "seconds", "advice", "known"]
    assert [list(record) for record in records] == [keys, keys]
    assert [record["advice"] for record in records] == ["", "stretch it less"]
    code, out, told = run(capfd, "verify")
    assert code == 0 and out.endswith("2 of 3 passed; known misses: old gap\n") and "known miss  old gap" in told
    assert re.search(r"old gap .* known miss +0.125", out) and run(capfd, "verify", "--strict")[0] == 1
    assert run(capfd, "verify", "--json", "none/r.json")[0] == 5


def test_every_command_has_help(capfd):
    """--help works and says what each command is for."""
    code, out, _ = run(capfd, "--help")
    assert code == 0 and all(f"    {name} " in out for name in cli.COMMANDS)
    for name in cli.COMMANDS:
        assert run(capfd, name, "--help")[0] == 0
    assert run(capfd, "--version")[1].startswith("mpm-nodes ")


def test_the_program_ends_with_its_code_and_one_line(folder):
    """As a process: exit code 2, one line on stderr, and neither numba nor pxr is loaded to say it."""
    (folder / "bad.json").write_text("{")
    code = (
        "import sys; from mpm_nodes.cli import main; code = main(sys.argv[1:]); "
        "print(sorted({'numba', 'pxr'} & {*sys.modules})); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "cook", str(folder / "bad.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and done.stdout == "[]\n" and len(done.stderr.splitlines()) == 1
