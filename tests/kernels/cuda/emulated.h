// The CPU form of CUDA kernels: the same source, compiled by the machine's compiler, so that its values are tested without a GPU.
//
// Each thread of a block is a fiber, which runs until it waits at a barrier. Then the first that can goes on, or the last: it is as far
// ahead of the others as barriers let it. A kernel whose result hangs on which lacks a barrier. Blocks run one after another, so that
// shared memory is static.
// A barrier that some threads of its group never reach ends the launch.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>
#include <ucontext.h>

using std::max;
using std::min;

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) int4 { int x, y, z, w; };
struct dim3 { int x, y, z; };
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float rsqrtf(float x) { return 1.f / sqrtf(x); }

static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace cpu_form {
constexpr int STACK = 1 << 16;

struct Barrier {
    int arrived = 0, generation = 0, living = 0;
    void pass_if_full() {
        if (living > 0 && arrived == living) arrived = 0, generation++;
    }
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    Barrier* waits = nullptr;
    int generation = 0;
    bool done = false;
    bool ready() const { return !done && !(waits && waits->generation == generation); }
};

static std::vector<Fiber> fibers;
static std::vector<Barrier> warps;
static std::vector<uint32_t> exchanged;
static Barrier block;
static ucontext_t scheduler;
static const std::function<void()>* kernel;

inline void wait(Barrier& barrier) {
    Fiber& fiber = fibers[threadIdx.x];
    fiber.waits = &barrier;
    fiber.generation = barrier.generation;
    barrier.arrived++;
    barrier.pass_if_full();
    swapcontext(&fiber.context, &scheduler);
}

inline void enter() {
    (*kernel)();
    fibers[threadIdx.x].done = true;
    for (Barrier* each : {&block, &warps[threadIdx.x / 32]}) each->living--, each->pass_if_full();
}

// Runs a kernel; returns whether every barrier was reached by all threads that it is for.
inline bool launch(int grid, int threads, bool falling, const std::function<void()>& body) {
    kernel = &body;
    gridDim = {grid, 1, 1};
    blockDim = {threads, 1, 1};
    for (int b = 0; b < grid; b++) {
        fibers = std::vector<Fiber>(threads);
        warps.assign((threads + 31) / 32, Barrier{});
        exchanged.assign(threads, 0);
        block = {0, 0, threads};
        for (int t = 0; t < threads; t++) {
            Fiber& fiber = fibers[t];
            warps[t / 32].living++;
            getcontext(&fiber.context);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = STACK;
            fiber.context.uc_link = &scheduler;
            makecontext(&fiber.context, enter, 0);
        }
        for (int left = threads; left > 0;) {
            int t = falling ? threads - 1 : 0;
            while (t >= 0 && t < threads && !fibers[t].ready()) t += falling ? -1 : 1;
            if (t < 0 || t == threads) return false;
            Fiber& fiber = fibers[t];
            fiber.waits = nullptr;
            threadIdx = {t, 0, 0};
            blockIdx = {falling ? grid - 1 - b : b, 0, 0};
            swapcontext(&scheduler, &fiber.context);
            left -= fiber.done;
        }
    }
    return true;
}

// Gives every lane of the warp what lane `from(lane)` has.
template <class T, class From> T exchange(T value, From from) {
    static_assert(sizeof(T) == 4, "lanes exchange 32 bits");
    const int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    memcpy(&exchanged[threadIdx.x], &value, 4);
    wait(warps[first / 32]);
    T found;
    memcpy(&found, &exchanged[min(first + from(lane), blockDim.x - 1)], 4);
    wait(warps[first / 32]);
    return found;
}
}  // namespace cpu_form

inline void __syncthreads() { cpu_form::wait(cpu_form::block); }
inline void __syncwarp(unsigned = ~0u) { cpu_form::wait(cpu_form::warps[threadIdx.x / 32]); }
template <class T> T __shfl_sync(unsigned, T value, int lane) {
    return cpu_form::exchange(value, [=](int) { return lane & 31; });
}
template <class T> T __shfl_xor_sync(unsigned, T value, int bits) {
    return cpu_form::exchange(value, [=](int lane) { return lane ^ bits; });
}
inline unsigned __ballot_sync(unsigned, int holds) {
    unsigned found = 0;
    for (int lane = 0; lane < 32; lane++) found |= (unsigned)(__shfl_sync(~0u, holds, lane) != 0) << lane;
    return found;
}
template <class T> T atomicAdd(T* at, T value) {
    const T before = *at;
    *at = before + value;
    return before;
}
template <class T> T atomicExch(T* at, T value) {
    const T before = *at;
    *at = value;
    return before;
}
template <class T> T atomicCAS(T* at, T expected, T value) {
    const T before = *at;
    if (before == expected) *at = value;
    return before;
}
template <class T> T atomicMax(T* at, T value) {
    const T before = *at;
    *at = max(before, value);
    return before;
}

template <class To, class From> To bits(From x) {
    To to;
    memcpy(&to, &x, sizeof to);
    return to;
}
inline float __int_as_float(int x) { return bits<float>(x); }
inline int __float_as_int(float x) { return bits<int>(x); }
inline unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
template <class T> T atomicOr(T* at, T value) {
    const T before = *at;
    *at = before | value;
    return before;
}

// Calls a kernel with pointers to its arguments, as the driver does.
template <class... A, size_t... I> void call_with(void (*kernel)(A...), void** given, std::index_sequence<I...>) {
    kernel(*(A*)given[I]...);
}
template <class... A> void call_kernel(void (*kernel)(A...), void** given) {
    call_with(kernel, given, std::index_sequence_for<A...>());
}

#define EMULATE(kernel)                                                                            \
    extern "C" bool launch(void** given, int grid, int threads, bool falling) {                    \
        return cpu_form::launch(grid, threads, falling, [given] { call_kernel(kernel, given); });  \
    }
