"""Every law of the register keeps the contract, and a module that breaks it is told so in one sentence."""

from __future__ import annotations

import dataclasses
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from mpm_nodes.data import ATTRIBUTES, Material, MpmNodesError
from mpm_nodes.graph.declare.decorators import parse_docstring
from mpm_nodes.materials import contract
from mpm_nodes.materials.contract import LawError, law, law_ids, law_of, register_law
from mpm_nodes.materials.law_loops import law_loops
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.material_point import call_law
from mpm_nodes.materials.parameters import BUILT_IN
from mpm_nodes.nodes import materials as nodes

LINEAR = '''
"""A user's law: small-strain spring on the volume, nothing else."""
from dataclasses import dataclass
from typing import ClassVar

from mpm_nodes.data import A, Pascals, Range
from mpm_nodes.kernels.algebra import mat3
from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.arithmetic import const, sqrt

STATE = ("volume_change",)
COEFFICIENTS = ("bulk", "density")
STIFFNESS = ("bulk",)
VISCOSITY = None


@dataclass(frozen=True)
class Params:
    """A spring.

    Attributes:
        bulk: Bulk modulus [Pa].
    """

    law: ClassVar[str] = "test_spring"
    label: ClassVar[str] = "Spring"
    source: ClassVar[str] = "none"
    density: ClassVar[float] = 500.0
    bulk: A[float, Pascals, Range(min=0.0)] = 1e4


def coefficients(params, density):
    return params.bulk, density


@inline
def energy(state, A, coeffs, dt):
    e = state[0] + mat3.trace(A)
    return const(e, 0.5) * coeffs[0] * e * e


@inline
def stress(state, A, coeffs, dt):
    p = coeffs[0] * (state[0] + mat3.trace(A))
    return mat3.diagonal(p, p, p)


@inline
def stress_differential(state, A, dA, coeffs, dt):
    p = coeffs[0] * mat3.trace(dA)
    return mat3.diagonal(p, p, p)


@inline
def advance(state, A, coeffs, dt):
    return (state[0] + mat3.trace(A),)


@inline
def feasible(state, A, coeffs, dt):
    return mat3.trace(A) > const(A[0], -1.0)


@inline
def wave_speed(state, coeffs):
    return sqrt(coeffs[0] / coeffs[1])
'''


def module_of(source, folder, name):
    """Import a source text as a module of its own."""
    file = folder / f"{name}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def spring(tmp_path, monkeypatch):
    monkeypatch.setattr(contract, "_LAWS", dict(contract._LAWS))
    return module_of(LINEAR, tmp_path, "user_spring")


# ---------------------------------------------------------------- what every law keeps
@pytest.mark.parametrize("law_id", law_ids())
def test_declared_facts_are_complete(law_id):
    """Label, source, state, coefficients, help: all there, and the light table names the law's own module."""
    found = law(law_id)
    assert found.id == law_id and found.label and found.source
    assert set(found.state) <= set(ATTRIBUTES)
    assert found.module.Params is BUILT_IN[law_id]
    assert len(set(found.names)) == len(found.names) == len(found.coefficients())
    _, help_of = parse_docstring(found.params.__doc__)
    assert set(help_of) == {field.name for field in dataclasses.fields(found.params)}


@pytest.mark.parametrize("law_id", law_ids())
def test_each_knob_reaches_the_coefficients(law_id):
    """No knob is dead: changing it changes a coefficient."""
    found = law(law_id)
    for field in dataclasses.fields(found.params):
        value = (not field.default) if isinstance(field.default, bool) else field.default * 0.5 + 0.01
        assert (found.coefficients({field.name: value}) != found.coefficients()).any(), field.name
    assert (found.coefficients(density=1.5) != found.coefficients()).any()


@pytest.mark.parametrize("law_id", law_ids())
def test_generated_node_makes_the_material(law_id):
    """material_<law>: knobs are the parameters, density and label; what it returns is a material the law accepts."""
    node = getattr(nodes, f"material_{law_id}")
    found = law(law_id)
    fields = [field.name for field in dataclasses.fields(found.params)]
    assert [knob.name for knob in node.declaration.knobs] == [*fields, "density", "label"]
    material = node(density=123.0)
    assert material.label == found.label
    same, coefficients = law_of(material)
    assert same is found
    np.testing.assert_array_equal(coefficients, found.coefficients(density=123.0))
    assert all(knob.doc for knob in node.declaration.knobs)


