"""Any parameter of a law may vary inside matter: painted as a temperature that no heat stage changes, and taken from a table."""

from __future__ import annotations

import numpy as np

from mpm_nodes import Graph
from mpm_nodes.graph.cook.evaluator import Evaluator


def test_a_painted_yield_stress_lets_one_half_flow():
    """Cream of 3 kPa stands, cream of 10 Pa beside it runs out, in one body of one material."""
    graph = Graph(cell_size=0.05, fps=24.0, start=1, end=9)
    cream = graph.add("material_herschel_bulkley", "cream", shear_modulus=8e3, yield_stress=300.0, density=500.0)
    painted = graph.add(
        "material_over_temperature", "painted", material=cream, parameter="yield_stress", table=[[0, 3e3], [1, 10.0]]
    )
    box = graph.add("emit_box", "box", material=painted, size=(0.6, 0.4, 0.3), centre=(0.0, 0.2, 0.0))
    half = graph.add("field_ramp", "half", direction=(1.0, 0.0, 0.0), low=-0.05, high=0.05)
    start = graph.add("set_attribute", "start", particles=box, field=half, attribute="temperature")
    graph.add("solve", "sim", sources=[start], colliders=[graph.add("collide_plane", "ground")], substeps="explicit_apic")
    found = Evaluator(graph).value("sim.particles", 9)
    height, soft = found["position"][:, 1], found["temperature"] > 0.5
    assert np.percentile(height[~soft], 95) > 0.3 and np.percentile(height[soft], 95) < 0.2
    assert set(np.round(found["temperature"], 3)) <= set(np.round(np.linspace(0.0, 1.0, 1001), 3))
