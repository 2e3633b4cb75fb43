"""Density correction: what cells of the projection say of the volume of liquids, held to the room that the grid sees in them.

| symbol | meaning | unit |
|---|---|---|
| e | J_E - 1 of a cell, the mean over its matter by mass | - |
| r | room in a cell: what bodies leave open over what undeformed matter would fill, less 1 (`transfers.room`) | - |
| l | share of the liquids in the volume of its matter | - |
| a | share of the difference that is taken over in a substep | - |

    e <- (1 - l) e + l a r            in incompressible cells, where what particles integrated says nothing of the density
    e <- e + l a (r - e)              in others

where the difference is more than counts as none. Solids say themselves how they are strained. The room is that of all matter in the
cell.
"""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.lend import plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.transfers.room import HALF

__all__ = ["follow_cells"]

OPEN = 0.1
"""What bodies leave open of a cell at least that says something."""


@part
def _follow_cells_at(g, cells, room, filling, numbers):
    volume, share, tolerance = numbers
    for c in range(64 * g, 64 * g + 64):
        mass, opened, matter = cells[4 * c + 3], room[4 * c + 1], room[4 * c + 3]
        filling[4 * c + 1] = 0.0
        if not (mass > 0.0 and opened > OPEN and matter > 0.0):
            continue
        liquid = min(room[4 * c + 2] / matter, 1.0)
        filling[4 * c + 1] = matter / (volume * opened) if liquid > 0.5 and opened >= HALF else 0.0
        elastic = cells[4 * c + 1] / mass
        own = elastic if cells[4 * c + 2] > 0.0 else 0.0
        excess = room[4 * c] / opened - own
        change = liquid * (own - elastic + share * (excess - min(max(excess, -tolerance), tolerance)))
        cells[4 * c] += mass * change
        cells[4 * c + 1] += mass * change


@compiled(fastmath=False)
def follow_cells(count, cells, room, filling, numbers):
    """Let e of cells relax to r, and write how full those are that hold liquids for the most part.

    Args:
        count: Number of grid blocks.
        cells: (m (J - 1), m (J_E - 1), m k, m) of the cells, four values a cell; the first two are written.
        room: (o r, o, volume of the liquids, volume) of the cells, o what bodies leave open of them.
        filling: Written: what matter takes of the room in a cell undeformed, the second of four values; 0 where it is not known.
        numbers: Volume of a cell [m^3], a, the difference that counts as none.
    """
    parallel_for(_follow_cells_at, count, (plain(cells), plain(room), plain(filling), numbers))
