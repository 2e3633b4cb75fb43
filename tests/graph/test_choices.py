"""What nodes choose by measuring is kept in the revision, and followed by every cook of the same matter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

import pytest
from fake_nodes import Cloud, Solved, Solver, fake_source

from mpm_nodes.data import FrameContext, Previous
from mpm_nodes.graph.declare import node
from mpm_nodes.graph.document import Graph
from mpm_nodes.graph.executor import execute
from mpm_nodes.graph.registry import Registry

clock: Iterator[int] = count()
"""Never says the same twice."""


@node(category="Test", label="Choose")
def fake_choose(cloud: Cloud, previous: Previous[Solver], ctx: FrameContext, *, push: float = 0.25) -> Solved:
    """Choose by the clock, twice a frame.

    Args:
        cloud: Where it begins.
        push: Length of a step.
    """
    state = previous if previous is not None else Solver(cloud.points.copy(), 7)
    for _ in range(2):
        choice = None if ctx.choices is None else ctx.choices.recall(lambda kept: kept if type(kept) is int else None)
        choice = next(clock) if choice is None else choice
        if ctx.choices is not None:
            ctx.choices.note(choice)
        state.points += push * choice
    return Solved(Cloud(state.points.copy()), state)


REGISTRY = Registry(function.declaration for function in (fake_source, fake_choose))


def shot(end: int = 4, **knobs) -> Graph:
    """source -> choose."""
    graph = Graph(registry=REGISTRY, cell_size=0.5, start=1, end=end)
    graph.add("fake_choose", "sim", cloud=graph.add("fake_source", "source"), **knobs)
    return graph


def points(result) -> list[float]:
    """Return what the choices of a cook came to."""
    return result.outputs["sim"]["cloud"].points.tolist()


@pytest.fixture
def first(tmp_path):
    """Points of a cook of four frames."""
    return points(execute(shot(), out=tmp_path))


def test_cooks_into_one_folder_choose_alike(tmp_path, first):
    """A second cook, a third after the first is gone, and one of the last frames alone; without the folder the clock decides."""
    assert points(execute(shot(), out=tmp_path)) == first
    for path in (tmp_path / "r001").rglob("*"):
        if path.is_file():
            path.unlink()
    assert points(execute(shot(), out=tmp_path, frames=(3, 4))) == first
    assert points(execute(shot())) != first and points(execute(shot(push=0.5), out=tmp_path)) != [2.0 * x for x in first]


def test_frames_before_the_first_one_are_kept_too(tmp_path):
    """Where a cook begins late, what was chosen on the way there counts as well."""
    late = points(execute(shot(), out=tmp_path, frames=(4, 4)))
    assert points(execute(shot(), out=tmp_path)) == late


def test_a_resumed_cook_chooses_alike(tmp_path, first):
    """Frames that were cooked and lost come out as they were, and the manifest with them."""
    manifest = (tmp_path / "r001" / "cook.json").read_bytes()
    for name in ("0003.sim.state", "0004.sim.state"):
        (tmp_path / "r001" / "checkpoints" / name).write_bytes(b"lost")
    result = execute(shot(), out=tmp_path, resume=True)
    assert result.cooked and points(result) == first and (tmp_path / "r001" / "cook.json").read_bytes() == manifest


def damaged(path, change) -> None:
    """Change a manifest on disk."""
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize("table", [None, 3, [], "x", {"a": 3}], ids=repr)
def test_a_damaged_table_is_said_and_passed_over(tmp_path, first, table):
    """It costs the choices, not the cook."""
    damaged(tmp_path / "r001" / "cook.json", lambda manifest: manifest.update(choices=table))
    result = execute(shot(), out=tmp_path)
    assert points(result) != first and sum("its choices are damaged" in text for text in result.warnings) == 1


def test_a_damaged_choice_is_said_and_made_anew(tmp_path, first):
    """The others stay."""

    def change(manifest) -> None:
        next(iter(manifest["choices"].values()))[1] = "no number " * 99

    damaged(tmp_path / "r001" / "cook.json", change)
    result = execute(shot(), out=tmp_path)
    kept, again = (list(json.loads((tmp_path / name / "cook.json").read_text())["choices"].values()) for name in ("r001", "r002"))
    assert kept[1:] == again[1:] and kept[0][0] == again[0][0] and type(again[0][1]) is int
    assert [len(text) < 200 for text in result.warnings if "cannot be read or does not fit" in text] == [True]


def test_a_folder_whose_manifest_cannot_be_read_is_passed_over(tmp_path, first):
    """With a sentence; the one before it is followed."""
    execute(shot(), out=tmp_path)
    (tmp_path / "r002" / "cook.json").write_text("[" * 1000)
    result = execute(shot(), out=tmp_path)
    assert points(result) == first and any("are not followed" in text for text in result.warnings)
