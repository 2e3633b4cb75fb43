"""Sand, soil: a Hencky solid whose grains flow by Drucker and Prager, and come apart (Klar 2016; Tampubolon 2017).

The elastic part is `elastic.hencky`; how grains flow, and what volume they gain, is `return_maps.drucker_prager`.
"""

from __future__ import annotations

from mpm_nodes.materials.elastic import hencky as ELASTIC
from mpm_nodes.materials.parameters import DruckerPrager as Params
from mpm_nodes.materials.return_maps import drucker_prager as RETURN_MAP

__all__ = ["ELASTIC", "RETURN_MAP", "Params"]
