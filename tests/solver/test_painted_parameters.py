"""Any parameter of a law may vary inside matter: it follows an attribute that is painted, in one body of one material."""

from __future__ import annotations

import dataclasses
from typing import Any

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, cube, values

from mpm_nodes import Graph
from mpm_nodes.data import Material, MpmNodesError, ParameterTable, Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.graph.time.keys import KeyedNumber
from mpm_nodes.materials.contract import Follows, LawError
from mpm_nodes.materials.over_temperature import TabledNumbers, tabled_law, without
from mpm_nodes.nodes.materials import material_over_attribute
from mpm_nodes.nodes.solve_needs import Precision
from mpm_nodes.solver import cold_start, compile_helper
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver

CREAM = {"shear_modulus": 8e3, "yield_stress": 3e3, "density": 500.0}


def halves(one_body: bool, painted: dict[str, Any], preset: str = "explicit_apic") -> Particles:
    """Return cream, of which the right half has other numbers: as one body that is painted, or as two materials."""
    graph = Graph(cell_size=0.05, fps=24.0, start=1, end=5)
    cream = graph.add("material_herschel_bulkley", "cream", **CREAM)
    if one_body:
        for name, value in painted.items():
            table = [[0, 1], [1, value / CREAM[name]]]
            cream = graph.add("material_over_attribute", name, material=cream, parameter=name, attribute="mask", table=table)
        box = graph.add("emit_box", "box", material=cream, size=(0.6, 0.4, 0.3), centre=(0.0, 0.2, 0.0))
        right = graph.add("field_shape", "right", shape="half_space", rotation=(0.0, 0.0, 90.0))  # its inside is x > 0
        sources = [graph.add("set_attribute", "start", particles=box, field=right, attribute="mask")]
    else:
        other = graph.add("material_herschel_bulkley", "other", **{**CREAM, **painted})
        parts = [("left", cream, -0.15), ("right", other, 0.15)]
        sources = [
            graph.add("emit_box", name, material=matter, size=(0.3, 0.4, 0.3), centre=(x, 0.2, 0.0)) for name, matter, x in parts
        ]
    ground = graph.add("collide_plane", "ground")
    knobs = {"precision": Precision.DOUBLE.value, "dt_max": 5e-4}  # as long with one material as with two
    graph.add("solve", "sim", sources=sources, colliders=[ground], substeps=preset, **knobs)
    cook = Evaluator(graph)
    first, found = cook.value("sim.particles", 1), cook.value("sim.particles", 5)
    order = np.lexsort(np.round(first["position"], 6).T)
    return dataclasses.replace(found, attributes={name: column[order] for name, column in found.attributes.items()})


@pytest.mark.parametrize(
    "painted",
    [{"yield_stress": 10.0}, {"density": 1500.0}, {"shear_modulus": 2e3, "yield_stress": 10.0}],
    ids=lambda p: "_".join(p),
)
def test_a_painted_half_is_the_other_material(painted):
    """To rounding, for any parameter, the density and two at once; and the halves do differ."""
    one, two = halves(True, painted), halves(False, painted)
    assert np.abs(one["position"] - two["position"]).max() < 1e-9
    assert np.abs(one["mass"] / two["mass"] - 1.0).max() < 1e-12
    plain = halves(False, {})
    assert np.abs(plain["position"] - two["position"]).max() > 1e-3


def test_an_implicit_solve_follows_too():
    """The same in implicit substeps, to what they solve their equations within."""
    painted = {"yield_stress": 10.0}
    one, two = (halves(each, painted, "implicit_apic") for each in (True, False))
    assert np.abs(one["position"] - two["position"]).max() < 1e-4


# ---------------------------------------------------------------- two attributes at once
def both() -> Material:
    """Return jelly whose stiffness follows one attribute, and whose viscosity another."""
    made = material_over_attribute(JELLY, attribute="hard", table=((0.0, 1.0), (1.0, 4.0)))
    thick = dataclasses.replace(made, viscosity=2.0)
    return material_over_attribute(thick, parameter="viscosity", attribute="thick", table=((0.0, 0.5), (2.0, 3.0)), relative=False)


