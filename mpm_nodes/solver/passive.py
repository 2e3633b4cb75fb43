"""Passive matter: particles that an active mask keeps out of the substeps, and the body that active ones meet in their place.

As a frame begins, particles move as they are, by rows and fixed-point numbers, between the store that substeps loop over and one
beside it: what is passive costs nothing, and comes back to the bit. A collider takes its place. Colliders are what every kind of
substep knows: held nodes of the grid would have to be taken out of the systems of implicit and projected ones as well. Other tools
call such matter frozen or sleeping particles.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import (
    ActiveMask,
    Collider,
    Fact,
    Facts,
    InputError,
    Moment,
    Reduction,
    StepContext,
    attached_column,
    attachments_of,
)
from mpm_nodes.kernels.level_sets.build import LARGEST_TABLE, leaf_level_set
from mpm_nodes.kernels.level_sets.level_set import LEAF, LEVEL_SET, PosedLevelSets
from mpm_nodes.kernels.level_sets.vector_leaves import leaf_keys
from mpm_nodes.kernels.surfaces.filter import leaf_neighbours, redistance, sort_leaves
from mpm_nodes.kernels.surfaces.spheres import LIMIT, RADIUS, REACH, VOXEL
from mpm_nodes.kernels.surfaces.splat import bin_particles, blend_spheres, leaves_near
from mpm_nodes.solver.drains import inside
from mpm_nodes.solver.field_programs import field_values
from mpm_nodes.solver.ranks.parcels import Parcel, refill
from mpm_nodes.solver.sleep import EDGE, INTERFACE, Around, Sleepers, keys_of, near
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.stores import Saved

__all__ = ["NAME", "PASSIVE", "PassiveMatter", "solid_of"]

NAME = "passive matter"
"""What messages and events call its body."""

PASSIVE = Facts(
    "passive",
    "What an active mask held in a frame.",
    (
        Fact("particles", "", Reduction.LAST, "How many particles."),
        Fact("mass", "kg", Reduction.LAST, "Their mass."),
        Fact("stopped", "", Reduction.SUM, "Particles that were active in the frame before."),
        Fact("released", "", Reduction.SUM, "Particles that are active again."),
    ),
)

BAND = 6.0
"""Half width of the band of distances, in voxels: nodes look for their images through more than a cell."""
RIM, DEEP = 5.0, 6.0
"""How far the body goes on along a cut, beyond passive particles and below active ones, in spacings: farther than splines reach."""
MOTION = ("velocity", "affine", "velocity_gradient")
"""What a particle loses that becomes passive: it stands still."""


class PassiveMatter:
    """The passive particles of a solve.

    Args:
        particles: Those that substeps move.

    Attributes:
        store: The passive ones.
        sleepers: Which of them sleep, where that is what a mask is for.
        seen: Attributes of them in the order of their ids, while nothing changes and nothing else is there.
    """

    def __init__(self, particles: ParticleStore) -> None:
        self.store = particles.emptied()
        self.sleepers: Sleepers | None = None
        self.seen: dict[str, np.ndarray] = {}
        self._solid: PassiveSolid | None = None
        self._shape: PosedLevelSets | None = None
        self._told = (0, 0)

    def part(self, particles: ParticleStore, mask: ActiveMask | None, around: Around, spacing: float) -> None:
        """Move particles between the active and the passive ones, as a mask says.

        Args:
            particles: Active particles.
            mask: Which are to be active; None: all.
            around: When it is taken, and what moves around the matter then.
            spacing: Of the particles [m].
        """
        held, self._told = self.store, (0, 0)
        if around.step.updates or attachments_of(around.step.forces):
            self.seen.clear()
        if mask is None or mask.sleep is None:
            self.sleepers = None
        if mask is None and not held.count:
            return
        if mask is not None and mask.sleep is not None:
            if self.sleepers is None:  # what another mask held is let go
                self.sleepers = Sleepers()
                stops, goes = np.zeros(particles.count, bool), np.ones(held.count, bool)
            else:
                stops, goes = self.sleepers.part(particles, held, mask.sleep, around)
        else:
            stops = np.zeros(particles.count, bool) if mask is None else ~_active(particles, mask, around.moment)
            goes = np.ones(held.count, bool) if mask is None else _active(held, mask, around.moment)
        self._told = int(stops.sum()), int(goes.sum())
        if not any(self._told):
            return
        self.seen.clear()
        stopped, released = _parcel(particles, stops), _parcel(held, goes)
        for name in MOTION:
            if name in stopped.rows:
                stopped.rows[name][:] = 0
        # on which sides of plates they lie is found again where they are active
        body = stopped.body if particles.apart else np.zeros_like(stopped.body)
        stopped = Parcel(stopped.coord, body, stopped.counts, stopped.rows)
        stay, remain = _parcel(particles, ~stops), _parcel(held, ~goes)
        held.drift = particles.drift = max(held.drift, particles.drift)
        refill(particles, [stay, released])
        refill(held, [remain, stopped])
        particles.travelled = np.inf
        self._solid = self._shape = None
        if self.sleepers is not None:
            self.sleepers.settle(held, around)
            self._solid = _interface(particles, held, self.sleepers, spacing)
        elif held.count and mask is not None:
            field, frame = mask.field, around.moment.frame
            by_place = particles.count > 0 and not mask.attributes
            cut = Cut(particles.unpack("position"), lambda where: field_values(field, where, frame) > 0.5) if by_place else None
            self._solid = solid_of(held.unpack("position"), spacing, cut)
        self._shape = None if self._solid is None else self._solid.shape()

    def bodies(self, mask: ActiveMask | None) -> tuple[Collider, ...]:
        """Return the body of the passive matter, as active matter meets it by a mask's rule."""
        if mask is None or self._shape is None:
            return ()
        # it clamps: active particles begin within its surface, and are not to be thrown out
        return (Collider(NAME, mask.rule, mask.friction, self._shape, clamp=True),)

    def tell(self, step: StepContext) -> None:
        """Tell what is passive."""
        stopped, released = self._told
        if self.store.count or released:
            mass = float(self.store.rows("mass")[0].sum(dtype=float))
            step.tell(PASSIVE, particles=self.store.count, mass=mass, stopped=stopped, released=released)

    def mark(self, step: StepContext) -> Callable[[], None]:
        """Return what puts back what may change of passive particles in a frame, and of ties: to what they are, and which broke."""
        ties = [attached_column(number)[0] for number in range(len(attachments_of(step.forces)))]
        names = {*ties, *(each.attribute for each in step.updates)} if self.store.count else ()
        held = {name: self.store.rows(name).copy() for name in names}
        ties_of = step.severed, step.tied_to

        def come_back() -> None:
            step.severed, step.tied_to = ties_of
            self.store.put(held)
            self.store.bound.clear()
            self.seen.clear()

        return come_back

    def save(self) -> Saved | None:
        """Return what a checkpoint holds, as views; None where nothing is passive, or may be."""
        if self._solid is None and self.sleepers is None:
            return None
        saved = self.store.save(copy=False)
        solid = self._solid or NOTHING
        saved.tables |= {"leaves": solid.origins, "distances": solid.values, "voxel": np.array([solid.voxel])}
        if self.sleepers is not None:
            saved.tables |= {f"sleep {name}": values for name, values in self.sleepers.save().items()}
        return saved

    def restore(self, saved: Saved) -> None:
        """Put back what `save` gave.

        Raises:
            InputError: No solve of this kind saved it.
        """
        sleep = {name: saved.tables.pop(name) for name in list(saved.tables) if name.startswith("sleep ")}
        origins, values, voxel = (saved.tables.pop(name, np.zeros(0)) for name in ("leaves", "distances", "voxel"))
        sound = origins.shape == (len(values), 3) and origins.dtype.kind == "i" and voxel.shape == (1,) and voxel[0] > 0.0
        if not sound or values.shape != (len(values), LEAF, LEAF, LEAF) or values.dtype != np.float32:
            raise InputError("checkpoint: the body of its passive matter does not fit together; cook again without --resume")
        self.store.restore(saved)
        self.seen.clear()
        if sleep:
            self.sleepers = Sleepers()
            self.sleepers.restore({name.removeprefix("sleep "): values for name, values in sleep.items()})
        self._solid = PassiveSolid(origins, values, float(voxel[0])) if len(origins) else None
        self._shape = None if self._solid is None else self._solid.shape()


