"""What is said before a cook: bodies that their own weight changes, streams without a mouth, how much memory they take."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import InputError, Material, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.moduli import moduli
from mpm_nodes.nodes.bodies import Body
from mpm_nodes.nodes.own_weight import weight_warnings
from usd_io import openvdb_module

DOCS, SAMPLES = (Path(__file__).parents[2] / name for name in ("docs", "samples"))


def cube(material: Material, edge: float) -> Body:
    """Return the box around a cube."""
    return Body(material, edge * np.eye(3), np.zeros(3))


def scene(name: str, edge: float, **solve) -> Graph:
    """Return a cube of a library material that is let go above the ground."""
    graph = Graph(cell_size=edge / 4, start=1, end=2)
    matter = graph.add("material_library", "matter", name=name)
    body = graph.add("emit_box", "body", material=matter, size=(edge,) * 3, centre=(0.0, edge, 0.0), rotation=(0.0, 30.0, 0.0))
    tears = named_material(name).tear_threshold is not None
    graph.add("solve", "solve", sources=[body], substeps="continuum_foam" if tears else "explicit_apic", **solve)
    return graph


def told(graph: Graph) -> list[str]:
    """Return what is warned of before a cook."""
    return [text for _, text in preflight.warnings_of(preflight.estimate(plan_graph(graph), graph.settings.start))]


@pytest.mark.parametrize(
    ("name", "young", "bulk"),
    [("jelly", 5e3, 5e3 / 0.3), ("rubber", 1e6, 1e6 / 0.3), ("snow", 1.4e5, 1.4e5 / 1.8), ("shaving_cream", 869.2, 1.09e5)],
)
def test_moduli_are_those_of_the_parameters(name, young, bulk):
    """E and K = E / (3 (1 - 2 nu)) as given, and 9 K G / (3 K + G) of the foam's, to the measuring strain."""
    found = moduli(named_material(name))
    assert found.young == pytest.approx(young, rel=1e-3) and found.bulk == pytest.approx(bulk, rel=1e-3)


def test_liquids_have_no_shear_modulus_however_viscous():
    """Honey's viscosity is not a stiffness."""
    assert moduli(named_material("honey")).shear == 0.0


@pytest.mark.phenomena("foam")
@pytest.mark.parametrize(
    ("name", "edge", "says"),
    [
        ("viennetta", 0.05, "pressed flat"),
        ("toothpaste", 0.05, "pressed flat"),
        ("jelly", 0.4, "sag out of its shape"),
        ("shaving_cream", 0.1, "slump"),
    ],
)
def test_what_its_weight_would_change_is_said(name, edge, says):
    """Bodies of the library that collapse under the default gravity say so in validate and before a cook; small ones do not."""
    (text,) = told(scene(name, edge))
    assert says in text and f"{edge:g} m high" in text and "9.81 m/s^2" in text
    assert told(scene(name, edge / 100.0)) == [] and told(scene(name, edge, gravity=(0.0, 0.0, 0.0))) == []


@pytest.mark.phenomena("foam")
@pytest.mark.parametrize("name", ["snow", "rubber", "water", "oobleck", "pie_crust"])
def test_what_stands_or_is_meant_to_flow_is_not_warned_of(name):
    """Stiff matter, liquids, and foams whose yield stress hardly exists."""
    assert told(scene(name, 0.1)) == []


def test_the_highest_body_of_a_material_speaks_once():
    """Of many bodies of a material the highest is named; gravity to the side asks for the width."""
    soft, low = named_material("viennetta"), cube(named_material("viennetta"), 0.02)
    slab = Body(soft, np.diag([1.0, 0.001, 0.05]), np.zeros(3))
    (text,) = weight_warnings([low, cube(soft, 0.05), low], (0.0, -9.81, 0.0))
    assert "0.05 m high" in text
    assert list(weight_warnings([slab], (0.0, -9.81, 0.0))) == []
    assert "1 m high" in next(iter(weight_warnings([slab], (9.81, 0.0, 0.0))))


def test_a_cook_says_it_before_its_first_frame():
    """The warning is among the result's, and comes before anything was cooked."""
    seen = []
    result = execute(scene("viennetta", 0.05), frames=(1, 1), on_event=seen.append)
    kinds = [event["event"] for event in seen]
    assert any("pressed flat" in text for text in result.warnings)
    assert kinds.index("warning") < kinds.index("frame_start")


