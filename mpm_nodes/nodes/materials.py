"""Material nodes: one for each constitutive law, generated from the knobs of its `Params`, and the library.

Importing this module does not load numba: the knobs of the built-in laws live in a light table.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import typing
from collections.abc import Callable
from typing import Any

from mpm_nodes.data import A, KilogramsPerCubicMetre, Material, PascalSeconds, Range, Seconds, Unitless
from mpm_nodes.graph.declare import node, parse_docstring
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.parameters import BUILT_IN

__all__ = ["material_node"]

_DENSITY = A[float, KilogramsPerCubicMetre, Range(min=0.0, exclusive_min=True, soft_min=1.0, soft_max=1e4, log=True)]


def material_node(params: type, version: int = 1) -> Callable[..., Material]:
    """Return the node `material_<law>` of a law: its knobs are the fields of `params`, the density and a label.

    A file with a law of your own ends with `material_mine = material_node(Params)` beside `register_law(...)`.

    Args:
        params: The law's `Params` dataclass.
        version: Raise it when the same knobs give another material.
    """
    summary, help_of = parse_docstring(params.__doc__ or "")
    hints = typing.get_type_hints(params, include_extras=True)
    fields = dataclasses.fields(params)
    knobs = [(field.name, hints[field.name], field.default, help_of.get(field.name, "")) for field in fields]
    knobs += [("density", _DENSITY, params.density, "Density at rest [kg/m^3]."),
              ("label", str, "", "What messages and reports call it; empty takes the name of the law.")]

    def material(**values: Any) -> Material:
        chosen = {name: default for name, _hint, default, _help in knobs} | values
        label, density = chosen.pop("label"), chosen.pop("density")
        return Material(params.law, chosen, density, label or params.label)

    material.__name__ = material.__qualname__ = f"material_{params.law}"
    material.__module__ = params.__module__ if not params.__module__.startswith("mpm_nodes.") else __name__
    material.__annotations__ = {name: hint for name, hint, _default, _help in knobs} | {"return": Material}
    keyword = inspect.Parameter.KEYWORD_ONLY
    material.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword, default=default, annotation=hint) for name, hint, default, _help in knobs],
        return_annotation=Material)
    lines = [summary, "", "Args:", *(f"    {name}: {text}" for name, _hint, _default, text in knobs),
             "", f"Source: {params.source}."]
    material.__doc__ = "\n".join(lines)
    return node(category="Material", label=params.label, version=version)(material)


for _params in BUILT_IN.values():
    globals()[f"material_{_params.law}"] = material_node(_params)


LibraryMaterial = enum.Enum("LibraryMaterial", [(name.upper(), name) for name in LIBRARY], module=__name__)
"""Menu of the named parameter sets."""


@node(category="Material", label="Material Library")
def material_library(*, name: LibraryMaterial = LibraryMaterial.SNOW) -> Material:  # type: ignore[valid-type]
    """Take a ready material: snow, rubber, water, ...

    Args:
        name: Which one; sources and numbers are in `mpm_nodes.materials.library`.
    """
    return named_material(name.value)


@node(category="Material", label="Tearing")
def material_tearing(
    material: Material,
    *,
    tear_threshold: A[float, Unitless, Range(min=0.0, exclusive_min=True, soft_min=0.1, soft_max=1e3, log=True)] = 10.0,
    recovery_time: A[float, Seconds, Range(min=0.0, exclusive_min=True, soft_min=0.01, soft_max=100.0, log=True)] = 0.35,
) -> Material:
    """Let a material tear where it flowed far, and mend again: for substep graphs with tearing stages.

    Args:
        material: Any material that can flow; one that never flows never tears.
        tear_threshold: Plastic distortion |dev C_P| above which it tears; a stretch a gives sqrt(2/3) (a^2 - 1/a).
        recovery_time: Time in which the distortion is forgotten; small: sticky, large: brittle.

    Source: Y15 sections 7.1 and 7.3.
    """
    return dataclasses.replace(material, tear_threshold=tear_threshold, recovery_time=recovery_time)


@node(category="Material", label="Viscosity")
def material_viscosity(
    material: Material,
    *,
    viscosity: A[float, PascalSeconds, Range(min=0.0, soft_max=100.0)] = 1.0,
) -> Material:
    """Give a material Newtonian viscosity beside what its law has: it resists every flow, also of elastic matter.

    Args:
        material: Material of any law that knows its volume, as all built-in ones do.
        viscosity: Dynamic viscosity mu [Pa s], stress 2 mu sym(grad v); shortens explicit time steps where it is large.

    Source: R15 eq. 10-11.
    """
    return dataclasses.replace(material, viscosity=viscosity)
