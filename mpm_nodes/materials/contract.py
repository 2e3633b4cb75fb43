"""What a constitutive law is, and the register of all laws.

A law is one module of pure, branch-free functions over values (floats, NumPy arrays, numba scalars, sixteen lanes) and
tuples of them; see `neo_hookean.py` for the shortest. It defines:

| name | meaning |
|---|---|
| `Params` | frozen dataclass of the knobs: hints with unit and Range, defaults, help under "Attributes:"; class \
variables `law` (id), `label`, `source`, `density` (default, kg/m^3) |
| `STATE` | the particle fields that the law evolves: names of `data.ATTRIBUTES`, or a `data.Field` of its own |
| `COEFFICIENTS` | names of the numbers that the functions get; one of them is "density" |
| `STIFFNESS` | the coefficients that the attribute `stiffness_scale` multiplies |
| `VISCOSITY` | the coefficient [Pa s] that limits explicit time steps, or None |
| `coefficients(params, density)` | the numbers |
| `energy(state, A, coeffs, dt)` | psi [J/m^3 of undeformed volume] |
| `stress(state, A, coeffs, dt)` | T = dpsi/dA [Pa]; at A = 0 the Kirchhoff stress |
| `stress_differential(state, A, dA, coeffs, dt)` | derivative of T along dA [Pa] |
| `advance(state, A, coeffs, dt)` | trial state after the step |
| `advance_minimised(state, A, coeffs, dt)` | optional: the same after a step whose energy was minimised, where \
`advance` leaves out what is of second order in A |
| `feasible(state, A, coeffs, dt)` | mask: where a line search may go |
| `wave_speed(state, coeffs)` | fastest wave [m/s], current moduli over the undeformed density |
| `project(state, coeffs, dt)` | optional: return map of the trial state |
| `viscous_stress(state, L, coeffs)` | with VISCOSITY: the viscous part [Pa] for a known velocity gradient L [1/s] |
| `kirchhoff(state, coeffs)` | optional: T at A = 0 and dt = 0, where that is cheaper than `stress`; explicit steps use it |
| `left_strain(state)` | optional: J and the unimodular elastic left Cauchy-Green tensor: the law can tear and recover |
| `left_stretch(state)` | optional, of an isotropic law whose state begins with `deformation`: V of F = V R, six values |
| `stretched_stress(state, coeffs)`, `stretched_differential(state, dA, coeffs)` | with `left_stretch`: T at A = 0 and its \
derivative [Pa], of a state that begins with V instead of F; projections use them, many times for one `left_stretch` |
| `volume_ratio(state)` | optional: current over undeformed volume, where that is not the J of `left_strain`; its materials \
may have a viscosity |
| `yield_function(state, coeffs)` | with `project`: <= 0 where the material does not flow, in any unit |
| `longest_step(state, coeffs, h)` | optional: longest substep [s] that the law allows on cells of h [m], beside waves and \
viscosity; called with NumPy columns |

A law may instead be composed of an elastic part and a return map: it defines `ELASTIC`, `RETURN_MAP` and `Params` (see
`composition`). One that names its strain, `STRAIN`, can be such an elastic part.

`state` holds one entry per name in STATE: nine values, row-major, for a matrix, six (xx xy xz yy yz zz) for a symmetric one,
one value for a scalar. `coeffs` holds
one value per name in COEFFICIENTS; A = dt grad v has nine. Explicit steps use T(0) + viscous_stress(L of the last
step); implicit ones minimise the sum of the energies. All functions are marked `@inline`; a literal is written
`const(x, 0.5)`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import math
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np

from mpm_nodes.data import ATTRIBUTES, Field, Material, MpmNodesError, Range
from mpm_nodes.data.suggestions import nearest
from mpm_nodes.materials.composition import compose_module, faults
from mpm_nodes.materials.parameters import BUILT_IN
from mpm_nodes.materials.values import FloatType

__all__ = ["OPTIONAL", "REQUIRED", "Follows", "Law", "LawError", "LawParams", "law", "law_ids", "law_in", "law_of", "register_law"]

REQUIRED: dict[str, tuple[str, ...]] = {
    "energy": ("state", "A", "coeffs", "dt"),
    "stress": ("state", "A", "coeffs", "dt"),
    "stress_differential": ("state", "A", "dA", "coeffs", "dt"),
    "advance": ("state", "A", "coeffs", "dt"),
    "feasible": ("state", "A", "coeffs", "dt"),
    "wave_speed": ("state", "coeffs"),
}
"""Functions that every law has, with their parameters."""

OPTIONAL: dict[str, tuple[str, ...]] = {
    "advance_minimised": ("state", "A", "coeffs", "dt"),
    "project": ("state", "coeffs", "dt"),
    "viscous_stress": ("state", "L", "coeffs"),
    "kirchhoff": ("state", "coeffs"),
    "left_strain": ("state",),
    "left_stretch": ("state",),
    "stretched_stress": ("state", "coeffs"),
    "stretched_differential": ("state", "dA", "coeffs"),
    "volume_ratio": ("state",),
    "yield_function": ("state", "coeffs"),
    "longest_step": ("state", "coeffs", "h"),
}
"""Functions that a law may have."""

_STRETCHED = ("left_stretch", "stretched_stress", "stretched_differential")
"""Those that a law has together or not at all."""


class LawError(MpmNodesError):
    """A law module breaks the contract, is unknown, or gets parameters that it does not allow."""


class LawParams(Protocol):
    """What the knobs of a law have in common: they are a frozen dataclass with numbers, each with a default.

    Attributes:
        law: Id of the law.
        label: Name that artists see.
        source: Paper and equations.
        density: Undeformed density by default [kg/m^3].
    """

    law: ClassVar[str]
    label: ClassVar[str]
    source: ClassVar[str]
    density: ClassVar[float]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def __init__(self, **values: Any) -> None: ...


class Follows(NamedTuple):
    """Coefficients that follow an attribute of particles by tables.

    Attributes:
        over: The attribute.
        indices: Which coefficients; len(names) stands for the material's viscosity.
        by_phase: Whether those of liquid particles have tables of their own.
    """

    over: str
    indices: tuple[int, ...]
    by_phase: bool = False


@dataclass(frozen=True)
class Law:
    """A checked law.

    Attributes:
        id: Name in graph files ("snow").
        label: Name that artists see.
        source: Paper and equations.
        params: The `Params` class.
        state: Names of the fields that it evolves.
        fields: What those fields are, by name.
        names: Names of the coefficients.
        stiffness: Indices of the coefficients that `stiffness_scale` multiplies.
        viscosity: Index of the viscosity among the coefficients, or None.
        module: The module that holds the functions.
        follows: What its coefficients follow; none of them follows two attributes.
    """

    id: str
    label: str
    source: str
    params: type[LawParams]
    state: tuple[str, ...]
    fields: Mapping[str, Field] = dataclasses.field(compare=False)
    names: tuple[str, ...]
    stiffness: tuple[int, ...]
    viscosity: int | None
    module: ModuleType
    follows: tuple[Follows, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Fields that its coefficients follow."""
        return tuple(dict.fromkeys(name for each in self.follows for name in (each.over, "phase")[: 1 + each.by_phase]))

    def followed(self, index: int) -> Follows | None:
        """Return what a coefficient follows, if anything."""
        return next((each for each in self.follows if index in each.indices), None)

    def function(self, name: str) -> Callable[..., Any] | None:
        """Return a function of the contract, or None where the law has none of that (optional) name."""
        if name not in REQUIRED and name not in OPTIONAL:
            known = ", ".join((*REQUIRED, *OPTIONAL))
            raise LawError(f"law {self.id}: there is no function {name!r}; choose one of {known}")
        return getattr(self.module, name, None)

    def coefficients(self, params: Any = None, density: float | None = None) -> np.ndarray:
        """Return the coefficients, shape (len(names),), float64.

        Args:
            params: A `Params` instance, a mapping of some of its fields (the others keep their defaults), or None.
            density: Undeformed density [kg/m^3]; None takes the law's default.

        Raises:
            LawError: When a name is unknown or a value is not finite or out of range.
        """
        density = self.params.density if density is None else density
        if not (math.isfinite(density) and density > 0.0):
            raise LawError(f"law {self.id}: density = {density:g} kg/m^3 is out of range; give a value > 0")
        params = params if isinstance(params, self.params) else self.params(**self._known(params or {}))
        for name, limits in _ranges(self.params).items():
            value = getattr(params, name)
            wrong = limits.problem(value) if math.isfinite(value) else "that is finite"
            if wrong:
                raise LawError(f"law {self.id}: {name} = {value:g} is out of range; give a value {wrong}")
        return np.array(self.module.coefficients(params, density), np.float64)

    def rest_state(self, count: int, dtype: FloatType = np.float64) -> dict[str, np.ndarray]:
        """Return the state of `count` untouched particles by attribute name, shapes (count, *attribute shape)."""
        return {name: self.fields[name].rest_values(count, dtype) for name in self.state}

    def _known(self, params: Mapping[str, Any]) -> dict[str, Any]:
        fields = [field.name for field in dataclasses.fields(self.params)]
        unknown = sorted(set(params) - set(fields))
        if unknown:
            raise LawError(f"law {self.id}: unknown parameter {', '.join(unknown)}; it takes {', '.join(fields)}")
        return dict(params)


