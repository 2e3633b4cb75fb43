"""Looks: one for every entry of the library, in two networks that renderers can read, bound to the parts of a mesh."""

from __future__ import annotations

import dataclasses
import importlib.util
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, Material, Mesh, Particles
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan.validate import validate
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.looks import LOOKS, look_of
from mpm_nodes.nodes.collide import collide_plane
from mpm_nodes.nodes.looks import set_looks
from mpm_nodes.preview.exposures import surroundings
from mpm_nodes.preview.scene import open_scene
from usd_io.check import check_cache

pytest.importorskip("pxr")
from pxr import Usd, UsdGeom, UsdShade

from usd_io.bounds import floor_of
from usd_io.meshes import face_materials
from usd_io.stage import CacheNames, FrameContent, frame_layer


def test_every_entry_of_the_library_has_a_look_and_keeps_it_under_its_name():
    """An entry's material finds its look by its label, a law's by the law; a look of its own goes before both."""
    for name, entry in LIBRARY.items():
        assert entry.look in LOOKS and look_of(named_material(name)) == entry.look
    assert look_of(Material("liquid", {}, 1000.0)) == "water" and look_of(Material("neo_hookean", {}, 1000.0, "mine")) == "matter"
    assert look_of(Material("liquid", {}, 1000.0, "Honey", look="wax")) == "wax"
    for label, look in (("melted cheese", "cheese"), ("Molten Wax", "wax"), ("cheese of the moon", "snow"), ("", "snow")):
        assert look_of(Material("snow", {}, 900.0, label)) == look
    for label, look in (("shaving cream", "foam"), ("honey", "syrup"), ("Wet sand", "wet_sand")):
        assert look_of(Material("liquid", {}, 900.0, label)) == look


def test_looks_are_bound_to_the_parts_of_what_they_shade(tmp_path: Path):
    """Two materials: a subset of faces each with its look, every face once in every frame; and points that show both colours."""
    graph = Graph(cell_size=0.05, fps=24, start=1, end=3)
    sides = []
    for name, x in (("jelly", -0.15), ("honey", 0.15)):
        matter = graph.add("material_library", name, name=name)
        sides.append(graph.add("emit_box", f"{name}_box", material=matter, size=(0.3, 0.2, 0.2), centre=(x, 0.3, 0.0)))
    both = graph.add("merge_particles", "both", sources=sides)
    skin = graph.add("surface_particles", "surface", particles=both)
    graph.add("write_cache", "cache", particles=both, mesh=skin["mesh"])
    folder = execute(graph, out=tmp_path / "out").revision_folder
    stage = Usd.Stage.Open(str(folder / "cache.usda"))
    mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/cache/mesh"))
    parts = UsdShade.MaterialBindingAPI(mesh).GetMaterialBindSubsets()
    assert [part.GetPrim().GetName() for part in parts] == ["mesh_Jelly", "mesh_Honey"]
    bound = [UsdShade.MaterialBindingAPI(part.GetPrim()).ComputeBoundMaterial()[0].GetPrim().GetName() for part in parts]
    assert bound == ["jelly_painted", "syrup_painted"]
    for frame in (1, 3):
        faces = [np.array(part.GetIndicesAttr().Get(frame)) for part in parts]
        points, counts = np.array(mesh.GetPointsAttr().Get(frame)), np.array(mesh.GetFaceVertexCountsAttr().Get(frame))
        assert sorted(np.concatenate(faces).tolist()) == list(range(len(counts))) and all(len(each) for each in faces)
        corners = np.split(np.array(mesh.GetFaceVertexIndicesAttr().Get(frame)), np.cumsum(counts)[:-1])
        middles = np.array([points[corner][:, 0].mean() for corner in corners])
        assert middles[faces[0]].max() < 0.06 and middles[faces[1]].min() > -0.06
    colours = np.unique(
        np.round(np.array(stage.GetPrimAtPath("/cache/particles").GetAttribute("primvars:displayColor").Get(1)), 4), axis=0
    )
    assert {tuple(row) for row in colours.tolist()} == {
        tuple(np.round(np.float32(LOOKS[look].colour), 4).tolist()) for look in ("jelly", "syrup")
    }
    assert check_cache(folder / "cache.usda") == []


