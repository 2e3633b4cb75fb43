"""Matter on the two sides of thin plates keeps grid nodes of its own: particles by sides, and nodes that are one beyond the rim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import Kernel, MpmNodesError, domain_named
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.kernels.collisions import contact_rows
from mpm_nodes.kernels.collisions import sides as kernels
from mpm_nodes.kernels.collisions.rules import STICKY
from mpm_nodes.kernels.level_sets.sheets import thin_sheet
from mpm_nodes.kernels.transfers.binning import MOST_BODIES
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import Copies, GridStore
from mpm_nodes.solver.near_blocks import blocks_of_copies
from mpm_nodes.solver.plates import SHEET, Splines, is_plate, parts_sides
from mpm_nodes.solver.state import ParticleStore

__all__ = ["TRAVEL", "SharedOut", "bears_sides", "divide", "join", "one_sided", "refuse_coupled", "spline_width"]


def spline_width(plan: SubstepPlan) -> float:
    """Return the width of the widest spline of a plan's transfers [cells]."""
    return 4.0 if any(Kernel.CUBIC in planned.knobs.values() for planned in plan.stages) else 3.0


def bears_sides(plan: SubstepPlan) -> bool:
    """Return whether all that a plan does on nodes can be done to copies of them: then plates keep their two sides apart."""
    stages = [planned.declaration for planned in plan.stages]
    # the copies are joined, and the plates met, where the grid is
    once = sum(stage.joins for stage in stages) == 1
    return once and all(stage.copies and not any(_is_whole(port.name) for port in stage.domains) for stage in stages)


def _is_whole(domain: str) -> bool:
    """Whether a domain lies on the nodes of the grid and knows nothing of copies."""
    return domain not in ("grid", "energy") and domain_named(domain).lies_on_blocks


ONLY = (
    f"only substeps without bodies, heat or projection keep the sides of {kernels.MOST_PLATES} plates apart; "
    "take explicit_apic or implicit_apic, or make it thicker"
)


def one_sided(colliders: ColliderSet, width: float, cell_size: float) -> list[str]:
    """Return warnings of plates and sheets that splines of a width [m] reach through, and whose sides are not kept apart."""
    return [*_plates(colliders, width), *_sheets(colliders, width, cell_size)]


def _plates(colliders: ColliderSet, width: float) -> Iterator[str]:
    every = enumerate(colliders.colliders)
    names = [each.name for b, each in every if is_plate(each, width) and not (colliders.plates == b).any()]
    if names:
        yield (
            f"matter on the two sides of {', '.join(names)} shares grid nodes and drags across: it is thinner than {width:g} m, "
            f"and {ONLY}"
        )


def _sheets(colliders: ColliderSet, width: float, cell_size: float) -> Iterator[str]:
    for b, each in enumerate(colliders.colliders):
        if (colliders.plates == b).any() or not parts_sides(each):
            continue
        sheet = thin_sheet(each.shape.level_sets[-1], width)
        if sheet.share < SHEET:
            continue
        yield (
            f"collider '{each.name}' is a sheet of {sheet.thickness:.3g} m, {sheet.thickness / cell_size:.2g} cells, over "
            f"{100.0 * sheet.share:.0f} % of its surface: matter that comes to lie on both its sides shares grid nodes and drags "
            f"across, below {width / cell_size:g} cells; {ONLY}"
        )


