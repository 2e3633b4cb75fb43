"""The samples: each is a valid graph, cooks at any resolution, and shows the numbers that samples/figures claims."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import directing_numbers as directing
import numpy as np
import pytest
from sample_numbers import MEASURES, SAMPLES, Cooked, claims, volume

from mpm_nodes.cli import main
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.reports.events import Event
from mpm_nodes.materials.library import LIBRARY
from mpm_nodes.materials.looks import LOOKS
from mpm_nodes.solver.emission import Stream
from mpm_nodes_samples.shots.index import SAMPLES as REPRODUCED

CACHES = {
    "cheese_on_monkey": "cheese.usda",
    "two_materials": "bowl.usda",
    "student_report": "report.usda",
    "keyed_gravity": "room.usda",
    "flakes_in_wind": "flakes.usda",
    "letters_goal": "letters.usda",
    "piped_cream": "piped_cream.usda",
    "honey_jar": "honey_jar.usda",
    "pinned_jelly": "jelly.usda",
    "filled_bar": "bar.usda",
    "sink": "sink.usda",
    "sand_heap": "sand_heap.usda",
    "stone_in_mud": "stone_in_mud.usda",
}
COARSE = {
    "cheese_on_monkey": 0.08,
    "two_materials": 0.04,
    "student_report": 0.1,
    "keyed_gravity": 0.08,
    "letters_goal": 0.04,
    "piped_cream": 0.004,
}
CLAMPED = ("pinned_jelly", "filled_bar")
"""Samples whose colliders hold what lies in them."""
MEASURES = MEASURES | directing.MEASURES
FILES = sorted(SAMPLES / f"{name}.json" for name in CACHES)
each = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
falling = pytest.mark.parametrize("file", [file for file in FILES if file.stem in COARSE], ids=lambda file: file.stem)


def test_matter_with_pores_hands_its_places_at_rest_to_its_mesh():
    """Where it does not, pictures show no pores, which would slide over it."""
    porous = {name for name, entry in LIBRARY.items() if LOOKS[entry.look].pattern == "pores"}
    found = 0
    for file in SAMPLES.glob("*.json"):
        nodes = json.loads(file.read_text())["nodes"].values()
        made_of = {node["knobs"]["name"] for node in nodes if node["type"] == "material_library"}
        if made_of & porous:
            found += 1
            assert any(node["type"] == "rest_positions" for node in nodes), file
            assert all("rest" in node["knobs"]["attributes"] for node in nodes if node["type"] == "surface_particles"), file
    assert found


def test_every_sample_is_listed_with_its_command_and_numbers():
    """README.md names each graph and the command that cooks it; its page and its table have numbers that the slow test measures."""
    text, numbers = (SAMPLES / "README.md").read_text(), claims()
    pages = "".join((SAMPLES / f"{name}.md").read_text() for name in ("basics", "directing"))
    assert "mpm-nodes cook samples/NAME.json --out out/NAME" in text
    assert {file.stem for file in FILES} == set(numbers) == set(MEASURES) == set(CACHES)
    for file in FILES:
        assert f" {file.stem}" in text and f"\n## {file.stem}\n" in pages
        assert set(numbers[file.stem]) == set(MEASURES[file.stem])
    assert "mpm-nodes demo" in pages


def test_no_graph_lies_in_samples_that_nothing_holds_to_account():
    """Each graph file is cooked by this file, measured by `mpm-nodes sample`, or is the demo (both of its forms)."""
    assert {path.stem for path in SAMPLES.glob("*.json")} == {*CACHES, *REPRODUCED, "demo", "demo_without_vdb"}


@each
def test_it_is_valid_and_written_out(file: Path, capsys):
    """`mpm-nodes validate` finds nothing; every node says its version, and lies somewhere in an editor."""
    assert main(["validate", str(file)]) == 0, capsys.readouterr()
    nodes = json.loads(file.read_text())["nodes"]
    assert all(entry["version"] >= 1 and len(entry["position"]) == 2 for entry in nodes.values())
    assert len({tuple(entry["position"]) for entry in nodes.values()}) == len(nodes)


@falling
def test_it_cooks_coarsely(file: Path, tmp_path: Path):
    """Three frames at a coarse cell size leave a cache that opens, with finite particles that fall, or come out of a nozzle."""
    graph = load_graph(file)
    graph.set("settings.cell_size", COARSE[file.stem])
    if "surface" in graph.nodes:
        graph.set("surface.voxel_size", 0.0)
    result = execute(graph, frames=(1, 3), out=tmp_path)
    cooked = Cooked(result.revision_folder, CACHES[file.stem], result.warnings)
    first, last = cooked.at(1), cooked.at(3)
    piped = not len(first)
    assert piped or len(first) == len(last)
    assert len(last) > 50 and np.isfinite(last["position"]).all()
    # written per second of the shot, which may be in slow motion
    pace = next(entry.knobs.get("time_scale", 1.0) for entry in graph.nodes.values() if entry.type == "solve")
    assert last["velocity"][:, 1].mean() < (0.0 if piped else -0.1 * pace)
    if file.stem == "cheese_on_monkey":
        assert any("42 open edges around 4 holes" in warning for warning in result.warnings)
    elif file.stem == "student_report":
        assert (result.revision_folder / "points/points.0001.obj").is_file()


def coarse(name: str, cell_size: float, frames: int, out: Path, **centres: Any) -> Cooked:
    """Return the first frames of a directing sample, coarser, without its surface, with other keys of centres."""
    graph, told = load_graph(SAMPLES / f"{name}.json"), []
    graph.set("settings.cell_size", cell_size)
    for node, keys in centres.items():
        graph.set(f"{node}.centre", {"keys": keys})
    del graph.nodes["surface"]
    graph.nodes["cache"].inputs.pop("mesh")
    result = execute(graph, frames=(1, frames), out=out, on_event=told.append)
    return Cooked(result.revision_folder, CACHES[name], result.warnings, tuple(told))


def test_flakes_sail_and_a_lump_falls_as_the_law_of_drag_has_it(tmp_path: Path):
    """Coarse, with flakes of one layer of cells: until frame 9 the first ones come twice as far down-wind as the first lump."""
    cooked = coarse("flakes_in_wind", 0.0375, 9, tmp_path)
    flakes, lumps = (directing.flights(cooked, each, 9) for each in (False, True))
    assert len(flakes) == 4 and len(lumps) == 1
    assert flakes[0, 0] > 2.0 * lumps[0, 0] > 0.0
    assert lumps[0, 0] == pytest.approx(lumps[0, 1], rel=0.2) and flakes[0, 0] == pytest.approx(flakes[0, 1], rel=0.2)


def test_a_pin_holds_a_slab_until_it_lets_go(tmp_path: Path):
    """Coarse, with a first pin that lets go at frame 9: its corner falls then, the others stay but for what a cell gives."""
    keys = [[1, [-0.21, 0.6, 0.21], "step"], [9, [-0.315, 0.7, 0.315], "step"]]
    cooked = coarse("pinned_jelly", 0.05, 13, tmp_path, pin_1=keys)
    assert directing.slip(cooked, -0.21, 0.21, 8) < 0.025
    assert directing.slip(cooked, -0.21, 0.21, 13) > 0.06
    assert directing.slip(cooked, 0.21, 0.21, 13) < 0.025


def test_hands_carry_a_bar_and_its_masses_are_those_of_boxes(tmp_path: Path):
    """Coarse, seven frames: both matters are there whole, and the hands begin to bend them."""
    cooked = coarse("filled_bar", 0.01, 7, tmp_path)
    assert directing.mass_of(cooked, 7, 1) == pytest.approx(1200 * 0.14 * 0.03 * 0.05, rel=1e-5)
    assert directing.mass_of(cooked, 7, 0) == pytest.approx(1200 * (0.16 * 0.05 * 0.07 - 0.14 * 0.03 * 0.05), rel=1e-5)
    middle = np.abs(cooked.at(7)["position"][:, 0]) < 0.01
    assert cooked.x(7)[middle].mean() < cooked.x(7)[~middle].mean() - 0.001


@pytest.mark.slow
def test_a_jar_that_tilts_pours_onto_a_stack(tmp_path: Path):
    """Coarse, until the honey has come down: at first all is in the jar, and then some in the dish and none beside it."""
    cooked = coarse("honey_jar", 0.0075, 42, tmp_path)
    whole = volume(cooked, 1)
    assert directing.in_jar(cooked, 1) == pytest.approx(whole, rel=1e-6)
    assert volume(cooked, 42) == pytest.approx(whole, rel=1e-6) and directing.in_dish(cooked, 42) > 0.03 * whole
    position = cooked.at(42)["position"]
    assert not (np.hypot(position[:, 0], position[:, 2])[position[:, 1] < directing.DISH] > directing.INNER).any()


def test_what_a_sink_drains_and_what_is_left_add_up(tmp_path: Path):
    """Coarse, with a plug that is pulled at frame 3: nothing is told before, and then what is missing."""
    cooked = coarse("sink", 0.03, 7, tmp_path, pipe=[[1, [0, 0, 0], "step"], [3, [0, 0.07, 0], "step"]])
    assert directing.drained(cooked, 1, 2) == 0.0
    gone = directing.drained(cooked, 1, 7)
    assert gone + directing.water_of(cooked, 7) == pytest.approx(directing.water_of(cooked, 1), rel=1e-6)
    assert gone > 0.01 * directing.water_of(cooked, 1)


def test_vessels_are_what_their_script_makes(tmp_path: Path):
    """make_vessels.py gives the files of the repository."""
    pytest.importorskip("pxr")
    spec = importlib.util.spec_from_file_location("make_vessels", SAMPLES / "make_vessels.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    for name in ("basin.usda", "pan.usda"):
        assert (tmp_path / name).read_text() == (SAMPLES / name).read_text()


def test_the_stream_of_two_materials_runs(tmp_path: Path):
    """Coarse and up to frame 12, syrup has come at its rate: 1300 kg/m^3 * (6 cm)^2 * 1.2 m/s * 6/24 s, to one layer."""
    graph = load_graph(SAMPLES / "two_materials.json")
    graph.set("settings.cell_size", 0.04)
    result = execute(graph, frames=(1, 12), out=tmp_path)
    particles = Cooked(result.revision_folder, CACHES["two_materials"], ()).at(12)
    syrup = particles["mass"][particles["material"] == 1].sum(dtype=float)
    assert syrup == pytest.approx(1300 * 0.06**2 * 1.2 * 6 / 24, abs=1.01 * 1300 * 0.06**2 * 0.02)


def test_the_book_of_the_syrup_balances():
    """All that the stream of two_materials brings is density, nozzle area, speed and time, as its table says."""
    graph = load_graph(SAMPLES / "two_materials.json")
    emitter = Evaluator(graph).value("stream", graph.settings.start)
    stream = Stream(emitter, np.zeros(1, np.int32))
    mass = sum(len(stream.between(*span)["position"]) for span in ((-math.inf, 0.5), (0.5, 60.0))) * emitter.template["mass"].mean()
    assert mass == pytest.approx(1300.0 * 0.06**2 * 1.2 * 24 / 24, rel=1e-6)


def test_the_nozzles_are_what_their_script_makes(tmp_path: Path):
    """make_nozzles.py gives the file of the repository."""
    pytest.importorskip("pxr")
    spec = importlib.util.spec_from_file_location("make_nozzles", SAMPLES / "make_nozzles.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path / "nozzles.usda")
    assert (tmp_path / "nozzles.usda").read_text() == (SAMPLES / "nozzles.usda").read_text()


def test_the_bowl_is_what_its_script_makes(tmp_path: Path):
    """make_bowl.py gives the file of the repository: same points, faces and units."""
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom

    spec = importlib.util.spec_from_file_location("make_bowl", SAMPLES / "make_bowl.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path / "bowl.usda")
    made, kept = (Usd.Stage.Open(str(folder / "bowl.usda")) for folder in (tmp_path, SAMPLES))
    meshes = [UsdGeom.Mesh(stage.GetDefaultPrim()) for stage in (made, kept)]
    assert np.array_equal(*(np.array(mesh.GetPointsAttr().Get()) for mesh in meshes))
    assert np.array_equal(*(np.array(mesh.GetFaceVertexIndicesAttr().Get()) for mesh in meshes))
    assert UsdGeom.GetStageMetersPerUnit(kept) == UsdGeom.GetStageMetersPerUnit(made) == 0.01


# ---------------------------------------------------------------- minutes
@pytest.mark.slow
@each
def test_it_shows_its_numbers(file: Path, tmp_path: Path):
    """The whole shot through the executor: every number of samples/figures, measured from the files it left."""
    told: list[Event] = []
    result = execute(load_graph(file), out=tmp_path, on_event=told.append)
    assert result.seconds < 600
    assert not [warning for warning in result.warnings if "inside collider" in warning and file.stem not in CLAMPED]
    cooked = Cooked(result.revision_folder, CACHES[file.stem], result.warnings, tuple(told))
    found = {name: float(measure(cooked)) for name, measure in MEASURES[file.stem].items()}
    wrong = {
        name: (found[name], value, within)
        for name, (value, within) in claims()[file.stem].items()
        if not abs(found[name] - value) <= within + 1e-9
    }
    assert wrong == {}, f"measured, claimed, within: {wrong}"


@pytest.mark.slow
def test_blender_makes_the_monkey_of_the_repository(tmp_path: Path):
    """make_monkey.py, run with Blender in its own process, exports the same mesh and motion as the file in the repository."""
    pytest.importorskip("pxr")
    from usd_io.collider_meshes import StageMeshes

    if importlib.util.find_spec("bpy") is None:
        pytest.skip("Blender (bpy) is not installed")
    target = tmp_path / "monkey.usdc"
    done = subprocess.run(
        [sys.executable, str(SAMPLES / "make_monkey.py"), str(target)], capture_output=True, text=True, timeout=300
    )
    if not target.is_file() and "ImportError" in done.stderr:
        pytest.skip("Blender lacks system libraries here")
    assert target.is_file(), done.stderr
    made, kept = StageMeshes(target, ""), StageMeshes(SAMPLES / "monkey.usdc", "")
    for frame in (1, 15, 24, 36):
        np.testing.assert_allclose(made.points(frame), kept.points(frame), atol=1e-6)
        assert np.array_equal(made.topology(frame).indices, kept.topology(frame).indices)
    assert (SAMPLES / "monkey.usdc").stat().st_size < 1 << 20


@pytest.mark.parametrize(
    "path", [path for path in sorted(SAMPLES.glob("*.json")) if "emit_stream" in path.read_text()], ids=lambda p: p.stem
)
def test_streams_of_packaged_graphs_leave_no_gaps(path):
    """Each template streams with its own particles: it is equally long everywhere along its velocity."""
    graph = load_graph(path)
    evaluator, start = Evaluator(graph), graph.settings.start
    for name, entry in graph.nodes.items():
        if entry.type != "emit_stream":
            continue
        own = evaluator.value(entry.inputs["template"][0], start)["position"]
        np.testing.assert_array_equal(evaluator.value(name, start).template["position"], own)
