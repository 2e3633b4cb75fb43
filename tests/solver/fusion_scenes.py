"""Scenes in which every fused kernel has something to do, and how far rounding may take two ways to compute them apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, Emitter, Material, Particles, WallRule, Walls
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.kernels.level_sets.level_set import BOX, SPHERE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver

CELL = 0.1
DT = 1e-3
MATERIALS = {
    "neo_hookean": Material("neo_hookean", {"youngs_modulus": 2e4}, 1000.0, "rubber"),
    "fixed_corotated": Material("fixed_corotated", {"youngs_modulus": 2e4}, 1000.0, "jelly"),
    "snow": Material("snow", {"youngs_modulus": 4e4, "critical_compression": 1e-2, "critical_stretch": 5e-3}, 400.0, "snow"),
    "liquid": Material("liquid", {"bulk_modulus": 2e4, "viscosity": 2.0}, 1000.0, "syrup"),
}
MIXTURES = {
    **{law: (law,) for law in MATERIALS},
    "snow and liquid": ("snow", "liquid"),
    "rubber and jelly": ("neo_hookean", "fixed_corotated"),
}

MIXED = ("snow", "liquid")
LEAN = ("snow", "fixed_corotated")
"""Laws without viscosity: nothing in the next substep reads the velocity gradient, except a time step that is measured."""

BETWEEN = ("stress", "velocity_gradient")
"""What only lives inside a substep, as long as nobody looks at it and dt is limited by what the substep left."""

PRESET = json.loads(registries.default().presets["explicit_apic"].read_text())
SCATTER = "rasterize+compute_stress+add_stress_forces"
UPDATED = SCATTER + "+update_grid_velocity"
GATHER = "gather+update_deformation+apply_plasticity"
MOVED = GATHER + "+collide_particles+move_particles"
DEFORMED = MOVED.removeprefix("gather+")
WITHIN = 16.0
"""Units of `rounding`: a node adds a few hundred terms, and a plastic law's singular values take a few dozen operations."""


def matter(laws: Iterable[str], cells: int = 5, seed: int = 7) -> Particles:
    """Return a cube of `cells`^3 cells, stretched, turning and under way: the laws are mixed particle by particle.

    No attribute rests: a stage that is left out, or reads a stale array, shows in the first substep.
    """
    laws, spacing, random = tuple(laws), 0.5 * CELL, np.random.default_rng(seed)
    axis = (np.arange(2 * cells) + 0.5) * spacing
    position = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    position += random.uniform(-0.2, 0.2, position.shape) * spacing + [0.0, 0.02, 0.0]
    count, arm = len(position), position - position.mean(axis=0)
    columns = {
        "position": position,
        "velocity": np.cross([3.0, -2.0, 5.0], arm) + [0.6, -1.5, 0.2] + 0.1 * random.normal(size=(count, 3)),
        "affine": random.normal(size=(count, 3, 3)),
        "velocity_gradient": random.normal(size=(count, 3, 3)),
        "deformation": np.eye(3) + 0.02 * random.normal(size=(count, 3, 3)),
        "volume_change": 0.01 * random.normal(size=count),
        "plastic_volume_ratio": 1.0 + 0.02 * random.normal(size=count),
        "stress": random.normal(size=(count, 6)),
        "material": random.integers(0, len(laws), count).astype(np.int32),
        "stiffness_scale": 1.0 + 0.2 * np.sin(40.0 * position[:, 1]),
        "temperature": 300.0 + position[:, 1],
    }
    return Particles(columns, tuple(MATERIALS[law] for law in laws), spacing)


def surroundings(laws: Iterable[str]) -> dict[str, Any]:
    """Return what `matter` meets within ten substeps: bodies that rise and stand, walls that slip and delete, a stream."""
    slab = PosedLevelSets(BOX, (0.6, 0.05, 0.6), np.array([0.0, 1.0]), None, np.array([[0.25, -0.03, 0.25], [0.25, 0.47, 0.25]]))
    ball = PosedLevelSets(SPHERE, (0.1,), np.zeros(1), None, np.array([[0.55, 0.25, 0.25]]))
    bodies = (Collider("slab", CollisionRule.SEPARATE, 0.4, slab), Collider("ball", CollisionRule.STICKY, 0.0, ball))
    sides = (WallRule.SLIP, WallRule.OPEN, WallRule.OPEN, WallRule.OPEN, WallRule.OPEN, WallRule.DELETE)
    nozzle = matter(tuple(laws)[-1:], cells=1, seed=8)
    nozzle = Particles({**nozzle.attributes, "position": nozzle["position"] + [0.2, 0.7, 0.2]}, nozzle.materials, nozzle.spacing)
    return {
        "colliders": bodies,
        "walls": Walls((0.0, -2.0, -2.0), (2.0, 2.0, 0.492), sides, 0.2),
        "emitters": (Emitter(nozzle, (0.3, -6.0, 0.0)),),
    }


def stiffening_rubber() -> Particles:
    """Return a stretched cube whose modulus grows from frame to frame."""
    lattice = 0.05 * np.stack(np.meshgrid(*(np.arange(6.0),) * 3, indexing="ij"), -1).reshape(-1, 3)
    modulus = KeyedNumber(((0.0, 1e4, "linear"), (10.0, 1e5, "linear")))
    rubber = Material("neo_hookean", {"youngs_modulus": modulus}, 1000.0, "rubber")
    return Particles({"position": lattice, "deformation": np.tile(1.05 * np.eye(3), (len(lattice), 1, 1))}, (rubber,), 0.05)


