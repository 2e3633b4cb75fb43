"""Stores never hold more than they may, and never hand out damage."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pytest
from fake_nodes import Cloud

from mpm_nodes.data import Material, Particles
from mpm_nodes.graph.values.store import ABSENT, DiskStore, MemoryStore, freeze, size_in_bytes


@dataclass(frozen=True)
class Nested:
    """Arrays at every depth."""

    array: np.ndarray
    inside: dict
    listed: tuple


def kilobyte(value: float = 0.0) -> Cloud:
    return Cloud(np.full(128, value))


def test_the_least_recently_used_value_goes_first():
    """Three values fit; a fourth drops the one that was not asked for longest."""
    store = MemoryStore(3 * size_in_bytes(kilobyte()))
    for name in "abc":
        store.put(name, kilobyte())
    assert store.get("a") is not ABSENT
    store.put("d", kilobyte())
    assert store.get("b") is ABSENT
    assert all(store.get(name) is not ABSENT for name in "acd")
    assert store.held <= store.limit


def test_sizes_are_those_of_the_arrays():
    """An array that occurs twice counts once; `nbytes` of a value wins."""
    array = np.zeros(1000)
    assert 8000 <= size_in_bytes((array, {"again": array})) < 8500
    value = type("Opaque", (), {"nbytes": 5_000_000})()
    assert 5_000_000 <= size_in_bytes(value) < 5_001_000


def test_a_value_larger_than_the_store_is_not_kept_and_replaces_the_old_one():
    """The bound holds, and a stale value is not left behind."""
    store = MemoryStore(2000)
    store.put("a", kilobyte())
    store.put("a", Cloud(np.zeros(10_000)))
    assert store.get("a") is ABSENT and store.held == 0 and len(store) == 0


@pytest.mark.parametrize("limit", [0, 1300, 5000, 10**6])
def test_the_bound_holds_whatever_is_put(limit):
    """Random puts and gets never exceed the limit, and what is held adds up."""
    store, random = MemoryStore(limit), np.random.default_rng(1)
    for _ in range(300):
        name = str(random.integers(20))
        store.put(name, Cloud(np.zeros(random.integers(0, 300)))) if random.random() < 0.6 else store.get(name)
        assert 0 <= store.held <= limit
    assert store.held == sum(size for _, size, _ in store._entries.values())
    store.clear()
    assert store.held == 0


def test_freezing_reaches_every_array():
    """Arrays in dataclasses, mappings and tuples become read-only."""
    value = Nested(np.zeros(2), {"a": np.zeros(2), "b": [np.zeros(2)]}, (np.zeros(2), Cloud(np.zeros(2))))
    assert freeze(value) is value
    for array in (value.array, value.inside["a"], value.inside["b"][0], value.listed[0], value.listed[1].points):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_disk_store_keeps_within_its_limit_and_drops_the_oldest(tmp_path):
    """Files beyond the limit go, the one used longest ago first."""
    store = DiskStore(tmp_path, limit=4000)
    for number, name in enumerate("abc"):
        assert store.put(name, "out", kilobyte(number))
        os.utime(store._path(name, "out"), (number, number))
    assert store.get("a", "out", Cloud).points[0] == 0.0  # now used last
    store.put("d", "out", kilobyte(3.0))
    assert store.get("b", "out", Cloud) is ABSENT
    assert store.get("a", "out", Cloud).points[0] == 0.0
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4000


def test_disk_store_passes_over_what_it_cannot_keep(tmp_path):
    """No codec, too large, or a folder that cannot be made: not kept, no error."""
    assert not DiskStore(tmp_path).put("a", "out", object())
    assert not DiskStore(tmp_path, limit=100).put("a", "out", kilobyte())
    (tmp_path / "file").write_text("")
    assert not DiskStore(tmp_path / "file").put("a", "out", kilobyte())
    assert DiskStore(tmp_path / "none").get("a", "out", Cloud) is ABSENT
    assert DiskStore(tmp_path).get("a", "out", int) is ABSENT


def test_disk_store_ignores_values_of_another_format(tmp_path, monkeypatch):
    """A value that an older version wrote differently is absent, not misread."""
    store = DiskStore(tmp_path)
    store.put("a", "out", kilobyte())
    monkeypatch.setattr(Cloud, "STATE_FORMAT", 2, raising=False)
    assert store.get("a", "out", Cloud) is ABSENT


def test_particles_come_back_from_disk_as_they_were(tmp_path):
    """Columns of every dtype, materials, spacing and time survive the way through a file."""
    columns = {
        "position": np.arange(12.0).reshape(4, 3), "velocity": np.ones((4, 3), np.float32), "id": np.arange(4),
        "material": np.array([0, 1, 0, 1], np.int32), "paint": np.array([1, 2, 3, 4], np.uint8),
    }  # fmt: skip
    snow = Material("snow", {"youngs_modulus": 1.4e5}, 400.0, "cheese")
    particles = Particles(columns, (snow, Material("liquid", {}, 1000.0)), 0.02, 1.5)
    store = DiskStore(tmp_path)
    assert store.put("key", "particles", particles)
    back = store.get("key", "particles", Particles)
    assert (back.materials, back.spacing, back.time) == (particles.materials, 0.02, 1.5)
    assert list(back.attributes) == list(columns)
    for name, column in columns.items():
        assert back[name].dtype == column.dtype and np.array_equal(back[name], column)


def test_what_was_not_used_goes():
    """Of two rounds the values of the second one stay, and those of the first one that it asked for."""
    store = MemoryStore(1 << 20)
    for key in "ab":
        store.put(key, np.zeros(100))
    store.drop_unused()
    assert len(store) == 2
    store.get("a")
    store.put("c", np.zeros(100))
    store.drop_unused()
    assert store.get("b") is ABSENT and store.get("a") is not ABSENT and len(store) == 2
    store.drop_unused()
    assert len(store) == 1 and store.held == size_in_bytes(np.zeros(100))
