"""Temperatures of fields, over matter and over bodies, within a frame, and what they heat."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from heat_scenes import WAX, plate, solver, wax
from solver_scenes import cube

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, MpmNodesError, SpatialField
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.nodes.attributes import set_attribute
from mpm_nodes.nodes.fields import constant, field_ramp, field_vector
from mpm_nodes.physics.heat.nodes.heat import collider_temperature
from mpm_nodes.solver.surroundings import collider_at

SETTINGS = GraphSettings(cell_size=0.1)


def within(number: int = 1, told: list[str] | None = None) -> FrameContext:
    """Return the context of a frame; warnings are put on a list."""
    return FrameContext(number, SETTINGS, lambda kind, **facts: (told if told is not None else []).append(facts["message"]))


def slope(from_value: float, to_value: float) -> SpatialField:
    """Return temperatures that rise along x from x = 0 to 1 m."""
    return field_ramp(direction=(1.0, 0.0, 0.0), from_value=from_value, to_value=to_value)


def test_particles_take_the_temperature_of_a_field():
    """Where they begin; what would lie below 0 K is raised to it and told, a number below 0 K is refused."""
    matter, told = cube(WAX, (0.1, 0.1, 0.1)), []
    x = matter["position"][:, 0]
    warm = set_attribute(matter, within(1, told), slope(300.0, 400.0), attribute="temperature")
    np.testing.assert_allclose(warm["temperature"], 300.0 + 100.0 * x, rtol=1e-12)
    assert told == []
    cold = set_attribute(matter, within(1, told), slope(-20.0, 80.0), attribute="temperature")
    np.testing.assert_allclose(cold["temperature"], np.maximum(100.0 * x - 20.0, 0.0), atol=1e-12)
    assert len(told) == 1 and "would have a temperature from -7.5 to" in told[0] and "they get 0 at least" in told[0]
    with pytest.raises(MpmNodesError, match=r"set_attribute\.value: is -1; temperature lies from 0 to inf"):
        set_attribute(matter, within(), attribute="temperature", value=-1.0)


def test_a_collider_takes_the_temperatures_of_a_field():
    """At every place; below 0 K they are raised to it, which is told at the first frame. Vectors are refused."""
    told: list[str] = []
    for number in (1, 2):
        body = collider_temperature(plate(), within(number, told), slope(-20.0, 80.0), temperature=280.0, conductance=500.0)
    places = np.linspace([-1.0, 0.3, 0.3], [2.0, 0.3, 0.3], 31)
    exact = np.clip(100.0 * np.clip(places[:, 0], 0.0, 1.0) - 20.0, 0.0, None)
    np.testing.assert_allclose(body.temperatures.at(places), exact, atol=1e-12)
    assert (body.temperature, body.conductance) == (280.0, 500.0)
    assert told == ["collider_temperature: values below 0 are raised to it; they may go down to -20"]
    assert collider_temperature(plate(), within(), held=True).conductance == math.inf
    with pytest.raises(MpmNodesError, match=r"collider_temperature\.field: is a field of vectors"):
        collider_temperature(plate(), within(), field_vector())


def test_an_even_field_heats_as_an_even_temperature():
    """The same bits: only where the temperature comes from differs."""
    found = []
    even = collider_temperature(plate(), within(), constant(500.0), temperature=9.0, conductance=plate().conductance)
    for body in (plate(), even):
        run = solver(wax(), colliders=[body])
        for _ in range(5):
            run.step()
        found.append(run.particles.unpack("temperature"))
    assert np.allclose(found[0], found[1], rtol=0.0, atol=1e-9) and found[0].max() > 319.0


def test_one_end_of_a_plate_heats_and_the_other_cools():
    """Matter above its hot end gets warmer, above its cold end colder, and the books close."""
    field = field_ramp(direction=(1.0, 0.0, 0.0), low=0.1, high=0.2, from_value=400.0, to_value=200.0)
    run = solver(wax(300.0), colliders=[collider_temperature(plate(), within(), field, conductance=plate().conductance)])
    mass, before, gained = run.particles.unpack("mass"), run.particles.unpack("temperature"), 0.0
    for frame in range(5):
        run.step_context.frame = frame
        run.step()
        gained += run.step_context.report["heat"]["from_bodies"]
    T, position = run.particles.unpack("temperature"), run.particles.unpack("position")
    low = position[:, 1] < 0.1
    assert T[low & (position[:, 0] < 0.1)].min() > 300.1 and T[low & (position[:, 0] > 0.2)].max() < 299.9
    assert 2000.0 * float(mass @ (T - before)) == pytest.approx(gained, abs=1e-6 * 2000.0 * float(mass @ np.abs(T - before)))


class Across:
    """300 K on the plate, more above it and less below."""

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the temperatures at places [K]."""
        return 300.0 + 1e4 * places[:, 1]


