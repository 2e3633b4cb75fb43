"""One clock in a cook: what is born, moved and written is where and as fast as the shot says, at any pace, rate and first frame."""

from __future__ import annotations

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes.data import CollisionRule, FrameContext, GraphSettings, LevelSet
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.time.clock import Clock
from mpm_nodes.graph.values.kept import Kept
from mpm_nodes.graph.values.store import MemoryStore
from mpm_nodes.kernels.collisions.posing import body_velocity
from mpm_nodes.kernels.level_sets.level_set import Bodies
from mpm_nodes.nodes.collide import collide_usd, collide_vdb
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.nodes.streams import emit_stream
from mpm_nodes.nodes.surface import surface_particles, velocity_volume
from mpm_nodes.solver.colliders import ColliderSet

FLOATING = {"gravity": (0.0, 0.0, 0.0), "precision": "double"}
RATES = (23.976, 24.0, 25.0, 30.0, 48.0, 60.0, 120.0)
SLOWING = {"keys": [[1, 2.0, "smooth"], [13, 0.5, "linear"], [25, 0.1, "linear"]]}
PACES = (0.1, 0.5, 1.0, 2.0, "keyed")
STARTS = (0, -5, 1001)
CLOCKS = [(fps, pace, STARTS[(i + j) % 3]) for i, fps in enumerate(RATES) for j, pace in enumerate((0.1, 0.5, 2.0))]
"""Frames per second, paces and first frames: every pair of two of them comes up."""


def at_pace(pace, start: int = 1):
    """Return a pace as it stands in a graph file; the keyed one begins at the shot's start."""
    return pace if pace != "keyed" else {"keys": [[frame + start - 1, *rest] for frame, *rest in SLOWING["keys"]]}


# ---------------------------------------------------------------- what is born
EVERY_PACE = [(fps, pace, start) for fps in (23.976, 24.0, 60.0) for start in (0, -3, 1, 1001) for pace in PACES]


@pytest.mark.parametrize(("fps", "pace", "start"), sorted({*EVERY_PACE, *CLOCKS}, key=str))
def test_a_stream_begins_at_its_frame(fps, pace, start):
    """start_frame 4 of a shot from 1 (3 after any other): no matter before it, one layer there, more a frame later."""
    clocks = {"start": start, "start_frame": start, "end": start + 6, "fps": fps, "time_scale": at_pace(pace, start)}
    graph = shot(material="material_liquid", size=0.2, **FLOATING, **clocks)
    graph.nodes["sim"].inputs.pop("sources")
    graph.add("emit_stream", "stream", template=graph["block"], velocity=(0.0, -6.0, 0.0), start_frame=start + 3, duration=2)
    graph.nodes["sim"].connect("emitters", [graph["stream"]])
    evaluator = Evaluator(graph)
    found = [evaluator.value("sim.particles", start + k) for k in range(7)]
    counts = [len(particles) for particles in found]
    assert counts[:4] == [0, 0, 0, 16] and counts[3] <= counts[4] <= counts[5] and counts[5] == counts[6]
    np.testing.assert_allclose(found[3]["position"][:, 1], 1.0 - 0.075, atol=1e-6)  # the foremost layer, where the template has it
    clock = evaluator.value("sim.state", start + 6).solver.matter.clock
    length = 6.0 * (clock.simulated(start + 5) - clock.simulated(start + 3))
    assert counts[6] == 16 * int(np.ceil(length / 0.05 - 1e-6))  # none just as it ends


@pytest.mark.parametrize("held", [1, 3, 6])
def test_a_stream_keeps_its_frame_when_the_solve_begins_later(held):
    """Initial state at frame 1, 3 or 6, a stream from frame 5: it begins there, or is part of the initial state."""
    graph = shot(end=9, material="material_liquid", size=0.2, **FLOATING, start_frame=held)
    stream = graph.add("emit_stream", "stream", template=graph["block"], velocity=(2.4, 0.0, 0.0), start_frame=5)
    graph.nodes["sim"].inputs.pop("sources")
    graph.nodes["sim"].connect("emitters", [stream])
    evaluator = Evaluator(graph)
    counts = [len(evaluator.value("sim.particles", frame)) for frame in range(1, 8)]
    first = next(frame for frame, count in enumerate(counts, 1) if count)
    assert first == (5 if held <= 5 else 1)  # before frame 6 the initial state is shown, and the stream is part of it


