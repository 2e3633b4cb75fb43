"""Melting under the projection, compiled for processors with narrower registers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fusion_scenes import attributes
from heat_scenes import solver, wax
from test_cpu_features import HERE, LEVELS, check_assembly, compiled

MELT = """
import sys
import numpy as np
sys.path[:0] = sys.argv[1:3]
from heat_scenes import solver, wax
run = solver(wax(), "melting", dt_max=5e-3)
for _ in range(12):
    run.step()
np.savez(sys.argv[3], **run.snapshot().attributes)
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", [level for level in LEVELS if level != "native"])
def test_a_projection_with_heat_on_an_older_processor_gives_these_numbers(level, tmp_path):
    """Wax that melts, in double precision: registers of the level only, the same phases, the rest to what solves to 1e-8 leave."""
    file = tmp_path / "end.npz"
    check_assembly(level, compiled(level, MELT, tmp_path, HERE, Path(__file__).parents[1], file), r"\tv?mulpd\t")
    native = solver(wax(), "melting", dt_max=5e-3)
    for _ in range(12):
        native.step()
    expected, found = attributes(native), np.load(file)
    assert set(found.files) == set(expected) and 0 < expected["phase"].sum() < len(expected["phase"])
    for name, values in expected.items():
        if values.dtype.kind == "f":
            assert np.abs(found[name] - values).max() <= 1e-6 * np.abs(values).max(), name
        else:
            assert np.array_equal(found[name], values), name
