"""Heat on the nodes: in any preset, the same heat as on cells, symmetric, of any kernel, bits, checked mode, and what is around."""

from __future__ import annotations

import dataclasses

import numba
import numpy as np
import pytest
from heat_scenes import WAX, enthalpy, plate, wax
from solver_scenes import cube

from mpm_nodes.data import Ambient, FrameContext, Kernel, MpmNodesError, Thermal, WallRule, Walls
from mpm_nodes.physics.heat.nodes.heat import collider_heat_flux
from mpm_nodes.physics.heat.numerics.conduction import Surroundings
from mpm_nodes.physics.heat.numerics.nodal_conduction import _contacts, _leave_out, _Operator
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import surround

HEAT = ("thermal_properties", "rasterize_nodal_heat", "conduct_nodal_heat", "gather_nodal_heat")
STILL = {"gravity": (0.0, 0.0, 0.0), "colliders": []}


def nodal(preset: str = "explicit_apic", kernel: str = "quadratic", **conduct: float) -> dict:
    """Return a preset with heat on its nodes, melting included."""
    edits = [{"insert": name, "before": "rasterize", "type": name} for name in HEAT]
    edits.append({"insert": "update_phase", "after": "move_particles", "type": "update_phase"})
    knobs = {f"{name}.kernel": kernel for name in HEAT[1:]} | {
        f"conduct_nodal_heat.{name}": value for name, value in conduct.items()
    }
    return {"preset": preset, "edits": [*edits, {"set": knobs}]}


def solver(start, substeps: object, **options: object) -> SubstepSolver:
    """Return a solver of wax over the hot plate."""
    return SubstepSolver(start, substeps, **{"colliders": [plate()], "dtype": np.float64, "dt_max": 1e-3, **options})


def stepped(run: SubstepSolver, steps: int, dt: float | None = None) -> float:
    """Run substeps and return the heat that came from outside [J]."""
    gained = 0.0
    for frame in range(steps):
        run.step_context.frame = frame
        run.step(dt)
        told = run.step_context.report["heat"]
        gained += told["from_bodies"] + told["from_air"] + told["from_sources"]
    return gained


def temperatures(run: SubstepSolver) -> np.ndarray:
    """Return the particles' temperatures by their id."""
    return run.particles.unpack("temperature")[np.argsort(run.particles.unpack("id"))]


@pytest.mark.parametrize("preset", ["explicit_apic", "implicit_apic", "surface_tension"])
def test_it_fits_into_any_preset(preset):
    """Matter on a hot plate melts into its other law, falls with it, and its enthalpy is what came in."""
    run = solver(wax(), nodal(preset, tolerance=1e-13))
    before = enthalpy(run)
    gained = stepped(run, 40)
    melted = run.particles.unpack("phase") == 1
    assert 0.02 < melted.mean() < 0.98 and np.array_equal(run.particles.unpack("material"), melted.astype(np.int32))
    assert gained > 0.0 and abs(enthalpy(run) - before - gained) < 1e-9 * gained


@pytest.mark.parametrize("kernel", ["quadratic", "cubic"])
def test_it_warms_as_on_cells(kernel):
    """A cube on a hot plate in warm air takes up the heat that it takes up on cells, to 5 %, where it spreads over 1.5 cells."""
    around = {"air_temperature": 400.0, "air_convection": 1e5}
    stout = dataclasses.replace(WAX, thermal=Thermal(2000.0, 2e6, 2000.0, 2e6, 0.0, None, None))
    block = cube(stout, (0.0, 0.0, 0.0), cells=16, cell_size=0.05, temperature=300.0)
    found = []
    for substeps in (nodal(kernel=kernel, **around), {"preset": "explicit_heat", "set": around}):
        run = solver(block, substeps, gravity=(0.0, 0.0, 0.0), cell_size=0.1)
        gained = stepped(run, 20, 1e-3)
        found.append((gained, run.step_context.report["heat"]["surface"]))
    assert found[0] == pytest.approx(found[1], rel=0.05) and found[0][0] > 0.0


