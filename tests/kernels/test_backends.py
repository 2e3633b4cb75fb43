"""One fragment, composed for lanes of two widths and for CUDA: its body knows of neither."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.composition.backends import CPU, CUDA, EIGHT
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


CUDA_RUN = """
import sys
import numpy as np
from numba import cuda
sys.path.insert(0, sys.argv[1])
from test_backends import COUNT, CUDA, STRIDE, TABLE, columns, composed_loop, law
from mpm_nodes.materials.law_fragments import ADVANCE
assert cuda.simulator, "the simulator is off"
loop = composed_loop(law("neo_hookean"), ADVANCE, TABLE, backend=CUDA)
given = columns(np.float32) | {"coefficients": law("neo_hookean").coefficients(), "stiffness_scale": np.empty(0, np.float32)}
loop.run[2, 8](*[given[name] for name in loop.source.names])
F, L = (columns(np.float32)[name].reshape(3, 3, STRIDE)[..., :COUNT].astype(float) for name in ("deformation", "velocity_gradient"))
expected = F + given["dt"] * np.einsum("ijp,jkp->ikp", L, F)
got = given["deformation"].reshape(3, 3, STRIDE)
np.testing.assert_allclose(got[..., :COUNT], expected, rtol=2e-6, atol=2e-6)
assert got.dtype == np.float32 and (got[..., COUNT:] == columns(np.float32)["deformation"].reshape(3, 3, STRIDE)[..., COUNT:]).all()
print("ran")
"""


def test_a_fragment_of_ours_runs_on_cuda(tmp_path):
    """The update of every law's state, composed for CUDA: a thread block a run, a thread a particle, in numba's simulator."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "MPM_NODES_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", CUDA_RUN, os.path.dirname(__file__)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "ran" in done.stdout, done.stderr[-3000:]


@pytest.mark.parametrize(
    "fragment, backend, words",
    [
        (
            Scatter("momentum", ("velocity", "mass")),
            EIGHT,
            "'scatter momentum' asks for a tile of the grid, which loops for CPU",
        ),
        (Run(stretched, ("deformation",)), CUDA, "'stretched' asks for a tile of the grid, which loops for CUDA do not have"),
        (STRETCHED, CUDA, "'stretched' asks for a reduction, which loops for CUDA do not have; compose it for CPU"),
    ],
)
def test_what_a_backend_lacks_is_told(fragment, backend, words):
    """The message names the fragment, what it asks for, and where it can be had."""
    with pytest.raises(CompositionError, match=words):
        source_of(None, (fragment,), TABLE, backend=backend)
