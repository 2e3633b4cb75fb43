"""How the numbers of the directing samples in samples/figures are measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sample_numbers import SAMPLES, Cooked, volume

PULLED, OUTLET, DEPTH = 25, 0.045, 0.075
"""Frame at which the plug of the sink is pulled, radius of its outlet, and depth of its water over the floor there [m]."""

WIND, FOAM, AIR = np.array([5.0, 0.0, 0.0]), 40.0, 0.5 * 1.2 * 1.2
"""Of flakes_in_wind: velocity of the wind [m/s], density of the foam, and density / 2 of the air times the coefficient [kg/m^3]."""
LUMP, FLAKE, TURNED = (0.175, 0.175, 0.175), (0.025, 0.175, 0.25), (30.0, 20.0, 40.0)
"""Edges of a lump and of a flake [m], and how lumps are turned [degrees]."""

LIP, JAR, TILTED_BACK = (0.003, 0.114), (0.036, 0.064), 25.0
"""Of honey_jar: x and y that the jar turns about, its radius and depth [m], and its tilt at the end [degrees]."""
DISH, CAKE, HEAP = 0.0325, 0.031, 0.052
"""Height of the dish's rim, radius of the pancakes, and height of the jar over the table at the end [m]."""
FLOOR, INNER = 0.008, 0.051
"""And floor and inner radius of the dish [m]."""


# ---------------------------------------------------------------- honey_jar
def _volume_where(cooked: Cooked, frame: int, inside: np.ndarray) -> float:
    return 1e6 * float(cooked.at(frame)["volume"][inside].sum(dtype=float))


def _from_middle(cooked: Cooked, frame: int) -> np.ndarray:
    return np.hypot(cooked.x(frame, 0), cooked.x(frame, 2))


def in_jar(cooked: Cooked, frame: int, tilt: float = 0.0) -> float:
    """Return the volume of honey in the jar while it is tilted by so many degrees [cm^3]."""
    x, y, turned = cooked.x(frame, 0) - LIP[0], cooked.x(frame) - LIP[1], np.radians(tilt)
    along, up = x * np.cos(turned) - y * np.sin(turned), x * np.sin(turned) + y * np.cos(turned)
    radius, depth = JAR
    away = np.hypot(along + radius, cooked.x(frame, 2))
    return _volume_where(cooked, frame, (away < radius) & (up > -depth) & (up < 0.0))


def left(cooked: Cooked, frame: int) -> float:
    """Return the volume that is not in the jar after it has tilted back [cm^3]."""
    return volume(cooked, frame) - in_jar(cooked, frame, TILTED_BACK)


def in_dish(cooked: Cooked, frame: int) -> float:
    """Return the volume of honey in the dish, and on the stack in it [cm^3]."""
    y = cooked.x(frame)
    return _volume_where(cooked, frame, (y > FLOOR - 0.002) & (y < HEAP) & (_from_middle(cooked, frame) < INNER))


def around_stack(cooked: Cooked, frame: int) -> np.ndarray:
    """Return which particles lie between the stack and the side of the dish."""
    away = _from_middle(cooked, frame)
    return np.asarray((away > CAKE + 0.002) & (away < INNER - 0.004) & (cooked.x(frame) < DISH))


def level(cooked: Cooked, frame: int) -> float:
    """Return how high honey stands around the stack: twice the height of its middle over the floor [m]."""
    return 2.0 * float(cooked.x(frame)[around_stack(cooked, frame)].mean(dtype=float) - FLOOR)


def directions(cooked: Cooked, frame: int) -> float:
    """Return in how many of 24 directions around the stack honey lies at its foot."""
    x, z = (cooked.x(frame, axis)[around_stack(cooked, frame)] for axis in (0, 2))
    return float(len(np.unique(np.floor(12.0 * (np.arctan2(z, x) / np.pi + 1.0)).astype(int) % 24)))


