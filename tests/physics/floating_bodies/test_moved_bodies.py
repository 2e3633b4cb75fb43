"""Rigid bodies in projected substeps: momentum of the whole, one that is held, light ones in water, and what is refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from rigid_scenes import splash, usd_mesh
from solver_scenes import LIQUID, cube

from mpm_nodes.data import CollisionRule, FrameContext, JointKind, MpmNodesError, RigidJoint
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.preflight import estimate, warnings_of
from mpm_nodes.nodes.collide import collide_plane, collide_sphere
from mpm_nodes.physics.floating_bodies.problems.moved_bodies import MATTER, ProjectedBodies, momentum_lost, rise
from mpm_nodes.physics.projection.problems.bodies_in_water import BALLS
from mpm_nodes.physics.rigid_bodies.problems.rigid_bodies import rigid
from mpm_nodes.solver.contact_forces import CONTACT_FORCES
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.quantities import column, momentum
from mpm_nodes.verification.scenes import OPEN, SLIP, block, settle, walled

FIRST = FrameContext(1)


@pytest.mark.parametrize(
    ("name", "density", "rule", "bodies"),
    [("water", 10.0, "separate", 1), ("honey", 1000.0, "sticky", 1), ("rubber", 10.0, "slip", 1), ("water", 500.0, "separate", 2)],
)
def test_what_a_body_loses_matter_gets(name, density, rule, bodies):
    """To rounding, whatever solvers leave: light bodies and heavy ones, two one after the other."""
    assert momentum_lost(MATTER[name], density, CollisionRule(rule), bodies)[0] < 1e-11


@pytest.mark.slow
def test_bodies_under_the_projection():
    """All of `verify projected_bodies`."""
    for record in ProjectedBodies().records():
        assert record.passed or record.known, record


def test_a_light_ball_rises_as_fast_as_potential_flow_lets_it():
    """Ten times as light as water, off the nodes: without the water that it moves it would be six times too fast."""
    assert rise(BALLS["R = 3 h, a tenth of the density, off the nodes"]) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("viscosity", [0.0, 10.0])
@pytest.mark.parametrize("rule", ["separate", "sticky"])
def test_a_body_that_is_held_is_a_collider(viscosity, rule):
    """Matter falls on it as on a still one, bit by bit."""
    ball = collide_sphere(FIRST, centre=(0.12, -0.1, 0.15), radius=0.16, friction=0.3)
    ball = dataclasses.replace(ball, rule=CollisionRule(rule))
    liquid = cube(dataclasses.replace(LIQUID, params={"bulk_modulus": 2e4, "viscosity": viscosity}))
    found = []
    for each in (ball, rigid(ball, 1000.0, joint=RigidJoint(JointKind.FIXED))):
        run = SubstepSolver(liquid, "incompressible", cell_size=0.1, colliders=[each])
        run.advance(0.15)
        found.append(run.snapshot()["position"].tobytes())
    assert found[0] == found[1]


def test_forces_of_water_are_told():
    """A floor bears its weight and what holds a ball down in it: Archimedes to 3 %, and both together to 1 %."""
    h, radius = 0.05, 0.15
    ball = collide_sphere(FIRST, centre=(0.01, 0.25, 0.007), radius=radius, friction=0.0)
    floor = dataclasses.replace(collide_plane(FIRST), rule=CollisionRule.SLIP)
    water = block(MATTER["water"], (-0.4, 0.0, -0.4), (0.4, 0.5, 0.4), h)
    kept = np.linalg.norm(water["position"] - [0.01, 0.25, 0.007], axis=1) > radius
    water = dataclasses.replace(water, attributes={name: values[kept] for name, values in water.attributes.items()})
    sides = [SLIP, SLIP, OPEN, OPEN, SLIP, SLIP]
    walls = walled((-0.4, -1.0, -0.4), (0.4, 2.0, 0.4), *sides)
    run = SubstepSolver(water, "incompressible", cell_size=h, colliders=[floor, ball], walls=walls)
    settle(run, 0.3, 6.0)
    run.step_context.contact_forces, begun = True, run.time
    for _ in range(4):
        run.step()
    told = next(told for group, told in run.step_context.report.of_frame(run.step_context.frame) if group is CONTACT_FORCES)
    on_floor, on_ball = np.reshape(told["force"], (2, 3)) / (run.time - begun)
    weight = 9.81 * float(column(run, "mass").sum())
    assert on_ball[1] == pytest.approx(9810.0 * 4.0 / 3.0 * np.pi * radius**3, rel=0.03)
    assert -(on_floor + on_ball)[1] == pytest.approx(weight, rel=0.01)
    assert np.abs(on_ball[[0, 2]]).max() < 0.03 * on_ball[1]


@pytest.mark.parametrize("substeps", ["explicit_apic", "incompressible"])
def test_all_that_matter_loses_is_told(substeps):
    """A block flies at a ball that is held, on the nodes and on the particles' paths: its momentum is the force times the time."""
    ball = collide_sphere(FIRST, centre=(0.13, 0.4, 0.17), radius=0.12, friction=0.4)
    syrup = dataclasses.replace(LIQUID, params={"bulk_modulus": 2e4, "viscosity": 2.0})
    run = SubstepSolver(cube(syrup), substeps, cell_size=0.1, dtype=np.float64, colliders=[ball], gravity=(0.0, 0.0, 0.0))
    run.particles.pack("velocity", run.particles.unpack("velocity") + [0.2, 2.0, 0.0])
    run.step_context.contact_forces, before = True, momentum(run)
    run.advance(0.1)
    told = next(told for group, told in run.step_context.report.of_frame(run.step_context.frame) if group is CONTACT_FORCES)
    lost = before - momentum(run)
    assert np.reshape(told["force"], 3) == pytest.approx(lost, abs=1e-6 * before.max()) and lost[1] > 0.1 * before[1]


