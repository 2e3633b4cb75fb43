"""Outlines of emitters, colliders and walls, for what is not geometry of the scene."""

from __future__ import annotations

import itertools
import math

import hou

COLOURS = {"emit": (0.36, 0.62, 0.90), "collide": (0.75, 0.75, 0.78), "wall": (0.95, 0.55, 0.25)}
PARTS = 32
"""Straight parts of a circle."""


def draw(geometry, nodes):
    """Write the outlines of nodes, (node, facts), as open polygons with a colour."""
    lines = [(role, line) for node, facts in nodes for role, part in outlines(node, facts) for line in part]
    geometry.clear()
    if not lines:
        return
    points = geometry.createPoints(tuple(place for _, line in lines for place in line))
    geometry.createPolygons(tuple(zip(points[::2], points[1::2], strict=True)), False)
    geometry.addAttrib(hou.attribType.Point, "Cd", (1.0, 1.0, 1.0), False, False)
    geometry.setPointFloatAttribValues("Cd", tuple(part for role, _ in lines for part in (*COLOURS[role], *COLOURS[role])))


def outlines(node, facts):
    """Return (role, [(start, end), ...]) of what a node stands for; role is "emit", "collide" or "wall"."""
    if facts is None or facts["scope"] != "graph":
        return []
    role = facts["id"].partition("_")[0]
    lines = _shape(node) if role in ("emit", "collide") else _walls(node)
    return [(role if role in COLOURS else "wall", lines)] if lines else []


def _shape(node):
    centre, size, radius = (_value(node, name) for name in ("centre", "size", "radius"))
    if centre is None:
        return []
    half, shown = _value(node, "half_height"), _value(node, "shown_size")
    length = _value(node, "length") or (2.0 * half if half else None)
    if size is not None:
        lines = _box([-0.5 * each for each in size], [0.5 * each for each in size])
    elif radius is not None and length is not None:
        lines = _capsule(radius, length)
    elif radius is not None:
        lines = [line for axis in range(3) for line in _circle(radius, axis)]
    elif shown is not None:
        lines = _box((-0.5 * shown, 0.0, -0.5 * shown), (0.5 * shown, 0.0, 0.5 * shown))
        lines.append(((0.0, 0.0, 0.0), (0.0, 0.1 * shown, 0.0)))
    else:
        return []
    turn = _turn(node)
    return [tuple(_placed(point, turn, centre) for point in line) for line in lines]


def _placed(point, turn, centre):
    return tuple(c + sum(r * x for r, x in zip(row, point, strict=True)) for c, row in zip(centre, turn, strict=True))


def _turn(node):
    """Return the rows of the rotation about x, then y, then z, or that of a quaternion."""
    w, x, y, z = _value(node, "orientation") or (1.0, 0.0, 0.0, 0.0)
    if (w, x, y, z) != (1.0, 0.0, 0.0, 0.0):
        n = w * w + x * x + y * y + z * z
        return (
            ((w * w + x * x - y * y - z * z) / n, 2.0 * (x * y - w * z) / n, 2.0 * (x * z + w * y) / n),
            (2.0 * (x * y + w * z) / n, (w * w - x * x + y * y - z * z) / n, 2.0 * (y * z - w * x) / n),
            (2.0 * (x * z - w * y) / n, 2.0 * (y * z + w * x) / n, (w * w - x * x - y * y + z * z) / n),
        )
    angles = [math.radians(each) for each in _value(node, "rotation") or (0.0, 0.0, 0.0)]
    (a, b, c), (s, t, u) = map(math.cos, angles), map(math.sin, angles)
    return (
        (b * c, s * t * c - a * u, a * t * c + s * u),
        (b * u, s * t * u + a * c, a * t * u - s * c),
        (-t, s * b, a * b),
    )


def _walls(node):
    """Return the closed sides of a solve's domain."""
    low, high, lines = _value(node, "wall_low"), _value(node, "wall_high"), []
    if low is None or high is None:
        return []
    for axis, end in itertools.product(range(3), ("low", "high")):
        parm = node.parm(f"wall_{'xyz'[axis]}_{end}")
        if parm is not None and parm.evalAsString() != "open":
            first, second = list(low), list(high)
            first[axis] = second[axis] = (low if end == "low" else high)[axis]
            lines += _box(first, second)
    return lines


def _value(node, name):
    """Return the value of a parameter, a tuple where it has several components; None where there is none."""
    parms = node.parmTuple(name)
    if parms is None:
        return None
    values = parms.eval()
    return values[0] if len(values) == 1 else tuple(values)


def _box(low, high):
    """Return the edges of a box; those of no length are left out."""
    corners = sorted(set(itertools.product(*zip(low, high, strict=True))))
    return [(a, b) for a, b in itertools.combinations(corners, 2) if sum(p != q for p, q in zip(a, b, strict=True)) == 1]


def _circle(radius, axis, at=0.0):
    points = []
    for part in range(PARTS + 1):
        angle = 2.0 * math.pi * part / PARTS
        point = [radius * math.cos(angle), radius * math.sin(angle)]
        point.insert(axis, at)
        points.append(tuple(point))
    return list(itertools.pairwise(points))


def _capsule(radius, length):
    lines = _circle(radius, 1, -0.5 * length) + _circle(radius, 1, 0.5 * length)
    for x, z in ((radius, 0.0), (-radius, 0.0), (0.0, radius), (0.0, -radius)):
        lines.append(((x, -0.5 * length, z), (x, 0.5 * length, z)))
    return lines
