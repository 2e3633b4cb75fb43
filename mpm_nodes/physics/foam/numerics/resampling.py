"""One call of avoid-a-void: new particles inside thinned matter, one for two where particles lie on top of each other.

Y15 section 6, algorithms 2, 3 and 18 to 21, with what keeps momentum exact. A merged pair and every sample are particles of their
own: identities are never reused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import Kernel, Resampling, Transfer
from mpm_nodes.kernels.cells.bins import Bins, Places, bins_of, places_of
from mpm_nodes.kernels.transfers.weights import INERTIA, STENCIL
from mpm_nodes.physics.foam.kernels import grid_averages
from mpm_nodes.physics.foam.kernels.darts import Samples, throw_darts
from mpm_nodes.physics.foam.kernels.distance import interior_distance
from mpm_nodes.physics.foam.kernels.donation import Gifts, Matter, donate, nearest_particles
from mpm_nodes.physics.foam.kernels.merging import close_pairs
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.rows import PAD
from mpm_nodes.solver.state import ParticleStore

STRETCHES = ("deformation", "total_deformation")
"""Attributes whose average is scaled to the average of their determinants, so that averaging makes no volume."""


MOTION = ("velocity", "affine", "velocity_gradient")
"""Averages that no inverted stretch spoils."""


@dataclass(frozen=True)
class ResamplingSettings:
    """How to resample; lengths in units of r = h / 2.

    Attributes:
        kernel: B-spline of the averages.
        transfer: What particles carry between substeps.
        conserve_momentum: New particles take the momentum that their donors give, not an average velocity.
        coverage: Radius of the spheres that leave no void uncovered.
        depth: New particles lie deeper inside than this.
        merge_distance: Particles closer than this become one.
        finest: Edge of the last octree cells that get a dart.
        seed: Seed of this call.
        give_back: Volume at rest, in seeds of r^3, that close particles may have together and become one; 0: none do.
    """

    kernel: Kernel
    transfer: Transfer
    conserve_momentum: bool
    coverage: float
    depth: float
    merge_distance: float
    finest: float
    seed: int
    give_back: float = 0.0


@dataclass(frozen=True)
class ResamplingOutcome:
    """What a call did.

    Attributes:
        inserted: Number of new particles.
        merged: Number of pairs that became one.
        discarded: Number of samples without a donor.
        centre_shift: How far insertion moved the centre of mass [m], shape (3,); donation of positive masses must.
    """

    inserted: int
    merged: int
    discarded: int
    centre_shift: np.ndarray


def resample(particles: ParticleStore, settings: ResamplingSettings) -> ResamplingOutcome:
    """Fill voids, merge what coincides, and restore the state of what is new."""
    if not particles.sorted or particles.drift > 2.0:
        particles.sort()
    places = places_of(particles.block_coord, particles.block_body)
    bins = bins_of(particles.offset, particles.stride, particles.shift, particles.block_start, particles.array("material"), places)
    distance = interior_distance(bins, places)
    samples = throw_darts(
        bins, places, distance, radius=settings.coverage, depth=settings.depth, seed=settings.seed, finest=settings.finest
    )
    made, shift, discarded = _inserted(particles, bins, places, samples, settings)
    pairs = close_pairs(bins, settings.merge_distance, _seeds(particles, bins, settings), settings.give_back)
    merged = _merged(particles, pairs, settings)
    if len(made["id"]) + len(pairs):
        _replace(particles, pairs, {name: np.concatenate([made[name], merged[name]]) for name in made})
    return ResamplingOutcome(len(made["id"]), len(pairs), discarded, shift)


def _seeds(particles: ParticleStore, bins: Bins, settings: ResamplingSettings) -> np.ndarray | None:
    """Return how many seeds' volume particles hold, in the order of the bins; None where nothing is given back."""
    if not settings.give_back:
        return None
    return (particles.array("volume")[bins.index] / (0.5 * particles.h) ** 3).astype(np.float32)


