"""A solve that ranks share comes to what one rank comes to, to rounding, and to the same bits each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rank_scenes

STEPS = 200
ROUNDING = 1e-10
"""Largest difference over the largest value of an attribute: 200 substeps in double precision, which amplify rounding a little."""

FLAT = {"velocity_gradient": 1.0, "affine": 1.0}
"""Least scale that differences are compared with [1/s]: a gradient may be nothing but rounding."""


def shared(on_ranks, ranks, scene, steps, path):
    on_ranks(ranks, Path(__file__).with_name("rank_scenes.py"), scene, steps, path)
    with np.load(path) as found:
        values = dict(found)
    facts = {name.removeprefix("fact "): float(values.pop(name)) for name in [*values] if name.startswith("fact ")}
    return values, facts


def differences(one, other):
    assert one.keys() == other.keys() and np.array_equal(one["id"], other["id"])
    found = {}
    for name in one:
        a, b = one[name].astype(float), other[name].astype(float)
        found[name] = float(np.abs(a - b).max() / max(np.abs(a).max(), FLAT.get(name, 1e-300)))
    return found


def test_two_ranks_equal_one(on_ranks, tmp_path):
    """Forty substeps with a floor, a ball and a stream: every attribute of every particle, ids and time."""
    solver, alone = rank_scenes.run("explicit", 40)
    found, facts = shared(on_ranks, 2, "explicit", 40, tmp_path / "two.npz")
    assert {name: each for name, each in differences(alone, found).items() if each > 1e-12} == {}
    assert abs(facts["time"] - solver.time) < 1e-14 and facts["ids"] == solver.next_id > len(rank_scenes.swirling(rank_scenes.SNOW))


@pytest.mark.parametrize(("scene", "steps"), [("flip", 40), ("bodies", 45), ("heat", 55), ("tension", 40)])
def test_rounding_stays_rounding_on_one_rank(scene, steps):
    """Velocities that differ in their last bits decide no contact: what meets a floor, a ball or a body stays alike to rounding."""
    worst = differences(rank_scenes.run(scene, steps)[1], rank_scenes.run(scene, steps, stir=4e-16)[1])
    assert {name: each for name, each in worst.items() if each > ROUNDING} == {}


@pytest.fixture(scope="module")
def alone():
    """Return what a scene comes to on one rank; each is run once."""
    known = {}

    def run(scene):
        if scene not in known:
            known[scene] = rank_scenes.run(scene, STEPS)
        return known[scene]

    return run


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("scene", rank_scenes.SCENES)
def test_ranks_equal_one_after_200_substeps(scene, ranks, alone, on_ranks, tmp_path):
    """Every preset that ranks share, with colliders, streams and resampling; twice on as many ranks gives the same bits."""
    solver, expected = alone(scene)
    found, facts = shared(on_ranks, ranks, scene, STEPS, tmp_path / "first.npz")
    worst = differences(expected, found)
    print(scene, ranks, facts, f"{max(worst.values()):.1e}")
    assert {name: each for name, each in worst.items() if each > ROUNDING} == {}
    assert abs(facts["time"] - solver.time) < 1e-12 and facts["ids"] == solver.next_id
    again, _ = shared(on_ranks, ranks, scene, STEPS, tmp_path / "second.npz")
    assert all(found[name].tobytes() == again[name].tobytes() for name in found)
    told = rank_scenes.told_of(solver)
    assert {name: facts[name] for name in told} == pytest.approx(told, rel=1e-9)
    assert {name.partition(" ")[0] for name in told} == rank_scenes.TOLD.get(scene, set())
    if scene in ("heat", "nodal_heat", "melting_surface"):
        assert all(told[name] for name in ("phases melted", "phases frozen", "heat from_bodies", "heat from_air", "heat surface"))
    if scene == "ambient":
        assert told["heat from_air"] and told["heat from_sources"]
    if scene == "metered":  # one finds no room and is full in the end, one is done
        streams = solver.matter.streams
        assert streams[0].closed and streams[0].born and solver.step_context.report["emitted"]["without_room"][0]
        assert streams[1].born == 64
    if scene == "bodies":
        assert len(np.unique(expected["body"])) == 3
    if scene in ("travelling", "drops"):
        assert facts["handed"] > 0 and facts["recuts"] > 0
    if scene == "foam":  # else the scene shows nothing
        told = solver.step_context.report
        assert told["removed"]["particles"] > 0 and told["resampling"]["inserted"] + told["resampling"]["merged"] > 0
        assert 0 < expected["weak"].sum() < len(expected["weak"])
