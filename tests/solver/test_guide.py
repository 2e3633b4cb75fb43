"""Guides: a finer run of a shot follows a coarser one by a weak drag to its velocities."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mpm_nodes.data import GraphSettings
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.document.document import Graph

SETTINGS = GraphSettings(start=1, end=20)


def shot(cell_size: float, guide: Path | None = None) -> Graph:
    """Return a column of liquid that falls beside a ball; it writes its velocities, or follows those of a cook's volumes."""
    graph = Graph(cell_size=cell_size, start=SETTINGS.start, end=SETTINGS.end)
    matter = graph.add("material_liquid", "matter", bulk_modulus=2e4, viscosity=0.5)
    column = graph.add("emit_box", "column", material=matter, size=(0.4, 0.6, 0.4), centre=(-0.3, 0.31, 0.05))
    ball = graph.add("collide_sphere", "ball", radius=0.15, centre=(0.15, 0.1, 0.0))
    ground = graph.add("collide_plane", "ground", friction=0.2)
    sim = graph.add("solve", "sim", sources=[column], colliders=[ball, ground])
    graph.add("write_cache", "cache", particles=sim["particles"], attributes=["velocity", "id"])
    if guide is None:
        graph.nodes["cache"].connect("volumes", [graph.add("velocity_volume", "flow", particles=sim["particles"])])
    else:
        flow = graph.add("field_vdb", "flow", path=str(guide), grid="vel", sequence=True)
        graph.nodes["sim"].connect("forces", [graph.add("force_wind", "guide", field=flow, velocity=(0.0, 0.0, 0.0), drag=20.0)])
    return graph


def course(graph: Graph, out: Path) -> np.ndarray:
    """Cook a shot; return the centre and the spread of its particles in every frame, shape (frames, 6) [m]."""
    from usd_io.stage_reader import read_points

    execute(graph, out=out)
    stage = next(out.rglob("cache.usda"))
    places = (read_points(stage, frame)["position"] for frame in range(SETTINGS.start, SETTINGS.end + 1))
    return np.array([np.concatenate([x.mean(axis=0), x.std(axis=0)]) for x in places])


def test_a_fine_run_with_a_guide_stays_with_the_coarse_one(tmp_path):
    """Centre and spread stay within a quarter of a coarse cell, where those of a run without a guide are off by more than one."""
    coarse = course(shot(0.08), tmp_path / "coarse")
    first = min((tmp_path / "coarse").rglob("*.vdb"))
    alone = np.abs(course(shot(0.04), tmp_path / "alone") - coarse).max(axis=0)
    guided = np.abs(course(shot(0.04, first), tmp_path / "guided") - coarse).max(axis=0)
    assert guided.max() < 0.02 and alone.max() > 0.08
