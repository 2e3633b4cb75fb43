"""Matter that lies inside colliders as a solve begins: said, and where it is asked for pushed out or cut away."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mpm_nodes.data import Collider, GraphSettings, MpmNodesError, Particles
from mpm_nodes.graph.declare.declarations import PreflightContext
from mpm_nodes.nodes.rotations import TURNS, turn_matrix

__all__ = ["DEEP", "SHOWS", "Distances", "StartInside", "begun", "coarse_places", "inside_warnings", "solids_of"]

SHOWS = 0.02
"""Share of a source's particles from which on it is worth a warning."""
DEEP = 0.6
"""Depth from which on it is [cells]: what lies less deep is held, or goes out without haste."""
MOST_PLACES = 4000
"""Points that stand for a source before the cook."""
OUT = 0.01
"""How far before a surface particles are pushed [cells]."""
MOST_LOOKS = 24
"""Pieces of matter times colliders that are looked at before a cook, which looks at all of them."""
PUSHES = 8
"""Times that a particle is pushed out: of one body into the next, or where a level set knows its distance badly."""

Distances = Callable[[np.ndarray], np.ndarray]
"""Signed distances [m], shape (n,), of points [m], shape (n, 3), from a body; infinite where it is sure that they are outside."""


class StartInside(enum.Enum):
    """What becomes of particles that lie inside a collider as the solve begins."""

    KEEP = "keep"
    PUSH_OUT = "push_out"
    CUT_AWAY = "cut_away"


def _told(share: float, source: str, collider: str, depth: float, cure: str) -> str:
    """Return the warning: `share` of the particles of `source` are inside a collider, up to `depth` [m]."""
    return (
        f"{100.0 * share:.0f} % of the particles of '{source}' start inside collider '{collider}', up to {depth:.3g} m deep{cure}"
    )


CURES = {
    StartInside.KEEP: ", and will be thrown out of it; move one of them, or set start_inside to cut_away or push_out",
    StartInside.PUSH_OUT: ": they were pushed out",
    StartInside.CUT_AWAY: ": they were cut away",
}


def begun(
    sources: Sequence[Particles],
    names: Mapping[str, Sequence[str]],
    colliders: Sequence[Collider],
    cell_size: float,
    choice: StartInside,
    warn: Callable[[str], None],
) -> list[Particles]:
    """Return the sources as a solve begins with them, and warn of those that lie inside colliders as these stand first.

    What a collider clamps it shall hold: that is left as it is.

    Args:
        sources: Particles of each source.
        names: Names of the nodes that are wired into `sources` and `colliders`.
        colliders: Colliders of the first frame.
        cell_size: [m].
        choice: What becomes of what lies inside.
        warn: Takes each warning.

    Raises:
        MpmNodesError: All is cut away.
    """
    solid, made = [each for each in colliders if not each.clamp], list(sources)
    bodies = [name for name, each in zip(_names(names, "colliders", colliders), colliders, strict=True) if not each.clamp]
    for n, (name, source) in enumerate(zip(_names(names, "sources", sources), sources, strict=True) if solid else ()):
        if not len(source):
            continue
        place = np.asarray(source["position"], np.float64)
        phi, _ = _distances(solid, place)
        shares = (phi < 0.0).mean(axis=0)
        for b in np.flatnonzero((shares >= SHOWS) & (phi.min(axis=0) < -DEEP * cell_size)):
            warn(_told(shares[b], name, bodies[b], -phi[:, b].min(), CURES[choice]))
        if choice is StartInside.CUT_AWAY and shares.any():
            outside = (phi >= 0.0).all(axis=1)
            kept = {key: column[outside] for key, column in source.attributes.items()}
            made[n] = dataclasses.replace(source, attributes=kept)
        elif choice is StartInside.PUSH_OUT and shares.any():
            pushed = {**source.attributes, "position": _pushed_out(solid, place, OUT * cell_size)}
            made[n] = dataclasses.replace(source, attributes=pushed)
    if sources and any(map(len, sources)) and not any(map(len, made)):
        raise MpmNodesError("solve.start_inside: all particles start inside colliders and are cut away; move them, or set another")
    return made


def _names(names: Mapping[str, Sequence[str]], port: str, wired: Sequence[Any]) -> list[str]:
    """Return the names of what is wired into a port; numbers where a caller tells none."""
    given = list(names.get(port, ()))
    return given if len(given) == len(wired) else [getattr(each, "name", f"{n + 1}") for n, each in enumerate(wired)]


