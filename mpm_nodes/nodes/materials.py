"""Material nodes: one for each constitutive law, generated from the knobs of its `Params`, and the library.

Importing this module does not load numba: the knobs of the built-in laws live in a light table.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mpm_nodes.data import (
    ATTRIBUTES,
    A,
    Kelvins,
    KilogramsPerCubicMetre,
    Material,
    Metres,
    MpmNodesError,
    ParameterTable,
    PascalSeconds,
    Range,
    Unitless,
)
from mpm_nodes.data.parameter_tables import TEMPERATURE, Rows
from mpm_nodes.graph.declare.declarations import Preflight, UpgradeFunction
from mpm_nodes.graph.declare.decorators import PreflightContext, found_by, node, parse_docstring
from mpm_nodes.graph.time.keys import KeysTravel, NotKeyable, carries_keys
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.parameters import BUILT_IN
from mpm_nodes.materials.weak_compressibility import LIBRARY_DEPTH
from mpm_nodes.nodes.bodies import told_again

__all__ = ["material_node"]

_DENSITY = A[
    float,
    KilogramsPerCubicMetre,
    Range(min=0.0, exclusive_min=True, soft_min=1.0, soft_max=1e4, log=True),
    NotKeyable("matter keeps the mass that it was made with"),
]


def material_node(
    params: type[Any], version: int = 1, upgrades: Mapping[int, UpgradeFunction] | None = None
) -> Callable[..., Material]:
    """Return the node `material_<law>` of a law: its knobs are the fields of `params`, the density and a label.

    A file with a law of your own ends with `material_mine = material_node(Params)` beside `register_law(...)`.

    Args:
        params: The law's `Params` dataclass.
        version: Raise it when the same knobs give another material.
        upgrades: By old version, what brings its knobs to the next one.
    """
    summary, help_of = parse_docstring(params.__doc__ or "")
    hints = typing.get_type_hints(params, include_extras=True)
    fields = dataclasses.fields(params)
    knobs = [(field.name, _followed(hints[field.name]), field.default, help_of.get(field.name, "")) for field in fields]
    knobs += [
        ("density", _DENSITY, params.density, "Density at rest [kg/m^3]."),
        ("label", str, "", "What messages and reports call it; empty takes the name of the law."),
    ]

    def material(**values: Any) -> Material:
        chosen: dict[str, Any] = {name: default for name, _hint, default, _help in knobs} | values
        label, density = chosen.pop("label"), chosen.pop("density")
        return Material(params.law, chosen, density, label or params.label)

    material.__name__ = material.__qualname__ = f"material_{params.law}"
    material.__module__ = params.__module__ if not params.__module__.startswith("mpm_nodes.") else __name__
    material.__annotations__ = {name: hint for name, hint, _default, _help in knobs} | {"return": Material}
    keyword = inspect.Parameter.KEYWORD_ONLY
    material.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, keyword, default=default, annotation=hint) for name, hint, default, _help in knobs],
        return_annotation=Material,
    )
    lines = [
        summary,
        "",
        "Args:",
        *(f"    {name}: {text}" for name, _hint, _default, text in knobs),
        "",
        f"Source: {params.source}.",
    ]
    material.__doc__ = "\n".join(lines)
    made = node(category="Material", label=params.label, version=version, upgrades=upgrades, preflight=_told_by(material))
    return made(material)


def _told_by(make: Callable[..., Material]) -> Preflight:
    """Return the preflight of a material node: it tells the material itself, since making one costs nothing."""

    def tell(told: PreflightContext) -> dict[str, Any]:
        return {"materials": (make(**told.knobs),)}

    return tell


def _followed(hint: Any) -> Any:
    """Return the hint of a law's parameter as a knob's: keys of numbers travel with the material to the solve."""
    number = (typing.get_args(hint)[0] if getattr(hint, "__metadata__", ()) else hint) is float
    return A[hint, KeysTravel()] if number else hint


def _as_printed(knobs: dict[str, Any], inputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keep the linear convection that version 1 had where nothing was said."""
    return {"exact_convection": False, **knobs}, inputs


