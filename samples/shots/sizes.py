"""A sample's graph in one of its sizes: as it lies in its file, or with the numbers of its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpm_nodes.commands import cook
from mpm_nodes.data import InputError
from mpm_nodes.packaged_samples import sample_graph

SIZES = ("quick", "paper")
"""Here, not beside the figures: every start of the command line asks for them, and figures load numba."""


def graph_of(sample: Any, size: str = "quick", overrides: Sequence[str] = ()) -> Any:
    """Return a sample's graph in that size, changed by the command line's overrides (errors as `sized`)."""
    return sized(cook.load(sample_graph(sample.name), ()), sample, size, overrides)


def sized(graph: Any, sample: Any, size: str, overrides: Sequence[str]) -> Any:
    """Return the graph turned into that size, then changed by the command line's overrides; all problems are raised at once.

    Raises:
        InputError: The sample has no paper size.
        GraphError: An override names or gives what the graph does not take.
    """
    if size == "paper" and sample.paper is None:
        raise InputError(f"sample '{sample.name}': its source states no numbers for it; leave --size paper out")
    if size == "paper":
        for name in sample.paper.without:
            remove(graph, name)
        for name in sample.paper.still:
            stand_still(graph, name)
        overrides = (*sample.paper.overrides, *overrides)
    return cook.changed(graph, overrides)


def stand_still(graph: Any, stream: str) -> None:
    """Make the template of a stream a source of the solves that it went to, and take the stream out."""
    template = graph.nodes[stream].inputs["template"]
    for entry in graph.nodes.values():
        if stream in entry.inputs.get("emitters", ()):
            entry.inputs["sources"] = [*entry.inputs.get("sources", ()), *template]
    remove(graph, stream)


def remove(graph: Any, name: str) -> None:
    """Take a node out of a graph, and its wires."""
    del graph.nodes[name]
    for entry in graph.nodes.values():
        for port, wires in list(entry.inputs.items()):
            kept = [wire for wire in wires if wire.partition(".")[0] != name]
            if kept:
                entry.inputs[port] = kept
            else:
                del entry.inputs[port]
