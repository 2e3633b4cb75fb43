"""Nothing that lies in the working folder, beside a graph or in an output folder is ever run."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_imports import ROOT, SOURCES, imports_of

from mpm_nodes import children, search_path
from mpm_nodes.data import Material
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.packaged_samples import samples_folder
from mpm_nodes.solver import cold_start

STARTERS = {
    "mpm_nodes/children.py": "everything that the package starts",
    "mpm_nodes/hosts/blender_addon/environment.py": "runs inside Blender, where this package is not",
    "mpm_nodes/hosts/houdini/mpm_nodes_houdini/process.py": "runs inside Houdini, where this package is not",
}
STARTS = {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
OTHER_STARTS = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"}
CONSOLE_SCRIPT = "import re\nimport sys\nfrom mpm_nodes.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"


def planted_names() -> set[str]:
    """Return every name that a process of ours could ask for: our sources' imports, the standard library, what is installed."""
    ours = {name.split(".")[0] for path in SOURCES for _, name in imports_of(path)}
    installed = {name for name in importlib.metadata.packages_distributions() if name.isidentifier()}
    extra = {
        "openvdb",
        "pyopenvdb",
        "msvcrt",
        "bpy",
        "hou",
        "yaml",
        "scipy",
        "sitecustomize",
        "usercustomize",
        "usd_io",
        "mpm_nodes",
    }
    return {name for name in ours | installed | extra | sys.stdlib_module_names if name.isidentifier()}


def plant(folder: Path, marks: Path, names: set[str]) -> None:
    """Write a module of every name, a package that offers nodes, and numba's settings; each leaves a mark when it is run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.py").write_text(
            f"open({str(marks / f'{folder.name}.{name}')!r}, 'w').close()\nraise ImportError('planted')\n"
        )
    offer = folder / "stranger-1.0.dist-info"
    offer.mkdir(exist_ok=True)
    (offer / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (offer / "entry_points.txt").write_text("[mpm_nodes]\nstranger = stranger_nodes\n")
    (folder / "stranger_nodes.py").write_text(f"open({str(marks / f'{folder.name}.stranger_nodes')!r}, 'w').close()\n")
    (folder / ".numba_config.yaml").write_text("disable_jit: 1\n")


@pytest.fixture
def shot(tmp_path):
    """A graph with a VDB emitter and a VDB collider, its output folder, a working folder; where marks would appear."""
    folder, marks = tmp_path / "shot", tmp_path / "marks"
    folder.mkdir()
    marks.mkdir()
    shutil.copy(samples_folder() / "trivet.vdb", folder / "trivet.vdb")
    graph = Graph(base=folder, start=1, end=3, cell_size=0.1)
    stuff = graph.add("material_neo_hookean", "stuff")
    body = graph.add("emit_box", "body", size=(0.2, 0.2, 0.2), centre=(0.0, 0.5, 0.0), material=stuff)
    shape = graph.add("emit_level_set", "shape", path="trivet.vdb", material=stuff)
    trivet = graph.add("collide_vdb", "trivet", path="trivet.vdb", grid="mesh2ls_trivet")
    fall = graph.add("solve", "fall", sources=[body, shape], colliders=[trivet], time_scale=0.05)
    graph.add("write_cache", "cache", name="cache", particles=fall["particles"])
    graph.save(folder / "shot.json")
    return folder, marks


def planted(shot, names: set[str]) -> tuple[Path, Path, Path]:
    """Plant the names in the three folders; return working folder, output folder, marks."""
    folder, marks = shot
    work, out = folder.parent / "work", folder.parent / "out"
    for place in (work, folder, out):
        plant(place, marks, names)
    return work, out, marks


def program(tmp_path: Path) -> list[str]:
    """Return the command of a console script as pip installs it."""
    script = tmp_path / "bin" / "mpm-nodes"
    script.parent.mkdir(exist_ok=True)
    script.write_text(CONSOLE_SCRIPT)
    return [sys.executable, str(script)]


def loaded_before_our_first_line(tmp_path: Path) -> set[str]:
    """Return the modules that `python -m` itself imports before it runs anything of the package that it is asked for."""
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "seen.py").write_text("import sys\nprint(*sys.modules)\n")
    done = subprocess.run([sys.executable, "-m", "seen"], cwd=bare, capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_a_planted_module_would_leave_a_mark(shot):
    """The trap works: an interpreter that looks in its working folder springs it."""
    work, _, marks = planted(shot, {"openvdb"})  # Python 3.13 imports linecache for -c, and would be caught by that before
    subprocess.run([sys.executable, "-c", "import openvdb"], cwd=work, capture_output=True)
    assert {path.name for path in marks.iterdir()} == {"work.openvdb"}


@pytest.mark.parametrize("way", ["console script", pytest.param("python -P -m", marks=pytest.mark.slow), "python -m"])
def test_nothing_beside_a_graph_is_run(shot, tmp_path, way):
    """Validate, cook with VDBs, resume and render with a module of every name in the working, graph's and output folder."""
    names = planted_names()
    if (
        way == "python -m"
    ):  # what Python itself takes from the working folder, -P keeps it from; the package's name is asked for there
        names -= loaded_before_our_first_line(tmp_path) | {"mpm_nodes"}
    work, out, marks = planted(shot, names)
    begin = {
        "console script": program(tmp_path),
        "python -P -m": [sys.executable, "-P", "-m", "mpm_nodes.cli"],
        "python -m": [sys.executable, "-m", "mpm_nodes.cli"],
    }[way]
    graph = str(shot[0] / "shot.json")
    cook = ["cook", graph, "--out", str(out), "--events", "none", "--threads", "1"]
    commands = [
        ["validate", graph],
        [*cook, "--frames", "1-2"],
        [*cook, "--resume"],
        ["render", str(out), "--frames", "1-1"],
        ["clean", str(out)],
    ]
    environment = {**os.environ, "MPM_NODES_COMPILE_HELPER": "0"}
    for command in commands if way == "console script" else commands[:2]:
        done = subprocess.run([*begin, *command], cwd=work, env=environment, capture_output=True, text=True, timeout=300)
        assert (done.returncode, sorted(path.name for path in marks.iterdir())) == (0, []), done.stderr