def test_material_nodes_load_without_numba():
    """Listing nodes must stay fast: the module of material nodes imports no numba."""
    code = "import sys, mpm_nodes.nodes.materials; print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


@pytest.mark.parametrize("name", LIBRARY)
def test_library_entries_fit_their_laws(name):
    """Every named material has a source and parameters that its law accepts."""
    assert LIBRARY[name].source and LIBRARY[name].label
    found, coefficients = law_of(named_material(name))
    assert np.isfinite(coefficients).all() and found.id == LIBRARY[name].law
    assert nodes.material_library(name=nodes.LibraryMaterial(name)) == named_material(name)


R15_TABLE_1 = """
    sponge_twist         2    3.6e2  1.4e3  0     50
    sponge_shoot         1    3.6e2  1.4e3  0     50
    shaving_foam_stream  0.2  5      50     1e-4  0.5
    toothpaste           1    0.839  8.39   1e-1  0.4
    viennetta            1    1      10     5e-5  0.1
    pie_cream            0.2  5      50     1e-7  1e-4
    pie_crust            0.5  5e5    4e6    1e-8  1e30
    pie_crust_scored     0.5  5      10     1e-5  1
"""
"""rho, mu, lambda, mu^N and Wi as printed."""


def test_the_viscoelastic_materials_are_those_of_the_table():
    """Every row of R15 Table 1 in g/cm^3, dm and s: density in 1000 kg/m^3, stress in 10 Pa, viscosity in 10 Pa s."""
    rows = [line.split() for line in R15_TABLE_1.split("\n") if line.strip()]
    assert {row[0] for row in rows} == {name for name, entry in LIBRARY.items() if entry.source.startswith("R15")}
    for name, *printed in rows:
        density, mu, lam, viscosity, time = map(float, printed)
        params = {"shear_modulus": 10 * mu, "lame_parameter": 10 * lam, "relaxation_time": time}
        material = named_material(name)
        assert material.params == pytest.approx(params, rel=1e-15)
        assert (material.density, material.viscosity) == pytest.approx((1000 * density, 10 * viscosity), rel=1e-15)


# ---------------------------------------------------------------- what users can get wrong
@pytest.mark.parametrize(
    ("action", "sentence"),
    [
        (lambda: law("jelly_beans"), "law 'jelly_beans': unknown; known are drucker_prager, "),
        (
            lambda: law("snow").coefficients({"youngs_modulos": 1.0}),
            "law snow: unknown parameter youngs_modulos; it takes ",
        ),
        (
            lambda: law("snow").coefficients({"poisson_ratio": 0.5}),
            "poisson_ratio = 0.5 is out of range; give a value >= 0",
        ),
        (lambda: law("snow").coefficients({"hardening": float("nan")}), "hardening = nan is out of range"),
        (lambda: law("snow").coefficients(density=0.0), r"density = 0 kg/m\^3 is out of range; give a value > 0"),
        (
            lambda: law_of(Material("liquid", {"viscosity": -1.0}, 1e3, "syrup")),
            "material syrup: law liquid: viscosity = -1 ",
        ),
        (lambda: named_material("chese"), "material 'chese': not in the library; did you mean melted_cheese"),
        (lambda: call_law("liquid", "project"), "law liquid: has no project; it is optional"),
        (lambda: call_law("snow", "stres"), "law snow: there is no function 'stres'; choose one of energy, "),
        (lambda: call_law("snow", "stress", {"F": np.eye(3)}), "law snow: state has F; it takes deformation, "),
        (lambda: call_law("snow", "stress", A=np.zeros((2, 9))), r"law snow: A has shape \(2, 9\); give \('n', 3, 3\)"),
        (
            lambda: call_law("snow", "stress", {"deformation": np.zeros((2, 3, 3))}, np.zeros((4, 3, 3))),
            "law snow: arguments differ in length",
        ),
    ],
)
def test_wrong_use_is_refused_in_one_sentence(action, sentence):
    """Where, what was given, what is allowed."""
    with pytest.raises(MpmNodesError, match=sentence) as caught:
        action()
    assert "\n" not in str(caught.value)


