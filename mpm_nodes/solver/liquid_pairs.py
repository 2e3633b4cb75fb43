"""Interfaces between liquids: which matter has a surface of its own, and what is behind each sample of it.

| symbol | meaning | unit | source |
|---|---|---|---|
| k_ab | tension between matter a and matter b | N/m | |
| f_a | share of space that is matter a at a sample: sum V0 N((x - x_p) / h) / h^3 | | `kernels.interfaces.drawing_in` |
| s | share of what is not a there that is other matter: sum_b f_b / (1 - f_a), b != a | | |
| w | how far a sample counts as covered by other matter: 2 s - 1/2, from 0 to 1 | | |

Matter that a pair names has a closed surface of its own, drawn in to where it fills half of space. So two liquids that touch have
two surfaces in one place, and each bears half of their tension:

    k = (1 - w) k_LG + w sum_b (f_b / sum f) k_ab / 2

Every sample's forces have neither sum nor torque, whatever its tension, and where three kinds of matter meet the tensions of both
surfaces balance as Neumann's triangle does. The tension changes between shares of 1/4 and 3/4, so that noise in the lattices does
not bring the tension against air into an interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import Material, MpmNodesError

__all__ = ["LiquidPairs", "covering", "pairs_of"]


class LiquidPairs(NamedTuple):
    """Which matter has surfaces of its own.

    Attributes:
        group: By material, its group: 0 for what no pair names, shape (materials,).
        tension: Between two groups [N/m], shape (groups, groups), 0 on the diagonal.
    """

    group: np.ndarray
    tension: np.ndarray

    def most(self, material: int) -> float:
        """Return the largest tension of a material against other matter [N/m]."""
        return float(self.tension[self.group[material]].max(initial=0.0))


def pairs_of(materials: Sequence[Material]) -> LiquidPairs | None:
    """Return the pairs that materials name, None where there are none.

    Materials of one label are one matter.

    Raises:
        MpmNodesError: A pair names no other matter, or two materials name different tensions for one pair.
    """
    named: dict[tuple[str, str], tuple[float, str]] = {}
    labels = [material.label or material.law for material in materials]
    for material, label in zip(materials, labels, strict=True):
        for other, tension in () if material.surface_tension is None else material.surface_tension.interfaces:
            if other == label or other not in labels:
                known = ", ".join(f"'{each}'" for each in dict.fromkeys(labels) if each != label) or "none"
                raise MpmNodesError(
                    f"material {label}: has a tension against '{other}', and no other material of this solve has that label; set "
                    f"material_interface_tension.other to the label of one: {known}"
                )
            key = (min(label, other), max(label, other))
            first = named.setdefault(key, (tension, label))
            if first[0] != tension:
                raise MpmNodesError(
                    f"material {label}: has a tension of {tension:g} N/m against '{other}', and {first[1]} says {first[0]:g} N/m; "
                    "say it once, or say the same"
                )
    if not named:
        return None
    groups = {label: 1 + place for place, label in enumerate(sorted({label for key in named for label in key}))}
    table = np.zeros((len(groups) + 1, len(groups) + 1))
    for (one, other), (tension, _) in named.items():
        table[groups[one], groups[other]] = table[groups[other], groups[one]] = tension
    return LiquidPairs(np.array([groups.get(label, 0) for label in labels]), table)


def covering(group: int, shares: np.ndarray, pairs: LiquidPairs) -> tuple[np.ndarray, np.ndarray]:
    """Return w of samples, and the tension of their side against what covers them [N/m], shape (n,) each.

    Args:
        group: Whose surface they lie on.
        shares: f of every group at the samples, shape (groups, n).
        pairs: The pairs.
    """
    others = np.delete(np.arange(len(shares)), group)
    behind = shares[others].sum(axis=0)
    share = behind / np.maximum(np.maximum(1.0 - shares[group], behind), 1e-12)
    covered = np.clip(2.0 * share - 0.5, 0.0, 1.0)
    mean = pairs.tension[group, others] @ shares[others] / np.maximum(behind, 1e-12)
    return covered, 0.5 * mean
