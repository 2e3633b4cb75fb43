"""Heat against exact solutions: conduction, exchange with air and bodies, melting and freezing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, CollisionRule, Material, Particles, Thermal
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.contract import Finding, VerificationProblem
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import SLIP, ball, block, changed, material, walled

DENSITY, HEAT_CAPACITY, CONDUCTIVITY = 1000.0, 1000.0, 10.0
DIFFUSIVITY = CONDUCTIVITY / (DENSITY * HEAT_CAPACITY)
START = 300.0


def matter(conductivity: float = CONDUCTIVITY, **thermal: Any) -> Material:
    """Return a solid with the heat capacity of these scenes."""
    own = Thermal(HEAT_CAPACITY, conductivity, HEAT_CAPACITY, conductivity, **thermal)
    return dataclasses.replace(material("neo_hookean", DENSITY), thermal=own)


def still(transfer: str = "apic", melts: bool = False, form: str = "cells", **conduct: float) -> dict[str, Any]:
    """Return a substep graph of heat alone: nothing moves.

    Args:
        transfer: Of the temperatures.
        melts: Whether it melts and freezes.
        form: Where heat is conducted: "cells" of the staggered grid or "nodes".
        conduct: Knobs of the conduction.
    """
    heat, domain = ("heat", "staggered") if form == "cells" else ("nodal_heat", "grid")
    rasterize, conduct_it, gather = f"rasterize_{heat}", f"conduct_{heat}", f"gather_{heat}"
    wires = {domain: rasterize, "colliders": "colliders"} | ({} if form == "cells" else {"particles": rasterize})
    before = rasterize if form == "cells" else conduct_it
    nodes: dict[str, Any] = {
        "thermal_properties": {"type": "thermal_properties", "inputs": {"particles": "particles"}},
        rasterize: {
            "type": rasterize,
            "knobs": {"transfer": transfer},
            "inputs": {"particles": "thermal_properties", domain: domain},
        },
        conduct_it: {"type": conduct_it, "knobs": conduct, "inputs": wires},
        gather: {"type": gather, "knobs": {"transfer": transfer}, "inputs": {"particles": before, domain: conduct_it}},
    }
    if melts:
        nodes["update_phase"] = {"type": "update_phase", "inputs": {"particles": gather}}
    head = {"format": "mpm_nodes.substeps", "version": 1, "label": "Heat Alone", "doc": "Heat in matter that does not move."}
    return {**head, "parameters": {}, "nodes": nodes}


FORMS = ("cells", "nodes")
"""Where heat is conducted."""


def hot_plane(axis: int, temperature: float, conductance: float = math.inf) -> Collider:
    """Return the half space below 0 of an axis, with a temperature."""
    half = math.sqrt(0.5)
    turn = {0: (half, 0.0, 0.0, -half), 1: (1.0, 0.0, 0.0, 0.0)}[axis]
    shape = PosedLevelSets(PLANE, (), np.zeros(1), np.array([turn]), np.zeros((1, 3)))
    return Collider("plane", CollisionRule.STICKY, 0.0, shape, temperature=temperature, conductance=conductance)


def solver(start: Particles, substeps: Any, h: float, **options: Any) -> SubstepSolver:
    """Return a solver in double precision whose nodes lie on multiples of h."""
    return SubstepSolver(start, substeps, cell_size=h, gravity=(0, 0, 0), dtype=np.float64, origin=(0.0, 0.0, 0.0), **options)


def heat_of(run: SubstepSolver) -> float:
    """Return sum m c T [J]."""
    return float(np.sum(column(run, "mass") * HEAT_CAPACITY * column(run, "temperature")))


class TemperatureWave(VerificationProblem):
    """A wave of temperature between insulated walls decays at the rate of the diffusivity, at any time step.

    Scene: a bar of 32 x 2 x 2 cells, T = 300 K + 1 K cos(kx) with k = pi / L, until a k^2 t = 0.5, in steps of
        0.01 and 0.0025 / (a k^2).
    Exact: the amplitude decays as exp(-a k^2 t); backward Euler itself as (1 + a k^2 dt)^-n.
    Tolerance: 2 % of the rate. FLIP 0.95, the source's, holds it in coarse steps; in fine ones it is 4.4 % fast, as it diffuses in
        every step, so that APIC with a rate is the default.
    """

    name = "temperature_wave"
    source = "textbook (heat equation); S14 section 5.8"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Let it decay in coarse and in fine steps."""
        for step in (0.01, 0.0025):
            rate, lost = self.decay(step)
            yield Finding.relative(1.0, rate, 0.02, f"rate in steps of {step:g} / (a k^2)")
        yield Finding.relative(1.0, self.decay(0.01, "flip")[0], 0.02, "rate by FLIP in steps of 0.01 / (a k^2)")
        yield Finding(0.0, lost, 1e-12, "share of the heat that is lost")
        for step in (0.01, 0.0025):
            rate, lost = self.decay(step, form="nodes")
            yield Finding.relative(1.0, rate, 0.02, f"rate on nodes in steps of {step:g} / (a k^2)")
        yield Finding(0.0, lost, 1e-12, "share of the heat that is lost on nodes")

    @staticmethod
    def decay(step: float, transfer: str = "apic", form: str = "cells", cells: int = 32) -> tuple[float, float]:
        """Return the rate over the exact one, and the share of the heat that is lost."""
        length, k = 1.0, np.pi
        h = length / cells
        start = block(matter(), (0, 0, 0), (length, 2 * h, 2 * h), h)
        x = start["position"][:, 0]
        slope = np.zeros((len(start), 3))
        slope[:, 0] = -k * np.sin(k * x)
        run = solver(changed(start, temperature=START + np.cos(k * x), temperature_gradient=slope), still(transfer, form=form), h)
        before, rate = heat_of(run), DIFFUSIVITY * k * k
        run.advance(0.5 / rate, step / rate)
        shape = np.cos(k * x[run.particles.unpack("id")])
        amplitude = float(((column(run, "temperature") - START) * shape).sum() / (shape**2).sum())
        return -math.log(amplitude) / (rate * run.time), heat_of(run) / before - 1.0


