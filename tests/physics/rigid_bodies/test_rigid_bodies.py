"""Rigid bodies: what moves them, and that a cook moves them as a solver of one's own does, and resumes to the same bits."""

from __future__ import annotations

import dataclasses
import itertools
import sys

import numba
import numpy as np
import pytest
from rigid_scenes import splash, usd_mesh, world_of
from solver_scenes import JELLY, LIQUID, cube, shot

from mpm_nodes.data import FrameContext, MpmNodesError, RigidMotion
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.nodes.collide import collide_box, collide_capsule, collide_sphere
from mpm_nodes.physics.rigid_bodies.nodes.rigid_bodies import moved_body, rigid_body
from mpm_nodes.physics.rigid_bodies.numerics.bodies import speed_of_keys
from mpm_nodes.physics.rigid_bodies.numerics.coupled_bodies import CoupledBodies
from mpm_nodes.physics.rigid_bodies.numerics.world import RigidWorld
from mpm_nodes.physics.rigid_bodies.problems.rigid_bodies import (
    FloatingBalls,
    HangingBodies,
    MomentumWithBodies,
    RigidBounces,
    RollingBall,
    SphereInViscousBath,
    bodies_of,
    rigid,
    whole,
)
from mpm_nodes.physics.rigid_bodies.problems.rigid_contacts import BodiesInHollows, MovingSurfaces
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.walls import WallSet

FIRST = FrameContext(1)


@pytest.mark.parametrize("problem", [RigidBounces, RollingBall, HangingBodies, MovingSurfaces, BodiesInHollows])
def test_bodies_alone(problem):
    """They fall, bounce, roll and slide, on surfaces that move, and in hollows."""
    for record in problem().records():
        assert record.passed or record.known, record


def test_what_a_body_loses_matter_gets():
    """The first four of the collisions of `momentum_with_bodies`."""
    for finding in itertools.islice(MomentumWithBodies().findings(), 8):
        assert finding.passed, finding


@pytest.mark.slow
@pytest.mark.parametrize("problem", [MomentumWithBodies, FloatingBalls, SphereInViscousBath])
def test_bodies_in_matter(problem):
    """Momentum is kept, and balls float."""
    for record in problem().records():
        assert record.passed or record.known, record


def test_mass_and_inertia_follow_from_the_shape():
    """Those of a box, a ball, a capsule, and of the mesh of a box, which turns as the box does."""
    spin = {"angular_velocity": (2.0, 3.0, 5.0)}
    box = collide_box(FIRST, centre=(1.0, 2.0, 3.0), size=(0.2, 0.4, 0.6), rotation=(10.0, 20.0, 30.0))
    momenta = world_of(rigid(box, 500.0, velocity=(1.0, 0.0, 0.0), **spin)).momenta()[0]
    mass = 500.0 * 0.2 * 0.4 * 0.6
    assert momenta[:3] == pytest.approx([mass, 0.0, 0.0])
    moments = mass / 12.0 * np.array([0.4**2 + 0.6**2, 0.2**2 + 0.6**2, 0.2**2 + 0.4**2])
    turn = np.linalg.qr(box.mesh.points[[4, 2, 1]].T - box.mesh.points[[0]].T)[0]
    assert momenta[3:] == pytest.approx(turn @ (moments * (turn.T @ spin["angular_velocity"])))
    ball = world_of(rigid(collide_sphere(FIRST, radius=0.3), 700.0, **spin)).momenta()[0]
    assert ball[3:] == pytest.approx(0.4 * 700.0 * 4.0 / 3.0 * np.pi * 0.3**5 * np.array(spin["angular_velocity"]))
    rod = rigid(collide_capsule(FIRST, radius=0.1, length=0.5), 700.0, velocity=(0.0, 1.0, 0.0))
    assert world_of(rod).momenta()[0, 1] == pytest.approx(700.0 * np.pi * (0.01 * 0.5 + 4.0 / 3.0 * 0.001))


