"""One order for one graph: topological, and independent of names and of the order in the file.

Every node gets a lineage hash: what it is (type, version, knobs) and the hashes of what is wired into it. Nodes are
sorted by their depth, then by their hash. A transparent node (a stage that touches nothing) leaves depth and hash of
the others alone, so that inserting one on a wire changes no order.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

Sources = Mapping[str, Sequence[tuple[str, str]]]
"""By port, where its wires come from: (node, output); node "" is the outside."""


class Ordered(NamedTuple):
    """Nodes in canonical order, and each one's lineage hash."""

    names: list[str]
    hashes: dict[str, str]


def digest(*parts: str) -> str:
    """Return a digest of texts; no two different lists of texts share one."""
    whole = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        whole.update(len(encoded).to_bytes(8, "little") + encoded)
    return whole.hexdigest()


def topological(wires: Mapping[str, Sources]) -> list[str]:
    """Return the nodes so that each follows its sources; nodes on or behind a cycle are left out."""
    waiting = {name: len({s for sources in ports.values() for s, _ in sources if s}) for name, ports in wires.items()}
    users: dict[str, list[str]] = {name: [] for name in wires}
    for name, ports in wires.items():
        for source in {s for sources in ports.values() for s, _ in sources if s}:
            users[source].append(name)
    order = [name for name, count in waiting.items() if count == 0]
    for name in order:
        for user in users[name]:
            waiting[user] -= 1
            if waiting[user] == 0:
                order.append(user)
    return order


def find_cycle(wires: Mapping[str, Sources]) -> list[str]:
    """Return the nodes of one cycle along the wires, starting with the least name, or [] when there is none."""
    stuck = set(wires) - set(topological(wires))
    if not stuck:
        return []
    path, name = [], min(stuck)
    while name not in path:  # each stuck node has a stuck source
        path.append(name)
        name = min(s for sources in wires[name].values() for s, _ in sources if s in stuck)
    cycle = path[path.index(name) :][::-1]
    least = cycle.index(min(cycle))
    return cycle[least:] + cycle[:least]


def ancestors(wires: Mapping[str, Sources], order: Sequence[str]) -> dict[str, int]:
    """Return for each node a bit mask over `order` of everything that comes before it along wires."""
    bit = {name: 1 << index for index, name in enumerate(order)}
    before: dict[str, int] = {}
    for name in order:
        mask = 0
        for sources in wires[name].values():
            for source, _ in sources:
                if source:
                    mask |= before[source] | bit[source]
        before[name] = mask
    return before


def canonical(
    wires: Mapping[str, Sources], identity: Mapping[str, str], transparent: Collection[str] = (), merging: bool = False
) -> Ordered:
    """Order an acyclic graph.

    Args:
        wires: Wires into each node.
        identity: What each node is: equal texts for equal nodes, names left out.
        transparent: Nodes that leave every value alone; each output repeats the input of the same name.
        merging: Whether several wires into one port are a set (stages) and not a sequence (nodes).
    """
    order = topological(wires)
    hashes = _lineage(wires, order, identity, transparent, merging)
    uses = _uses(wires, order, hashes, transparent, merging)
    ranks = _ranks(wires, order, transparent)
    place: dict[str, int] = {}

    def key(name: str) -> tuple[str, str, list[list[int]]]:
        found = [[place[s] if s else -1 for s, _ in wires[name][port]] for port in sorted(wires[name])]
        return hashes[name], uses[name], [sorted(places) for places in found] if merging else found

    for _, level in itertools.groupby(sorted(order, key=ranks.__getitem__), key=ranks.__getitem__):
        place.update({name: len(place) + index for index, name in enumerate(sorted(level, key=key))})
    return Ordered(list(place), hashes)


def _lineage(
    wires: Mapping[str, Sources],
    names: Sequence[str],
    identity: Mapping[str, str],
    transparent: Collection[str],
    merging: bool,
) -> dict[str, str]:
    """Return each node's hash: what it is, and what is wired into it."""
    repeated: dict[tuple[str, str], str] = {}
    hashes: dict[str, str] = {}
    for name in names:
        inputs = {}
        for port, sources in wires[name].items():
            for source in sources:
                if source not in repeated:  # an output is made once, however many wires lead from it
                    node, output = source
                    repeated[source] = digest("output", hashes[node], output) if node else digest("outside", output)
            given = [repeated[source] for source in sources]
            given = sorted(set(given)) if merging else given
            inputs[port] = given[0] if len(given) == 1 else digest("several", *given)
        hashes[name] = digest(identity[name], *(part for port in sorted(inputs) for part in (port, inputs[port])))
        if name in transparent:
            repeated.update({(name, port): given for port, given in inputs.items()})
    return hashes


def _uses(
    wires: Mapping[str, Sources],
    names: Sequence[str],
    hashes: Mapping[str, str],
    transparent: Collection[str],
    merging: bool,
) -> dict[str, str]:
    """Return a hash of what becomes of each node's outputs: it tells nodes of equal lineage apart."""
    users: dict[str, list[str]] = {name: [] for name in names}
    uses: dict[str, str] = {}
    for name in reversed(names):
        uses[name] = digest(*sorted(users[name]))
        for port, sources in wires[name].items():
            positions: dict[tuple[str, str], list[str]] = {}
            for number, wire in enumerate(sources):
                positions.setdefault(wire, []).append("" if merging else str(number))
            for (source, output), places in positions.items():
                if source and name in transparent:
                    users[source].extend(users[name])
                elif source:
                    users[source].append(digest(output, port, ",".join(places), hashes[name], uses[name]))
    return uses


def _ranks(wires: Mapping[str, Sources], names: Sequence[str], transparent: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return each node's depth; transparent ones stay at the depth above them and count along their chain."""
    ranks: dict[str, tuple[int, int]] = {}
    for name in names:
        above = [ranks[source] for sources in wires[name].values() for source, _ in sources if source]
        level = max((level for level, _ in above), default=-1)
        chain = 1 + max((chain for depth, chain in above if depth == level), default=0)
        ranks[name] = (level, chain) if name in transparent else (level + 1, 0)
    return ranks
