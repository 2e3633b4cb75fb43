"""Compiled loops over the particles of one law."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES
from mpm_nodes.kernels.composition import generated
from mpm_nodes.kernels.composition.block import column_name
from mpm_nodes.kernels.composition.fragments import Fragment, Lanes
from mpm_nodes.materials.contract import Law, LawError, law
from mpm_nodes.materials.implicit_fragments import INNER, TABLE
from mpm_nodes.materials.law_fragments import ADVANCE, PROJECT, RATES, STRESS
from mpm_nodes.materials.values import FloatType

__all__ = ["LawLoops", "law_loops"]


@dataclass(frozen=True)
class LawLoops:
    """Compiled loops of one law; each takes the state arrays first, in the order of `law.state`, and then those of `law.inputs`.

    Attributes:
        law: The law.
        stress: `(state..., L, scale, tau, stride, segments, coeffs, dt)`: writes the Kirchhoff stress of explicit
            steps to the 6 rows of `tau` [Pa]; `L` is the stored velocity gradient (read by viscous laws only).
        advance: `(state..., L, stride, segments, coeffs, dt)`: state <- trial state for A = dt L.
        project: `(state..., scale, stride, segments, coeffs, dt)`: state <- return map, or None.
        limits: `(state..., L, scale, stride, segments, coeffs, out)`: writes max |L|^2 and the fastest wave [m/s] of each
            segment to `out`, shape (segments, 2), float64; infinity for what is not finite.

    `scale` holds `stiffness_scale`, or is an empty array of the solve's float type; `coeffs` comes from the law. One number more,
    `coeffs[len(law.names)]`, is the viscosity [Pa s] of the material itself: `stress` adds it.
    """

    law: Law
    stress: Callable[..., None]
    advance: Callable[..., None]
    project: Callable[..., None] | None
    limits: Callable[..., None]
    _composed: dict[int, tuple[Any, generated.ComposedLoop]] = field(default_factory=dict, compare=False, repr=False)

    def composed(self, fragments: tuple[Fragment, ...]) -> generated.ComposedLoop:
        """Return the loop of fragments of implicit steps (`implicit_fragments`), with arguments by name."""
        if id(fragments) not in self._composed:  # held with the loop, so that no id is used twice
            table = {**ATTRIBUTES, **TABLE, **self.law.fields}
            self._composed[id(fragments)] = fragments, generated.composed_loop(self.law, fragments, table, INNER, fetches=False)
        return self._composed[id(fragments)][1]


def law_loops(chosen: str | Law, dtype: FloatType = np.float32) -> LawLoops:
    """Return the loops of a law, or of one by its id, for arrays of float32 or float64; compiled at the first call of each.

    Raises:
        LawError: When the law is unknown or the float type is another one.
    """
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        name = chosen if isinstance(chosen, str) else chosen.id
        raise LawError(f"law {name}: lanes of {np.dtype(dtype)} do not exist; choose float32 or float64")
    return _loops_of(law(chosen) if isinstance(chosen, str) else chosen)


class Loop:
    """The loop of a law's fragments over segments, with arguments by place; see `LawLoops`."""

    def __init__(self, found: Law, fragments: Sequence[Lanes], names: Sequence[str]) -> None:
        self.law, self.fragments = found, tuple(fragment for fragment in fragments if fragment.fits(found))
        self.names = (*map(column_name, (*found.state, *found.inputs)), *names)

    @functools.cached_property
    def composed(self) -> generated.ComposedLoop:
        """The composed loop."""
        return generated.composed_loop(self.law, self.fragments, {**ATTRIBUTES, **self.law.fields})

    def __call__(self, *arguments: Any) -> None:
        self.composed(dict(zip(self.names, arguments, strict=True)))

    @property
    def stats(self) -> Any:
        """What numba counts of its compilations."""
        return getattr(self.composed.run, "stats", None)


@functools.cache
def _loops_of(found: Law) -> LawLoops:
    scale, tail = "stiffness_scale", ("stride", "segments", "coefficients")
    projects = found.function("project") is not None
    return LawLoops(
        found,
        Loop(found, STRESS, ("velocity_gradient", scale, "stress", *tail, "dt")),
        Loop(found, ADVANCE, ("velocity_gradient", *tail, "dt")),
        Loop(found, PROJECT, (scale, *tail, "dt")) if projects else None,
        Loop(found, (RATES,), ("velocity_gradient", scale, *tail, "largest")),
    )
