"""Sets: what stands around a single picture, and how a camera is placed in it by rule.

Everything is in proportion to the subject, so that a shot of 5 cm and one of 2 m are lit and framed alike.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpm_nodes.data import InputError, MpmNodesError
from mpm_nodes.materials.looks import LOOKS, Look, find_look
from mpm_nodes.preview.scene import View, look

if TYPE_CHECKING:
    from mpm_nodes.preview.scene import Scene

__all__ = ["SETS", "SHARE", "Dressing", "Lamp", "PictureSet", "composed", "dressing_of", "turned"]

Colour = tuple[float, float, float]

SHARE = 0.4
"""Share of a picture that the rectangle around the subject takes."""
WIDEST, TALLEST = 0.84, 0.7
"""Most of the width and of the height that it takes: a long or a tall subject takes less of the picture."""
MARGIN = 0.03
"""Least share of a picture between its border and a plate, for which a subject shrinks to `LEAST` of its size, but no further."""
LEAST = 0.75
MIDDLE = 0.47
"""Height of its middle in the picture, from below: what is left above it is a little more than what is left below."""
COMPANION = 2.5
"""Longest side of a body over that of the matter, up to which it belongs to the subject; larger ones are what it happens on."""
TURN = math.atan2(0.55, 1.0)
"""Turn of the camera about the upward axis, from the direction of z; that of the stages of our caches."""
FOCUS = 0.35
"""Where the focus lies between what of the subject is nearest and what is farthest."""
PLATE_LOOK = "ceramic"
PLATES = (0.01, 0.2)
"""Radius of what a plate can hold: from a drop to a large meal [m]."""
WELL, FOOT, RIM = 1.12, 0.1, (1.5, 0.17)
"""Radius of the level part of a plate over that of what lies on it; depth of its foot, width and height of its rim over that."""
LIES, PILED = 0.1, 0.3
"""How far above its plane matter still lies on it, over the subject's radius, and how high it may be piled there."""
SEEN = 4000
"""Most points of a part of the subject that are projected."""
STEPS = 40


