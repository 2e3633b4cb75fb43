"""Small scenes in which every stage has something to do, and substep graphs with stages wired in between."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, Material, Particles, SurfaceTension, Thermal, WallRule, Walls
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.plan.plan import SubstepPlan, plan_substeps
from mpm_nodes.kernels.level_sets.level_set import BOX, SPHERE, PosedLevelSets
from mpm_nodes.materials.contract import law_of
from mpm_nodes.solver.run import SubstepSolver

CELL = 0.1
MATERIALS = {
    "neo_hookean": Material("neo_hookean", {"youngs_modulus": 2e4}, 1000.0, "rubber"),
    "fixed_corotated": Material("fixed_corotated", {"youngs_modulus": 2e4}, 1000.0, "jelly"),
    "snow": Material(
        "snow",
        {"youngs_modulus": 4e4, "critical_compression": 1e-2, "critical_stretch": 5e-3},
        400.0,
        "snow",
        tear_threshold=1.0,
        recovery_time=0.3,
    ),
    "liquid": Material("liquid", {"bulk_modulus": 2e4, "viscosity": 2.0}, 1000.0, "syrup"),
    "herschel_bulkley": Material(
        "herschel_bulkley", {"bulk_modulus": 2e4, "yield_stress": 10.0}, 77.7, "cream", tear_threshold=1.0, recovery_time=0.3
    ),
    "oldroyd_b": Material(
        "oldroyd_b",
        {"shear_modulus": 2e3, "lame_parameter": 2e4, "relaxation_time": 0.02},
        200.0,
        "paste",
        tear_threshold=1.0,
        recovery_time=0.3,
        viscosity=2.0,
    ),
    "drucker_prager": Material(
        "drucker_prager",
        {"youngs_modulus": 4e4, "cohesion": 50.0},
        1600.0,
        "wet sand",
        tear_threshold=1.0,
        recovery_time=0.3,
    ),
}
WARM = Thermal(2000.0, 5.0, 4000.0, 2.0, latent_heat=20.0, freezing_temperature=360.0)
MATERIALS = {law: dataclasses.replace(material, thermal=WARM) for law, material in MATERIALS.items()}
SOAPY = SurfaceTension(40.0, 20.0, 280.0, 380.0, solute_tension=10.0, solute_diffusivity=0.05)
MATERIALS["liquid"] = dataclasses.replace(MATERIALS["liquid"], surface_tension=SOAPY)
LAW_SETS = {**{law: (law,) for law in MATERIALS}, "snow and liquid": ("snow", "liquid")}


def matter(laws: Iterable[str], cells: int = 3) -> Particles:
    """Return a turning, falling cube of `cells`^3 cells whose left part is of the first material, with columns that ride along."""
    laws, spacing, n = tuple(laws), 0.5 * CELL, 2 * cells
    grid = (np.arange(n) + 0.5) * spacing
    position = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
    position = position + np.random.default_rng(3).uniform(-0.2, 0.2, position.shape) * spacing + [0.0, 0.02, 0.0]
    arm = position - position.mean(axis=0)
    columns = {
        "position": position,
        "velocity": np.cross([3.0, -2.0, 5.0], arm) + [0.6, -1.5, 0.2],
        "material": np.minimum((position[:, 0] / (n * spacing) * len(laws)).astype(np.int32), len(laws) - 1),
        "stiffness_scale": 1.0 + 0.2 * np.sin(40.0 * position[:, 1]),
        "temperature": 300.0 + 400.0 * position[:, 1],
        "concentration": np.clip(2.0 * position[:, 0], 0.0, 1.0),
    }
    return Particles(columns, tuple(MATERIALS[law] for law in laws), spacing)


def bodies() -> tuple[Collider, ...]:
    """Return a rising, turning slab, a ball, and a plate too thin for the grid: all touch `matter` within three substeps."""
    half = np.sqrt(0.5)
    slab = PosedLevelSets(
        BOX,
        (0.4, 0.05, 0.4),
        np.array([0.0, 1.0]),
        np.array([[1.0, 0.0, 0.0, 0.0], [half, 0.0, half, 0.0]]),
        np.array([[0.15, -0.05, 0.15], [0.15, 0.45, 0.15]]),
    )
    ball = PosedLevelSets(SPHERE, (0.1,), np.zeros(1), np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[0.4, 0.15, 0.15]]))
    plate = PosedLevelSets(BOX, (0.2, 0.002, 0.2), np.zeros(1), np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[0.15, 0.15, 0.15]]))
    return (
        Collider("slab", CollisionRule.SEPARATE, 0.4, slab),
        Collider("ball", CollisionRule.STICKY, 0.0, ball, temperature=700.0),
        Collider("plate", CollisionRule.SLIP, 0.0, plate),
    )


WALLS = Walls((-0.01, -1.0, -1.0), (2.0, 2.0, 2.0), (WallRule.SLIP, *(WallRule.OPEN,) * 4, WallRule.SEPARATE), 0.2)


def solver(laws: Iterable[str], substeps: Any, **options: Any) -> SubstepSolver:
    """Return a solver of `matter` among `bodies` and walls."""
    options = {"colliders": bodies(), "walls": WALLS, "dt_max": 2e-3, **options}
    given, planned = matter(laws), substeps if isinstance(substeps, SubstepPlan) else plan(substeps, laws)
    if "concentration_gradient" not in planned.fields_needed["particles"]:  # a diffusivity that no stage reads is refused
        given = dataclasses.replace(given, materials=tuple(map(_without_diffusivity, given.materials)))
    return SubstepSolver(given, substeps, cell_size=CELL, **options)


def _without_diffusivity(material: Material) -> Material:
    tension = material.surface_tension
    still = None if tension is None else dataclasses.replace(tension, solute_diffusivity=0.0)
    return dataclasses.replace(material, surface_tension=still)


def plan(document: Any, laws: Iterable[str], *stages: Any, **settings: Any) -> SubstepPlan:
    """Plan a preset's name or a document that may also name the given stage functions."""
    registry = Registry((*registries.default(), *(stage.declaration for stage in stages)), registries.default().presets)
    states = dict.fromkeys(name for law in laws for name in law_of(MATERIALS[law])[0].state)
    if isinstance(document, str):
        document = {"preset": document, "set": settings}
    return plan_substeps(document, tuple(states), registry)


