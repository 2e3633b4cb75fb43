"""Fields and forces in the axes of bodies: of shapes, meshes and grids, within a frame, and what has no axes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import MpmNodesError, SpatialField
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.nodes.rotations import rotation_matrix
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.verification.moving_axes import ForcesInMovingAxes

PLACES = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 3))
TURN = {"keys": [[1, [0.0, 20.0, 0.0], "linear"], [3, [0.0, 140.0, 0.0], "linear"]]}
SHIFT = {"keys": [[1, [0.1, 0.0, 0.0], "linear"], [3, [0.5, 0.2, 0.0], "linear"]]}


def axes(frame: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rotation and the place of what TURN and SHIFT move."""
    share = 0.5 * (frame - 1.0)
    return rotation_matrix((0.0, 20.0 + 120.0 * share, 0.0)), np.array([0.1 + 0.4 * share, 0.2 * share, 0.0])


def shot(**knobs: Any) -> Graph:
    graph = Graph(cell_size=0.05, start=1, end=4)
    graph.add("collide_box", "body", size=(0.2, 0.1, 0.3), **{"centre": SHIFT, "rotation": TURN, **knobs})
    return graph


def value(graph: Graph, frame: float) -> SpatialField:
    return Evaluator(graph).value("it", int(np.ceil(frame)))


def test_closed_forms():
    """A thrust, an attraction and still air that move and turn, in every kind of substep."""
    for record in ForcesInMovingAxes().records():
        assert record.passed != record.known, record


@pytest.mark.parametrize("frame", [1.0, 1.4, 2.0, 2.93])
def test_fields_are_where_the_body_brings_them(frame):
    """A ramp along its x, a vector, and a ramp over the speed of particles, which stays what it is."""
    turn, there = axes(frame)
    graph = shot()
    graph.add(
        "field_moving",
        "it",
        collider=graph["body"],
        field=graph.add("field_ramp", "a", direction=(1, 0, 0), interpolation="endless"),
    )
    np.testing.assert_allclose(field_values(value(graph, frame), PLACES, frame), ((PLACES - there) @ turn)[:, 0], atol=1e-9)
    graph = shot()
    graph.add("field_moving", "it", collider=graph["body"], field=graph.add("field_vector", "a", vector=(1.0, 2.0, 3.0)))
    np.testing.assert_allclose(
        field_values(value(graph, frame), PLACES, frame), np.tile(turn @ [1.0, 2.0, 3.0], (500, 1)), atol=1e-9
    )
    graph = shot()
    graph.add("field_moving", "it", collider=graph["body"], field=graph.add("field_attribute", "a", attribute="velocity"))
    found = field_values(value(graph, frame), PLACES, frame, {"velocity": PLACES[::-1]})
    np.testing.assert_allclose(found, PLACES[::-1], atol=1e-9)  # in, and back again
    graph.add("field_math", "twice", a=graph["a"], b_value=2.0, operation="add")
    graph.add("field_moving", "more", collider=graph["body"], field=graph["twice"])
    found = field_values(Evaluator(graph).value("more", int(np.ceil(frame))), PLACES, frame, {"velocity": 0.0 * PLACES})
    np.testing.assert_allclose(found, np.tile(turn @ [2.0, 2.0, 2.0], (500, 1)), atol=1e-9)


def test_a_force_moves_with_its_mask_and_its_air(tmp_path):
    """The mask is in the axes; the wind blows along their x, faster by what the body goes there."""
    graph, frame = shot(), 2.3
    ball = graph.add("field_shape", "ball", centre=(0.3, 0.0, 0.0), radius=0.2)
    wind = graph.add("force_wind", "wind", mask=ball, velocity=(1.5, 0.0, 0.0), drag=4.0)
    graph.add("force_moving", "it", force=wind, collider=graph["body"])
    force = Evaluator(graph).value("it", 3)
    turn, there = axes(frame)
    inside = np.linalg.norm((PLACES - there) @ turn - [0.3, 0.0, 0.0], axis=1) < 0.2
    assert 0 < inside.sum() < 500
    np.testing.assert_array_equal(field_values(force.rate, PLACES, frame), 4.0 * inside)
    spin, drift = np.radians(60.0), np.array([0.2, 0.1, 0.0])  # a frame, which takes a second where no clock says otherwise
    around = spin * np.cross([0.0, 1.0, 0.0], PLACES - there)
    np.testing.assert_allclose(field_values(force.value, PLACES, frame), turn @ [1.5, 0.0, 0.0] + around + drift, atol=1e-9)


def test_a_body_that_stands_still_moves_nothing():
    """Then a force is in fixed axes, and no substep is cut for it."""
    from mpm_nodes.solver.forces import turns

    graph = shot(centre=(0.0, 1.0, 0.0), rotation=(0.0, 0.0, 90.0))
    graph.add(
        "force_moving", "it", force=graph.add("force_acceleration", "a", acceleration=(2.0, 0.0, 0.0)), collider=graph["body"]
    )
    force = Evaluator(graph).value("it", 3)
    np.testing.assert_allclose(field_values(force.value, PLACES, 3.0), np.tile([0.0, 2.0, 0.0], (500, 1)), atol=1e-12)
    assert turns([dataclasses.replace(force, name="it")], 2.0, 3.0) is None


