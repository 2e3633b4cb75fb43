"""Snow: fixed corotated elasticity, a clamp on the singular values, hardening (Stomakhin 2013; B18 section 8; S14 5.1).

The elastic part is `fixed_corotated`; what yields, and how packing hardens it, is `return_maps.stretch_clamp`.
"""

from __future__ import annotations

from mpm_nodes.materials import fixed_corotated as ELASTIC
from mpm_nodes.materials.parameters import Snow as Params
from mpm_nodes.materials.return_maps import stretch_clamp as RETURN_MAP

__all__ = ["ELASTIC", "RETURN_MAP", "Params"]
