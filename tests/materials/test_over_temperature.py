"""Parameters that follow the temperature: checks, tables of coefficients, and the loops that interpolate them lane by lane."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from law_samples import flat, random_matrices, random_states

from mpm_nodes.data import ATTRIBUTES, Material, MpmNodesError, ParameterTable, Thermal
from mpm_nodes.data.parameter_tables import value_at
from mpm_nodes.kernels.composition.backends import EIGHT
from mpm_nodes.kernels.composition.generated import composed_loop
from mpm_nodes.kernels.composition.source import source_of
from mpm_nodes.materials import over_temperature
from mpm_nodes.materials.contract import Follows, LawError, law, law_ids, law_of
from mpm_nodes.materials.law_fragments import ADVANCE, PROJECT, RATES, STRESS
from mpm_nodes.materials.law_loops import law_loops
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.materials.over_temperature import ERROR, TabledNumbers, at_places, every_row, tabled_law, without

COUNT, STRIDE, DT = 100, 128, 1e-3
SEGMENTS = np.array([(0, 21, 0), (21, 100, 1)], np.int64)


def followed(law_id: str, **tables: object) -> Material:
    """Return a material of a law with tables; rows of the solid, or (rows of the solid, rows of the liquid)."""
    made = {name: ParameterTable(*(rows if isinstance(rows, tuple) else (tuple(rows),))) for name, rows in tables.items()}
    return Material(law_id, {}, 1000.0, "toffee", tables=made)


SOFTENS = [(300.0, 1e5), (340.0, 2e4), (400.0, 5e4)]
TOFFEE = followed("neo_hookean", youngs_modulus=(tuple(SOFTENS), ((320.0, 5e3),)), viscosity=[(300.0, 0.0), (400.0, 30.0)])


class Heated:
    """Random states of a material at random temperatures and phases, as the solver lays them out."""

    def __init__(self, material: Material, dtype: type) -> None:
        random = np.random.default_rng(7)
        self.material, self.dtype, self.law = material, dtype, tabled_law(material)
        self.numbers = TabledNumbers(material, self.law)
        places = random.uniform(280.0, 420.0, 6)
        self.temperature, self.phase = random.choice(places, COUNT), random.integers(0, 2, COUNT)
        self.state = {n: v.astype(dtype) for n, v in random_states(material.law, COUNT, strain=0.05).items()}
        self.L = random_matrices(COUNT, 20.0).astype(dtype)
        self.given = {
            **{name: flat(value, STRIDE, dtype) for name, value in self.state.items()},
            "velocity_gradient": flat(self.L, STRIDE, dtype),
            "stress": np.zeros(6 * STRIDE, dtype),
            "temperature": flat(self.temperature, STRIDE, dtype),
            "phase": flat(self.phase, STRIDE, np.int32),
            "stiffness_scale": np.zeros(0, dtype),
            "coefficients": self.numbers.values,
            "stride": STRIDE,
            "segments": SEGMENTS,
            "dt": DT,
        }

    def expected(self) -> np.ndarray:
        """Return the Kirchhoff stress by the law's own source, each particle with the numbers of its temperature and phase."""
        found = np.zeros((COUNT, 3, 3))
        for temperature, phase in {*zip(self.temperature, self.phase, strict=True)}:
            mine = (self.temperature == temperature) & (self.phase == phase)
            plain = at_places(self.material, {"temperature": temperature}, phase)
            call = {"state": {n: v[mine] for n, v in self.state.items()}, "params": dict(plain.params), "density": 1000.0, "dt": DT}
            T = call_law(plain.law, "kirchhoff" if self.law.function("kirchhoff") else "stress", **call)
            if self.law.function("viscous_stress"):
                T = T + call_law(plain.law, "viscous_stress", L=self.L[mine], **call)
            if plain.viscosity:
                J = np.linalg.det(call["state"]["deformation"])
                T = T + J[:, None, None] * plain.viscosity * (self.L[mine] + self.L[mine].transpose(0, 2, 1))
            found[mine] = T
        return found[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("backend", [None, EIGHT], ids=["sixteen", "eight"])
def test_each_lane_has_the_stress_of_its_temperature_and_phase(dtype, backend):
    """Coefficients and the material's own viscosity, at the ends of runs and beyond the ends of tables too."""
    heated = Heated(TOFFEE, dtype)
    assert heated.law.follows == (Follows("temperature", (0, 1, 3), True),)
    fragments = tuple(fragment for fragment in STRESS if fragment.fits(heated.law))
    options = {} if backend is None else {"backend": backend}
    composed_loop(heated.law, fragments, {**ATTRIBUTES, **heated.law.fields}, **options)(heated.given)
    got = heated.given["stress"].reshape(6, STRIDE)[:, :COUNT].T
    expected = heated.expected()
    np.testing.assert_allclose(got, expected, rtol=0, atol=(1e-12 if dtype is np.float64 else 2e-6) * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    "material",
    [
        followed("liquid", viscosity=[(300.0, 100.0), (400.0, 0.0)], bulk_modulus=[(310.0, 1e5), (390.0, 1e4)]),
        followed("oldroyd_b", shear_modulus=[(300.0, 500.0), (400.0, 5.0)]),
        followed("fixed_corotated", youngs_modulus=SOFTENS, poisson_ratio=[(300.0, 0.2), (400.0, 0.4)]),
    ],
    ids=lambda material: material.law,
)
def test_laws_of_every_kind_follow(material):
    """A law's own viscosity, and coefficients that are not straight lines, within the error that is promised."""
    heated = Heated(material, np.float64)
    law_loops(heated.law, np.float64).stress(
        *[heated.given[name] for name in (*heated.law.state, *heated.law.inputs)],
        *[heated.given[name] for name in ("velocity_gradient", "stiffness_scale", "stress")],
        *(STRIDE, SEGMENTS, heated.numbers.values, DT),
    )
    got, expected = heated.given["stress"].reshape(6, STRIDE)[:, :COUNT].T, heated.expected()
    np.testing.assert_allclose(got, expected, rtol=0, atol=2 * ERROR * np.abs(expected).max())


def test_laws_without_tables_have_the_loops_that_they_had():
    """Not a word of a loop knows of temperatures where no parameter follows one: the possibility costs nothing."""
    for law_id in law_ids():
        found = law(law_id)
        table = {**ATTRIBUTES, **found.fields}
        for fragments in (STRESS, ADVANCE, PROJECT, (RATES,)):
            text = source_of(found, [f for f in fragments if f.fits(found)], table).text
            assert "temperature" not in text and "row_value" not in text and "phase" not in text
    words = source_of(tabled_law(TOFFEE), STRESS[:1], {**ATTRIBUTES, **law("neo_hookean").fields}).text
    assert "temperature" in words and "row_value" in words


def test_rows_are_added_where_coefficients_bend():
    """Lame's parameters of a modulus and a ratio that run straight lie within the bound everywhere, and on the spot at rows."""
    material = followed("fixed_corotated", youngs_modulus=SOFTENS, poisson_ratio=[(310.0, 0.2), (390.0, 0.45)])
    numbers = TabledNumbers(material, tabled_law(material))
    temperatures = np.linspace(290.0, 410.0, 997)
    true = np.array([law_of(at_places(material, {"temperature": T}))[1] for T in temperatures]).T
    got = numbers.at({"temperature": temperatures})[: len(true)]
    worst = np.abs(got / true - 1.0).max()
    assert 0.0 < worst <= ERROR
    at_rows = numbers.at({"temperature": np.array([300.0, 310.0, 340.0, 390.0, 400.0])})[:-1]
    for column, T in zip(at_rows.T, (300.0, 310.0, 340.0, 390.0, 400.0), strict=True):
        np.testing.assert_allclose(column, law_of(at_places(material, {"temperature": T}))[1], rtol=1e-14)
    only_modulus = followed("neo_hookean", youngs_modulus=SOFTENS)
    assert len(list(every_row(only_modulus))) == 3
    assert TabledNumbers(only_modulus, tabled_law(only_modulus)).values[4] == 2  # two straight pieces, none cut


def test_the_largest_value_over_a_range_is_found():
    """Ends and rows inside count, rows outside do not; what is without a number has none at any temperature."""
    numbers = TabledNumbers(TOFFEE, tabled_law(TOFFEE))
    assert numbers.largest(3, 310.0, 350.0) == pytest.approx(15.0)
    assert numbers.largest(3, 290.0, 500.0) == pytest.approx(30.0)
    assert numbers.values[3] == 30.0
    silent = without(numbers.values, numbers.law, 3)
    assert silent[3] == 0.0 and (numbers.values != silent).sum() > 2
    assert np.array_equal(without(silent, numbers.law, 3), silent)


def test_tables_travel_through_json():
    """Caches and checkpoints hold them."""
    found = Material.from_json(json.loads(json.dumps(TOFFEE.to_json())))
    assert found == TOFFEE and found.tables["youngs_modulus"].liquid == ((320.0, 5e3),)
    old = TOFFEE.to_json()
    del old["tables"]
    assert Material.from_json(old).tables == {}


def test_values_between_rows_are_straight():
    """And level beyond the first and the last."""
    rows = ((300.0, 2.0), (310.0, 4.0), (350.0, 0.0))
    assert [value_at(rows, T) for T in (0.0, 300.0, 305.0, 310.0, 330.0, 350.0, 1e4)] == [2.0, 2.0, 3.0, 4.0, 2.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "rows, words",
    [
        ((), "has no rows; give"),
        (((300.0, 1.0), (300.0, 2.0)), "row 2 at 300 K does not follow 300 K; write the rows in order"),
        (((300.0, 1.0), (290.0, 2.0)), "row 2 at 290 K does not follow 300 K"),
        (((-1.0, 1.0),), "row 1 stands at -1 K; give temperatures in kelvin"),
        (((300.0, float("nan")),), "row 1 is not finite"),
        (tuple((float(n), 1.0) for n in range(65)), "has 65 rows; give 64 at most"),
    ],
)
def test_rows_that_are_no_table_are_refused(rows, words):
    """With the row and what to do."""
    with pytest.raises(MpmNodesError, match=words):
        ParameterTable(rows)


@pytest.mark.parametrize(
    "material, words",
    [
        (
            followed("liquid", density=[(300.0, 1.0)]),
            "toffee: 'density' cannot follow the temperature; choose one of bulk_modulus, viscosity",
        ),
        (followed("snow", preserve_volume=[(300.0, 1.0)]), "'preserve_volume' cannot follow"),
        (
            followed("neo_hookean", youngs_modulus=[(300.0, 1.0), (350.0, -1.0)]),
            "toffee: at 350 K, .*youngs_modulus = -1 is out of range; give a value > 0",
        ),
        (
            followed("neo_hookean", youngs_modulus=(((300.0, 1.0),), ((310.0, -2.0),))),
            "at 310 K while liquid, .*youngs_modulus = -2",
        ),
        (followed("neo_hookean", viscosity=[(300.0, -1.0)]), "at 300 K, viscosity = -1 Pa s is out of range"),
        (
            dataclasses.replace(TOFFEE, thermal=Thermal(1.0, 1.0, 1.0, 1.0, melt=followed("liquid"))),
            "youngs_modulus has a table of the liquid, which is another material here",
        ),
    ],
)
def test_tables_that_a_law_does_not_allow_are_refused(material, words):
    """With the parameter, the temperature of the row, and what to do."""
    with pytest.raises(LawError, match=words):
        tabled_law(material)


def test_tables_that_are_too_steep_are_refused(monkeypatch):
    """A ratio that nearly reaches 1/2 within one row takes more rows than there are."""
    monkeypatch.setattr(over_temperature, "MOST", 16)
    material = followed("fixed_corotated", poisson_ratio=[(300.0, 0.0), (400.0, 0.498)])
    with pytest.raises(LawError, match=r"between 3\d\d.* and [34]\d\d.* K its tables are too steep .* give them more rows there"):
        TabledNumbers(material, tabled_law(material))
