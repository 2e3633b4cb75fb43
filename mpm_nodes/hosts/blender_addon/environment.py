"""The Python environment that has mpm-nodes: where it is, whether it works, and how its program is started."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import bpy

from .specification import SPEC

LIMIT = 60.0
"""Seconds that a check or a validation may take."""

PROBE = """
import importlib.util, json, sys
facts = {"python": "%d.%d.%d" % sys.version_info[:3], "missing": []}
try:
    import mpm_nodes
    facts["version"] = mpm_nodes.__version__
except ImportError as error:
    facts["missing"].append("mpm_nodes")
for name in ("numpy", "numba", "pxr"):
    if importlib.util.find_spec(name) is None:
        facts["missing"].append(name)
print(json.dumps(facts))
"""

CURES = {
    "mpm_nodes": 'install it there: in the folder of mpm-nodes, {python} -m pip install ".[all]"',
    "numpy": "install mpm-nodes there again",
    "numba": "install mpm-nodes there again",
    "pxr": "caches need it: {python} -m pip install usd-core",
}

OTHER_BUILD = "use a build of blender.org"

WORDS = {
    "again": "press Cook or Cook Again from This Frame, not Resume",
    "cook": "press Cook, not Resume",
    "resume": "press Resume",
    "folder": " in the panel Graph (Folder)",
    "frames": " in the panel Graph (Start, End)",
    "asked": "frames ",
    "limit": "",
    "start": "",
    "report": "; report it together with the graph file",
}
"""What the window says where the program's messages speak of its command line."""


def in_own_words(text):
    """Return a message of the program as it is said in a window."""
    for phrase in SPEC["cook"]["wording"]:
        text = text.replace(phrase["says"], WORDS[phrase["action"]])
    return text


def build_options():
    """Return which parts this Blender was built with."""
    return bpy.app.build_options


def lacks(part):
    """Return whether this Blender was built without a part ("usd", "openvdb"), as those of some systems are."""
    return not getattr(build_options(), part, True)


class EnvironmentFault(Exception):
    """The environment cannot be used; the message says why and what to do."""


def preferences():
    """Return the add-on's preferences, or None when it runs without being installed."""
    addon = bpy.context.preferences.addons.get(__package__)
    return addon.preferences if addon else None


def python():
    """Return the path of the Python program to use.

    It is the one of the preferences; else the environment variable MPM_NODES_PYTHON; else the one beside `mpm-nodes` on the PATH.

    Raises:
        EnvironmentFault: None is set, or it is not there.
    """
    chosen = preferences()
    given = (chosen.environment if chosen else "") or os.environ.get("MPM_NODES_PYTHON", "")
    if not given:
        program = installed("mpm-nodes")
        if program is None:
            raise EnvironmentFault("No Python environment is set. Choose the one that has mpm-nodes in the add-on's preferences")
        given = str(Path(program).parent)
    return find(bpy.path.abspath(given))


def installed(name):
    """Return the path of a program on the PATH, or None; what lies in the working folder is not taken."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for ending in ("", ".exe") if is_windows() else ("",):
            path = os.path.join(folder, name + ending)
            if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return None


def find(given):
    """Return the Python program of an environment given as its folder, its bin folder or the program itself."""
    path = Path(given).expanduser()
    if path.is_file():
        if os.name == "posix" and not os.access(path, os.X_OK):
            raise EnvironmentFault(f"{path} is not a program. Choose the environment's folder or its python")
        return str(path)
    if not path.is_dir():
        raise EnvironmentFault(f"{path} does not exist. Choose the folder of a Python environment that has mpm-nodes")
    for inner in ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe", "python", "python3"):
        if (path / inner).is_file():
            return str(path / inner)
    raise EnvironmentFault(f"{path} holds no Python. Choose a folder made with: python3 -m venv FOLDER")


def variables():
    """Return the environment variables for the program: ours, without settings of Blender's own Python (PYTHON...).

    The program does not look for modules in the folder that it is started in: that is where the scene lies.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}


def start(arguments, folder):
    """Start the environment's Python in a folder (None: here), in a process group of its own, with pipes for what it says."""
    flags = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if is_windows() else {"start_new_session": True}
    return subprocess.Popen(
        [python(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=folder,
        env=variables(),
        **flags,
    )


def run(arguments, limit=LIMIT):
    """Run the environment's Python and wait; return (exit code, stdout, stderr).

    Raises:
        EnvironmentFault: It cannot be started, or does not end in time.
    """
    program = python()
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
            env=variables(),
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except OSError as error:
        raise EnvironmentFault(f"{program} cannot be started ({error.strerror or error})") from error
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFault(f"{program} did not answer within {limit:.0f} seconds") from error
    return done.returncode, done.stdout, done.stderr


def run_steps(arguments, limit=LIMIT):
    """Do as `run` in steps: Blender stays usable meanwhile; closed early, it ends the program.

    Raises:
        EnvironmentFault: It cannot be started, or does not end in time.
    """
    until = time.monotonic() + limit
    try:
        process = start(arguments, None)
    except OSError as error:
        raise EnvironmentFault(f"{python()} cannot be started ({error.strerror or error})") from error
    try:
        while True:
            try:
                out, error = process.communicate(timeout=0.02)
                return process.returncode, out, error
            except subprocess.TimeoutExpired:
                if time.monotonic() > until:
                    raise EnvironmentFault(f"{python()} did not answer within {limit:.0f} seconds") from None
                yield 1.0
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def command(words, **values):
    """Return arguments of a command of the specification with its {placeholders} filled in."""
    return ["-m", SPEC["cook"]["module"], *(word.format(**values) for word in SPEC["cook"][words])]


def check():
    """Return a sentence about the environment when it can be used.

    Raises:
        EnvironmentFault: It cannot; the message says what is wrong and what to do.
    """
    if lacks("usd"):
        raise EnvironmentFault(f"This Blender was built without USD, so that it shows no caches; {OTHER_BUILD}")
    code, out, error = run(["-c", PROBE])
    try:
        facts = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        raise EnvironmentFault(f"{python()} is not a working Python: {(error or out).strip()[-300:]}") from None
    if facts["missing"]:
        first = facts["missing"][0]
        raise EnvironmentFault(f"{python()} (Python {facts['python']}) has no {first}; {CURES[first].format(python=python())}")
    code, out, error = run(["-m", SPEC["cook"]["module"], *SPEC["cook"]["check_environment"]])
    if code:
        raise EnvironmentFault(f"{python()}: mpm-nodes does not start: {error.strip()[-300:]}")
    said = f"mpm-nodes {facts['version']} on Python {facts['python']}"
    if facts["version"] != SPEC["package_version"]:
        said += f"; this add-on was made by {SPEC['package_version']}: make it again with mpm-nodes host blender"
    if lacks("openvdb"):
        said += f"; this Blender was built without OpenVDB, so that it shows no volumes: {OTHER_BUILD}"
    return said


def is_windows():
    """Return whether this is Windows, which knows no gentle signals."""
    return sys.platform == "win32"
