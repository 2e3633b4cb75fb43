"""`mpm-nodes kernels warm --cpu`: the processor's name reaches numba, and what cannot work is refused with the cure."""

from __future__ import annotations

import signal
import subprocess

import pytest

from mpm_nodes import children, cli
from mpm_nodes.commands import kernels


@pytest.fixture
def started(monkeypatch):
    """Processes that are not started: their entries and environments, and what each ends with."""
    calls, ends = [], {}

    def run(entry, arguments=(), **options):
        calls.append((entry.partition(":")[2], list(arguments), options.get("env")))
        return subprocess.CompletedProcess([], ends.get(entry.partition(":")[2], 0), "", "ValueError: no")

    monkeypatch.setattr(children, "run", run)
    return calls, ends


def test_a_processor_that_llvm_does_not_know_is_refused(capsys):
    """LLVM itself goes on with a generic processor: half of the speed, and kernels that nobody finds."""
    assert cli.main(["kernels", "warm", "--cpu", "zen99"]) == 2
    assert 'LLVM knows no processor "zen99"' in capsys.readouterr().err


def test_the_name_and_no_features_of_this_machine_reach_the_compiler(started, tmp_path, capsys):
    """With this machine's features, code for an older processor would not run there."""
    calls, _ = started
    assert cli.main(["kernels", "warm", str(tmp_path / "shot.json"), "--cpu", "znver3"]) == 0
    assert [call[0] for call in calls] == ["name_processor", "warm_here"]
    _, arguments, environment = calls[1]
    assert arguments == [str(tmp_path / "shot.json")]
    assert (environment["NUMBA_CPU_NAME"], environment["NUMBA_CPU_FEATURES"]) == ("znver3", "")
    assert "export NUMBA_CPU_NAME=znver3 NUMBA_CPU_FEATURES=\n" in capsys.readouterr().out


@pytest.mark.parametrize("end, said", [(-signal.SIGILL, "cannot run what is made for"), (1, "exit status 1: ValueError: no")])
def test_what_this_machine_cannot_run_is_said(end, said, started, capsys):
    """Kernels are compiled by calling them: a processor without an instruction ends the process."""
    started[1]["warm_here"] = end
    assert cli.main(["kernels", "warm", "--cpu", "znver4"]) == 2
    assert said in capsys.readouterr().err


def test_other_actions_take_no_processor(capsys):
    """One folder holds the kernels of all processors."""
    assert cli.main(["kernels", "where", "--cpu", "znver3"]) == 2
    assert "takes no --cpu" in capsys.readouterr().err


def test_the_process_warms_what_it_is_given(monkeypatch, tmp_path):
    """No argument stands for what is compiled by default."""
    given = []
    monkeypatch.setattr(kernels, "warm", given.append)
    kernels.warm_here()
    kernels.warm_here("melting", str(tmp_path / "shot.json"))
    assert given == [(), ("melting", str(tmp_path / "shot.json"))]
