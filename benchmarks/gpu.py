"""What a GPU does: first whether it agrees with the CPU, then particle-steps a second, Warp's beside them, and one whole sample.

    python benchmarks/gpu.py check          # scenes on both, held to what rounding allows; the exit code is 1 where one is not
    python benchmarks/gpu.py table          # 1, 8 and 32 million particles: laws, splines, places, with a ground
    python benchmarks/gpu.py warp           # NVIDIA Warp's kernels and ours on the same cube (pip install warp-lang)
    python benchmarks/gpu.py sample         # a sample cooked on both: seconds a frame, and how far apart

Each part begins nothing that may not end within `--seconds` (220), and keeps what it has in `--out` (JSON, and tables in
Markdown). Call it until no row is new. `--emulated` runs kernels by the CPU's compiler as the tests do, on a few particles: it
shows that this script works, not how fast anything is. The largest kernels are profiled with

    ncu -k particles -s 20 -c 4 python benchmarks/gpu.py table --only "8 M neo_hookean quadratic random free" --out profiled
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "peers"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/solver"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/kernels/cuda"))

import contact_scenes
import falling_cube
import fusion_scenes
import mpm_nodes_cube

import mpm_nodes
from mpm_nodes import SubstepSolver, execute, load_graph
from mpm_nodes.bench import scenes
from mpm_nodes.data import Collider, CollisionRule, MpmNodesError, Particles
from mpm_nodes.graph.document.upstream import WRITER, keep_upstream
from mpm_nodes.kernels.cuda import device as devices
from mpm_nodes.kernels.level_sets.level_set import PLANE, PosedLevelSets
from mpm_nodes.solver.sorting import SORT_INTERVAL

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
LAWS = ("neo_hookean", "fixed_corotated", "snow", "liquid")
KERNELS, ORDERS, GROUNDS = ("quadratic", "cubic"), ("lattice", "random"), ("free", "ground")
FAR = 1e3
"""The end of the span that is measured [s]; it is never reached."""
SIZES = (1, 8, 32)
"""Millions of particles."""
ROUNDS = 3
"""Of whole sort intervals; the median counts."""
CHECKED_STEPS = 8
SAMPLE, SAMPLE_FRAMES = "demo_without_vdb.json", 12
COPIED = 1 << 28
"""Bytes of the arrays that are copied to measure bandwidth."""


class Budget:
    """What a part may take, and what the last of its rows took."""

    def __init__(self, seconds: float) -> None:
        self.end, self.begin, self.longest = time.perf_counter() + seconds, time.perf_counter(), 0.0

    def allows(self) -> bool:
        """Whether another row may begin: one that takes as long as the longest so far would end in time."""
        now = time.perf_counter()
        self.longest, self.begin = max(self.longest, now - self.begin), now
        return now + self.longest < self.end


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table."""

    million: float
    law: str = LAWS[0]
    kernel: str = KERNELS[0]
    order: str = ORDERS[0]
    ground: str = GROUNDS[0]

    @property
    def label(self) -> str:
        """What it is kept as."""
        return f"{self.million:g} M {self.law} {self.kernel} {self.order} {self.ground}"


def rows(emulated: bool) -> list[Row]:
    """Return the lines of the table: all combinations at 8 million, what differs by one choice at the other sizes."""
    sizes = (0.002, 0.004) if emulated else SIZES
    middle, found = sizes[min(1, len(sizes) - 1)], []
    for size in sizes:
        for law in LAWS:
            for kernel in KERNELS:
                for order in ORDERS:
                    for ground in GROUNDS:
                        others = (law != LAWS[0]) + (kernel != KERNELS[0]) + (order != ORDERS[0]) + (ground != GROUNDS[0])
                        if others <= 1 or (size == middle and not emulated):
                            found.append(Row(size, law, kernel, order, ground))
    return sorted(found, key=lambda row: (row.law != LAWS[0], row.million))


