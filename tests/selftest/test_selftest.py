"""The selftest sees what it is there to see: faults that are planted are found, told and kept; a stop prints what was found."""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpm_nodes import children
from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.graph.declare import registry
from mpm_nodes.packaged_samples import samples_folder
from tests.selftest import graphs, kills, memory, mutants, outcomes, shot, syscalls
from tests.selftest.__main__ import _write, main
from tests.selftest.forks import HangingFork, in_fork
from tests.selftest.outcomes import Job, Outcome, Tally
from tests.selftest.parts import PARTS, Part
from tests.selftest.session import Session
from tests.selftest.table import facts, markdown, text

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills, watches and limits processes as Linux lets it")


def job(folder: Path, count: int = 1, part: str = "graphs") -> Job:
    (folder / "scratch").mkdir(exist_ok=True)
    return Job(part, 1, 0, 1, count, False, str(folder / "scratch"), str(folder / "kept"), str(samples_folder()))


@pytest.fixture(scope="module")
def known():
    """The nodes of the package."""
    return registry.load(path="", entry_points=False)


# ---------------------------------------------------------------- graphs
def test_a_mutant_follows_from_its_seed_and_number(known):
    """The same bytes again, others for another number; most differ from the sound document."""
    bases = mutants.documents(known, samples_folder())
    contents = [mutants.mutant(bases, 3, number).content() for number in range(200)]
    assert contents == [mutants.mutant(bases, 3, number).content() for number in range(200)]
    assert len(set(contents)) > 180 and not {json.dumps(base).encode() for base in bases} & set(contents[:20])


def test_the_graph_of_every_node_is_sound(known, tmp_path):
    """Nodes that read files aside, one graph holds every node of the registry, wired, and is valid."""
    sound = mutants.documents(known, samples_folder())[-1]
    kinds = {entry["type"] for entry in sound["nodes"].values()}
    readers = {name for name, declaration in known.nodes().items() if any(knob.kind == "path" for knob in declaration.knobs)}
    assert kinds | readers == set(known.nodes())
    assert graphs.judged(json.dumps(sound).encode(), tmp_path, known).ending == "valid"


FAULTS = {
    "defect": (lambda *_: 1 / 0, "ZeroDivisionError"),
    "memory": (lambda *_: bytearray(400_000_000), "takes more than 200 MB"),
    "refused": (lambda *_: (_ for _ in ()).throw(MpmNodesError("\n".join("x" * 9 for _ in range(200)))), "of 200 lines"),
}


@pytest.mark.parametrize("ending", FAULTS)
def test_a_planted_fault_is_found_and_made_simple(ending, known, tmp_path, monkeypatch):
    """A loader that fails on one knob: the case is told, and the file that is kept has that knob and little else."""
    fails, words = FAULTS[ending]
    sound = graphs._validated

    def planted(path, known, planned):
        if '"jitter"' in path.read_text(encoding="utf-8", errors="replace"):
            fails()
        return sound(path, known, planned)

    monkeypatch.setattr(graphs, "_validated", planted)
    bases = [base for base in mutants.documents(known, samples_folder()) if "jitter" in json.dumps(base)]
    monkeypatch.setattr(graphs, "documents", lambda known, samples: bases[-1:])
    monkeypatch.setattr(graphs, "SIMPLEST", 10.0)
    found = [outcome for outcome in graphs.cases(job(tmp_path, 2)) if outcome.fault]
    assert found and found[0].ending == ending and words in found[0].fault and "seed 1, case" in found[0].fault
    kept = Path(found[0].fault.rpartition("the file is ")[2])
    assert b'"jitter"' in kept.read_bytes() and kept.stat().st_size < 1000


def test_a_mutant_that_takes_too_long_is_a_fault(known, tmp_path, monkeypatch):
    """More than a second of the processor, and more than the patience of a hang."""
    monkeypatch.setattr(graphs, "MOST_SECONDS", 0.1)
    monkeypatch.setattr(graphs, "HANGS", 0.3)
    for seconds, words in ((0.2, "takes 0."), (5.0, "goes on after")):

        def busy(path, known, planned, seconds=seconds):
            end = time.process_time() + seconds
            while time.process_time() < end:
                pass
            return "valid", ""

        monkeypatch.setattr(graphs, "_validated", busy)
        assert words in graphs.judged(b"{}", tmp_path, known).fault


