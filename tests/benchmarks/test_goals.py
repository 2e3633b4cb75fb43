"""Which goals measured rows touch, and whether they meet them."""

from __future__ import annotations

import json

import goals
import pytest

from mpm_nodes.bench import rows


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


def test_the_short_selection_touches_every_goal():
    """What `mpm-nodes bench` measures by itself decides about every goal."""
    results = goals.results(record(row) for row in rows.short(2))
    assert [result.goal for result in results] == list(goals.GOALS)


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


def test_the_command_says_what_is_missed(tmp_path, capsys):
    """A row that is too slow is a failure."""
    file = tmp_path / "rows.json"
    for rate, code in ((46.0, 0), (12.0, 1)):
        file.write_text(json.dumps([record(rows.Row(), rate)]))
        assert goals.main([str(file)]) == code
    assert "NOT MET  neo-Hookean, quadratic: 12, at least 45" in capsys.readouterr().out
