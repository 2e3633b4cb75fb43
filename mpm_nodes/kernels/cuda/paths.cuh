// Collisions of particle paths with bodies and walls: kernels/collisions/paths.py, a thread a particle.

// Most steps along one path; each is at least STEP cells but for particles that have diverged.
#define MOST_STEPS 1000

// The velocity after contact (rules.respond).
static __device__ Vec respond(int rule, float friction, Vec n, Vec v, Vec body) {
    if (rule == STICKY) return body;
    const Vec r = v - body;
    const float vn = dot(r, n);
    if (rule == SEPARATE && vn >= 0.0f) return v;
    Vec t = r - vn * n;
    if (rule == SEPARATE && friction > 0.0f) {
        const float speed = length(t);
        if (speed <= -friction * vn) return body;
        t = ((speed + friction * vn) / speed) * t;
    }
    return body + t;
}

struct Touch {
    float at;  // 2: never
    Met met;
};

// When the path from p [cells] with v [cells in a substep] first touches a body after s, and distance and gradient there.
static __device__ Touch first_touch(Seen seen, float s, float touching, Vec p, Vec v, const Lattices& lattices) {
    const float rest = 1.0f - s;
    Vec e = placed(seen, p, s);
    const float way = 1.05f * length(placed(seen, p + rest * v, 1.0f) - e) + rest * seen.of[OWN];
    // the middle of the block is no nearer than that, and the distance changes no faster than the place
    if (s == 0.0f && seen.of[AT_MIDDLE] - 1.001f * length(p) > way + touching) return {2.0f, {0.0f, {0.0f, 0.0f, 0.0f}}};
    float outside = 0.0f, inside = 2.0f, t = 0.0f;
    Met known = {0.0f, {0.0f, 0.0f, 0.0f}};
    int halvings = 0;
    for (int round = 0; halvings < 7 && round < MOST_STEPS; round++) {
        const Met met = sample(seen, e, s + rest * t, lattices);
        if (round == 0) {
            if (met.phi <= touching) return {s, met};
            if (met.phi > way) return {2.0f, met};
        }
        if (met.phi > 0.0f) {
            outside = t;
            known = met;
            if (t >= 1.0f) return {2.0f, met};
        } else {
            inside = t;
        }
        if (inside <= 1.0f) {
            halvings++;
            t = 0.5f * (outside + inside);
        } else {
            t = fminf(t + fmaxf(met.phi, STEP) / way, 1.0f);
        }
        e = placed(seen, p + (t * rest) * v, s + rest * t);
    }
    return {s + rest * outside, known};
}

