"""Fields that read what particles have: what they are, where they may stand, and what is refused before a cook."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import AGE, BIRTH, FrameContext, GraphSettings, Material, MpmNodesError, attributes_of
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.nodes import fields
from mpm_nodes.nodes.attributes import set_attribute
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.fields_of_particles import everywhere, field_attribute, own
from mpm_nodes.nodes.forces import drain, force_acceleration, force_wind
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push

SETTINGS, NOW = GraphSettings(cell_size=0.1), FrameContext(1)
JELLY = Material("neo_hookean", {"youngs_modulus": 5e3}, 1000.0, "jelly")
BODY = emit_box(SETTINGS, JELLY, size=(0.4, 0.4, 0.4), velocity=(1.0, 2.0, -2.0), stiffness_variation=0.3)
MINE = dataclasses.replace(
    BODY, attributes={**BODY.attributes, "mine": np.arange(len(BODY)) / len(BODY), BIRTH: -BODY["position"][:, 0]}
)
FREE = {"dtype": np.float64, "gravity": (0.0, 0.0, 0.0), "dt_max": 1e-3}


def solver(*forces) -> SubstepSolver:
    run = SubstepSolver(MINE, "explicit_apic", **FREE)
    push(run, forces)
    return run


@pytest.mark.parametrize("name", ["temperature", "mine"])
def test_warm_matter_rises_as_the_boussinesq_force_has_it(name):
    """The recipe of the page: the momentum of a free body is t g beta sum m (T - T0), of temperatures and of any numbers."""
    still = dataclasses.replace(BODY, attributes={**BODY.attributes, "velocity": np.zeros((len(BODY), 3))})
    warmth = 300.0 + 50.0 * still["position"][:, 0]
    start = dataclasses.replace(still, attributes={**still.attributes, name: warmth})
    warm = fields.field_ramp(
        field_attribute(attribute=name), low=295.0, high=395.0, to_value=0.3, interpolation=fields.RampForm.ENDLESS
    )
    run = SubstepSolver(start, "explicit_apic", **FREE)
    push(run, [force_acceleration(mask=warm, acceleration=(0.0, 9.81, 0.0))])
    run.advance(0.02)
    mass = run.particles.unpack("mass")
    wanted = 0.02 * 9.81 * 0.003 * (start["mass"] @ (warmth - 295.0))
    np.testing.assert_allclose(mass @ run.particles.unpack("velocity"), [0.0, wanted, 0.0], rtol=1e-9, atol=1e-9 * wanted)


def test_it_is_what_particles_begin_with():
    """Numbers, vectors, speed, age, names of papers; through arithmetic, beside the place."""
    twice = fields.field_math(field_attribute(attribute="stiffness"), b_value=2.0)
    assert np.array_equal(set_attribute(MINE, NOW, twice)["stiffness_scale"], 2.0 * BODY["stiffness_scale"])
    back = fields.field_math(field_attribute(), b_value=-1.0)
    assert np.array_equal(set_attribute(MINE, NOW, back, attribute="velocity")["velocity"], -BODY["velocity"])
    assert set_attribute(MINE, NOW, field_attribute(attribute="speed"))["stiffness_scale"] == pytest.approx(3.0)
    assert np.array_equal(
        set_attribute(MINE, NOW, field_attribute(attribute="age"), attribute="old")["old"], BODY["position"][:, 0]
    )
    height = fields.field_ramp(low=0.0, high=1.0, to_value=1.0, interpolation=fields.RampForm.ENDLESS)
    both = fields.field_math(field_attribute(attribute="mine"), height, operation=fields.FieldOperation.ADD)
    np.testing.assert_allclose(
        set_attribute(MINE, NOW, both, attribute="sum")["sum"], MINE["mine"] + BODY["position"][:, 1], rtol=1e-12
    )
    assert attributes_of(both, None, twice) == {"mine", "stiffness_scale"}


def test_a_mask_of_a_force_reads_each_particle():
    """A force on stiff particles alone, a drag by an attribute of one's own, and the age in the middle of the substep."""
    stiff = fields.field_ramp(field_attribute(attribute="stiffness_scale"), low=1.0, high=1.0)
    run, dt = solver(force_acceleration(mask=stiff, acceleration=(5.0, 0.0, 0.0))), 1e-3
    mass, chosen = run.particles.unpack("mass"), run.particles.unpack("stiffness_scale") >= 1.0
    assert 0.2 < chosen.mean() < 0.8
    run.step(dt)
    impulse = run.step_context.report["forces"]["impulse"]
    assert impulse == pytest.approx((5.0 * dt * mass[chosen].sum(), 0.0, 0.0), rel=1e-12)
    run = solver(force_wind(velocity=(0.0, 0.0, 0.0), drag=1.0, mask=field_attribute(attribute="mine")))
    mine, before = run.particles.unpack("mine"), run.particles.unpack("velocity")
    run.step(dt)
    expected = (mass[:, None] * before * (np.exp(-mine * dt) - 1.0)[:, None]).sum(axis=0)
    assert run.step_context.report["forces"]["impulse"] == pytest.approx(tuple(expected), rel=1e-9)
    run = solver(force_acceleration(mask=own(AGE), acceleration=(0.0, 5.0, 0.0)))
    born = run.particles.unpack(BIRTH)
    run.step(dt)
    assert run.step_context.report["forces"]["impulse"][1] == pytest.approx(5.0 * dt * (mass * (0.5 * dt - born)).sum(), rel=1e-9)


