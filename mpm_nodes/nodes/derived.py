"""Columns that follow from what particles carry: speed, age, change of volume, tension; and columns by any of their names."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import ATTRIBUTES, BIRTH, MpmNodesError, Particles
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.nodes.bodies import marks

__all__ = ["column", "known_as", "own_name", "refuse_unknown", "tension_of"]

DERIVED = {"speed": ("velocity",), "age": (BIRTH,), "J": (), "surface_tension": ()}
"""Names of what is computed, and the columns that it needs."""


def known_as(particles: Particles | frozenset[str], name: str) -> bool:
    """Whether `column` can give this of particles, or of some with these columns."""
    return (
        name in particles or own_name(name) in particles or (name in DERIVED and all(need in particles for need in DERIVED[name]))
    )


def column(where: str, particles: Particles, name: str) -> np.ndarray:
    """Return a column of particles, shape (n, ...).

    Args:
        where: Node and knob, for messages.
        particles: Whose.
        name: Of a column, also as USD or papers call it (`Jp`, `v`), or `speed` [m/s], `age` [simulated s], `J` or
            `surface_tension` against air [N/m].

    Raises:
        MpmNodesError: They have nothing of that name.
    """
    if name in particles:
        return particles[name]
    if own_name(name) in particles:
        return particles[own_name(name)]
    _refuse_unknown(where, frozenset(particles.attributes), name)
    if name == "speed":
        return np.linalg.norm(particles["velocity"], axis=1).astype(np.float32)
    if name == "age":
        return (particles.time - np.asarray(particles[BIRTH], np.float64)).astype(np.float32)
    if name == "surface_tension":
        return tension_of(particles)
    from mpm_nodes.materials.volumes import volume_ratios

    return volume_ratios(particles).astype(np.float32)


def refuse_unknown(where: str, told: PreflightContext, *names: str) -> None:
    """Refuse, before the cook, names that the particles wired into `particles` will not have, as far as their columns are known.

    Raises:
        MpmNodesError: As `column`.
    """
    columns = marks(told, "particles")["columns"]
    for name in names if columns is not None else ():
        _refuse_unknown(where, columns, name)


def _refuse_unknown(where: str, columns: frozenset[str], name: str) -> None:
    if known_as(columns, name):
        return
    names = sorted({*columns, *(each for each in DERIVED if known_as(columns, each))})
    cure = "; wire rest_positions in before the solve" if name == "age" else ""
    raise MpmNodesError(f"{where}: the particles have no '{name}'; they have {', '.join(names)}{cure}")


def tension_of(particles: Particles) -> np.ndarray:
    """Return the surface tension of the particles' matter against air [N/m], shape (n,), float32, as set_tension takes it.

    That is the material's at the temperature and concentration of each particle, times `tension_scale` where they have it. Fields
    in places (tension_field) are not counted: they belong to the solve.

    Source: C21 section 3.3.
    """
    count = len(particles)

    def held(name: str) -> np.ndarray:
        return particles[name] if name in particles else ATTRIBUTES[name].rest_values(count, np.float64)

    material, found = held("material"), np.zeros(count)
    for index, each in enumerate(particles.materials):
        if each.surface_tension is not None:
            mine = material == index
            found[mine] = each.surface_tension.at(
                held("temperature")[mine].astype(float), held("concentration")[mine].astype(float)
            )
    return (found * held("tension_scale")).astype(np.float32)


def own_name(name: str) -> str:
    """Return our name of what USD or papers call so."""
    for known in ATTRIBUTES.values():
        if name in (known.usd.removeprefix("primvars:"), known.symbol, known.houdini):
            return known.name
    return name
