"""The check of a law finds what is wrong with it, and nothing wrong with the built-in ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpm_nodes import verification
from mpm_nodes.commands import verify
from mpm_nodes.data import MpmNodesError
from mpm_nodes.materials import contract, neo_hookean
from mpm_nodes.materials.contract import law_ids
from mpm_nodes.verification.law_contract import LawContract, law_named

MINE = Path(neo_hookean.__file__).read_text().replace("from mpm_nodes.materials.parameters import NeoHookean as Params", '''
from dataclasses import dataclass
from typing import ClassVar

from mpm_nodes.materials.parameters import NeoHookean


@dataclass(frozen=True)
class Params(NeoHookean):
    law: ClassVar[str] = "mine"
    __doc__ = NeoHookean.__doc__
''')
"""A user's law: the neo-Hookean one under another name."""

PARAMS = [(name, {}) for name in law_ids()] + [("liquid", {"viscosity": 30.0}), ("oldroyd_b", {"exact_convection": True})]


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the law with some text replaced, and forget it afterwards."""
    monkeypatch.setattr(contract, "_LAWS", dict(contract._LAWS))

    def written(old="", new=""):
        assert old in MINE
        path = tmp_path / "mine.py"
        path.write_text(MINE.replace(old, new) if old else MINE)
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
    assert {"mine compiled stress, in rounding units", "mine compiled advance: deformation, in rounding units"} <= {
        record.name for record in records}


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("- mu * log(", "- const(J, 0.9) * mu * log(", "stress: T : dA against differences of energy"),
        ("dk = (lam * J_n * J_n + ", "dk = (lam * J_n * J_n - ", "stress_differential: against differences of stress"),
        ("k, mat3.cofactor_differential(G, dA))", "k, mat3.matmul(C, dA))", "stress_differential: Q : dT(R) - R : dT(Q)"),
        ("mat3.gram(state[0]), mu), lam * (J - const(J, 1.0)) * J - mu", "mat3.gram(state[0]), mu), lam * (J - const(J, 1.0)) - mu",
         "kirchhoff: T at A = 0, dt = 0"),
        ("mat3.advance_deformation(state[0], A)", "mat3.add(state[0], A)", "advance: energy of its state"),
        ("> const(A[0], 0.0)", "> const(A[0], 0.999)", "feasible: steps of 1e-3"),
        ("lam * maximum(one, J * (J + J - one))) / density)", "lam * maximum(one, J)) / (density + density))",
         "wave_speed: too slow at rest"),
        ("return mat3.left_strain(state[0])", "return mat3.det(state[0]), mat3.gram(state[0])", "left_strain: det b - 1"),
        ('STIFFNESS = ("mu", "lam")', 'STIFFNESS = ("mu",)', "STIFFNESS: twice the stress"),
        ("return (mat3.advance_deformation(state[0], A),)", "return (mat3.add_diagonal(state[0], A[0]),)",
         "left_strain: growth of J"),
    ],
)
def test_what_is_wrong_is_named(write, old, new, finding):
    """One mistake a function: the check that fails says which function it is."""
    failed = [record.name for record in LawContract(law_named(write(old, new)), compiled=False).records() if not record.passed]
    assert any(name.startswith(f"mine {finding}") for name in failed), failed


def test_a_law_that_does_not_compile_is_told_so(write):
    """A branch on a value works on numbers and not in lanes: the record says what happened and what to write."""
    name = law_named(write("    J = mat3.det(state[0])\n    return mat3.add_diagonal(", "    J = mat3.det(state[0])\n"
                           "    if not hasattr(J, 'shape') and J > 0.5: J = J\n    return mat3.add_diagonal("))
    last = list(LawContract(name).records())[-1]
    assert not last.passed and "law mine: does not compile in lanes" in last.measured


def test_files_that_are_no_law_are_refused(tmp_path, write):
    """A missing file, one that raises, and a law that nobody knows."""
    with pytest.raises(MpmNodesError, match=r"verify: none.py is no file; give the id of a law or a Python file"):
        law_named("none.py")
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    with pytest.raises(MpmNodesError, match=r"broken.py: ZeroDivisionError: division by zero; mend the file"):
        law_named(str(broken))
    with pytest.raises(MpmNodesError, match="law 'jelly_beans': unknown"):
        law_named("jelly_beans")


def test_the_command_checks_a_law(write, capsys, monkeypatch):
    """`mpm-nodes verify --law FILE` prints the table and fails when a check does."""
    import argparse

    parser = argparse.ArgumentParser()
    verify.add(parser)
    monkeypatch.setattr(LawContract, "_loops", lambda self: iter(()))
    assert verify.run(parser.parse_args(["--law", write()])) == 0
    assert "mine stress: T : dA against differences of energy" in capsys.readouterr().out
    contract._LAWS.pop("mine")
    assert verify.run(parser.parse_args(["--law", write('STIFFNESS = ("mu", "lam")', 'STIFFNESS = ("mu",)')])) == 1
