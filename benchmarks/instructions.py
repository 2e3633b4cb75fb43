"""What a particle costs on processors that need not be here: instructions of the two loops of an explicit substep.

Times of one machine say nothing about others. Instructions can be counted for all of them: the loops are compiled for each
processor, never called, and counted from LLVM's assembly. Three numbers stand for what has cost most: instructions, those that
touch the stack (registers that did not suffice), and conditional branches (which vectors without masks are stored with).

    python benchmarks/instructions.py                   # neo-Hookean, quadratic, APIC: 30 seconds
    python benchmarks/instructions.py --kernel cubic --transfer flip --json figures.json

The exit code is 1 when a count is above its ceiling (`CEILINGS`); what other laws, kernels and transfers take is only shown.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from machine_loops import Counts, per_particle

from mpm_nodes import children
from mpm_nodes.bench.rows import KERNELS, LAWS, MATERIALS, PRECISIONS, TRANSFERS, Row
from mpm_nodes.data import MpmNodesError

CHILD = Path(__file__).with_name("translate.py")
COMPILED_AS = {"znver4": ("znver4",), "znver3": ("znver3", "alderlake", "apple-m1", "neoverse-v1"), "x86-64-v2": ("x86-64-v2",)}
"""Processors for which numba compiles here, and those whose assembly is made from that: no x86 machine compiles for ARM."""
CPUS = ("znver4", "znver3", "alderlake", "x86-64-v2", "apple-m1", "neoverse-v1")
LOOPS = ("scatter", "gather")
PARTS = ("single", "sixteen")
PARTICLES = 2000


@dataclass(frozen=True)
class Ceiling:
    """What a particle may cost in one of the two loops: instructions, and accesses to the stack and branches among them."""

    instructions: float
    stack: float
    branches: float


CEILINGS: dict[str, dict[str, Ceiling]] = {
    "znver4": {"scatter": Ceiling(145, 10, 4), "gather": Ceiling(196, 16, 5)},
    "znver3": {"scatter": Ceiling(222, 30, 2), "gather": Ceiling(342, 80, 2.5)},
    "alderlake": {"scatter": Ceiling(230, 40, 2), "gather": Ceiling(343, 80, 2.5)},
    "x86-64-v2": {"scatter": Ceiling(770, 145, 2.5), "gather": Ceiling(1046, 410, 3.5)},
    "apple-m1": {"scatter": Ceiling(480, 92, 2), "gather": Ceiling(609, 126, 2.5)},
    "neoverse-v1": {"scatter": Ceiling(410, 34, 2), "gather": Ceiling(597, 117, 2.5)},
}
"""By processor and loop, of neo-Hookean with quadratic splines and APIC, as `total` counts them."""


def main(arguments: list[str] | None = None) -> int:
    """Count and print; 1 when a count is above its ceiling."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--law", choices=(*LAWS, *MATERIALS), default="neo_hookean")
    parser.add_argument("--kernel", choices=KERNELS, default="quadratic")
    parser.add_argument("--transfer", choices=TRANSFERS, default="apic")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the counts here")
    args = parser.parse_args(arguments)
    row = Row("cube", args.law, args.kernel, args.transfer, PARTICLES, 1, args.precision)
    found = counts(row)
    print(f"{row.law}, {row.kernel}, {row.transfer}, {row.precision}: instructions a particle (of which stack accesses, branches)")
    print(f"{'':13}{'scatter: one by one':>22}{'by sixteen':>18}{'gather: one by one':>22}{'by sixteen':>18}{'all':>8}")
    for cpu in CPUS:
        cells = [_cell(found[cpu][loop][part]) for loop in LOOPS for part in PARTS]
        whole = sum(total(found[cpu][loop]).instructions for loop in LOOPS)
        print(f"{cpu:13}{cells[0]:>22}{cells[1]:>18}{cells[2]:>22}{cells[3]:>18}{whole:8.0f}")
    if args.json:
        plain = {cpu: {loop: _plain(parts) for loop, parts in loops.items()} for cpu, loops in found.items()}
        args.json.write_text(json.dumps(plain, indent=1) + "\n")
    above = too_many(found) if row == Row(particles=PARTICLES, threads=1) else []
    for line in above:
        print(f"NOT MET  {line}")
    return 1 if above else 0


def _cell(counted: Counts) -> str:
    return f"{counted.instructions:.0f} ({counted.stack:.0f}, {counted.branches:.1f})"


def _plain(parts: dict[str, Counts]) -> dict[str, Any]:
    return {part: vars(counted) for part, counted in parts.items()}


def total(parts: dict[str, Counts]) -> Counts:
    """Return what a particle costs in one of the two loops."""
    whole = Counts()
    for counted in parts.values():
        whole.add(counted)
    return whole


def too_many(found: dict[str, dict[str, dict[str, Counts]]]) -> list[str]:
    """Return a line for every count above its ceiling."""
    lines = []
    for cpu, loops in CEILINGS.items():
        for loop, ceiling in loops.items():
            whole = total(found[cpu][loop])
            for name, most in vars(ceiling).items():
                if getattr(whole, name) > most:
                    lines.append(f"{cpu}, {loop}: {getattr(whole, name):.1f} {name} a particle, at most {most:g}")
    return lines


# ---------------------------------------------------------------- compiling
def counts(row: Row) -> dict[str, dict[str, dict[str, Counts]]]:
    """Return what a particle of a row costs by processor, loop and part of the loop.

    Raises:
        MpmNodesError: This is not an x86-64 machine, or a process that compiles failed; the message holds what it said last.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise MpmNodesError(f"instructions are counted on x86-64 machines only, this is {platform.machine()}")
    loops = _told("loops", asdict(row))
    with ThreadPoolExecutor(len(COMPILED_AS)) as pool:
        parts = pool.map(lambda cpu: _counted(cpu, COMPILED_AS[cpu], loops), COMPILED_AS)
    return {cpu: found for part in parts for cpu, found in part.items()}


def _told(what: str, task: Any, **options: Any) -> Any:
    """Return what a process of its own, which has compiled nothing else, says of a task."""
    done = children.run(CHILD, [what, json.dumps(task)], capture_output=True, text=True, **options)
    if done.returncode:
        raise MpmNodesError(f"the process that tells the {what} ended with {children.last_words(done.stderr, done.returncode)}")
    return json.loads(done.stdout.splitlines()[-1])


def _counted(compiled_as: str, cpus: tuple[str, ...], loops: dict[str, Any]) -> dict[str, dict[str, dict[str, Counts]]]:
    """Compile for one processor, in a process of its own with an empty cache, and count for those that are made from it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MPM_NODES_CACHE": folder, "NUMBA_CPU_NAME": compiled_as, "NUMBA_CPU_FEATURES": ""}
        found = _told("assembly", {"cpus": cpus, "loops": loops}, env=environment)
    return {cpu: {loop: per_particle(text) for loop, text in texts.items()} for cpu, texts in found.items()}


if __name__ == "__main__":
    sys.exit(main())
