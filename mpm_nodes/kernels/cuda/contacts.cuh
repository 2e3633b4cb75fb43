// Contacts of grid nodes with bodies and walls: kernels/collisions/grid.py and response.py, a thread a node.
//
// A pair of a grid block and a body or wall has 64 places for contacts, one for each node. They are listed, lose images that are held
// themselves, and are met level by level: those that share an image are linked to a chain, which one thread meets.

#define NOTHING -2
#define NONE -1
#define SEVERAL -1
// Nodes nearer to a surface than this are in contact [cells].
#define REACH (0.5f - CLOSE_BY)
// Approach, over the speeds, up to which a contact has been met, and the share of adhesion up to which it has been used up.
#define MET 1e-6f

// A contact: normal and r; velocity of the body at the node and how fast matter may come nearer; velocity of the body at the image
// and friction; adhesion [N s], rule, and the way from the node to its image.
struct Contact {
    float4 normal, body, image, more;
};

struct Grid {
    const float4* momentum;
    float least_mass;
    int nodes;  // of a spline along an axis
};

static __device__ Vec first_three(float4 a) { return {a.x, a.y, a.z}; }

// ---------------------------------------------------------------- where the matter is (touching.py)
static __device__ float filled(float t, int nodes) {
    const float away = fabsf(t);
    float rest = 0.0f;
    if (nodes == 4) {
        const float d = 2.0f - away;
        if (away < 1.0f)
            rest = 0.5f - away * (2.0f / 3.0f - away * away * (1.0f / 3.0f - away / 8.0f));
        else if (away < 2.0f)
            rest = d * d * d * d / 24.0f;
    } else {
        const float d = 1.5f - away;
        if (away < 0.5f)
            rest = 0.5f - away * (0.75f - away * away / 3.0f);
        else if (away < 1.5f)
            rest = d * d * d / 6.0f;
    }
    return t < 0.0f ? rest : 1.0f - rest;
}

static __device__ float spline_at(float t, int nodes) {
    const float away = fabsf(t);
    if (nodes == 4) {
        const float d = 2.0f - away;
        if (away >= 2.0f) return 0.0f;
        return away >= 1.0f ? d * d * d / 6.0f : 2.0f / 3.0f + away * away * (0.5f * away - 1.0f);
    }
    if (away >= 1.5f) return 0.0f;
    return away >= 0.5f ? 0.5f * (1.5f - away) * (1.5f - away) : 0.75f - away * away;
}

static __device__ float share_of(float s, float depth, float behind, float ahead, int nodes) {
    const float wide = sqrtf(1.0f + 12.0f * behind / nodes), wide_ahead = sqrtf(1.0f + 12.0f * ahead / nodes);
    return filled((depth - s) / wide, nodes) / filled((AHEAD - s) / wide_ahead, nodes);
}

// The node at places x, y, z counted from a block's first, or NONE.
static __device__ int node_of(const int* pair, int x, int y, int z) {
    const int i = x >> 2, j = y >> 2, k = z >> 2;
    if (max(max(abs(i), abs(j)), abs(k)) > 1) return NONE;
    const int beside = pair[AROUND + 9 * i + 3 * j + k + 13];
    return beside < 0 ? NONE : 64 * beside + (x & 3) * 16 + (y & 3) * 4 + (z & 3);
}

// Mass some way along n from a node, linear between nodes, and the variance along n that this adds.
static __device__ float mass_along(const int* pair, const Grid& grid, int node, float way, Vec n, float& spread) {
    const float at[3] = {(node >> 4) + way * n.x, ((node >> 2) & 3) + way * n.y, (node & 3) + way * n.z};
    int low[3];
    float f[3];
    for (int a = 0; a < 3; a++) {
        // rounding must not reach for one node more
        const float below = floorf(at[a] + CLOSE_BY);
        low[a] = (int)below;
        f[a] = fmaxf(at[a] - below, 0.0f);
    }
    float mass = 0.0f;
    for (int corner = 0; corner < 8; corner++) {
        const int i = corner >> 2, j = (corner >> 1) & 1, k = corner & 1;
        if ((i && f[0] <= CLOSE_BY) || (j && f[1] <= CLOSE_BY) || (k && f[2] <= CLOSE_BY)) continue;
        const int found = node_of(pair, low[0] + i, low[1] + j, low[2] + k);
        if (found >= 0)
            mass += (i ? f[0] : 1.0f - f[0]) * (j ? f[1] : 1.0f - f[1]) * (k ? f[2] : 1.0f - f[2]) * grid.momentum[found].w;
    }
    spread = n.x * n.x * f[0] * (1.0f - f[0]) + n.y * n.y * f[1] * (1.0f - f[1]) + n.z * n.z * f[2] * (1.0f - f[2]);
    return mass;
}

