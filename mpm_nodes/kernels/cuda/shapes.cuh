// Bodies and walls as a block sees them: distance, normal and velocity in cells from the middle of the block.
//
// A pair of a block and a body or wall has PAIR_INTEGERS and PAIR_REALS numbers, which kernels/collisions/pairs.py describes. A place o is
// along the axes of the world, e along those of the body at the first pose; e moves with the body as the substep goes on. The
// functions are those of kernels/level_sets/level_set.py and kernels/collisions/posing.py.

// What rounding leaves open: of places [cells], and of voxels beside their planes [voxels].
#define CLOSE_BY 1e-5f
// Larger than any distance.
#define HUGE_NUMBER 3e38f

struct Vec {
    float x, y, z;
};

static __device__ Vec vec(float x, float y, float z) { return {x, y, z}; }
static __device__ Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static __device__ Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static __device__ Vec operator*(float s, Vec a) { return {s * a.x, s * a.y, s * a.z}; }
static __device__ float dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static __device__ float length(Vec a) { return sqrtf(dot(a, a)); }

// The product of a matrix, row by row, with a vector, and of its transpose.
static __device__ Vec times(const float* m, Vec a) {
    return {m[0] * a.x + m[1] * a.y + m[2] * a.z, m[3] * a.x + m[4] * a.y + m[5] * a.z, m[6] * a.x + m[7] * a.y + m[8] * a.z};
}
static __device__ Vec back(const float* m, Vec a) {
    return {m[0] * a.x + m[3] * a.y + m[6] * a.z, m[1] * a.x + m[4] * a.y + m[7] * a.z, m[2] * a.x + m[5] * a.y + m[8] * a.z};
}

// Level sets of all bodies with their velocities, if any has some, and what takes their metres to cells.
struct Lattices {
    const int* table;
    const float *coarse, *values, *speeds, *coarse_speeds;
    float per_metre;
};

// A body seen from a block.
struct Seen {
    const int* in;
    const float* of;
};

// Distance and its gradient in the frame of the body.
struct Met {
    float phi;
    Vec g;
};

// ---------------------------------------------------------------- level sets
// Values of a cell, at the place f in it, and their slopes; corners lie `x`, `y` and 1 apart.
static __device__ Met trilinear(const float* at, int x, int y, Vec f) {
    const float a = at[0], b = at[1], c = at[y], d = at[y + 1], e = at[x], g = at[x + 1], i = at[x + y], j = at[x + y + 1];
    const float p = 1.0f - f.x, q = 1.0f - f.y, r = 1.0f - f.z;
    const float ab = a * r + b * f.z, cd = c * r + d * f.z, eg = e * r + g * f.z, ij = i * r + j * f.z;
    const float low = ab * q + cd * f.y, high = eg * q + ij * f.y;
    const float z = p * (q * (b - a) + f.y * (d - c)) + f.x * (q * (g - e) + f.y * (j - i));
    return {low * p + high * f.x, {high - low, p * (cd - ab) + f.x * (ij - eg), z}};
}

// Value [m] and slopes [m a voxel] in the cell of voxel i, and whether there is a leaf; without one the slopes are 0.
static __device__ Met in_cell(Seen seen, const Lattices& lattices, const int* i, Vec f, bool& leafed) {
    const int* size = seen.in + LEAVES;
    const float band = seen.of[BAND_SIZE];
    leafed = false;
    for (int a = 0; a < 3; a++)
        if (i[a] < 0 || i[a] >= LEAF * size[a]) return {band, {0.0f, 0.0f, 0.0f}};
    const int entry = seen.in[ENTRY] + ((i[0] / LEAF) * size[1] + i[1] / LEAF) * size[2] + i[2] / LEAF;
    const int leaf = lattices.table[entry];
    if (leaf < 0) return {lattices.coarse[entry] > 0.0f ? band : -band, {0.0f, 0.0f, 0.0f}};
    leafed = true;
    const long long base = (long long)(seen.in[FIRST_LEAF] + leaf) * PADDED_VOLUME;
    const int inside = ((i[0] % LEAF) * PADDED + i[1] % LEAF) * PADDED + i[2] % LEAF;
    return trilinear(lattices.values + base + inside, PADDED * PADDED, PADDED, f);
}

