"""Contacts that stick by a strength, and the forces on colliders: held, let go by keys, told, refused."""

from __future__ import annotations

import json

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot, values

from mpm_nodes.data import CollisionRule, FrameContext, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.graph.time.keys import KeyedNumber, most
from mpm_nodes.nodes.collide import collide_box, collide_plane
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.adhesion import ADHESION, CELL, CELLS, moved, pressed, stuck_block
from mpm_nodes.verification.quantities import column, momentum

PRESETS = ["explicit_apic", "implicit_apic"]
WEIGHT = 1000.0 * 0.3**3 * 9.81
CEILING = {"centre": (0.0, 1.15, 0.0), "rotation": (180.0, 0.0, 0.0)}
"""Over the cube of `shot`, whose weight over its area is 2943 Pa."""


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_a_block_hangs_until_its_weight_exceeds_the_adhesion(preset, offset):
    """At 0.93 A it stays and its weight is told; at 1.15 A it falls."""
    light = stuck_block(preset, (0.0, 0.93 * ADHESION), offset=offset, adhesion=ADHESION)
    assert np.linalg.norm(moved(light, 0.5)) < 0.1
    weight = 0.93 * ADHESION * CELLS[0] * CELLS[2] * CELL**2
    assert pressed(light, 0.01)[0][0, 1] == pytest.approx(weight, rel=0.01)
    heavy = stuck_block(preset, (0.0, 1.15 * ADHESION), offset=offset, adhesion=ADHESION)
    moved(heavy, 0.6)
    assert pressed(heavy, 0.01)[0][0, 1] < 0.1 * weight


@pytest.mark.parametrize("preset", PRESETS)
def test_adhesion_holds_matter_on_a_slope_without_weight(preset):
    """Nothing presses it on the plane: it stays below mu A, and slides beyond."""
    for share, slides in ((0.9, False), (1.2, True)):
        run = stuck_block(preset, (share * 0.5 * ADHESION, 0.0), offset=0.3, friction=0.5, adhesion=ADHESION)
        assert (moved(run, 0.5)[0] > 0.1) == slides


@pytest.mark.parametrize("preset", PRESETS)
def test_keys_let_go(preset, tmp_path):
    """A step key in the middle of the shot: the ceiling bears the weight until then, and nothing afterwards."""
    graph = shot(
        end=9,
        substeps=preset,
        precision="double",
        material="material_neo_hookean",
        knobs={"youngs_modulus": 1e6},
        colliders=[("top", "collide_plane", {**CEILING, "adhesion": {"keys": [[1, 3e4, "step"], [6, 0.0, "step"]]}})],
        contact_forces=True,
    )
    events = []
    execute(graph, out=None, on_event=events.append)
    told = [event for event in events if event["event"] == "contact_forces"]
    assert [event["colliders"] for event in told] == 8 * [("plane",)]
    pulls = [event["force"][1] for event in told]
    assert np.mean(pulls[:4]) == pytest.approx(-WEIGHT, rel=0.1) and max(pulls[:4]) < -0.5 * WEIGHT
    assert pulls[5:] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6 * WEIGHT)


def test_the_largest_key_says_whether_matter_sticks():
    """Of keys and of plain numbers."""
    assert most(3.0) == 3.0 and most(KeyedNumber([(1, 0.0, "step"), (5, 7.0, "step")])) == 7.0


@pytest.mark.parametrize("rule", list(CollisionRule))
@pytest.mark.parametrize("preset", PRESETS)
def test_what_bodies_are_given_is_what_the_matter_loses(preset, rule):
    """Momentum and angular momentum of a block that is thrown at two planes, one of them oblique, without gravity."""
    knobs = {"adhesion": 2e3} if rule is CollisionRule.SEPARATE else {}
    knobs |= {"rule": rule, "friction": 0.4}
    bodies = [
        collide_plane(FrameContext(1), centre=(0.0, 0.02, 0.0), **knobs),
        collide_plane(FrameContext(1), centre=(-0.01, 0.0, 0.0), rotation=(0.0, 0.0, -60.0), **knobs),
    ]
    start = cube(JELLY, low=(0.05, 0.02, 0.0), velocity=(-0.3, -0.4, 0.2))
    tight = {"preset": preset, "set": {"tolerance": 1e-12, "minimise_energy.krylov_tolerance": 1e-4}}
    run = SubstepSolver(
        start, tight if preset == "implicit_apic" else preset, cell_size=0.1, dtype=np.float64, colliders=bodies, gravity=(0, 0, 0)
    )
    run.step_context.contact_forces = True
    met = 0.0
    for _ in range(5):
        before, turning = momentum(run), angular(run)
        run.step_context.frame += 1
        dt = 2e-3
        run.step(dt)
        told = run.step_context.report["contact_forces"]
        force, torque = (np.array(told[name]).reshape(-1, 3) for name in ("force", "torque"))
        size = np.abs(force).max() + 1e-12
        assert np.abs(force.sum(axis=0) + momentum(run) - before).max() < 1e-8 * size
        about_origin = torque.sum(axis=0) + np.cross([(0.0, 0.02, 0.0), (-0.01, 0.0, 0.0)], force).sum(axis=0)
        bar = 0.02 if preset == "explicit_apic" else 0.1  # implicit steps turn matter by what they stretch it
        assert np.abs(about_origin + angular(run) - turning).max() < bar * 0.3 * size
        met = max(met, size)
    assert met > 1e-3