def test_a_graph_that_is_another_when_it_is_saved_is_a_fault(known, tmp_path, monkeypatch):
    """Also where the memory that it would take is refused; what the trial takes does not count as the validation's time."""
    sound = json.dumps(mutants.documents(known, samples_folder())[-1]).encode()
    monkeypatch.setattr(graphs, "_saved_alike", lambda graph, known: ("valid", "is another graph"))
    assert graphs.judged(sound, tmp_path, known).fault == "is another graph"

    def large(estimate, settings):
        raise MpmNodesError("takes too much memory")

    monkeypatch.setattr(graphs.preflight, "check_memory", large)
    monkeypatch.setattr(MpmNodesError, "exit_code", 2)
    assert graphs.judged(sound, tmp_path, known).fault == "is another graph"

    def slow(graph, known):
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        return "valid", ""

    monkeypatch.setattr(graphs, "MOST_SECONDS", 0.25)
    monkeypatch.setattr(graphs, "_saved_alike", slow)
    found = graphs.judged(sound, tmp_path, known)
    assert (found.ending, found.fault) == ("refused", "")


# ---------------------------------------------------------------- memory
@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (MemoryError(), "MemoryError"),
        (InputError("no"), "refused"),
        (TypeError("open: path should be string, bytes or os.PathLike, not PosixPath"), "TypeError of the interpreter"),
        (TypeError("unsupported operand"), None),
    ],
)
def test_what_a_refused_request_may_raise(error, ending):
    """The interpreter itself names one wrongly; any other error is a fault."""
    errors = [error]

    def work():
        if errors:
            raise errors.pop()
        return ["a node"]

    api = SimpleNamespace(set_nomemory=lambda first, last: None, remove_mem_hooks=lambda: None)
    if ending is None:
        with pytest.raises(TypeError):
            memory._without(1, work, api)
    else:
        assert memory._without(1, work, api) == (ending, ["a node"])


# ---------------------------------------------------------------- cooks
def test_a_cook_that_differs_after_a_resume_is_found(tmp_path):
    """One byte more in one file is told by the file's name."""
    shot.prepare()
    in_fork(lambda: shot.cook(tmp_path / "out", kills.FRAMES))
    whole = shot.digests(tmp_path / "out")
    assert len(whole) >= 8
    whole["r001/cook.json"] = "another"
    found = kills.resumed("row", "well", tmp_path / "out", whole, "what was done")
    assert found.ending == "differs" and "r001/cook.json differ" in found.fault and not (tmp_path / "out").exists()


@pytest.mark.skipif(bool(syscalls.available()), reason="calls cannot be watched here")
def test_calls_of_every_library_are_met(tmp_path):
    """Writes of OpenUSD and OpenVDB count; the one that is to fail fails, and the one that is to be the last is."""
    shot.prepare()
    changes = kills.changes_of(tmp_path / "out")
    assert len(changes) > 60 and any(change.startswith("pwrite64 .tmp-cache.0001.") for change in changes)
    assert any(change.startswith("unlink .tmp-probe-") or change.startswith("unlinkat .tmp-probe-") for change in changes)
    assert not shot.has_volumes() or any(change.startswith("write") and change.endswith(".vdb") for change in changes)
    (tmp_path / "a").mkdir()

    def work():
        for name in ("one", "two"):
            (tmp_path / "a" / name).write_text(name)

    refused = syscalls.watched(work, syscalls.WRITES, str(tmp_path), lambda call: errno.EDQUOT if call.number == 1 else 0)
    assert isinstance(refused.error, OSError) and refused.error.errno == errno.EDQUOT
    last = syscalls.watched(work, syscalls.WRITES, str(tmp_path), lambda call: syscalls.KILL if call.number == 3 else 0)
    assert last.signal == signal.SIGKILL and (tmp_path / "a" / "two").read_text() == ""


