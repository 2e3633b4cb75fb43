"""Pictures of problems with exact answers: what they show of curves, of what holds and of what misses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest

from mpm_nodes import cli
from mpm_nodes.plots import check_pictures
from mpm_nodes.verification import Finding, VerificationProblem, problems


class Shown(VerificationProblem):
    """A problem with a curve, a number that holds, one that misses and one without a value."""

    source: ClassVar[str] = "none"

    def findings(self) -> Iterator[Finding]:
        """Say what was measured."""
        x = np.array([2.0, 0.0, 1.0])
        self.show("a case", ("time [s]", "way [m]"), (x, 2.0 * x), (x, 2.0 * x + 0.01), 0.05)
        yield Finding(1.0, 1.001, 0.01, "holds")
        yield Finding(1.0, 5.0, 0.01, "is far off")
        yield Finding(1.0, math.nan, 0.01, "has no value")
        yield Finding(0.0, 0.0, 0.0, "is exact")


def test_a_curve_is_kept_in_the_order_of_its_abscissas():
    """Whatever order its points were measured in."""
    problem = Shown()
    list(problem.findings())
    (curve,) = problem.curves
    assert curve.measured[0].tolist() == [0.0, 1.0, 2.0] and curve.exact[1].tolist() == [0.01, 2.01, 4.01]


def test_a_picture_tells_what_misses(tmp_path):
    """Each number with its exact answer and tolerance; what misses says so; the same bytes again."""
    pytest.importorskip("matplotlib")
    problem = Shown()
    problem.name = "shown"  # which is not registered
    records = list(problem.records())
    check_pictures.check_folder(tmp_path / "new")
    png, svg = check_pictures.draw_check(tmp_path / "new", problem, records)
    text = svg.read_text()
    for said in ("a case", "way [m]", "tolerance", "1.001, exact 1 ± 0.01", "5, exact 1 ± 0.01  MISSED", "has no value", "nan"):
        assert f"<!-- {said} -->" in text, said
    assert text.count(check_pictures.MISSED.lower()) >= 3 and png.read_bytes().startswith(b"\x89PNG")
    assert check_pictures.draw_check(tmp_path / "new", problem, records)[1].read_text() == text


FAST = ("oldroyd_start_up", "oldroyd_steady_shear")


@pytest.mark.parametrize("name", FAST)
def test_measured_curves_lie_on_exact_ones(name):
    """As their findings say, to 1 % here."""
    problem = problems()[name]()
    assert all(record.passed for record in problem.records()) and problem.curves
    for curve in problem.curves:
        expected = np.interp(curve.measured[0], *curve.exact)
        np.testing.assert_allclose(curve.measured[1], expected, atol=0.01 * curve.exact[1].max())


def test_verify_draws_into_a_folder(tmp_path, capsys):
    """A PNG and an SVG for each check; a law's checks have none."""
    pytest.importorskip("matplotlib")
    assert cli.main(["verify", *FAST, "--plots", str(tmp_path / "plots")]) == 0
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == sorted(f"{n}.{k}" for n in FAST for k in ("png", "svg"))
    assert cli.main(["verify", "--law", "neo_hookean", "--plots", str(tmp_path / "law")]) == 2
    (tmp_path / "file").write_text("")
    assert cli.main(["verify", *FAST, "--plots", str(tmp_path / "file")]) == 5
    assert "choose another folder" in capsys.readouterr().err