def erfc_scaled(z: np.ndarray, add: np.ndarray) -> np.ndarray:
    """Return exp(add) erfc(z), without overflow where both are large."""
    return np.array([math.exp(a + math.log(max(math.erfc(v), 1e-300))) for v, a in zip(z, add, strict=True)])


class RobinHalfSpace(VerificationProblem):
    """Matter that is hot air on one side warms as the exact solution for a convecting surface says.

    Scene: a bar of 40 x 2 x 2 cells, long enough to be a half space, of 300 K; air of 400 K at all its surfaces but only its ends'
        matter; h_c L / K = 4 on 20 cells, until a t / L^2 = 0.1. Its sides lie on walls, which insulate.
    Exact: (T - T_i) / (T_a - T_i) = erfc(z) - exp(h_c x / K + h_c^2 a t / K^2) erfc(z + h_c sqrt(a t) / K),
        z = x / (2 sqrt(a t)).
    Tolerance: 3 % of T_a - T_i.
    """

    name = "robin_half_space"
    source = "Carslaw and Jaeger 1959"

    def findings(self) -> Iterator[Finding]:
        """Compare the profile of the half that the far end does not reach."""
        length, air = 1.0, 400.0
        h, convection = length / 20, 4.0 * CONDUCTIVITY / length
        start = changed(block(matter(), (0, 0, 0), (2 * length, 2 * h, 2 * h), h))
        start = changed(start, temperature=np.full(len(start), START))
        walls = walled((-8 * h, 0, 0), (4 * length, 2 * h, 2 * h), SLIP)
        time = 0.1 * length**2 / DIFFUSIVITY
        for form in FORMS:
            run = solver(start, still(form=form, air_temperature=air, air_convection=convection), h, walls=walls)
            run.advance(time, time / 200)
            x, found, exact = convected(run, length, air, convection)
            error = float(np.abs(found - exact).max())
            axes = ("depth over L", "warming, of T_a - T_i")
            self.show(f"on {form}", axes, (x / length, found), (x / length, exact), 0.03)
            yield Finding(0.0, error, 0.03, f"profile error on {form}, of the difference in temperature")