_VERSIONS: dict[str, tuple[int, dict[int, UpgradeFunction]]] = {"oldroyd_b": (2, {1: _as_printed})}
"""Versions of the generated nodes that are not the first, with their upgrades."""

_params: type[Any]
for _params in BUILT_IN.values():
    globals()[f"material_{_params.law}"] = material_node(_params, *_VERSIONS.get(_params.law, (1, None)))


if TYPE_CHECKING:

    class LibraryMaterial(enum.Enum):
        """Menu of the named parameter sets: its default stands for all of them."""

        SNOW = "snow"

else:
    LibraryMaterial = enum.Enum("LibraryMaterial", [(name.upper(), name) for name in LIBRARY], module=__name__)
    """Menu of the named parameter sets."""


@found_by("preset", "snow", "sand", "water", "honey", "jelly", "chocolate", "cream", "mud", "wax", "dough", "slime", "jam")
@node(
    category="Material",
    label="Material Library",
    version=2,
    preflight=lambda told: {"materials": (named_material(told.knobs["name"].value, told.knobs["depth"]),)},
)
def material_library(
    *,
    name: LibraryMaterial = LibraryMaterial.SNOW,
    depth: A[
        float,
        Metres,
        Range(min=0.0, exclusive_min=True, soft_min=1e-3, soft_max=10.0, log=True),
        NotKeyable("matter keeps the modulus that it was made with"),
    ] = LIBRARY_DEPTH,
) -> Material:
    """Take a ready material: snow, sand, mud, chocolate, rubber, water, ...

    Args:
        name: Which one; sources, numbers and limits are in the reference, and in `mpm_nodes.materials.library`.
        depth: How deep its liquids, grains and stock pastes lie: the modulus that keeps their volume, softer than the real one,
            grows with it. Shallow ones need fewer explicit substeps: a quarter of the depth, half of them. Other materials do not
            follow it.
    """
    return named_material(name.value, depth)


@found_by("honey", "syrup", "thick", "sticky")
@node(category="Material", label="Viscosity", preflight=told_again)
def material_viscosity(
    material: Material,
    *,
    viscosity: A[float, PascalSeconds, Range(min=0.0, soft_max=100.0), KeysTravel()] = 1.0,
) -> Material:
    """Give a material Newtonian viscosity beside what its law has: it resists every flow, also of elastic matter.

    Args:
        material: Material of any law that knows its volume, as all built-in ones do.
        viscosity: Dynamic viscosity mu [Pa s], stress 2 mu sym(grad v); shortens explicit time steps where it is large.

    Source: R15 eq. 10-11.
    """
    return dataclasses.replace(material, viscosity=viscosity)


def _told_with_table(told: PreflightContext) -> dict[str, Any]:
    """Tell the wired material with its table, which is checked before anything is cooked."""
    return {"materials": tuple(_with_table(material, **told.knobs) for material in told.every("material", "materials"))}


@node(category="Material", label="Over Temperature", preflight=_told_with_table)
def material_over_temperature(
    material: Material,
    *,
    parameter: str = "youngs_modulus",
    table: A[Rows, Kelvins] = ((293.15, 1e5), (373.15, 1e4)),
    liquid_table: A[Rows | None, Kelvins] = None,
) -> Material:
    """Let a parameter of a material follow its temperature: a curve, straight between its points and level beyond them.

    Args:
        material: Any material; wire several of these nodes in a row for several parameters.
        parameter: Name of a knob of the material's own node, or viscosity.
        table: Value over the temperature [K]; it takes the place of the knob.
        liquid_table: The same while the matter is liquid, where melting does not change the law; without one, `table` counts.

    Raises:
        MpmNodesError: The material has no such parameter, or does not allow a value.
    """
    return _with_table(material, parameter, table, liquid_table)


