"""Phenomena, a folder each: its kernels, numerics, stages, nodes, problems and presets, and `physics.py`, which ties them together.

The core knows no phenomenon by name: it asks `all_physics` what there is, and every phenomenon for what it declares. Folders of
MPM_NODES_PATH that hold a `physics.py` are phenomena of users.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from pathlib import Path

from mpm_nodes.data import Material, domain_named
from mpm_nodes.physics.contract import MaterialNumber, Physics, RetiredNode
from mpm_nodes.user_files import import_from_folder, user_folders

__all__ = ["DECLARATION", "MaterialNumber", "Physics", "RetiredNode", "all_physics", "with_further"]

DECLARATION = "physics.py"
"""File that makes a folder a phenomenon: its `PHYSICS`."""


def all_physics(path: str | None = None, builtin: bool = True) -> tuple[Physics, ...]:
    """Return the phenomena of this package and of users, each behind those that it needs; domains know their fields from then on.

    Args:
        path: Folders of users, separated as in PATH; None takes the environment variable MPM_NODES_PATH.
        builtin: Whether to return those of this package.

    Raises:
        RegistryError: A user's declaration fails; file and line are named.
        MpmNodesError: One describes a field of another, or of the core, differently.
    """
    files = [folder / DECLARATION for folder in user_folders(path) if (folder / DECLARATION).is_file()]
    return (*(_ours() if builtin else ()), *(_with_fields(import_from_folder(file).PHYSICS) for file in files))


def _with_fields(physics: Physics) -> Physics:
    for name, fields in physics.fields.items():
        domain_named(name).add(f"phenomenon {physics.name}", *fields)
    return physics


@functools.cache
def _ours() -> tuple[Physics, ...]:
    names = sorted(file.parent.name for file in Path(__file__).parent.glob(f"*/{DECLARATION}"))
    waiting = {name: importlib.import_module(f"{__name__}.{name}.physics").PHYSICS for name in names}
    found: list[Physics] = []
    while waiting:
        name = next(name for name, each in waiting.items() if not set(each.needs) & set(waiting))
        found.append(_with_fields(waiting.pop(name)))
    return tuple(found)


def with_further(materials: Sequence[Material]) -> tuple[Material, ...]:
    """Return the materials of a solve and, behind them, those that phenomena add: what melts becomes.

    Raises:
        MpmNodesError: A phenomenon does not allow one of them.
    """
    found = tuple(materials)
    for physics in all_physics():
        found = physics.further_materials(found)
    return found