def test_a_mesh_tumbles_as_the_box_that_it_is(tmp_path):
    """A box of a USD file, which lies off its origin, falls and tumbles as `collide_box` does."""
    from pxr import Usd, UsdGeom

    from mpm_nodes.nodes.collider_motion import box_mesh

    shape = box_mesh((0.2, 0.4, 0.6))
    stage = Usd.Stage.CreateNew(str(tmp_path / "box.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    mesh = UsdGeom.Mesh.Define(stage, "/box")
    mesh.CreatePointsAttr([tuple(map(float, point + [1.0, 2.0, 3.0])) for point in shape.points])
    mesh.CreateFaceVertexCountsAttr(shape.counts.tolist())
    mesh.CreateFaceVertexIndicesAttr(shape.indices.tolist())
    stage.Save()
    graph = shot(end=2, centre=(9.0, 9.0, 9.0))
    graph.add("collide_usd", "mesh", path=str(tmp_path / "box.usda"))
    graph.add("collide_box", "box", centre=(1.0, 2.0, 3.0), size=(0.2, 0.4, 0.6))
    cook = Evaluator(graph)
    motion = {"velocity": (1.0, 0.0, 0.0), "angular_velocity": (2.0, 3.0, 5.0)}
    worlds = [world_of(rigid(cook.value(name, 1), 500.0, **motion)) for name in ("mesh", "box")]
    for _ in range(100):
        for world in worlds:
            world.go_on()
            world.advance(1e-3, (0.0, -9.81, 0.0), np.zeros((1, 6)))
    (one, other), (a, b) = [world.centres() for world in worlds], [world.twists() for world in worlds]
    assert one == pytest.approx(other, abs=1e-6) and a == pytest.approx(b, abs=1e-5)
    assert a[0, 3:] != pytest.approx([2.0, 3.0, 5.0], abs=0.1)  # it does tumble


@pytest.mark.parametrize("substeps", ["explicit_apic", "implicit_apic", "incompressible"])
def test_a_light_body_is_carried_without_swinging(substeps):
    """A ball a hundred times lighter than the jelly that it lies on goes along with it: its velocity does not jump to and fro."""
    ball = rigid(collide_sphere(FIRST, centre=(0.15, 0.43, 0.15), radius=0.15), 10.0)
    run = SubstepSolver(cube(JELLY), substeps, cell_size=0.1, dtype=np.float64, colliders=[ball], gravity=(0.0, 0.0, 0.0))
    velocity = run.particles.unpack("velocity")
    run.particles.pack("velocity", velocity + [0.0, 1.0, 0.0])
    heights, dt = [], 2e-3
    for _ in range(40):
        run.step(dt)
        heights.append(bodies_of(run).world.twists()[0, 1])
    assert np.diff(heights).min() > -0.05 and 0.9 < heights[-1] <= max(heights) < 1.1


@pytest.mark.parametrize("density", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_a_thin_plate_in_matter_is_not_thrown(density, speed):
    """Particles that cross a plate of a tenth of a cell do not make it faster than they are, and momentum is kept."""
    plate = rigid(collide_box(FIRST, centre=(0.16, 0.12, 0.15), size=(0.2, 0.01, 0.2)), density)
    run = SubstepSolver(cube(JELLY), cell_size=0.1, dtype=np.float64, colliders=[plate], gravity=(0.0, 0.0, 0.0))
    run.particles.pack("velocity", run.particles.unpack("velocity") + [0.0, -speed, 0.3])
    before, fastest = whole(run)[0], 0.0
    for _ in range(60):
        run.step(2e-3)
        fastest = max(fastest, float(np.linalg.norm(bodies_of(run).world.twists()[0, :3])))
    assert fastest < 1.1 * np.hypot(speed, 0.3)
    assert whole(run)[0] == pytest.approx(before, abs=1e-11 * np.abs(before).max())


@pytest.mark.parametrize("substeps", ["explicit_apic", "implicit_apic", "incompressible"])
def test_threads_fusion_and_checked_mode_change_nothing(substeps):
    """The same bits on one thread and two, fused and not; and checked mode finds that what bodies ask of matter is declared."""
    found = []
    for threads, more in ((1, {}), (2, {}), (2, {"checked": True}), (2, {"fuse": False})):
        before = numba.get_num_threads()
        numba.set_num_threads(min(threads, before))
        ball = rigid(collide_sphere(FIRST, centre=(0.12, 0.41, 0.15), radius=0.12, friction=0.4), 900.0, velocity=(0.5, -2.0, 0.0))
        run = SubstepSolver(cube(LIQUID), substeps, cell_size=0.1, colliders=[ball], **more)
        for _ in range(6):
            run.step(2e-3)
        numba.set_num_threads(before)
        found.append((run.snapshot()["velocity"].tobytes(), bodies_of(run).world.state().tobytes()))
    assert found[0] == found[1] == found[2]
    assert np.frombuffer(found[3][1]) == pytest.approx(np.frombuffer(found[0][1]), rel=1e-4, abs=1e-5)


def test_implicit_substeps_press_a_body_as_explicit_ones_do():
    """A heavy ball that rubs falls on jelly: its path in implicit substeps goes to that of explicit ones, none of them halved."""
    paths = []
    for substeps, dt in (("explicit_apic", 5e-4), ("implicit_apic", 4e-3), ("implicit_apic", 1e-3)):
        ball = rigid(collide_sphere(FIRST, centre=(0.12, 0.43, 0.15), radius=0.12, friction=0.4), 3000.0, velocity=(0.0, -1.0, 0.0))
        run = SubstepSolver(cube(JELLY), substeps, cell_size=0.1, dtype=np.float64, colliders=[ball], gravity=(0.0, 0.0, 0.0))
        run.advance(0.08, dt)
        paths.append(bodies_of(run).world.centres()[0])
        assert substeps == "explicit_apic" or run.step_context.report["implicit"]["halved"] == 0
    assert paths[0][1] < 0.375
    assert [np.abs(path - paths[0]).max() < most for path, most in zip(paths[1:], (0.01, 0.0025), strict=True)] == [True, True], (
        paths
    )


def test_a_substep_that_is_halved_begins_where_it_began():
    """The bodies go over the shorter one from its beginning; auto tries both kinds of substeps and leaves no trace."""
    ball = rigid(collide_sphere(FIRST, centre=(2.0, 2.0, 2.0), radius=0.1), 1000.0, velocity=(1.0, 0.0, 0.0))
    run = SubstepSolver(cube(JELLY), "implicit_apic", cell_size=0.1, colliders=[ball], gravity=(0.0, 0.0, 0.0))
    run.step(1e-2)
    step = run.step_context
    for dt in (4e-2, 2e-2, 1e-2):
        step.dt = dt
        run.colliders.move_rigid_bodies(step)
    assert bodies_of(run).world.centres()[0, 0] == pytest.approx(2.01)
    auto = SubstepSolver(cube(JELLY), "auto", cell_size=0.1, colliders=[ball], gravity=(0.0, 0.0, 0.0))
    auto.advance(0.04)
    assert bodies_of(auto).world.centres()[0, 0] == pytest.approx(2.04)


def test_a_moved_body_holds_and_meets_matter_of_another_solve():
    """It is a collider like others there: of substeps that move no bodies, and of an attachment."""
    graph = splash()
    more = graph.add("emit_box", "more", material="matter", size=(0.2, 0.2, 0.2), centre=(0.02, 0.5, 0.0))
    pin = graph.add("force_attach", "pin", collider="there", stiffness=1e5)
    graph.add("solve", "other", sources=[more], colliders=["there"], forces=[pin], substeps="implicit_apic")
    evaluator = Evaluator(graph)
    preflight.estimate(evaluator.plan, 1)
    last = evaluator.value("other.particles", 5)["position"].mean(axis=0)
    body = evaluator.value("there", 5).shape.translations[-1]
    assert body[1] < 0.35 and np.abs(last - body).max() < 0.02, (last, body)


@pytest.mark.parametrize(
    ("pace", "substeps"), [(1.0, "explicit_apic"), (0.5, "explicit_apic"), (1.0, "implicit_apic"), (1.0, "incompressible")]
)
def test_a_cook_resumes_to_the_same_bits(tmp_path, pace, substeps):
    """In slow motion too: the state of the bodies is in the checkpoint; the cache draws them where the solve has them."""
    from pxr import Usd, UsdGeom

    graph = splash(time_scale=pace, substeps=substeps)
    whole = execute(graph, out=tmp_path / "whole")
    execute(graph, frames=(1, 3), out=tmp_path / "parts")
    parts = execute(graph, out=tmp_path / "parts", resume=True)
    files = [sorted(p for p in result.revision_folder.rglob("*.usdc") if p.is_file()) for result in (whole, parts)]
    assert [p.name for p in files[0]] == [p.name for p in files[1]] and len(files[0]) >= 6
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(*files, strict=True))
    stage = Usd.Stage.Open(str(whole.revision_folder / "cache.usda"))
    drawn = next(prim for prim in stage.Traverse() if prim.GetName().startswith("collider_"))
    middle = [np.mean(UsdGeom.Mesh(drawn).GetPointsAttr().Get(frame), axis=0)[1] for frame in range(1, 7)]
    fallen = 0.5 - np.array(middle)
    assert fallen[0] == pytest.approx(0.0, abs=1e-6) and np.diff(fallen)[:2].min() > 0.02
    seconds = pace / 24.0
    # kicks before drifts fall too far by g t dt / 2; under the projection matter is met a cell before the body
    assert substeps == "incompressible" or fallen[1] == pytest.approx(
        2.0 * seconds + 0.5 * 9.81 * seconds**2, abs=0.5 * 9.81 * seconds * 0.0105 + 1e-6
    )


def test_a_moved_body_has_its_mesh_and_its_normals_turned():
    """By the pose that the solve tells; a body that it does not have is told."""
    body = rigid_body(collide_box(FIRST, centre=(1.0, 0.0, 0.0), size=(0.2, 0.4, 0.6)), name="dice")
    half = np.sqrt(0.5)
    pose = np.array([[1.0, 0.0, 0.0, 0.0], [half, 0.0, 0.0, half]]), np.array([[1.0, 0.0, 0.0], [2.0, 3.0, 4.0]])
    moved = moved_body(body, RigidMotion({"dice": pose}, (0.0, 1.0 / 24.0)))
    assert moved.rigid is None and np.ptp(moved.mesh.points, axis=0) == pytest.approx([0.4, 0.2, 0.6])
    assert moved.mesh.points.mean(axis=0) == pytest.approx([2.0, 3.0, 4.0])
    turned = body.mesh.normals @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert moved.mesh.normals == pytest.approx(turned)
    with pytest.raises(MpmNodesError, match=r"moved_body: the solve moves no body 'dice'; it has stone"):
        moved_body(body, RigidMotion({"stone": pose}, (0.0, 1.0)))
    with pytest.raises(MpmNodesError, match=r"moved_body: the solve moves no body; it has dice"):
        moved_body(dataclasses.replace(body, rigid=None), RigidMotion({"dice": pose}, (0.0, 1.0)))


@pytest.mark.parametrize(
    ("kind", "knobs", "said"),
    [
        ("collide_plane", {}, "its collider is a plane"),
        ("collide_box", {"rule": "sticky", "clamp": True}, "its collider clamps"),
    ],
)
def test_what_cannot_move_is_refused_before_the_cook(tmp_path, kind, knobs, said):
    """Half spaces, what clamps."""
    graph = splash()
    graph.nodes["body"].inputs["collider"] = []
    graph.nodes["body"].connect("collider", [graph.add(kind, "other", **knobs)])
    with pytest.raises(MpmNodesError, match=f"rigid_body: {said}"):
        execute(graph, out=tmp_path)


def test_what_moves_no_bodies_is_refused_before_the_cook(tmp_path, monkeypatch):
    """Semi-implicit substeps, two bodies of one name, and an environment without MuJoCo."""
    semi = {"preset": "implicit_apic", "edits": [{"replace": "minimise_energy", "type": "semi_implicit_update", "knobs": {}}]}
    with pytest.raises(MpmNodesError, match="rigid_body: these substeps do not move bodies; take explicit_apic"):
        execute(splash(substeps=semi), out=tmp_path)
    graph = splash()
    twin = graph.add("rigid_body", "twin", collider=graph.add("collide_sphere", "ball", centre=(2.0, 1.0, 0.0)), name="dice")
    graph.nodes["sim"].connect("colliders", [graph["floor"], graph["body"], twin])
    with pytest.raises(MpmNodesError, match=r"rigid_body.name: two bodies of a solve are called 'dice'"):
        execute(graph, out=tmp_path)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MpmNodesError, match=r'rigid_body: MuJoCo.*pip install "mpm-nodes\[bodies\]"'):
        execute(splash(), out=tmp_path)


def test_bodies_push_bodies_and_walls_hold_them():
    """A stack of two boxes stands on a wall of the domain, half a hundredth of a cell deep at most."""
    from mpm_nodes.data import WallRule
    from mpm_nodes.verification.scenes import walled

    boxes = [
        collide_box(FIRST, name=name, centre=(0.0, y, 0.0), size=(0.2,) * 3, friction=0.5) for name, y in (("a", 0.1), ("b", 0.3))
    ]
    walls = walled((-1.0, 0.0, -1.0), (1.0, 9.0, 1.0), *[WallRule.SEPARATE] * 6)
    far = cube(JELLY, (0.6, 0.0, 0.6))
    run = SubstepSolver(far, "explicit_apic", cell_size=0.1, colliders=[rigid(box, 1000.0) for box in boxes], walls=walls)
    while run.time < 0.3:
        run.step(1e-3)
    world = bodies_of(run).world
    assert world.centres()[:, 1] == pytest.approx([0.1, 0.3], abs=0.004) and np.abs(world.twists()).max() < 0.01


def test_a_body_bounds_the_substep_where_it_may_meet_something():
    """A fast one passes through no cell of matter, and goes half of the way to it at once; matter is pushed as it comes."""
    for place, most in ((0.45, 0.5 * 0.1), (2.0, 0.9)):
        body = rigid(collide_sphere(FIRST, centre=(place, 0.15, 0.15), radius=0.1), 1000.0, velocity=(-50.0, 0.0, 0.0))
        run = SubstepSolver(cube(JELLY), "explicit_apic", cell_size=0.1, colliders=[body], gravity=(0.0, 0.0, 0.0))
        assert 0.3 * most <= 50.0 * run.step() <= most * (1.0 + 1e-9)
        run.advance(0.06)
        assert run.snapshot()["velocity"][:, 0].mean() < -1.0


def test_a_body_that_falls_out_of_the_scene_costs_nothing():
    """It falls past matter that stays, and past a ledge; then substeps are those of the matter. It is told once, not on a floor."""
    from mpm_nodes.nodes.collide import collide_plane

    ledge = collide_box(FIRST, centre=(5.0, -2.0, 0.0), size=(1.0, 0.2, 1.0))
    ball = rigid(collide_sphere(FIRST, centre=(3.0, -60.0, 0.0), radius=0.1), 1000.0, velocity=(0.0, -40.0, 0.0))
    for floor, told in (([], ["sphere"]), ([collide_plane(FIRST, centre=(0.0, -900.0, 0.0))], [])):
        run = SubstepSolver(cube(JELLY), "explicit_apic", cell_size=0.1, colliders=[ball, ledge, *floor])
        alone = SubstepSolver(cube(JELLY), "explicit_apic", cell_size=0.1)
        assert [run.step() for _ in range(3)] == pytest.approx([alone.step() for _ in range(3)])
        found = [bodies_of(run).newly_fallen(run.particles.box(), (0.0, -9.81, 0.0)) for _ in range(2)]
        assert found == [told, []]
    assert not bodies_of(run).world.fallen(run.particles.box(), np.zeros(3)).any()


# ---------------------------------------------------------------- what a shot asks of them
def test_a_cook_tells_once_of_a_body_that_has_fallen(tmp_path):
    """Off a ledge that the matter stays on: with the name of the body, and what it costs."""
    graph = splash()
    ledge = graph.add("collide_box", "ledge", centre=(0.0, -0.1, 0.0), size=(1.0, 0.2, 1.0), friction=0.3)
    graph.nodes["sim"].connect("colliders", [ledge, graph["body"]])
    graph.nodes["box"].knobs["centre"] = (3.0, 0.0, 0.0)
    graph.nodes["body"].knobs["velocity"] = (0.0, -20.0, 0.0)
    events = []
    execute(graph, out=tmp_path, on_event=events.append)
    (told,) = [each for each in events if each["event"] == "note" and "has fallen" in each["message"]]
    assert told["message"].startswith("rigid body 'dice' has fallen below all that it could meet")


def test_keys_move_a_body_until_the_solve_begins():
    """An animated drop is handed over at the start frame: before it the body follows its keys, after it they count no more, but
    for the speed that it has by them."""
    graph = splash(start_frame=4)
    keys = [[1, [0.02, 1.5, 0.0], "linear"], [4, [0.02, 0.5, 0.0], "linear"], [5, [9.0, 9.0, 0.0], "linear"]]
    graph.nodes["box"].knobs["centre"] = {"keys": keys}
    cook = Evaluator(graph)
    heights = [cook.value("there", frame).mesh.points[:, 1].mean() for frame in range(1, 5)]
    assert heights == pytest.approx([1.5, 1.5 - 1.0 / 3.0, 1.5 - 2.0 / 3.0, 0.5])
    speed = -1.0 / 3.0 * 24.0  # that of the keys goes on, and the velocity of the body is added
    thrown = splash()
    thrown.nodes["body"].knobs["velocity"] = (0.0, -2.0 + speed, 0.0)
    plain = Evaluator(thrown)
    for frame in (5, 6):
        assert cook.value("there", frame).mesh.points == pytest.approx(plain.value("there", frame - 3).mesh.points, abs=1e-4)


def test_keys_that_turn_a_body_set_it_spinning():
    """A turn by 90 degrees and a way of 1 m in half a second of the shot, in slow motion: twice as fast."""
    half = np.sqrt(0.5)
    box = collide_box(FIRST, size=(0.2, 0.4, 0.6))
    shape = dataclasses.replace(
        box.shape,
        pose_times=np.array([0.0, 0.5]),
        rotations=np.array([[1.0, 0.0, 0.0, 0.0], [-half, 0.0, -half, 0.0]]),
        translations=np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]),
    )
    assert speed_of_keys(shape) == pytest.approx([2.0, 0.0, 0.0, 0.0, np.pi, 0.0])
    body = rigid(dataclasses.replace(box, shape=shape), 1000.0, velocity=(0.0, 3.0, 0.0))
    bodies = CoupledBodies([body], pace=0.5)
    bodies.begin_frame([body], WallSet(None, np.zeros(3)), np.zeros(3), 0.1, 0.0)
    assert bodies.world.twists()[0] == pytest.approx([4.0, 3.0, 0.0, 0.0, 2.0 * np.pi, 0.0])


