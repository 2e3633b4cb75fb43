"""Compiled loops: lanes give what the laws' source gives on NumPy arrays, and touch nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from law_samples import PARAMS, flat, random_matrices, random_states, unflat

from mpm_nodes.data import ATTRIBUTES, OutputError
from mpm_nodes.kernels.compile import jit
from mpm_nodes.kernels.composition import generated
from mpm_nodes.kernels.transfers import motion
from mpm_nodes.materials.contract import LawError, law_ids
from mpm_nodes.materials.law_loops import law_loops
from mpm_nodes.materials.material_point import call_law

COUNT, STRIDE, DT = 100, 128, 1e-3
SEGMENTS = np.array([(0, 16, 0), (16, 23, 1), (23, 23, 1), (31, 68, 2), (75, 99, 3)], np.int64)
INSIDE = np.zeros(COUNT, bool)
for _start, _end, _block in SEGMENTS:
    INSIDE[_start:_end] = True


class Bench:
    """Arrays of one law in the solver's layout, and the same numbers for `call_law`."""

    def __init__(self, law_id, dtype, scaled):
        self.dtype, self.loops = dtype, law_loops(law_id, dtype)
        self.law = self.loops.law
        self.state = {n: v.astype(dtype) for n, v in random_states(law_id, COUNT, strain=0.05).items()}
        self.arrays = [flat(self.state[name], STRIDE, dtype) for name in self.law.state]
        self.L, self.v = random_matrices(COUNT, 20.0).astype(dtype), random_matrices(COUNT)[:, 0].astype(dtype)
        scale = np.random.default_rng(1).uniform(0.5, 2.0, COUNT).astype(dtype)
        self.scale_array = flat(scale, STRIDE, dtype) if scaled else np.zeros(0, dtype)
        self.scale = scale if scaled else np.ones(COUNT, dtype)
        self.coeffs = self.law.coefficients(PARAMS.get(law_id))
        self.tail = (STRIDE, SEGMENTS, self.coeffs)

    def expected(self, function, **arguments):
        return call_law(
            self.law.id,
            function,
            self.state,
            params=PARAMS.get(self.law.id),
            dt=DT,
            dtype=self.dtype,
            stiffness_scale=self.scale,
            **arguments,
        )

    def assert_state(self, expected, tolerance):
        """The state arrays hold `expected` inside the segments, and their old values elsewhere."""
        for array, name in zip(self.arrays, self.law.state, strict=True):
            got = unflat(array, STRIDE, COUNT, ATTRIBUTES[name].shape)
            np.testing.assert_array_equal(got[~INSIDE], self.state[name][~INSIDE])
            np.testing.assert_allclose(got[INSIDE], expected[name][INSIDE], atol=tolerance, rtol=tolerance)
            assert not array.reshape(-1, STRIDE)[:, COUNT:].any()


def cases():
    yield from ((law_id, np.float32, True) for law_id in law_ids())
    yield "snow", np.float64, False


@pytest.fixture(params=cases(), ids=lambda case: f"{case[0]}-{case[1].__name__}")
def bench(request):
    return Bench(*request.param)


def test_stress_kernel(bench):
    """The stress of explicit steps: Kirchhoff stress plus the viscous part, in the rows xx xy xz yy yz zz."""
    tau = np.zeros(6 * STRIDE, bench.dtype)
    bench.loops.stress(*bench.arrays, flat(bench.L, STRIDE, bench.dtype), bench.scale_array, tau, *bench.tail, DT)
    T = bench.expected("kirchhoff" if bench.law.function("kirchhoff") else "stress")
    if bench.law.function("viscous_stress"):
        T = T + bench.expected("viscous_stress", L=bench.L)
    got = unflat(tau, STRIDE, COUNT, (6,))
    expected = np.stack([T[:, 0, 0], T[:, 0, 1], T[:, 0, 2], T[:, 1, 1], T[:, 1, 2], T[:, 2, 2]], 1)
    size = bench.law.params.density * (bench.expected("wave_speed") ** 2).max()
    np.testing.assert_allclose(got[INSIDE], expected[INSIDE], atol=20 * np.finfo(bench.dtype).eps * size)
    assert not got[~INSIDE].any() and not tau.reshape(6, STRIDE)[:, COUNT:].any()


