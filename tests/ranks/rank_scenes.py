"""Scenes that ranks share, and the program that runs one of them: `mpiexec -n 2 python rank_scenes.py SCENE STEPS FILE`.

All of them are in double precision, so that rounding is far below what a forgotten node or particle would change.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import (
    Ambient,
    Collider,
    CollisionRule,
    Emitter,
    Material,
    Metering,
    Particles,
    SurfaceField,
    SurfaceTension,
    Thermal,
    WallRule,
    Walls,
)
from mpm_nodes.kernels.level_sets.level_set import SPHERE, PosedLevelSets
from mpm_nodes.nodes.fields import field_shape
from mpm_nodes.nodes.fields_of_particles import field_attribute
from mpm_nodes.nodes.forces import force_vortex, force_wind
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push, surround

CELL = 0.1
RUBBER = Material("neo_hookean", {"youngs_modulus": 2e4}, 1000.0, "rubber")
SNOW = Material("snow", {"youngs_modulus": 4e4, "critical_compression": 1e-2, "critical_stretch": 5e-3}, 400.0, "snow")
SYRUP = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 2.0}, 1000.0, "syrup")
MELT = Material("liquid", {"bulk_modulus": 2e4, "viscosity": 2.0}, 900.0, "melt")
WAX = Material("neo_hookean", {"youngs_modulus": 2e4}, 1000.0, "wax", thermal=Thermal(10.0, 2e3, 15.0, 4e3, 20.0, 310.0, MELT))
TENSE = SurfaceTension(40.0, 10.0, 300.0, 330.0, solute_tension=10.0)
WATER = replace(SYRUP, surface_tension=TENSE)
SOAP = replace(SYRUP, surface_tension=replace(TENSE, solute_diffusivity=5e-3))
TENSE_WAX = replace(WAX, surface_tension=TENSE, thermal=replace(WAX.thermal, melt=replace(MELT, surface_tension=TENSE)))
SYRUP_ON_OIL = replace(SYRUP, surface_tension=replace(TENSE, interfaces=(("oil", 15.0),)))
OIL = replace(SYRUP, label="oil", density=900.0, surface_tension=replace(TENSE, tension=25.0))
CREAM = Material(
    "herschel_bulkley",
    {"bulk_modulus": 109e3, "shear_modulus": 2.9e3, "yield_stress": 31.9, "consistency": 27.2, "flow_index": 0.22},
    77.7,
    "cream",
    tear_threshold=0.05,
    recovery_time=0.05,
)


def bar(material: Material, cells: Any = (36, 4, 4), low: Any = (0.0, 0.0, 0.0)) -> Particles:
    """Return a block of matter with eight particles a cell."""
    axes = [(np.arange(2 * count) + 0.5) * 0.5 * CELL for count in cells]
    position = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3) + np.asarray(low, float)
    return Particles({"position": position, "material": np.zeros(len(position), np.int32)}, (material,), 0.5 * CELL)


def with_velocity(particles: Particles, velocity: np.ndarray) -> Particles:
    """Return the particles with velocities."""
    columns = {**particles.attributes, "velocity": velocity}
    return Particles(columns, particles.materials, particles.spacing)


def swirling(material: Material, drift: float = 0.5) -> Particles:
    """Return a bar that bends, twists and goes on along x, across the borders of slabs."""
    found = bar(material)
    x, y, _ = found["position"].T
    velocity = np.stack([0.8 * np.sin(3 * y + 1.0) + drift, 0.6 * np.cos(2 * x), 0.4 * np.sin(2 * x + y)], 1)
    return with_velocity(found, velocity)


def tearing() -> Particles:
    """Return a bar of cream, with a thread beside it that is too thin for the grid, which are drawn apart."""
    block, thread = bar(CREAM, (36, 3, 3)), bar(CREAM, (36, 1, 1), (0.0, 1.0, 0.13))["position"]
    position = np.concatenate([block["position"], thread[(np.abs(thread[:, 1] - 1.025) < 1e-9) & (thread[:, 2] < 0.2)]])
    found = Particles({"position": position, "material": np.zeros(len(position), np.int32)}, (CREAM,), block.spacing)
    x, zero = position[:, 0], np.zeros(len(position))
    return with_velocity(found, np.stack([6.0 * (x - 1.8) + 0.4, 2.0 * np.sin(9.0 * x), zero], 1))


def uneven(particles: Particles) -> Particles:
    """Return particles that lie in no rows, so that none is as near to a sample as another, with a solute in places."""
    position = particles["position"] + np.random.default_rng(5).uniform(-0.01, 0.01, particles["position"].shape)
    solute = 0.5 + 0.5 * np.sin(5.0 * position[:, 0] + 3.0 * position[:, 2])
    columns = {**particles.attributes, "position": position, "concentration": solute}
    return Particles(columns, particles.materials, particles.spacing)


def along_z(particles: Particles) -> Particles:
    """Return particles whose x axis has become the z axis."""
    turned = {name: np.roll(particles[name], -1, axis=1) for name in ("position", "velocity")}
    return Particles({**particles.attributes, **turned}, particles.materials, particles.spacing)


def painted(around: dict[str, Any]) -> dict[str, Any]:
    """Return surroundings whose ball is wetted more in places, so that it pulls matter along."""
    places = np.stack(np.meshgrid(*[np.arange(-0.5, 0.5, 0.04)] * 3, indexing="ij"), -1).reshape(-1, 3) + (1.75, -0.15, 0.2)
    field = SurfaceField.of_samples(places, -0.5 + 0.5 * np.sin(9.0 * places[:, 0]), 0.04, 0.0)
    return {
        **around,
        "colliders": [replace(each, wetting=field, contact_angle=75.0, contact_hysteresis=15.0) for each in around["colliders"]],
    }


def warm(particles: Particles) -> Particles:
    """Return wax that is warm in places, and makes heat of its own in others."""
    x, y, z = particles["position"].T
    heat = {"temperature": 308.0 + 12.0 * np.sin(3.0 * x + y), "heat_source": 4e5 * np.maximum(0.0, np.cos(4.0 * x + z))}
    return Particles({**particles.attributes, **heat}, particles.materials, particles.spacing)


def sliding() -> Particles:
    """Return a bar of snow with a bar of rubber on it, each a body, that swirl and slide on each other across the borders.

    Their particles do not lie in rows.
    """
    lower, upper = bar(SNOW, (36, 3, 4)), bar(RUBBER, (30, 2, 3), (0.23, 0.33, 0.07))
    position = np.concatenate([lower["position"], upper["position"]])
    position += np.random.default_rng(3).uniform(-0.005, 0.005, position.shape)
    material = np.repeat(np.array([0, 1], np.int32), [len(lower), len(upper)])
    found = Particles({"position": position, "material": material}, (SNOW, RUBBER), lower.spacing)
    x, y, _ = position.T
    velocity = np.stack([0.8 * np.sin(3 * y + 1.0), 0.6 * np.cos(2 * x), 0.4 * np.sin(2 * x + y)], 1)
    velocity += np.where(material[:, None] == 1, (1.5, -1.0, 0.2), (0.3, 0.0, 0.0))
    return with_velocity(found, velocity)


def liquids() -> Particles:
    """Return a bar of syrup on a bar of oil, each with a surface of its own, whose tensions are painted."""
    oil, syrup = bar(OIL, (36, 3, 4)), bar(SYRUP_ON_OIL, (36, 2, 4), (0.0, 0.3, 0.0))
    position = np.concatenate([oil["position"], syrup["position"]])
    material = np.repeat(np.array([0, 1], np.int32), [len(oil), len(syrup)])
    paint = 1.0 + 0.5 * np.sin(3.0 * position[:, 0] + position[:, 2])
    velocity = np.stack(
        [0.8 * np.sin(3 * position[:, 1] + 1.0), 0.6 * np.cos(2 * position[:, 0]), 0.4 * np.sin(2 * position[:, 0])], 1
    )
    columns = {"position": position, "material": material, "tension_scale": paint, "velocity": velocity}
    return uneven(Particles(columns, (OIL, SYRUP_ON_OIL), oil.spacing))


class Wave:
    """Values that differ from place to place."""

    def __init__(self, middle: float, change: float) -> None:
        self.middle, self.change = middle, change

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places."""
        found: np.ndarray = self.middle + self.change * np.sin(4.0 * places[:, 0] + places[:, 2])
        return found


