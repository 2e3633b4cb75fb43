"""A shot without a solver, for tests of what runs shots: a walk that goes on from its last frame, and what is written of it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Annotated as A
from typing import Any

import numpy as np

from mpm_nodes.data import FrameContext, MpmNodesError, OutputError, Previous, Range
from mpm_nodes.graph.declare import node


@dataclass(frozen=True)
class Walkers:
    """Places, frozen."""

    places: np.ndarray

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {}, {"places": self.places}

    @classmethod
    def from_arrays(cls, facts: Any, arrays: Any) -> Walkers:
        return cls(**arrays)


def note(ctx: FrameContext, what: str) -> None:
    """Append a line to the file that the test named: what was cooked, and by which process."""
    if os.environ.get("WALK_LOG"):
        with open(os.environ["WALK_LOG"], "a") as stream:
            stream.write(f"{what} {ctx.frame} {os.getpid()}\n")


@node(category="Test", label="Walk", preflight=lambda told: {"memory": int(told.knobs["bytes"]), "particles": 3})
def walk(
    ctx: FrameContext,
    previous: Previous[Walkers],
    *,
    step: float = 1.0,
    pause: A[float, Range(min=0.0)] = 0.0,
    bytes: float = 1000.0,
    fall_at: int = 0,
) -> Walkers:
    """Walk on by a step.

    Args:
        step: How far.
        pause: Seconds that a frame takes.
        bytes: What the preflight says.
        fall_at: Frame at which it fails; 0 for none.
    """
    if ctx.frame == fall_at:
        raise MpmNodesError("fell over")
    places = np.arange(3.0) if previous is None else previous.places
    end = time.monotonic() + pause
    while time.monotonic() < end:
        ctx.check_cancel()
        time.sleep(0.01)
    note(ctx, "walk")
    return Walkers(places * 1.25 + step)


@dataclass(frozen=True)
class Trace:
    """Where a frame was written."""

    file: str


@node(category="Test", label="Write Walk")
def write_walk(walkers: Walkers, ctx: FrameContext, *, scale: float = 1.0) -> Trace:
    """Write the places of a frame.

    Args:
        walkers: What to write.
        scale: Factor.
    """
    if ctx.files is None:
        raise OutputError("write_walk: there is no output folder")
    name = f"walk/walk.{ctx.files.number:04d}.txt"
    ctx.files.path(name).write_text(" ".join(map(repr, (walkers.places * scale).tolist())) + "\n")
    note(ctx, "write")
    return Trace(name)
