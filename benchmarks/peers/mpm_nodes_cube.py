"""The falling cube in mpm_nodes, the preset `explicit_apic` as wired, sorting included."""

import functools
from pathlib import Path

import falling_cube as scene
import numpy as np

import mpm_nodes
from mpm_nodes import Material, Particles, SubstepSolver
from mpm_nodes.solver.sorting import SORT_INTERVAL


def start(cube: scene.Cube, form: str, threads: int, cache: Path, device: str = "cpu") -> scene.Running:
    """Set the solver up; it has one form, and threads and JIT cache follow the environment."""
    position, velocity = cube.particles()
    law = {"youngs_modulus": scene.YOUNGS_MODULUS, "poisson_ratio": scene.POISSON_RATIO}
    columns = {"position": position.astype(np.float64), "velocity": velocity}
    solver = SubstepSolver(
        Particles(columns, (Material("neo_hookean", law, scene.DENSITY),), scene.SPACING),
        {"preset": "explicit_apic"},
        cell_size=scene.CELL,
        gravity=(0.0, scene.GRAVITY, 0.0),
        origin=(0.0, 0.0, 0.0),
        device=device,
    )

    def state() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        held = solver.snapshot(("velocity", "deformation"))
        return held["position"], held["velocity"], held["deformation"]

    step = functools.partial(solver.step, scene.TIME_STEP, keep=False)
    return scene.Running(step, lambda: None, state, mpm_nodes.__version__, SORT_INTERVAL)


if __name__ == "__main__":
    scene.main(start)