def test_heights_of_the_docs_are_those_that_are_warned_of():
    """Every height of docs/viscoelastic.md: 10 % lower nothing is said, 10 % higher it is."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([\d.]+ \w+) \| ([\d.]+ \w+) \|$", (DOCS / "viscoelastic.md").read_text(), re.M)
    assert {name for names, *_ in rows for name in re.findall(r"\w+", names)} < set(LIBRARY) and len(rows) == 6
    metres = {"m": 1.0, "cm": 0.01, "mm": 0.001}
    for names, *heights in rows:
        for name in re.findall(r"\w+", names):
            for gravity, text in zip((0.981, 9.81), heights, strict=True):
                number, unit = text.split()
                height = float(number) * metres[unit]
                says = [list(weight_warnings([cube(named_material(name), k * height)], (0, -gravity, 0))) for k in (0.9, 1.1)]
                assert [bool(each) for each in says] == [False, True], (name, text)


# ---------------------------------------------------------------- streams
def stream(velocity=(0.0, -1.0, 0.0), end=25, mouth=False, **solve) -> Graph:
    """Return a stream of water out of a cube of 0.1 m."""
    graph = Graph(cell_size=0.025, start=1, end=end)
    matter = graph.add("material_library", "matter", name="water")
    body = graph.add("emit_box", "body", material=matter, size=(0.1, 0.1, 0.1))
    stream = graph.add("emit_stream", "stream", template=body, velocity=velocity)
    held = [graph.add("collide_vdb", "mouth", path=SAMPLES / "trivet.vdb", grid="mesh2ls_trivet", rule="sticky")] if mouth else []
    graph.add("solve", "solve", emitters=[stream], colliders=held, **solve)
    return graph


def test_a_stream_that_gravity_pulls_apart_says_what_to_wire():
    """One second at 1 m/s under gravity; not where a mouth is wired, gravity is off or sideways, or the shot is over before."""
    (text,) = told(stream())
    assert "parts into pieces at its mouth" in text and "collide_vdb" in text and "0.1 s of gravity" in text
    quiet = [stream(mouth=True), stream(gravity=(0.0, 0.0, 0.0)), stream((1.0, 0.0, 0.0)), stream((0.0, 1.0, 0.0)), stream(end=2)]
    assert [told(graph) for graph in quiet] == [[]] * len(quiet)


# ---------------------------------------------------------------- estimates
def expected(graph: Graph, node: str = "solve") -> int:
    """Return the particles that a node expects."""
    return preflight.estimate(plan_graph(graph), graph.settings.start)[node]["particles"]


@pytest.mark.parametrize("changes", [{}, {"time_scale": 0.5}, {"start_frame": 7}])
def test_the_estimate_of_a_stream_is_what_comes(changes):
    """Particles after the last frame as expected before the first, to a layer, at any pace and start of the simulation."""
    graph = stream(end=9, gravity=(0.0, 0.0, 0.0), **changes)
    came = len(execute(graph).outputs["solve"]["particles"])
    assert came > 0 and abs(expected(graph) - came) <= 64


def test_the_estimate_of_a_stream_that_is_askew_to_its_template_is_what_comes():
    """A box of 0.1 x 0.1 x 0.2 m turned by 30 degrees; a lattice that crosses its outline slantwise strays by a row at each rim."""
    graph = Graph(cell_size=0.025, start=1, end=9)
    body = graph.add(
        "emit_box", "body", material=graph.add("material_library", "matter"), size=(0.1, 0.1, 0.2), rotation=(0.0, 0.0, 30.0)
    )
    stream = graph.add("emit_stream", "stream", template=body, velocity=(0.0, -1.0, 0.0))
    graph.add("solve", "solve", emitters=[stream], gravity=(0.0, 0.0, 0.0))
    run = execute(graph)
    assert any("copies of it would leave gaps of up to" in text for text in run.warnings)
    came = len(run.outputs["solve"]["particles"])
    assert came > 0 and expected(graph) == pytest.approx(came, rel=0.1)


def cylinder(path: Path, height: float) -> Path:
    """Write a lying disc of 0.2 m across as USD."""
    from pxr import Usd, UsdGeom

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, "Y")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh, turns = UsdGeom.Mesh.Define(stage, "/disc"), np.linspace(0.0, 2.0 * np.pi, 33)[:-1]
    rings = [(0.1 * np.cos(t), y, 0.1 * np.sin(t)) for y in (0.5 * height, -0.5 * height) for t in turns]
    sides = [[n, (n + 1) % 32, 32 + (n + 1) % 32, 32 + n] for n in range(32)]
    faces = [list(range(32))[::-1], list(range(32, 64)), *sides]
    mesh.CreatePointsAttr(rings)
    mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
    mesh.CreateFaceVertexIndicesAttr([corner for face in faces for corner in face])
    stage.Save()
    return path


TEMPLATES = {
    "disc": ("emit_mesh", {}),
    "ball": ("emit_sphere", {"radius": 0.1}),
    "flat": ("emit_box", {"size": (0.2, 0.05, 0.2)}),
    "askew": ("emit_box", {"size": (0.2, 0.05, 0.2), "rotation": (30.0, 0.0, 0.0)}),
    "two": ("emit_box", {"size": (0.1, 0.1, 0.1)}),
}


@pytest.mark.parametrize(("name", "cell", "off"), [*((name, 0.08, 0.01) for name in TEMPLATES), ("disc", 0.01, 0.03)])
def test_the_estimate_of_a_stream_is_what_comes_whatever_its_template(tmp_path: Path, monkeypatch, name, cell, off):
    """To 1 % of a disc from a mesh, a ball, a flat box, one askew, two boxes in one; to 3 % where few points stand for many."""
    from mpm_nodes.graph.cook.evaluator import Evaluator
    from mpm_nodes.graph.time.clock import Clock
    from mpm_nodes.solver.metering import emission_of

    if cell < 0.05:
        monkeypatch.setattr("mpm_nodes.nodes.seeding.FEW_SEEDS", 0)
    graph = Graph(cell_size=cell, start=1, end=24)
    kind, knobs = TEMPLATES[name]
    knobs = knobs | ({"path": cylinder(tmp_path / "disc.usda", 0.05)} if kind == "emit_mesh" else {})
    matter = graph.add("material_library", "matter")
    body = graph.add(kind, "body", material=matter, **knobs)
    if name == "two":
        other = graph.add(kind, "other", material=matter, centre=(0.3, 0.0, 0.0), **knobs)
        body = graph.add("merge_particles", "both", sources=[body, other])
    stream = graph.add("emit_stream", "stream", template=body, velocity=(0.0, -1.0, 0.0))
    graph.add("solve", "solve", emitters=[stream], gravity=(0.0, 0.0, 0.0))
    run = emission_of(Evaluator(graph).value("stream", 1), np.zeros(1, np.int32), Clock.of(graph.settings, 1.0))
    came = len(run.between(-1.0, 23.0 / 24.0)["position"])
    assert came > 100 and expected(graph) == pytest.approx(came, rel=off)


def told_problem(graph: Graph) -> str:
    """Return why a graph is refused before the cook."""
    with pytest.raises(MpmNodesError) as refused:
        preflight.estimate(plan_graph(graph), graph.settings.start)
    return str(refused.value)


@pytest.mark.parametrize("kind", ["emit_mesh", "emit_sphere"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_body_too_small_for_any_particle_is_refused_before_the_cook(tmp_path: Path, kind, stream):
    """A ball and a thin disc between the points of the lattice; what fits is not refused."""
    graph = Graph(cell_size=0.2, start=1, end=2)
    shape = {"path": cylinder(tmp_path / "disc.usda", 0.02)} if kind == "emit_mesh" else {"radius": 0.04}
    body = graph.add(kind, "body", material=graph.add("material_library", "matter"), **shape)
    flow = {"emitters": [graph.add("emit_stream", "stream", template=body)]} if stream else {"sources": [body]}
    graph.add("solve", "solve", **flow)
    said = told_problem(graph)
    assert "no particle fits" in said and "spacing of 0.1 m" in said
    smaller = Graph(cell_size=0.02, start=1, end=2)
    smaller.add(kind, "body", material=smaller.add("material_library", "matter"), **shape)
    assert preflight.estimate(plan_graph(smaller), 1)["body"]["particles"] > 0


def test_a_name_that_no_particle_has_is_refused_by_the_cache_before_the_cook():
    """Names of the table, and those of the particles, are not."""
    graph = scene("jelly", 0.1)
    graph.add("write_cache", "cache", particles="solve.particles", attributes=("velocity", "tempreature"))
    assert "'tempreature' is not an attribute" in told_problem(graph)
    for right in (("velocity", "temperature"), ("*",), ()):
        graph.set("cache.attributes", right)
        preflight.estimate(plan_graph(graph), 1)


def test_the_estimate_of_drops_is_what_comes_by_the_last_frame():
    """Four of ten copies are due by then."""
    graph = Graph(cell_size=0.05, start=1, end=10)
    body = graph.add("emit_box", "body", material=graph.add("material_library", "matter"), size=(0.1, 0.1, 0.1))
    drops = graph.add("emit_drops", "drops", template=body, count=10, interval=3.0, velocity=(5.0, 0.0, 0.0))
    graph.add("solve", "solve", emitters=[drops], gravity=(0.0, 0.0, 0.0))
    assert expected(graph) == 4 * 64 == len(execute(graph).outputs["solve"]["particles"])


def test_a_flood_is_refused_before_it_comes():
    """A stream of 3e10 particles does not validate; where walls delete, how many stay is not known and it is said instead."""
    flood = stream((0.0, -1e5, 0.0), end=25, gravity=(0.0, 0.0, 0.0))
    estimates = preflight.estimate(plan_graph(flood), 1)
    assert estimates["solve"]["particles"] == pytest.approx(512 * 1e6, rel=1e-6)
    with pytest.raises(preflight.GraphError, match="solve: needs about 307 GB of memory"):
        preflight.check_memory(estimates, flood.settings, free=16 << 30)
    flood.set("solve.wall_y_low", "delete")
    assert "not in the estimate" in "".join(told(flood)) and expected(flood) == 0
    part = preflight.estimate(plan_graph(stream((0.0, -1e5, 0.0), end=25)), 1, last=2)
    assert part["solve"]["particles"] == pytest.approx(512 * 1e6 / 24, rel=1e-6)


def test_small_voxels_are_in_the_estimate():
    """Voxels an eighth as wide cost memory and disk some hundred times as much, and no more than `largest` allows."""
    graph = Graph(cell_size=0.02, start=1, end=2)
    body = graph.add("emit_box", "body", material=graph.add("material_library", "matter"), size=(0.4, 0.4, 0.4))
    tint = graph.add("colour_particles", "tint", particles=body)
    for kind in ("surface_particles", "density_volume", "velocity_volume"):
        graph.add(kind, kind, particles=tint)

    def need(voxel: float, kind: str, fact: str = "memory") -> int:
        graph.set(f"{kind}.voxel_size", voxel)
        return preflight.estimate(plan_graph(graph), 1)[kind][fact]

    for kind in ("surface_particles", "density_volume", "velocity_volume"):
        assert 50 * need(0.0, kind) < need(0.01 / 8, kind) < 512 * need(0.0, kind)
        assert need(1e-6, kind) == need(1e-7, kind) < 101 * 2e8
    assert need(0.0, "velocity_volume", "voxels") == 3 * need(0.0, "density_volume", "voxels")
    assert need(0.0025, "surface_particles", "mesh_points") > 157_580  # what this box is wrapped in


@pytest.mark.parametrize("kind", ["collide_usd", "emit_mesh"])
def test_a_sheet_without_thickness_is_refused_before_the_cook(kind, tmp_path):
    """A plane has no inside: said by validation, with the cure, and not after the first frames; with a thickness it is fine."""
    plane = tmp_path / "plane.usda"
    plane.write_text(
        '#usda 1.0\n(\nmetersPerUnit = 1\nupAxis = "Y"\n)\n'
        'def Mesh "plane" {\n point3f[] points = [(0,0,0), (1,0,0), (1,0,1), (0,0,1)]\n'
        " int[] faceVertexCounts = [4]\n int[] faceVertexIndices = [0, 1, 2, 3]\n}\n"
    )
    graph = Graph(cell_size=0.1, start=1, end=2)
    matter = {"material": graph.add("material_library", "matter", name="snow")} if kind == "emit_mesh" else {}
    graph.add(kind, "thin", path=str(plane), **matter)
    with pytest.raises(MpmNodesError, match=r"thin: .*is a sheet, it has no inside \(4 open edges\); give it a thick"):
        preflight.estimate(plan_graph(graph), 1)
    graph.set("thin.thickness", 0.2)
    preflight.estimate(plan_graph(graph), 1)


@pytest.mark.phenomena("heat", "surface_tension")
def test_nodes_in_between_pass_on_what_is_known():
    """A temperature or a contact angle on the way changes neither particles and bodies nor the points of a collider."""
    graph = Graph(cell_size=0.05, start=1, end=2)
    matter = graph.add("material_library", "matter", name="jelly")
    body = graph.add("emit_box", "body", material=matter, size=(0.4,) * 3)
    warm = graph.add("set_temperature", "warm", particles=body)
    head = graph.add("collide_usd", "head", path=str(DOCS.parent / "samples/monkey.usdc"))
    hot = graph.add("collider_temperature", "hot", collider=head)
    wet = graph.add("collider_contact_angle", "wet", collider=hot)
    graph.add("solve", "solve", sources=[warm], colliders=[wet])
    told = preflight.estimate(plan_graph(graph), 1)
    assert told["solve"]["particles"] == told["body"]["particles"] > 4000 and told["warm"]["bodies"] == told["body"]["bodies"]
    assert told["wet"]["mesh_points"] == told["head"]["mesh_points"] > 500


def test_the_voxels_of_a_mesh_collider_are_in_the_estimate():
    """Half the voxel size takes four times the memory; the size that the node chooses itself is half a cell."""
    graph = Graph(cell_size=0.05, start=1, end=2)
    graph.add("collide_usd", "head", path=str(DOCS.parent / "samples/monkey.usdc"))

    def memory(voxel: float) -> int:
        graph.set("head.voxel_size", voxel)
        return preflight.estimate(plan_graph(graph), 1)["head"].get("memory", 0)

    assert memory(0.0) == memory(0.025) and memory(0.001) == pytest.approx(4 * memory(0.002), rel=1e-6) and memory(0.001) > 1 << 30


@pytest.mark.phenomena("foam", "heat")
@pytest.mark.parametrize(
    ("radius", "length", "substeps", "cells"),
    [
        (0.02, 0.5, "explicit_apic", 3),  # 0.8 cells
        (0.09, 0.5, "explicit_apic", None),  # 3.6 cells: the quadratic spline does not reach around
        (0.09, 0.5, "continuum_foam", 4),  # the cubic one does
        (0.09, 0.5, "auto", None),
        (0.02, 0.02, "explicit_apic", None),  # a pea
    ],
)
def test_a_rod_that_splines_reach_around_is_told(radius, length, substeps, cells):
    """A capsule thinner than the splines of the solve, said with its name, its thickness and the cure; also behind other nodes."""
    graph = Graph(cell_size=0.05, start=1, end=2)
    body = graph.add("emit_box", "body", material=graph.add("material_library", "matter", name="jelly"), size=(0.1,) * 3)
    pin = graph.add("collide_capsule", "pin", radius=radius, length=length, name="needle")
    hot = graph.add("collider_temperature", "hot", collider=pin)
    graph.add("solve", "solve", sources=[body], colliders=[hot], substeps=substeps)
    said = [text for text in told(graph) if "needle" in text]
    assert len(said) == (cells is not None)
    for text in said:
        assert f"below {cells} cells" in text and f"{2 * radius:.3g} m" in text and "settings.cell_size" in text


def test_drops_count_for_the_frames_that_they_are_there():
    """Three copies at frames 1, 5 and 9 of 10 are there for 10, 6 and 2 of them: 1.8 copies in the mean."""
    graph = Graph(cell_size=0.025, start=1, end=10)
    matter = graph.add("material_library", "matter", name="water")
    body = graph.add("emit_box", "body", material=matter, size=(0.1, 0.1, 0.1))
    drops = graph.add("emit_drops", "drops", template=body, count=3, start_frame=1.0, interval=4.0)
    graph.add("solve", "solve", emitters=[drops])
    found = preflight.estimate(plan_graph(graph), 1)
    each = found["body"]["particles"]
    assert found["drops"]["particles"] == 3 * each and found["drops"]["mean_particles"] == int(1.8 * each)


@pytest.mark.parametrize("port", ["mesh", "volumes", "collider"])
def test_a_missing_openvdb_is_told_before_the_cook(monkeypatch, port):
    """A surface, volumes that are written and a collider from a file each name the node that needs it, and what to install."""

    def absent():
        raise InputError(f"OpenVDB: none; {openvdb_module.openvdb_cure()}")

    graph = scene("jelly", 0.2)
    if port == "mesh":
        graph.add("surface_particles", "skin", particles="solve.particles")
    elif port == "volumes":
        fog = graph.add("density_volume", "fog", particles="solve.particles")
        graph.add("write_cache", "skin", volumes=[fog])
    else:
        graph.add("collide_vdb", "skin", path="none.####.vdb", sequence=True)
    monkeypatch.setattr(openvdb_module, "find_openvdb", absent)
    with pytest.raises(MpmNodesError, match=r"(?s)skin.*OpenVDB.*install"):
        preflight.estimate(plan_graph(graph), graph.settings.start)