// How far beyond CLOSE the matter of a node is from the surface [cells]: 0 where it touches, FARTHEST or more where it is not met.
static __device__ float gap_before(const int* pair, const Grid& grid, int node, float phi, Vec n, float depth) {
    if (phi <= -DEEPEST || dot(n, n) < 0.5f) return 0.0f;
    float behind, ahead;
    const float there = mass_along(pair, grid, node, BEHIND - phi, n, behind);
    const float here = mass_along(pair, grid, node, AHEAD - phi, n, ahead);
    const float near = share_of(CLOSE, depth, behind, ahead, grid.nodes);
    if (there >= near * here) return 0.0f;
    if (there <= 0.0f) return HUGE_NUMBER;
    const float far = share_of(CLOSE + SPAN, depth, behind, ahead, grid.nodes);
    return SPAN * logf(near * here / there) / logf(near / far);
}

// Distance from the surface of the place that lies at BEHIND along a node's normal [cells].
static __device__ float depth_behind(Seen seen, Vec e, Met met, const Lattices& lattices) {
    const float square = dot(met.g, met.g);
    if (seen.in[FORM] == PLANE || met.phi <= -DEEPEST || square < 0.5f) return BEHIND;
    const Met behind = sample(seen, e + ((BEHIND - met.phi) / sqrtf(square)) * met.g, 1.0f, lattices);
    if (dot(met.g, behind.g) < -0.25f * square) return BEHIND;
    return fminf(fmaxf(behind.phi, BEHIND), SHALLOWEST);
}

// ---------------------------------------------------------------- images (image_nodes.py)
struct Image {
    int node;
    float ratio;
    int way[3];
};

static __device__ Image image_of(const int* pair, const Grid& grid, int node, float phi, Vec n) {
    Image found = {NONE, 0.0f, {0, 0, 0}};
    if (phi <= -DEEPEST || dot(n, n) < 0.5f) return found;
    const float t[3] = {(GOAL - phi) * n.x, (GOAL - phi) * n.y, (GOAL - phi) * n.z};
    int f[3], nearer = 0;
    bool alone = true;
    for (int a = 0; a < 3; a++) {
        f[a] = (int)floorf(t[a] + CLOSE_BY);  // rounding must not decide which side of a node the goal is on
        const float past = t[a] - f[a] - 0.5f;
        nearer = 2 * nearer + (past > 0.0f);
        alone = alone && fabsf(past) > CLOSE_BY;
    }
    float nearest = HUGE_NUMBER, out = 1.0f, heaviest = 0.0f;
    for (int other_way = 0; other_way < 8; other_way++) {
        // the nearest corner, where no other is as near and it will do, is the one
        if (alone && other_way == 1 && found.node >= 0) break;
        const int corner = nearer ^ other_way, s[3] = {f[0] + (corner >> 2), f[1] + ((corner >> 1) & 1), f[2] + (corner & 1)};
        float away = 0.0f;
        // with the goal on a layer of nodes, the next layer is as far on either side: that on one side would be no mirror image
        bool beside = false;
        for (int a = 0; a < 3; a++) {
            away += (s[a] - t[a]) * (s[a] - t[a]);
            beside = beside || (s[a] > f[a] && t[a] - f[a] < CLOSE_BY);
        }
        const float there = phi + n.x * s[0] + n.y * s[1] + n.z * s[2];
        if (there < REACH || away > nearest + CLOSE_BY || beside) continue;
        const int other = node_of(pair, (node >> 4) + s[0], ((node >> 2) & 3) + s[1], (node & 3) + s[2]);
        if (other < 0) continue;
        const float mass = grid.momentum[other].w;
        if (mass <= grid.least_mass) continue;
        // of two that lie alike the heavier, so that a turned scene chooses the turned one; rounding does not make one heavier
        if (away < nearest - CLOSE_BY || mass > HEAVIER * heaviest) {
            found.node = other;
            nearest = away, out = there, heaviest = mass;
            for (int a = 0; a < 3; a++) found.way[a] = s[a];
        }
    }
    if (found.node < 0) return found;
    const float own = grid.momentum[64 * pair[BLOCK] + node].w;
    found.ratio = fminf(1.0f, heaviest / own) * fminf(fmaxf(phi / out, -STEEPEST), 1.0f);
    return found;
}

