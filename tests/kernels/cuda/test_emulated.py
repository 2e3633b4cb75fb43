"""The device that tests stand in for a GPU with: barriers, exchanges between lanes, and what lacks a barrier."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.cuda.emulated import COMPILER, Emulated

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

SUMS = """
extern "C" __global__ void __launch_bounds__(64) sums(const float* __restrict__ x, float* out, int* votes, float* total) {
    __shared__ float parts[2];
    float v = x[64 * blockIdx.x + threadIdx.x];
    for (int bits = 16; bits; bits >>= 1) v += __shfl_xor_sync(~0u, v, bits);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(total, parts[0] + parts[1]);
    out[64 * blockIdx.x + threadIdx.x] = v;
    votes[64 * blockIdx.x + threadIdx.x] = __ballot_sync(~0u, x[64 * blockIdx.x + threadIdx.x] > 8.f);
}
"""
ASTRAY = """
extern "C" __global__ void astray(int* out) {
    if (threadIdx.x < 7) __syncthreads();
    else __syncwarp();
    out[threadIdx.x] = 1;
}
"""
HASTY = """
extern "C" __global__ void hasty(int* out) {
    __shared__ int told[32];
    told[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = told[31 - threadIdx.x];
    __syncwarp();
    told[threadIdx.x] = 0;
}
"""


@pytest.fixture
def device(device_folder):
    return Emulated(device_folder)


def test_lanes_exchange_and_blocks_add(device):
    """A butterfly sums a warp, a vote has a bit for each lane, and blocks add to one number, whichever thread is ahead."""
    x = np.random.default_rng(1).integers(0, 16, 128).astype(np.float32)
    for _ in range(2):
        out, votes, total = np.zeros(128, np.float32), np.zeros(128, np.int32), np.zeros(1, np.float32)
        device.launch(device.kernel(SUMS, "sums"), 2, [x, out, votes, total], threads=64)
        np.testing.assert_array_equal(out, np.repeat(x.reshape(4, 32).sum(1), 32))
        bits = ((x.reshape(4, 32) > 8) * 2 ** np.arange(32)).sum(1).astype(np.uint32)
        np.testing.assert_array_equal(votes.view(np.uint32), np.repeat(bits, 32))
        assert total[0] == x.sum()


def test_a_barrier_that_some_threads_miss_is_told(device):
    """On a GPU the launch would hang, or go on with what was not written yet."""
    with pytest.raises(AssertionError, match="a barrier that some threads miss"):
        device.launch(device.kernel(ASTRAY, "astray"), 1, [np.zeros(32, np.int32)], threads=32)


def test_a_missing_barrier_shows_in_one_of_two_launches(device):
    """What a thread reads is there already or not yet, by whether its writer runs before it."""
    first, second = np.zeros(32, np.int32), np.zeros(32, np.int32)
    for out in (first, second):
        device.launch(device.kernel(HASTY, "hasty"), 1, [out], threads=32)
    assert (first != second).any()
