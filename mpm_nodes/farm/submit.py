"""A job for engines: a template of Open Job Description, a plain list of commands, and a page that says how to submit each."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from typing import Any

from mpm_nodes.farm.job import FarmJob, FarmTask, write_text
from mpm_nodes.terminal import plain

__all__ = ["commands_of", "template_of", "write_submission"]

SPECIFICATION = "jobtemplate-2023-09"
NOTICE = 30
"""Seconds between the request to stop and the end; a cook ends after its substep."""
SPAN = "{{Task.Param.Frames}}"
FOLDER = "{{Param.Job}}"


def write_submission(job: FarmJob) -> None:
    """Write template.json, commands.txt and README.md into the folder of a job."""
    write_text(job.folder, "template.json", json.dumps(template_of(job), indent=1, ensure_ascii=False) + "\n")
    write_text(job.folder, "commands.txt", commands_of(job))
    write_text(job.folder, "README.md", page_of(job))


def steps_of(tasks: Sequence[FarmTask]) -> dict[str, list[FarmTask]]:
    """Return the tasks by step, in order."""
    steps: dict[str, list[FarmTask]] = {}
    for task in tasks:
        steps.setdefault(task.step, []).append(task)
    return steps


def template_of(job: FarmJob) -> dict[str, Any]:
    """Return the job as a template of Open Job Description (2023-09): a step for each stage of each wedge."""
    tasks = job.tasks()
    steps = steps_of(tasks)
    step_of = {task.id: task.step for task in tasks}
    parameters = [
        {
            "name": "Job",
            "type": "PATH",
            "objectType": "DIRECTORY",
            "dataFlow": "INOUT",
            "default": ".",
            "description": "Folder of the job; every machine writes into it.",
        },
        {"name": "Program", "type": "STRING", "default": "mpm-nodes", "description": "The program on the machines of the farm."},
    ]
    return {
        "specificationVersion": SPECIFICATION,
        "name": _text(job.name, 64),
        "parameterDefinitions": parameters,
        "steps": [_step(name, members, step_of) for name, members in steps.items()],
    }


def _text(text: str, length: int) -> str:
    """Return a text for people as a template may hold it: double braces would be taken for a parameter."""
    for brace in "{}":
        while brace * 2 in text:
            text = text.replace(brace * 2, f"{brace} {brace}")
    return plain(text)[:length]


def _step(name: str, tasks: Sequence[FarmTask], step_of: dict[str, str]) -> dict[str, Any]:
    task = tasks[0]
    stop = {"mode": "NOTIFY_THEN_TERMINATE", "notifyPeriodInSeconds": NOTICE}
    run = {"command": "{{Param.Program}}", "args": task.command(FOLDER, SPAN), "cancelation": stop}
    step: dict[str, Any] = {"name": name}
    if task.label:
        step["description"] = _text(task.label, 2048)
    before = list(dict.fromkeys(step_of[need] for each in tasks for need in each.needs))
    if before:
        step["dependencies"] = [{"dependsOn": each} for each in before]
    if task.span:
        step["parameterSpace"] = {
            "taskParameterDefinitions": [{"name": "Frames", "type": "STRING", "range": [each.span for each in tasks]}]
        }
    step["hostRequirements"] = {
        "amounts": [{"name": "amount.worker.memory", "min": math.ceil(max(t.memory for t in tasks) / 2**20)}]
    }
    return {**step, "script": {"actions": {"onRun": run}}}


def commands_of(job: FarmJob) -> str:
    """Return the commands of a job, one a line, in stages: what stands in one stage may run at the same time."""
    tasks = job.tasks()
    depth: dict[str, int] = {}
    for task in tasks:
        depth[task.id] = 1 + max((depth[need] for need in task.needs), default=-1)
    lines = ["# run in the folder of the job; each stage when the one before is finished, its lines in any order and at once"]
    for stage in range(max(depth.values()) + 1):
        lines.append(f"# stage {stage + 1}")
        lines += [shlex.join(["mpm-nodes", *task.command(".")]) for task in tasks if depth[task.id] == stage]
    return "\n".join(lines) + "\n"


def page_of(job: FarmJob) -> str:
    """Return the README of a job."""
    tasks = job.tasks()
    most = math.ceil(max(task.memory for task in tasks) / 2**30)
    first, last = job.frames
    return f"""# {job.name}: frames {first} to {last}, {job.summary()}

Every machine must see this folder, and the input files of the shot under the paths that they have here, and have the same version
of mpm-nodes (and of your own nodes on `MPM_NODES_PATH`). A task needs {most} GB of memory or less. Tasks may be run again at any
time: what is finished stays, what was begun goes on.

## Here

    mpm-nodes farm . --jobs 4

## On a Dask cluster

    pip install "mpm-nodes[dask]"
    mpm-nodes farm . --dask tcp://scheduler:8786

## Engines that read Open Job Description (AWS Deadline Cloud and others)

`template.json` has a step for each stage of each wedge. Try it here with
`pip install "mpm-nodes[farm]"`:

    openjd check template.json
    openjd run template.json

Deadline Cloud takes it as a job bundle: a folder with the template, submitted from where the job's folder is shared.

    deadline bundle submit . -p Job=$PWD

## Any other engine (Slurm, OpenCue, Tractor, HTCondor, GNU Parallel)

`commands.txt` has one command a line, in stages. With Slurm, an array for each stage, which waits for the one before:

    n=0; after=
    while grep -q "^# stage $((n + 1))$" commands.txt; do
      n=$((n + 1))
      awk -v n=$n '/^# stage/ {{s = $3}} !/^#/ && s == n' commands.txt > stage.$n
      after=$(sbatch --parsable ${{after:+--dependency=afterok:$after}} --array=1-$(wc -l < stage.$n) --mem={most}G \\
        --wrap "sed -n \\${{SLURM_ARRAY_TASK_ID}}p stage.$n | sh")
    done

With GNU Parallel on one machine, four tasks at once:

    for n in $(seq $(grep -c "^# stage" commands.txt)); do
      awk -v n=$n '/^# stage/ {{s = $3}} !/^#/ && s == n' commands.txt | parallel -j 4 --halt now,fail=1 || break
    done

## What comes out

`wedges.png`, `wedges.csv` and `wedges.usda` hold all wedges side by side; `wedges/000/cache` is the cache of the first one, and so
on. The folders `solve` and `frames` may be deleted when the job is finished.

| wedge | values |
|---|---|
""" + "".join(f"| {wedge.number:03d} | {wedge.label.replace('|', '/') or 'as in the graph'} |\n" for wedge in job.wedges)
