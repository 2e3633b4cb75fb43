// Counting sort of particles by (block, material, cell), and moves of their rows: kernels/transfers/binning.py on a GPU.
//
// A move, a target and a key are what they are there. The moves that particles of a block make are the bits of four words, so that
// little crosses to the host, which names the target of each. The order is stable: atomics put the particles of a cell together, and
// then each counts those of its cell that were before it.

#define MOVES 125
#define EACH 8
#define CHUNK (EACH * THREADS)

// move * 64 + cell of a particle.
static __device__ int place(const int* offset, int stride, int shift, int p) {
    int move = 0, cell = 0;
    for (int a = 0; a < 3; a++) {
        const int c = 2 + (offset[(long long)a * stride + p] >> shift);
        move = 5 * move + (c >> 2) + 2;
        cell = 4 * cell + (c & 3);
    }
    return move * 64 + cell;
}

// A thread block for each block of particles.
extern "C" __global__ void __launch_bounds__(THREADS)
locate(const int* offset, int stride, int shift, const int* block_start, unsigned* moved) {
    __shared__ unsigned some[4];
    const int q = blockIdx.x;
    if (threadIdx.x < 4) some[threadIdx.x] = 0;
    __syncthreads();
    for (int p = block_start[q] + threadIdx.x; p < block_start[q + 1]; p += THREADS) {
        const int move = place(offset, stride, shift, p) >> 6;
        atomicOr(&some[move >> 5], 1u << (move & 31));
    }
    __syncthreads();
    if (threadIdx.x < 4) moved[4 * q + threadIdx.x] = some[threadIdx.x];
}

// A thread block for each block of particles. The targets of block q's moves, in order, begin at first[q].
extern "C" __global__ void __launch_bounds__(THREADS)
histogram(const int* offset, int stride, int shift, const int* block_start, const unsigned* moved, const int* first, const int* targets,
          const int* material, int materials, int* keys, int* counts) {
    __shared__ int target[MOVES];
    const int q = blockIdx.x, move = threadIdx.x;
    if (move < MOVES && (moved[4 * q + (move >> 5)] >> (move & 31) & 1)) {
        int before = __popc(moved[4 * q + (move >> 5)] & ((1u << (move & 31)) - 1));
        for (int word = 0; word < move >> 5; word++) before += __popc(moved[4 * q + word]);
        target[move] = targets[first[q] + before];
    }
    __syncthreads();
    for (int p = block_start[q] + threadIdx.x; p < block_start[q + 1]; p += THREADS) {
        const int at = place(offset, stride, shift, p), key = (target[at >> 6] * materials + material[p]) * 64 + (at & 63);
        keys[p] = key;
        atomicAdd(&counts[key], 1);
    }
}

// Exclusive prefix sums of each CHUNK of values, and the sum of each chunk.
extern "C" __global__ void __launch_bounds__(THREADS) scan(int* values, int* sums, int count) {
    __shared__ int upto[THREADS];
    const int t = threadIdx.x, first = blockIdx.x * CHUNK + t * EACH;
    int own[EACH], sum = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        own[e] = first + e < count ? values[first + e] : 0;
        sum += own[e];
    }
    upto[t] = sum;
    for (int step = 1; step < THREADS; step *= 2) {
        __syncthreads();
        const int before = t >= step ? upto[t - step] : 0;
        __syncthreads();
        upto[t] += before;
    }
    int total = upto[t] - sum;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (first + e < count) values[first + e] = total;
        total += own[e];
    }
    if (t == THREADS - 1) sums[blockIdx.x] = total;
}

// Add to each chunk of values what comes before it. A thread block for each chunk.
extern "C" __global__ void __launch_bounds__(THREADS) add_before(int* values, const int* before, int count) {
    const int n = before[blockIdx.x];
    for (int e = threadIdx.x; e < CHUNK && blockIdx.x * CHUNK + e < count; e += THREADS) values[blockIdx.x * CHUNK + e] += n;
}

// Where the run of each (block, material) begins.
extern "C" __global__ void __launch_bounds__(THREADS) pick_runs(const int* starts, int* runs, int count) {
    const int s = blockIdx.x * THREADS + threadIdx.x;
    if (s < count) runs[s] = starts[64 * s];
}

// List the particles behind their keys, cell by cell, each cell's in any order. Where cells begin becomes where they end.
extern "C" __global__ void __launch_bounds__(THREADS) list_cells(int* keys, int* starts, int count) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    if (p < count) keys[count + atomicAdd(&starts[keys[p]], 1)] = p;
}

// Put the particles of each cell in the order of their old places.
extern "C" __global__ void __launch_bounds__(THREADS) order_cells(const int* keys, const int* ends, int* source, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const int* listed = keys + count;
    const int p = listed[i], key = keys[p], begin = key ? ends[key - 1] : 0, end = ends[key];
    int at = begin;
    for (int j = begin; j < end; j++) at += listed[j] < p;
    source[at] = p;
}

template <class T>
static __device__ void move_rows(const T* __restrict__ old, T* __restrict__ now, int stride, int rows, const int* source, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const int p = source[i];
#pragma unroll 3
    for (int r = 0; r < rows; r++) now[(long long)r * stride + i] = old[(long long)r * stride + p];
}

extern "C" __global__ void __launch_bounds__(THREADS)
move_rows4(const int* old, int* now, int stride, int rows, const int* source, int count) {
    move_rows(old, now, stride, rows, source, count);
}

extern "C" __global__ void __launch_bounds__(THREADS)
move_rows8(const long long* old, long long* now, int stride, int rows, const int* source, int count) {
    move_rows(old, now, stride, rows, source, count);
}

template <class T> static __device__ void put_rows(const T* some, T* all, int stride, int rows, int first, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    for (int r = 0; r < rows; r++) all[(long long)r * stride + first + i] = some[(long long)r * count + i];
}

// Write the rows of `count` newcomers, which follow each other closely, behind those of others.
extern "C" __global__ void __launch_bounds__(THREADS)
put_rows4(const int* some, int* all, int stride, int rows, int first, int count) {
    put_rows(some, all, stride, rows, first, count);
}

extern "C" __global__ void __launch_bounds__(THREADS)
put_rows8(const long long* some, long long* all, int stride, int rows, int first, int count) {
    put_rows(some, all, stride, rows, first, count);
}

// Move the offsets and express them in their new block, at most two cells from its middle.
extern "C" __global__ void __launch_bounds__(THREADS)
move_offsets(const int* __restrict__ old, int* __restrict__ now, int stride, int shift, const int* source, int count) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const int p = source[i];
#pragma unroll
    for (int a = 0; a < 3; a++) {
        const unsigned from_corner = (unsigned)old[(long long)a * stride + p] + (2u << shift);
        now[(long long)a * stride + i] = (int)(from_corner & ((4u << shift) - 1)) - (2 << shift);
    }
}

// The sum of each CHUNK of values, in an order of its own: no two runs differ.
extern "C" __global__ void __launch_bounds__(THREADS) add_up(const float* values, float* sums, int count) {
    __shared__ float part[THREADS];
    const int t = threadIdx.x;
    part[t] = 0.0f;
    for (int e = t; e < CHUNK && blockIdx.x * CHUNK + e < count; e += THREADS) part[t] += values[blockIdx.x * CHUNK + e];
    for (int half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (t < half) part[t] += part[t + half];
    }
    if (t == 0) sums[blockIdx.x] = part[0];
}
