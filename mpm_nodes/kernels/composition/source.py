"""One kernel for a list of fragments: the source of a loop over blocks that calls them one after another on each block.

What is read is loaded, what is written is stored; attributes that only live inside the loop take rows of a scratch of each thread
(`local`) instead of their own where the caller says so. Rows of the next block are fetched on the way: blocks of one colour do not
follow each other in memory, and dozens of rows are more than the hardware follows by itself.

Layout: an attribute of r rows is a flat array, row k at [k * stride : k * stride + count]. A segment is a half-open range
[start, end) of particles of one material in one block, a row (start, end, block) of `segments`, int64. Lanes beyond the end of a
segment are computed and thrown away: no value outside is written, but up to 15 elements behind a row's last segment are read, so
every row needs that much room (stride >= last end + 15).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mpm_nodes.data import Field
from mpm_nodes.kernels.composition.backends import CPU, Backend
from mpm_nodes.kernels.composition.block import Block, Source
from mpm_nodes.kernels.composition.fragments import Fragment, Gather, Lanes, Rounds, Run, Scatter
from mpm_nodes.kernels.composition.lane_loop import LaneLoop
from mpm_nodes.kernels.composition.tile_calls import Fold, WaitingScatters, gather

__all__ = ["source_of"]


def source_of(
    law: Any,
    fragments: Sequence[Fragment],
    table: Mapping[str, Field],
    inner: Sequence[str] = (),
    fold: Fold | None = None,
    fetches: bool = True,
    backend: Backend = CPU,
) -> Source:
    """Return the source of a kernel.

    Args:
        law: The law of the particles (`materials.contract.Law`), or None where no fragment depends on it.
        fragments: In order; each fits the law.
        table: Attributes by name.
        inner: Attributes that may live in `local` alone: `<name>_local` is their stride there, 0 for rows of their own.
        fold: Where scatters go that are not to have a grid array of their own.
        fetches: Whether rows of the next block are fetched on the way; it does not pay in loops that run many times a substep.
        backend: What the loop is to run on, and how many particles a body is given at once.

    Raises:
        CompositionError: A fragment asks for what the backend does not have.
    """
    block = Block(law, fragments, table, inner, backend, fetches and backend == CPU)
    scatters = WaitingScatters(block, fold)
    for place, fragment in enumerate(fragments):
        scatters.write_before(fragment)
        if backend.width != CPU.width and (isinstance(fragment, Rounds) or not isinstance(fragment, Lanes)):
            raise block.refused(fragment, "a tile of the grid")
        if isinstance(fragment, Lanes):
            block.add_call(place, LaneLoop(block, place, fragment).written())
        elif isinstance(fragment, Run):
            block.add_call(place, block.run(place, fragment))
        elif isinstance(fragment, Gather):
            block.add_call(place, gather(block, place, fragment))
        elif isinstance(fragment, Scatter):
            scatters.add(fragment)
    scatters.write_all()
    return block.written()
