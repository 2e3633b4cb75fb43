"""The benchmark of explicit against implicit substeps runs, agrees with itself, and records what it prints."""

import json

import implicit_or_explicit
import pytest


def test_a_small_run_records_both_modes_and_every_preconditioner(tmp_path, capsys):
    """Both modes reach the same place in a fraction of a frame; blocks need fewer iterations than masses."""
    file = tmp_path / "figures.json"
    arguments = ["--particles", "512", "--stiffness", "1e4", "1e6", "--frames", "0.2", "--json", str(file)]
    assert implicit_or_explicit.main(arguments) == 0
    figures = json.loads(file.read_text())
    assert [row["youngs_modulus"] for row in figures["stiffness"]] == [1e4, 1e6]
    assert all(row["agree"] and row["explicit_substeps"] >= row["implicit_substeps"] > 0 for row in figures["stiffness"])
    assert [row["preconditioner"] for row in figures["preconditioners"]] == ["mass", "jacobi", "block_jacobi"]
    assert figures["preconditioners"][2]["krylov"] < figures["preconditioners"][0]["krylov"]
    assert "stiff block" in capsys.readouterr().out


def test_too_few_particles_are_refused(capsys):
    """A number out of range is refused with what is allowed."""
    with pytest.raises(SystemExit):
        implicit_or_explicit.main(["--particles", "3"])
    assert "give a number from 64" in capsys.readouterr().err
