"""Interfaces between liquids: which matter has a surface of its own, and what is behind each sample of it.

| symbol | meaning | unit | source |
|---|---|---|---|
| k_ab | tension between matter a and matter b | N/m | |
| f_a | share of space that is matter a at a sample: sum V0 N((x - x_p) / h) / h^3 | | `kernels.edge_cuts` |
| s | share of what is not a there that is other matter: sum_b f_b / (1 - f_a), b != a | | |
| w | how far a sample counts as covered by other matter: 2 s - 1/2, from 0 to 1 | | |

Matter that a pair names has a closed surface of its own, drawn in to where it fills half of space. So two liquids that touch have
two surfaces in one place, and each bears half of their tension:

    k = (1 - w) k_LG + w sum_b (f_b / sum f) k_ab / 2

A tension that follows the temperature, k_ab(T), is taken at that of the sample's owner: either side bears half of its own.

Every sample's forces have neither sum nor torque, whatever its tension, and where three kinds of matter meet the tensions of both
surfaces balance as Neumann's triangle does. The tension changes between shares of 1/4 and 3/4, so that noise in the lattices does
not bring the tension against air into an interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.data.parameter_tables import Rows

__all__ = ["LiquidPairs", "covering", "have_surfaces", "pairs_of"]


class LiquidPairs(NamedTuple):
    """Which matter has surfaces of its own.

    Attributes:
        group: By material, its group: 0 for what no pair names, shape (materials,).
        tension: Between two groups [N/m], shape (groups, groups), 0 on the diagonal; the largest where it follows the temperature.
        curves: (one group, the other, rows) of those that do.
    """

    group: np.ndarray
    tension: np.ndarray
    curves: tuple[tuple[int, int, Rows], ...] = ()

    def most(self, material: int) -> float:
        """Return the largest tension of a material against other matter [N/m]."""
        return float(self.tension[self.group[material]].max(initial=0.0))


def pairs_of(materials: Sequence[Material]) -> LiquidPairs | None:
    """Return the pairs that materials name, None where there are none.

    Materials of one label are one matter.

    Raises:
        MpmNodesError: A pair names no other matter, or two materials name different tensions for one pair.
    """
    named: dict[tuple[str, str], tuple[float, str, Rows]] = {}
    labels = [material.label or material.law for material in materials]
    for material, label in zip(materials, labels, strict=True):
        if material.surface_tension is None:
            continue
        curve = dict(material.surface_tension.interface_tables)
        for other, tension in material.surface_tension.interfaces:
            if other == label or other not in labels:
                known = ", ".join(f"'{each}'" for each in dict.fromkeys(labels) if each != label) or "none"
                raise MpmNodesError(
                    f"material {label}: has a tension against '{other}', and no other material of this solve has that label; set "
                    f"material_interface_tension.other to the label of one: {known}"
                )
            key = (min(label, other), max(label, other))
            first = named.setdefault(key, (tension, label, curve.get(other, ())))
            if first[0] == tension and first[2] != curve.get(other, ()):
                raise MpmNodesError(
                    f"material {label}: its tension against '{other}' follows the temperature otherwise than {first[1]} says; "
                    "say it once, or say the same"
                )
            if first[0] != tension:
                raise MpmNodesError(
                    f"material {label}: has a tension of {tension:g} N/m against '{other}', and {first[1]} says {first[0]:g} N/m; "
                    "say it once, or say the same"
                )
    if not named:
        return None
    groups = {label: 1 + place for place, label in enumerate(sorted({label for key in named for label in key}))}
    table = np.zeros((len(groups) + 1, len(groups) + 1))
    for (one, other), (tension, _, _) in named.items():
        table[groups[one], groups[other]] = table[groups[other], groups[one]] = tension
    curves = tuple((groups[one], groups[other], rows) for (one, other), (_, _, rows) in named.items() if rows)
    return LiquidPairs(np.array([groups.get(label, 0) for label in labels]), table, curves)


def have_surfaces(materials: Sequence[Material], pairs: LiquidPairs | None) -> np.ndarray:
    """Return which materials have a surface that pulls: a tension of their own, or a pair; shape (materials,), bool."""
    tense = np.array([each.surface_tension is not None for each in materials], bool)
    return tense if pairs is None else tense | (pairs.group > 0)


def covering(
    group: int, shares: np.ndarray, pairs: LiquidPairs, temperature: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return w of samples, and the tension of their side against what covers them [N/m], shape (n,) each.

    Args:
        group: Whose surface they lie on.
        shares: f of every group at the samples, shape (groups, n).
        pairs: The pairs.
        temperature: Of the samples' owners [K], shape (n,); None: tensions that follow it are the largest of their curves.
    """
    others = np.delete(np.arange(len(shares)), group)
    behind = shares[others].sum(axis=0)
    share = behind / np.maximum(np.maximum(1.0 - shares[group], behind), 1e-12)
    covered = np.clip(2.0 * share - 0.5, 0.0, 1.0)
    tension = pairs.tension[group].copy()
    against = np.zeros(shares.shape[1])
    for one, other, rows in pairs.curves:
        if group in (one, other) and temperature is not None:
            facing = other if group == one else one
            tension[facing] = 0.0  # its share is added here, by the temperature of each sample
            against += np.interp(temperature, *np.array(rows).T) * shares[facing]
    mean = (tension[others] @ shares[others] + against) / np.maximum(behind, 1e-12)
    return covered, 0.5 * mean