def test_advance_kernel(bench):
    """The trial state for A = dt L."""
    bench.loops.advance(*bench.arrays, flat(bench.L, STRIDE, bench.dtype), *bench.tail, DT)
    expected = bench.expected("advance", A=(bench.dtype(DT) * bench.L))
    bench.assert_state(expected, 4 * np.finfo(bench.dtype).eps)


def test_advance_kernel_takes_the_guarded_step(bench):
    """Lanes whose step would invert take the slow path, their neighbours in the group do not notice."""
    bench.L[::5] = -1.5 / DT * np.eye(3)
    bench.loops.advance(*bench.arrays, flat(bench.L, STRIDE, bench.dtype), *bench.tail, DT)
    expected = bench.expected("advance", A=(bench.dtype(DT) * bench.L))
    bench.assert_state(expected, 4 * np.finfo(bench.dtype).eps)


def test_project_kernel(bench):
    """The return map, with yielding and elastic particles in one group."""
    if bench.loops.project is None:
        pytest.skip("the law has no return map")
    bench.loops.project(*bench.arrays, bench.scale_array, *bench.tail, DT)
    bench.assert_state(bench.expected("project"), 20 * np.finfo(bench.dtype).eps)


def test_limits_kernel(bench):
    """Largest |L|^2 and wave speed per segment; particles outside the segments do not count."""
    bench.L[~INSIDE] = np.nan
    out = np.zeros((len(SEGMENTS), 2))
    bench.loops.limits(*bench.arrays, flat(bench.L, STRIDE, bench.dtype), bench.scale_array, *bench.tail, out)
    wave = bench.expected("wave_speed")
    for (start, end, _block), row in zip(SEGMENTS, out, strict=True):
        part = slice(start, end)
        expected = [0.0, 0.0] if start == end else [(bench.L[part] ** 2).sum((1, 2)).max(), wave[part].max()]
        np.testing.assert_allclose(row, expected, rtol=1e-5 if bench.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_limits_kernel_sees_what_is_not_finite(bench, bad):
    """NaN and infinity show up as infinity in their own segment and column only."""
    bench.L[80, 2, 2] = bad
    bench.arrays[0][5] = np.nan
    out = np.zeros((len(SEGMENTS), 2))
    bench.loops.limits(*bench.arrays, flat(bench.L, STRIDE, bench.dtype), bench.scale_array, *bench.tail, out)
    expected = np.zeros((len(SEGMENTS), 2), bool)
    expected[4, 0] = expected[0, 1] = True
    np.testing.assert_array_equal(np.isinf(out), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_largest_speeds_see_what_is_not_finite(bench, bad):
    """The largest |v|^2 of each segment; NaN and infinity show up as infinity in their own."""
    bench.v[~INSIDE], bench.v[33, 1] = 1e6, bad
    out = np.zeros(len(SEGMENTS))
    motion.largest_speeds(flat(bench.v, STRIDE, bench.dtype), STRIDE, SEGMENTS, out)
    expected = [(bench.v[start:end] ** 2).sum(1).max(initial=0.0) for start, end, _block in SEGMENTS]
    expected[3] = np.inf
    np.testing.assert_allclose(out, expected, rtol=1e-6)


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    """The message names the folder and the variable that moves it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path / "file")
    with pytest.raises(OutputError, match=r"JIT cache folder .*file.loops: .*; set MPM_NODES_CACHE to a folder"):
        generated.written("run = None\n", "loop", ())


def test_other_float_types_are_refused():
    """Lanes hold float32 and float64."""
    with pytest.raises(LawError, match="float16 do not exist; choose float32 or float64"):
        law_loops("snow", np.float16)


_COOK = """
import numpy as np
from mpm_nodes.materials.law_loops import law_loops
loops = law_loops("liquid")
arrays = [np.zeros(rows * 32, np.float32) for rows in (1, 9, 0, 6)]
loops.stress(*arrays, 32, np.array([[0, 5, 0]]), loops.law.coefficients(), 1e-3)
print(sum(loops.stress.stats.cache_hits.values()), sum(loops.stress.stats.cache_misses.values()))
"""


def test_a_new_process_finds_the_machine_code(tmp_path):
    """The second process compiles nothing: hits of numba's disk cache."""
    environment = {**os.environ, "MPM_NODES_CACHE": str(tmp_path)}
    counts = [
        subprocess.run([sys.executable, "-c", _COOK], env=environment, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert counts == [["0", "1"], ["1", "0"]]
    assert len(list(tmp_path.glob("kernels-*/loops/liquid*.py"))) == 1