@pytest.mark.skipif(bool(syscalls.available()), reason="calls cannot be watched here")
def test_names_that_lie_across_pages_are_read_whole(tmp_path):
    """A path is met wherever it lies in memory: a call that is missed shifts the numbers of all that follow."""
    path, flags = os.fsencode(tmp_path / "one") + b"\0", os.O_CREAT | os.O_WRONLY
    pages = mmap.mmap(-1, 8192)
    pages[4096 - len(path) // 2 : 4096 - len(path) // 2 + len(path)] = path
    address = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + 4096 - len(path) // 2
    met: list[str] = []

    def decide(call):
        met.append(call.path)
        return 0

    ending = syscalls.watched(lambda: ctypes.CDLL(None).open(ctypes.c_void_p(address), flags, 0o600), syscalls.WRITES, "/", decide)
    assert ending.answer >= 0 and str(tmp_path / "one") in met


def test_a_fork_that_hangs_is_ended():
    """It is killed, not waited for."""
    begin = time.monotonic()
    with pytest.raises(HangingFork):
        in_fork(lambda: time.sleep(60), longest=0.3)
    assert time.monotonic() - begin < 10.0


# ---------------------------------------------------------------- the command
CASES = """
import os
from tests.selftest.outcomes import SKIPPED, Outcome
from tests.selftest.worker import at_case

def cases(job):
    yield Outcome("another row", SKIPPED, "not here")
    for number in job.numbers():
        at_case(job, number)
        if number == 3:
            os._exit(7)
        yield Outcome("a row", "well", "case 5 is wrong" if number == 5 else "", 0.25, 12.0)
"""


NUMBERED = """
import os
import time
from tests.selftest.outcomes import Outcome
from tests.selftest.worker import at_case

def cases(job):
    for number in job.numbers():
        at_case(job, number)
        open(os.path.join(os.environ["TRIED"], f"{job.part}-{number}"), "a").close()
        yield Outcome("a row", "well")
        time.sleep(0.005)
"""


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A part whose fourth case ends its process and whose sixth is a fault."""
    (tmp_path / "planted_part.py").write_text(CASES)
    path = children.trusted_path
    monkeypatch.setattr(children, "trusted_path", lambda: [*path(), str(tmp_path)])
    return [Part("planted", "planted_part", "nothing breaks", 10, 20, 1.0, workers=2)]


def test_processes_that_die_are_counted_and_replaced(parts, tmp_path):
    """Every other case is tried all the same; the table, the page and the JSON tell of all of it."""
    session = Session(4, None, tmp_path / "kept", samples_folder(), lambda line: None)
    session.run(parts)
    row = session.rows["planted", "a row"]
    assert (row.cases, row.against, row.seconds, row.megabytes) == (9, 1, 0.25, 12.0) and session.against == 2
    died = session.rows["planted", "processes of the selftest"]
    assert "seed 4, case 3: the process that tried it ended: exit status 7" in died.faults[0]
    shown = text(session)
    assert "case 5 is wrong" in shown and "skipped: not here" in shown
    page, told = markdown(session, parts), facts(session, parts)
    assert page.count("| planted |") == 3 and "`python -m tests.selftest --seed 4`" in page
    assert told["against_a_promise"] == 2 and json.loads(json.dumps(told))["rows"][1]["endings"] == {"well": 9}


def test_a_run_that_was_stopped_goes_on_behind_its_last_case(tmp_path, monkeypatch):
    """No case is counted twice, none is left out, the figures are those of one run; whole parts are not tried again."""
    (tmp_path / "planted_part.py").write_text(NUMBERED)
    path = children.trusted_path
    monkeypatch.setattr(children, "trusted_path", lambda: [*path(), str(tmp_path)])
    tried = tmp_path / "tried"
    tried.mkdir()
    monkeypatch.setenv("TRIED", str(tried))
    parts = [
        Part("first", "planted_part", "nothing breaks", 4, 4, 1.0, workers=2, numbered=True),
        Part("second", "planted_part", "nothing breaks", 400, 400, 1.0, workers=2, numbered=True),
    ]

    def stop(line):
        if line.startswith("second") and len(list(tried.glob("second-*"))) > 20:
            raise KeyboardInterrupt

    stopped = Session(4, None, tmp_path / "kept", samples_folder(), stop)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(parts)
    told = json.loads(json.dumps(facts(stopped, parts)))
    assert [each["whole"] for each in told["parts"]] == [True, False]
    counted = stopped.rows["second", "a row"].cases
    assert 20 < counted < 400
    for file in tried.glob("first-*"):
        file.unlink()
    again = Session(4, None, tmp_path / "kept", samples_folder(), lambda line: None)
    again.take_over(told, parts)
    again.run(parts)
    assert again.whole == ["first", "second"] and not list(tried.glob("first-*"))
    assert (again.rows["first", "a row"].cases, again.rows["second", "a row"].cases) == (4, 400)
    assert sorted(int(file.name.split("-")[1]) for file in tried.glob("second-*")) == list(range(400))
    with pytest.raises(InputError, match="seed 4"):
        Session(5, None, tmp_path / "kept", samples_folder(), lambda line: None).take_over(told, parts)
    for numbers in ([-2, 1], [2, 4], [0, 1, 1]):
        edited = json.loads(json.dumps(told))
        edited["parts"][1]["next_cases"] = numbers
        with pytest.raises(InputError, match="not a table of a selftest"):
            Session(4, None, tmp_path / "kept", samples_folder(), lambda line: None).take_over(edited, parts)
    with pytest.raises(InputError, match="not a table of a selftest"):
        again.take_over({"seed": 4}, parts)


def test_a_long_run_ends_with_its_hours(parts, tmp_path, monkeypatch):
    """A part that has no end is cut at its share of the time, and that is told."""
    (tmp_path / "planted_part.py").write_text(CASES.replace("os._exit(7)", "import time; time.sleep(60)"))
    session = Session(1, 1.5 / 3600.0, tmp_path / "kept", samples_folder(), lambda line: None)
    begin = time.monotonic()
    session.run(parts)
    assert session.cut == ["planted"] and time.monotonic() - begin < 20.0


def test_ctrl_c_prints_what_was_found(tmp_path):
    """Exit code 3, the table so far, the page written, no process left."""
    words = ["--only", "graphs", "--hours", "1", "--out", str(tmp_path / "page.md")]
    command = [sys.executable, "-m", "tests.selftest", *words]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    kept = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background jobs are born deaf to it, and so are theirs
    try:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2], env=environment
        )
    finally:
        signal.signal(signal.SIGINT, kept)
    try:
        deadline = time.monotonic() + 120.0
        while not any(tmp_path.glob("mpm_nodes_selftest_*/*/case")):
            assert child.poll() is None, child.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=60)
    finally:
        child.kill()  # a run of an hour must not outlive its test
    assert child.returncode == 3 and "stopped" in error and "against a promise" in out
    assert (tmp_path / "page.md").read_text().startswith("`python -m tests.selftest --hours 1 --seed 1`")
    assert not any(tmp_path.glob("mpm_nodes_selftest_*"))


def test_the_table_goes_into_a_pipe(tmp_path):
    """What is not a regular file is written to, never replaced."""
    pipe = tmp_path / "table"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    session = Session(1, None, tmp_path / "kept", samples_folder(), lambda line: None)
    _write(pipe, session, [])
    assert os.read(reader, 1 << 16).decode().startswith("`python -m tests.selftest --seed 1`") and pipe.is_fifo()
    os.close(reader)


def test_arguments_are_checked(capsys):
    """A part that is not there is named with those that are; hours are positive."""
    assert main(["--only", "nope"]) == 5
    assert "known are cooks, files, graphs" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["--hours", "0"])
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [part.name for part in PARTS]


def test_every_part_is_there():
    """Each part's module has cases, and its promise is said."""
    import importlib

    for part in PARTS:
        assert callable(importlib.import_module(part.module).cases) and part.promise and 0 < part.short <= part.long


def test_the_page_tells_of_every_part():
    """docs/selftest.md has a row for each part of the command."""
    page = (Path(__file__).parents[2] / "docs" / "selftest.md").read_text(encoding="utf-8")
    assert all(f"\n| {part.name} | " in page for part in PARTS)


def test_rows_keep_few_faults_and_count_all():
    """A thousand faults do not fill the memory or the screen."""
    row = Tally("part", "row")
    for number in range(1000):
        row.add(Outcome("row", "ended", f"fault {number}"))
    assert row.against == 1000 and len(row.faults) == outcomes.MOST_FAULTS
