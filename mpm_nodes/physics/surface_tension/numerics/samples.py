"""Surface samples of a substep: how they are found, and how they share the mass and momentum of the particles under them.

| symbol | meaning | unit | source |
|---|---|---|---|
| s_r, p(r) | a sample of the surface and its owner, the nearest particle | m | C21 section 4.1 |
| b_r | balance point 2 x_p - s_r, opposite to the sample as its owner sees it | m | C21 section 5 |
| Pi_p | samples of particle p | | |
| D | second moment of the B-spline: h^2/4 quadratic, h^2/3 cubic | m^2 | Jiang 2015 |

    split   x_p, all s_r and all b_r of Pi_p get the mass m_p / (2 |Pi_p| + 1), and v_p and C_p as they are
    merge   v_p = mean of the group's v;   C_p = mean of C_q + v_q (x_q - x_p)^T / D;   the mass goes back to m_p

Mass, centre of mass, momentum and angular momentum stay in both: the points of a group balance each other around x_p, and equal
velocities give equal affine parts. Without mass of their own, samples push nodes that have none, and their momentum is lost.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import ATTRIBUTES, SAMPLES, Domain, Field, MpmNodesError, StepContext, register_domain
from mpm_nodes.kernels.cells.bins import Bins, Places, bins_of, places_of, rows_of
from mpm_nodes.kernels.collisions.near_points import find_touched
from mpm_nodes.physics.surface_tension.kernels.edge_cuts import FAR, cut_edges, shares_at
from mpm_nodes.physics.surface_tension.kernels.sampling import Spread, SurfacePoints, sample_union
from mpm_nodes.physics.surface_tension.kernels.shares import (
    PointMotion,
    Points,
    merge_motion,
    offsets_from_owners,
    points_of_owners,
    share_motion,
)
from mpm_nodes.physics.surface_tension.kernels.union import union_of_spheres
from mpm_nodes.physics.surface_tension.materials import covering, have_surfaces, pairs_of
from mpm_nodes.physics.surface_tension.numerics.kept_surfaces import KeptSurfaces, Surface
from mpm_nodes.physics.surface_tension.numerics.symmetry import OPEN_PLANE, Window
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.ranks.around import ParticlesAround, particles_around
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.stores import Saved

__all__ = [
    "MOST_OPEN",
    "SamplePlacement",
    "SampleStore",
    "Touch",
    "area_vector",
    "drawn_in_by",
    "merge_mass",
    "open_area",
    "sample_surface",
    "split_mass",
    "touched",
]


MOST_OPEN = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1.2e-7}
"""Most that area vectors of a closed surface sum to, over the area: of double and of single precision.

In single precision normals and areas are rounded, each by up to 2^-24 of a sample's area, however many samples there are.
"""


AROUND = 2
"""Columns of blocks that hold all particles that samples of a slab's own particles hang on.

