"""Fields: everything that any package needs to know about a quantity that a domain's elements carry, stated once."""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpm_nodes.data.errors import MpmNodesError

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
    """One field of a domain. Core fields stand in the domain's table; laws and stages describe their own where they use them.

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

ATTRIBUTES: dict[str, Field] = table(
    Field("position", "x", (3,), "m", "points", "P", "Position.", resampling=Resampling.RECOMPUTED),
    Field("velocity", "v", (3,), "m/s", "velocities", "v", "Velocity.", resampling=_MEAN),
    Field("id", "id", (), "", "ids", "id", "Stable identity, never reused.", "int64", structural=True),
    Field("material", "mat", (), "", "primvars:material", "material", "Index into the materials.", "int32", structural=True),
    Field(
        "body",
        "b",
        (),
        "",
        "primvars:body",
        "body",
        "Body: where the substeps have `collide_bodies`, those of different numbers keep velocities of their own.",
        "int32",
        structural=True,
    ),
    Field(
        "firm",
        "s",
        (),
        "",
        "primvars:firm",
        "firm",
        "1 for what keeps its shape, 0 for liquids: where these slip on the others each has velocities of its own.",
        "int32",
        structural=True,
    ),
    Field("mass", "m", (), "kg", "primvars:mass", "mass", "Mass.", resampling=_KEPT),
    Field("volume", "V0", (), "m^3", "primvars:volume", "vol", "Undeformed volume.", resampling=_KEPT),
    Field("density", "rho", (), "kg/m^3", "primvars:density", "density", "Density, as `measure_density` finds it."),
    Field("affine", "C", (3, 3), "1/s", "primvars:C", "C", "APIC affine velocity.", resampling=_MEAN),
    Field(
        "velocity_gradient",
        "L",
        (3, 3),
        "1/s",
        "primvars:L",
        "gradv",
        "Gradient of the grid velocity.",
        resampling=_MEAN,
        passing=True,
    ),
    Field("deformation", "F", (3, 3), "", "primvars:F", "F", "Elastic deformation gradient.", rest="identity", resampling=_MEAN),
    Field("volume_change", "e", (), "", "primvars:e", "Jminus1", "J - 1: relative change of volume.", resampling=_MEAN),
    Field(
        "elastic_strain",
        "b - I",
        (6,),
        "",
        "primvars:elastic_strain",
        "elasticstrain",
        "Elastic left Cauchy-Green strain up to its volume, less the unit: xx xy xz yy yz zz.",
        resampling=_MEAN,
    ),
    Field(
        "total_deformation",
        "F",
        (3, 3),
        "",
        "primvars:total_deformation",
        "Ftotal",
        "Deformation gradient, elastic and plastic.",
        rest="identity",
        resampling=_MEAN,
    ),
    Field("weak", "weak", (), "", "primvars:weak", "weak", "1 where the material is torn, else 0.", "int32"),
    Field("plastic_volume_ratio", "Jp", (), "", "primvars:Jp", "Jp", "det of the plastic part.", rest=1.0, resampling=_MEAN),
    Field("stress", "tau", (6,), "Pa", "primvars:stress", "stress", "Kirchhoff stress xx xy xz yy yz zz.", passing=True),
    Field("stiffness_scale", "s", (), "", "primvars:stiffness_scale", "stiffness", "Multiplier of the stiffness.", rest=1.0),
    Field("tear_scale", "s_T", (), "", "primvars:tear_scale", "tearscale", "Multiplier of the tear threshold.", rest=1.0),
    Field("temperature", "T", (), "K", "primvars:temperature", "temperature", "Temperature.", rest=293.15, resampling=_MEAN),
    Field("temperature_gradient", "grad T", (3,), "K/m", doc="Gradient of the temperature.", resampling=_MEAN),
    Field("phase", "phase", (), "", "primvars:phase", "phase", "0 solid, 1 liquid.", "int32"),
    Field(
        "latent_heat_fraction",
        "u_L / L",
        (),
        "",
        "primvars:latent_heat_fraction",
        "latentheatfraction",
        "Share of the latent heat that is taken up: 0 solid, 1 liquid.",
        resampling=_MEAN,
    ),
    Field("freezing_shift", "dT_f", (), "K", doc="Freezing temperature less that of the material.", resampling=_MEAN),
    Field("heat_source", "q", (), "W/m^3", doc="Heat made in a cubic metre of undeformed matter.", resampling=_MEAN),
    Field("heating_rate", "q V / (m c)", (), "K/s", doc="Heating by the heat source.", resampling=_MEAN, passing=True),
    Field(
        "concentration",
        "c",
        (),
        "",
        "primvars:concentration",
        "concentration",
        "Share of a solute such as soap or alcohol: it changes the surface tension.",
        resampling=_MEAN,
    ),
    Field("concentration_gradient", "grad c", (3,), "1/m", doc="Gradient of the concentration.", resampling=_MEAN),
    Field(
        "tension_scale",
        "k / k_0",
        (),
        "",
        "primvars:tension_scale",
        "tensionscale",
        "Factor on the surface tension.",
        rest=1.0,
        resampling=_MEAN,
    ),
    Field(
        "surface_area",
        "A",
        (),
        "m^2",
        doc="Free surface that a particle owns; of a solute times its speed of evaporation.",
        resampling=_KEPT,
        passing=True,
    ),
    Field("surface_flux", "b", (), "W/m^2", doc="Heat that flows in there.", resampling=_MEAN, passing=True),
    Field("heat_capacity", "m c", (), "J/K", doc="Heat capacity.", resampling=_KEPT, passing=True),
    Field("dilation", "J - 1", (), "", doc="Relative change of volume, of any law.", resampling=_MEAN, passing=True),
    Field(
        "elastic_dilation",
        "J_E - 1",
        (),
        "",
        doc="Relative change of volume of the elastic strain.",
        passing=True,
        resampling=_MEAN,
    ),
    Field("compressibility", "1 / lam", (), "1/Pa", doc="Of the matter, for projections; 0: none.", resampling=_MEAN, passing=True),
    Field("volume_per_heat", "V / (m c)", (), "m^3 K/J", doc="Volume over heat capacity.", resampling=_MEAN, passing=True),
    Field("conductivity", "K", (), "W/(m K)", doc="Thermal conductivity.", resampling=_MEAN, passing=True),
    Field("heat_flux", "K grad T", (3,), "W/m^2", doc="Heat that flows to where it is colder, times -1.", passing=True),
    Field("room", "o r", (2,), "", doc="Room in the cells around, and what bodies leave open.", passing=True),
    Field("contact_heat", "a j", (), "W", doc="Heat that goes into bodies through the surface nearby.", passing=True),
)
"""Fields of the particles by name."""

GRID_FIELDS: dict[str, Field] = table(
    Field("mass", "m_i", (), "kg", doc="Mass of a node.", packed=("momentum", 3)),
    Field("momentum", "m_i v_i", (3,), "kg m/s", doc="Momentum of a node.", packed=("momentum", 0)),
    Field("force", "f_i", (3,), "N", doc="Force on a node.", packed=("force", 0)),
    Field("velocity", "v_i", (3,), "m/s", doc="Velocity of a node.", packed=("velocity", 0)),
    Field("position", "x_i", (3,), "m", doc="Position of a node; always known.", saved=False, always_known=True),
    Field("heat", "m c T", (), "J", doc="Heat content of a node, over 0 K.", packed=("heat", 0)),
    Field("heat_capacity", "m c", (), "J/K", doc="Heat capacity of a node.", packed=("heat", 3)),
    Field("volume", "V", (), "m^3", doc="Volume of the matter at a node.", packed=("heat", 1)),
    Field("heat_source", "q V", (), "W", doc="Heat made at a node by the matter's own sources.", packed=("heat", 2)),
    Field("temperature", "T_i", (), "K", doc="Temperature of a node.", packed=("temperature", 0)),
    Field(
        "room",
        "o r",
        (2,),
        "",
        doc="Room in a cell between nodes, and what bodies leave open.",
        shift=(1, 1, 1),
        packed=("room", 0),
    ),
    Field("heat_conducted", "q_i", (), "W", doc="Heat that a node gives to others.", packed=("heat_flow", 0)),
    Field("heat_exchanged", "b_i", (), "W", doc="Heat that a node gives to bodies.", packed=("heat_flow", 3)),
)
"""Fields of the grid's nodes by name."""

