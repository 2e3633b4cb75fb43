"""Solver state: the particles as sorted structure-of-arrays rows.

Storage belongs to this package and is laid out for the kernels. Stages reach it through lanes (`array`), everybody else through
`unpack` and `pack`, which give and take NumPy arrays by attribute name. Allocated once, grown by doubling.

Positions are integers: block coordinates and an offset from the block's centre of 2^-28 cells (2^-56 in float64), so that
precision does not depend on the distance from the origin and slow creep is not lost.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from mpm_nodes.data import ATTRIBUTES, PARTICLES, SINGLE_RANK, Field, MpmNodesError, SingleRank
from mpm_nodes.kernels.transfers import binning, motion, weights
from mpm_nodes.kernels.transfers.places import Placement
from mpm_nodes.materials.values import FloatType
from mpm_nodes.solver.blocks import grouped
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.device import sorting as device_sorting
from mpm_nodes.solver.device.residency import ArrayParts, Residency
from mpm_nodes.solver.restored import refuse_unsound
from mpm_nodes.solver.rows import RowMemory, close_up
from mpm_nodes.solver.sorting import order_of
from mpm_nodes.solver.stores import Saved, Store

_layouts = itertools.count(1)

LIMITING = ("velocity", "velocity_gradient", "stiffness_scale", "material")
"""What the limits of dt hang on, beside the state of the laws."""

_FACTS = ("count", "next_id", "drift", "sorted", "sort_age", "limits")
"""What a store of particles saves beside arrays and stale names."""


class ParticleStore(Store):
    """Particles of one solve.

    Attributes:
        dtype: float32 or float64.
        count: Number of particles.
        h: Cell size [m].
        origin: World position of grid node (0, 0, 0) [m], float64, shape (3,).
        period: Blocks between periodic sides, 0 along an axis without.
        shift: Fixed-point bits of `offset`.
        block_coord: Shape (blocks, 3), int32.
        block_body: Body of each block's particles, or the place of their sides in `block_sides`, shape (blocks,), int32.
        block_sides: On which sides of thin plates particles lie (`kernels.collisions.sides`), shape (kinds,), int64; 0 comes first.
        apart: Attribute whose values keep particles apart, "" for none: different ones share no block, nor a node of the grid.
        block_start: Shape (blocks + 1,), int64; particles of block q are block_start[q] : block_start[q + 1].
        laws: Per material, its law.
        segments: Per material, the (begin, end, block) of its runs, shape (runs, 3), int64.
        stale: Attributes whose rows hold nothing: a fused stage used and dropped them inside the last substep.
        limits: Per material (|v|, |grad v|, wave speed) as the last substep left them, or None when they must be measured.
        drift: Largest |offset| in cells.
        drift_limit: That from which on they are sorted again.
        generation: Number of the block tables, never given twice in a process: what was built for others does not fit.
        bound: What callers built for the arrays as they lie; emptied when one of them moves, or particles come or go.
        next_id: Identity of the next particle that comes.
        travelled: How far particles and plates may have moved towards each other since particles' sides were found [m].
        share: This rank's part of the simulation (`ranks.share.Share` where it runs on several).
        residency: Where the arrays are in a solve on a device, None without one.
    """

    domain = PARTICLES

    def __init__(
        self,
        names: Iterable[str],
        *,
        cell_size: float,
        origin: npt.ArrayLike = (0, 0, 0),
        dtype: FloatType = np.float32,
        materials: int = 1,
        own_fields: Iterable[Field] = (),
        apart: str = "",
        period: tuple[int, int, int] = (0, 0, 0),
    ) -> None:
        self.dtype: np.dtype[np.floating[Any]] = np.dtype(dtype)
        self.table = {**ATTRIBUTES, **{field.name: field for field in own_fields}}
        self.h, self.period = float(cell_size), period
        self.origin = np.asarray(origin, float).copy()
        self.materials = materials
        single = self.dtype == np.float32
        self.shift = weights.SHIFT32 if single else weights.SHIFT64
        self._int = np.dtype(np.int32 if single else np.int64)
        self.count = 0
        self.names = tuple(
            dict.fromkeys(["velocity", "mass", "volume", "id", "material", *(name for name in names if name != "position")])
        )
        rows = {name: (self.table[name].rows, self.table[name].dtype(self.dtype)) for name in self.names}
        self._memory = RowMemory(rows, self._int)
        self.block_coord, self.block_body = np.zeros((0, 3), np.int32), np.zeros(0, np.int32)
        self.block_start, self.block_sides = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.apart = apart if apart in self.names else ""
        self.segments = [np.zeros((0, 3), np.int64) for _ in range(materials)]
        self.stale: set[str] = set()
        self.bound: dict[Any, Any] = {}
        self.limits: list[tuple[float, float, float]] | None = None
        self._ranges = np.zeros((0, 3), np.int64)
        self._ranged: np.ndarray | None = None
        self.laws: tuple[BoundLaw, ...] = ()
        self.drift, self.drift_limit = 0.0, 2.0
        self.sorted = True
        self.sort_age = 0
        self.travelled = math.inf
        self.generation = next(_layouts)
        self.next_id = 0
        self.share: SingleRank = SINGLE_RANK
        self.residency: Residency | None = None

    # ---------------------------------------------------------------- what kernels see
    @property
    def stride(self) -> int:
        """Distance of rows in every attribute array."""
        return self._memory.stride

    @property
    def offset(self) -> np.ndarray:
        """Fixed-point offsets, three rows."""
        return self._here(self._memory.offset)

    def array(self, name: str, parts: ArrayParts | None = None) -> np.ndarray:
        """Return the flat rows of an attribute, or of the fixed-point offsets for "position"; row r lies at
        [r * stride : r * stride + count]. With `parts` only these need hold the values of now."""
        return self._here(self.kept(name), parts)

    def seen(self, name: str) -> np.ndarray:
        """Return the rows of an attribute to look at only: what a device holds of them stays as new."""
        with contextlib.nullcontext() if self.residency is None else self.residency.reading():
            return self.array(name)

    def clear(self, name: str) -> None:
        """Set an attribute of all particles to zero."""
        if self.residency is None:
            self.array(name)[:] = 0
        else:
            self.residency.cleared(self.kept(name))

    def mean(self, name: str) -> float:
        """Return the mean of an attribute with one number a particle, 0 without particles."""
        if not self.count:
            return 0.0
        if self.residency is not None:
            return device_sorting.mean(self.residency, self.kept(name), self.count)
        return float(self.array(name)[: self.count].mean())

    def _here(self, array: np.ndarray, parts: ArrayParts | None = None) -> np.ndarray:
        """Return an array with its values of now on the host."""
        return array if self.residency is None else self.residency.on_host(array, parts)

    def parts(self, name: str, blocks: np.ndarray) -> ArrayParts:
        """Return the particles of some blocks as parts of arrays with three rows, in a solve on a device.

        Args:
            name: What the blocks are (`Residency.parts`).
            blocks: Their places, ascending.
        """
        assert self.residency is not None
        begin = self.block_start[blocks]
        counts = self.block_start[blocks + 1] - begin
        return self.residency.parts(name, np.concatenate([begin + r * self.stride for r in range(3)]), np.tile(counts, 3))

    def kept(self, name: str) -> np.ndarray:
        """Return the memory of an attribute, or of the offsets for "position", whose newest values may be on a device."""
        if name == "position":
            return self._memory.offset
        try:
            return self._memory.arrays[name]
        except KeyError:
            raise MpmNodesError(
                f"attribute '{name}' is not allocated in this solve (it has {', '.join(self.names)}); "
                f"declare it in the stage's Reads or Writes"
            ) from None

    def rows(self, name: str, parts: ArrayParts | None = None) -> np.ndarray:
        """Return a view of an attribute, or of the fixed-point offsets for "position": shape (rows, count), in memory order.

        With `parts` only these need hold the values of now.
        """
        array, rows = self.array(name, parts), 3 if name == "position" else self.table[name].rows
        return array[: rows * self.stride].reshape(rows, self.stride)[:, : self.count]

    def optional(self, name: str) -> np.ndarray:
        """Return the rows of an attribute, or an empty array of the solve's float type when nobody brought it."""
        return self.array(name) if name in self._memory.arrays else np.empty(0, self.dtype)

    def geometry(self, parts: ArrayParts | None = None) -> Placement:
        """Return where the particles are, as transfer kernels take it; with `parts` only these need be where they are now."""
        return Placement(self.array("position", parts), self.stride, self.shift, 1.0 / self.unit, self.h)

    def runs(self) -> Iterator[tuple[BoundLaw, np.ndarray]]:
        """Yield each material that has particles: its law and its (begin, end, block) runs."""
        for law, segments in zip(self.laws, self.segments, strict=True):
            if len(segments):
                yield law, segments

    def law_limits(self) -> Iterator[tuple[BoundLaw, float, float, float]]:
        """Yield per material its law, largest speed [m/s], largest |grad v| [1/s] and fastest wave [m/s]."""
        if self.limits is None:
            self._refuse_stale("velocity_gradient")
            self.limits = [self._measured(law, segments) for law, segments in self.runs()]
        found = self.share.largest_limits(self)
        for (law, _), limits in zip(self.runs(), found, strict=True):
            yield law, *limits

    def _measured(self, law: BoundLaw, segments: np.ndarray) -> tuple[float, float, float]:
        speed, strain = np.empty(len(segments)), np.empty((len(segments), 2))
        motion.largest_speeds(self.array("velocity"), self.stride, segments, speed)
        law.loops.limits(
            *law.state(self),
            self.array("velocity_gradient"),
            self.optional("stiffness_scale"),
            self.stride,
            segments,
            law.coefficients,
            strain,
        )
        return float(np.sqrt(speed.max())), float(np.sqrt(strain[:, 0].max())), float(strain[:, 1].max())

    @property
    def ranges(self) -> np.ndarray:
        """(begin, end, block) of every block, shape (blocks, 3), int64."""
        if self._ranged is not self.block_start:
            self._ranges = np.stack([self.block_start[:-1], self.block_start[1:], np.arange(self.block_count)], axis=1)
            self._ranged = self.block_start
        return self._ranges

    @property
    def block_count(self) -> int:
        """Number of blocks that hold particles."""
        return len(self.block_coord)

    @property
    def unit(self) -> float:
        """Fixed-point units per cell."""
        return float(1 << self.shift)

    @property
    def nbytes(self) -> int:
        """Bytes allocated for particles."""
        return self._memory.nbytes

    def emptied(self) -> ParticleStore:
        """Return a store of the same kind without particles."""
        return ParticleStore(
            self.names,
            cell_size=self.h,
            origin=self.origin,
            dtype=self.dtype,
            materials=self.materials,
            own_fields=self.table.values(),
            apart=self.apart,
            period=self.period,
        )

    # ---------------------------------------------------------------- save and restore
    def kind(self) -> dict[str, Any]:
        """See `Store`."""
        return {"attributes": list(self.names), "precision": self.dtype.name, "cell size": self.h}

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """See `Store`. Memory order, sort age and measured limits are part of it."""
        facts = {name: getattr(self, name) for name in _FACTS} | {"stale": sorted(self.stale)}
        if math.isfinite(self.travelled):
            facts["travelled"] = self.travelled
        fields = {name: self.rows(name) for name in ("position", *self.names) if name not in skip}
        tables = {"origin": self.origin, "block_coord": self.block_coord, "block_start": self.block_start}
        if self.apart or len(self.block_sides) > 1:
            tables |= {"block_body": self.block_body, "block_sides": self.block_sides}
        tables |= {f"runs of material {index}": runs for index, runs in enumerate(self.segments)}
        if copy:
            fields, tables = ({name: array.copy() for name, array in part.items()} for part in (fields, tables))
        return Saved(facts, fields, tables, self.generation)

    def restore(self, saved: Saved) -> None:
        """See `Store`."""
        if saved.layout is None:  # from a file
            refuse_unsound(self, saved)
        self.count = 0
        self.reserve(saved.facts["count"])
        for name in _FACTS:
            setattr(self, name, saved.facts[name])
        self.travelled = saved.facts.get("travelled", math.inf)  # not in older checkpoints
        self.stale = set(saved.facts["stale"])
        tables = {name: array.copy() for name, array in saved.tables.items()}
        self.origin[:] = tables["origin"]
        self.block_coord, self.block_start = tables["block_coord"], tables["block_start"]
        self.block_body = tables.get("block_body", np.zeros(len(self.block_coord), np.int32))
        self.block_sides = tables.get("block_sides", np.zeros(1, np.int64))
        none = np.zeros((0, 3), np.int64)  # of a material that joins a solve that goes on with other settings
        self.segments = [tables.get(f"runs of material {index}", none) for index in range(self.materials)]
        self.generation = next(_layouts) if saved.layout is None else saved.layout
        self.bound.clear()
        self.put(saved.fields)

    def put(self, fields: Mapping[str, np.ndarray]) -> None:
        """See `Store`."""
        for name, values in fields.items():
            self.rows(name)[:] = values

    def garbage(self, name: str, like: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """See `Store`."""
        if name == "position":  # any offset inside the block is safe for the kernels
            return (rng.uniform(-1.9, 1.9, like.shape) * self.unit).astype(like.dtype)
        return super().garbage(name, like, rng)

    # ---------------------------------------------------------------- NumPy in and out
    def unpack(self, name: str) -> np.ndarray:
        """Return a copy of an attribute, shape (count, *shape), in memory order; `position` is float64 [m].

        Raises:
            MpmNodesError: The attribute is unknown, or lived only inside the last substep.
        """
        self._refuse_stale(name)
        if name == "position":
            per_block = np.diff(self.block_start)
            corner = self.origin + self.h * (4.0 * self.block_coord + 3.5)
            position = np.repeat(corner, per_block, axis=0)
            position += self.h * (self.rows("position").T / self.unit)
            return position
        return np.array(self.rows(name).T, order="C").reshape(self.count, *self.table[name].shape)

    def box(self) -> np.ndarray:
        """Return corners of a box that holds all particles, shape (2, 3) [m]; infinity and minus infinity where there are none."""
        if not self.count:
            return np.array([[np.inf] * 3, [-np.inf] * 3])
        reach = max(self.drift, 2.0) + 2.0
        ends = np.stack([self.block_coord.min(axis=0), self.block_coord.max(axis=0)])
        return np.asarray(self.origin + self.h * (4.0 * ends + 3.5 + np.array([[-reach], [reach]])))

    def places_of(self, which: np.ndarray, parts: ArrayParts | None = None) -> np.ndarray:
        """Return places of some particles, all of them in `parts`, by their places in memory [m], shape (n, 3), float64."""
        block = np.searchsorted(self.block_start, which, side="right") - 1
        corner = self.origin + self.h * (4.0 * self.block_coord[block] + 3.5)
        return np.asarray(corner + self.h * (self.rows("position", parts)[:, which].T / self.unit))

    def _refuse_stale(self, name: str) -> None:
        if name in self.stale:
            raise MpmNodesError(
                f"attribute '{name}' was not kept by the last substep; name it in the Reads of the stage that needs it "
                "(and in its `removes` the particles, if it deletes some), or run that substep with step(keep=True)"
            )

    def pack(self, name: str, values: np.ndarray) -> None:
        """Write an attribute from shape (count, *shape).

        Positions that stay near their block keep their place in memory; others may give every particle a new one.

        Raises:
            MpmNodesError: The shape does not fit, or a position is not finite or too far away.
        """
        shape = (self.count, *((3,) if name == "position" else self.table[name].shape))
        values = np.asarray(values)
        if name in LIMITING or any(name in (*law.names, *law.loops.law.inputs) for law in self.laws):
            self.limits = None
        self.stale.discard(name)
        if values.shape != shape:
            raise MpmNodesError(f"pack '{name}': shape {values.shape} given, {shape} needed")
        if name == "position":
            self._place(values)
            return
        self.rows(name)[:] = values.reshape(self.count, self.table[name].rows).T

    def new_ids(self, count: int) -> np.ndarray:
        """Return identities for `count` new particles, shape (count,), int64."""
        self.next_id += count
        return np.arange(self.next_id - count, self.next_id, dtype=np.int64)

    def append(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add particles given by columns; allocated attributes that are missing take their rest value.

        The newcomers get block entries of their own at the end of the block table; the next sort merges them.
        """
        added = len(columns["position"])
        if not added:
            return
        bodies = columns.get(self.apart, np.zeros(added, np.int32)) if self.apart else None
        if bodies is not None and not 0 <= bodies.min() <= bodies.max() < binning.MOST_BODIES:
            raise MpmNodesError(
                f"particles have bodies {bodies.min()} to {bodies.max()}; bodies that are kept apart have numbers from 0 to "
                f"{binning.MOST_BODIES - 1}: join some, or take substeps that keep none apart"
            )
        order, blocks, start, offset = grouped(self, np.asarray(columns["position"], float), bodies)
        self.append_blocks({name: np.asarray(values)[order] for name, values in columns.items()}, blocks, start, offset)

    def append_blocks(
        self, columns: Mapping[str, np.ndarray], blocks: tuple[np.ndarray, np.ndarray], start: np.ndarray, offset: np.ndarray
    ) -> None:
        """Add particles that are grouped by block already.

        Args:
            columns: As `append` takes them, in the order of the blocks.
            blocks: Coordinates and bodies of the blocks.
            start: Particles of block q are start[q] : start[q + 1].
            offset: Fixed-point offsets from the blocks' centres, shape (added, 3).
        """
        added, (coord, body), old = len(offset), blocks, self.count
        self.reserve(old + added)
        self.count = old + added
        rest = {name: self.table[name].rest_values(added, self.dtype) for name in self.names if name not in columns}
        given = {name: np.asarray(columns.get(name, rest.get(name))) for name in self.names}
        for name, values in given.items():
            self._append(name, old, values.reshape(added, self.table[name].rows))
        self._append("position", old, offset)
        self.block_coord, self.block_body = np.concatenate([self.block_coord, coord]), np.concatenate([self.block_body, body])
        self.block_start = np.concatenate([self.block_start, old + start[1:]])
        self.retable(given["material"])

    def _append(self, name: str, first: int, values: np.ndarray) -> None:
        """Write an attribute of the particles from the place `first` on, shape (newcomers, rows)."""
        if self.residency is not None and self.residency.holds(self.kept(name)):
            device_sorting.append(self.residency, self, name, first, values)
        else:
            self.rows(name)[:, first:] = values.T

    def delete(self, dead: np.ndarray) -> None:
        """Remove the particles where the mask `dead`, shape (count,), holds."""
        if not dead.any():
            return
        keep = ~dead
        gone = np.flatnonzero(dead)
        if self.residency is not None:
            device_sorting.delete(self.residency, self, keep)
        else:
            for name in ("position", *self.names):
                if name not in self.stale:
                    close_up(self.rows(name), keep, gone)
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        self.block_start = kept_before[self.block_start].astype(np.int64)
        # a run may become empty but keeps its row: the grid's tables name it
        self.segments = [np.column_stack([kept_before[runs[:, :2]], runs[:, 2]]).astype(np.int64) for runs in self.segments]
        self.count = int(keep.sum())
        self.limits = None
        self.sorted = False
        self.bound.clear()

    def reserve(self, count: int) -> None:
        """Make room for `count` particles."""
        if self._memory.fits(count):
            return
        arrays = [self.kept(name) for name in ("position", *self.names)]
        for array in arrays:
            self._here(array)
        self._memory.reserve(count, self.count)
        self.bound.clear()
        if self.residency is not None:
            self.residency.forget(arrays)

    def _place(self, position: np.ndarray) -> None:
        """Set all positions; the block table is rewritten only when a particle leaves its tile."""
        block = np.repeat(self.block_coord, np.diff(self.block_start), axis=0)
        offset = (np.asarray(position, float) - self.origin) / self.h - 3.5 - 4.0 * block
        largest = float(np.abs(offset).max(initial=0.0))
        if largest < weights.DRIFT_LIMIT["cubic"] or largest <= self.drift:  # NaN is neither
            self.rows("position")[:] = np.rint(offset * self.unit).T
            self.drift = max(self.drift, largest)
            return
        bodies = self.unpack(self.apart) if self.apart else None
        order, (self.block_coord, self.block_body), self.block_start, offset = grouped(self, position, bodies)
        for name in self.names:
            self.pack(name, self.unpack(name)[order])
        self.rows("position")[:] = offset.T
        self.retable()

    def retable(self, newcomers: np.ndarray | None = None) -> None:
        """Note new blocks or materials: the grid's tables no longer fit, and the runs of each material are found again.

        Args:
            newcomers: Materials of the last particles, where those before them keep their runs.
        """
        self.sorted = False
        self.generation = next(_layouts)
        self.limits = None
        self.bound.clear()
        material = self.seen("material")[: self.count] if newcomers is None else newcomers
        first = self.count - len(material)
        starts = self.block_start[np.searchsorted(self.block_start, first) :]
        cuts = np.unique(np.concatenate([starts, np.flatnonzero(np.diff(material)) + 1 + first]))
        runs = np.stack([cuts[:-1], cuts[1:], np.searchsorted(self.block_start, cuts[:-1], side="right") - 1], 1)
        of = material[runs[:, 0] - first]
        found = [runs[of == m] for m in range(self.materials)]
        if newcomers is not None:
            found = [np.concatenate(both) for both in zip(self.segments, found, strict=True)]
        self.segments = [np.ascontiguousarray(each) for each in found]

    # ---------------------------------------------------------------- sorting
    def sort(self) -> None:
        """Sort by (block, material, cell); stable, so equal input gives equal output for any number of threads."""
        if self.residency is None:
            order = order_of(self)
            self._memory.move(order.source, order.home, self.count, self.shift, self.stale)
            layout = order.layout
        else:
            layout = device_sorting.sort(self.residency, self)
        self.block_coord, self.block_body, self.block_start = layout.coord, layout.body, layout.start
        self.segments = layout.segments
        self.drift, self.sorted, self.sort_age = 2.0, True, 0
        self.generation = next(_layouts)
        self.bound.clear()
