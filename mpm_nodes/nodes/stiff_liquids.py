"""What a liquid's pressure waves cost in explicit substeps, and how stiff it needs to be, noted before a cook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import GraphSettings
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.nodes.bodies import Body, Inflow

__all__ = ["liquid_notes"]


def liquid_notes(
    bodies: Sequence[Body], flows: Sequence[Inflow], substeps: Any, gravity: Sequence[float], clock: Clock, settings: GraphSettings
) -> Iterator[str]:
    """Say of each liquid that takes many explicit substeps a frame why, and what to take instead, as the cook does.

    Args:
        bodies: What the emitters make.
        flows: The streams, whose speed counts.
        substeps: The solve's knob.
        gravity: [m/s^2], shape (3,).
        clock: The solve's.
        settings: Of the graph.
    """
    from mpm_nodes.graph.plan.substeps import is_implicit, resolve
    from mpm_nodes.materials.moduli import moduli
    from mpm_nodes.materials.over_temperature import every_row
    from mpm_nodes.materials.weak_compressibility import substeps_of_waves
    from mpm_nodes.solver.advice import MANY, StiffLiquid, kinds, preset_words, why_so_many

    down = np.asarray(gravity, float)
    strength = float(np.linalg.norm(down))
    resolved = resolve(substeps)
    stages = [(declaration, resolved.knobs[name]) for name, declaration in resolved.declarations.items()]
    waves = next((knobs.get("elastic_cfl") for declaration, knobs in stages if declaration.sets), None)
    if resolved.others or is_implicit(stages) or not isinstance(waves, (int, float)) or not strength:
        return
    seconds = clock.simulated(settings.end) - clock.simulated(settings.end - 1)
    purpose = kinds() & {declaration.id for declaration, _ in stages}
    speed = max((float(np.linalg.norm(flow.velocity)) for flow in flows), default=0.0)
    by_material: dict[int, list[Body]] = {}
    for body in bodies:
        by_material.setdefault(id(body.material), []).append(body)
    for parts in by_material.values():
        material, found = parts[0].material, [moduli(each) for each in every_row(parts[0].material)]
        bulk = max(each.bulk for each in found)
        count = substeps_of_waves(bulk, material.density, settings.cell_size, seconds, waves)
        if count < MANY or any(each.shear for each in found):
            continue
        spans = [(float(body.place @ down) / strength, 0.5 * body.width(down)) for body in parts]
        depth = max(place + half for place, half in spans) - min(place - half for place, half in spans)
        liquid = StiffLiquid(material, bulk, depth, speed)
        if text := why_so_many(f"about {count:.0f}", liquid, strength, settings.cell_size, preset_words(purpose, True)):
            yield text