def test_a_moved_body_is_a_collider_of_another_solve(tmp_path):
    """Of one that moves no bodies, too; the rigid body itself is refused where its place is asked for."""
    graph = splash()
    again = graph.add("emit_box", "again", material=graph["matter"], size=(0.3,) * 3, centre=(0.0, 0.15, 0.0))
    graph.add("solve", "second", sources=[again], colliders=[graph["there"]], substeps="implicit_apic")
    inside = graph.add("field_collider", "inside", collider=graph["there"])
    graph.nodes["second"].connect("forces", [graph.add("force_attach", "tie", collider=graph["there"], mask=inside)])
    execute(graph, frames=(1, 1), out=tmp_path / "fits")
    for name in ("inside", "tie"):
        other = splash()
        field = other.add("field_collider", "inside", collider=other["body" if name == "inside" else "box"])
        tie = other.add("force_attach", "tie", collider=other["body" if name == "tie" else "box"], mask=field)
        other.nodes["sim"].connect("forces", [tie])
        with pytest.raises(MpmNodesError, match=r"collider: a rigid body is known as it begins, and not where a solve moves it"):
            execute(other, out=tmp_path / name)


def test_a_cache_of_a_body_that_is_not_moved_is_told(tmp_path):
    """It would be drawn where it begins, in every frame."""
    graph = splash()
    assert not execute(graph, frames=(1, 1), out=tmp_path / "moved").warnings
    graph.nodes["cache"].inputs["colliders"] = []
    graph.nodes["cache"].connect("colliders", [graph["body"]])
    (told,) = execute(graph, frames=(1, 1), out=tmp_path / "not").warnings
    assert "write_cache.colliders: 'dice' is drawn where it begins; wire a moved_body in between" in told


