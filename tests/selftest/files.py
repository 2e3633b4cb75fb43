"""Damaged USD, VDB and checkpoint files: read in forks as cooks read them, or met by a cook that is continued."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from mpm_nodes.data import FrameContext, GraphSettings, InputError, MpmNodesError
from tests.selftest import shot
from tests.selftest.forks import HangingFork, in_fork
from tests.selftest.outcomes import SKIPPED, Job, Outcome
from tests.selftest.worker import at_case

__all__ = ["cases"]

LARGEST_FORK = 6_000_000_000
"""Address space of a fork that reads [bytes]."""
LONGEST = 30.0
"""Seconds of a read."""


def cases(job: Job) -> Iterator[Outcome]:
    """Damage files of each kind in turn."""
    shot.prepare()
    folder = Path(job.folder)
    kinds = {
        "USD": _usd_files(folder, Path(job.samples)),
        "VDB": _vdb_files(folder),
        "checkpoints and records": _cook_files(folder),
    }
    order = [(kind, files) for kind, files in kinds.items() if files]
    for kind, files in kinds.items():
        if not files:
            yield Outcome(f"damaged files: {kind}", SKIPPED, "the library is not installed")
    for number in job.numbers():
        at_case(job, number)
        kind, files = order[number % len(order)]
        chance = random.Random(f"{job.seed} {number}")
        source, read = chance.choice(files)
        yield _tried(job, number, kind, source, read, chance)


def _tried(job: Job, number: int, kind: str, source: Path, read: Callable[[Path, Path], str], chance: random.Random) -> Outcome:
    row, path = f"damaged files: {kind}", Path(job.folder, f"damaged{source.suffix}")
    path.write_bytes(_damaged(source.read_bytes(), chance))
    try:
        ending, fault = read(path, source), ""
    except InputError as error:
        ending, fault = "refused", _told(error)
    except (AssertionError, HangingFork) as error:
        ending, fault = "against", str(error)
    if fault:
        kept = Path(job.keep, f"files-{job.seed}-{number}{source.suffix}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, kept)
        fault = f"seed {job.seed}, case {number} ({source.name}): {fault}; the file is {kept}"
    return Outcome(row, ending, fault)


def _told(error: MpmNodesError) -> str:
    try:
        shot.bounded(str(error))
    except AssertionError as wrong:
        return str(wrong)
    return ""


def _damaged(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with one to three kinds of damage: cut, flipped, filled, doubled, swapped, numbers made absurd."""
    raw = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3))):
        size = max(1, len(raw))
        place, length = chance.randrange(size), chance.choice((1, 4, 8, 64, 4096))
        kind = chance.randrange(8)
        if kind == 0:
            del raw[place:]
        elif kind == 1:
            for _ in range(chance.choice((1, 4, 30))):
                if raw:
                    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        elif kind == 2:
            raw[place : place + length] = bytes([chance.choice((0, 0x7F, 0x80, 0xFF))]) * len(raw[place : place + length])
        elif kind == 3:
            raw[place:place] = raw[place : place + length]
        elif kind == 4:
            other = chance.randrange(size)
            raw[place : place + length], raw[other : other + length] = raw[other : other + length], raw[place : place + length]
        elif kind == 5:
            place = place // 8 * 8
            number = chance.choice((1 << 63, (1 << 63) - 1, 1 << 40, 1 << 32, len(raw), len(raw) - 1, 1))
            raw[place : place + 8] = number.to_bytes(8, "little")
        elif kind == 6:
            raw[place : place + length] = chance.randbytes(length)
        else:
            del raw[place : place + length]
    return bytes(raw)


# ---------------------------------------------------------------- USD
def _usd_files(folder: Path, samples: Path) -> list[tuple[Path, Callable[[Path, Path], str]]]:
    try:
        from pxr import Usd  # noqa: F401 (before any fork)
    except ImportError:
        return []
    cooked = _cooked(folder / "usd")
    meshes = [path for path in sorted(samples.glob("*.usd*")) if path.stat().st_size < 400_000]
    points = sorted((cooked / "cache").glob("*.usdc"))
    return [(path, _read_meshes) for path in meshes] + [(path, _read_points) for path in points]


def _read_meshes(path: Path, source: Path) -> str:
    return _in_usd(partial(_meshes_of, path))


def _read_points(path: Path, source: Path) -> str:
    return _in_usd(partial(_points_of, path))


def _meshes_of(path: Path) -> str:
    from usd_io.collider_meshes import StageMeshes

    found = StageMeshes(path)
    topology = found.topology(1.0)
    points = found.points(1.0)
    assert np.isfinite(points).all(), "points that are not numbers are accepted"
    assert not len(topology.indices) or 0 <= topology.indices.min() <= topology.indices.max() < len(points), (
        "indices beyond the points"
    )
    found.rigid_motion(1.0, [1.0, 2.0])
    return "read"


def _points_of(path: Path) -> str:
    from mpm_nodes.nodes.caches import read_points

    context = FrameContext(frame=1, settings=GraphSettings(start=1, end=3))
    found = read_points.declaration.function(context, None, path=path, spacing=0.01)
    for name in ("position", "velocity", "mass", "volume"):
        assert name not in found or np.isfinite(found[name]).all(), f"a {name} that is not a number is accepted"
    return "read"


