"""Every target that the engine is to reach on two cores, next to what this machine measures now: target, measured, met or missed.

    python benchmarks/to_reach.py                      # all parts, one after the other: about an hour
    python benchmarks/to_reach.py --only peers counts  # some of them

rates   million particle-steps a second, sorts included, for this processor and for AVX2 (kernels made for znver3)
peers   the same cube in Taichi and Warp in turns. Neither can be told to leave AVX-512 alone: with kernels for AVX2 only
        ours are held back, so that a ratio met there is met against AVX2 peers too
counts  instructions a particle on six processors against their ceilings
cores   predicted speeds on 8, 16 and 64 cores
cold    process start to third substep, cache empty and then full, on two cores and on one
caches  what writing costs a cook; surfaces of a million particles

Nothing else may run. The exit code is 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from environments import PEERS, busy_warning

HERE = Path(__file__).resolve().parent
AVX2 = {"NUMBA_CPU_NAME": "znver3", "NUMBA_CPU_FEATURES": ""}
RATE = "million particle-steps/s"
LAWS = ("neo_hookean", "fixed_corotated", "snow", "smore_interior", "smore_exterior")
TENSION = ("surface_tension", "surface_tension_solute", "surface_tension_heat")
EXPLICIT = ("explicit_apic", "explicit_heat", "melting", "separate_bodies", *TENSION)
PRESETS = (
    *EXPLICIT,
    "implicit_apic",
    "implicit_surface_tension",
    "incompressible",
    "continuum_foam",
    "auto",
    "auto_surface_tension",
    "auto_incompressible",
    "auto_melting",
)


@dataclass(frozen=True)
class Target:
    """One figure: at least `bound`, or at most; None where it is only listed.

    Attributes:
        text: What is measured.
        measured: The figure; None where it could not be had.
        bound: Its bound.
        unit: Unit of both.
        at_most: Whether smaller is better.
    """

    text: str
    measured: float | None
    bound: float | None
    unit: str
    at_most: bool = False

    @property
    def verdict(self) -> str:
        """What the table says of it."""
        if self.bound is None:
            return "listed"
        if self.measured is None:
            return "NOT MEASURED"
        return "met" if (self.measured <= self.bound if self.at_most else self.measured >= self.bound) else "MISSED"


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=[*PARTS], default=[*PARTS], help="parts to run (default: all)")
    parser.add_argument("--particles", type=int, default=1_000_000, help="of all scenes (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table here")
    args = parser.parse_args(arguments)
    if busy_warning():
        print(f"warning: {busy_warning()}", flush=True)
    targets: list[Target] = []
    for name in args.only:
        for target in PARTS[name](args.particles):
            targets.append(target)
            print(line(target), flush=True)
    print(f"\n{'':70} {'target':>10} {'measured':>10}")
    for target in targets:
        print(line(target))
    if args.json:
        args.json.write_text(json.dumps([{**asdict(target), "verdict": target.verdict} for target in targets], indent=1) + "\n")
    return 1 if any(target.verdict in ("MISSED", "NOT MEASURED") for target in targets) else 0


def line(target: Target) -> str:
    """Return a line of the table."""
    bound = "" if target.bound is None else f"{'<=' if target.at_most else '>='} {target.bound:g}"
    measured = "-" if target.measured is None else f"{target.measured:.3g}"
    return f"{target.text:70} {bound:>10} {measured:>10} {target.unit:26} {target.verdict}"


# ---------------------------------------------------------------- rates
def rates(particles: int) -> Iterator[Target]:
    """Rates of the cube and of foam, for this processor and for AVX2."""
    wide = _has_avx512()
    kinds = [("AVX-512", {}, 65.0, 35.0)] if wide else []
    for kind, environment, quadratic, flip in [*kinds, ("AVX2", AVX2, 20.0, 14.0)]:
        found = {r["law"]: _rate(r) for r in _bench(environment, "--law", *LAWS, "--particles", str(particles))}
        cubic = _bench(environment, "--kernel", "cubic", "--transfer", "flip", "--particles", str(particles))
        yield Target(f"{kind}: neo-Hookean, quadratic", found["neo_hookean"], quadratic, RATE)
        if kind == "AVX2":
            yield Target(f"{kind}: the same, stretch", found["neo_hookean"], 24.4, RATE)
        yield Target(f"{kind}: neo-Hookean, cubic FLIP", _rate(cubic[0]), flip, RATE)
        for law in ("fixed_corotated", "snow"):
            yield Target(f"{kind}: {law} beside neo-Hookean", found[law] / found["neo_hookean"], 0.8, "of its rate")
        for law in ("smore_interior", "smore_exterior"):
            yield Target(f"{kind}: {law}, quadratic", found[law], None, RATE)
        (foam,) = _bench(environment, "--scene", "foam", "--particles", str(particles))
        yield Target(f"{kind}: foam with tearing, cubic FLIP", _rate(foam), None, RATE)
        if kind != "AVX2" or not wide:
            share = 100.0 * foam["stage_seconds"].get("avoid_a_void", 0.0) * foam["substeps"] / foam["total_seconds"]
            yield Target("foam: resampling, every 50 substeps", share, 10.0, "% of a substep", at_most=True)
            yield Target("foam: memory of a particle", foam["bytes_per_particle"], 320.0, "bytes", at_most=True)


def _rate(record: dict[str, Any]) -> float:
    return 1e-6 * record["particle_steps_per_second"]


def _bench(environment: dict[str, str], *arguments: str) -> list[dict[str, Any]]:
    return _figures(environment, [sys.executable, "-m", "mpm_nodes.cli", "bench", *arguments])


def _figures(environment: dict[str, str], command: list[str]) -> Any:
    """Run a command that writes figures as JSON, and return them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        done = subprocess.run([*command, "--json", str(file)], env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
        if not file.exists():
            raise SystemExit(f"{' '.join(command)}: ended with exit code {done.returncode} and wrote no figures; run it by hand")
        return json.loads(file.read_text())


def _has_avx512() -> bool:
    from llvmlite import binding

    return binding.get_host_cpu_features().get("avx512f", False)


# ---------------------------------------------------------------- peers, counts, cores
def peers(particles: int) -> Iterator[Target]:
    """Ratios to the fastest form of any peer, which both runs share."""
    kinds = [("AVX-512", {}, 7.0)] if _has_avx512() else []
    for kind, environment, least in [*kinds, ("AVX2", AVX2, 5.0)]:
        command = [sys.executable, str(HERE / "against_peers.py"), "--particles", str(particles)]
        records = _figures(environment, command)
        ratios = [record["ratio"] for record in records if record["ratio"] is not None]
        yield Target(f"{kind}: beside the best peer", min(ratios, default=None), least, "times")
        if kind == "AVX2":
            yield Target(f"{kind}: the same, stretch", min(ratios, default=None), 6.0, "times")


def counts(particles: int) -> Iterator[Target]:
    """Instructions a particle, both loops."""
    import instructions

    from mpm_nodes.bench.rows import Row

    found = instructions.counts(Row(particles=instructions.PARTICLES, threads=1))
    for cpu, loops in found.items():
        for name in ("instructions", "stack", "branches"):
            whole = sum(getattr(instructions.total(parts), name) for parts in loops.values())
            most = sum(getattr(ceiling, name) for ceiling in instructions.CEILINGS[cpu].values())
            yield Target(f"{cpu}: {name}, scatter and gather", whole, most, "a particle", at_most=True)


def cores(particles: int) -> Iterator[Target]:
    """Predicted shares of the ideal speed."""
    for record in _figures({}, [sys.executable, str(HERE / "cores.py"), "--particles", str(particles)]):
        yield Target(f"{record['scene']}: serial part", 100.0 * record["serial_share"], None, "% of a substep")
        yield Target(f"{record['scene']}: memory moved", record["bytes_moved"], None, "bytes a particle")
        for number, predicted in record["cores"].items():
            yield Target(f"{record['scene']}: predicted on {number} cores", 100.0 * predicted["share"], 60.0, "% of the ideal")


# ---------------------------------------------------------------- cold start
def cold(particles: int) -> Iterator[Target]:
    """Process start to third substep, by preset."""
    for preset in PRESETS:
        most = 10.0 if preset in EXPLICIT else 15.0
        for threads in (2, 1):
            folder = tempfile.mkdtemp()
            try:
                yield Target(
                    f"cold start, {preset}, free cores: {threads}", started(preset, folder, threads), most, "s", at_most=True
                )
                if threads == 2 and preset == "explicit_apic":
                    yield Target(f"warm start, {preset}", started(preset, folder, threads), 0.7, "s", at_most=True)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


def started(preset: str, cache: str, threads: int) -> float:
    """Return the seconds from the start of a process to its third substep."""
    free = sorted(os.sched_getaffinity(0))[:threads]
    begin = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, str(PEERS / "cold_start.py"), preset],
        env={**os.environ, "MPM_NODES_CACHE": cache},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, free),
    )
    said = child.stdout.readline() if child.stdout is not None else ""
    seconds = time.perf_counter() - begin
    if child.wait() or not said.startswith("third"):
        raise SystemExit(
            f"cold start of {preset}: the process ended with {child.returncode}; run benchmarks/peers/cold_start.py {preset}"
        )
    return seconds


# ---------------------------------------------------------------- caches and surfaces
def caches(particles: int) -> Iterator[Target]:
    """What writing costs a cook, and surfaces."""
    command = [sys.executable, str(HERE / "caches.py"), "--particles", str(particles), "--only", "cook", "surface"]
    for record in _figures({}, command):
        if record["what"] == "all caches against nothing written":
            yield Target("a cook with all caches beside one that writes nothing", record["figure"], 8.0, "% longer", at_most=True)
        elif record["what"].startswith("surface"):
            yield Target(f"{record['what']}, {particles:,} particles", record["figure"], 2.0, "s", at_most=True)


PARTS: dict[str, Callable[[int], Iterator[Target]]] = {
    "rates": rates,
    "peers": peers,
    "counts": counts,
    "cores": cores,
    "cold": cold,
    "caches": caches,
}

if __name__ == "__main__":
    sys.exit(main())
