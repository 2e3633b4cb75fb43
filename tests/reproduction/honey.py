"""What the sample `honey` shows: two spoons whose honey runs off the lip, the threads, where they land, and how they end."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mpm_nodes_samples.shots.shot import Figure, Shot, Target
from tests.reproduction.measures import pieces
from tests.reproduction.melting import balances
from tests.reproduction.phases import by_id

LIP, RIM = 0.033, 0.0028
"""Height of the lips over the plate, and thickness of the spoons [m]: what is lower than the rim has left the spoon."""
BETWEEN = -0.006
"""The warm spoon's honey begins on the near side of this, the cold one's beyond [m]."""
ROOM, WARM = 293.0, 310.0
"""Temperature of honey, plate and cold spoon, and of the warm spoon [K]."""
DENSITY, GRAVITY = 1420.0, 9.81
EARLY = (0.05, 0.1)
"""Shares of a spoon's honey: its early flow is that while the first to the second of them has left."""
WANES = 0.1
"""The supply has ended when the flow is less than this share of its largest."""
PILE = 2.5
"""The thread ends where a slice has so many times its least section."""


class Slices(NamedTuple):
    """Slices of one cell, from the plate up.

    Attributes:
        area: Section [m^2], 0 where there is nothing; shape (n,).
        speed: Mean speed down [m/s]; shape (n,).
        centre: Mean x and z [m]; shape (n, 2).
        warmth: Mean temperature [K]; shape (n,).
    """

    area: np.ndarray
    speed: np.ndarray
    centre: np.ndarray
    warmth: np.ndarray


def sliced(columns: dict[str, np.ndarray], height: float, top: float) -> Slices:
    """Cut particles into slices up to a height.

    Args:
        columns: `position` [m], shape (n, 3), speed `down` [m/s], `volume` [m^3] and `temperature` [K], shape (n,).
        height: Of a slice [m].
        top: Where the last one ends, at most [m].
    """
    x, volume = columns["position"], columns["volume"]
    count = int(top / height)
    layer = np.floor(x[:, 1] / height).astype(int)
    inside = (layer >= 0) & (layer < count)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(layer[inside], (values * volume)[inside], count)

    filled = total(np.ones(len(x)))
    over = np.maximum(filled, 1e-300)
    centre = np.stack([total(x[:, 0]), total(x[:, 2])], axis=1) / over[:, None]
    return Slices(filled / height, total(columns["down"]) / over, centre, total(columns["temperature"]) / over)


def landing(area: np.ndarray) -> int | None:
    """Return the slice at the foot of a thread: two over the matter on the plate; None where no thread reaches down.

    The thread is what lies around the least section; matter on the plate begins where a slice below has `PILE` times that.
    """
    if not len(area) or area.min() <= 0.0:
        return None
    neck = len(area) - 1 - int(np.argmin(area[::-1]))
    wide = np.flatnonzero(area[:neck] > PILE * area[neck])
    return min(int(wide[-1]) + 2, neck) if len(wide) else None


def turns(path: np.ndarray, least: float) -> float:
    """Return how often a path goes round its middle, either way; 0 where it stays within `least` of it.

    Args:
        path: Places [m], shape (n, 2).
        least: Root mean square distance from the middle that counts as going round [m].
    """
    away = path - path.mean(axis=0) if len(path) else path
    if len(path) < 3 or math.sqrt(float((away**2).sum(axis=1).mean())) < least:
        return 0.0
    angle = np.unwrap(np.arctan2(away[:, 1], away[:, 0]))
    return abs(float(angle[-1] - angle[0])) / (2.0 * math.pi)


def swings(path: np.ndarray, least: float) -> float:
    """Return how often a path goes to and fro along its longest axis; a turn is one as well.

    Args:
        path: Places [m], shape (n, 2).
        least: How far from the middle it must come on either side to have swung [m].
    """
    if len(path) < 3:
        return 0.0
    away = path - path.mean(axis=0)
    along = away @ np.linalg.eigh(away.T @ away)[1][:, -1]
    sides = np.sign(along[np.abs(along) > least])
    return 0.5 * float((sides[1:] != sides[:-1]).sum())