def test_matter_meets_the_temperature_of_the_surface_and_of_nothing_beside_it():
    """Cells above and below the plate look up the place on it: matter of its temperature keeps that."""
    run = solver(wax(300.0), colliders=[dataclasses.replace(plate(), temperatures=Across())])
    for _ in range(3):
        run.step()
    assert np.abs(run.particles.unpack("temperature") - 300.0).max() < 1e-6


# ---------------------------------------------------------------- within a frame
def test_a_keyed_temperature_changes_within_a_frame():
    """Temperature, conductance and the field go straight from key to key, at every moment."""
    keys = {"keys": [[1, 300.0, "linear"], [5, 700.0, "linear"]]}
    graph = Graph(cell_size=0.1, start=1, end=9)
    knobs = {"temperature": keys, "conductance": {"keys": [[1, 1e3, "step"], [2.5, 1e4, "step"]]}}
    places = graph.add("field_ramp", "places", direction=(1.0, 0.0, 0.0), from_value=keys)
    graph.add("collider_temperature", "hot", collider=graph.add("collide_plane", "floor"), field=places, **knobs)
    body = Evaluator(graph).value("hot", 3)
    for frame, temperature, conductance in ((2.0, 400.0, 1e3), (2.25, 425.0, 1e3), (2.5, 450.0, 1e4), (3.0, 500.0, 1e4)):
        now = collider_at(body, frame)
        assert (now.temperature, now.conductance) == pytest.approx((temperature, conductance))
        assert now.temperatures.at(np.zeros((1, 3))) == pytest.approx([temperature])


def test_a_hot_plate_heats_by_the_temperature_of_each_moment():
    """Keys within one frame: a plate that is hot in its first half only leaves the heat of that half.

    In double precision: a substep warms by what single precision rounds off at 300 K.
    """
    found = []
    for keys in ([[1, 600.0, "step"], [1.5, 300.0, "step"]], [[1, 600.0, "step"]], [[1, 300.0, "step"], [1.5, 600.0, "step"]]):
        graph = Graph(cell_size=0.1, fps=24.0, start=1, end=2)
        matter = graph.add("material_neo_hookean", "matter", density=900.0, youngs_modulus=1e4)
        heat = graph.add("material_thermal", "heat", material=matter, heat_capacity=2000.0, conductivity=1.0)
        block = graph.add("emit_box", "block", material=heat, size=(0.4, 0.4, 0.4), centre=(0.0, 0.2, 0.0))
        warm = graph.add("set_temperature", "warm", particles=block, temperature=300.0)
        floor = graph.add("collide_plane", "floor")
        hot = graph.add("collider_temperature", "hot", collider=floor, temperature={"keys": keys}, conductance=1e3)
        knobs = {"sources": [warm], "colliders": [hot], "gravity": (0.0, 0.0, 0.0), "dt_max": 1e-3, "precision": "double"}
        graph.add("solve", "sim", substeps="explicit_heat", **knobs)
        found.append(float((Evaluator(graph).value("sim.particles", 2)["temperature"] - 300.0).sum()))
    first, always, second = found
    assert first / always == pytest.approx(0.5, abs=1e-3) and second / always == pytest.approx(0.5, abs=1e-3)
