"""Liquid that moves keeps its volume: what is poured, slumps or sloshes comes to rest at the level of its mass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mpm_nodes.data import GraphSettings, Particles
from mpm_nodes.nodes.streams import emit_stream
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SEPARATE, block, material, settle, walled

CELL, BULK, DENSITY, GRAVITY = 0.04, 4e5, 1000.0, 9.81


@dataclass(frozen=True)
class Box:
    """A liquid in a box of walls.

    Attributes:
        wide: Cells along x and z.
        column: Cells of the column that is let go, along x and y; none where a stream fills the box.
        mouth: Cells from the floor to the middle of the stream's nozzle.
        pouring: Seconds of the stream.
        moving: Seconds until what still moves is brought to rest.
        cell: [m].
        bulk: [Pa].
        density: [kg/m^3].
        shift: Where the walls lie between nodes [cells].
        preset: Substeps.
        settings: Of the preset.
        pressed: Bulk modulus that substeps take in place of the liquid's [Pa]; None: that.
        dt_max: Longest step [s].
    """

    wide: tuple[int, int]
    column: tuple[int, int] = (0, 0)
    mouth: float = 0.0
    pouring: float = 0.0
    moving: float = 4.0
    cell: float = CELL
    bulk: float = BULK
    density: float = DENSITY
    shift: float = 0.0
    preset: str = "explicit_apic"
    settings: tuple[tuple[str, float], ...] = ()
    pressed: float | None = None
    dt_max: float = 0.01

    def solver(self, rate: float) -> SubstepSolver:
        """Return the scene, with the rate of `follow_density` or `correct_density`."""
        h, water = self.cell, material("liquid", self.density, bulk_modulus=self.bulk)
        low = np.full(3, self.shift * h)
        high = low + h * np.array([self.wide[0], 60, self.wide[1]])
        scene: dict[str, Any] = {
            "cell_size": h,
            "origin": (0.0, 0.0, 0.0),
            "walls": walled(low, high, SEPARATE),
            "gravity": (0.0, -GRAVITY, 0.0),
            "dt_max": self.dt_max,
        }
        substeps = {"preset": self.preset, "set": {"density_rate": rate, **dict(self.settings)}}
        if self.column[0]:
            size = h * np.array([*self.column, self.wide[1]])
            return SubstepSolver(block(water, low, low + size, h), substeps, **scene)
        middle = low + h * np.array([0.5 * self.wide[0], self.mouth, 0.5 * self.wide[1]])
        half = h * np.array([1.0, 0.5, 1.0])
        nozzle = block(water, middle - half, middle + half, h)
        frames = GraphSettings(cell_size=h, fps=1000.0, start=1, end=100_000)
        stream = emit_stream(frames, nozzle, velocity=(0.0, -1.0, 0.0), duration=1000.0 * self.pouring)
        nothing = Particles({"position": np.zeros((0, 3))}, nozzle.materials, nozzle.spacing)
        return SubstepSolver(nothing, substeps, emitters=[stream], **scene)

    def level(self, rate: float = 5.0) -> float:
        """Return twice the height of the liquid's middle at rest, over that of its mass under its own weight."""
        run = self.solver(rate)
        run.advance(self.pouring + self.moving)
        settle(run, 1.0, 5.0)
        mass, height = column(run, "mass"), column(run, "position")[:, 1] - self.shift * self.cell
        depth = mass.sum() / (self.density * self.wide[0] * self.wide[1] * self.cell**2)
        exact = depth * (1.0 - 2.0 * self.density * GRAVITY * depth / (3.0 * (self.bulk if self.pressed is None else self.pressed)))
        return float(2.0 * np.average(height, weights=mass) / exact)


TAP = Box((6, 6), mouth=8.0, pouring=1.6)
SCENES = {
    "a tap": TAP,
    "a jug": Box((8, 8), mouth=12.0, pouring=3.2),
    "a drowned nozzle": Box((8, 8), mouth=2.5, pouring=4.0),
    "a column that slumps": Box((18, 6), column=(6, 10), moving=5.0),
    "10 s of sloshing": Box((12, 6), column=(6, 8), moving=10.0),
}
"""Scenes at one resolution."""
SWEEP = {
    "a tap, cells of two thirds": replace(TAP, wide=(9, 9), mouth=12.0, cell=CELL / 1.5),
    "a tap, four times as soft": replace(TAP, bulk=1e5),
    "a tap, 2.5 times as stiff": replace(TAP, bulk=1e6),
    "a tap of 500 kg/m^3": replace(TAP, density=500.0),
    "a tap in steps of half the length": replace(TAP, settings=(("elastic_cfl", 0.25),)),
    "a tap, walls between nodes": replace(TAP, shift=0.37),
}
"""The tap, swept."""
IMPLICIT_SCENES = {f"{what}, implicit": replace(scene, preset="implicit_apic") for what, scene in SCENES.items()}


class MovingLiquid(VerificationProblem):
    """Liquid that is poured, slumps or sloshes comes to rest at the level of its mass.

    Scene: boxes of 6 to 18 cells a side, liquid of 4e5 Pa on cells of 4 cm: streams of 2 x 2 cells at 1 m/s from a tap over a box,
        into a jug, out of a nozzle that drowns; a column that slumps; one that sloshes for 10 s. The tap again with other cells,
        moduli, densities, steps and walls. Streams have 4 s until the air that they take along has risen; then what still
        moves is damped. At one resolution all of it again in implicit steps.
    Exact: twice the height of the middle is the depth of the mass, less 2 rho g depth / (3 bulk) of it where it is compressible.
    Tolerance: 2 %. Known to miss: the tap, the jug, the drowned nozzle and the slump in implicit steps, 2.4 to 4.5 % too low; and
        two swept taps on some processors, by up to 3.1 %. A last bit decides where drops go: levels of runs that part by one
        scatter by 0.03 to 1 % (standard deviation); means of six to eight runs of these two are 1.018 and 1.009.
        Without `follow_density` the tap's liquid stands at less than 0.6.
    """

    name = "moving_liquid"
    source = "conservation of volume"
    slow = True
    misses = tuple(f"level of {what}, implicit" for what in ("a tap", "a jug", "a drowned nozzle", "a column that slumps")) + tuple(
        f"level of a tap{what}" for what in (", cells of two thirds", " of 500 kg/m^3")
    )

    def findings(self) -> Iterator[Finding]:
        """Let them come to rest."""
        for what, scene in {**SCENES, **SWEEP, **IMPLICIT_SCENES}.items():
            yield Finding(1.0, scene.level(), 0.02, f"level of {what}")
        yield Finding(1.0, float(TAP.level(0.0) < 0.6), 0.0, "without the stage the tap's level is less than 0.6")