def early_flow(times: np.ndarray, left: np.ndarray) -> float:
    """Return the mean flow while the early shares leave [1/s]; 0 where so much never leaves.

    Args:
        times: [s], ascending, shape (n,).
        left: Share that has left by then, shape (n,).
    """
    grown = np.maximum.accumulate(left)
    if grown[-1] < EARLY[1]:
        return 0.0
    begin, end = (float(np.interp(share, grown, times)) for share in EARLY)
    return (EARLY[1] - EARLY[0]) / (end - begin)


def supply_ends(left: np.ndarray) -> int:
    """Return the first step after the largest flow at which flow is less than `WANES` of it; the last one where it never is."""
    flow = np.convolve(np.diff(left), np.ones(3) / 3.0, mode="same")
    most = int(np.argmax(flow))
    low = np.flatnonzero(flow[most:] < WANES * flow[most])
    return most + int(low[0]) if len(low) else len(left) - 1


class Spoon(NamedTuple):
    """One spoon's honey over the shot, by frame.

    Attributes:
        left: Share of it that has left the spoon; shape (n,).
        slices: What is below the rim.
        mass: All of it [kg].
        lip: Its mean temperature beside the lip in the middle of the shot [K].
    """

    left: np.ndarray
    slices: list[Slices]
    mass: float
    lip: float


