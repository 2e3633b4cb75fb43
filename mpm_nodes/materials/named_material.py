"""What a named material is: one entry of the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["NamedMaterial"]


@dataclass(frozen=True)
class NamedMaterial:
    """One named parameter set.

    Attributes:
        label: Name that artists see.
        law: Id of the law.
        params: Values of the law's `Params`, SI; missing ones keep their defaults.
        density: Undeformed density [kg/m^3].
        source: Where the numbers come from.
        tear_threshold: Plastic distortion above which it tears; None: it never does.
        recovery_time: Time in which plastic distortion is forgotten [s]; None: it never is.
        viscosity: Newtonian viscosity beside the law's own [Pa s].
        look: How renderers shade it: a name of `mpm_nodes.materials.looks.LOOKS`.
        scale_with_depth: Modulus that is softer than the real one, given for a scene of 1 m: it grows with its depth; "": none.
        limits: What it does not do, in a sentence.
    """

    label: str
    law: str
    params: Mapping[str, float | bool]
    density: float
    source: str
    tear_threshold: float | None = None
    recovery_time: float | None = None
    viscosity: float = 0.0
    look: str = "matter"
    scale_with_depth: str = ""
    limits: str = ""
