"""Which rows are measured, and which goals they touch."""

from __future__ import annotations

import argparse

import pytest

from mpm_nodes.bench import goals, rows
from mpm_nodes.commands import bench


def chosen(*arguments: str, available: int = 2) -> list[rows.Row]:
    parser = argparse.ArgumentParser()
    bench.add(parser)
    return rows.chosen(parser.parse_args(arguments), available)


def record(row: rows.Row, rate: float = 50.0, **facts: float) -> dict:
    """Return what the goals need to know about a row of `rate` million particle-steps per second."""
    return {
        "scene": row.scene,
        "law": row.law,
        "kernel": row.kernel,
        "transfer": row.transfer,
        "particles": row.particles,
        "threads": row.threads,
        "precision": row.precision,
        "fused": row.fuse,
        "particle_steps_per_second": 1e6 * rate,
        "bytes_per_particle": 280.0,
        "beside_bytes": 100e6,
        "stage_seconds": {"avoid_a_void": 1e-3},
        "substeps": 10,
        "total_seconds": 0.1,
        **facts,
    }


def test_lists_give_every_combination():
    """Two laws, two sizes and two numbers of threads are eight rows; what is not listed has one value."""
    found = chosen("--law", "snow", "liquid", "--particles", "500", "70_000", "--threads", "1", "2", "--no-fuse")
    assert len(found) == 8 and {(r.law, r.particles, r.threads) for r in found} == {
        (law, count, threads) for law in ("snow", "liquid") for count in (500, 70_000) for threads in (1, 2)
    }
    assert {(r.scene, r.kernel, r.transfer, r.fuse) for r in found} == {("cube", "quadratic", "apic", False)}


def test_scenes_bring_their_laws():
    """A dam is of liquid unless a law is given; two materials and the foam are always the same, and stand in the table once."""
    assert [r.law for r in chosen("--scene", "dam_break", "two_materials")] == ["liquid", "neo_hookean+snow"]
    assert [r.law for r in chosen("--scene", "dam_break", "--law", "snow")] == ["snow"]
    assert len(chosen("--scene", "two_materials", "--law", "snow", "liquid")) == 1
    foam = chosen("--scene", "foam", "--law", "snow", "--kernel", "quadratic", "cubic")
    assert [(r.law, r.kernel, r.transfer) for r in foam] == [rows.FOAM]


def test_all_has_every_case_of_the_issue_once():
    """Every law, kernel, size, scene and number of threads meets, and FLIP with the cubic kernel besides."""
    found = chosen("--all")
    assert len(found) == len(set(found)) == (4 + 1 + 1) * 2 * 4 * 2 + 4 * 2 + 4 * 2
    assert {r.particles for r in found} == {10_000, 100_000, 1_000_000, 4_000_000}
    assert any(r.transfer == "flip" and r.kernel == "cubic" for r in found)


def test_one_core_measures_one_thread():
    """Where there is one thread, every selection takes one, without double rows."""
    for selection in ((), ("--quick",), ("--all",), ("--law", "snow")):
        found = chosen(*selection, available=1)
        assert {r.threads for r in found} == {1} and len(found) == len(set(found))


def test_the_short_selection_touches_every_goal():
    """What `mpm-nodes bench` measures by itself decides about every goal."""
    results = goals.results(record(row) for row in chosen())
    assert [result.goal for result in results] == list(goals.GOALS)


def test_quick_is_small():
    """`--quick` keeps to ten thousand particles, also with lists."""
    assert {r.particles for r in [*chosen("--quick"), *chosen("--quick", "--law", "snow", "liquid")]} == {10_000}


def test_goals_are_met_or_not_by_the_worst_record():
    """Each figure is compared with its bound, on its side, and the worst of several records counts."""
    base, small, dam = rows.Row(), rows.Row(particles=10_000), rows.Row("dam_break")
    results = {
        r.goal.text: r
        for r in goals.results(
            [
                record(base, 46.0),
                record(small, 18.0),
                record(dam, 24.0, bytes_per_particle=321.0),
                record(rows.Row(law="snow"), 29.9),
                record(rows.Row(kernel="cubic", transfer="flip"), 35.0),
            ]
        )
    }
    figures = {text: (pytest.approx(result.figure), result.met) for text, result in results.items()}
    assert figures == {
        "neo-Hookean, quadratic": (46.0, True),
        "snow, quadratic": (29.9, False),
        "neo-Hookean, cubic FLIP": (35.0, True),
        "dam break beside the cube of the same law": (100 * 24 / 46, True),
        "10 thousand particles beside a million": (100 * 18 / 46, False),
        "memory of a particle": (321.0, False),
        "memory beside a million particles": (100.0, True),
    }
    assert str(results["snow, quadratic"]) == "NOT MET  snow, quadratic: 29.9, at least 30 million particle-steps/s"


def test_goals_are_for_two_threads_and_single_precision():
    """A record of one thread or of float64 touches no goal, and no ratio mixes two cases."""
    assert goals.results([record(rows.Row(threads=1)), record(rows.Row(precision="float64"))]) == []
    mixed = goals.results([record(rows.Row(kernel="cubic")), record(rows.Row(particles=10_000))])
    assert [result.goal.unit for result in mixed] == ["bytes", "MB"]