def _active(particles: ParticleStore, mask: ActiveMask, moment: Moment) -> np.ndarray:
    return inside(particles, mask.field, moment) if particles.count else np.zeros(0, bool)


def _parcel(particles: ParticleStore, which: np.ndarray) -> Parcel:
    """Return copies of some particles, shape (count,), bool, in their order; attributes that hold nothing are left out."""
    before = np.concatenate([[0], np.cumsum(which)])
    counts = np.diff(before[particles.block_start])
    some = counts > 0
    names = [name for name in ("position", *particles.names) if name not in particles.stale]
    rows: dict[str, Any] = {name: particles.rows(name)[:, which] for name in names}
    return Parcel(particles.block_coord[some], particles.block_body[some], counts[some].astype(np.int64), rows)


class Cut(NamedTuple):
    """Where a mask cuts through matter.

    Attributes:
        active: Places of the active particles [m], shape (n, 3).
        frees: Returns at which places [m], shape (n, 3), matter is active by the mask, shape (n,), bool.
    """

    active: np.ndarray
    frees: Callable[[np.ndarray], np.ndarray]


class PassiveSolid(NamedTuple):
    """A narrow-band level set in leaves: voxel indices of their first voxels, distances [m], and the voxel size [m]."""

    origins: np.ndarray
    values: np.ndarray
    voxel: float

    def shape(self) -> PosedLevelSets:
        """Return it as a body that stands still."""
        to_index, band = np.eye(3, 4) / self.voxel, BAND * self.voxel
        level_set = leaf_level_set(self.origins, self.values, band, to_index, self.voxel, name=NAME)
        return PosedLevelSets(LEVEL_SET, level_sets=(level_set,))


