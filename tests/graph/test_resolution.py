"""One number, the resolution, scales a whole shot: its cells, its voxels, and what each particle gives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import cli
from mpm_nodes.graph.cook.again import AgainRefused
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.reports.problems import GraphError


def jelly(cell: float, voxel: float, **settings: float) -> Graph:
    """Return a small shot with everything that samples matter."""
    graph = Graph(cell_size=cell, start=1, end=2, **settings)
    matter = graph.add("material_neo_hookean", "matter")
    cube = graph.add("emit_box", "cube", material=matter, size=(0.4, 0.4, 0.4), jitter=0.2)
    graph.add("solve", "fall", sources=[cube])
    graph.add("surface_particles", "surface", particles=graph["fall"]["particles"], voxel_size=voxel)
    return graph


def cooked(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of its matter and of its surface at frame 2."""
    values = Evaluator(graph)
    return np.asarray(values.value("fall.particles", 2)["position"]), np.asarray(values.value("surface.mesh", 2).points)


@pytest.mark.parametrize("resolution", [0.5, 2.0])
def test_a_resolution_cooks_what_cells_and_voxels_of_that_size_do(resolution):
    """To the same bits; with powers of two the sizes are the same numbers."""
    given = cooked(jelly(0.1, 0.05, resolution=resolution))
    written = cooked(jelly(0.1 / resolution, 0.05 / resolution))
    for one, other in zip(given, written, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(given[0]) == len(cooked(jelly(0.1, 0.05))[0]) * resolution**3


def test_keys_and_defaults_follow_it():
    """Keyed voxels keep their keys, and a number that the graph leaves to its default follows, too."""
    graph = jelly(0.1, 0.05, resolution=2.0)
    graph.key("surface.voxel_size", 1, 0.05)
    graph.key("surface.voxel_size", 2, 0.1)
    spray = graph.add("emit_secondary", "spray", path="matter.usdc")
    planned = {node.id: node for node in plan_graph(graph).nodes}
    assert [planned["surface"].sample("voxel_size", frame) for frame in (1, 1.5, 2)] == pytest.approx([0.025, 0.0375, 0.05])
    assert planned[spray.id].sample("amount", 1) == 20.0 / 8.0
    assert planned["cube"].sample("size", 1) == (0.4, 0.4, 0.4)


def test_what_samples_matter_says_so():
    """Every edge of a voxel follows the resolution: a new node with one is found here."""
    following = {
        (declaration.id, knob.name): knob.per_resolution
        for declaration in registry.default().nodes().values()
        for knob in declaration.knobs
        if knob.name == "voxel_size" or knob.per_resolution
    }
    assert {power for (_, knob), power in following.items() if knob == "voxel_size"} == {-1}
    assert following["emit_secondary", "amount"] == -3


def test_it_stands_in_the_file_where_it_is_not_1(tmp_path):
    """A graph without it is written as before, and one with it comes back."""
    assert "resolution" not in jelly(0.1, 0.05).to_json()["settings"]
    path = jelly(0.1, 0.05, resolution=0.5).save(tmp_path / "shot.json")
    assert json.loads(path.read_text())["settings"]["resolution"] == 0.5
    assert load_graph(path).settings.resolution == 0.5
    with pytest.raises(GraphError, match=r"settings\.resolution: 0\.0 is out of range"):
        Graph(resolution=0.0)


def test_the_command_line_takes_it(tmp_path, capsys):
    """`--resolution` is the setting, in every command that takes a graph; text that holds no number is told."""
    path = jelly(0.1, 0.05).save(tmp_path / "shot.json")

    def needed(*options: str) -> int:
        assert cli.main(["validate", str(path), "--json", "--needs", *options]) == 0
        return int(json.loads(capsys.readouterr().out)["needs"]["particles"])

    assert needed("--resolution", "2") == 8 * needed() == 64 * needed("--resolution", "0.5")
    assert cli.main(["validate", str(path), "--resolution", "coarse"]) == 2
    assert "settings.resolution" in capsys.readouterr().err


def test_frames_of_another_resolution_are_not_taken_over(tmp_path):
    """A cook goes on with its own cells only; the one of no resolution is that of 1."""
    execute(jelly(0.2, 0.1), out=tmp_path)
    execute(jelly(0.2, 0.1), out=tmp_path, again_from=2)
    with pytest.raises(AgainRefused, match=r"settings\.resolution: was 1, is 0\.5"):
        execute(jelly(0.2, 0.1, resolution=0.5), out=tmp_path, again_from=2)
    manifest = json.loads(Path(tmp_path / "r001" / "cook.json").read_text())
    assert "resolution" not in manifest["graph"]["settings"]
