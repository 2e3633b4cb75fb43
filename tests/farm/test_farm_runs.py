"""Jobs that run: here, by the runner of Open Job Description, on a Dask cluster; killed, cancelled, and begun again."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import ClassVar

import pytest
from test_farm_job import openjd
from walking_shot import content, cooked

from mpm_nodes import children, cli, supervisor
from mpm_nodes.data import Cancelled
from mpm_nodes.farm import local
from mpm_nodes.farm.job import make_job
from mpm_nodes.farm.local import run_here
from mpm_nodes.farm.process import TaskProcess, killed
from mpm_nodes.farm.submit import write_submission
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph, load_graph


def wait_for(condition, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def solved(job) -> list[Path]:
    return sorted((job.folder / "wedges/000/solve/r001/frames").glob("[0-9]*.json"))


# ---------------------------------------------------------------- the order of things, with tasks that only pretend
class Pretend:
    """A task that ends as the test wants, after some looks at it."""

    codes: ClassVar[dict[str, list[int]]] = {}
    log: ClassVar[list[tuple[str, str]]] = []
    at_once = most = 0

    def __init__(self, job, task, threads=None, heard=None):
        self.task, self.threads, self.looks, self.seconds, self.log_path = task, threads, 3, 1.0, ""
        Pretend.log.append(("begin", task.id))
        Pretend.at_once += 1
        Pretend.most = max(Pretend.most, Pretend.at_once)
        self.log = "a.log"

    def poll(self):
        self.looks -= 1
        if self.looks:
            return None
        Pretend.at_once -= 1
        Pretend.log.append(("end", self.task.id))
        codes = Pretend.codes.get(self.task.id, [])
        return codes.pop(0) if codes else 0

    def last_words(self):
        return "it fell"

    def stop(self):
        pass

    def end(self, patience):
        pass


@pytest.fixture
def pretend(monkeypatch):
    monkeypatch.setattr(local, "TaskProcess", Pretend)
    monkeypatch.setattr(local, "_PAUSE", 0.001)
    Pretend.codes, Pretend.log, Pretend.at_once, Pretend.most = {}, [], 0, 0
    return Pretend


def test_no_task_begins_before_what_it_needs(graph, tmp_path, pretend):
    """With four at once, and none is begun twice; a second run has only the sheet to make again."""
    job = make_job(graph, tmp_path / "job", {"walk.step": [1.0, 2.0]}, chunk=2, renders=("splat",))
    outcome = run_here(job, 4, memory=1 << 40)
    tasks = {task.id: task for task in job.tasks(pieces=True)}
    assert outcome.ran.keys() == tasks.keys() and pretend.most == 4
    for task in tasks.values():
        assert all(pretend.log.index(("end", need)) < pretend.log.index(("begin", task.id)) for need in task.needs)
    assert len(pretend.log) == 2 * len(tasks)
    again = run_here(job, 4, memory=1 << 40)
    assert list(again.ran) == ["gather"] and len(again.kept) == len(tasks) - 1


def test_memory_limits_how_many_run(walking, tmp_path, pretend):
    """Two solves of 3 GB have no room in 5 GB; one that has no room in all of it runs alone, and that is said."""
    job = make_job(load_graph(walking(bytes=3e9)), tmp_path / "job", {"walk.step": [1.0, 2.0]}, chunk=9)
    events = []
    run_here(job, 4, memory=5_000_000_000, on_event=events.append)
    spans = [pretend.log.index((what, name)) for name in ("solve_000_6", "solve_001_6") for what in ("begin", "end")]
    assert spans[1] < spans[2] or spans[3] < spans[0]
    assert pretend.most > 1 and not any(event["event"] == "warning" for event in events)
    big = make_job(load_graph(walking(bytes=9e9)), tmp_path / "big", chunk=6)
    run_here(big, 4, memory=5_000_000_000, on_event=events.append)
    assert [event["task"] for event in events if event["event"] == "warning"] == ["solve_000_6"]


def test_a_wedge_that_fails_leaves_the_others_alone(graph, tmp_path, pretend):
    """What needs it is not begun, the rest is cooked, the sheet is made of what is there, and the exit code is the failure's."""
    job = make_job(graph, tmp_path / "job", {"walk.step": [1.0, 2.0]}, chunk=3)
    pretend.codes = {"solve_000_3": [4]}
    events = []
    outcome = run_here(job, 2, memory=1 << 40, on_event=events.append)
    assert outcome.failed == {"solve_000_3": 4} and outcome.exit_code == 4
    assert set(outcome.skipped) == {"solve_000_6", "frames_000_1-3", "frames_000_4-6", "join_000"}
    assert {"join_001", "gather"} <= outcome.ran.keys()
    failed = next(event for event in events if event["event"] == "task_failed")
    assert failed["message"] == "it fell" and failed["exit_code"] == 4