def _replace(particles: ParticleStore, pairs: np.ndarray, columns: dict[str, np.ndarray]) -> None:
    """Remove pairs, append the new particles and let their laws restore what averaging broke."""
    dead = np.zeros(particles.count, bool)
    dead[pairs] = True
    particles.delete(dead)
    old = particles.count
    columns["id"] = particles.new_ids(len(columns["id"]))
    particles.append(columns)
    for law, segments in particles.runs():
        newcomers = segments[segments[:, 0] >= old]
        if law.loops.project is not None and len(newcomers):
            law.loops.project(
                *law.state(particles), particles.optional("stiffness_scale"), particles.stride, newcomers, law.coefficients, 0.0
            )


# ---------------------------------------------------------------- which attributes are averaged
def _averaged(particles: ParticleStore, law: BoundLaw, transfer: Transfer) -> tuple[str, ...]:
    """Return the attributes that a new particle of a law takes as averages; it copies all others from the nearest donor."""
    foreign = {name for other in particles.laws for name in other.names} - set(law.names)  # its own particles have it at rest
    foreign |= set() if transfer is Transfer.APIC else {"affine"}  # which no one carries then
    averaged = [name for name in particles.names if particles.table[name].resampling is Resampling.AVERAGED]
    return tuple(name for name in averaged if name not in foreign and name not in particles.stale)


