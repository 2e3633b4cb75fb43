"""Air and heat in places: of numbers and of fields, which change within a frame, against closed forms, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numba
import numpy as np
import pytest
from heat_scenes import WAX, plate, solver, wax
from solver_scenes import cube

from mpm_nodes import Graph
from mpm_nodes.data import Ambient, FrameContext, GraphSettings, LevelSet, MpmNodesError, SpatialField, Thermal
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.nodes.fields import FieldShape, constant, field_ramp, field_shape, field_vector
from mpm_nodes.nodes.fields_of_files import GridEdge, field_vdb
from mpm_nodes.physics.heat.nodes.ambient import air, heat_field
from mpm_nodes.physics.heat.problems.heat import solver as still_solver
from mpm_nodes.physics.surface_tension.problems.surface_heat import sampled, skinned
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import ambient_at, surround
from mpm_nodes.verification.scenes import ball
from usd_io.openvdb_module import find_openvdb

STILL = {"gravity": (0.0, 0.0, 0.0), "colliders": []}
TIGHT = {"conduct_heat.tolerance": 1e-13}
POWER, AIR, CONVECTION = 2e8, 400.0, 1e5
HEAT = 900.0 * 2000.0
POOR = dataclasses.replace(WAX, thermal=Thermal(2000.0, 1e-6, 2000.0, 1e-6, 0.0, None, None))
try:
    find_openvdb()
except Exception:
    pytest.skip("OpenVDB is not installed", allow_module_level=True)


class Along:
    """Values that change along x: a + b x."""

    def __init__(self, a: float, b: float = 0.0) -> None:
        self.a, self.b = a, b

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places."""
        return self.a + self.b * places[:, 0]


