"""What a loop is composed for: how many particles a body is given at once, and what loads, stores and shares them out.

Bodies of fragments know none of it: `select`, `const`, `fma` and their like take lanes of any width, and numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpm_nodes.kernels.lanes.types import WIDTH

__all__ = ["CPU", "CUDA", "EIGHT", "Backend"]

_LANES, _SCALARS = "mpm_nodes.kernels.lanes", "mpm_nodes.kernels.composition.scalars"


@dataclass(frozen=True)
class Backend:
    """What a loop is composed for.

    Attributes:
        name: What it is called in messages.
        width: Particles whose values a body is given at once.
        memory: Module with `load`, `store_first`, `to_double` and `lane_index`.
        load: Name there of what loads `width` values.
        rows: Module that loads attributes of several rows in one call, as `store_first_each` stores them; "": row by row.
        blocks: Whether threads take whole blocks, with a tile of the grid each. Where not, the threads of a thread block share the
            particles of one block, and fragments that need a tile or a reduction have no form.
    """

    name: str
    width: int
    memory: str = f"{_LANES}.memory"
    load: str = "load"
    rows: str = ""
    blocks: bool = True

    @property
    def step(self) -> str:
        """How far apart are the particles that one thread takes after each other, as source."""
        if not self.blocks:
            return "step"
        return "WIDTH" if self.width == WIDTH else str(self.width)


CPU = Backend("CPU", WIDTH, rows=f"{_LANES}.rows")
"""Sixteen lanes: one zmm, two ymm or four xmm registers. All that transfers share is laid out for it."""
EIGHT = Backend("CPU with eight lanes", 8, load="load8")
CUDA = Backend("CUDA", 1, memory=_SCALARS, blocks=False)
"""A number a thread, as on every GPU."""
