"""Keys of every numeric knob of the registry: they change what they should, or validation refuses them by name."""

from __future__ import annotations

import dataclasses
import enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from stage_scenes import NO_PRESET, presets

from mpm_nodes.data import domain_names
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.declarations import NodeDeclaration, StageDeclaration
from mpm_nodes.graph.declare.knobs import NUMERIC, Knob
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.fusion import fused
from mpm_nodes.graph.plan.plan import plan_substeps
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.graph.time import keys
from mpm_nodes.solver.coefficients import KeyedMaterials
from mpm_nodes.solver.shared_loops import shared_loop
from usd_io.openvdb_module import find_openvdb

pytest.importorskip("pxr")
ALL = list(registries.default())
NODES = [(d, k) for d in ALL if isinstance(d, NodeDeclaration) for k in d.knobs if k.kind in NUMERIC]
STAGES = [(d, k) for d in ALL if isinstance(d, StageDeclaration) for k in d.knobs if k.kind in NUMERIC]
LAST = 3
"""Frame by which a keyed knob has reached its other value."""
OTHER = {"largest": 4e4, "adaptivity": 1.0, "flow_index": 0.6, "frame": 2.0, "time_scale": 0.5, "thickness": 0.2}
"""Second values where half as much again is not allowed or shows nothing."""


def name_of(value: Any) -> str:
    return getattr(value, "id", None) or getattr(value, "name", str(value))


def two_values(knob: Knob) -> tuple[Any, Any]:
    """Return a knob's default, and another value that it allows."""
    first = knob.json_default() if knob.json_default() is not None else 1
    if knob.kind == "vector":
        choices = [[component + (1 if knob.element is int else 0.15) for component in first]]
    elif knob.kind == "int":
        choices = [first + 2, first - 2]
    else:
        choices = [OTHER.get(knob.name, 1.5 * first + 0.1), 0.6 * first, 0.98 * first]
    other = next(value for value in choices if knob.fault(value) is None)
    assert knob.fault(first) is None and first != other, (knob.name, first, other)
    return first, other


def key_list(knob: Knob) -> dict[str, Any]:
    first, other = two_values(knob)
    return {"keys": [[1, first, "linear"], [LAST, other, "linear"]]}


