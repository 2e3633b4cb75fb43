"""Numbers on the command line: each option says how far it goes, and anything else is refused with its name."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

__all__ = ["LARGEST", "positive", "real", "whole"]

LARGEST = 10**9


def whole(least: int, most: int = LARGEST) -> Callable[[str], int]:
    """Return the type of an option that takes whole numbers from `least` to `most`."""

    def take(text: str) -> int:
        if len(text) < 20 and re.fullmatch(r"[+-]?[0-9]+(_[0-9]+)*", text) and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {least} to {most:,}")

    return take


def real(least: float, most: float = float(LARGEST), above: bool = False) -> Callable[[str], float]:
    """Return the type of an option that takes numbers from `least` to `most`, or `above` it; never NaN or infinity."""

    def take(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if value <= most and (value > least if above else value >= least):
            return value
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number {'above' if above else 'from'} {least:g} to {most:g}")

    return take


positive = whole(1)