def surroundings(streams: bool = False, matter: Particles | None = None) -> dict[str, Any]:
    """Return a floor with friction, a hot ball on it, and a stream from above, of syrup or of other matter."""
    sides = (WallRule.OPEN, WallRule.OPEN, WallRule.SEPARATE, WallRule.OPEN, WallRule.OPEN, WallRule.OPEN)
    shape = PosedLevelSets(SPHERE, (0.35,), np.zeros(1), None, np.array([[1.75, -0.15, 0.2]]))
    found: dict[str, Any] = {
        "walls": Walls((-20.0, -0.15, -20.0), (20.0, 20.0, 20.0), sides, 0.3),
        "colliders": [Collider("ball", CollisionRule.SEPARATE, 0.4, shape, temperature=350.0, conductance=2e4)],
    }
    if streams:
        nozzle = bar(SYRUP, (8, 1, 3), (1.3, 0.9, 0.05)) if matter is None else matter
        found["emitters"] = [Emitter(nozzle, (0.3, -1.5, 0.0), 0.0, 10.0)]
    return found


def metered() -> dict[str, Any]:
    """Return a nozzle in the matter across ranks, which looks for room and fills a region, and one that is done in the middle."""
    drowned, above = bar(SYRUP, (8, 1, 3), (1.3, 0.2, 0.05)), bar(SYRUP, (8, 1, 3), (1.3, 0.9, 0.05))
    region = field_shape(centre=(1.8, 0.2, 0.2), radius=0.5)
    fills = Metering(rate=0.3, volume=0.165, region=region, room=True)
    return {
        **surroundings(),
        "emitters": [
            Emitter(drowned, (0.3, -1.5, 0.0), metering=fills),
            Emitter(above, (0.3, -1.5, 0.0), metering=Metering(rate=0.4, volume=0.008)),
        ],
    }