// The mean of the slopes on the two sides of a plane of voxels; where only one side is known, that of it, and 0 where none is.
static __device__ float mean_slope(Seen seen, const Lattices& lattices, const int* i, Vec f, int axis, float along, float phi, float slope) {
    if (CLOSE_BY <= along && along <= 1.0f - CLOSE_BY) return slope;
    const int way = along < CLOSE_BY ? -1 : 1;
    const int other_cell[3] = {i[0] + (axis == 0) * way, i[1] + (axis == 1) * way, i[2] + (axis == 2) * way};
    bool leafed;
    const float other = way * (in_cell(seen, lattices, other_cell, f, leafed).phi - phi), steep = STEEP * seen.of[VOXEL_SIZE];
    if (fabsf(other) >= steep) return fabsf(slope) < steep ? slope : 0.0f;
    return fabsf(slope) < steep ? 0.5f * (slope + other) : other;
}

// The same body, with the second of its level sets in the place of the first.
static __device__ Seen of_key(Seen seen, int key) { return {seen.in + key * LATTICE_INTEGERS, seen.of + key * LATTICE_REALS}; }

// Distance [cells] and gradient of one level set at e.
static __device__ Met sample_lattice(Seen seen, Vec e, const Lattices& lattices) {
    const float voxel = seen.of[VOXEL_SIZE], band = seen.of[BAND_SIZE];
    const int* size = seen.in + LEAVES;
    const Vec way = times(seen.of + TO_VOXELS, e);
    const float t[3] = {seen.of[IN_VOXEL] + way.x, seen.of[IN_VOXEL + 1] + way.y, seen.of[IN_VOXEL + 2] + way.z};
    int i[3];
    float u[3], f[3], beyond = 0.0f;
    for (int a = 0; a < 3; a++) {
        const float low = floorf(t[a]);
        i[a] = seen.in[AT_VOXEL + a] + (int)low;
        f[a] = t[a] - low;
        u[a] = i[a] + f[a];
        const float d = fmaxf(fmaxf(-u[a], u[a] - LEAF * size[a]), 0.0f);
        beyond += d * d;
    }
    if (beyond > 0.0f) return {(band + voxel * sqrtf(beyond)) * lattices.per_metre, {0.0f, 0.0f, 0.0f}};
    const Vec in = {f[0], f[1], f[2]};
    bool leafed;
    Met met = in_cell(seen, lattices, i, in, leafed);
    float slope[3] = {met.g.x, met.g.y, met.g.z};
    if (leafed) {
        const bool level = fabsf(met.phi) >= (1.0f - 1e-6f) * band;  // the end of the band, where one side is level
        const bool on_plane = fminf(fminf(f[0], f[1]), f[2]) < CLOSE_BY || fmaxf(fmaxf(f[0], f[1]), f[2]) > 1.0f - CLOSE_BY;
        if (on_plane)
            for (int a = 0; a < 3; a++) slope[a] = level ? 0.0f : mean_slope(seen, lattices, i, in, a, f[a], met.phi, slope[a]);
    }
    float phi = met.phi;
    if (phi >= band - voxel) {
        // beyond the band the distance at the leaf's centre bounds it from below
        const Vec c = {i[0] % LEAF + f[0] - 3.5f, i[1] % LEAF + f[1] - 3.5f, i[2] % LEAF + f[2] - 3.5f};
        const int entry = seen.in[ENTRY] + ((i[0] / LEAF) * size[1] + i[1] / LEAF) * size[2] + i[2] / LEAF;
        phi = fmaxf(phi, lattices.coarse[entry] - voxel * (length(c) + 2.0f));
    } else if (phi <= voxel - band) {
        // deep inside the distances at the centres of leaves say which way is out
        int at[3];
        float c[3];
        for (int a = 0; a < 3; a++) {
            c[a] = (u[a] - 3.5f) / LEAF;
            at[a] = max(min((int)floorf(c[a]), size[a] - 2), 0);
            c[a] -= at[a];
        }
        const float* centres = lattices.coarse + seen.in[ENTRY] + (at[0] * size[1] + at[1]) * size[2] + at[2];
        const Met deep = trilinear(centres, size[1] * size[2], size[2], {c[0], c[1], c[2]});
        if (deep.phi < phi || (slope[0] == 0.0f && slope[1] == 0.0f && slope[2] == 0.0f)) {
            phi = fminf(deep.phi, phi);
            slope[0] = deep.g.x / LEAF, slope[1] = deep.g.y / LEAF, slope[2] = deep.g.z / LEAF;
        }
    }
    return {phi * lattices.per_metre, lattices.per_metre * back(seen.of + TO_VOXELS, {slope[0], slope[1], slope[2]})};
}

