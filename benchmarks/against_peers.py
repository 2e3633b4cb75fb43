"""mpm_nodes next to pip-installed Taichi and Warp: the same falling cube, agreement first, then times, in one run.

    python benchmarks/against_peers.py                        # a million particles, about five minutes
    python benchmarks/against_peers.py --particles 100000 --json figures.json

Makes its own environments (`peers` in the cache folder). Every solver runs in a process of its own, in turns. A peer is
written in two forms: `same` is our discretisation and must agree with us within float32 rounding; `mls` is MLS-MPM as
people write it, cheaper, and must come near. A form that disagrees gets no ratio, and the exit code is 1. Our time is the
mean over whole sort intervals, sorting included, the graph as wired. The best peer is the fastest form of any of them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from agreement import compare
from environments import busy_warning, environment, peers_folder, run_script
from peers.falling_cube import Cube

from mpm_nodes.data import MpmNodesError

NUMPY = "numpy==1.26.4"
PEERS = {"taichi": ("taichi==1.7.4", "taichi_cube.py"), "warp": ("warp-lang==1.19.0", "warp_cube.py")}
FORMS = ("same", "mls")
CHECKED_STEPS = 60
WARM_STEPS, STEPS = 3, 20
OUR_WARM_STEPS, OUR_STEPS = 1, 64
"""Rounded up to whole sort intervals."""
GOAL, FLOOR = 6.0, 4.0


@dataclass
class Entry:
    """One solver in one form.

    Attributes:
        name: "mpm_nodes", "taichi" or "warp".
        form: "same" or "mls"; "as wired" for ours.
        python: Interpreter that runs its script.
        script: Its script in `peers`.
        version: As the solver tells it.
        agreement: Outcome of `agreement.compare`; None for ours.
        rates: Particle-steps per second of each round.
        cores_busy: Processor seconds per second of each round.
    """

    name: str
    form: str
    python: Path | str
    script: str
    version: str = ""
    agreement: dict[str, Any] | None = None
    rates: list[float] = field(default_factory=list)
    cores_busy: list[float] = field(default_factory=list)

    @property
    def label(self) -> str:
        """What the table calls it."""
        return f"{self.name} {self.form}"

    def run(self, args: argparse.Namespace, steps: int, warm: int = 0, state: Path | None = None) -> dict[str, Any]:
        """Run its script and return what it measured; with `state`, write the final state there."""
        with tempfile.TemporaryDirectory() as folder:
            result, cache = Path(folder) / "result.json", peers_folder() / f"{self.name}-kernels"
            cache.mkdir(parents=True, exist_ok=True)
            options = {
                "--particles": args.particles,
                "--form": self.form,
                "--threads": args.threads,
                "--steps": steps,
                "--warm": warm,
                "--cache": cache,
                "--result": result,
                **({"--state": state} if state else {}),
            }
            flat = [part for pair in options.items() for part in pair]
            run_script(self.python, self.script, flat, args.threads, ours=self.name == "mpm_nodes")
            return json.loads(result.read_text())


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when a peer disagrees, 2 when something cannot run."""
    args = arguments_of(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    try:
        ours = Entry("mpm_nodes", "as wired", sys.executable, "mpm_nodes_cube.py")
        peers = [
            Entry(name, form, python, script)
            for name, (requirement, script) in PEERS.items()
            for python in [environment((requirement, NUMPY))]
            for form in FORMS
        ]
        check_agreement(ours, peers, args)
        agreeing = [peer for peer in peers if peer.agreement and peer.agreement["agree"]]
        for number in range(1, args.rounds + 1):
            for entry in (ours, *agreeing):
                time_entry(entry, args, number)
    except MpmNodesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    records = [record(peer, ours, args) for peer in peers]
    print_table(ours, peers)
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + "\n")
    return 0 if len(agreeing) == len(peers) else 1