NOTHING = PassiveSolid(np.zeros((0, 3), np.int32), np.zeros((0, LEAF, LEAF, LEAF), np.float32), 1.0)


def _interface(particles: ParticleStore, held: ParticleStore, sleepers: Sleepers, spacing: float) -> PassiveSolid | None:
    """Return the body of what sleeps near what is awake; what lies deeper nothing can meet before it wakes."""
    some, others = (_near_blocks(one, other, INTERFACE) for one, other in ((held, particles), (particles, held)))
    if not some.any():
        return None
    asleep, origin, edge = keys_of(sleepers.asleep), particles.origin, EDGE * particles.h

    def frees(where: np.ndarray) -> np.ndarray:
        blocks = np.floor((where - origin) / edge - 0.375)  # a block's middle is 3.5 cells from its first node
        return ~np.isin(keys_of(blocks.astype(np.int64)), asleep)

    return solid_of(held.unpack("position")[some], spacing, Cut(particles.unpack("position")[others], frees))


def _near_blocks(particles: ParticleStore, others: ParticleStore, far: int) -> np.ndarray:
    """Return which particles lie within some blocks of any of others, shape (count,), bool."""
    reach = np.full(others.block_count, far)
    return np.repeat(near(others.block_coord, reach, particles.block_coord), np.diff(particles.block_start))


def solid_of(positions: np.ndarray, spacing: float, cut: Cut | None = None) -> PassiveSolid:
    """Return the body of particles: blended spheres, whose surface lies half a spacing outside of a lattice's outer layer.

    Where a mask cuts through matter the body goes on along the cut, beyond the outer surface of the matter, as far as splines of
    active particles reach: nodes there would else give way under the rim, and a column four cells wide sank twice as far.

    Args:
        positions: [m], shape (n, 3), n > 0.
        spacing: Of the particles [m].
        cut: Where it is cut from active matter, None where it stands alone.

    Source: Zhu and Bridson 2005, as `kernels.surfaces.splat` has it.
    """
    voxel = _voxel(positions, VOXEL * spacing)
    spacing = voxel / VOXEL
    bins, band = bin_particles(positions, REACH * spacing), BAND * voxel
    origins = leaves_near(bins, spacing + band + voxel, voxel)
    beyond = np.zeros((0, 3), np.int32) if cut is None else leaves_near(bin_particles(cut.active, bins.edge), DEEP * spacing, voxel)
    rim = beyond[np.isin(leaf_keys(beyond), leaf_keys(leaves_near(bins, RIM * spacing, voxel)))]
    origins = np.unique(np.concatenate([origins, rim]), axis=0)
    values = blend_spheres(bins, origins, voxel, bins.edge, RADIUS * spacing, LIMIT * spacing, band)
    keys, origins, values = sort_leaves(origins, values)
    if cut is not None and len(rim):
        at = np.flatnonzero(np.isin(leaf_keys(origins), leaf_keys(rim)))
        values[at] = np.minimum(values[at], _beyond(positions, cut, origins[at], voxel, spacing))
    values = redistance(values, leaf_neighbours(keys, origins), voxel, band)
    near = (np.abs(values) < 0.999 * band).any(axis=(1, 2, 3))  # leaves deep inside come back as signs of the table
    return PassiveSolid(origins[near], values[near], voxel)


def _beyond(positions: np.ndarray, cut: Cut, origins: np.ndarray, voxel: float, spacing: float) -> np.ndarray:
    """Return a distance to what lies beyond the rim of a cut: nearer to passive than to active particles, and passive by the mask.

    Args:
        positions: Of passive particles [m], shape (n, 3).
        cut: Where the mask cuts.
        origins: Leaves, shape (leaves, 3).
        voxel: Voxel size [m].
        spacing: Of the particles [m].
    """
    wide, deep = RIM * spacing, DEEP * spacing
    # spheres without a radius: the distance to the nearest
    passive, active = (
        blend_spheres(bin_particles(places, reach), origins, voxel, reach, 10.0 * reach, 0.0, reach)
        for places, reach in ((positions, wide), (cut.active, deep))
    )
    found = np.maximum(0.5 * (passive - active), np.maximum(passive - np.float32(wide), active - np.float32(deep)))
    inner = np.argwhere(found < 0.0)
    where = voxel * (origins[inner[:, 0]] + inner[:, 1:])
    outer = tuple(inner[cut.frees(where)].T)
    found[outer] = -found[outer]
    return found


def _voxel(positions: np.ndarray, voxel: float) -> float:
    """Return the voxel size, raised until a table of leaves around far scattered particles fits."""
    span, wanted = np.ptp(positions, axis=0), voxel
    while np.prod(span / (LEAF * voxel) + 8.0) > LARGEST_TABLE:
        voxel *= 1.26
    if voxel != wanted:
        message = (
            f"passive matter is scattered over {span.max():.3g} m: its body has voxels of {voxel:.3g} m in place of {wanted:.3g}"
        )
        warnings.warn(f"solve.active: {message}; let a drain take what flies away", stacklevel=2)
    return voxel