class Lamp(NamedTuple):
    """A soft lamp that shines on the subject, from nearby; on a field from so far that it lights all of it evenly.

    Attributes:
        aside: To the right of the camera, seen from the subject [degrees]; 180 is behind the subject.
        height: Above the horizon [degrees].
        size: Edge of the lamp over its distance.
        strength: Irradiance at the subject: a white surface that faces a lamp of strength pi is white.
        colour: Linear.
    """

    aside: float
    height: float
    size: float
    strength: float
    colour: Colour = (1.0, 1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class PictureSet:
    """What stands around the subject.

    Attributes:
        ground: What it stands on.
        shape: "table", which ends behind the subject, "cove", which rises behind it without an edge, or "field" without an end.
        lamps: Key, fill and rim.
        horizon: Light from all around at the height of the horizon; also what is seen there.
        zenith: The same from above.
        focal: Focal length on a frame 36 mm wide [mm].
        height: Of the camera above the horizon, seen from the subject [degrees]; on a field that which `edge` asks for.
        edge: Height in the picture, from below, at which the ground ends behind the subject; of a field that of the horizon.
        aperture: Opening of the lens over the distance of the focus.
        exposure: Brightening of the picture [stops].
        tile: Edge of a square of the ground's pattern over the radius of the subject.
        wall: What a tiled wall far behind the table shows of itself, out of focus; it lights nothing. None: the sky is seen.
    """

    ground: Look
    shape: str
    lamps: tuple[Lamp, ...]
    horizon: Colour
    zenith: Colour
    focal: float = 85.0
    height: float = 16.0
    edge: float = 0.8
    aperture: float = 0.01
    exposure: float = 0.5
    tile: float = 0.25
    wall: Colour | None = None

    def tilt(self, aspect: float) -> float:
        """Return how far the camera looks down in a picture of this width over height [radians]."""
        if self.shape != "field":
            return math.radians(self.height)
        return math.atan((self.edge - 0.5) * 36.0 / (self.focal * aspect))


SETS: dict[str, PictureSet] = {
    "kitchen": PictureSet(
        LOOKS["wood"],
        "table",
        (Lamp(-66.0, 38.0, 0.5, 4.2, (1.0, 0.93, 0.84)), Lamp(75.0, 25.0, 1.2, 0.5), Lamp(155.0, 38.0, 0.4, 3.6, (1.0, 0.9, 0.78))),
        (0.20, 0.16, 0.12),
        (0.26, 0.27, 0.30),
        aperture=0.014,
        wall=(0.15, 0.17, 0.155),
    ),
    "studio": PictureSet(
        Look((0.58, 0.59, 0.60), 0.6),
        "cove",
        (Lamp(-60.0, 38.0, 0.5, 4.2), Lamp(70.0, 25.0, 1.4, 0.3), Lamp(160.0, 42.0, 0.5, 3.0)),
        (0.32, 0.33, 0.35),
        (0.36, 0.37, 0.39),
        height=18.0,
        exposure=0.6,
    ),
    "dark": PictureSet(
        Look((0.02, 0.021, 0.023), 0.5),
        "cove",
        (Lamp(-68.0, 38.0, 0.5, 3.2, (1.0, 0.95, 0.9)), Lamp(166.0, 42.0, 0.4, 3.0, (0.8, 0.9, 1.0))),
        (0.012, 0.014, 0.018),
        (0.03, 0.035, 0.045),
        height=14.0,
    ),
    "snow": PictureSet(
        LOOKS["snow"],
        "field",
        (Lamp(-80.0, 18.0, 0.03, 5.6, (1.0, 0.84, 0.64)), Lamp(150.0, 30.0, 0.5, 0.4, (0.8, 0.9, 1.0))),
        (0.26, 0.37, 0.56),
        (0.08, 0.18, 0.44),
        focal=40.0,
        edge=2.0 / 3.0,
        exposure=1.5,
        tile=0.1,
    ),
}
"""Sets by name."""


class Dressing(NamedTuple):
    """A set around a subject.

    Attributes:
        name: One of `SETS`, or a file.
        kind: What stands there; None for a file, which brings it.
        file: USD file of one's own, or None.
        points: Of the subject, over all frames [m], shape (n, 3).
        ground: Height of what it stands on [m].
        plate: Radius of the level part of the plate that it lies on [m]; 0: it lies on none.
    """

    name: str
    kind: PictureSet | None
    file: Path | None
    points: np.ndarray
    ground: float
    plate: float = 0.0

    @property
    def middle(self) -> np.ndarray:
        """Middle of the subject [m]."""
        return 0.5 * (self.points.min(axis=0) + self.points.max(axis=0))

    @property
    def radius(self) -> float:
        """Half the diagonal of the subject [m]."""
        return 0.5 * float(np.linalg.norm(np.ptp(self.points, axis=0))) + 1e-6

    @property
    def held(self) -> float:
        """Radius of the circle on the ground, about the middle, over which the subject is [m]."""
        return self.reach(self.points)

    @property
    def top(self) -> float:
        """Height of the table or field [m]."""
        return self.ground - FOOT * self.plate

    @property
    def rim(self) -> np.ndarray:
        """Highest ring of the plate, and the lowest of that width [m], shape (n, 3); empty without one."""
        if not self.plate:
            return np.zeros((0, 3))
        turns = np.linspace(0.0, 2.0 * np.pi, 64)
        x, z = (self.middle[axis] + RIM[0] * self.plate * f(turns) for axis, f in ((0, np.cos), (2, np.sin)))
        return np.concatenate([np.stack([x, np.full(64, self.ground + tall * self.plate), z], axis=1) for tall in (RIM[1], 0.0)])

    def reach(self, points: np.ndarray) -> float:
        """Return the radius of the circle about the middle, on the ground, over which points are [m]."""
        return float(np.linalg.norm((points - self.middle)[:, [0, 2]], axis=1).max(initial=0.0)) + 1e-6


def dressing_of(name: str, scene: Scene, frames: Sequence[int], show: str, floor: tuple[float, str]) -> Dressing:
    """Return a set around the subject of some frames.

    A table is made of what the shot's plane is made of, where a look was chosen for that. A plane of ceramic, or without a look, is
    a plate on the table where what lies there has the size of a meal.

    Args:
        name: One of `SETS`, or a USD file.
        scene: The cache.
        frames: Frames that it stands around.
        show: "points" or "surface".
        floor: Height [m] and look of the shot's own floor.

    Raises:
        MpmNodesError: No set of that name.
        InputError: No such file, or nothing to see.
    """
    from usd_io.bounds import FLOOR_LOOK

    kind, file = SETS.get(name), None
    if kind is None:
        file = Path(name)
        if file.suffix.lower() not in (".usd", ".usda", ".usdc", ".usdz"):
            raise MpmNodesError(f"render: set '{name}' is unknown; choose one of {', '.join(SETS)}, or give a USD file of your own")
        if not file.is_file():
            raise InputError(f"{file}: no such file; give a USD file for the set, or one of {', '.join(SETS)}")
    sampled = sorted({frames[0], frames[len(frames) // 2], frames[-1]})
    found = [points for frame in sampled if len(points := subject(scene, frame, show))]
    if not found:
        raise InputError(f"{scene.path}: holds neither points nor meshes at frames {list(frames)[:1]}; nothing to render")
    dressing = Dressing(name, kind, file, np.concatenate(found), _standing(scene, sampled, show, floor[0]))
    if kind is None or kind.shape != "table":
        return dressing
    if floor[1] in (FLOOR_LOOK, PLATE_LOOK) and (plate := _plate(scene, sampled, show, dressing, floor)):
        return dressing._replace(plate=plate)
    return dressing if floor[1] == FLOOR_LOOK else dressing._replace(kind=dataclasses.replace(kind, ground=find_look(floor[1])))


def _plate(scene: Scene, frames: Sequence[int], show: str, dressing: Dressing, floor: tuple[float, str]) -> float:
    """Return the radius of the level part of a plate under what lies on the shot's plane at last [m]; 0 where none belongs there.

    All matter of the frames is over the level part, and so are all parts of bodies below the height of the rim: it cuts nothing.
    """
    lies, reach = floor[1] == PLATE_LOOK, 0.0
    bodies: list[np.ndarray] = []
    for frame in sorted({scene.first, *frames, scene.last}):
        shapes = scene.shapes(frame, show).without_floor()
        bodies += [each.points for each in shapes.surfaces if not each.matter and len(each.points)]
        for points in [cloud.positions for cloud in shapes.clouds] + [each.points for each in shapes.surfaces if each.matter]:
            lies = lies or bool(points[:, 1].min(initial=math.inf) < floor[0] + LIES * dressing.radius)
            if frame not in frames:  # what is held higher then may be anywhere
                points = points[points[:, 1] < floor[0] + PILED * dressing.radius]
            reach = max(reach, dressing.reach(points))
    well = WELL * reach
    low = [points[points[:, 1] < floor[0] + RIM[1] * well] for points in bodies]
    held = max((dressing.reach(points) for points in low if len(points)), default=0.0)
    fits = PLATES[0] <= reach <= PLATES[1] and held <= well
    return well if lies and fits and dressing.ground == floor[0] else 0.0


def _standing(scene: Scene, frames: Sequence[int], show: str, floor: float) -> float:
    """Return the height of what the subject stands on [m]: the floor, raised to the lowest body where that stays above it.

    So a brush that hangs above its floor lies on the table. Bodies that move, or have matter below them, raise nothing.
    """
    least, lows = math.inf, set()
    for frame in sorted({scene.first, *frames}):
        shapes = scene.shapes(frame, show).without_floor()
        bodies = [each.height for each in shapes.surfaces if not each.matter and len(each.points)]
        matter = [cloud.positions[:, 1].min() for cloud in shapes.clouds] + [each.height for each in shapes.surfaces if each.matter]
        lows.add(round(min(bodies, default=math.inf), 9))
        least = min(least, *matter) if matter else least
    low = min(lows)
    return max(floor, low) if len(lows) == 1 and floor < low < least else floor


def subject(scene: Scene, frame: int, show: str) -> np.ndarray:
    """Return points of what a picture is about [m], shape (n, 3): the bulk of the matter, and bodies that are not much larger."""
    from usd_io.bounds import bulk

    shapes = scene.shapes(frame, show).without_floor()
    matter = [cloud.positions for cloud in shapes.clouds] + [each.points for each in shapes.surfaces if each.matter]
    bodies = [each.points for each in shapes.surfaces if not each.matter and len(each.points)]
    kept = []
    for points in matter:
        low, high = bulk((points.min(axis=0), points.max(axis=0)), points)
        kept.append(points[((points >= low) & (points <= high)).all(axis=1)])
    largest = max((float(np.ptp(points, axis=0).max()) for points in kept), default=math.inf)
    kept += [points for points in bodies if np.ptp(points, axis=0).max() <= COMPANION * largest]
    return np.concatenate([points[:: 1 + len(points) // SEEN] for points in kept]) if kept else np.zeros((0, 3))


def composed(points: np.ndarray, kind: PictureSet, aspect: float, turn: float = TURN, held: np.ndarray | None = None) -> View:
    """Return the camera that shows a subject by rule.

    Args:
        points: Of the subject [m], shape (n, 3).
        kind: The set, which knows the height of the camera and its focal length.
        aspect: Width over height of the picture.
        turn: Of the camera about the upward axis, from the direction of z [radians].
        held: What else the picture shall not cut off [m], shape (n, 3).
    """
    tilt = kind.tilt(aspect)
    back = np.array([math.sin(turn) * math.cos(tilt), math.sin(tilt), math.cos(turn) * math.cos(tilt)])
    target = 0.5 * (points.min(axis=0) + points.max(axis=0))
    size, focal = float(np.linalg.norm(np.ptp(points, axis=0))) + 1e-6, kind.focal / 36.0
    distance = 3.0 * focal * size
    for _ in range(STEPS):
        view = look(target + distance * back, target, focal)
        low, high = placed(points, view, aspect)
        wide, tall = np.maximum(high - low, 1e-9)
        wanted = min(math.sqrt(SHARE / (wide * tall)), WIDEST / wide, TALLEST / tall)
        if held is not None and len(held):
            whole = (0.5 - MARGIN) / max(float(np.abs(corner - 0.5).max()) for corner in placed(held, view, aspect))
            wanted = min(wanted, max(whole, LEAST * wanted))
        off = 0.5 * (low + high) - (0.5, MIDDLE)
        target = target + distance / focal * (off[0] * view.right + off[1] / aspect * view.up)
        distance = max(distance / wanted, 0.75 * size)
    return look(target + distance * back, target, focal)


def placed(points: np.ndarray, view: View, aspect: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the rectangle around points in a picture, in its width and height, from below on the left."""
    away = points - view.eye
    depth = np.maximum(away @ view.forward, 1e-9)
    across, up = 0.5 + view.focal * (away @ view.right) / depth, 0.5 + view.focal * aspect * (away @ view.up) / depth
    return np.array([across.min(), up.min()]), np.array([across.max(), up.max()])


def turned(view: View, middle: np.ndarray, angle: float) -> View:
    """Return a camera turned about the upward axis through a point by an angle [radians]."""
    turn = _turn(angle)
    axes = {name: turn @ getattr(view, name) for name in ("right", "up", "forward")}
    return dataclasses.replace(view, eye=middle + turn @ (view.eye - middle), **axes)


def all_round(dressing: Dressing) -> Dressing:
    """Return a set around what the subject sweeps when it is turned about the upward axis."""
    angles = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
    around = [dressing.middle + (dressing.points - dressing.middle) @ _turn(angle).T for angle in angles]
    return dressing._replace(points=np.concatenate(around))


def _turn(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def edge_behind(dressing: Dressing, view: View, aspect: float) -> float:
    """Return how far behind the middle of the subject the ground ends, so that its edge stands where the set has it [m].

    It holds the whole subject, and its plate.
    """
    assert dressing.kind is not None
    slope = (dressing.kind.edge - 0.5) / (view.focal * aspect)
    ray = view.forward + slope * view.up
    held = max(1.25 * dressing.held, 1.2 * RIM[0] * dressing.plate)
    if ray[1] >= -1e-6:
        return 40.0 * dressing.radius
    reached = view.eye + ray * (dressing.top - view.eye[1]) / ray[1]
    level = view.forward * (1.0, 0.0, 1.0)
    return float(np.clip((reached - dressing.middle) @ level / np.linalg.norm(level), held, 40.0 * dressing.radius))
