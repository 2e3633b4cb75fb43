"""Forces of Houdini in the stand-in: nodes of DOP networks with the labels and menus that SideFX's pages of them give.

The pages are https://www.sidefx.com/docs/houdini/nodes/dop/ with the node's type and .html. Names of parameters stand on no page;
they are made of the labels here, and nothing may rest on them.
"""

from __future__ import annotations

from fake_hou_parms import NodeType

from tests.houdini_assets.dialog_script import ParsedDialog, ParsedParm

_POP = [("Activation", "float", 1.0), ("Group", "string", "")]
_NOISE = [
    ("Noise", "group", ""),
    ("Amplitude", "float", 0.0),
    ("Swirl Size", "float", 1.0),
    ("Swirl Scale", "vector", (1.0, 1.0, 1.0)),
    ("Pulse Length", "float", 1.0),
    ("Roughness", "float", 0.5),
    ("Attenuation", "float", 1.0),
    ("Turbulence", "integer", 3),
]
LABELS = {
    "popforce": [*_POP, ("Force", "group", ""), ("Force", "vector", (0.0, 0.0, 0.0)), ("Ignore Mass", "toggle", 0), *_NOISE],
    "popwind::2.0": [
        *_POP,
        ("Wind Velocity", "vector", (0.0, 0.0, 0.0)),
        ("Wind Speed", "float", 1.0),
        ("Air Resistance", "float", 1.0),
        ("Use VEXpressions", "toggle", 0),
        *_NOISE,
    ],
    "popdrag": [*_POP, ("Wind Velocity", "vector", (0.0, 0.0, 0.0)), ("Air Resistance", "float", 1.0)],
    "popfan": [*_POP, ("Position", "vector", (0.0, 0.0, 0.0)), ("Cone Angle", "float", 45.0)],
    "popaxisforce": [
        *_POP,
        ("Type", "ordinal", ("Sphere", "Torus")),
        ("Center", "vector", (0.0, 0.0, 0.0)),
        ("Axis Direction", "vector", (0.0, 1.0, 0.0)),
        ("Radius", "float", 1.0),
        ("Height", "float", 1.0),
        ("Orbit Speed", "float", 1.0),
        ("Lift Speed", "float", 0.0),
        ("Suction Speed", "float", 0.0),
        ("Soft Edge", "float", 0.25),
        ("Inner Strength", "float", 1.0),
        ("Outer Strength", "float", 0.0),
        ("Treat as Wind", "toggle", 0),
        ("Air Resistance", "float", 1.0),
    ],
    "popattract": [
        *_POP,
        ("Attraction Type", "ordinal", ("Position", "Particles", "Points", "Surface Points")),
        ("Goal", "vector", (0.0, 0.0, 0.0)),
        ("Force Scale", "float", 1.0),
    ],
    "gravity": [("Force", "vector", (0.0, -9.81, 0.0)), ("Force", "ordinal", ("Use Default", "Set Always"))],
    "uniformforce": [("Force", "vector", (0.0, 0.0, 0.0)), ("Torque", "vector", (0.0, 0.0, 0.0))],
    "drag": [
        ("Ignore Mass", "toggle", 0),
        ("Goal Velocity", "vector", (0.0, 0.0, 0.0)),
        ("Scale Force", "float", 1.0),
        ("Scale Torque", "float", 1.0),
    ],
    "popsolver::2.0": [("Use Implicit Drag", "toggle", 1), ("Drag Exponent", "float", 2.0)],
    "popfireworks": [*_POP],
    "dopnet": [],
}
"""Label, kind and default, or the labels of a menu, by type."""


def dop_types() -> dict[str, NodeType]:
    """Return the node types by name."""
    found = {}
    for name, rows in LABELS.items():
        parms = [_parm(number, *row) for number, row in enumerate(rows)]
        found[name] = NodeType(name, ParsedDialog(parms=parms), 4)
    return found


def _parm(number: int, label: str, kind: str, default: object) -> ParsedParm:
    name = f"p{number}_{label.lower().replace(' ', '_')}"
    if kind == "ordinal":
        menu = [(each.lower().replace(" ", ""), each) for each in default]
        return ParsedParm(name, label, kind, defaults=[("0", "")], menu=menu)
    if kind == "vector":
        return ParsedParm(name, label, kind, size=3, defaults=[(str(each), "") for each in default])
    return ParsedParm(name, label, kind, defaults=[(str(default), "")])
