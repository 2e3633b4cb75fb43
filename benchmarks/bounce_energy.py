"""Where a rubber ball loses its energy that bounces off a plane: a ledger over the stages of every substep.

    python benchmarks/bounce_energy.py                              # half a minute
    python benchmarks/bounce_energy.py --cells 6 --substeps implicit_apic --dt 0.002
    python benchmarks/bounce_energy.py --substeps implicit_apic --damping 0.1

The ball, free of gravity and friction, hits the plane at a tenth of the speed of sound in a bar. Columns, as shares of the energy
that it brings:

speed       of its middle after the bounce, over that before
swings      energy of the ball as it leaves that is not that of its middle: an elastic ball swings, too
to grid     lost when velocities and affine velocities of particles go to the nodes (APIC)
contact     taken by the plane: sum m (v2 - v1) . (v0 + v2) / 2 over the nodes, v0 at first, v1 after the forces, v2 at last
in time     the same of the forces, and the change of the stored energy: what the integration over the substep does not balance
to matter   lost when velocities go back to particles
paths       lost by particles whose paths meet the plane
in all      lost: the sum of the five

In implicit substeps one minimisation finds forces and contacts: what it loses stands under "in time". `--damping` is their
`numerical_damping`.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Any

import numpy as np

from mpm_nodes.data import FrameContext, GraphSettings, Material
from mpm_nodes.nodes.collide import collide_plane
from mpm_nodes.nodes.emit import emit_sphere
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.quantities import column, kinetic_energy, momentum, stored_energy

RADIUS, SPEED, DENSITY, YOUNG = 0.3, 1.0, 1000.0, 1e5
COLUMNS = "to grid", "contact", "in time", "to matter", "paths"


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=float, nargs="+", default=[4.0, 6.0, 9.0], help="radius of the ball [cells]")
    parser.add_argument("--substeps", nargs="+", default=["explicit_apic", "implicit_apic"], help="presets")
    parser.add_argument("--dt", type=float, help="substep [s]; the preset's own choice where none is given")
    parser.add_argument("--damping", type=float, help="numerical damping of implicit substeps")
    args = parser.parse_args(arguments)
    names = "dt [ms]", "speed", "swings", *COLUMNS, "in all"
    print(f"{'substeps':14} cells  " + "  ".join(f"{name:>9}" for name in names))
    for preset in args.substeps:
        for cells in args.cells:
            damped = {"preset": preset, "set": {"numerical_damping": args.damping}}
            values = ledger(preset if args.damping is None else damped, cells, args.dt)
            print(f"{preset:14} {cells:5g}  " + "  ".join(f"{value:9.3f}" for value in values), flush=True)
    return 0


def ledger(substeps: Any, cells: float, dt: float | None = None) -> tuple[float, ...]:
    """Return the columns for a ball with a radius in cells."""
    h = RADIUS / cells
    rubber = Material("neo_hookean", {"youngs_modulus": YOUNG, "poisson_ratio": 0.3}, DENSITY, "rubber")
    ball = emit_sphere(GraphSettings(cell_size=h), rubber, radius=RADIUS, centre=(0.0, RADIUS + 1.5 * h, 0.0))
    velocity = np.tile([0.0, -SPEED, 0.0], (len(ball), 1))
    ball = type(ball)({**ball.attributes, "velocity": velocity}, ball.materials, ball.spacing)
    run = SubstepSolver(
        ball,
        substeps,
        cell_size=h,
        colliders=[collide_plane(FrameContext(1))],
        gravity=(0.0, 0.0, 0.0),
        dtype=np.float64,
        fuse=False,
    )
    stages = [planned.id for planned in run.plan.stages if dt is None or not planned.sets]
    lost: dict[str, float] = defaultdict(float)
    mass = float(column(run, "mass").sum())
    brought, at, state, steps = 0.5 * mass * SPEED**2, 0, {}, 0

    def look() -> None:
        """Keep what the stage before has left."""
        nonlocal at
        run.step_context.check_cancel = _nothing  # stages ask, too
        done = stages[at - 1] if at else ""
        at += 1
        if done == "rasterize":
            momenta = run.grid.array("momentum").reshape(-1, 4)[: 64 * run.grid.count].copy()
            state["mass"] = momenta[:, 3]
            state["v0"] = momenta[:, :3] / np.where(momenta[:, 3:] > 0.0, momenta[:, 3:], 1.0)
        elif done == "update_grid_velocity":
            state["v1"] = run.grid.array("velocity").reshape(-1, 4)[: 64 * run.grid.count, :3].copy()
        elif done in ("collide_grid", "minimise_energy"):
            state["v2"] = run.grid.array("velocity").reshape(-1, 4)[: 64 * run.grid.count, :3].copy()
        elif done == "gather":
            state["gathered"] = kinetic_energy(run)
        elif done == "collide_particles":
            state["met"] = kinetic_energy(run)

    kinetic, stored, leaving = kinetic_energy(run), stored_energy(run), False
    begin = kinetic + stored
    while not leaving and steps < 20000:
        at = 0
        run.step(dt, check_cancel=look)
        steps += 1
        m, v0, v2 = state["mass"], state["v0"], state["v2"]
        v1 = state.get("v1", v2)
        at_first = 0.5 * float(m @ (v0**2).sum(axis=1))
        at_last = 0.5 * float(m @ (v2**2).sum(axis=1))
        mean = 0.5 * (v0 + v2)
        contact = float(m @ ((v2 - v1) * mean).sum(axis=1))
        then = stored_energy(run)
        lost["to grid"] += kinetic - at_first
        lost["contact"] -= contact
        lost["in time"] -= at_last - at_first - contact + then - stored
        lost["to matter"] += at_last - state["gathered"]
        lost["paths"] += state["gathered"] - state["met"]
        kinetic, stored = state["met"], then
        low = float(column(run, "position")[:, 1].min())
        rises = float(momentum(run)[1]) > 0.0
        leaving = rises and low > 1.5 * h
    speed = float(momentum(run)[1]) / mass
    swings = (kinetic + stored) / brought - speed**2
    shares = [lost[name] / brought for name in COLUMNS]
    return (1e3 * run.time / steps, speed / SPEED, swings, *shares, (begin - kinetic - stored) / brought)


def _nothing() -> None:
    pass


if __name__ == "__main__":
    raise SystemExit(main())