# ---------------------------------------------------------------- flakes_in_wind
def flights(cooked: Cooked, lumps: bool, last: int) -> np.ndarray:
    """Return of each flake or lump how far it has come down-wind as it lands, and how far the law of drag has it [m], shape (n, 2).

    It lands in the last frame before its fall slows down. The law is of a box that does not turn on its way: from place, velocity
    and axes in the first frame that shows it, m dv/dt = m g - c |w| w A(w), with w = v - wind and A its area across w.
    """
    from mpm_nodes.nodes.rotations import rotation_matrix

    known, found = np.zeros(0, int), []
    for frame in range(1, last + 1):
        particles = cooked.at(frame)
        fresh = ~np.isin(particles["id"], known)
        known = np.union1d(known, particles["id"])
        for material in np.unique(particles["material"][fresh]):
            chosen = fresh & (particles["material"] == material)
            if (material == 0) != lumps:
                continue
            ids, sides = particles["id"][chosen], LUMP if lumps else FLAKE
            course = [_centre_of(cooked, each, ids) for each in range(frame, last + 1)]
            fall = [velocity[1] for _, velocity in course]
            landed = int(np.argmin(fall))
            places = particles["position"][chosen].astype(float)
            axes = np.linalg.eigh(np.cov(places.T))[1].T if not lumps else rotation_matrix(TURNED).T
            way = _way_by_drag(*course[0], sides, axes, landed / 24.0)
            found.append((course[landed][0][0] - course[0][0][0], way))
    return np.array(found)


