// Substeps that run without the CPU: each begins with the choice of its length, and those past the last one do nothing.
// One thread chooses, with the functions that the CPU calls (solver/step_lengths.py) and in double precision as there.

// Lies in front of the lengths of the substeps, and of the largest values that their loops find.
struct Batch {
    Substep now;
    int done, why;  // how many substeps have run, and why no other does: the CPU goes on then
    double time;    // simulated seconds after them
};

// A value that the loops of the substep before found for a law; `place` tells its first place and how many lie between substeps.
static __device__ float found(const Batch* batch, const int* place, int number) {
    return __int_as_float(((const int*)batch)[place[0] + place[1] * (number - 1)]);
}

// Return the longest step that motion and waves allow, or 0 where the CPU must look at the substep before.
static __device__ double longest(const Batch* batch, const double* numbers, const int* places, int laws, int number, int* why) {
    double dt = numbers[DT_MAX];
    dt = numbers[OTHERS] < dt ? numbers[OTHERS] : dt;
    for (int law = 0; law < laws; law++) {
        const int* place = places + 2 * PLACES * law;
        const double* before = numbers + NUMBERS + 3 * law;
        double speed = before[0], gradient = before[1], wave = before[2];
        if (number) {
            if (!(found(batch, place + 2 * DISPLACEMENT, number) <= 1.0f)) *why = FAR_MOVED;
            if (!*why && !(found(batch, place + 2 * DRIFT, number) < numbers[DRIFT_LIMIT])) *why = SORT_DUE;
            const float squares[2] = {found(batch, place + 2 * SPEED, number), found(batch, place + 2 * GRADIENT, number)};
            const float fastest = found(batch, place + 2 * WAVE, number);
            if (!(squares[0] < HUGE_NUMBER && squares[1] < HUGE_NUMBER && fastest < HUGE_NUMBER)) *why = FAR_MOVED;
            speed = sqrt((double)squares[0]), gradient = sqrt((double)squares[1]), wave = fastest;
        }
        const double travel = time_to_travel(numbers[TRAVEL], speed, numbers[GRAVITY]);
        const double strain = strain_step(gradient, numbers[STRAIN]), elastic = wave_step(wave, speed, numbers[ELASTIC]);
        dt = travel < dt ? travel : dt;
        dt = strain < dt ? strain : dt;
        dt = elastic < dt ? elastic : dt;
    }
    return dt;
}

// Choose the length of substep `number` of a batch.
extern "C" __global__ void __launch_bounds__(THREADS)
choose_dt(Batch* batch, const double* numbers, const int* places, int laws, int number) {
    if (threadIdx.x) return;
    if (number == 0) batch->time = numbers[TIME];
    batch->now.runs = 0;
    if (batch->why) return;
    int why = batch->done < numbers[MOST] ? 0 : SORT_DUE;
    double dt = numbers[FACTOR] * longest(batch, numbers, places, laws, number, &why);
    dt = dt < numbers[DT_MIN] ? numbers[DT_MIN] : dt;
    const double left = numbers[END] - batch->time, most = left < numbers[DT_MAX] ? left : numbers[DT_MAX];
    if (!why && !(dt > 1e-7 * most)) why = TOO_SHORT;
    dt = even_step(dt, left, numbers[TICK], rest_of_tick(numbers[TICK], batch->time - numbers[BEGIN]), numbers[DT_MIN]);
    if (!why && uses_up(dt, left)) why = LAST;
    if (!why && !(batch->time - numbers[TIME] + dt < numbers[REST])) why = STAGE_DUE;
    batch->why = why;
    if (why) return;
    ((double*)(batch + 1))[batch->done++] = dt;
    batch->time += dt;
    batch->now.dt = (float)dt;
    batch->now.runs = 1;
}