def test_it_stands_on_particles_only():
    """Elsewhere it is refused, by whoever looks at it and by ports that say so; a wrong kind or name is told."""
    field = fields.field_math(field_attribute(attribute="temperature"), b_value=2.0)
    with pytest.raises(MpmNodesError, match="field_attribute: 'temperature' is known on particles only"):
        field_values(field, np.zeros((2, 3)), 1.0)
    with pytest.raises(MpmNodesError, match=r"air.velocity: this field is looked at where there are no particles"):
        everywhere("air.velocity", field)
    assert everywhere("air.velocity", fields.constant(1.0)).numbers == (1.0, 1.0, 1.0)
    for name, said in (
        ("deformation", "deformation is neither a number nor a vector"),
        ("stress", "stress is not kept"),
        ("P", "position is where the field is looked at"),
        ("no name", "'no name' is not a name"),
    ):
        with pytest.raises(MpmNodesError, match=said):
            field_attribute(attribute=name)
    with pytest.raises(MpmNodesError, match=r"field_attribute.vector: is true, and 'mine' of the particles is a number"):
        solver(force_acceleration(field_attribute(attribute="mine", vector=True))).step(1e-3)
    with pytest.raises(
        MpmNodesError, match=r"solve.forces: a field reads 'temperature', which the particles of this solve do not have"
    ):
        solver(force_wind(mask=field))


def shot(reads: str, port: str = "drains", **more) -> Graph:
    """Return the graph of a stream, whose particles a force or a drain reads."""
    graph = Graph(cell_size=0.05, start=1, end=8)
    matter = graph.add("material_library", "matter", name="jelly")
    body = graph.add("emit_box", "body", material=matter, size=(0.2, 0.1, 0.2), centre=(0.0, 1.0, 0.0))
    jet = graph.add("emit_stream", "jet", template=body, velocity=(0.0, -2.0, 0.0))
    old = graph.add(
        "field_ramp", "old", field=graph.add("field_attribute", "read", attribute=reads), **{"low": 0.1, "high": 0.1, **more}
    )
    user = graph.add("drain", "gone", field=old) if port == "drains" else graph.add("force_wind", "gone", mask=old)
    graph.add("solve", "sim", emitters=[jet], **{port: [user]})
    return graph


@pytest.mark.parametrize("port", ["forces", "drains"])
def test_what_a_solve_does_not_have_is_refused_before_the_cook(port):
    """With the solve's port, the node, and what there is; a field that fits is let through, and the age always is."""
    with pytest.raises(
        MpmNodesError, match=rf"solve.{port} \(gone\): a field reads 'wet', which the particles .* they have .*velocity"
    ):
        preflight.estimate(plan_graph(shot("wet", port)), 1)
    told = preflight.estimate(plan_graph(shot("age", port)), 1)["sim"]
    assert BIRTH in told["columns"] and BIRTH not in preflight.estimate(plan_graph(shot("speed", port)), 1)["sim"]["columns"]
    graph = shot("speed", port)
    graph.add("set_attribute", "set", particles=graph["body"], field=graph.add("field_attribute", "other", attribute="age"))
    with pytest.raises(MpmNodesError, match=r"set_attribute.field: the field reads 'age', which the particles do not have before"):
        preflight.estimate(plan_graph(graph), 1)


@pytest.mark.parametrize(("reads", "most"), [("age", 0.1), ("speed", 2.5)])
def test_a_drain_by_age_or_speed_cooks_and_resumes_to_the_same_bits(tmp_path, reads, most):
    """A falling jet loses what is old or fast, frame by frame."""
    graph = shot(reads, low=most, high=most)
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["velocity", "id"])
    events = []
    execute(graph, out=tmp_path / "whole", on_event=events.append)
    from usd_io.stage_reader import read_points

    last = read_points(next((tmp_path / "whole").rglob("cache.usda")), 8)
    assert sum(event["particles"][0] for event in events if event["event"] == "drained") > 100
    assert len(last) > 50 and (reads == "age" or np.linalg.norm(last["velocity"], axis=1).max() <= most)
    if reads == "age":  # at 2 m/s and in free fall nothing gets farther
        assert last["position"][:, 1].min() > 0.95 - 2.0 * most - 0.5 * 9.81 * most**2 - 0.01
    execute(graph, out=tmp_path / "cut", frames=(1, 5))
    execute(graph, out=tmp_path / "cut", frames=(1, 8), resume=True)
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) >= 8 and points[0] == points[1]


def test_drains_see_the_particles_after_the_substep():
    """A kick in the substep makes a particle fast enough for the drain in the same one."""
    run = solver(force_acceleration(acceleration=(0.0, 0.0, -1e3)))
    fast = fields.field_ramp(field_attribute(attribute="speed"), low=3.3, high=3.3)
    run.step_context.drains = (drain(fast),)
    run.step(1e-3)
    assert run.particles.count == 0
