"""Forces of a solve on its rigid bodies, by closed forms; matter is not near."""

from __future__ import annotations

import math

import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot

from mpm_nodes.data import FrameContext
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.nodes.collide import collide_box, collide_sphere
from mpm_nodes.nodes.fields import field_constant, field_shape
from mpm_nodes.nodes.forces import force_acceleration, force_air, force_attraction, force_vortex, force_wind
from mpm_nodes.physics.rigid_bodies.problems.rigid_bodies import bodies_of, rigid
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push

FIRST = FrameContext(1)


def moved(body, *forces, steps=200, dt=1e-3, gravity=(0.0, 0.0, 0.0)):
    """Return the body's place and twist after some substeps under forces."""
    run = SubstepSolver(cube(JELLY), "explicit_apic", cell_size=0.1, colliders=[body], gravity=gravity)
    push(run, forces)
    for _ in range(steps):
        run.step(dt)
    return bodies_of(run).world.centres()[0], bodies_of(run).world.twists()[0]


def ball(place=(3.0, 3.0, 3.0), **motion):
    """Return a ball far from the matter."""
    return rigid(collide_sphere(FIRST, centre=place, radius=0.1), 800.0, **motion)


def test_a_body_is_accelerated_as_matter_is():
    """v = a t, up to a speed, and not where a mask is 0; weight that is taken away lets it hang."""
    _, twist = moved(ball(), force_acceleration(acceleration=(1.0, 2.0, 0.0)))
    assert twist == pytest.approx([0.2, 0.4, 0.0, 0.0, 0.0, 0.0], abs=1e-9)
    _, twist = moved(ball(), force_acceleration(acceleration=(9.0, 0.0, 0.0), speed_limit=1.5))
    assert twist[0] == pytest.approx(1.5)
    _, twist = moved(ball(), force_acceleration(mask=field_constant(value=0.0), acceleration=(9.0, 0, 0)))
    assert not twist.any()
    place, _ = moved(ball(), force_acceleration(acceleration=(0.0, 9.81, 0.0)), gravity=(0.0, -9.81, 0.0))
    assert place == pytest.approx([3.0, 3.0, 3.0], abs=1e-9)


def test_wind_draws_a_body_along_and_slows_its_turn():
    """v = u (1 - exp(-k t)), w = w0 exp(-k t); quadratic: 1 / v = 1 / v0 + k t."""
    body = rigid(collide_box(FIRST, centre=(3.0, 3.0, 3.0), size=(0.2, 0.2, 0.2)), 800.0, angular_velocity=(0.0, 5.0, 0.0))
    _, twist = moved(body, force_wind(velocity=(3.0, 0.0, 0.0), drag=4.0))
    assert twist[0] == pytest.approx(3.0 * (1.0 - math.exp(-0.8))) and twist[4] == pytest.approx(5.0 * math.exp(-0.8))
    _, twist = moved(ball(), force_wind(velocity=(3.0, 0.0, 0.0), drag=4.0, speed_limit=1.0))
    assert twist[0] == pytest.approx(1.0)
    _, twist = moved(ball(velocity=(2.0, 0.0, 0.0)), force_wind(velocity=(0.0, 0.0, 0.0), drag=3.0, quadratic=True))
    assert twist[0] == pytest.approx(1.0 / (0.5 + 3.0 * 0.2))


def test_a_spring_of_an_attraction_swings_a_body_and_a_vortex_turns_it():
    """A force that grows with the distance: half a period pi sqrt(r / a) later it is on the other side, and does not turn;
    the inner part of a vortex spins it by its rotation, 2 a / r half of it [rad/s^2]."""
    half = math.pi * math.sqrt(1.0 / 40.0)
    near = field_shape(centre=(3.0, 3.0, 3.0), radius=1.0)  # the matter is to stay where it is
    pull = force_attraction(near, centre=(3.0, 3.0, 3.0), strength=40.0, radius=1.0)
    place, twist = moved(ball((3.3, 3.0, 3.0)), pull, steps=1000, dt=half / 1000.0)
    assert place == pytest.approx([2.7, 3.0, 3.0], abs=2e-3) and np.abs(twist[3:]).max() < 1e-9
    vortex = force_vortex(centre=(3.0, 3.0, 3.0), strength=10.0, radius=1.0)
    _, twist = moved(ball(), vortex)
    assert twist == pytest.approx([0.0, 0.0, 0.0, 0.0, 10.0 * 0.2, 0.0], abs=1e-6)
    _, twist = moved(ball(), force_air(velocity=(5.0, 0.0, 0.0)))  # it presses on the surface of matter alone
    assert not twist.any()


def test_forces_that_pass_bodies_are_told(tmp_path):
    """Before the cook, by name; none of the others."""
    graph = shot(end=1, material="material_neo_hookean", knobs={"youngs_modulus": 2e4}.items())
    body = graph.add("rigid_body", "body", collider=graph.add("collide_sphere", "round", centre=(0.0, 3.0, 0.0), radius=0.1))
    graph.nodes["sim"].inputs["colliders"] = []
    graph.nodes["sim"].connect("colliders", [body])
    forces = [graph.add("force_air", "breeze"), graph.add("force_wind", "wind"), graph.add("force_attach", "pin")]
    graph.nodes["sim"].connect("forces", forces)
    (told,) = [text for text in execute(graph, out=tmp_path).warnings if "rigid bodies" in text]
    assert "solve.forces: breeze, pin do not push rigid bodies" in told
