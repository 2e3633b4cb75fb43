"""One order for one graph: topological, and independent of names and of the order in the file.

Every node gets a lineage hash: what it is (type, version, knobs) and the hashes of what is wired into it. Nodes are
sorted by their depth, then by their hash. A transparent node (a stage that touches nothing) leaves depth and hash of
the others alone, so that inserting one on a wire changes no order.
"""

from __future__ import annotations

import hashlib
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
    values: dict[tuple[str, str], str] = {}
    hashes: dict[str, str] = {}
    rank: dict[str, tuple[int, int]] = {}

    def value(source: tuple[str, str]) -> str:
        if source in values:
            return values[source]
        name, output = source
        return digest("output", hashes[name], output) if name else digest("outside", output)

    for name in topological(wires):
        inputs = {}
        for port, sources in wires[name].items():
            given = [value(source) for source in sources]
            given = sorted(set(given)) if merging else given
            inputs[port] = given[0] if len(given) == 1 else digest("several", *given)
        hashes[name] = digest(identity[name], *(part for port in sorted(inputs) for part in (port, inputs[port])))
        above = [rank[s] for sources in wires[name].values() for s, _ in sources if s]
        level = max((level for level, _ in above), default=-1)
        if name in transparent:
            values.update({(name, port): given for port, given in inputs.items()})
            rank[name] = level, 1 + max((chain for depth, chain in above if depth == level), default=0)
        else:
            rank[name] = level + 1, 0
    return Ordered(sorted(wires, key=lambda name: (rank[name], hashes[name])), hashes)