@pytest.mark.parametrize(("fps", "pace", "start"), [*((24.0, pace, 1) for pace in PACES), *CLOCKS])
def test_drops_come_at_their_frames(fps, pace, start):
    """Copies of the first, third and fifth frame are there at these frames, at their places, whatever the pace."""
    clocks = {"start": start, "start_frame": start, "end": start + 5, "fps": fps, "time_scale": at_pace(pace, start)}
    graph = shot(material="material_liquid", size=0.2, **FLOATING, **clocks)
    graph.nodes["sim"].inputs.pop("sources")
    drops = graph.add(
        "emit_drops", "drops", template=graph["block"], count=3, interval=2.0, spread=(9.0, 0.0, 0.0), start_frame=start
    )
    graph.nodes["sim"].connect("emitters", [drops])
    evaluator = Evaluator(graph)
    assert [len(evaluator.value("sim.particles", start + k)) // 64 for k in range(6)] == [1, 1, 2, 2, 3, 3]


# ---------------------------------------------------------------- what is written
@pytest.mark.parametrize("pace", PACES)
def test_written_rates_are_those_of_the_written_positions(pace):
    """A block that flies and turns: velocity, affine and gradient are per second of the shot, as differences of positions are."""
    graph = shot(
        end=9,
        fps=240.0,
        velocity=(2.0, 1.0, -3.0),
        material="material_neo_hookean",
        knobs={"youngs_modulus": 1e5},
        **FLOATING,
        time_scale=at_pace(pace),
    )
    graph.nodes["block"].knobs["angular_velocity"] = [0.0, 0.0, 4.0]
    evaluator = Evaluator(graph)
    for frame in (1, 4, 8):
        now, after = (evaluator.value("sim.particles", f) for f in (frame, frame + 1))
        difference = (after["position"] - now["position"]) * 240.0
        mean = 0.5 * (now["velocity"] + after["velocity"])
        assert np.abs(mean - difference).max() < 0.05 * np.abs(difference).max()
        arm = now["position"] - now["position"].mean(axis=0)
        spin = np.linalg.lstsq(arm, now["velocity"] - now["velocity"].mean(axis=0), rcond=None)[0].T
        if frame > 1:
            for name in ("affine", "velocity_gradient"):
                if name in now:
                    np.testing.assert_allclose(now[name].mean(axis=0), spin, atol=0.2 * np.abs(spin).max())


@pytest.mark.parametrize(("fps", "pace", "start"), CLOCKS)
def test_written_rates_at_any_rate_and_first_frame(fps, pace, start):
    """A block that flies and turns, two frames of it: its velocities are differences of its places, its gradient its spin."""
    clocks = {"start": start, "start_frame": start, "end": start + 2, "fps": fps, "time_scale": pace}
    stiff = {"material": "material_neo_hookean", "knobs": {"youngs_modulus": 1e5}}
    graph = shot(velocity=(2.0, 1.0, -3.0), **stiff, **FLOATING, **clocks)
    graph.nodes["block"].knobs["angular_velocity"] = [0.0, 0.0, 2.0]
    evaluator = Evaluator(graph)
    now, after = (evaluator.value("sim.particles", start + k) for k in (1, 2))
    difference = (after["position"] - now["position"]) * fps
    np.testing.assert_allclose(difference.mean(axis=0), pace * np.array([2.0, 1.0, -3.0]), rtol=1e-3)
    assert np.abs(0.5 * (now["velocity"] + after["velocity"]) - difference).max() < 0.02 * np.abs(difference).max()
    arm, gradients = now["position"] - now["position"].mean(axis=0), [n for n in ("affine", "velocity_gradient") if n in now]
    spin = np.linalg.lstsq(arm, now["velocity"] - now["velocity"].mean(axis=0), rcond=None)[0].T
    assert spin[1, 0] > pace and gradients
    for name in gradients:
        np.testing.assert_allclose(now[name].mean(axis=0), spin, atol=0.2 * np.abs(spin).max())


def test_before_the_initial_state_nothing_moves_and_nothing_is_said_to():
    """Frames before start_frame hold still positions, and velocities of 0: no motion blur there."""
    evaluator = Evaluator(shot(end=4, start_frame=3, velocity=(1.0, 0.0, 0.0)))
    assert not evaluator.value("sim.particles", 2)["velocity"].any()
    assert (evaluator.value("sim.particles", 3)["velocity"][:, 0] == 1.0).all()


@pytest.mark.parametrize(("fps", "pace", "start"), CLOCKS)
def test_surfaces_and_volumes_carry_the_speed_of_the_shot(fps, pace, start):
    """Velocities of the mesh and of the volume `vel` behind a solve at another pace are those of the shot."""
    clocks = {"start": start, "start_frame": start, "end": start + 1, "fps": fps, "time_scale": pace}
    graph = shot(velocity=(3.0, 0.0, 0.0), **FLOATING, **clocks)
    particles = Evaluator(graph).value("sim.particles", start + 1)
    volume: LevelSet = velocity_volume(particles, margin=1)
    speeds = volume.values[..., 0][volume.values.any(axis=-1)]
    np.testing.assert_allclose(speeds, 3.0 * pace, rtol=1e-5)
    np.testing.assert_allclose(surface_particles(particles).mesh.velocities[:, 0], 3.0 * pace, rtol=1e-5)


# ---------------------------------------------------------------- what moves matter
class Posed:
    """One collider over a frame at some pace, to be asked for its velocity in world coordinates, per simulated second."""

    def __init__(self, collider, clock: Clock, frame: int) -> None:
        over = clock.over(frame)
        colliders = ColliderSet([collider], clock=over)
        middle = 0.5 * (over.begin + over.end)
        colliders.pose(middle - 1e-6, middle)
        self.bodies = Bodies(colliders._integer, colliders._real, *colliders._lattices)
        self.turn, self.shift = colliders._real[0, 17:26].reshape(3, 3), colliders._real[0, 26:29]
        self.fastest = colliders.fastest

    def velocity(self, point) -> np.ndarray:
        return np.array(body_velocity(0, 1e-6, *(self.turn.T @ (np.array(point) - self.shift)), self.bodies))


def context(frame: int, fps: float, start: int = 1) -> FrameContext:
    return FrameContext(frame, GraphSettings(cell_size=0.1, fps=fps, start=start, end=start + 20))


@pytest.fixture(scope="module")
def belt(tmp_path_factory):
    """Write a still ball whose velocity grid carries what touches it, in centimetres and centimetres a second; it is read once."""
    from usd_io.openvdb_module import find_openvdb

    vdb = find_openvdb()
    ball = vdb.createLevelSetSphere(radius=50.0, voxelSize=5.0)
    ball.name = "surface"
    field = vdb.Vec3SGrid((0.0, 0.0, 0.0))
    field.name = "vel"
    field.fill((-16, -16, -16), (16, 16, 16), (200.0, 0.0, -100.0))
    field.transform = vdb.createLinearTransform(5.0)
    path = tmp_path_factory.mktemp("belt") / "belt.vdb"
    vdb.write(str(path), [ball, field])
    return {"path": path, "kept": Kept(MemoryStore(1 << 28))}


@pytest.mark.parametrize(("fps", "pace", "start"), [(24.0, 1.0, 1), *CLOCKS])
def test_velocity_grids_are_scaled_as_their_lengths(belt, fps, pace, start):
    """A file in centimetres with scale 0.01: its velocities are metres a second of the shot, and faster in a slowed simulation."""
    ctx = context(start + 1, fps, start)
    posed = Posed(collide_vdb(ctx, scale=0.01, **belt), Clock.of(ctx.settings, pace=pace), start + 1)
    np.testing.assert_allclose(posed.velocity((0.0, 0.5, 0.0)), np.array([2.0, 0.0, -1.0]) / pace, rtol=1e-4, atol=1e-5)
    assert posed.fastest == pytest.approx(np.sqrt(5.0) / pace, rel=1e-3)


@pytest.mark.parametrize(("fps", "pace", "start"), [(30.0, 0.1, 1), (23.976, 0.5, 1001), (120.0, 2.0, 0)])
def test_a_sequences_own_motion_is_at_the_pace_of_the_shot(tmp_path, fps, pace, start):
    """A ball that moves 0.1 m a frame from file to file has 0.1 fps / pace metres per simulated second."""
    from usd_io.openvdb_module import find_openvdb

    vdb = find_openvdb()
    for frame, x in ((start, 0.0), (start + 1, 0.1), (start + 2, 0.2)):
        grid = vdb.createLevelSetSphere(radius=0.3, center=(x, 0.0, 0.0), voxelSize=0.05)
        grid.name = "surface"
        vdb.write(str(tmp_path / f"ball.{frame:04d}.vdb"), [grid])
    ctx = context(start + 2, fps, start)
    collider = collide_vdb(ctx, path=tmp_path / "ball.####.vdb", sequence=True)
    posed = Posed(collider, Clock.of(ctx.settings, pace=pace), start + 2)
    speed = 0.1 * fps / pace
    np.testing.assert_allclose(posed.velocity((0.45, 0.0, 0.0)), (speed, 0.0, 0.0), rtol=0.03, atol=0.03 * speed)


@pytest.mark.parametrize("codes", [1.0, 24.0, 48.0, 6000.0])
@pytest.mark.parametrize("fps", RATES)
@pytest.mark.parametrize("kind", ["rigid", "deforming"])
def test_a_stage_of_any_codes_per_second_moves_in_its_own_seconds(tmp_path, codes, fps, kind):
    """A box that moves at 1.5 m/s in its file does so in the shot: place at a frame and velocity, at any two rates."""
    from pxr import Gf, Usd, UsdGeom, Vt

    stage = Usd.Stage.CreateNew(str(tmp_path / "box.usda"))
    stage.SetTimeCodesPerSecond(codes)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, "Y")
    parent, box = UsdGeom.Xform.Define(stage, "/body"), box_mesh((0.4, 0.4, 0.4))
    mesh = UsdGeom.Mesh.Define(stage, "/body/mesh")
    mesh.CreateFaceVertexCountsAttr().Set(box.counts.tolist())
    mesh.CreateFaceVertexIndicesAttr().Set(box.indices.tolist())
    for seconds in (0.0, 1.0):
        shift = np.array([1.5 * seconds, 0.0, 0.0])
        if kind == "rigid":
            move = parent.AddTranslateOp() if seconds == 0.0 else UsdGeom.Xformable(parent).GetOrderedXformOps()[0]
            move.Set(Gf.Vec3d(*shift), seconds * codes)
        points = box.points if kind == "rigid" else box.points + shift
        time = Usd.TimeCode.Default() if kind == "rigid" else seconds * codes
        mesh.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy(points.astype(np.float32)), time)
    stage.GetRootLayer().Save()
    ctx = context(11, fps)
    collider = collide_usd(ctx, ctx.settings, path=tmp_path / "box.usda", rule=CollisionRule.STICKY)
    place = 1.5 * 11 / fps
    np.testing.assert_allclose(collider.mesh.points.mean(axis=0), (place, 0.0, 0.0), atol=1e-5)
    posed = Posed(collider, Clock.of(ctx.settings, pace=0.5), 11)
    np.testing.assert_allclose(posed.velocity((place + 0.2, 0.0, 0.0)), (3.0, 0.0, 0.0), atol=0.02)


