"""Solver state: the particles as sorted structure-of-arrays rows.

Storage belongs to this room and is laid out for the kernels. Stages reach it through lanes (`array`), everybody else through
`unpack` and `pack`, which give and take NumPy arrays by attribute name. Allocated once, grown by doubling.

Positions are integers: block coordinates and an offset from the block's centre of 2^-28 cells (2^-56 in float64), so that
precision does not depend on the distance from the origin and slow creep is not lost.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES, Field, Material, MpmNodesError
from mpm_nodes.kernels.compile.jit import thread_count
from mpm_nodes.kernels.transfers import binning, motion, weights
from mpm_nodes.solver.stores import Saved, Store

PAD = 64
"""Elements behind every array that a sixteen-lane access may touch."""

ROW_SPREAD, ROW_OFFSET = 1024, 208
"""Strides of large solves are 1024 n + 208: 13 lines past a page in float32, so that 64 rows share none."""

FEW = 256
"""Deleted particles up to this number are closed up one by one."""

LINE, PAGE = 64, 4096
_layouts = itertools.count(1)
_first_lines = itertools.cycle(range(0, PAGE // LINE, 5))


def aligned(count: int, dtype: Any) -> np.ndarray:
    """Return a zeroed 1-D array whose data starts on a cache line.

    Large arrays start at different lines of a page, since a kernel reads dozens of rows side by side: those with equal
    addresses modulo a page would drive each other out of the first-level cache.
    """
    dtype = np.dtype(dtype)
    size = count * dtype.itemsize
    # not np.zeros: NumPy asks for huge pages for np.empty only, and they speed up the sort's scattered reads
    raw = np.empty(size + PAGE + LINE, np.uint8)
    raw.fill(0)
    start = -raw.ctypes.data % LINE + (next(_first_lines) * LINE if size >= 16 * PAGE else 0)
    return raw[start : start + size].view(dtype)


LIMITING = ("velocity", "velocity_gradient", "stiffness_scale", "material")
"""What the limits of dt hang on, beside the state of the laws."""

_FACTS = ("count", "next_id", "drift", "sorted", "sort_age", "limits")
"""What a store of particles saves beside arrays and stale names."""


@dataclass(frozen=True)
class BoundLaw:
    """A material of this solve, ready for kernels.

    Attributes:
        index: Its place among the materials.
        label: What messages call the material.
        loops: Compiled loops of its law.
        coefficients: Coefficients of the law and behind them the material's own viscosity [Pa s], float64.
        density: [kg/m^3].
        viscosity: The law's and the material's own together [Pa s].
        names: State attributes, in the law's order.
        tear_threshold: Plastic distortion above which the material tears; infinity where it never does.
        recovery_time: Time in which plastic distortion is forgotten [s]; infinity where it never is.
        material: The material, for what does not change over time.
    """

    index: int
    label: str
    loops: Any
    coefficients: np.ndarray
    density: float
    viscosity: float
    names: tuple[str, ...]
    tear_threshold: float = math.inf
    recovery_time: float = math.inf
    material: Material | None = None

    def state(self, particles: ParticleStore) -> list[np.ndarray]:
        """Return the law's state arrays."""
        return [particles.array(name) for name in self.names]

    @functools.cached_property
    def _longest_step(self) -> Callable[..., Any] | None:
        return self.loops.law.function("longest_step")

    def longest_step(self, particles: ParticleStore, segments: np.ndarray) -> float:
        """Return the longest substep [s] that the law itself allows its particles, infinity where it says nothing."""
        function = self._longest_step
        if function is None:
            return math.inf
        rows = np.concatenate([np.arange(begin, end) for begin, end, _ in segments])
        values = [particles.rows(name)[:, rows].astype(float) for name in self.names]
        state = tuple(tuple(value) if len(value) > 1 else value[0] for value in values)
        scale = particles.rows("stiffness_scale")[0, rows].astype(float) if "stiffness_scale" in particles.names else 1.0
        stiff = self.loops.law.stiffness
        coefficients = tuple(float(c) * (scale if n in stiff else 1.0) for n, c in enumerate(self.coefficients[:-1]))
        return float(np.min(function(state, coefficients, particles.h)))