def angular(run: SubstepSolver) -> np.ndarray:
    """Return the angular momentum about the origin, with that of the affine velocities [kg m^2/s]."""
    x, v, m, c = (column(run, name) for name in ("position", "velocity", "mass", "affine"))
    own = np.stack([c[:, 2, 1] - c[:, 1, 2], c[:, 0, 2] - c[:, 2, 0], c[:, 1, 0] - c[:, 0, 1]], axis=1)
    return np.asarray(m @ (np.cross(x, v) + 0.25 * run.cell_size**2 * own))


def test_a_corner_pulls_with_each_of_its_bodies_once():
    """Contacts that share nodes are met twice: together the ceiling's still pull by A times the area at most."""
    height, area = 0.3, 0.3 * 0.3
    bodies = [
        collide_plane(FrameContext(1), centre=(0.0, height, 0.0), rotation=(180.0, 0.0, 0.0), adhesion=500.0),
        collide_plane(FrameContext(1), centre=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, -90.0), adhesion=500.0),
    ]
    run = SubstepSolver(cube(JELLY), "explicit_apic", cell_size=0.1, dtype=np.float64, colliders=bodies, gravity=(0, -200, 0))
    run.step_context.contact_forces = True
    run.step(1e-3)
    pull = -run.step_context.report["contact_forces"]["force"][1] / 1e-3
    assert 0.9 * 500.0 * area < pull < 1.05 * 500.0 * area


@pytest.mark.parametrize("preset", PRESETS)
def test_checked_mode_finds_nothing_and_tells_the_same(preset):
    """Stages run twice: reads and writes are as declared, and forces count once."""
    told = []
    for checked in (False, True):
        ceiling = collide_plane(FrameContext(1), centre=(0.0, 0.3, 0.0), rotation=(180.0, 0.0, 0.0), adhesion=5e3, friction=0.3)
        run = SubstepSolver(cube(JELLY), preset, cell_size=0.1, dtype=np.float64, colliders=[ceiling], checked=checked)
        run.step_context.contact_forces = True
        for _ in range(3):
            run.step(1e-3)
        told.append(run.step_context.report["contact_forces"]["force"])
    assert told[0] == pytest.approx(told[1], rel=1e-9) and told[0][1] < 0.0


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_torn_off_is_pulled_back_by_the_adhesion(preset):
    """A load of hundred times the adhesion: in the first substep the ceiling pulls by A times the area."""
    ceiling = collide_plane(FrameContext(1), centre=(0.0, 0.3, 0.0), rotation=(180.0, 0.0, 0.0), adhesion=500.0)
    run = SubstepSolver(cube(JELLY), preset, cell_size=0.1, dtype=np.float64, colliders=[ceiling], gravity=(0, -200, 0))
    run.step_context.contact_forces = True
    run.step(1e-3)
    pull = -run.step_context.report["contact_forces"]["force"][1] / 1e-3
    assert 0.9 * 500.0 * 0.09 < pull < 1.05 * 500.0 * 0.09


