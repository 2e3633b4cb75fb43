"""Laws made of an elastic part and a return map: any return map on any elastic law that names its strain.

A law module that defines ELASTIC and RETURN_MAP, and `Params`, needs nothing else: its state and its coefficients are those of the
elastic part followed by those of the return map, and its functions are written here. `snow.py` is one.

An elastic part is a law without Params (or a whole law), and names its strain:

| STRAIN | state that it stands for |
|---|---|
| "deformation" | one matrix: the elastic deformation gradient F |
| "unimodular" | J - 1, and b - I of the unimodular elastic left Cauchy-Green tensor b (six values) |

One of "deformation" may have `principal_kirchhoff(s, coeffs)`, principal Kirchhoff stresses [Pa] of principal stretches, where that
is cheaper than its `kirchhoff`. A return map is a module of functions as a law's are:

| name | meaning |
|---|---|
| `STATE`, `COEFFICIENTS` | what it has of its own, as in a law; both may be empty |
| `coefficients(params)` | its numbers |
| `project_stretches(s, own, stress_of, moduli, coeffs, dt)` | principal stretches and own state after the flow, for any strain; \
`stress_of(s, moduli)` gives the elastic law's principal Kirchhoff stresses [Pa] of any stretches |
| `yield_function(s, own, stress_of, moduli, coeffs)` | <= 0 where the material does not flow, in any unit |
| `stiffening(own, coeffs)` | optional: factor of the elastic law's STIFFNESS |
| `plastic_volume(own)` | optional: factor of the volume that the elastic strain does not know |
| `project_deformation(F, own, moduli, coeffs, dt)`, `project_unimodular(e, E, own, moduli, coeffs, dt)` | optional: \
`project_stretches` for one kind of strain, where that is quicker; E has six values, `moduli` are without `stiffening` |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from mpm_nodes.kernels.algebra import mat3, rotations
from mpm_nodes.kernels.algebra.eigen import eigen
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, maximum, sqrt
from mpm_nodes.materials.values import (
    Coefficients,
    ElasticModule,
    Mask,
    Matrix,
    PrincipalStress,
    ReturnMapModule,
    State,
    Symmetric,
    Value,
    Vector,
)

__all__ = ["ARGUMENTS", "STRAINS", "compose", "compose_module", "faults"]

STRAINS = {"deformation": (9,), "unimodular": (1, 6)}
"""Kinds of elastic strain: the values of the state entries that one takes."""

ARGUMENTS = {
    "coefficients": ("params",),
    "project_stretches": ("s", "own", "stress_of", "moduli", "coeffs", "dt"),
    "yield_function": ("s", "own", "stress_of", "moduli", "coeffs"),
    "stiffening": ("own", "coeffs"),
    "plastic_volume": ("own",),
    "project_deformation": ("F", "own", "moduli", "coeffs", "dt"),
    "project_unimodular": ("e", "E", "own", "moduli", "coeffs", "dt"),
}
"""Functions of a return map with their parameters; the first three are needed."""


def faults(elastic: Any, flow: Any) -> str:
    """Return what keeps an elastic part and a return map from being composed, in one sentence, or ""."""
    strain = getattr(elastic, "STRAIN", None)
    if strain not in STRAINS:
        kinds = " or ".join(map(repr, STRAINS))
        return f"ELASTIC {elastic.__name__} names no strain that a return map can change; define STRAIN = {kinds} there"
    for fact in ("STATE", "COEFFICIENTS"):
        if not hasattr(flow, fact):
            return f"RETURN_MAP {flow.__name__} has no {fact}; define it, () where there is none"
    for position, (name, args) in enumerate(ARGUMENTS.items()):
        function = getattr(flow, name, None)
        if function is None and position > 2:
            continue
        if not callable(function):
            return f"RETURN_MAP {flow.__name__} has no function {name}; write def {name}({', '.join(args)})"
        given = tuple(inspect.signature(function).parameters)
        if given != args:
            return f"RETURN_MAP {flow.__name__}: {name} takes ({', '.join(given)}); write def {name}({', '.join(args)})"
    names = [{getattr(field, "name", field) for field in part.STATE} for part in (elastic, flow)]
    twice = sorted(names[0] & names[1] | set(elastic.COEFFICIENTS) & set(flow.COEFFICIENTS))
    if twice:
        return f"ELASTIC and RETURN_MAP both name {', '.join(twice)} in STATE or COEFFICIENTS; rename one"
    return ""


def compose(elastic: ElasticModule, flow: ReturnMapModule) -> dict[str, Any]:
    """Return what a law module defines, by name, for a law of an elastic part and a return map without `faults`."""
    k, n = len(elastic.STATE), len(elastic.COEFFICIENTS)
    moduli = _moduli(elastic, flow, k, n)

    def coefficients(params: Any, density: float) -> tuple[float, ...]:
        return (*elastic.coefficients(params, density), *flow.coefficients(params))

    made = {
        "STATE": (*elastic.STATE, *flow.STATE),
        "COEFFICIENTS": (*elastic.COEFFICIENTS, *flow.COEFFICIENTS),
        "STIFFNESS": elastic.STIFFNESS,
        "VISCOSITY": elastic.VISCOSITY,
        "coefficients": coefficients,
        **_elastic_functions(elastic, k, moduli),
        **_optional_functions(elastic, k, moduli),
        "volume_ratio": _volume_ratio(elastic, flow, k),
    }
    stretches, stress_of = _PRINCIPAL[elastic.STRAIN](elastic)
    yield_of = flow.yield_function

    @inline
    def yield_function(state: State, coeffs: Coefficients) -> Value:
        return yield_of(stretches(state), state[k:], stress_of, moduli(state, coeffs), coeffs[n:])

    return made | {"yield_function": yield_function, "project": _project(elastic, flow, stress_of, k, n, moduli)}


# ---------------------------------------------------------------- the elastic functions, of a part of state and coefficients
def _elastic_functions(elastic: ElasticModule, k: int, moduli: Callable) -> dict[str, Callable]:
    energy_of, stress_of, differential_of = elastic.energy, elastic.stress, elastic.stress_differential
    advance_of, feasible_of, speed_of = elastic.advance, elastic.feasible, elastic.wave_speed

    @inline
    def energy(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Value:
        return energy_of(state[:k], A, moduli(state, coeffs), dt)

    @inline
    def stress(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
        return stress_of(state[:k], A, moduli(state, coeffs), dt)

    @inline
    def stress_differential(state: State, A: Matrix, dA: Matrix, coeffs: Coefficients, dt: Value) -> Matrix:
        return differential_of(state[:k], A, dA, moduli(state, coeffs), dt)

    @inline
    def advance(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> State:
        return advance_of(state[:k], A, moduli(state, coeffs), dt) + state[k:]

    @inline
    def feasible(state: State, A: Matrix, coeffs: Coefficients, dt: Value) -> Mask:
        return feasible_of(state[:k], A, moduli(state, coeffs), dt)

    @inline
    def wave_speed(state: State, coeffs: Coefficients) -> Value:
        return speed_of(state[:k], moduli(state, coeffs))

    return {
        "energy": energy,
        "stress": stress,
        "stress_differential": stress_differential,
        "advance": advance,
        "feasible": feasible,
        "wave_speed": wave_speed,
    }


def _optional_functions(elastic: ElasticModule, k: int, moduli: Callable) -> dict[str, Callable]:
    """Return the functions that the law has where its elastic part has them."""
    made: dict[str, Callable] = {}
    if hasattr(elastic, "kirchhoff"):
        kirchhoff_of = elastic.kirchhoff

        @inline
        def kirchhoff(state: State, coeffs: Coefficients) -> Matrix:
            return kirchhoff_of(state[:k], moduli(state, coeffs))

        made["kirchhoff"] = kirchhoff
    if hasattr(elastic, "viscous_stress"):
        viscous_of = elastic.viscous_stress

        @inline
        def viscous_stress(state: State, L: Matrix, coeffs: Coefficients) -> Matrix:
            return viscous_of(state[:k], L, moduli(state, coeffs))

        made["viscous_stress"] = viscous_stress
    if hasattr(elastic, "left_strain"):
        strain_of = elastic.left_strain

        @inline
        def left_strain(state: State) -> tuple[Value, Matrix]:
            return strain_of(state[:k])

        made["left_strain"] = left_strain
    if hasattr(elastic, "left_stretch"):
        made |= _stretched_functions(elastic, k, moduli)
    return made


def _stretched_functions(elastic: ElasticModule, k: int, moduli: Callable) -> dict[str, Callable]:
    stress_of, differential_of = elastic.stretched_stress, elastic.stretched_differential

    @inline
    def stretched_stress(state: State, coeffs: Coefficients) -> Matrix:
        return stress_of(state[:k], moduli(state, coeffs))

    @inline
    def stretched_differential(state: State, dA: Matrix, coeffs: Coefficients) -> Matrix:
        return differential_of(state[:k], dA, moduli(state, coeffs))

    made: dict[str, Callable] = {"stretched_stress": stretched_stress, "stretched_differential": stretched_differential}
    return {"left_stretch": elastic.left_stretch, **made}


def _volume_ratio(elastic: ElasticModule, flow: ReturnMapModule, k: int) -> Callable:
    """Return J of the elastic strain times what flow adds to it."""
    if elastic.STRAIN == "deformation":

        @inline
        def elastic_volume(state: State) -> Value:
            return mat3.det(state[0])

    else:

        @inline
        def elastic_volume(state: State) -> Value:
            return const(state[0], 1.0) + state[0]

    if not hasattr(flow, "plastic_volume"):
        return elastic_volume
    plastic_of = flow.plastic_volume

    @inline
    def volume_ratio(state: State) -> Value:
        return elastic_volume(state) * plastic_of(state[k:])

    return volume_ratio


def _moduli(elastic: ElasticModule, flow: ReturnMapModule, k: int, n: int) -> Callable:
    """Return the coefficients of the elastic part as the return map has stiffened them."""
    if not hasattr(flow, "stiffening"):

        @inline
        def plain(state: State, coeffs: Coefficients) -> Coefficients:
            return coeffs[:n]

        return plain
    factor_of, scaled = flow.stiffening, _nothing
    for index in reversed(range(n)):
        scaled = _with_number(index, elastic.COEFFICIENTS[index] in elastic.STIFFNESS, scaled)

    @inline
    def stiffened(state: State, coeffs: Coefficients) -> Coefficients:
        return scaled(coeffs, factor_of(state[k:], coeffs[n:]))

    return stiffened


@inline
def _nothing(coeffs: Coefficients, factor: Value) -> Coefficients:
    return ()


def _with_number(index: int, stiff: bool, rest: Callable) -> Callable:
    """Return a function that puts one coefficient, times the factor where it is a stiffness, before the rest."""

    @inline
    def scaled(coeffs: Coefficients, factor: Value) -> Coefficients:
        return (coeffs[index] * factor, *rest(coeffs, factor))

    @inline
    def kept(coeffs: Coefficients, factor: Value) -> Coefficients:
        return (coeffs[index], *rest(coeffs, factor))

    return scaled if stiff else kept


# ---------------------------------------------------------------- principal stretches of each kind of strain
def _of_deformation(elastic: ElasticModule) -> tuple[Callable, Callable]:
    @inline
    def stretches(state: State) -> Vector:
        _U, s, _V = rotations.svd(state[0])
        return s

    if hasattr(elastic, "principal_kirchhoff"):
        return stretches, elastic.principal_kirchhoff
    kirchhoff_of = _kirchhoff(elastic)

    @inline
    def stress_of(s: Vector, moduli: Coefficients) -> Vector:
        T = kirchhoff_of((mat3.diagonal(s[0], s[1], s[2]),), moduli)
        return T[0], T[4], T[8]

    return stretches, stress_of


def _of_unimodular(elastic: ElasticModule) -> tuple[Callable, Callable]:
    kirchhoff_of = _kirchhoff(elastic)

    @inline
    def stretches(state: State) -> Vector:
        return _turned(state[0], state[1])[1]

    @inline
    def stress_of(s: Vector, moduli: Coefficients) -> Vector:
        e, p = _strain_of(s)
        o = const(e, 0.0)
        T = kirchhoff_of((e, (p[0], o, o, p[1], o, p[2])), moduli)
        return T[0], T[4], T[8]

    return stretches, stress_of


_PRINCIPAL = {"deformation": _of_deformation, "unimodular": _of_unimodular}


def _kirchhoff(elastic: ElasticModule) -> Callable:
    """Return the elastic law's T at A = 0."""
    if hasattr(elastic, "kirchhoff"):
        return elastic.kirchhoff
    general = elastic.stress

    @inline
    def kirchhoff(state: State, moduli: Coefficients) -> Matrix:
        x = moduli[0]
        return general(state, mat3.zero(x), moduli, const(x, 1.0))

    return kirchhoff


