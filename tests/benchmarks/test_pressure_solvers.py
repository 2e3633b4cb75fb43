"""The benchmark of pressure solvers runs, and its comparison is a fair one: all of them reach the tolerance."""

import pressure_solvers
import pytest


def test_a_small_run_solves_with_every_own_solver(capsys):
    """Multigrid takes fewest iterations, incomplete Cholesky fewer than the diagonal."""
    assert pressure_solvers.main(["--cells", "16", "--scenes", "pool"]) == 0
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if "16^3" in line]
    taken = {row[3].strip(): int(row[5]) for row in rows}
    assert 0 < taken["multigrid"] < taken["cholesky"] < taken["jacobi"]


def test_cells_are_multiples_of_four(capsys):
    """A number that does not fill blocks is refused with what is allowed."""
    with pytest.raises(SystemExit):
        pressure_solvers.main(["--cells", "10"])
    assert "give multiples of 4" in capsys.readouterr().err