def inside_warnings(told: PreflightContext) -> Iterator[str]:
    """Yield what a solve can say before the cook, of sources that a node fills and of colliders as they stand first.

    Their preflights tell `places` (functions that return points of the matter, shape (n, 3) [m]) and `solids` (as `solids_of`).
    """
    choice = told.knobs["start_inside"]
    if choice is not StartInside.KEEP:
        return
    sources, wired = told.inputs.get("sources", ()), told.inputs.get("colliders", ())
    bodies = [
        (name, facts["solids"])
        for name, facts in zip(_names(told.names, "colliders", wired), wired, strict=True)
        if facts.get("solids")
    ]
    matter = [
        (name, each["places"])
        for name, each in zip(_names(told.names, "sources", sources), sources, strict=True)
        if each.get("places")
    ]
    looks = sum(len(places) for _, places in matter) * sum(len(solids) for _, solids in bodies)
    if looks > MOST_LOOKS:
        return
    for source, places in matter:
        for collider, solids in bodies:
            # many solves may have the same matter among the same colliders
            share, depth = told.kept.get(("inside colliders", places, solids), partial(_inside, places, solids))
            if share >= SHOWS and depth > DEEP * told.settings.cell_size:
                yield _told(share, source, collider, depth, CURES[choice])


def _inside(places: Sequence[Callable[[], np.ndarray]], solids: Sequence[Distances]) -> tuple[float, float]:
    """Return which share of some points lies inside each of several bodies, on average, and the largest depth [m]."""
    points = np.concatenate([make() for make in places])
    phi = np.concatenate([distances(points) for distances in solids])
    return float((phi < 0.0).mean()), -float(phi.min(initial=np.inf))


def solids_of(collider: Collider) -> tuple[Distances, ...]:
    """Return what a collider's preflight tells as `solids`: how far points are from it; nothing of one that holds what is in it.

    Args:
        collider: As it stands first.
    """
    from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET

    if collider.clamp:
        return ()
    if collider.shape.kind == LEVEL_SET:
        return (lambda place: _distances([collider], place)[0][:, 0],)
    return (partial(_analytic, collider.shape),)


def coarse_places(region: Any, body: Any, settings: GraphSettings) -> np.ndarray:
    """Return points of a lattice of at most some thousands that fills a region, placed in the world [m].

    Args:
        region: `kernels.level_sets.regions.Region`.
        body: Knobs that place it: its `centre` or `translation`, and what turns it.
        settings: Its cell size sets the least spacing.
    """
    spacing = max(0.5 * settings.cell_size, (float(np.prod(region.high - region.low)) / MOST_PLACES) ** (1.0 / 3.0))
    axes = [low + (np.arange(n) + 0.5) * (edge / n) for low, edge, n in _divided(region, spacing)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    turned = points[region.inside(points)] @ turn_matrix(**{knob: body[knob] for knob in TURNS if knob in body}).T
    return turned + np.asarray(body.get("centre", body.get("translation", (0.0, 0.0, 0.0))), float)


def _divided(region: Any, spacing: float) -> Iterator[tuple[float, float, int]]:
    """Yield low end, edge [m], and number of points along each axis."""
    for low, high in zip(region.low, region.high, strict=True):
        yield float(low), float(high - low), min(max(round(float(high - low) / spacing), 1), MOST_PLACES)


def _analytic(shape: Any, place: np.ndarray) -> np.ndarray:
    """Return the distance of points from a ball, box, capsule or plane as it stands first [m], shape (n,)."""
    from mpm_nodes.kernels.level_sets.level_set import BOX, PLANE

    y = (place - shape.translations[0]) @ turn_matrix((0.0, 0.0, 0.0), tuple(shape.rotations[0]))
    if shape.kind == PLANE:
        return y[:, 1]
    if shape.kind == BOX:
        beyond = np.abs(y) - shape.sizes
        return np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)
    half = shape.sizes[1] if len(shape.sizes) > 1 else 0.0
    y[:, 1] -= np.clip(y[:, 1], -half, half)
    return np.linalg.norm(y, axis=1) - shape.sizes[0]


def _distances(colliders: Sequence[Collider], place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances of points from colliders as these stand first [m], shape (n, bodies), and normals (n, bodies, 3)."""
    from mpm_nodes.kernels.collisions.paths import distances_at
    from mpm_nodes.solver.colliders import ColliderSet

    bodies = ColliderSet(colliders)
    first = min(float(each.shape.pose_times[0]) for each in colliders)
    bodies.pose(first, first)
    found = np.empty((len(place), len(colliders), 4))
    distances_at(place, bodies.bodies(), found)
    return found[..., 0], found[..., 1:]


def _pushed_out(colliders: Sequence[Collider], place: np.ndarray, out: float) -> np.ndarray:
    """Return points with those inside set before the nearest surfaces [m]."""
    place = place.copy()
    for _ in range(PUSHES):
        phi, normal = _distances(colliders, place)
        rows, deepest = np.arange(len(place)), phi.argmin(axis=1)
        inside = phi[rows, deepest] < 0.0
        if not inside.any():
            break
        place[inside] += ((out - phi[rows, deepest])[:, None] * normal[rows, deepest])[inside]
    return place
