"""Fields that the projection adds."""

from mpm_nodes.data import Field, Resampling, fields_of_faces

_CELL, _MEAN = (1, 1, 1), Resampling.AVERAGED

FIELDS = {
    "particles": (
        Field(
            "firm",
            "s",
            doc="1 for what keeps its shape, 0 for liquids: where these slip on the others each has velocities of its own.",
            kind="int32",
            structural=True,
        ),
        Field("dilation", "J - 1", doc="Relative change of volume, of any law.", resampling=_MEAN, passing=True),
        Field(
            "elastic_dilation", "J_E - 1", doc="Relative change of volume of the elastic strain.", resampling=_MEAN, passing=True
        ),
        Field(
            "compressibility", "1 / lam", (), "1/Pa", doc="Of the matter, for projections; 0: none.", resampling=_MEAN, passing=True
        ),
    ),
    "staggered": (
        Field("dilation", "m (J - 1)", (), "kg", doc="Mass times relative change of volume.", packed=("cell", 0), shift=_CELL),
        Field(
            "elastic_dilation",
            "m (J_E - 1)",
            (),
            "kg",
            doc="Mass times relative change of volume of the elastic strain.",
            packed=("cell", 1),
            shift=_CELL,
        ),
        Field("compressibility", "m / lam", (), "kg/Pa", doc="Mass times compressibility.", packed=("cell", 2), shift=_CELL),
        Field("mass", "m_c", (), "kg", doc="Mass of a cell.", packed=("cell", 3), shift=_CELL),
        Field("pressure", "p", (), "Pa", doc="Pressure of a cell.", packed=("pressure", 0), shift=_CELL),
        Field(
            "filling",
            "f / o",
            doc="What undeformed matter takes of the room in a cell of liquids; 0 in others.",
            packed=("pressure", 1),
            shift=_CELL,
        ),
        *fields_of_faces("momentum", "m v", "kg m/s", "Momentum along their axis", "face", 0),
        *fields_of_faces("mass", "m_f", "kg", "Mass", "face", 3),
        *fields_of_faces("force", "f", "N", "Force along their axis", "force", 0),
        *fields_of_faces("rest_volume", "V_0", "m^3", "Undeformed volume of the matter", "force", 3),
        *fields_of_faces("velocity", "v", "m/s", "Velocity along their axis", "velocity", 0),
    ),
}
"""By domain."""
