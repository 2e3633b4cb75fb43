"""Checked mode: catch a stage whose declaration of reads and writes is not true.

Every stage runs twice from the same state, with all that it does not declare to read filled with different garbage. Its declared
outputs must come out bit for bit equal, and what it does not declare to write must come out untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mpm_nodes.data import MpmNodesError, Report, StepContext, domain_named
from mpm_nodes.graph.plan.fusion import FusedStage
from mpm_nodes.graph.plan.substeps import PlannedStage
from mpm_nodes.solver.stores import Saved, Store

Array = tuple[str, str]
EVERY = slice(None)


class LyingDeclaration(MpmNodesError):
    """A stage reads or writes an array that it does not declare."""


def run_checked(
    planned: PlannedStage | FusedStage, call: Callable[[], None], stores: Mapping[str, Store], step: StepContext
) -> None:
    """Run one planned stage twice and compare; afterwards state and report are those of one plain run.

    A stage that declares to write a domain's identity may add elements: what they have of undeclared fields they copied, and is
    not compared.

    Raises:
        LyingDeclaration: The stage reads or writes what it does not declare.
    """
    report = step.report
    before, facts = _Moment(stores), report.save()
    further = {name for part in planned.parts for name in step.further_reads.get(part.declaration.id, ())}
    reads, writes = planned.reads | {("particles", name) for name in further}, planned.writes
    outputs: list[dict[Any, np.ndarray]] = []
    for seed in (1, 2):
        before.restore()
        report.told.clear()
        garbage = before.fill(seed, keep=reads)
        call()
        _check_facts(planned, report)
        report.restore(facts)
        after = _Moment(stores)
        same = after.elements_of(before)  # a stage may remove elements, and give them new places in memory
        for place, (old, _) in same.items():
            name = _identity(place)
            if not old.all() and (place, name) not in writes:
                raise _writes_secretly(planned, (place, name))
        for key, filled in garbage.items():
            stayed, stood = same.get(key[0], (EVERY, EVERY))
            if key not in writes and not _same(filled[..., stood], after.arrays[key][..., stayed]):
                raise _writes_secretly(planned, key)
        outputs.append(_outputs(after, same, reads, writes))
    for key, first in outputs[0].items():
        if not _same(first, outputs[1][key]):
            elements = domain_named(key[0]).identity == key[1]
            what = f"choice of {key[0]} to delete or make" if elements else f"{key[0]}.{key[1]} {' '.join(key[2:])}".strip()
            unread = sorted(f"{place}.{name}" for place, name in before.arrays if (place, name) not in reads)
            raise LyingDeclaration(
                f"stage {planned.id}: its {what} depends on arrays that it does not declare to read (one of "
                f"{', '.join(unread)}); add them to Reads(...)"
            )
    before.restore()
    call()


def _check_facts(planned: PlannedStage | FusedStage, report: Report) -> None:
    """Refuse what the stage told without declaring it."""
    declared = {group.event for part in planned.parts for group in part.declaration.facts}
    for event in sorted(report.told - declared):
        raise LyingDeclaration(f"stage {planned.id}: tells {event} without declaring it; add its Facts to @stage(facts=...)")


def _outputs(
    after: _Moment, same: Mapping[str, tuple[np.ndarray, np.ndarray]], reads: frozenset[Array], writes: frozenset[Array]
) -> dict[Any, np.ndarray]:
    """Return what has to come out equal twice: identities, what is written, and what new elements have of fields that are read."""
    identities = {(place, _identity(place)) for place in same}
    new = {
        (*key, f"of new {key[0]}"): values[..., ~same[key[0]][0]]
        for key, values in after.arrays.items()
        if key in reads - writes and key[0] in same
    }
    # first which elements there are: where that differs, all else does too
    chosen = {key: after.arrays[key] for key in sorted(identities)}
    return {**chosen, **{key: values for key, values in after.arrays.items() if key in writes}, **new}


def _writes_secretly(planned: PlannedStage | FusedStage, key: Array) -> LyingDeclaration:
    place, name = key
    return LyingDeclaration(f"stage {planned.id}: writes {place}.{name} without declaring it; add Writes({name!r}) to the stage")


def _identity(place: str) -> str:
    """Return the field that tells a domain's elements apart, "" where none does."""
    return domain_named(place).identity or ""


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


class _Moment:
    """Everything that a stage can touch as it is at a moment, keyed by (domain, field)."""

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self.stores = stores
        self.saved: dict[str, Saved] = {place: store.save() for place, store in stores.items()}
        self.arrays = {(place, name): values for place, saved in self.saved.items() for name, values in saved.fields.items()}

    def elements_of(self, before: _Moment) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return per domain that tells its elements apart which of them were in `before`, as a mask, and where those stood."""
        found = {}
        for place in {place for place, _ in self.arrays}:
            key = place, _identity(place)
            if key in self.arrays and key in before.arrays:
                found[place] = _places(self.arrays[key][0], before.arrays[key][0])
        return found

    def restore(self) -> None:
        """Put everything back."""
        for place, store in self.stores.items():
            store.restore(self.saved[place])

    def fill(self, seed: int, keep: frozenset[Array]) -> dict[Array, np.ndarray]:
        """Fill every array outside `keep` with garbage; return what each array now holds."""
        rng = np.random.default_rng(seed)
        now: dict[Array, np.ndarray] = {}
        for place, store in self.stores.items():
            if not store.names:
                continue
            structural = {name for name, field in domain_named(place).fields.items() if field.structural}
            spared = structural | {name for at, name in keep if at == place}
            fields = self.saved[place].fields
            store.put({name: store.garbage(name, values, rng) for name, values in fields.items() if name not in spared})
            now |= {(place, name): values for name, values in store.save().fields.items()}
        return now


def _places(mine: np.ndarray, its: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which identities of `mine` are in `its`, as a mask, and where those stand there."""
    if not len(its):
        return np.zeros(len(mine), bool), np.zeros(0, int)
    order = np.argsort(its)
    rows = order[np.minimum(np.searchsorted(its, mine, sorter=order), len(its) - 1)]
    old = its[rows] == mine
    return old, rows[old]
