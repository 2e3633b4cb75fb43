"""Older processors: the same sixteen lanes in narrower registers, with the numbers of this one to rounding."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fusion_scenes import DT, attributes, rounding, solver
from numba.core.codegen import get_host_cpu_features

HERE = Path(__file__).resolve().parent
LEVELS = {"native": None, "AVX2": "haswell", "SSE": "nehalem"}
FORBIDDEN = {"native": (), "AVX2": ("zmm",), "SSE": ("zmm", "ymm")}
LIBM = re.compile(
    r"(?:call\w*|jmp|movabsq|leaq)\s+\*?\$?((?:fma|exp|exp2|log|pow|sqrt|rint|round|floor|fabs|copysign|fmin|fmax)f?)\b"
)
"""Calls of the C library's mathematics, by name or through a register."""

NARROW = """
import sys
import numpy as np
from mpm_nodes.kernels.transfers import motion
from mpm_nodes.kernels.transfers.places import Placement
random = np.random.default_rng(0)
stride, ranges = 96, np.array([[0, 37, 0], [37, 60, 1]])
for dtype, unit, whole in ((np.float32, 2.0**28, np.int32), (np.float64, 2.0**56, np.int64)):
    velocity = random.normal(size=3 * stride + 64).astype(dtype)
    offset = (0.5 * unit * random.normal(size=velocity.size).clip(-1.0, 1.0)).astype(whole)
    speeds, moves = np.zeros(2), np.zeros((2, 3))
    motion.largest_speeds(velocity, stride, ranges, speeds)
    place = Placement(offset, stride, int(np.log2(unit)), 1.0 / unit, 1.0)
    motion.move_particles(place, velocity, 0.01, ranges, moves)
    print("numbers", *speeds, *moves.ravel(), *(offset[:60] / unit))
"""

RECORDS = """
import numba
import numpy as np
from mpm_nodes.kernels.lanes.memory import store
from mpm_nodes.kernels.lanes.records import load_records, quarter_sums, store_records

@numba.njit
def there_and_back(rows, records, again, sums):
    a = load_records(rows, 0)
    store_records(records, 16, a)
    b = load_records(records, 16)
    store_records(again, 0, b)
    store(sums, 0, quarter_sums(a[0], a[1], a[2], a[3]))

random = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    rows, records, again = random.normal(size=256).astype(dtype), np.zeros(272, dtype), np.zeros(256, dtype)
    sums = np.zeros(16, dtype)
    there_and_back(rows, records, again, sums)
    assert np.array_equal(again, rows) and np.array_equal(records[16:], rows) and not records[:16].any()
    lanes = rows.reshape(16, 16).T.astype(float)  # value k of sixteen records
    expected = [lanes[k].reshape(4, 4).sum(axis=0) for k in range(4)]
    assert np.allclose(sums, np.concatenate(expected), rtol=8 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)
"""

SOLVE = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from fusion_scenes import DT, attributes, solver
run = solver(("snow", "liquid"))
for _ in range(5):
    run.step(dt=DT)
np.savez(sys.argv[2], **attributes(run))
"""


def compiled(level: str, code: str, folder: Path, *arguments: object) -> str:
    """Run Python code that compiles its kernels again for a level of CPU features; return its output, all assembly included."""
    features = get_host_cpu_features()
    if LEVELS[level] is not None and ("+avx2" not in features or "+fma" not in features):
        pytest.skip("this processor does not run AVX2")
    narrowed = {"NUMBA_CPU_NAME": LEVELS[level], "NUMBA_CPU_FEATURES": ""} if LEVELS[level] else {}
    environment = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")}
    environment |= {**narrowed, "MPM_NODES_CACHE": str(folder / level), "NUMBA_DUMP_ASSEMBLY": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def check_assembly(level: str, text: str, lanes: str) -> None:
    """The assembly has arithmetic on vectors, none wider than the level's, and no lane is handed to the C library."""
    assert "xmm" in text and re.search(lanes, text)
    wide = {name: text.count(f"%{name}") for name in FORBIDDEN[level]}
    assert not any(wide.values()), wide
    assert sorted(set(LIBM.findall(text))) == []
    if level == "SSE":
        assert "vfmadd" not in text and not re.search(r"\tv(mul|add)p[sd]\t", text)


@pytest.mark.parametrize("level", LEVELS)
def test_small_kernels_fit_into_narrower_registers(level, tmp_path):
    """Speeds and moves in both precisions: packed instructions of the level only, and NumPy's numbers."""
    text = compiled(level, NARROW, tmp_path)
    check_assembly(level, text, r"\tv?mulp[sd]\t")
    random = np.random.default_rng(0)
    lines = [np.array(line.split()[1:], float) for line in text.splitlines() if line.startswith("numbers")]
    for found, dtype, unit in zip(lines, (np.float32, np.float64), (2.0**28, 2.0**56), strict=True):
        velocity = random.normal(size=3 * 96 + 64).astype(dtype)
        offset = (0.5 * unit * random.normal(size=velocity.size).clip(-1.0, 1.0)).astype(np.int32 if unit < 2**31 else np.int64)
        v, o = velocity[: 3 * 96].reshape(3, 96)[:, :60].astype(float), offset[: 3 * 96].reshape(3, 96)[:, :60] / unit
        moved = o + 0.01 * v
        parts = (slice(0, 37), slice(37, 60))
        fast = [(v[:, part] ** 2).sum(axis=0).max() for part in parts]
        moves = [
            value
            for part, speed in zip(parts, fast, strict=True)
            for value in (np.abs(moved[:, part]).max(), 0.01 * np.abs(v[:, part]).max(), speed)
        ]
        np.testing.assert_allclose(found, [*fast, *moves, *moved[0]], rtol=8 * np.finfo(dtype).eps, atol=2 / unit)


@pytest.mark.parametrize("level", LEVELS)
def test_records_are_the_same_in_narrower_registers(level, tmp_path):
    """Sixteen values of sixteen particles there and back bit by bit, in both precisions, and sums of quarters."""
    check_assembly(level, compiled(level, RECORDS, tmp_path), r"\tv?addp[sd]\t")


@pytest.mark.slow
@pytest.mark.parametrize("level", [level for level in LEVELS if level != "native"])
def test_a_solve_on_an_older_processor_gives_these_numbers(level, tmp_path):
    """Two laws, five substeps: no wide register in any kernel of the solve, no call per lane, and every attribute to rounding."""
    file = tmp_path / "end.npz"
    check_assembly(level, compiled(level, SOLVE, tmp_path, HERE, file), r"\tv?mulps\t")
    native = solver(("snow", "liquid"))
    for _ in range(5):
        native.step(dt=DT)
    expected, allowed, found = attributes(native), rounding(native, 5, DT), np.load(file)
    assert set(found.files) == set(expected)
    for name, values in expected.items():
        if name in allowed:
            assert np.abs(found[name].astype(float) - values).max() <= 16.0 * allowed[name], name
        else:
            assert np.array_equal(found[name], values), name