SCENES = {
    "free": {},
    "surrounded": surroundings(MIXED),
    "bodies": {"colliders": surroundings(MIXED)["colliders"]},
    "walls": {"walls": surroundings(MIXED)["walls"]},
    "stream": {"emitters": surroundings(MIXED)["emitters"]},
}


def solver(laws: Iterable[str], substeps: Any = "explicit_apic", **options: Any) -> SubstepSolver:
    """Return a solver of `matter`."""
    return SubstepSolver(matter(laws), substeps, cell_size=CELL, **options)


def preset(**settings: Any) -> dict[str, Any]:
    """Return the explicit preset with some of its settings changed."""
    return {"preset": "explicit_apic", "set": settings}


def attributes(run: SubstepSolver) -> dict[str, np.ndarray]:
    """Return every attribute of a solver by name, in the order of the ids."""
    return dict(run.snapshot().attributes)


def rounding(run: SubstepSolver, substeps: int, dt: float) -> dict[str, float]:
    """Return by attribute how far `substeps` substeps of length dt may drift apart: the float type's epsilon times magnitudes.

    One substep. The two ways add the same terms w m v, w m C d and dt V tau grad w to a node in another order, and divide by its
    mass: an error of eps times the sum of their sizes, which weighs no more than 1 in what a particle gathers (w m_p <= m_i).
    With U = |v| + h |C| + dt |tau| / (rho h) + dt g that is eps U for a velocity, eps U / h for its gradients, dt eps U / h
    relative to what the gradient advances (F, J - 1, J_p) beside the rounding of the value itself, and rho c^2 times that for
    the stress. A position rounds to its fixed-point unit.

    n substeps. Both ways round again in each, and what is there is carried on: stable explicit elasticity does not amplify it,
    a velocity gradient and contact do by 1 + dt |L| a substep. Hence n (1 + dt |L|)^n.
    """
    state, h, eps = attributes(run), run.cell_size, float(np.finfo(run.particles.dtype).eps)
    size = {name: float(np.abs(column).max()) for name, column in state.items()}
    density = min(material.density for material in run.matter.materials)
    limits = list(run.particles.law_limits())
    modulus = max(law.density * wave**2 + law.viscosity * gradient for law, _, gradient, wave in limits)
    speed = size["velocity"] + h * size["affine"] + dt * size["stress"] / (density * h) + dt * 9.81
    strain = 1.0 + dt * speed / h
    once = {
        "velocity": speed,
        "affine": speed / h,
        "velocity_gradient": speed / h,
        "deformation": size.get("deformation", 0.0) * strain,
        "total_deformation": size.get("total_deformation", 0.0) * strain,
        "volume_change": size.get("volume_change", 0.0) + dt * speed / h,
        "elastic_strain": (1.0 + size.get("elastic_strain", 0.0)) * dt * speed / h + size.get("elastic_strain", 0.0),
        "plastic_volume_ratio": size.get("plastic_volume_ratio", 0.0) * strain,
        "stress": modulus * strain,
        "position": dt * speed + h / (run.particles.unit * eps) + size["position"] * np.finfo(float).eps / eps,
    }
    growth = substeps * (1.0 + dt * size["velocity_gradient"]) ** substeps
    return {name: eps * growth * value for name, value in once.items()}


def drift(
    one: SubstepSolver, other: SubstepSolver, substeps: int, dt: float, like: Mapping[str, str] = MappingProxyType({})
) -> dict[str, float]:
    """Return by attribute the largest difference of two solvers in units of `rounding`; what must be equal gives 0 or infinity.

    Attributes of the user are held to those that `like` names. What no stage needed in the last substep is left out.
    """
    names = [name for name in other.particles.names if name not in one.particles.stale]
    a, b = (dict(run.snapshot(names).attributes) for run in (one, other))
    allowed = rounding(other, substeps, dt)
    assert a.keys() == b.keys() and np.array_equal(a["id"], b["id"])
    found = {}
    for name in b:
        if like.get(name, name) in allowed:
            found[name] = float(np.abs(a[name].astype(float) - b[name]).max() / allowed[like.get(name, name)])
        else:
            found[name] = 0.0 if np.array_equal(a[name], b[name]) else np.inf
    return found


def far(one, other, substeps: int, **like: str) -> dict[str, float]:
    """Return the attributes that differ by more than rounding after so many substeps of length DT."""
    return {name: units for name, units in drift(one, other, substeps, DT, like).items() if not units <= WITHIN}


def differing(one, other, *but: str) -> list[str]:
    """Return the attributes of which a bit differs, some left out."""
    names = [name for name in other.particles.names if name not in but]
    a, b = one.snapshot(names).attributes, other.snapshot(names).attributes
    assert a.keys() == b.keys() and len(names) > 8
    return [name for name in b if a[name].tobytes() != b[name].tobytes()]


def names(run) -> list[str]:
    """Return the stages of a solver's plan."""
    return [planned.id for planned in run.plan.stages]