def refuse_coupled(particles: ParticleStore, colliders: ColliderSet, splines: Splines, time: float) -> None:
    """Refuse plates and sheets whose sides are not kept apart, where matter on both shares nodes.

    Args:
        particles: The matter.
        colliders: Bodies that keep no sides apart.
        splines: Of the transfers.
        time: Simulated seconds.

    Raises:
        MpmNodesError: With the name, the place and the cure.
    """
    apart = colliders.two_sided(splines)
    if not len(apart.plates) or not particles.count or len(colliders.plates):
        return
    apart.pose(time, time)
    values, mixed = np.zeros(particles.count, np.int64), np.empty(particles.block_count, np.uint8)
    had = np.zeros(particles.block_count, np.int64)  # so that every block near a plate is mixed, and told
    kernels.sides_of_particles(
        apart.particle_blocks(particles), had, max(particles.drift, 2.0), apart.plates, values, mixed, apart.bodies()
    )
    cell = np.floor((particles.unpack("position") - particles.origin) / splines.cell_size).astype(np.int64)
    for place, body in enumerate(apart.plates):
        side = (values >> (2 * place)) & 3
        front, back = (np.unique(cell[side == which], axis=0) for which in (kernels.FRONT, kernels.BACK))
        shared = _within(front, back, round(splines.width / splines.cell_size) - 1)
        if len(shared):
            at = particles.origin + splines.cell_size * (shared[0] + 0.5)
            where = ", ".join(f"{x:.3g}" for x in at)
            raise MpmNodesError(
                f"collider '{colliders.colliders[body].name}': matter lies on both its sides, at ({where}) m for one, and would "
                f"share grid nodes across it: it is thinner than {splines.width:g} m, and {ONLY}, or solve what lies on each side "
                "in a node of its own"
            )


def _within(some: np.ndarray, others: np.ndarray, reach: int) -> np.ndarray:
    """Return those of some cells, shape (n, 3), that lie no more than `reach` cells along each axis from one of the others."""
    if not len(some) or not len(others):
        return some[:0]
    low = np.minimum(some.min(axis=0), others.min(axis=0)) - reach
    span = np.maximum(some.max(axis=0), others.max(axis=0)) + reach + 1 - low
    keys = np.unique((others - low) @ (span[1] * span[2], span[2], 1))
    around = np.stack(np.meshgrid(*(np.arange(-reach, reach + 1),) * 3, indexing="ij"), -1).reshape(-1, 3)
    near = np.zeros(len(some), bool)
    for step in around:
        near |= np.isin((some + step - low) @ (span[1] * span[2], span[2], 1), keys)
    return some[near]


LAG = 0.05
"""Nodes' sides are found again when a plate has moved by this [cells], so that they are never more than half of it behind."""
TRAVEL = 0.1
"""Particles' sides are found again when particles and plates have moved by this together [cells], of the `SLOWLY` that is spare."""


def divide(particles: ParticleStore, colliders: ColliderSet) -> None:
    """Let particles on different sides of plates share no block, with the bodies as they are posed."""
    particles.travelled = 0.0
    values, mixed = np.empty(particles.count, np.int64), np.empty(particles.block_count, np.uint8)
    had = particles.block_sides[particles.block_body]
    kernels.sides_of_particles(
        colliders.particle_blocks(particles), had, max(particles.drift, 2.0), colliders.plates, values, mixed, colliders.bodies()
    )
    blocks = np.flatnonzero(mixed)
    if len(blocks):
        _divide_blocks(particles, blocks, values, had)