def spoons(shot: Shot) -> dict[str, Spoon]:
    """Return what each spoon's honey does."""
    warm = by_id(shot, shot.first, "position")[:, 0] < BETWEEN
    mass = by_id(shot, shot.first, "mass").astype(float)
    found: dict[str, tuple[list, list, list]] = {"warm": ([], [], []), "cold": ([], [], [])}
    middle = shot.frames[len(shot.frames) // 2]
    for frame in shot.frames:
        x = by_id(shot, frame, "position").astype(float)
        columns = {
            "position": x,
            "down": -by_id(shot, frame, "velocity")[:, 1].astype(float) / shot.time_scale,
            "volume": by_id(shot, frame, "volume").astype(float),
            "temperature": by_id(shot, frame, "temperature").astype(float),
        }
        for name, of in (("warm", warm), ("cold", ~warm)):
            left, cut, lip = found[name]
            left.append(float(mass[of & (x[:, 1] < LIP - RIM)].sum() / mass[of].sum()))
            cut.append(sliced({key: values[of] for key, values in columns.items()}, shot.cell_size, LIP - RIM))
            if frame == middle:
                near = of & (np.abs(x[:, 1] - LIP) < RIM)
                lip.append(float(columns["temperature"][near].mean()) if near.any() else math.nan)
    sums = {"warm": float(mass[warm].sum()), "cold": float(mass[~warm].sum())}
    return {name: Spoon(np.array(left), cut, sums[name], lip[0]) for name, (left, cut, lip) in found.items()}


def viscosity(shot: Shot, kelvin: float) -> float:
    """Return the viscosity that the graph's table has at a temperature [Pa s]."""
    table = next(node.knobs["table"] for node in shot.graph.nodes.values() if node.type == "material_over_temperature")
    return float(np.interp(kelvin, *np.array(table, float).T))


def thread(shot: Shot, spoon: Spoon) -> list[Figure]:
    """Return what the warm spoon's thread is where it lands, while the supply lasts, and whether it coils."""
    h, step, end = shot.cell_size, shot.frame_seconds, supply_ends(spoon.left)
    feet = [(n, foot) for n, cut in enumerate(spoon.slices[: end + 1]) if (foot := landing(cut.area)) is not None]
    path = np.array([spoon.slices[n].centre[foot] for n, foot in feet]).reshape(-1, 2)
    round_, swung = turns(path, 0.5 * h), swings(path, 0.5 * h)
    rate = ratio = radius = law = fall = slow = size = math.nan
    if feet:
        late = feet[len(feet) // 2 :]  # the head of the thread, which comes first, does not flow evenly
        rows = np.array([(spoon.slices[n].area[k], spoon.slices[n].speed[k], k * h, spoon.slices[n].warmth[k]) for n, k in late])
        area, speed, height, kelvin = rows.mean(axis=0)
        first, last = late[0][0], late[-1][0]
        flow = (spoon.left[last] - spoon.left[first]) * spoon.mass / DENSITY / max((last - first) * step, 1e-300)
        radius, nu = math.sqrt(area / math.pi), viscosity(shot, kelvin) / DENSITY
        law = radius / math.sqrt(flow / (math.pi * speed)) if flow > 0.0 < speed else math.nan
        fall, slow = (LIP - height) / (2.0 * radius), speed / math.sqrt(2.0 * GRAVITY * (LIP - height))
        size = (nu * flow / (math.pi * GRAVITY)) ** 0.25
        rate = (GRAVITY * flow**3 / (nu * radius**8)) ** 0.25
        ratio = 2.0 * math.pi * swung / ((feet[-1][0] - feet[0][0]) * step) / rate if len(feet) > 1 else math.nan
    return [
        Figure("radius of the warm thread where it lands [cells]", radius / h),
        Figure("that, over sqrt(Q / (pi v))", law, Target(0.85, 1.15), "conserved mass"),
        Figure("its speed there, over that of free fall", slow, Target(most=1.0), "viscosity holds it back"),
        Figure("its fall, over its width there", fall, None, "buckles from some 7 on, Cruickshank 1988"),
        Figure("radius of a coil by (nu Q / pi g)^(1/4) [cells]", size / h, None, "Ribe 2012"),
        Figure("turns of the foot of the warm thread", round_, Target(2.0), "coils"),
        Figure("swings of it, to and fro or round", swung, Target(2.0), "folds or coils"),
        Figure("their rate, over (g Q^3 / nu a^8)^(1/4)", ratio, Target(0.5, 2.0), "within a factor of two, Ribe 2012"),
    ]


def unbroken(shot: Shot, until: int) -> float:
    """Return how much of the warm honey is not in its largest piece, at most, up to a frame [%]."""
    warm = by_id(shot, shot.first, "position")[:, 0] < BETWEEN
    return max(
        100.0 * float((pieces(by_id(shot, frame, "position")[warm].astype(float), shot.cell_size) > 0).mean())
        for frame in shot.frames[: until + 1]
    )


def honey(shot: Shot) -> list[Figure]:
    """Return the balances, both flows, temperatures at the lips, and the warm thread: where it lands, its turns and its end."""
    found, times = spoons(shot), shot.frame_seconds * np.arange(len(shot.frames))
    flows = {name: early_flow(times, spoon.left) for name, spoon in found.items()}
    warm = by_id(shot, shot.first, "position")[:, 0] < BETWEEN
    last = pieces(by_id(shot, shot.last, "position")[warm].astype(float), shot.cell_size)
    lowest = min(float(shot.positions(frame)[:, 1].min()) for frame in shot.frames)
    end = supply_ends(found["warm"].left)
    most = viscosity(shot, ROOM) / viscosity(shot, WARM)
    return [
        *balances(shot),
        Figure("volume at the end, over that at the start", shot.matter_volume(shot.last) / shot.matter_volume(shot.first),
               Target(0.95, 1.05), "kept"),
        Figure("lowest particle over the plate, at any time [cells]", lowest / shot.cell_size, Target(-0.1)),
        *(Figure(f"honey that has left the {name} spoon at the end [%]", 100.0 * spoon.left[-1]) for name, spoon in found.items()),
        Figure("early flow from the warm spoon, over that from the cold one",
               flows["warm"] / flows["cold"] if flows["cold"] else math.nan, Target(1.5, round(1.1 * most, 2)),
               f"the table of viscosities: at most {most:.2f}, and a tenth"),
        Figure("temperature at the warm lip [K]", found["warm"].lip, Target(ROOM + 1.0, WARM),
               "between the honey's and the spoon's"),
        Figure("temperature at the cold lip [K]", found["cold"].lip, Target(ROOM - 0.5, ROOM + 0.5), "nothing heats it"),
        *thread(shot, found["warm"]),
        Figure("last frame of the warm spoon's supply", shot.frames[end]),
        Figure("warm honey apart from its largest piece until then, at most [%]", unbroken(shot, end), Target(most=1.0),
               "one thread"),
        Figure("pieces of more than 0.2 % of the warm honey at the end", int((np.bincount(last) > 0.002 * len(last)).sum()),
               Target(2), "the thread ends in drops"),
    ]  # fmt: skip
