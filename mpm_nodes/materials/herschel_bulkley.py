"""Herschel-Bulkley viscoplasticity: foams, creams, pastes (Y15 section 5).

A neo-Hookean solid with volume and shape apart (`elastic.split_neo_hookean`), whose shape flows above the yield stress
(`return_maps.herschel_bulkley`); plastic flow keeps volume.
"""

from __future__ import annotations

from mpm_nodes.materials.elastic import split_neo_hookean as ELASTIC
from mpm_nodes.materials.parameters import HerschelBulkley as Params
from mpm_nodes.materials.return_maps import herschel_bulkley as RETURN_MAP

__all__ = ["ELASTIC", "RETURN_MAP", "Params"]
