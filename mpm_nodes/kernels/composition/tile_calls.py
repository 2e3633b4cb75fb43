"""What composed loops do with a tile of the grid: particles of a block take values from it, and add to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mpm_nodes.kernels.composition.block import Block
from mpm_nodes.kernels.composition.fragments import Fragment, Gather, Scatter
from mpm_nodes.kernels.composition.module import call

__all__ = ["Fold", "WaitingScatters", "gather"]

_TRANSFERS = "mpm_nodes.kernels.transfers"
_GIVEN = ("velocity", "affine", "mass", "stress", "volume")
"""What a scatter can give, in the order of `scatter_run`."""


def gather(block: Block, place: int, fragment: Gather) -> str:
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
    use(f"{_TRANSFERS}.fields", "slopes_of_matrix")
    slopes = f"slopes_of_matrix({gradient}, {block.stride_of(fragment.gradient)}, {block.shift_of(fragment.gradient)})"
    given = [stencil, block.placement(), values, affine, slopes, flip, block.block_work()]
    return "\n".join([*lines, call("gather_run", given)])


@dataclass(frozen=True)
class Fold:
    """Scatters to the grid array `source` go to `into` instead, multiplied by the number `factor`; see `Nodes`."""

    source: str
    into: str
    factor: str


@dataclass
class _Joined:
    """Scatters that become one: the attributes that it gives, under the names of `_GIVEN`, and the factor of the stress."""

    given: dict[str, str] = field(default_factory=dict)
    scale: str = ""


class WaitingScatters:
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
            self.write_all()
            joined = self._waiting.setdefault((target, fragment.stencil), _Joined())
        joined.given.update({name: fragment.stress if name == "stress" else name for name in fragment.gives})
        if "stress" in fragment.gives:
            product = " * ".join(self._block.argument(name) for name in factors) or "1.0"
            joined.scale = f"{'-' if negated else ''}{product} / cell_size"

    def write_before(self, fragment: Fragment) -> None:
        """Write those whose attributes a fragment is about to write."""
        written = set(getattr(fragment, "writes", ()))
        self._write([key for key, joined in self._waiting.items() if written & {*joined.given.values(), "position"}])

    def write_all(self) -> None:
        """Write those that wait."""
        self._write(list(self._waiting))

    def _write(self, keys: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        for key in keys:
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
            lines = use(f"{_TRANSFERS}.fields", "FULL") if block.rows_of(tensor) == 9 else "None"
            flux = f"Flux(bare({stress}), {', '.join(rows)}, {lines}, bare({volume}), {joined.scale})"
        block.add(call("scatter_run", [*values, flux, block.block_work()]))
        grid, slots, segments = (block.argument(name) for name in (f"grid_{target}", "tile_slot", "segments"))
        block.add(call("add_tile", ["scratch", block.here("at"), grid, slots, f"{segments}[row, 2]"]))