def _with_table(material: Material, parameter: str, table: Rows, liquid_table: Rows | None) -> Material:
    return _followed_by(material, parameter, ParameterTable(table, liquid_table or ()))


def _followed_by(material: Material, parameter: str, table: ParameterTable) -> Material:
    """Return a material with a table, which is checked."""
    from mpm_nodes.materials.over_temperature import tabled_law

    known = material.tables.get(parameter)
    if known is not None and {known.over, table.over} != {TEMPERATURE}:
        where = f"material {material.label or material.law}"
        raise MpmNodesError(f"{where}: {parameter} follows {known.attribute} already; take one of the two tables out")
    tabled_law(made := dataclasses.replace(material, tables={**material.tables, parameter: table}))
    return made


def _told_over_attribute(told: PreflightContext) -> dict[str, Any]:
    """Tell the wired material with its table, which is checked before anything is cooked."""
    return {"materials": tuple(_over_attribute(material, **told.knobs) for material in told.every("material", "materials"))}


@node(category="Material", label="Over Attribute", preflight=_told_over_attribute)
def material_over_attribute(
    material: Material,
    *,
    parameter: str = "youngs_modulus",
    attribute: str = "paint",
    table: A[Rows, Unitless] = ((0.0, 1.0), (1.0, 0.1)),
    relative: bool = True,
) -> Material:
    """Let a parameter of a material vary from particle to particle, as an attribute of theirs says: paint any number of a law.

    Paint the attribute by set_attribute, change it later by update_attribute, or take one that the solve moves: a concentration.

    Args:
        material: Any material; wire several of these nodes in a row for several parameters.
        parameter: Name of a knob of the material's own node, viscosity, or density, which counts as particles begin.
        attribute: A number that the particles have: a name of yours, or one of the table such as concentration.
        table: Factor, or value, over the attribute: straight between its points and level beyond them.
        relative: Whether the table holds factors on the parameter; off: values that take its place.

    Raises:
        MpmNodesError: The material has no such parameter, does not allow a value, or parameters that go into one number of the
            law follow different attributes.
    """
    return _over_attribute(material, parameter, attribute, table, relative)


def _over_attribute(material: Material, parameter: str, attribute: str, table: Rows, relative: bool) -> Material:
    where, over, known = "material_over_attribute", attribute, ATTRIBUTES.get(attribute)
    if over == TEMPERATURE:
        raise MpmNodesError(f"{where}.attribute: is the temperature; take material_over_temperature")
    if not over.isidentifier():
        raise MpmNodesError(f"{where}.attribute: '{over}' is not a name; use letters, digits and _")
    if known is not None and (known.shape or known.kind != "real" or known.passing):
        raise MpmNodesError(f"{where}.attribute: {over} is not a number that particles keep; choose another")
    if relative and parameter not in material.tables:
        base = _number_of(material, parameter)
        if carries_keys(base):
            raise MpmNodesError(f"{where}.parameter: {parameter} has keys; remove them, and change the attribute over time instead")
        if base == 0.0:
            raise MpmNodesError(f"{where}.parameter: {parameter} is 0, and so is 0 times a factor; give it a value")
        table = tuple((place, factor * (1.0 if base is None else base)) for place, factor in table)
    made = _followed_by(material, parameter, ParameterTable(table, over=over))
    if parameter == "density":  # what is lightest has the fastest waves, and so the shortest substeps
        made = dataclasses.replace(made, density=min(value for _, value in table))
    return made


def _number_of(material: Material, parameter: str) -> Any:
    """Return a parameter of a material; None of an unknown one."""
    from mpm_nodes.materials.contract import law

    own = {each.name: each.default for each in dataclasses.fields(law(material.law).params)} | dict(material.params)
    return ({"viscosity": material.viscosity, "density": material.density} | own).get(parameter)
