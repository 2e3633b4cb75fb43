"""The third substep of a small block in free fall, by a preset: what a process does from its start to there."""

import dataclasses
import sys

import numpy as np

from mpm_nodes import Material, Particles, SubstepSolver
from mpm_nodes.data import SurfaceTension, Thermal
from mpm_nodes.materials.library import named_material

SPACING = 0.01
LIQUID = Material("liquid", {"bulk_modulus": 2e4}, 1000.0, "water", surface_tension=SurfaceTension(0.07, 0.07, 280.0, 380.0))
RUBBER = Material("neo_hookean", {"youngs_modulus": 1e5}, 1000.0, "rubber")
WARM = Thermal(2000.0, 5.0, 4000.0, 2.0, latent_heat=20.0, freezing_temperature=360.0)
MATTER = {
    "continuum_foam": named_material("shaving_cream"),
    "incompressible": LIQUID,
    "surface_tension": LIQUID,
    "surface_tension_solute": LIQUID,
    "surface_tension_heat": dataclasses.replace(LIQUID, thermal=WARM),
    "implicit_surface_tension": LIQUID,
    "auto_surface_tension": LIQUID,
    "explicit_heat": dataclasses.replace(RUBBER, thermal=WARM),
    "melting": dataclasses.replace(RUBBER, thermal=WARM),
    "auto_melting": dataclasses.replace(RUBBER, thermal=WARM),
}
"""The material for a preset, rubber for others."""


def main(preset: str) -> None:
    """Take three substeps and say so."""
    lattice = SPACING * np.stack(np.meshgrid(*(np.arange(6.0),) * 3, indexing="ij"), -1).reshape(-1, 3)
    columns = {"position": lattice, "temperature": np.full(len(lattice), 300.0), "body": np.zeros(len(lattice), np.int32)}
    if preset != "separate_bodies":
        del columns["body"]
    if "heat" not in preset and not preset.endswith("melting"):
        del columns["temperature"]
    solver = SubstepSolver(Particles(columns, (MATTER.get(preset, RUBBER),), SPACING), preset)
    for _ in range(3):
        solver.step()
    print("third substep", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
