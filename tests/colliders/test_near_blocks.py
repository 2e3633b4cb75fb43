"""Blocks around each block of a grid: what contacts look their nodes up in."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mpm_nodes.kernels.collisions.image_nodes import find_around
from mpm_nodes.kernels.transfers.binning import BODY_BITS, pack_coord


@pytest.mark.parametrize("copies", [False, True])
def test_the_blocks_around(copies):
    """Those of the same body; where nodes have copies, the first one of each place. Blocks at the rim of the grid have fewer."""
    random = np.random.default_rng(3)
    coord, body = random.integers(-2, 3, (90, 3)), random.integers(0, 3, 90)
    packed = np.unique(pack_coord(*coord.T, body))
    around = np.empty((len(packed), 27), np.int32)
    find_around(packed, copies, around)
    first = {key >> BODY_BITS if copies else key: n for n, key in reversed(list(enumerate(packed.tolist())))}
    away = [pack_coord(*step, 0) - pack_coord(0, 0, 0, 0) for step in itertools.product((-1, 0, 1), repeat=3)]
    wanted = [[first.get(key + step >> BODY_BITS if copies else key + step, -1) for step in away] for key in packed.tolist()]
    np.testing.assert_array_equal(around, wanted)
    assert 0.1 < np.mean(around < 0) < 0.9
