"""Goals: who goes where, and that matter arrives in a cook as in a solver of one's own."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot

from mpm_nodes.data import GraphSettings, Material, MpmNodesError, concatenate
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.goals import GOAL, GOAL_GROUP, GOAL_WEIGHT, GoalMatch, force_goal, set_goal
from mpm_nodes.solver.rearrangement import exchange, rearranged
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from mpm_nodes.verification.goals import ArrivalAtGoal, DrainByAge, WaysToGoals, sent

SETTINGS, MATTER = GraphSettings(cell_size=0.1), Material("neo_hookean", {}, 1000.0, "jelly")
BODY = emit_box(SETTINGS, MATTER, size=(0.4, 0.4, 0.4))


@pytest.mark.parametrize("problem", [ArrivalAtGoal, WaysToGoals, DrainByAge])
def test_closed_forms(problem):
    """The cubic and its end, limits, short ways, ages."""
    for record in problem().records():
        assert record.passed, record


def test_each_goal_is_given_once_and_others_are_spread():
    """As many points as particles: a permutation; more: some of them, evenly; fewer: around each, within its room."""
    same = emit_box(SETTINGS, MATTER, size=(0.8, 0.4, 0.2), centre=(3.0, 0.0, 0.0))
    assert len(same) == len(BODY)
    found = set_goal(BODY, (same,))
    assert np.array_equal(np.unique(found[GOAL], axis=0), np.unique(same["position"], axis=0))
    assert (found[GOAL_WEIGHT] == 1.0).all() and len(set(found[GOAL_GROUP])) == 1 and found[GOAL_GROUP][0] > 0
    many = emit_box(SETTINGS, MATTER, size=(0.8, 0.4, 0.8), centre=(3.0, 0.0, 0.0))
    taken = set_goal(BODY, (many,))[GOAL]
    assert len(np.unique(taken, axis=0)) == len(BODY)
    counts, _ = np.histogramdd(taken, [[2.6, 3.0, 3.4], [-0.2, 0.0, 0.2], [-0.4, 0.0, 0.4]])
    assert counts.min() > 0.9 * len(BODY) / 8
    few = emit_box(SETTINGS, MATTER, size=(0.4, 0.2, 0.4), centre=(3.0, 0.0, 0.0))
    with pytest.warns(UserWarning, match=r"set_goal.goal: the points stand for 0.032 m\^3, and the matter has 0.064"):
        shared = set_goal(BODY, (few,))[GOAL]
    assert len(np.unique(shared, axis=0)) == len(BODY) and np.abs(shared - [3.0, 0.0, 0.0]).max() <= 0.2 + 1e-12


def test_ids_say_who_goes_where():
    """Points are found by their ids in any order; particles whose id no point has go nowhere, and it is told."""
    turn = np.random.default_rng(4).permutation(len(BODY))[3:]
    there = dataclasses.replace(BODY, attributes={"position": BODY["position"][turn] + [1.0, 2.0, 3.0], "id": turn})
    with pytest.warns(UserWarning, match=f"3 of {len(BODY)} particles have ids that no point has"):
        found = set_goal(BODY, (there,), match=GoalMatch.ID)
    known = np.isin(np.arange(len(BODY)), turn)
    assert np.array_equal(found[GOAL][known], BODY["position"][known] + [1.0, 2.0, 3.0])
    assert np.array_equal(found[GOAL_WEIGHT], known.astype(float)) and not found[GOAL_GROUP].any()
    with pytest.raises(MpmNodesError, match=r"set_goal.goal: holds no points"):
        set_goal(BODY, (dataclasses.replace(BODY, attributes={"position": np.zeros((0, 3))}),))


def test_exchanges_shorten_ways_within_groups():
    """Goals stay a permutation, of each group; the sum of squares falls; group 0 keeps its own, and memory order does not count."""
    random = np.random.default_rng(0)
    x, start, group = random.random((600, 3)), random.random((600, 3)), random.integers(0, 3, 600)
    goals = start.copy()
    exchange(x, goals, group, 0.1, range(4))
    assert np.array_equal(goals[group == 0], start[group == 0])
    for each in (1, 2):
        mine = group == each
        assert np.array_equal(np.unique(goals[mine], axis=0), np.unique(start[mine], axis=0))
        assert np.square(goals - x)[mine].sum() < 0.3 * np.square(start - x)[mine].sum()
    turn = random.permutation(600)
    turned = start[turn].copy()
    exchange(x[turn], turned, group[turn], 0.1, range(4))
    assert np.array_equal(turned, goals[turn])
    assert rearranged(np.zeros((0, 3)), 0.1, x, 0.1).shape == (0, 3)


def test_matter_without_a_goal_is_left_alone():
    """A body that is merged with one that has a goal falls freely, and its goals are not handed around."""
    one = set_goal(cube(JELLY), (cube(JELLY, (0.0, 2.0, 0.0)),))
    run = SubstepSolver(concatenate([one, cube(JELLY, (3.0, 0.0, 0.0))]), "explicit_apic", dtype=np.float64, dt_max=1e-3)
    run.step_context.frame_at, run.step_context.frame_seconds = lambda time: 1.0 + 24.0 * time, 1.0 / 24.0
    push(run, [force_goal(frame=25.0)])
    run.advance(0.1)
    found = run.snapshot()
    v = found["velocity"][:, 1]
    assert v[found["position"][:, 0] > 2.0] == pytest.approx(-0.981, rel=1e-9) and v[found["position"][:, 0] < 2.0].min() > 0.5


def test_threads_fusion_and_checked_mode_change_nothing():
    """The same bits on one thread and two; and checked mode finds that what forces read is declared."""
    found = []
    for threads, checked in ((1, False), (2, False), (2, True)):
        before = numba.get_num_threads()
        numba.set_num_threads(min(threads, before))
        run = sent("explicit_apic", gravity=9.81, speed_limit=2.0)
        run.step_context.checked = checked
        for _ in range(4):
            run.step(5e-3)
        numba.set_num_threads(before)
        found.append(run.snapshot()["velocity"])
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


@pytest.mark.parametrize("pace", [1.0, 0.5])
def test_a_cook_arrives_at_its_frame_and_resumes_to_the_same_bits(tmp_path, pace):
    """In slow motion too; goals go along in checkpoint and cache; the strength is keyed, and lets the matter fall."""
    graph = shot(end=16, size=0.2, cell_size=0.05, time_scale=pace)
    place = graph.add("emit_box", "place", material=graph["matter"], size=(0.4, 0.2, 0.1), centre=(0.6, 1.2, 0.0))
    graph.add("set_goal", "goal", particles=graph["block"], goal=[place])
    keys = [[1, 1.0, "step"], [13, 0.0, "step"]]
    graph.nodes["sim"].inputs["sources"] = []
    graph.nodes["sim"].connect("sources", [graph["goal"]])
    graph.nodes["sim"].connect("forces", [graph.add("force_goal", "gather", frame=12.0, strength={"keys": keys})])
    graph.add("write_cache", "cache", particles=graph["sim"], attributes=["velocity", "id", "goal", "goal_weight"])
    result = execute(graph, out=tmp_path / "whole")
    from usd_io.stage_reader import read_points

    stage = next((tmp_path / "whole").rglob("cache.usda"))
    at = {frame: read_points(stage, frame) for frame in (1, 7, 12, 16)}
    off = {frame: np.linalg.norm(found["position"] - found["goal"], axis=1).mean() for frame, found in at.items()}
    assert off[12] < 0.03 < 0.2 < off[7] < off[1] and off[16] > off[12]
    assert (
        np.linalg.norm(at[12]["velocity"], axis=1).mean() < 0.35 * off[1] * 24.0 / 11.0
        and at[16]["velocity"][:, 1].mean() < -0.5 * pace**2
    )
    execute(graph, out=tmp_path / "cut", frames=(1, 6))
    execute(graph, out=tmp_path / "cut", frames=(1, 16), resume=True)
    points = [[file.read_bytes() for file in sorted((tmp_path / each).rglob("cache.*.usdc"))] for each in ("whole", "cut")]
    assert len(points[0]) >= 16 and points[0] == points[1] and not result.warnings
