"""Parameters, keys and node types of the stand-in for Houdini; `fake_hou` has the nodes.

Names and signatures are those of the public HOM reference for Houdini 20.5; what is not here raises, as a wrong name would there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.houdini_assets.check import component_names
from tests.houdini_assets.dialog_script import ParsedDialog, ParsedParm


class Error(Exception):
    def instanceMessage(self) -> str:
        return str(self.args[0]) if self.args else ""


class OperationFailed(Error): ...


class OperationInterrupted(Error): ...


class PermissionError(Error): ...


class GeometryPermissionError(Error): ...


class KeyframeValueNotSet(Error): ...


class InvalidInput(Error): ...


class NodeError(Error): ...


class NodeWarning(Error): ...


class attribType:
    Point = "attribType.Point"


class primType:
    Volume = "Volume"


class exprLanguage:
    Hscript = "exprLanguage.Hscript"
    Python = "exprLanguage.Python"


class parmTemplateType:
    Float, Int, Menu, String, Toggle, Other = "Float", "Int", "Menu", "String", "Toggle", "another"


class severityType:
    Message, ImportantMessage, Warning, Error, Fatal = "message", "important", "warning", "error", "fatal"


class Vector2:
    def __init__(self, values: Any = (0.0, 0.0)) -> None:
        self._values = tuple(float(value) for value in values)

    def __getitem__(self, index: int) -> float:
        return self._values[index]

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return 2


class rampBasis:
    Constant, Linear, CatmullRom, MonotoneCubic, Bezier = "Constant", "Linear", "CatmullRom", "MonotoneCubic", "Bezier"


class Ramp:
    """Points of a float ramp; positions lie between 0 and 1."""

    def __init__(self, basis: Any, keys: Any, values: Any) -> None:
        assert len(basis) == len(keys) == len(values) and all(0.0 <= key <= 1.0 for key in keys)
        order = sorted(range(len(keys)), key=lambda k: keys[k])
        self._basis, self._keys, self._values = (tuple(each[k] for k in order) for each in (basis, keys, values))

    def basis(self) -> tuple[str, ...]:
        return self._basis

    def keys(self) -> tuple[float, ...]:
        return self._keys

    def values(self) -> tuple[float, ...]:
        return self._values

    def lookup(self, position: float) -> float:
        after = next((k for k, key in enumerate(self._keys) if key > position), len(self._keys))
        if after in (0, len(self._keys)):
            return self._values[min(after, len(self._keys) - 1)]
        (a, b), (u, v) = self._keys[after - 1 : after + 1], self._values[after - 1 : after + 1]
        s = (position - a) / (b - a)
        s = {"Constant": 0.0, "Linear": s}.get(self._basis[after - 1], s * s * (3 - 2 * s))
        return u + (v - u) * s


class Color:
    def __init__(self, rgb: tuple[float, float, float]) -> None:
        assert isinstance(rgb, tuple) and len(rgb) == 3, "hou.Color takes one tuple"
        self._rgb = rgb

    def rgb(self) -> tuple[float, float, float]:
        return self._rgb


class Keyframe:
    def __init__(self) -> None:
        self._facts: dict[str, Any] = {}

    def _get(self, name: str) -> Any:
        if name not in self._facts:
            raise KeyframeValueNotSet(name)
        return self._facts[name]

    def setFrame(self, frame: float) -> None:
        self._facts["frame"] = float(frame)

    def frame(self) -> float:
        return self._get("frame")

    def setValue(self, value: float) -> None:
        self._facts["value"] = float(value)

    def value(self) -> float:
        return self._get("value")

    def isValueSet(self) -> bool:
        return "value" in self._facts

    def setSlope(self, slope: float) -> None:
        self._facts["slope"] = float(slope)

    def slope(self) -> float:
        return self._get("slope")

    def isSlopeSet(self) -> bool:
        return "slope" in self._facts

    def isSlopeTied(self) -> bool:
        return True

    def inSlope(self) -> float:
        raise KeyframeValueNotSet("inSlope")

    def setExpression(self, expression: str, language: Any = None) -> None:
        assert language in (None, exprLanguage.Hscript, exprLanguage.Python)
        self._facts["expression"] = expression

    def expression(self) -> str:
        return self._get("expression")

    def isExpressionSet(self) -> bool:
        return "expression" in self._facts


class Parm:
    """One component; the node gives variables and says whether it is being cooked."""

    def __init__(self, node: Any, declared: ParsedParm, name: str, index: int) -> None:
        self._node, self._declared, self._name = node, declared, name
        self._keys: list[Keyframe] = []
        text, language = declared.defaults[index] if index < len(declared.defaults) else ("", "")
        self._value: Any = self._typed(text)
        if language:
            key = Keyframe()
            key.setFrame(1)
            key.setExpression(text)
            self._keys = [key]

    def _typed(self, value: Any) -> Any:
        kind = self._declared.type
        if kind == "ramp_flt":
            if isinstance(value, Ramp):
                return value
            words = re.findall(r"\( (\S+) \)", self._declared.tags["rampfloatdefault"])
            assert len(words) == 3 * int(value) and {*words[2::3]} == {"linear"}
            return Ramp([rampBasis.Linear] * int(value), [*map(float, words[::3])], [*map(float, words[1::3])])
        if kind == "ordinal":
            tokens = [token for token, _ in self._declared.menu or ()]
            if isinstance(value, str) and not value.isdigit() and value not in tokens:
                raise OperationFailed(f"{self._name}: {value} is not in its menu")
            return tokens.index(value) if value in tokens else int(value)
        if kind in ("string", "file", "directory", "label", "oppath"):
            return str(value)
        if kind in ("toggle", "integer", "intlog", "button", "multiparm"):
            return int(value or 0) if not str(value).startswith("$") else 0
        return float(value or 0) if not str(value).startswith("$") else 0.0

    def name(self) -> str:
        return self._name

    def set(self, value: Any, language: Any = None, follow_parm_reference: bool = True) -> None:
        if self._node._houdini.cooking:
            raise PermissionError("parameters cannot be set while a node cooks")
        if self._keys:
            raise PermissionError(f"{self._name} is animated; its keys must go first")
        self._value = self._typed(value)
        self._node._set_dirty()
        if self._declared.type == "multiparm":
            self._node._make_instances(self._name, self._value)

    def eval(self) -> Any:
        return self.evalAtFrame(self._node._houdini.current_frame)

    def evalAtFrame(self, frame: float) -> Any:
        if self._keys:
            return self._typed(self._curve(frame))
        if isinstance(self._value, str):
            return self._node._houdini.expand(self._value, self._node, frame)
        return self._value

    def evalAsString(self) -> str:
        value = self.eval()
        return self._declared.menu[value][0] if self._declared.type == "ordinal" else str(value)

    def menuItems(self) -> tuple[str, ...]:
        return tuple(token for token, _ in self._declared.menu or ())

    def menuLabels(self) -> tuple[str, ...]:
        return tuple(label for _, label in self._declared.menu or ())

    def unexpandedString(self) -> str:
        if not isinstance(self._value, str) or self._keys:
            raise OperationFailed("not a string parameter without keys")
        return self._value

    def _curve(self, frame: float) -> float:
        before = [key for key in self._keys if key.frame() <= frame] or self._keys[:1]
        key = before[-1]
        after = self._keys[self._keys.index(key) + 1 :]
        function = key.expression()
        if not function.endswith("()"):
            return self._node._houdini.expression(function, frame)
        if not after or function == "constant()" or frame <= key.frame():
            return key.value()
        s = (frame - key.frame()) / (after[0].frame() - key.frame())
        s = {"linear()": s, "cubic()": s * s * (3 - 2 * s), "bezier()": s * s * (3 - 2 * s)}[function]
        return key.value() + (after[0].value() - key.value()) * s

    def isTimeDependent(self) -> bool:
        return len(self._keys) > 1 or any(re.search(r"\$F(?![A-Z])", key.expression()) for key in self._keys)

    def keyframes(self) -> tuple[Keyframe, ...]:
        return tuple(self._keys)

    def setKeyframe(self, keyframe: Keyframe) -> None:
        kept = [key for key in self._keys if key.frame() != keyframe.frame()]
        self._keys = sorted([*kept, keyframe], key=Keyframe.frame)
        self._node._set_dirty()

    def deleteAllKeyframes(self) -> None:
        self._keys = []

    def pressButton(self, arguments: dict[str, Any] = {}) -> None:  # noqa: B006 (as documented)
        if self._declared.name in self._node._buttons:
            self._node._buttons[self._declared.name](self._node)
        else:
            names = {"hou": self._node._houdini.module, "kwargs": {"node": self._node, **arguments}}
            exec(self._declared.tags["script_callback"], names)


class ParmTemplate:
    def __init__(self, declared: ParsedParm) -> None:
        self._declared = declared

    def label(self) -> str:
        return self._declared.label

    def type(self) -> str:
        kinds = {"integer": "Int", "ordinal": "Menu", "toggle": "Toggle", "string": "String", "float": "Float", "vector": "Float"}
        return kinds.get(self._declared.type, parmTemplateType.Other)


class ParmTuple:
    def __init__(self, node: Any, declared: ParsedParm) -> None:
        self._declared = declared
        self._parms = [Parm(node, declared, name, k) for k, name in enumerate(component_names(declared))]

    def parmTemplate(self) -> ParmTemplate:
        return ParmTemplate(self._declared)

    def __len__(self) -> int:
        return len(self._parms)

    def __getitem__(self, index: int) -> Parm:
        return self._parms[index]

    def eval(self) -> tuple[Any, ...]:
        return tuple(parm.eval() for parm in self._parms)


class HDASection:
    def __init__(self, text: str) -> None:
        self._text = text

    def contents(self) -> str:
        return self._text


class HDADefinition:
    def __init__(self, sections: dict[str, str]) -> None:
        self._sections = {name: HDASection(text) for name, text in sections.items()}

    def sections(self) -> dict[str, HDASection]:
        return dict(self._sections)


class NodeType:
    def __init__(
        self,
        name: str,
        dialog: ParsedDialog,
        most_inputs: int,
        sections: dict[str, str] | None = None,
        buttons: dict[str, Callable[[Any], None]] | None = None,
    ) -> None:
        self._name, self._dialog, self._most, self._buttons = name, dialog, most_inputs, buttons or {}
        self._sections = sections
        self._houdini: Any = None

    def name(self) -> str:
        return self._name

    def nameComponents(self) -> tuple[str, str, str, str]:
        """Return scope, namespace, name and version."""
        parts = self._name.split("::")
        version = parts.pop() if len(parts) > 1 and parts[-1][0].isdigit() else ""
        return ("", parts[0] if len(parts) > 1 else "", parts[-1], version)

    def instances(self) -> tuple[Any, ...]:
        return tuple(node for node in self._houdini.by_id.values() if node.type() is self)

    def definition(self) -> HDADefinition | None:
        return None if self._sections is None else HDADefinition(self._sections)


def expand(text: str, variables: dict[str, str]) -> str:
    """Replace $NAME and ${NAME}; Houdini leaves unknown ones alone."""
    return re.sub(
        r"\$\{?([A-Za-z_]+)(\d?)\}?",
        lambda m: variables.get(m[1], m[0]) if not m[2] else variables[m[1]].zfill(int(m[2])) if m[1] == "F" else m[0],
        text,
    )
