"""Types are true and checked: the packages that the checker reads, without blanket ignores, and short argument lists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mpm_nodes

PACKAGE = Path(mpm_nodes.__file__).parent
ROOT = PACKAGE.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
CHECKED = [path for name in SETTINGS["files"] for path in ROOT.glob(name)]


def test_both_packages_say_that_they_are_typed():
    """Type checkers of users read the hints of an installed package only where this file lies."""
    assert (PACKAGE / "py.typed").is_file() and (ROOT / "usd_io" / "py.typed").is_file()


def test_nothing_of_ours_is_left_out():
    """Only packages of others may be without types; no switch turns errors off."""
    assert not {"ignore_errors", "disable_error_code", "exclude"} & set(SETTINGS)
    for override in SETTINGS["overrides"]:
        modules = override["module"] if isinstance(override["module"], list) else [override["module"]]
        ours = [module for module in modules if module.startswith(("mpm_nodes", "usd_io"))]
        assert not ours or not {"ignore_errors", "ignore_missing_imports", "follow_imports"} & set(override)
    for path in (path for package in CHECKED for path in ([package] if package.is_file() else package.rglob("*.py"))):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not re.search(r"#\s*mypy:|#\s*type:\s*ignore(?!\[)", line), f"{path}:{number}"


@pytest.mark.skipif(np.__version__ >= "2", reason="types are checked with NumPy 1.26; the overloads of 2.x refuse what runs")
def test_the_checker_finds_nothing(tmp_path):
    """`mypy` with the settings of the project."""
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------- argument lists
MOST_ARGUMENTS = 8
EXCEPTIONS = {
    "mpm_nodes/solver/run.py SubstepSolver.__init__": "the settings of a solve: keywords of the public API, each with a default",
    "mpm_nodes/materials/material_point.py call_law": "what a law's function may be asked with: keywords of the public API",
}
"""Functions that take more, and why; what they are called with by position is short all the same."""


def argument_lists(package: Path) -> Iterator[tuple[str, int, int]]:
    """Yield every function: place, arguments, those by position; of a node or stage only ports count, knobs are its interface."""
    for path in sorted(package.rglob("*.py") if package.is_dir() else [package]):
        tree = ast.parse(path.read_text())
        owner = {child: f"{each.name}." for each in ast.walk(tree) if isinstance(each, ast.ClassDef) for child in each.body}
        for item in ast.walk(tree):
            if isinstance(item, ast.FunctionDef):
                arguments = [*item.args.posonlyargs, *item.args.args]
                by_position = len(arguments)
                declared = {ast.unparse(decorator).partition("(")[0] for decorator in item.decorator_list} & {"node", "stage"}
                if declared:  # a cook hands these to nodes, and knobs are given by name
                    arguments = [each for each in arguments if each.arg not in ("ctx", "previous")]
                    by_position = len(arguments)
                arguments += [] if declared else item.args.kwonlyargs
                own = bool(arguments) and arguments[0].arg in ("self", "cls")
                place = f"{path.relative_to(ROOT)} {owner.get(item, '')}{item.name}"
                yield place, len(arguments) - own, by_position - own


PACKAGES = sorted({path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()} | {ROOT / "usd_io"})


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_argument_lists_are_short(package):
    """Whoever needs more than eight values takes a dataclass or a named tuple."""
    longest = [
        f"{place}: {count}" for place, count, _ in argument_lists(package) if count > MOST_ARGUMENTS and place not in EXCEPTIONS
    ]
    assert not longest, "\n".join(sorted(longest))


def test_exceptions_are_needed_and_lists_of_keywords():
    """A function that became shorter leaves the table; one that stays takes by name what exceeds."""
    found = {place: counts for package in PACKAGES for place, *counts in argument_lists(package) if place in EXCEPTIONS}
    assert set(found) == set(EXCEPTIONS)
    assert all(count > MOST_ARGUMENTS >= by_position for count, by_position in found.values())


# ---------------------------------------------------------------- what a stage gets
RIGHT = '''
import numpy as np

from mpm_nodes.data import A, Colliders, Grid, LiveParticles, Many, Particles, Previous, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare import node, stage
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.materials.values import Coefficients, Matrix, State, Value
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.terms.energy_store import EnergyStore
from mpm_nodes.data import Energy


@stage(label="Wind")
def wind(
    particles: A[LiveParticles, Reads("position", "velocity"), Writes("velocity")],
    grid: A[Grid, Reads("mass", "force"), Writes("force")],
    step: StepContext,
    *,
    push: float = 1.0,
) -> Stage["particles", "grid"]:
    """Blow along x.

    Args:
        push: Acceleration [m/s^2].
    """
    force = grid.unpack("force")
    force[:, 0] += push * grid.unpack("mass") * step.dt
    grid.pack("force", force)
    particles.pack("velocity", np.zeros((particles.count, 3)))


@node(category="Test", label="Join")
def join(sources: Many[Particles] = (), *, first: bool = True) -> Particles:
    """Take one.

    Args:
        sources: What to choose from.
        first: Which.
    """
    return sources[0 if first else -1]


@inline
def energy(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Value:
    """Return psi [J/m^3]."""
    return const(dt, 0.5) * coeffs[0] * A[0] * A[0]


def stores(particles: ParticleStore, grid: GridStore, colliders: ColliderSet, energy: EnergyStore) -> None:
    handed: tuple[LiveParticles, Grid, Colliders, Energy] = (particles, grid, colliders, energy)
    wind(handed[0], handed[1], StepContext(), push=2.0)
'''


@pytest.mark.parametrize(
    "change, words",
    [
        (None, "Success"),
        (('grid.unpack("force")', 'grid.unpak("force")'), '"Grid" has no attribute "unpak"; maybe "unpack"'),
        (('grid.unpack("force")', "grid.unpack(3)"), 'incompatible type "int"; expected "str"'),
        (("step.dt", "step.length"), '"StepContext" has no attribute "length"'),
        (("push=2.0", 'push="hard"'), 'incompatible type "str"; expected "float"'),
        (("return sources[0", "return sources.first[0"), 'has no attribute "first"'),
        (("const(dt, 0.5) * coeffs[0]", "0.5 * coeffs[0]"), 'Unsupported operand types for * ("float" and "Value")'),
        (("A[0] * A[0]", "A[0] ** 2"), 'Unsupported operand types for ** ("Value" and "int")'),
    ],
)
def test_a_user_s_stage_is_checked_against_what_it_gets(change, words, tmp_path):
    """Protocols say what particles, grid, colliders and step offer, and what a law may do with values; mistakes are found."""
    source = RIGHT if change is None else RIGHT.replace(*change)
    assert change is None or source != RIGHT
    (tmp_path / "mine.py").write_text(source)
    settings = "[mypy]\nplugins = mpm_nodes.mypy_plugin\nfollow_imports = silent\nignore_missing_imports = True\n"
    (tmp_path / "mypy.ini").write_text(settings)
    cache = tmp_path.parent / "shared_mypy_cache"
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(cache)]
    done = subprocess.run([*command, str(tmp_path / "mine.py")], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert words in done.stdout, done.stdout + done.stderr
    assert done.returncode == (0 if change is None else 1)
