"""Values of a stage of the kind that is wanted: any attribute of a file may be of any type, and hold any number.

Every reader takes values through these, so that a wrong one is told where it is met, with its name.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mpm_nodes import reads
from mpm_nodes.data import InputError

__all__ = ["MOST_FRAMES", "code_range", "number", "numbers", "of_kind", "vectors", "whole_numbers"]

MOST_FRAMES = 1_000_000
"""Time codes between first and last of a stage: eleven hours at 24 a second. More is a slip, and would be waited for."""
FURTHEST_CODE = 2**31


def numbers(attribute: Any, code: float, width: int = 0, whole: bool = False) -> np.ndarray | None:
    """Return the array of an attribute at a time code, None where it has no value there.

    Args:
        attribute: `Usd.Attribute`; None or an invalid one has no value.
        code: Time code.
        width: Numbers in each element, 0 for plain numbers.
        whole: Whether the numbers must be integers.

    Returns:
        np.ndarray: Shape (n,), or (n, width).

    Raises:
        InputError: It holds something else.
    """
    reads.go_on()
    value = attribute.Get(code) if attribute else None
    return None if value is None else of_kind(attribute, value, code, width, whole)


def vectors(attribute: Any, code: float) -> np.ndarray:
    """Return the 3-vectors of an attribute as `numbers` does, shape (n, 3), float64; none where it has no value."""
    found = numbers(attribute, code, 3)
    return np.zeros((0, 3)) if found is None else found.astype(np.float64)


def whole_numbers(attribute: Any, code: float) -> np.ndarray:
    """Return the integers of an attribute as `numbers` does, shape (n,), int64; none where it has no value."""
    found = numbers(attribute, code, whole=True)
    return np.zeros(0, np.int64) if found is None else found.astype(np.int64)


def of_kind(attribute: Any, value: Any, code: float, width: int = 0, whole: bool = False) -> np.ndarray:
    """Return a value of an attribute as the array that `numbers` promises.

    Raises:
        InputError: It is something else.
    """
    array = np.asarray(value)
    if width and array.shape == (0,):  # empty arrays of other kinds do not know a width
        array = np.zeros((0, width), np.float32)
    sound = array.ndim == (2 if width else 1) and (not width or array.shape[1] == width)
    if not sound or (array.size and array.dtype.kind not in ("iu" if whole else "iuf")):
        wanted = f"vectors of {width} numbers" if width else "whole numbers" if whole else "numbers"
        raise InputError(f"{_place(attribute)} holds {_kind(attribute, value)} at time code {code:g}; export it as {wanted}")
    return array


def number(attribute: Any, code: float) -> float | None:
    """Return the finite number that an attribute holds at a time code, None where it has no value there.

    Raises:
        InputError: It holds something else.
    """
    value = attribute.Get(code) if attribute else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        what = f"{value:g}" if isinstance(value, float) else _kind(attribute, value)
        raise InputError(f"{_place(attribute)} holds {what} at time code {code:g}; export it as one finite number")
    return float(value)


def _place(attribute: Any) -> str:
    return f"{attribute.GetPrim().GetPath()}: {attribute.GetName()}"


def _kind(attribute: Any, value: Any) -> str:
    """Return what USD calls the type of a value, such as "float2[]"."""
    from pxr import Sdf

    return str(Sdf.GetValueTypeNameForValue(value)) or str(attribute.GetTypeName())


def code_range(stage: Any) -> tuple[float, float]:
    """Return the first and the last time code of a stage.

    Raises:
        InputError: They are not finite, run backwards, or hold more than `MOST_FRAMES`.
    """
    first, last = float(stage.GetStartTimeCode()), float(stage.GetEndTimeCode())
    if not (abs(first) < FURTHEST_CODE and abs(last) < FURTHEST_CODE and 0.0 <= last - first < MOST_FRAMES):
        raise InputError(
            f"{stage.GetRootLayer().identifier}: has time codes from {first:g} to {last:g}; give startTimeCode and endTimeCode in "
            f"order, at most {MOST_FRAMES:,} apart"
        )
    return first, last
