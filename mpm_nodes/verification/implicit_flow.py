"""Viscous flow in implicit steps far beyond the limit of explicit ones."""

from __future__ import annotations

from collections.abc import Iterator

from mpm_nodes.verification.contract import Finding, Problem
from mpm_nodes.verification.viscosity import Couette, Poiseuille

CELLS = 16


class ImplicitViscosity(Problem):
    """Implicit viscosity gives the profiles of Couette and Poiseuille flow at many times the explicit limit of dt.

    Scene: the channels of couette and poiseuille with 16 cells between the plates, from rest until nu t / H^2 = 0.2 at ten times
        the explicit viscous limit rho h^2 / (12 mu_v), and until 1 at a hundred times.
    Exact: the start-up series; at the end of the longer run all but 5e-5 of the steady profile.
    Tolerance: 2 % of the fastest: backward Euler's own error of the start-up is 0.4 %, that of the plates on nodes 1 %.
    """

    name = "implicit_viscosity"
    source = "textbook (plane Couette and Poiseuille flow)"

    def findings(self) -> Iterator[Finding]:
        """Run both channels for a short and a long time."""
        limit = 1.0 / (12.0 * CELLS**2)
        for flow in (Couette(), Poiseuille()):
            for times, duration in ((10, 0.2), (100, 1.0)):
                error = flow.error(CELLS, duration, times * limit, substeps="implicit_apic", dt_max=float("inf"))
                yield Finding(0.0, error, 0.02, f"{flow.name} at {times} times the limit, of the fastest")
