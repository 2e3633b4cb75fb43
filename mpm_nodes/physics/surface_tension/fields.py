"""Fields that surface tension adds."""

from mpm_nodes.data import ATTRIBUTES, Field, Resampling

FIELDS = {
    "particles": (
        Field(
            "concentration_gradient", "grad c", (3,), "1/m", doc="Gradient of the concentration.", resampling=Resampling.AVERAGED
        ),
    ),
    "samples": (
        *(ATTRIBUTES[name] for name in ("position", "velocity", "affine", "mass")),
        Field("normal", "n", (3,), doc="Outward unit normal; void at balance points."),
        Field("area", "|dA|", (), "m^2", doc="Area that the sample stands for; 0 at balance points."),
        Field("owner", "p", doc="Nearest particle, by its place in memory.", kind="int32", structural=True),
        Field("owner_mass", "m_p", (), "kg", doc="Mass of the owner before its mass was shared."),
        Field("covered", "w", doc="How far other matter is behind the sample: 0 air, 1 an interface between liquids."),
        Field("interface", "k_ab / 2", (), "N/m", doc="Surface energy density that this side of an interface bears."),
        Field("tension", "k", (), "N/m", doc="Surface energy density."),
        Field("pull", "-grad k_SL", (3,), "N/m^2", doc="Force per area of a body whose wetting varies over its surface."),
        Field("pinning", "k_p", (), "N/m", doc="Force per length that holds the edge of a wetted area in its place."),
        Field("footing", "v_b", (3,), "m/s", doc="Velocity of the body that a wetted sample touches."),
    ),
}
"""By domain."""
