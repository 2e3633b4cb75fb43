"""The files that decide what a kernel compiles to are found, and no others."""

import importlib
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from mpm_nodes.kernels.compile import sources

MODULES = sorted(
    "mpm_nodes." + ".".join(path.relative_to(sources.PACKAGE).with_suffix("").parts)
    for package in sources.PACKAGES
    for path in sources.PACKAGE.joinpath(*package.split(".")).rglob("*.py")
    if path.name != "__init__.py"
)


def globals_of_functions(module):
    """Yield the module file of each global that a function of the module names."""
    for function in vars(module).values():
        function = getattr(function, "py_func", function)
        if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
            for name in function.__code__.co_names:
                value = function.__globals__.get(name)
                value = getattr(value, "py_func", value)
                home = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
                if home is not None and getattr(home, "__file__", None):
                    yield Path(home.__file__).resolve()


@pytest.mark.parametrize("name", MODULES)
def test_every_function_that_a_kernel_names_counts(name):
    """What a function of a package calls in another package's file is among the files of its digest."""
    module = importlib.import_module(name)
    packages = [sources.PACKAGE.joinpath(*package.split(".")) for package in sources.PACKAGES]
    called = {path for path in globals_of_functions(module) if any(path.is_relative_to(package) for package in packages)}
    assert called <= sources.closure(Path(module.__file__).resolve())


def test_a_file_that_is_not_imported_does_not_count():
    """An edit in the surfaces compiles no transfer again."""
    scatter = sources.PACKAGE / "kernels" / "transfers" / "scatter.py"
    found = {path.relative_to(sources.PACKAGE).as_posix() for path in sources.closure(scatter)}
    assert "kernels/lanes/arithmetic.py" in found
    assert not any(name.startswith(("kernels/surfaces", "kernels/collisions", "materials")) for name in found)


_HELPER = """
from mpm_nodes.kernels.compile.jit import inline


@inline
def twice(x):
    return {factor} * x
"""
_CALLER = """
from mpm_nodes.kernels.compile.jit import compiled
from mpm_nodes.kernels.planted import twice


@compiled
def run(x):
    return twice(x)
"""
_RUN = """
from mpm_nodes.kernels import planted_caller
print(planted_caller.run(3.0), sum(planted_caller.run.stats.cache_hits.values()))
"""


def test_an_edit_in_a_helper_compiles_its_caller_again(tmp_path):
    """A kernel whose helper lies in another file: found in the cache while the helper stays, compiled again after its edit."""
    package = tmp_path / "mpm_nodes"
    package.mkdir()
    for entry in sources.PACKAGE.iterdir():
        if entry.name not in ("kernels", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    (package / "kernels").mkdir()
    for entry in (sources.PACKAGE / "kernels").iterdir():
        if entry.name not in ("compile", "__pycache__"):
            (package / "kernels" / entry.name).symlink_to(entry)
    # `sources.PACKAGE` is the real place of its file: this package is copied
    (package / "kernels" / "compile").mkdir()
    for entry in (sources.PACKAGE / "kernels" / "compile").glob("*.py"):
        (package / "kernels" / "compile" / entry.name).write_text(entry.read_text())
    (package / "kernels" / "planted_caller.py").write_text(_CALLER)
    environment = {**os.environ, "MPM_NODES_CACHE": str(tmp_path / "jit"), "PYTHONPATH": str(tmp_path)}

    def run(factor):
        (package / "kernels" / "planted.py").write_text(_HELPER.format(factor=factor))
        return subprocess.run(
            [sys.executable, "-c", _RUN], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout.split()

    assert run(2.0) == ["6.0", "0"]
    assert run(2.0) == ["6.0", "1"]
    assert run(5.0) == ["15.0", "0"]
