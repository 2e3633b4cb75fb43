"""Temperatures from files: VDB grids over matter and bodies, primvars over meshes, and what they heat."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from heat_scenes import WAX, plate, solver, wax
from solver_scenes import cube

from mpm_nodes import Graph
from mpm_nodes.data import FrameContext, GraphSettings, InputError, LevelSet, MpmNodesError, SurfaceField
from mpm_nodes.data.field_courses import FieldCourse
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.physics.heat.nodes.temperature_fields import collider_temperature_usd, collider_temperature_vdb, set_temperature_vdb
from mpm_nodes.solver.surroundings import collider_at

SETTINGS = GraphSettings(cell_size=0.1)


def warm_grid(folder: Path, background: float = 0.0, low: float = 300.0) -> Path:
    """Write a grid of 16^3 voxels of 5 cm from the origin on: `low` + 100 K a metre along x."""
    from usd_io.volumes import write_volumes

    corner = np.stack(np.meshgrid([0, 8], [0, 8], [0, 8], indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    x = corner[:, 0, None] + np.arange(8)
    values = np.broadcast_to((low + 100.0 * 0.05 * x)[:, :, None, None], (8, 8, 8, 8)).astype(np.float32)
    path = folder / "warm.vdb"
    write_volumes(path, [LevelSet(corner, values, 0.05, background=background, kind="fog", name="temperature")])
    return path


def hot_floor(folder: Path, values: list[float], later: list[float] | None = None) -> Path:
    """Write a floor of 2 m, y = 0, whose four corners (-x -z, x -z, x z, -x z) have temperatures, at frame 1 and 11."""
    from pxr import Sdf, Usd, UsdGeom

    path = folder / "floor.usda"
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    mesh = UsdGeom.Mesh.Define(stage, "/floor")
    mesh.GetPointsAttr().Set([(-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)])
    mesh.GetFaceVertexCountsAttr().Set([4])
    mesh.GetFaceVertexIndicesAttr().Set([3, 2, 1, 0])
    primvar = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("temperature", Sdf.ValueTypeNames.FloatArray, UsdGeom.Tokens.vertex)
    if later is None:
        primvar.Set(values)
    else:
        primvar.Set(values, 1)
        primvar.Set(later, 11)
    stage.Save()
    return path


def test_particles_take_the_temperature_of_a_grid(tmp_path):
    """Trilinear inside, the given temperature outside, moved and scaled as the knobs say."""
    path = warm_grid(tmp_path)
    matter = cube(WAX, (0.1, 0.1, 0.1))
    x = matter["position"][:, 0]
    assert np.allclose(set_temperature_vdb(matter, path=path)["temperature"], 300.0 + 100.0 * x, atol=1e-3)
    moved = set_temperature_vdb(matter, path=path, translate=(-0.1, 0.0, 0.0), scale=2.0)
    assert np.allclose(moved["temperature"], 300.0 + 50.0 * (x + 0.1), atol=1e-3)
    away = set_temperature_vdb(matter, path=path, translate=(9.0, 0.0, 0.0), outside=250.0)
    assert (away["temperature"] == 250.0).all()


def test_grids_without_temperatures_are_refused(tmp_path):
    """No such grid, a level set, degrees below 0 K, and no such file."""
    path = warm_grid(tmp_path, low=-50.0)
    matter = cube(WAX, (0.1, 0.1, 0.1))
    with pytest.raises(MpmNodesError, match=r"'temperature' in .* has -.* K where there is matter"):
        set_temperature_vdb(matter, path=path)
    with pytest.raises(MpmNodesError, match=r"collider_temperature_vdb.grid: a temperature is -[0-9]+ K"):
        collider_temperature_vdb(plate(), FrameContext(1, SETTINGS), SETTINGS, path=path)
    with pytest.raises(InputError, match="no grid named 'heat'"):
        set_temperature_vdb(matter, path=path, grid="heat")
    with pytest.raises(InputError, match="no such file"):
        set_temperature_vdb(matter, path=tmp_path / "none.vdb")


@pytest.mark.parametrize("kind", ["set_temperature_vdb", "collider_temperature_vdb"])
def test_a_grid_below_absolute_zero_is_told_before_the_cook(tmp_path, kind):
    """The estimate looks into the file."""
    graph = Graph(cell_size=0.1, start=1, end=2)
    box = graph.add("emit_box", "box", material=graph.add("material_liquid", "water"), size=(0.4, 0.4, 0.4))
    wire = {"particles": box} if kind.startswith("set") else {"collider": graph.add("collide_plane", "floor")}
    graph.add(kind, "cold", path=str(warm_grid(tmp_path, low=-50.0)), **wire)
    with pytest.raises(MpmNodesError, match=rf"{kind}.grid: a temperature is -[0-9]+ K"):
        preflight.estimate(plan_graph(graph), 1)


def test_a_collider_takes_the_temperatures_of_a_grid(tmp_path):
    """At every place on its surface, within the grid's own change over half a cell."""
    body = collider_temperature_vdb(
        plate(), FrameContext(1, SETTINGS), SETTINGS, path=warm_grid(tmp_path), outside=280.0, conductance=500.0
    )
    x = np.linspace(0.1, 0.6, 9)
    places = np.stack([x, np.full(9, 0.3), np.full(9, 0.3)], axis=1)
    assert np.abs(body.temperatures.at(places) - (300.0 + 100.0 * x)).max() < 5.0
    assert body.temperatures.at(places + [9.0, 0.0, 0.0])[0] == 280.0 and body.conductance == 500.0


