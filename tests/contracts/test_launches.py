"""Settings of a user's Python (PYTHON...) and broken packages on its path reach no process of ours, however it is started."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpm_nodes import children, search_path
from mpm_nodes.graph.document.document import Graph

HOSTS = Path(search_path.OWN_ROOT) / "mpm_nodes" / "hosts"
BROKEN = ("numpy", "numba", "llvmlite", "pxr", "argparse", "json", "subprocess", "tempfile", "yaml")
CONSOLE_SCRIPT = "import re\nimport sys\nfrom mpm_nodes.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
SETTINGS = {
    "PYTHONINSPECT": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHONSTARTUP": "/nowhere/startup.py",
    "PYTHONWARNINGS": "error",
    "PYTHONIOENCODING": "ascii",
    "PYTHONUTF8": "0",
    "PYTHONBREAKPOINT": "nowhere.at_all",
    "PYTHONDEVMODE": "1",
    "PYTHONTRACEMALLOC": "1",
    "PYTHONCASEOK": "1",
    "PYTHONNOUSERSITE": "1",
}
HOME = {"PYTHONHOME": "/nowhere", "PYTHONPLATLIBDIR": "nowhere", "PYTHONEXECUTABLE": "/nowhere/python"}
"""With these a Python does not start: only those whom a host starts without them can bear it."""


def loaded(path: str) -> SimpleNamespace:
    """Return what a host's source defines, outside of the host."""
    source = (HOSTS / path).read_text().replace("import bpy\n", "").replace("from .specification import SPEC\n", "SPEC = {}\n")
    facts = {"__name__": "alone", "__file__": str(HOSTS / path)}
    exec(compile(source, path, "exec"), facts)
    return SimpleNamespace(**facts, facts=facts)


def script(folder: Path) -> list[str]:
    """Return the command of a console script as pip installs it."""
    path = folder / "mpm-nodes"
    path.write_text(f"#!{sys.executable}\n{CONSOLE_SCRIPT}")
    path.chmod(0o755)
    return [str(path)]


def ran(words: list[str]) -> tuple[int, str, str]:
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def by_console_script(folder, arguments, monkeypatch):
    return ran([*script(folder), *arguments])


def by_module(folder, arguments, monkeypatch):
    return ran([sys.executable, "-P", "-m", "mpm_nodes.cli", *arguments])


def by_child(folder, arguments, monkeypatch):
    entry = folder / "entry.py"
    entry.write_text("import sys\nfrom mpm_nodes.cli import main\nsys.exit(main(sys.argv[1:]))\n")
    done = children.run(entry, arguments, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def by_blender(folder, arguments, monkeypatch):
    host = loaded("blender_addon/environment.py")
    host.facts["python"] = lambda: sys.executable
    return host.run(["-m", "mpm_nodes.cli", *arguments], 120.0)


def by_blenders_cook(folder, arguments, monkeypatch):
    host = loaded("blender_addon/environment.py")
    host.facts["python"] = lambda: sys.executable
    process = host.start(["-m", "mpm_nodes.cli", *arguments], folder)
    out, error = process.communicate(timeout=120)
    return process.returncode, out, error


def by_houdini(folder, arguments, monkeypatch):
    return loaded("houdini/mpm_nodes_houdini/process.py").call([*script(folder), *arguments])


def by_houdinis_cook(folder, arguments, monkeypatch):
    process = loaded("houdini/mpm_nodes_houdini/process.py").Process([*script(folder), *arguments])
    code, text = process.finish()
    return code, text, text


def by_terminal(folder, arguments, monkeypatch):
    monkeypatch.setenv("MPM_NODES_PROGRAM", script(folder)[0])
    return loaded("../../docs/examples/mpm_terminal.py").answer(arguments)


DIRECT = (by_console_script, by_module)
WAYS = (*DIRECT, by_child, by_blender, by_blenders_cook, by_houdini, by_houdinis_cook, by_terminal)


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A folder with a graph, and an environment that no Python of ours should see: broken packages, every setting."""
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in BROKEN:
        (broken / f"{name}.py").write_text(f"raise ImportError('a broken {name}')\n")
    graph = Graph(start=1, end=1, cell_size=0.1)
    graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), material=graph.add("material_neo_hookean", "stuff"))
    graph.save(tmp_path / "shot.json")
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONPATH", str(broken))
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_launch_minds_settings_of_python(way, hostile, monkeypatch):
    """Everything at once: a broken numpy comes last on the path, and docstrings, prompts and warnings are as they always are."""
    for name, value in ({} if way in DIRECT else HOME).items():
        monkeypatch.setenv(name, value)
    words = ["validate", str(hostile / "shot.json")] if way in DIRECT else ["nodes", "emit_box"]  # the first starts a child
    code, out, error = way(hostile, words, monkeypatch)
    assert ("valid;" if way in DIRECT else "Fill a box with particles") in out, error
    assert (code, "broken" in out + error, "Traceback" in error) == (0, False, False), error


@pytest.mark.parametrize("way", DIRECT, ids=lambda way: way.__name__)
def test_own_nodes_still_find_their_modules(way, hostile, monkeypatch):
    """What lies on PYTHONPATH alone is found there, by the program and by the child that it works in."""
    mine, nodes = hostile / "mine", hostile / "nodes"
    for folder in (mine, nodes):
        folder.mkdir()
    (mine / "rare_words.py").write_text("WORD = 'seen'\n")
    (nodes / "own.py").write_text("import sys\nimport numpy, rare_words\nprint(rare_words.WORD, file=sys.stderr)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.environ["PYTHONPATH"], str(mine)]))
    monkeypatch.setenv("MPM_NODES_PATH", str(nodes))
    code, _, error = way(hostile, ["validate", str(hostile / "shot.json")], monkeypatch)
    assert code == 0 and "seen" in error, error


def test_installed_packages_stay_before_the_rest(monkeypatch, tmp_path):
    """Also where PYTHONPATH names the folder of the installed packages itself, as some launchers do."""
    installed = site.getsitepackages()[0]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), installed]))
    monkeypatch.setattr(sys, "path", [str(tmp_path), installed, *sys.path])
    path = search_path.trusted_path()
    assert path[-1] == str(tmp_path) and path.index(installed) < len(path) - 1
    monkeypatch.setattr(sys, "path", path)
    assert search_path.trusted_path() == path


def test_an_environment_without_numpy_says_so_in_one_line(tmp_path):
    """The program cannot work then; it says which Python lacks what."""
    begin = f"import sys; sys.argv = ['mpm-nodes', 'nodes']; sys.path.append({search_path.OWN_ROOT!r}); import mpm_nodes.cli"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", begin], capture_output=True, text=True, check=False)
    assert done.returncode == 5 and done.stderr.count("\n") == 1, done.stderr
    assert "No module named 'numpy'" in done.stderr and "install it there" in done.stderr