A sample lies within 5.5 half cells of the particle that it belongs to, and hangs on the matter within 6.2 of itself; particles may
have drifted out of their blocks by 2 each.
"""


class SamplePlacement(enum.Enum):
    """How samples lie on the triangles of the surface.

    EVEN: in the middles of like parts.
    RANDOM: apart from each other, as the source has them.
    """

    EVEN = "even"
    RANDOM = "random"


class SampleStore(ParticleStore):
    """Points of the matter's surface and, once mass was split, their balance points: new in every substep.

    Args:
        domain: The domain.
        fields: Fields to allocate, by name.
        stores: Stores of the domains before it: "particles" and "grid".

    Attributes:
        aside: Area vectors of the surface that has no samples, because its matter has no tension, summed [m^2], shape (3,).
        cut: Axes along which a slab or planes of symmetry cut the surface off, shape (3,), bool.
        past: Surfaces of the last substep, for matter that stands still.
    """

    domain = SAMPLES

    def __init__(self, domain: Domain, fields: Mapping[str, Field], stores: Mapping[str, Any]) -> None:
        particles: ParticleStore = stores["particles"]
        names = [*fields, *filter(None, [particles.apart])]
        own = [each for name, each in fields.items() if name not in ATTRIBUTES]
        super().__init__(
            names,
            cell_size=particles.h,
            origin=particles.origin,
            dtype=particles.dtype,
            own_fields=own,
            apart=particles.apart,
            period=particles.period,
        )
        self.particles: ParticleStore = particles
        self.grid: GridStore = stores["grid"]
        self.grid.margin = True
        self.aside, self.cut = np.zeros(3), np.zeros(3, bool)
        self.past = KeptSurfaces()
        self._of: int | None = None

    def forget_past(self) -> None:
        """See `Store`."""
        self.past.forget()

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return super().nbytes + self.past.nbytes

    def begin_substep(self) -> None:
        """See `Store`."""
        self.count, self.drift, self.sorted = 0, 2.0, True
        self.block_coord, self.block_body = np.zeros((0, 3), np.int32), np.zeros(0, np.int32)
        self.block_start = np.zeros(1, np.int64)
        self.retable()
        self.sorted = True
        self.aside, self.cut = np.zeros(3), np.zeros(3, bool)
        self._of = self.particles.generation

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """See `Store`. What every store of points has and the domain has not is the same for all samples."""
        return super().save({*skip, *(name for name in self.names if name not in SAMPLES.fields)}, copy=copy)

    def on_grid(self) -> SampleStore:
        """Return itself, its blocks found on the grid.

        Raises:
            MpmNodesError: Particles have been sorted, added or removed since the surface was sampled.
        """
        if self.count and self._of != self.particles.generation:
            raise MpmNodesError(
                "surface samples: a stage sorted, added or removed particles after sample_surface; wire it before that or "
                "behind merge_surface_mass"
            )
        self.grid.attach(self)
        return self


# ---------------------------------------------------------------- the surface


register_domain(dataclasses.replace(SAMPLES, store=SampleStore))


def sample_surface(
    particles: ParticleStore,
    samples: SampleStore,
    radius: float,
    shift: bool,
    spread: Spread,
    within: Window,
    still: float = 0.0,
) -> None:
    """Fill `samples` with points of the surface of the union of spheres, where the matter has a tension.

    On several ranks each takes the samples that belong to its own particles: what is shared among them stays on one rank.

    Args:
        particles: The particles, sorted by block.
        samples: Emptied and filled.
        radius: Of the spheres [cells].
        shift: Whether the surface is drawn in to where the matter ends.
        spread: How samples lie on triangles; its area in half cells^2.
        within: Where the surface counts.
        still: How far particles may have moved along an axis for the surface to stay as it was [cells]; at 0, and on several ranks,
            all is sampled.

    Raises:
        MpmNodesError: Particles came or went since they were sorted.
    """
    samples.begin_substep()
    materials = [law.material for law in particles.laws]
    pairs = pairs_of(materials)
    tense = have_surfaces(materials, pairs)
    if not tense.any():
        return
    if not particles.sorted:
        raise MpmNodesError("sample_surface: a stage before it added or moved particles; wire it after sample_surface")
    matter: ParticleStore | ParticlesAround = particles
    own = None
    if particles.share.several:
        matter, own = particles_around(particles, ("material", "volume"), reach=AROUND)
    samples.cut = (np.abs(within.low) < OPEN_PLANE) | (np.abs(within.high) < OPEN_PLANE)
    if not particles.count:
        return
    places = places_of(matter.block_coord, matter.block_body)
    material = matter.array("material")
    kept = samples.past if still > 0.0 and own is None else None
    offset, stride, wanted = matter.offset, matter.stride, None
    if kept is not None:
        groups_of = b"" if pairs is None else pairs.group.tobytes()
        asked = (radius, shift, spread, *(each.tobytes() for each in within), tense.tobytes(), groups_of)
        offset, stride = kept.begin(particles, places, still, asked), particles.count
        wanted = kept.wanted if pairs is None else None  # liquids of a pair look at each other everywhere
    bins = bins_of(offset, stride, particles.shift, matter.block_start, material, places, particles.dtype, wanted)
    drift = max(0, math.ceil(2.0 * (matter.drift - 2.0)))
    depth = drawn_in_by(radius, shift)
    planes = [np.where(np.abs(plane) < OPEN_PLANE, 2.0 * plane, 2.0 * FAR) for plane in (within.low, within.high)]
    mirrors = np.stack([*planes, within.level], axis=1)
    volume = matter.array("volume") * (1.0 / particles.h**3)

    def surface(of: Bins, group: int = 0) -> SurfacePoints:
        """Return the samples of one body of matter that particles of this process own, whose surfaces pull."""
        level_set, vertices, known = (kept and kept.begun(group)) or (None, None, None)
        field = union_of_spheres(of, places, 2.0 * radius, drift, level_set)
        cuts = cut_edges(of, places, field, volume, depth, mirrors, drift, vertices)
        points = sample_union(of, places, field[0], cuts, (within.low, within.high), spread, drift, known)
        if kept is not None:
            kept.keep(group, Surface(*field, cuts, points))
        pulls = None if tense.all() else tense[material[points.owner]]
        if own is not None:
            here = np.full(matter.count, -1, np.int32)
            here[own] = np.arange(len(own))
            points = points._replace(owner=here[points.owner])
            mine = points.owner >= 0
            points, pulls = _kept(points, mine), None if pulls is None else pulls[mine]
        if pulls is None:
            return points
        left = _kept(points, ~pulls)
        samples.aside += (left.normal * left.area[:, None]).sum(axis=0) * (0.25 * samples.h**2)
        return _kept(points, pulls)

    if pairs is None:
        _fill(samples, places, surface(bins))
        return
    groups = [rows_of(bins, pairs.group == each) for each in range(len(pairs.tension))]
    for group, of in enumerate(groups):
        if len(of.index) and tense[pairs.group == group].any():
            points = surface(of, group)
            shares = [shares_at(each, places, points.start, points.position, volume, mirrors, drift) for each in groups]
            warmth = particles.rows("temperature")[0][points.owner].astype(float) if pairs.curves else None
            _fill(samples, places, points, covering(group, np.array(shares), pairs, warmth))


def drawn_in_by(radius: float, shift: bool) -> float:
    """Return the most that a vertex is drawn in [half cells] (`edge_cuts.cut_edges`), for spheres of a radius [cells]."""
    return max(2.0 * radius - 0.5, 0.0) if shift else 0.0


def _kept(points: SurfacePoints, keep: np.ndarray) -> SurfacePoints:
    """Return the samples that a mask marks."""
    before = np.concatenate([[0], np.cumsum(keep)])
    return SurfacePoints(before[points.start], *(column[keep] for column in points[1:]))


def _fill(samples: SampleStore, places: Places, points: SurfacePoints, behind: tuple[np.ndarray, np.ndarray] | None = None) -> None:
    """Add samples, and what is behind them; those of a place lie in its block or just beyond."""
    if not len(points.owner):
        return
    filled = np.flatnonzero(np.diff(points.start))
    start = np.concatenate([points.start[filled], points.start[-1:]])
    body = np.zeros(len(filled), np.int32)
    columns = {
        "normal": points.normal,
        "area": points.area * (0.25 * samples.h**2),
        "owner": points.owner,
    }
    if behind is not None:
        columns["covered"], columns["interface"] = behind
    if samples.apart:
        columns[samples.apart] = samples.particles.rows(samples.apart)[0, points.owner]
        body = columns[samples.apart][start[:-1]]
    offset = np.rint((0.5 * points.position - 2.0) * samples.unit)
    samples.append_blocks(columns, (places.coord[filled], body), start, offset)
    samples.drift, samples.sorted = 3.2, False


def area_vector(samples: SampleStore) -> np.ndarray:
    """Return what the area vectors of the surface sum to [m^2], shape (3,): nothing but rounding where it is closed.

    What has no samples for want of a tension counts as well; along the axes in `cut` the surface is open, and the sum is put to 0.

    Args:
        samples: Samples of the surface, and balance points, which have no area.
    """
    area = samples.rows("area")[0]
    mine = area > 0.0
    vectors = samples.rows("normal")[:, mine].astype(float) * area[mine].astype(float)
    return np.where(samples.cut, 0.0, vectors.sum(axis=1) + samples.aside)


class Touch(NamedTuple):
    """What each sample touches and faces."""

    which: np.ndarray
    """Its body, shape (n,), int32: colliders, then six walls; -1 for none."""
    normal: np.ndarray
    """Normal of that body, shape (n, 3); zero where there is none."""
    distance: np.ndarray
    """From its surface, shape (n,) [m]."""


def touched(samples: SampleStore, colliders: ColliderSet, step: StepContext, reach: float, cuts: Sequence[int]) -> Touch:
    """Return what each sample touches and faces.

    Args:
        samples: Samples of the surface.
        colliders: Bodies and walls; posed here.
        step: The substep.
        reach: Distance up to which a sample touches [cells].
        cuts: Numbers of the walls that cut the surface off: they are none.
    """
    colliders.pose(step.time, step.time + step.dt)
    walls, bodies = colliders.shapes()
    walls = walls._replace(rules=walls.rules.copy())
    walls.rules[list(cuts)] = np.inf
    which = np.empty(samples.count, np.int32)
    points = samples.unpack("position") - colliders.origin
    below = np.zeros((samples.count, 4))
    find_touched(points, samples.unpack("normal"), walls, bodies, reach * step.cell_size, which, below)
    return Touch(which, below[:, :3], below[:, 3])


def open_area(samples: SampleStore, colliders: ColliderSet, step: StepContext, reach: float, cuts: Sequence[int]) -> np.ndarray:
    """Return the area of each sample against air [m^2], shape (n,): none of interfaces, nor where it touches a body or a wall.

    Args:
        samples: Samples of the surface.
        colliders: Bodies and walls; posed here.
        step: The substep.
        reach, cuts: As of `touched`.
    """
    area = samples.rows("area")[0] * (1.0 - samples.rows("covered")[0].astype(float))
    if not colliders.idle:
        area[touched(samples, colliders, step, reach, cuts).which >= 0] = 0.0
    return area


# ---------------------------------------------------------------- mass and momentum
def split_mass(particles: ParticleStore, samples: SampleStore) -> None:
    """Share mass, velocity and affine velocity of the owners with their samples and with balance points, which are added."""
    if not samples.count:
        return
    _add_balance_points(particles, samples)
    samples.sort()
    owner, mass = samples.rows("owner")[0], particles.rows("mass")[0]
    start, _ = points_of_owners(owner, particles.count)
    masses = mass, samples.rows("owner_mass")[0], samples.rows("mass")[0]
    share_motion(owner, start, masses, _moving(particles), _moving(samples))
    number = np.diff(start)
    groups = np.flatnonzero(number)
    mass[groups] /= number[groups] + 1


def _moving(points: ParticleStore) -> PointMotion:
    return PointMotion(points.rows("velocity"), points.rows("affine"))


def _placed(points: ParticleStore) -> Points:
    sizes = np.diff(points.block_start)
    return Points(points.rows("position"), np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), points.block_coord)


def _add_balance_points(particles: ParticleStore, samples: SampleStore) -> None:
    """Add b_r = 2 x_p - s_r for every sample, exactly: in fixed-point numbers from the owner's block."""
    owner, owners = samples.rows("owner")[0].copy(), _placed(particles)
    away = offsets_from_owners(owner, _placed(samples), owners, 4 * int(samples.unit))
    begin, order = points_of_owners(owners.block[owner], len(particles.block_coord))
    offset = owners.offset[:, owner[order]].T - away[order]
    columns = {"owner": owner[order]}
    if samples.apart:
        columns[samples.apart] = particles.rows(samples.apart)[0, columns["owner"]]
    filled = np.flatnonzero(np.diff(begin))
    blocks = particles.block_coord[filled], particles.block_body[filled]
    samples.append_blocks(columns, blocks, np.append(begin[filled], begin[-1]), offset)


def merge_mass(particles: ParticleStore, samples: SampleStore, inertia: float) -> None:
    """Give owners their mass back, and the momentum and angular momentum of their group.

    Args:
        particles: With the velocity and affine velocity gathered at their own places.
        samples: Likewise.
        inertia: D / h^2.
    """
    if not samples.count or not samples.rows("mass")[0].any():
        return
    owner = samples.rows("owner")[0]
    away = offsets_from_owners(owner, _placed(samples), _placed(particles), 4 * int(samples.unit))
    groups = points_of_owners(owner, particles.count)
    merge_motion(groups, away, samples.unit * samples.h * inertia, _moving(samples), _moving(particles))
    particles.rows("mass")[0, owner] = samples.rows("owner_mass")[0]