def _centre_of(cooked: Cooked, frame: int, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean place and velocity of particles."""
    particles = cooked.at(frame)
    chosen = np.isin(particles["id"], ids)
    return particles["position"][chosen].mean(axis=0, dtype=float), particles["velocity"][chosen].mean(axis=0, dtype=float)


def _way_by_drag(place: np.ndarray, velocity: np.ndarray, sides: tuple[float, ...], axes: np.ndarray, seconds: float) -> float:
    """Return how far a box comes down-wind [m]; rows of `axes` are its own ones, of the shortest edge first."""
    a, b, c = sides
    faces, mass, steps = np.array([b * c, a * c, a * b]), FOAM * a * b * c, 2000
    x, v, dt = place.copy(), velocity.copy(), seconds / steps
    for _ in range(steps):
        w = v - WIND
        v = v + dt * (np.array([0.0, -9.81, 0.0]) - AIR * w * float(np.abs(axes @ w) @ faces) / mass)
        x = x + dt * v
    return float((x - place)[0])


# ---------------------------------------------------------------- pinned_jelly
def corner(cooked: Cooked, x: float, z: float) -> np.ndarray:
    """Return the particles that a pin holds at first, as their places in the order of ids."""
    first = cooked.at(1)
    order = np.argsort(first["id"])
    away = first["position"][order] - np.float32((x, 0.6, z))
    return np.flatnonzero(np.linalg.norm(away, axis=1) < 0.05)


def slip(cooked: Cooked, x: float, z: float, until: int) -> float:
    """Return how far at most what a pin holds has moved [m]."""
    return float(np.linalg.norm(cooked.moved(corner(cooked, x, z), 1, until), axis=1).max())


# ---------------------------------------------------------------- filled_bar
def slip_in_hands(cooked: Cooked, frame: int) -> float:
    """Return how far at most what the hands hold lies from where they carried it [m]."""
    first, last = (cooked.at(each) for each in (1, frame))
    begun, ended = (each["position"][np.argsort(each["id"])].astype(float) for each in (first, last))
    farthest, angle = 0.0, np.radians(50.0)
    for side in (-1.0, 1.0):
        arm = begun - (side * 0.048, 0.08, 0.0)
        held = (np.abs(arm) < (0.022, 0.05, 0.05)).all(axis=1)
        c, s = np.cos(side * angle), np.sin(side * angle)
        turned = np.stack([c * arm[:, 0] + s * arm[:, 2], arm[:, 1], c * arm[:, 2] - s * arm[:, 0]], axis=1)
        carried = turned + (side * 0.09, 0.1, 0.0)
        farthest = max(farthest, float(np.linalg.norm(ended - carried, axis=1)[held].max()))
    return farthest


def mass_of(cooked: Cooked, frame: int, material: int) -> float:
    """Return the mass of one material [kg]."""
    particles = cooked.at(frame)
    return float(particles["mass"][particles["material"] == material].sum(dtype=float))


def of_the_bridge(cooked: Cooked, frame: int, material: int) -> float:
    """Return how much of a material is left between the hands above the table, at its thinnest, over what was there.

    It is counted in slices of a cell between them, in what the bar's own height was at most below its middle.
    """
    counts = []
    for each in (1, frame):
        particles = cooked.at(each)
        x, y = particles["position"][:, 0], particles["position"][:, 1]
        chosen = (particles["material"] == material) & (y > 0.03)
        counts.append(np.histogram(x[chosen], np.arange(-0.025, 0.0251, 0.005))[0])
    return float(counts[1].min() / counts[0].mean())


# ---------------------------------------------------------------- sink
def water_of(cooked: Cooked, frame: int) -> float:
    """Return the mass of the water that is there [kg]."""
    return float(cooked.at(frame)["mass"].sum(dtype=float))


def drained(cooked: Cooked, first: int, last: int) -> float:
    """Return the mass that the event `drained` tells of some frames [kg]."""
    told = [event for event in cooked.told if event["event"] == "drained" and first <= event["frame"] <= last]
    return float(sum(sum(event["mass"]) for event in told))


def mass_of_the_mesh() -> float:
    """Return the mass of the water that the mesh in basin.usda holds, by its signed volume [kg]."""
    from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
    from usd_io.collider_meshes import StageMeshes

    meshes = StageMeshes(SAMPLES / "basin.usda", "water")
    topology, points = meshes.topology(1), meshes.points(1)
    corners = points[triangulate(topology.counts, topology.indices)[0]]
    return 998.0 * abs(float(np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum())) / 6.0


def outflow(cooked: Cooked, first: int, last: int) -> float:
    """Return the rate at which water runs out, over that of a jet without friction as wide as the outlet (Torricelli)."""
    seconds = (last - first + 1) / 24.0
    jet = 998.0 * np.pi * OUTLET**2 * np.sqrt(2.0 * 9.81 * DEPTH)
    return drained(cooked, first, last) / seconds / float(jet)


# ---------------------------------------------------------------- sand_heap
PAILS = (-0.2, 0.2)
"""Where the pails of dry and of wet sand stand along x [m]."""


def sand_of(cooked: Cooked, frame: int, wet: int) -> np.ndarray:
    """Return the places of the dry sand, or of the wet one, from the middle of its pail [m], shape (n, 3)."""
    particles = cooked.at(frame)
    return particles["position"][particles["material"] == wet].astype(float) - [PAILS[wet], 0.0, 0.0]


def repose(cooked: Cooked, frame: int) -> float:
    """Return the slope of the dry heap [degrees]: of the tops of rings a cell wide between 15 and 85 % of its height."""
    x, y, z = sand_of(cooked, frame, 0).T
    ring = np.floor(np.hypot(x, z) / 0.01).astype(int)
    known = np.flatnonzero(np.bincount(ring) > 20)
    top = np.array([np.quantile(y[ring == each], 0.98) for each in known]) + 0.0025
    side = (top < 0.85 * top.max()) & (top > 0.15 * top.max())
    return float(np.degrees(np.arctan(-np.polyfit((known[side] + 0.5) * 0.01, top[side], 1)[0])))


# ---------------------------------------------------------------- stone_in_mud
def stone(cooked: Cooked, frame: int) -> np.ndarray:
    """Return the middle of the stone [m], shape (3,)."""
    from pxr import Usd

    stage = Usd.Stage.Open(str(cooked.folder / cooked.stage))
    points = np.array(stage.GetPrimAtPath("/stone_in_mud/collider_sphere").GetAttribute("points").Get(frame))
    return 0.5 * (points.min(axis=0) + points.max(axis=0))


MEASURES: dict[str, dict[str, Callable[[Cooked], float]]] = {
    "honey_jar": {
        "volume in the jar at the beginning [cm^3]": lambda c: in_jar(c, 1),
        "volume in the dish at the end: what it is to hold [cm^3]": lambda c: in_dish(c, 86),
        "volume that left the jar, less that in the dish, at the end [cm^3]": lambda c: left(c, 86) - in_dish(c, 86),
        "of 24 directions around the stack, those in which honey has run down at the end": lambda c: directions(c, 86),
        "level around the stack at the end, over the floor of the dish [m]": lambda c: level(c, 86),
    },
    "flakes_in_wind": {
        "particles at frame 54": lambda c: len(c.at(54)),
        "flakes that have been dropped": lambda c: len(flights(c, False, 54)),
        "lumps that have been dropped": lambda c: len(flights(c, True, 54)),
        "way of the flakes down-wind as they land, mean [m]": lambda c: flights(c, False, 54)[:, 0].mean(),
        "way of the lumps down-wind as they land, mean [m]": lambda c: flights(c, True, 54)[:, 0].mean(),
        "way of the flakes, over that by the law of drag": lambda c: np.divide(*flights(c, False, 54).mean(axis=0)),
        "way of the lumps, over that by the law of drag": lambda c: np.divide(*flights(c, True, 54).mean(axis=0)),
        "lowest particle at frame 54 [m]": lambda c: c.x(54).min(),
    },
    "sand_heap": {
        "particles at frame 54": lambda c: len(c.at(54)),
        "slope of the dry heap at frame 54 [degrees]": lambda c: repose(c, 54),
        "height of the dry heap at frame 54 [m]": lambda c: sand_of(c, 54, 0)[:, 1].max(),
        "height of the wet sand at frame 54: 0.13 in the pail [m]": lambda c: sand_of(c, 54, 1)[:, 1].max(),
        "radius of the wet sand at frame 54: 0.09 in the pail [m]": lambda c: np.hypot(*sand_of(c, 54, 1)[:, [0, 2]].T).max(),
    },
    "stone_in_mud": {
        "particles at frame 42": lambda c: len(c.at(42)),
        "height of the stone's middle at frame 8, before it hits [m]": lambda c: stone(c, 8)[1],
        "height of its middle at frame 42, of a radius of 0.075 [m]": lambda c: stone(c, 42)[1],
        "way of the stone from frame 20 to 42: it stays [m]": lambda c: np.linalg.norm(stone(c, 42) - stone(c, 20)),
        "fastest mud at frame 42 [m/s]": lambda c: np.abs(c.at(42)["velocity"]).max(),
    },
    "pinned_jelly": {
        "most that the first pin lets move until frame 30 [m]": lambda c: slip(c, -0.21, 0.21, 30),
        "most that the last pin lets move until frame 54 [m]": lambda c: slip(c, -0.21, -0.21, 54),
        "way of the first corner until frame 36, five after its pin let go [m]": lambda c: slip(c, -0.21, 0.21, 36),
        "lowest particle at frame 30: sags from 0.5625 [m]": lambda c: c.x(30).min(),
        "lowest particle at frame 96, on the plate [m]": lambda c: c.x(96).min(),
        "mean height at frame 96 [m]": lambda c: c.x(96).mean(dtype=float),
    },
    "filled_bar": {
        "mass of the chocolate [kg]": lambda c: mass_of(c, 43, 0),
        "mass of the caramel [kg]": lambda c: mass_of(c, 43, 1),
        "most that slips in the hands until frame 43 [m]": lambda c: slip_in_hands(c, 43),
        "chocolate between the hands at frame 43, thinnest slice over the first": lambda c: of_the_bridge(c, 43, 0),
        "caramel between the hands at frame 43, thinnest slice over the first": lambda c: of_the_bridge(c, 43, 1),
        "share of all that lies on the table at frame 43": lambda c: (c.x(43) < 0.03).mean(),
    },
    "sink": {
        "mass at the start, over 998 kg/m^3 times the mesh's volume": lambda c: water_of(c, 1) / mass_of_the_mesh(),
        "mass that the event drained tells before frame 25 [kg]": lambda c: drained(c, 1, PULLED - 1),
        "drained and left at frame 96, over the start": lambda c: (drained(c, 1, 96) + water_of(c, 96)) / water_of(c, 1),
        "share that has run out at frame 96": lambda c: 1.0 - water_of(c, 96) / water_of(c, 1),
        "outflow of frames 31 to 36, over a jet as wide as the outlet": lambda c: outflow(c, 31, 36),
        "lowest particle at frame 96: none leaks through the basin [m]": lambda c: c.x(96).min(),
    },
}
"""By sample and number as samples/figures calls it: how to measure it."""
