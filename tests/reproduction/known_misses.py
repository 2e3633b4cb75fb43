"""Figures that are known to miss what they must show, by sample: its page in samples/ says why. Only others make a run fail."""

from __future__ import annotations

KNOWN_MISSES: dict[str, tuple[str, ...]] = {
    "threads": (
        "mass removed from the column on the right [%]",
        "right: the same [cells]",
    ),
    "marshmallow_on_plate": ("inside open to the side at the end [% of the side]",),
    "wax": (
        "molten without latent heat [%]",
        "molten with 15 kJ/kg [%]",
        "molten with 45 kJ/kg [%]",
        "molten with 135 kJ/kg [%]",
    ),
    "lava": (
        "coldest particle at the end [K]",
        "front at the end, along the slope [m]",
    ),
    "caramel": (
        "hottest particle at the end [K]",
        "coldest particle at the end [K]",
        "highest particle at the end [m]",
    ),
    "ellipse": ("its way of the centre, over R",),
    "drop_impacts": ("time on the floor with k = 20, over that of a bouncing drop",),
    "drops_on_ramps": ("way down with ratio 0.3, over that with 0.05",),
    "heated_cavity": (
        "angular momentum that way, over sum m r v",
        "liquid above its surface at rest by more than two cells [%]",
    ),
    "drops_on_plates": (
        "angle on wax [degrees]",
        "angle on soot [degrees]",
    ),
    "soap_on_water": ("sideways momentum, over sum m v",),
    "candles": (
        "enthalpy that is missing, over that heat or all latent heat",
        "solid of the lowest 0.1 m of the candles then, least of four [%]",
    ),
    "candle_letters": ("enthalpy that is missing, over that heat or all latent heat",),
    "tears_of_wine": (
        "tears at the lower edge, at most",
        "highest wine of the pool over its level, at most [cells]",
    ),
    "honey": (
        "enthalpy that is missing, over that heat or all latent heat",
        "that, over sqrt(Q / (pi v))",
        "turns of the foot of the warm thread",
        "their rate, over (g Q^3 / nu a^8)^(1/4)",
    ),
    "floating_bodies": tuple(f"share of the {name} below the level at the end" for name in ("cork", "wood", "ice")),
}
