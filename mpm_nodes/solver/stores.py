"""The state of a domain in a solve: what every store can do, and a plain one for domains that need no more.

There is one way to save and restore: checkpoints write what `Store.save` gives to disk, the trials of `substeps="auto"` and
checked mode put it back in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpm_nodes.data import Domain, Field, MpmNodesError

__all__ = ["Saved", "Store", "TableStore", "make_store"]


@dataclass
class Saved:
    """What a store held at a moment.

    Attributes:
        facts: JSON-able facts.
        fields: Arrays of the fields by name, elements along the last axis.
        tables: Further arrays by name.
        layout: Number of the layout that other stores' tables were built for; None in another process.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    tables: dict[str, np.ndarray] = field(default_factory=dict)
    layout: int | None = None

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON-able facts and arrays by name."""
        arrays = {f"field {name}": values for name, values in self.fields.items()}
        return self.facts, {**arrays, **{f"table {name}": values for name, values in self.tables.items()}}

    @classmethod
    def from_arrays(cls, facts: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Saved:
        """Return what `to_arrays` described."""
        parts: dict[str, dict[str, np.ndarray]] = {"field": {}, "table": {}}
        for name, values in arrays.items():
            kind, _, rest = name.partition(" ")
            parts[kind][rest] = values
        return cls(facts, parts["field"], parts["table"])


class Store:
    """State of one domain in a solve. By itself it holds no arrays, and there is nothing to save.

    Attributes:
        domain: What it is the state of. Where the class has it, stages may write the class for the type of their port.
        names: Fields that it holds as arrays.
        lasts: Whether it holds something from one substep to the next besides fields.
    """

    domain: Domain
    names: tuple[str, ...] = ()
    lasts: bool = False

    def kind(self) -> dict[str, Any]:
        """Return by what it is called all that has to be the same in a store that restores what this one saved."""
        return {}

    def begin_substep(self) -> None:
        """Forget what lives for one substep."""

    def forget_past(self) -> None:
        """Forget what is kept of earlier substeps to save work: frames and trials begin without, as a cook that resumes does."""

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """Return what it holds now; `restore` puts it back bit for bit.

        Args:
            skip: Fields to leave out.
            copy: Whether arrays are copies; else they may be views until the next substep.
        """
        return Saved()

    def restore(self, saved: Saved) -> None:
        """Put back what `save` gave; fields that were left out keep what they have, where their number allows it."""

    def put(self, fields: Mapping[str, np.ndarray]) -> None:
        """Write fields in the layout in which `save` gives them, without any other effect."""

    def garbage(self, name: str, like: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return values for a field that no stage should read, in the layout of `like`: checked mode fills it with them."""
        return rng.uniform(0.5, 1.5, like.shape).astype(like.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return 0


class TableStore(Store):
    """Fields as arrays of one length, rows of components by elements: the store of a domain that declares no other.

    Args:
        domain: The domain.
        fields: Fields to allocate, by name.
        stores: Stores of the domains before it; that of the particles gives the float type.

    Attributes:
        count: Number of elements.
        table: The fields by name.
    """

    def __init__(self, domain: Domain, fields: Mapping[str, Field], stores: Mapping[str, Any]) -> None:
        self.domain, self.table, self.count = domain, dict(fields), 0
        self.dtype = np.dtype(stores["particles"].dtype)
        self.names = tuple(name for name, each in fields.items() if each.kind != "object")
        self._arrays = {name: np.zeros((self.table[name].rows, 0), self.table[name].dtype(self.dtype)) for name in self.names}

    def kind(self) -> dict[str, Any]:
        """See `Store`."""
        return {"fields": list(self.names), "precision": self.dtype.name}

    def resize(self, count: int) -> None:
        """Make it hold `count` elements: the first ones stay, new ones are at rest."""
        for name, old in self._arrays.items():
            each = self.table[name]
            new = np.empty((each.rows, count), old.dtype)
            new[:] = each.rest_values(1, self.dtype).reshape(each.rows, 1)
            both = min(count, self.count)
            new[:, :both] = old[:, :both]
            self._arrays[name] = new
        self.count = count

    def rows(self, name: str) -> np.ndarray:
        """Return a field's rows, shape (components, count); writing to it changes the field."""
        if name not in self._arrays:
            raise MpmNodesError(
                f"field '{name}' of {self.domain.name} is not allocated in this solve (it has {', '.join(self.names)}); "
                f"declare it in the stage's Reads or Writes"
            )
        return self._arrays[name]

    def unpack(self, name: str) -> np.ndarray:
        """Return a copy of a field, shape (count, *shape)."""
        return np.array(self.rows(name).T, order="C").reshape(self.count, *self.table[name].shape)

    def pack(self, name: str, values: Any) -> None:
        """Write a field from shape (count, *shape).

        Raises:
            MpmNodesError: The shape does not fit.
        """
        values, shape = np.asarray(values), (self.count, *self.table[name].shape)
        if values.shape != shape:
            raise MpmNodesError(f"pack '{name}' of {self.domain.name}: shape {values.shape} given, {shape} needed")
        self.rows(name)[:] = values.reshape(self.count, -1).T

    def begin_substep(self) -> None:
        """See `Store`."""
        if self.domain.begins_empty:
            self.resize(0)

    def save(self, skip: Collection[str] = (), *, copy: bool = True) -> Saved:
        """See `Store`."""
        fields = {name: self.rows(name) for name in self.names if name not in skip}
        return Saved({"count": self.count}, {name: rows.copy() if copy else rows for name, rows in fields.items()})

    def restore(self, saved: Saved) -> None:
        """See `Store`."""
        self.resize(saved.facts["count"])
        self.put(saved.fields)

    def put(self, fields: Mapping[str, np.ndarray]) -> None:
        """See `Store`."""
        for name, values in fields.items():
            self.rows(name)[:] = values

    @property
    def nbytes(self) -> int:
        """See `Store`."""
        return sum(array.nbytes for array in self._arrays.values())


def make_store(domain: Domain, fields: Mapping[str, Field], stores: Mapping[str, Any]) -> Any:
    """Return a new store of a domain for the fields that a plan touches."""
    return (domain.store or TableStore)(domain, fields, stores)