@pytest.mark.parametrize(
    ("size", "substeps", "told"),
    [(0.01, "incompressible", True), (0.06, "incompressible", False), (0.01, "explicit_apic", False)],
)
def test_what_the_faces_do_not_see_is_told_before_the_cook(size, substeps, told):
    """Plates of 0.1 cells are thrown by what falls through them; those of 0.6 cells float."""
    graph = splash(substeps=substeps)
    graph.set("box.size", (0.2, size, 0.2))
    told_of = [text for _, text in warnings_of(estimate(plan_graph(graph), 1)) if "rigid body 'dice'" in text]
    assert [f"{size:g} m thick" in text for text in told_of] == [True] * told


def test_a_body_that_is_a_mesh_is_not_told_to_be_thin(tmp_path):
    """Of a mesh no distances to a centre are known before the cook."""
    graph = splash(substeps="incompressible")
    points = [(-1, -1, -1), (1, -1, -1), (0, 1, -1), (0, 0, 1)]
    path = usd_mesh(tmp_path / "wedge.usda", points, [3] * 4, [0, 2, 1, 0, 1, 3, 1, 2, 3, 2, 0, 3])
    mesh = graph.add("collide_usd", "wedge", path=path)
    graph.nodes["body"].inputs["collider"] = [str(mesh)]
    assert not [text for _, text in warnings_of(estimate(plan_graph(graph), 1)) if "m thick" in text]


@pytest.mark.parametrize("knob", ["slip", "coupled"])
def test_what_moves_no_bodies_yet_is_refused_before_the_cook(tmp_path, knob):
    """With the knob that moves none."""
    substeps = {"preset": "incompressible", "set": {knob: True}}
    with pytest.raises(MpmNodesError, match=f"project_velocity moves no bodies with {knob}; turn project_velocity.{knob} off"):
        execute(splash(substeps=substeps), out=tmp_path)
