"""Tolerances as small as the knobs allow: solves reach them, or those of the float type, and never end before."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from mpm_nodes.data import Thermal
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import OPEN, SEPARATE, block, changed, material, walled

H, DT = 0.1, 5e-3
LEAST = {
    "project_velocity.tolerance": 1e-14,
    "semi_implicit_faces.tolerance": 1e-14,
    "conduct_heat.tolerance": 1e-14,
    "project_velocity.coupled_tolerance": 1e-10,
}


def told(dtype: type, **knobs: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return what four long substeps of a stiff, hot block on a rough floor tell."""
    rubber = dataclasses.replace(material("neo_hookean", youngs_modulus=1e7), thermal=Thermal(1000.0, 1e6, 1000.0, 1e6))
    start = block(rubber, (-0.2, 0.0, -0.2), (0.2, 0.4, 0.2), H)
    random = np.random.default_rng(1)
    shaken = {"velocity": random.normal(0.0, 0.01, (len(start), 3)), "temperature": random.normal(300.0, 10.0, len(start))}
    walls = walled((-1.0, 0.0, -1.0), (1.0, 2.0, 1.0), OPEN, OPEN, SEPARATE, OPEN, OPEN, OPEN)
    run = SubstepSolver(changed(start, **shaken), {"preset": "melting", "set": knobs}, cell_size=H, dtype=dtype, walls=walls)
    for _ in range(4):
        assert run.step(DT) == DT
    return {event: dict(run.step_context.report[event]) for event in ("heat", "shear", "projection")}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("coupled", [False, True])
def test_the_least_tolerances_are_reached(dtype, coupled):
    """Heat and pressure are solved in float64 whatever the grid's type is; shear and the coupling stop at its rounding."""
    found = told(dtype, coupled=coupled, **LEAST)
    assert [found[event]["unsolved"] for event in found] == [0, 0, 0]
    assert found["heat"]["iterations"] > 0 and (found["projection"]["coupled"] > 0) == coupled


def test_shear_and_coupling_iterate_no_further_than_single_precision_carries():
    """1e-14 in float32 is 4 units of rounding: the same iterations as with that, fewer than in float64; so is the coupling."""
    rounding = 4.0 * float(np.finfo(np.float32).eps)
    knob = "semi_implicit_faces.tolerance"
    knobs = {"coupled": True, **LEAST}
    least, floor, double = told(np.float32, **knobs), told(np.float32, **{**knobs, knob: rounding}), told(np.float64, **knobs)
    assert least["shear"]["iterations"] == floor["shear"]["iterations"] < 0.7 * double["shear"]["iterations"]
    assert least["projection"]["coupled"] < 0.8 * double["projection"]["coupled"]
