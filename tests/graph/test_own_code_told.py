"""What is said of nodes and stages of one's own: where they are looked for, and which line of which stage raised."""

from __future__ import annotations

import pytest

from mpm_nodes import cli
from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph

OWN = '''from mpm_nodes.data import A, Grid, Reads, Stage, Writes
from mpm_nodes.graph.declare import stage


@stage(label="Gusts")
def gusts(grid: A[Grid, Reads("mass", "force"), Writes("force")]) -> Stage["grid"]:
    """Blow."""
    return helped(0)


def helped(number):
    return 1 / number
'''


def graph(**knobs) -> Graph:
    made = Graph(registry=registry.default(), start=1, end=2, cell_size=0.1)
    stuff = made.add("material_neo_hookean", "stuff")
    body = made.add("emit_box", "body", size=(0.2, 0.2, 0.2), material=stuff)
    made.add("solve", "fall", sources=[body], **knobs)
    return made


def test_an_error_of_a_stage_names_stage_file_and_line(tmp_path, monkeypatch, capsys):
    """The innermost line of the user's own code, in the cook's one message."""
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "own.py").write_text(OWN)
    monkeypatch.setenv("MPM_NODES_PATH", str(tmp_path / "nodes"))
    edits = [{"insert": "blow", "after": "add_stress_forces", "type": "gusts"}]
    file = graph(substeps={"preset": "explicit_apic", "edits": edits}).save(tmp_path / "shot.json")
    assert cli.main(["cook", str(file), "--out", str(tmp_path / "out"), "--events", "none"]) == 1
    said = capsys.readouterr().err
    line = OWN.splitlines().index("    return 1 / number") + 1
    assert f"fall, frame 2: stage blow, own.py, line {line}: ZeroDivisionError: division by zero" in said
    assert "defect of the stage" in said


@pytest.mark.parametrize("folders", [None, "somewhere"])
def test_unknown_nodes_and_stages_name_the_path_variable(folders, tmp_path, monkeypatch, capsys):
    """In every place where a type is looked up, with what the variable says today."""
    if folders is None:
        monkeypatch.delenv("MPM_NODES_PATH", raising=False)
    else:
        (tmp_path / folders).mkdir()
        monkeypatch.setenv("MPM_NODES_PATH", str(tmp_path / folders))
    said = f"MPM_NODES_PATH ({tmp_path / folders if folders else 'not set'})"
    made = graph()
    text = made.save(tmp_path / "shot.json").read_text()
    (tmp_path / "node.json").write_text(text.replace('"emit_box"', '"my_box"'))
    edits = '{"preset": "explicit_apic", "edits": [{"insert": "wind", "after": "gather", "type": "my_wind"}]}'
    (tmp_path / "stage.json").write_text(text.replace('"substeps": "explicit_apic"', f'"substeps": {edits}'))
    for name in ("node", "stage"):
        assert cli.main(["validate", str(tmp_path / f"{name}.json")]) == 2
        told = capsys.readouterr()
        assert said in told.out + told.err, name
    for act in (lambda: registry.get("my_wind"), lambda: made.add("my_box", "b")):
        with pytest.raises(MpmNodesError) as caught:
            act()
        assert said in str(caught.value)