MOTION_FIELDS = ("mass", "momentum", "force", "velocity")
"""Those of `GRID_FIELDS` that every grid holds; others are there where a stage of the solve names them."""


def _of_faces(name: str, symbol: str, unit: str, doc: str, array: str, first: int) -> list[Field]:
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


STAGGERED_FIELDS = table(
    Field("heat", "m c T", (), "J", doc="Heat content of a cell, over 0 K.", packed=("heat", 0), shift=(1, 1, 1)),
    Field("heat_capacity", "m c", (), "J/K", doc="Heat capacity of a cell.", packed=("heat", 3), shift=(1, 1, 1)),
    Field("volume", "V", (), "m^3", doc="Volume of the matter in a cell.", packed=("heat", 1), shift=(1, 1, 1)),
    Field(
        "heat_source", "q V", (), "W", doc="Heat made in a cell by the matter's own sources.", packed=("heat", 2), shift=(1, 1, 1)
    ),
    Field("surface_flux", "A b", (), "W", doc="Heat through the surface.", packed=("surface_heat", 0), shift=(1, 1, 1)),
    Field(
        "surface_area",
        "A",
        (),
        "m^2",
        doc="Free surface of a cell; of a solute times its speed of evaporation.",
        packed=("surface_heat", 3),
        shift=(1, 1, 1),
    ),
    Field("temperature", "T", (), "K", doc="Temperature of a cell.", packed=("temperature", 0), shift=(1, 1, 1)),
    *_of_faces("conduction", "V K", "W m^2/K", "Volume times conductivity", "conduction", 0),
    *_of_faces("volume", "V", "m^3", "Volume of the matter", "conduction", 3),
    Field("dilation", "m (J - 1)", (), "kg", doc="Mass times relative change of volume.", packed=("cell", 0), shift=(1, 1, 1)),
    Field(
        "elastic_dilation",
        "m (J_E - 1)",
        (),
        "kg",
        doc="Mass times relative change of volume of the elastic strain.",
        packed=("cell", 1),
        shift=(1, 1, 1),
    ),
    Field("compressibility", "m / lam", (), "kg/Pa", doc="Mass times compressibility.", packed=("cell", 2), shift=(1, 1, 1)),
    Field("mass", "m_c", (), "kg", doc="Mass of a cell.", packed=("cell", 3), shift=(1, 1, 1)),
    Field("pressure", "p", (), "Pa", doc="Pressure of a cell.", packed=("pressure", 0), shift=(1, 1, 1)),
    Field(
        "filling",
        "f / o",
        (),
        "",
        doc="What undeformed matter takes of the room in a cell of liquids; 0 in others.",
        packed=("pressure", 1),
        shift=(1, 1, 1),
    ),
    *_of_faces("momentum", "m v", "kg m/s", "Momentum along their axis", "face", 0),
    *_of_faces("mass", "m_f", "kg", "Mass", "face", 3),
    *_of_faces("force", "f", "N", "Force along their axis", "force", 0),
    *_of_faces("rest_volume", "V_0", "m^3", "Undeformed volume of the matter", "force", 3),
    *_of_faces("velocity", "v", "m/s", "Velocity along their axis", "velocity", 0),
)
"""Fields of the staggered grid by name."""

SAMPLE_FIELDS = table(
    *(ATTRIBUTES[name] for name in ("position", "velocity", "affine", "mass")),
    Field("normal", "n", (3,), "", doc="Outward unit normal; void at balance points."),
    Field("area", "|dA|", (), "m^2", doc="Area that the sample stands for; 0 at balance points."),
    Field("owner", "p", (), "", doc="Nearest particle, by its place in memory.", kind="int32", structural=True),
    Field("owner_mass", "m_p", (), "kg", doc="Mass of the owner before its mass was shared."),
    Field("covered", "w", (), "", doc="How far other matter is behind the sample: 0 air, 1 an interface between liquids."),
    Field("interface", "k_ab / 2", (), "N/m", doc="Surface energy density that this side of an interface bears."),
    Field("tension", "k", (), "N/m", doc="Surface energy density."),
    Field("pull", "-grad k_SL", (3,), "N/m^2", doc="Force per area of a body whose wetting varies over its surface."),
    Field("pinning", "k_p", (), "N/m", doc="Force per length that holds the edge of a wetted area in its place."),
    Field("footing", "v_b", (3,), "m/s", doc="Velocity of the body that a wetted sample touches."),
)
"""Fields of the surface samples by name."""
