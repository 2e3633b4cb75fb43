"""What a stage would be composed to, counted before OpenUSD composes it.

A prim that refers to another twice, which refers to another twice, and so on, stands for more prims than any memory holds; a long
chain of such prims takes OpenUSD the cube of its length; prims in prims without end use up its stack.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpm_nodes.data import InputError

__all__ = ["check_depth", "check_size"]

DEEPEST_PRIM = 500
"""Prims within prims of a layer, as of the brackets of its text."""
LONGEST_CHAIN = 100
"""References, payloads, inherits or specializes one behind the other."""
MOST_PRIMS = 10_000_000
"""Prims of a stage, with those that it refers to as often as it does; instances of one prototype count once."""
ARCS = ("references", "payload", "inheritPaths", "specializes")

Place = tuple[str, str]
"""A layer by its name, and the path of a prim in it."""


@dataclass
class _Contents:
    """The prims of a layer.

    Attributes:
        paths: All prims, in order, without the variants that they lie in; below a prim lies one span of them.
        targets: Prims that refer to others, in order, and where to.
        shared: Those of them that are instances.
    """

    layer: Any
    paths: list[str] = field(default_factory=list)
    targets: dict[str, list[Place]] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    arcs: list[str] = field(default_factory=list)


def check_depth(layer: Any) -> None:
    """Refuse a layer whose prims are nested too deeply, which OpenUSD would walk until its stack is used up.

    Raises:
        InputError: They are.
    """
    from usd_io.clips import prims_of

    for last in deque(prims_of(layer), maxlen=1):  # they come by their depth
        if last.path.pathElementCount > DEEPEST_PRIM:
            raise InputError(f"{layer.identifier}: holds prims in prims, deeper than {DEEPEST_PRIM}; export it again")


def check_size(layers: Mapping[str, Any]) -> None:
    """Refuse a stage that stands for too many prims, or in which too many refer to each other.

    Args:
        layers: Layers of the stage by the name that they were opened by; None for what is not a layer.

    Raises:
        InputError: It does.
    """
    contents = {name: _contents(name, layers) for name, layer in layers.items() if layer is not None}
    if not any(each.arcs for each in contents.values()):
        return
    known: dict[Place, tuple[int, int]] = {}
    prototypes: set[tuple[Place, ...]] = set()
    total = sum(len(each.paths) for each in contents.values())
    for name, held in contents.items():
        for prim in held.arcs:
            total += _count(contents, (name, prim), known, prototypes)
            if total > MOST_PRIMS:
                told = f"{prim}: with what it and those before it refer to, the stage has more than {MOST_PRIMS:,} prims"
                raise InputError(f"{held.layer.identifier}: {told}; export a smaller stage, or make them instanceable")


def _contents(name: str, layers: Mapping[str, Any]) -> _Contents:
    from usd_io.clips import prims_of

    layer = layers[name]
    found = _Contents(layer)
    for prim in prims_of(layer):
        here = str(prim.path.StripAllVariantSelections())
        found.paths.append(here)
        targets = [target for arc in ARCS if prim.HasInfo(arc) for target in _targets(name, prim, arc, layers)]
        if targets:
            found.targets.setdefault(here, []).extend(targets)
            if prim.instanceable:
                found.shared.add(here)
    found.paths.sort()
    found.arcs = sorted(found.targets)
    return found


def _targets(own: str, prim: Any, arc: str, layers: Mapping[str, Any]) -> Iterator[Place]:
    from pxr import Sdf

    for item in prim.GetInfo(arc).GetAppliedItems():
        if isinstance(item, Sdf.Path):
            yield own, str(item.MakeAbsolutePath(prim.path.GetPrimPath()))
            continue
        place = str(Sdf.ComputeAssetPathRelativeToLayer(layers[own], item.assetPath)) if item.assetPath else own
        other = layers.get(place)
        if other is not None:
            yield place, str(item.primPath) if item.primPath else f"/{other.defaultPrim.lstrip('/')}"


def _count(contents: Mapping[str, _Contents], first: Place, known: dict[Place, tuple[int, int]], prototypes: set[Any]) -> int:
    """Return how many prims one that refers to others brings along.

    Raises:
        InputError: It is the first of too long a chain.
    """
    begun: set[Place] = set()
    waiting, depth = [first], 0
    while waiting:
        place = waiting[-1]
        if place in known:
            waiting.pop()
            continue
        held = contents[place[0]]
        spans = [_below(contents, target) for target in held.targets[place[1]]]
        further = [each for _, arcs in spans for each in arcs]
        if place not in begun:
            begun.add(place)
            depth += 1
            if depth > LONGEST_CHAIN:  # told here: a chain of a hundred thousand is not walked to its end
                raise _too_long(contents, first)
            waiting.extend(each for each in further if each not in known and each not in begun)  # the others: a ring, told later
            continue
        count = sum(max(size - 1, 0) for size, _ in spans)  # it stands for the first one itself
        count += sum(known.get(each, (0, 0))[0] for each in further)
        chain = 1 + max((known.get(each, (0, 0))[1] for each in further), default=0)
        if chain > LONGEST_CHAIN:
            raise _too_long(contents, place)
        if place[1] in held.shared:
            prototype = tuple(held.targets[place[1]])
            count = 0 if prototype in prototypes else count
            prototypes.add(prototype)
        known[place] = min(count, MOST_PRIMS + 1), chain
        waiting.pop()
        depth -= 1
    return known[first][0]


def _too_long(contents: Mapping[str, _Contents], first: Place) -> InputError:
    told = f"{first[1]}: is the first of more than {LONGEST_CHAIN} prims that refer to each other"
    return InputError(f"{contents[first[0]].layer.identifier}: {told}; export it flattened")


def _below(contents: Mapping[str, _Contents], target: Place) -> tuple[int, list[Place]]:
    """Return how many prims lie at and below a prim of a layer and its sublayers, and which of them refer to others."""
    number, arcs = 0, list[Place]()
    waiting, seen = [target[0]], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in contents:
            continue
        seen.add(name)
        held = contents[name]
        number += sum(len(span) for span in _spans(held.paths, target[1]))
        arcs += [(name, held.arcs[at]) for span in _spans(held.arcs, target[1]) for at in span]
        waiting += [held.layer.ComputeAbsolutePath(each) for each in held.layer.subLayerPaths]
    return number, arcs


def _spans(paths: list[str], top: str) -> tuple[range, range]:
    """Return where in sorted paths a prim, and what lies below it, stand: "0" comes after "/"."""
    below = top.rstrip("/")
    own = range(bisect_left(paths, top), bisect_right(paths, top))
    return own, range(bisect_left(paths, f"{below}/"), bisect_left(paths, f"{below}0"))
