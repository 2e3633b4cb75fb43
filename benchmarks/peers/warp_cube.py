"""The falling cube in NVIDIA Warp on its CPU device (which uses one core), on a dense grid, as people write it.

--form same   forces and deformation by the gradients of the weights: the discretisation of mpm_nodes, for the agreement
--form mls    MLS-MPM: stress and affine velocity fused into one matrix, deformation by the affine velocity; cheaper
"""

from pathlib import Path

import falling_cube as scene
import numpy as np
import warp as wp

INVERSE = wp.constant(1.0 / scene.CELL)
CELL = wp.constant(scene.CELL)
DT = wp.constant(scene.TIME_STEP)
MU, LAM = wp.constant(scene.MU), wp.constant(scene.LAM)
VOLUME, MASS = wp.constant(scene.VOLUME), wp.constant(scene.MASS)
GRAVITY = wp.constant(scene.GRAVITY)

Vectors = wp.array(dtype=wp.vec3)
Matrices = wp.array(dtype=wp.mat33)
Nodes = wp.array(dtype=wp.vec4, ndim=3)


@wp.func
def weights(f: float):
    return wp.vec3(0.5 * (1.5 - f) * (1.5 - f), 0.75 - (f - 1.0) * (f - 1.0), 0.5 * (f - 0.5) * (f - 0.5))


@wp.func
def slopes(f: float):
    return INVERSE * wp.vec3(f - 1.5, 2.0 - 2.0 * f, f - 0.5)


@wp.func
def kirchhoff(G: wp.mat33):
    identity = wp.identity(n=3, dtype=float)
    J = wp.determinant(G)
    return MU * (G * wp.transpose(G) - identity) + LAM * (J - 1.0) * J * identity


@wp.kernel
def scatter_mls(x: Vectors, v: Vectors, C: Matrices, F: Matrices, grid: Nodes):
    p = wp.tid()
    at = x[p] * INVERSE
    bi, bj, bk = int(at[0] - 0.5), int(at[1] - 0.5), int(at[2] - 0.5)
    f = at - wp.vec3(float(bi), float(bj), float(bk))
    wx, wy, wz = weights(f[0]), weights(f[1]), weights(f[2])
    affine = (-DT * VOLUME * 4.0 * INVERSE * INVERSE) * kirchhoff(F[p]) + MASS * C[p]
    momentum = MASS * v[p]
    for i in range(3):
        for j in range(3):
            for k in range(3):
                arm = (wp.vec3(float(i), float(j), float(k)) - f) * CELL
                weight = wx[i] * wy[j] * wz[k]
                part = weight * (momentum + affine * arm)
                wp.atomic_add(grid, bi + i, bj + j, bk + k, wp.vec4(part[0], part[1], part[2], weight * MASS))


@wp.kernel
def scatter_same(x: Vectors, v: Vectors, C: Matrices, F: Matrices, grid: Nodes):
    p = wp.tid()
    at = x[p] * INVERSE
    bi, bj, bk = int(at[0] - 0.5), int(at[1] - 0.5), int(at[2] - 0.5)
    f = at - wp.vec3(float(bi), float(bj), float(bk))
    wx, wy, wz = weights(f[0]), weights(f[1]), weights(f[2])
    sx, sy, sz = slopes(f[0]), slopes(f[1]), slopes(f[2])
    push = (-DT * VOLUME) * kirchhoff(F[p])
    affine = MASS * C[p]
    momentum = MASS * v[p]
    for i in range(3):
        for j in range(3):
            for k in range(3):
                arm = (wp.vec3(float(i), float(j), float(k)) - f) * CELL
                weight = wx[i] * wy[j] * wz[k]
                slope = wp.vec3(sx[i] * wy[j] * wz[k], wx[i] * sy[j] * wz[k], wx[i] * wy[j] * sz[k])
                part = weight * (momentum + affine * arm) + push * slope
                wp.atomic_add(grid, bi + i, bj + j, bk + k, wp.vec4(part[0], part[1], part[2], weight * MASS))


