"""The check of a law finds what is wrong with it, and nothing wrong with the built-in ones."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes import verification
from mpm_nodes.commands import verify
from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.declare import registry
from mpm_nodes.materials import contract, neo_hookean
from mpm_nodes.materials.contract import LawError, law, law_ids
from mpm_nodes.verification.law_calls import in_lanes
from mpm_nodes.verification.law_contract import LawContract, law_named

MINE = (
    Path(neo_hookean.__file__)
    .read_text()
    .replace(
        "from mpm_nodes.materials.parameters import NeoHookean as Params",
        """
from dataclasses import dataclass
from typing import ClassVar

from mpm_nodes.materials.parameters import NeoHookean


@dataclass(frozen=True)
class Params(NeoHookean):
    law: ClassVar[str] = "mine"
    __doc__ = NeoHookean.__doc__
""",
    )
)
"""A user's law: the neo-Hookean one under another name."""

FLOWS = (
    MINE.replace('STRAIN = "deformation"\n', "")
    .replace("import mat3\n", "import mat3, rotations\n")
    .replace("const, maximum, sqrt\n", "const, maximum, minimum, select, sqrt\n")
    + """

@inline
def project(state, coeffs, dt):
    U, s, V = rotations.svd(state[0])
    low, high = const(s[0], 0.95), const(s[0], 1.05)
    a = minimum(high, maximum(low, s[0])) - s[0]
    b = minimum(high, maximum(low, s[1])) - s[1]
    c = minimum(high, maximum(low, s[2])) - s[2]
    W = (U[0] * a, U[1] * b, U[2] * c, U[3] * a, U[4] * b, U[5] * c, U[6] * a, U[7] * b, U[8] * c)
    return (mat3.add(state[0], mat3.matmul_nt(W, V)),)


@inline
def yield_function(state, coeffs):
    U, s, V = rotations.svd(state[0])
    return maximum(s[0] - const(s[0], 1.05), const(s[0], 0.95) - s[2])
"""
)
"""The same law with a return map."""