def arguments_of(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--particles", type=int, default=1_000_000, help="about how many; a cube is made (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of all solvers (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each solver (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the records here")
    args = parser.parse_args(arguments)
    for name, low, high in (("particles", 512, 20_000_000), ("rounds", 1, 1000), ("threads", 1, os.cpu_count() or 1)):
        if not low <= getattr(args, name) <= high:
            parser.error(f"--{name} {getattr(args, name)}: give a number from {low} to {high}")
    return args


def check_agreement(ours: Entry, peers: list[Entry], args: argparse.Namespace) -> None:
    """Run every solver for CHECKED_STEPS steps from the same start and fill in the peers' agreement."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.npz"
        mine: dict[str, np.ndarray] = {}
        for entry in (ours, *peers):
            facts = entry.run(args, CHECKED_STEPS, state=file)
            state, said = dict(np.load(file)), ""
            entry.version = facts["version"]
            if entry is ours:
                mine = state
            else:
                entry.agreement = compare(mine, state, CHECKED_STEPS, entry.form)
                said = ": agrees" if entry.agreement["agree"] else f": DISAGREES ({disagreement(entry.agreement)})"
            print(f"{CHECKED_STEPS} steps, compiling included: {entry.label}, {facts['seconds']:.1f} s{said}", flush=True)


def disagreement(agreement: dict[str, Any]) -> str:
    """Return in words which figures differ."""
    return "; ".join(
        f"{name}: {row['ours']} and {row['peer']}, {'relative ' * row['relative']}difference "
        f"{row['difference']:.2e}, allowed {row['allowed']:.2e}"
        for name, row in agreement["figures"].items()
        if not row["agrees"]
    )


def time_entry(entry: Entry, args: argparse.Namespace, number: int) -> None:
    """Time one solver in one round."""
    steps, warm = (OUR_STEPS, OUR_WARM_STEPS) if entry.name == "mpm_nodes" else (STEPS, WARM_STEPS)
    facts = entry.run(args, steps, warm)
    entry.rates.append(Cube.of(args.particles).count / facts["step_seconds"])
    entry.cores_busy.append(facts["cores_busy"])
    print(
        f"round {number} of {args.rounds}: {entry.label}, {entry.rates[-1] / 1e6:.2f} million particle-steps/s over "
        f"{facts['steps']} steps, {facts['cores_busy']:.1f} cores busy",
        flush=True,
    )


def record(peer: Entry, ours: Entry, args: argparse.Namespace) -> dict[str, Any]:
    """Return the JSON record of one peer in one form; rates and ratio are None where it disagrees."""
    rate = statistics.median(peer.rates) if peer.rates else None
    mine = statistics.median(ours.rates)
    return {
        "peer": peer.name,
        "version": peer.version,
        "form": peer.form,
        "particle_steps_per_second": rate,
        "ours": mine,
        "ratio": mine / rate if rate else None,
        "agreement": peer.agreement,
        "threads": args.threads,
        "particles": Cube.of(args.particles).count,
        "rounds": args.rounds,
        "every_round": peer.rates,
        "ours_every_round": ours.rates,
        "cores_busy": statistics.median(peer.cores_busy) if peer.cores_busy else None,
    }


def print_table(ours: Entry, peers: list[Entry]) -> None:
    """Print medians, spreads and ratios, and whether the goal is met."""
    mine = statistics.median(ours.rates)
    print(f"\n{'':18} {'version':>9} {'million particle-steps/s':>25} {'spread':>15} {'cores busy':>11} {'ours/peer':>10}")
    for entry in (ours, *peers):
        if not entry.rates:
            print(f"{entry.label:18} {entry.version:>9} {'results disagree':>25}")
            continue
        low, middle, high = min(entry.rates), statistics.median(entry.rates), max(entry.rates)
        ratio = "" if entry is ours else f"{mine / middle:.2f}"
        print(
            f"{entry.label:18} {entry.version:>9} {middle / 1e6:>25.2f} {f'{low / 1e6:.2f} - {high / 1e6:.2f}':>15} "
            f"{statistics.median(entry.cores_busy):>11.1f} {ratio:>10}"
        )
    timed = [peer for peer in peers if peer.rates]
    if timed:
        best = max(timed, key=lambda peer: statistics.median(peer.rates))
        ratio = mine / statistics.median(best.rates)
        print(
            f"best peer: {best.label}; ours is {ratio:.2f} times as fast. Goal {GOAL:g}: {met(ratio >= GOAL)}; "
            f"floor {FLOOR:g}: {met(ratio >= FLOOR)}"
        )


def met(reached: bool) -> str:
    """Return "met" or "not met"."""
    return "met" if reached else "not met"


if __name__ == "__main__":
    sys.exit(main())
