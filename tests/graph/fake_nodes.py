"""Small nodes that count their calls: enough of a graph to test everything around the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated as A
from typing import Any, NamedTuple

import numpy as np

from mpm_nodes.data import FrameContext, GraphSettings, Many, Metres, MpmNodesError, Previous, Range
from mpm_nodes.graph.declare.decorators import PreflightContext, node
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.document.document import Graph

calls: Counter[str] = Counter()
needs: dict[str, Callable[[PreflightContext], dict[str, Any]]] = {}
"""What the preflights of `fake_source` and `fake_solve` say, for tests to set; nothing as it is."""


def needs_of(name: str) -> Callable[[PreflightContext], dict[str, Any]]:
    return lambda told: needs.get(name, lambda told: {})(told)


@dataclass(frozen=True)
class Cloud:
    """Stands for particles: published, frozen."""

    points: np.ndarray

    def to_arrays(self):
        return {}, {"points": self.points}

    @classmethod
    def from_arrays(cls, facts, arrays):
        return cls(**arrays)


class Solver:
    """Stands for a solver's state: changed in place, handed on."""

    def __init__(self, points: np.ndarray, seed: int) -> None:
        self.points, self.seed = points, seed

    def to_arrays(self):
        return {"seed": self.seed}, {"points": self.points}

    @classmethod
    def from_arrays(cls, facts, arrays):
        return cls(arrays["points"], facts["seed"])


class Solved(NamedTuple):
    """Outputs of `fake_solve`."""

    cloud: Cloud
    state: Solver


@node(category="Test", label="Source", preflight=needs_of("source"))
def fake_source(settings: GraphSettings, *, count: int = 5, size: A[float, Metres, Range(min=0.0)] = 1.0) -> Cloud:
    """Make points on a line.

    Args:
        count: Number of points.
        size: Length of the line.
    """
    calls["source"] += 1
    return Cloud(np.linspace(0.0, size * settings.cell_size, count))


@node(category="Test", label="Move")
def fake_move(cloud: Cloud, ctx: FrameContext, *, by: float = 1.0) -> Cloud:
    """Move points by a distance that grows with the frame.

    Args:
        cloud: Points to move.
        by: Distance per frame.
    """
    calls["move"] += 1
    return Cloud(cloud.points + by * ctx.frame)


@node(category="Test", label="Join")
def fake_join(clouds: Many[Cloud], *, scale: float = 1.0, fail: str = "") -> Cloud:
    """Join clouds.

    Args:
        clouds: What to join.
        scale: Factor.
        fail: Raise this.
    """
    calls["join"] += 1
    if fail == "user":
        raise MpmNodesError("scale is silly; give another")
    if fail == "bug":
        raise ZeroDivisionError("division by zero")
    if fail == "memory":
        raise MemoryError
    if fail == "write":
        clouds[0].points[:] = 0.0
    if fail == "type":
        return 3  # type: ignore[return-value]
    return Cloud(np.concatenate([cloud.points for cloud in clouds]) * scale)


@node(category="Test", label="Solve", preflight=needs_of("solve"))
def fake_solve(
    cloud: Cloud,
    previous: Previous[Solver],
    ctx: FrameContext,
    *,
    push: float = 0.25,
    steps: int = 3,
    dies: int = -(10**6),
) -> Solved:
    """Walk points at random, in place, from frame to frame.

    Args:
        cloud: Where they begin.
        push: Length of a step.
        steps: Substeps of a frame.
        dies: Frame at which it diverges.
    """
    calls["solve"] += 1
    state = previous if previous is not None else Solver(cloud.points.copy(), 7)
    if previous is not None:
        for step in range(steps):
            ctx.check_cancel()
            state.seed = (state.seed * 1103515245 + 12345) % 2**31
            push_now = ctx.sample("push", ctx.frame - 1 + (step + 1) / steps)
            state.points += push_now * np.sin(state.seed + np.arange(len(state.points)))
            if ctx.frame == dies:
                state.points[:] = np.nan
                raise Diverged(f"frame {ctx.frame}: not a number; lower push")
            ctx.report("substep", dt=1e-3 * (step + 1), particles=len(state.points), limit="cfl", limit_material="jam")
    return Solved(Cloud(state.points.copy()), state)


class Diverged(MpmNodesError):
    """Stands for the solver's own error."""

    exit_code = 4


@node(category="Test", label="Write")
def fake_write(cloud: Cloud, ctx: FrameContext, *, name: str = "points") -> Path:
    """Write a file a frame, and one that ties them together.

    Args:
        cloud: What to write.
        name: Name of the files.
    """
    calls["write"] += 1
    if ctx.files is None:
        return Path()
    path = ctx.files.path(f"{name}/{name}.{ctx.files.number:04d}.bin")
    path.write_bytes(cloud.points.tobytes())
    ctx.files.path("stage.txt").write_text(" ".join(map(str, ctx.files.frames())))
    return Path(f"{name}.{ctx.files.number:04d}.bin")


@node(category="Test", label="Read")
def fake_read(*, file: Path = Path("in.txt")) -> Cloud:
    """Read points from a text file.

    Args:
        file: The file.
    """
    calls["read"] += 1
    return Cloud(np.array([float(word) for word in file.read_text().split()]))


REGISTRY = Registry(function.declaration for function in (fake_source, fake_move, fake_join, fake_solve, fake_write, fake_read))


def shot(end: int = 6, start: int = 1, write: bool = True, **solve) -> Graph:
    """source -> solve -> write, beside it source -> move -> join."""
    graph = Graph(registry=REGISTRY, cell_size=0.5, start=start, end=end)
    source = graph.add("fake_source", "source")
    sim = graph.add("fake_solve", "sim", cloud=source, **solve)
    if write:
        graph.add("fake_write", "cache", cloud=sim["cloud"])
    return graph


def content(folder: Path) -> dict[str, bytes]:
    """Bytes of every file below a folder, without the lock."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "cook.lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}
