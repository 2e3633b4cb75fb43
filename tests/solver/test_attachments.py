"""Attachments: what is tied follows what holds it, breaks once, and goes on in a cook as in a solver of one's own."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot

from mpm_nodes.data import MpmNodesError, concatenate
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.kernels.fields import springs
from mpm_nodes.nodes.attachments import with_attachments
from mpm_nodes.nodes.fields import FieldShape, field_shape
from mpm_nodes.nodes.forces import force_wind
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from mpm_nodes.verification.attachments import CELL, GRAVITY, SQUARE, AttachedMatter, attached, borne, tied
from mpm_nodes.verification.quantities import column

STIFF = 1e6
"""Stiffness that brings what is tied back within a substep [N/m]."""


def test_closed_forms(monkeypatch):
    """Sag, period, breaking force, the force that is told, and free flight, in explicit substeps."""
    monkeypatch.setattr("mpm_nodes.verification.attachments.PRESETS", {"explicit_apic": "explicit_apic"})
    records = list(AttachedMatter().records())
    assert len(records) == 8
    for record in records:
        assert record.passed, record


def test_stiff_springs_hold_and_shorten_no_substep():
    """A stiffness without measure: the substeps are those of the matter alone, and it stays within a hundredth of a cell."""
    loose, held = (tied(forces) for forces in (lambda mass: [], lambda mass: [attached(stiffness=1e12, damping=0.0)]))
    steps = [[run.step(time_left=0.01) for _ in range(20)] for run in (loose, held)]
    assert steps[0] == pytest.approx(steps[1], rel=1e-6)
    assert np.abs(column(held, "position").mean(axis=0)).max() < 0.01 * CELL < -column(loose, "position").mean(axis=0)[1]


def test_finer_particles_hang_as_deep_and_bear_the_same():
    """A bar that is tied by its upper end, of cells of 0.1 and 0.05 m: it sags alike, holds at 0.95 of F, and breaks at 1.05."""
    upper, sags = field_shape(shape=FieldShape.HALF_SPACE, centre=(0.0, 0.6, 0.0), rotation=(180.0, 0.0, 0.0)), []
    still = force_wind(velocity=(0.0, 0.0, 0.0), drag=20.0)
    for size in (0.1, 0.05):
        start = cube(dataclasses.replace(JELLY, params={"youngs_modulus": 1e5}), cells=round(0.8 / size), cell_size=size)
        middle = np.abs(start["position"][:, 0] - 0.4) < 0.2
        start = dataclasses.replace(start, attributes={name: values[middle] for name, values in start.attributes.items()})
        mass = 0.8 * 0.8 * 0.4 * JELLY.density
        for share in (0.95, 1.05):
            force = attached(stiffness=SQUARE * mass, mask=upper, breaking_force=mass * GRAVITY / share)
            (source,), _ = with_attachments([start], [], [force])
            run = SubstepSolver(source, "explicit_apic", cell_size=size, gravity=lambda t: (0.0, -GRAVITY * min(2.0 * t, 1.0), 0.0))
            push(run, [still, force])
            assert (borne(run, 1.0)["broken"][0] > 0) == (share > 1.0)
            if share < 1.0:
                sags.append(0.7 - column(run, "position")[run.particles.unpack("attached_1") > 0, 1].mean())
    assert sags[0] == pytest.approx(GRAVITY / SQUARE, rel=0.02) and sags[1] == pytest.approx(sags[0], rel=0.02)


def test_broken_ties_stay_broken_and_keys_tie_anew():
    """What broke falls until the stiffness has been 0; what is above 0 again ties it where it is then."""
    keys = [(1, 1.0, "step"), (13, 0.0, "step"), (14, 1.0, "step")]

    def forces(mass):
        stiffness = KeyedNumber([(frame, SQUARE * mass * value, mode) for frame, value, mode in keys])
        breaking = KeyedNumber([(1, 0.5 * mass * GRAVITY, "step"), (13, 0.0, "step")])
        return [attached(stiffness=stiffness, breaking_force=breaking)]

    run = tied(forces)
    run.advance(0.25)
    state = run.particles.unpack("attached_1")
    assert (state == springs.BROKEN).all()
    run.advance(13.0 / 24.0 - run.time)
    begin = column(run, "position")[:, 1].mean()
    assert begin < -0.9 and column(run, "velocity")[:, 1].mean() == pytest.approx(-GRAVITY * (run.time - 0.06), rel=0.05)
    run.advance(1.5)
    assert (run.particles.unpack("attached_1") == 1).all() and np.abs(column(run, "velocity")).max() < 1e-3
    assert column(run, "position")[:, 1].mean() == pytest.approx(begin - GRAVITY / SQUARE, abs=1e-3)


def test_springs_are_damped_as_they_say():
    """In the first substep nothing is stretched: velocities fall by exp(-2 z f dt), and no damping breaks a tie."""
    for damping in (0.0, 0.5, 2.0):
        run = tied(
            lambda mass, damping=damping: [attached(stiffness=SQUARE * mass, damping=damping, breaking_force=1e-3)],
            gravity=(0.0, 0.0, 0.0),
            velocity=(0.0, 1.0, 0.0),
        )
        run.step(1e-3)
        assert column(run, "velocity")[:, 1] == pytest.approx(np.exp(-2.0 * damping * 20.0 * 1e-3), rel=1e-9)
        assert (run.particles.unpack("attached_1") == 1).all()
        run.step(1e-3)
        assert (run.particles.unpack("attached_1") == springs.BROKEN).all()


@pytest.mark.parametrize("breaks", [False, True])
def test_what_comes_later_is_tied_until_it_broke(breaks):
    """Particles that come in while springs hold are tied where they are; to broken ones they are not."""
    run = tied(lambda mass: [attached(stiffness=SQUARE * mass, breaking_force=0.1 * mass * GRAVITY if breaks else 0.0)])
    run.advance(0.1)
    more = cube(JELLY, (3.0, 0.0, 0.0), velocity=(0.0, 0.0, 0.0), mass=0.125, volume=1.25e-4)
    run.particles.append({**more.attributes, "id": run.particles.new_ids(len(more))})
    run.step(1e-3)
    new = run.particles.unpack("position")[:, 0] > 2.0
    state = run.particles.unpack("attached_1")
    assert new.sum() == len(more) and (state[new] == (springs.LEFT_OUT if breaks else 1)).all()
    assert (state[~new] == (springs.BROKEN if breaks else 1)).all()


def test_a_mask_says_what_is_tied_once():
    """Of two cubes the one in the mask; the other falls through it later and is not caught."""
    ball = field_shape(radius=0.4, centre=(0.15, 0.15, 0.15))
    start = concatenate([cube(JELLY), cube(JELLY, (0.05, 1.0, 0.05))])
    force = attached(mask=ball, stiffness=1e4)
    (source,), _ = with_attachments([start], [], [force])
    run = SubstepSolver(source, "explicit_apic", cell_size=0.1, dtype=np.float64, dt_max=2e-3)
    push(run, [force])
    run.advance(0.1)
    found = run.snapshot()
    low = found["position"][:, 1] < 0.5
    assert (found["attached_1"][low] == 1).all() and (found["attached_1"][~low] == springs.LEFT_OUT).all()
    assert found["velocity"][~low, 1] == pytest.approx(-0.1 * GRAVITY, rel=1e-6)
    assert borne(run, 0.01)["tied"].tolist() == [low.sum()]


def test_threads_and_checked_mode_change_nothing():
    """The same bits on one thread and two; and checked mode finds that what springs read and write is declared."""
    found = []
    for threads, checked in ((1, False), (2, False), (2, True)):
        before = numba.get_num_threads()
        numba.set_num_threads(min(threads, before))
        run = tied(lambda mass: [attached(stiffness=SQUARE * mass, breaking_force=0.4 * mass * GRAVITY)], velocity=(1.0, 0.0, 0.5))
        run.step_context.checked = checked
        for _ in range(60):
            run.step(2e-3)
        numba.set_num_threads(before)
        found.append(run.snapshot())
    assert (found[0]["attached_1"] == springs.BROKEN).all()
    for name in ("velocity", "attached_1", "attached_1_place"):
        assert np.array_equal(found[0][name], found[1][name]) and np.array_equal(found[0][name], found[2][name])


def test_a_solver_without_columns_says_so():
    run = SubstepSolver(cube(JELLY), "explicit_apic")
    with pytest.raises(MpmNodesError, match=r"needs the column 'attached_1'.*with_attachments"):
        push(run, [attached()])


# ---------------------------------------------------------------- cooks
def pinned(end, collider=(), **knobs):
    """Return a shot of a block of snow that is tied as a whole, to a collider where one is given: its type and knobs."""
    graph = shot(end=end, size=0.3, cell_size=0.1, precision="double", knobs={"youngs_modulus": 4e5})
    body = [graph.add(collider[0], "body", **collider[1])] if collider else []
    pin = graph.add("force_attach", "pin", **dict(zip(("collider",), body, strict=False)), **knobs)
    graph.nodes["sim"].connect("forces", [pin])
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["velocity", "id", "attached_1"])
    return graph


def places(out, frame):
    from usd_io.stage_reader import read_points

    found = read_points(next(out.rglob("cache.usda")), frame)
    return found["position"][np.argsort(found["id"])], found["attached_1"]


def turning_box(path):
    """Write a box that turns about its middle by 90 degrees and moves by a metre, from frame 1 to 25, as a rigid body."""
    Usd = pytest.importorskip("pxr.Usd")
    from pxr import UsdGeom, Vt

    from mpm_nodes.nodes.collider_motion import box_mesh

    stage, box = Usd.Stage.CreateNew(str(path)), box_mesh((0.2, 0.1, 0.3))
    stage.SetTimeCodesPerSecond(24.0)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/box")
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(box.points.astype(np.float32)))
    mesh.CreateFaceVertexCountsAttr(box.counts.tolist())
    mesh.CreateFaceVertexIndicesAttr(box.indices.tolist())
    move, turn = mesh.AddTranslateOp(), mesh.AddRotateYOp()
    for frame in range(1, 26):
        s = (frame - 1) / 24.0
        share = s * s * (3.0 - 2.0 * s)
        move.Set((share, 1.0, 0.0), frame)
        turn.Set(90.0 * share, frame)
    stage.GetRootLayer().Save()


@pytest.mark.parametrize(("kind", "pace"), [("collide_sphere", 1.0), ("collide_sphere", 0.5), ("collide_usd", 1.0)])
def test_a_collider_that_turns_and_moves_takes_matter_along(kind, pace, tmp_path):
    """Tied stiffly to a ball, or a mesh, that turns by 90 degrees and moves by a metre, a block ends up so; in slow motion, too."""
    centre = {"keys": [[1, [0.0, 1.0, 0.0], "smooth"], [25, [1.0, 1.0, 0.0], "smooth"]]}
    rotation = {"keys": [[1, [0.0, 0.0, 0.0], "smooth"], [25, [0.0, 90.0, 0.0], "smooth"]]}
    knobs = {"radius": 0.05, "centre": centre, "rotation": rotation}
    if kind == "collide_usd":
        turning_box(tmp_path / "box.usda")
        knobs = {"path": str(tmp_path / "box.usda")}
    graph = pinned(27, (kind, knobs), stiffness=STIFF)
    graph.nodes["sim"].knobs["time_scale"] = pace
    result = execute(graph, out=tmp_path / "out")
    (first, _), (last, state) = places(tmp_path / "out", 1), places(tmp_path / "out", 27)
    off = first - [0.0, 1.0, 0.0]
    turned = np.stack([off[:, 2], off[:, 1], -off[:, 0]], axis=1) + [1.0, 1.0, 0.0]
    assert (state > 0).all() and np.linalg.norm(last - turned, axis=1).max() < 0.01 and not result.warnings


def test_a_mesh_that_deforms_takes_matter_along(tmp_path):
    """A block on a sheet of two triangles that bends up: each side goes with its triangle."""
    Usd = pytest.importorskip("pxr.Usd")
    from pxr import UsdGeom, Vt

    stage = Usd.Stage.CreateNew(str(tmp_path / "hinge.usda"))
    stage.SetTimeCodesPerSecond(24.0)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/hinge")
    mesh.CreateFaceVertexCountsAttr([4, 4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 4, 3, 1, 2, 5, 4])
    for frame, lift in ((1, 0.0), (9, 0.1)):
        points = [(x, 0.8 + lift * abs(x) / 0.5, z) for z in (0.5, -0.5) for x in (-0.5, 0.0, 0.5)]
        mesh.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy(np.array(points, np.float32)), frame)
    stage.GetRootLayer().Save()
    knobs = {"path": str(tmp_path / "hinge.usda"), "thickness": 0.1}
    graph = pinned(13, ("collide_usd", knobs), stiffness=STIFF)
    graph.nodes["matter"].knobs["youngs_modulus"] = 1e4  # it yields to the springs
    execute(graph, out=tmp_path / "out")
    (first, _), (last, state) = places(tmp_path / "out", 1), places(tmp_path / "out", 13)
    assert (state > 0).all() and len(np.unique(state)) > 1
    normal = np.array([-0.2, 1.0]) / np.hypot(0.2, 1.0)  # of the right side
    right = first[:, 0] > 0.1
    height = first[right, 1] - 0.8
    exact = np.stack([first[right, 0] + normal[0] * height, 0.8 + 0.2 * first[right, 0] + normal[1] * height], axis=1)
    assert np.abs(last[right, :2] - exact).mean() < 0.01


def test_a_cook_resumes_to_the_same_bits(tmp_path):
    """Ties, broken ones too, and where they hold, go along in the checkpoint; the event tells the force."""
    told = []

    graph = pinned(10, stiffness=2000.0, damping=0.1, breaking_force=180.0)
    graph.nodes["block"].knobs["velocity"] = [0.5, 0.0, 0.0]
    graph.nodes["pin"].knobs["stiffness"] = {"keys": [[1, 2000.0, "step"], [9, 0.0, "step"]]}
    execute(graph, out=tmp_path / "whole", on_event=told.append)
    execute(graph, out=tmp_path / "cut", frames=(1, 5))
    execute(graph, out=tmp_path / "cut", frames=(1, 10), resume=True)
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) >= 10 and points[0] == points[1]
    facts = [each for each in told if each["event"] == "attachments"]
    assert len(facts) >= 8 and sum(each["broken"][0] for each in facts) > 0 and facts[3]["force"][1] < 0.0
    assert list(facts[-1]["tied"]) == [0]


def test_a_mask_beside_the_matter_is_told(tmp_path):
    """Once, and the shot goes on."""
    graph = pinned(4)
    graph.nodes["pin"].connect("mask", [graph.add("field_shape", "aside", centre=(9.0, 0.0, 0.0))])
    warnings = [str(each) for each in execute(graph, out=tmp_path).warnings]
    assert len(warnings) == 1 and "1 force_attach found no particle in the mask" in warnings[0]


@pytest.mark.phenomena("rigid_bodies")
def test_a_rigid_body_is_refused_before_the_cook(tmp_path):
    """It is elsewhere once the solve has moved it."""
    graph = pinned(3, ("collide_sphere", {"radius": 0.05, "centre": [0.0, 1.0, 0.0]}))
    graph.nodes["pin"].connect("collider", graph.add("rigid_body", "stone", collider="body"))
    with pytest.raises((MpmNodesError, GraphError), match=r"force_attach.collider: a rigid body is known as it begins"):
        execute(graph, out=tmp_path / "rigid")


def test_what_does_not_fit_is_refused_before_the_cook(tmp_path):
    """A mask of vectors; a sequence of level sets, which has no points."""
    graph = pinned(3)
    graph.nodes["pin"].connect("mask", [graph.add("field_vector", "wrong")])
    with pytest.raises((MpmNodesError, GraphError), match=r"force_attach.mask: is a field of vectors"):
        execute(graph, out=tmp_path / "vectors")
    from usd_io.openvdb_module import find_openvdb

    vdb = find_openvdb()
    for frame in (1, 2, 3):
        ball = vdb.createLevelSetSphere(radius=0.3, voxelSize=0.05)
        ball.name = "surface"
        vdb.write(str(tmp_path / f"ball.{frame:04d}.vdb"), [ball])
    graph = pinned(3, ("collide_vdb", {"path": str(tmp_path / "ball.0001.vdb"), "sequence": True}))
    with pytest.raises((MpmNodesError, GraphError), match=r"force_attach.collider: a sequence of level sets"):
        execute(graph, out=tmp_path / "sequence")