def test_matter_that_is_not_active_is_told(tmp_path):
    """It holds no bodies."""
    graph = splash()
    where = graph.add("field_constant", "where", value=1.0)
    graph.nodes["sim"].connect("active", [graph.add("active_mask", "mask", field=where)])
    (told,) = execute(graph, frames=(1, 1), out=tmp_path).warnings
    assert "solve.active: matter that is not active does not hold rigid bodies" in told


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("plain", "moved_body.collider: is not a rigid body"),
        ("absent", "moved_body: the solve moves no body 'dice'; it has none"),
        ("nameless", "rigid_body.name: is empty"),
        ("own", "the rigid body 'dice' hangs on itself"),
        ("circle", "the rigid body '(dice|other)' hangs on itself"),
    ],
)
def test_wires_that_lead_nowhere_are_refused_before_the_cook(tmp_path, fault, said):
    """`moved_body` of what the solve does not move, bodies without a name, joints in a circle."""
    graph = splash()
    if fault == "plain":
        graph.nodes["there"].inputs["collider"] = []
        graph.nodes["there"].connect("collider", [graph["floor"]])
    elif fault == "absent":
        graph.nodes["sim"].inputs["colliders"] = []
        graph.nodes["sim"].connect("colliders", [graph["floor"]])
    elif fault == "nameless":
        graph.nodes["body"].knobs["name"] = ""
    else:
        ball = graph.add("collide_sphere", "ball", centre=(2.0, 1.0, 0.0))
        other = graph.add("rigid_body", "other", collider=ball, name="other")
        up = graph.add("hinge_joint", "up", collider=graph["body"], parent=graph["body"] if fault == "own" else other)
        down = graph.add("ball_joint", "down", collider=other, parent=graph["body"])
        graph.nodes["sim"].inputs["colliders"] = []
        graph.nodes["sim"].connect("colliders", [graph["floor"], up, down])
    with pytest.raises(MpmNodesError, match=said) as error:
        execute(graph, out=tmp_path)
    assert "frame" not in str(error.value)


