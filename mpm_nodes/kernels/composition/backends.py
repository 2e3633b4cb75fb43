"""What a loop is composed for: how many particles a body is given at once, and what loads and stores them.

Bodies of fragments know none of it: `select`, `const`, `fma` and their like take lanes of any width, and numbers. Loops for GPUs
are written from the same fragments by `kernels.cuda.loop`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpm_nodes.kernels.lanes.types import WIDTH

__all__ = ["CPU", "EIGHT", "Backend"]


@dataclass(frozen=True)
class Backend:
    """What a loop is composed for.

    Attributes:
        name: What it is called in messages.
        width: Particles whose values a body is given at once.
        load: Name in `kernels.lanes.memory` of what loads `width` values.
        rows: Module that loads attributes of several rows in one call, as `store_first_each` stores them; "": row by row.
    """

    name: str
    width: int
    load: str = "load"
    rows: str = ""

    @property
    def step(self) -> str:
        """How far apart are the particles that one thread takes after each other, as source."""
        return "WIDTH" if self.width == WIDTH else str(self.width)


CPU = Backend("CPU", WIDTH, rows="mpm_nodes.kernels.lanes.rows")
"""Sixteen lanes: one zmm, two ymm or four xmm registers. All that transfers share is laid out for it."""
EIGHT = Backend("CPU with eight lanes", 8, load="load8")
