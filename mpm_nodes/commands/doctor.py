"""Say what works on this machine, and how to get what is missing; 1 when something needed does not work."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import mpm_nodes
from mpm_nodes import children
from mpm_nodes.data import MpmNodesError
from mpm_nodes.terminal import plain

SUPPORTED = ((3, 11), (3, 13))
"""First and last version of Python that the package installs with."""
MUJOCO = 4
"""First version of MuJoCo that moves bodies as ours are."""
VECTOR_BITS = (("avx512f", 512), ("avx2", 256), ("avx", 256), ("sve2", 128), ("neon", 128), ("sse2", 128))
BLENDER_SECONDS = 120.0
DRIVER = 580
"""First driver that runs what NVRTC 13 compiles."""


@dataclass(frozen=True)
class Diagnosis:
    """What one check found.

    Attributes:
        check: Its name.
        state: "ok"; "missing", which optional things may be; or "broken".
        text: What is there, or what happened.
        cure: What to do, "" when nothing is.
        needed: Whether the exit status depends on it.
    """

    check: str
    state: str
    text: str
    cure: str = ""
    needed: bool = False


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.add_argument(
        "--need",
        nargs="+",
        default=[],
        choices=tuple(name for name in CHECKS if name not in NEEDED),
        metavar="NAME",
        help="fail without these, too: usd, openvdb, gpu, blender, presets (compiled ahead)",
    )


def run(args: argparse.Namespace) -> int:
    """Check, print, and return 0 when all that is needed works."""
    findings = [examined(name, needed=name in NEEDED or name in args.need) for name in CHECKS]
    failed = [finding.check for finding in findings if finding.needed and finding.state != "ok"]
    if args.json:
        told = {"version": mpm_nodes.__version__, "ok": not failed, "checks": [asdict(finding) for finding in findings]}
        print(json.dumps(told, indent=2), file=args.stream)
        return 1 if failed else 0
    print(f"mpm-nodes {mpm_nodes.__version__}")
    for finding in findings:
        print(plain(f"{finding.state:8}{finding.check:13}{finding.text}"))
        if finding.cure:
            print(plain(f"{'':21}-> {finding.cure}"))
    print(f"needed and not working: {', '.join(failed)}" if failed else "all that is needed works")
    return 1 if failed else 0


def examined(name: str, needed: bool = False) -> Diagnosis:
    """Run one check. Whatever it raises is its finding: a machine where something is odd is the one to be examined."""
    state, text, cure = "broken", "", "report it with this output"
    try:
        state, text, cure = CHECKS[name]()
    except MpmNodesError as error:
        state, text, cure = "missing", str(error), ""
    except ModuleNotFoundError as error:
        state, text, cure = "missing", f"{error.name} is not installed", "pip install mpm-nodes"
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {error}"
    return Diagnosis(name, state, text, cure, needed)


# ---------------------------------------------------------------- checks: each returns state, text and cure
Told = tuple[str, str, str]


def _python() -> Told:
    version = sys.version_info[:2]
    text = f"Python {platform.python_version()} ({sys.executable}), {platform.system()} {platform.machine()}"
    if SUPPORTED[0] <= version <= SUPPORTED[1]:
        return "ok", text, ""
    first, last = (".".join(map(str, each)) for each in SUPPORTED)
    return "broken", text, f"make the environment with Python {first} to {last}: python{last} -m venv .venv"


def _libraries() -> Told:
    names = ("numpy", "numba", "llvmlite", "PIL")
    held = [(name, importlib.util.find_spec(name) is not None) for name in names]
    absent = [name for name, there in held if not there]
    if absent:
        return "missing", f"{', '.join(absent)} cannot be imported", "pip install mpm-nodes"
    return "ok", ", ".join(f"{name} {importlib.import_module(name).__version__}" for name in names), ""


def _processor() -> Told:
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    name, bits = next(((name, bits) for name, bits in VECTOR_BITS if features.get(name)), ("none known", 128))
    text = f"{binding.get_host_cpu_name()}, vectors of {bits} bits ({name}): {bits // 32} numbers at once in float32"
    return "ok", text, ""


def _threads() -> Told:
    from mpm_nodes.kernels.compile import jit  # chooses the threading layer before the first loop runs

    import numba  # isort: skip
    import numpy as np

    @numba.njit(parallel=True)
    def total(values):
        result = 0.0
        for k in numba.prange(len(values)):
            result += values[k]
        return result

    if total(np.arange(1000.0)) != 499500.0:
        return "broken", "a parallel loop returned a wrong sum", "reinstall numba: pip install --force-reinstall numba llvmlite"
    free = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = f"{jit.most_threads()} threads ({numba.threading_layer()}) on {free} of {os.cpu_count()} cores; a kernel ran"
    if jit.most_threads() < free:
        return "ok", text, "NUMBA_NUM_THREADS or OMP_NUM_THREADS keeps cores from being used; unset it"
    return "ok", text, ""


def _cache() -> Told:
    from mpm_nodes.graph.plan.preflight import in_words
    from mpm_nodes.kernels.compile import jit

    folder = jit.CACHE_FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return "broken", f"{folder}: {error.strerror or error}", "set MPM_NODES_CACHE to a folder that can be written"
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return "ok", f"{folder}, {in_words(size) if size else 'empty'}", ""


def _presets() -> Told:
    from mpm_nodes.solver import ahead

    names = ahead.preset_names()
    left = [name for name in names if not ahead.is_ahead(name)]
    if not left:
        return "ok", "all are compiled ahead", ""
    done = [name for name in names if name not in left]
    text = f"{'none' if not done else f'{len(done)} of {len(names)}'} compiled ahead; left: {', '.join(left)}"
    takes = f"mpm-nodes kernels warm {left[0]}, or --all{ahead.in_words(left)}"
    return "missing", text, f"{takes}; else the first cook compiles what it needs"


def _usd() -> Told:
    if importlib.util.find_spec("pxr") is None:
        return "missing", "no USD caches, meshes or demo; OBJ and PLY work", 'pip install "mpm-nodes[usd]"'
    from pxr import Usd

    return "ok", f"USD {'.'.join(map(str, Usd.GetVersion()))} ({Path(Usd.__file__).parents[1]})", ""


def _openvdb() -> Told:
    from usd_io.openvdb_module import find_openvdb, openvdb_cure

    try:
        module = find_openvdb()
    except MpmNodesError as error:
        reasons = str(error).partition("(")[2].rpartition(");")[0]
        return "missing", f"no VDB files and no surfaces: {reasons}", openvdb_cure()
    version = ".".join(map(str, getattr(module, "LIBRARY_VERSION", ("of unknown version",))))
    return "ok", f"OpenVDB {version} ({module.__file__})", ""


def _bodies() -> Told:
    if importlib.util.find_spec("mujoco") is None:
        return "missing", "no rigid bodies: MuJoCo, which moves them, is not installed", 'pip install "mpm-nodes[bodies]"'
    mujoco = importlib.import_module("mujoco")
    state = "ok" if int(mujoco.__version__.split(".")[0]) >= MUJOCO else "broken"
    cure = "" if state == "ok" else f'it is older than {MUJOCO}: pip install --upgrade "mpm-nodes[bodies]"'
    return state, f"MuJoCo {mujoco.__version__} ({Path(mujoco.__file__).parent})", cure


def _blender() -> Told:
    from mpm_nodes.preview.cycles import blender_problem
    from usd_io.openvdb_module import BLENDER_WHEELS, wheels_in_words

    if importlib.util.find_spec("bpy") is None:
        cure = (
            'pip install "mpm-nodes[vdb]" (0.8 GB)'
            if sys.version_info[:2] in BLENDER_WHEELS
            else f"there is no wheel of Blender for this Python: use {wheels_in_words()}"
        )
        return "missing", "no wheel of Blender (bpy): `render` draws points instead of calling Cycles", cure
    done = children.run(
        "mpm_nodes.commands.doctor:say_blender", capture_output=True, text=True, errors="replace", timeout=BLENDER_SECONDS
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("Blender ")]
    if found:
        return "ok", found[-1], ""
    problem = blender_problem([*done.stdout.splitlines(), *done.stderr.splitlines()], done.returncode)
    text, _, cure = problem.partition("; ")
    return "broken", text, cure


def _gpu() -> Told:
    if importlib.util.find_spec("cuda") is None:
        return "missing", "solves run on the CPU: what talks to NVIDIA GPUs is not installed", 'pip install "mpm-nodes[cuda]"'
    from mpm_nodes.kernels.cuda.device import open_device

    try:
        device = open_device()
    except MpmNodesError as error:
        text, _, cure = str(error).removeprefix("device cuda: ").partition("; ")
        cure = cure if "pip install" in cure else f"where there is one, install NVIDIA's driver {DRIVER} or newer"
        return "missing", f"solves run on the CPU: {text}", cure
    from cuda.bindings import driver
    from cuda.core import system

    _, free, total = driver.cuMemGetInfo()
    version = "of unknown version"
    with contextlib.suppress(Exception):  # it is asked of another library, which may be missing
        version = ".".join(map(str, system.get_kernel_mode_driver_version()))
    return "ok", f"{device.name} ({device.arch}), driver {version}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free", ""


def say_blender() -> None:
    """Print Blender's version and leave at once: its own exit can hang. For a child process."""
    bpy = importlib.import_module("bpy")
    print(f"Blender {bpy.app.version_string}", flush=True)
    os._exit(0)


CHECKS: dict[str, Callable[[], Told]] = {
    "python": _python,
    "libraries": _libraries,
    "processor": _processor,
    "threads": _threads,
    "kernel-cache": _cache,
    "presets": _presets,
    "usd": _usd,
    "openvdb": _openvdb,
    "bodies": _bodies,
    "gpu": _gpu,
    "blender": _blender,
}
NEEDED = ("python", "libraries", "threads", "kernel-cache")