@pytest.mark.parametrize("kernel", list(Kernel))
def test_the_matrix_is_symmetric_and_heat_only_flows_down(kernel):
    """x.Ay = y.Ax and x.Ax >= 0 for the flows among nodes and into a hot plate; even matter without contact gives off nothing."""
    run = solver(wax(), nodal(kernel=kernel.value), gravity=(0.0, 0.0, 0.0))
    run.step(1e-4)
    run.colliders.pose(0.0, 1e-4)
    size = 64 * run.grid.count
    x, y = np.random.default_rng(1).normal(size=(2, 256 * (-(-size // 256))))
    for touching in (True, False):
        contacts = _contacts(run.particles, run.colliders, Surroundings(insulated=not touching))
        assert bool(contacts) is touching
        operator = _Operator(run.particles, run.grid, kernel, contacts)
        flow_x, flow_y = operator.flow(x, bodies=False), operator.flow(y, bodies=False)
        assert flow_x @ y[:size] == pytest.approx(flow_y @ x[:size], rel=1e-10)
        assert flow_x @ x[:size] > 0.0
        even, scale = float(np.abs(operator.flow(np.ones_like(x), bodies=False)).max()), float(np.abs(flow_x).max())
        assert even > 1e-3 * scale if touching else even < 1e-10 * scale


def test_heat_that_bodies_bring_is_that_of_their_area():
    """A flux through the plate, and through a wall, is b A t for the face of the cube that lies on it, wherever the nodes lie."""
    rubber = dataclasses.replace(WAX, thermal=Thermal(2000.0, 2e4, 2000.0, 2e4, 0.0, None, None))
    flux, step = 1e6, 1e-3
    block = cube(rubber, temperature=300.0)
    sides = (WallRule.OPEN, WallRule.OPEN, WallRule.SLIP, WallRule.OPEN, WallRule.OPEN, WallRule.OPEN)
    floor = Walls((-1.0, 0.0, -1.0), (1.0, 1.0, 1.0), sides)
    body = collider_heat_flux(dataclasses.replace(plate(), temperature=None), FrameContext(1), flux=flux)
    for offset in (0.0, 0.3, 0.5):
        still = {"gravity": (0.0, 0.0, 0.0), "origin": (0.0, -0.1 * offset, 0.0)}
        run = solver(block, nodal(tolerance=1e-13), colliders=[body], **still)
        assert stepped(run, 1, step) == pytest.approx(flux * 0.3**2 * step, rel=1e-9)
        warm = nodal(tolerance=1e-13, wall_temperature=400.0, wall_conductance=1e-3)
        run = solver(block, warm, colliders=[], walls=floor, **still)
        assert stepped(run, 1, step) == pytest.approx(1e-3 * 100.0 * 0.3**2 * step, rel=1e-6)


class Along:
    """Values that change along x: a + b x."""

    def __init__(self, a: float, b: float = 0.0) -> None:
        self.a, self.b = a, b

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the values at places."""
        return self.a + self.b * places[:, 0]


def test_what_faces_a_body_is_no_free_surface():
    """Near a body the part of an area that leads into it is gone, and nothing else."""
    area, up = np.array([[0.0, -3.0, 4.0], [0.0, 3.0, 4.0], [0.0, -3.0, 4.0]]), np.tile([0.0, 1.0, 0.0], (3, 1))
    _leave_out(area, up, np.array([True, True, False]))
    np.testing.assert_allclose(area, [[0.0, 0.0, 4.0], [0.0, 3.0, 4.0], [0.0, -3.0, 4.0]], atol=1e-15)


def test_air_and_heat_in_places_are_those_of_the_stage():
    """Even air and an even field give what the stage's own knobs give; half the exposure takes half the heat."""
    sets = {"air_temperature": 400.0, "air_convection": 1e5, "source": 2e8, "tolerance": 1e-13}
    own = solver(wax(300.0), nodal(**sets), **STILL)
    whole = stepped(own, 5, 1e-3)
    there = solver(wax(300.0), nodal(tolerance=1e-13), **STILL)
    surround(there, (Ambient(Along(400.0), 1e5), Ambient(source=Along(2e8))))
    assert stepped(there, 5, 1e-3) == pytest.approx(whole, rel=1e-9) and whole > 0.0
    assert np.abs(temperatures(own) - temperatures(there)).max() < 1e-9
    shaded = solver(wax(300.0), nodal(tolerance=1e-13), **STILL)
    surround(shaded, (Ambient(Along(400.0), 2e5, Along(0.5)), Ambient(source=Along(2e8))))
    assert stepped(shaded, 5, 1e-3) == pytest.approx(whole, rel=1e-9)


def test_a_plate_may_be_warmer_along_its_surface():
    """Matter takes up heat in proportion to the temperature of the plate below it, warmer towards +x as that is."""
    block, middle, slopes = cube(WAX, cells=8, temperature=200.0), 0.4, []
    for temperatures_of in (None, Along(300.0, 200.0)):
        warm = dataclasses.replace(plate(300.0), temperatures=temperatures_of)
        run = solver(block, nodal(), colliders=[warm], gravity=(0.0, 0.0, 0.0))
        stepped(run, 5, 1e-3)
        x, y = run.particles.unpack("position")[:, :2].T
        low = (y < y.min() + 1e-9) & (np.abs(x - middle) < 0.2)  # two cells off the sides, which are insulated
        slopes.append(np.polyfit(x[low] - middle, run.particles.unpack("temperature")[low] - 200.0, 1))
    (even, rise), (slope, risen) = slopes
    assert abs(even) < 1e-6 and risen == pytest.approx(rise * (300.0 + 200.0 * middle - 200.0) / 100.0, rel=1e-3)
    assert slope == pytest.approx(rise / 100.0 * 200.0, rel=0.1)


def test_what_particles_make_is_heat():
    """dT/dt = q / (rho c) for the matter's own source, as on cells."""
    run = solver(wax(300.0, heat_source=2e8), nodal(tolerance=1e-13), **STILL)
    stepped(run, 5, 1e-3)
    assert np.abs((temperatures(run) - 300.0) / (5 * 1e-3 * 2e8 / (900.0 * 2000.0)) - 1.0).max() < 1e-9


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
def test_no_stage_of_it_lies(fuse):
    """Checked mode finds nothing undeclared while matter melts, and changes no bit; nor does the number of threads."""
    ends, most = [], numba.config.NUMBA_NUM_THREADS
    for checked, threads in ((False, most), (True, most), (False, 1)):
        numba.set_num_threads(threads)
        try:
            run = solver(wax(), nodal(air_temperature=400.0, air_convection=1e4), checked=checked, fuse=fuse, dtype=np.float32)
            stepped(run, 12)
        finally:
            numba.set_num_threads(most)
        ends.append(run.snapshot().attributes)
    assert 0 < ends[0]["phase"].sum() < 216
    assert all(np.array_equal(ends[0][name], end[name]) for end in ends[1:] for name in ends[0])


def test_single_and_double_precision_agree():
    """Temperatures after twelve substeps differ by what single precision rounds, some 1e-7 of them a substep."""
    ends = []
    for dtype in (np.float32, np.float64):
        run = solver(wax(300.0), nodal(), dtype=dtype, gravity=(0.0, 0.0, 0.0))
        stepped(run, 12, 1e-3)
        ends.append(temperatures(run).astype(float))
    assert np.abs(ends[0] - ends[1]).max() < 12 * 4e-7 * 500.0 and np.ptp(ends[1]) > 1.0


def test_without_it_the_grid_holds_no_more_than_motion():
    """Arrays of heat are there where a stage names them."""
    plain, hot = solver(wax(), "explicit_apic"), solver(wax(), nodal())
    assert {"heat", "temperature"} & set(plain.grid.names) == set() and {"heat", "temperature"} <= set(hot.grid.names)


def test_a_temperature_that_is_not_finite_ends_the_solve():
    """It says that the heat equation has no finite solution, and where."""
    run = solver(wax(300.0), nodal(air_temperature=1e300, air_convection=1e300), **STILL)
    with pytest.raises(MpmNodesError, match="the heat equation has no finite solution"):
        stepped(run, 3, 1e-3)
