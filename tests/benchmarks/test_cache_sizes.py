"""The benchmark of cache sizes: a small run over a cache, and the graphs that it cooks."""

import json

import cache_sizes
import pytest

from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan.validate import validate


def test_graphs_are_valid():
    """The three scenes are sound, and end with a cache of particles alone."""
    pytest.importorskip("pxr")
    for graph in (cache_sizes.jelly(), cache_sizes.sample("shaving_foam"), cache_sizes.sample("ice_in_water")):
        assert validate(graph) == []
        assert graph.settings.end == cache_sizes.FRAMES and "mesh" not in graph.nodes["cache"].inputs


def test_a_cache_is_measured_in_five_ways(tmp_path, capsys):
    """Columns add up to the file but for its head, packed particles are within the precision, and the table is printed."""
    pytest.importorskip("pxr")
    stage = execute(cache_sizes.jelly(2, 0.05), out=tmp_path / "jelly").revision_folder / "cache.usda"
    file = tmp_path / "figures.json"
    assert cache_sizes.main(["--cache", str(stage), "--json", str(file)]) == 0
    found = json.loads(file.read_text())["jelly"]
    assert found["agree"] and found["particles"] > 1000
    for way in cache_sizes.WAYS:
        columns = sum(found["columns"][way].values())
        assert columns <= found["bytes"][way] < columns + 5.0
    assert found["bytes"]["packed"] < 0.8 * found["bytes"]["now"] < found["bytes"]["npy"]
    assert "target of packed: 20, met" in capsys.readouterr().out


def test_arrays_that_come_again_are_stored_once(tmp_path):
    """As in Alembic, an array with the bytes of an earlier one takes nothing."""
    import numpy as np

    from mpm_nodes.data import Particles

    cloud, known = Particles({"position": np.zeros((9, 3)), "id": np.arange(9)}, (), 0.1), set()
    first, again = (cache_sizes.write_arrays(tmp_path, cloud, known) for _ in range(2))
    assert first["ids"] == 128 + 72 and set(again.values()) == {0}
