"""Active masks: what is passive stays to the bit, costs nothing and stands in the way; cooks hold it, let it go, and resume."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, LIQUID, cube, shot

from mpm_nodes.data import ActiveMask, CollisionRule, InputError, MpmNodesError, Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.plan.preflight import estimate
from mpm_nodes.nodes.fields import constant, field_ramp
from mpm_nodes.nodes.forces import active_mask
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.passive import solid_of
from mpm_nodes.solver.room import RoomAround
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import activate
from mpm_nodes.verification.passive import CLOCK, PassiveFloor, PassiveHolds, advance_frames

KEPT = ("position", "deformation", "mass", "volume", "id")


def masked(graph: Graph, mask: dict[str, object] | None = None, kind: str = "field_constant", **field: object) -> Graph:
    """Return a graph whose solve moves what a field says."""
    graph.nodes["sim"].connect("active", graph.add("active_mask", "mask", field=graph.add(kind, "where", **field), **(mask or {})))
    return graph


def test_what_is_held_is_held_to_the_bit_and_falls_from_rest():
    """In two goes, in flight."""
    for record in PassiveHolds().records():
        assert record.passed, record


@pytest.mark.parametrize(("substeps", "offset"), [("explicit_apic", 0.0), ("implicit_apic", 0.3)])
def test_a_column_stands_on_its_passive_half(substeps, offset):
    """As on a box that clamps; `passive_floor` compares more of them with the closed form."""
    found, force = PassiveFloor.stands(substeps, offset)
    box, weight = PassiveFloor.stands(substeps, offset, box=True)
    assert found == pytest.approx(box, rel=0.01) and force == pytest.approx(weight, rel=0.02)


def test_the_body_of_a_lattice_ends_half_a_spacing_outside_of_it():
    """Voxels there have the distance 0, those a spacing deeper one below."""
    spacing = 0.05
    solid = solid_of(cube(JELLY, cells=6)["position"], spacing)
    node = np.stack(np.meshgrid(*(np.arange(8),) * 3, indexing="ij"), -1)
    places = solid.voxel * (solid.origins[:, None, None, None] + node)
    middle = (np.abs(places[..., [0, 2]] - 0.3) < 0.1).all(axis=-1) & (np.abs(places[..., 1] - 0.6) < 0.06)
    np.testing.assert_allclose(solid.values[middle], places[middle][:, 1] - 0.6, atol=0.05 * spacing)


def test_a_body_that_is_scattered_far_has_coarser_voxels():
    """So that its table fits in memory; a body made of one particle has an inside."""
    with pytest.warns(UserWarning, match=r"scattered over 4.97e\+03 m: its body has voxels of .* let a drain take what flies away"):
        solid = solid_of(5e3 * np.random.default_rng(0).random((40, 3)), 0.1)
    assert solid.voxel > 0.6 * 0.1 and (solid.values < 0.0).any()
    assert (solid_of(np.zeros((1, 3)), 0.1).values < 0.0).any()


def test_a_broken_checkpoint_is_refused():
    """A body of another shape than was saved."""
    run = SubstepSolver(cube(JELLY), "explicit_apic", clock=CLOCK)
    activate(run, ActiveMask(constant(0.0)))
    advance_frames(run, (1,))
    saved = run.passive.save()
    assert saved is not None and run.passive.store.count == 216
    for name, broken in (("voxel", np.zeros(1)), ("leaves", np.zeros((2, 3), np.int32)), ("distances", np.zeros((1, 8)))):
        with pytest.raises(InputError, match="the body of its passive matter does not fit together"):
            run.passive.restore(dataclasses.replace(saved, tables={**saved.tables, name: broken}))


def test_a_solve_without_the_mask_takes_passive_matter_up():
    """Cooked again from a frame in which some was held, without the wire, all of it goes on."""
    run, other = (SubstepSolver(cube(JELLY), "explicit_apic", clock=CLOCK) for _ in range(2))
    activate(run, active_mask(field_ramp(low=0.15, high=0.15)))
    advance_frames(run, (1,))
    SolverState(run).for_other_settings().revive(other, run.time)
    assert other.passive.store.count == run.passive.store.count == 108
    before = other.snapshot()
    advance_frames(other, (2,))
    after = other.snapshot()
    assert not other.passive.store.count and np.array_equal(after["id"], before["id"])
    assert (after["position"][:, 1] < before["position"][:, 1]).all()


def test_only_active_matter_is_in_the_substeps():
    """Nine tenths that are passive leave a tenth of the particles, of the blocks of the grid, and of the rows that kernels see."""
    bar = cube(JELLY, cells=4)
    long = Particles(
        {"position": np.concatenate([bar["position"] + [0.4 * n, 0.0, 0.0] for n in range(20)])}, bar.materials, bar.spacing
    )
    run = SubstepSolver(long, "explicit_apic", clock=CLOCK, gravity=(0.0, 0.0, 0.0))
    advance_frames(run, (1,))
    blocks = run.grid.count
    activate(run, active_mask(field_ramp(direction=(1.0, 0.0, 0.0), low=7.2, high=7.2)))
    advance_frames(run, (2,))
    assert run.particles.count == len(long) // 10 and run.passive.store.count == 9 * len(long) // 10
    assert run.grid.count < 0.2 * blocks and len(run.snapshot()) == len(long)
    assert run.step_context.report.of_frame(0) is not None


@pytest.mark.parametrize("precision", ["single", "double"])
def test_a_cook_holds_lets_go_and_resumes_to_the_same_bits(tmp_path, precision):
    """A ramp that keys move holds a cube from below; the file of a frame in which some is passive takes up the same."""
    ground = ("ground", "collide_plane", {"centre": (0.0, 0.8, 0.0)})
    graph = shot(end=12, size=0.4, precision=precision, dt_max=4e-3, colliders=[ground])
    keys = [[1, -9.0, "step"], [4, 1.0, "linear"], [7, 1.1, "step"], [10, -9.0, "step"]]
    masked(graph, kind="field_ramp", low={"keys": keys}, high={"keys": keys})
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["velocity", "id", "deformation"])
    events = []
    execute(graph, out=tmp_path / "whole", on_event=events.append)
    told = {event["frame"]: event for event in events if event["event"] == "passive"}
    assert sorted(told) == [5, 6, 7, 8, 9, 10, 11] and told[11]["particles"] == 0 < told[11]["released"]
    assert told[5]["stopped"] > 0 < sum(told[frame]["stopped"] for frame in (6, 7, 8)) and told[6]["mass"] == pytest.approx(
        told[6]["particles"] * 400.0 * 0.05**3
    )
    from usd_io.stage_reader import read_points

    at = {frame: read_points(next((tmp_path / "whole").rglob("cache.usda")), frame) for frame in range(4, 13)}
    low = at[4]["position"][:, 1] < 0.99
    for frame in range(5, 11):
        assert np.array_equal(at[frame]["position"][low], at[4]["position"][low]) and not at[frame]["velocity"][low].any()
        assert np.array_equal(at[frame]["deformation"][low], at[4]["deformation"][low])
        assert np.array_equal(at[frame]["id"], at[4]["id"])
    assert low.sum() > 100 and not np.array_equal(at[12]["position"][low], at[4]["position"][low])
    assert at[10]["position"][~low][:, 1].min() > 0.98  # what is active lies on it
    execute(graph, out=tmp_path / "cut", frames=(1, 8))
    execute(graph, out=tmp_path / "cut", frames=(1, 12), resume=True)
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) >= 12 and points[0] == points[1]


PROJECTED = pytest.param("incompressible", marks=pytest.mark.phenomena("projection"))


@pytest.mark.parametrize("substeps", ["explicit_apic", "implicit_apic", PROJECTED])
@pytest.mark.parametrize("rule", ["sticky", "separate"])
def test_liquid_falls_on_passive_liquid_and_stays_there(substeps, rule):
    """In every kind of substep, by both rules; and all of it may be passive, and go on."""
    graph = shot(end=14, size=0.4, centre=(0.0, 0.2, 0.0), material="material_liquid", substeps=substeps)
    drop = graph.add("emit_box", "drop", material=graph["matter"], size=(0.2, 0.2, 0.2), centre=(0.0, 0.65, 0.0))
    graph.nodes["sim"].connect("sources", [graph["block"], drop])
    keys = [[1, 0.4, "step"], [12, 9.0, "step"], [13, -9.0, "step"]]
    masked(graph, {"rule": rule, "friction": 0.2}, kind="field_ramp", low={"keys": keys}, high={"keys": keys})
    cook = Evaluator(graph)
    first, later, held, last = (cook.value("sim.particles", frame) for frame in (1, 12, 13, 14))
    low = first["position"][:, 1] < 0.4
    assert np.array_equal(later["position"][low], first["position"][low])
    over = (np.abs(later["position"][:, [0, 2]]) < 0.2).all(axis=1) & ~low
    assert over.sum() > 10 and 0.36 < later["position"][over][:, 1].min() < 0.5
    assert np.array_equal(held["position"], later["position"]) and not held["velocity"].any()
    assert last["velocity"][:, 1].mean() < -0.1 and np.array_equal(last["id"], first["id"])


@pytest.mark.parametrize("substeps", sorted(registry.default().presets))
def test_every_preset_holds_and_lets_go(substeps):
    """What is passive has not one bit changed while it is, and moves afterwards."""
    liquid = "tension" in substeps or "incompressible" in substeps
    ground = ("ground", "collide_plane", {})
    matter = "material_liquid" if liquid else "material_snow"
    graph = shot(end=8, size=0.4, centre=(0.0, 0.25, 0.0), material=matter, substeps=substeps, colliders=[ground], dt_max=4e-3)
    for part, kind, knobs in (("tension", "material_surface_tension", {"tension": 0.5}), ("heat", "material_thermal", {})):
        if part in substeps or (part == "heat" and "melting" in substeps):
            graph.nodes["block"].inputs["material"] = []
            graph.nodes["block"].connect("material", graph.add(kind, kind, material=graph["matter"], **knobs))
    keys = [[1, -9.0, "step"], [3, 0.25, "step"], [6, -9.0, "step"]]
    masked(graph, kind="field_ramp", low={"keys": keys}, high={"keys": keys})
    cook = Evaluator(graph)
    begins, ends, after = (cook.value("sim.particles", frame) for frame in (3, 6, 8))
    low = begins["position"][:, 1] < 0.25
    for name in ("position", "mass", "volume", "id", *({"deformation", "volume_change"} & begins.attributes.keys())):
        assert np.array_equal(ends[name][low], begins[name][low]), name
    assert 100 < low.sum() < 400 and not np.array_equal(after["position"][low], ends["position"][low])
    assert len(begins) == len(ends) == len(after) and np.isfinite(after["position"]).all()


def test_matter_without_motion_falls_asleep():
    """A mask of the speed of particles: what has come to rest is passive."""
    ground = ("ground", "collide_plane", {"centre": (0.0, 0.85, 0.0), "rule": "sticky"})
    graph = shot(end=16, velocity=(0.0, -1.0, 0.0), colliders=[ground], substeps="implicit_apic")
    speed = graph.add("field_attribute", "speed", attribute="speed")
    masked(graph, kind="field_ramp", field=speed, low=0.1, high=0.1)
    events = []
    execute(graph, out=None, on_event=events.append)
    told = [event["particles"] for event in events if event["event"] == "passive"]
    assert len(told) > 3 and sorted(told) == told and told[-1] > 0.5 * 216


def test_threads_change_nothing():
    """The same bits on one and on two."""
    found = []
    for threads in (1, 2):
        before = numba.get_num_threads()
        numba.set_num_threads(min(threads, before))
        run = SubstepSolver(cube(JELLY, cells=4), "explicit_apic", clock=CLOCK)
        activate(run, active_mask(field_ramp(low=0.2, high=0.2)))
        advance_frames(run, (1, 2))
        numba.set_num_threads(before)
        found.append(run.snapshot(["velocity"])["velocity"])
    assert np.array_equal(found[0], found[1]) and np.abs(found[0]).max() > 0.0


def test_passive_matter_fills_room_and_regions():
    """Nothing is born in it, and it counts in the volume of a region."""
    run = SubstepSolver(cube(LIQUID, cells=8), "explicit_apic", clock=CLOCK)
    activate(run, ActiveMask(constant(0.0)))
    advance_frames(run, (1,))
    place = np.full((1, 3), 0.4)
    around = RoomAround(place, run.particles, passive=(run.passive.store,))
    assert around.filled == pytest.approx(1.0, abs=0.05) and not run.particles.count
    assert RoomAround(place, run.particles).filled == 0.0


def test_a_filled_jar_that_is_passive_takes_no_more():
    """A stream that fills a region stops at once where passive matter fills it."""
    graph = shot(end=4, material="material_liquid", size=0.4)
    spout = graph.add("emit_box", "spout", material=graph["matter"], size=(0.2, 0.1, 0.2), centre=(0.0, 1.6, 0.0))
    jar = graph.add("field_shape", "jar", shape="box", centre=(0.0, 1.0, 0.0), size=(0.6, 0.8, 0.6))
    stream = graph.add("emit_stream", "stream", template=spout, region=jar, velocity=(0.0, -1.0, 0.0), volume=0.06)
    graph.nodes["sim"].connect("emitters", [stream])
    masked(graph, kind="field_constant", value=0.0)
    events = []
    execute(graph, out=None, on_event=events.append)
    brought = [sum(event["volume"]) for event in events if event["event"] == "emitted"]
    assert brought and sum(brought) < 1e-3


def test_what_does_not_fit_is_told_before_the_cook():
    """Vectors, unknown attributes, several ranks."""
    graph = masked(shot(), kind="field_vector")
    with pytest.raises(MpmNodesError, match=r"active_mask.field: is a field of vectors"):
        estimate(plan_graph(graph), 1)
    graph = masked(shot(), kind="field_attribute", attribute="wetness")
    with pytest.raises(MpmNodesError, match=r"solve.active \(mask\): a field reads 'wetness'"):
        estimate(plan_graph(graph), 1)
    with pytest.raises(MpmNodesError, match=r"ranks: passive matter is not shared among ranks"):
        estimate(plan_graph(masked(shot())), 1, ranks=2)
    run = SubstepSolver(cube(JELLY), "explicit_apic")
    with pytest.raises(MpmNodesError, match=r"solve.active: a field reads 'wetness'"):
        activate(run, ActiveMask(dataclasses.replace(constant(0.0), attribute="wetness"), CollisionRule.SLIP))
