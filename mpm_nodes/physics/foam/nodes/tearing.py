"""Matter that tears and heals, in the outer graph."""

from __future__ import annotations

import dataclasses

from mpm_nodes.data import A, Material, Range, Seconds, Unitless
from mpm_nodes.graph.declare import found_by, node
from mpm_nodes.graph.time.keys import KeysTravel
from mpm_nodes.nodes.bodies import told_again


@found_by("break", "rip", "fracture", "crack", "crumble")
@node(category="Material", label="Tearing", preflight=told_again)
def material_tearing(
    material: Material,
    *,
    tear_threshold: A[
        float, Unitless, Range(min=0.0, exclusive_min=True, soft_min=0.1, soft_max=1e3, log=True), KeysTravel()
    ] = 10.0,
    recovery_time: A[
        float, Seconds, Range(min=0.0, exclusive_min=True, soft_min=0.01, soft_max=100.0, log=True), KeysTravel()
    ] = 0.35,
) -> Material:
    """Let a material tear where it has flowed far, and heal again: for substep graphs with tearing stages.

    Args:
        material: Any material that can flow; one that never flows never tears.
        tear_threshold: Plastic distortion |dev C_P| above which it tears; a stretch a gives sqrt(2/3) (a^2 - 1/a).
        recovery_time: Time in which the distortion is forgotten; small: sticky, large: brittle.

    Source: Y15 sections 7.1 and 7.3.
    """
    return dataclasses.replace(material, tear_threshold=tear_threshold, recovery_time=recovery_time)
