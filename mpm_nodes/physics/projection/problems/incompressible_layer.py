"""Layers between plates, sheared, that the projection keeps from compressing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.scenes import material
from mpm_nodes.verification.sheared_layer import Plates, cream, sheared
from mpm_nodes.verification.viscoelasticity import MU, PARAMS, T_R

PRESET = "incompressible"


class IncompressibleLayer(VerificationProblem):
    """Foam and a viscoelastic fluid that the projection keeps from compressing carry the stress of their laws.

    Scene: 40 x 8 x 2 cells between a floor and a lid that moves, slip sides along z, open ends, no gravity, preset
        `incompressible` (lam = infinity), float64, from a linear profile of velocities: shaving cream at 1/s to a strain of 1,
        volume-preserving Oldroyd-B at W = 1 for t_r. Both plates clamp two further cells of the matter, or are sticky and hold
        none. The ends bulge as far as the layer is high, and the middle quarter does not see it.
    Exact: 35.83 Pa for cream (independent integration of the law); the start-up of Oldroyd-B, mu B_xy / (B_xx - B_xy^2)^(1/3) with
        B_xy = 1 - 1/e, B_xx = 3 - 4/e, and the same fluid at the rates that the middle went through, B_xy' = g - B_xy / t_r,
        B_xx' = 2 g B_xy - (B_xx - 1) / t_r. The mean of the layer's middle half.
    Tolerance: 3 % and 2 %, those of the compressible layers; 5 % where sticky plates lie off the nodes or are
        turned. Plates that clamp are met up to half a cell from where they are, by where they lie between the nodes.
    """

    name = "incompressible_layer"
    source = "Y15 eq. 7, R15 eq. 3, 4 and 14; S14 section 4.1"
    slow = True
    misses = ("Oldroyd-B at W = 1 after t_r, clamping plates [Pa]",)

    def findings(self) -> Iterator[Finding]:
        """Shear both between both kinds of plates."""
        fluid = material("oldroyd_b", 20.0, **PARAMS)
        xy, xx = 1.0 - np.exp(-1.0), 3.0 - 4.0 * np.exp(-1.0)
        exact = MU * xy / np.cbrt(xx - xy * xy)
        for plates in (Plates.CLAMPING, Plates.STICKY):
            stress, _ = sheared(cream(), 1.0, 1.0, plates, substeps=PRESET)
            yield Finding.relative(35.83, stress, 0.03, f"shaving cream at 1/s, {plates.value} plates [Pa]")
            stress, went = sheared(fluid, 1.0 / T_R, T_R, plates, substeps=PRESET)
            yield Finding.relative(exact, stress, 0.02, f"Oldroyd-B at W = 1 after t_r, {plates.value} plates [Pa]")
            if plates is Plates.CLAMPING:
                yield Finding.relative(went, stress, 0.02, "Oldroyd-B at the rates of the middle [Pa]")
        for off in (0.25, 0.5, 0.75):
            stress, _ = sheared(fluid, 1.0 / T_R, T_R, Plates.STICKY, off, substeps=PRESET)
            yield Finding.relative(exact, stress, 0.05, f"Oldroyd-B, sticky plates {off} cells off the nodes [Pa]")
        for slope in (15.0, 30.0, 45.0):
            stress, _ = sheared(fluid, 1.0 / T_R, T_R, Plates.STICKY, slope=slope, substeps=PRESET)
            yield Finding.relative(exact, stress, 0.05, f"Oldroyd-B, sticky plates at {slope:.0f} degrees [Pa]")
