"""The study of convergence: its exact flows, its orders, and the page that shows them."""

import json
from pathlib import Path

import convergence
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
KEPT = json.loads(convergence.KEPT.read_text())


@pytest.mark.phenomena("heat", "projection", "surface_tension")
def test_the_page_shows_the_kept_errors():
    """The table of the page is that of the data beside its plot, and every study has its row."""
    assert convergence.table(KEPT) in (ROOT / "docs" / "convergence.md").read_text()
    assert [(row["substeps"], row["problem"]) for row in KEPT] == [(each.label, each.problem) for each in convergence.STUDIES]


@pytest.mark.parametrize("problem", ["bar", "bounce"])
def test_errors_fall_with_the_cells(problem):
    """On twice as many cells the kept errors come out again, and are smaller: here on the coarsest of the study."""
    study = next(each for each in convergence.STUDIES if each.label == "explicit_apic" and each.problem == problem)
    row = next(each for each in KEPT if each["substeps"] == study.label and each["problem"] == problem)
    coarse, kept = (convergence.PROBLEMS[problem](study, cells, 1.0) for cells in (8, 16))
    assert kept == pytest.approx(row["errors"][0][0], rel=0.05)
    assert coarse > 1.3 * kept


def test_the_mode_in_a_cylinder_is_a_bessel_function():
    """J_1(x) / x and its derivative over x: by Bessel's equation, and zero on the wall."""
    x = np.linspace(0.1, convergence.J1, 50)
    value, slope = convergence.bessel_over(x)
    e = 1e-5
    assert np.allclose((convergence.bessel_over(x + e)[0] - convergence.bessel_over(x - e)[0]) / (2 * e) / x, slope, atol=1e-9)
    curvature = (convergence.bessel_over(x + e)[1] * (x + e) - convergence.bessel_over(x - e)[1] * (x - e)) / (2 * e)
    # J = x f: x^2 J'' + x J' + (x^2 - 1) J = 0 with J' = f + x f', J'' = 2 f' + x f'', f' = x slope
    assert np.allclose(x**2 * (2 * x * slope + x * curvature) + x * (value + x**2 * slope) + (x**2 - 1) * x * value, 0.0, atol=1e-6)
    assert abs(value[-1]) < 1e-12


def test_orders_and_the_smallest_feature():
    """A second-order error has order 2, and the length with an error of 5 % lies between those that were measured."""
    row = {"explicit": True, "cells": [8, 16, 32], "errors": [[0.16, 0.0, 0.0], [0.04, 0.0, 0.0], [0.01, 0.0, 0.0]]}
    assert convergence.order([line[0] for line in row["errors"]], row["cells"]) == pytest.approx(2.0)
    assert convergence.believed(row) == "14"
    assert convergence.believed({**row, "cells": [16, 32, 64]}) == "29"
    assert convergence.believed({**row, "explicit": False}) == "< 8"