def test_a_first_body_comes_at_the_beginning(tmp_path):
    """A shot that had none is not cooked again with one from a frame on."""
    graph = splash()
    graph.nodes["sim"].connect("colliders", [graph["floor"]])
    body, cache = graph["body"], graph.nodes["cache"]
    del graph.nodes["there"]
    cache.inputs["colliders"] = []
    execute(graph, frames=(1, 3), out=tmp_path)
    graph.nodes["sim"].connect("colliders", [graph["floor"], body])
    with pytest.raises(MpmNodesError, match="the matter that is there has no rigid bodies"):
        execute(graph, again_from=3, out=tmp_path)


def test_walls_do_not_push_bodies_that_are_elsewhere():
    """What particles lose on their paths at a wall no body takes."""
    from mpm_nodes.data import WallRule
    from mpm_nodes.verification.scenes import walled

    ball = rigid(collide_sphere(FIRST, centre=(0.15, 2.0, 0.15), radius=0.1), 1000.0)
    walls = walled((0.0, 0.0, 0.0), (9.0, 9.0, 9.0), *[WallRule.SEPARATE] * 6)
    run = SubstepSolver(cube(JELLY), "explicit_apic", cell_size=0.1, colliders=[ball], walls=walls, gravity=(0.0, 0.0, 0.0))
    run.step(1e-4)
    run.particles.pack("velocity", np.tile([0.0, -90.0, 0.0], (run.particles.count, 1)))
    run.colliders.pose(run.time, run.time + 1e-3)
    run.colliders.collide_particles(run.particles)
    assert np.abs(run.particles.unpack("velocity")[:, 1]).min() == 0.0  # some met the wall
    assert not bodies_of(run).world.momenta().any()


