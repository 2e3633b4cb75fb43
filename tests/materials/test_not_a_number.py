"""A NaN never becomes a number: in no function of any law, in no float type, neither in lanes nor in scalars nor in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from law_samples import COMBINED, PARAMS, combined_laws, random_matrices, random_states

from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.verification.law_calls import argument_rows, compiled_function, functions_of

# every function is compiled once for each case: for combinations of built-in parts that is minutes
LAWS = [*law_ids(), *(pytest.param(each, marks=pytest.mark.slow) for each in COMBINED)]
COUNT = 8

__all__ = ["combined_laws"]
pytestmark = pytest.mark.usefixtures("combined_laws")


def rows_of(found, name):
    """Argument rows of random states, strained enough to flow in half of them, and steps that invert a quarter of them."""
    state = random_states(found.id, COUNT, 0.3)
    A = random_matrices(COUNT, 0.02)
    A[::4] = random_matrices(COUNT, 1.5, seed=5)[::4]
    values = {
        **state,
        "A": A,
        "dA": random_matrices(COUNT, seed=6),
        "L": random_matrices(COUNT, 10.0, seed=7),
        "dt": np.full(COUNT, 1e-3),
    }
    values["coeffs"] = np.tile(found.coefficients(PARAMS.get(found.id)), (COUNT, 1))
    return np.concatenate([np.asarray(values[part], float).reshape(COUNT, -1).T for part in argument_rows(found, name)])


def poisoned_rows(found, name):
    """Rows that may be NaN: all of the state, the step and the time, and the stiffnesses that a particle's scale multiplies."""
    for part, rows in argument_rows(found, name).items():
        yield from (rows[k] for k in found.stiffness) if part == "coeffs" else rows


@pytest.mark.parametrize(
    ("lanes", "dtype"),
    [
        pytest.param(True, np.float32, id="lanes-float32"),
        pytest.param(True, np.float64, id="lanes-float64", marks=pytest.mark.slow),
        pytest.param(False, np.float32, id="scalars-float32", marks=pytest.mark.slow),
        pytest.param(False, np.float64, id="scalars-float64", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("law_id", LAWS)
def test_nan_stays_nan(law_id, lanes, dtype):
    """Where a value counts at all, a NaN in its place gives NaN somewhere in the result, or an infeasible step."""
    found = law(law_id)
    for name in functions_of(found):
        call, given = compiled_function(found, name, dtype, lanes), rows_of(found, name)
        for row in poisoned_rows(found, name):
            spoilt, moved = given.copy(), []
            spoilt[row] = np.nan
            out = call(spoilt)
            for shift in (0.0, 0.37, -0.7):
                other = given.copy()
                other[row] += shift * (1.0 + np.abs(other[row]))
                moved.append(call(other))
            counts = np.any([(m != moved[0]).any(axis=0) for m in moved], axis=0)
            seen = out[0] == 0.0 if name == "feasible" else np.isnan(out).any(axis=0)
            assert seen[counts].all(), f"{name}: NaN in row {row} of {argument_rows(found, name)} is lost ({np.dtype(dtype)})"