// A thread block for each block of particles near bodies or walls: its columns are its place among all blocks, and its first pair and
// the one behind its last. `sides`: places of the six walls from its middle [cells]. `rules`: rules of the walls, friction, speeds.
// doomed: set to 1 for particles beyond a deleting wall, if any deletes; lost: where TELLS, 12 numbers of each particle that met
// something: its number as bits, where it then is [cells], block, velocities before and after.
template <bool TELLS>
static __device__ void collide(const int* blocks, const float* sides, const float* rules, const int* pairs, const float* reals,
                               const int* table, const float* coarse, const float* values, const float* speeds, const float* coarse_speeds, const int* block_start, int* offset,
                               float* velocity, int stride, float unit, float inverse_unit, float h, float dt, unsigned char* doomed,
                               int* counts, float* lost) {
    const int* block = blocks + 3 * blockIdx.x;
    const float* walls = sides + 6 * blockIdx.x;
    const Lattices lattices = {table, coarse, values, speeds, coarse_speeds, 1.0f / h};
    const float cells = dt / h;
    for (int i = block_start[block[0]] + threadIdx.x; i < block_start[block[0] + 1]; i += THREADS) {
        const Vec x = inverse_unit * vec(offset[i], offset[stride + i], offset[2 * stride + i]);
        const Vec before = {velocity[i], velocity[stride + i], velocity[2 * stride + i]};
        Vec v = before;
        if (!(dot(v, v) < FASTEST)) continue;  // diverged: the stage that chooses dt reports it
        bool met = false, held = false, gone = false;
        float s = 0.0f, pushed = 0.0f;
        Vec q = {0.0f, 0.0f, 0.0f}, w = q;  // how far it has come
        for (int bounce = 0; bounce < BOUNCES; bounce++) {
            Touch first = {2.0f, {0.0f, {0.0f, 0.0f, 0.0f}}};
            int hit = -1;
            for (int pair = block[1]; pair < block[2]; pair++) {
                const Seen seen = {pairs + PAIR_INTEGERS * pair, reals + PAIR_REALS * pair};
                // what sticks or slides was set down at the surface and is still in contact there
                const float touching = bounce == 0 && seen.in[HOW] != SEPARATE ? 1.5f * MARGIN : 0.0f;
                const Touch touch = first_touch(seen, s, touching, x + q, cells * v, lattices);
                if (touch.at < first.at) first = touch, hit = pair;
            }
            held = hit >= 0;
            if (!held) break;
            met = true;
            const Seen seen = {pairs + PAIR_INTEGERS * hit, reals + PAIR_REALS * hit};
            q = q + ((first.at - s) * cells) * v;
            s = first.at;
            const Vec n = world_normal(seen, s, first.met.g);
            w = body_velocity(seen, placed(seen, x + q, s), lattices);
            v = respond(seen.in[HOW], seen.of[RUBS], n, v, w);
            const float out = fminf(fmaxf(MARGIN - first.met.phi, 0.0f), PUSH - pushed);
            pushed += out;
            q = q + out * n;
        }
        // still in contact after the last bounce: it waits at the touching point, carried by the body
        if (held) q = q + ((1.0f - s) * cells) * (w - v);
        q = q - (s * cells) * v;
        float along[3] = {v.x, v.y, v.z}, z[3] = {q.x, q.y, q.z};
        const float at[3] = {x.x, x.y, x.z};
        for (int side = 0; side < 6; side++) {
            const int rule = (int)rules[side], axis = side >> 1;
            const float sign = side & 1 ? -1.0f : 1.0f;
            if (rule == OPEN || sign * (at[axis] - walls[side] + z[axis] + cells * along[axis]) >= 0.0f) continue;
            met = true;
            if (rule == DELETE) {
                gone = true;
                continue;
            }
            const Vec n = vec(axis == 0, axis == 1, axis == 2);
            const Vec after = respond(rule, rules[6], sign * n, vec(along[0], along[1], along[2]), rules[7 + side] * n);
            along[0] = after.x, along[1] = after.y, along[2] = after.z;
            z[axis] = walls[side] - at[axis] - cells * along[axis];
        }
        if (gone) {
            doomed[i] = 1;
            atomicAdd(counts, 1);
        }
        if (!met) continue;
        for (int a = 0; a < 3; a++) {
            // offsets must not overflow whatever a body does
            z[a] = fminf(fmaxf(z[a], -LARGEST_SHIFT), LARGEST_SHIFT);
            offset[a * stride + i] += (int)rintf(z[a] * unit);
            velocity[a * stride + i] = along[a];
        }
        if (TELLS && !(along[0] == before.x && along[1] == before.y && along[2] == before.z)) {
            float* row = lost + 12 * atomicAdd(counts + 1, 1);
            row[0] = __int_as_float(i), row[4] = __int_as_float(block[0]);
            for (int a = 0; a < 3; a++) row[1 + a] = at[a] + z[a] + cells * along[a], row[8 + a] = along[a];
            row[5] = before.x, row[6] = before.y, row[7] = before.z, row[11] = 0.0f;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
collide_paths(const Substep* substep, const int* blocks, const float* sides, const float* rules, const int* pairs, const float* reals, const int* table,
              const float* coarse, const float* values, const float* speeds, const float* coarse_speeds, const int* block_start, int* offset, float* velocity, int stride, float unit,
              float inverse_unit, float h, unsigned char* doomed, int* counts) {
    if (!substep->runs) return;
    const float dt = substep->dt;
    collide<false>(blocks, sides, rules, pairs, reals, table, coarse, values, speeds, coarse_speeds, block_start, offset, velocity, stride, unit,
                   inverse_unit, h, dt, doomed, counts, nullptr);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
collide_and_tell(const Substep* substep, const int* blocks, const float* sides, const float* rules, const int* pairs, const float* reals, const int* table,
                 const float* coarse, const float* values, const float* speeds, const float* coarse_speeds, const int* block_start, int* offset, float* velocity, int stride, float unit,
                 float inverse_unit, float h, unsigned char* doomed, int* counts, float* lost) {
    if (!substep->runs) return;
    const float dt = substep->dt;
    collide<true>(blocks, sides, rules, pairs, reals, table, coarse, values, speeds, coarse_speeds, block_start, offset, velocity, stride, unit,
                  inverse_unit, h, dt, doomed, counts, lost);
}
