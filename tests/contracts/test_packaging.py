"""What is installed besides Python: presets, pictures, the editor's page, sources of kernels."""

from __future__ import annotations

import tomllib
from pathlib import Path

TOP = Path(__file__).parents[2]
SOURCES = "editor/web"
"""What only developers read."""


def test_files_that_are_not_python_are_in_the_wheel():
    """Each is named by a pattern of pyproject.toml: without a clone nothing else brings it."""
    patterns = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    for package in ("mpm_nodes", "usd_io"):
        folder = TOP / package
        named = {file for pattern in patterns[package] for file in folder.glob(pattern)}
        files = (file for file in folder.rglob("*") if file.is_file() and file.suffix not in (".py", ".pyc"))
        left = [file for file in files if file not in named and not str(file.relative_to(folder)).startswith(SOURCES)]
        assert not left, left