def _in_usd(read: Callable[[], str]) -> str:
    """Read in a fork, as a cook does in its own process; what a cook's supervisor tells of a crash is an ending of its own."""
    ending = in_fork(partial(_limited, read), LONGEST)
    if ending.signal:
        return "library crashed, told in words"
    if isinstance(ending.error, MemoryError):
        return "refused"
    if ending.error is not None:
        if isinstance(ending.error, (InputError, AssertionError)):
            raise ending.error
        raise AssertionError(f"{type(ending.error).__name__}: {ending.error}")
    return str(ending.answer)


def _limited(read: Callable[[], str]) -> str:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (LARGEST_FORK, LARGEST_FORK))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)  # the library's own complaints
    return read()


# ---------------------------------------------------------------- VDB
def _vdb_files(folder: Path) -> list[tuple[Path, Callable[[Path, Path], str]]]:
    if not shot.has_volumes():
        return []
    from usd_io.openvdb_module import find_openvdb

    vdb = find_openvdb()
    ours = sorted((_cooked(folder / "vdb") / "cache").glob("*.vdb"))[0]
    unstamped = folder / "unstamped.vdb"  # with a UUID as other programs write it, so that damage reaches the library
    data = bytearray(ours.read_bytes())
    data[21:57] = b"12345678-1234-1234-1234-123456789abc"
    unstamped.write_bytes(data)
    found = [(ours, _read_volume), (unstamped, _read_volume)]
    foreign = folder / "foreign.vdb"
    ball = vdb.createLevelSetSphere(0.3, (0.0, 0.0, 0.0), 0.02, 3.0)
    ball.name = "ball"
    vdb.write(str(foreign), ball)
    return [*found, (foreign, _read_volume), (foreign, _read_volume)]


def _read_volume(path: Path, source: Path) -> str:
    """Read as `read_volumes` does; its child is a fork of this process, which has the library already."""
    from usd_io import vdb_reader
    from usd_io.vdb_file import grid_table, verify_digest
    from usd_io.vdb_grids import LARGEST_READ

    grid_table(path)
    verify_digest(path)
    answer = path.with_suffix(".answer")
    request = json.dumps({"path": str(path), "names": None, "largest": LARGEST_READ})

    def child() -> None:
        os.dup2(os.open(answer, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        vdb_reader.child(request)

    try:
        ending = in_fork(partial(_limited_child, child), LONGEST)
    except HangingFork:
        return "ended by its time limit"
    done = subprocess.CompletedProcess([], -ending.signal, answer.read_bytes() if answer.exists() else b"", b"")
    volumes = vdb_reader._answer(path, done)
    for info in volumes.values():
        assert np.isfinite(info.level_set.values).all(), "values that are not numbers are accepted"
    assert source.name != "unstamped.vdb" or path.read_bytes()[:21] == source.read_bytes()[:21], "another header is accepted"
    return "read"


def _limited_child(child: Callable[[], None]) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (LARGEST_FORK, LARGEST_FORK))
    child()


# ---------------------------------------------------------------- cooks
def _cook_files(folder: Path) -> list[tuple[Path, Callable[[Path, Path], str]]]:
    cooked = _cooked(folder / "cooks")
    whole = shot.digests(cooked.parent)
    names = [name for name in whole if name.endswith((".state", ".json"))]
    found: list[tuple[Path, Callable[[Path, Path], str]]] = []
    for name in names:
        found.append((cooked.parent / name, partial(_continued, cooked.parent, name, whole)))
        if name.endswith(".state"):
            found.append((cooked.parent / name, partial(_continued, cooked.parent, name, whole, sealed=True)))
    return found


def _continued(root: Path, name: str, whole: dict[str, str], path: Path, source: Path, sealed: bool = False) -> str:
    """Continue a cook one of whose files is damaged, and cook a frame more; `sealed`: with a checksum that fits."""
    out = path.parent / "continued"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(root, out)
    data = path.read_bytes()
    (out / name).write_bytes(data[:-32] + hashlib.sha256(data[:-32]).digest() if sealed else data)
    ending = in_fork(partial(shot.cook, out, 3), LONGEST)
    if ending.signal or ending.error is not None:
        raise AssertionError(f"a cook that goes on from it ends with {ending.error or f'signal {ending.signal}'}")
    if ending.answer:
        assert ending.answer in (2, 5), f"exit code {ending.answer}"
        return "refused"
    found = shot.digests(out)
    wrong = sorted(key for key in {*found, *whole} if found.get(key) != whole.get(key))
    # damage that hides in a file which nothing needs any more is found by `mpm-nodes check`
    if wrong == [name] and (name.endswith(".state") or _passed_over(out / name)):
        return "left alone"
    assert not wrong, f"the cook went on, and {', '.join(wrong[:3])} differ"
    return "repaired, byte-equal"


def _passed_over(path: Path) -> bool:
    """Return whether a manifest differs only where a cook does not look, as in the overrides."""
    try:
        return path.name == "cook.json" and isinstance(json.loads(path.read_bytes()), dict)
    except ValueError:
        return False


def _cooked(out: Path) -> Path:
    """Cook three frames in a fork; return the revision folder."""
    ending = in_fork(partial(shot.cook, out, 3))
    if ending.answer != 0:
        raise RuntimeError(f"the sound cook ended with {ending}")
    return out / "r001"