def test_a_users_law_works_everywhere(spring):
    """A registered module is called by name, compiled in lanes (without the optional short form), and gets a node."""
    found = register_law(spring)
    assert found.id in law_ids() and register_law(spring) == found
    e = np.linspace(-0.1, 0.1, 20).astype(np.float32)
    expected = call_law("test_spring", "stress", {"volume_change": e}, dtype=np.float32)
    stride, tau = 48, np.zeros(6 * 48, np.float32)
    state = np.zeros(48, np.float32)
    state[:20] = e
    loops = law_loops("test_spring")
    loops.stress(
        state,
        np.zeros(9 * 48, np.float32),
        np.zeros(0, np.float32),
        tau,
        stride,
        np.array([[0, 20, 0]]),
        found.coefficients(),
        1e-3,
    )
    np.testing.assert_allclose(tau[:20], expected[:, 0, 0], rtol=1e-6)
    assert loops.project is None
    node = nodes.material_node(spring.Params)
    assert node.declaration.id == "material_test_spring" and not node.declaration.is_builtin
    assert node() == Material("test_spring", {"bulk": 1e4}, 500.0, "Spring")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("class Params", "class Settings", "has no Params; write a frozen dataclass"),
        ("@dataclass(frozen=True)", "@dataclass", r"Params can change; write @dataclass\(frozen=True\)"),
        ('    source: ClassVar[str] = "none"\n', "", "Params has no source; add the class variable source"),
        ('"test_spring"', '"Test Spring"', "Params.law is 'Test Spring'; use lower case"),
        ("ClassVar[float] = 500.0", "ClassVar[float] = -1.0", "Params.density is -1.0; give a value > 0"),
        ("        bulk: Bulk modulus [Pa].\n", "", "Params.bulk has no help; add the line 'bulk: ...'"),
        ("Range(min=0.0)] = 1e4", "Range(min=0.0)]", "Params.bulk has no default; give one"),
        ("VISCOSITY = None\n", "", "has no VISCOSITY; define it"),
        ('("volume_change",)', '("volume","flavour")', "STATE names 'flavour', which is not a field of particles"),
        ('("bulk", "density")', '("bulk", "rho")', "COEFFICIENTS has no 'density'; wave speeds need it"),
        ('STIFFNESS = ("bulk",)', 'STIFFNESS = ("mu",)', "names 'mu', which is not in COEFFICIENTS"),
        (
            "VISCOSITY = None",
            'VISCOSITY = "bulk"',
            r"has VISCOSITY but no viscous_stress; write def viscous_stress\(state, L, ",
        ),
        ("def feasible(", "def possible(", r"has no function feasible; write def feasible\(state, A, coeffs, dt\)"),
        (
            "def wave_speed(state, coeffs)",
            "def wave_speed(state, coeffs, dt)",
            r"wave_speed takes \(state, coeffs, dt\); write ",
        ),
        ("return params.bulk, density", "return (density,)", r"coefficients\(\) returns 1 numbers for 2 COEFFICIENTS"),
    ],
)
def test_a_broken_law_is_told_what_is_missing(spring, tmp_path, old, new, sentence):
    """The check at import names the module and the cure."""
    assert old in LINEAR
    with pytest.raises(LawError, match=f"law module broken_spring: .*{sentence}") as caught:
        register_law(module_of(LINEAR.replace(old, new), tmp_path, "broken_spring"))
    assert "\n" not in str(caught.value)


def test_two_laws_of_one_name_are_refused(spring, tmp_path):
    """The register says which modules collide."""
    register_law(spring)
    with pytest.raises(LawError, match="law test_spring: other_spring and user_spring both define it; rename one"):
        register_law(module_of(LINEAR, tmp_path, "other_spring"))
