"""Every verification problem holds: pytest runs the very classes that `mpm-nodes verify` runs."""

import inspect
import math
import re

import pytest

from mpm_nodes import verification
from mpm_nodes.commands.listing import listed
from mpm_nodes.commands.verify import show_record, topics_of
from mpm_nodes.data import MpmNodesError
from mpm_nodes.verification import Finding, Record, VerificationProblem, viscosity

PROBLEMS = verification.problems()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if problem.slow else []) for name, problem in PROBLEMS.items()],
)
def test_problem_holds(name):
    """Everything that the problem measures lies within its tolerance, but for what is known to miss it."""
    records = verification.run([name])
    assert records
    known = [record for record in records if record.known]
    assert not any(record.passed for record in known)  # a row that comes to hold leaves the list
    assert len(known) == len(PROBLEMS[name].misses)
    wrong = [
        f"{record.name}: expected {record.expected:g}, measured {record.measured}, tolerance {record.tolerance:g}"
        for record in records
        if not record.passed and record not in known
    ]
    assert not wrong, "; ".join(wrong)


def test_no_problem_hides_another():
    """A name that is taken is refused: the first of two pools was not run for as long as the second had its name."""
    with pytest.raises(TypeError, match=r"'hydrostatic_pool' is mpm_nodes.verification.liquids.HydrostaticPool; name it otherwise"):
        type("Again", (VerificationProblem,), {"name": "hydrostatic_pool"})


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_says_what_it_checks(name):
    """A problem names its scene, its exact answer, its tolerance and its source."""
    problem = PROBLEMS[name]
    assert re.fullmatch("[a-z_]+", name) and problem.source
    words = inspect.cleandoc(problem.__doc__)  # Python 3.13 does so itself
    places = [words.index(f"\n{word}: ") for word in ("Scene", "Exact", "Tolerance")]
    assert places == sorted(places) and problem.summary().endswith(".")


@pytest.mark.phenomena("heat", "projection")
def test_the_list_names_every_problem_once_by_topic():
    """`verify --list` has them all, and takes topics; a name that is unknown leads there, near names first."""
    topics = verification.topics()
    assert [each for problems in topics.values() for each in problems] == list(PROBLEMS.values())
    told = topics_of(topics)
    text = listed("verify", told)
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  ")] == list(PROBLEMS)
    assert re.search(r"  incompressible_layer +\(slow, known misses: 1\) Foam", text)
    some = listed("verify", told, ["transfers", "flux_half_space"]).splitlines()
    assert some[0] == "transfers:" and some[-2] == "heat boundaries:" and len(some) == len(topics["transfers"]) + 3
    with pytest.raises(MpmNodesError, match=r"'transfer' is not in the list; did you mean .*transfers"):
        listed("verify", told, ["transfer"])
    for name, said in (("flux_halfspace", "did you mean flux_half_space"), ("xyz", f"--list` lists all {len(PROBLEMS)}")):
        with pytest.raises(MpmNodesError, match=said) as caught:
            verification.run([name])
        assert len(str(caught.value)) < 250


def test_topics_keep_their_order_whatever_was_imported_before(monkeypatch):
    """A script that imports one of the later problems first gets the list in the same order."""
    found, there = list(verification.topics()), verification.registered()
    monkeypatch.setattr(verification, "registered", lambda: there[::-1])
    assert list(verification.topics()) == found


def test_names_choose_problems_and_progress_sees_their_records():
    """Only the named problem runs, and each record is announced."""
    seen = []
    records = verification.run(["seeded_mass"], progress=seen.append)
    assert seen == records and all(record.name.startswith("seeded_mass ") for record in records)


def test_fast_leaves_slow_problems_out():
    """A slow problem that is named does not run when only fast ones are asked for."""
    slow = next(name for name, problem in PROBLEMS.items() if problem.slow)
    assert verification.run([slow], fast=True) == []


def test_unknown_name_is_refused_with_near_ones():
    """A misspelt name says which ones are near."""
    with pytest.raises(MpmNodesError, match=r"no problem 'free_fal'; did you mean free_fall"):
        verification.run(["free_fal"])


@pytest.mark.parametrize("measured", [1.2, 0.8, math.nan, math.inf])
def test_finding_outside_its_tolerance_fails(measured):
    """What lies outside, or is not a number, does not pass."""
    assert not Finding(1.0, measured, 0.1).passed
    assert Finding(1.0, 1.1, 0.11).passed and Finding.relative(-2.0, -2.1, 0.06).passed


def test_what_is_used_of_a_tolerance_is_told(capsys):
    """A share of it; nothing where an exact answer is met, everything where it is not a number."""
    for expected, measured, tolerance, used in ((1.0, 1.09, 0.1, "90%"), (0.0, 0.0, 0.0, "0%"), (1.0, "nan", 0.1, "inf%")):
        show_record(Record("one", "none", expected, measured, tolerance, True, 0.0))
        assert f"one  {used} of the tolerance" in capsys.readouterr().err


def test_wrong_physics_fails(monkeypatch):
    """A liquid of twice the viscosity that the formula assumes does not pass: the checks can tell."""
    monkeypatch.setattr(viscosity, "NU", 0.5 * viscosity.NU)
    assert not any(record.passed for record in verification.run(["decaying_vortices"]))


def test_solver_error_is_a_failed_record():
    """A solve that blows up gives a record with the message, not a traceback."""

    class Broken(VerificationProblem):
        source = "none"

        def findings(self):
            yield Finding(1.0, 1.0, 0.0, "first")
            raise MpmNodesError("the solve diverged")

    broken = Broken()
    broken.name = "broken"
    first, second = broken.records()
    assert first.passed and not second.passed and second.measured == "the solve diverged"
    assert "broken" not in verification.problems()
