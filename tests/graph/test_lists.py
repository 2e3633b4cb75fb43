"""Commands that take names list them by topic; a name that is unknown leads to near ones, or to the list, in a short line."""

from __future__ import annotations

import pytest

from mpm_nodes import cli, verification
from mpm_nodes.bench import rows
from mpm_nodes.data.suggestions import MOST_LISTED, nearest
from mpm_nodes.graph.declare import registry
from mpm_nodes.materials.library import LIBRARY
from mpm_nodes.packaged_samples import samples_folder


def names_of(command: str) -> list[str]:
    """Return the names that a command takes."""
    if command == "sample":
        samples_folder()
        from mpm_nodes_samples.shots.index import SAMPLES

        return list(SAMPLES)
    found = {
        "verify": lambda: verification.problems(),
        "bench": lambda: (*rows.SCENES, *rows.LAWS, *rows.MATERIALS, *rows.KERNELS, *rows.TRANSFERS),
        "nodes": lambda: (*registry.nodes(), *registry.stages(), *registry.default().presets, *LIBRARY),
    }
    return list(found[command]())


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
@pytest.mark.parametrize(
    ("command", "option", "topic"),
    [
        ("verify", [], "heat boundaries"),
        ("sample", [], "melting"),
        ("nodes", [], "Solve"),
        ("bench", None, ""),
    ],
)
def test_names_are_listed_by_topic(capsys, command, option, topic):
    """All names are there, and a topic has some; a misspelt one is told its neighbour, another one the list, in a short line."""
    known = names_of(command)
    assert cli.main([command, "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted(known)
    assert any(line.endswith(":") and not line.startswith(" ") for line in lines)
    if option is None:  # menus of the parser, which names them all
        return
    assert cli.main([command, "--list", *option, topic]) == 0
    some = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert 0 < len(some) <= len(known) and f"{topic}:" in lines
    for given, said in ((f"{known[0]}q", known[0]), ("0zzz9", "lists all" if len(known) > MOST_LISTED else known[-1])):
        assert cli.main([command, *option, given]) in (2, 5)
        error = capsys.readouterr().err
        assert said in error and len(error) < 250, error
        assert len(known) <= MOST_LISTED or f"`mpm-nodes {command}" in error


def test_no_cure_cuts_a_list_without_a_word():
    """Few names are all there; of many it is said how many more there are, or where they are listed."""
    few, many = [f"name{n}" for n in range(MOST_LISTED)], [f"name{n:02d}" for n in range(40)]
    assert all(name in nearest("x", few) for name in few)
    assert nearest("x", many).endswith(f"name{MOST_LISTED - 1:02d} and {40 - MOST_LISTED} more")
    assert nearest("x", many, "mpm-nodes nodes") == "`mpm-nodes nodes` lists all 40"
    assert nearest("nmae07", many, "mpm-nodes nodes").startswith("did you mean name07")
    assert nearest("neo", ["snow", "neo_hookean"]).startswith("did you mean neo_hookean")  # its beginning counts first