// Velocity of one level set at e, in the body's frame [m/s]: trilinear in a leaf, else the nearest surface's.
static __device__ Vec sample_speed(Seen seen, Vec e, const Lattices& lattices) {
    const int* size = seen.in + LEAVES;
    const Vec way = times(seen.of + TO_VOXELS, e);
    const float t[3] = {seen.of[IN_VOXEL] + way.x, seen.of[IN_VOXEL + 1] + way.y, seen.of[IN_VOXEL + 2] + way.z};
    int i[3];
    float f[3];
    for (int a = 0; a < 3; a++) {
        const float low = floorf(t[a]);
        const int cell = seen.in[AT_VOXEL + a] + (int)low, last = LEAF * size[a] - 1;
        i[a] = max(min(cell, last), 0);
        f[a] = cell < 0 ? 0.0f : (cell > last ? 0.5f : t[a] - low);
        if (i[a] == last) f[a] = fminf(f[a], 0.5f);
    }
    const int entry = seen.in[ENTRY] + ((i[0] / LEAF) * size[1] + i[1] / LEAF) * size[2] + i[2] / LEAF, leaf = lattices.table[entry];
    const float* far = lattices.coarse_speeds + 3 * (long long)entry;
    if (leaf < 0) return {far[0], far[1], far[2]};
    const int inside = ((i[0] % LEAF) * PADDED + i[1] % LEAF) * PADDED + i[2] % LEAF;
    const float* at = lattices.speeds + 3 * ((long long)(seen.in[FIRST_LEAF] + leaf) * PADDED_VOLUME + inside);
    Vec v = {0.0f, 0.0f, 0.0f};
    for (int corner = 0; corner < 8; corner++) {
        const int a = corner >> 2, b = (corner >> 1) & 1, c = corner & 1;
        const float* there = at + 3 * ((a * PADDED + b) * PADDED + c);
        const float weight = (a ? f[0] : 1.0f - f[0]) * (b ? f[1] : 1.0f - f[1]) * (c ? f[2] : 1.0f - f[2]);
        v = v + weight * vec(there[0], there[1], there[2]);
    }
    return v;
}

// A level set between its keys: its velocity, of the grids or else the drift of the centre, carries each from its time to this one, and
// the two are blended. Velocity in the body's frame [m/s], and d phi/dt that is left over [m/s].
struct Blend {
    Met met;
    Vec speed;
    float rate;
};

// It is called from five places: written out at each, kernels would take twice as long to compile.
static __device__ __noinline__ Blend sample_keys(Seen seen, Vec e, float mix, const Lattices& lattices) {
    const int keys = seen.in[KEYS];
    Vec v = {seen.of[CARRIED], seen.of[CARRIED + 1], seen.of[CARRIED + 2]};
    if (seen.in[HAS_SPEED]) {
        v = {0.0f, 0.0f, 0.0f};
        for (int key = 0; key < keys; key++)
            v = v + (keys == 1 ? 1.0f : (key ? mix : 1.0f - mix)) * sample_speed(of_key(seen, key), e, lattices);
    }
    const float span = keys == 1 ? 0.0f : seen.of[SPAN_OF_KEYS];
    Blend found = {{0.0f, {0.0f, 0.0f, 0.0f}}, v, 0.0f};
    float change = 0.0f;
#pragma unroll 1
    for (int key = 0; key < keys; key++) {
        const float weight = keys == 1 ? 1.0f : (key ? mix : 1.0f - mix), back_by = (key ? mix - 1.0f : mix) * span * lattices.per_metre;
        const Met met = sample_lattice(of_key(seen, key), e - back_by * v, lattices);
        found.met.phi += weight * met.phi;
        found.met.g = found.met.g + weight * met.g;
        change = met.phi - change;
    }
    if (span > 0.0f) found.rate = change / (span * lattices.per_metre);
    return found;
}

