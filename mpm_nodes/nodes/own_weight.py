"""What gravity would do, said before a cook: rho g H against a material's moduli and yield stress, and streams that fall apart.

A body of height H carries rho g H on its lowest layer. Where that comes near the bulk modulus it presses its volume away, near
Young's modulus it sags out of its shape, and above 2 sigma_Y / sqrt 3 it slumps (Pashias 1996).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.materials.moduli import Moduli, moduli
from mpm_nodes.materials.over_temperature import every_row
from mpm_nodes.nodes.bodies import Body, Inflow

__all__ = ["mouth_warnings", "weight_warnings"]

PRESSED = 0.25
"""Weight over bulk modulus from which on a quarter of the volume is lost at the bottom."""
SAGS = 0.5
"""Weight over Young's modulus from which on a column loses a quarter of its height."""
SLUMPS = 2.0 / np.sqrt(3.0)
"""Weight over yield stress from which on a cylinder slumps."""
FLUID = 1e-2
"""Yield stress over shear modulus below which a material is a fluid that is meant to flow."""


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
        said = next(filter(None, (_effect(weight, moduli(each)) for each in every_row(body.material))), "")
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


def mouth_warnings(flows: Iterable[Inflow], gravity: Iterable[float], clock: Clock, last: float) -> Iterator[str]:
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
