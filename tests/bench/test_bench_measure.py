"""Records of measured rows: complete, consistent, beside a calibration that really computes."""

from __future__ import annotations

import json

import numba
import numpy as np
import pytest

from mpm_nodes import cli
from mpm_nodes.bench import calibrate, cold, domain, measure, rows, scenes, table
from mpm_nodes.bench.threads import available_threads, set_threads
from mpm_nodes.solver.state import ParticleStore

KEYS = {
    "scene",
    "law",
    "kernel",
    "transfer",
    "particles",
    "threads",
    "particle_steps_per_second",
    "stage_seconds",
    "bytes_per_particle",
    "executor_overhead",
    "calibration",
    "precision",
    "fused",
    "compile_seconds",
    "beside_bytes",
    "substeps",
    "total_seconds",
    "version",
    "cpu",
    "cpu_features",
}
MACHINE = {"triad_gigabytes_per_second": 40.0, "fma_gigaflops": 200.0}


@pytest.fixture
def calibrated(monkeypatch):
    """Spare tests of something else the calibration."""
    monkeypatch.setattr(calibrate, "calibration", lambda threads: MACHINE)


@pytest.fixture(autouse=True)
def threads():
    """Leave the number of threads as it was."""
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


def test_a_record_is_complete_and_consistent(calibrated):
    """The rate is particles times substeps over the whole time, and stages, sort and overhead add up to it."""
    record = measure.measure(rows.Row(particles=1000, threads=1), seconds=0.01)
    assert record.keys() >= KEYS
    assert json.loads(json.dumps(record)) == record
    assert (record["scene"], record["law"], record["particles"], record["threads"]) == ("cube", "neo_hookean", 1000, 1)
    per_substep = record["total_seconds"] / record["substeps"]
    assert record["particle_steps_per_second"] == pytest.approx(1000 / per_substep)
    assert sum(record["stage_seconds"].values()) + record["executor_overhead"] == pytest.approx(per_substep)
    assert record["substeps"] % (2 * 32) == 0
    assert record["stage_seconds"]["sort"] > 0
    assert record["executor_overhead"] > 0 and min(record["stage_seconds"].values()) >= 0
    assert 0 < record["median_substep_seconds"] <= record["total_seconds"]
    assert 100 < record["bytes_per_particle"] < 1000
    assert record["calibration"] == MACHINE


def arrays_reached(value, seen: set[int]) -> list[np.ndarray]:
    """Return every array that a value holds, in objects of any kind but the particles' store, each once."""
    if id(value) in seen or isinstance(value, ParticleStore):
        return []
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else None
    if parts is None:
        parts = vars(value).values() if hasattr(value, "__dict__") and not isinstance(value, type) else ()
    return [array for part in parts for array in arrays_reached(part, seen)]


def test_beside_counts_grid_and_tables():
    """Besides the particles a solve holds all that the grid does, tables of transfers too, and the block tables: each once."""
    solver = scenes.solver(scenes.scene("cube", "neo_hookean", 1000), rows.Row())
    solver.step()
    particles, shared = solver.particles, {id(solver.particles.origin)}
    held = arrays_reached(solver.grid, set(shared))
    segments, colour_start, colour_range, tile_slot, *_ = solver.grid.scatter_tables()
    assert {id(array) for array in (colour_start, colour_range, tile_slot)} <= {id(array) for array in held}
    assert solver.grid.nbytes == sum(array.nbytes for array in held)
    blocks = [particles.block_coord, particles.block_body, particles.block_sides, particles.block_start]
    tables = [particles.origin, *blocks, segments, *particles.segments]
    assert measure.beside_bytes(solver) == solver.grid.nbytes + sum(array.nbytes for array in tables)


def test_calibration_is_positive_and_of_both_kinds(monkeypatch):
    """Bandwidth and arithmetic are positive numbers for every number of threads."""
    monkeypatch.setattr(calibrate, "ELEMENTS", 1 << 20)
    monkeypatch.setattr(calibrate, "REPEATS", 3)
    for threads in {1, min(2, available_threads())}:
        set_threads(threads)
        figures = calibrate.calibration(threads)
        assert set(figures) == set(MACHINE) and all(0 < value < float("inf") for value in figures.values())


def test_calibration_kernels_compute_what_is_counted():
    """The triad writes b + s c; each chain of multiply-adds goes through all its rounds."""
    triad, few, many = calibrate._kernels()
    a, b, c = np.zeros(1000, np.float32), np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    triad(a, b, c, np.float32(0.5))
    assert np.array_equal(a, b + np.float32(0.5))
    for chains, kernel in ((6, few), (12, many)):
        lanes = np.random.default_rng(1).uniform(0.1, 0.9, calibrate.APART).astype(np.float32)
        rows_of_lanes = lanes.reshape(16, 16).astype(float)
        factor, summand, values = rows_of_lanes[0], rows_of_lanes[1], rows_of_lanes[2 : 2 + chains].copy()
        for _ in range(5):
            values = values * factor + summand
        kernel(lanes, 1, 5)
        assert lanes.reshape(16, 16)[14] == pytest.approx(values.sum(axis=0), rel=1e-5)


def test_scenes_have_exactly_the_particles_asked_for():
    """Any number of particles is met, also where it is not a cube."""
    for name, law in (("cube", "snow"), ("two_materials", "neo_hookean+snow"), ("dam_break", "liquid")):
        assert len(scenes.scene(name, law, 1234).particles) == 1234