def _copies(particles: ParticleStore, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return every attribute of some particles, as columns; what is recomputed or lived inside the last substep is at rest."""
    columns = {}
    for name in particles.names:
        attribute = particles.table[name]
        if name in particles.stale or attribute.resampling is Resampling.RECOMPUTED:
            columns[name] = attribute.rest_values(len(rows), particles.dtype)
        else:
            columns[name] = np.ascontiguousarray(particles.rows(name)[:, rows].T).reshape(len(rows), *attribute.shape)
    return columns


class _Columns(NamedTuple):
    """Averaged attributes side by side, determinants behind them; in the kernels' rows a 1 stands before and zeros after them."""

    names: tuple[str, ...]
    stretches: tuple[str, ...]
    start: dict[str, slice]
    width: int

    @property
    def padded(self) -> int:
        """Values of a row of the kernels."""
        return -(-(self.width + 1) // 16) * 16


def _layout(particles: ParticleStore, names: Sequence[str]) -> _Columns:
    start, at = {}, 0
    for name in names:
        start[name] = slice(at, at + particles.table[name].rows)
        at += particles.table[name].rows
    stretches = tuple(name for name in names if name in STRETCHES)
    return _Columns(tuple(names), stretches, start, at + len(stretches))


def _stack(particles: ParticleStore, layout: _Columns) -> grid_averages.Stack:
    """Return what the kernels write side by side for each particle."""
    rows = np.array([particles.table[name].rows for name in layout.names])
    matrices = np.array([layout.start[name].start + 1 for name in layout.stretches], np.int64)
    arrays = tuple(particles.array(name) for name in layout.names)
    return grid_averages.Stack(arrays, rows, particles.stride, matrices, layout.padded)


def _settled(layout: _Columns, values: np.ndarray, columns: dict[str, np.ndarray], mine: np.ndarray) -> None:
    """Write averages into columns; where a stretch came out inverted, it and the law's state stay those of the nearest donor."""
    first = layout.width - len(layout.stretches)
    scaled, upright = {}, {}
    for n, name in enumerate(layout.stretches):
        F, J = values[:, layout.start[name]].reshape(-1, 3, 3), values[:, first + n]
        det = np.linalg.det(F)
        upright[name] = (det > 0) & (J > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            scaled[name] = F * np.cbrt(J / det)[:, None, None]
    everywhere = np.ones(len(values), bool)
    # no law knows the total deformation: its state does not hang on it
    state = upright.get("deformation", everywhere)
    for name in layout.names:
        value = scaled.get(name, values[:, layout.start[name]].reshape(len(values), *columns[name].shape[1:]))
        kept = everywhere if name in MOTION else upright["total_deformation"] if name == "total_deformation" else state
        columns[name][mine[kept]] = value[kept]


def _conserved(particles: ParticleStore) -> list[str]:
    """Return the attributes whose sum over all particles stays, beside mass and volume."""
    known = {name: particles.table[name] for name in particles.names if name not in ("mass", "volume")}
    return [name for name, each in known.items() if each.resampling is Resampling.CONSERVED and each.kind == "real"]


# ---------------------------------------------------------------- insertion
def _inserted(
    particles: ParticleStore, bins: Bins, places: Places, samples: Samples, settings: ResamplingSettings
) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
    """Return the columns of the new particles, the shift of the centre of mass [m], and how many found no donor.

    Fields are averaged over what was there before, then the donors give.
    """
    h, apic = particles.h, settings.transfer is Transfer.APIC
    nearest = nearest_particles(bins, samples)
    averages = _grid_averages(particles, places, samples, particles.array("material")[nearest], settings)
    affine = particles.array("affine") if apic else np.empty(0, particles.dtype)
    inertia = INERTIA[settings.kernel.value] * h * h

    def donated(mass: np.ndarray, amount: np.ndarray) -> Gifts:
        matter = Matter(particles.offset, particles.array("velocity"), affine, mass, amount)
        return donate(bins, samples, matter, particles.stride, particles.shift, 0.5 * h, inertia)

    columns = _copies(particles, nearest)
    for name in _conserved(particles):  # shares hang on places alone: each amount is given as the volume is
        rows = particles.rows(name)
        given = [donated(particles.array("mass").copy(), row).volume for row in rows]
        columns[name] = np.stack(given, axis=1).reshape(columns[name].shape)
    gifts = donated(particles.array("mass"), particles.array("volume"))
    for mine, layout, values in averages:
        _settled(layout, values, columns, mine)
    columns["mass"], columns["volume"] = gifts.mass, gifts.volume
    columns["position"] = particles.origin + h * (
        4.0 * particles.block_coord[samples.slot] + 1.5 + 0.5 * samples.position.astype(float)
    )
    if settings.conserve_momentum:
        with np.errstate(invalid="ignore", divide="ignore"):
            columns["velocity"] = gifts.momentum / gifts.mass[:, None]
            if apic:
                turn = gifts.spin / (2.0 * inertia * gifts.mass[:, None])
                columns["affine"] = _turning(turn) + 0.5 * (columns["affine"] + columns["affine"].transpose(0, 2, 1))
    found = gifts.donors > 0
    total = float(particles.array("mass")[: particles.count].sum(dtype=float) + gifts.mass.sum())
    return {name: column[found] for name, column in columns.items()}, gifts.moment.sum(axis=0) / total, int((~found).sum())


def _turning(w: np.ndarray) -> np.ndarray:
    """Return the matrices of w x, shape (n, 3, 3)."""
    matrix = np.zeros((len(w), 3, 3))
    for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrix[:, c, b], matrix[:, b, c] = w[:, a], -w[:, a]
    return matrix


def _grid_averages(
    particles: ParticleStore, places: Places, samples: Samples, material: np.ndarray, settings: ResamplingSettings
) -> list[tuple[np.ndarray, _Columns, np.ndarray]]:
    """Return per material its samples, the layout of its averages, and the averages at the samples."""
    found = []
    for law, segments in particles.runs():
        mine = np.flatnonzero(material == law.index)
        if not len(mine):
            continue
        layout = _layout(particles, _averaged(particles, law, settings.transfer))
        place = places.of_slot[samples.slot[mine]]
        position = 1.5 + 0.5 * samples.position[mine].astype(float)
        sums = _node_sums(particles, places, place, position, segments, layout, settings)
        averages = np.empty((len(mine), layout.width))
        grid_averages.average_at(STENCIL[settings.kernel.value], place, position, places.near, sums, layout.padded, averages)
        found.append((mine, layout, averages))
    return found


def _node_sums(
    particles: ParticleStore,
    places: Places,
    place: np.ndarray,
    position: np.ndarray,
    segments: np.ndarray,
    layout: _Columns,
    settings: ResamplingSettings,
) -> np.ndarray:
    """Return sums of w m and w m q at the nodes around points, given by their places and in cells there, for one material."""
    stencil = STENCIL[settings.kernel.value]
    wanted = np.zeros(64 * len(places.coord), np.uint8)
    grid_averages.mark_nodes(stencil, place, position, places.near, wanted)
    around = places.near[np.unique(place)]
    givers = np.zeros(len(places.coord), bool)
    givers[around[around >= 0]] = True
    runs = np.ascontiguousarray(segments[givers[places.of_slot[segments[:, 2]]]])
    stack, points = _stack(particles, layout), (particles.offset, particles.stride, 1.0 / particles.unit)
    sums = np.zeros(64 * len(places.coord) * layout.padded + PAD, particles.dtype)
    parity = (particles.block_coord[runs[:, 2]] & 1) @ np.array([4, 2, 1])
    for colour in range(8):  # tiles of one colour share no node
        grid_averages.add_to_nodes(
            stencil,
            points,
            particles.array("mass"),
            stack,
            runs,
            np.flatnonzero(parity == colour),
            grid_averages.SummedNodes(places.near, places.of_slot, wanted, sums),
        )
    return sums


# ---------------------------------------------------------------- merging
def _values(particles: ParticleStore, layout: _Columns, rows: np.ndarray) -> np.ndarray:
    """Return averaged attributes and determinants of some particles, shape (n, width), float64."""
    values = np.empty(len(rows) * layout.padded, particles.dtype)
    grid_averages.stack_rows(_stack(particles, layout), np.stack([rows, rows + 1], 1), np.arange(len(rows)), values)
    return values.reshape(len(rows), layout.padded)[:, 1 : layout.width + 1].astype(float)


def _merged(particles: ParticleStore, pairs: np.ndarray, settings: ResamplingSettings) -> dict[str, np.ndarray]:
    """Return the columns of the particles that take the place of pairs: sums of mass and volume, mass-weighted means of the rest.

    With APIC the means of the affine velocities also hold what turns about the common centre, so that angular momentum stays.
    """
    first, second = pairs[:, 0], pairs[:, 1]
    columns = _copies(particles, first)
    m, n = (particles.array("mass")[each].astype(float) for each in (first, second))
    share = (n / (m + n))[:, None]
    material = particles.array("material")[first]
    for law, _ in particles.runs():
        mine = np.flatnonzero(material == law.index)
        layout = _layout(particles, _averaged(particles, law, settings.transfer))
        a, b = (_values(particles, layout, each[mine]) for each in (first, second))
        columns = {name: column.astype(float) if name in layout.names else column for name, column in columns.items()}
        _settled(layout, a + share[mine] * (b - a), columns, mine)
    columns["mass"] = m + n
    volume = particles.array("volume")
    columns["volume"] = volume[first].astype(float) + volume[second]
    for name in _conserved(particles):
        rows = particles.rows(name)
        columns[name] = (rows[:, first].astype(float) + rows[:, second]).T.reshape(columns[name].shape)
    position = _positions(particles, first)
    distance = _positions(particles, second) - position
    columns["position"] = position + share * distance
    if settings.transfer is Transfer.APIC and settings.conserve_momentum:
        inertia = INERTIA[settings.kernel.value] * particles.h**2
        jump = (particles.rows("velocity")[:, second].astype(float) - particles.rows("velocity")[:, first]).T
        reduced = m * n / (m + n) ** 2 / inertia
        columns["affine"] = columns["affine"] + reduced[:, None, None] * jump[:, :, None] * distance[:, None, :]
    return columns


def _positions(particles: ParticleStore, rows: np.ndarray) -> np.ndarray:
    """Return positions of some particles [m], shape (n, 3)."""
    block = np.searchsorted(particles.block_start, rows, side="right") - 1
    offset = particles.rows("position")[:, rows].T / particles.unit
    return particles.origin + particles.h * (4.0 * particles.block_coord[block] + 3.5 + offset)
