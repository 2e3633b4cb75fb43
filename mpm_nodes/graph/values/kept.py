"""What a node keeps between its calls: costly values that depend on less than all of its inputs, within the cook's memory limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from mpm_nodes.graph.values.store import ABSENT, MemoryStore, size_in_bytes

__all__ = ["NOTHING_KEPT", "Kept"]

T = TypeVar("T")


class Kept:
    """Values that nodes keep from frame to frame; a parameter `kept: Kept` of a node's function asks for it.

    They lie in the cook's store beside the published values: both count towards `memory_limit`, and what was not used for
    longest is dropped first. So a kept value may be gone at any time, and must follow from its key.

    Args:
        store: Where they lie.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def get(self, key: tuple[Hashable, ...], make: Callable[[], T], size: Callable[[T], int] = size_in_bytes) -> T:
        """Return the value of a key, made when it is not there.

        Args:
            key: Everything that the value follows from, the name of its kind first; files with their size and time.
            make: Makes it.
            size: Bytes that it holds.
        """
        found = self._store.get(("kept", *key))
        if found is not ABSENT:
            return found
        value = make()
        self._store.put(("kept", *key), value, size(value))
        return value


NOTHING_KEPT = Kept(MemoryStore(0))
"""Keeps nothing: for functions of nodes that are called outside a cook."""
