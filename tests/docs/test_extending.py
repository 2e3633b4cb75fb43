"""Every piece of code on the page about extensions declares what it says."""

import re
from pathlib import Path

import pytest

from mpm_nodes.data import domain_named, domains
from mpm_nodes.graph.declare import registry as registries

TEXT = (Path(__file__).resolve().parents[2] / "docs/extending.md").read_text()


def test_the_code_shown_declares_what_the_page_says(tmp_path, monkeypatch):
    """Dropped into a folder on MPM_NODES_PATH, the files bring a field, a domain, memory, facts and a limit."""
    monkeypatch.setattr(domains, "_DOMAINS", dict(domains._DOMAINS))
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", TEXT, re.S)):
        (tmp_path / f"mine_{number}.py").write_text(code)
    found = registries.load(path=str(tmp_path)).stages()
    assert [field.name for field in found["dry"].domain("particles").own] == ["wetness"]
    assert domain_named("probes").fields["height"].unit == "m" and found["probe"].outputs == ("particles", "probes")
    watch = found["watch"]
    assert watch.memory.__name__ == "Calls" and watch.facts[0].event == "seen"
    assert [(each.limit.name, each.knobs) for each in watch.limits] == [("watch", ("reach",))]
    with pytest.raises(KeyError):
        found["nothing"]
