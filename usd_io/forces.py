"""Forces of the matter on colliders, as attributes of their prims in a cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pxr import Gf, Sdf, Tf, Usd

from mpm_nodes.data import InputError
from usd_io.layers import set_sample

__all__ = ["FORCE", "TORQUE", "ForceOnCollider", "add_forces", "read_forces"]

FORCE, TORQUE = "userProperties:force", "userProperties:torque"
"""Mean force over a frame [N], and mean torque about the centre [N m]; other programs take these for properties of their own."""


class ForceOnCollider(NamedTuple):
    """What a frame of a cache says of a collider.

    Attributes:
        frame: Its number.
        collider: Name of the prim without what all colliders begin with.
        force: [N], shape (3,).
        torque: [N m], shape (3,).
    """

    frame: int
    collider: str
    force: tuple[float, float, float]
    torque: tuple[float, float, float]


def add_forces(layer: Sdf.Layer, path: str, both: np.ndarray, number: int) -> None:
    """Write force [N] and torque [N m] on a collider, shape (2, 3); of one that never moves this is all that a frame has."""
    prim = layer.GetPrimAtPath(path)
    if prim is None:
        prim = Sdf.CreatePrimInLayer(layer, path)
        prim.specifier, prim.typeName = Sdf.SpecifierDef, "Mesh"
    for name, value in zip((FORCE, TORQUE), both, strict=True):
        set_sample(prim, name, Sdf.ValueTypeNames.Vector3f, Gf.Vec3f(*map(float, value)), number, custom=True)


def read_forces(path: Path) -> Iterator[ForceOnCollider]:
    """Yield the forces on all colliders of a cache, frame by frame.

    Args:
        path: Its root stage.

    Raises:
        InputError: The file is none, or a collider has no forces.
    """
    try:
        stage = Usd.Stage.Open(str(path)) if path.is_file() else None
    except Tf.ErrorException:
        stage = None
    if stage is None:
        raise InputError(f"{path}: is not the root stage of a cache; give its .usda file")
    prims = [prim for prim in stage.Traverse() if prim.HasAttribute(FORCE) and prim.HasAttribute(TORQUE)]
    if not prims:
        raise InputError(f"{path}: has no forces; turn solve.contact_forces on, and wire solve.bodies into write_cache.bodies")
    for frame in range(round(stage.GetStartTimeCode()), round(stage.GetEndTimeCode()) + 1):
        for prim in prims:
            force, torque = (_three(prim.GetAttribute(name).Get(frame)) for name in (FORCE, TORQUE))
            if force is not None and torque is not None:
                yield ForceOnCollider(frame, prim.GetName().removeprefix("collider_"), force, torque)


def _three(value: Any) -> tuple[float, float, float] | None:
    return None if value is None else (float(value[0]), float(value[1]), float(value[2]))
