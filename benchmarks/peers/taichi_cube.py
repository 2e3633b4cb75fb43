"""The falling cube in Taichi, on a dense grid, as people write it.

--form same   forces and deformation by the gradients of the weights: the discretisation of mpm_nodes, for the agreement
--form mls    MLS-MPM: stress and affine velocity fused into one matrix, deformation by the affine velocity; cheaper
"""

from pathlib import Path

import falling_cube as scene
import numpy as np
import taichi as ti

INVERSE = 1.0 / scene.CELL
DT = scene.TIME_STEP


def start(cube: scene.Cube, form: str, threads: int, cache: Path) -> scene.Running:
    """Allocate, compile and fill."""
    ti.init(
        arch=ti.cpu,
        cpu_max_num_threads=threads,
        default_fp=ti.f32,
        log_level=ti.WARN,
        offline_cache=True,
        offline_cache_file_path=str(cache),
    )
    vector, matrix = ti.types.vector(3, ti.f32), ti.types.matrix(3, 3, ti.f32)
    x, v = ti.Vector.field(3, ti.f32, cube.count), ti.Vector.field(3, ti.f32, cube.count)
    C, F = ti.Matrix.field(3, 3, ti.f32, cube.count), ti.Matrix.field(3, 3, ti.f32, cube.count)
    momentum = ti.Vector.field(3, ti.f32, (cube.grid_nodes,) * 3)  # velocity after the grid update
    mass = ti.field(ti.f32, (cube.grid_nodes,) * 3)

    @ti.func
    def weights(f):
        return ti.Matrix.rows([0.5 * (1.5 - f) ** 2, 0.75 - (f - 1.0) ** 2, 0.5 * (f - 0.5) ** 2])

    @ti.func
    def slopes(f):
        return INVERSE * ti.Matrix.rows([f - 1.5, 2.0 - 2.0 * f, f - 0.5])

    @ti.func
    def kirchhoff(G):
        identity = ti.Matrix.identity(ti.f32, 3)
        J = G.determinant()
        return scene.MU * (G @ G.transpose() - identity) + scene.LAM * (J - 1.0) * J * identity

    @ti.kernel
    def clear():
        for node in ti.grouped(mass):
            mass[node] = 0.0
            momentum[node] = vector(0.0)

    @ti.kernel
    def scatter_mls():
        for p in x:
            base = ti.cast(x[p] * INVERSE - 0.5, ti.i32)
            f = x[p] * INVERSE - base
            w = weights(f)
            affine = (-DT * scene.VOLUME * 4.0 * INVERSE * INVERSE) * kirchhoff(F[p]) + scene.MASS * C[p]
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                weight = w[i, 0] * w[j, 1] * w[k, 2]
                arm = (vector(i, j, k) - f) * scene.CELL
                momentum[base + ti.Vector([i, j, k])] += weight * (scene.MASS * v[p] + affine @ arm)
                mass[base + ti.Vector([i, j, k])] += weight * scene.MASS

    @ti.kernel
    def scatter_same():
        for p in x:
            base = ti.cast(x[p] * INVERSE - 0.5, ti.i32)
            f = x[p] * INVERSE - base
            w, s = weights(f), slopes(f)
            push = (-DT * scene.VOLUME) * kirchhoff(F[p])
            affine = scene.MASS * C[p]
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                weight = w[i, 0] * w[j, 1] * w[k, 2]
                slope = vector(s[i, 0] * w[j, 1] * w[k, 2], w[i, 0] * s[j, 1] * w[k, 2], w[i, 0] * w[j, 1] * s[k, 2])
                arm = (vector(i, j, k) - f) * scene.CELL
                momentum[base + ti.Vector([i, j, k])] += weight * (scene.MASS * v[p] + affine @ arm) + push @ slope
                mass[base + ti.Vector([i, j, k])] += weight * scene.MASS

    @ti.kernel
    def update_grid():
        for node in ti.grouped(mass):
            if mass[node] > 0.0:
                momentum[node] = momentum[node] / mass[node] + vector(0.0, DT * scene.GRAVITY, 0.0)

    @ti.kernel
    def gather_mls():
        for p in x:
            base = ti.cast(x[p] * INVERSE - 0.5, ti.i32)
            f = x[p] * INVERSE - base
            w = weights(f)
            velocity, affine = vector(0.0), matrix(0.0)
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                part = w[i, 0] * w[j, 1] * w[k, 2] * momentum[base + ti.Vector([i, j, k])]
                velocity += part
                affine += part.outer_product(vector(i, j, k) - f)
            affine *= 4.0 * INVERSE
            v[p], C[p] = velocity, affine
            F[p] += DT * affine @ F[p]
            x[p] += DT * velocity

    @ti.kernel
    def gather_same():
        for p in x:
            base = ti.cast(x[p] * INVERSE - 0.5, ti.i32)
            f = x[p] * INVERSE - base
            w, s = weights(f), slopes(f)
            velocity, affine, gradient = vector(0.0), matrix(0.0), matrix(0.0)
            for i, j, k in ti.static(ti.ndrange(3, 3, 3)):
                slope = vector(s[i, 0] * w[j, 1] * w[k, 2], w[i, 0] * s[j, 1] * w[k, 2], w[i, 0] * w[j, 1] * s[k, 2])
                at_node = momentum[base + ti.Vector([i, j, k])]
                part = w[i, 0] * w[j, 1] * w[k, 2] * at_node
                velocity += part
                affine += part.outer_product(vector(i, j, k) - f)
                gradient += at_node.outer_product(slope)
            v[p], C[p] = velocity, 4.0 * INVERSE * affine
            F[p] += DT * gradient @ F[p]
            x[p] += DT * velocity

    position, start_velocity = cube.particles()
    x.from_numpy(position)
    v.from_numpy(start_velocity)
    F.from_numpy(np.tile(np.eye(3, dtype=np.float32), (cube.count, 1, 1)))
    scatter, gather = {"same": (scatter_same, gather_same), "mls": (scatter_mls, gather_mls)}[form]

    def step() -> None:
        clear()
        scatter()
        update_grid()
        gather()

    return scene.Running(step, ti.sync, lambda: (x.to_numpy(), v.to_numpy(), F.to_numpy()), ".".join(map(str, ti.__version__)))


if __name__ == "__main__":
    scene.main(start)