def test_threads_and_resumed_cooks_change_no_bit(tmp_path):
    """One thread and two; a cook in one go and one that goes on."""
    found = []
    for threads in (1, 2):
        before = numba.get_num_threads()
        numba.set_num_threads(min(threads, before))
        run = stuck_block("explicit_apic", (300.0, 900.0), offset=0.3, friction=0.5, adhesion=ADHESION)
        run.advance(0.05)
        numba.set_num_threads(before)
        found.append((run.particles.unpack("velocity").tobytes(), run.step_context.report["contact_forces"]["torque"]))
    assert found[0] == found[1]
    keyed = {"keys": [[1, 4e3, "linear"], [6, 0.0, "linear"]]}
    graph = shot(end=6, colliders=[("top", "collide_plane", {**CEILING, "adhesion": keyed})], contact_forces=True)
    graph.add("write_cache", "cache", particles=graph["sim"])
    told: list[list[tuple]] = [[], []]

    def listener(which):
        return lambda event: told[which].append(event["force"]) if event["event"] == "contact_forces" else None

    whole = execute(graph, out=tmp_path / "whole", on_event=listener(0))
    execute(graph, out=tmp_path / "cut", frames=(1, 3), on_event=listener(1))
    execute(graph, out=tmp_path / "cut", frames=(1, 6), resume=True, on_event=listener(1))
    assert told[0] == told[1] and len(told[0]) == 5 and whole.seconds > 0.0
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) == 6 and points[0] == points[1]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_plate_that_keeps_its_sides_apart_sticks_on_both(preset):
    """A thin plate in the middle of a bar: what hangs under it stays, by the volume of the matter on that side alone."""
    plate = collide_box(FrameContext(1), centre=(0.15, 0.15, 0.15), size=(0.5, 0.004, 0.5), adhesion=4e3)
    loose = collide_box(FrameContext(1), centre=(0.15, 0.15, 0.15), size=(0.5, 0.004, 0.5))
    start, found = cube(JELLY), []
    below = start["position"][:, 1] < 0.15
    for body in (plate, loose):
        run = SubstepSolver(start, preset, cell_size=0.1, dtype=np.float64, colliders=[body], gravity=(0.0, -9.81, 0.0))
        run.advance(0.3)
        assert len(run.colliders.plates) == 1 and run.grid.copies is not None
        position = run.snapshot()["position"]
        assert position[~below, 1].min() > 0.14
        found.append(position[below, 1].max())
    assert found[0] > 0.12 and found[1] < 0.0


@pytest.mark.parametrize(
    ("substeps", "asked"),
    [("incompressible", "adhesion"), ({"preset": "incompressible", "set": {"slip": True}}, "contact_forces")]
    + [({"preset": "implicit_apic", "edits": []}, asked) for asked in ("adhesion", "contact_forces")],
)
def test_substeps_that_do_not_find_it_are_refused_before_the_cook(substeps, asked):
    """The projection's, where liquids slip, and those of a semi-implicit update; in a solver, too."""
    if "edits" in substeps:
        substeps = semi_implicit()
    knobs = {"adhesion": 100.0} if asked == "adhesion" else {}
    graph = shot(end=2, substeps=substeps, contact_forces=not knobs, colliders=[("top", "collide_plane", knobs)])
    message = "solve.colliders: matter sticks" if knobs else "solve.contact_forces: forces are asked for"
    with pytest.raises((MpmNodesError, GraphError), match=message):
        execute(graph, out=None)
    if knobs:
        with pytest.raises(MpmNodesError, match="matter sticks to one by adhesion"):
            SubstepSolver(cube(JELLY), substeps, cell_size=0.1, colliders=[collide_plane(FrameContext(1), **knobs)])


def semi_implicit() -> dict:
    """Return implicit_apic with a semi-implicit update."""
    from mpm_nodes.graph.declare import registry

    document = json.loads(registry.default().presets["implicit_apic"].read_text())
    node = document["nodes"]["minimise_energy"]
    node["type"], node["knobs"] = "semi_implicit_update", {}
    return {**document, "parameters": {}}


@pytest.mark.parametrize("rule", ["sticky", "slip"])
def test_adhesion_is_for_what_separates(rule):
    """Others hold already; the message names the collider, before the cook and for keys."""
    for adhesion in (5.0, {"keys": [[1, 0.0, "step"], [2, 5.0, "step"]]}):
        graph = shot(end=2, colliders=[("top", "collide_plane", {"rule": rule, "adhesion": adhesion, "name": "lid"})])
        with pytest.raises((MpmNodesError, GraphError), match=f"collider 'lid': adhesion is for .* rule is {rule}"):
            execute(graph, out=None)


def test_without_the_knob_nothing_is_told_and_nothing_changes():
    """The same bits, and no event."""
    kept = []
    for asked in (False, True):
        run = stuck_block("explicit_apic", (0.0, -900.0), offset=0.3)
        run.step_context.contact_forces = asked
        run.advance(0.02)
        assert ("contact_forces" in run.step_context.report) is asked
        kept.append(values(run.snapshot()))
    assert kept[0] == kept[1]
