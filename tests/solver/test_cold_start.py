"""The first substep of a kind of solve: a second process helps to compile, and nothing depends on it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from mpm_nodes import Material, Particles, SubstepSolver, compiling
from mpm_nodes.kernels.algebra import potential, vectors
from mpm_nodes.solver import cold_start, compile_helper
from mpm_nodes.solver.terms.law_energy import LawEnergy

RUBBER = Material("neo_hookean", {"youngs_modulus": 1e5, "poisson_ratio": 0.3}, 1000.0, "rubber")

SOLVE = """
import hashlib, subprocess, sys
import numpy as np
from mpm_nodes import Material, Particles, SubstepSolver
started, popen = [], subprocess.Popen

def counted(command, *arguments, **named):
    child = popen(command, *arguments, **named)
    started.extend([child] if any("mpm_nodes.solver.compile_helper" in text for text in command) else [])
    return child

subprocess.Popen = counted
lattice = 0.01 * np.stack(np.meshgrid(*(np.arange(4.0),) * 3, indexing="ij"), -1).reshape(-1, 3)
rubber = Material("neo_hookean", {"youngs_modulus": 1e5, "poisson_ratio": 0.3}, 1000.0, "rubber")
solver = SubstepSolver(Particles({"position": lattice}, (rubber,), 0.01))
for _ in range(3):
    solver.step()
loops = [module.run for name, module in sys.modules.items() if name.startswith("mpm_nodes_loop_") and hasattr(module, "run")]
misses = [sum(loop.stats.cache_misses.values()) for loop in loops if "gather_velocity" in loop.__module__]
print(len(started), sum(misses), hashlib.sha256(solver.snapshot()["position"].tobytes()).hexdigest())
for child in started:
    child.wait(60)
"""


class Child:
    """A process that only notes what is done to it."""

    def __init__(self, *arguments, **named):
        self.stdin, self.stdout, self.killed = io.BytesIO(), io.BytesIO(), False

    def wait(self):
        """End at once."""
        return 1

    def kill(self):
        """Note it."""
        self.killed = True


@pytest.fixture
def children(monkeypatch):
    """Every helper that is started, none of which does anything."""
    started = []

    def start(*arguments, **named):
        started.append(Child())
        return started[-1]

    monkeypatch.setattr(cold_start, "children", SimpleNamespace(start=start))
    monkeypatch.setenv(cold_start.SWITCH, "1")
    monkeypatch.setattr(cold_start, "cores", lambda: 2)
    return started


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """The marker file of every kind of solve, not there yet."""
    path = tmp_path / "started" / "kind"
    monkeypatch.setattr(cold_start, "_marker", lambda solver: path)
    return path


def solver(**named):
    lattice = 0.01 * np.stack(np.meshgrid(*(np.arange(4.0),) * 3, indexing="ij"), -1).reshape(-1, 3)
    return SubstepSolver(Particles({"position": lattice}, (RUBBER,), 0.01), **named)


def test_a_cold_solve_with_help_gives_the_same_bits(tmp_path):
    """A new cache starts one helper, the next process none and compiles nothing; both get what a solve here gets."""
    environment = {**os.environ, "MPM_NODES_CACHE": str(tmp_path), cold_start.SWITCH: "1"}
    found = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", SOLVE], env=environment, capture_output=True, text=True, check=True)
        found.append(done.stdout.split())
    helpers = "1" if cold_start.cores() > 1 else "0"
    assert [found[0][0], found[1][0]] == [helpers, "0"]
    assert found[1][1] == "0"
    assert found[0][2] == found[1][2]
    alone = {**environment, cold_start.SWITCH: "0", "MPM_NODES_CACHE": os.environ.get("MPM_NODES_CACHE", str(tmp_path))}
    done = subprocess.run([sys.executable, "-c", SOLVE], env=alone, capture_output=True, text=True, check=True)
    assert done.stdout.split()[2] == found[0][2]


def test_a_helper_that_fails_changes_nothing(children, marker):
    """The solve goes on alone, notes that it got through, and later solves start no helper."""
    helped = solver()
    assert cold_start.is_cold(helped)
    helped.step()
    assert (len(children), children[0].killed, marker.exists()) == (1, False, True)
    other = solver()
    assert not cold_start.is_cold(other)
    other.step()
    assert len(children) == 1
    assert (helped.snapshot()["position"] == other.snapshot()["position"]).all()


def test_a_first_substep_that_is_stopped_stops_its_helper(children, marker):
    """The helper is killed, the garbage collector runs again, and the kind stays cold."""
    import gc

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver().step(check_cancel=stop)
    assert (children[0].killed, gc.isenabled(), marker.exists()) == (True, True, False)


def test_there_is_no_helper_where_it_is_switched_off_or_has_no_core(children, marker, monkeypatch):
    """MPM_NODES_COMPILE_HELPER=0, or a single core."""
    monkeypatch.setattr(cold_start, "cores", lambda: 1)
    solver().step()
    marker.unlink()
    monkeypatch.setattr(cold_start, "cores", lambda: 2)
    monkeypatch.setenv(cold_start.SWITCH, "0")
    solver().step()
    assert not children


def test_a_folder_that_cannot_be_written_starts_no_helper(children, monkeypatch):
    """What a helper compiled there could not be found again."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(cold_start, "is_cold", lambda solver: True)
    solver().step()
    assert not children


