"""Phenomena as folders: without one, the rest stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mpm_nodes
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.physics import all_physics

PACKAGE = Path(mpm_nodes.__file__).parent
PROGRAM = """
import mpm_nodes
from mpm_nodes import verification
from mpm_nodes.graph.declare.registry import default
from mpm_nodes.graph.plan.substeps import plans_of

registry = default()
for name in registry.presets:
    plans_of(name)
assert verification.problems()
(record,) = verification.run(["free_fall"])[:1]
assert record.passed, record
print(*registry.presets, *registry.stages(), *registry.nodes())
"""


CORE = (
    "colliders",
    "contracts",
    "data",
    "emit",
    "farm",
    "graph",
    "kernels",
    "materials",
    "preview",
    "ranks",
    "solver",
    "surface",
    "usd_io",
    "verification",
)
"""Tests of what stands without phenomena; those of hosts, samples, pages and benchmarks are of the whole."""
LEFT_ASIDE = shutil.ignore_patterns(".*", "__pycache__", "out", "dist", "build", "*.egg-info", "node_modules")


def without(name: str) -> set[str]:
    """Return a phenomenon and those that need it."""
    gone = {name}
    for each in all_physics():
        gone |= {each.name} if gone & set(each.needs) else set()
    return gone


@pytest.mark.parametrize("name", [each.name for each in all_physics()])
def test_the_rest_stands_without(name, tmp_path):
    """In a copy without the folder every preset that is left can be planned, and matter falls; what is gone is what lay there."""
    copy = tmp_path / "mpm_nodes"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE.parent / "usd_io", tmp_path / "usd_io", ignore=shutil.ignore_patterns("__pycache__"))
    for each in without(name):
        shutil.rmtree(copy / "physics" / each)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    environment = {key: value for key, value in os.environ.items() if key != registries.PATH_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    left, registry = set(done.stdout.split()), registries.load(path="", entry_points=False)
    every = {*registry.presets, *registry.stages(), *registry.nodes()}
    here = [each for each in all_physics() if each.name in without(name)]
    modules = {module.__name__ for each in here for part in ("nodes", "stages") for module in each.modules(part)}
    lay_there = {path.stem for each in here for path in (each.folder / "presets").glob("*.json")}
    lay_there |= {d.id for d in [*registry.nodes().values(), *registry.stages().values()] if d.function.__module__ in modules}
    assert every - left == lay_there
    assert lay_there or [each for each in here for _ in each.modules("problems")]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(each.name for each in all_physics()), "all"])
def test_the_tests_of_the_core_pass_without(name, tmp_path):
    """In a copy without the folder, or without any, every test of the core passes that does not say that it needs what is gone."""
    copy, gone = tmp_path / "copy", {each.name for each in all_physics()} if name == "all" else without(name)
    shutil.copytree(PACKAGE.parent, copy, ignore=LEFT_ASIDE)
    for each in gone:
        shutil.rmtree(copy / "mpm_nodes" / "physics" / each)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", registries.PATH_VARIABLE))}
    environment |= {"MPM_NODES_TESTED_WITHOUT": ",".join(gone), "PYTHONPATH": str(copy)}
    tests = [f"tests/{folder}" for folder in CORE]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-rs", *tests],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    passed, skipped = (int(re.search(rf"(\d+) {word}", done.stdout)[1]) for word in ("passed", "skipped"))
    assert passed > 3000 and passed > 20 * skipped, done.stdout[-6000:]
