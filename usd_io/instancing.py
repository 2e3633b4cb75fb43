"""The copies of a point instancer, and what is wrong with its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpm_nodes.data import InputError
from usd_io.typed import numbers, whole_numbers

__all__ = ["instances", "inverse_above"]


def instances(instancer: Any, code: float) -> tuple[np.ndarray, list[Any]]:
    """Return the prototype of each copy and its transform, masks left out of account.

    Args:
        instancer: `UsdGeom.PointInstancer`.
        code: Time code.

    Returns:
        tuple: Numbers of prototypes, shape (n,), and as many `Gf.Matrix4d`.

    Raises:
        InputError: Its columns do not go together, or name a prototype that it does not have.
    """
    from pxr import UsdGeom

    which, kinds = whole_numbers(instancer.GetProtoIndicesAttr(), code), len(instancer.GetPrototypesRel().GetTargets())
    if len(which) and not (which.min() >= 0 and which.max() < kinds):
        raise InputError(
            f"{instancer.GetPath()}: protoIndices go from {which.min()} to {which.max()}, prototypes from 0 to {kinds - 1}; "
            "export it again"
        )
    columns = ((instancer.GetPositionsAttr(), 3), (instancer.GetOrientationsAttr(), 4), (instancer.GetScalesAttr(), 3))
    for attribute, width in columns:
        found = numbers(attribute, code, width)
        count = 0 if found is None else len(found)
        if count != len(which) and (count or attribute == columns[0][0]):
            raise InputError(
                f"{instancer.GetPath()}: has {count} {attribute.GetName()} for {len(which)} protoIndices at time code {code:g}; "
                "export it with one for each"
            )
    included, masked = UsdGeom.PointInstancer.IncludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
    return which, instancer.ComputeInstanceTransformsAtTime(code, code, included, masked) if len(which) else []


def inverse_above(prototype: Any, code: float) -> np.ndarray:
    """Return the matrix (4, 4) from the stage's space to a prototype's own.

    Raises:
        InputError: It is flattened, so that there is none.
    """
    from pxr import UsdGeom

    top = UsdGeom.Xformable(prototype)
    try:
        return np.linalg.inv(np.array(top.ComputeLocalToWorldTransform(code)).T if top else np.eye(4))
    except np.linalg.LinAlgError:
        raise InputError(f"{prototype.GetPath()}: a scale of 0 leaves nothing to instance at time code {code:g}") from None