# ---------------------------------------------------------------- graphs with one stage more
def presets() -> dict[str, dict[str, Any]]:
    """Return the document of every preset that has stages by name (others choose among them)."""
    documents = {name: json.loads(file.read_text()) for name, file in sorted(registries.default().presets.items())}
    return {name: document for name, document in documents.items() if "nodes" in document}


def wires(document: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield (stage, port, place in the list of its sources) of every wire."""
    for name, entry in document["nodes"].items():
        for port, sources in entry["inputs"].items():
            for place in range(len(sources) if isinstance(sources, list) else 1):
                yield name, port, place


def with_stage(document: dict[str, Any], wire: tuple[str, str, int], stage: Any, name: str = "inserted") -> dict[str, Any]:
    """Return the document with a stage on a wire; the stage takes only the domain of that wire."""
    changed, (target, port, place) = copy.deepcopy(document), wire
    given = changed["nodes"][target]["inputs"][port]
    sources = list(given) if isinstance(given, list) else [given]
    changed["nodes"][name] = {"type": stage.declaration.id, "inputs": {port: sources[place]}}
    sources[place] = name
    changed["nodes"][target]["inputs"][port] = sources
    return changed


def attributes(run: SubstepSolver) -> dict[str, np.ndarray]:
    """Return every attribute of a solver by name, in the order of the ids."""
    return dict(run.snapshot().attributes)


# ---------------------------------------------------------------- stages that stand in no preset
def semi_implicit_steps() -> dict:
    """Return implicit steps with one linear solve in the place of the minimisation."""
    document = copy.deepcopy(presets()["implicit_apic"])
    document["parameters"] = {}
    document["nodes"]["minimise_energy"].update(type="semi_implicit_update", knobs={})
    return document


def explicit_faces() -> dict:
    """Return the projection with an explicit update of the faces, and the stress of the whole law without its pressure."""
    document = copy.deepcopy(presets()["incompressible"])
    document["parameters"] = {}
    nodes = document["nodes"]
    nodes["choose_time_step"]["knobs"] = {}
    nodes["deviatoric_stress"]["type"] = "compute_stress"
    nodes["keep_deviator"] = {"type": "keep_deviator", "inputs": {"particles": "deviatoric_stress"}}
    nodes["add_face_forces"]["inputs"]["particles"] = "keep_deviator"
    nodes["semi_implicit_faces"]["type"] = "advance_faces"
    del nodes["semi_implicit_faces"]["inputs"]["colliders"]
    return document


def nodal_heat() -> dict:
    """Return the heat of `explicit_heat` on the nodes."""
    document = copy.deepcopy(presets()["explicit_heat"])
    document["parameters"] = {}
    nodes = document["nodes"]
    for name in ("rasterize", "conduct", "gather"):
        nodes[f"{name}_heat"]["type"] = f"{name}_nodal_heat"
    nodes["rasterize_heat"]["inputs"] = {"particles": "thermal_properties", "grid": "grid"}
    nodes["conduct_heat"]["inputs"] = {"particles": "rasterize_heat", "grid": "rasterize_heat", "colliders": "choose_time_step"}
    nodes["gather_heat"]["inputs"] = {"particles": "conduct_heat", "grid": "conduct_heat"}
    nodes["rasterize"]["inputs"] = {"particles": "gather_heat", "grid": "gather_heat"}
    return document


NO_PRESET = {
    "semi_implicit_update": semi_implicit_steps,
    "advance_faces": explicit_faces,
    "keep_deviator": explicit_faces,
    "rasterize_nodal_heat": nodal_heat,
    "conduct_nodal_heat": nodal_heat,
    "gather_nodal_heat": nodal_heat,
}
"""Built-in stages that stand in no preset, and a wiring that has them."""