SOURCES_RULE = {"avoid_a_void.coverage": 0.876, "avoid_a_void.give_back": 0.0}  # which puts particles in here
FOAM = {"preset": "continuum_foam", "set": {"resampling_interval": 20, **SOURCES_RULE}}
FLIP = {"preset": "explicit_apic", "set": {"transfer": "flip", "kernel": "cubic"}}
BODIES = {"preset": "separate_bodies", "set": {"friction": 0.3}}
SEMI_IMPLICIT = {
    "preset": "implicit_apic",
    "edits": [{"replace": "minimise_energy", "type": "semi_implicit_update", "knobs": {"krylov_tolerance": 1e-10}}],
}
HEAT: dict[str, Any] = {
    "preset": "explicit_heat",
    "set": {"air_convection": 2e3, "wall_temperature": 290.0, "wall_conductance": 1e4},
}
NODAL = ("thermal_properties", "rasterize_nodal_heat", "conduct_nodal_heat", "gather_nodal_heat")
NODAL_HEAT = {
    "preset": "explicit_apic",
    "edits": [
        *({"insert": name, "before": "rasterize", "type": name} for name in NODAL),
        {"insert": "update_phase", "after": "move_particles", "type": "update_phase"},
        {"set": {f"conduct_nodal_heat.{name}": value for name, value in HEAT["set"].items()}},
    ],
}
WETTED = {"contact_angle": 60.0, "hysteresis": 20.0}
TENSION = {"preset": "surface_tension", "set": WETTED}
SOLUTE = {"preset": "surface_tension_solute", "set": {**WETTED, "placement": "even"}}
EVAPORATING = {**SOLUTE, "set": {**SOLUTE["set"], "evaporation": 0.02}}
FLAMES = {"flames": ["1.0 0.2", "2.1 0.1"], "flame_flux": 5e5, "flame_radius": 0.3, "flame_height": 0.05, "flux": 1e4}
TENSION_HEAT = {"preset": "surface_tension_heat", "set": {**WETTED, **HEAT["set"], **FLAMES}}
FORCES = [
    force_vortex(strength=20.0, inward=5.0, speed_limit=3.0),
    force_wind(velocity=(1.0, 0.0, 0.5), drag=2.0, mask=field_shape(radius=1.0, falloff=0.5)),
    force_wind(velocity=(0.0, 0.0, 1.0), drag=0.5, mask=field_attribute(attribute="speed")),
]
AMBIENT = [Ambient(Wave(320.0, 30.0), 2e3, Wave(0.6, 0.4)), Ambient(source=Wave(0.0, 4e5))]
SCENES: dict[str, Any] = {
    "explicit": lambda: (swirling(SNOW), "explicit_apic", surroundings(streams=True)),
    "flip": lambda: (swirling(RUBBER), FLIP, surroundings(streams=True)),
    "foam": lambda: (tearing(), FOAM, surroundings(True, bar(CREAM, (8, 1, 3), (1.3, 0.9, 0.05)))),
    "implicit": lambda: (swirling(RUBBER), "implicit_apic", {**surroundings(streams=True), "dt_max": 2e-3}),
    "semi_implicit": lambda: (swirling(RUBBER), SEMI_IMPLICIT, {**surroundings(streams=True), "dt_max": 2e-3}),
    "bodies": lambda: (sliding(), BODIES, surroundings(streams=True)),
    "heat": lambda: (warm(swirling(WAX)), HEAT, surroundings(True, warm(bar(WAX, (8, 1, 3), (1.3, 0.9, 0.05))))),
    "nodal_heat": lambda: (warm(swirling(WAX)), NODAL_HEAT, surroundings(True, warm(bar(WAX, (8, 1, 3), (1.3, 0.9, 0.05))))),
    "ambient": lambda: (warm(swirling(WAX)), HEAT, {"gravity": (0.0, 0.0, 0.0), "ambient": AMBIENT}),
    "tension": lambda: (
        uneven(swirling(WATER)),
        TENSION,
        painted(surroundings(True, uneven(bar(WATER, (8, 1, 3), (1.3, 0.9, 0.05))))),
    ),
    "drops": lambda: (along_z(uneven(swirling(WATER, drift=4.0))), "surface_tension", {"gravity": (0.0, 0.0, 0.0)}),
    "liquids": lambda: (liquids(), "surface_tension", surroundings()),
    "solute": lambda: (uneven(swirling(SOAP)), SOLUTE, surroundings(True, uneven(bar(SOAP, (8, 1, 3), (1.3, 0.9, 0.05))))),
    "evaporating": lambda: (
        uneven(swirling(SOAP)),
        EVAPORATING,
        surroundings(True, uneven(bar(SOAP, (8, 1, 3), (1.3, 0.9, 0.05)))),
    ),
    "melting_surface": lambda: (
        warm(uneven(swirling(TENSE_WAX))),
        TENSION_HEAT,
        surroundings(True, warm(uneven(bar(TENSE_WAX, (8, 1, 3), (1.3, 0.9, 0.05))))),
    ),
    "liquid": lambda: (swirling(SYRUP), "explicit_apic", surroundings(True, bar(SYRUP, (8, 1, 3), (1.3, 0.9, 0.05)))),
    "metered": lambda: (swirling(SYRUP), "explicit_apic", metered()),
    "forces": lambda: (swirling(SNOW), "explicit_apic", {**surroundings(streams=True), "forces": FORCES}),
    "travelling": lambda: (swirling(SNOW, drift=4.0), "explicit_apic", {"gravity": (0.0, 0.0, 0.0)}),
}


