"""The walks in the docs, as a new user takes them: files and commands as they stand, in an empty folder."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.document.stage_edits import EDITS
from mpm_nodes.graph.document.substep_document import load_substeps
from mpm_nodes.graph.plan.validate import validate
from usd_io.stage_reader import read_points

DOCS = Path(__file__).resolve().parents[2] / "docs"


def written(page: str, folder: Path) -> dict[str, str]:
    """Write the files that a page shows into a folder; return them by name."""
    files = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", (DOCS / page).read_text(), re.S))
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return files


def run(page: str, folder: Path, seconds: float = 600.0, marks: str = "commands: tested") -> str:
    """Run the commands that a page shows behind some marks, and return what they print."""
    script = "\n".join(re.findall(rf"<!-- (?:{marks}) -->\n```bash\n(.*?)```", (DOCS / page).read_text(), re.S))
    program = folder / "bin"
    program.mkdir()
    for name, module in (("mpm-nodes", "-m mpm_nodes.cli"), ("python", "")):
        (program / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (program / name).chmod(0o755)
    path = os.pathsep.join(filter(None, [str(DOCS.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}
    done = subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_node_in_20_lines(tmp_path):
    """The page's node is 20 lines or fewer, is listed with unit and range, and spins the matter as fast as it is told."""
    files = written("a_node_in_20_lines.md", tmp_path)
    assert len(files["my_nodes/swirl.py"].splitlines()) <= 20
    told = run("a_node_in_20_lines.md", tmp_path)
    assert "swirl: Swirl, version 1" in told and "rate (float, rad/s, default 6.0): How fast" in told
    assert "spin.json: valid; 5 nodes, frames 1 to 3" in told
    (first, *_, last) = sorted((tmp_path / "spun" / "r001").rglob("*.ply"))
    momentum, inertia, count = {}, {}, 0
    for path in (first, last):
        header, _, content = path.read_bytes().partition(b"end_header\n")
        kinds = re.findall(rb"property (float|double) (\w+)", header)
        record = np.frombuffer(content, [(name.decode(), {b"float": "<f4", b"double": "<f8"}[kind]) for kind, name in kinds])
        x, z = (record[axis] - record[axis].mean() for axis in "xz")
        momentum[path], inertia[path] = (z * record["vx"] - x * record["vz"]).sum(), (x * x + z * z).sum()
        count = len(record)
    assert abs(momentum[first] / inertia[first] - 5.0) < 1e-6
    # nothing outside turns what falls; each particle's affine field holds the spin times h^2 / 2 of the angular momentum
    affine = momentum[last] / inertia[last] * count * 0.1**2 / 2.0
    assert abs((momentum[last] + affine) / momentum[first] - 1.0) < 2e-3


def test_a_phenomenon_in_a_folder(tmp_path):
    """The page's folder is under 150 lines; its node and stage are listed, and its problem holds."""
    files = written("a_phenomenon_in_a_folder.md", tmp_path)
    assert sum(len(text.splitlines()) for text in files.values()) < 150
    told = run("a_phenomenon_in_a_folder.md", tmp_path)
    assert "set_moisture: Set Moisture, version 1" in told and "time (float, s, min 1e-06, default 1.0): In which" in told
    assert "1 of 1 passed" in told
    (tmp_path / "moisture/stages/dry.py").write_text("\n\n1 / 0\n")
    with pytest.raises(registries.RegistryError, match=r"stages.dry\.py:3: ZeroDivisionError: division by zero; fix the file"):
        registries.load(path=str(tmp_path / "moisture"), entry_points=False).stages()


def test_the_patch_of_the_page_is_sound(tmp_path):
    """The JSON patch in docs/python.md resolves, and the table lists every edit that there is."""
    text = (DOCS / "python.md").read_text()
    patch = json.loads(re.search(r"<!-- substeps: tested -->\n```json\n(.*?)```", text, re.S).group(1))
    stage_source = re.search(r"from mpm_nodes\.data import A, Grid.*?grid\.pack\(\"force\", force\)\n", text, re.S).group(0)
    (tmp_path / "wind.py").write_text("from mpm_nodes import stage\n" + stage_source)
    registry = registries.load(path=str(tmp_path), entry_points=False)
    substeps, problems = load_substeps(patch, registry)
    assert problems == []
    assert substeps.knobs["wind"] == {"push": 20.0} and substeps.knobs["rasterize"]["kernel"] == "cubic"
    assert not {"apply_plasticity", "collide_particles"} & set(substeps.declarations)
    listed = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", text, re.M))))
    assert listed == set(EDITS)


