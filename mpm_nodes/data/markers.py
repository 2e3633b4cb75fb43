"""What a signature says: which fields a stage touches, and what an outer node is handed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar
from typing import Annotated as A

from mpm_nodes.data.fields import Field

T = TypeVar("T")


@dataclass(frozen=True, init=False)
class Reads:
    """Fields that a stage reads through a port: names, or a `Field` that the stage describes as its own.

    Attributes:
        names: Names of the fields.
        own: The fields among them that the stage describes.
        when: (knob, value): they are read only where the knob has that value; None: always.
        on_request: They are read only in substeps that were asked to keep them: by `StageMemory.keep_next` in the one before,
            or by the loop where the limits of dt have to be measured again.
    """

    names: tuple[str, ...]
    own: tuple[Field, ...]
    when: tuple[str, Any] | None
    on_request: bool

    def __init__(self, *names: str | Field, when: tuple[str, Any] | None = None, on_request: bool = False) -> None:
        object.__setattr__(self, "names", tuple(getattr(name, "name", name) for name in names))
        object.__setattr__(self, "own", tuple(name for name in names if isinstance(name, Field)))
        object.__setattr__(self, "when", when)
        object.__setattr__(self, "on_request", on_request)


@dataclass(frozen=True, init=False)
class Writes:
    """Fields that a stage writes through a port (name it in `Reads` as well when the old value matters); see `Reads`.

    A stage that may add or remove elements writes the domain's identity ("id" of particles).
    """

    names: tuple[str, ...]
    own: tuple[Field, ...]

    def __init__(self, *names: str | Field) -> None:
        object.__setattr__(self, "names", tuple(getattr(name, "name", name) for name in names))
        object.__setattr__(self, "own", tuple(name for name in names if isinstance(name, Field)))


if TYPE_CHECKING:  # for type checkers: names of ports are texts (`mpm_nodes.mypy_plugin`), and what a function is handed
    from typing import Literal as Stage

    Previous = Optional[T]  # noqa: UP045 (an alias to be subscripted)
    Many = tuple[T, ...]
else:

    class Stage:
        """Return annotation of a stage: `Stage["particles", "grid"]` names the ports that leave it."""

        def __class_getitem__(cls, names: str | tuple[str, ...]) -> Any:
            return A[Stage, (names,) if isinstance(names, str) else tuple(names)]

    class Previous(Generic[T]):
        """`Previous[T]` argument: this node's own `T` output of the frame before (None on the first frame); makes it sequential."""

    class Many(Generic[T]):
        """`Many[T]` input port: takes any number of wires, in the order of the graph file, as a tuple."""
