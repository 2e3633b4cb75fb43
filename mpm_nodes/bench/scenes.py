"""The scenes that are measured, each of an exact number of particles: eight a cell on a lattice with 25 % jitter."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.bench.rows import FOAM, MATERIALS, Row
from mpm_nodes.data import Material, Particles, WallRule, Walls
from mpm_nodes.materials.library import named_material
from mpm_nodes.solver.run import SubstepSolver

JITTER = 0.25
SPACING = 0.005
"""Of the compact cubes [m]: they grow with the number of particles, so that every size takes the same time steps."""
LAYER = 6
"""Particles across a layer of one material: three cells, so that blocks of four hold both."""
BOX = (4.0, 3.0, 3.0)
"""Size of the dam's box [m]; the column stands in a corner, 1 m x 2 m x 1 m."""
LONGEST_SPLASH = 1.5
AFTER_THE_HIT = 0.4
FOAM_SPACING = 0.0015
"""Of the foam [m]: cells of 3 mm, as Y15's shaving foam."""
FOAM_SPEED = 3.0
FLATTENING = 0.02
"""Seconds after which the thrown foam is measured: it flows, thins out and is resampled."""


@dataclass(frozen=True)
class BenchScene:
    """Particles to start measuring from, and the walls around them."""

    particles: Particles
    walls: Walls | None = None

    @property
    def particles_per_cell(self) -> float:
        """Mean number of particles in the cells that hold any."""
        return particles_per_cell(self.particles)


def particles_per_cell(particles: Particles) -> float:
    """Return the mean number of particles in the cells that hold any."""
    cell = np.floor(particles["position"] / (2.0 * particles.spacing)).astype(np.int64) + (1 << 20)
    return len(cell) / len(np.unique((cell[:, 0] << 42) | (cell[:, 1] << 21) | cell[:, 2]))


@functools.lru_cache(maxsize=1)
def scene(name: str, law: str, count: int) -> BenchScene:
    """Return a scene ready to be measured. The last one is kept: rows that differ in kernel or threads share it."""
    start = untouched(name, law, count)
    if name == "dam_break":
        return splashed(start)
    return flattened(start) if name == "foam" else start


def untouched(name: str, law: str, count: int) -> BenchScene:
    """Return a scene as it begins: what is measured is what a solve has made of it, for those that splash or flow."""
    if name == "dam_break":
        return dam(law, count)
    return thrown_foam(count) if name == "foam" else BenchScene(cube(law.split("+"), count))


def solver(start: BenchScene, row: Row) -> SubstepSolver:
    """Return a solver of a row; the number of threads must be set before, it decides how much scratch there is."""
    foam = row.scene == "foam"
    substeps = "continuum_foam" if foam else {"preset": "explicit_apic", "set": {"kernel": row.kernel, "transfer": row.transfer}}
    return SubstepSolver(start.particles, substeps, walls=start.walls, dtype=np.dtype(row.precision), fuse=row.fuse)


def matter(law: str) -> Material:
    """Return a soft material of a law, waves of about 10 m/s, or a material of the library."""
    if law in MATERIALS:
        return named_material(law)
    params = {"bulk_modulus": 1e5} if law == "liquid" else {"youngs_modulus": 1e5, "poisson_ratio": 0.3}
    return Material(law, params, 1000.0, law)


def lattice(sides: tuple[int, int, int], count: int, spacing: float) -> np.ndarray:
    """Return the lowest `count` places of a jittered lattice [m], shape (count, 3)."""
    places = np.arange(count)
    index = np.stack([places // sides[2] % sides[0], places // (sides[0] * sides[2]), places % sides[2]], -1)
    return spacing * (index + 0.5 + np.random.default_rng(1).uniform(-JITTER, JITTER, (count, 3)))


def cube(laws: list[str], count: int) -> Particles:
    """Return a compact cube that falls and turns; several laws lie in turns in level layers."""
    side = int(np.ceil(round(count ** (1.0 / 3.0), 6)))
    position = lattice((side, side, side), count, SPACING)
    arm = position - position.mean(axis=0)
    velocity = np.stack([-2.0 * arm[:, 2], np.full(count, -1.0), 2.0 * arm[:, 0]], -1).astype(np.float32)
    layer = (position[:, 1] // (LAYER * SPACING)).astype(np.int32)
    columns = {"position": position, "velocity": velocity, "material": layer % len(laws)}
    return Particles(columns, tuple(matter(law) for law in laws), SPACING)


def dam(law: str, count: int) -> BenchScene:
    """Return a column of 1 m x 2 m x 1 m in a corner of a box that it will run through."""
    side = int(np.ceil(round((0.5 * count) ** (1.0 / 3.0), 6)))
    spacing = 1.0 / side
    columns: dict[str, Any] = {"position": lattice((side, 2 * side, side), count, spacing)}
    columns["velocity"] = np.zeros((count, 3), np.float32)
    walls = Walls((0.0, 0.0, 0.0), BOX, (WallRule.SEPARATE,) * 6)
    return BenchScene(Particles(columns, (matter(law),), spacing), walls)


def splashed(start: BenchScene) -> BenchScene:
    """Return the dam some time after its front has hit the far wall; a law that does not flow is given up on."""
    run = solver(start, Row())
    far = start.walls.high[0] - 2.0 * start.particles.spacing
    while run.time < LONGEST_SPLASH - AFTER_THE_HIT and run.particles.unpack("position")[:, 0].max() < far:
        run.advance(0.05)
    run.advance(AFTER_THE_HIT)
    return BenchScene(run.snapshot(), start.walls)


def thrown_foam(count: int) -> BenchScene:
    """Return a ball of shaving foam that is about to hit a sticky floor."""
    side = 2 * int(np.ceil(0.5 * (6.0 * count / np.pi) ** (1.0 / 3.0) + 1.0))
    position = FOAM_SPACING * (np.stack(np.meshgrid(*(np.arange(side),) * 3, indexing="ij"), -1).reshape(-1, 3) + 0.5)
    distance = np.linalg.norm(position - 0.5 * FOAM_SPACING * side, axis=1)
    position = position[np.sort(np.argsort(distance, kind="stable")[:count])]
    position[:, 1] += FOAM_SPACING - position[:, 1].min()
    velocity = np.tile(np.float32([0.0, -FOAM_SPEED, 0.0]), (count, 1))
    ball = Particles({"position": position, "velocity": velocity}, (named_material("shaving_cream"),), FOAM_SPACING)
    return BenchScene(
        ball, Walls((-1.0, 0.0, -1.0), (2.0, 2.0, 2.0), (WallRule.OPEN, WallRule.OPEN, WallRule.STICKY, *(WallRule.OPEN,) * 3))
    )


def flattened(start: BenchScene) -> BenchScene:
    """Return the foam some time after it has hit the floor."""
    run = solver(start, Row("foam", *FOAM))
    run.advance(FLATTENING)
    return BenchScene(run.snapshot(), start.walls)
