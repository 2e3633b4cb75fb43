"""Building blocks of the problems' scenes: materials, blocks of particles, boxes of walls, solvers, damping."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import GraphSettings, Material, Particles, WallRule, Walls
from mpm_nodes.graph.declare import registry
from mpm_nodes.nodes.emit import emit_box, emit_sphere
from mpm_nodes.solver.run import SubstepSolver

SLIP, STICKY, SEPARATE, OPEN = WallRule.SLIP, WallRule.STICKY, WallRule.SEPARATE, WallRule.OPEN


def material(law: str, density: float = 1000.0, **params: float) -> Material:
    """Return a material; parameters that are not given keep the law's defaults."""
    return Material(law, params, density, law)


def block(matter: Material, low: Any, high: Any, cell_size: float, **knobs: Any) -> Particles:
    """Fill the box from `low` to `high` [m] with a lattice of eight particles a cell."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    return emit_box(GraphSettings(cell_size=cell_size), matter, size=tuple(high - low), centre=tuple(0.5 * (low + high)), **knobs)


def ball(matter: Material, centre: Any, radius: float, cell_size: float, **knobs: Any) -> Particles:
    """Fill a ball with a lattice of eight particles a cell."""
    return emit_sphere(GraphSettings(cell_size=cell_size), matter, radius=radius, centre=tuple(centre), **knobs)


def cloud(matter: Material, count: int, size: float, cell_size: float, seed: int = 0) -> Particles:
    """Scatter particles of uneven mass with random velocities [m/s] and affine velocities [1/s] over a cube at the origin."""
    random = np.random.default_rng(seed)
    volume = random.uniform(0.5, 1.5, count) * size**3 / count
    return Particles(
        {
            "position": random.uniform(-0.5 * size, 0.5 * size, (count, 3)),
            "velocity": random.normal(size=(count, 3)),
            "affine": random.normal(size=(count, 3, 3)),
            "volume": volume,
            "mass": matter.density * volume,
        },
        (matter,),
        0.5 * cell_size,
    )


def changed(particles: Particles, **columns: Any) -> Particles:
    """Return the particles with some columns replaced or added."""
    return Particles({**particles.attributes, **columns}, particles.materials, particles.spacing)


def walled(low: Any, high: Any, *rules: WallRule) -> Walls:
    """Return a box of walls: one rule for all sides, or six for -x, +x, -y, +y, -z, +z."""
    return Walls(tuple(map(float, low)), tuple(map(float, high)), rules * 6 if len(rules) == 1 else rules)


def preset(**parameters: Any) -> dict[str, Any]:
    """Return the explicit preset with some of its parameters set."""
    return {"preset": "explicit_apic", "set": parameters}


def calm(solver: SubstepSolver, factor: float) -> None:
    """Multiply all velocities by a factor: the damping of scenes whose answer is a state of rest."""
    for name in ("velocity", "affine"):
        solver.particles.array(name)[:] *= solver.particles.dtype.type(factor)


def settle(solver: SubstepSolver, duration: float, rate: float) -> None:
    """Run for `duration` [s] with velocities decaying at `rate` [1/s]."""
    end = solver.time + duration
    while solver.time < end * (1.0 - 1e-12):
        dt = solver.step(time_left=end - solver.time)
        calm(solver, float(np.exp(-rate * dt)))


def chain(*names: str, **knobs: dict[str, Any]) -> dict[str, Any]:
    """Return the substep graph of stages one after another; `knobs` by stage."""
    stages, nodes = registry.default().stages(), {}
    last = {"particles": "particles", "grid": "grid", "colliders": "colliders"}
    for name in names:
        declaration = stages[name]
        inputs = {domain.name: last[domain.name] for domain in declaration.domains}
        nodes[name] = {"type": name, "knobs": knobs.get(name, {}), "inputs": inputs}
        last |= dict.fromkeys(declaration.outputs, name)
    return {"format": "mpm_nodes.substeps", "version": 1, "label": "Chain", "doc": "", "parameters": {}, "nodes": nodes}