def _divide_blocks(particles: ParticleStore, blocks: np.ndarray, values: np.ndarray, had: np.ndarray) -> None:
    """Put particles of some blocks in the order of their sides, and give each sides a block of their own."""
    start = particles.block_start
    counts = start[blocks + 1] - start[blocks]
    index = np.repeat(start[blocks] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    block = np.repeat(blocks, counts)
    order = np.lexsort((values[index], block))
    for name in ("position", *particles.names):
        if name not in particles.stale:
            rows = particles.rows(name)
            rows[:, index] = rows[:, index[order]]
    sorted_values = values[index[order]]
    changes = np.flatnonzero((np.diff(sorted_values) != 0) & (np.diff(block) == 0)) + 1
    begin = np.unique(np.concatenate([start[:-1][np.diff(start) > 0], index[changes]]))
    parent = np.searchsorted(start, begin, side="right") - 1
    new = had[parent]
    of_mixed = np.isin(parent, blocks)
    new[of_mixed] = sorted_values[np.searchsorted(index, begin[of_mixed])]
    kinds = np.unique(np.concatenate([[0], new]))
    if len(kinds) > MOST_BODIES:
        raise MpmNodesError(
            f"matter lies on {len(kinds)} different sides of thin colliders; at most {MOST_BODIES} are kept apart: make some of "
            "the plates that cross each other thicker than three cells"
        )
    particles.block_coord = particles.block_coord[parent]
    particles.block_body = np.searchsorted(kinds, new).astype(np.int32)
    particles.block_start = np.append(begin, particles.count).astype(np.int64)
    particles.block_sides = kinds
    limits = particles.limits
    particles.retable()
    particles.limits = limits  # whoever is the fastest still is


def join(grid: GridStore, particles: ParticleStore, colliders: ColliderSet) -> None:
    """Make one of the copies of nodes that no plate keeps apart, with the bodies as they are posed; see `GridStore.copies`."""
    block_sides = particles.block_sides[grid.body]
    posing = colliders.plate_posing(LAG * grid.h)
    marked = colliders.marked
    if (
        marked is None
        or marked.posing != posing
        or not np.array_equal(marked.packed, grid.packed)
        or not np.array_equal(marked.copies.block_sides, block_sides)
    ):
        marked = colliders.marked = _Marked(posing, grid.packed, _copies(grid, block_sides, colliders, posing))
    grid.copies = marked.copies
    parts = None if grid.residency is None else grid.parts("copies of nodes", blocks_of_copies(grid.copies))
    kernels.join_copies(grid.copies.places, grid.copies.master, grid.array("momentum", parts), grid.array("velocity", parts))


class _Marked(NamedTuple):
    """What was found out of a grid's nodes, for as long as neither plates nor blocks differ.

    Attributes:
        posing: Time at which plates were posed [s].
        packed: Blocks of the grid, as `GridStore.packed`.
        copies: What was found.
    """

    posing: float
    packed: np.ndarray
    copies: Copies


def _copies(grid: GridStore, block_sides: np.ndarray, colliders: ColliderSet, posing: float) -> Copies:
    """Return the copies of nodes with the plates as they are at a time [s]."""
    first, place = grid.places()
    ends = np.append(first[1:], grid.count)
    several = ends - first > 1
    places = np.stack([first[several], ends[several]], axis=1)
    sides = np.empty((64 * len(first), 4), np.int64)
    master = np.arange(64 * grid.count, dtype=np.int32)
    with colliders.posed_at(posing):
        kernels.mark_sides(grid.coord[first], grid.h, grid.origin - colliders.origin, colliders.plates, sides, colliders.bodies())
    node_sides = sides.reshape(-1, 64, 4)[place].reshape(-1, 4)
    kernels.find_masters(places, block_sides, node_sides, master)
    return Copies(block_sides, node_sides, master, places)


class SharedOut:
    """Copies of nodes that are one as nodes of an implicit update: each bears an even share of the mass and follows the master.

    A minimisation sums energies over nodes: copies with the whole mass each would count it several times. What copies are asked
    for is what a sticky contact asks for whose image is the master, with r = 1: v_i = v_j, and their gradients go to the master.

    Args:
        grid: Grid whose copies are joined, if it has any.
    """

    def __init__(self, grid: GridStore) -> None:
        self._grid = grid
        self._followers = np.zeros(0, np.int64)
        if grid.copies is None:
            return
        self._momentum = grid.array("momentum")[: 256 * grid.count]
        self._whole, master = self._momentum.copy(), grid.copies.master.astype(np.int64)
        copies = np.bincount(master, minlength=64 * grid.count)[master]
        followers = np.flatnonzero(master != np.arange(64 * grid.count))
        self._followers = followers[self._whole[4 * followers + 3] > 0.0]
        self._masters, self._share = master[self._followers], np.repeat(1.0 / copies, 4)

    def contacts(self, rows: np.ndarray) -> np.ndarray:
        """Return contacts with those that make copies follow; they come first, so that masters have met the bodies before."""
        links = np.zeros((len(self._followers), contact_rows.COLUMNS))
        if len(links):
            links[:, contact_rows.NODE], links[:, contact_rows.FELLOW] = self._followers, self._masters
            links[:, contact_rows.RULE_OF], links[:, contact_rows.RATIO], links[:, contact_rows.LEVEL] = STICKY, 1.0, -1.0
        return np.concatenate([links, rows])

    def __enter__(self) -> SharedOut:
        if len(self._followers):
            self._momentum *= self._share
        return self

    def __exit__(self, *_: object) -> None:
        if len(self._followers):
            self._momentum[:] = self._whole
