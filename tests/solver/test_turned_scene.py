"""Every preset is objective: a scene that is turned by a quarter gives the turned result."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from mpm_nodes.data import CollisionRule, FrameContext, SurfaceTension, Thermal
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.nodes.collide import collide_plane
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block, changed, material

H = 0.1
PRESETS = sorted(name for name in registries.default().presets if not name.startswith("auto"))
SOLUTES = ("surface_tension_solute", "surface_tension_heat")
ROUNDING = {
    "implicit_apic": 1e-3,
    "implicit_surface_tension": 0.01,
    "surface_tension": 0.01,
    "surface_tension_solute": 0.01,
    "surface_tension_heat": 0.01,
    "incompressible": 1e-3,
    "melting": 1e-3,
    "continuum_foam": 1e-5,
}
"""What may differ [cells], 1e-7 elsewhere: solves end at a tolerance, foam keeps 95 % of its rounding (FLIP), and the places of the
samples on a skin, random and on the triangles of the grid, do not turn with it."""
TURNS = {
    (90.0, 0.0, 0.0): [[1, 0, 0], [0, 0, -1], [0, 1, 0]],
    (0.0, 0.0, 90.0): [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
}
"""Matrices by angles [deg]."""


def landed(preset: str, degrees: tuple[float, float, float], turn: np.ndarray, **knobs: Any) -> np.ndarray:
    """Return positions [m], turned back, after a spinning block has met the ground in twenty substeps, with knobs set."""
    stiff = {"bulk_modulus": 4e5, "shear_modulus": 1e5, "yield_stress": 1e3}
    matter = material("herschel_bulkley", **stiff) if "foam" in preset else material("neo_hookean", youngs_modulus=4e5)
    if "surface" in preset:
        soap = {"solute_tension": 50.0, "solute_diffusivity": 0.01} if preset in SOLUTES else {}
        matter = dataclasses.replace(material("liquid", bulk_modulus=4e5), surface_tension=SurfaceTension(100.0, **soap))
    if "heat" in preset or preset == "melting":
        matter = dataclasses.replace(matter, thermal=Thermal(1000.0, 0.5, 1000.0, 0.5))
    start = block(matter, (-0.1, 0.03, -0.1), (0.1, 0.23, 0.1), H)
    spin = np.array([[0.0, -3.0, 1.0], [3.0, 0.0, -2.0], [-1.0, 2.0, 0.0]])
    x = start["position"]
    start = changed(start, position=x @ turn.T, velocity=(x @ spin.T + [1.0, -2.0, 0.5]) @ turn.T)
    if preset in SOLUTES:
        start = changed(start, concentration=0.5 + 4.0 * x[:, 0])
    down = turn @ np.array([0.0, -1.0, 0.0])
    ground = collide_plane(FrameContext(1), rotation=degrees, rule=CollisionRule.SEPARATE, friction=0.3)
    # the nodes turn with the scene: they lie at whole cells from the origin
    options = {"colliders": [ground], "gravity": tuple(9.81 * down), "origin": (0.0, 0.0, 0.0)}
    solver = SubstepSolver(start, {"preset": preset, "set": knobs}, cell_size=H, dtype=np.float64, **options)
    for _ in range(20):
        solver.step(2e-3)
    order = np.argsort(solver.particles.unpack("id").ravel())
    return solver.particles.unpack("position")[order] @ turn


def off(preset: str, **knobs: Any) -> list[float]:
    """Return by how much scenes differ that are turned [cells]."""
    straight = landed(preset, (0.0, 0.0, 0.0), np.eye(3), **knobs)
    assert straight[:, 1].min() < 0.07 and np.ptp(straight[:, 1]) > 0.5 * H  # it landed, and is not flat
    return [np.abs(landed(preset, degrees, np.array(turn, float), **knobs) - straight).max() / H for degrees, turn in TURNS.items()]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_turned_scene_gives_the_turned_result(preset):
    """About x and about z by a quarter: rounding where substeps are sums, 1e-3 cells where they iterate, 1 % with skins."""
    assert max(off(preset)) < ROUNDING.get(preset, 1e-7)


def test_what_a_turn_changes_of_a_skin_is_where_its_samples_lie():
    """Twelve times as many samples, placed evenly: less than a third of the difference is left."""
    many = {"placement": "even", "sample_surface.sample_area": 0.02}
    assert max(off("surface_tension", **many)) < max(off("surface_tension")) / 3.0