def test_a_grid_coarser_than_the_cells_has_no_holes(tmp_path):
    """Between voxels that lie four cells apart a body has the temperatures of those around, not that of outside."""
    body = collider_temperature_vdb(plate(), FrameContext(1, SETTINGS), SETTINGS, path=warm_grid(tmp_path), outside=0.0, scale=8.0)
    x = np.linspace(1.0, 5.0, 81)
    places = np.stack([x, np.full(81, 2.0), np.full(81, 2.0)], axis=1)
    assert np.abs(body.temperatures.at(places) - (300.0 + 12.5 * x)).max() < 5.0


def test_a_collider_takes_the_temperatures_of_a_primvar(tmp_path):
    """Straight between the corners of a face, and at the frame that is cooked."""
    path = hot_floor(tmp_path, [300.0, 500.0, 500.0, 300.0], [400.0, 600.0, 600.0, 400.0])
    x = np.linspace(-0.8, 0.8, 9)
    places = np.stack([x, np.zeros(9), 0.3 * x], axis=1)
    for frame, more in ((1, 0.0), (6, 50.0), (11, 100.0)):
        ctx = FrameContext(frame, dataclasses.replace(SETTINGS, start=1, end=11))
        body = collider_temperature_usd(plate(), ctx, ctx.settings, path=path)
        assert np.abs(body.temperatures.at(places) - (400.0 + more + 100.0 * x)).max() < 5.0
    with pytest.raises(InputError, match="has no primvar 'heat'; it has temperature"):
        collider_temperature_usd(plate(), ctx, ctx.settings, path=path, primvar="heat")


def test_an_even_field_heats_as_an_even_temperature():
    """The same bits: only where the temperature comes from differs."""
    found = []
    axis = np.arange(-1.0, 1.0, 0.05)
    floor = np.stack(np.meshgrid(axis, [0.0], axis, indexing="ij"), -1).reshape(-1, 3)
    even = SurfaceField.of_samples(floor, np.full(len(floor), 500.0), 0.1, 500.0)
    for body in (plate(), dataclasses.replace(plate(), temperatures=even)):
        run = solver(wax(), colliders=[body])
        for _ in range(5):
            run.step()
        found.append(run.particles.unpack("temperature"))
    assert np.allclose(found[0], found[1], rtol=0.0, atol=1e-9) and found[0].max() > 319.0


def test_one_end_of_a_plate_heats_and_the_other_cools():
    """Matter above its hot end gets warmer, above its cold end colder, and the books close."""
    axis = np.arange(-1.0, 1.0, 0.05)
    floor = np.stack(np.meshgrid(axis, [0.0], axis, indexing="ij"), -1).reshape(-1, 3)
    field = SurfaceField.of_samples(floor, np.where(floor[:, 0] < 0.15, 400.0, 200.0), 0.1, 300.0)
    run = solver(wax(300.0), colliders=[dataclasses.replace(plate(), temperatures=field)])
    mass, before, gained = run.particles.unpack("mass"), run.particles.unpack("temperature"), 0.0
    for frame in range(5):
        run.step_context.frame = frame
        run.step()
        gained += run.step_context.report["heat"]["from_bodies"]
    T, position = run.particles.unpack("temperature"), run.particles.unpack("position")
    low = position[:, 1] < 0.1
    assert T[low & (position[:, 0] < 0.1)].min() > 300.1 and T[low & (position[:, 0] > 0.2)].max() < 299.9
    assert 2000.0 * float(mass @ (T - before)) == pytest.approx(gained, abs=1e-6 * 2000.0 * float(mass @ np.abs(T - before)))


class Across:
    """300 K on the plate, more above it and less below."""

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the temperatures at places [K]."""
        return 300.0 + 1e4 * places[:, 1]


def test_matter_meets_the_temperature_of_the_surface_and_of_nothing_beside_it():
    """Cells above and below the plate look up the place on it: matter of its temperature keeps that."""
    run = solver(wax(300.0), colliders=[dataclasses.replace(plate(), temperatures=Across())])
    for _ in range(3):
        run.step()
    assert np.abs(run.particles.unpack("temperature") - 300.0).max() < 1e-6


# ---------------------------------------------------------------- within a frame
def test_temperatures_of_a_primvar_change_within_a_frame(tmp_path):
    """Straight between the file's samples at any moment of the frame, exact at the frames, and one field where nothing changes."""
    path = hot_floor(tmp_path, [300.0, 500.0, 500.0, 300.0], [400.0, 600.0, 600.0, 400.0])
    ctx = FrameContext(6, dataclasses.replace(SETTINGS, start=1, end=11))
    body = collider_temperature_usd(plate(), ctx, ctx.settings, path=path)
    x = np.linspace(-0.8, 0.8, 9)
    places = np.stack([x, np.zeros(9), 0.3 * x], axis=1)
    even = collider_at(body, 5.0).temperatures.at(places)
    for frame in (5.0, 5.3, 5.5, 6.0):
        found = collider_at(body, frame).temperatures.at(places)
        assert np.abs(found - even - 10.0 * (frame - 5.0)).max() < 1e-3
    (tmp_path / "still").mkdir()
    still = hot_floor(tmp_path / "still", [300.0, 500.0, 500.0, 300.0])
    assert isinstance(collider_temperature_usd(plate(), ctx, ctx.settings, path=still).temperatures, SurfaceField)