def test_each_material_has_a_mesh_where_it_is_asked_for(tmp_path: Path):
    """Two materials, a mesh each with its look: together they have the faces, points and volume of the one closed mesh."""
    stages = {}
    for apart in (False, True):
        graph = Graph(cell_size=0.05, fps=24, start=1, end=2)
        sides = []
        for name, x in (("jelly", -0.15), ("honey", 0.15)):
            matter = graph.add("material_library", name, name=name)
            sides.append(graph.add("emit_box", f"{name}_box", material=matter, size=(0.3, 0.2, 0.2), centre=(x, 0.3, 0.0)))
        both = graph.add("merge_particles", "both", sources=sides)
        skin = graph.add("surface_particles", "surface", particles=both, attributes=("speed",))
        graph.add("write_cache", "cache", particles=both, mesh=skin["mesh"], mesh_per_material=apart)
        folder = execute(graph, out=tmp_path / f"{apart}").revision_folder
        assert check_cache(folder / "cache.usda") == []
        stages[apart] = Usd.Stage.Open(str(folder / "cache.usda"))
    whole, parts = stages[False].GetPrimAtPath("/cache/mesh"), stages[True].GetPrimAtPath("/cache/mesh").GetChildren()
    assert [part.GetName() for part in parts] == ["mesh_Jelly", "mesh_Honey"]
    assert [UsdGeom.Imageable(part).ComputePurpose() for part in parts] == ["render", "render"]
    bound = [UsdShade.MaterialBindingAPI(part).ComputeBoundMaterial()[0].GetPrim().GetName() for part in parts]
    assert bound == ["jelly_painted", "syrup_painted"]

    def faces(prim: Usd.Prim) -> list[tuple[bytes, ...]]:
        """Return the points of each face, and what they carry."""
        columns = [prim.GetAttribute(name).Get(2) for name in ("points", "normals", "velocities", "primvars:speed")]
        rows = np.column_stack([np.array(column, np.float32) for column in columns])
        counts = np.array(prim.GetAttribute("faceVertexCounts").Get(2))
        corners = np.split(np.array(prim.GetAttribute("faceVertexIndices").Get(2)), np.cumsum(counts)[:-1])
        return [tuple(row.tobytes() for row in rows[corner]) for corner in corners]

    assert sorted(faces(parts[0]) + faces(parts[1])) == sorted(faces(whole))
    assert all(part.GetAttribute("velocities").Get(3) is None for part in parts)  # no blur after the last frame
    told = stages[True].GetPrimAtPath("/cache/mesh").GetAttribute("mpm:matter_volume")
    told.Set(1.5 * told.Get(2), 2)
    stages[True].GetRootLayer().Save()
    (problem,) = check_cache(folder / "cache.usda")
    assert problem.startswith("/cache/mesh frame") and "the surface holds 33.3 % less than its particles" in problem


def test_faces_take_the_material_of_most_of_their_corners():
    """Two of three corners decide; equally many go to the first material."""
    mesh = Mesh(
        np.zeros((5, 3)),
        np.array([3, 4], np.int32),
        np.array([0, 1, 2, 1, 2, 3, 4], np.int32),
        attributes={"material": np.array([0, 1, 1, 0, 0])},
        materials=(Material("snow", {}, 1.0), Material("liquid", {}, 1.0)),
    )
    assert face_materials(mesh).tolist() == [1, 0]


DEFINITIONS = ("stdlib/stdlib_defs.mtlx", "pbrlib/pbrlib_defs.mtlx", "bxdf/standard_surface.mtlx")


def _definitions() -> dict[str, dict[str, str]]:
    """Return the types of the inputs and outputs of MaterialX's nodes, by the library that Blender brings along."""
    found = importlib.util.find_spec("bpy")
    folders = [Path(place) / "lib/materialx/libraries" for place in (found.submodule_search_locations or ())] if found else []
    files = [folder / name for folder in folders for name in DEFINITIONS]
    nodes = {node.get("name", ""): node for file in files for node in ElementTree.parse(file).getroot().iter("nodedef")}
    definitions: dict[str, dict[str, str]] = {}
    for name, node in nodes.items():
        lines = [nodes[node.get("inherit", "")], node] if node.get("inherit") in nodes else [node]
        ports = (port for line in lines for port in line if port.tag in ("input", "output"))
        definitions[name] = {port.get("name", ""): port.get("type", "") for port in ports}
    return definitions


