"""The samples with bodies and broken meshes: their graphs, the bar's mesh, and their measures on made-up matter."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sample_numbers import SAMPLES as FOLDER

from mpm_nodes.cli import main
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.shot import Shot
from tests.reproduction import bodies

pytest.importorskip("pxr")
NAMES = ("broken_chocolate", "ball_on_jelly", "floating_bodies", "stirred_batter")


@pytest.mark.parametrize("name", NAMES)
def test_the_graphs_are_valid(name, capsys):
    """And their measures find the colliders by the names that these have in the graph."""
    for module in ("mujoco", "manifold3d"):
        pytest.importorskip(module)
    assert main(["validate", str(FOLDER / f"{name}.json")]) == 0, capsys.readouterr()
    graph = sizes.graph_of(SAMPLES[name])
    named = {entry.knobs.get("name") for entry in graph.nodes.values() if entry.type.startswith("collide_")}
    wanted = {"ball_on_jelly": {"round"}, "floating_bodies": {collider for collider, _ in bodies.FLOATERS.values()}}
    assert wanted.get(name, {"blades"} if name == "stirred_batter" else set()) <= named
    if name == "stirred_batter":
        assert tuple(graph.nodes["motor"].knobs[each] for each in ("speed", "torque")) == bodies.MOTOR
    if name == "floating_bodies":
        densities = {entry.knobs["name"]: entry.knobs["density"] for entry in graph.nodes.values() if entry.type == "rigid_body"}
        assert densities == {body: density for body, (_, density) in bodies.FLOATERS.items()}
        assert tuple(np.array(graph.nodes["pool"].knobs["size"])[[0, 2]]) == bodies.POOL
    if name == "ball_on_jelly":
        assert graph.nodes["ball"].knobs["velocity"] == [0, -bodies.START, 0]


def test_the_bar_is_what_its_script_makes(tmp_path: Path):
    """Closed, its faces outwards; the file has the same points and maps."""
    from pxr import Usd, UsdGeom

    spec = importlib.util.spec_from_file_location("make_chocolate", FOLDER / "make_chocolate.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    made.main(tmp_path / "chocolate.usdc")
    meshes = []
    for folder in (tmp_path, FOLDER):
        stage = Usd.Stage.Open(str(folder / "chocolate.usdc"))
        mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/chocolate"))
        told = UsdGeom.PrimvarsAPI(mesh).GetPrimvar("st").Get()
        meshes.append((np.array(mesh.GetPointsAttr().Get()), np.array(mesh.GetFaceVertexIndicesAttr().Get()), np.array(told)))
    for one, other in zip(*meshes, strict=True):
        assert np.abs(one.astype(float) - other).max() < 1e-6
    points, faces, _ = made.chocolate()
    edges = [pair for face in faces for pair in zip(face, [*face[1:], face[0]], strict=True)]
    assert sorted(edges) == sorted((b, a) for a, b in edges)
    fans = np.array([(face[0], face[n], face[n + 1]) for face in faces for n in range(1, len(face) - 1)])
    size = np.ptp(points, axis=0)
    assert 0.8 < bodies._volume(points, fans) / size.prod() < 1.0


def test_the_mixer_is_what_its_script_makes(tmp_path: Path):
    """Bowl, batter, cocoa and impeller, closed; cocoa and batter fill the bowl together, a quarter and the rest."""
    from pxr import Usd, UsdGeom

    spec = importlib.util.spec_from_file_location("make_mixer", FOLDER / "make_mixer.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    made.main(tmp_path / "mixer.usda")
    assert (tmp_path / "mixer.usda").read_text() == (FOLDER / "mixer.usda").read_text()
    stage, volumes = Usd.Stage.Open(str(FOLDER / "mixer.usda")), {}
    for prim in stage.Traverse():
        mesh = UsdGeom.Mesh(prim)
        points, indices = np.array(mesh.GetPointsAttr().Get(), float), np.array(mesh.GetFaceVertexIndicesAttr().Get())
        faces = np.split(indices, np.cumsum(mesh.GetFaceVertexCountsAttr().Get())[:-1])
        edges = [pair for face in faces for pair in zip(face, np.roll(face, -1), strict=True)]
        assert sorted(edges) == sorted((b, a) for a, b in edges), prim
        fans = np.array([(face[0], face[n], face[n + 1]) for face in faces for n in range(1, len(face) - 1)])
        volumes[prim.GetName()] = bodies._volume(points, fans)
    assert set(volumes) == {"bowl", "batter", "cocoa", "impeller"} and min(volumes.values()) > 0.0
    assert volumes["cocoa"] == pytest.approx(volumes["batter"] / 3.0, rel=1e-3)
    assert bodies._turn_of(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])) == pytest.approx(np.pi / 2.0)


def test_pieces_are_measured():
    """A box of 12 triangles is closed, and 2 edges short without a face; a bent one is off a rigid motion, a turned one is not."""
    box = box_mesh((0.4, 0.2, 0.3))
    quads = box.indices.reshape(-1, 4)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    assert bodies._volume(box.points, triangles) == pytest.approx(0.4 * 0.2 * 0.3)
    assert bodies._open_edges(triangles) == 0 and bodies._open_edges(triangles[1:]) == 3 * 2
    rest = np.random.default_rng(1).uniform(-0.1, 0.1, (200, 3))
    turned = rest[:, [2, 0, 1]] + [1.0, 2.0, 3.0]
    assert bodies._off_rigid(rest, turned) < 1e-12
    assert bodies._off_rigid(rest, turned * [1.1, 1.0, 1.0]) == pytest.approx(0.05 * 0.1, rel=0.4)


def test_shares_below_the_level_are_those_of_archimedes(monkeypatch):
    """Of two boxes, one half in water and one just under it, whose level follows from the volumes."""
    box = box_mesh((0.1, 0.1, 0.1))
    places = {"ball": 0.15, "log": 0.1, "cube": 0.55}

    class Meshes:
        def __init__(self, collider):
            self.centre = places[collider]

        def points(self, frame):
            return box.points + [0.0, self.centre, 0.0]

        def topology(self, frame):
            return box

    monkeypatch.setattr(bodies, "_meshes_of", lambda shot, collider: Meshes(collider))
    shot = Shot(FOLDER, (1,), 0.02)
    shares = bodies._shares(shot, 1, bodies.POOL[0] * bodies.POOL[1] * 0.15 - 1.5e-3)
    assert [shares[name] for name in ("cork", "wood", "ice")] == pytest.approx([0.5, 1.0, 0.0], abs=0.01)