# ---------------------------------------------------------------- the parts
def check(args: argparse.Namespace, kept: dict[str, Any], budget: Budget) -> bool:
    """Compare scenes on the CPU and on the GPU; return whether all agree to rounding."""
    cases = [((law,), "free", "explicit_apic") for law in LAWS]
    cases += [(fusion_scenes.MIXED, scene, "explicit_apic") for scene in fusion_scenes.SCENES]
    cases += [(fusion_scenes.MIXED, scene, "explicit_apic") for scene in contact_scenes.STRAIGHT]
    settings = [{"kernel": kernel, "transfer": transfer} for kernel in KERNELS for transfer in ("apic", "flip")]
    cases += [(("fixed_corotated",), "free", fusion_scenes.preset(**each)) for each in settings]
    for laws, scene, substeps in cases[:2] + cases[4:5] if args.quick else cases:
        chosen = substeps if isinstance(substeps, str) else " ".join(map(str, substeps["set"].values()))
        label = f"{' + '.join(laws)}, {scene}, {chosen}"
        _keep(kept, label, budget, lambda laws=laws, scene=scene, substeps=substeps: _agreement(laws, scene, substeps))
    return all(isinstance(units, float) and units <= fusion_scenes.WITHIN for units in kept.values())


def _keep(kept: dict[str, Any], label: str, budget: Budget, found: Callable[[], Any]) -> None:
    """Keep and print what a row finds, or why it does not run, where it is not kept already and there is time."""
    if label in kept or not budget.allows():
        return
    try:
        kept[label] = found()
    except MpmNodesError as error:
        kept[label] = f"refused: {error}"
    print(f"{' | '.join(_cells(kept[label])):28}  {label}", flush=True)


def _agreement(laws: tuple[str, ...], scene: str, substeps: Any) -> float:
    """Return the largest difference of any attribute in units of what rounding allows; infinity where nothing may differ."""
    known = {**contact_scenes.SCENES, **fusion_scenes.SCENES}
    around = fusion_scenes.surroundings(laws) if scene == "surrounded" else known[scene]
    here, there = (fusion_scenes.solver(laws, substeps, device=device, **around) for device in ("cpu", "cuda"))
    for number in range(CHECKED_STEPS):
        for run in (here, there):
            run.step(fusion_scenes.DT, keep=number == CHECKED_STEPS - 1)
    return max(fusion_scenes.drift(there, here, CHECKED_STEPS, fusion_scenes.DT).values())


def table(args: argparse.Namespace, kept: dict[str, Any], budget: Budget) -> bool:
    """Time rows of the table."""
    wanted = [row for row in rows(args.emulated) if args.only in row.label]
    for row in wanted[:4] if args.quick else wanted:
        _keep(kept, row.label, budget, lambda row=row: _timed(row, args.emulated))
    return True


def _timed(row: Row, emulated: bool) -> dict[str, Any]:
    """Return particle-steps a second over whole sort intervals, and what a substep copied."""
    run = SubstepSolver(
        _matter(row),
        {"preset": "explicit_apic", "set": {"kernel": row.kernel}},
        device="cuda",
        colliders=_ground() if row.ground == "ground" else (),
    )
    steps, rounds = (2, 1) if emulated else (SORT_INTERVAL, ROUNDS)
    for _ in range(min(steps, 8)):
        _step(run)
    rates, begin, moved = [], time.perf_counter(), list(run.residency.moved)
    sorts, layout = 0, run.particles.generation
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(steps):
            _step(run)
            sorts, layout = sorts + (run.particles.generation != layout), run.particles.generation
        rates.append(run.particles.count * steps / (time.perf_counter() - start))
        if time.perf_counter() - begin > 40.0:
            break
    done = len(rates) * steps
    down, up = (after - before for after, before in zip(run.residency.moved[::-1], moved[::-1], strict=True))
    return {
        "particles": run.particles.count,
        "rate": statistics.median(rates),
        "rates": rates,
        "steps": done,
        "sorts": sorts,
        "bytes_up": up / done,
        "bytes_down": down / done,
    }


def _step(run: SubstepSolver) -> None:
    """Run a substep as the frames of a cook do: with those to come, where they need no CPU."""
    run.step(keep=False, time_left=FAR - run.time, ahead=FAR)