TOLD = {
    "forces": {"forces"},
    "heat": {"heat", "phases"},
    "nodal_heat": {"heat", "phases"},
    "ambient": {"heat", "phases"},
    "tension": {"surface"},
    "drops": {"surface"},
    "liquids": {"surface"},
    "solute": {"surface", "solute"},
    "evaporating": {"surface", "solute"},
    "melting_surface": {"surface", "heat", "phases"},
}
"""Events of the scenes that tell of all ranks together."""


def run(scene: str, steps: int, team: Any = None, stir: float = 0.0) -> tuple[SubstepSolver, dict[str, np.ndarray]]:
    """Run a scene; return the solver, and every attribute by name, in the order of ids.

    Args:
        scene: Its name.
        steps: Number of substeps.
        team: The ranks that share it.
        stir: Share by which velocities differ at the start.
    """
    particles, substeps, options = SCENES[scene]()
    if stir:
        velocity = particles["velocity"]
        particles = with_velocity(particles, velocity * (1.0 + stir * np.random.default_rng(0).choice([-1, 0, 1], velocity.shape)))
    ambient, forces = options.pop("ambient", ()), options.pop("forces", ())
    solver = SubstepSolver(particles, substeps, cell_size=CELL, dtype=np.float64, team=team, **options)
    surround(solver, ambient)
    push(solver, forces)
    for left in range(steps, 0, -1):
        solver.step(time_left=1.0, keep=left == 1)
    return solver, {name: np.array(values) for name, values in solver.snapshot().attributes.items()}


def told_of(solver: SubstepSolver) -> dict[str, float]:
    """Return what the last substeps told of heat, melting, surfaces, solutes and forces, over all ranks."""
    report, events = solver.step_context.report, ("heat", "phases", "solute", "surface", "forces")
    found = {f"{event} {name}": value for event in events for name, value in report.get(event, {}).items()}
    rows = {name: value if isinstance(value, tuple) else (value,) for name, value in found.items()}
    return {name if len(row) == 1 else f"{name} {n}": each for name, row in rows.items() for n, each in enumerate(row)}


def main(scene: str, steps: str, path: str) -> None:
    """Run a scene as one of several ranks; rank 0 writes what it comes to."""
    from mpm_nodes.solver.ranks.team import join_team

    team = join_team()
    solver, found = run(scene, int(steps), team)
    assert solver.share is not None
    solver.share.join_report(solver.step_context.report, solver.step_context.frame)
    told = team.totals([solver.share.handed, solver.share.recuts])
    if team.rank == 0:
        facts = {"handed": told[0], "recuts": solver.share.recuts, "time": solver.time, "ids": solver.next_id}
        facts |= told_of(solver)
        np.savez(Path(path), **found, **{f"fact {name}": value for name, value in facts.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