def grid(path: Path, *fields: tuple[str, float]) -> Path:
    """Write grids of one value each over 0.8 m from -0.4 m on."""
    from usd_io.volumes import write_volumes

    corner = np.stack(np.meshgrid([-8, 0], [-8, 0], [-8, 0], indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    full = [np.full((8, 8, 8, 8), value, np.float32) for _, value in fields]
    held = [
        LevelSet(corner, values, 0.05, background=-7.0, kind="fog", name=name)
        for values, (name, _) in zip(full, fields, strict=True)
    ]
    write_volumes(path, held)
    return path


def frame(number: int = 1) -> FrameContext:
    """Return the context of a frame."""
    return FrameContext(number, GraphSettings(cell_size=0.1, start=1, end=9))


def of_grid(path: Path, name: str, number: int = 1, **knobs) -> SpatialField:
    """Return the field of a grid at a frame."""
    return field_vdb(frame(number), frame().settings, path=path, grid=name, **knobs)


def heated(ambient: tuple[Ambient, ...] = (), steps: int = 5, start=None, **sets: float) -> SubstepSolver:
    """Return a run of a cube of wax in these surroundings."""
    given = {"preset": "explicit_heat", "set": {**TIGHT, **sets}}
    run = solver(wax(300.0) if start is None else start, given, **STILL)
    surround(run, ambient)
    for number in range(steps):
        run.step_context.frame = number
        run.step(1e-3)
    return run


def temperatures(run: SubstepSolver) -> np.ndarray:
    """Return the particles' temperatures by their id."""
    return run.particles.unpack("temperature")[np.argsort(run.particles.unpack("id"))]


# ---------------------------------------------------------------- air
@pytest.mark.parametrize("wired", [False, True], ids=["number", "field"])
def test_even_air_is_that_of_the_stage(tmp_path, wired):
    """The same temperatures, surface and heat as from conduct_heat's own knobs, which the node's take the place of."""
    field = of_grid(grid(tmp_path / "air.vdb", ("temperature", AIR)), "temperature", edge=GridEdge.EXTEND) if wired else None
    there = air(frame(), field, temperature=9.0 if wired else AIR, convection=CONVECTION)
    runs = heated(air_temperature=AIR, air_convection=CONVECTION), heated((there,), air_temperature=900.0, air_convection=3.0)
    own, other = map(temperatures, runs)
    assert np.abs(own - other).max() < 1e-10 and own.max() > 300.01
    for name in ("from_air", "surface"):
        told = [run.step_context.report["heat"][name] for run in runs]
        assert told[0] == pytest.approx(told[1], rel=1e-9) and told[0] > 0.0


def test_an_exposure_shelters():
    """Where it is half, half as much heat comes; where it is nothing, none does. The surface stays what it is."""
    one, same, none = (
        heated((air(frame(), exposure=exposure, temperature=AIR, convection=convection),))
        for exposure, convection in ((None, CONVECTION), (constant(0.5), 2.0 * CONVECTION), (constant(0.0), CONVECTION))
    )
    assert np.abs(temperatures(one) - temperatures(same)).max() < 1e-10 and temperatures(one).max() > 300.01
    assert np.abs(temperatures(none) - 300.0).max() < 1e-10
    assert one.step_context.report["heat"]["surface"] == pytest.approx(none.step_context.report["heat"]["surface"], rel=1e-9)


def test_air_varies_with_the_place():
    """A ramp of temperatures and one of exposure are those of an `Ambient` that says them in numbers."""
    ramps = [
        field_ramp(direction=(1.0, 0.0, 0.0), low=-1.0, high=1.0, from_value=a - b, to_value=a + b)
        for a, b in ((200.0, 800.0), (1.0, 0.9))
    ]
    found = [
        temperatures(heated((each,)))
        for each in (air(frame(), *ramps, convection=CONVECTION), Ambient(Along(200.0, 800.0), CONVECTION, Along(1.0, 0.9)))
    ]
    np.testing.assert_allclose(*found, rtol=1e-12)
    assert np.ptp(found[0]) > 0.1


def test_air_that_differs_closes_the_books():
    """Heat from warm air on one side and cold air on the other is what the matter gains."""
    run, content = heated(steps=0), None
    surround(run, (Ambient(Along(200.0, 800.0), CONVECTION, Along(0.5, 1.0)), Ambient(source=Along(-1e8, 4e8))))
    for number in range(12):
        run.step_context.frame = number
        run.step(1e-3)
        told = run.step_context.report["heat"]
        if content is not None:
            gained = told["from_sources"] + told["from_bodies"] + told["from_air"]
            assert told["content"] - content == pytest.approx(gained, abs=1e-10 * content)
        content = told["content"]
    assert told["from_air"] != 0.0 and told["from_sources"] != 0.0


def test_sampled_surfaces_see_the_same_air():
    """Even air is that of the stage there, too: C21's surface samples instead of the cells' own."""
    given = {"air_temperature": AIR, "air_convection": CONVECTION, "tolerance": 1e-13}
    start = ball(skinned(), (0.0, 0.0, 0.0), 0.25, 0.1)
    start = dataclasses.replace(start, attributes={**start.attributes, "temperature": np.full(len(start), 300.0)})
    found = []
    for knobs, ambient in ((given, ()), ({**given, "air_temperature": 900.0}, (Ambient(Along(AIR), CONVECTION),))):
        run = still_solver(start, sampled(**knobs), 0.1)
        surround(run, ambient)
        run.step(10.0)
        found.append((temperatures(run), run.step_context.report["heat"]))
    (own, told), (other, told_again) = found
    assert np.abs(own - other).max() < 1e-9 and own.max() > 301.0
    assert told["from_air"] == pytest.approx(told_again["from_air"], rel=1e-9) and told["surface"] == told_again["surface"]


# ---------------------------------------------------------------- heat in places
def test_a_field_heats_what_is_in_it_at_its_rate():
    """dT/dt = q / (rho c) inside, nothing outside, and the power told is that of the matter inside."""
    block = cube(POOR, cells=12, cell_size=0.05, temperature=300.0)
    x = block["position"][:, 0]
    middle, cell = 0.5 * (x.min() + x.max()), 2.0 * block.spacing
    inside = field_shape(shape=FieldShape.BOX, centre=(middle + 0.5, 0.3, 0.3))
    run = heated((heat_field(inside, frame(), strength=POWER),), start=block)
    rise = (temperatures(run) - 300.0) / (5 * 1e-3 * POWER / HEAT)
    # a cell takes the field at its centre, a particle gives to and takes from cells within 1.5 cells of it
    far, near = x < middle - 0.05 - 3.0 * cell, x > middle + 3.0 * cell
    assert far.any() and near.any()
    assert np.abs(rise[far]).max() < 1e-9 and np.abs(rise[near] - 1.0).max() < 1e-6
    mass = run.particles.unpack("mass")
    gained = 2000.0 * float(mass @ (run.particles.unpack("temperature") - 300.0))
    assert 5 * run.step_context.report["heat"]["from_sources"] == pytest.approx(gained, rel=1e-6)


def test_fields_add_up_with_those_of_matter_and_stage():
    """A number for the stage, two fields and the matter's own source are one source."""
    fields = (Ambient(source=Along(POWER)), Ambient(source=Along(2.0 * POWER)))
    start = wax(300.0, heat_source=3.0 * POWER)
    run = heated(fields, start=start, **{"conduct_heat.source": 4.0 * POWER})
    rise = (temperatures(run) - 300.0) / (5 * 1e-3 * 10.0 * POWER / HEAT)
    assert np.abs(rise - 1.0).max() < 1e-9


def test_matter_that_leaves_a_field_is_heated_no_more():
    """The field stays where it is: what has moved out of it keeps its temperature, where a source of its own would go on."""
    field = heat_field(field_shape(shape=FieldShape.BOX, centre=(0.4, 0.4, 0.4), size=(0.8, 0.8, 0.8)), frame(), strength=POWER)
    still = wax(300.0)
    moving = np.broadcast_to([40.0, 0.0, 0.0], (len(still), 3))
    fast = dataclasses.replace(still, attributes={**still.attributes, "velocity": moving})
    run = heated((field,), start=fast, steps=0)
    warm = []
    for _ in range(60):
        run.step(1e-3)
        warm.append(float(run.particles.unpack("temperature").max()))
    assert warm[2] > 300.1 and warm[-1] - warm[35] < 1e-9 * warm[-1]


def scene(kind: str, field: dict[str, object] | None = None, substeps: object = "explicit_heat", **knobs) -> Graph:
    """Return a cube of wax of 300 K that floats in a field or in air, of a field_vdb of these knobs."""
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=5)
    matter = graph.add("material_neo_hookean", "matter", density=900.0, youngs_modulus=1e4)
    heat = graph.add("material_thermal", "heat", material=matter, heat_capacity=2000.0, conductivity=1e-6)
    block = graph.add("emit_box", "block", material=heat, size=(0.4, 0.4, 0.4), centre=(0.0, 0.0, 0.0))
    warm = graph.add("set_temperature", "warm", particles=block, temperature=300.0)
    wires = {} if field is None else {"field": graph.add("field_vdb", "grid", **field)}
    around = graph.add(kind, "around", **wires, **knobs)
    sim = graph.add("solve", "sim", sources=[warm], ambient=[around], substeps=substeps, gravity=(0.0, 0.0, 0.0))
    graph.add("write_cache", "cache", particles=sim["particles"], attributes=["id", "temperature"])
    return graph


POWERS = {1: 0.0, 2: 1e7, 3: 4e7, 4: 0.0, 5: -2e7}


def risen(tmp_path: Path, number: int, interpolation: str, strength: object) -> np.ndarray:
    """Return how much warmer each particle is at a frame, over a second of 1e7 W/m^3, in a sequence of `POWERS`."""
    for frame_number, value in POWERS.items():
        grid(tmp_path / f"q.{frame_number:04d}.vdb", ("heat_source", value))
    field = {"path": str(tmp_path / "q.####.vdb"), "grid": "heat_source", "sequence": True, "interpolation": interpolation}
    graph = scene("heat_field", field, strength=strength)
    return (Evaluator(graph).value("sim.particles", number)["temperature"] - 300.0) * HEAT / 1e7


@pytest.mark.parametrize(
    ("interpolation", "strength", "exact"),
    [
        ("linear", {"keys": [[1, 1.0, "step"], [3, 0.5, "step"], [4, 1.0, "step"]]}, (0.5, 3.0, 4.0, 3.0)),
        ("held", {"keys": [[1, 0.0, "linear"], [5, 4.0, "linear"]]}, (0.0, 1.5, 11.5, 11.5)),
        ("linear", {"keys": [[3.5, 0.0, "step"], [3.75, 4.0, "step"], [4.0, 0.0, "step"]]}, (0.0, 0.0, 0.5, 0.5)),
    ],
)
def test_a_sequence_changes_in_time(tmp_path, interpolation, strength, exact):
    """The rise is the integral over time: straight between files, or each until the next, times the strength of each moment."""
    for number, rise in enumerate(exact, 2):
        found = risen(tmp_path, number, interpolation, strength)
        assert np.abs(found * 24.0 - rise).max() < 2e-3 * max(abs(rise), 1.0)


def test_a_field_moves_within_a_frame(tmp_path):
    """A grid that crosses the matter in one frame heats it for a part of the frame, not for all of it or for none."""
    path = grid(tmp_path / "q.vdb", ("heat_source", 1e7))
    across = {"keys": [[1, (-2.0, 0.0, 0.0), "linear"], [2, (2.0, 0.0, 0.0), "linear"]]}
    graph = scene("heat_field", {"path": str(path), "grid": "heat_source", "translate": across})
    graph.set("sim.dt_max", 1.0 / 24.0 / 64.0)
    found = Evaluator(graph).value("sim.particles", 2)["temperature"]
    exact = 0.8 / 4.0  # the grid is 0.8 m wide, and moves by 4 m
    assert np.abs((found - 300.0) * HEAT / 1e7 * 24.0 - exact).max() < 0.05 * exact


def test_air_follows_its_fields_and_keys_within_a_frame(tmp_path):
    """At frames the air is that of their files; halfway it is the mean, and so are temperature, convection and exposure."""
    grid(tmp_path / "air.0001.vdb", ("temperature", 300.0), ("wind", 1.0))
    grid(tmp_path / "air.0002.vdb", ("temperature", 500.0), ("wind", 3.0))
    warm, wind = (of_grid(tmp_path / "air.0001.vdb", name, 2, sequence=True, outside=200.0) for name in ("temperature", "wind"))
    convection = KeyedNumber([(1, 10.0, "linear"), (2, 30.0, "linear")])
    inside, outside = np.zeros((1, 3)), np.full((1, 3), 9.0)
    for moment, kelvin, blown, number in ((1.0, 300.0, 1.0, 10.0), (1.25, 350.0, 1.5, 15.0), (2.0, 500.0, 3.0, 30.0)):
        given = air(frame(2), warm, wind, convection=convection), air(frame(2), temperature=convection)
        now, plain = ambient_at(given, moment)
        assert now.air.at(inside) == pytest.approx([kelvin]) and now.air.at(outside) == pytest.approx([200.0])
        assert now.exposure.at(inside) == pytest.approx([blown]) and now.convection == pytest.approx(number)
        assert plain.air.at(outside) == pytest.approx([number]) and plain.exposure is None and plain.convection == 10.0


def test_a_cook_resumes_to_the_same_bytes(tmp_path):
    """Surroundings follow from the frame alone."""
    path = grid(tmp_path / "air.vdb", ("temperature", AIR))
    keys = {"keys": [[1, 0.0, "linear"], [5, 900.0, "linear"]]}
    graph = scene("air", {"path": str(path), "grid": "temperature", "edge": "extend", "outside": AIR}, convection=keys)
    folder = execute(graph, out=tmp_path / "out").revision_folder
    whole = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    (lost,) = folder.glob("checkpoints/0005*")
    lost.write_bytes(b"lost")
    assert execute(graph, out=tmp_path / "out", resume=True).cooked == (4, 5)
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == whole


def test_threads_and_checked_mode_change_no_bit():
    """Nor does running every stage twice."""
    ends, most = [], numba.config.NUMBA_NUM_THREADS
    around = (Ambient(Along(200.0, 800.0), CONVECTION, Along(0.5, 1.0)), Ambient(source=Along(1e8, 4e8)))
    for threads, checked in ((1, False), (most, False), (most, True)):
        numba.set_num_threads(threads)
        try:
            run = solver(wax(), checked=checked, dtype=np.float32, colliders=[plate()])
            surround(run, around)
            for _ in range(8):
                run.step()
        finally:
            numba.set_num_threads(most)
        ends.append(run.snapshot().attributes)
    for other in ends[1:]:
        assert all(np.array_equal(ends[0][name], other[name]) for name in ends[0])


# ---------------------------------------------------------------- what is refused
def test_what_lies_below_the_least_is_raised_to_it_and_told():
    """Air below 0 K and an exposure below 0, once, at the first frame; heat may be taken away."""
    told: list[str] = []
    cold, hollow = field_ramp(from_value=-5.0, to_value=300.0), field_ramp(from_value=-0.5, to_value=1.0)
    for number in (1, 2):
        ctx = dataclasses.replace(
            frame(number), report=lambda kind, **facts: told.append(f"{kind} {facts['where']}: {facts['message']}")
        )
        made = air(ctx, cold, hollow)
        low, high = np.array([[0.0, -9.0, 0.0]]), np.array([[0.0, 9.0, 0.0]])
        assert (made.air.at(low), made.exposure.at(low), made.air.at(high), made.exposure.at(high)) == (0.0, 0.0, 300.0, 1.0)
        assert heat_field(cold, ctx).source.at(low) == -5.0
    assert told == [
        "warning field: air: values below 0 are raised to it; they may go down to -5",
        "warning exposure: air: values below 0 are raised to it; they may go down to -0.5",
    ]


def test_what_does_not_fit_is_told():
    """Fields of vectors by node and port, also before the cook, and a strength that is not finite."""
    across = field_vector(vector=(1.0, 0.0, 0.0))
    for make, where in (
        (lambda: air(frame(), across), "air.field"),
        (lambda: air(frame(), exposure=across), "air.exposure"),
        (lambda: heat_field(across, frame()), "heat_field.field"),
    ):
        with pytest.raises(MpmNodesError, match=rf"{where}: is a field of vectors"):
            make()
        kind, port = where.split(".")
        graph = scene(kind, None if kind == "air" else {"path": "none.vdb"})
        graph.nodes["around"].connect(port, graph.add("field_vector", "across"))
        graph.nodes.pop("grid", None)
        with pytest.raises(MpmNodesError, match=rf"{where}: is a field of vectors"):
            preflight.estimate(plan_graph(graph), 1)
    with pytest.raises(MpmNodesError, match="a field has the value nan; give finite numbers"):
        heat_field(constant(1.0), frame(), strength=float("nan"))


def test_what_no_stage_reads_is_told_before_the_cook():
    """A field where no heat is carried, and air twice."""
    with pytest.raises(MpmNodesError, match=r"solve.ambient: .* carry no heat; take the preset explicit_heat"):
        preflight.estimate(plan_graph(scene("air", substeps="explicit_apic")), 1)
    with pytest.raises(MpmNodesError, match=r"solve.ambient: .* carry no heat"):
        surround(SubstepSolver(cube(WAX), "explicit_apic"), (Ambient(Along(300.0), 1.0),))
    twice = (Ambient(Along(300.0), 1.0), Ambient(Along(300.0), 1.0))
    with pytest.raises(MpmNodesError, match="2 nodes say how warm the air is"):
        surround(solver(wax()), twice)
    graph = scene("air")
    graph.connect("sim.ambient", graph.add("air", "other"))
    with pytest.raises(MpmNodesError, match=r"sim: solve\.ambient: 2 nodes say how warm the air is"):
        preflight.estimate(plan_graph(graph), 1)
