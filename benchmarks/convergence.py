"""Errors of the presets against exact answers, on three cells by three time steps: the figures of docs/convergence.md.

    python benchmarks/convergence.py                      # all; an hour, into docs/plots/convergence.json
    python benchmarks/convergence.py bar explicit_apic    # these problems or presets
    python benchmarks/convergence.py --table              # the tables of the page, of the kept figures

| problem | exact answer | error | length in cells | time of the steps |
|---|---|---|---|---|
| bar | standing wave between fixed ends | velocities after 1 and 1 1/4 periods, root mean square | half a wave | period |
| bounce | a bar hits a wall and leaves it as fast | speed of its middle after 1.5 contacts | the bar | contact |
| vortices | Taylor and Green's decay, slip walls | velocities, root mean square | half a wave | 1 / (2 nu k^2) |
| spin_down | the first mode in a cylinder that liquid sticks to | the same | the diameter | 1 / (nu k^2) |
| temperature | a wave that decays between insulated walls | amplitude | half a wave | 1 / (a k^2) |
| held_plate | the error function beside a held body, 0.37 cells off the nodes | largest | four of sqrt(a t) | all of it |
| drop | Rayleigh's frequency of a disc | frequency | the diameter | period |

Errors are shares of what the answer is at first, or of the answer where it is one number. Explicit steps follow the cells: they are
shares of what the preset chooses by itself. All in double precision.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpm_nodes.data import WallRule
from mpm_nodes.physics.heat.problems.heat import TemperatureWave, hot_plane
from mpm_nodes.physics.heat.problems.heat_boundaries import near_profile, warmed
from mpm_nodes.physics.rigid_bodies.problems.rigid_bodies import hollow_cylinder
from mpm_nodes.physics.surface_tension.problems.surface_tension import TENSION, H, disc, liquid, oscillation, slab, zeros
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.quantities import column
from mpm_nodes.verification.scenes import OPEN, SEPARATE, SLIP, STICKY, block, changed, material, walled

KEPT = Path(__file__).resolve().parents[1] / "docs" / "plots" / "convergence.json"
DENSITY, SHEAR, BULK = 1000.0, 4e4, 8e4
WAVE = math.sqrt((BULK + 4.0 * SHEAR / 3.0) / DENSITY)
"""Speed of a longitudinal wave [m/s]."""
NU = 0.1
J1 = 3.8317059702075125
"""First zero of the Bessel function of order 1."""
BELIEVED = 0.05


@dataclass(frozen=True)
class Study:
    """One table.

    Attributes:
        label: Of the substeps.
        problem: Name of a function below.
        substeps: What solvers take.
        cells: Of the length that the problem says.
        steps: Explicit: shares of the step that the preset chooses. Others: shares of the problem's time.
        explicit: Whether steps follow the cells.
        law: Of the elastic problems.
    """

    label: str
    problem: str
    substeps: Any
    cells: tuple[int, ...] = (16, 32, 64)
    steps: tuple[float, ...] = (1.0, 0.5, 0.25)
    explicit: bool = True
    law: str = "neo_hookean"


def solid(law: str) -> Any:
    """Return an elastic material with the moduli of these problems, which does not yield."""
    if law == "herschel_bulkley":
        return material(law, DENSITY, shear_modulus=SHEAR, bulk_modulus=BULK, yield_stress=1e9, consistency=1.0, flow_index=1.0)
    lam = BULK - 2.0 * SHEAR / 3.0
    young, poisson = SHEAR * (3.0 * lam + 2.0 * SHEAR) / (lam + SHEAR), 0.5 * lam / (lam + SHEAR)
    return material("neo_hookean", DENSITY, youngs_modulus=young, poisson_ratio=poisson)


def elastic(
    study: Study, cells: int, ends: tuple[WallRule, WallRule], velocity: Callable[[np.ndarray], np.ndarray]
) -> SubstepSolver:
    """Return a bar of 1 m between slip walls, with velocities [m/s] along it."""
    h = 1.0 / cells
    start = block(solid(study.law), (0, 0, 0), (1.0, 2 * h, 2 * h), h)
    along = np.zeros((len(start), 3))
    along[:, 0] = velocity(start["position"][:, 0])
    far = 1.0 if ends[1] is STICKY else 2.0
    return SubstepSolver(
        changed(start, velocity=along),
        study.substeps,
        cell_size=h,
        walls=walled((0, 0, 0), (far, 2 * h, 2 * h), *ends, SLIP, SLIP, SLIP, SLIP),
        gravity=(0.0, 0.0, 0.0),
        dtype=np.float64,
        origin=(0.0, 0.0, 0.0),
        dt_max=math.inf,
    )


def through(run: SubstepSolver, until: float, dt: float) -> None:
    """Go on to a time in equal steps of about dt."""
    count = max(1, round((until - run.time) / dt))
    each = (until - run.time) / count
    for _ in range(count):
        run.step(each)


def bar(study: Study, cells: int, step: float) -> float:
    """Return the error of a standing wave of a thousandth of the speed of sound."""
    run = elastic(study, cells, (STICKY, STICKY), lambda x: 1e-3 * WAVE * np.sin(math.pi * x))
    shape = column(run, "velocity")[np.argsort(run.particles.unpack("id")), 0]
    period = 2.0 / WAVE
    dt, off = (0.5 * step / cells / WAVE if study.explicit else step * period), []
    for at in (1.0, 1.25):
        through(run, at * period, dt)
        found = column(run, "velocity")[np.argsort(run.particles.unpack("id")), 0]
        off.append(((found - math.cos(2.0 * math.pi * at) * shape) ** 2).sum() / (shape**2).sum())
    return float(np.sqrt(np.mean(off)))


def bounce(study: Study, cells: int, step: float) -> float:
    """Return the error of the speed of a bar that bounced, at a hundredth of the speed of sound."""
    run = elastic(study, cells, (SEPARATE, OPEN), lambda x: np.full(len(x), -0.01 * WAVE))
    contact = 2.0 / WAVE
    through(run, 1.5 * contact, 0.5 * step / cells / WAVE if study.explicit else step * contact)
    mass = column(run, "mass")
    return abs(float(mass @ column(run, "velocity")[:, 0]) / (mass.sum() * 0.01 * WAVE) - 1.0)


def viscous(study: Study, cells: int, step: float, flow: Callable[..., tuple[np.ndarray, np.ndarray]], round_: bool) -> float:
    """Return the error of a flow that decays at the rate nu k^2, after half of that time.

    Args:
        study: The substeps.
        cells: Cells of 1 m.
        step: See `Study.steps`.
        flow: Velocity and its gradient at places in the plane, and k.
        round_: Whether the liquid lies in a cylinder that it sticks to, or between slip walls.
    """
    h = 1.0 / cells
    low = -0.5 if round_ else 0.0
    # soft enough to leave the explicit step to the viscosity: the exact flows have no pressure
    fluid = material("liquid", DENSITY, bulk_modulus=DENSITY * (NU / h) ** 2, viscosity=NU * DENSITY)
    start = block(fluid, (low, 0, low), (low + 1.0, 2 * h, low + 1.0), h)
    if round_:
        inside = np.hypot(start["position"][:, 0], start["position"][:, 2]) < 0.5
        start = type(start)({name: each[inside] for name, each in start.attributes.items()}, start.materials, start.spacing)
    velocity, gradient, rate = flow(start["position"])
    sides = (OPEN, OPEN, SLIP, SLIP, OPEN, OPEN) if round_ else (SLIP,) * 6
    room = 0.5 if round_ else 0.0
    run = SubstepSolver(
        changed(start, velocity=velocity, affine=gradient, velocity_gradient=gradient),
        study.substeps,
        cell_size=h,
        colliders=[hollow_cylinder(0.5, 2 * h, h)] if round_ else (),
        walls=walled((low - room, 0, low - room), (low + 1 + room, 2 * h, low + 1 + room), *sides),
        gravity=(0.0, 0.0, 0.0),
        dtype=np.float64,
        origin=(0.0, 0.0, 0.0),
        dt_max=math.inf,
    )
    shape = column(run, "velocity")[np.argsort(run.particles.unpack("id"))]
    through(run, 0.5 / rate, step * h * h / (12.0 * NU) if study.explicit else step / rate)
    found = column(run, "velocity")[np.argsort(run.particles.unpack("id"))]
    exact = math.exp(-0.5)
    return float(np.sqrt(((found - exact * shape) ** 2).sum() / (shape**2).sum()) / exact)


def vortices(study: Study, cells: int, step: float) -> float:
    """Return the error of vortices between slip walls."""

    def flow(place: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        k, speed = math.pi, 1e-3 * NU
        x, z = k * place[:, 0], k * place[:, 2]
        velocity, gradient = np.zeros((len(place), 3)), np.zeros((len(place), 3, 3))
        velocity[:, 0], velocity[:, 2] = speed * np.sin(x) * np.cos(z), -speed * np.cos(x) * np.sin(z)
        gradient[:, 0, 0] = speed * k * np.cos(x) * np.cos(z)
        gradient[:, 0, 2] = -speed * k * np.sin(x) * np.sin(z)
        gradient[:, 2, 0], gradient[:, 2, 2] = -gradient[:, 0, 2], -gradient[:, 0, 0]
        return velocity, gradient, 2.0 * NU * k * k

    return viscous(study, cells, step, flow, False)


def spin_down(study: Study, cells: int, step: float) -> float:
    """Return the error of a liquid that turns in a cylinder at rest."""

    def flow(place: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        k, speed = J1 / 0.5, 1e-3 * NU
        x, z = place[:, 0], place[:, 2]
        r = np.hypot(x, z)
        turn, slope = bessel_over(k * r)
        turn, slope = speed * k * turn, speed * k**3 * slope  # u_theta / r and its derivative over r^2 / 2
        velocity, gradient = np.zeros((len(place), 3)), np.zeros((len(place), 3, 3))
        velocity[:, 0], velocity[:, 2] = turn * z, -turn * x
        gradient[:, 0, 0], gradient[:, 0, 2] = slope * x * z, turn + slope * z * z
        gradient[:, 2, 0], gradient[:, 2, 2] = -turn - slope * x * x, -slope * x * z
        return velocity, gradient, NU * k * k

    return viscous(study, cells, step, flow, True)


def bessel_over(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return J_1(x) / x, and its derivative over x, by their series (x up to 4)."""
    value, slope, term = np.zeros_like(x), np.zeros_like(x), np.full_like(x, 0.5)
    for m in range(20):
        value += term
        term = term * (-0.25) / ((m + 1) * (m + 2))
        slope += 2.0 * (m + 1) * term
        term = term * x * x
    return value, slope


