"""How many kernels presets compile from an empty cache; `benchmarks/kernel_counts.py` has counted them and written this."""

from __future__ import annotations

from typing import NamedTuple

SECONDS_A_KERNEL = 0.32
"""Of one core of an idle machine: 53 s for the 166 kernels of a demo from an empty cache."""


class Count(NamedTuple):
    """Kernels of a preset.

    Attributes:
        ahead: All that `ahead` compiles of it.
        first: Those of a solve of its first matter with colliders: about as many as a cook of it compiles.
    """

    ahead: int
    first: int


COUNTS: dict[str, Count] = {
    "explicit_apic": Count(147, 105),
    "melting": Count(197, 195),
}
