// Transfers between particles and the sparse grid: the weights of kernels/transfers/weights.py, a number a thread.
//
// A grid array holds four floats a node and 64 nodes a block. The tile of a particle block is the 8^3 nodes of eight grid blocks,
// `slots`. A particle has fixed-point offsets from the middle of its block, in units of 2^-shift cells. N is the number of nodes of
// a spline along an axis: 3 quadratic, 4 cubic.

#define TILE 512
#define RECORD 24
#define FAR (1 << 24)
// What is not a number counts as this in a reduction.
#define HUGE_NUMBER 3e38f

// Add to a node: four floats at once from compute capability 9.0 on.
static __device__ void add4(float* at, float x, float y, float z, float w) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
#else
    atomicAdd(at, x);
    atomicAdd(at + 1, y);
    atomicAdd(at + 2, z);
    atomicAdd(at + 3, w);
#endif
}

// Where the particle lies past its stencil's first node, in cells: FIRST + f.
template <int N> struct Spline;

template <> struct Spline<3> {
    static constexpr float FIRST = 0.5f;
    static __device__ int start(int shift) { return 3 << shift; }
    // coefficients of node i's weight as a polynomial of f
    static __device__ void node(int i, float* c) {
        c[0] = i == 2 ? 0.0f : 0.5f;
        c[1] = i == 0 ? -1.0f : (i == 1 ? 1.0f : 0.0f);
        c[2] = i == 1 ? -1.0f : 0.5f;
    }
    static __device__ float weight(const float* c, float f) { return c[0] + f * (c[1] + f * c[2]); }
    static __device__ float slope(const float* c, float f) { return c[1] + 2.0f * f * c[2]; }
    static __device__ void weights(float f, float* w, float* s) {
        const float g = 1.0f - f;
        w[0] = 0.5f * g * g;
        w[1] = 0.5f + f * g;
        w[2] = 0.5f * f * f;
        s[0] = -g;
        s[1] = g - f;
        s[2] = f;
    }
    static __device__ float difference(int i) { return i == 1 ? -2.0f : 1.0f; }
    static __device__ float excess(float f) { return (f - (1.0f - f)) * f * (1.0f - f); }
};

template <> struct Spline<4> {
    static constexpr float FIRST = 1.0f;
    static __device__ int start(int shift) { return 5 << (shift - 1); }
    static __device__ void node(int i, float* c) {
        c[0] = i == 1 ? 2.0f / 3.0f : (i == 3 ? 0.0f : 1.0f / 6.0f);
        c[1] = i == 0 ? -0.5f : (i == 2 ? 0.5f : 0.0f);
        c[2] = i == 1 ? -1.0f : (i == 3 ? 0.0f : 0.5f);
        c[3] = i == 0 ? -1.0f / 6.0f : (i == 1 ? 0.5f : (i == 2 ? -0.5f : 1.0f / 6.0f));
    }
    static __device__ float weight(const float* c, float f) { return c[0] + f * (c[1] + f * (c[2] + f * c[3])); }
    static __device__ float slope(const float* c, float f) { return c[1] + f * (2.0f * c[2] + 3.0f * f * c[3]); }
    static __device__ void weights(float f, float* w, float* s) {
        for (int i = 0; i < 4; i++) {
            float c[4];
            node(i, c);
            w[i] = weight(c, f);
            s[i] = slope(c, f);
        }
    }
    static __device__ float difference(int i) { return i == 0 ? -1.0f : (i == 1 ? 3.0f : (i == 2 ? -3.0f : 1.0f)); }
    static __device__ float excess(float f) { return -0.5f * f * f * (1.0f - f) * (1.0f - f); }
};

// The node of a tile that element `node` of the grid block at `corner` is.
static __device__ int tile_node(int corner, int node) {
    const int i = (corner >> 2) * 4 + (node >> 4), j = ((corner >> 1) & 1) * 4 + ((node >> 2) & 3), k = (corner & 1) * 4 + (node & 3);
    return i * 64 + j * 8 + k;
}

static __device__ void load_tile(float4* tile, const float4* grid, const int* slots) {
    for (int q = threadIdx.x; q < TILE; q += THREADS) tile[tile_node(q >> 6, q & 63)] = grid[64 * slots[q >> 6] + (q & 63)];
}

