"""Many solves of one graph share what is the same for all."""

from __future__ import annotations

from typing import Any

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.plan import preflight, substeps
from mpm_nodes.graph.plan.substeps import plan_substeps


def test_solves_that_ask_for_their_plans_share_them(monkeypatch):
    """Forces on colliders and thin bodies are looked for in the stages, which are planned once for all solves with one preset."""
    planned = []

    def counted(value: Any, *rest: Any, **more: Any) -> Any:
        planned.append(value)
        return plan_substeps(value, *rest, **more)

    monkeypatch.setattr(substeps, "plan_substeps", counted)
    nodes: dict[str, Any] = {"water": {"type": "material_library", "knobs": {"name": "water"}}, "floor": {"type": "collide_plane"}}
    nodes["rod"] = {"type": "collide_capsule", "knobs": {"radius": 0.01}}
    nodes["drop"] = {"type": "emit_sphere", "inputs": {"material": "water"}}
    for n in range(20):
        inputs = {"sources": ["drop"], "colliders": ["floor", "rod"]}
        nodes[f"solve_{n}"] = {"type": "solve", "knobs": {"contact_forces": True}, "inputs": inputs}
    graph = load_graph({"format": "mpm_nodes.graph", "version": 1, "nodes": nodes})
    found = preflight.estimate(Evaluator(graph).plan, graph.settings.start)
    assert sum(name.startswith("solve_") for name in found) == 20
    assert len(planned) <= 1