def temperature(study: Study, cells: int, step: float) -> float:
    """Return the error of the amplitude of a wave of temperature."""
    rate, _ = TemperatureWave.decay(step, cells=cells)
    return abs(math.exp(-0.5 * (rate - 1.0)) - 1.0)


def held_plate(study: Study, cells: int, step: float) -> float:
    """Return the largest error beside a plate that is held at a temperature, of the difference in temperature."""
    offset, length = 0.37, round(cells / (4.0 * math.sqrt(0.1)))
    run = warmed(hot_plane(0, 400.0), offset, cells=length, steps=round(1.0 / step))
    z, rise, _ = near_profile(run, offset, length)
    return float(np.abs(rise / 100.0 - [math.erfc(value) for value in z]).max())


def drop(study: Study, cells: int, step: float) -> float:
    """Return the error of the frequency of a disc that swings."""
    exact = math.sqrt(6.0 * TENSION / (cells // 2 * H) ** 3)
    start = disc(cells // 2, liquid())
    run = slab(changed(start, position=start["position"] * [1.05, 1.0 / 1.05, 1.0]), study.substeps)
    dt = step * run.step()
    first, second = zeros(*oscillation(run, 6.5 / exact, dt))[:2]
    return abs(math.pi / (second - first) / exact - 1.0)


PROBLEMS = {each.__name__: each for each in (bar, bounce, vortices, spin_down, temperature, held_plate, drop)}
SHARP = {"tolerance": 1e-8, "minimise_energy.krylov_tolerance": 1e-4}
"""Waves and flows of these problems move a thousandth of a cell in a step, and less."""
COARSE, DISCS = (8, 16, 32), (6, 12, 24)
LONG = (0.04, 0.02, 0.01)
IMPLICIT = {"preset": "implicit_apic", "set": SHARP}
DAMPED = {"preset": "implicit_apic", "set": {**SHARP, "numerical_damping": 0.1}}
LITTLE, SPLIT = "implicit_apic, numerical_damping 0.1", {"preset": "incompressible", "set": {"of_laws": True}}
STUDIES = (
    Study("explicit_apic", "bar", "explicit_apic"),
    Study("explicit_apic", "bounce", "explicit_apic"),
    Study("explicit_apic", "vortices", "explicit_apic", COARSE),
    Study("explicit_apic", "spin_down", "explicit_apic", COARSE),
    Study("continuum_foam", "bar", "continuum_foam", law="herschel_bulkley"),
    Study("continuum_foam", "bounce", "continuum_foam", law="herschel_bulkley"),
    Study("implicit_apic", "bar", IMPLICIT, steps=LONG, explicit=False),
    Study("implicit_apic", "bounce", IMPLICIT, steps=LONG, explicit=False),
    Study("implicit_apic", "vortices", IMPLICIT, COARSE, steps=LONG, explicit=False),
    Study("implicit_apic", "spin_down", IMPLICIT, COARSE, steps=LONG, explicit=False),
    Study(LITTLE, "bar", DAMPED, steps=LONG, explicit=False),
    Study(LITTLE, "bounce", DAMPED, steps=LONG, explicit=False),
    Study("incompressible", "bar", SPLIT, steps=LONG, explicit=False),
    Study("incompressible", "bounce", SPLIT, steps=LONG, explicit=False),
    Study("incompressible", "vortices", "incompressible", COARSE, steps=LONG, explicit=False),
    Study("incompressible", "spin_down", "incompressible", COARSE, steps=LONG, explicit=False),
    Study("explicit_heat, melting", "temperature", None, COARSE, LONG, False),
    Study("explicit_heat, melting", "held_plate", None, COARSE, LONG, False),
    Study("surface_tension", "drop", "surface_tension", DISCS),
)


def main(arguments: list[str] | None = None) -> int:
    """Measure, keep, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="problems or presets; default: all")
    parser.add_argument("--table", action="store_true", help="measure nothing, print the tables of the page")
    args = parser.parse_args(arguments)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else []
    if args.table:
        print(table(kept))
        return 0
    for study in STUDIES:
        if args.names and not {study.problem, study.label} & set(args.names):
            continue
        begin, run = time.perf_counter(), PROBLEMS[study.problem]
        errors = [[float(f"{run(study, cells, step):.4g}") for step in study.steps] for cells in study.cells]
        row = {"substeps": study.label, "problem": study.problem, "explicit": study.explicit, "cells": study.cells}
        row |= {"steps": study.steps, "errors": errors}
        print(f"{study.label} {study.problem}: {errors}, {time.perf_counter() - begin:.0f} s", flush=True)
        places = {(each["substeps"], each["problem"]): each for each in kept} | {(study.label, study.problem): row}
        order = [(each.label, each.problem) for each in STUDIES]
        kept = [places[name] for name in order if name in places]
        KEPT.write_text("[\n" + ",\n".join(json.dumps(each) for each in kept) + "\n]\n")
    return 0


def table(kept: list[dict[str, Any]]) -> str:
    """Return the tables of the page as Markdown."""
    lines = [
        "| substeps | problem | errors of the coarse, middle, fine cells | order in h | order in dt | cells for 5 % |",
        "|---|---|---|---|---|---|",
    ]
    for row in kept:
        errors = np.array(row["errors"])
        shown = "; ".join(", ".join(percent(each) for each in line) for line in errors)
        in_h, in_dt = order(errors[:, COLUMN[row["explicit"]]], row["cells"]), -order(errors[-1], row["steps"])
        words = f"{round(in_h, 1) + 0.0:.1f} | {round(in_dt, 1) + 0.0:.1f} | {believed(row)}"
        lines.append(f"| `{row['substeps']}` | {row['problem']} | {shown} | {words} |")
    return "\n".join(lines)


COLUMN = {True: 0, False: -1}
"""Column of the errors that cells are compared in: the step that explicit presets choose, and the shortest of the others."""


def percent(error: float) -> str:
    """Return an error in words, in percent."""
    return f"{100.0 * error:.2g}" if error < 0.0995 else f"{100.0 * error:.0f}"


def order(errors: Any, over: Any) -> float:
    """Return how fast errors fall from the first to the last of numbers that rise."""
    return float(math.log(errors[0] / errors[-1]) / math.log(over[-1] / over[0]))


def believed(row: dict[str, Any]) -> str:
    """Return how many cells a length needs for an error of 5 %, between those that were measured, in words."""
    cells, errors = row["cells"], [line[COLUMN[row["explicit"]]] for line in row["errors"]]
    if errors[0] <= BELIEVED:
        return f"< {cells[0]}"
    if errors[-1] > BELIEVED:
        return f"> {cells[-1]}"
    found = np.interp(-math.log(BELIEVED), -np.log(errors), np.log(cells))
    return f"{math.exp(found):.0f}"


if __name__ == "__main__":
    raise SystemExit(main())
