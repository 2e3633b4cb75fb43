"""Viscous flow in implicit steps far beyond the limit of explicit ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.viscosity import Couette, Poiseuille

CELLS = 16
SHARP = {"preset": "implicit_apic", "set": {"tolerance": 1e-10, "minimise_energy.krylov_tolerance": 1e-4}}
"""The flows move a ten-millionth of a cell in a substep."""


class ImplicitViscosity(VerificationProblem):
    """Implicit viscosity gives the profiles of Couette and Poiseuille flow at a hundred times the explicit limit of dt.

    Scene: the channels of couette and poiseuille with 16 cells between the plates, from rest until nu t / H^2 = 1 in steps of a
        hundred times the explicit viscous limit rho h^2 / (12 mu_v).
    Exact: all but 5e-5 of the steady profiles between the plates, on node planes and half a cell off.
    Tolerance: 2 % of the fastest.
    """

    name = "implicit_viscosity"
    source = "textbook (plane Couette and Poiseuille flow)"

    def findings(self) -> Iterator[Finding]:
        """Run both channels."""
        for flow in (Couette(), Poiseuille()):
            for offset in (0.0, 0.5):
                flow.tolerance = 0.02
                error = flow.error(CELLS, 1.0, 100.0 / (12.0 * CELLS**2), offset, substeps=SHARP, dt_max=float("inf"))
                yield Finding(0.0, error, 0.02, f"{flow.name}, of the fastest, plates {offset:g} h off the nodes")
            self.curves += [dataclasses.replace(curve, what=f"{flow.name}, {curve.what}") for curve in flow.curves]
