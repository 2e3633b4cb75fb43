"""Records of measured rows: complete and consistent."""

from __future__ import annotations

import json

import numba
import numpy as np
import pytest

from mpm_nodes import cli
from mpm_nodes.bench import cold, measure, rows, scenes, table
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


@pytest.fixture(autouse=True)
def threads():
    """Leave the number of threads as it was."""
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


def test_a_record_is_complete_and_consistent():
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


def test_quick_runs_through_the_command_line(tmp_path, capsys):
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


def test_unfused_stages_are_timed_one_by_one():
    """`--no-fuse` gives one figure a stage of the graph; fused ones bear the names of all that they stand for."""
    plain = measure.measure(rows.Row(particles=500, threads=1, fuse=False), seconds=0.0)
    fused = measure.measure(rows.Row(particles=500, threads=1, fuse=True), seconds=0.0)
    assert (plain["fused"], fused["fused"]) == (False, True)
    assert not any("+" in name for name in plain["stage_seconds"])
    assert any("+" in name for name in fused["stage_seconds"])
    assert [part for name in fused["stage_seconds"] for part in name.split("+")] == list(plain["stage_seconds"])


def test_stopping_keeps_what_was_measured(monkeypatch, tmp_path, capsys):
    """Ctrl-C in the second row: the first is printed and written, and the exit code is 3."""
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
    assert "stopped: 1 of 12 rows" in printed


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
    }


@pytest.mark.slow
def test_compiling_is_timed_with_an_empty_cache():
    """A fresh process with an empty cache compiles for longer than a warm first substep takes."""
    row = rows.Row(particles=1000, threads=1)
    warm = measure.measure(row, seconds=0.0)["compile_seconds"]
    assert cold.compile_seconds(row) > max(1.0, 2.0 * warm)
