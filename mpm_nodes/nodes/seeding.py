"""Fill regions with particles: the lattice, the Poisson-disc set, their volumes, and the memory they will need."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mpm_nodes.data import A, GraphSettings, Material, MpmNodesError, Orientation, Particles, Range, Vec3
from mpm_nodes.graph.plan.preflight import free_memory
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.nodes.rotations import TURNS, UNTURNED, turn_matrix

if TYPE_CHECKING:
    from mpm_nodes.kernels.level_sets.regions import Region

Seed = A[int, Range(min=0), NotKeyable("a seed stands for one set of random choices")]
"""Seed of random numbers; the generators take none below 0."""
POISSON_RADIUS = 0.42
"""Least distance of Poisson-disc particles in cells: gives about eight particles a cell."""
COLUMN_BYTES = 160
"""What a particle costs while it is seeded: its columns, once more while they are made."""
SOLVE_BYTES = 440
"""What a particle costs further down: solver state twice (sorting), its share of the grid, the snapshot."""

FEW_SEEDS = 50_000
"""Particles that streams may have laid out before the cook already: what comes depends on their layers."""
FEW_ENOUGH = 1000
"""Particles that are laid out in any case: a thin body may get none."""


class Seeding(enum.Enum):
    """How particles are laid out."""

    LATTICE = "lattice"
    POISSON = "poisson"


class Lattice(enum.Enum):
    """Whose axes the lattice has."""

    WORLD = "world"
    BODY = "body"


@dataclass(frozen=True)
class SeedLayout:
    """How a region's particles are laid out and moved.

    Attributes:
        centre: Where the region's origin goes [m].
        rotation: Angles about x, then y, then z [deg].
        velocity: Velocity of the centre [m/s].
        angular_velocity: Rotation about the centre of the matter [rad/s].
        seeding: Lattice or Poisson disc.
        jitter: Random shift of lattice points, as a fraction of their spacing.
        stiffness_variation: Half width of the random factor on the stiffness; 0 writes no `stiffness_scale` column.
        seed: Seed of every random choice.
        orientation: Quaternion (w, x, y, z), in place of the angles.
        lattice: Whether lattice points stay where they are in the world, or in the body, as that moves.
    """

    centre: Vec3 = (0.0, 0.0, 0.0)
    rotation: Vec3 = (0.0, 0.0, 0.0)
    velocity: Vec3 = (0.0, 0.0, 0.0)
    angular_velocity: Vec3 = (0.0, 0.0, 0.0)
    seeding: Seeding = Seeding.LATTICE
    jitter: float = 0.0
    stiffness_variation: float = 0.0
    seed: int = 0
    orientation: Orientation = UNTURNED
    lattice: Lattice = Lattice.WORLD


def fill_region(where: str, region: Region, placement: SeedLayout, settings: GraphSettings, material: Material) -> Particles:
    """Fill a region with particles of one material.

    Every particle gets the same share of the region's volume, V0 = |region| / N, so that the total mass is exact.

    Args:
        where: Name of the node, for messages.
        region: What to fill, in its own frame [m].
        placement: Layout and motion.
        settings: Its cell size sets the spacing.
        material: Material of all particles.

    Raises:
        MpmNodesError: if the particles would not fit into memory, or if there would be none.
    """
    from mpm_nodes.kernels.level_sets.regions import LEVEL_SET

    spacing = 0.5 * settings.cell_size
    _check_memory(where, region, placement.seeding, settings.cell_size)
    local = _points(region, placement, spacing)
    if not len(local):
        raise _no_room(where, region, spacing)
    turned = local @ turn_matrix(placement.rotation, placement.orientation).T
    count = len(local)
    # Boxes and balls turn about their centre, other shapes about the middle of their particles.
    arm = turned if region.kind != LEVEL_SET else turned - turned.mean(axis=0)
    columns = {
        "position": turned + np.asarray(placement.centre, np.float64),
        "velocity": np.asarray(placement.velocity, np.float64) + np.cross(np.asarray(placement.angular_velocity, np.float64), arm),
        "mass": np.full(count, material.density * region.volume / count),
        "volume": np.full(count, region.volume / count),
        "id": np.arange(count, dtype=np.int64),
        "material": np.zeros(count, np.int32),
    }
    if placement.stiffness_variation > 0.0:
        random = np.random.default_rng([placement.seed, 1])
        columns["stiffness_scale"] = 1.0 + placement.stiffness_variation * random.uniform(-1.0, 1.0, count)
    return Particles(columns, (material,), spacing)


def seeds_before(
    where: str, region: Region, knobs: Mapping[str, Any], settings: GraphSettings
) -> tuple[Callable[[], np.ndarray], ...]:
    """Return what gives, before the cook, where a node will put its particles as the shot begins [m], shape (n, 3); () for many.

    Args:
        where: Name of the node, for messages.
        region: What it fills, in its own frame [m].
        knobs: The node's; those that are keyed with their value at the first frame.
        settings: Its cell size sets the spacing.

    Raises:
        MpmNodesError: There will be none.
    """
    count = estimate(region, knobs["seeding"], settings.cell_size)[0]
    if count > FEW_SEEDS or knobs["seeding"] is Seeding.POISSON:  # whose kernels a check before the cook would compile
        return ()
    named = ("seeding", "lattice", "jitter", "seed", *TURNS)
    centre = knobs.get("centre", knobs.get("translation", (0.0, 0.0, 0.0)))
    placement = SeedLayout(centre, **{name: knobs[name] for name in named if name in knobs})

    def seeds() -> np.ndarray:
        local = _points(region, placement, 0.5 * settings.cell_size)
        return local @ turn_matrix(placement.rotation, placement.orientation).T + np.asarray(centre, np.float64)

    if count <= FEW_ENOUGH and not len(seeds()):
        raise _no_room(where, region, 0.5 * settings.cell_size)
    return (seeds,)


def _no_room(where: str, region: Region, spacing: float) -> MpmNodesError:
    size = " x ".join(f"{edge:.4g}" for edge in region.high - region.low)
    return MpmNodesError(
        f"{where}: no particle fits into a region of {size} m at a spacing of {spacing:g} m; "
        "make the region larger or settings.cell_size smaller"
    )


def seeding_estimate(region: Region, knobs: Mapping[str, Any], settings: GraphSettings) -> dict[str, Any]:
    """Return what a node that fills `region` tells the preflight: particles and the memory of seeding them."""
    count, need = estimate(region, knobs["seeding"], settings.cell_size)
    return {"particles": int(min(count, 2.0**62)), "memory": int(min(need, 2.0**62))}


def estimate(region: Region, seeding: Seeding, cell_size: float) -> tuple[float, float]:
    """Return the expected number of particles and the bytes that seeding them takes."""
    from mpm_nodes.kernels.level_sets.poisson import SAMPLES_PER_CUBE, background_bytes

    if seeding is Seeding.POISSON:
        distance = POISSON_RADIUS * cell_size
        count = SAMPLES_PER_CUBE * region.volume / distance**3
        return count, count * COLUMN_BYTES + background_bytes(region, distance)
    count = region.volume / (0.5 * cell_size) ** 3
    slab = float(np.prod(np.sort(region.high - region.low)[1:])) / (0.5 * cell_size) ** 2
    return count, count * COLUMN_BYTES + slab * 80.0


def _check_memory(where: str, region: Region, seeding: Seeding, cell_size: float) -> None:
    count, need = estimate(region, seeding, cell_size)
    need += count * SOLVE_BYTES
    free = free_memory()
    if need > free:
        fits = cell_size * (need / max(free, 1)) ** (1.0 / 3.0) * 1.1
        raise MpmNodesError(
            f"{where}: about {count:.3g} particles need {need / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free; "
            f"set settings.cell_size to {fits:.2g} m or more (it is {cell_size:g} m), or make the region smaller"
        )


def _points(region: Region, placement: SeedLayout, spacing: float) -> np.ndarray:
    from mpm_nodes.kernels.level_sets.poisson import poisson_disc
    from mpm_nodes.kernels.level_sets.regions import BOX

    if placement.seeding is Seeding.POISSON:
        return poisson_disc(region, POISSON_RADIUS * 2.0 * spacing, seed=placement.seed)
    jitter = None if placement.jitter <= 0.0 else np.random.default_rng([placement.seed, 0])
    if region.kind == BOX:
        return _box_lattice(region, spacing, placement.jitter, jitter)
    shift = placement.centre if placement.lattice is Lattice.WORLD else (0.0, 0.0, 0.0)
    return _cut_lattice(region, shift, spacing, placement.jitter, jitter)


def _box_lattice(region: Region, spacing: float, amount: float, jitter: np.random.Generator | None) -> np.ndarray:
    """Return a lattice stretched (by less than half a spacing an axis) to fill the box evenly."""
    size = region.high - region.low
    counts = np.maximum(np.rint(size / spacing), 1).astype(int)
    axes = [low + (np.arange(n) + 0.5) * (edge / n) for low, edge, n in zip(region.low, size, counts, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    if jitter is not None:
        points += amount * (size / counts) * (jitter.random(points.shape) - 0.5)
    return points


def _cut_lattice(region: Region, centre: Vec3, spacing: float, amount: float, jitter: np.random.Generator | None) -> np.ndarray:
    """Return the points ((i + 1/2) spacing - centre) of a lattice that lie inside the region, slab by slab."""
    shift = np.asarray(centre, np.float64)
    first = np.floor((region.low + shift) / spacing).astype(np.int64) - 1
    last = np.ceil((region.high + shift) / spacing).astype(np.int64) + 1
    axes = [(np.arange(a, b) + 0.5) * spacing - s for a, b, s in zip(first, last, shift, strict=True)]
    kept = []
    for x in axes[0]:
        slab = np.stack(np.meshgrid([x], axes[1], axes[2], indexing="ij"), axis=-1).reshape(-1, 3)
        if jitter is not None:
            slab += amount * spacing * (jitter.random(slab.shape) - 0.5)
        kept.append(slab[region.inside(slab)])
    return np.concatenate(kept)