def test_grains_fall_as_boulders_do():
    """Bodies of a tenth of a millimetre, and of 10 m, come to rest on a plane alike; MuJoCo takes so small masses for none."""
    from mpm_nodes.data import GraphSettings
    from mpm_nodes.nodes.collide import collide_plane

    ends = []
    for scale in (1e-3, 1.0, 1e2):
        first = FrameContext(1, settings=GraphSettings(cell_size=0.05 * scale))
        ball = rigid(collide_sphere(first, centre=(0.0, 0.12 * scale, 0.0), radius=0.1 * scale), 1000.0)
        world = world_of(ball, collide_plane(first), cell_size=0.05 * scale)
        for _ in range(400):
            world.go_on()
            world.advance(0.5 * np.sqrt(scale) / 400, (0.0, -9.81, 0.0), np.zeros((1, 6)))
        mass = 1000.0 * 4.0 / 3.0 * np.pi * (0.1 * scale) ** 3
        assert world.inverse_masses()[0, 0] == pytest.approx(1.0 / mass)
        ends.append(world.centres()[0, 1] / scale)
    assert ends == pytest.approx([ends[1]] * 3, abs=1e-6) and ends[1] == pytest.approx(0.1, abs=1e-3)


def test_a_flat_mesh_holds_bodies(tmp_path):
    """A floor that is one square of a set, with a thickness, as a plate of it does."""
    corners = [(x, 0.0, z) for x, z in ((-2, -2), (-2, 2), (2, 2), (2, -2))]
    graph = splash()
    flat = usd_mesh(tmp_path / "flat.usda", corners, [4], range(4))
    graph.add("collide_usd", "square", path=flat, thickness=0.1)
    cook = Evaluator(graph)
    ball = rigid(collide_sphere(FIRST, centre=(0.0, 0.16, 0.0), radius=0.1), 1000.0)
    world = world_of(ball, cook.value("square", 1))
    for _ in range(400):
        world.go_on()
        world.advance(2e-3, (0.0, -9.81, 0.0), np.zeros((1, 6)))
    assert world.centres()[0, 1] == pytest.approx(0.15, abs=0.026)


