"""The comparison with peers, played with solvers that are made up: agreement first, turns, records, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import against_peers
import environments
import numpy as np
import pytest
from benchmark_folder import FOLDER

from mpm_nodes.data import MpmNodesError

KEYS = {"peer", "version", "form", "particle_steps_per_second", "ours", "ratio", "agreement", "threads", "particles", "rounds"}
SECONDS = {"mpm_nodes_cube.py": 0.01, "taichi_cube.py": 0.1, "warp_cube.py": 0.05}


@pytest.fixture
def played(monkeypatch, tmp_path):
    """Replace environments and processes; return the list of runs and the set of (script, form) that are made to disagree."""
    runs, wrong = [], set()

    def run_script(python, script, arguments, threads, ours=False):
        options = dict(zip(arguments[::2], arguments[1::2], strict=True))
        runs.append((script, options["--form"], "--state" in options))
        assert ours == (script == "mpm_nodes_cube.py") and threads == 1
        if "--state" in options:
            speed = 1.5 if (script, options["--form"]) in wrong else 1.0
            np.savez(
                options["--state"],
                position=np.full((8, 3), 0.5),
                velocity=np.full((8, 3), speed),
                deformation=np.tile(1.01 * np.eye(3), (8, 1, 1)),
            )
        facts = {
            "version": "9",
            "seconds": 1.0,
            "step_seconds": SECONDS[script] * (2.0 if options["--form"] == "same" else 1.0),
            "steps": 20,
            "cores_busy": 1.0,
        }
        Path(options["--result"]).write_text(json.dumps(facts))

    monkeypatch.setenv("MPM_NODES_CACHE", str(tmp_path))
    monkeypatch.setattr(against_peers, "environment", lambda requirements: Path("python"))
    monkeypatch.setattr(against_peers, "run_script", run_script)
    return runs, wrong


def compare(tmp_path: Path) -> tuple[int, list[dict]]:
    """Run the comparison and return exit code and records."""
    file = tmp_path / "figures.json"
    code = against_peers.main(["--particles", "1000", "--rounds", "2", "--threads", "1", "--json", str(file)])
    return code, json.loads(file.read_text())


def test_records_and_ratio(played, tmp_path, capsys):
    """One record a peer and form with the promised keys; the ratio is ours over the peer's; the best peer is the fastest form."""
    code, records = compare(tmp_path)
    assert code == 0
    assert [(r["peer"], r["form"]) for r in records] == [(p, f) for p in ("taichi", "warp") for f in ("same", "mls")]
    for record in records:
        assert record.keys() >= KEYS
        assert record["agreement"]["agree"] and len(record["every_round"]) == record["rounds"] == 2
        assert record["ratio"] == pytest.approx(record["ours"] / record["particle_steps_per_second"])
    assert [r["ratio"] for r in records] == pytest.approx([20.0, 10.0, 10.0, 5.0])
    said = capsys.readouterr().out
    assert "best peer: warp mls; ours is 5.00 times as fast. Goal 6: not met; floor 4: met" in said


def test_agreement_comes_before_any_time_and_solvers_take_turns(played, tmp_path):
    """All agreement runs come first; then each round times every solver once, ours first."""
    runs, _ = played
    compare(tmp_path)
    assert [state for _, _, state in runs] == [True] * 5 + [False] * 10
    assert runs[5:10] == runs[10:15]
    assert [(script, form) for script, form, _ in runs[5:10]] == [(script, form) for script, form, _ in runs[:5]]
    assert runs[5][0] == "mpm_nodes_cube.py"


@pytest.mark.parametrize("form", ["same", "mls"])
def test_a_peer_that_disagrees_gets_no_ratio(played, tmp_path, capsys, form):
    """Its record has neither rate nor ratio, it is never timed nor the best peer, and the exit code is 1."""
    runs, wrong = played
    wrong.add(("warp_cube.py", form))
    code, records = compare(tmp_path)
    bad = next(r for r in records if (r["peer"], r["form"]) == ("warp", form))
    assert code == 1
    assert bad["ratio"] is None and bad["particle_steps_per_second"] is None and not bad["agreement"]["agree"]
    assert ("warp_cube.py", form, False) not in runs
    said = capsys.readouterr().out
    assert "DISAGREES (mean_square_velocity" in said and f"best peer: warp {form}" not in said


def test_a_package_that_cannot_be_installed_is_named(monkeypatch):
    """The error says which package, why, and the command to try by hand."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(MpmNodesError, match=r"could not install no-such-solver==1\.0 .*by hand.*pip install"):
        environments._install(Path(sys.executable), "no-such-solver==1.0")


def test_failure_of_an_environment_is_an_error_not_a_trace(monkeypatch, capsys):
    """The command ends with the message on stderr and exit code 2."""

    def fail(requirements):
        raise MpmNodesError("pip could not install taichi==1.7.4")

    monkeypatch.setattr(against_peers, "environment", fail)
    assert against_peers.main(["--particles", "1000", "--threads", "1"]) == 2
    assert "error: pip could not install taichi==1.7.4" in capsys.readouterr().err


def test_environment_is_made_once(monkeypatch, tmp_path, capsys):
    """The second call finds the environment in the cache folder; other versions in its place are made again."""
    made, installed = [], []

    def create(folder, with_pip):
        made.append(Path(folder))
        (Path(folder) / "bin").mkdir(parents=True)
        (Path(folder) / "bin" / "python").touch()

    monkeypatch.setenv("MPM_NODES_CACHE", str(tmp_path))
    monkeypatch.setattr(environments.venv, "create", create)
    monkeypatch.setattr(environments, "_install", lambda python, requirement: installed.append(requirement))
    first = environments.environment(("solver==1.0", "numpy==1.26.4"))
    assert first == environments.environment(("solver==1.0", "numpy==1.26.4"))
    assert made == [tmp_path / "peers" / "solver-1.0"] and installed == ["solver==1.0", "numpy==1.26.4"]
    environments.environment(("solver==1.0", "numpy==1.26.3"))
    assert len(made) == 2 and installed[-1] == "numpy==1.26.3"
    assert "installing solver==1.0 and numpy==1.26.4" in capsys.readouterr().out


def test_a_script_that_fails_says_what_it_said():
    """The error of a script ends with the end of its stderr, and peers do not see this process's PYTHONPATH."""
    with pytest.raises(MpmNodesError, match=r"(?s)warp_cube\.py: ended with exit code \d+.*--no-such-option|No module named"):
        environments.run_script(sys.executable, "warp_cube.py", ["--no-such-option"], 1)
    assert "PYTHONPATH" not in environments._clean()


@pytest.mark.slow
def test_peers_agree_with_us():
    """Taichi and Warp, installed by pip, compute what we compute (20,000 particles), in both forms."""
    command = [
        sys.executable,
        str(FOLDER / "against_peers.py"),
        "--particles",
        "20000",
        "--rounds",
        "1",
        "--threads",
        str(min(2, os.cpu_count() or 1)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": agrees") == 4
