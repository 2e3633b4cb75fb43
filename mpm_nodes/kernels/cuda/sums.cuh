// Sums of thread blocks, and of all of them, in a fixed order, so that two runs give the same bits.
// A row has N values; the last one is not summed up but the largest.

template <class Join> static __device__ float joined(float own, float* part, Join join) {
    const int t = threadIdx.x;
    part[t] = own;
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (t < half) part[t] = join(part[t], part[t + half]);
    }
    __syncthreads();
    const float all = part[0];
    __syncthreads();
    return all;
}

// Write the row of a thread block from those of its threads.
static __device__ void tell(const float* own, int n, float* row) {
    __shared__ float part[THREADS];
    for (int k = 0; k < n; k++) {
        const float all = k + 1 < n ? joined(own[k], part, [](float a, float b) { return a + b; })
                                    : joined(own[k], part, [](float a, float b) { return fmaxf(a, b); });
        if (threadIdx.x == 0) row[k] = all;
    }
}

// The row of all thread blocks. A thread block for each of its values.
extern "C" __global__ void __launch_bounds__(THREADS) add_rows(const float* rows, float* all, int n, int count) {
    __shared__ float part[THREADS];
    const int k = blockIdx.x;
    float own = 0.0f;
    for (int row = threadIdx.x; row < count; row += THREADS) own = k + 1 < n ? own + rows[n * row + k] : fmaxf(own, rows[n * row + k]);
    own = k + 1 < n ? joined(own, part, [](float a, float b) { return a + b; })
                    : joined(own, part, [](float a, float b) { return fmaxf(a, b); });
    if (threadIdx.x == 0) all[k] = own;
}