// Velocities less a share of those before: what a blend of FLIP and PIC adds to a particle's own velocity.
static __device__ void load_change_tile(float4* tile, const float4* grid, const float4* momentum, float share, const int* slots) {
    for (int q = threadIdx.x; q < TILE; q += THREADS) {
        const int node = 64 * slots[q >> 6] + (q & 63);
        const float4 v = grid[node], p = momentum[node];
        const float s = p.w > 1e-37f ? share / p.w : 0.0f;
        tile[tile_node(q >> 6, q & 63)] = make_float4(v.x - s * p.x, v.y - s * p.y, v.z - s * p.z, 0.0f);
    }
}

// Index of the first node inside the tile, and how far the particle lies past it, or past what lies so far `behind` it.
template <int N> static __device__ int place(const int* offset, int stride, int shift, float unit, int p, float* f, int behind = 0) {
    const int mask = (1 << shift) - 1, start = Spline<N>::start(shift) - behind;
    int cell = 0;
    for (int a = 0; a < 3; a++) {
        const int u = offset[a * stride + p] + start;
        cell = 8 * cell + (u >> shift);
        f[a] = (float)(u & mask) * unit;
    }
    return cell;
}

// v = sum w v_i; L = sum v_i (grad w)^T; C = D^-1 sum w v_i (x_i - x_p)^T, per cell: see weights.py for the excess of C over L.
template <int N, bool AFFINE, bool GRADIENT>
static __device__ void gather(const float4* tile, int cell, const float* f, float inverse_h, float* v, float* C, float* L) {
    float w[3][N], s[3][N];
    for (int a = 0; a < 3; a++) Spline<N>::weights(f[a], w[a], s[a]);
    float G[9] = {}, D[9] = {};
    for (int c = 0; c < 3; c++) v[c] = 0.0f;
#pragma unroll
    for (int i = 0; i < N; i++) {
        float S[3] = {}, Sy[3] = {}, Sz[3] = {}, Ty[3] = {}, Tz[3] = {};
#pragma unroll
        for (int j = 0; j < N; j++) {
            float R[3] = {}, Q[3] = {}, U[3] = {};
#pragma unroll
            for (int k = 0; k < N; k++) {
                const float4 node = tile[cell + 64 * i + 8 * j + k];
                const float n[3] = {node.x, node.y, node.z};
                const float t = Spline<N>::difference(k);
#pragma unroll
                for (int c = 0; c < 3; c++) {
                    R[c] += w[2][k] * n[c];
                    Q[c] += s[2][k] * n[c];
                    if (AFFINE) U[c] += t * n[c];
                }
            }
            const float t = Spline<N>::difference(j);
#pragma unroll
            for (int c = 0; c < 3; c++) {
                S[c] += w[1][j] * R[c];
                Sy[c] += s[1][j] * R[c];
                Sz[c] += w[1][j] * Q[c];
                if (AFFINE) Ty[c] += t * R[c], Tz[c] += w[1][j] * U[c];
            }
        }
        const float t = Spline<N>::difference(i);
#pragma unroll
        for (int c = 0; c < 3; c++) {
            v[c] += w[0][i] * S[c];
            G[3 * c] += s[0][i] * S[c];
            G[3 * c + 1] += w[0][i] * Sy[c];
            G[3 * c + 2] += w[0][i] * Sz[c];
            if (AFFINE) D[3 * c] += t * S[c], D[3 * c + 1] += w[0][i] * Ty[c], D[3 * c + 2] += w[0][i] * Tz[c];
        }
    }
    const float k[3] = {Spline<N>::excess(f[0]), Spline<N>::excess(f[1]), Spline<N>::excess(f[2])};
#pragma unroll
    for (int e = 0; e < 9; e++) {
        if (GRADIENT) L[e] = inverse_h * G[e];
        if (AFFINE) C[e] = inverse_h * (G[e] + k[e % 3] * D[e]);
    }
}

// The values alone.
template <int N> static __device__ void gather_values(const float4* tile, int cell, const float* f, float* v) {
    gather<N, false, false>(tile, cell, f, 0.0f, v, nullptr, nullptr);
}

// What a particle gives: momentum and mass, the affine momentum a cell, and a stress times its volume over h (f_i = T grad w).
struct Given {
    float4 momentum, affine[3], stress[2];
    float f[3];
};

