"""Surface tension that is painted on matter and in places, by numbers, VDB grids and primvars, and what is refused."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from test_surface_tension import H, drop, run_until, solver

from mpm_nodes import Graph
from mpm_nodes.data import Ambient, FrameContext, GraphSettings, LevelSet, MpmNodesError, SurfaceTension
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.values_of_files import Interpolation
from mpm_nodes.physics.surface_tension.nodes.tension_fields import (
    TensionPaint,
    set_tension_scale,
    set_tension_scale_usd,
    set_tension_scale_vdb,
    tension_field_vdb,
)
from mpm_nodes.physics.surface_tension.stages.surface_tension import longest_step
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import ambient_at, surround
from usd_io.openvdb_module import find_openvdb

PLAIN = dataclasses.replace(drop().materials[0], surface_tension=SurfaceTension(2.0))
SETTINGS = GraphSettings(cell_size=H, start=1, end=9)
try:
    find_openvdb()
except Exception:
    pytest.skip("OpenVDB is not installed", allow_module_level=True)


def sampled(run: SubstepSolver) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run to the tension of the samples; return their places, tensions and owners."""
    run_until(run, "set_tension")
    samples = run.stores["samples"]
    return samples.unpack("position"), samples.unpack("tension"), samples.unpack("owner")


def halves(path: Path, value: float = 0.25, size: float = 0.1) -> Path:
    """Write a grid that holds a value where x < 0.8 size, and nothing beyond."""
    from usd_io.volumes import write_volumes

    corner = np.stack(np.meshgrid([-8, 0], [-16, -8, 0, 8], [-16, -8, 0, 8], indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    values = np.full((len(corner), 8, 8, 8), value, np.float32)
    write_volumes(path, [LevelSet(corner, values, size, background=0.0, kind="fog", name="tension_scale")])
    return path


def frame(number: int = 1) -> FrameContext:
    """Return the context of a frame."""
    return FrameContext(number, SETTINGS)


def test_matter_takes_its_factor_along():
    """Each sample has the factor of its owner, an attribute of the particles; without one none is allocated."""
    scales = np.random.default_rng(3).uniform(0.0, 1.5, 60)
    given = drop(PLAIN, tension_scale=scales)
    run = solver(given, fuse=False)
    _, tension, owner = sampled(run)
    own = run.particles.unpack("tension_scale")[owner]
    np.testing.assert_allclose(tension, 2.0 * own, rtol=1e-12)
    assert np.ptp(own) > 0.5
    run.step(1e-3)
    np.testing.assert_array_equal(run.snapshot()["tension_scale"], scales)
    even = solver(set_tension_scale(drop(PLAIN), scale=0.25), fuse=False)
    np.testing.assert_allclose(sampled(even)[1], 0.5, rtol=1e-12)
    assert "tension_scale" not in solver(drop(PLAIN)).particles.names


def test_paint_limits_the_substep():
    """Capillary waves run with the largest factor of matter and places: dt falls with its root."""
    strong = dataclasses.replace(PLAIN, surface_tension=SurfaceTension(1e4))
    still = {"velocity": np.zeros((60, 3)), "affine": np.zeros((60, 3, 3))}
    run = solver(drop(strong, tension_scale=np.linspace(0.0, 4.0, 60), **still))
    surround(run, (Ambient(tension=Slope(), most_tension=2.25),))
    run.step(time_left=1.0)
    assert run.step_context.limit.name == "capillary wave"
    assert run.step_context.dt == pytest.approx(longest_step(9e4, 1.0, H), rel=1e-3)


class Slope:
    """A factor that grows along x."""

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the factors at places."""
        return 1.0 + places[:, 0]


def test_a_field_stays_where_it_is():
    """Samples have the factor of their place, times that of their owner; matter that has gone on has another one."""
    run = solver(set_tension_scale(drop(PLAIN), scale=0.5), fuse=False)
    surround(run, (Ambient(tension=Slope(), most_tension=2.0),))
    x, tension, _ = sampled(run)
    np.testing.assert_allclose(tension, 1.0 + x[:, 0], rtol=1e-12)
    assert np.ptp(tension) > 0.1
    run = solver(drop(PLAIN), checked=True)
    surround(run, (Ambient(tension=Slope(), most_tension=2.0),))
    run.step(1e-3)


def test_tension_comes_from_vdb_grids(tmp_path):
    """Factors and masks, on matter and in places; beyond the grid that outside; a grid moves and grows."""
    path = halves(tmp_path / "paint.vdb")
    given = drop(PLAIN)
    x = given["position"][:, 0]
    low, high = x < 0.7 * H, x > 1.8 * H
    near = set_tension_scale_vdb(given, path=path, translate=(-0.7 + 0.6 * H, 0.0, 0.0))["tension_scale"]
    assert np.allclose(near[x < 0.55 * H], 0.25) and np.allclose(near[high], 1.0)
    mask = set_tension_scale_vdb(
        given, path=path, values=TensionPaint.MASK, outside=0.8, painted=0.4, translate=(-0.7 + 0.6 * H, 0.0, 0.0)
    )["tension_scale"]
    np.testing.assert_allclose(mask[x < 0.55 * H], 0.7, rtol=1e-6)
    np.testing.assert_allclose(mask[high], 0.8, rtol=1e-6)
    assert low.any() and high.any()
    field = tension_field_vdb(frame(), path=path, outside=0.5, translate=(-0.7 + 0.6 * H, 0.0, 0.0))
    at = np.array([[0.3 * H, H, H], [5.0 * H, H, H]])
    np.testing.assert_allclose(field.tension.at(at), [0.25, 0.5], rtol=1e-6)
    assert field.most_tension == 0.5
    masked = tension_field_vdb(frame(), path=path, values=TensionPaint.MASK, outside=0.5, painted=2.5)
    assert masked.most_tension == pytest.approx(1.0)


def test_a_field_of_tension_changes_within_a_frame(tmp_path):
    """Masks and factors of a sequence go straight from file to file, keys too; the substep is held to the largest of them."""
    for number, value in ((1, 0.0), (2, 1.0)):
        halves(tmp_path / f"mask.{number}.vdb", value)
    painted = KeyedNumber([(1, 2.0, "linear"), (2, 4.0, "linear")])
    path, at = tmp_path / "mask.1.vdb", np.array([[0.3, 0.1, 0.1]])
    knobs = {"path": path, "sequence": True, "outside": 1.0, "painted": painted}
    mask = tension_field_vdb(frame(2), values=TensionPaint.MASK, **knobs)
    for moment, factor in ((1.0, 1.0), (1.5, 1.0 + 0.5 * 2.0), (2.0, 4.0)):
        np.testing.assert_allclose(ambient_at([mask], moment)[0].tension.at(at), factor, rtol=1e-6)
    assert mask.most_tension == 4.0
    held = tension_field_vdb(frame(2), values=TensionPaint.MASK, interpolation=Interpolation.HELD, **knobs)
    np.testing.assert_allclose(ambient_at([held], 1.9)[0].tension.at(at), 1.0)
    factors = tension_field_vdb(frame(2), path=path, sequence=True, outside=0.5)
    for moment, factor in ((1.0, 0.5), (1.5, 0.75), (2.0, 1.0)):
        np.testing.assert_allclose(ambient_at([factors], moment)[0].tension.at(at), factor, rtol=1e-6)
    assert factors.most_tension == 1.0


def test_tension_comes_from_primvars(tmp_path):
    """Next to a mesh particles have the factor of its primvar, deep inside that outside."""
    from pxr import Sdf, Usd, UsdGeom

    from mpm_nodes.nodes.collider_motion import box_mesh

    stage = Usd.Stage.CreateNew(str(tmp_path / "box.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    prim, box = UsdGeom.Mesh.Define(stage, "/box"), box_mesh((1.0, 1.0, 1.0))
    prim.CreatePointsAttr().Set([tuple(map(float, point)) for point in box.points])
    prim.CreateFaceVertexCountsAttr().Set(box.counts.tolist())
    prim.CreateFaceVertexIndicesAttr().Set(box.indices.tolist())
    painted = UsdGeom.PrimvarsAPI(prim).CreatePrimvar("wax", Sdf.ValueTypeNames.FloatArray, "vertex")
    painted.Set([0.0 if point[0] < 0.0 else 1.0 for point in box.points])
    stage.GetRootLayer().Save()
    given = drop(PLAIN)
    at = np.array([[-0.48, 0.0, 0.0], [0.48, 0.1, 0.0], [0.0, 0.0, 0.0], [0.0, 0.48, 0.0]])
    given = dataclasses.replace(given, attributes={"position": at})
    found = set_tension_scale_usd(
        given,
        SETTINGS,
        path=tmp_path / "box.usda",
        primvar="wax",
        values=TensionPaint.MASK,
        outside=1.0,
        painted=0.2,
    )
    np.testing.assert_allclose(found["tension_scale"], [1.0, 0.2, 1.0, 0.6], atol=0.02)


def test_mistakes_are_told(tmp_path):
    """Factors below 0, masks above 1, and a field where nothing has a surface: place, value, what is allowed, cure."""
    below = halves(tmp_path / "below.vdb", -0.5)
    with pytest.raises(
        MpmNodesError, match=r"set_tension_scale_vdb\.grid: 'tension_scale' in .*has a value of -0\.5; a tension is >= 0"
    ):
        set_tension_scale_vdb(drop(PLAIN), path=below)
    above = halves(tmp_path / "above.vdb", 3.0)
    with pytest.raises(MpmNodesError, match=r"tension_field_vdb\.grid: .*has a value of 3; masks lie from 0 to 1, or set `values`"):
        tension_field_vdb(frame(), path=above, values=TensionPaint.MASK)
    for wrong in (math.nan, math.inf, -0.5):
        with pytest.raises(MpmNodesError, match=rf"set_tension_scale\.scale: has a factor of {wrong:g} where there is matter"):
            set_tension_scale(drop(PLAIN), scale=wrong)
        with pytest.raises(MpmNodesError, match=rf"particle tension_scale must be finite and >= 0; one is {wrong:g}"):
            solver(drop(PLAIN, tension_scale=np.append(np.ones(59), wrong)))
    run = solver(drop(PLAIN), "explicit_apic")
    with pytest.raises(MpmNodesError, match=r"solve\.ambient: a tension field is wired, and these substeps have no surface"):
        surround(run, (Ambient(tension=Slope()),))


def shot(path: Path, substeps: str) -> Graph:
    """Return a graph of a drop in a field."""
    graph = Graph(cell_size=H, fps=24.0, start=1, end=2)
    matter = graph.add("material_liquid", "matter", bulk_modulus=100.0, density=1.0)
    tense = graph.add("material_surface_tension", "tense", material=matter, tension=1.0)
    ball = graph.add("emit_sphere", "ball", material=tense, radius=2 * H)
    field = graph.add("tension_field_vdb", "field", path=str(path))
    solved = graph.add("solve", "sim", sources=[ball], ambient=[field], substeps=substeps, gravity=(0.0, 0.0, 0.0))
    graph.add("write_cache", "cache", particles=solved["particles"])
    return graph


def test_a_graph_carries_the_field_to_the_surface(tmp_path):
    """Matter moves otherwise with the field than without it; where nothing has a surface it is refused before the cook."""
    path = halves(tmp_path / "paint.vdb")
    moved = []
    for wired in (True, False):
        graph = shot(path, "surface_tension")
        if not wired:
            graph.nodes["sim"].inputs.pop("ambient")
        execute(graph, out=tmp_path / str(wired))
        from usd_io.stage_reader import read_points

        moved.append(read_points(next((tmp_path / str(wired)).rglob("cache.usda")), 2)["position"])
    assert np.abs(moved[0] - moved[1]).max() > 1e-4 * H
    graph = shot(path, "explicit_apic")
    with pytest.raises(MpmNodesError, match=r"sim: solve\.ambient: a tension field is wired"):
        preflight.estimate(plan_graph(graph), 1)


def test_a_tension_without_a_surface_is_told(tmp_path):
    """Substeps that have no surface warn of a material with a tension; those that have one do not."""
    told = {}
    for preset in ("explicit_apic", "surface_tension"):
        graph = shot(tmp_path / "none.vdb", preset)
        graph.nodes["sim"].inputs.pop("ambient")
        graph.nodes.pop("field")
        told[preset] = " ".join(text for _, text in preflight.warnings_of(preflight.estimate(plan_graph(graph), 1)))
    assert "has a surface tension, and these substeps have no surface" in told["explicit_apic"]
    assert "no surface" not in told["surface_tension"]