// ---------------------------------------------------------------- listing (grid.py)
// A thread for each of `count` places for contacts. With adhesion `volume` holds the volume of the matter of each node [m^3].
extern "C" __global__ void __launch_bounds__(THREADS, 3)
list_contacts(const Substep* substep, const int* pairs, const float* reals, const int* table, const float* coarse, const float* values, const float* speeds,
              const float* coarse_speeds, const float4* momentum, const float* volume, float least_mass, int nodes, float h, int* images, Contact* contacts, int count) {
    const int c = blockIdx.x * THREADS + threadIdx.x, node = c & 63;
    if (!substep->runs || c >= count) return;
    const float dt = substep->dt;
    const Seen seen = {pairs + PAIR_INTEGERS * (c >> 6), reals + PAIR_REALS * (c >> 6)};
    const Lattices lattices = {table, coarse, values, speeds, coarse_speeds, 1.0f / h};
    const Grid grid = {momentum, least_mass, nodes};
    images[c] = NOTHING;
    if (!(momentum[64 * seen.in[BLOCK] + node].w > 0.0f)) return;
    const Vec o = {(node >> 4) - 1.5f, ((node >> 2) & 3) - 1.5f, (node & 3) - 1.5f}, e = placed(seen, o, 1.0f);
    const Met met = sample(seen, e, 1.0f, lattices);
    if (met.phi >= REACH) return;
    const Vec n = world_normal(seen, 1.0f, met.g);
    const float gap = gap_before(seen.in, grid, node, met.phi, n, depth_behind(seen, e, met, lattices));
    if (gap >= FARTHEST) return;
    Vec w = body_velocity(seen, e, lattices), u = w;
    Image image = image_of(seen.in, grid, node, met.phi, n);
    const Vec way = vec(image.way[0], image.way[1], image.way[2]);
    float pull = seen.of[STICKS];
    if (pull > 0.0f) {
        // the area of the contact that the node stands for, of which matter covers as much as it has volume at the image
        const int who = image.node >= 0 ? image.node : 64 * seen.in[BLOCK] + node;
        const float out = met.phi + (image.node >= 0 ? dot(n, way) : 0.0f);
        const float whole = h * h * h * fmaxf(filled(out, nodes), LEAST_FILLED);
        pull *= dt * h * h * spline_at(met.phi, nodes) * fminf(volume[who] / whole, 1.0f);
    }
    if (image.node >= 0) {
        const Vec there = placed(seen, o + way, 1.0f);
        u = body_velocity(seen, there, lattices);
        // deep inside, a level set knows neither its distance nor its normal well: what it takes for outside may lie inside
        if (seen.in[FORM] == LEVEL_SET && sample(seen, there, 1.0f, lattices).phi < 0.5f * REACH) image.node = NONE, image.ratio = 0.0f;
    }
    // matter that is a gap before the surface may come nearer by as much
    int rule = seen.in[HOW];
    float friction = seen.of[RUBS], lag = 0.0f;
    const float speed = (1.0f - image.ratio) * gap * h / dt;
    if ((rule != SEPARATE || pull > 0.0f) && gap <= HOLDS) {
        lag = speed;
    } else {
        if (rule != SEPARATE || pull > 0.0f) rule = SEPARATE, friction = 0.0f, pull = 0.0f;
        w = w - speed * n;
    }
    images[c] = image.node;
    contacts[c] = {make_float4(n.x, n.y, n.z, image.ratio), make_float4(w.x, w.y, w.z, lag), make_float4(u.x, u.y, u.z, friction),
                   make_float4(pull, rule, ((image.way[0] + 8) * 16 + image.way[1] + 8) * 16 + image.way[2] + 8, 0.0f)};
}

// Take the image from contacts whose image is held itself, from the opposite side or by the same body: r = 0. Pairs of block q are
// those from first[q] on.
extern "C" __global__ void __launch_bounds__(THREADS)
leave_pinched_images(const Substep* substep, const int* pairs, const int* first, int* images, Contact* contacts, int count) {
    const int c = blockIdx.x * THREADS + threadIdx.x;
    if (!substep->runs || c >= count || images[c] < 0) return;
    const int image = images[c], which = pairs[PAIR_INTEGERS * (c >> 6) + WHICH];
    const Vec n = first_three(contacts[c].normal);
    for (int pair = first[image >> 6]; pair < first[(image >> 6) + 1]; pair++) {
        const int other = 64 * pair + (image & 63);
        if (images[other] == NOTHING) continue;  // others change from an image to none meanwhile, and their r, which is not looked at
        if (dot(n, first_three(contacts[other].normal)) < OPPOSITE || pairs[PAIR_INTEGERS * pair + WHICH] == which) {
            images[c] = NONE;
            contacts[c].normal.w = 0.0f;
            return;
        }
    }
}