@inline
def _turned(e: Value, E: Symmetric) -> tuple[Matrix, Vector]:
    """Return the axes and the principal stretches of J - 1 = e and b - I = E."""
    U, p = eigen(mat3.unpack(E))
    one = const(e, 1.0)
    c = mat3.cube_root(maximum(const(e, 1e-9), one + e))
    tiny = const(e, 1e-12)
    a, b, d = sqrt(maximum(tiny, one + p[0])), sqrt(maximum(tiny, one + p[1])), sqrt(maximum(tiny, one + p[2]))
    return U, (c * a, c * b, c * d)


@inline
def _strain_of(s: Vector) -> tuple[Value, Vector]:
    """Return J - 1 and the principal values of b - I of three stretches."""
    one = const(s[0], 1.0)
    J = s[0] * s[1] * s[2]
    c = mat3.cube_root(J)
    k = one / (c * c)
    return J - one, (k * s[0] * s[0] - one, k * s[1] * s[1] - one, k * s[2] * s[2] - one)


# ---------------------------------------------------------------- the return map
def _project(
    elastic: ElasticModule, flow: ReturnMapModule, stress_of: PrincipalStress, k: int, n: int, moduli: Callable
) -> Callable:
    own_form = getattr(flow, f"project_{elastic.STRAIN}", None)
    if own_form is not None:  # a factor that it does not use would be computed all the same

        @inline
        def moduli(state: State, coeffs: Coefficients) -> Coefficients:
            return coeffs[:n]

    change = flow.project_stretches
    if elastic.STRAIN == "deformation":
        if own_form is None:

            @inline
            def own_form(F: Matrix, own: State, c: Coefficients, coeffs: Coefficients, dt: Value) -> tuple[Matrix, State]:
                U, s, V = rotations.svd(F)
                t, own = change(s, own, stress_of, c, coeffs, dt)
                # only the change is added: stretches that stay keep their bits
                a, b, d = t[0] - s[0], t[1] - s[1], t[2] - s[2]
                W = (U[0] * a, U[1] * b, U[2] * d, U[3] * a, U[4] * b, U[5] * d, U[6] * a, U[7] * b, U[8] * d)
                return mat3.add(F, mat3.matmul_nt(W, V)), own

        @inline
        def project(state: State, coeffs: Coefficients, dt: Value) -> State:
            F, own = own_form(state[0], state[k:], moduli(state, coeffs), coeffs[n:], dt)
            return (F, *own)

        return project
    if own_form is None:

        @inline
        def own_form(
            e: Value, E: Symmetric, own: State, c: Coefficients, coeffs: Coefficients, dt: Value
        ) -> tuple[Value, Symmetric, State]:
            U, s = _turned(e, E)
            t, own = change(s, own, stress_of, c, coeffs, dt)
            e_new, p = _strain_of(t)
            _, q = _strain_of(s)
            moved = mat3.similarity(U, p[0] - q[0], p[1] - q[1], p[2] - q[2])
            return e + (e_new - (s[0] * s[1] * s[2] - const(e, 1.0))), mat3.pack(mat3.add(mat3.unpack(E), moved)), own

    @inline
    def project_pair(state: State, coeffs: Coefficients, dt: Value) -> State:
        e, E, own = own_form(state[0], state[1], state[k:], moduli(state, coeffs), coeffs[n:], dt)
        return (e, E, *own)

    return project_pair


def compose_module(module: ModuleType) -> None:
    """Define on a law module what its ELASTIC and RETURN_MAP give; what it defines itself stays."""
    for name, value in compose(module.ELASTIC, module.RETURN_MAP).items():
        if name not in vars(module):
            setattr(module, name, value)
