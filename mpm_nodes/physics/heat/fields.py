"""Fields that heat adds."""

from mpm_nodes.data import UNLIMITED, Field, Resampling, fields_of_faces

_CELL, _MEAN, _KEPT = (1, 1, 1), Resampling.AVERAGED, Resampling.CONSERVED

FIELDS = {
    "particles": (
        Field("temperature_gradient", "grad T", (3,), "K/m", doc="Gradient of the temperature.", resampling=_MEAN),
        Field(
            "latent_heat_fraction", "u_L / L", doc="Share of the latent heat that is taken up: 0 solid, 1 liquid.", resampling=_MEAN
        ),
        Field(
            "freezing_shift",
            "dT_f",
            (),
            "K",
            doc="Freezing temperature less that of the material.",
            resampling=_MEAN,
            limits=UNLIMITED,
            initial=True,
        ),
        Field("heating_rate", "q V / (m c)", (), "K/s", doc="Heating by the heat source.", resampling=_MEAN, passing=True),
        Field("heat_capacity", "m c", (), "J/K", doc="Heat capacity.", resampling=_KEPT, passing=True),
        Field("volume_per_heat", "V / (m c)", (), "m^3 K/J", doc="Volume over heat capacity.", resampling=_MEAN, passing=True),
        Field("conductivity", "K", (), "W/(m K)", doc="Thermal conductivity.", resampling=_MEAN, passing=True),
        Field("heat_flux", "K grad T", (3,), "W/m^2", doc="Heat that flows to where it is colder, times -1.", passing=True),
        Field("contact_heat", "a j", (), "W", doc="Heat that goes into bodies through the surface nearby.", passing=True),
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
    ),
    "grid": (
        Field("heat", "m c T", (), "J", doc="Heat content of a node, over 0 K.", packed=("heat", 0)),
        Field("heat_capacity", "m c", (), "J/K", doc="Heat capacity of a node.", packed=("heat", 3)),
        Field("volume", "V", (), "m^3", doc="Volume of the matter at a node.", packed=("heat", 1)),
        Field("heat_source", "q V", (), "W", doc="Heat made at a node by the matter's own sources.", packed=("heat", 2)),
        Field("temperature", "T_i", (), "K", doc="Temperature of a node.", packed=("temperature", 0)),
        Field("heat_conducted", "q_i", (), "W", doc="Heat that a node gives to others.", packed=("heat_flow", 0)),
        Field("heat_exchanged", "b_i", (), "W", doc="Heat that a node gives to bodies.", packed=("heat_flow", 3)),
    ),
    "staggered": (
        Field("heat", "m c T", (), "J", doc="Heat content of a cell, over 0 K.", packed=("heat", 0), shift=_CELL),
        Field("heat_capacity", "m c", (), "J/K", doc="Heat capacity of a cell.", packed=("heat", 3), shift=_CELL),
        Field("volume", "V", (), "m^3", doc="Volume of the matter in a cell.", packed=("heat", 1), shift=_CELL),
        Field(
            "heat_source", "q V", (), "W", doc="Heat made in a cell by the matter's own sources.", packed=("heat", 2), shift=_CELL
        ),
        Field("surface_flux", "A b", (), "W", doc="Heat through the surface.", packed=("surface_heat", 0), shift=_CELL),
        Field(
            "surface_area",
            "A",
            (),
            "m^2",
            doc="Free surface of a cell; of a solute times its speed of evaporation.",
            packed=("surface_heat", 3),
            shift=_CELL,
        ),
        Field("temperature", "T", (), "K", doc="Temperature of a cell.", packed=("temperature", 0), shift=_CELL),
        *fields_of_faces("conduction", "V K", "W m^2/K", "Volume times conductivity", "conduction", 0),
        *fields_of_faces("volume", "V", "m^3", "Volume of the matter", "conduction", 3),
    ),
}
"""By domain."""
