// The room that matter finds in the cells around it, and what liquids say of their volume: kernels/transfers/room.py on a GPU, which
// says what the numbers mean. Cells lie between the nodes.

// As `place`, for the middles of cells, half a cell behind the nodes along each axis.
static __device__ int place_in_cells(const int* offset, int stride, int shift, float unit, int p, float* f) {
    return place<3>(offset, stride, shift, unit, p, f, 1 << (shift - 1));
}

// Add sum w V0 to the last of the four values of each cell.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_room(const long long* ranges, const int* tile_slot, const int* offset, int stride, int shift, float inverse_unit,
          const float* volume, float* cells) {
    __shared__ __align__(16) float records[THREADS * RECORD];
    __shared__ int order[THREADS], slots[8];
    const int begin = ranges[3 * blockIdx.x], end = ranges[3 * blockIdx.x + 1];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (threadIdx.x < 8) slots[threadIdx.x] = tile_slot[8 * ranges[3 * blockIdx.x + 2] + threadIdx.x];
    __syncthreads();
    Sums<3, true, false, false, false> sums(lane, cells, cells, slots);
    const int share = (end - begin + THREADS - 1) / THREADS * 32;
    const int first = begin + warp * share, last = min(first + share, end);
    for (int p0 = first; p0 < last; p0 += 32) {
        const int p = p0 + lane;
        Given given = {};
        int at = FAR;
        if (p < last) {
            at = place_in_cells(offset, stride, shift, inverse_unit, p, given.f);
            given.momentum = make_float4(0.0f, 0.0f, 0.0f, volume[p]);
        }
        sums.add(records + 32 * RECORD * warp, order + 32 * warp, given, at, min(32, last - p0));
    }
    sums.flush();
}

// Write o r and o of cells, and whether they lie in the air; tell the sum of f, that of crowded cells, and the largest f / o.
extern "C" __global__ void __launch_bounds__(THREADS)
write_room(float4* cells, const float* opened, int bodies, float volume, int* air, float* told, int count) {
    const int n = blockIdx.x * THREADS + threadIdx.x;
    float own[3] = {};
    if (n < count) {
        const float o = bodies ? opened[n] : 1.0f, f = cells[n].w / volume;
        const bool in_air = o > CLOSED && f < AIR * o, partly = o > 0.0f && o < 1.0f;
        float r = in_air ? 0.0f : o / fmaxf(f, 1e-3f) - 1.0f;
        if (r < 0.0f && partly) r = fminf(o * expf(-LATTICE * logf(o)) / f - 1.0f, 0.0f);
        else if (r > 0.0f && partly) r = fmaxf(o * expf(BEHIND * logf(o)) / fmaxf(f, 1e-3f) - 1.0f, 0.0f);
        if (o >= HALF) own[0] = f, own[1] = f > CROWDED * o ? f : 0.0f, own[2] = f / o;
        air[n] = in_air;
        cells[n].x = o * fminf(r, MOST_ROOM);
        cells[n].y = o;
    }
    tell(own, 3, told + 3 * blockIdx.x);
}

// Leave no more than nothing to cells beside the air, where splines end.
extern "C" __global__ void __launch_bounds__(THREADS)
leave_surface(float4* cells, const int* around, const int* air, int count) {
    const int n = blockIdx.x * THREADS + threadIdx.x;
    if (n >= count) return;
    const int g = n >> 6, here[3] = {(n >> 4) & 3, (n >> 2) & 3, n & 3};
    bool beside = false;
    for (int side = 0; side < 6; side++) {
        const int axis = side >> 1, to = here[axis] + 2 * (side & 1) - 1, width = 16 >> (2 * axis);
        const int block = to >= 0 && to < 4 ? g : around[6 * g + side];
        beside = beside || block < 0 || air[64 * block + (n & 63) + ((to & 3) - here[axis]) * width];
    }
    if (beside) cells[n].x = fminf(cells[n].x, 0.0f);
}

// What cells around a particle say.
extern "C" __global__ void __launch_bounds__(THREADS)
gather_room(const long long* ranges, const int* tile_slot, const int* offset, int stride, int shift, float inverse_unit,
            const float4* cells, float* room) {
    __shared__ float4 tile[TILE];
    __shared__ int slots[8];
    const int begin = ranges[3 * blockIdx.x], end = ranges[3 * blockIdx.x + 1];
    if (threadIdx.x < 8) slots[threadIdx.x] = tile_slot[8 * ranges[3 * blockIdx.x + 2] + threadIdx.x];
    __syncthreads();
    load_tile(tile, cells, slots);
    __syncthreads();
    for (int p = begin + threadIdx.x; p < end; p += THREADS) {
        float f[3], found[3];
        const int cell = place_in_cells(offset, stride, shift, inverse_unit, p, f);
        gather_values<3>(tile, cell, f, found);
        room[p] = found[0];
        room[stride + p] = found[1];
    }
}

// Let J - 1 relax to the mean over the cells around, by o.
extern "C" __global__ void __launch_bounds__(THREADS)
follow_room(const long long* ranges, const float* room, const float* velocity, int stride, float per_speed, float least_speed,
            float tolerance, float* change) {
    const int end = ranges[3 * blockIdx.x + 1];
    for (int p = ranges[3 * blockIdx.x] + threadIdx.x; p < end; p += THREADS) {
        const float o = room[stride + p];
        if (!(o > LEAST)) continue;
        const float excess = room[p] / o - change[p], size = fabsf(excess) - tolerance;
        if (size > 0.0f) {
            const float u = velocity[p], v = velocity[stride + p], w = velocity[2 * stride + p];
            const float share = -expm1f(-per_speed * fmaxf(sqrtf(u * u + v * v + w * w), least_speed));
            change[p] += copysignf(share * size, excess);
        }
    }
}
