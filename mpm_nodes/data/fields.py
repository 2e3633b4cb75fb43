"""Fields: everything that any package needs to know about a quantity that a domain's elements carry, stated once."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data.errors import MpmNodesError

UNLIMITED = (-math.inf, math.inf)
"""Limits of what has none."""

LAW_STATE = "law_state"
"""Stands, in `Reads` and `Writes`, for the state fields of every law used in the solve."""

BIRTH = "birth"
"""Column of the simulated second in which a particle came in: of users who want its age; emitters fill it where it is."""


class Resampling(enum.Enum):
    """What a particle that resampling makes has of a field.

    CONSERVED: what its donors give with their mass, so that the sum over all particles stays.
    AVERAGED: the average of those around it, weighted by mass.
    COPIED: the value of the nearest one.
    RECOMPUTED: the rest value; whoever uses the field computes it again.
    """

    CONSERVED = "conserved"
    AVERAGED = "averaged"
    COPIED = "copied"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True)
class Field:
    """One field of a domain. Core fields stand in the domain's table; phenomena add theirs; laws and stages describe their own.

    Sorting moves every field with its element; a removed element's values go with it.

    Attributes:
        name: Name in the public API and in declarations.
        symbol: Symbol in the papers and kernels.
        shape: Shape per element, () for scalars.
        unit: SI unit.
        usd: Name in USD: a schema attribute ("points") or a primvar ("primvars:..."); "" makes it the primvar of this name.
        houdini: Attribute name in Houdini; "" takes the name without underscores.
        doc: One line.
        kind: "real" (the solve's float type), "int32", "int64", or "object" for what is not an array.
        rest: Value of an untouched element: a scalar, or "identity" for a matrix.
        resampling: What a particle that resampling makes has of it.
        saved: Whether checkpoints hold it; one that every substep writes before it reads it is left out all the same.
        passing: Lives within a substep: where no later stage reads it, fused stages may leave it unstored.
        limits: Least and largest value that nodes may give it; what is beyond is brought back. None: the solve finds it.
        initial: They give it before the solve alone.
        structural: Sorting and the choice of the law hang on it: checked mode leaves it as it is.
        always_known: A stage may read it before any stage of the substep wrote it.
        packed: (array, first component) where it is stored inside a wider array; None: on its own.
        shift: Of a grid: origin of its points in half cells; nodes (0, 0, 0), the middles of eight nodes (1, 1, 1).
    """

    name: str
    symbol: str = ""
    shape: tuple[int, ...] = ()
    unit: str = ""
    usd: str = ""
    houdini: str = ""
    doc: str = ""
    kind: str = "real"
    rest: float | str = 0.0
    resampling: Resampling = Resampling.COPIED
    saved: bool = True
    passing: bool = False
    limits: tuple[float, float] | None = None
    initial: bool = False
    structural: bool = False
    always_known: bool = False
    packed: tuple[str, int] | None = None
    shift: tuple[int, int, int] = (0, 0, 0)

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise MpmNodesError(f"field {self.name!r}: is not a name; use letters, digits and underscores")
        if self.kind not in ("real", "int32", "int64", "object"):
            raise MpmNodesError(f"field {self.name}: kind {self.kind!r} is unknown; choose real, int32, int64 or object")
        if self.rest == "identity" and self.shape != (3, 3):
            raise MpmNodesError(f"field {self.name}: has shape {self.shape}; only a (3, 3) matrix rests at the identity")
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "symbol", self.symbol or self.name)
        object.__setattr__(self, "usd", self.usd or f"primvars:{self.name}")
        object.__setattr__(self, "houdini", self.houdini or self.name.replace("_", ""))

    @functools.cached_property
    def rows(self) -> int:
        """Number of scalar components per element."""
        return int(np.prod(self.shape, dtype=int)) if self.shape else 1

    def dtype(self, real: Any = np.float32) -> np.dtype:
        """Return the type of its numbers in a solve whose float type is `real`."""
        return np.dtype(real if self.kind == "real" else self.kind)

    def rest_values(self, count: int, dtype: Any = np.float32) -> np.ndarray:
        """Values of `count` untouched elements, shape (count, *shape)."""
        dtype = self.dtype(dtype)
        values = np.zeros((count, *self.shape), dtype)
        values[:] = np.eye(3, dtype=dtype) if self.rest == "identity" else self.rest
        return values

    def to_json(self) -> dict[str, Any]:
        """Return what differs from the defaults as plain JSON values."""
        facts = {name: getattr(self, name) for name in ("symbol", "unit", "usd", "houdini", "doc", "kind", "rest")}
        return {"name": self.name, "shape": list(self.shape), **facts, "resampling": self.resampling.value}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Field:
        """Return the field that `to_json` described."""
        return cls(**{**facts, "shape": tuple(facts["shape"]), "resampling": Resampling(facts["resampling"])})


Attribute = Field
"""The name that a field had before grids and samples had fields as well."""


def table(*fields: Field) -> dict[str, Field]:
    """Return fields by name."""
    return {field.name: field for field in fields}


_MEAN, _KEPT = Resampling.AVERAGED, Resampling.CONSERVED
_FACTOR = (1e-6, math.inf)

ATTRIBUTES: dict[str, Field] = table(
    Field("position", "x", (3,), "m", usd="points", houdini="P", doc="Position.", resampling=Resampling.RECOMPUTED),
    Field(
        "velocity",
        "v",
        (3,),
        "m/s",
        usd="velocities",
        houdini="v",
        doc="Velocity.",
        resampling=_MEAN,
        limits=UNLIMITED,
        initial=True,
    ),
    Field("id", usd="ids", doc="Stable identity, never reused.", kind="int64", structural=True),
    Field("material", "mat", doc="Index into the materials.", kind="int32", structural=True),
    Field(
        "body",
        "b",
        doc="Body: where the substeps have `collide_bodies`, those of different numbers keep velocities of their own.",
        kind="int32",
        structural=True,
    ),
    Field("mass", "m", (), "kg", doc="Mass.", resampling=_KEPT),
    Field("volume", "V0", (), "m^3", houdini="vol", doc="Undeformed volume.", resampling=_KEPT),
    Field("density", "rho", (), "kg/m^3", doc="Density, as `measure_density` finds it."),
    Field("affine", "C", (3, 3), "1/s", usd="primvars:C", houdini="C", doc="APIC affine velocity.", resampling=_MEAN),
    Field(
        "velocity_gradient",
        "L",
        (3, 3),
        "1/s",
        usd="primvars:L",
        houdini="gradv",
        doc="Gradient of the grid velocity.",
        resampling=_MEAN,
        passing=True,
    ),
    Field(
        "deformation",
        "F",
        (3, 3),
        usd="primvars:F",
        houdini="F",
        doc="Elastic deformation gradient.",
        rest="identity",
        resampling=_MEAN,
    ),
    Field(
        "volume_change",
        "e",
        usd="primvars:e",
        houdini="Jminus1",
        doc="J - 1: relative change of volume.",
        resampling=_MEAN,
        limits=(-0.99, math.inf),
        initial=True,
    ),
    Field(
        "elastic_strain",
        "b - I",
        (6,),
        doc="Elastic left Cauchy-Green strain up to its volume, less the unit: xx xy xz yy yz zz.",
        resampling=_MEAN,
    ),
    Field(
        "total_deformation",
        "F",
        (3, 3),
        houdini="Ftotal",
        doc="Deformation gradient, elastic and plastic.",
        rest="identity",
        resampling=_MEAN,
    ),
    Field("weak", doc="1 where the material is torn, else 0.", kind="int32"),
    Field(
        "plastic_volume_ratio", "Jp", usd="primvars:Jp", houdini="Jp", doc="det of the plastic part.", rest=1.0, resampling=_MEAN
    ),
    Field("stress", "tau", (6,), "Pa", doc="Kirchhoff stress xx xy xz yy yz zz.", passing=True),
    Field("stiffness_scale", "s", houdini="stiffness", doc="Multiplier of the stiffness.", rest=1.0, limits=_FACTOR),
    Field("tear_scale", "s_T", doc="Multiplier of the tear threshold.", rest=1.0, limits=_FACTOR),
    Field("temperature", "T", (), "K", doc="Temperature.", rest=293.15, resampling=_MEAN, limits=(0.0, math.inf)),
    Field("phase", doc="0 solid, 1 liquid.", kind="int32"),
    Field(
        "heat_source", "q", (), "W/m^3", doc="Heat made in a cubic metre of undeformed matter.", resampling=_MEAN, limits=UNLIMITED
    ),
    Field(
        "concentration",
        "c",
        doc="Share of a solute such as soap or alcohol: it changes the surface tension.",
        resampling=_MEAN,
        limits=(0.0, 1.0),
    ),
    Field("tension_scale", "k / k_0", doc="Factor on the surface tension.", rest=1.0, resampling=_MEAN, limits=(0.0, math.inf)),
    Field("room", "o r", (2,), doc="Room in the cells around, and what bodies leave open.", passing=True),
)
"""Fields of the particles by name."""

GRID_FIELDS: dict[str, Field] = table(
    Field("mass", "m_i", (), "kg", doc="Mass of a node.", packed=("momentum", 3)),
    Field("momentum", "m_i v_i", (3,), "kg m/s", doc="Momentum of a node.", packed=("momentum", 0)),
    Field("force", "f_i", (3,), "N", doc="Force on a node.", packed=("force", 0)),
    Field("velocity", "v_i", (3,), "m/s", doc="Velocity of a node.", packed=("velocity", 0)),
    Field("position", "x_i", (3,), "m", doc="Position of a node; always known.", always_known=True, saved=False),
    Field(
        "room", "o r", (2,), doc="Room in a cell between nodes, and what bodies leave open.", packed=("room", 0), shift=(1, 1, 1)
    ),
)
"""Fields of the grid's nodes by name."""

MOTION_FIELDS = ("mass", "momentum", "force", "velocity")
"""Those of the grid that every grid holds; others are there where a stage of the solve names them."""


def fields_of_faces(name: str, symbol: str, unit: str, doc: str, array: str, first: int) -> list[Field]:
    """Return fields of the faces of the staggered grid, `name`_x to `name`_z, each stored inside `array`_x to `array`_z."""
    return [
        Field(
            f"{name}_{axis}",
            f"{symbol}_{axis}",
            (),
            unit,
            doc=f"{doc}, {axis} faces.",
            packed=(f"{array}_{axis}", first),
            shift=shift,
        )
        for axis, shift in zip("xyz", ((0, 1, 1), (1, 0, 1), (1, 1, 0)), strict=True)
    ]
