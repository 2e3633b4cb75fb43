"""Matter whose parameters follow an attribute: a bar of two halves, and one that is softened while it swings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import AttributeUpdate, Particles
from mpm_nodes.nodes.attributes import update_attribute
from mpm_nodes.nodes.materials import material_over_attribute
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.elasticity import confined_modulus, zero_crossings
from mpm_nodes.verification.forces import PRESETS
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, STICKY, block, changed, material, walled

CELLS, LENGTH, YOUNG, POISSON, DENSITY = 32, 1.0, 1e5, 0.3, 1000.0
SPEED = np.sqrt(confined_modulus(YOUNG, POISSON) / DENSITY)
"""Of longitudinal waves where nothing is painted [m/s]."""


def _bar(**factors: float) -> Particles:
    """Return a bar along x of whose material these parameters are times a factor where `paint` is 1."""
    h, matter = LENGTH / CELLS, material("neo_hookean", DENSITY, youngs_modulus=YOUNG, poisson_ratio=POISSON)
    for parameter, factor in factors.items():
        matter = material_over_attribute(matter, parameter=parameter, attribute="paint", table=((0.0, 1.0), (1.0, factor)))
    return block(matter, (0, 0, 0), (LENGTH, 2 * h, 2 * h), h)


def _period(start: Particles, shape: np.ndarray, longest: float, substeps: Any, updates: Sequence[AttributeUpdate] = ()) -> float:
    """Return the period of a bar between fixed ends that begins to swing in the shape of a mode [s].

    Args:
        start: The bar.
        shape: Of the mode, shape (n,).
        longest: A period or more [s].
        substeps: Substeps of the solve.
        updates: What changes attributes as it begins.
    """
    h, velocity = LENGTH / CELLS, np.zeros((len(start), 3))
    velocity[:, 0] = 1e-3 * SPEED * shape
    walls = walled((0, 0, 0), (LENGTH, 2 * h, 2 * h), STICKY, STICKY, SLIP, SLIP, SLIP, SLIP)
    options = {"cell_size": h, "walls": walls, "gravity": (0, 0, 0), "dtype": np.float64}
    solver = SubstepSolver(changed(start, velocity=velocity), substeps, **options)
    solver.step_context.updates = tuple(updates)
    mass = solver.snapshot(["mass"])["mass"]  # in the order of ids; modes are at right angles to each other by mass
    time, amplitude = [0.0], [1.0]
    while solver.time < 0.9 * longest:
        solver.step(0.15 * h / SPEED)
        time.append(solver.time)
        moved = column(solver, "velocity")[:, 0]
        ids = solver.particles.unpack("id")
        amplitude.append(float((mass * shape)[ids] @ moved / (mass @ (shape * velocity[:, 0]))))
    crossings = zero_crossings(np.array(time), np.array(amplitude))
    return float(2.0 * (crossings[1] - crossings[0]))


class PaintedBar(VerificationProblem):
    """A bar whose right half is softer, or heavier, by what is painted on it swings with the period of both halves together.

    Scene: the bar of elastic_bar_period, neo-Hookean, 32 cells, float64, explicit and implicit substeps; its right half has a
        quarter of the modulus, three times the density, or both.
    Exact: period 2 pi / w, w the least root of Z_1 cot(w a / c_1) + Z_2 cot(w a / c_2) = 0, of halves of the length a, with
        Z = rho c; plucked in the shape of that mode.
    Tolerance: 1 %, as there.
    """

    name = "painted_bar"
    source = "textbook (one-dimensional wave equation)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Pluck it as each."""
        painted = ({"youngs_modulus": 0.25}, {"density": 3.0}, {"youngs_modulus": 0.25, "density": 3.0})
        for factors in painted:
            for name in ("explicit_apic", "implicit_apic") if len(factors) == 2 else ("explicit_apic",):
                start = _bar(**factors)
                x = start["position"][:, 0]
                frequency, shape = self.exact(x, **factors)
                period = 2.0 * np.pi / frequency
                painting = changed(start, paint=(x > 0.5 * LENGTH).astype(float))
                measured = _period(painting, shape, period, PRESETS[name])
                yield Finding.relative(1.0, measured / period, 0.01, f"{name}, {' and '.join(factors)}, of the exact period")

    @staticmethod
    def exact(x: np.ndarray, youngs_modulus: float = 1.0, density: float = 1.0) -> tuple[float, np.ndarray]:
        """Return the frequency of the first mode [1/s] and its shape at places x; the factors are those of the right half."""
        a, speeds = 0.5 * LENGTH, np.array([1.0, np.sqrt(youngs_modulus / density)]) * SPEED
        loads = speeds * [1.0, density]

        def excess(w: float) -> float:  # times both sines: it changes its sign at roots alone
            (s1, s2), (c1, c2) = np.sin(w * a / speeds), np.cos(w * a / speeds)
            return float(loads[0] * c1 * s2 + loads[1] * c2 * s1)

        low, high = 1e-6, 0.1 * SPEED
        while excess(high) > 0.0:
            low, high = high, high + 0.1 * SPEED
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
        left = np.sin(low * x / speeds[0]) / np.sin(low * a / speeds[0])
        right = np.sin(low * (LENGTH - x) / speeds[1]) / np.sin(low * a / speeds[1])
        shape = np.where(x < a, left, right)
        return low, shape / np.abs(shape).max()


class SoftenedBar(VerificationProblem):
    """A bar that is softened as it begins to swing does so with the period of what it has become.

    Scene: the bar of elastic_bar_period, neo-Hookean, 32 cells, float64, explicit and implicit substeps, stiff as it is made; an
        update brings `stiffness_scale`, or the attribute that its modulus follows, to a quarter.
    Exact: period 4 L / c.
    Tolerance: 1 %, as there.
    """

    name = "softened_bar"
    source = "textbook (one-dimensional wave equation)"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Soften it in both ways."""
        updates = {
            "stiffness_scale": (_bar(), "stiffness_scale", 1.0, update_attribute(attribute="stiffness_scale", value=0.25)),
            "youngs_modulus": (_bar(youngs_modulus=0.25), "paint", 0.0, update_attribute(attribute="paint", value=1.0)),
        }
        for what, (start, attribute, begins, update) in updates.items():
            shape = np.sin(np.pi * start["position"][:, 0] / LENGTH)
            begun, period = changed(start, **{attribute: np.full(len(start), begins)}), 4.0 * LENGTH / SPEED
            for name in ("explicit_apic", "implicit_apic"):
                measured = _period(begun, shape, period, PRESETS[name], (update,))
                yield Finding.relative(1.0, measured / period, 0.01, f"{name}, {what}, of 4 L / c")
