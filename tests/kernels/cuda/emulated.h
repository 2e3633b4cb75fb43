// Enough of CUDA for a CPU's compiler to run the kernels as they stand: each thread of a thread block is a context of its own, which
// runs until it meets a barrier. A barrier that not all threads reach is told, as are reads of shared memory that nobody wrote (NaN).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <utility>

#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)

struct Index {
    int x, y, z;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }
template <class To, class From> static To bits(From x) {
    To to;
    memcpy(&to, &x, sizeof to);
    return to;
}
static float __int_as_float(int x) { return bits<float>(x); }
static int __float_as_int(float x) { return bits<int>(x); }
static unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
template <class T> static T atomicAdd(T* at, T x) {
    const T before = *at;
    *at += x;
    return before;
}
template <class T> static T atomicMax(T* at, T x) {
    const T before = *at;
    if (x > before) *at = x;
    return before;
}

enum State { RUNS, AT_WARP, AT_BLOCK, DONE };
static const int MOST = 1024, STACK = 1 << 16;
static struct {
    ucontext_t here, threads[MOST];
    State state[MOST];
    char* stacks;
    void (*call)();
} block;

static void wait(State at) {
    const int me = threadIdx.x;
    block.state[me] = at;
    swapcontext(&block.threads[me], &block.here);
    threadIdx.x = me;
}
static void __syncwarp() { wait(AT_WARP); }
static void __syncthreads() { wait(AT_BLOCK); }

static void body() {
    const int me = threadIdx.x;
    block.call();
    block.state[me] = DONE;
}

// Let threads go on that all wait at the same barrier; returns whether any can.
static bool release(int first, int last, State at) {
    bool some = false;
    for (int t = first; t < last; t++) {
        if (block.state[t] == DONE) continue;
        if (block.state[t] != at) return false;
        some = true;
    }
    for (int t = first; t < last; t++)
        if (block.state[t] == at) block.state[t] = RUNS;
    return some;
}

static void run_block() {
    const int threads = blockDim.x;
    for (int t = 0; t < threads; t++) {
        getcontext(&block.threads[t]);
        block.threads[t].uc_stack.ss_sp = block.stacks + (size_t)t * STACK;
        block.threads[t].uc_stack.ss_size = STACK;
        block.threads[t].uc_link = &block.here;
        makecontext(&block.threads[t], body, 0);
        block.state[t] = RUNS;
    }
    for (;;) {
        for (int t = 0; t < threads; t++)
            if (block.state[t] == RUNS) {
                threadIdx.x = t;
                swapcontext(&block.here, &block.threads[t]);
            }
        bool some = release(0, threads, AT_BLOCK), left = false;
        for (int first = 0; first < threads; first += 32) some |= release(first, min(first + 32, threads), AT_WARP);
        for (int t = 0; t < threads; t++) left |= block.state[t] != DONE;
        if (!left) return;
        if (!some) {
            fprintf(stderr, "block %d: a barrier that not all threads reach\n", blockIdx.x);
            abort();
        }
    }
}

static void** given;
template <class... A, size_t... I> static void call_with(void (*kernel)(A...), std::index_sequence<I...>) { kernel(*(A*)given[I]...); }
template <class... A> static void call_kernel(void (*kernel)(A...)) { call_with(kernel, std::index_sequence_for<A...>()); }

#define EMULATE(kernel)                                                 \
    static void call_##kernel() { call_kernel(kernel); }                \
    extern "C" void launch(void** arguments, int blocks, int threads) { \
        given = arguments;                                              \
        block.call = call_##kernel;                                     \
        block.stacks = (char*)malloc((size_t)threads * STACK);          \
        blockDim.x = threads, gridDim.x = blocks;                       \
        for (int b = 0; b < blocks; b++) {                              \
            blockIdx.x = b;                                             \
            run_block();                                                \
        }                                                               \
        free(block.stacks);                                             \
    }