@pytest.mark.parametrize("painted", [False, True])
def test_networks_are_those_of_materialx(painted: bool):
    """Every node is one that MaterialX defines, with inputs and outputs of its names and types; every connection is whole."""
    from usd_io.looks import add_material

    definitions = _definitions()
    if not definitions:
        pytest.skip("MaterialX's library is not installed")
    kinds = {"float": "float", "color3": "color3f", "string": "string", "integer": "int", "surfaceshader": "token"}
    stage = Usd.Stage.CreateInMemory()
    for name, look in LOOKS.items():
        material = add_material(stage, f"/looks/{name}_look", look, painted)
        seen, waiting = set(), [material.ComputeSurfaceSource("mtlx")[0]]
        assert material.ComputeSurfaceSource()[0].GetIdAttr().Get() == "UsdPreviewSurface"
        while waiting:
            shader = waiting.pop()
            seen.add(shader.GetPath())
            ports = definitions[shader.GetIdAttr().Get()]
            for port in (*shader.GetInputs(), *shader.GetOutputs()):
                assert str(port.GetTypeName()) == kinds[ports[port.GetBaseName()]], (name, port.GetFullName())
                for source in port.GetConnectedSources()[0]:
                    assert source.sourceName == "out"
                    waiting.append(UsdShade.Shader(source.source))
        plain = material.ComputeSurfaceSource()[0].GetInput("clearcoat")
        coat = material.ComputeSurfaceSource("mtlx")[0].GetInput("coat")
        assert [float(found.Get()) if found else 0.0 for found in (plain, coat)] == pytest.approx([look.coat] * 2), name
        mtlx = {prim.GetPath() for prim in material.GetPrim().GetChildren() if "_mtlx_" in prim.GetName()}
        assert seen == mtlx and len(mtlx) == 1 + painted + 13 * look.glows


@pytest.mark.phenomena("heat")
def test_lava_glows_by_its_temperature(tmp_path: Path):
    """The light of a black body lies beside its temperature on points and skin; cold lava and hot wax have none."""
    from mpm_nodes.materials.black_body import emitted

    for look, kelvin in (("lava", 1400.0), ("lava", 300.0), ("wax", 1400.0)):
        graph = Graph(cell_size=0.05, fps=24, start=1, end=1)
        matter = graph.add("material_liquid", "matter")
        ball = graph.add("emit_sphere", "ball", material=matter, radius=0.2)
        hot = graph.add("set_temperature", "hot", particles=ball, temperature=kelvin)
        shaded = graph.add("set_looks", "shaded", particles=hot, looks=[look])
        skin = graph.add("surface_particles", "surface", particles=shaded)
        graph.add("write_cache", "cache", particles=shaded, mesh=skin["mesh"])
        folder = execute(graph, out=tmp_path / f"{look}_{kelvin:g}").revision_folder
        stage = Usd.Stage.Open(str(folder / "cache.usda"))
        for leaf in ("mesh", "particles"):
            prim = stage.GetPrimAtPath(f"/cache/{leaf}")
            glow = UsdGeom.PrimvarsAPI(prim).GetPrimvar("glow")
            light = glow.ComputeFlattened(1) if glow else None
            assert (light is not None) == (look == "lava")
            if light is not None:
                expected = emitted(np.array([kelvin]))[0]
                assert np.allclose(np.array(light), expected, rtol=1e-3, atol=1e-6)
                assert len(prim.GetAttribute("primvars:temperature").Get(1)) == len(light)


def test_unknown_looks_are_refused_with_the_list():
    """The message names the look and all that there are."""
    particles = Particles({"position": np.zeros((1, 3))}, (Material("snow", {}, 1.0),), 0.1)
    with pytest.raises(Exception, match=r'"velvet" is not a look; choose of matter, matte, .*metal'):
        set_looks(particles, looks=("velvet",))
    assert look_of(set_looks(particles, looks=("metal",)).materials[0]) == "metal"