// ---------------------------------------------------------------- shapes
// Of the square |c + e|^2 - r^2 the part without e is given: nothing cancels near the surface.
static __device__ Met sample_round(float square, Vec c, Vec e, float radius) {
    const float difference = square + 2.0f * dot(c, e) + dot(e, e);
    const Vec d = c + e;
    const float r = length(d);
    return {difference / fmaxf(r + radius, 1e-30f), (1.0f / fmaxf(r, 1e-30f)) * d};
}

static __device__ Met sample_box(const float* s, Vec e) {
    const float up[3] = {s[0] + e.x, s[1] + e.y, s[2] + e.z}, down[3] = {s[3] - e.x, s[4] - e.y, s[5] - e.z};
    float q[3], way[3], nearest = -HUGE_NUMBER, square = 0.0f;
    for (int a = 0; a < 3; a++) {
        way[a] = up[a] >= down[a] ? 1.0f : -1.0f;
        q[a] = fmaxf(up[a], down[a]);
        nearest = fmaxf(nearest, q[a]);
    }
    for (int a = 0; a < 3; a++) {
        // inside, as near to two faces or three, the way out is between them: rounding does not choose one
        if (nearest <= 0.0f)
            way[a] = q[a] >= nearest - CLOSE_BY ? way[a] : 0.0f;
        else
            way[a] *= fmaxf(q[a], 0.0f);
        square += way[a] * way[a];
    }
    const float r = sqrtf(square);
    return {nearest <= 0.0f ? nearest : r, (1.0f / r) * vec(way[0], way[1], way[2])};
}

// Distance [cells] of a body at e at a time of the substep, 0 to 1, and its gradient in the body's frame.
static __device__ Met sample(Seen seen, Vec e, float time, const Lattices& lattices) {
    const float* s = seen.of + SHAPE;
    switch (seen.in[FORM]) {
    case PLANE:
        return {s[0] + e.y, {0.0f, 1.0f, 0.0f}};
    case SPHERE:
        return sample_round(s[5], {s[0], s[1], s[2]}, e, s[4]);
    case CAPSULE: {
        if (s[1] + e.y > 0.0f) return sample_round(s[5] + s[6], {s[0], s[1], s[2]}, e, s[4]);
        if (s[3] + e.y < 0.0f) return sample_round(s[5] + s[7], {s[0], s[3], s[2]}, e, s[4]);
        return sample_round(s[5], {s[0], 0.0f, s[2]}, {e.x, 0.0f, e.z}, s[4]);
    }
    case BOX:
        return sample_box(s, e);
    default:
        return sample_keys(seen, e, seen.of[MIX] + time * (seen.of[MIX + 1] - seen.of[MIX]), lattices).met;
    }
}

// ---------------------------------------------------------------- motion
// Place o at time s of the substep, 0 to 1, in the frame of the body.
static __device__ Vec placed(Seen seen, Vec o, float s) {
    const Vec moved = vec(seen.of[MOVE], seen.of[MOVE + 1], seen.of[MOVE + 2]) + times(seen.of + TURNS, o);
    return times(seen.of + TURN, o) + s * moved;
}

// Unit normal in the world of a gradient, of the pose that is nearer in time; zeros where there is none.
static __device__ Vec world_normal(Seen seen, float s, Vec g) {
    Vec n = back(seen.of + TURN, g);
    if (s >= 0.5f) n = n + back(seen.of + TURNS, g);
    const float size = length(n);
    return size < 1e-9f ? vec(0.0f, 0.0f, 0.0f) : (1.0f / size) * n;
}

// Velocity of the body's matter at e [m/s]. A level set that moves in its own frame adds that motion: its velocities, else
// d phi/dt along the normal.
static __device__ Vec body_velocity(Seen seen, Vec e, const Lattices& lattices) {
    const Vec moved = vec(seen.of[SPEED], seen.of[SPEED + 1], seen.of[SPEED + 2]) + times(seen.of + SPIN, e);
    if (seen.in[FORM] != LEVEL_SET || (seen.in[KEYS] == 1 && !seen.in[HAS_SPEED])) return moved;
    const Blend blend = sample_keys(seen, e, seen.of[MIX + 1], lattices);
    const float square = dot(blend.met.g, blend.met.g);
    Vec own = blend.speed;
    if (!seen.in[HAS_SPEED] && square > 1e-12f) own = own - (blend.rate / square) * blend.met.g;
    return moved + back(seen.of + TURN, own) + back(seen.of + TURNS, own);
}