@pytest.mark.parametrize(
    "law, substeps",
    [("neo_hookean", "explicit_apic"), ("snow", "explicit_apic"), ("neo_hookean", "implicit_apic"), ("neo_hookean", "auto")],
)
def test_the_helper_reaches_every_stage(law, substeps):
    """No stage of the tiny solve fails: what fails is left to the solve."""
    material = Material(law, {"youngs_modulus": 1e5, "poisson_ratio": 0.3}, 1000.0, law)
    task = {"materials": (material,), "substeps": substeps, "fuse": True, "walls": None, "dtype": "<f4", "collides": True}
    assert compile_helper.help_compile(task) == []


def test_the_helper_of_an_implicit_solve_reaches_what_a_minimisation_calls(monkeypatch):
    """Hessian, blocks, energy and the steps of the Krylov solver are called, the Hessian before the energy."""
    called = []

    def note(owner, name):
        function = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *arguments: called.append(name) or function(*arguments))

    for name in ("evaluate", "apply", "add_blocks"):
        note(LawEnergy, name)
    for name in ("predict", "precondition", "finish_product", "largest"):
        note(potential, name)
    for name in ("step_along", "dots"):
        note(vectors, name)
    task = {"materials": (RUBBER,), "substeps": "implicit_apic", "fuse": True, "walls": None, "dtype": "<f4", "collides": False}
    assert compile_helper.help_compile(task) == []
    assert called[:2] == ["apply", "add_blocks"]
    assert set(called) == {
        "evaluate",
        "apply",
        "add_blocks",
        "predict",
        "precondition",
        "finish_product",
        "step_along",
        "dots",
        "largest",
    }


def test_kinds_differ_by_what_decides_their_kernels():
    """Another float type or another kernel is another kind; other numbers are not."""
    same, double = solver(), solver(dtype=np.float64)
    cubic = solver(substeps={"preset": "explicit_apic", "set": {"kernel": "cubic"}})
    assert cold_start._marker(solver()) == cold_start._marker(same)
    assert len({cold_start._marker(each) for each in (same, double, cubic)}) == 3


def test_what_a_helper_compiles_counts(children):
    """It says how many kernels it has compiled so far, each time from its beginning."""
    helper = Child()
    helper.stdout = io.BytesIO(b"3\n7\n")
    with compiling.told(lambda now: None) as done:
        cold_start._count(helper)
        assert done() == 7
