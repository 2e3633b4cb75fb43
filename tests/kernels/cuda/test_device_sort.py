"""Sorts on a device, compiled for the CPU: the same order as the CPU's, bit for bit, and no column crosses."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.solver.device.residency import Residency
from mpm_nodes.solver.device.sorting import CHUNK, mean, prefix_sums
from mpm_nodes.solver.state import ParticleStore
from tests.kernels.cuda.emulated import COMPILER, Emulated
from tests.solver import fusion_scenes as scenes

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

NAMES = ("affine", "deformation", "stress", "volume_change", "temperature", "body")
TABLES = ("block_coord", "block_body", "block_start")


def matter(count: int, materials: int, bodies: int, width: float, seed: int = 3) -> dict[str, np.ndarray]:
    """Return columns of which no value comes twice, of particles in a cube `width` cells wide."""
    random = np.random.default_rng(seed)
    columns = {name: random.normal(size=(count, *shape)) for name, shape in (("affine", (3, 3)), ("deformation", (3, 3)))}
    columns |= {name: random.normal(size=count) for name in ("mass", "volume", "volume_change", "temperature")}
    return columns | {
        "position": random.uniform(0.0, width, (count, 3)),
        "velocity": random.normal(size=(count, 3)),
        "stress": random.normal(size=(count, 6)),
        "id": random.permutation(count) + (1 << 40),
        "material": random.integers(0, materials, count).astype(np.int32),
        "body": random.integers(0, bodies, count).astype(np.int32),
    }


def strayed(columns: dict[str, np.ndarray], materials: int, far: float, **options) -> ParticleStore:
    """Return a store whose particles have moved by up to `far` cells since they were put into blocks."""
    store = ParticleStore(NAMES, cell_size=1.0, materials=materials, **options)
    store.append(columns)
    count, offset = store.count, store.rows("position")
    away = np.random.default_rng(5).uniform(-far, far, (3, count)) * store.unit
    offset[:] = np.clip(offset + away, -8 * store.unit, 8 * store.unit - 1).astype(np.int32)
    return store


def check_same(here: ParticleStore, there: ParticleStore):
    """Hold every bit of two stores to be the same but what no one keeps."""
    assert here.count == there.count
    for name in TABLES:
        one, other = getattr(here, name), getattr(there, name)
        assert (one.dtype, one.tolist()) == (other.dtype, other.tolist()), name
    assert [runs.tolist() for runs in here.segments] == [runs.tolist() for runs in there.segments]
    for name in ("position", *here.names):
        if name not in here.stale:
            assert here.rows(name).tobytes() == there.rows(name).tobytes(), name


def on_device(device_folder, *args, **options) -> ParticleStore:
    store = strayed(*args, **options)
    store.residency = Residency(Emulated(device_folder))
    return store


SCENES = {
    "one material": ((700, 1, 1, 14.0), 1, 1.5, {}),
    "crowded cells": ((900, 2, 1, 2.0), 2, 0.3, {}),
    "mostly empty cells": ((150, 3, 1, 90.0), 3, 3.0, {}),
    "as far as offsets reach": ((600, 3, 1, 20.0), 3, 8.0, {}),
    "bodies apart": ((600, 2, 4, 12.0), 2, 2.0, {"apart": "body"}),
    "periodic sides": ((600, 2, 1, 16.0), 2, 5.0, {"period": (4, 0, 4)}),
    "one particle": ((1, 2, 1, 1.0), 2, 3.0, {}),
    "far from the origin": ((300, 1, 1, 12.0), 1, 2.0, {"origin": (4e5, -3e5, 1e5)}),
}


@pytest.mark.parametrize("scene", SCENES)
def test_the_order_is_that_of_the_cpu(scene, device_folder):
    """Whatever the order in which threads reach a cell: the last come first in the second sort."""
    (count, materials, bodies, width), laws, far, options = SCENES[scene]
    columns = matter(count, materials, bodies, width)
    columns["position"] += options.get("origin", 0.0)
    here = strayed(columns, laws, far, **options)
    there = on_device(device_folder, columns, laws, far, **options)
    before = here.rows("id").copy()
    for sorts in range(2):  # the second finds the buffers of the first swapped
        here.sort()
        there.sort()
        check_same(here, there)
        assert count == 1 or not np.array_equal(before, here.rows("id"))
        before = here.rows("id").copy()
        if sorts == 0:
            for store in (here, there):
                store.rows("position")[:] += np.int32(3 << 26) * np.random.default_rng(8).integers(-2, 3, (3, count), np.int32)
    assert there.residency.device.launches["move_offsets"] == 2


def test_what_rests_stale_is_left_where_it_is(device_folder):
    columns = matter(300, 2, 1, 10.0)
    here, there = strayed(columns, 2, 2.0), on_device(device_folder, columns, 2, 2.0)
    for store in (here, there):
        store.stale = {"stress", "affine"}
        store.sort()
    check_same(here, there)
    assert there.rows("stress").tobytes() == strayed(columns, 2, 2.0).rows("stress").tobytes()


def test_no_column_crosses_after_the_first_sort(device_folder):
    """What goes up and down is a few words for each block."""
    store = on_device(device_folder, matter(3000, 2, 1, 14.0), 2, 1.0)
    store.sort()
    device, crossed = store.residency.device, []
    device.upload = lambda buffer, array, upload=device.upload: (crossed.append(array.nbytes), upload(buffer, array))
    device.download = lambda buffer, array, download=device.download: (crossed.append(array.nbytes), download(buffer, array))
    before = list(store.residency.moved)
    for _ in range(3):
        store.sort()
    assert store.residency.moved == before
    assert 0 < sum(crossed) <= 3 * store.block_count * (16 + 4 * 4 + 8)
    assert max(crossed) < store.count


def test_buffers_are_counted(device_folder):
    """The spare buffer is the only one beside those of the arrays, and it goes when arrays grow."""
    store = on_device(device_folder, matter(300, 1, 1, 10.0), 1, 1.0)
    store.sort()
    arrays = [store.kept(name) for name in ("position", *store.names)]
    assert store.residency.nbytes == sum(a.nbytes for a in arrays) + max(a.nbytes for a in arrays)
    store.reserve(4 * store.stride)
    assert store.residency.nbytes == 0


def test_deleting_leaves_the_same_particles_in_the_same_order(device_folder):
    columns = matter(700, 2, 1, 12.0)
    here, there = strayed(columns, 2, 1.0), on_device(device_folder, columns, 2, 1.0)
    dead = np.random.default_rng(4).random(700) < 0.3
    dead[:40] = True  # a block may become empty
    for store in (here, there):
        store.sort()
    before = list(there.residency.moved)
    for store in (here, there):
        store.delete(np.zeros(700, bool))
        store.delete(dead)
    assert there.residency.moved == before
    check_same(here, there)
    for store in (here, there):
        store.sort()
    check_same(here, there)
    for store in (here, there):
        store.delete(np.ones(store.count, bool))
        store.sort()
    check_same(here, there)
    assert there.count == there.block_count == 0
    there.sort()
    check_same(here, there)


@pytest.mark.parametrize("room", [0, 200], ids=["arrays grow", "there is room"])
def test_newcomers_are_put_behind_the_others(room, device_folder):
    """Where there is room for them only they go up; attributes that they lack rest."""
    columns, more = matter(500, 2, 1, 12.0), matter(90, 2, 1, 16.0, seed=9)
    more = {name: values for name, values in more.items() if name != "deformation"}
    here, there = strayed(columns, 2, 1.0), on_device(device_folder, columns, 2, 1.0)
    for store in (here, there):
        store.reserve(500 + room)
        store.sort()
    before = list(there.residency.moved)
    for store in (here, there):
        store.append(more)
        store.append(more)
    found = [runs.tolist() for runs in here.segments]
    here.retable()
    assert found == [runs.tolist() for runs in here.segments]
    for store in (here, there):
        store.sort()
    assert (there.residency.moved == before) is (room > 0)
    check_same(here, there)


@pytest.mark.parametrize("count", [1, CHUNK, 3 * CHUNK + 5, CHUNK * CHUNK + 3])
def test_prefix_sums_of_any_length(count, device_folder):
    """The last is one of three levels."""
    device, values = Emulated(device_folder), np.random.default_rng(2).integers(0, 9, count, np.int32)
    buffer, found = device.allocate(values.nbytes), np.empty_like(values)
    device.upload(buffer, values)
    prefix_sums(device, buffer, count)
    device.download(buffer, found)
    assert np.array_equal(found, np.cumsum(values, dtype=np.int32) - values)


def test_means_are_right_to_rounding(device_folder):
    values = np.random.default_rng(3).uniform(0.5, 2.0, 5 * CHUNK + 77).astype(np.float32)
    found = mean(Residency(Emulated(device_folder)), values, len(values) - 10)
    assert abs(found - values[:-10].mean(dtype=float)) < 1e-6


@pytest.mark.parametrize("scene", ["free", "surrounded"])
def test_solves_that_sort_often(scene, device_folder):
    """Every other substep is sorted: the same values to rounding, and where no stage runs on the CPU no column is copied."""
    around = scenes.SCENES[scene]
    here, there = (scenes.solver(scenes.MIXED, **around, **each) for each in ({}, {"device": Emulated(device_folder)}))
    allowed = scenes.rounding(here, 8, scenes.DT)
    for number in range(8):
        for run in (here, there):
            run.particles.sorted &= number % 2 == 0
            run.step(scenes.DT, keep=number == 7)
        if number == 1:
            before = list(there.residency.moved)
        if number == 6 and scene == "free":
            assert there.residency.moved == before
    assert there.residency.device.launches["move_offsets"] >= 4
    one, other = scenes.attributes(here), scenes.attributes(there)
    assert one.keys() == other.keys()
    for name, values in one.items():
        apart = float(np.abs(values.astype(float) - other[name]).max(initial=0.0))
        assert apart <= scenes.WITHIN * allowed.get(name, 0.0), name