PARAMS = [(name, {}) for name in law_ids()] + [("liquid", {"viscosity": 30.0}), ("oldroyd_b", {"exact_convection": True})]


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the law with some text replaced, and forget it afterwards."""
    monkeypatch.setattr(contract, "_LAWS", dict(contract._LAWS))

    def written(old="", new="", text=MINE):
        assert old in text
        path = tmp_path / "mine.py"
        path.write_text(text.replace(old, new) if old else text)
        return str(path)

    return written


@pytest.mark.parametrize(("name", "params"), PARAMS)
def test_built_in_laws_keep_the_contract(name, params):
    """Every check passes for every law, with all its terms on."""
    assert [record for record in LawContract(name, params, compiled=False).records() if not record.passed] == []


def test_a_users_law_is_checked_from_its_file(write):
    """The file registers the law; all checks pass, those of the compiled loops included."""
    seen = []
    records = verification.run_law(write(), progress=seen.append)
    assert seen == records and all(record.passed for record in records)
    for function in ("energy", "stress", "stress_differential", "advance", "feasible", "wave_speed", "kirchhoff", "left_strain"):
        assert any(record.name.startswith(f"mine {function}: in lanes against NumPy") for record in records), function


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("- mu * log(", "- const(J, 0.9) * mu * log(", "stress: T : dA against differences of energy"),
        ("dk = (lam * J_n * J_n + ", "dk = (lam * J_n * J_n - ", "stress_differential: against differences of stress"),
        ("k, mat3.cofactor_differential(G, dA))", "k, mat3.matmul(C, dA))", "stress_differential: Q : dT(R) - R : dT(Q)"),
        (
            "mat3.gram(state[0]), mu), lam * (J - const(J, 1.0)) * J - mu",
            "mat3.gram(state[0]), mu), lam * (J - const(J, 1.0)) - mu",
            "kirchhoff: T at A = 0, dt = 0",
        ),
        ("mat3.advance_deformation(state[0], A)", "mat3.add(state[0], A)", "advance: energy of its state"),
        ("> const(A[0], 0.0)", "> const(A[0], 0.999)", "feasible: steps of 1e-3"),
        (
            "lam * maximum(one, J * (J + J - one))) / density)",
            "lam * maximum(one, J)) / (density + density))",
            "wave_speed: too slow at rest",
        ),
        ("return mat3.left_strain(state[0])", "return mat3.det(state[0]), mat3.gram(state[0])", "left_strain: det b - 1"),
        ('STIFFNESS = ("mu", "lam")', 'STIFFNESS = ("mu",)', "STIFFNESS: twice the stress"),
        (
            "return (mat3.advance_deformation(state[0], A),)",
            "return (mat3.add_diagonal(state[0], A[0]),)",
            "left_strain: growth of J",
        ),
    ],
)
def test_what_is_wrong_is_named(write, old, new, finding):
    """One mistake a function: the check that fails says which function it is."""
    failed = [record.name for record in LawContract(law_named(write(old, new)), compiled=False).records() if not record.passed]
    assert any(name.startswith(f"mine {finding}") for name in failed), failed


MISTAKES = {
    "project that goes half way": (
        "W = (U[0] * a,",
        "a, b, c = a / 2, b / 2, c / 2\n    W = (U[0] * a,",
        "project: onto the yield surface",
    ),
    "project that goes on": ("- s[0]\n    b =", "- s[0] * const(s[0], 1.001)\n    b =", "project: twice is once"),
    "project that adds energy": (
        "low, high = const(s[0], 0.95), const(s[0], 1.05)",
        "low, high = const(s[0], 1.04), const(s[0], 1.05)",
        "project: energy that it adds in a step",
    ),
    "yield function of the wrong sign": (
        "return maximum(s[0] - const(s[0], 1.05), const(s[0], 0.95) - s[2])",
        "return -maximum(s[0] - const(s[0], 1.05), const(s[0], 0.95) - s[2])",
        "project: onto the yield surface",
    ),
    "no yield function": ("def yield_function(", "def yielding(", "project: names its yield function"),
    "wrong sign of the stress": (
        "mat3.matmul(G, b), mu), k, C)",
        "mat3.matmul(G, b), -mu), k, C)",
        "stress: T : dA against differences",
    ),
    "wrong differential": (
        "dk = (lam * J_n * J_n + ",
        "dk = (lam * J_n * J_n - ",
        "stress_differential: against differences of stress",
    ),
    "NaN": ("- mu * log(maximum(const(J, 1e-30), J))", "- mu * log(J - one)", "energy: states where it is not finite"),
    "feasible that forbids too much": ("> const(A[0], 0.0)", "> const(A[0], 0.999)", "feasible: steps of 1e-3"),
    "feasible that forbids too little": (
        "return mat3.det(mat3.add_diagonal(A, const(A[0], 1.0))) > const(A[0], 0.0)",
        "return mat3.det(mat3.add_diagonal(A, const(A[0], 1.0))) > const(A[0], -1e9)",
        "feasible: steps of 0.5 without a finite energy or stress",
    ),
}
"""Text, what replaces it, the check that names it."""


def test_the_law_with_a_return_map_keeps_the_contract(write):
    """What the mistakes are planted in has none."""
    name = law_named(write(text=FLOWS))
    assert [record for record in LawContract(name, compiled=False).records() if not record.passed] == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named_with_their_place_and_cure(write, mistake):
    """A record fails that names the function; its advice gives the state and what to do."""
    old, new, finding = MISTAKES[mistake]
    text = FLOWS
    if mistake == "feasible that forbids too little":  # an energy that is not guarded outside
        text = text.replace("log(maximum(const(J, 1e-30), J))", "log(J)")
    failed = [record for record in LawContract(law_named(write(old, new, text)), compiled=False).records() if not record.passed]
    named = [record for record in failed if record.name.startswith(f"mine {finding}")]
    assert named, [record.name for record in failed]
    assert mistake == "no yield function" or "worst at deformation = [[" in named[0].advice
    assert not any("defect" in f"{record.measured} {record.advice}" for record in failed)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "half * mu * (mat3.double_dot(F, F) - const(J, 3.0))",
            "0.5 * mu * (mat3.double_dot(F, F) - const(J, 3.0))",
            "law mine: energy does not compile in lanes: .*write literals as const",
        ),
        (
            "    J = d * J_n\n    k = lam",
            "    J = d * J_n\n    if J < 0: J = -J\n    k = lam",
            r"law mine: stress fails at mine.py:\d+: a branch on values; write select\(mask, a, b\) instead of if",
        ),
        (
            "    J = mat3.det(state[0])\n    return mat3.add_diagonal(",
            "    J = mat3.det(state[0])\n    if not hasattr(J, 'shape') and J > 0.5: J = J\n    return mat3.add_diagonal(",
            "law mine: kirchhoff does not compile in lanes",
        ),
        (
            "return mat3.add_scaled(mat3.scale(mat3.matmul(G, b), mu), k, C)",
            "return mat3.pack(mat3.add_scaled(mat3.scale(mat3.matmul(G, b), mu), k, C))",
            "law mine: stress returns a tuple of 6; return a tuple of nine, row-major",
        ),
        (
            "return (mat3.advance_deformation(state[0], A),)",
            "return mat3.advance_deformation(state[0], A)",
            r"law mine: advance returns a tuple of 9; return a tuple of 1: \(deformation,\)",
        ),
        (
            "> const(A[0], 0.0)",
            "- const(A[0], 0.0)",
            "law mine: feasible returns numbers; return a mask: a comparison",
        ),
        (
            "J = mat3.det(F)\n    one, half",
            "J = mat3.determinant(F)\n    one, half",
            r"law mine: energy fails at mine.py:\d+: AttributeError: ",
        ),
    ],
)
def test_what_does_not_run_is_told_in_one_sentence(write, old, new, sentence):
    """The last record says which function, where in the user's file, and what to write; nobody is asked to report it."""
    last = list(LawContract(law_named(write(old, new, FLOWS))).records())[-1]
    assert not last.passed and re.search(sentence, last.measured), last.measured
    assert "\n" not in last.measured and "report" not in last.measured


