"""Runs scripts in Blender (the bpy wheel), each in a process of its own with a time limit, with the extension installed.

Another Blender than the environment's is tested by `python -m tests.blenders`, which names the Python that has it in
MPM_NODES_TEST_BPY_PYTHON. Cooks run in the environment's.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import mpm_nodes
from mpm_nodes.hosts.blender import build

ROOT = Path(mpm_nodes.__file__).parent.parent
LIMIT = 500
PACKAGE = "bl_ext.user_default.mpm_nodes"
X_LIBRARIES = ("libX11", "libXrender", "libXfixes", "libXi", "libxkbcommon", "libSM", "libICE")

INSTALL = """
import os, sys
import bpy
done = bpy.ops.extensions.package_install_files(filepath=sys.argv[1], repo="user_default", enable_on_install=True)
print(done, *bpy.context.preferences.addons.keys())
sys.stdout.flush()
os._exit(0 if "bl_ext.user_default.mpm_nodes" in bpy.context.preferences.addons else 1)
"""

BEFORE = """
import json, os, sys, traceback
import bpy
import addon_utils
given, answer = json.loads(sys.argv[1]), {}
status = 1
try:
    bpy.ops.wm.read_factory_settings(use_empty=True)
    addon_utils.enable("bl_ext.user_default.mpm_nodes", default_set=True)
    from bl_ext.user_default.mpm_nodes import (
        animation, cache_import, cook, environment, graph_file, history, interface, knobs, memory, nodes, operators, painting,
        guides, places, preset_settings, problems, quick, quick_operators, quick_presets, resolutions, results,
        revisions, scene_input, specification, substep_operators, timeline, trees)
    preferences = environment.preferences()

    def add(tree, kind, name=None, **values):
        node = tree.nodes.new(f"MpmNode_{kind}")
        node.name = name or kind
        for knob, value in values.items():
            setattr(node, f"k_{knob}", value)
        return node

    def problems_of(tree):
        return {node.name: node.problem for node in tree.nodes if getattr(node, "problem", "")}

"""
AFTER = """
    status = 0
except BaseException:
    traceback.print_exc()
with open(sys.argv[2], "w") as stream:
    json.dump(answer, stream)
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)  # Blender can hang in its own exit
"""


@functools.cache
def _installed() -> tuple[Path | None, str]:
    """Return Blender's user folder with the extension installed, or None and why there is none."""
    if "MPM_NODES_TEST_BPY_PYTHON" not in os.environ and importlib.util.find_spec("bpy") is None:
        return None, "bpy is not installed (pip install mpm-nodes[vdb])"
    try:
        folder = Path(tempfile.mkdtemp(prefix="mpm_blender_"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        done = _run(folder, INSTALL, [str(build(folder / "zip"))])
    except subprocess.TimeoutExpired:
        return None, "Blender does not start within its time limit"
    if done.returncode and any(library in done.stderr for library in X_LIBRARIES):
        return None, f"Blender's system libraries are missing: {done.stderr.strip().splitlines()[-1]}"
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, ""


def _run(user: Path, script: str, arguments: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {
        **os.environ,
        "BLENDER_USER_RESOURCES": str(user),
        "PYTHONPATH": paths,
        "MPM_NODES_PYTHON": sys.executable,
        **variables,
    }
    file = user / f"script_{abs(hash(script))}.py"
    file.write_text(script, encoding="utf-8")
    program = os.environ.get("MPM_NODES_TEST_BPY_PYTHON", sys.executable)
    return subprocess.run(
        [program, str(file), *arguments], capture_output=True, text=True, timeout=LIMIT, env=environ, cwd=user, check=False
    )


def in_blender(script: str, variables: dict[str, str] | None = None, package: str = PACKAGE, **given: Any) -> dict[str, Any]:
    """Run a script in Blender with the extension enabled; return the `answer` that it fills. `given` is there as a dict.

    `package` is the module of the add-on: the installed extension, or a folder on PYTHONPATH, as before Blender 4.2.

    Skips the test, with the reason, where Blender cannot run.
    """
    user, reason = _installed()
    if user is None:
        pytest.skip(reason)
    answer = user / "answer.json"
    answer.unlink(missing_ok=True)
    body = "".join(f"    {line}\n" for line in script.strip("\n").splitlines())
    done = _run(user, BEFORE.replace(PACKAGE, package) + body + AFTER, [json.dumps(given), str(answer)], **(variables or {}))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(answer.read_text(encoding="utf-8"))