def test_a_surface_that_moves_keeps_its_temperature():
    """Where it is at one end of an interval only, it has that end's temperature, not that of outside."""
    axis = np.arange(0.0, 1.0, 0.05)
    floor = np.stack(np.meshgrid(axis, [0.0], axis, indexing="ij"), -1).reshape(-1, 3)
    fields = tuple(
        SurfaceField.of_samples(floor + [shift, 0.0, 0.0], np.full(len(floor), 500.0), 0.1, 300.0) for shift in (0.0, 3.0)
    )
    course = FieldCourse((1.0, 2.0), fields)
    for frame in (1.0, 1.5, 2.0):
        found = course.at_frame(frame).at(np.array([[0.5, 0.0, 0.5], [3.5, 0.0, 0.5], [9.0, 0.0, 0.5]]))
        known = [frame < 2.0, frame > 1.0, False]
        assert np.allclose(found, np.where(known, 500.0, 300.0))


def body_at(end: int, kind: str, **knobs):
    """Return what a graph's node says of a plate at a frame."""
    graph = Graph(cell_size=0.1, start=1, end=9)
    floor = graph.add("collide_plane", "floor")
    graph.add(kind, "hot", collider=floor, **knobs)
    return Evaluator(graph).value("hot", end)


def test_a_keyed_temperature_changes_within_a_frame():
    """Temperature and conductance go straight from key to key, at every moment."""
    keys = {"keys": [[1, 300.0, "linear"], [5, 700.0, "linear"]]}
    body = body_at(3, "collider_temperature", temperature=keys, conductance={"keys": [[1, 1e3, "step"], [2.5, 1e4, "step"]]})
    for frame, temperature, conductance in ((2.0, 400.0, 1e3), (2.25, 425.0, 1e3), (2.5, 450.0, 1e4), (3.0, 500.0, 1e4)):
        now = collider_at(body, frame)
        assert (now.temperature, now.conductance) == pytest.approx((temperature, conductance))


def test_a_grid_of_temperatures_follows_its_keys_within_a_frame(tmp_path):
    """Carried along by keys, it is halfway in the middle of the frame."""
    keys = {"keys": [[1, (0.0, 0.0, 0.0), "linear"], [2, (0.4, 0.0, 0.0), "linear"]]}
    body = body_at(2, "collider_temperature_vdb", path=str(warm_grid(tmp_path)), translate=keys)
    x = np.linspace(0.5, 0.7, 5)
    places = np.stack([x, np.full(5, 0.3), np.full(5, 0.3)], axis=1)
    for frame, shift in ((1.0, 0.0), (1.5, 0.2), (2.0, 0.4)):
        assert np.abs(collider_at(body, frame).temperatures.at(places) - (300.0 + 100.0 * (x - shift))).max() < 5.0


def test_a_hot_plate_heats_by_the_temperature_of_each_moment():
    """Keys within one frame: a plate that is hot in its first half only leaves the heat of that half.

    In double precision: a substep warms by what single precision rounds off at 300 K.
    """
    found = []
    for keys in ([[1, 600.0, "step"], [1.5, 300.0, "step"]], [[1, 600.0, "step"]], [[1, 300.0, "step"], [1.5, 600.0, "step"]]):
        graph = Graph(cell_size=0.1, fps=24.0, start=1, end=2)
        matter = graph.add("material_neo_hookean", "matter", density=900.0, youngs_modulus=1e4)
        heat = graph.add("material_thermal", "heat", material=matter, heat_capacity=2000.0, conductivity=1.0)
        block = graph.add("emit_box", "block", material=heat, size=(0.4, 0.4, 0.4), centre=(0.0, 0.2, 0.0))
        warm = graph.add("set_temperature", "warm", particles=block, temperature=300.0)
        floor = graph.add("collide_plane", "floor")
        hot = graph.add("collider_temperature", "hot", collider=floor, temperature={"keys": keys}, conductance=1e3)
        knobs = {"sources": [warm], "colliders": [hot], "gravity": (0.0, 0.0, 0.0), "dt_max": 1e-3, "precision": "double"}
        graph.add("solve", "sim", substeps="explicit_heat", **knobs)
        found.append(float((Evaluator(graph).value("sim.particles", 2)["temperature"] - 300.0).sum()))
    first, always, second = found
    assert first / always == pytest.approx(0.5, abs=1e-3) and second / always == pytest.approx(0.5, abs=1e-3)
