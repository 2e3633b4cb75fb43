"""Viscous flow in implicit steps far beyond the limit of explicit ones."""

from __future__ import annotations

from collections.abc import Iterator

from mpm_nodes.verification.contract import Finding, Problem
from mpm_nodes.verification.viscosity import Couette, Poiseuille

CELLS = 16
SHARP = {"preset": "implicit_apic", "set": {"tolerance": 1e-10, "minimise_energy.krylov_tolerance": 1e-4}}
"""The flows move a ten-millionth of a cell in a substep."""


PLATE = 21.0 / 68.0
"""How far behind the nodes that stick a plate acts in steady shear [cells].

Let d_k be the difference of the velocities of nodes k and k + 1 from the sticking node 0 on. The gradient of the velocity is then
the sum of d_k times hats of width 2 h about k + 1/2, and the dissipation is least where its products with all hats of k >= 0 are
equal. With particles at 1/4 and 3/4 of each cell, in front of the plate alone, these products are 3/16, 5/8, 3/16 of neighbours,
and 19/32, 3/16 for k = 0. So d_k = d (1 + a (-1/3)^k), a = 7/17, and far from the plate all nodes are ahead by h d a / (1 + 1/3).
"""


class ImplicitViscosity(Problem):
    """Implicit viscosity gives the profiles of Couette and Poiseuille flow at a hundred times the explicit limit of dt.

    Scene: the channels of couette and poiseuille with 16 cells between the plates, from rest until nu t / H^2 = 1 in steps of a
        hundred times the explicit viscous limit rho h^2 / (12 mu_v).
    Exact: all but 5e-5 of the steady profiles, between plates that stand 21/68 h behind the nodes that stick: what half-filled
        stencils give (see PLATE). Between the nodes themselves Poiseuille flow would be 8 % slower; steps of the explicit limit
        hide that, since each adds viscosity of the transfer at the plates.
    Tolerance: 2 % of the fastest, without the cells at the plates.
    """

    name = "implicit_viscosity"
    source = "textbook (plane Couette and Poiseuille flow)"

    def findings(self) -> Iterator[Finding]:
        """Run both channels."""
        for flow in (Couette(), Poiseuille()):
            error = flow.error(CELLS, 1.0, 100.0 / (12.0 * CELLS**2), PLATE, substeps=SHARP, dt_max=float("inf"))
            yield Finding(0.0, error, 0.02, f"{flow.name}, of the fastest")