// ---------------------------------------------------------------- impulses (response.py)
// Link the contacts of a level that share an image; `listed` are its pairs. head: the last contact + 1 of each node that is an image.
extern "C" __global__ void __launch_bounds__(THREADS)
link_contacts(const Substep* substep, const int* listed, const int* images, int* head, int* before, int count) {
    const int t = blockIdx.x * THREADS + threadIdx.x;
    if (!substep->runs || t >= count) return;
    const int c = 64 * listed[t >> 6] + (t & 63);
    if (images[c] >= 0) before[c] = atomicExch(&head[images[c]], c + 1);
}

// Mark nodes that contacts of one level meet by that level, and those of several by SEVERAL; `marks` holds zeros.
static __device__ void mark(int* marks, int node, int level) {
    const int before = atomicCAS(&marks[node], 0, level);
    if (before && before != level) marks[node] = SEVERAL;
}

extern "C" __global__ void __launch_bounds__(THREADS) mark_met(const int* pairs, const int* images, int* marks, int count) {
    const int c = blockIdx.x * THREADS + threadIdx.x;
    if (c >= count || images[c] == NOTHING) return;
    const int* pair = pairs + PAIR_INTEGERS * (c >> 6);
    mark(marks, 64 * pair[BLOCK] + (c & 63), pair[WHICH] + 1);
    if (images[c] >= 0) mark(marks, images[c], pair[WHICH] + 1);
}

// A node's velocity relative to the body, less what matter that is held, and does not touch yet, comes nearer by.
static __device__ Vec relative(const Contact& contact, Vec v, Vec u) {
    const Vec w = v - first_three(contact.body);
    if (contact.body.w == 0.0f) return w;
    const Vec n = first_three(contact.normal);
    const float away = dot(w - contact.normal.w * u, n);
    return w + fminf(fmaxf(-away, 0.0f), contact.body.w) * n;
}

static __device__ bool approaches(Vec v, float r, Vec u, Vec n) {
    const float size = fabsf(v.x) + fabsf(v.y) + fabsf(v.z) + fabsf(u.x) + fabsf(u.y) + fabsf(u.z);
    return dot(v - r * u, n) < -MET * size;
}

// The change of the velocity of a node whose image had the relative velocity u and is to have p, by its body's rule.
static __device__ Vec change_of(const Contact& contact, Vec v, Vec u, Vec p, float mass) {
    const int rule = (int)contact.more.y;
    const float r = contact.normal.w, pull = contact.more.x > 0.0f ? contact.more.x / mass : 0.0f;
    const Vec n = first_three(contact.normal), w = relative(contact, v, u), d = r * p - w;
    if (rule == SEPARATE && pull == 0.0f && !approaches(w, r, u, n)) return {0.0f, 0.0f, 0.0f};
    if (rule != SEPARATE && rule != SLIP) return d;
    const float push = dot(d, n);
    if (rule == SLIP) return push * n;
    if (push <= -pull) return -pull * n;
    const Vec t = d - push * n;
    const float drag = length(t), most = contact.image.w * (push + pull);
    return push * n + (drag <= most ? 1.0f : most / drag) * t;
}

