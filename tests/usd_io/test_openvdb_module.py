"""Finding OpenVDB: without bpy, without X libraries, in a distribution's folder, and with one clear sentence when there is none."""

from __future__ import annotations

import importlib.machinery
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes.data import InputError
from usd_io import openvdb_module

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
TESTS = Path(__file__).parents[1]


@pytest.fixture
def absent(monkeypatch):
    """A machine without any copy."""
    monkeypatch.setattr(openvdb_module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(openvdb_module, "openvdb_of_the_distribution", lambda: None)
    return openvdb_module.find_openvdb.__wrapped__


def test_found_without_importing_bpy():
    """The module in the Blender wheel loads alone: neither bpy nor an X library comes with it."""
    openvdb_module.find_openvdb()
    code = (
        "import sys; from usd_io.openvdb_module import find_openvdb; vdb = find_openvdb(); "
        "maps = open('/proc/self/maps').read() if sys.platform == 'linux' else ''; "
        "print(hasattr(vdb, 'FloatGrid'), 'bpy' in sys.modules, 'libX11' in maps)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "False", "False"]


@pytest.mark.parametrize(
    ("version", "cure"), [((3, 11), r'pip install "mpm-nodes\[vdb\]"'), ((3, 12), r"apt install python3-openvdb.*3\.11 or 3\.13")]
)
def test_missing_module_names_the_cure(absent, monkeypatch, version, cure):
    """Without any copy the error lists what was tried and what helps with this Python."""
    monkeypatch.setattr(openvdb_module.sys, "version_info", Version(*version))
    with pytest.raises(InputError, match=rf"pyopenvdb.*bpy.*distribution.*{cure}"):
        absent()


class Version(tuple):
    """A version of Python as `sys.version_info` gives it."""

    def __new__(cls, major, minor):
        return super().__new__(cls, (major, minor, 0))

    major, minor = property(lambda self: self[0]), property(lambda self: self[1])


def test_the_distribution_s_folder_is_searched(tmp_path):
    """Debian's module is taken for the Python that it was built for, and for no other."""
    folder = tmp_path / "lib" / "python3" / "dist-packages"
    folder.mkdir(parents=True)
    (folder / "pyopenvdb.cpython-39-x86_64-linux-gnu.so").touch()
    assert openvdb_module.openvdb_of_the_distribution(str(tmp_path)) is None
    (folder / f"pyopenvdb{SUFFIX}").touch()
    assert openvdb_module.openvdb_of_the_distribution(str(tmp_path)) == folder / f"pyopenvdb{SUFFIX}"


def test_a_module_that_ends_the_process_is_refused(absent, monkeypatch, tmp_path):
    """A `pyopenvdb` that a child cannot use is named with its cure, and is not loaded here."""
    broken = tmp_path / f"pyopenvdb{SUFFIX}"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(openvdb_module, "openvdb_of_the_distribution", lambda: broken)
    monkeypatch.setattr(np, "__version__", "2.4.0")
    with pytest.raises(InputError, match=r'built for NumPy 1, and NumPy 2\.4\.0 is installed; pip install "numpy<2"'):
        absent()


def test_tests_without_openvdb_are_skipped_and_others_fail(tmp_path):
    """Only where OpenVDB is missing does its absence skip a test; the reason says so."""
    (tmp_path / "test_two.py").write_text(
        "import pytest\nfrom mpm_nodes.data import InputError\nfrom usd_io import openvdb_module\n"
        "def test_lacking(monkeypatch):\n    raise InputError('OpenVDB: no usable module in x')\n"
        "def test_wrong():\n    assert 1 == 2\n"
    )
    lacking = "def find():\n    raise openvdb_module.InputError('none')\nopenvdb_module.find_openvdb = find\n"
    results = {}
    path = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    clean = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}  # the outer run's, not the child's
    for name, more in (("here", "openvdb_module.find_openvdb = dict\n"), ("lacking", lacking)):
        (tmp_path / f"test_{name}.py").write_text((tmp_path / "test_two.py").read_text() + more)
        command = [sys.executable, "-m", "pytest", "-p", "conftest", "-c", os.devnull, "-rs", "-q", f"test_{name}.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env={**clean, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False
        )
        results[name] = done.stdout
    assert "2 failed" in results["here"], results["here"]
    assert "1 failed, 1 skipped" in results["lacking"] and "needs OpenVDB; `mpm-nodes doctor`" in results["lacking"]


def test_wheels_of_blender_are_those_that_the_package_asks_for():
    """The versions that a cure names are the versions that the extra `vdb` installs Blender for."""
    asked = re.findall(r"bpy==[\d.*]+; python_version == '(\d+)\.(\d+)'", (TESTS.parent / "pyproject.toml").read_text())
    assert tuple((int(major), int(minor)) for major, minor in asked) == openvdb_module.BLENDER_WHEELS
    assert openvdb_module.wheels_in_words() == "3.11 or 3.13"
