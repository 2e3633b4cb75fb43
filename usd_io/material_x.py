"""Materials in MaterialX: a `standard_surface` beside the preview surface, with what reads the attributes of the matter.

Nodes are named by the definitions of MaterialX 1.38 and 1.39 (`info:id` = `ND_...`). A black body's colour comes from `blackbody`,
which renderers scale differently; it is brought to luminance 1 here and multiplied by exp(a - b / T) T^c, T in kelvin, over the
luminance that is shown as white.
"""

from __future__ import annotations

from typing import Any

from pxr import Gf, Sdf, UsdShade

from mpm_nodes.materials.black_body import LUMINANCE_FIT, WHITE
from mpm_nodes.materials.looks import Look

__all__ = ["add_standard_surface"]

_FLOAT, _COLOUR, _STRING = Sdf.ValueTypeNames.Float, Sdf.ValueTypeNames.Color3f, Sdf.ValueTypeNames.String
_LUMA = (0.2126, 0.7152, 0.0722)
"""Of linear Rec. 709, the colour space of the looks."""
_DARKEST = 1e-12
"""Luminance of a colour that a division can take."""
ROOM = 293.15
"""Temperature of matter that carries none [K]."""


def add_standard_surface(material: UsdShade.Material, look: Look, colour: str = "") -> None:
    """Give a material the output `mtlx:surface`, fed by a `standard_surface`.

    Args:
        material: Where.
        look: What it shows.
        colour: Name of the primvar that is shown in place of the look's colour; empty: none.
    """
    graph = _Nodes(material)
    surface = graph.node("shader", "standard_surface_surfaceshader")
    base: Any = look.colour
    if colour:
        base = graph.add("colour", "geompropvalue_color3", _COLOUR, geomprop=(_STRING, colour), default=(_COLOUR, look.colour))
    graph.feed(surface, "base", _FLOAT, 1.0)
    graph.feed(surface, "base_color", _COLOUR, base)
    graph.feed(surface, "specular_roughness", _FLOAT, look.roughness)
    graph.feed(surface, "specular_IOR", _FLOAT, look.refraction)
    graph.feed(surface, "metalness", _FLOAT, look.metallic)
    if look.coat:
        graph.feed(surface, "coat", _FLOAT, look.coat)
    if look.subsurface:
        graph.feed(surface, "subsurface", _FLOAT, look.subsurface)
        graph.feed(surface, "subsurface_color", _COLOUR, base)
        graph.feed(surface, "subsurface_radius", _COLOUR, (1.0, 0.85, 0.7))
        graph.feed(surface, "subsurface_scale", _FLOAT, look.depth)
    if look.clear:
        graph.feed(surface, "transmission", _FLOAT, look.clear)
        graph.feed(surface, "transmission_color", _COLOUR, base if colour else look.tint)
        graph.feed(surface, "transmission_depth", _FLOAT, look.depth)
    if look.glows:
        _glow(graph, surface)
    output = surface.CreateOutput("out", Sdf.ValueTypeNames.Token)
    material.CreateSurfaceOutput("mtlx").ConnectToSource(output)


def _glow(graph: _Nodes, surface: UsdShade.Shader) -> None:
    """Let a surface emit what a black body of the primvar `temperature` does."""
    read = graph.add("temperature", "geompropvalue_float", _FLOAT, geomprop=(_STRING, "temperature"), default=(_FLOAT, ROOM))
    warm = graph.binary("warm", "max", read, 1.0)
    hue = graph.add("hue", "blackbody", _COLOUR, temperature=(_FLOAT, warm))
    grey = graph.add("grey", "luminance_color3", _COLOUR, **{"in": (_COLOUR, hue), "lumacoeffs": (_COLOUR, _LUMA)})
    luminance = graph.add("luminance", "extract_color3", _FLOAT, **{"in": (_COLOUR, grey), "index": (Sdf.ValueTypeNames.Int, 0)})
    unit = graph.binary("unit", "divide", hue, graph.binary("some", "max", luminance, _DARKEST), _COLOUR)
    a, b, c = LUMINANCE_FIT
    exponent = graph.binary("exponent", "subtract", a, graph.binary("ratio", "divide", b, warm))
    planck = graph.add("planck", "exp_float", _FLOAT, **{"in": (_FLOAT, exponent)})
    power = graph.binary("power", "power", warm, c)
    strength = graph.binary("strength", "divide", graph.binary("candela", "multiply", planck, power), WHITE)
    graph.feed(surface, "emission", _FLOAT, strength)
    graph.feed(surface, "emission_color", _COLOUR, unit)


class _Nodes:
    """Nodes of one material's network, whose names begin with that of the material: Blender wants every name once."""

    def __init__(self, material: UsdShade.Material) -> None:
        self.stage, self.path = material.GetPrim().GetStage(), material.GetPath()

    def node(self, name: str, kind: str) -> UsdShade.Shader:
        """Define a node."""
        shader = UsdShade.Shader.Define(self.stage, self.path.AppendChild(f"{self.path.name}_mtlx_{name}"))
        shader.CreateIdAttr(f"ND_{kind}")
        return shader

    def feed(self, shader: UsdShade.Shader, name: str, kind: Any, value: Any) -> None:
        """Give an input a value, or the output of another node."""
        knob = shader.CreateInput(name, kind)
        if isinstance(value, UsdShade.Output):
            knob.ConnectToSource(value)
        else:
            knob.Set(Gf.Vec3f(*value) if isinstance(value, tuple) else value)

    def add(self, name: str, node: str, result: Any, **inputs: tuple[Any, Any]) -> UsdShade.Output:
        """Define a node whose inputs are given as (type, value or output), and return its output."""
        shader = self.node(name, node)
        for knob, (kind, value) in inputs.items():
            self.feed(shader, knob, kind, value)
        return shader.CreateOutput("out", result)

    def binary(self, name: str, operation: str, first: Any, second: Any, result: Any = _FLOAT) -> UsdShade.Output:
        """Define a node of two numbers, or of a colour and a number."""
        kind = "float" if result is _FLOAT else "color3FA"
        return self.add(name, f"{operation}_{kind}", result, in1=(result, first), in2=(_FLOAT, second))
