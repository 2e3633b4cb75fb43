"""Finding OpenVDB: without bpy, without X libraries, and with one clear sentence when there is none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mpm_nodes.data import InputError
from usd_io import openvdb_module


def test_found_without_importing_bpy():
    """The module in the Blender wheel loads alone: neither bpy nor an X library comes with it."""
    code = (
        "import sys; from usd_io.openvdb_module import find_openvdb; vdb = find_openvdb(); "
        "maps = open('/proc/self/maps').read() if sys.platform == 'linux' else ''; "
        "print(hasattr(vdb, 'FloatGrid'), 'bpy' in sys.modules, 'libX11' in maps)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", "False", "False"]


def test_missing_module_names_the_cure(monkeypatch):
    """Without any copy the error lists what was tried and the command that helps."""

    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(openvdb_module.importlib, "import_module", absent)
    monkeypatch.setattr(openvdb_module, "openvdb_in_bpy", lambda: None)
    with pytest.raises(InputError, match=r'pyopenvdb.*bpy.*pip install "mpm-nodes\[vdb\]"'):
        openvdb_module.find_openvdb.__wrapped__()