def test_the_cube_is_compact_and_the_dam_is_not():
    """A cube holds about eight particles a cell, a broken dam fewer; the dam has reached the far wall and nobody left the box."""
    cube, dam = scenes.scene("cube", "liquid", 8000), scenes.scene("dam_break", "liquid", 8000)
    position = dam.particles["position"]
    assert cube.particles_per_cell > 7.5
    assert dam.particles_per_cell < 0.8 * cube.particles_per_cell
    assert position[:, 0].max() > dam.walls.high[0] - 4 * dam.particles.spacing
    assert position.min() > -dam.particles.spacing and (position < np.add(dam.walls.high, dam.particles.spacing)).all()


def test_two_materials_meet_inside_blocks():
    """Both laws have about half of the particles, and some block of four cells holds both."""
    particles = scenes.scene("two_materials", "neo_hookean+snow", 27_000).particles
    material = particles["material"]
    assert [m.law for m in particles.materials] == ["neo_hookean", "snow"]
    assert 0.3 < material.mean() < 0.7
    block = (particles["position"] // (8 * particles.spacing)).astype(int) @ (1, 100, 10_000)
    assert any(len(set(material[block == one])) == 2 for one in np.unique(block))


def test_a_larger_domain_has_the_same_blocks_and_bytes():
    """The grid follows the drop: a domain a hundred times larger allocates nothing more."""
    figures = domain.compare(rows.Row(law="liquid", particles=1000, threads=1), pairs=3, substeps=4)
    assert figures["blocks"][0] == figures["blocks"][1] > 0
    assert figures["bytes"][0] == figures["bytes"][1] > 0
    assert figures["size"][1] == pytest.approx(100 * figures["size"][0])
    assert len(figures["ratios"]) == 3 and min(figures["ratios"]) <= figures["median_ratio"] <= max(figures["ratios"])


def test_the_domain_check_fails_when_more_is_paid():
    """More blocks, more bytes or a tenth more time are each a failure."""
    same = {"blocks": [9, 9], "bytes": [100, 100], "median_ratio": 1.09}
    assert domain.passed(same) and domain.passed({**same, "median_ratio": 0.91})
    for worse in ({"blocks": [9, 10]}, {"bytes": [100, 101]}, {"median_ratio": 1.11}, {"median_ratio": 0.89}):
        assert not domain.passed({**same, **worse})


def test_quick_runs_through_the_command_line(calibrated, tmp_path, capsys):
    """`bench --quick` prints one line a row and one of stages, writes the records, and leaves the threads as they were."""
    before = numba.get_num_threads()
    assert cli.main(["bench", "--quick", "--json", str(tmp_path / "records.json")]) == 0
    records, printed = json.loads((tmp_path / "records.json").read_text()), capsys.readouterr().out.splitlines()
    assert [(r["scene"], r["law"], r["kernel"], r["transfer"]) for r in records] == [
        (r.scene, r.law, r.kernel, r.transfer) for r in rows.quick(2)
    ]
    assert {r["particles"] for r in records} == {10_000}
    assert len(printed) == 2 + 2 * len(records)
    assert all(f"{1e-6 * r['particle_steps_per_second']:.1f}" in text for r, text in zip(records, printed[2::2], strict=True))
    assert numba.get_num_threads() == before


def test_unfused_stages_are_timed_one_by_one(calibrated):
    """`--no-fuse` gives one figure a stage of the graph; fused ones bear the names of all that they stand for."""
    plain = measure.measure(rows.Row(particles=500, threads=1, fuse=False), seconds=0.0)
    fused = measure.measure(rows.Row(particles=500, threads=1, fuse=True), seconds=0.0)
    assert (plain["fused"], fused["fused"]) == (False, True)
    assert not any("+" in name for name in plain["stage_seconds"])
    assert any("+" in name for name in fused["stage_seconds"])
    assert [part for name in fused["stage_seconds"] for part in name.split("+")] == list(plain["stage_seconds"])


def test_stopping_keeps_what_was_measured(monkeypatch, tmp_path, capsys):
    """Ctrl-C in the second row: the first is printed and written, goals are judged by it, and the exit code is 3."""
    first = measure_stand_in(rows.short(2)[0])
    answers = iter([first])

    def measured(row, **options):
        for answer in answers:
            return answer
        raise KeyboardInterrupt

    monkeypatch.setattr(table, "measure", measured)
    monkeypatch.setattr(table, "available_threads", lambda: 2)
    monkeypatch.setattr(table, "set_threads", lambda threads: None)
    assert cli.main(["bench", "--json", str(tmp_path / "records.json")]) == 3
    printed = capsys.readouterr().out
    assert json.loads((tmp_path / "records.json").read_text()) == [first]
    assert "stopped: 1 of 12 rows" in printed and "NOT MET  neo-Hookean, quadratic: 12, at least 45" in printed


def measure_stand_in(row: rows.Row) -> dict:
    """Return a record as `measure` gives it, of made-up figures: 12 million particle-steps per second."""
    return {
        "scene": row.scene,
        "law": row.law,
        "kernel": row.kernel,
        "transfer": row.transfer,
        "particles": row.particles,
        "threads": row.threads,
        "precision": row.precision,
        "fused": row.fuse,
        "particle_steps_per_second": 12e6,
        "total_seconds": 1.0,
        "substeps": 12,
        "stage_seconds": {"gather": 0.01, "sort": 0.002},
        "executor_overhead": 1e-5,
        "bytes_per_particle": 280.0,
        "beside_bytes": 1e8,
        "compile_seconds": 0.1,
        "calibration": MACHINE,
    }


@pytest.mark.slow
def test_compiling_is_timed_with_an_empty_cache():
    """A fresh process with an empty cache compiles for longer than a warm first substep takes."""
    row = rows.Row(particles=1000, threads=1)
    warm = measure.measure(row, seconds=0.0)["compile_seconds"]
    assert cold.compile_seconds(row) > max(1.0, 2.0 * warm)
