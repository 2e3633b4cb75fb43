"""Implicit substeps: convergence and what happens without it, guards, Krylov methods, and the promises of every solve."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from solver_scenes import LIQUID, SNOW, cube, values

from mpm_nodes.data import Collider, CollisionRule, Material, Particles, WallRule, Walls, concatenate
from mpm_nodes.graph.plan.fusion import FusedStage
from mpm_nodes.kernels.level_sets.level_set import PLANE, SPHERE, PosedLevelSets
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.divergence import SimulationDiverged
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.terms.energy_store import EnergyStore
from mpm_nodes.verification.implicit import deformed_cloud, prepared, random_nodes
from mpm_nodes.verification.quantities import momentum, momentum_scale

RUBBER = Material("neo_hookean", {"youngs_modulus": 1e6}, 1000.0, "rubber")


def implicit(**settings):
    """Return the implicit preset with some of its knobs set."""
    return {"preset": "implicit_apic", "set": settings}


def tally(solver):
    """Return what the implicit substeps of the frame took."""
    return solver.step_context.report["implicit"]


def spinning(material, cells=3, omega=(6.0, 9.0, -4.0), speed=(0.0, 0.0, 0.0)):
    """Return a cube that turns about its middle and flies."""
    start = cube(material, cells=cells)
    velocity = np.cross(omega, start["position"] - start["position"].mean(axis=0)) + speed
    return Particles({**start.attributes, "velocity": velocity}, start.materials, start.spacing)


# ---------------------------------------------------------------- convergence
def test_a_solve_down_to_rounding_converges():
    """Steps too short for their energies to differ count as none: no substep is halved on their account (float64, 1e-9 cells)."""
    solver = SubstepSolver(
        spinning(RUBBER),
        implicit(tolerance=1e-9, **{"minimise_energy.krylov_tolerance": 1e-10}),
        cell_size=0.1,
        gravity=(0, 0, 0),
        dtype=np.float64,
    )
    for _ in range(20):
        assert solver.step(2e-4) == 2e-4
    assert tally(solver)["halved"] == 0 and tally(solver)["substeps"] == 20


@pytest.mark.parametrize("knob", ["tolerance", "minimise_energy.krylov_tolerance"])
def test_tolerances_below_the_rounding_of_single_precision_halve_nothing(knob):
    """1e-14 in float32 is what float32 can reach: twenty substeps keep their length."""
    solver = SubstepSolver(spinning(RUBBER), implicit(**{knob: 1e-14}), cell_size=0.1, gravity=(0, 0, 0))
    for _ in range(20):
        assert solver.step(2e-4) == 2e-4
    assert tally(solver)["halved"] == 0


def test_a_solve_that_does_not_converge_takes_a_smaller_step_and_goes_on():
    """With one Newton step of few iterations allowed a long substep is halved until it converges, and that is reported."""
    few = implicit(**{"minimise_energy.newton_iterations": 2, "minimise_energy.krylov_iterations": 4})
    solver = SubstepSolver(spinning(RUBBER), few, cell_size=0.1, gravity=(0, 0, 0), dtype=np.float64)
    taken = solver.step(8e-3)
    found = tally(solver)
    assert taken == 8e-3 * 0.5 ** found["halved"] and 1 <= found["halved"] <= 5 and solver.time == taken
    assert found["substeps"] == 1 and "2 Newton iterations, the last step" in found["reason"]
    assert solver.step_context.report["substep"]["limit"] == "implicit solve"
    solver.step(taken)
    assert tally(solver)["substeps"] == 2 and np.isfinite(solver.particles.unpack("velocity")).all()


def test_a_solve_that_no_shorter_step_helps_diverges():
    """One Newton step can never come to 1e-14 cells: after ten halvings the message names the solve and its reason."""
    never = implicit(tolerance=1e-14, **{"minimise_energy.newton_iterations": 1})
    solver = SubstepSolver(spinning(RUBBER), never, cell_size=0.1, dtype=np.float64)
    with pytest.raises(SimulationDiverged, match=r"implicit solve did not converge.*1 Newton iterations.*newton_iterations"):
        solver.step(8e-3)
    assert tally(solver)["halved"] == 11


def rough_floor(**settings):
    """Return a stiff cube of random velocities on a floor with friction, in steps of fifty times the explicit limit."""
    start = cube(RUBBER)
    start = Particles(
        {**start.attributes, "velocity": np.random.default_rng(1).normal(0.0, 1.0, (len(start), 3)) - [0, 1, 0]},
        start.materials,
        start.spacing,
    )
    floor = Walls((-1.0, 0.0, -1.0), (2.0, 2.0, 2.0), (WallRule.OPEN,) * 2 + (WallRule.SEPARATE,) + (WallRule.OPEN,) * 3, 0.3)
    return SubstepSolver(start, implicit(**settings), cell_size=0.1, walls=floor)


def test_contacts_that_were_let_go_and_driven_back_do_not_end_the_solve():
    """Where the line search is stopped by such contacts they are held, and Newton goes on: nothing is halved."""
    solver = rough_floor()
    for _ in range(6):
        assert solver.step(0.068) == 0.068
    assert tally(solver)["halved"] == 0


def test_friction_is_in_the_preconditioner():
    """A stiff cube that rests on a rough floor takes fewer than 300 Krylov iterations a substep: some 2000 without it."""
    solver = rough_floor()
    for _ in range(4):
        solver.step(0.068)
    before = tally(solver)["krylov"]
    solver.step(0.068)
    assert tally(solver)["krylov"] - before < 300


# ---------------------------------------------------------------- Krylov methods
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_krylov_methods_and_preconditioners_agree(dtype):
    """The minimum does not depend on how it is found: velocities agree to the tolerance of the solves."""
    ends = {}
    tight = (
        {"tolerance": 1e-9, "minimise_energy.krylov_tolerance": 1e-9}
        if dtype is np.float64
        else {"tolerance": 1e-4, "minimise_energy.krylov_tolerance": 1e-3}
    )
    for krylov in ("conjugate_gradient", "conjugate_residual"):
        for preconditioner in ("mass", "jacobi", "block_jacobi"):
            settings = {**tight, "minimise_energy.krylov": krylov, "minimise_energy.preconditioner": preconditioner}
            solver = SubstepSolver(spinning(RUBBER), implicit(**settings), cell_size=0.1, dtype=dtype)
            for _ in range(3):
                solver.step(4e-3)
            ends[krylov, preconditioner] = solver.snapshot(["velocity"])["velocity"]
    first = ends["conjugate_gradient", "block_jacobi"]
    allowed = (1e-6 if dtype is np.float64 else 2e-2) * np.abs(first).max()
    assert {how: worst for how, end in ends.items() if (worst := np.abs(end - first).max()) > allowed} == {}


def test_projected_hessians_find_the_same_minimum():
    """Positive parts of local Hessians change the way, not the end."""
    ends = []
    for project in (False, True):
        settings = {
            "tolerance": 1e-9,
            "minimise_energy.krylov_tolerance": 1e-6,
            "law_energy.project_hessians": project,
            "minimise_energy.newton_iterations": 100,
        }
        solver = SubstepSolver(spinning(RUBBER), implicit(**settings), cell_size=0.1, dtype=np.float64)
        solver.step(4e-3)
        ends.append(solver.snapshot(["velocity"])["velocity"])
        assert tally(solver)["halved"] == 0
    assert np.abs(ends[1] - ends[0]).max() < 1e-6 * np.abs(ends[0]).max()


# ---------------------------------------------------------------- the promises of every solve
def busy(fuse=True, checked=False, dtype=np.float32):
    """Return a solver of two materials among bodies and walls."""
    ground = PosedLevelSets(PLANE)
    ball = PosedLevelSets(SPHERE, (0.15,), np.array([0.0, 1.0]), None, np.array([[0.2, 0.0, 0.2], [0.2, 1.0, 0.2]]))
    bodies = (Collider("ground", CollisionRule.SEPARATE, 0.3, ground), Collider("ball", CollisionRule.STICKY, 0.0, ball))
    walls = Walls((-0.5, -1.0, -0.5), (0.37, 5.0, 5.0), (WallRule.SLIP, WallRule.DELETE, *(WallRule.OPEN,) * 4))
    matter = concatenate(
        [cube(SNOW, (0.0, 0.05, 0.0), velocity=(1.0, -2.0, 0.5)), cube(LIQUID, (0.1, 0.4, 0.1), cells=2, velocity=(1.0, -3.0, 0.0))]
    )
    return SubstepSolver(matter, implicit(), cell_size=0.1, colliders=bodies, walls=walls, dtype=dtype, fuse=fuse, checked=checked)


def run_busy(threads=1, **options):
    """Return the bytes of every attribute after eight substeps."""
    numba.set_num_threads(threads)
    solver = busy(**options)
    for _ in range(8):
        solver.step(4e-3)
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    return values(solver.snapshot())


@pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")
def test_one_and_two_threads_give_the_same_bits():
    """Sums of energies, dot products and forces are combined in a fixed order: equal bit for bit after eight substeps."""
    one, two = run_busy(1), run_busy(2)
    assert one.keys() == two.keys() and [name for name in one if one[name] != two[name]] == []


def test_fused_and_single_stages_agree():
    """Both find the same steps: eight substeps in float64 differ by rounding, which the solves do not enlarge beyond 1e-10."""
    fused, single = (busy(fuse=fuse, dtype=np.float64) for fuse in (True, False))
    assert [any(isinstance(planned, FusedStage) for planned in run.plan.stages) for run in (fused, single)] == [True, False]
    for _ in range(8):
        for run in (fused, single):
            run.step(4e-3)
    assert tally(fused) == tally(single)
    ends = [run.snapshot().attributes for run in (fused, single)]
    assert ends[0].keys() == ends[1].keys()
    for name, column in ends[0].items():
        assert np.abs(column - ends[1][name]).max() <= 1e-10 * np.abs(column).max(), name


def test_a_stored_and_revived_solve_goes_on_with_the_same_bits():
    """Nothing that an implicit substep leaves behind counts for the next one but the particles."""
    whole, half = busy(), busy()
    for solver in (whole, half):
        for _ in range(4):
            solver.step(4e-3)
    revived = busy()
    SolverState.from_arrays(*SolverState(half).to_arrays()).revive(revived)
    for solver in (whole, revived):
        for _ in range(4):
            solver.step(4e-3)
    assert values(whole.snapshot()) == values(revived.snapshot())


def test_matter_of_two_laws_keeps_its_momentum():
    """Snow and liquid share a grid: what one gives the other takes (float64, to the tolerance of the solve)."""
    matter = concatenate([spinning(SNOW, speed=(2.0, 0.0, 0.0)), cube(LIQUID, (0.32, 0.05, 0.05), cells=2)])
    solver = SubstepSolver(
        matter,
        implicit(tolerance=1e-9, **{"minimise_energy.krylov_tolerance": 1e-6}),
        cell_size=0.1,
        gravity=(0, 0, 0),
        dtype=np.float64,
    )
    before, scale = momentum(solver), momentum_scale(solver)
    for _ in range(5):
        solver.step(4e-3)
    liquid = solver.particles.unpack("material") == 1
    assert np.abs(momentum(solver) - before).max() < 1e-8 * scale
    assert np.abs(solver.particles.unpack("velocity")[liquid]).max() > 0.1


def test_the_gradient_holds_with_contacts_and_friction():
    """On a floor with friction dE/dv is the slope of E, by central differences along a random direction (float64)."""
    walls = Walls((-1.0, 0.0, -1.0), (2.0, 2.0, 2.0), (WallRule.OPEN,) * 2 + (WallRule.SEPARATE,) + (WallRule.OPEN,) * 3, 0.5)
    problem = prepared(deformed_cloud("neo_hookean"), 0.01, walls=walls)
    problem.start()
    problem._settle_contacts(0.0)  # lags the normal impulses, as an iteration does
    assert problem.friction > 0.0 and problem.contacts.active.any()
    v, d, step = problem.velocity.copy(), random_nodes(problem, 0.5, 2), 1e-5
    values = [problem.value(v + sign * step * d)[0] for sign in (-1, 1)]
    problem.value(v)
    assert (values[1] - values[0]) / (2 * step) == pytest.approx(float(problem.gradient @ d), rel=1e-6)


class _Taker:
    """A term that counts one other as its own."""

    taken = False

    def takes_in(self, term):
        joins, self.taken = not self.taken, True
        return joins


def test_the_energies_of_a_moment_come_back_as_they_were():
    """What joined a term after a save has not joined it after the restore, as often as one restores."""
    store = EnergyStore(None)
    store.add("first", _Taker())
    saved = store.save()
    for _ in range(2):
        store.restore(saved)
        store.add("second", _Taker())
        assert list(store.terms) == ["first"] and store.terms["first"].taken
