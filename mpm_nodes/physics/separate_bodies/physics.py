"""The declaration of bodies that keep velocities of their own."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mpm_nodes.physics.contract import Physics


def _number(columns: Mapping[str, np.ndarray], given: Collection[str], laws: Sequence[Any]) -> np.ndarray:
    """Return the numbers of bodies: those of the sources; where none has any, each material is a body."""
    return columns.get("body", np.zeros_like(columns["material"])) if "body" in given else columns["material"]


PHYSICS = Physics(__package__, apart={"body": _number}, kinds=("collide_bodies",))
