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
from dataclasses import dataclass, field
from typing import Any

from mpm_nodes.data import Field
from mpm_nodes.kernels.composition.backends import CPU, Backend
from mpm_nodes.kernels.composition.block import Block, Source
from mpm_nodes.kernels.composition.fragments import Fragment, Gather, Lanes, Rounds, Run, Scatter
from mpm_nodes.kernels.composition.lane_loop import LaneLoop
from mpm_nodes.kernels.composition.module import call

__all__ = ["Fold", "source_of"]

_TRANSFERS = "mpm_nodes.kernels.transfers"
_GIVEN = ("velocity", "affine", "mass", "stress", "volume")
"""What a scatter can give, in the order of `scatter_run`."""


@dataclass(frozen=True)
class Fold:
    """Scatters to the grid array `source` go to `into` instead, multiplied by the number `factor`; see `Nodes`."""

    source: str
    into: str
    factor: str


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
    scatters = _WaitingScatters(block, fold)
    for place, fragment in enumerate(fragments):
        scatters.write(fragment)
        if backend.width != CPU.width and (isinstance(fragment, Rounds) or not isinstance(fragment, Lanes)):
            raise block.refused(fragment, "a tile of the grid")
        if isinstance(fragment, Lanes):
            block.add_call(place, LaneLoop(block, place, fragment).written())
        elif isinstance(fragment, Run):
            given = [block.given_to_run(place, name) for name in fragment.parameters]
            block.add_call(place, call(block.module.called(fragment.body), given))
        elif isinstance(fragment, Gather):
            block.add_call(place, _gather(block, place, fragment))
        elif isinstance(fragment, Scatter):
            scatters.add(fragment)
    scatters.write()
    return block.written()


# ---------------------------------------------------------------- a tile of the grid
def _gather(block: Block, place: int, fragment: Gather) -> str:
    """Write how the particles of a block take values from a tile of the grid."""
    tiles, use = f"{_TRANSFERS}.tiles", block.module.use
    use(f"{_TRANSFERS}.gather", "gather_run")
    use(tiles, "load_tile")
    stencil = block.argument(f"stencil{len(fragment.stencil)}")
    values, affine, gradient = (
        block.given_to_run(place, name) if name else "None" for name in (fragment.values, fragment.affine, fragment.gradient)
    )
    grid, slots, scratch = (block.argument(name) for name in (f"grid_{fragment.source}", "tile_slot", "scratch"))
    block.argument("segments")
    at, flip = block.here("at"), "None"
    lines = [call("load_tile", [scratch, at, grid, slots, block.here("block")])]
    if block.fetches:
        use(tiles, "prefetch_tile")
        lines.append(call("prefetch_tile", [grid, slots, block.here("following")]))
    if fragment.before:
        use(tiles, "SECOND_TILE", "load_change_tile")
        before, flip = block.argument(f"grid_{fragment.before}"), block.own(place, fragment.flip)
        second = [scratch, f"{at} + SECOND_TILE", grid, before, flip, slots, block.here("block")]
        lines.append(call("load_change_tile", second))
    slopes = "None"
    if fragment.gradient:
        use(f"{_TRANSFERS}.fields", "slopes_of_matrix")
        slopes = f"slopes_of_matrix({gradient}, {block.stride_of(fragment.gradient)}, {block.shift_of(fragment.gradient)})"
    given = [stencil, block.placement(), values, affine, slopes, flip, block.block_work()]
    return "\n".join([*lines, call("gather_run", given)])


@dataclass
class _Joined:
    """Scatters that become one: the attributes that it gives, under the names of `_GIVEN`, and the factor of the stress."""

    given: dict[str, str] = field(default_factory=dict)
    scale: str = ""


class _WaitingScatters:
    """Scatters, put off until something that they give is written again, so that others to the same array can join them."""

    def __init__(self, block: Block, fold: Fold | None) -> None:
        self._block, self._fold = block, fold
        self._waiting: dict[tuple[str, tuple[int, ...]], _Joined] = {}

    def add(self, fragment: Scatter) -> None:
        """Put a scatter off."""
        target, factors, negated = fragment.target, fragment.factors, fragment.negated
        if self._fold is not None and target == self._fold.source:
            target, factors, negated = self._fold.into, (self._fold.factor,), True
        joined = self._waiting.setdefault((target, fragment.stencil), _Joined())
        if joined.given.keys() & set(fragment.gives):
            self.write()
            joined = self._waiting.setdefault((target, fragment.stencil), _Joined())
        joined.given.update({name: fragment.stress if name == "stress" else name for name in fragment.gives})
        if "stress" in fragment.gives:
            product = " * ".join(self._block.argument(name) for name in factors) or "1.0"
            joined.scale = f"{'-' if negated else ''}{product} / cell_size"

    def write(self, before: Fragment | None = None) -> None:
        """Write those that wait: all of them, or those whose attributes a fragment is about to write."""
        written = set(getattr(before, "writes", ()))
        for key, joined in list(self._waiting.items()):
            if before is None or written & {*joined.given.values(), "position"}:
                self._scatter(*key, self._waiting.pop(key))

    def _scatter(self, target: str, stencil: tuple[int, ...], joined: _Joined) -> None:
        block, use, given = self._block, self._block.module.use, joined.given
        use(f"{_TRANSFERS}.scatter", "scatter_run")
        use(f"{_TRANSFERS}.tiles", "add_tile")
        velocity, affine, mass, stress, volume = (
            block.argument(block.column(given[name])) if name in given else "None" for name in _GIVEN
        )
        tensor, flux = given.get("stress", ""), "None"
        rows = [block.stride_of(tensor), block.shift_of(tensor)] if tensor else []
        values = [block.argument(f"stencil{len(stencil)}"), block.placement(), velocity, affine, mass]
        if tensor:
            use(f"{_TRANSFERS}.fields", "Flux")
            lines = use(f"{_TRANSFERS}.fields", "FULL") if block.table[tensor].rows == 9 else "None"
            flux = f"Flux(bare({stress}), {', '.join(rows)}, {lines}, bare({volume}), {joined.scale})"
        block.add(call("scatter_run", [*values, flux, block.block_work()]))
        grid, slots, segments = (block.argument(name) for name in (f"grid_{target}", "tile_slot", "segments"))
        block.add(call("add_tile", ["scratch", block.here("at"), grid, slots, f"{segments}[row, 2]"]))
