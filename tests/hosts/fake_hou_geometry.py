"""Geometry of the stand-in for Houdini: points with attributes, and the box around them."""

from __future__ import annotations

from typing import Any

from fake_hou_parms import GeometryPermissionError, OperationFailed, attribType


class BoundingBox:
    def __init__(self, low: tuple[float, ...], high: tuple[float, ...]) -> None:
        self._low, self._high = low, high

    def minvec(self) -> tuple[float, ...]:
        return self._low

    def sizevec(self) -> tuple[float, ...]:
        return tuple(high - low for low, high in zip(self._low, self._high, strict=True))


class Geometry:
    """Points with attributes; only the cook of the node that owns it may write."""

    def __init__(self) -> None:
        self._points: list[tuple[float, ...]] = []
        self._strings: dict[str, list[str]] = {}
        self._numbers: dict[str, tuple[Any, list[Any]]] = {}
        self._box = BoundingBox((-0.5, 0.5, -0.5), (0.5, 1.5, 0.5))
        self._writable = False
        self._lines: list[tuple[Any, ...]] = []
        self._types: set[Any] = set()

    def points(self) -> tuple[Any, ...]:
        return tuple(self._points)

    def prims(self) -> tuple[Any, ...]:
        return tuple(self._lines)

    def containsPrimType(self, prim_type: Any) -> bool:
        return prim_type in self._types

    def createPolygons(self, points: Any, is_closed: bool = True) -> tuple[Any, ...]:
        self._check()
        assert all(point in self._points for line in points for point in line)
        self._lines += [tuple(line) for line in points]
        return tuple(self._lines)

    def _check(self) -> None:
        if not self._writable:
            raise GeometryPermissionError("this geometry is not modifiable")

    def boundingBox(self) -> BoundingBox:
        return self._box

    def clear(self) -> None:
        self._check()
        self._points, self._strings, self._numbers, self._lines = [], {}, {}, []

    def createPoints(self, point_positions: Any) -> tuple[Any, ...]:
        self._check()
        assert all(len(place) == 3 for place in point_positions)
        self._points += list(point_positions)
        return tuple(point_positions)

    def addAttrib(
        self, type: Any, name: str, default_value: Any, transform_as_normal: bool = False, create_local_variable: bool = True
    ) -> None:
        self._check()
        if self.findPointAttrib(name) is not None or type != attribType.Point:
            raise OperationFailed(f"{name}: only new attributes of points here")
        if isinstance(default_value, str):
            self._strings[name] = [""] * len(self._points)
        else:
            assert isinstance(default_value, (int, float, tuple))
            self._numbers[name] = (default_value, [])

    def findPointAttrib(self, name: str) -> Any:
        return name if name in self._strings or name in self._numbers else None

    def pointStringAttribValues(self, name: str) -> tuple[str, ...]:
        if name not in self._strings:
            raise OperationFailed(f"{name}: no such attribute")
        return tuple(self._strings[name])

    def setPointStringAttribValues(self, name: str, values: tuple[str, ...]) -> None:
        self._check()
        if name not in self._strings or len(values) != len(self._points):
            raise OperationFailed(f"{name}: no such attribute, or not one value a point")
        self._strings[name] = list(values)

    def pointFloatAttribValues(self, name: str) -> tuple[float, ...]:
        if name == "P":
            return tuple(float(value) for point in self._points for value in point)
        return tuple(self._numbers[name][1])

    def setPointFloatAttribValues(self, name: str, values: tuple[float, ...]) -> None:
        self._set(name, values, float)

    def setPointIntAttribValues(self, name: str, values: tuple[int, ...]) -> None:
        self._set(name, values, int)

    def _set(self, name: str, values: tuple[Any, ...], kind: type) -> None:
        self._check()
        default, _ = self._numbers.get(name, (None, None))
        first = default[0] if isinstance(default, tuple) else default
        size = len(default) if isinstance(default, tuple) else 1
        if not isinstance(first, kind) or len(values) != size * len(self._points) or not all(type(v) is kind for v in values):
            raise OperationFailed(f"{name}: no such attribute of {kind.__name__}, or not {size} values a point")
        self._numbers[name] = (default, list(values))

    def saveToFile(self, file_name: str) -> None:
        with open(file_name, "wb") as file:
            file.write(b"geometry of the stand-in")

    def _copy(self, other: Geometry) -> None:
        for name in {*self._strings, *other._strings}:
            mine = self._strings.get(name, [""] * len(self._points))
            self._strings[name] = mine + other._strings.get(name, [""] * len(other._points))
        self._points += other._points
