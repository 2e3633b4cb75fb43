// Undeformed volume of the matter of each node [m^3], for adhesion: kernels/transfers/scatter.py with nothing but a weight.
//
// A thread block for each of some particle blocks, those that give anything to nodes near bodies.
template <int N>
static __device__ void add_volumes(const int* blocks, const int* block_start, const int* tile_slot, const int* offset, int stride,
                                   int shift, float inverse_unit, const float* volume, float* nodes) {
    const int block = blocks[blockIdx.x];
    for (int p = block_start[block] + threadIdx.x; p < block_start[block + 1]; p += THREADS) {
        float f[3], w[3][N], s[3][N];
        const int cell = place<N>(offset, stride, shift, inverse_unit, p, f);
        for (int a = 0; a < 3; a++) Spline<N>::weights(f[a], w[a], s[a]);
        for (int q = 0; q < N * N * N; q++) {
            const int i = q / (N * N), j = q / N % N, k = q % N;
            const int x = (cell >> 6) + i, y = ((cell >> 3) & 7) + j, z = (cell & 7) + k;
            const int slot = tile_slot[8 * block + (x >> 2) * 4 + (y >> 2) * 2 + (z >> 2)];
            atomicAdd(nodes + 64 * slot + (x & 3) * 16 + (y & 3) * 4 + (z & 3), w[0][i] * w[1][j] * w[2][k] * volume[p]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
add_volumes_quadratic(const int* blocks, const int* block_start, const int* tile_slot, const int* offset, int stride, int shift,
                      float inverse_unit, const float* volume, float* nodes) {
    add_volumes<3>(blocks, block_start, tile_slot, offset, stride, shift, inverse_unit, volume, nodes);
}

extern "C" __global__ void __launch_bounds__(THREADS)
add_volumes_cubic(const int* blocks, const int* block_start, const int* tile_slot, const int* offset, int stride, int shift,
                  float inverse_unit, const float* volume, float* nodes) {
    add_volumes<4>(blocks, block_start, tile_slot, offset, stride, shift, inverse_unit, volume, nodes);
}
