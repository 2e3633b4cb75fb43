"""`mpm-nodes doctor`: what works, the cure of what does not, and an exit code that a farm can use."""

from __future__ import annotations

import json

import pytest

from mpm_nodes import cli
from mpm_nodes.commands import doctor
from usd_io import openvdb_module


def told(capsys, *arguments: str) -> tuple[int, dict[str, dict]]:
    """Run `doctor --json`; return the exit code and the findings by name."""
    code = cli.main(["doctor", "--json", *arguments])
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] == (code == 0)
    return code, {finding["check"]: finding for finding in answer["checks"]}


def test_what_is_here(capsys, monkeypatch):
    """All that the solver needs works where the tests run: a kernel is compiled, and the cache folder written to."""
    monkeypatch.setitem(doctor.CHECKS, "blender", lambda: ("missing", "not asked for: it takes seconds", ""))
    code, found = told(capsys)
    assert code == 0 and set(found) == set(doctor.CHECKS)
    assert all(found[name]["state"] == "ok" and found[name]["needed"] for name in doctor.NEEDED), found
    assert found["bodies"]["state"] == "ok" and found["bodies"]["text"].startswith("MuJoCo ")
    assert "a kernel ran" in found["threads"]["text"] and "bits" in found["processor"]["text"]


def test_what_is_missing_has_a_cure(capsys, monkeypatch):
    """Without USD, OpenVDB and Blender the solver is well, each says how to get it, and `--need` makes one count."""
    absent = ("pxr", "bpy", "openvdb", "pyopenvdb", "mujoco", "cuda")
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None if name in absent else name)
    monkeypatch.setattr(openvdb_module, "openvdb_of_the_distribution", lambda root="/usr": None)
    monkeypatch.setattr(openvdb_module, "find_openvdb", openvdb_module.find_openvdb.__wrapped__)
    code, found = told(capsys)
    assert code == 0
    assert all(
        found[name]["state"] == "missing" and found[name]["cure"] for name in ("usd", "openvdb", "blender", "bodies", "gpu")
    ), found
    assert found["gpu"]["cure"] == 'pip install "mpm-nodes[cuda]"'
    assert cli.main(["doctor", "--need", "usd"]) == 1
    printed = capsys.readouterr().out
    assert '-> pip install "mpm-nodes[usd]"' in printed and "needed and not working: usd" in printed


def test_a_cache_that_cannot_be_written_fails(capsys, monkeypatch, tmp_path):
    """A needed thing that is broken gives exit code 1 and names the cure."""
    from mpm_nodes.kernels.compile import jit

    (tmp_path / "file").touch()
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path / "file" / "kernels")
    monkeypatch.setattr(doctor, "CHECKS", {"kernel-cache": doctor._cache})
    code, found = told(capsys)
    assert code == 1 and "MPM_NODES_CACHE" in found["kernel-cache"]["cure"]


@pytest.mark.parametrize(("error", "state"), [(ModuleNotFoundError(name="llvmlite"), "missing"), (RuntimeError("odd"), "broken")])
def test_a_check_that_fails_is_a_finding(capsys, monkeypatch, error, state):
    """Whatever a check raises, the others are told too."""

    def fail():
        raise error

    monkeypatch.setattr(doctor, "CHECKS", {"threads": fail, "python": doctor._python})
    code, found = told(capsys)
    assert code == 1 and found["threads"]["state"] == state and found["python"]["state"] == "ok"


def test_a_gpu_is_told_or_why_there_is_none(capsys, monkeypatch):
    """With a card its memory; without one the solver is well all the same, and what is needed for one is named."""
    monkeypatch.setattr(doctor, "CHECKS", {"gpu": doctor._gpu})
    code, found = told(capsys)
    assert code == 0
    if found["gpu"]["state"] == "ok":
        assert "GB free" in found["gpu"]["text"]
    else:
        assert found["gpu"]["text"].startswith("solves run on the CPU: ")
        assert "mpm-nodes[cuda]" in found["gpu"]["cure"] or "driver 580" in found["gpu"]["cure"]
