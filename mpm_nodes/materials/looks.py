"""Looks: what renderers are told of a material's surface, one for every entry of the library.

Colours are linear Rec. 709. Lengths are metres of the matter. Numbers are chosen by eye, by photographs; indices of refraction are
textbook values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpm_nodes.data import Material, MpmNodesError
from mpm_nodes.materials.library import LIBRARY

__all__ = ["LOOKS", "Look", "find_look", "look_of", "looks_of"]

Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Look:
    """A surface as renderers shade it.

    Attributes:
        colour: Of diffuse reflection, of metals that of the reflection; shown where matter has no `displayColor`.
        roughness: Of the reflection.
        metallic: 1 for metals.
        subsurface: Share of the diffuse light that travels inside.
        depth: How far light travels inside until 1/e of it is left [m]: under the surface, or through clear matter.
        clear: Share of the light that goes through; 1 is clear as glass.
        tint: Colour of what goes through matter of that depth.
        refraction: Index of refraction.
        opacity: What renderers show that have no refraction.
        glows: Whether it glows as a black body, by `temperature`.
        pattern: What Cycles draws in `colour` and `second`: "checker", "grain" of wood, "veins" of marble, "crumbs", or
            "pores", which are as large as `grain` and darker than the matter; empty: none.
            The built-in renderer draws a checked floor; for the rest, as all other renderers, it shows `colour`.
        second: Second colour of the pattern.
        coat: Share of a clear coat, as of glaze or varnish.
        grain: Size of the unevenness that Cycles shows on it [m], which sticks to matter by its `rest`; 0: it is smooth.
    """

    colour: Colour
    roughness: float = 0.45
    metallic: float = 0.0
    subsurface: float = 0.0
    depth: float = 0.01
    clear: float = 0.0
    tint: Colour = (1.0, 1.0, 1.0)
    refraction: float = 1.5
    opacity: float = 1.0
    glows: bool = False
    pattern: str = ""
    second: Colour = (0.0, 0.0, 0.0)
    coat: float = 0.0
    grain: float = 0.0


LOOKS: dict[str, Look] = {
    "matter": Look((0.9, 0.62, 0.2)),
    "matte": Look((0.8, 0.8, 0.8), 0.9),
    "snow": Look((0.84, 0.86, 0.88), 0.65, subsurface=0.4, depth=0.008, refraction=1.31, grain=0.004),
    "foam": Look((0.84, 0.84, 0.83), 0.55, subsurface=0.6, depth=0.004, refraction=1.33, grain=0.0012),
    "marshmallow": Look((0.84, 0.80, 0.75), 0.6, subsurface=0.6, depth=0.006, grain=0.004),
    "toasted": Look((0.50, 0.26, 0.10), 0.6, subsurface=0.25, depth=0.002, grain=0.002),
    "cheese": Look((0.86, 0.50, 0.10), 0.35, subsurface=0.4, depth=0.004, refraction=1.45),
    "cream": Look((0.84, 0.78, 0.62), 0.4, subsurface=0.5, depth=0.003, refraction=1.4),
    "paste": Look((0.62, 0.80, 0.80), 0.3, subsurface=0.3, depth=0.002),
    "crust": Look((0.52, 0.30, 0.12), 0.7, grain=0.002),
    "sponge": Look((0.82, 0.56, 0.12), 0.9, pattern="pores", grain=0.004),
    "chocolate": Look((0.10, 0.035, 0.015), 0.3, subsurface=0.1, depth=0.001, coat=0.2),
    "rubber": Look((0.45, 0.05, 0.04), 0.5),
    "wax": Look((0.82, 0.72, 0.52), 0.35, subsurface=0.7, depth=0.006, refraction=1.44),
    "jelly": Look((0.60, 0.06, 0.05), 0.12, clear=0.75, tint=(0.75, 0.08, 0.06), depth=0.03, refraction=1.36, opacity=0.75),
    "syrup": Look((0.62, 0.26, 0.03), 0.08, clear=0.9, tint=(0.82, 0.42, 0.06), depth=0.02, refraction=1.49, opacity=0.75),
    "water": Look((0.30, 0.48, 0.56), 0.02, clear=1.0, tint=(0.86, 0.95, 0.97), depth=2.0, refraction=1.333, opacity=0.35),
    "wine": Look((0.36, 0.03, 0.06), 0.02, clear=0.95, tint=(0.85, 0.25, 0.30), depth=0.02, refraction=1.34, opacity=0.75),
    "lava": Look((0.035, 0.03, 0.028), 0.8, glows=True, grain=0.06),
    "metal": Look((0.56, 0.57, 0.58), 0.25, metallic=1.0),
    "wood": Look((0.36, 0.20, 0.10), 0.45, pattern="grain", second=(0.20, 0.10, 0.045), coat=0.3),
    "ceramic": Look((0.78, 0.77, 0.74), 0.12, coat=0.6),
    "steel": Look((0.50, 0.51, 0.53), 0.3, metallic=1.0),
    "glass": Look((0.80, 0.86, 0.86), 0.02, clear=1.0, tint=(0.95, 0.98, 0.97), depth=0.1, refraction=1.5, opacity=0.3),
    "marble": Look((0.74, 0.73, 0.71), 0.18, pattern="veins", second=(0.30, 0.31, 0.33), coat=0.4),
    "cracker": Look((0.62, 0.38, 0.15), 0.8, pattern="crumbs", second=(0.40, 0.20, 0.06), grain=0.002),
    "checker": Look((0.60, 0.61, 0.62), 0.6, pattern="checker", second=(0.26, 0.27, 0.29)),
    "collider": Look((0.32, 0.34, 0.38), 0.7),
    "floor": Look((0.50, 0.51, 0.52), 0.9),
    "caramel": Look(
        (0.50, 0.20, 0.035), 0.12, subsurface=0.3, depth=0.004, clear=0.35, tint=(0.80, 0.36, 0.06), refraction=1.49, coat=0.5
    ),
    "butter": Look((0.84, 0.68, 0.26), 0.35, subsurface=0.4, depth=0.003, refraction=1.46),
    "dough": Look((0.74, 0.62, 0.42), 0.6, subsurface=0.35, depth=0.003, grain=0.004),
    "jam": Look((0.36, 0.02, 0.03), 0.1, subsurface=0.2, depth=0.004, clear=0.45, tint=(0.65, 0.04, 0.05), refraction=1.42),
    "slime": Look((0.16, 0.55, 0.08), 0.1, subsurface=0.3, depth=0.01, clear=0.4, tint=(0.30, 0.80, 0.15), refraction=1.36),
    "sand": Look((0.60, 0.43, 0.22), 0.95, pattern="crumbs", second=(0.44, 0.29, 0.13)),
    "wet_sand": Look((0.30, 0.20, 0.10), 0.75, pattern="crumbs", second=(0.22, 0.14, 0.07)),
    "soil": Look((0.10, 0.055, 0.03), 0.95, pattern="crumbs", second=(0.05, 0.028, 0.015)),
    "mud": Look((0.15, 0.09, 0.05), 0.25),
    "clay": Look((0.42, 0.17, 0.09), 0.65, grain=0.003),
    "foam_rubber": Look((0.85, 0.72, 0.22), 0.95, pattern="crumbs", second=(0.78, 0.63, 0.16)),
    "melted_butter": Look(
        (0.86, 0.62, 0.15), 0.06, subsurface=0.25, depth=0.004, clear=0.65, tint=(0.97, 0.80, 0.28), refraction=1.46, coat=0.5
    ),
}
"""Looks by name."""
OF_LAW = {"snow": "snow", "liquid": "water"}
"""Looks of matter that is not of the library and whose label names none, by its law."""
OTHERS = "matter"


def find_look(name: str) -> Look:
    """Return a look by name.

    Raises:
        MpmNodesError: There is none of that name.
    """
    if name not in LOOKS:
        raise MpmNodesError(f"look {name!r}: there is none; choose one of {', '.join(LOOKS)}")
    return LOOKS[name]


def look_of(material: Material) -> str:
    """Return the name of a material's look: its own, that of its entry in the library, one that its label ends in, or its law's.

    So "melted cheese" looks like cheese, and "shaving cream" like foam.
    """
    label = material.label.lower()
    by_label = {entry.label.lower(): entry.look for entry in LIBRARY.values()}
    last = label.split()[-1:]
    named = last[0] if last and last[0] in LOOKS else OF_LAW.get(material.law, OTHERS)
    return material.look or by_label.get(label, named)


def looks_of(materials: Sequence[Material]) -> tuple[str, ...]:
    """Return the names of the looks of several materials, in their order."""
    return tuple(look_of(material) for material in materials)