def test_a_stage_in_one_file(tmp_path):
    """The page's stage is under 60 lines, shares a loop, tells its fact, and goes on after a stop with the bits of one cook."""
    files = written("fragments.md", tmp_path)
    assert len(files["my_nodes/warm_by_shear.py"].splitlines()) < 60
    told = run("fragments.md", tmp_path)
    assert "  gather + update_deformation + warm + apply_plasticity + collide_particles + move_particles: one loop" in told
    command = [sys.executable, "-m", "mpm_nodes.cli", "cook", "warm.json", "--out", "whole", "--events", "jsonl"]
    path = os.pathsep.join(filter(None, [str(DOCS.parent), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "MPM_NODES_PATH": "my_nodes", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    stopped, whole = (read_points(tmp_path / name / "r001" / "cache.usda", 4) for name in ("warm", "whole"))
    assert all(np.array_equal(stopped[name], whole[name]) for name in ("position", "warmth"))
    hottest = [event["hottest"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "heat"]
    assert hottest[-1] == whole["warmth"].max() > 0.0


@pytest.mark.slow  # six cooks in processes of their own; the page on many machines does three of the kind
def test_wedges(tmp_path):
    """The page's script cooks six wedges: softer jelly is flatter, stiffer jelly takes more substeps; table and sheet are there."""
    written("wedges.md", tmp_path)
    run("wedges.md", tmp_path)
    with open(tmp_path / "wedges" / "wedges.csv", newline="") as stream:
        rows = [{name: float(value) for name, value in row.items() if name != "state"} for row in csv.DictReader(stream)]
    assert len(rows) == 6
    for density in (500.0, 1000.0):
        heights = [row["high"] for row in rows if row["jelly.density"] == density]
        counts = [row["substeps"] for row in rows if row["jelly.density"] == density]
        assert heights == sorted(heights) and counts == sorted(counts) and heights[0] < heights[-1]
    assert (tmp_path / "wedges" / "wedges.png").stat().st_size > 5000


def test_many_machines(tmp_path):
    """The page's job runs here: three caches, and one stage with a variant for each, whose matter stands the higher the stiffer."""
    written("many_machines.md", tmp_path)
    assert "mpm-nodes farm job --jobs 2" in run("many_machines.md", tmp_path)
    with open(tmp_path / "job" / "wedges.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    heights = [float(row["high"]) for row in rows]
    assert [row["state"] for row in rows] == ["done"] * 3 and heights == sorted(heights)
    assert (tmp_path / "job" / "wedges.png").stat().st_size > 5000
    stage = pytest.importorskip("pxr.Usd").Stage.Open(str(tmp_path / "job" / "wedges.usda"))
    choice = stage.GetDefaultPrim().GetVariantSet("wedge")
    assert choice.GetVariantNames() == ["youngs_modulus_10000", "youngs_modulus_30000", "youngs_modulus_90000"]
    for name, height in zip(choice.GetVariantNames(), heights, strict=True):
        choice.SetVariantSelection(name)
        points = stage.GetPrimAtPath("/wedges/particles").GetAttribute("points").Get(4)
        assert abs(np.asarray(points)[:, 1].max() - height) < 1e-6


@pytest.mark.slow  # every command of the page, in their order: twenty processes
def test_many_machines_to_its_end(tmp_path):
    """In chunks, by the runner of Open Job Description, and on ranks, which come to what one process does."""
    pytest.importorskip("mpi4py", reason="needs mpi4py and mpiexec: pip install 'mpm-nodes[mpi]' mpich")
    missing = [name for name in ("mpiexec", "openjd") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)} on PATH")
    written("many_machines.md", tmp_path)
    told = run("many_machines.md", tmp_path, 1200.0, "commands: tested|slow: commands")
    assert "passes validation checks" in told and "Session ended successfully" in told
    assert len([*(tmp_path / "chunked/wedges/000/pictures").glob("frame.*.splat.png")]) == 4
    assert len([*(tmp_path / "solved/r001/solved").glob("0004.*.value")]) == 4
    line = [sys.executable, "-m", "mpm_nodes.cli", "cook", "shot.json", "--set", "cube.size=[3.2,0.3,0.3]", "--out", "alone"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name, frame in (("together", 4), ("frames", 2)):
        alone, shared = (read_points(tmp_path / each / "r001" / "cache.usda", frame) for each in ("alone", name))
        assert np.array_equal(alone["id"], shared["id"]) and np.abs(alone["position"] - shared["position"]).max() < 1e-5


def test_graphs_of_the_first_movies_are_valid(tmp_path):
    """Each graph of the page validates beside the files that it names."""
    for name in written("first_movies.md", tmp_path):
        if name.endswith(".json"):
            assert validate(load_graph(tmp_path / name)) == [], name


@pytest.mark.slow
def test_first_movies(tmp_path):
    """The commands of the page leave three movies of as many frames as their graphs have."""
    written("first_movies.md", tmp_path)
    run("first_movies.md", tmp_path, seconds=3600)
    for name in ("snow", "pie", "paste"):
        with Image.open(tmp_path / f"{name}.webp") as movie:
            assert movie.n_frames == load_graph(tmp_path / f"{name}.json").settings.end
