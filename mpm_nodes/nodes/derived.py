"""Columns that follow from what particles carry: speed, age, change of volume, tension; and columns by any of their names."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import ATTRIBUTES, BIRTH, MpmNodesError, Particles

__all__ = ["column", "known_as", "tension_of"]

DERIVED = {"speed": ("velocity",), "age": (BIRTH,), "J": (), "surface_tension": ()}
"""Names of what is computed, and the columns that it needs."""


def known_as(particles: Particles, name: str) -> bool:
    """Whether `column` can give this."""
    return name in particles or _alias(name) in particles or (name in DERIVED and all(need in particles for need in DERIVED[name]))


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
    if _alias(name) in particles:
        return particles[_alias(name)]
    if not known_as(particles, name):
        names = sorted([*particles.attributes, *(each for each in DERIVED if known_as(particles, each))])
        cure = "; wire rest_positions in before the solve" if name == "age" else ""
        raise MpmNodesError(f"{where}: the particles have no '{name}'; they have {', '.join(names)}{cure}")
    if name == "speed":
        return np.linalg.norm(particles["velocity"], axis=1).astype(np.float32)
    if name == "age":
        return (particles.time - np.asarray(particles[BIRTH], np.float64)).astype(np.float32)
    if name == "surface_tension":
        return tension_of(particles)
    from mpm_nodes.materials.volumes import volume_ratios

    return volume_ratios(particles).astype(np.float32)


def tension_of(particles: Particles) -> np.ndarray:
    """Return the surface tension of the particles' matter against air [N/m], shape (n,), float32, as set_tension takes it.

    That is the material's at the temperature and concentration of each particle, times `tension_scale` where they have it. Fields
    in places (tension_field_vdb) are not counted: they belong to the solve.

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


def _alias(name: str) -> str:
    """Return our name of what USD or papers call so."""
    for known in ATTRIBUTES.values():
        if name in (known.usd.removeprefix("primvars:"), known.symbol, known.houdini):
            return known.name
    return name