def test_a_mesh_whose_faces_look_inwards_is_turned(tmp_path):
    """As matter meets it: mass and inertia are those of the box that it is, one that is not welded, too."""
    from mpm_nodes.nodes.collider_motion import box_mesh

    box = box_mesh((0.2, 0.4, 0.6))
    faces = box.indices.reshape(-1, 4)[:, ::-1]
    graph = splash()
    paths = {
        "inwards": usd_mesh(tmp_path / "inwards.usda", box.points, box.counts, faces.ravel()),
        "apart": usd_mesh(tmp_path / "apart.usda", box.points[box.indices], box.counts, range(24)),
    }
    for name, path in paths.items():
        graph.add("collide_usd", name, path=path)
    cook, spin = Evaluator(graph), {"angular_velocity": (2.0, 3.0, 5.0)}
    moments = 500.0 * 0.048 / 12.0 * np.array([0.4**2 + 0.6**2, 0.2**2 + 0.6**2, 0.2**2 + 0.4**2])
    for name in paths:
        world = world_of(rigid(cook.value(name, 1), 500.0, **spin))
        assert world.momenta()[0, 3:] == pytest.approx(moments * spin["angular_velocity"], rel=1e-5)


def test_a_model_serves_while_nothing_changes():
    """Hulls of meshes are not made again in every frame; the speed of a motor makes a new one."""
    from mpm_nodes.data import JointKind, RigidJoint

    def hung(speed):
        joint = RigidJoint(JointKind.HINGE, "", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), None, speed, 1.0)
        return rigid(collide_box(FIRST, size=(0.2, 0.2, 0.2)), 1000.0, joint=joint)

    def world(collider, before=None):
        begins = [(collider.shape.rotations[-1], collider.shape.translations[-1])]
        return RigidWorld([collider], begins, np.zeros((1, 6)), WallSet(None, np.zeros(3)), (np.zeros(3), 0.1), before)

    first = world(hung(1.0))
    assert world(hung(1.0), first)._model is first._model and world(hung(2.0), first)._model is not first._model


