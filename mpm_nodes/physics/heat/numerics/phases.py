"""How particles go from one phase to the other, and what their volume does meanwhile."""

from __future__ import annotations

import numpy as np

from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.state import ParticleStore

__all__ = ["change_phase", "swell"]


def change_phase(particles: ParticleStore, rows: np.ndarray, partners: np.ndarray) -> None:
    """Give particles the material of their phase; the new law begins at their volume, without a deviatoric strain (S14 4.2).

    Args:
        particles: The particles.
        rows: Those whose phase changed.
        partners: See `partners_of`.
    """
    material, phase = particles.array("material"), particles.array("phase")
    before = material[rows].copy()
    after = partners[before, phase[rows]]
    rows, before, after = (each[before != after] for each in (rows, before, after))
    if not len(rows):
        return
    for index in np.unique(before):
        chosen = before == index
        ratio = _volume_ratio(particles, particles.laws[index], rows[chosen])
        for other in np.unique(after[chosen]):
            mine = after[chosen] == other
            _begin(particles, particles.laws[other], rows[chosen][mine], ratio[mine])
    material[rows] = after
    particles.retable()


def swell(particles: ParticleStore, rows: np.ndarray, before: np.ndarray, densities: np.ndarray) -> None:
    """Let the undeformed volume of particles follow the share of them that has melted: V0 = m ((1 - u) / rho_s + u / rho_l).

    The mass stays and so does the volume J V0 that a particle takes now. J therefore differs from 1 until pressure, or the
    projection, has moved the matter: ice that melts draws in. A law that knows no volume keeps V0.

    Args:
        particles: The particles, with the material of their phase.
        rows: Those whose share changed.
        before: u of these before.
        densities: See `densities_of`.
    """
    material = particles.array("material")[rows]
    solid, liquid = 1.0 / densities[material].T
    share, volume = particles.array("latent_heat_fraction")[rows].astype(float), particles.array("volume")
    growth = (solid + share * (liquid - solid)) / (solid + before * (liquid - solid))
    for law, _ in particles.runs():
        first = law.names[0] if law.names else ""
        mine = material == law.index
        if first not in ("deformation", "volume_change") or not mine.any():
            continue
        chosen, by = rows[mine], growth[mine]
        state = particles.rows(first)
        if first == "deformation":
            state[:, chosen] *= np.cbrt(1.0 / by)
        else:
            # (1 + e) / by - 1, without losing the digits of a small e
            state[0, chosen] = (state[0, chosen].astype(float) + (1.0 - by)) / by
        volume[chosen] *= by
    particles.limits = None


def _volume_ratio(particles: ParticleStore, bound: BoundLaw, rows: np.ndarray) -> np.ndarray:
    """Return J of particles, shape (n,)."""
    found = bound.loops.law
    values = [particles.rows(name)[:, rows].astype(float) for name in bound.names]
    state = tuple(tuple(value) if len(value) > 1 else value[0] for value in values)
    ratio, strain = found.function("volume_ratio"), found.function("left_strain")
    if ratio is not None:
        return np.asarray(ratio(state), float)
    return np.asarray(strain(state)[0], float) if strain is not None else np.ones(len(rows))


def _begin(particles: ParticleStore, bound: BoundLaw, rows: np.ndarray, ratio: np.ndarray) -> None:
    """Put particles at the rest state of a law, scaled to a volume."""
    for name, values in bound.loops.law.rest_state(len(rows)).items():
        if name == "deformation":
            values = values * np.cbrt(ratio)[:, None, None]
        elif name == "volume_change":
            values = ratio - 1.0
        particles.rows(name)[:, rows] = np.asarray(values).reshape(len(rows), -1).T