def _matter(row: Row) -> Particles:
    """Return a cube of the benchmark, or as many particles at random places of it."""
    count = round(row.million * 1e6)
    start = scenes.cube([row.law], count)
    if row.order == "lattice":
        return start
    side = np.ptp(start["position"], axis=0)
    position = np.random.default_rng(2).uniform(0.0, 1.0, (count, 3)) * side
    return Particles({**start.attributes, "position": position}, start.materials, start.spacing)


def _ground() -> tuple[Collider, ...]:
    """Return a plane on which the cube stands."""
    plane = PosedLevelSets(PLANE, pose_times=np.zeros(1), translations=np.zeros((1, 3)))
    return (Collider("ground", CollisionRule.SEPARATE, 0.5, plane),)


def warp(args: argparse.Namespace, kept: dict[str, Any], budget: Budget) -> bool:
    """Time the falling cube in Warp's two forms and in ours, in lattice order and shuffled."""
    cases: list[tuple[str, Callable[..., falling_cube.Running], dict[str, Any]]] = [
        ("mpm_nodes", mpm_nodes_cube.start, {"device": "cuda"})
    ]
    if importlib.util.find_spec("warp") is None:
        print("Warp is not installed: pip install warp-lang; ours alone", flush=True)
    else:
        import warp_cube

        cases += [("warp", warp_cube.start, {"device": "cpu" if args.emulated else "cuda:0"})]
    sizes, steps = ((4000,), 2) if args.emulated else ([m * 1_000_000 for m in SIZES[:2]], 20)
    for name, start, where in cases:
        for form in ("same", "mls") if name == "warp" else ("as wired",):
            for cube in (kind.of(size) for size in sizes for kind in (falling_cube.Cube, Shuffled)):
                label = f"{cube.count / 1e6:g} M {name} {form} {'shuffled' if isinstance(cube, Shuffled) else 'lattice'}"

                def rate(cube=cube, start=start, form=form, where=where) -> dict[str, float]:
                    running = start(cube, form, 0, args.out / "warp-kernels", **where)
                    running = dataclasses.replace(running, interval=1) if args.emulated else running
                    return {"rate": cube.count / falling_cube.timed(running, 3, steps)["step_seconds"]}

                _keep(kept, label, budget, rate)
    return True