def sheared(**columns: Any) -> Particles:
    """Return a cube of both that shears."""
    made = cube(both(), (0.0, 0.01, 0.0), velocity=(0.0, 0.0, 0.0))
    x = made["position"]
    velocity = np.stack([2.0 * x[:, 1], x[:, 0], 0.0 * x[:, 0]], axis=1)
    painted = {"hard": np.clip(4.0 * x[:, 0], 0.0, 1.0), "thick": 5.0 * x[:, 1]} | columns
    return dataclasses.replace(made, attributes={**made.attributes, "velocity": velocity, **painted})


def moved(particles: Particles, count: int = 8, **options: Any) -> Particles:
    """Return particles after some substeps."""
    run = SubstepSolver(particles, options.pop("substeps", "explicit_apic"), dt_max=1e-3, **options)
    for _ in range(count):
        run.step()
    return run.snapshot()


def test_parameters_follow_attributes_of_their_own():
    """Where both attributes are at one value, matter is that of the plain numbers; threads, checks and resume change no bit."""
    plain = dataclasses.replace(JELLY, params={**JELLY.params, "youngs_modulus": 2e4}, viscosity=1.75)
    start = sheared(hard=np.ones(216), thick=np.ones(216))
    expected = moved(dataclasses.replace(start, materials=(plain,)), dtype=np.float64)
    got = moved(start, dtype=np.float64)
    assert np.abs(got["velocity"] - expected["velocity"]).max() < 1e-12
    whole, most = values(moved(sheared())), numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(1)
    try:
        assert values(moved(sheared())) == whole
    finally:
        numba.set_num_threads(most)
    assert values(moved(sheared(), checked=True)) == whole
    half, again = (SubstepSolver(sheared(), dt_max=1e-3) for _ in range(2))
    for _ in range(4):
        half.step()
    SolverState.from_arrays(*SolverState(half).to_arrays()).revive(again)
    for _ in range(4):
        again.step()
    assert values(again.snapshot()) == whole


def test_another_process_can_compile_for_it():
    """A solve that begins cold is helped by one with particles of its own."""
    with_helper = cold_start._task(SubstepSolver(sheared()))
    assert compile_helper.help_compile(with_helper) == []


def test_the_numbers_of_both_attributes_stand_behind_each_other():
    """In the coefficients that kernels take, in NumPy, and where one of them is silenced."""
    found = tabled_law(both())
    assert found.follows == (Follows("hard", (0, 1)), Follows("thick", (3,))) and found.inputs == ("hard", "thick")
    numbers = TabledNumbers(both(), found)
    mu, _, density, viscosity = numbers.at({"hard": np.array([0.0, 0.5, 1.0]), "thick": np.array([0.0, 1.0, 9.0])})
    np.testing.assert_allclose(mu / mu[0], [1.0, 2.5, 4.0], rtol=1e-12)
    np.testing.assert_allclose(viscosity, [0.5, 1.75, 3.0], rtol=1e-12)
    assert (density == 1000.0).all() and numbers.largest(3, -1.0, 1.0) == pytest.approx(1.75)
    changed = np.flatnonzero(without(numbers.values, found, 3) != numbers.values)
    assert changed[0] == 3 and set(changed[1:]) == {len(numbers.values) - 2, len(numbers.values) - 1}
    assert Material.from_json(both().to_json()) == both()


def test_the_lightest_matter_sets_the_substep():
    """Lighter matter has faster waves: a substep of a quarter of the density is half as long."""
    table = ((0.0, 1.0), (1.0, 0.25))
    light = material_over_attribute(JELLY, parameter="density", attribute="fat", table=table)
    found = {}
    for fat in (0.0, 1.0):
        run = SubstepSolver(cube(light, fat=fat), dtype=np.float64, dt_max=1.0)
        run.step()
        found[fat] = run.step_context.dt, run.snapshot()["mass"].sum()
    assert found[1.0][0] == pytest.approx(0.5 * found[0.0][0]) and found[1.0][1] == pytest.approx(0.25 * found[0.0][1])
    assert found[0.0][1] == pytest.approx(1000.0 * 0.3**3)


