// What says which substep runs, and what is cleared in one that does.

extern "C" __global__ void __launch_bounds__(THREADS) set_substep(Substep* substep, float dt) {
    if (threadIdx.x == 0) substep->dt = dt, substep->runs = 1;
}

extern "C" __global__ void __launch_bounds__(THREADS) clear_floats(const Substep* substep, float* values, int count) {
    const int at = 4 * (blockIdx.x * THREADS + threadIdx.x);
    if (!substep->runs) return;
    for (int k = at; k < at + 4 && k < count; k++) values[k] = 0.0f;
}
