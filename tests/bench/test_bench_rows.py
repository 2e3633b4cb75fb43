"""Which rows are measured."""

from __future__ import annotations

import argparse

import pytest

from mpm_nodes import cli
from mpm_nodes.bench import rows
from mpm_nodes.commands import bench


def chosen(*arguments: str, available: int = 2) -> list[rows.Row]:
    parser = argparse.ArgumentParser()
    bench.add(parser)
    return rows.chosen(parser.parse_args(arguments), available)


def test_lists_give_every_combination():
    """Two laws, two sizes and two numbers of threads are eight rows; what is not listed has one value."""
    found = chosen("--law", "snow", "liquid", "--particles", "500", "70_000", "--threads", "1", "2", "--no-fuse")
    assert len(found) == 8 and {(r.law, r.particles, r.threads) for r in found} == {
        (law, count, threads) for law in ("snow", "liquid") for count in (500, 70_000) for threads in (1, 2)
    }
    assert {(r.scene, r.kernel, r.transfer, r.fuse) for r in found} == {("cube", "quadratic", "apic", False)}


def test_scenes_bring_their_laws():
    """A dam is of liquid unless a law is given; two materials and the foam are always the same, and stand in the table once."""
    assert [r.law for r in chosen("--scene", "dam_break", "two_materials")] == ["liquid", "neo_hookean+snow"]
    assert [r.law for r in chosen("--scene", "dam_break", "--law", "snow")] == ["snow"]
    assert len(chosen("--scene", "two_materials", "--law", "snow", "liquid")) == 1
    foam = chosen("--scene", "foam", "--law", "snow", "--kernel", "quadratic", "cubic")
    assert [(r.law, r.kernel, r.transfer) for r in foam] == [rows.FOAM]


def test_all_has_every_case_of_the_issue_once():
    """Every law, kernel, size, scene and number of threads meets, and FLIP with the cubic kernel besides."""
    found = chosen("--all")
    assert len(found) == len(set(found)) == (4 + 1 + 1) * 2 * 4 * 2 + 4 * 2 + 4 * 2
    assert {r.particles for r in found} == {10_000, 100_000, 1_000_000, 4_000_000}
    assert any(r.transfer == "flip" and r.kernel == "cubic" for r in found)


def test_one_core_measures_one_thread():
    """Where there is one thread, every selection takes one, without double rows."""
    for selection in ((), ("--quick",), ("--all",), ("--law", "snow")):
        found = chosen(*selection, available=1)
        assert {r.threads for r in found} == {1} and len(found) == len(set(found))


def test_quick_is_small():
    """`--quick` keeps to ten thousand particles, also with lists."""
    assert {r.particles for r in [*chosen("--quick"), *chosen("--quick", "--law", "snow", "liquid")]} == {10_000}


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--particles", "0"], "'0' is not a whole number from 1 to 1,000,000,000"),
        (["--law", "jello"], "choose from 'neo_hookean'"),
        (["--threads", "100000"], "give at most"),
    ],
)
def test_wrong_arguments_are_refused_with_the_cure(arguments, said, capsys):
    """What cannot be measured is refused before anything is measured, with exit code 2."""
    assert cli.main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err