def facts(value: Any) -> Any:
    """Return nested plain values that are equal for equal values."""
    if keys.carries_keys(value):
        return value.keys
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if dataclasses.is_dataclass(value):
        return [facts(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, dict):
        return {name: facts(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [facts(item) for item in value]
    return facts(vars(value)) if hasattr(value, "__dict__") and not callable(value) and not isinstance(value, enum.Enum) else value


# ---------------------------------------------------------------- files
@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """Write a turning ball, a mesh that grows, points that fly, over frames 1 to 6, a straight curve, and a picture."""
    from pxr import Sdf, Usd, UsdGeom, Vt

    from mpm_nodes.nodes.collider_motion import box_mesh

    folder, vdb = tmp_path_factory.mktemp("keyed"), find_openvdb()
    for frame in range(1, 7):
        ball = vdb.createLevelSetSphere(radius=0.3 + 0.02 * frame, voxelSize=0.05)
        ball.name = "surface"
        warm = vdb.FloatGrid(300.0)
        warm.copyFromArray(300.0 + frame + np.arange(20.0**3, dtype=np.float32).reshape((20,) * 3), ijk=(-10, -10, -10))
        warm.name, warm.transform = "temperature", vdb.createLinearTransform(0.05)
        vdb.write(str(folder / f"ball.{frame:04d}.vdb"), [ball, warm])
    for name, body in (("mesh", UsdGeom.Mesh), ("points", UsdGeom.Points)):
        stage = Usd.Stage.CreateNew(str(folder / f"{name}.usda"))
        stage.SetTimeCodesPerSecond(24.0)
        stage.SetStartTimeCode(1)
        stage.SetEndTimeCode(6)
        UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        prim, box = body.Define(stage, f"/{name}"), box_mesh((0.6, 0.6, 0.6))
        for frame in range(1, 7):
            prim.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy((box.points * (1.0 + 0.1 * frame)).astype(np.float32)), frame)
            if name == "points":
                prim.CreateWidthsAttr().Set(Vt.FloatArray([0.05] * 8), frame)
        if name == "mesh":
            values = UsdGeom.PrimvarsAPI(prim).CreatePrimvar("mask", Sdf.ValueTypeNames.FloatArray, "vertex")
            for frame in range(1, 7):
                values.Set([0.05 + 0.01 * (10.0 * frame + corner) for corner in range(8)], frame)
            prim.CreateFaceVertexCountsAttr().Set(box.counts.tolist())
            prim.CreateFaceVertexIndicesAttr().Set(box.indices.tolist())
        stage.GetRootLayer().Save()
    stage = Usd.Stage.CreateNew(str(folder / "curve.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    way = UsdGeom.BasisCurves.Define(stage, "/way")
    way.CreateTypeAttr("linear")
    way.CreatePointsAttr([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    way.CreateCurveVertexCountsAttr([2])
    stage.GetRootLayer().Save()
    pixels = np.arange(0, 250, 10, dtype=np.uint8).reshape(5, 5)
    Image.fromarray(pixels).save(folder / "picture.png")
    names = {
        "ball": "ball.0001.vdb",
        "mesh": "mesh.usda",
        "points": "points.usda",
        "curve": "curve.usda",
        "picture": "picture.png",
    }
    return {kind: folder / name for kind, name in names.items()}


PATHS = {"emit_level_set": "ball", "emit_mesh": "mesh", "collide_vdb": "ball", "collide_usd": "mesh"}
PATHS |= {"emit_stream": "curve", "deform_mesh": "mesh"}
PATHS |= dict.fromkeys(("read_points", "retime_points", "emit_secondary"), "points")
PATHS |= {"field_vdb": "ball", "field_primvar": "mesh", "field_image": "picture", "field_curve": "curve"}
TENSE = {"sampled_surface"}
"""Nodes that refuse matter without a surface tension."""


def scene(declaration: NodeDeclaration, files: dict[str, Path]) -> tuple[Graph, dict[str, Any]]:
    """Return a graph with the node `it`, fed with a small block where it wants something, and what it was given."""
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=LAST)
    matter = graph.add("material_liquid", "matter", bulk_modulus=1e4)
    if declaration.id in TENSE:
        matter = graph.add("material_surface_tension", "tense", material=matter)
    block = graph.add("emit_box", "block", material=matter, size=(0.2,) * 3, velocity=(1.0, 0.0, 0.0))
    if declaration.id == "emit_stream":  # a nozzle that moves
        graph.nodes["block"].knobs["centre"] = {"keys": [[1, [0.0, 1.0, 0.0], "linear"], [LAST, [0.1, 1.0, 0.0], "linear"]]}
    given: dict[str, Any] = {}
    if declaration.id in PATHS:
        given["path"] = str(files[PATHS[declaration.id]])
    given |= {"sequence": True, "interval": 1.0, "voxel_size": 0.01, "attribute": "mass"}
    for port in declaration.ports:
        if port.name == "material":
            given[port.name] = matter
        elif port.name in ("template", "particles"):
            given[port.name] = block
        elif port.name == "sources":
            given[port.name] = [block]
        elif port.name == "collider":
            given[port.name] = graph.add("collide_plane", "ground")
            if declaration.id.endswith("_joint"):
                given[port.name] = graph.add("rigid_body", "body", collider=graph.add("collide_sphere", "ball"))
        elif port.name in ("field", "a") and (not port.optional or declaration.category == "Force"):
            of_vectors = declaration.category == "Force" and declaration.id not in ("drain", "active_mask")
            given[port.name] = graph.add("field_vector" if of_vectors else "field_constant", "field")
    if declaration.id in ("deform_mesh", "label_pieces"):
        given["particles"] = graph.add("rest_positions", "rest", particles=block)
    if declaration.id == "update_attribute":
        given["attribute"] = "temperature"
    if declaration.id == "field_vdb":
        given["grid"] = "temperature"
    if declaration.id == "field_math":
        given["operation"] = "mix"
    if declaration.id == "solve":
        given |= {"substeps": {"preset": "explicit_apic"}, "dt_max": 4e-3, "wall_low": (-9.0, 0.9, -9.0)}
        given |= {"wall_high": (9.0, 1.1, 9.0), "wall_y_low": "separate", "wall_y_high": "slip"}
    given = {name: value for name, value in given.items() if declaration.port(name) or declaration.knob(name)}
    graph.add(declaration.id, "it", **given)
    return graph, given


def reached(graph: Graph, frame: int = LAST) -> Any:
    """Return all that the node `it` publishes at a frame, without states."""
    declaration, evaluator = graph.declaration("it"), Evaluator(graph)
    names = [output.name for output in declaration.outputs if output.name != "state"]
    return [facts(evaluator.value(f"it.{name}", frame)) for name in names]


def through_a_solve(graph: Graph, frame: int = LAST) -> Any:
    """Return the particles of a solve that the emitter `it` brings matter into."""
    graph.add("solve", "sim", emitters=[graph["it"]], dt_max=0.02)
    return facts(Evaluator(graph).value("sim.particles", frame))


def coefficients(graph: Graph, frame: int = LAST) -> Any:
    """Return the numbers of the material `it` as they reach a solve's kernels, through an emitter."""
    block = graph.add("emit_box", "carrier", material=graph["it"], size=(0.2,) * 3)
    particles = Evaluator(graph).value("carrier", 1)
    (law,) = KeyedMaterials(particles.materials, np.float32).at(frame)
    assert block is not None
    return law.coefficients.tolist(), law.viscosity, law.material.tear_threshold, law.material.recovery_time


def written(graph: Graph, folder: Path) -> Any:
    """Return the widths of the points that the cache `it` holds."""
    from pxr import Usd

    execute(graph, out=folder)
    stage = Usd.Stage.Open(str(next(folder.rglob("cache.usda"))))
    return list(stage.GetPrimAtPath("/cache/particles").GetAttribute("widths").Get(LAST))


@pytest.mark.parametrize(("declaration", "knob"), NODES, ids=name_of)
def test_keys_of_a_node_show_or_are_refused(declaration: NodeDeclaration, knob: Knob, files, tmp_path):
    """Keyed, the node (or the solve behind it) gives something else at frame 3 than with the first value; or it says no by name."""
    (plain, given), (keyed, _) = scene(declaration, files), scene(declaration, files)
    if knob.constant:
        keyed.nodes["it"].knobs[knob.name] = key_list(knob)
        (problem,) = [p for p in validate(keyed) if p.place == f"it.{knob.name}"]
        assert "cannot be keyframed" in problem.message and knob.constant in problem.message and problem.cure
        return
    curve = key_list(knob)
    if knob.name in given:  # the scene has a value of its own: begin there
        first = np.asarray(given[knob.name], float)
        other = (1.5 if knob.name == "dt_max" else 1.02) * first
        curve = {"keys": [[1, first.tolist(), "linear"], [LAST, other.tolist(), "linear"]]}
    else:
        plain.nodes["it"].knobs[knob.name] = curve["keys"][0][1]
    keyed.nodes["it"].knobs[knob.name] = curve
    assert validate(keyed) == []
    if declaration.id == "write_cache":
        assert written(plain, tmp_path / "plain") != written(keyed, tmp_path / "keyed")
    elif declaration.category == "Material":
        assert coefficients(plain) != coefficients(keyed)
    elif declaration.id in ("emit_stream", "emit_drops"):
        assert through_a_solve(plain) != through_a_solve(keyed)
    else:
        assert reached(plain) != reached(keyed)


SOURCES = {d.id for d in ALL if isinstance(d, NodeDeclaration) and d.category in ("Emit", "Cache")}
EMITTERS = [
    (d, k)
    for d, k in NODES
    if d.id in SOURCES and k.animatable and not k.keys_travel and any(o.name == "particles" for o in d.outputs)
]


@pytest.mark.parametrize(("declaration", "knob"), EMITTERS, ids=name_of)
def test_keys_of_a_solves_sources_are_refused(declaration: NodeDeclaration, knob: Knob, files):
    """What a solve takes at one frame only cannot be keyed: place, reason and cure; as the template of a stream it can."""
    graph, _ = scene(declaration, files)
    graph.nodes["it"].knobs[knob.name] = key_list(knob)
    graph.add("merge_particles", "merged", sources=[graph["it"]])
    graph.add("solve", "sim", sources=[graph["merged"]])
    (problem,) = validate(graph)
    assert problem.place == f"it.{knob.name}" and "keys would do nothing" in problem.message and "emit_stream" in problem.cure
    streamed, _ = scene(declaration, files)
    streamed.nodes["it"].knobs[knob.name] = key_list(knob)
    streamed.add("emit_stream", "stream", template=streamed["it"])
    streamed.add("solve", "sim", emitters=[streamed["stream"]])
    assert validate(streamed) == []


def homes(declaration: StageDeclaration) -> list[tuple[dict, str]]:
    """Return each preset that holds the stage, as a document, and the stage's name there; for those of no preset a wiring."""
    documents = presets().values() if declaration.id not in NO_PRESET else [NO_PRESET[declaration.id]()]
    return [
        (document, stage) for document in documents for stage, entry in document["nodes"].items() if entry["type"] == declaration.id
    ]


@pytest.mark.parametrize("fuse", [False, True], ids=["single", "fused"])
@pytest.mark.parametrize(("declaration", "knob"), STAGES, ids=name_of)
def test_keys_of_a_stage_reach_its_call(declaration: StageDeclaration, knob: Knob, fuse: bool):
    """In every preset, fused or not, the call of a substep at frame 1, 2 and 3 gets the knob as it is, or keys are refused."""
    found, (first, other) = homes(declaration), two_values(knob)
    assert found, f"{declaration.id} stands in no preset"
    for document, stage in found:
        entry = document["nodes"][stage]
        keyed = {**entry, "knobs": {**entry.get("knobs", {}), knob.name: key_list(knob)}}
        document = {**document, "nodes": {**document["nodes"], stage: keyed}}
        if knob.constant:
            with pytest.raises(GraphError, match=f"{knob.name}: .* cannot be keyframed: {knob.constant}"):
                plan_substeps(document, ("deformation",))
            continue
        plan = plan_substeps(document, ("deformation",))
        plan = fused(plan, shared_loop) if fuse else plan
        dispatch = plan.bind(dict.fromkeys(domain_names()), None)
        seen = []
        for frame in (1.0, 2.0, 3.0):
            dispatch.sample(frame)
            calls = zip(dispatch.stages, dispatch.calls, strict=True)
            given = [call.keywords.get("knobs", {planned.id: call.keywords}) for planned, call in calls]
            seen.append(next(each[stage][knob.name] for each in given if stage in each))
        assert (seen[0], seen[2]) == (pytest.approx(first), pytest.approx(other)) and seen[1] == knob.sample(key_list(knob), 2.0)


def test_hosts_are_told_what_can_be_keyed():
    """The specification of hosts has for every knob whether keys are allowed, and why not where a number has one value."""
    from mpm_nodes.hosts.spec import host_spec

    told = host_spec()
    records = {(d["id"], k["name"]): k for kind in ("nodes", "stages") for d in told[kind] for k in d["knobs"]}
    for declaration, knob in NODES + STAGES:
        record = records[declaration.id, knob.name]
        assert record["keyable"] is (knob.animatable and knob.kind in NUMERIC) and record["constant"] == knob.constant
        assert record["keyable"] or record["constant"]


# ---------------------------------------------------------------- keyed values
def test_a_keyed_value_is_its_first_one_to_whoever_does_not_know():
    """As a float or a tuple it is the first key's value, in JSON as well; it is equal only to one with the same keys."""
    import copy
    import json
    import pickle

    number = keys.KeyedNumber([[1, 2.0, "linear"], [3, 4.0, "linear"]])
    assert number * 2 == 4.0 and float(number) == 2.0 and json.dumps(number) == "2.0" and number.at(2) == 3.0
    assert number != 2.0 and number == keys.KeyedNumber(((1, 2.0, "linear"), (3, 4.0, "linear")))
    vector = keys.KeyedVector([[1, [0, 1, 2], "step"], [3, [3, 4, 5], "step"]])
    assert tuple(vector) == (0.0, 1.0, 2.0) and vector.at(3) == (3.0, 4.0, 5.0) and keys.at(vector, 1) == (0.0, 1.0, 2.0)
    for value in (number, vector):
        assert copy.deepcopy(value) == value == pickle.loads(pickle.dumps(value)) and len({value, copy.copy(value)}) == 1
    assert keys.at(5.0, 3) == 5.0