def test_a_long_message_keeps_its_beginning(graph, tmp_path):
    """What is wrong stands first in a message: a cook without OpenVDB was told of from the middle of a word on."""
    job = make_job(graph, tmp_path / "job", chunk=6)
    each = TaskProcess(job, job.tasks()[0], 1, lambda *_: None)
    each.end(0.0)
    for words, end in (("cure " * 100, "cure"), ("cure " * 300, " ...")):
        each.log.write_text(f"openjd_status: cooking\nno OpenVDB: {words}\nopenjd_progress: 50\n")
        assert each.last_words().startswith("no OpenVDB: cure") and each.last_words().endswith(end)


READS = """
import os, signal, sys, time
from mpm_nodes import reads
reads.follow(int(sys.argv[1]))
with reads.reading("/a/cage.usd"):
    print("begun", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV) if {crash} else time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs handles that a child inherits")
@pytest.mark.parametrize("crash", [True, False])
def test_a_task_says_in_which_file_it_ended(graph, tmp_path, monkeypatch, crash):
    """A library that crashed in a file was begun again twice, and the message named none; one that never came back ran on."""
    job = make_job(graph, tmp_path / "job", chunk=6)
    monkeypatch.setattr(children, "_FUNCTION", READS.format(crash=crash))
    monkeypatch.setattr(supervisor, "LOOK", 0.05)
    monkeypatch.setattr(supervisor, "LONGEST_READ", 0.5)
    each = TaskProcess(job, job.tasks()[0], 1)
    while (code := each.poll()) is None:
        time.sleep(0.01)
    assert code == 5 and each.last_words().startswith("/a/cage.usd: ")
    assert ("SIGSEGV" if crash else "did not end within") in each.last_words() and not killed(code)


def test_what_is_killed_is_begun_again_but_not_for_ever(graph, tmp_path, pretend):
    """Twice more; what fails by itself is not."""
    job = make_job(graph, tmp_path / "job", chunk=6)
    pretend.codes = {"solve_000_6": [-9, 3]}
    assert not run_here(job, 1).failed and pretend.log.count(("begin", "solve_000_6")) == 3
    other = make_job(graph, tmp_path / "other", chunk=6)
    pretend.codes, pretend.log[:] = {"solve_000_6": [-9] * 9}, []
    assert run_here(other, 1).failed == {"solve_000_6": 1} and pretend.log.count(("begin", "solve_000_6")) == local.MOST_TRIES


# ---------------------------------------------------------------- real processes
def test_killed_in_mid_task_nothing_finished_is_cooked_again(walking, tmp_path):
    """A worker dies by SIGKILL in a frame; the run goes on behind the last whole one, and the files are those of a plain cook."""
    graph = load_graph(walking(pause=0.2))
    job = make_job(graph, tmp_path / "job", chunk=6)
    events = []
    thread = threading.Thread(target=lambda: events.append(run_here(job, 1, on_event=events.append)))
    os.environ["PYTHONFAULTHANDLER"] = "1"
    started: list[local.TaskProcess] = []
    make = local.TaskProcess

    def kept(*args, **options):
        started.append(make(*args, **options))
        return started[-1]

    local.TaskProcess = kept
    try:
        thread.start()
        wait_for(lambda: len(solved(job)) >= 3)
        before = {path: path.stat().st_mtime_ns for path in solved(job)[:3]}
        os.kill(started[0].process.pid, signal.SIGKILL)
        thread.join(timeout=240)
    finally:
        local.TaskProcess = make
        del os.environ["PYTHONFAULTHANDLER"]
    assert [event["event"] for event in events[:-1] if event["event"] in ("task_again", "task_failed")] == ["task_again"]
    assert {path: path.stat().st_mtime_ns for path in before} == before
    walked = cooked(tmp_path, "walk")
    assert walked[:3] == [1, 2, 3] and sorted(set(walked)) == [1, 2, 3, 4, 5, 6]
    assert len(walked) <= 7  # the frame in which it died may have been walked and not been whole
    assert sorted(cooked(tmp_path, "write")) == [1, 2, 3, 4, 5, 6]
    execute(graph, out=tmp_path / "whole")
    assert content(job.folder / "wedges/000/cache/r001") == content(tmp_path / "whole/r001")


@pytest.mark.slow  # processes that are stopped and started again
def test_a_stop_keeps_what_is_whole(walking, tmp_path):
    """Cancelled in mid-solve, then run to its end: each frame was walked once, and finished tasks were not run again."""
    job = make_job(load_graph(walking(pause=0.2)), tmp_path / "job", chunk=3)
    cancel = threading.Event()

    def watch(event):
        if event["event"] == "task_done" and event["task"] == "solve_000_3":
            threading.Thread(target=lambda: (wait_for(lambda: len(solved(job)) >= 4), cancel.set())).start()

    with pytest.raises(Cancelled, match="Continue with: mpm-nodes farm"):
        run_here(job, 1, on_event=watch, cancel=cancel)
    frames = cooked(tmp_path, "walk")
    assert 4 <= len(frames) <= 6
    outcome = run_here(job, 2)
    assert "solve_000_3" in outcome.kept and not outcome.failed
    walked = cooked(tmp_path, "walk")
    assert sorted(set(walked)) == [1, 2, 3, 4, 5, 6] and len(walked) <= 7


def test_the_template_runs(graph, tmp_path, program):
    """openjd-cli runs every step; it hears progress and status, and the cache is whole."""
    job = make_job(graph, tmp_path / "job", chunk=3)
    write_submission(job)
    done = openjd("run", "template.json", "-p", f"Program={program}", cwd=job.folder, seconds=400.0)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "openjd_progress: 50.0" in done.stdout and "openjd_status: frame 6 of 6 is done" in done.stdout
    assert cooked(tmp_path, "walk") == [1, 2, 3, 4, 5, 6] and sorted(cooked(tmp_path, "write")) == [1, 2, 3, 4, 5, 6]
    assert len(content(job.folder / "wedges/000/cache/r001")) == 6
    assert (job.folder / "wedges.csv").read_text().splitlines()[1].startswith("0,done,6,")


def test_the_command_line(walking, tmp_path, capfd, monkeypatch, pretend):
    """A job is made, run and run again from its folder; what does not go together is refused with code 2."""
    shot = str(walking())
    assert cli.main(["farm", shot, "--wedge", "walk.step=1,2", "--chunk", "3", "-o", "job"]) == 0
    assert "next: mpm-nodes farm job --jobs 2" in capfd.readouterr().out
    assert cli.main(["farm", "job", "--jobs", "2"]) == 0
    out, err = capfd.readouterr()
    assert "tasks run: 11, finished before: 0" in out and "solve_001_3 (step=2) begins" in err
    assert cli.main(["farm", shot, "--wedge", "walk.step=1,2", "--chunk", "3", "-o", "job", "--jobs", "1"]) == 0
    assert "tasks run: 1, finished before: 10" in capfd.readouterr().out
    assert cli.main(["farm", "job", "--chunk", "2"]) == 2 and "has its chunk already" in capfd.readouterr().err
    assert cli.main(["farm", "job", "--jobs", "1", "--dask", "local"]) == 2
    pretend.codes = {"solve_000_3": [4]}
    assert cli.main(["farm", shot, "--chunk", "3", "-o", "falls", "--jobs", "1"]) == 4
    assert "1 failed (solve_000_3)" in capfd.readouterr().out


# ---------------------------------------------------------------- Dask
@pytest.mark.slow  # two workers that are killed, restarted and served: half a minute
def test_workers_of_a_cluster_killed_in_mid_task_lose_nothing(walking, tmp_path):
    """Both workers die by SIGKILL in mid-solve: nothing whole is cooked again, and frames are made while the solve goes on."""
    distributed = pytest.importorskip("distributed", reason='needs distributed: pip install "mpm-nodes[dask]"')
    from mpm_nodes.farm.cluster import run_on_dask

    graph = load_graph(walking(pause=0.5))
    job = make_job(graph, tmp_path / "job", {"walk.step": [1.0, 2.0]}, chunk=2)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        found: list = []
        thread = threading.Thread(target=lambda: found.append(run_on_dask(job, client)))
        thread.start()
        wait_for(lambda: len(solved(job)) >= 3, 240.0)
        before = {path: path.stat().st_mtime_ns for path in solved(job)[:3]}
        for worker in list(cluster.workers.values()):
            os.kill(worker.pid, signal.SIGKILL)
        thread.join(timeout=500)
    assert found and not found[0].failed and not found[0].skipped
    assert {path: path.stat().st_mtime_ns for path in before} == before
    walked = cooked(tmp_path, "walk")
    assert sorted(set(walked)) == [1, 2, 3, 4, 5, 6]
    assert len(walked) <= 14  # two wedges of six, and the two frames in which workers died
    assert len(cooked(tmp_path, "write")) <= 14
    lines = (tmp_path / "walk.log").read_text().splitlines()
    assert lines.index(next(line for line in lines if line.startswith("write 1"))) < max(
        n for n, line in enumerate(lines) if line.startswith("walk 6")
    )
    for number, step in ((0, 1.0), (1, 2.0)):
        graph.set("walk.step", step)
        execute(graph, out=tmp_path / f"whole{number}")
        assert content(job.folder / f"wedges/00{number}/cache/r001") == content(tmp_path / f"whole{number}/r001")


@pytest.mark.slow  # two solves on two workers that are killed
def test_workers_killed_in_a_real_solve_lose_nothing(tmp_path):
    """Jelly that falls, as two wedges: what was whole when both workers died is not written again, and caches have the bytes of a
    cook that nothing ended."""
    distributed = pytest.importorskip("distributed", reason='needs distributed: pip install "mpm-nodes[dask]"')
    pytest.importorskip("pxr.Usd")
    from mpm_nodes.farm.cluster import run_on_dask

    graph = Graph(cell_size=0.03, fps=24.0, start=1, end=8)
    jelly = graph.add("material_neo_hookean", "jelly", youngs_modulus=3e4)
    cube = graph.add("emit_box", "cube", material=jelly, size=(0.3, 0.3, 0.3), centre=(0.0, 0.2, 0.0))
    fall = graph.add("solve", "fall", sources=[cube], colliders=[graph.add("collide_plane", "ground")])
    graph.add("write_cache", "cache", particles=fall)
    graph.save(tmp_path / "shot.json")
    stiffness = [3e4, 6e4]
    job = make_job(load_graph(tmp_path / "shot.json"), tmp_path / "job", {"jelly.youngs_modulus": stiffness}, chunk=4)

    def whole():
        """Return the records of all frames that are there, of solves and of caches, with the times at which they were written."""
        records = (job.folder / "wedges").glob("*/**/frames/[0-9]*.commit.json")
        return {path: path.stat().st_mtime_ns for path in records}

    def in_mid_solve():
        count = len(solved(job))
        return 1 <= count % 4 <= 3 and count >= 2

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        found: list = []
        thread = threading.Thread(target=lambda: found.append(run_on_dask(job, client, threads=1)))
        thread.start()
        wait_for(in_mid_solve, 300.0)
        for worker in list(cluster.workers.values()):
            os.kill(worker.pid, signal.SIGKILL)
        before = whole()
        thread.join(timeout=500)
    assert found and not found[0].failed and not found[0].skipped
    assert len(before) >= 2 and len(before) < len(whole())
    assert {path: path.stat().st_mtime_ns for path in before} == before
    for number, modulus in enumerate(stiffness):
        graph.set("jelly.youngs_modulus", modulus)
        execute(graph, out=tmp_path / f"whole{number}")
        assert content(job.folder / f"wedges/00{number}/cache/r001") == content(tmp_path / f"whole{number}/r001")


SBATCH = """#!/bin/sh
# what sbatch does with an array, one task after the other; says its name last
for word in "$@"; do
  case $word in --array=1-*) count=${word#--array=1-} ;; --*) ;; *) script=$word ;; esac
done
n=0
while [ $n -lt $count ]; do n=$((n + 1)); SLURM_ARRAY_TASK_ID=$n sh -ec "$script" >> slurm.log 2>&1 || exit 1; done
echo "$@" >> asked.txt
wc -l < asked.txt
"""


PARALLEL = """#!/bin/sh
# what parallel does with a list of commands, one after the other
while read -r line; do echo "$line" >> parallel.log; sh -ec "$line" >> slurm.log 2>&1 || exit 1; done
"""


@pytest.mark.slow  # five processes, one after the other
def test_the_lines_for_parallel_in_the_readme_run(graph, tmp_path, program):
    """As they stand in the job's README, in a folder where nothing has been submitted before, with a stand-in for parallel."""
    job = make_job(graph, tmp_path / "job", {"writer.scale": [1.0, 2.0]}, chunk=3)
    write_submission(job)
    page = (job.folder / "README.md").read_text()
    lines = page[page.index("    for n in $(seq") : page.index("## What comes out")]
    (tmp_path / "parallel").write_text(PARALLEL)
    (tmp_path / "parallel").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = "set -eu\n" + "\n".join(line[4:] for line in lines.splitlines())
    done = subprocess.run(["bash", "-c", script], cwd=job.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + (job.folder / "slurm.log").read_text()
    assert len((job.folder / "parallel.log").read_text().splitlines()) == len(job.tasks())
    assert (job.folder / "wedges.csv").read_text().count(",done,6,") == 2


@pytest.mark.slow  # five processes, one after the other
def test_the_lines_for_slurm_in_the_readme_run(graph, tmp_path, program):
    """As they stand in the job's README, with a stand-in for sbatch: every task once, each stage after the one before."""
    job = make_job(graph, tmp_path / "job", {"writer.scale": [1.0, 2.0]}, chunk=3)
    write_submission(job)
    page = (job.folder / "README.md").read_text()
    lines = page[page.index("    n=0; after=") : page.index("With GNU Parallel")]
    (tmp_path / "sbatch").write_text(SBATCH)
    (tmp_path / "sbatch").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = "set -eu\n" + "\n".join(line[4:] for line in lines.splitlines())
    done = subprocess.run(["bash", "-c", script], cwd=job.folder, env=environment, capture_output=True, text=True, check=False)
    log = (job.folder / "slurm.log").read_text()
    assert done.returncode == 0, done.stderr + log
    asked = (job.folder / "asked.txt").read_text().splitlines()
    assert [("afterok" in line, line.split("--array=")[1].split()[0]) for line in asked] == [
        (False, "1-2"),
        (True, "1-4"),
        (True, "1-2"),
        (True, "1-1"),
    ]
    assert sorted(cooked(tmp_path, "walk")) == sorted([*range(1, 7)] * 2)
    assert (job.folder / "wedges.csv").read_text().count(",done,6,") == 2
