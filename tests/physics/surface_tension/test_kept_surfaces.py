"""Surfaces of matter that stands still are kept: bit for bit those of particles where they were sampled last."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest

from mpm_nodes.data import Material, Particles, SurfaceTension
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.physics.surface_tension.nodes.tension import material_interface_tension
from mpm_nodes.physics.surface_tension.numerics import samples as sharing
from mpm_nodes.physics.surface_tension.numerics.symmetry import OPEN_PLANE, Window
from mpm_nodes.solver.run import SubstepSolver

H = 0.1
STILL = 0.01
EVERYWHERE = Window(np.full(3, -OPEN_PLANE), np.full(3, OPEN_PLANE), np.zeros(3, bool))
WATER = Material("liquid", {"bulk_modulus": 100.0}, 1.0, "water", surface_tension=SurfaceTension(1.0, 0.25, 300.0, 400.0))
OIL = dataclasses.replace(WATER, label="oil")
NAMES = ("position", "normal", "area", "owner", "covered", "interface")


def block(materials: tuple[Material, ...] = (WATER,), **columns: np.ndarray) -> Particles:
    """Return a bar of 20 cells, jittered, of two liquids where two are given; a drop is beside it."""
    random = np.random.default_rng(3)
    bar = 0.5 * H * (np.stack(np.meshgrid(*map(np.arange, (40, 9, 9)), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5)
    lone = 0.5 * H * (np.stack(np.meshgrid(*map(np.arange, (4, 4, 4)), indexing="ij"), axis=-1).reshape(-1, 3) + [60, 0, 0])
    position = np.concatenate([bar, lone]) + random.uniform(-0.01, 0.01, (len(bar) + len(lone), 3))
    kind = (position[:, 0] > 1.0).astype(np.int32) * (len(materials) - 1)
    return Particles({"position": position, "material": kind, **columns}, materials, 0.5 * H)


def pair() -> tuple[Material, ...]:
    """Return two liquids with a tension between them."""
    return material_interface_tension(WATER, other="oil", tension=0.3), OIL


def solver(particles: Particles, **options) -> SubstepSolver:
    """Return a solve that keeps surfaces, without gravity."""
    preset = {"preset": "surface_tension", "set": {"still": STILL}}
    return SubstepSolver(particles, preset, cell_size=H, origin=(0.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0), **options)


def sampled(run: SubstepSolver, still: float = STILL) -> dict[str, np.ndarray]:
    """Return the samples of the particles as they are."""
    points = run.stores["samples"]
    sharing.sample_surface(run.particles, points, 0.867, True, sharing.Spread(1.0), EVERYWHERE, still)
    return {name: points.unpack(name) for name in NAMES}


def move(run: SubstepSolver, cells: np.ndarray) -> None:
    """Move particles, in the order of their memory, without sorting them."""
    position = run.particles.rows("position")
    position += np.rint(cells.T * run.particles.unit).astype(position.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("materials", [(WATER,), pair()], ids=["one", "pair"])
def test_what_stands_still_is_sampled_where_it_stood(dtype, materials):
    """A part that moved by more than `still` is where it is, others where they were: as if all were sampled there, bit for bit."""
    run = solver(block(materials), dtype=dtype)
    run.particles.sort()
    first = sampled(run)
    random = np.random.default_rng(4)
    x = run.particles.unpack("position")[:, 0]
    away = random.uniform(-0.9, 0.9, (run.particles.count, 3)) * STILL
    away[x < 0.4] *= 20.0
    move(run, away)
    again = sampled(run)
    kept = run.stores["samples"].past
    assert 0 < len(kept._field) < len(kept._mesh) < 0.7 * len(kept._place)

    moved, position = x < 0.4, run.particles.rows("position")
    assert not np.array_equal(position, kept._moment.layout.offset.reshape(3, -1))
    position[:] = kept._moment.layout.offset.reshape(3, -1)
    whole = sampled(run, 0.0)
    for name in NAMES:
        np.testing.assert_array_equal(again[name], whole[name], err_msg=name)
    assert not any(np.array_equal(again[name], first[name]) for name in ("position", "area"))
    assert moved[again["owner"]].any() and not moved[again["owner"]].all()


def test_blocks_that_come_go_and_are_sorted_are_found():
    """Particles leave a block and open a new one between two samplings, and all are sorted: as if all were sampled."""
    run = solver(block())
    run.particles.sort()
    sampled(run)
    mover = run.particles.unpack("position")[:, 0] > 2.5
    away = np.zeros((run.particles.count, 3))
    away[mover] = (-1.5, 0.3, 0.0)
    shifted = False
    for _ in range(2):
        move(run, away)
        run.particles.drift, run.particles.sorted = 4.0, False
        run.particles.sort()
        away = np.zeros((run.particles.count, 3))
        mover = run.particles.unpack("position")[:, 0] > 2.2
        away[mover] = (-1.5, 0.3, 0.0)
        again = sampled(run)
        kept = run.stores["samples"].past
        assert 0 < len(kept._mesh) < len(kept._place)
        shifted |= bool(kept._shift.any())
        held = kept._moment.layout.offset.reshape(3, -1)
        np.testing.assert_array_equal(held, run.particles.rows("position"))
        whole = sampled(run, 0.0)
        for name in NAMES:
            np.testing.assert_array_equal(again[name], whole[name], err_msg=name)
    assert shifted  # rows of owners have moved in memory


@pytest.mark.parametrize("threads", [1, 2])
def test_solves_that_keep_surfaces_have_the_same_bits(threads):
    """Checked, with one thread or two; the surface is closed in each substep."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    run = solver(block(), checked=threads == 2)
    for _ in range(4):
        run.step(1e-3)
        assert 0.0 <= run.step_context.report["surface"]["open"] < 1.2e-7
    numba.set_num_threads(before)
    reference = solver(block())
    for _ in range(4):
        reference.step(1e-3)
    np.testing.assert_array_equal(run.snapshot()["velocity"], reference.snapshot()["velocity"])


