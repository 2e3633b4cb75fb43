"""What several ranks of one simulation exchange, measured here, and what that lets expect of many machines.

    python benchmarks/ranks.py
    python benchmarks/ranks.py continuum_foam surface_tension_heat --cells 16

runs a block of matter on two ranks with each of the presets given, counts bytes, messages and agreements of a substep, times the
packing of the halo, and prints the efficiency of 2 to 64 machines on networks of 25 and 100 Gbit/s. It is a prediction: bytes and
messages are counted, what stages take is measured on one rank, the rest is assumed and printed with the table.

| symbol | meaning | unit |
|---|---|---|
| N, v | particles of a machine, its speed | -, particle-steps/s |
| w | columns of blocks in a slab | - |
| A, b | blocks that one side of a border gives to, bytes of one a substep and direction | -, B |
| E, p | particles of the column of blocks at a border, bytes of particles that are shown for each of them | -, B |
| B, c | network; seconds to pack a byte and to add it | B/s, s/B |
| m, g, l | messages and agreements a substep, latency of one message | -, -, s |
| u | what the fullest slab holds over the mean: slabs are whole columns of four cells | - |
| q | share of the time for what is done once more for the columns seen beyond borders, two on each side (`TWICE`) | - |
| s, r | share of the time for what every rank does with the particles of all (`EVERYWHERE`), bytes of a particle for it | -, B |

    t(1) = N / v
    t(P) = (u (1 - s) + 4 q / w + s P) N / v + 2 (A b + E p) (1 / B + c) + (P - 1) N r / B + (2 m + g log2 P) l
    efficiency = t(1) / t(P)

Neighbours on both sides send at once over a link of both directions, and share its bandwidth. Where the shot grows in all
directions, A and E grow with P^(2/3); where it grows along one, they stay. Slabs narrower than two columns, with a sampled surface
three, do not exist: a dash. v is that of explicit_apic (`--speed`), less by what a substep takes longer on one rank here.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CELL = 0.05
NETWORKS = {"25 Gbit/s": 25e9 / 8, "100 Gbit/s": 100e9 / 8}
LATENCY = 5e-6
"""Of one message between machines [s]: what both networks have with RDMA; TCP takes about 30e-6."""
MACHINES = (2, 4, 8, 16, 32, 64)
YARDSTICK = "explicit_apic"
PRESETS = (YARDSTICK, "implicit_apic", "surface_tension")
TWICE = ("sample_surface",)
EVERYWHERE = ("avoid_a_void",)
WARM, INTERVAL = 3, 50
"""Substeps before the measured ones; substeps from one resampling to the next."""


@dataclass(frozen=True)
class Exchanged:
    """What a substep of one rank with one border exchanges, sorts included.

    Attributes:
        bytes: Bytes of a block that is given, one direction.
        columns: Columns of blocks that one side gives to: two, and three where points around the particles give as well.
        shown: Bytes of particles, for each particle in the column of blocks at the border, one direction.
        messages: Messages of one border, one direction.
        agreements: Times that all ranks exchange something.
        packing: Seconds to pack a byte and to add it.
        twice: Share of a substep on one rank that stages in `TWICE` take.
        everywhere: The same of those in `EVERYWHERE`.
        replicated: Bytes that each particle is sent with to every rank.
        pace: How much longer a substep takes on one rank than that of `YARDSTICK`.
    """

    bytes: float
    columns: int
    shown: float
    messages: float
    agreements: float
    packing: float
    twice: float = 0.0
    everywhere: float = 0.0
    replicated: float = 0.0
    pace: float = 1.0


def efficiency(found: Exchanged, machines: int, particles: float, speed: float, bandwidth: float, along: bool) -> float:
    """Return t(1) / t(P) for a block of eight particles a cell on every machine, NaN where slabs would be too narrow.

    Args:
        found: What a substep exchanges.
        machines: P.
        particles: N.
        speed: v.
        bandwidth: B [B/s].
        along: Whether the shot grows along one axis; else in all directions, cut into slabs nevertheless.
    """
    edge = (particles / 8.0 * (1.0 if along else machines)) ** (1.0 / 3.0) / 4.0  # in blocks
    width = edge if along else edge / machines
    if width < found.columns:
        return math.nan
    rim = 1.0 if found.columns == 2 else 3.0  # blocks of the grid beside those of the particles
    alone = particles / speed
    sent = 2.0 * (found.columns * (edge + rim) ** 2 * found.bytes + 512.0 * edge**2 * found.shown)
    work = math.ceil(width) / width * (1.0 - found.everywhere) + 4.0 * found.twice / width + machines * found.everywhere
    exchange = sent / bandwidth + sent * found.packing + (2.0 * found.messages + found.agreements * math.log2(machines)) * LATENCY
    return alone / (alone * work + exchange + (machines - 1) * particles * found.replicated / bandwidth)


def table(found: Exchanged, speed: float) -> str:
    """Return the predicted table as Markdown."""
    lines = ["| machines | " + " | ".join(f"{n:g} M, {name}, {how}" for n, name, how, _ in _columns()) + " |"]
    lines.append("|" + "---|" * (1 + len(_columns())))
    for machines in MACHINES:
        shares = [efficiency(found, machines, n * 1e6, speed, NETWORKS[name], along) for n, name, _, along in _columns()]
        lines.append(
            f"| {machines} | " + " | ".join("-" if math.isnan(share) else f"{100 * share:.0f} %" for share in shares) + " |"
        )
    return "\n".join(lines)


def _columns() -> list[tuple[float, str, str, bool]]:
    grown = (("along one axis", True), ("all ways", False))
    return [(n, name, how, along) for n in (1.0, 20.0) for name in NETWORKS for how, along in grown]


# ---------------------------------------------------------------- measuring
def matter(preset: str, cells: int) -> Any:
    """Return a block of matter that moves a little and has what the stages of a preset ask for."""
    from mpm_nodes.data import Material, Particles, SurfaceTension, Thermal
    from mpm_nodes.physics.foam.problems.tearing import cream

    places = [(np.arange(2 * n) + 0.5) * 0.5 * CELL for n in (2 * cells, cells, cells)]
    position = np.stack(np.meshgrid(*places, indexing="ij"), -1).reshape(-1, 3)
    velocity = 0.2 * np.sin(6.0 * position[:, [1, 2, 0]])
    rubber = Material(
        "neo_hookean",
        {"youngs_modulus": 1e5},
        1000.0,
        "rubber",
        surface_tension=SurfaceTension(1.0) if "surface" in preset else None,
        thermal=Thermal(2e3, 0.2, 4e3, 0.6) if "heat" in preset else None,
    )
    columns = {"position": position, "velocity": velocity, "material": np.zeros(len(position), np.int32)}
    return Particles(columns, (cream() if "foam" in preset else rubber,), 0.5 * CELL)


def run(preset: str, cells: int, steps: int, team: Any = None) -> dict[str, float]:
    """Run a block of matter and return what a substep took and exchanged."""
    from mpm_nodes.solver.run import SubstepSolver

    solver = SubstepSolver(matter(preset, cells), preset, cell_size=CELL, dt_max=2e-3, team=team)
    resamples = any(planned.declaration.id in EVERYWHERE for planned in solver.plan.stages)
    for _ in range(INTERVAL if resamples else WARM):
        solver.step(time_left=10.0, keep=False)
    steps = -(-steps // INTERVAL) * INTERVAL if resamples else steps
    names = ("sent", "shown", "replicated", "messages", "agreements", "waited")
    before = {name: getattr(team, name, 0.0) for name in names}
    spent, begin, busy = dict(solver.stage_seconds), time.perf_counter(), time.process_time()
    for _ in range(steps):
        solver.step(time_left=10.0, keep=False)
    found = {"seconds": (time.perf_counter() - begin) / steps, "busy": (time.process_time() - busy) / steps}
    found |= {name: (getattr(team, name, 0.0) - before[name]) / steps for name in names}
    taken = {name: seconds - spent[name] for name, seconds in solver.stage_seconds.items()}
    for key, stages in (("twice", TWICE), ("everywhere", EVERYWHERE)):
        found[key] = sum(seconds for name, seconds in taken.items() if name in stages) / sum(taken.values())
    found["particles"] = 16.0 * cells**3
    if solver.share is not None:
        found["blocks"] = float(sum(map(len, solver.share.halo.given)))
        found["columns"] = 3 if solver.share.halo.wide else 2
        found["packing"] = _packing(solver)
    return found


def _packing(solver: Any) -> float:
    """Return the seconds that packing and adding of a byte take."""
    halo, array = solver.share.halo, solver.grid.array("momentum")
    view = array[: 256 * len(halo.own)].reshape(-1, 256)
    least = math.inf
    for _ in range(20):
        begin = time.perf_counter()
        for near in halo.given:
            give = np.stack([view[near]])
            view[near] += 0.0 * give[0]
        least = min(least, time.perf_counter() - begin)
    return least / max(1, sum(view[near].nbytes for near in halo.given))


def told_by(ranks: int, preset: str, cells: int, steps: int) -> dict[str, float]:
    """Run in processes of their own, of one thread each; return all figures of rank 0."""
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if launcher is None:
        raise SystemExit("there is no mpiexec: pip install 'mpm-nodes[mpi]' mpich")
    line = [launcher, "-n", str(ranks), sys.executable, __file__, "--as-rank", preset, str(cells), str(steps)]
    done = subprocess.run(line, env={**os.environ, "NUMBA_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip().splitlines()[-1] if done.stderr else f"{preset}: a rank ended with {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measured(preset: str, cells: int, steps: int, pace: float) -> tuple[Exchanged, dict[str, float]]:
    """Run a preset on one and on two ranks here; return what a substep exchanges, and all figures of rank 0 of the two.

    Args:
        preset: The preset.
        cells: Cells of the block's short edges.
        steps: Substeps.
        pace: CPU seconds of a substep of `YARDSTICK` on one rank.
    """
    alone, told = told_by(1, preset, cells, steps), told_by(2, preset, cells, steps)
    found = Exchanged(
        told["sent"] / told["blocks"],
        int(told["columns"]),
        told["shown"] / (32.0 * cells**2),
        told["messages"],
        told["agreements"],
        told["packing"],
        alone["twice"],
        alone["everywhere"],
        told["replicated"] / (0.5 * told["particles"]),
        alone["busy"] / pace,
    )
    return found, told


def report(preset: str, found: Exchanged, told: dict[str, float], speed: float) -> str:
    """Return what was measured, and the predicted table."""
    lines = [
        f"{preset}, {told['particles']:,.0f} particles on two ranks, a substep of each:",
        f"  to the neighbour: {told['sent'] / 1e3:.0f} kB of the grid ({told['blocks']:.0f} blocks, {found.bytes:.0f} B each), "
        f"{told['shown'] / 1e3:.0f} kB of particles ({found.shown:.1f} B for each at the border)",
        f"  {found.messages:.1f} messages, {found.agreements:.1f} agreements, packing {1e9 * found.packing:.2f} ns/B, "
        f"{1e3 * told['waited']:.2f} ms in MPI of {1e3 * told['seconds']:.1f} ms here",
        f"  {100 * found.twice:.0f} % of the time of one rank done once more for two columns beyond each border",
        f"  with the particles of all: {100 * found.everywhere:.1f} % of the time of one rank, {found.replicated:.2f} B a particle",
        f"predicted at {speed / found.pace / 1e6:.1f} M particle-steps/s a machine, latency {1e6 * LATENCY:.0f} us:",
    ]
    return "\n".join([*lines, "", table(found, speed / found.pace)])


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("presets", nargs="*", help=f"presets that ranks share (default: {', '.join(PRESETS)})")
    parser.add_argument("--as-rank", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--cells", type=int, default=24, help="cells of the block's short edges (default: 24)")
    parser.add_argument("--steps", type=int, default=64, help="substeps (default: 64)")
    parser.add_argument(
        "--speed", type=float, default=100e6, help=f"particle-steps a second of a machine with {YARDSTICK} (default: 100e6)"
    )
    args = parser.parse_args()
    if args.as_rank:
        from mpm_nodes.solver.ranks.team import join_team

        preset, cells, steps = args.as_rank
        team = join_team()
        found = run(preset, int(cells), int(steps), team if team.size > 1 else None)
        if team.rank == 0:
            print(json.dumps(found))
        return
    pace = told_by(1, YARDSTICK, args.cells, args.steps)["busy"]
    for preset in args.presets or PRESETS:
        found, told = measured(preset, args.cells, args.steps, pace)
        print(report(preset, found, told, args.speed), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
