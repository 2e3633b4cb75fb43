"""Whether points keep their shape: a rigid motion keeps every point's distances from four points that lie in no plane."""

from __future__ import annotations

import math

TOLERANCE = 1e-4
"""Change of a distance, as a share of the body's size, that a motion in single precision may make."""


class RigidShape:
    """The shape of some points: how far each is from (at most) four of them that lie far apart.

    Points that keep these distances can only have been moved, turned or mirrored as one; a mirrored body has the fourth point on
    the other side of the first three.

    Args:
        points: Places (x, y, z).
    """

    def __init__(self, points):
        self.anchors = _far_apart(points) if points else []
        self.distances = _distances(points, self.anchors)
        self.side = _side(points, self.anchors)
        self.size = max(max(each, default=0.0) for each in self.distances) if self.distances else 0.0

    def change(self, points):
        """Return the greatest change of a distance as a share of the size, 1 for a mirrored body; as many points are expected."""
        if self.size == 0.0:
            return 0.0
        found = _distances(points, self.anchors)
        most = max(abs(a - b) for old, new in zip(self.distances, found, strict=True) for a, b in zip(old, new, strict=True))
        # far from the origin single precision knows places to that much only
        most -= 1e-6 * max(abs(value) for point in points for value in point)
        if abs(self.side) > TOLERANCE * self.size**3 and _side(points, self.anchors) * self.side < 0.0:
            return 1.0
        return max(most, 0.0) / self.size


def places(geometry):
    """Return the places of a geometry's points as a list of (x, y, z)."""
    values = geometry.pointFloatAttribValues("P")
    return list(zip(values[0::3], values[1::3], values[2::3], strict=True))


def _far_apart(points):
    """Return the numbers of up to four points: each is the farthest from the point, line or plane of those before it."""
    anchors = [0]
    measures = (_from_point, _from_line, _from_plane)
    for measure in measures:
        known = [points[number] for number in anchors]
        heights = [measure(point, *known) for point in points]
        farthest = max(range(len(points)), key=heights.__getitem__)
        if heights[farthest] <= 0.0:
            break
        anchors.append(farthest)
    return anchors


def _distances(points, anchors):
    return [[math.dist(point, points[number]) for point in points] for number in anchors]


def _side(points, anchors):
    """Return the volume that four anchors span, with its sign; 0 for fewer."""
    if len(anchors) < 4:
        return 0.0
    origin, *others = (points[number] for number in anchors)
    a, b, c = (_minus(other, origin) for other in others)
    return _dot(_cross(a, b), c)


def _from_point(point, origin):
    return math.dist(point, origin)


def _from_line(point, origin, end):
    return math.hypot(*_cross(_minus(point, origin), _minus(end, origin)))


def _from_plane(point, origin, one, other):
    return abs(_dot(_minus(point, origin), _cross(_minus(one, origin), _minus(other, origin))))


def _minus(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def _dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