def test_matter_at_rest_keeps_its_surface_and_a_frame_forgets_it():
    """Nothing is found again where nothing moves; a new frame begins as a cook that resumes does."""
    run = solver(block())
    run.particles.sort()
    first = sampled(run)
    again = sampled(run)
    kept = run.stores["samples"].past
    assert len(kept._mesh) == 0 and run.stores["samples"].nbytes > kept.nbytes > 0
    for name in NAMES:
        np.testing.assert_array_equal(again[name], first[name], err_msg=name)
    run.forget_past()
    assert kept.nbytes == 0 and kept.begun(0) is None
    sampled(run)
    assert kept.begun(0) is None


def test_other_knobs_and_other_volumes_are_noticed():
    """A surface that was asked for otherwise does not count, nor does one around other volumes."""
    run = solver(block())
    run.particles.sort()
    sampled(run)
    run.particles.rows("volume")[0, :5] *= 1.01
    sampled(run)
    assert 0 < len(run.stores["samples"].past._mesh) < len(run.stores["samples"].past._place)
    sampled(run, 2.0 * STILL)
    assert run.stores["samples"].past.wanted is not None
    sharing.sample_surface(run.particles, run.stores["samples"], 0.8, True, sharing.Spread(1.0), EVERYWHERE, STILL)
    assert run.stores["samples"].past.wanted is None


def falling(still: float) -> Graph:
    """Return the graph of a drop of liquid that falls on a wall, with two substeps a frame and more."""
    graph = Graph(cell_size=H, fps=48.0, start=1, end=4)
    liquid = graph.add("material_liquid", "liquid", density=1.0, bulk_modulus=100.0)
    water = graph.add("material_surface_tension", "water", material=liquid, tension=0.1)
    drop = graph.add("emit_box", "drop", material=water, size=(0.4, 0.4, 0.4), centre=(0.0, 0.21, 0.0))
    substeps = {"preset": "surface_tension", "set": {"still": still}}
    graph.add("solve", "sim", sources=[drop], substeps=substeps, gravity=(0.0, -0.1, 0.0), dt_max=0.004, wall_y_low="separate")
    graph.add("write_cache", "cache", particles="sim.particles", name="drop")
    return graph


def test_a_resumed_cook_has_the_same_bits(tmp_path):
    """Broken off after frame 2 and resumed: frame 4 is byte for byte that of a cook in one go, and is not that without `still`."""

    def cooked(name: str, still: float, *parts: tuple[int, int]) -> bytes:
        for number, frames in enumerate(parts):
            execute(falling(still), frames=frames, out=tmp_path / name, resume=number > 0)
        return next((tmp_path / name).rglob("drop.0004.usdc")).read_bytes()

    whole = cooked("whole", 0.05, (1, 4))
    assert cooked("parts", 0.05, (1, 2), (1, 4)) == whole
    assert cooked("all", 0.0, (1, 4)) != whole