def box(path: Path, deforms: bool) -> Path:
    """Write a box around (0, 1, 0) that turns about y by 45 degrees a frame from frame 1 on, or grows."""
    pytest.importorskip("pxr")
    from pxr import Usd, UsdGeom, Vt

    stage = Usd.Stage.CreateNew(str(path))
    stage.SetTimeCodesPerSecond(24.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh, shape = UsdGeom.Mesh.Define(stage, "/box"), box_mesh((0.4, 0.2, 0.2))
    mesh.CreateFaceVertexCountsAttr().Set(shape.counts.tolist())
    mesh.CreateFaceVertexIndicesAttr().Set(shape.indices.tolist())
    turn = UsdGeom.Xformable(mesh).AddRotateYOp()
    for frame in (1, 2, 3):
        points = shape.points * (1.0 + 0.1 * frame * deforms) + [0.0, 1.0, 0.0]
        mesh.CreatePointsAttr().Set(
            Vt.Vec3fArray.FromNumpy(points.astype(np.float32)), frame if deforms else Usd.TimeCode.Default()
        )
        turn.Set(45.0 * (frame - 1), frame)
    stage.Save()
    return path


def test_meshes_have_their_axes_in_their_middle(tmp_path):
    """As they stand at the first frame."""
    graph = Graph(cell_size=0.05, start=1, end=3)
    body = graph.add("collide_usd", "body", path=str(box(tmp_path / "a.usda", False)))
    graph.add("field_moving", "it", collider=body, field=graph.add("field_ramp", "a", direction=(1, 0, 0), interpolation="endless"))
    turn = rotation_matrix((0.0, 67.5, 0.0))
    found = field_values(value(graph, 2.5), PLACES, 2.5)
    np.testing.assert_allclose(found, ((PLACES - [0.0, 1.0, 0.0]) @ turn)[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("body", "force", "says"),
    [
        ("mesh", "force_vortex", r"force_moving\.collider: changes its shape, and has no axes"),
        pytest.param(
            *("rigid", "force_vortex", r"force_moving\.collider: a rigid body is known as it begins"),
            marks=pytest.mark.phenomena("rigid_bodies"),
        ),
        ("box", "force_goal", r"force_moving\.force: force_goal says by itself where it acts"),
        ("box", "force_attach", r"force_moving\.force: force_attach says by itself where it acts"),
    ],
)
def test_what_has_no_axes_is_told_before_the_cook(tmp_path, body, force, says):
    """Bodies that deform or that a solve moves, and forces that go by their particles."""
    if body == "rigid":
        pytest.importorskip("mujoco")
    graph = shot()
    if body == "mesh":
        graph.add("collide_usd", "other", path=str(box(tmp_path / "a.usda", True)))
    if body == "rigid":
        graph.add("rigid_body", "other", collider=graph["body"])
    graph.add("force_moving", "it", force=graph.add(force, "push"), collider=graph["body" if body == "box" else "other"])
    matter = graph.add("emit_box", "matter", material=graph.add("material_liquid", "water"))
    graph.add("solve", "solve", sources=[matter], forces=[graph["it"]])
    with pytest.raises(MpmNodesError, match=says):
        preflight.estimate(plan_graph(graph), 1)


def test_threads_and_resume_change_no_bit(tmp_path):
    """A vortex that a turning box takes along, and a drain that it sweeps."""
    graph = shot()
    whirl = graph.add("force_vortex", "whirl", centre=(0.2, 0.0, 0.0), axis=(1.0, 0.0, 0.0), strength=30.0, radius=0.2)
    wind = graph.add("force_wind", "still", velocity=(0.0, 0.0, 0.0), drag=5.0)
    forces = [graph.add("force_moving", f"moving{n}", force=each, collider=graph["body"]) for n, each in enumerate((whirl, wind))]
    swept = graph.add("field_moving", "swept", field=graph.add("field_shape", "ball", radius=0.1), collider=graph["body"])
    matter = graph.add("material_neo_hookean", "jelly", youngs_modulus=1e4)
    block = graph.add("emit_box", "block", material=matter, size=(0.4, 0.4, 0.4), centre=(0.3, 0.0, 0.0))
    solve = graph.add("solve", "solve", sources=[block], forces=forces, drains=[graph.add("drain", "gone", field=swept)])
    graph.add("write_cache", "cache", particles=solve)
    execute(graph, out=tmp_path / "whole")
    execute(graph, out=tmp_path / "cut", frames=(1, 2))
    most = numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(1)
    try:
        execute(graph, out=tmp_path / "cut", resume=True)
    finally:
        numba.set_num_threads(most)
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) == 4 and points[0] == points[1] and len({len(each) for each in points[0]}) > 1
