"""What a graph is said to need, against what its cook takes: memory and disk to a factor of 1.5, or unknown by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mpm_nodes import Graph
from mpm_nodes.cli import main
from mpm_nodes.data import LevelSet, Mesh, MpmNodesError, Particles
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import load_graph
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph

ROOT = Path(__file__).parents[2]
FACTOR = 1.5


def shot(what: str = "cache") -> Graph:
    """Return a shot of 4,096 particles over three frames, written as `what` says."""
    graph = Graph(cell_size=0.02, fps=240.0, start=1, end=3)
    matter = graph.add("material_library", "matter", name="jelly")
    body = graph.add("emit_box", "body", material=matter, size=(0.16, 0.16, 0.16), centre=(0.0, 1.0, 0.0))
    head = graph.add("collide_usd", "head", path=str(ROOT / "samples/monkey.usdc"))
    flows = {"emitters": [graph.add("emit_stream", "flow", template=body, velocity=(0.0, -30.0, 0.0))]}
    flows = flows if what == "stream" else {"sources": [body]}
    graph.add("solve", "solve", gravity=(0.0, 0.0, 0.0), colliders=[head], **flows)
    if what in ("obj", "ply"):
        graph.add("export_points", "points", particles="solve.particles", format=what, every=2, attributes=("velocity", "mass"))
        return graph
    more = {"mesh": "surface.mesh", "volumes": ["surface.surface", "fog"]} if what == "surface" else {}
    if more:
        graph.add("surface_particles", "surface", particles="solve.particles")
        graph.add("density_volume", "fog", particles="solve.particles")
    wide = ("velocity", "id", "material", "mass", "volume", "deformation")
    attributes = {"attributes": wide} if what == "attributes" else {}
    precision = {"position_precision": 0.001} if what == "packed" else {}
    graph.add("write_cache", "cache", particles="solve.particles", colliders=["head"], **more, **attributes, **precision)
    return graph


@pytest.mark.parametrize("what", ["cache", "attributes", "packed", "surface", "stream", "obj", "ply"])
def test_disk_is_what_the_cook_writes(what, tmp_path):
    """Frames, still colliders, records and the states that are kept, by what is written; nothing is unknown."""
    graph = shot(what)
    needs = preflight.needs_of(preflight.estimate(plan_graph(graph), 1), 3)
    execute(graph, out=tmp_path)
    written = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert 1 / FACTOR < needs.disk / written < FACTOR and not needs.unknown


def test_what_cannot_be_known_is_named(tmp_path, capsys):
    """A node that does not say how much it makes, and what works on that; walls that delete; never counted as nothing."""
    (tmp_path / "own.py").write_text(
        "import numpy as np\nfrom mpm_nodes import node\nfrom mpm_nodes.data import Particles, Material\n"
        "@node(category='Own', label='Own')\ndef own_matter(material: Material) -> Particles:\n"
        "    '''Make some.\n\n    Args:\n        material: Its material.\n    '''\n"
        "    return Particles({'position': np.zeros((1, 3))}, (material,))\n"
    )
    known = registry.load(path=str(tmp_path), entry_points=False)
    graph = Graph(cell_size=0.02, start=1, end=2, registry=known)
    matter = graph.add("material_library", "matter", name="water")
    own = graph.add("own_matter", "mine", material=matter)
    ball = graph.add("collide_sphere", "ball")
    graph.add("solve", "solve", sources=[own], colliders=[ball])
    graph.add("write_cache", "cache", particles="solve.particles", colliders=[ball])
    needs = preflight.needs_of(preflight.estimate(plan_graph(graph), 1), 2)
    assert needs.unknown == ("mine", "solve", "cache") and needs.in_words().startswith("needs at least")
    graph.add("collide_vdb", "tube", path="absent.0001.vdb", sequence=True)
    assert set(preflight.needs_of(preflight.estimate(plan_graph(graph), 1), 2).unknown) == {"mine", "solve", "cache", "tube"}
    graph.set("tube.sequence", False)
    with pytest.raises(MpmNodesError, match="no such file"):
        preflight.estimate(plan_graph(graph), 1)
    flood = shot("stream")
    flood.set("solve.wall_y_low", "delete")
    path = str(flood.save(tmp_path / "flood.json"))
    assert main(["validate", path]) == 0 and "unknown before the cook: solve, cache" in capsys.readouterr().out
    assert main(["validate", path, "--json", "--needs"]) == 0
    assert json.loads(capsys.readouterr().out)["needs"]["unknown"] == ["solve", "cache"]


def test_hosts_are_told_what_will_surprise(tmp_path, capsys):
    """`needs` has the warnings that `validate` prints, by node: matter inside a collider, a law made for less gravity."""
    graph = Graph(cell_size=0.1, start=1, end=2)
    ball = graph.add("emit_sphere", "ball", material=graph.add("material_library", "paste", name="toothpaste"))
    graph.add("solve", "fall", sources=[ball], colliders=[graph.add("collide_sphere", "stone", centre=(0.0, 1.2, 0.0))])
    path = str(graph.save(tmp_path / "paste.json"))
    assert main(["validate", path]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert main(["validate", path, "--json", "--needs"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [f"warning: {each['place']}: {each['message']}" for each in warnings] == printed
    assert {each["place"] for each in warnings} == {"fall"} and any("inside collider 'stone'" in each for each in printed)
    assert any("under gravity of 9.81" in each for each in printed)


def test_every_node_that_makes_matter_says_how_much():
    """None of this package makes particles, meshes or level sets without a preflight."""
    sized = {Particles, Mesh, LevelSet}
    nodes = registry.load(path="", entry_points=False).nodes()
    silent = [name for name, each in nodes.items() if each.preflight is None and sized & {output.type for output in each.outputs}]
    assert silent == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo_without_vdb", "lava", "two_materials", "letters", "student_report", "drops_on_plates"])
def test_memory_of_a_sample_is_what_its_cook_takes(name, tmp_path):
    """Three frames of a sample in a process of its own: the largest resident set, against the estimate."""
    path = ROOT / f"samples/{name}.json"
    graph = load_graph(path)
    span = (graph.settings.start, graph.settings.start + 2)
    needs = preflight.needs_of(preflight.estimate(plan_graph(graph), span[0], last=span[1]), 3)
    cook = ["cook", str(path), "--out", str(tmp_path), "--frames", f"{span[0]}-{span[1]}", "--events", "none"]
    code = "import resource, sys; from mpm_nodes.cli import main; main(sys.argv[1:])"
    code += "; print('kB', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code, *cook], capture_output=True, text=True, check=True)
    taken = 1024 * int(done.stdout.split()[-1])
    assert 1 / FACTOR < needs.memory / taken < FACTOR
