"""Checked mode: catch a stage whose declaration of reads and writes is not true.

Every stage runs twice from the same state, with all that it does not declare to read filled with different garbage. Its declared
outputs must come out bit for bit equal, and what it does not declare to write must come out untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore

ID = ("particles", "id")
STRUCTURE = frozenset(("id", "material"))
"""Never filled with garbage: sorting and the choice of the law hang on them."""


class LyingDeclaration(MpmNodesError):
    """A stage reads or writes an array that it does not declare."""


def run_checked(planned: Any, call: Callable[[], None], particles: ParticleStore, grid: GridStore, report: dict[str, Any]) -> None:
    """Run one planned stage twice and compare; afterwards state and report are those of one plain run.

    A stage that declares to write "id" may add particles: what they have of undeclared attributes they copied, and is not compared.

    Raises:
        LyingDeclaration: The stage reads or writes what it does not declare.
    """
    before, facts = _Saved(particles, grid), dict(report)
    reads, writes = planned.reads, planned.writes
    outputs: list[dict[Any, np.ndarray]] = []
    for seed in (1, 2):
        before.restore()
        garbage = before.fill(seed, keep=reads)
        call()
        report.clear()
        report.update(facts)
        after = _Saved(particles, grid)
        old, rows = after.rows_in(before)  # a stage may delete particles, and give them new places in memory
        if not old.all() and ID not in writes:
            raise _writes_secretly(planned, ID)
        for key, filled in garbage.items():
            if key not in writes and not _same(_taken(key, filled, rows), _taken(key, after.arrays[key], old)):
                raise _writes_secretly(planned, key)
        outputs.append({ID: after.arrays[ID], **{key: values for key, values in after.arrays.items() if key in writes},
                        **{(*key, "of new particles"): values[:, ~old] for key, values in after.arrays.items()
                           if key in reads - writes and key[0] == "particles"}})
    for key, first in outputs[0].items():
        if not _same(first, outputs[1][key]):
            what = "choice of particles to delete or make" if key == ID else f"{key[0]}.{key[1]} {' '.join(key[2:])}".strip()
            unread = sorted(f"{domain}.{name}" for domain, name in before.arrays if (domain, name) not in reads)
            raise LyingDeclaration(
                f"stage {planned.id}: its {what} depends on arrays that it does not declare to read (one of "
                f"{', '.join(unread)}); add them to Reads(...)")
    before.restore()
    call()


def _writes_secretly(planned: Any, key: tuple[str, str]) -> LyingDeclaration:
    domain, name = key
    return LyingDeclaration(f"stage {planned.id}: writes {domain}.{name} without declaring it; add Writes({name!r}) to the stage")


def _taken(key: tuple[str, str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the columns of the given particles from an array of all of them; grid arrays as they are."""
    return values[:, rows] if key[0] == "particles" else values


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


class _Saved:
    """Copy of everything that a stage can touch, keyed by (domain, array)."""

    def __init__(self, particles: ParticleStore, grid: GridStore) -> None:
        self.particles, self.grid = particles, grid
        self.count, self.drift, self.sorted = particles.count, particles.drift, particles.sorted
        self.generation, self.segments = particles.generation, particles.segments
        self.block_start = particles.block_start.copy()
        self.block_coord = particles.block_coord.copy()
        self.counters = particles.next_id, particles.resampling_age, particles.keep_next
        self.arrays: dict[tuple[str, str], np.ndarray] = {}
        for name in ("position", *particles.names):
            self.arrays["particles", name] = particles.rows(name).copy()
        for name in GridStore.COMPONENTS:
            self.arrays["grid", name] = grid.unpack(name)

    def rows_in(self, before: _Saved) -> tuple[np.ndarray, np.ndarray]:
        """Return which particles were in `before`, as a mask, and where those stood there."""
        mine, its = self.arrays[ID][0], before.arrays[ID][0]
        order = np.argsort(its)
        rows = order[np.minimum(np.searchsorted(its, mine, sorter=order), len(its) - 1)] if len(its) else np.zeros(len(mine), int)
        old = its[rows] == mine if len(its) else np.zeros(len(mine), bool)
        return old, rows[old]

    def restore(self) -> None:
        """Put everything back."""
        self.particles.count, self.particles.drift, self.particles.sorted = self.count, self.drift, self.sorted
        self.particles.generation, self.particles.segments = self.generation, self.segments
        self.particles.block_start, self.particles.block_coord = self.block_start.copy(), self.block_coord.copy()
        self.particles.next_id, self.particles.resampling_age, self.particles.keep_next = self.counters
        self.put(self.arrays)

    def put(self, arrays: dict[tuple[str, str], np.ndarray]) -> None:
        """Write some arrays back."""
        for (domain, name), values in arrays.items():
            if domain == "grid":
                self.grid.pack(name, values)
            else:
                self.particles.rows(name)[:] = values

    def fill(self, seed: int, keep: frozenset[tuple[str, str]]) -> dict[tuple[str, str], np.ndarray]:
        """Fill every array outside `keep` with garbage; return what each array now holds."""
        rng = np.random.default_rng(seed)
        now = {}
        for key, values in self.arrays.items():
            if key in keep or key[1] in STRUCTURE:
                now[key] = values
            elif key == ("particles", "position"):  # any offset inside the block is safe for the kernels
                now[key] = (rng.uniform(-1.9, 1.9, values.shape) * self.particles.unit).astype(values.dtype)
            else:
                now[key] = rng.uniform(0.5, 1.5, values.shape).astype(values.dtype)
        self.put(now)
        return now