def test_a_level_square_looks_as_the_floor_and_bodies_do_not(tmp_path: Path):
    """Still or moving, no edge of it shows on the floor; a slope and a box have the look of bodies."""
    graph = Graph(cell_size=0.05, fps=24, start=1, end=2)
    keyed = {"keys": [[1, [0.0, -0.1, 0.0], "linear"], [2, [0.0, -0.2, 0.0], "linear"]]}
    bodies = [
        graph.add("collide_plane", "still", name="still"),
        graph.add("collide_plane", "sinks", name="sinks", centre=keyed),
        graph.add("collide_plane", "slope", name="slope", rotation=(0.0, 0.0, 20.0)),
        graph.add("collide_box", "block", name="block"),
    ]
    graph.add("write_cache", "cache", colliders=bodies)
    stage = Usd.Stage.Open(str(execute(graph, out=tmp_path / "out").revision_folder / "cache.usda"))
    prims = {name: stage.GetPrimAtPath(f"/cache/collider_{name}") for name in ("still", "sinks", "slope", "block")}
    bound = {name: UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0].GetPrim().GetName() for name, prim in prims.items()}
    assert bound == {"still": "floor_look", "sinks": "floor_look", "slope": "collider_look", "block": "collider_look"}


def test_colliders_have_the_look_that_is_chosen_and_the_floor_that_of_its_plane(tmp_path: Path):
    """Still or moving; the floor of the set looks as the plane that it goes on for, in pictures too."""
    graph = Graph(cell_size=0.05, fps=24, start=1, end=2)
    keyed = {"keys": [[1, [0.0, 0.3, 0.0], "linear"], [2, [0.0, 0.4, 0.0], "linear"]]}
    bodies = {
        "tiles": graph.add("collide_plane", "plane", name="tiles"),
        "steel": graph.add("collide_box", "block", name="steel", size=(0.2, 0.2, 0.2), centre=(0.0, 0.3, 0.0)),
        "glass": graph.add("collide_sphere", "ball", name="glass", radius=0.1, centre=keyed),
    }
    chosen = {"tiles": "checker", "steel": "steel", "glass": "glass"}
    looks = [graph.add("collider_look", f"{name}_look", collider=body, look=chosen[name]) for name, body in bodies.items()]
    graph.add("write_cache", "cache", colliders=looks)
    path = execute(graph, out=tmp_path / "out").revision_folder / "cache.usda"
    stage = Usd.Stage.Open(str(path))
    bound = {}
    for prim in (*(stage.GetPrimAtPath(f"/cache/collider_{name}") for name in chosen), stage.GetPrimAtPath("/cache_set/floor")):
        material = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
        bound[prim.GetName()] = tuple(material.ComputeSurfaceSource()[0].GetInput("diffuseColor").Get())
    expected = {**{f"collider_{name}": look for name, look in chosen.items()}, "floor": "checker"}
    assert {name: pytest.approx(LOOKS[look].colour) for name, look in expected.items()} == bound
    assert surroundings((open_scene(path),), [1, 2], "points").look == "checker"
    assert not list(check_cache(path))


def test_a_look_of_a_collider_that_does_not_exist_is_refused():
    """With those that exist, before anything is cooked."""
    graph = Graph(cell_size=0.05)
    graph.add("collider_look", "look", collider=graph.add("collide_plane", "plane"), look="velvet")
    (problem,) = validate(graph)
    assert '"velvet" is not one of the choices' in str(problem) and "wood | ceramic" in str(problem)


def test_a_flat_body_of_several_faces_leaves_the_floor_its_look():
    """It looks as a body itself; the floor in its place does not."""
    plane = collide_plane(FrameContext(1, GraphSettings()))
    points = np.asarray(plane.mesh.points)
    quads = dataclasses.replace(plane.mesh, counts=np.array([3, 3], np.int32), indices=np.array([0, 1, 2, 0, 2, 3], np.int32))
    for mesh, look in ((plane.mesh, "floor"), (quads, "collider")):
        content = FrameContent(colliders=(dataclasses.replace(plane, mesh=mesh),))
        layer = frame_layer(CacheNames("shot"), 1, 24.0, content)
        assert layer.GetPrimAtPath("/shot/collider_plane").customData["mpm_looks"] == look
        assert floor_of(layer) == (points[0, 1], "floor")
