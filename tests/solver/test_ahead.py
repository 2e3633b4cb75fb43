"""Presets compiled ahead: in several processes, each part begun once, helped at the end, and noted when it is whole."""

from __future__ import annotations

import io
import json
import os
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpm_nodes import cli
from mpm_nodes.commands import doctor, kernels
from mpm_nodes.data import MpmNodesError
from mpm_nodes.solver import ahead, cold_start
from mpm_nodes.solver.compile_helper import _tiny_solver
from mpm_nodes.solver.kernel_counts import COUNTS, count_of


class Process:
    """A process of a crew that compiles two kernels a job, at once; `fails` names the preset at which it ends."""

    def __init__(self, jobs, fails=""):
        self.jobs, self.fails, self.killed = jobs, fails, False
        read, write = os.pipe()
        self.stdout, self._out = os.fdopen(read), os.fdopen(write, "w")
        self.stdin, self._done = self, 0
        self._tell({"done": 0, "kernel": ""})

    def _tell(self, words):
        self._out.write(json.dumps(words) + "\n")
        self._out.flush()

    def write(self, line):
        """Do a job."""
        preset, place, late = json.loads(line)
        self.jobs.append((preset, place, late))
        if preset == self.fails:
            self._out.close()
            return
        self._done += 2
        self._tell({"done": self._done, "kernel": "loop"})
        self._tell({"done": self._done, "kernel": ""})

    def flush(self):
        """Nothing is held back."""

    def wait(self):
        """Say how it ended."""
        return -11

    def kill(self):
        """End."""
        self.killed = True
        if not self._out.closed:
            self._out.close()


@pytest.fixture
def crew(tmp_path, monkeypatch):
    """Jobs that were done; presets leave their marks in a folder of their own."""
    jobs, fails = [], []
    monkeypatch.setattr(ahead.children, "start", lambda *given, **options: Process(jobs, *fails))
    monkeypatch.setattr(ahead, "_marker", lambda preset: tmp_path / "ahead" / preset)
    return jobs, fails


def test_each_matter_of_a_preset_is_one_job_and_counts(crew):
    """Whoever is free takes the next; a preset is noted when all of it is done."""
    jobs, _ = crew
    words = []
    assert ahead.compile_presets(("explicit_apic", "melting"), 1, words.append) == 2 * len(jobs)
    places = [("explicit_apic", place, False) for place in range(len(ahead.matters("explicit_apic")))]
    assert jobs == [*places, ("melting", 0, False)]
    assert ahead.is_ahead("explicit_apic") and ahead.is_ahead("melting") and not ahead.is_ahead("auto")


def test_a_process_with_nothing_to_begin_helps_from_behind(crew):
    """It gets what another has not ended, the late stages first; that does not end the job."""
    jobs, _ = crew
    team = ahead._Crew([("melting", 0)], 2, None)
    first, second = team.workers
    team._finish(first)
    team._finish(second)
    assert jobs == [("melting", 0, False), ("melting", 0, True)]
    team._finish(second)
    assert team.unfinished == {("melting", 0)}
    team._finish(first)
    assert not team.unfinished and ahead.is_ahead("melting")
    team.end()
    assert first.process.killed and second.process.killed


def test_a_process_that_ends_names_what_it_compiled(crew):
    """Nothing waits for it, and the preset is not noted."""
    _, fails = crew
    fails.append("melting")
    with pytest.raises(MpmNodesError, match="melting: cannot be compiled: a process ended with -11"):
        ahead.compile_presets(("melting",), 1, lambda now: None)
    assert not ahead.is_ahead("melting")


def test_a_worker_tells_how_far_it_is_and_what_failed(monkeypatch, capsys):
    """One line when it is free, before the first job and after each; a failure has its reason."""
    done = []

    def compile_one(preset, place, late):
        done.append((preset, place, late))
        if preset == "bad":
            raise ValueError("no such matter")

    monkeypatch.setattr(ahead, "compile_one", compile_one)
    monkeypatch.setattr(ahead.sys, "stdin", io.StringIO('["auto", 0, false]\n["bad", 1, true]\n'))
    ahead.work()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert done == [("auto", 0, False), ("bad", 1, True)]
    assert [each.get("failed", "") for each in told] == ["", "", "ValueError: no such matter", ""]


@pytest.mark.parametrize("preset", kernels.BUILT_IN)
def test_every_preset_has_matter_and_a_count(preset):
    """A tiny solve can be built of each of its matters, and what it takes is known."""
    for matter in ahead.matters(preset):
        task = {"materials": (matter,), "substeps": preset, "fuse": True, "walls": None, "dtype": "<f4", "collides": True}
        assert _tiny_solver(task).particles.count == 8
    count = count_of(preset)
    assert count.ahead >= count.first > 0


@pytest.mark.phenomena("melting")
def test_names_are_presets_and_files(monkeypatch, tmp_path, capsys):
    """`--all` are the presets; what is neither is refused with the nearest name; what is there is not compiled again."""
    asked = []
    monkeypatch.setattr(ahead, "compile_presets", lambda presets, processes, say: asked.append(presets))
    monkeypatch.setattr(ahead, "is_ahead", lambda preset: preset == "auto")
    assert cli.main(["kernels", "warm", "melting", "auto"]) == 0
    said = capsys.readouterr().out
    assert "auto: compiled already\n" in said and "compiling melting in " in said and "at most" in said
    assert cli.main(["kernels", "warm", "--all"]) == 0
    assert asked == [["melting"], [name for name in kernels.BUILT_IN if name != "auto"]]
    assert cli.main(["kernels", "warm", "meltin"]) == 2
    assert "neither a preset nor a graph file" in capsys.readouterr().err
    assert cli.main(["kernels", "clear", "melting"]) == 2
    assert "takes no names" in capsys.readouterr().err


@pytest.mark.phenomena("melting")
def test_the_doctor_names_what_is_left_and_the_command(monkeypatch):
    """Nothing is compiled for that."""
    monkeypatch.setattr(ahead, "is_ahead", lambda preset: preset != "melting")
    state, text, cure = doctor._presets()
    assert state == "missing" and text.endswith("left: melting") and cure.startswith("mpm-nodes kernels warm melting")
    monkeypatch.setattr(ahead, "is_ahead", lambda preset: True)
    assert doctor._presets()[0] == "ok"


@pytest.mark.slow
@pytest.mark.phenomena("separate_bodies")
def test_the_counts_are_those_of_the_package():
    """As they were written; `python benchmarks/kernel_counts.py` counts them again."""
    script = Path(__file__).resolve().parents[2] / "benchmarks" / "kernel_counts.py"
    counted = runpy.run_path(str(script))["counted"]
    assert counted("separate_bodies") == COUNTS["separate_bodies"]


def test_a_cold_cook_of_a_preset_knows_about_how_many_there_are(monkeypatch):
    """Of a preset with settings, too; of a substep graph of one's own nobody knows."""
    asked = []
    monkeypatch.setattr(cold_start.compiling, "expect", asked.append)
    monkeypatch.setattr(cold_start, "_start", lambda solver: None)
    monkeypatch.setattr(cold_start, "_marker", lambda solver: Path(os.devnull))
    for recipe in ("melting", {"preset": "melting", "set": {}}, {"nodes": {}}):
        with cold_start._compiling(SimpleNamespace(candidates=SimpleNamespace(recipe=recipe))):
            pass
    assert asked == [COUNTS["melting"].first, None, COUNTS["melting"].first, None, None, None]