def test_a_painted_density_weighs_before_the_solve():
    """So that a rate in kg/s counts it; other particles keep the mass that they have, to the bit."""
    graph = painted_shot(attribute="paint", value=1.0)
    graph.nodes["soft"].knobs["parameter"] = "density"
    cook = Evaluator(graph)
    plain, painted = cook.value("box.particles", 1), cook.value("start.particles", 1)
    np.testing.assert_allclose(painted["mass"], 100.0 * plain["volume"])
    assert plain["mass"].sum() == pytest.approx(100.0 * 0.2**3)
    graph.nodes["start"].knobs["attribute"] = "else"
    assert np.array_equal(Evaluator(graph).value("start.particles", 1)["mass"], plain["mass"])


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    "knobs, words",
    [
        ({"parameter": "stiffness"}, "'stiffness' cannot follow 'paint'; choose one of .*youngs_modulus.*viscosity, density"),
        ({"attribute": "temperature"}, "take material_over_temperature"),
        ({"attribute": "velocity"}, "velocity is not a number that particles keep"),
        ({"attribute": "two words"}, "is not a name"),
        ({"parameter": "viscosity"}, "viscosity is 0, and so is 0 times a factor"),
        ({"parameter": "poisson_ratio", "table": ((0.0, 1.0), (1.0, 2.0))}, "at paint = 1, .*poisson_ratio = 0.6 is out of range"),
        ({"table": ((1.0, 1.0), (0.0, 2.0))}, "table over 'paint': row 2 at 0 does not follow 1"),
    ],
)
def test_what_cannot_follow_is_told(knobs, words):
    """With the parameter, the attribute, and what to do."""
    with pytest.raises(MpmNodesError, match=words):
        material_over_attribute(JELLY, **knobs)


def test_one_number_follows_one_attribute():
    """Young's modulus and Poisson's ratio make the same moduli; keys and two tables of one parameter are refused as well."""
    firm = material_over_attribute(JELLY, attribute="hard")
    with pytest.raises(LawError, match="would follow both hard and thick"):
        material_over_attribute(firm, parameter="poisson_ratio", attribute="thick")
    for again in ("hard", "thick"):
        with pytest.raises(MpmNodesError, match="youngs_modulus follows 'hard' already"):
            material_over_attribute(firm, attribute=again)
    keyed = dataclasses.replace(JELLY, params={"youngs_modulus": KeyedNumber(((1.0, 1e4, "linear"), (9.0, 1e3, "linear")))})
    with pytest.raises(MpmNodesError, match="youngs_modulus has keys"):
        material_over_attribute(keyed)


def painted_shot(**start: Any) -> Graph:
    """Return a shot whose jelly follows `paint`, which set_attribute gives it."""
    graph = Graph(cell_size=0.1, start=1, end=2)
    jelly = graph.add("material_over_attribute", "soft", material=graph.add("material_neo_hookean", "jelly"))
    matter = graph.add("emit_box", "box", material=jelly, size=(0.2, 0.2, 0.2))
    if start.pop("vector", False):
        start["field"] = graph.add("field_vector", "up")
    if start:
        matter = graph.add("set_attribute", "start", particles=matter, **start)
    graph.add("solve", "sim", sources=[matter])
    return graph


def test_matter_without_the_attribute_is_refused_before_the_cook():
    """With the solve, the node, the material; also where it is a vector; a solve from Python says it as it is made."""
    preflight.estimate(plan_graph(painted_shot(attribute="paint", value=0.5)), 1)
    with pytest.raises(MpmNodesError, match=r"solve.sources \(box\): youngs_modulus of material .* follows 'paint', which these"):
        preflight.estimate(plan_graph(painted_shot()), 1)
    with pytest.raises(MpmNodesError, match="parameters of the material follow paint, which has to be a number"):
        preflight.estimate(plan_graph(painted_shot(attribute="paint", vector=True)), 1)
    table = {"youngs_modulus": ParameterTable(((0.0, 1e4), (1.0, 1e3)), over="paint")}
    with pytest.raises(MpmNodesError, match="youngs_modulus follows 'paint', which its particles do not have"):
        SubstepSolver(cube(dataclasses.replace(JELLY, tables=table)))
