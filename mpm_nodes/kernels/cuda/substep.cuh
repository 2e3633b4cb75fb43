// What kernels read of the substep that they belong to.
struct Substep {
    float dt;  // its length [s]
    int runs;  // 0: there is nothing to do, and kernels return at once
};