def test_the_compile_helper_runs_nothing_of_its_working_folder(shot):
    """The helper builds and steps its tiny solve in a folder with a module of every name."""
    work, _, marks = planted(shot, planted_names())
    task = {
        "materials": (Material("neo_hookean", {"youngs_modulus": 1e5, "poisson_ratio": 0.3}, 1000.0, "rubber"),),
        "substeps": "explicit_apic",
        "fuse": True,
        "walls": None,
        "dtype": "<f4",
        "collides": False,
    }
    done = children.run(cold_start.HELPER, stdin=None, input=pickle.dumps(task), cwd=work, capture_output=True, timeout=300)
    assert (done.returncode, list(marks.iterdir())) == (0, []), done.stderr


def test_blender_runs_nothing_of_its_working_folder(shot, tmp_path):
    """The script that renders asks for bpy; the one in the working folder is not it."""
    work, _, marks = planted(shot, planted_names())
    script = ROOT / "mpm_nodes" / "preview" / "blender_script.py"
    (tmp_path / "job.json").write_text("{}")
    done = children.run(script, [str(tmp_path / "job.json")], cwd=work, capture_output=True, text=True, timeout=300)
    assert list(marks.iterdir()) == [] and "planted" not in done.stdout + done.stderr


def test_settings_of_the_environment_reach_a_child(tmp_path, monkeypatch):
    """MPM_NODES_... variables pass, PYTHON... variables do not matter, and the working folder is on no path."""
    (tmp_path / "answer.py").write_text("import os, sys\nprint(os.environ['MPM_NODES_CACHE'], *sys.path, sep='\\n')\n")
    monkeypatch.setenv("MPM_NODES_CACHE", "/kept")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "relative", str(tmp_path / "given")]))
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), str(tmp_path / "relative"), *sys.path, str(tmp_path / "given")])
    done = children.run(tmp_path / "answer.py", cwd=tmp_path, capture_output=True, text=True)
    kept, *path = done.stdout.splitlines()
    assert kept == "/kept" and str(tmp_path / "given") in path and str(ROOT) in path
    monkeypatch.chdir(tmp_path)
    assert not {"", str(tmp_path), str(tmp_path / "relative")} & set(search_path.trusted_path())


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_processes_are_started_in_one_place(path):
    """No source but the starters calls what starts a process; hosts have one each, since they cannot import the package."""
    if path.relative_to(ROOT).as_posix() in STARTERS:
        return
    found = []
    tree = ast.parse(path.read_text())
    hints = [getattr(item, name, None) for item in ast.walk(tree) for name in ("annotation", "returns")]
    harmless = {id(part) for hint in hints if hint is not None for part in ast.walk(hint)}
    for item in ast.walk(tree):
        if isinstance(item, ast.ImportFrom) and item.module in ("subprocess", "os", "multiprocessing"):
            found += [f"line {item.lineno}: {alias.name}" for alias in item.names if alias.name in STARTS | OTHER_STARTS | {"*"}]
        if not (isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name)) or id(item) in harmless:
            continue
        module, name = item.value.id, item.attr
        starts = (module == "subprocess" and name in STARTS) or module in ("multiprocessing", "ProcessPoolExecutor")
        if starts or (module == "os" and (name in OTHER_STARTS or name.startswith(("exec", "spawn")))):
            found.append(f"line {item.lineno}: {module}.{name}")
    names = [name for _, name in imports_of(path) if name.startswith(("multiprocessing", "concurrent.futures.process"))]
    assert found + names == [], "start it through mpm_nodes.children"


def test_host_programs_keep_out_of_the_scene_folder(monkeypatch, tmp_path):
    """The Houdini runtime starts no mpm-nodes that lies in the working folder, and its Python looks for modules elsewhere."""
    file = ROOT / "mpm_nodes" / "hosts" / "houdini" / "mpm_nodes_houdini" / "process.py"
    spec = importlib.util.spec_from_file_location("houdini_process", file)
    process = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(process)
    stranger = tmp_path / "mpm-nodes"
    stranger.write_text("#!/bin/sh\ntouch sprung\n")
    stranger.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for entry in ("", ".", os.curdir + os.pathsep):
        monkeypatch.setenv("PATH", entry)
        with pytest.raises(FileNotFoundError):
            process.call(process.command(""))
    monkeypatch.setenv("PATH", os.pathsep.join([".", str(tmp_path)]))
    assert process.installed("mpm-nodes") == str(stranger)
    assert process.environment()["PYTHONSAFEPATH"] == "1" and not (tmp_path / "sprung").exists()
