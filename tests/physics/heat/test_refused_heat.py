"""What heat and projection refuse before a cook begins, each with its cure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpm_nodes.cli import main


def shot(folder: Path, substeps: str, **changes: dict[str, Any]) -> Path:
    """Write a block of matter that melts, and what a test changes of its nodes; return the file."""
    nodes: dict[str, Any] = {
        "solid": {"type": "material_neo_hookean", "knobs": {"youngs_modulus": 2e4, "label": "wax"}},
        "matter": {"type": "material_thermal", "knobs": {}, "inputs": {"material": "solid"}},
        "block": {"type": "emit_box", "knobs": {"size": [0.3, 0.3, 0.3]}, "inputs": {"material": "matter"}},
        "warm": {"type": "set_temperature", "knobs": {}, "inputs": {"particles": "block"}},
        "sim": {"type": "solve", "knobs": {"substeps": {"preset": substeps}}, "inputs": {"sources": ["warm"]}},
        "cache": {"type": "write_cache", "inputs": {"particles": "sim.particles"}},
    }
    for name, change in changes.items():
        nodes[name] = {**nodes.get(name, {}), **change}
    file = folder / "shot.json"
    settings = {"cell_size": 0.1, "fps": 24, "start": 1, "end": 2}
    file.write_text(json.dumps({"format": "mpm_nodes.graph", "version": 1, "settings": settings, "nodes": nodes}))
    return file


@pytest.mark.parametrize(
    ("node", "change", "words"),
    [
        ("warm", {"knobs": {"freezing_variation": -5.0}}, ("warm.freezing_variation", "-5", ">= 0")),
        ("matter", {"knobs": {"freezing_temperature": -10.0}}, ("matter.freezing_temperature", "-10", ">= 0")),
        ("matter", {"knobs": {"latent_heat": -1.0}}, ("matter.latent_heat", "-1", ">= 0")),
        ("matter", {"knobs": {"conductivity": 0.0}}, ("matter.conductivity", "0", "> 0")),
    ],
    ids=["freezing range upside down", "freezes below 0 K", "negative latent heat", "conducts nothing"],
)
def test_thermal_knobs_out_of_range_are_refused_by_validate(tmp_path, capsys, node, change, words):
    """The message names the knob, what was given and what is allowed; nothing is written."""
    assert main(["validate", str(shot(tmp_path, "explicit_heat", **{node: change}))]) == 2
    said = "".join(capsys.readouterr())
    assert all(word in said for word in words), said


def test_a_table_upside_down_is_refused_by_validate(tmp_path, capsys):
    """Rows of a curve over the temperature come in order of temperature."""
    table = [[330.0, 60.0], [300.0, 250.0]]
    softens = {
        "type": "material_over_temperature",
        "knobs": {"parameter": "youngs_modulus", "table": table},
        "inputs": {"material": "solid"},
    }
    file = shot(tmp_path, "explicit_heat", softens=softens, matter={"inputs": {"material": "softens"}})
    assert main(["validate", str(file)]) == 2
    said = "".join(capsys.readouterr())
    assert "300 K does not follow 330 K" in said and "in order of temperature" in said, said


def test_a_table_of_a_liquid_that_has_a_law_of_its_own_is_refused_by_validate(tmp_path, capsys):
    """With a melt wired the solid's table of the liquid would never be read: its place is the melt."""
    curves = {"parameter": "youngs_modulus", "table": [[300.0, 6e4], [310.0, 5e4]], "liquid_table": [[300.0, 6e3], [310.0, 5e3]]}
    softens = {"type": "material_over_temperature", "knobs": curves, "inputs": {"material": "solid"}}
    matter = {"knobs": {"freezing_temperature": 320.0}, "inputs": {"material": "softens", "melt": "oil"}}
    oil = {"type": "material_liquid", "knobs": {}}
    assert main(["validate", str(shot(tmp_path, "explicit_heat", softens=softens, oil=oil, matter=matter))]) == 2
    said = "".join(capsys.readouterr()).strip().splitlines()[-1]
    assert "matter: " in said and "youngs_modulus has a table of the liquid" in said and "give that one a table instead" in said, (
        said
    )
    del matter["inputs"]["melt"]
    assert main(["validate", str(shot(tmp_path, "explicit_heat", softens=softens, matter=matter))]) == 0, capsys.readouterr()


@pytest.mark.parametrize(("modulus", "told"), [(0.0, "infinity"), (1e6, "1e+06 Pa")])
@pytest.mark.parametrize("substeps", ["explicit_apic", "auto", "implicit_apic", "auto_incompressible"])
def test_a_modulus_for_projections_is_refused_before_the_cook(tmp_path, capsys, substeps, modulus, told):
    """lam = infinity where nothing projects would be ignored without a word: validate says so, and the cook does not begin."""
    stiff = {"type": "material_bulk_modulus", "knobs": {"bulk_modulus": modulus}, "inputs": {"material": "solid"}}
    file = shot(tmp_path, substeps, stiff=stiff, block={"inputs": {"material": "stiff"}})
    out = tmp_path / "out"
    for command in (["validate", str(file)], ["cook", str(file), "--out", str(out)]):
        assert main(command) == 2
        said = "".join(capsys.readouterr())
        assert "wax" in said and told in said and "preset incompressible or melting" in said, said
        assert ("not all of the substeps" in said) == (substeps == "auto_incompressible"), said
    assert not list(out.rglob("*.usd*"))


def test_the_projection_takes_it(tmp_path, capsys):
    """The same matter is valid where something projects."""
    stiff = {"type": "material_bulk_modulus", "knobs": {"bulk_modulus": 0.0}, "inputs": {"material": "solid"}}
    file = shot(tmp_path, "incompressible", stiff=stiff, block={"inputs": {"material": "stiff"}})
    assert main(["validate", str(file)]) == 0, capsys.readouterr()


def test_a_heat_source_where_nothing_carries_heat_is_refused_before_the_cook(tmp_path, capsys):
    """Heat that no stage reads would be ignored without a word; a source of 0 is none, and presets with heat take it."""
    heated = {"type": "set_attribute", "knobs": {"attribute": "heat_source", "value": 1e6}, "inputs": {"particles": "block"}}
    file = shot(tmp_path, "explicit_apic", warm=heated)
    out = tmp_path / "out"
    for command in (["validate", str(file)], ["cook", str(file), "--out", str(out)]):
        assert main(command) == 2
        said = "".join(capsys.readouterr())
        assert "heat_source" in said and "take the preset explicit_heat" in said, said
    assert not list(out.rglob("*.usd*"))
    stream = {"type": "emit_stream", "knobs": {"velocity": [0.0, -1.0, 0.0]}, "inputs": {"template": "warm"}}
    streamed = {"knobs": {"substeps": {"preset": "explicit_apic"}}, "inputs": {"emitters": ["flow"]}}
    assert main(["validate", str(shot(tmp_path, "explicit_apic", warm=heated, flow=stream, sim=streamed))]) == 2
    assert "heat_source" in "".join(capsys.readouterr())
    none = {"attribute": "heat_source", "value": 0.0}
    assert main(["validate", str(shot(tmp_path, "explicit_apic", warm={**heated, "knobs": none}))]) == 0
    assert main(["validate", str(shot(tmp_path, "explicit_heat", warm=heated))]) == 0
