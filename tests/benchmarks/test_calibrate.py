"""What stands beside measured speeds: a calibration that really computes."""

from __future__ import annotations

import re

import calibrate
import numba
import numpy as np
import pytest

from mpm_nodes.bench.threads import available_threads


@pytest.fixture(autouse=True)
def threads():
    """Leave the number of threads as it was."""
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


def test_calibration_is_positive_and_of_both_kinds(monkeypatch, capsys):
    """Bandwidth and arithmetic are positive numbers for every number of threads."""
    monkeypatch.setattr(calibrate, "ELEMENTS", 1 << 20)
    monkeypatch.setattr(calibrate, "REPEATS", 3)
    for threads in {1, min(2, available_threads())}:
        assert calibrate.main(["--threads", str(threads)]) == 0
        bandwidth, arithmetic = (float(text) for text in re.findall(r"(\d+) (?:GB/s|Gflop/s)", capsys.readouterr().out))
        assert bandwidth >= 0 and arithmetic > 0


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