def test_a_body_that_is_thrown_too_hard_ends_the_solve(tmp_path, monkeypatch):
    """It is not put back to its first place, and MuJoCo leaves no file behind."""
    from mpm_nodes.solver.divergence import SimulationDiverged

    monkeypatch.chdir(tmp_path)
    world = world_of(rigid(collide_sphere(FIRST, radius=1e-3), 1e-9))
    world.go_on()
    with pytest.raises(SimulationDiverged, match=r"rigid body 'sphere' was thrown .* raise its density"):
        world.advance(1e-3, (0.0, 0.0, 0.0), np.full((1, 6), 1.0))
    assert not list(tmp_path.iterdir())


def test_where_bodies_are_can_be_stored():
    """What a solve tells of its bodies comes back to the bit, for a cook that takes it from an earlier one."""
    turns, places = np.random.default_rng(1).random((2, 2, 4)), np.random.default_rng(2).random((2, 2, 3))
    forces = {"ground": places[0] + 1.0}
    told = RigidMotion({"stone": (turns[0], places[0]), "cube": (turns[1], places[1])}, (0.5, 0.75), forces)
    back = RigidMotion.from_arrays(*told.to_arrays())
    assert back.times == told.times and list(back.poses) == ["stone", "cube"]
    for name, pose in told.poses.items():
        for one, other in zip(pose, back.poses[name], strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(back.forces["ground"], forces["ground"])
    assert RigidMotion.from_arrays(*RigidMotion({}, (0.0, 1.0)).to_arrays()).poses == {}
