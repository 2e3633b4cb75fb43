"""Which columns the particles of a solve have: those of its sources, laws and stages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from mpm_nodes.data import ATTRIBUTES, Material
from mpm_nodes.graph.plan.substeps import fields_touched, resolve
from mpm_nodes.physics import all_physics, with_further
from mpm_nodes.solver.coefficients import tabled_law

__all__ = ["ALWAYS", "allocated", "columns_of"]

ALWAYS = ("velocity", "mass", "volume", "velocity_gradient")
"""Allocated in every solve."""
OPTIONAL = {
    "stiffness_scale": "stiffness_scale",
}
"""Allocated only when the sources bring it, or the attribute that it is computed from."""


def allocated(needed: Iterable[str], of_laws: Iterable[str], given: Collection[str], own: Iterable[str]) -> list[str]:
    """Return the names of the columns of a solve besides those that every store of particles has, some twice.

    Args:
        needed: What the stages of its candidates touch.
        of_laws: State of its laws, and what their coefficients follow.
        given: Columns of its sources.
        own: Fields that are not in the table, of laws, stages and sources.
    """
    optional = OPTIONAL | {name: given_by for each in all_physics() for name, given_by in each.optional_columns.items()}
    names = [*ALWAYS, *of_laws, *(n for n in needed if n not in optional or optional[n] in given)]
    return [*names, *(n for n in given if n in ATTRIBUTES), *own]


def columns_of(recipe: Any, materials: Sequence[Material], given: Collection[str]) -> frozenset[str]:
    """Return the columns of what a solve publishes, before there is one.

    Args:
        recipe: Its substep graph.
        materials: Of its sources.
        given: Columns of its sources.

    Raises:
        GraphError: The substep graph is wrong.
        LawError: A material's law is unknown.
    """
    laws = [tabled_law(material) for material in with_further(materials)]
    state, inputs = [name for law in laws for name in law.state], [name for law in laws for name in law.inputs]
    substeps = resolve(recipe)
    needed = [name for each in (substeps, *substeps.others) for name in fields_touched(each, "particles", state, inputs)]
    own = [name for law in laws for name in law.fields] + [name for name in given if name not in ATTRIBUTES]
    return frozenset({"position", "id", "material", *allocated(needed, (*state, *inputs), given, own)})