_LAWS: dict[str, Law] = {}


def law_ids() -> tuple[str, ...]:
    """Return the ids of all laws: the built-in ones, then the registered ones."""
    return tuple(dict.fromkeys((*BUILT_IN, *_LAWS)))


def law(name: str) -> Law:
    """Return a law by id; built-in modules are imported at the first call.

    Raises:
        LawError: When there is no such law.
    """
    if name not in _LAWS:
        if name not in BUILT_IN:
            raise LawError(f"law {name!r}: unknown; {nearest(name, law_ids())}")
        register_law(importlib.import_module(f"mpm_nodes.materials.{name}"))
    return _LAWS[name]


def law_in(path: Path) -> Law | None:
    """Return the registered law that a Python file defines, or None: of several, the last."""
    for found in reversed(_LAWS.values()):
        file = getattr(found.module, "__file__", None)
        if file is not None and Path(file).resolve() == path.resolve():
            return found
    return None


def law_of(material: Material) -> tuple[Law, np.ndarray]:
    """Return the law of a material and its coefficients, checked; kernels take the material's viscosity behind them."""
    found, where = law(material.law), f"material {material.label or material.law}"
    viscosity = material.viscosity
    if not (math.isfinite(viscosity) and viscosity >= 0.0):
        raise LawError(f"{where}: viscosity = {viscosity:g} Pa s is out of range; give a value >= 0")
    if viscosity > 0.0 and not (found.function("volume_ratio") or found.function("left_strain")):
        raise LawError(f"{where}: law {found.id} knows no volume and takes no viscosity; write def volume_ratio(state)")
    try:
        return found, found.coefficients(material.params, material.density)
    except LawError as error:
        raise LawError(f"{where}: {error}") from None