def test_a_nan_that_becomes_a_number_is_found(write):
    """A maximum with the bound behind it swallows NaN: the check in lanes says so."""
    bound = "mat3.row_sum_bound(mat3.gram(state[0]))"
    text = MINE.replace(f"maximum(one, {bound})", f"maximum({bound}, one)")
    name = law_named(write("maximum(one, J * (J + J - one))", "maximum(J * (J + J - one), one)", text))
    state, found = law(name).rest_state(64), law(name)
    state["deformation"] *= 1.1
    records = in_lanes(found, {}, state, np.zeros((64, 3, 3)), functions=("wave_speed",))
    assert [finding.passed for finding in records if "whose NaN becomes a number" in finding.what] == [False]


def test_a_law_without_a_function_is_refused(write):
    """The register says which, and how it is called."""
    with pytest.raises(LawError, match=r"has no function feasible; write def feasible\(state, A, coeffs, dt\)"):
        law_named(write("def feasible(", "def possible("))


def test_a_file_that_registers_itself_is_checked_once(write, monkeypatch):
    """A file on MPM_NODES_PATH has been loaded under a name of its own: `verify --law FILE` means that law."""
    text = MINE + "\n\nimport sys\n\nfrom mpm_nodes.materials.contract import register_law\n\nregister_law(sys.modules[__name__])\n"
    path = write(text=text)
    registry.load(str(Path(path).parent), builtin=False, entry_points=False)
    module = law("mine").module
    assert law_named(path) == "mine" and law("mine").module is module


def test_files_that_are_no_law_are_refused(tmp_path, write):
    """A missing file, one that raises, and a law that nobody knows."""
    with pytest.raises(MpmNodesError, match=r"verify: none.py is not a file; give the id of a law or a Python file"):
        law_named("none.py")
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    with pytest.raises(MpmNodesError, match=r"broken.py: ZeroDivisionError: division by zero; fix the file"):
        law_named(str(broken))
    with pytest.raises(MpmNodesError, match="law 'jelly_beans': unknown"):
        law_named("jelly_beans")


def test_the_command_checks_a_law(write, capsys, monkeypatch):
    """`mpm-nodes verify --law FILE` prints the table and fails when a check does."""
    import argparse

    parser = argparse.ArgumentParser()
    verify.add(parser)
    monkeypatch.setattr("mpm_nodes.verification.law_contract.in_lanes", lambda *given: iter(()))
    assert verify.run(parser.parse_args(["--law", write()])) == 0
    assert "mine stress: T : dA against differences of energy" in capsys.readouterr().out
    contract._LAWS.pop("mine")
    assert verify.run(parser.parse_args(["--law", write('STIFFNESS = ("mu", "lam")', 'STIFFNESS = ("mu",)')])) == 1
    assert "STIFFNESS must name every coefficient" in capsys.readouterr().out
