"""How many kernels presets compile from an empty cache; `benchmarks/kernel_counts.py` has counted them and written this."""

from __future__ import annotations

from typing import NamedTuple

from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.files import strict_json

SECONDS_A_KERNEL = 0.45
"""Of one core of an idle AMD EPYC, as znver3: the 192 kernels of a first `melting` solve take 90 s."""


class Count(NamedTuple):
    """Kernels of a preset.

    Attributes:
        ahead: All that `ahead` compiles of it.
        first: Those of a solve of its first matter with colliders: about as many as a cook of it compiles.
    """

    ahead: int
    first: int


COUNTS: dict[str, Count] = {
    "continuum_foam": Count(116, 114),
    "explicit_apic": Count(153, 111),
    "explicit_heat": Count(145, 143),
    "implicit_apic": Count(154, 152),
    "implicit_surface_tension": Count(214, 212),
    "incompressible": Count(168, 166),
    "melting": Count(194, 192),
    "separate_bodies": Count(112, 110),
    "surface_tension": Count(163, 161),
    "surface_tension_heat": Count(201, 199),
    "surface_tension_solute": Count(196, 194),
}


def count_of(preset: str) -> Count | None:
    """Return the kernels of a preset; of one that chooses among others, at most what these take one by one. None: unknown."""
    if preset in COUNTS:
        return COUNTS[preset]
    file = registry.default().presets.get(preset)
    rows = [COUNTS.get(name) for name in (strict_json.read(file).get("candidates", ()) if file else ())]
    total = sum(row.first for row in rows if row)
    return Count(total, total) if rows and None not in rows else None