class Shuffled(falling_cube.Cube):
    """The cube with its particles in no order."""

    def particles(self) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and velocities."""
        order = np.random.default_rng(3).permutation(self.count)
        position, velocity = super().particles()
        return position[order], velocity[order]


def sample(args: argparse.Namespace, kept: dict[str, Any], budget: Budget) -> bool:
    """Cook the solve of a sample on both devices; tell seconds a frame, and how far its particles are apart in the end."""
    frames, ends = 2 if args.emulated else SAMPLE_FRAMES, {}
    for device in ("cpu", "cuda"):
        graph = load_graph(SAMPLES / args.sample)
        solve = next(name for name, entry in graph.nodes.items() if entry.type == "solve")
        keep_upstream(graph, solve)
        graph.nodes = {name: entry for name, entry in graph.nodes.items() if entry.type != WRITER}  # it is what is compared
        graph.set(f"{solve}.device", device)
        graph.set("settings.resolution", 0.25 if args.emulated else args.resolution)
        first, begin = graph.settings.start, time.perf_counter()
        found = execute(graph, (first, first + frames - 1)).outputs[solve]["particles"]
        kept[f"{args.sample}, seconds a frame, {device}"] = (time.perf_counter() - begin) / frames
        ends[device] = {name: found[name][np.argsort(found["id"])] for name in ("position", "velocity")}
        kept["particles"] = len(found)
    for name, here in ends["cpu"].items():
        there = ends["cuda"][name]
        kept[f"{args.sample}, {name}, largest difference"] = (
            float(np.abs(here - there).max()) if here.shape == there.shape else None
        )
    print(json.dumps(kept, indent=1), flush=True)
    return None not in kept.values()


PARTS: dict[str, Callable[[argparse.Namespace, dict[str, Any], Budget], bool]] = {
    "check": check,
    "table": table,
    "warp": warp,
    "sample": sample,
}


# ---------------------------------------------------------------- what it ran on, and what is kept
def bandwidth(device: Any) -> dict[str, float]:
    """Return bytes a second of copies: to the card, from it, and on it (what is read and written counts)."""
    array, found = np.zeros(COPIED, np.uint8), {}
    one, other, last = device.allocate(COPIED), device.allocate(COPIED), device.allocate(16)
    device.upload(one, array)
    device.download(one, array)
    begin = time.perf_counter()
    device.upload(one, array)
    device.download(last, array[:16])  # waits
    found["up"] = COPIED / (time.perf_counter() - begin)
    begin = time.perf_counter()
    device.download(one, array)
    found["down"] = COPIED / (time.perf_counter() - begin)
    if isinstance(device, devices.CudaDevice):
        from cuda.bindings import driver

        begin = time.perf_counter()
        for _ in range(20):
            driver.cuMemcpyDtoDAsync(int(other.handle), int(one.handle), COPIED, device._stream.handle)
        device.download(last, array[:16])
        found["on the card"] = 20 * 2 * COPIED / (time.perf_counter() - begin)
    return found


def markdown(held: dict[str, Any]) -> Iterator[str]:
    """Yield lines of the tables."""
    yield f"# {held['device']}, mpm_nodes {held['version']}"
    yield ""
    yield "copies: " + ", ".join(f"{name} {rate / 1e9:.1f} GB/s" for name, rate in held["bandwidth"].items())
    for part, head in (
        ("check", "| scene | difference, of what rounding allows |"),
        ("table", "| particles, law, spline, places | G particle-steps/s | sorts of substeps | bytes a particle and substep |"),
        ("warp", "| the falling cube | G particle-steps/s |"),
        ("sample", "| sample | |"),
    ):
        if held.get(part):
            yield from ("", f"## {part}", "", head, "|---" * (head.count("|") - 1) + "|")
            for label, value in held[part].items():
                yield f"| {label} | {' | '.join(_cells(value))} |"


def _cells(value: Any) -> list[str]:
    if not isinstance(value, dict):
        return [f"{value:.3g}" if isinstance(value, float) else str(value)]
    cells = [f"{value['rate'] / 1e9:.3g}"]
    if "steps" in value:
        copied = (value["bytes_up"] + value["bytes_down"]) / value["particles"]
        cells += [f"{value['sorts']} of {value['steps']}", f"{copied:.1f}"]
    return cells


def main(arguments: list[str] | None = None) -> int:
    """Run one part; 1 when it does not agree, 2 when it cannot run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--out", type=Path, default=Path("gpu"), help="folder for figures (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=220.0, help="when it ends (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows of the table whose name holds this")
    parser.add_argument("--sample", default=SAMPLE, help="graph in samples/ (default: %(default)s)")
    parser.add_argument("--resolution", type=float, default=1.0, help="of the sample (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="few cases of a part")
    parser.add_argument("--emulated", action="store_true", help="run kernels by the CPU's compiler: no speed is measured")
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        if args.emulated:
            from emulated import Emulated

            stands_in = Emulated(args.out / "emulated")
            devices.open_device = lambda: stands_in  # type: ignore[assignment, return-value]
        device = devices.open_device()
        path = args.out / "gpu.json"
        held = json.loads(path.read_text()) if path.is_file() else {}
        if held.get("device") != device.name or held.get("version") != mpm_nodes.__version__:
            held = {"device": device.name, "version": mpm_nodes.__version__, "bandwidth": bandwidth(device)}
        kept = held.setdefault(args.part, {})
        before, good = len(kept), False
        try:
            good = PARTS[args.part](args, kept, Budget(args.seconds))
        finally:
            path.write_text(json.dumps(held, indent=1) + "\n")
            (args.out / "gpu.md").write_text("\n".join(markdown(held)) + "\n")
    except MpmNodesError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{len(kept)} rows, {len(kept) - before} of them new; {path} and gpu.md beside it. Call it again until none is new")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