// The sums of a warp. Its particles are put in order of their cells, then all lanes walk them together, one node of the stencil
// each (two for cubic splines), and add to the grid when the cell changes. What stress gives goes to an array of its own if APART.
template <int N, bool MOMENTUM, bool AFFINE, bool STRESS, bool APART> struct Sums {
    static constexpr int NODES = N * N * N, EACH = (NODES + 31) / 32, FORCE = APART ? 4 : 0;

    float c[EACH][3][N], n[EACH][3], sum[EACH][4 + FORCE];
    int out[EACH], here, lane;
    float *grid, *forces;
    const int* slots;

    __device__ Sums(int lane, float* grid, float* forces, const int* slots)
        : here(FAR), lane(lane), grid(grid), forces(forces), slots(slots) {
        for (int e = 0; e < EACH; e++) {
            const int q = lane + 32 * e, i = q / (N * N), j = q / N % N, k = q % N;
            Spline<N>::node(i, c[e][0]);
            Spline<N>::node(j, c[e][1]);
            Spline<N>::node(k, c[e][2]);
            n[e][0] = i, n[e][1] = j, n[e][2] = k;
            out[e] = q < NODES ? i * 64 + j * 8 + k : -1;
            for (int a = 0; a < 4 + FORCE; a++) sum[e][a] = 0.0f;
        }
    }

    __device__ void flush() {
        if (here == FAR) return;
        for (int e = 0; e < EACH; e++) {
            if (out[e] < 0) continue;
            const int node = here + out[e], i = node >> 6, j = (node >> 3) & 7, k = node & 7;
            const int slot = slots[(i >> 2) * 4 + (j >> 2) * 2 + (k >> 2)];
            const int at = 4 * (64 * slot + (i & 3) * 16 + (j & 3) * 4 + (k & 3));
            add4(grid + at, sum[e][0], sum[e][1], sum[e][2], sum[e][3]);
            if (APART) add4(forces + at, sum[e][FORCE], sum[e][FORCE + 1], sum[e][FORCE + 2], 0.0f);
            for (int a = 0; a < 4 + FORCE; a++) sum[e][a] = 0.0f;
        }
    }

    // Add the particles of a warp; `records` and `order` are the warp's own shared memory. Every lane calls it.
    __device__ void add(float* records, int* order, const Given& given, int cell, int count) {
        __syncwarp();
        const int mine = cell * 32 + lane;
        order[lane] = mine;
        __syncwarp();
        int rank = 0;
#pragma unroll
        for (int q = 0; q < 32; q++) rank += order[q] < mine;
        if (cell != FAR) {
            float4* at = (float4*)(records + RECORD * rank);
            if (MOMENTUM) at[0] = given.momentum;
            if (AFFINE) at[1] = given.affine[0], at[2] = given.affine[1];
            at[3] = make_float4(given.f[0], given.f[1], given.f[2], AFFINE ? given.affine[2].x : 0.0f);
            if (STRESS) at[4] = given.stress[0];
            at[5] = make_float4(given.stress[1].x, given.stress[1].y, __int_as_float(cell), 0.0f);
        }
        __syncwarp();
        for (int q = 0; q < count; q++) {
            const float4* at = (const float4*)(records + RECORD * q);
            const float4 r3 = at[3], r5 = at[5];
            const int now = __float_as_int(r5.z);
            if (now != here) {
                flush();
                here = now;
            }
            const float4 r0 = at[0], r1 = at[1], r2 = at[2], r4 = at[4];
            for (int e = 0; e < EACH; e++) {
                const float x = Spline<N>::weight(c[e][0], r3.x), y = Spline<N>::weight(c[e][1], r3.y);
                const float z = Spline<N>::weight(c[e][2], r3.z), w = x * y * z;
                if (MOMENTUM) {
                    float m[3] = {r0.x, r0.y, r0.z};
                    if (AFFINE) {
                        m[0] += r1.x * n[e][0] + r1.y * n[e][1] + r1.z * n[e][2];
                        m[1] += r1.w * n[e][0] + r2.x * n[e][1] + r2.y * n[e][2];
                        m[2] += r2.z * n[e][0] + r2.w * n[e][1] + r3.w * n[e][2];
                    }
                    for (int a = 0; a < 3; a++) sum[e][a] += w * m[a];
                    sum[e][3] += w * r0.w;
                }
                if (STRESS) {
                    const float gx = Spline<N>::slope(c[e][0], r3.x) * y * z, gy = x * Spline<N>::slope(c[e][1], r3.y) * z;
                    const float gz = x * y * Spline<N>::slope(c[e][2], r3.z);
                    sum[e][FORCE] += r4.x * gx + r4.y * gy + r4.z * gz;
                    sum[e][FORCE + 1] += r4.y * gx + r4.w * gy + r5.x * gz;
                    sum[e][FORCE + 2] += r4.z * gx + r5.x * gy + r5.y * gz;
                }
            }
        }
    }
};

