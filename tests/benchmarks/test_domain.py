"""A larger domain costs nothing more, and the comparison would tell."""

from __future__ import annotations

import domain
import pytest

from mpm_nodes.bench import rows


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