def register_law(module: ModuleType) -> Law:
    """Check a module against the contract and make its law known; returns the law.

    Raises:
        LawError: With one sentence that says what is missing or wrong.
    """
    checked = _check(module)
    known = _LAWS.get(checked.id)
    if known is not None and known.module.__name__ != module.__name__:
        raise LawError(f"law {checked.id}: {module.__name__} and {known.module.__name__} both define it; rename one")
    _LAWS[checked.id] = checked
    return checked


# ---------------------------------------------------------------- the check
def _check(module: ModuleType) -> Law:
    def fail(sentence: str) -> NoReturn:
        raise LawError(f"law module {module.__name__}: {sentence}")

    params = _checked_params(module, fail)
    if hasattr(module, "ELASTIC") or hasattr(module, "RETURN_MAP"):
        for part in ("ELASTIC", "RETURN_MAP"):
            if not hasattr(module, part):
                fail(f"has no {part}; a composed law defines both ELASTIC and RETURN_MAP")
        wrong = faults(module.ELASTIC, module.RETURN_MAP)
        if wrong:
            fail(wrong)
        compose_module(module)
    for fact in ("STATE", "COEFFICIENTS", "STIFFNESS", "VISCOSITY"):
        if not hasattr(module, fact):
            fail(f"has no {fact}; define it (see the contract)")
    names, fields = tuple(module.COEFFICIENTS), _state_fields(module, fail)
    if "density" not in names:
        fail("COEFFICIENTS has no 'density'; wave speeds need it")
    for name in (*module.STIFFNESS, *([module.VISCOSITY] if module.VISCOSITY else [])):
        if name not in names:
            fail(f"STIFFNESS or VISCOSITY names {name!r}, which is not in COEFFICIENTS")
    _check_functions(module, fail)
    _check_defaults(module, params, names, fail)
    return Law(
        params.law,
        params.label,
        params.source,
        params,
        tuple(fields),
        fields,
        names,
        tuple(names.index(name) for name in module.STIFFNESS),
        names.index(module.VISCOSITY) if module.VISCOSITY else None,
        module,
    )


