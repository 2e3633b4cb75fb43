"""How materials resist compression in projections."""

from __future__ import annotations

import dataclasses

from mpm_nodes.data import A, Material, Pascals, Range
from mpm_nodes.graph.declare.decorators import node
from mpm_nodes.graph.time.keys import NotKeyable
from mpm_nodes.nodes.bodies import told_again

__all__ = ["material_bulk_modulus"]


@node(category="Material", label="Bulk Modulus", preflight=told_again)
def material_bulk_modulus(
    material: Material,
    *,
    bulk_modulus: A[
        float, Pascals, Range(min=0.0, soft_max=1e10), NotKeyable("matter keeps the modulus that it was made with")
    ] = 0.0,
) -> Material:
    """Say how a material resists compression in projections, whatever its law has: for the preset `incompressible`.

    Args:
        material: Material of any law; its shape behaves as the law says.
        bulk_modulus: Modulus lam of the energy lam/2 (J - 1)^2, from jelly (1e4) to steel (1e11); 0 stands for infinity.

    Source: S14 sections 4.2 and 4.5.
    """
    return dataclasses.replace(material, bulk_modulus=bulk_modulus)
