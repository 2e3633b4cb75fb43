"""What several ranks of one simulation exchange, measured here, and what that lets expect of many machines.

    python benchmarks/ranks.py

runs a block of matter on two ranks, counts bytes, messages and agreements of a substep, times the packing of the halo, and prints
the efficiency of 2 to 64 machines on networks of 25 and 100 Gbit/s. It is a prediction: bytes and messages are counted, the rest is
assumed and printed with the table.

| symbol | meaning | unit |
|---|---|---|
| N, v | particles of a machine, its speed | -, particle-steps/s |
| A | blocks that one side of a border gives to: the two columns nearest to it | - |
| b, B | bytes of such a block a substep and direction, network | B, B/s |
| m, g, l | messages and agreements a substep, latency of one message | -, -, s |
| c | seconds to pack a byte and to add it | s/B |
| u | what the fullest slab holds over the mean: slabs are whole columns of four cells | - |

    t(1) = N / v,    t(P) = u N / v + 2 A b (1 / B + c) + (2 m + g log2 P) l,    efficiency = t(1) / t(P)

Neighbours on both sides send at once over a link of both directions, and share its bandwidth. Where the shot grows in all
directions, A grows with P^(2/3); where it grows along one, it stays. Slabs narrower than two columns do not exist: a dash.
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


@dataclass(frozen=True)
class Exchanged:
    """What a substep of one rank with one border exchanges, sorts included.

    Attributes:
        bytes: Bytes of a block that is given, one direction.
        messages: Messages of one border, one direction.
        agreements: Times that all ranks exchange a few numbers.
        seconds: Seconds to pack a byte and to add it.
        waited: Seconds in MPI on this machine.
        whole: Seconds of the substep on this machine.
    """

    bytes: float
    messages: float
    agreements: float
    seconds: float
    waited: float
    whole: float


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
    if width < 2.0:
        return math.nan
    blocks = 2.0 * (edge + 1.0) ** 2
    alone = particles / speed
    sent = 2.0 * blocks * found.bytes
    exchange = sent / bandwidth + sent * found.seconds + (2.0 * found.messages + found.agreements * math.log2(machines)) * LATENCY
    return alone / (alone * math.ceil(width) / width + exchange)


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
def run(substeps: str, cells: int, steps: int, team: Any = None) -> dict[str, float]:
    """Run a block of matter and return what a substep took and exchanged."""
    from mpm_nodes.data import Material, Particles
    from mpm_nodes.solver.run import SubstepSolver

    axes = [(np.arange(2 * n) + 0.5) * 0.5 * CELL for n in (2 * cells, cells, cells)]
    position = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    velocity = 0.2 * np.sin(6.0 * position[:, [1, 2, 0]])
    rubber = Material("neo_hookean", {"youngs_modulus": 1e5}, 1000.0, "rubber")
    columns = {"position": position, "velocity": velocity, "material": np.zeros(len(position), np.int32)}
    solver = SubstepSolver(Particles(columns, (rubber,), 0.5 * CELL), substeps, cell_size=CELL, dt_max=2e-3, team=team)
    for _ in range(3):
        solver.step(time_left=10.0, keep=False)
    before = (0, 0, 0, 0.0) if team is None else (team.sent, team.messages, team.agreements, team.waited)
    begin = time.perf_counter()
    for _ in range(steps):
        solver.step(time_left=10.0, keep=False)
    found = {"seconds": (time.perf_counter() - begin) / steps, "particles": float(len(position))}
    if team is not None and solver.share is not None:
        after = (team.sent, team.messages, team.agreements, team.waited)
        names = ("bytes", "messages", "agreements", "waited")
        found |= {name: (b - a) / steps for name, a, b in zip(names, before, after, strict=True)}
        found["blocks"] = float(sum(map(len, solver.share.halo.given)))
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


def measured(substeps: str, cells: int, steps: int) -> tuple[Exchanged, dict[str, float]]:
    """Run two ranks here; return what a substep exchanges, and all figures of rank 0."""
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if launcher is None:
        raise SystemExit("there is no mpiexec: pip install 'mpm-nodes[mpi]' mpich")
    line = [launcher, "-n", "2", sys.executable, __file__, "--as-rank", substeps, str(cells), str(steps)]
    done = subprocess.run(line, env={**os.environ, "NUMBA_NUM_THREADS": "1"}, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    a_block = told["bytes"] / told["blocks"]
    return Exchanged(a_block, told["messages"], told["agreements"], told["packing"], told["waited"], told["seconds"]), told


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--as-rank", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--cells", type=int, default=24, help="cells of the block's short edges (default: 24)")
    parser.add_argument("--steps", type=int, default=64, help="substeps (default: 64)")
    parser.add_argument("--speed", type=float, default=100e6, help="particle-steps a second of a machine (default: 100e6)")
    args = parser.parse_args()
    if args.as_rank:
        from mpm_nodes.solver.ranks.team import join_team

        team = join_team()
        found = run(args.as_rank[0], int(args.as_rank[1]), int(args.as_rank[2]), team)
        if team.rank == 0:
            print(json.dumps(found))
        return
    for substeps in ("explicit_apic", "implicit_apic"):
        steps = args.steps if substeps == "explicit_apic" else max(1, args.steps // 4)
        found, told = measured(substeps, args.cells, steps)
        print(
            f"\n{substeps}, {told['particles']:,.0f} particles on two ranks, a substep: {told['bytes'] / 1e3:.0f} kB to the "
            f"neighbour ({told['blocks']:.0f} blocks, {found.bytes:.0f} B each), {found.messages:.1f} messages, "
            f"{found.agreements:.1f} agreements, {1e3 * found.waited:.2f} ms in MPI of {1e3 * found.whole:.1f} ms here, packing "
            f"{1e9 * found.seconds:.2f} ns/B"
        )
        speed = args.speed if substeps == "explicit_apic" else args.speed / 10.0
        print(
            f"predicted at {speed / 1e6:.0f} M particle-steps/s a machine, latency {1e6 * LATENCY:.0f} us:\n\n{table(found, speed)}"
        )


if __name__ == "__main__":
    main()
