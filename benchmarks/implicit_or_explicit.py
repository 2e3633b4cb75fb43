"""Explicit or implicit substeps: wall time to the same frame over four decades of stiffness, and what preconditioners save.

    python benchmarks/implicit_or_explicit.py                       # some minutes
    python benchmarks/implicit_or_explicit.py --particles 8000 --json figures.json

stiffness         a rubber cube slides over a floor with friction at 2 m/s, Young's modulus 1e4 to 1e8 Pa, for one frame of 1/24 s,
                  in explicit and in implicit substeps of their own choice. The ways it slid must agree, else there is no ratio.
viscosity         the same with a liquid block of 10 to 1e4 Pa s.
preconditioners   a stiff, heavy block hits a soft sponge at 5 m/s: Krylov iterations of the same substeps with masses alone, the
                  inverse diagonal, and inverse 3 x 3 blocks (R15 section 4 reports a factor of 6 for the diagonal).

The exit code is 1 when the two modes disagree.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from environments import busy_warning

from mpm_nodes.data import Material, MpmNodesError, Particles, WallRule, Walls, concatenate
from mpm_nodes.solver.run import SubstepSolver

FRAME = 1.0 / 24.0
SIZE, SPEED, IMPACT = 0.4, 2.0, 5.0
DENSITY, POISSON = 1000.0, 0.3
STIFFNESSES = (1e4, 1e5, 1e6, 1e7, 1e8)
VISCOSITIES = (1e1, 1e2, 1e3, 1e4)
APART = 0.02
"""Difference that the ways slid may show: both modes are of first order in dt."""
PRECONDITIONERS = ("mass", "jacobi", "block_jacobi")


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when results disagree, 2 when something cannot run."""
    args = arguments_of(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    try:
        rows = [compare("E [Pa]", young, rubber(young), args) for young in args.stiffness]
        rows += [compare("mu [Pa s]", viscosity, syrup(viscosity), args) for viscosity in args.viscosity]
        saving = preconditioner_rows(args)
    except MpmNodesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print_tables(rows, saving)
    if args.json:
        args.json.write_text(json.dumps({"modes": rows, "preconditioners": saving}, indent=1) + "\n")
    return 0 if all(row["agree"] for row in rows) else 1


def arguments_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--particles", type=int, default=8_000, help="of each scene, about (default: %(default)s)")
    parser.add_argument("--stiffness", type=float, nargs="+", default=STIFFNESSES, metavar="PA", help="Young's moduli [Pa]")
    parser.add_argument("--viscosity", type=float, nargs="+", default=VISCOSITIES, metavar="PA_S", help="of liquids [Pa s]")
    parser.add_argument("--frames", type=float, default=1.0, help="frames of 1/24 s (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records here")
    args = parser.parse_args(arguments)
    if not 64 <= args.particles <= 10_000_000:
        parser.error(f"--particles {args.particles}: give a number from 64 to 10000000")
    return args


# ---------------------------------------------------------------- scenes
def lattice(material: Material, low: Any, size: Any, spacing: float, velocity: Any = (0.0, 0.0, 0.0)) -> Particles:
    """Return a box of particles."""
    axes = [lowest + spacing * (np.arange(max(1, round(length / spacing))) + 0.5) for lowest, length in zip(low, size, strict=True)]
    position = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    return Particles(
        {"position": position, "velocity": np.broadcast_to(np.asarray(velocity, float), position.shape)}, (material,), spacing
    )


def rubber(young: float) -> Material:
    """Return an elastic material."""
    return Material("neo_hookean", {"youngs_modulus": young, "poisson_ratio": POISSON}, DENSITY)


def syrup(viscosity: float) -> Material:
    """Return a viscous liquid."""
    return Material("liquid", {"bulk_modulus": 1e5, "viscosity": viscosity}, DENSITY)


def cube(material: Material, particles: int) -> Particles:
    """Return the sliding cube on the floor."""
    spacing = SIZE / round(particles ** (1 / 3))
    return lattice(material, (0.0, 0.0, 0.0), (SIZE,) * 3, spacing, (SPEED, 0.0, 0.0))


def impact(particles: int) -> Particles:
    """Return a soft sponge and the stiff, heavy block that is about to touch it."""
    spacing = SIZE / round(particles ** (1 / 3))
    soft = Material("neo_hookean", {"youngs_modulus": 1e4, "poisson_ratio": 0.2}, 200.0)
    sponge = lattice(soft, (0.0, 0.0, 0.0), (SIZE,) * 3, spacing)
    bullet = lattice(
        Material("neo_hookean", {"youngs_modulus": 1e8, "poisson_ratio": 0.3}, 5000.0),
        (SIZE + spacing, 0.35 * SIZE, 0.35 * SIZE),
        (0.3 * SIZE,) * 3,
        spacing,
        (-IMPACT, 0.0, 0.0),
    )
    return concatenate([sponge, bullet])


def floor() -> Walls:
    """Return a floor with friction."""
    free = WallRule.OPEN
    return Walls((-2.0, 0.0, -2.0), (3.0, 3.0, 3.0), (free, free, WallRule.SEPARATE, free, free, free), 0.3)


# ---------------------------------------------------------------- explicit against implicit
def compare(what: str, value: float, material: Material, args: argparse.Namespace) -> dict[str, Any]:
    """Run one material both ways; the second run of each counts, so that nothing is compiled in it."""
    start, duration = cube(material, args.particles), args.frames * FRAME
    row: dict[str, Any] = {"what": what, "value": value, "particles": len(start)}
    reached = {}
    for mode in ("explicit", "implicit"):
        SubstepSolver(start, f"{mode}_apic", walls=floor()).step(time_left=duration)
        solver = SubstepSolver(start, f"{mode}_apic", walls=floor(), dt_max=duration)
        begin = time.perf_counter()
        row[f"{mode}_substeps"] = solver.advance(duration)
        row[f"{mode}_seconds"] = time.perf_counter() - begin
        reached[mode] = float(solver.snapshot(["position"])["position"][:, 0].mean() - start["position"][:, 0].mean())
        if mode == "implicit":
            tally = solver.step_context.report["implicit"]
            row |= {name: tally[name] / tally["substeps"] for name in ("newton", "krylov")} | {"halved": tally["halved"]}
    row["apart"] = abs(reached["explicit"] - reached["implicit"]) / (SPEED * duration)
    row["agree"] = bool(row["apart"] <= APART)
    row["ratio"] = row["explicit_seconds"] / row["implicit_seconds"] if row["agree"] else None
    print(f"{what} {value:.0e}: explicit {row['explicit_seconds']:.2f} s, implicit {row['implicit_seconds']:.2f} s", flush=True)
    return row


# ---------------------------------------------------------------- preconditioners
def preconditioner_rows(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Run the same substeps of the impact with each preconditioner, solved a thousand times sharper than by default."""
    start, rows = impact(args.particles), []
    for preconditioner in (PRECONDITIONERS[0], *PRECONDITIONERS):  # the first run compiles
        settings = {
            "minimise_energy.preconditioner": preconditioner,
            "tolerance": 1e-4,
            "minimise_energy.krylov_tolerance": 1e-3,
            "minimise_energy.krylov_iterations": 20_000,
        }
        substeps = {"preset": "implicit_apic", "set": settings}
        solver = SubstepSolver(start, substeps, walls=None, gravity=(0.0, 0.0, 0.0), dtype=np.float64)
        begin = time.perf_counter()
        for _ in range(3):
            solver.step(0.5 * solver.cell_size / IMPACT)
        tally = solver.step_context.report["implicit"]
        rows.append(
            {
                "preconditioner": preconditioner,
                "particles": len(start),
                "seconds": time.perf_counter() - begin,
                "newton": tally["newton"] / 3,
                "krylov": tally["krylov"] / 3,
                "halved": tally["halved"],
            }
        )
    rows = rows[1:]
    for row in rows:
        row["saving"] = rows[0]["krylov"] / row["krylov"]
    return rows


def print_tables(rows: list[dict[str, Any]], saving: list[dict[str, Any]]) -> None:
    """Print what was measured."""
    print(f"\n{rows[0]['particles']:,} particles, one frame; per substep: Newton and Krylov iterations")
    print(
        f"{'':>16} {'explicit':>10} {'substeps':>9} {'implicit':>10} {'substeps':>9} {'Newton':>7} {'Krylov':>7} "
        f"{'apart':>7}  faster"
    )
    for row in rows:
        if not row["agree"]:
            faster = "they disagree"
        else:
            faster = f"implicit, {row['ratio']:.1f} x" if row["ratio"] > 1 else f"explicit, {1 / row['ratio']:.1f} x"
        print(
            f"{row['what']:>9} {row['value']:.0e} {row['explicit_seconds']:8.2f} s {row['explicit_substeps']:9} "
            f"{row['implicit_seconds']:8.2f} s {row['implicit_substeps']:9} {row['newton']:7.1f} {row['krylov']:7.0f} "
            f"{100 * row['apart']:5.2f} %  {faster}"
        )
    print(f"\nstiff block into a soft sponge, {saving[0]['particles']:,} particles, per substep")
    for row in saving:
        print(
            f"{row['preconditioner']:>13}: {row['krylov']:7.0f} Krylov iterations, {row['newton']:.1f} Newton, "
            f"{row['seconds']:6.2f} s, {row['saving']:.1f} times fewer than with masses"
        )


if __name__ == "__main__":
    sys.exit(main())
