"""Predicted speeds on many cores: shares counted as threads take them, and a serial part that stays."""

from __future__ import annotations

import json

import cores
import numpy as np
import pytest

from mpm_nodes.bench import scenes
from mpm_nodes.bench.rows import Row
from mpm_nodes.kernels.transfers import binning


def test_threads_take_runs_of_blocks_of_even_weight():
    """Each share ends at the block boundary next to its part of the work: particles, and each block's tile."""
    blocks = np.array([100, 100, 300, 300])  # 108 and 308 with their tiles
    assert cores.imbalance([blocks], 1) == 1.0
    assert cores.imbalance([blocks], 2) == pytest.approx(2 * 524 / 832)
    assert cores.imbalance([blocks[:2], blocks[2:]], 2) == pytest.approx(1.0)  # colours wait for each other
    assert cores.imbalance([blocks], 8) == pytest.approx(8 * 308 / 832)  # more threads than blocks: the heaviest one
    assert cores.imbalance([np.array([], int)], 8) == 1.0
    rising = np.arange(1, 1001)  # even numbers of blocks would give one of two threads three quarters
    assert cores.imbalance([rising], 2) < 1.002 and cores.imbalance([rising], 16) < 1.02


def test_only_what_is_shared_gets_shorter():
    """With even shares 64 threads leave the serial part, a 64th of the rest, and what starting loops takes."""
    split = cores.Split(0.1, 0.5, 0.4, [np.ones(640, int)] * 8, np.ones(5120, int))
    assert split.total == pytest.approx(1.0)
    assert cores.predicted(split, 64) == pytest.approx(0.1 + 0.9 / 64 + cores.LOOPS * cores.START)


def test_the_parts_of_a_real_substep_add_up():
    """Serial, coloured and other seconds are there; every particle lies in a block of one colour; the kernels are put back."""
    kernels = [getattr(binning, name) for name in cores.PARALLEL]
    solver = scenes.solver(scenes.scene("cube", "neo_hookean", 4000), Row(particles=4000, threads=1))
    split = cores.split_of(solver, 2)
    assert min(split.serial, split.coloured, split.other) > 0.0
    assert sum(colour.sum() for colour in split.colours) == split.blocks.sum() == 4000
    assert [getattr(binning, name) for name in cores.PARALLEL] == kernels
    assert 150 < cores.bytes_moved(solver) < 1000


@pytest.mark.parametrize("share, code", [(0.61, 0), (0.59, 1)])
def test_the_command_says_where_scaling_stops(share, code, monkeypatch, tmp_path, capsys):
    """A scene below 60 % of the ideal is a failure."""
    prediction = {"share": share, "colours": 1.1, "blocks": 1.0, "gigabytes_per_second": 20.0}
    record = {"serial_share": 0.01, "bytes_moved": 400.0, "cores": {str(n): prediction for n in cores.CORES}}
    monkeypatch.setattr(cores, "measured", lambda row: record)
    assert cores.main(["--particles", "1000", "--json", str(tmp_path / "cores.json")]) == code
    assert f"{share:.0%} (1.10, 1.00; 20)" in capsys.readouterr().out
    assert [r["scene"] for r in json.loads((tmp_path / "cores.json").read_text())] == ["compact", "splashing", "two materials"]