def _checked_params(module: ModuleType, fail: Callable[[str], NoReturn]) -> type[LawParams]:
    """Return the class of the law's knobs."""
    params = getattr(module, "Params", None)
    if not isinstance(params, type) or not dataclasses.is_dataclass(params):
        fail("has no Params; write a frozen dataclass of its knobs")
    if not getattr(params, "__dataclass_params__").frozen:  # noqa: B009
        fail("Params can change; write @dataclass(frozen=True)")
    for fact in ("law", "label", "source", "density"):
        if not getattr(params, fact, None):
            fail(f"Params has no {fact}; add the class variable {fact}")
    checked = typing.cast(type[LawParams], params)
    if not re.fullmatch("[a-z][a-z0-9_]*", checked.law):
        fail(f"Params.law is {checked.law!r}; use lower case, digits and underscores")
    if not (math.isfinite(checked.density) and checked.density > 0):
        fail(f"Params.density is {checked.density}; give a value > 0")
    for field in dataclasses.fields(checked):
        if not re.search(rf"^\s+{field.name}: \S", checked.__doc__ or "", re.M):
            fail(f"Params.{field.name} has no help; add the line '{field.name}: ...' under Attributes: in its docstring")
        if field.default is dataclasses.MISSING:
            fail(f"Params.{field.name} has no default; give one")
    return checked


def _check_defaults(module: ModuleType, params: type[LawParams], names: tuple[str, ...], fail: Callable[[str], NoReturn]) -> None:
    """Refuse knobs whose defaults give no coefficients."""
    try:
        _ranges(params)
        given = np.atleast_1d(module.coefficients(params(), params.density)).astype(float)
    except Exception as error:
        told = f"the defaults of Params give no coefficients: {type(error).__name__}: {error}; fix the file"
        raise LawError(f"law module {module.__name__}: {told}") from error
    if len(given) != len(names):
        fail(f"coefficients() returns {len(given)} numbers for {len(names)} COEFFICIENTS")
    wrong = [name for name, value in zip(names, given, strict=True) if not math.isfinite(value)]
    if wrong:
        fail(f"coefficients() of the defaults returns no finite {', '.join(wrong)}; fix it or the defaults")


def _state_fields(module: ModuleType, fail: Callable[[str], NoReturn]) -> dict[str, Field]:
    """Return the fields of STATE by name."""
    fields: dict[str, Field] = {}
    for item in module.STATE:
        name = getattr(item, "name", item)
        known = item if isinstance(item, Field) else ATTRIBUTES.get(name)
        if known is None:
            fail(f"STATE names {name!r}, which is not a field of particles; describe it: Field({name!r}, ...)")
        if ATTRIBUTES.get(name, known) != known:
            fail(f"STATE describes {name} otherwise than data.ATTRIBUTES; rename it")
        if known.kind != "real":
            fail(f"STATE holds {name} of kind {known.kind}; a law's state is of real numbers")
        fields[name] = known
    return fields


def _check_functions(module: ModuleType, fail: Callable[[str], NoReturn]) -> None:
    expected = {
        **REQUIRED,
        **{name: args for name, args in OPTIONAL.items() if hasattr(module, name)},
        "coefficients": ("params", "density"),
    }
    for name, args in expected.items():
        function = getattr(module, name, None)
        if not callable(function):
            fail(f"has no function {name}; write def {name}({', '.join(args)})")
        given = tuple(inspect.signature(function).parameters)
        if given != args:
            fail(f"{name} takes ({', '.join(given)}); write def {name}({', '.join(args)})")
    if module.VISCOSITY and not hasattr(module, "viscous_stress"):
        fail("has VISCOSITY but no viscous_stress; write def viscous_stress(state, L, coeffs)")
    missing = [name for name in _STRETCHED if not hasattr(module, name)]
    if 0 < len(missing) < len(_STRETCHED):
        name = missing[0]
        fail(f"has only some of {', '.join(_STRETCHED)}; write def {name}({', '.join(OPTIONAL[name])})")


@functools.cache
def _ranges(params: type[LawParams]) -> Mapping[str, Range]:
    """Return the Range of each numeric field (an unlimited one where none is written)."""
    hints = typing.get_type_hints(params, include_extras=True)
    metadata = {field.name: getattr(hints[field.name], "__metadata__", ()) for field in dataclasses.fields(params)}
    return {name: next((m for m in items if isinstance(m, Range)), Range()) for name, items in metadata.items()}