// What a warp gives of a particle: momentum m v at the stencil's first node, so that node n takes w (m v + A n).
template <int N>
static __device__ void give_motion(Given& given, const float* v, float mass, const float* C, float h, const float* f) {
    float A[9] = {}, q[3];
    for (int c = 0; c < 3; c++) {
        q[c] = mass * v[c];
        if (C)
            for (int a = 0; a < 3; a++) A[3 * c + a] = h * mass * C[3 * c + a], q[c] -= A[3 * c + a] * (Spline<N>::FIRST + f[a]);
    }
    given.momentum = make_float4(q[0], q[1], q[2], mass);
    given.affine[0] = make_float4(A[0], A[1], A[2], A[3]);
    given.affine[1] = make_float4(A[4], A[5], A[6], A[7]);
    given.affine[2] = make_float4(A[8], 0.0f, 0.0f, 0.0f);
}

static __device__ void give_stress(Given& given, const float* T, float scale) {
    given.stress[0] = make_float4(scale * T[0], scale * T[1], scale * T[2], scale * T[3]);
    given.stress[1] = make_float4(scale * T[4], scale * T[5], 0.0f, 0.0f);
}

// x += dt v in fixed point; what would move more than a cell, or is not a number, stays, and `displacement` tells.
static __device__ void move(int* offset, int stride, int p, const float* v, float cells, float unit, float inverse_unit, float* found) {
    float largest = 0.0f, farthest = 0.0f, total = 0.0f, square = 0.0f;
    for (int a = 0; a < 3; a++) {
        const float d = v[a] * cells, size = fabsf(d), finite = size <= 1.0f ? d : 0.0f;
        const int x = offset[a * stride + p] + (int)rintf(finite * unit);
        offset[a * stride + p] = x;
        total += size;
        square += v[a] * v[a];
        largest = fmaxf(largest, size);
        farthest = fmaxf(farthest, fabsf((float)x) * inverse_unit);
    }
    found[0] = farthest;
    found[1] = total == total ? largest : HUGE_NUMBER;
    found[2] = square == square ? square : HUGE_NUMBER;
}

// p / m + dt g, zero where there is less than `least_mass` (kernels/transfers/motion.py).
static __device__ float4 velocity_of(float4 p, float dt, float gx, float gy, float gz, float least_mass) {
    return p.w > least_mass ? make_float4(p.x / p.w + dt * gx, p.y / p.w + dt * gy, p.z / p.w + dt * gz, 0.0f)
                            : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// v* where `momentum` holds m v + dt f already.
extern "C" __global__ void __launch_bounds__(THREADS)
divide_by_mass(const Substep* substep, const float4* momentum, float4* velocity, int nodes, float gx, float gy, float gz,
               float least_mass) {
    const int n = blockIdx.x * THREADS + threadIdx.x;
    if (substep->runs && n < nodes) velocity[n] = velocity_of(momentum[n], substep->dt, gx, gy, gz, least_mass);
}

// v* = v + dt (f / m + g).
extern "C" __global__ void __launch_bounds__(THREADS)
update_grid_velocity(const Substep* substep, const float4* momentum, const float4* force, float4* velocity, int nodes, float gx,
                     float gy, float gz, float least_mass) {
    const int n = blockIdx.x * THREADS + threadIdx.x;
    if (!substep->runs || n >= nodes) return;
    const float4 p = momentum[n], f = force[n];
    const float dt = substep->dt;
    velocity[n] = velocity_of(make_float4(p.x + dt * f.x, p.y + dt * f.y, p.z + dt * f.z, p.w), dt, gx, gy, gz, least_mass);
}