@wp.kernel
def update_grid(grid: Nodes):
    i, j, k = wp.tid()
    node = grid[i, j, k]
    if node[3] > 0.0:
        r = 1.0 / node[3]
        grid[i, j, k] = wp.vec4(node[0] * r, node[1] * r + DT * GRAVITY, node[2] * r, node[3])


@wp.kernel
def gather_mls(x: Vectors, v: Vectors, C: Matrices, F: Matrices, grid: Nodes):
    p = wp.tid()
    at = x[p] * INVERSE
    bi, bj, bk = int(at[0] - 0.5), int(at[1] - 0.5), int(at[2] - 0.5)
    f = at - wp.vec3(float(bi), float(bj), float(bk))
    wx, wy, wz = weights(f[0]), weights(f[1]), weights(f[2])
    velocity = wp.vec3(0.0)
    affine = wp.mat33(0.0)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                node = grid[bi + i, bj + j, bk + k]
                part = (wx[i] * wy[j] * wz[k]) * wp.vec3(node[0], node[1], node[2])
                velocity = velocity + part
                affine = affine + wp.outer(part, wp.vec3(float(i), float(j), float(k)) - f)
    affine = (4.0 * INVERSE) * affine
    v[p] = velocity
    C[p] = affine
    F[p] = F[p] + DT * affine * F[p]
    x[p] = x[p] + DT * velocity


@wp.kernel
def gather_same(x: Vectors, v: Vectors, C: Matrices, F: Matrices, grid: Nodes):
    p = wp.tid()
    at = x[p] * INVERSE
    bi, bj, bk = int(at[0] - 0.5), int(at[1] - 0.5), int(at[2] - 0.5)
    f = at - wp.vec3(float(bi), float(bj), float(bk))
    wx, wy, wz = weights(f[0]), weights(f[1]), weights(f[2])
    sx, sy, sz = slopes(f[0]), slopes(f[1]), slopes(f[2])
    velocity = wp.vec3(0.0)
    affine = wp.mat33(0.0)
    gradient = wp.mat33(0.0)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                node = grid[bi + i, bj + j, bk + k]
                at_node = wp.vec3(node[0], node[1], node[2])
                part = (wx[i] * wy[j] * wz[k]) * at_node
                slope = wp.vec3(sx[i] * wy[j] * wz[k], wx[i] * sy[j] * wz[k], wx[i] * wy[j] * sz[k])
                velocity = velocity + part
                affine = affine + wp.outer(part, wp.vec3(float(i), float(j), float(k)) - f)
                gradient = gradient + wp.outer(at_node, slope)
    v[p] = velocity
    C[p] = (4.0 * INVERSE) * affine
    F[p] = F[p] + DT * gradient * F[p]
    x[p] = x[p] + DT * velocity


def start(cube: scene.Cube, form: str, threads: int, cache: Path, device: str = "cpu") -> scene.Running:
    """Allocate, compile and fill; Warp's CPU device takes no number of threads."""
    wp.config.kernel_cache_dir = str(cache)
    wp.config.enable_backward = False
    wp.config.log_level = wp.LOG_WARNING
    wp.init()
    wp.set_device(device)
    position, start_velocity = cube.particles()
    x, v = wp.array(position, dtype=wp.vec3), wp.array(start_velocity, dtype=wp.vec3)
    C = wp.zeros(cube.count, dtype=wp.mat33)
    F = wp.array(np.tile(np.eye(3, dtype=np.float32), (cube.count, 1, 1)), dtype=wp.mat33)
    grid = wp.zeros((cube.grid_nodes,) * 3, dtype=wp.vec4)
    scatter, gather = {"same": (scatter_same, gather_same), "mls": (scatter_mls, gather_mls)}[form]
    everything = [x, v, C, F, grid]

    def step() -> None:
        grid.zero_()
        wp.launch(scatter, dim=cube.count, inputs=everything)
        wp.launch(update_grid, dim=grid.shape, inputs=[grid])
        wp.launch(gather, dim=cube.count, inputs=everything)

    return scene.Running(step, wp.synchronize, lambda: (x.numpy(), v.numpy(), F.numpy()), wp.__version__)


if __name__ == "__main__":
    scene.main(start)