def test_a_keyed_offset_runs_a_stage_at_another_speed(tmp_path):
    """frame_offset keyed to fall by half a frame a frame halves the speed of what the stage holds."""
    from pxr import Gf, Usd, UsdGeom, Vt

    stage = Usd.Stage.CreateNew(str(tmp_path / "box.usda"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(24.0)
    parent, box = UsdGeom.Xform.Define(stage, "/body"), box_mesh((0.4, 0.4, 0.4))
    move, mesh = parent.AddTranslateOp(), UsdGeom.Mesh.Define(stage, "/body/mesh")
    mesh.CreateFaceVertexCountsAttr().Set(box.counts.tolist())
    mesh.CreateFaceVertexIndicesAttr().Set(box.indices.tolist())
    mesh.CreatePointsAttr().Set(Vt.Vec3fArray.FromNumpy(box.points.astype(np.float32)))
    for frame in (0, 48):
        move.Set(Gf.Vec3d(2.0 * frame / 24.0, 0.0, 0.0), frame)
    stage.GetRootLayer().Save()
    ctx = FrameContext(9, context(9, 24.0).settings, sample=lambda knob, frame: -0.5 * frame)
    collider = collide_usd(ctx, ctx.settings, path=tmp_path / "box.usda")
    posed = Posed(collider, Clock.of(ctx.settings), 9)
    np.testing.assert_allclose(posed.velocity((0.5, 0.0, 0.0)), (1.0, 0.0, 0.0), atol=1e-3)


@pytest.mark.parametrize("pace", PACES)
def test_matter_rides_a_keyed_plate_at_any_pace(pace):
    """A sticky plate keyed to rise by 0.24 m lifts a block by that, whatever the pace, constant or keyed."""
    graph = shot(
        end=7,
        centre=(0.0, 0.14, 0.0),
        size=0.2,
        material="material_neo_hookean",
        knobs={"youngs_modulus": 1e5},
        colliders=[("plate", "collide_box", {"size": (1.0, 0.1, 1.0), "rule": "sticky", "centre": (0.0, -0.01, 0.0)})],
        time_scale=at_pace(pace),
        precision="double",
    )
    for frame, height in ((1, -0.01), (7, 0.23)):
        graph.key("plate.centre", frame, [0.0, height, 0.0])
    out = Evaluator(graph).value("sim.particles", 7)
    assert out["position"][:, 1].min() == pytest.approx(0.23 + 0.05 + 0.015, abs=0.02)


def test_a_stream_from_the_nodes_knows_its_seconds():
    """start and end are seconds of the shot from its first frame, at any rate."""
    graph = shot()
    block = Evaluator(graph).value("block", 1)
    for fps in RATES:
        for start in (0, -5, 1001):
            made = emit_stream(GraphSettings(fps=fps, start=start, end=start + 99), block, start_frame=start + 6, duration=12)
            assert (made.start, made.end) == (pytest.approx(6 / fps), pytest.approx(18 / fps))
