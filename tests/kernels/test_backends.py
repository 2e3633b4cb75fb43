"""One fragment, composed for lanes of two widths: its body knows of neither."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.backends import CPU, EIGHT
from mpm_nodes.kernels.composition.block import CompositionError
from mpm_nodes.kernels.composition.fragments import Lanes, Run, Scatter
from mpm_nodes.kernels.composition.generated import composed_loop
from mpm_nodes.kernels.composition.source import source_of
from mpm_nodes.kernels.lanes.arithmetic import const, maximum, select
from mpm_nodes.materials.contract import law

COUNT, STRIDE, DT = 37, 64, 1e-3
SEGMENTS = np.array([[0, 21, 0], [21, 37, 1]])
TABLE = {**ATTRIBUTES, **law("neo_hookean").fields}


@inline
def stretched(deformation, velocity_gradient, dt, share):
    """Return a deformation after the step, kept where it would shrink much, and its determinant."""
    F = mat3.advance_deformation(deformation, mat3.scale(velocity_gradient, dt))
    J = maximum(const(dt, 0.1), mat3.det(F))
    return mat3.scale(F, select(J < share, share, const(dt, 1.0))), J


STRETCHED = Lanes(stretched, ("deformation",), ("largest_ratio",))


def columns(dtype) -> dict[str, np.ndarray]:
    """Return attributes of particles in two blocks, and what loops ask for besides."""
    random = np.random.default_rng(5)
    F = (np.eye(3).ravel()[:, None] + random.normal(scale=0.1, size=(9, STRIDE))).astype(dtype)
    L = random.normal(scale=30.0, size=(9, STRIDE)).astype(dtype)
    return {
        "deformation": F.ravel(),
        "velocity_gradient": L.ravel(),
        "stride": STRIDE,
        "segments": SEGMENTS,
        "dt": DT,
        "share": 0.9,
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fragment_composes_at_two_widths(dtype):
    """Eight lanes give every particle what sixteen give it, at the ends of runs too, and the same largest value.

    To a rounding or two: of two products that are added, LLVM chooses by itself which goes into the multiply-add.
    """
    found = []
    for backend in (CPU, EIGHT):
        given = {**columns(dtype), "largest": np.zeros((2, 1))}
        untouched = given["deformation"].reshape(9, STRIDE)[:, COUNT:].copy()
        loop = composed_loop(None, (STRETCHED,), TABLE, backend=backend)
        assert f"range(start, end, {backend.step})" in loop.source.text
        loop(given)
        np.testing.assert_array_equal(given["deformation"].reshape(9, STRIDE)[:, COUNT:], untouched)
        found.append((given["deformation"], given["largest"]))
    for sixteen, eight in zip(*found, strict=True):
        np.testing.assert_allclose(eight, sixteen, rtol=0, atol=4 * np.finfo(dtype).eps * np.abs(sixteen).max())
    assert (found[0][0] != columns(dtype)["deformation"]).reshape(9, STRIDE)[:, :COUNT].all()


@pytest.mark.parametrize("fragment", [Scatter("momentum", ("velocity", "mass")), Run(stretched, ("deformation",))])
def test_what_a_backend_lacks_is_told(fragment):
    """The message names the fragment, what it asks for, and where it can be had."""
    words = f"'{fragment.label}' asks for a tile of the grid, which loops for CPU with eight lanes do not have; compose it for CPU"
    with pytest.raises(CompositionError, match=words):
        source_of(None, (fragment,), TABLE, backend=EIGHT)
