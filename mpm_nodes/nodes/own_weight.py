"""What gravity would do, said before a cook: rho g H against a material's moduli and yield stress, and streams that fall apart.

A body of height H carries rho g H on its lowest layer. Where that comes near the bulk modulus it presses its volume away, near
Young's modulus it sags out of its shape, and above 2 sigma_Y / sqrt 3 it slumps (Pashias 1996).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mpm_nodes.data import Material
from mpm_nodes.graph.clock import Clock
from mpm_nodes.nodes.bodies import Body, Flow

if TYPE_CHECKING:
    from mpm_nodes.materials.contract import Law

__all__ = ["Moduli", "moduli", "mouth_warnings", "weight_warnings"]

PRESSED = 0.25
"""Weight over bulk modulus from which on a quarter of the volume is lost at the bottom."""
SAGS = 0.5
"""Weight over Young's modulus from which on a column loses a quarter of its height."""
SLUMPS = 2.0 / np.sqrt(3.0)
"""Weight over yield stress from which on a cylinder slumps."""
FLUID = 1e-2
"""Yield stress over shear modulus below which a material is a fluid that is meant to flow."""
STRAIN, INSTANT = 1e-4, 1e-9
"""Strain, and seconds in which it is applied, at which moduli are measured: before anything relaxes or flows."""


class Moduli(NamedTuple):
    """Elastic moduli at rest, of a deformation so quick that nothing flows.

    Attributes:
        bulk: K [Pa].
        shear: G [Pa]; 0 for liquids.
        yield_stress: In simple tension [Pa]; infinite where the law names none.
    """

    bulk: float
    shear: float
    yield_stress: float

    @property
    def young(self) -> float:
        """Young's modulus E = 9 K G / (3 K + G) [Pa]."""
        return 9.0 * self.bulk * self.shear / (3.0 * self.bulk + self.shear)


def moduli(material: Material) -> Moduli:
    """Measure the moduli of a material of any law: its stress after a small shear and a small swelling.

    Raises:
        LawError: The law is unknown, or a parameter is not allowed.
    """
    from mpm_nodes.materials.contract import law

    return _measured(law(material.law), material.density, tuple(sorted(material.params.items())))


@functools.lru_cache(maxsize=256)
def _measured(found: Law, density: float, params: tuple[tuple[str, Any], ...]) -> Moduli:
    """Measure the moduli; a graph may hold hundreds of solves of one material."""
    from mpm_nodes.materials.material_point import call_law

    told: dict[str, Any] = {"params": dict(params), "density": density, "dt": INSTANT}
    shear = np.zeros((3, 3))
    shear[0, 1] = STRAIN
    with np.errstate(all="ignore"):  # what is no number is no modulus: nothing is said of it
        deformed = call_law(found.id, "advance", A=np.stack([np.zeros((3, 3)), shear, STRAIN * np.eye(3)]), **told)
        rest, sheared, swollen = call_law(found.id, "stress", deformed, **told)
    bulk = float(np.trace(swollen - rest)) / (9.0 * STRAIN)
    stiff = float((sheared - rest)[0, 1]) / STRAIN
    return Moduli(bulk, stiff if stiff > 1e-6 * bulk else 0.0, float(dict(params).get("yield_stress", 0.0)) or np.inf)


def weight_warnings(bodies: Iterable[Body], gravity: Iterable[float]) -> Iterator[str]:
    """Say of each body that its weight would crush, bend or spread, once for each material.

    Args:
        bodies: What the emitters make.
        gravity: [m/s^2], shape (3,).
    """
    down = np.asarray(tuple(gravity), float)
    strength = float(np.linalg.norm(down))
    highest: dict[str, tuple[float, Body]] = {}
    for body in bodies:
        height = body.width(down) if strength > 0.0 else 0.0
        name = body.material.label or body.material.law
        if height > highest.get(name, (0.0, body))[0]:
            highest[name] = (height, body)
    for name, (height, body) in highest.items():
        weight = body.material.density * strength * height
        said = _effect(weight, moduli(body.material))
        if said:
            yield (
                f"'{name}' is {height:.3g} m high and carries rho g H = {weight:.3g} Pa under gravity of {strength:.3g} m/s^2; "
                f"{said}"
            )


def _effect(weight: float, found: Moduli) -> str:
    """Return what a weight [Pa] does to a material, and what helps; "" where it hardly shows."""
    cure = "take a lower body or less gravity, or raise its moduli"
    if weight >= PRESSED * found.bulk:
        return f"its bulk modulus is {found.bulk:.3g} Pa: it will be pressed flat; {cure}"
    if found.shear and weight >= SAGS * found.young:
        return f"its Young's modulus is {found.young:.3g} Pa: it will sag out of its shape; {cure}"
    if found.yield_stress >= FLUID * found.shear and weight >= SLUMPS * found.yield_stress:
        return f"its yield stress is {found.yield_stress:.3g} Pa: it will slump; take a lower body or less gravity, or raise it"
    return ""


def mouth_warnings(flows: Iterable[Flow], gravity: Iterable[float], clock: Clock, last: float) -> Iterator[str]:
    """Say of each stream that it falls out of its mouth faster than it comes, so that it parts into pieces there.

    Matter that has only a velocity at the exit is held by nothing above it: after v / g seconds it falls twice as fast as what
    follows.

    Args:
        flows: The streams of a solve in which no collider holds what flows through it.
        gravity: [m/s^2], shape (3,).
        clock: The solve's.
        last: Last frame.
    """
    for flow in flows:
        velocity = np.asarray(flow.velocity)
        speed = float(np.linalg.norm(velocity))
        pull = float(np.asarray(tuple(gravity)) @ velocity) / max(speed, 1e-300)
        begin, end = (clock.simulated(min(clock.frame(second), last)) for second in (flow.begin, flow.end))
        if speed > 0.0 and pull * (end - begin) > speed:
            yield (
                f"a stream of {speed:.3g} m/s falls faster than it comes after {speed / pull:.2g} s of gravity and parts into "
                "pieces at its mouth; wire a collide_vdb into the colliders that holds it: a tube around the template, rule "
                "sticky, whose velocity_grid is the stream's velocity (as in samples/toothpaste.json)"
            )
