"""Solves whose parameters follow the temperature: bits, resume, checked mode, limits of dt, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numba
import numpy as np
import pytest
from solver_scenes import cube

from mpm_nodes.data import Material, ParameterTable, Particles, Thermal
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.materials.contract import LawError
from mpm_nodes.nodes.materials import material_over_temperature
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages.choose_time_step import VISCOSITY

SOFT = Material("neo_hookean", {"youngs_modulus": 1e4}, 900.0, "toffee", thermal=Thermal(2000.0, 2e3, 2000.0, 2e3, 1e3, 330.0))
TOFFEE = dataclasses.replace(
    SOFT,
    tables={
        "youngs_modulus": ParameterTable(((300.0, 5e4), (325.0, 1e4), (360.0, 2e4)), ((330.0, 8e3),)),
        "viscosity": ParameterTable(((300.0, 0.1), (360.0, 2.0))),
    },
)


def warm(material: Material = TOFFEE) -> Particles:
    """Return a cube, cold at one side and molten at the other, that shears."""
    found = cube(material, (0.0, 0.01, 0.0))
    x = found["position"]
    share = (x - x.min(axis=0)) / np.ptp(x, axis=0)
    velocity = np.stack([0.5 * share[:, 1], 0.2 * share[:, 0], 0.0 * share[:, 0]], axis=1)
    return dataclasses.replace(
        found, attributes={**found.attributes, "temperature": 300.0 + 60.0 * share[:, 0], "velocity": velocity}
    )


def solver(substeps: Any = "explicit_heat", material: Material = TOFFEE, **options: Any) -> SubstepSolver:
    """Return a solve of the warm cube."""
    return SubstepSolver(warm(material), substeps, **{"dtype": np.float32, "dt_max": 1e-3, **options})


def end(run: SubstepSolver, count: int = 8) -> dict[str, np.ndarray]:
    """Return the particles after some substeps."""
    for _ in range(count):
        run.step()
    return dict(run.snapshot().attributes)


def assert_equal(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    """All attributes are the same, to the bit."""
    assert one.keys() == other.keys()
    for name in one:
        assert np.array_equal(one[name], other[name]), name


def test_threads_checked_mode_and_resume_change_no_bit():
    """One thread, two, and two with every declaration checked; a solve that goes on from a checkpoint."""
    whole, most = end(solver()), numba.config.NUMBA_NUM_THREADS
    assert 0.0 < whole["phase"].mean() < 1.0
    numba.set_num_threads(1)
    try:
        assert_equal(end(solver()), whole)
    finally:
        numba.set_num_threads(most)
    assert_equal(end(solver(checked=True)), whole)
    half = solver()
    end(half, 4)
    again = solver()
    SolverState.from_arrays(*SolverState(half).to_arrays()).revive(again)
    assert_equal(end(again, 4), whole)


def test_a_table_changes_what_happens():
    """The warm half is softer and thicker: the same cube without tables moves otherwise."""
    tabled, plain = end(solver()), end(solver(material=SOFT))
    assert np.abs(tabled["velocity"] - plain["velocity"]).max() > 1e-3


def test_the_limit_of_viscosity_is_that_of_the_particles_temperatures():
    """Cold syrup limits dt by its viscosity; warm syrup, of the same material, does not."""
    table = {"viscosity": ParameterTable(((300.0, 200.0), (360.0, 0.0)))}
    syrup = Material("liquid", {"bulk_modulus": 1e3}, 900.0, "syrup", tables=table)
    found = {}
    for temperature in (300.0, 360.0):
        start = cube(syrup, (0.0, 0.01, 0.0), temperature=temperature)
        run = SubstepSolver(start, "explicit_apic", dtype=np.float32)
        run.step()
        found[temperature] = (run.step_context.limit, run.step_context.dt)
    assert found[300.0][0] is VISCOSITY and found[360.0][0] is not VISCOSITY
    assert found[300.0][1] == pytest.approx(0.5 * 900.0 * run.cell_size**2 / (6.0 * 200.0))


@pytest.mark.slow
def test_single_stages_give_the_same_to_rounding():
    """Fused and one by one, in both float types."""
    for dtype, tolerance in ((np.float32, 2e-4), (np.float64, 1e-10)):
        fused, single = (end(solver(dtype=dtype, fuse=fuse)) for fuse in (True, False))
        assert np.abs(fused["velocity"] - single["velocity"]).max() < tolerance
        assert np.abs(fused["temperature"] - single["temperature"]).max() < 360.0 * tolerance


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["implicit_apic", "auto"])
def test_implicit_steps_follow_too(preset):
    """Backward Euler in steps as short as the explicit ones gives what those give."""
    explicit, implicit = solver("explicit_apic"), solver(preset)
    for _ in range(40):
        explicit.step(1e-4)
        implicit.step(1e-4)
    difference = explicit.snapshot()["velocity"] - implicit.snapshot()["velocity"]
    other = solver(preset, SOFT)
    for _ in range(40):
        other.step(1e-4)
    without_tables = explicit.snapshot()["velocity"] - other.snapshot()["velocity"]
    assert np.abs(difference).max() < 0.2 * np.abs(without_tables).max()


def test_keys_and_a_table_of_one_number_are_refused():
    """Keys of another number are fine."""
    keyed = KeyedNumber([(1.0, 1e4, "linear"), (9.0, 2e4, "linear")])
    both = dataclasses.replace(TOFFEE, params={"youngs_modulus": keyed})
    with pytest.raises(LawError, match="material toffee: youngs_modulus has keys and a table over the temperature; remove one"):
        solver(material=both)
    ratio = KeyedNumber([(1.0, 0.2, "linear"), (9.0, 0.4, "linear")])
    run = solver(material=dataclasses.replace(TOFFEE, params={"poisson_ratio": ratio}))
    first = run.particles.laws[0].coefficients
    run.step(1e-4, frame=5.0)
    later = run.particles.laws[0].coefficients
    assert first[0] != later[0] and run.particles.laws[0].loops.law.follows[0].indices == (0, 1, 3)


def test_the_node_adds_a_table_and_says_what_is_wrong():
    """Several in a row give several tables; the parameter's own bounds hold at every row."""
    made = material_over_temperature(SOFT, parameter="viscosity", table=((300.0, 1.0),))
    made = material_over_temperature(made, table=((300.0, 1e4), (310.0, 1e3)), liquid_table=((300.0, 10.0),))
    assert made.tables.keys() == {"viscosity", "youngs_modulus"} and made.tables["youngs_modulus"].liquid == ((300.0, 10.0),)
    with pytest.raises(LawError, match=r"toffee: at 310 K, .*poisson_ratio = 0\.6 is out of range"):
        material_over_temperature(SOFT, parameter="poisson_ratio", table=((300.0, 0.3), (310.0, 0.6)))