def convected(run: SubstepSolver, length: float, air: float, convection: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places [m], measured and exact warming over T_a - T_i of a half space warmed through x = 0, up to 0.8 of a length."""
    x = column(run, "position")[:, 0]
    near = x < 0.8 * length
    x, found = x[near], (column(run, "temperature")[near] - START) / (air - START)
    spread, ratio = math.sqrt(DIFFUSIVITY * run.time), convection / CONDUCTIVITY
    z = x / (2.0 * spread)
    erfc = np.array([math.erfc(value) for value in z])
    return x, found, erfc - erfc_scaled(z + ratio * spread, ratio * x + (ratio * spread) ** 2)


class SmallBiotSphere(VerificationProblem):
    """A small ball in cold air cools as one body, and ends at the temperature of the air.

    Scene: a ball with a radius of 5 cells, 400 K, of Biot number 0.01, in air of 300 K, in steps of 1 % of its cooling time.
    Exact: T = T_a + (T_0 - T_a) exp(-h_c A t / (m c)) with A the surface that the air sees; A = 4 pi R^2.
    Tolerance: 2 % of the rate and 5 % of the area, whose corners are those of a lattice; 1e-6 of the difference at the end.
    """

    name = "small_biot_sphere"
    source = "textbook (lumped capacitance)"

    def findings(self) -> Iterator[Finding]:
        """Let it cool once through its cooling time, and forever."""
        radius, air, hot = 0.5, START, 400.0
        h, convection = radius / 5, 0.01 * CONDUCTIVITY / radius
        start = ball(matter(), (0, 0, 0), radius, h)
        area = 4.0 * math.pi * radius**2
        for form in FORMS:
            substeps = still(form=form, air_temperature=air, air_convection=convection)
            run = solver(changed(start, temperature=np.full(len(start), hot)), substeps, h)
            capacity = float(np.sum(column(run, "mass"))) * HEAT_CAPACITY
            cooling = capacity / (convection * area)
            run.advance(cooling, cooling / 100)
            seen = float(run.step_context.report["heat"]["surface"])
            yield Finding.relative(area, seen, 0.05, f"surface on {form} [m^2]")
            mean = heat_of(run) / capacity
            rate = -math.log((mean - air) / (hot - air)) / run.time * capacity / (convection * seen)
            yield Finding.relative(1.0, rate, 0.02, f"rate on {form}, of h_c A / (m c)")
            for _ in range(6):
                run.step(cooling * 100)
            left = float(np.abs(column(run, "temperature") - air).max()) / (hot - air)
            yield Finding(0.0, left, 1e-6, f"difference that is left on {form}")


class HeatBudget(VerificationProblem):
    """What the matter gains in a substep is what came from bodies, from the air and from sources.

    Scene: a cloud of uneven particles on a hot plane in cold air, with a source of heat, ten substeps in double precision.
    Exact: d sum m c T = dt (flux from bodies + from air + sources), in every substep.
    Tolerance: 1e-10 of the heat exchanged; solves to 1e-14.
    """

    name = "heat_budget"
    source = "C21 section 4.3.2 (sum of the rows)"

    def findings(self) -> Iterator[Finding]:
        """Compare heat and flux in ten substeps, and what melts takes up."""
        h = 0.1
        start = block(matter(), (0, 0, 0), (4 * h, 4 * h, 4 * h), h, jitter=0.5, seed=1)
        warm = START + 20.0 * np.random.default_rng(2).normal(size=len(start))
        for transfer, form in (("apic", "cells"), ("flip", "cells"), ("apic", "nodes"), ("flip", "nodes")):
            document = still(transfer, form=form, air_temperature=250.0, air_convection=50.0, source=1e5, tolerance=1e-14)
            run = solver(changed(start, temperature=warm), document, h, colliders=[hot_plane(1, 500.0, 100.0)])
            worst, before = 0.0, heat_of(run)
            for substep in range(10):
                run.step_context.frame = substep
                run.step(0.05 * h * h / DIFFUSIVITY)
                told = run.step_context.report["heat"]
                flux = [told[name] for name in ("from_bodies", "from_air", "from_sources")]
                after = heat_of(run)
                worst = max(worst, abs(after - before - sum(flux)) / sum(map(abs, flux)))
                before = after
            yield Finding(0.0, worst, 1e-10, f"share of the heat exchanged that is missing, {transfer} on {form}")


class Stefan(VerificationProblem):
    """Ice melts from a hot wall: the front moves with the square root of time.

    Scene: a bar of 64 x 2 x 2 cells at its freezing temperature, one end on a hot plane with St = c (T_w - T_f) / L = 1, until
        the front is at half its length.
    Exact: s = 2 Lam sqrt(a t), Lam exp(Lam^2) erf(Lam) = St / sqrt(pi): Lam = 0.620063.
    Tolerance: 5 %, at a quarter, three eighths and half of the length; the front is the length of all latent heat taken up.
    """

    name = "stefan"
    source = "Neumann 1860"
    slow = True

    def findings(self) -> Iterator[Finding]:
        """Follow the front."""
        length, latent = 1.0, 1e5
        h, freezing = length / 64, START
        thermal = {"latent_heat": latent, "freezing_temperature": freezing}
        start = block(matter(**thermal), (0, 0, 0), (length, 2 * h, 2 * h), h)
        start = changed(start, temperature=np.full(len(start), freezing))
        hot = hot_plane(0, freezing + latent / HEAT_CAPACITY)
        run = solver(start, still(melts=True), h, colliders=[hot])
        mass, fronts = column(run, "mass"), list[tuple[float, float]]()
        for share in (0.25, 0.375, 0.5):
            end = (share * length / (2.0 * 0.620063)) ** 2 / DIFFUSIVITY
            run.advance(end - run.time, 0.25 * h * h / DIFFUSIVITY)
            front = float(mass @ column(run, "latent_heat_fraction")) / mass.sum() * length
            fronts.append((run.time * DIFFUSIVITY / length**2, front / length))
            yield Finding.relative(share * length, front, 0.05, f"front at {share:g} of the length [m]")
        (time, front), through = np.array(fronts).T, np.linspace(0.0, fronts[-1][0], 100)
        self.show("front", ("a t / L^2", "front, of L"), (time, front), (through, 2.0 * 0.620063 * np.sqrt(through)))


class LatentPlateau(VerificationProblem):
    """Matter that is cooled evenly stays at its freezing temperature until its latent heat is gone, and does not flip on the way.

    Scene: a cube of 4^3 cells, liquid, cooled by 1000 W/kg from 1 K above its freezing temperature; then a solid one that is
        heated until half of its latent heat is taken up, and cooled again.
    Exact: the plateau lasts L / q; the enthalpy falls by q t; the half-melted solid was solid all the time.
    Tolerance: 1e-6 s between the lines of temperature before and after the plateau, whose ends fall on those of substeps: to
        count substeps would leave one in the balance; 1e-10 of the enthalpy; no flip.
    """

    name = "latent_plateau"
    source = "S14 section 5.9"

    def findings(self) -> Iterator[Finding]:
        """Cool through the plateau, then turn back inside it."""
        h, latent, power = 0.1, 1e4, 1000.0
        thermal = {"latent_heat": latent, "freezing_temperature": START}
        start = block(matter(**thermal), (0, 0, 0), (4 * h, 4 * h, 4 * h), h)

        def cube(temperature: float, watts_per_kilogram: float) -> SubstepSolver:
            warm = changed(start, temperature=np.full(len(start), temperature))
            return solver(warm, still(melts=True, source=watts_per_kilogram * DENSITY), h)

        run = cube(START + 1.0, -power)
        step, warmth = 0.01 * latent / power, [1.0]
        before, worst = self.enthalpy(run, latent), 0.0
        for n in range(1, 131):
            run.step(step)
            worst = max(worst, abs(before - self.enthalpy(run, latent) - n * step * power) / latent)
            warmth.append(float(column(run, "temperature").mean()) - START)
        yield Finding(latent / power, step * self.plateau(np.array(warmth)), 1e-6, "length of the plateau [s]")
        yield Finding(0.0, worst, 1e-10, "error of the enthalpy, of L")
        yield Finding(0.0, float(column(run, "phase").max()), 0.0, "phase at the end")
        run = cube(START - 0.5, power)
        run.advance(0.5 * latent / power, step)
        flipped = float(column(run, "phase").max())
        held = float(column(run, "latent_heat_fraction").mean())
        yield Finding(0.45, held, 1e-9, "share of the latent heat taken up")
        yield Finding(0.0, flipped, 0.0, "phase of half-melted matter")

    @staticmethod
    def plateau(warmth: np.ndarray) -> float:
        """Return for how many substeps even cooling stands still [-], from the lines before it and after it.

        Args:
            warmth: Temperature over that of freezing after each substep [K], shape (n,); 0 within 1e-9 on the plateau.
        """
        times = np.arange(len(warmth))
        lines = [np.polyfit(times[chosen], warmth[chosen], 1) for chosen in (warmth > 1e-9, warmth < -1e-9)]
        (before, after) = (-offset / slope for slope, offset in lines)
        return float(after - before)

    @staticmethod
    def enthalpy(run: SubstepSolver, latent: float) -> float:
        """Return the mean specific enthalpy over the solid at its freezing temperature [J/kg]."""
        mass, fraction = column(run, "mass"), column(run, "latent_heat_fraction")
        specific = HEAT_CAPACITY * (column(run, "temperature") - START) + latent * fraction
        return float(mass @ specific / mass.sum())
