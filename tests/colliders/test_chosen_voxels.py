"""Voxels that mesh colliders choose: by what the mesh is, no finer than the grid sees, told, and estimated before the cook."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.cli import main
from mpm_nodes.data import FrameContext, GraphSettings
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.nodes.collide import collide_usd, collide_vdb

CELL = 0.1
GRID = "mesh2ls_trivet"
SETTINGS = GraphSettings(cell_size=CELL, fps=24.0, start=1, end=3)


def bar(thickness: float, waist: float = 1.0, wide: float = 0.15) -> SimpleNamespace:
    """Return a closed bar of 2.4 x 0.6 m, `waist` of its thickness left where it is creased."""
    x, z = np.meshgrid(np.linspace(-1.2, 1.2, 49), np.linspace(-0.3, 0.3, 7), indexing="ij")
    left = np.where(abs(x) < wide, waist, 1.0)
    faces = [np.stack([x, side * 0.5 * thickness * left, z], axis=-1).reshape(-1, 3) for side in (1.0, -1.0)]
    place = np.arange(x.size).reshape(x.shape)
    a, b, c, d = place[:-1, :-1], place[1:, :-1], place[1:, 1:], place[:-1, 1:]
    quads = [np.stack([a, d, c, b], axis=-1).reshape(-1, 4), x.size + np.stack([a, b, c, d], axis=-1).reshape(-1, 4)]
    rim = np.concatenate([place[:, 0], place[-1, 1:], place[-2::-1, -1], place[0, -2:0:-1]])
    after = np.roll(rim, -1)
    quads.append(np.stack([rim, after, x.size + after, x.size + rim], axis=-1))
    indices = np.concatenate(quads)
    return SimpleNamespace(points=np.concatenate(faces), counts=np.full(len(indices), 4), indices=indices.ravel())


def taken(path, **knobs):
    """Return the collider at frame 2, and what was reported."""
    told = []
    ctx = FrameContext(frame=2, settings=SETTINGS, report=lambda kind, **facts: told.append(facts["message"]))
    return collide_usd(ctx, SETTINGS, path=path, **knobs), told


def moving(write_usd, mesh, lift: float):
    """Return the file of a mesh that is stretched by 1 % and lifted from frame 1 to 2 [m]."""
    return write_usd(mesh, points={1: mesh.points, 2: mesh.points * (1.0, 1.0, 1.01) + (0.0, lift, 0.0)})


CASES = {
    "edges": (bar(1.0 * CELL), 0.5, None),
    "crease": (bar(2.0 * CELL, waist=0.05, wide=0.06), 0.25, "may leak"),
    "thin crease": (bar(2.0 * CELL, waist=0.15, wide=0.06), 0.25, "less memory"),
    "sheet": (bar(0.2 * CELL), 0.125, "less memory"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_deforming_mesh_takes_voxels_that_the_grid_sees(name, write_usd):
    """Edges ask for nothing; a crease, however thin, takes a quarter of a cell in every key; a sheet is held, and all is told."""
    mesh, cells, says = CASES[name]
    collider, told = taken(moving(write_usd, mesh, 0.3))
    assert len(collider.shape.level_sets) > 5
    assert {round(each.voxel_size / CELL, 6) for each in collider.shape.level_sets} == {cells}
    assert len(told) == (says is not None) and all(says in text and f"{cells:g} cells" in text for text in told)


def test_a_rigid_mesh_takes_an_eighth_for_its_crease(write_usd):
    """It takes one level set for the shot."""
    collider, _ = taken(write_usd(bar(2.0 * CELL, waist=0.1, wide=0.06)))
    assert [each.voxel_size for each in collider.shape.level_sets] == [pytest.approx(0.125 * CELL)]


@pytest.mark.parametrize("name", CASES)
def test_what_a_mesh_takes_is_estimated(name, write_usd, tmp_path, capsys):
    """Memory of the level sets of two frames, held twice, is known to a factor of 1.5; `validate` says the voxels."""
    mesh, cells, says = CASES[name]
    path = moving(write_usd, mesh, 0.3)
    graph = Graph(cell_size=CELL, start=1, end=2)
    graph.add("collide_usd", "bar", path=str(path))
    said = preflight.estimate(plan_graph(graph), 1)["bar"]["memory"]
    collider, _ = taken(path)
    assert 1 / 1.5 < said / (4 * collider.shape.nbytes) < 1.5
    assert main(["validate", str(graph.save(tmp_path / "graph.json"))]) == 0
    assert (f"{cells:g} cells" in capsys.readouterr().out) == (says is not None)


@pytest.mark.phenomena("heat")
def test_the_level_set_of_a_file_is_in_the_estimate():
    """As it is read, held as value and packed for the solve; a node behind it passes its points on."""
    path = Path(__file__).parents[2] / "samples/trivet.vdb"
    graph = Graph(cell_size=CELL, start=1, end=2)
    rest = graph.add("collide_vdb", "rest", path=str(path), grid=GRID)
    graph.add("collider_temperature", "warm", collider=rest)
    told = preflight.estimate(plan_graph(graph), 1)
    collider = collide_vdb(FrameContext(frame=1, settings=SETTINGS), path=path, grid=GRID)
    assert told["rest"]["memory"] == 2 * collider.shape.nbytes > 1_000_000
    assert told["warm"]["still_points"] == told["warm"]["mesh_points"] == len(collider.mesh.points)