// A thread for each place of a level: the last of a chain meets all of it, and what has no image is met alone. `again` asks for those
// alone that share a node with another level. `given`, where TELLS, sums what each contact gives to its body.
template <bool TELLS>
static __device__ void meet(const int* listed, const int* pairs, const int* images, Contact* contacts, int* head, const int* before,
                            const float4* momentum, float4* velocity, const int* marks, int again, float4* given, int count) {
    const int t = blockIdx.x * THREADS + threadIdx.x;
    if (t >= count) return;
    const int own = 64 * listed[t >> 6] + (t & 63), image = images[own];
    if (image == NOTHING || (image >= 0 && before[own])) return;
    const int begin = image >= 0 ? head[image] - 1 : own;
    if (again) {
        bool shared = image >= 0 && marks[image] == SEVERAL;
        for (int c = begin; !shared;) {
            shared = marks[64 * pairs[PAIR_INTEGERS * (c >> 6) + BLOCK] + (c & 63)] == SEVERAL;
            if (c == own) break;
            c = before[c] - 1;
        }
        if (!shared) {
            if (image >= 0) head[image] = 0;
            return;
        }
    }
    Vec u = {0.0f, 0.0f, 0.0f};
    float mass = 0.0f;
    if (image >= 0) {
        mass = momentum[image].w;
        u = first_three(velocity[image]) - first_three(contacts[begin].image);
    }
    Vec p = mass * u;
    float carried = mass;
    for (int c = begin;;) {
        const Contact contact = contacts[c];
        const int node = 64 * pairs[PAIR_INTEGERS * (c >> 6) + BLOCK] + (c & 63);
        const float r = contact.normal.w;
        const Vec v = relative(contact, first_three(velocity[node]), u);
        if ((int)contact.more.y != SEPARATE || contact.more.x > 0.0f || approaches(v, r, u, first_three(contact.normal))) {
            const float m = r * momentum[node].w;
            p = p + m * v;
            carried += r * m;
        }
        if (c == own) break;
        c = before[c] - 1;
    }
    if (carried > 0.0f) p = (1.0f / carried) * p;
    Vec change = {0.0f, 0.0f, 0.0f};
    for (int c = begin;;) {
        const Contact contact = contacts[c];
        const int node = 64 * pairs[PAIR_INTEGERS * (c >> 6) + BLOCK] + (c & 63);
        const float r = contact.normal.w, m = momentum[node].w;
        const Vec v = first_three(velocity[node]), d = change_of(contact, v, u, p, m);
        if (TELLS) {
            const float4 told = given[c];
            const float share = (1.0f - r) * m;
            given[c] = make_float4(told.x - share * d.x, told.y - share * d.y, told.z - share * d.z, 0.0f);
        }
        if (contact.more.x > 0.0f) {  // a second sweep has what is left
            const float left = contact.more.x - fmaxf(-m * dot(d, first_three(contact.normal)), 0.0f);
            contacts[c].more.x = left > MET * contact.more.x ? left : 0.0f;
        }
        velocity[node] = make_float4(v.x + d.x, v.y + d.y, v.z + d.z, 0.0f);
        change = change - r * m * d;
        if (c == own) break;
        c = before[c] - 1;
    }
    if (image >= 0) {
        const Vec v = first_three(velocity[image]) + (1.0f / mass) * change;
        velocity[image] = make_float4(v.x, v.y, v.z, 0.0f);
        head[image] = 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
meet_contacts(const Substep* substep, const int* listed, const int* pairs, const int* images, Contact* contacts, int* head, const int* before,
              const float4* momentum, float4* velocity, const int* marks, int again, int count) {
    if (!substep->runs) return;
    meet<false>(listed, pairs, images, contacts, head, before, momentum, velocity, marks, again, nullptr, count);
}

extern "C" __global__ void __launch_bounds__(THREADS)
meet_and_tell(const Substep* substep, const int* listed, const int* pairs, const int* images, Contact* contacts, int* head, const int* before,
              const float4* momentum, float4* velocity, const int* marks, int again, float4* given, int count) {
    if (!substep->runs) return;
    meet<true>(listed, pairs, images, contacts, head, before, momentum, velocity, marks, again, given, count);
}

// Sum what the contacts of each pair give to its body, and its moment about the middle of the block [cells], six numbers a pair:
// a contact acts where the surface cuts the line from the node to its image.
extern "C" __global__ void __launch_bounds__(THREADS)
sum_given(const int* images, const Contact* contacts, const float4* given, float* sums, int count) {
    const int c = blockIdx.x * THREADS + threadIdx.x, node = c & 63, lane = threadIdx.x & 31;
    float own[6] = {};
    if (c < count && images[c] != NOTHING) {
        const int way = (int)contacts[c].more.z;
        const float r = contacts[c].normal.w, share = r / (1.0f - r);
        const Vec s = {(way >> 8) - 8.0f, ((way >> 4) & 15) - 8.0f, (way & 15) - 8.0f}, f = first_three(given[c]);
        const Vec at = vec((node >> 4) - 1.5f, ((node >> 2) & 3) - 1.5f, (node & 3) - 1.5f) - share * s;
        own[0] = f.x, own[1] = f.y, own[2] = f.z;
        own[3] = at.y * f.z - at.z * f.y, own[4] = at.z * f.x - at.x * f.z, own[5] = at.x * f.y - at.y * f.x;
    }
    for (int a = 0; a < 6; a++)
        for (int step = 16; step; step >>= 1) own[a] += __shfl_xor_sync(~0u, own[a], step);
    if (lane == 0 && c < count)
        for (int a = 0; a < 6; a++) sums[6 * (c >> 5) + a] = own[a];
}