class ParticleStore(Store):
    """Particles of one solve.

    Attributes:
        dtype: float32 or float64.
        count: Number of particles.
        stride: Distance of rows in every attribute array.
        h: Cell size [m].
        origin: World position of grid node (0, 0, 0) [m], float64, shape (3,).
        shift: Fixed-point bits of `offset`.
        offset: Fixed-point offsets, three rows.
        block_coord: Shape (blocks, 3), int32.
        block_body: Body of each block's particles, shape (blocks,), int32: 0 everywhere unless `apart`.
        apart: Whether bodies are kept apart: particles with different values of `body` share no block, nor a node of the grid.
        block_start: Shape (blocks + 1,), int64; particles of block q are block_start[q] : block_start[q + 1].
        laws: Per material, its law.
        segments: Per material, the (begin, end, block) of its runs, shape (runs, 3), int64.
        stale: Attributes whose rows hold nothing: a fused stage used and dropped them inside the last substep.
        limits: Per material (|v|, |grad v|, wave speed) as the last substep left them, or None when they must be measured.
        drift: Largest |offset| in cells.
        generation: Number of the block tables, never given twice in a process: what was built for others does not fit.
        bound: What callers built for the arrays as they lie; emptied when one of them moves, or particles come or go.
        next_id: Identity of the next particle that comes.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        cell_size: float,
        origin: Any = (0, 0, 0),
        dtype: Any = np.float32,
        materials: int = 1,
        own_fields: Iterable[Field] = (),
        apart: bool = False,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.table = {**ATTRIBUTES, **{field.name: field for field in own_fields}}
        self.h = float(cell_size)
        self.origin = np.asarray(origin, float).copy()
        self.materials = materials
        single = self.dtype == np.float32
        self.shift = weights.SHIFT32 if single else weights.SHIFT64
        self._int = np.dtype(np.int32 if single else np.int64)
        self.count = 0
        self.stride = 0
        self.names = tuple(
            dict.fromkeys(["velocity", "mass", "volume", "id", "material", *(name for name in names if name != "position")])
        )
        self._arrays = {name: aligned(PAD, self._dtype_of(name)) for name in self.names}
        self.offset = aligned(PAD, self._int)
        self._spare: dict[str, np.ndarray] = {}
        self.block_coord, self.block_body = np.zeros((0, 3), np.int32), np.zeros(0, np.int32)
        self.block_start = np.zeros(1, np.int64)
        self.apart = "body" in self.names and apart
        self.segments = [np.zeros((0, 3), np.int64) for _ in range(materials)]
        self.stale: set[str] = set()
        self.bound: dict[Any, Any] = {}
        self.limits: list[tuple[float, float, float]] | None = None
        self._ranges = np.zeros((0, 3), np.int64)
        self._ranged: np.ndarray | None = None
        self.laws: tuple[BoundLaw, ...] = ()
        self.drift = 0.0
        self.sorted = True
        self.sort_age = 0
        self.generation = next(_layouts)
        self.next_id = 0

    # ---------------------------------------------------------------- what kernels see
    def array(self, name: str) -> np.ndarray:
        """Return the flat rows of an attribute, row r at [r * stride : r * stride + count]."""
        try:
            return self._arrays[name]
        except KeyError:
            raise MpmNodesError(
                f"attribute '{name}' is not allocated in this solve (it has {', '.join(self.names)}); "
                f"declare it in the stage's Reads or Writes"
            ) from None

    def rows(self, name: str) -> np.ndarray:
        """Return a view of an attribute, or of the fixed-point offsets for "position": shape (rows, count), in memory order."""
        array, rows = (self.offset, 3) if name == "position" else (self.array(name), self.table[name].rows)
        return array[: rows * self.stride].reshape(rows, self.stride)[:, : self.count]

    def optional(self, name: str) -> np.ndarray:
        """Return the rows of an attribute, or an empty array of the solve's float type when nobody brought it."""
        return self._arrays.get(name, np.empty(0, self.dtype))

    def geometry(self) -> tuple[np.ndarray, int, int, float]:
        """Return what every transfer kernel takes first: offsets, their stride, fixed-point bits and unit."""
        return self.offset, self.stride, self.shift, 1.0 / self.unit

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
        for (law, _), limits in zip(self.runs(), self.limits, strict=True):
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
        arrays = [*self._arrays.values(), *self._spare.values(), self.offset]
        return sum(array.nbytes for array in arrays)

    def _dtype_of(self, name: str) -> np.dtype:
        return self.table[name].dtype(self.dtype)

    # ---------------------------------------------------------------- save and restore
    def kind(self) -> dict[str, Any]:
        """See `Store`."""
        return {"attributes": list(self.names), "precision": self.dtype.name, "cell size": self.h}

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """See `Store`. Memory order, sort age and measured limits are part of it."""
        facts = {name: getattr(self, name) for name in _FACTS} | {"stale": sorted(self.stale)}
        fields = {name: self.rows(name) for name in ("position", *self.names) if name not in skip}
        tables = {"origin": self.origin, "block_coord": self.block_coord, "block_start": self.block_start}
        tables |= {"block_body": self.block_body} if self.apart else {}
        tables |= {f"runs of material {index}": runs for index, runs in enumerate(self.segments)}
        if copy:
            fields, tables = ({name: array.copy() for name, array in part.items()} for part in (fields, tables))
        return Saved(facts, fields, tables, self.generation)

    def restore(self, saved: Saved) -> None:
        """See `Store`."""
        self.count = 0
        self.reserve(saved.facts["count"])
        for name in _FACTS:
            setattr(self, name, saved.facts[name])
        self.stale = set(saved.facts["stale"])
        tables = {name: array.copy() for name, array in saved.tables.items()}
        self.origin[:] = tables["origin"]
        self.block_coord, self.block_start = tables["block_coord"], tables["block_start"]
        self.block_body = tables.get("block_body", np.zeros(len(self.block_coord), np.int32))
        self.segments = [tables[f"runs of material {index}"] for index in range(self.materials)]
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
        if name in LIMITING or any(name in law.names for law in self.laws):
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
        bodies = columns.get("body", np.zeros(added, np.int32)) if self.apart else None
        if bodies is not None and not 0 <= bodies.min() <= bodies.max() < binning.MOST_BODIES:
            raise MpmNodesError(
                f"particles have bodies {bodies.min()} to {bodies.max()}; bodies that are kept apart have numbers from 0 to "
                f"{binning.MOST_BODIES - 1}: join some, or leave collide_bodies out"
            )
        order, (coord, body), start, offset = self._grouped(np.asarray(columns["position"], float), bodies)
        old = self.count
        self.reserve(old + added)
        self.count = old + added
        for name in self.names:
            attribute = self.table[name]
            values = columns.get(name)
            values = attribute.rest_values(added, self.dtype) if values is None else np.asarray(values)[order]
            self.rows(name)[:, old:] = values.reshape(added, attribute.rows).T
        self.rows("position")[:, old:] = offset.T
        self.block_coord, self.block_body = np.concatenate([self.block_coord, coord]), np.concatenate([self.block_body, body])
        self.block_start = np.concatenate([self.block_start, old + start[1:]])
        self.retable()

    def delete(self, dead: np.ndarray) -> None:
        """Remove the particles where the mask `dead`, shape (count,), holds."""
        if not dead.any():
            return
        keep = ~dead
        gone = np.flatnonzero(dead)
        for name in ("position", *self.names):
            if name in self.stale:
                continue
            rows = self.rows(name)
            if len(gone) > FEW:
                rows[:, : keep.sum()] = rows[:, keep]
                continue
            # a few are closed up in place, at a quarter of the time
            ends = [*gone[1:], self.count]
            for row in rows:
                for n, (first, end) in enumerate(zip(gone, ends, strict=True)):
                    row[first - n : end - n - 1] = row[first + 1 : end]
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
        if count + PAD <= self.stride:
            return
        stride = -(-max(count + PAD, min(2 * self.stride, count * 5 // 4 + PAD)) // 16) * 16
        if stride >= 16 * ROW_SPREAD:  # rows at different lines of a page, for the reason given in `aligned`
            stride += -(stride - ROW_OFFSET) % ROW_SPREAD
        self._arrays = {name: self._resized(name, stride) for name in self.names}
        offset = aligned(3 * stride + PAD, self._int)
        for axis in range(3):
            offset[axis * stride : axis * stride + self.count] = self.offset[axis * self.stride : axis * self.stride + self.count]
        self.offset, self.stride = offset, stride
        self._spare = {}
        self.bound.clear()

    def _resized(self, name: str, stride: int) -> np.ndarray:
        rows, old = self.table[name].rows, self._arrays[name]
        new = aligned(rows * stride + PAD, old.dtype)
        for r in range(rows):
            new[r * stride : r * stride + self.count] = old[r * self.stride : r * self.stride + self.count]
        return new

    def _grouped(
        self, position: np.ndarray, bodies: np.ndarray | None
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        """Group positions by block: order, coordinates and bodies of the blocks, starts, fixed-point offsets in that order."""
        if not np.isfinite(position).all():
            bad = int(np.flatnonzero(~np.isfinite(position).all(axis=1))[0])
            raise MpmNodesError(f"position of particle {bad} is {position[bad]}; positions must be finite numbers [m]")
        cells = (position - self.origin) / self.h - 1.5
        block = np.floor(cells / 4.0)
        if len(block) and np.abs(block).max() >= binning.FARTHEST - 1:
            raise MpmNodesError(
                f"a particle lies {np.abs(cells).max() * self.h:.3g} m from the solve's origin; at most "
                f"{4 * binning.FARTHEST * self.h:.3g} m are allowed at a cell size of {self.h:g} m; raise the cell size"
            )
        offset = np.rint((cells - 4.0 * block - 2.0) * self.unit).astype(self._int)
        packed = binning.pack_coord(*block.astype(np.int64).T, 0 if bodies is None else bodies)
        unique, start_of = np.unique(packed, return_inverse=True)
        order = np.argsort(start_of, kind="stable")
        coord, body = np.zeros((len(unique), 3), np.int32), np.zeros(len(unique), np.int32)
        binning.unpack_coord(unique, coord, body)
        start = np.concatenate([[0], np.cumsum(np.bincount(start_of, minlength=len(unique)))]).astype(np.int64)
        return order, (coord, body), start, offset[order]

    def _place(self, position: np.ndarray) -> None:
        """Set all positions; the block table is rewritten only when a particle leaves its tile."""
        block = np.repeat(self.block_coord, np.diff(self.block_start), axis=0)
        offset = (np.asarray(position, float) - self.origin) / self.h - 3.5 - 4.0 * block
        largest = float(np.abs(offset).max(initial=0.0))
        if largest < weights.DRIFT_LIMIT["cubic"] or largest <= self.drift:  # NaN is neither
            self.rows("position")[:] = np.rint(offset * self.unit).T
            self.drift = max(self.drift, largest)
            return
        bodies = self.unpack("body") if self.apart else None
        order, (self.block_coord, self.block_body), self.block_start, offset = self._grouped(position, bodies)
        for name in self.names:
            self.pack(name, self.unpack(name)[order])
        self.rows("position")[:] = offset.T
        self.retable()

    def retable(self) -> None:
        """Note new blocks or materials: the grid's tables no longer fit, and the runs of each material are found anew."""
        self.sorted = False
        self.generation = next(_layouts)
        self.limits = None
        self.bound.clear()
        material = self.array("material")[: self.count]
        cuts = np.unique(np.concatenate([self.block_start, np.flatnonzero(np.diff(material)) + 1]))
        runs = np.stack([cuts[:-1], cuts[1:], np.searchsorted(self.block_start, cuts[:-1], side="right") - 1], 1)
        self.segments = [np.ascontiguousarray(runs[material[runs[:, 0]] == m]) for m in range(self.materials)]

    # ---------------------------------------------------------------- sorting
    def sort(self) -> None:
        """Sort by (block, material, cell); stable, so equal input gives equal output for any number of threads."""
        blocks, count = self.block_count, self.count
        place = np.empty(count, np.int32)
        moved = np.empty((blocks, binning.MOVES), np.int32)
        binning.locate(self.offset, self.stride, self.shift, self.block_start, blocks, place, moved)
        packed = np.empty(int((moved > 0).sum()), np.int64)
        listed = binning.list_targets(self.block_coord, self.block_body, blocks, moved, packed)
        unique, inverse = np.unique(packed[:listed], return_inverse=True)
        target = np.full((blocks, binning.MOVES), -1, np.int32)
        target[moved > 0] = inverse
        chunks = max(1, min(thread_count(), blocks))
        marks = np.searchsorted(self.block_start, np.linspace(0, count, chunks + 1)[1:-1])
        chunk_block = np.concatenate([[0], marks, [blocks]]).astype(np.int64)
        bins = len(unique) * self.materials * 64
        counts, key = np.empty((chunks, bins), np.int32), np.empty(count, np.int32)
        material = self.array("material")
        binning.histogram(self.block_start, chunk_block, chunks, place, target, material, self.materials, key, counts)
        new_start = np.empty(len(unique) + 1, np.int64)
        runs = np.empty(len(unique) * self.materials + 1, np.int64)
        binning.scan(counts, chunks, len(unique), self.materials, new_start, runs)
        source, home = np.empty(count, np.int32), np.empty(count, np.int32)
        binning.permutation(self.block_start, chunk_block, chunks, place, key, counts, source, home)
        self._move(source, home)
        self.block_coord, self.block_body = np.empty((len(unique), 3), np.int32), np.empty(len(unique), np.int32)
        binning.unpack_coord(unique, self.block_coord, self.block_body)
        self.block_start = new_start
        begin, end = runs[:-1].reshape(-1, self.materials), runs[1:].reshape(-1, self.materials)
        self.segments = [
            np.stack([b, e, np.arange(len(b))], 1)[e > b].astype(np.int64) for b, e in zip(begin.T, end.T, strict=True)
        ]
        self.drift, self.sorted, self.sort_age = 2.0, True, 0
        self.generation = next(_layouts)
        self.bound.clear()

    def _move(self, source: np.ndarray, home: np.ndarray) -> None:
        for name in self.names:
            if name in self.stale:
                continue
            old = self._arrays[name]
            new = self._take_spare(old)
            bits = np.int32 if old.itemsize == 4 else np.int64  # one compiled loop for floats and integers
            binning.move_rows(old.view(bits), self.stride, new.view(bits), self.stride, self.table[name].rows, source, self.count)
            self._arrays[name] = new
            self._spare[self._spare_key(old)] = old
        new = self._take_spare(self.offset)
        binning.move_offsets(self.offset, self.stride, new, self.stride, source, home, self.count, 4 << self.shift)
        self._spare[self._spare_key(self.offset)] = self.offset
        self.offset = new

    @staticmethod
    def _spare_key(array: np.ndarray) -> str:
        return f"{array.dtype} {array.size}"

    def _take_spare(self, like: np.ndarray) -> np.ndarray:
        spare = self._spare.pop(self._spare_key(like), None)
        return aligned(like.size, like.dtype) if spare is None else spare
