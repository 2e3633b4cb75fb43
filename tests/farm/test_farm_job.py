"""What a job holds: wedges and their values, tasks and what they wait for, and how engines are told."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpm_nodes import cli
from mpm_nodes.data import InputError, OutputError
from mpm_nodes.farm import local
from mpm_nodes.farm.job import PROGRAM_BYTES, FarmJob, Wedge, load_job, make_job
from mpm_nodes.farm.submit import commands_of, template_of, write_submission
from mpm_nodes.farm.values import combinations, label_of, parse_wedges, pieces
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.reports.problems import GraphError


def openjd(*arguments: str, cwd: Path | None = None, seconds: float = 120.0) -> subprocess.CompletedProcess:
    pytest.importorskip("openjd.cli", reason='needs openjd-cli: pip install "mpm-nodes[farm]"')
    command = [sys.executable, "-m", "openjd", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=seconds, check=False)


# ---------------------------------------------------------------- values
def test_values_are_cut_at_commas_outside_of_brackets():
    """Vectors and texts with commas are one value."""
    assert pieces('[1,2],"a,b", {"c": [3,4]},5') == ["[1,2]", '"a,b"', '{"c": [3,4]}', "5"]
    assert pieces(r'"a\",b",c') == [r'"a\",b"', "c"]
    found = parse_wedges(["a.b=1e3,2", "c.d=[1,2],[3,4]", "s.t=soft,stiff"])
    assert found == {"a.b": [1000.0, 2], "c.d": [[1, 2], [3, 4]], "s.t": ["soft", "stiff"]}


@pytest.mark.parametrize("text", ["a.b", "a.b=", "=1,2", "a.b=1,,2", "a.b=1,"])
def test_what_is_no_list_of_values_is_refused(text):
    """With the text and the form that it should have."""
    with pytest.raises(GraphError, match=r"write --wedge node\.knob=a,b,c"):
        parse_wedges([text])


def test_combinations_and_what_they_are_called():
    """Every value with every other; the last place changes fastest; names are as short as can be."""
    rows = combinations({"a.x": [1.0, 2.0], "b.y": ["p", "q"]})
    assert [label_of(row) for row in rows] == ["x=1 y=p", "x=1 y=q", "x=2 y=p", "x=2 y=q"]
    assert label_of({"a.x": 1, "b.x": [1, 2]}) == "a.x=1 b.x=[1,2]" and combinations({}) == [{}]
    for wrong in ({"a.x": []}, {"settings.end": [3, 4]}, {f"a.{n}": range(11) for n in range(3)}):
        with pytest.raises(GraphError):
            combinations(wrong)
    with pytest.raises(GraphError, match="given twice"):
        parse_wedges(["a.b=1", "a.b=2"])


# ---------------------------------------------------------------- the job
def test_tasks_wait_for_what_they_need(graph, tmp_path):
    """Frames wait for their solve, or for their piece of it; the join for the frames, pictures for the join, the sheet for all."""
    job = make_job(graph, tmp_path / "job", {"walk.step": [1.0, 2.0]}, (2, 6), 2, ("splat",))
    needs = {task.id: task.needs for task in job.tasks()}
    assert list(needs)[:9] == [
        "solve_000",
        *(f"frames_000_{span}" for span in ("2-3", "4-5", "6-6")),
        "join_000",
        *(f"render_splat_000_{span}" for span in ("2-3", "4-5", "6-6")),
        "solve_001",
    ]
    assert needs["frames_000_4-5"] == ("solve_000",) and needs["render_splat_001_6-6"] == ("join_001",)
    assert set(needs["gather"]) == {f"render_splat_00{n}_{span}" for n in (0, 1) for span in ("2-3", "4-5", "6-6")}
    cut = {task.id: task for task in job.tasks(pieces=True)}
    assert cut["solve_000_5"].needs == ("solve_000_3",) and cut["frames_000_4-5"].needs == ("solve_000_5",)
    assert "--frames=1-5" in cut["solve_000_5"].arguments  # a solve begins where the shot does
    assert load_job(tmp_path / "job") == job
    whole = make_job(graph, tmp_path / "whole", {"walk.step": [1.0, 2.0]}, renders=("splat",))  # without chunks: a task a wedge
    needs = {task.id: task.needs for task in whole.tasks()}
    assert needs["render_splat_001_1-6"] == ("cook_001",) and needs["cook_001"] == ()
    assert [name for name in needs if not name.startswith("render")] == ["cook_000", "cook_001", "gather"]
    assert load_job(tmp_path / "whole") == whole


def test_a_job_is_frozen(graph, tmp_path):
    """Each wedge has its own graph, files by absolute path; the same job again is left alone, another one is refused."""
    job = make_job(graph, tmp_path / "job", {"walk.step": [1.0, 2.0]})
    steps = [load_graph(tmp_path / f"job/wedges/00{n}/graph.json").nodes["walk"].knobs["step"] for n in (0, 1)]
    assert steps == [1.0, 2.0]
    before = (tmp_path / "job/job.json").stat().st_mtime_ns
    assert make_job(graph, tmp_path / "job", {"walk.step": [1.0, 2.0]}) == job
    assert (tmp_path / "job/job.json").stat().st_mtime_ns == before
    graph.set("writer.scale", 3.0)
    with pytest.raises(OutputError, match="holds another job"):
        make_job(graph, tmp_path / "job", {"walk.step": [1.0, 2.0]})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("x")
    with pytest.raises(OutputError, match="holds something else"):
        make_job(graph, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_input_files_are_found_from_the_job(tmp_path):
    """A path beside the graph becomes the absolute one."""
    from mpm_nodes.graph.document.document import Graph

    (tmp_path / "scene").mkdir()
    (tmp_path / "scene/cloud.usda").write_text("#usda 1.0\n")
    graph = Graph(base=tmp_path / "scene")
    points = graph.add("read_points", "points", path="cloud.usda", material=graph.add("material_neo_hookean", "jelly"))
    graph.add("write_cache", "cache", particles=points)
    make_job(graph, tmp_path / "job")
    frozen = load_graph(tmp_path / "job/wedges/000/graph.json")
    assert frozen.nodes["points"].knobs["path"] == str(tmp_path / "scene/cloud.usda")
    assert graph.nodes["points"].knobs["path"] == "cloud.usda"


def test_what_is_wrong_is_said_before_anything_is_written(graph, tmp_path):
    """Unknown knobs, frames before the shot, chunks of nothing or too many of them, values that the graph refuses."""
    for knobs, frames, chunk, renders in (
        ({"walk.stride": [1]}, None, 2, ()),
        ({"walk.pause": [-1.0]}, None, 2, ()),
        ({}, (0, 3), 2, ()),
        ({}, (4, 3), 2, ()),
        ({}, None, 0, ()),
        ({}, (1, 5000), 4, ()),
        ({}, None, 2, ("paint",)),
    ):
        with pytest.raises(GraphError):
            make_job(graph, tmp_path / "job", knobs, frames, chunk, renders)
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"frames": [1]},
        {"frames": ["1", 2]},
        {"chunk": 0},
        {"wedges": []},
        {"wedges": [{"number": 0}]},
        {"renders": ["; rm"]},
        {"name": 3},
        {"size": [1]},
    ],
)
def test_a_strange_job_is_refused(graph, tmp_path, change):
    """Tasks are made from numbers that were looked at; nothing in a file runs."""
    make_job(graph, tmp_path / "job")
    path = tmp_path / "job/job.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match="not a job of ours"):
        load_job(tmp_path / "job")
    with pytest.raises(InputError, match="holds no job"):
        load_job(tmp_path)


def test_memory_of_tasks_is_that_of_their_nodes(walking, tmp_path):
    """What the walk says it needs counts for the solve, and not for the frames."""
    job = make_job(load_graph(walking(bytes=3e9)), tmp_path / "job", chunk=6)
    memory = {task.id: task.memory for task in job.tasks()}
    assert memory["solve_000"] == PROGRAM_BYTES + 3_000_000_000
    assert PROGRAM_BYTES <= memory["frames_000_1-6"] < PROGRAM_BYTES + 1_000_000


# ---------------------------------------------------------------- engines
def test_the_template_passes_the_check_of_its_makers(graph, tmp_path):
    """openjd-cli finds no fault, in labels with braces either, and sees steps, chunks and what they wait for."""
    job = make_job(graph, tmp_path / "job", {"writer.scale": [1.0, 2.0]}, (1, 6), 4, ("splat",), name='a "shot" {{Param.X}}')
    write_submission(job)
    template = template_of(job)
    steps = {step["name"]: step for step in template["steps"]}
    assert [each["dependsOn"] for each in steps["join 001"]["dependencies"]] == ["frames 001"]
    assert steps["frames 000"]["parameterSpace"]["taskParameterDefinitions"][0]["range"] == ["1-4", "5-6"]
    done = openjd("check", str(tmp_path / "job/template.json"))
    assert done.returncode == 0, done.stdout


def test_the_plain_list_holds_every_task_in_its_stage(graph, tmp_path):
    """Stages go up, every line is a command that the program's own parser takes."""
    job = make_job(graph, tmp_path / "job", {"writer.scale": [1.0, 2.0]}, (1, 6), 4, ("splat",), (160, 120))
    lines = commands_of(job).splitlines()
    assert [line for line in lines if line.startswith("# stage")] == [f"# stage {n}" for n in range(1, 6)]
    commands = [shlex.split(line) for line in lines if not line.startswith("#")]
    assert len(commands) == len(job.tasks()) and all(command[0] == "mpm-nodes" for command in commands)
    for command in commands:
        cli.parser().parse_args(command[1:])
    page = (write_submission(job), (tmp_path / "job/README.md").read_text())[1]
    assert "openjd check template.json" in page and "| 001 | scale=2 |" in page


# ---------------------------------------------------------------- many tasks
def test_many_tasks_take_no_longer_each_than_few(tmp_path, stopwatch):
    """A job of 24,000 tasks is cut, told to an engine, run for 5,000 of them, and given up when one fails, in seconds."""
    wedge = Wedge(0, "", {}, 1, 1)
    job = FarmJob(tmp_path, "shot", (1, 8_000), 1, 1, (wedge,), ("splat",))
    with stopwatch() as taken:
        tasks = job.tasks(pieces=True)
        template_of(job), commands_of(job)
        run = local._Run(job, 2, 1 << 40, 1, lambda event: None)
        run._begin = lambda task: run.running.append(SimpleNamespace(task=task))
        run.start()
        for _ in range(5_000):
            run.over(run.running.pop().task, done=True)
            run.start()
        run.over(run.running.pop().task, done=False)
        given_up, run.running = run.running, []
        run.start()
    assert len(tasks) > 24_000 and tasks[-1].needs and len(run.outcome.skipped) == len(tasks) - 5_000 - 1 - len(given_up) - 1
    assert [each.task.id for each in run.running] == ["gather"]
    assert taken.seconds < 20.0  # a second or two; comparing each task with each took minutes
