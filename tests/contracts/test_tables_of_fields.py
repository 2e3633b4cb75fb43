"""Fields stand where they are used: the core's tables hold none that one phenomenon alone works on."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import mpm_nodes
from mpm_nodes.data import PARTICLES, Field, FrameContext, MpmNodesError, Particles, domain_named
from mpm_nodes.graph.declare.registry import default
from mpm_nodes.nodes.attributes import set_attribute, update_attribute
from mpm_nodes.physics import all_physics

PACKAGE = Path(mpm_nodes.__file__).parent
TABLES = "import json, mpm_nodes.data as d; print(json.dumps({each.name: [*each.fields] for each in d.all_domains()}))"


def phenomenon_of(parts: tuple[str, ...]) -> str:
    """Return whose a file or module of the package is, "" for the core's."""
    return parts[1] if parts[0] == "physics" and len(parts) > 2 else ""


@functools.cache
def users() -> dict[tuple[str, str], set[str]]:
    """Return who works on each field of each domain: its stages, and for particles also what names it in the code."""
    found = defaultdict(set)
    for stage in default().stages().values():
        who = phenomenon_of(tuple(stage.function.__module__.split(".")[1:]))
        for port in stage.domains:
            for name in (*port.reads, *port.writes):
                found[port.name, name].add(who)
    for path in PACKAGE.rglob("*.py"):
        file = path.relative_to(PACKAGE)
        if file != Path("data/fields.py"):
            for name in re.findall(r'"(\w+)"', path.read_text()):
                found["particles", name].add(phenomenon_of(file.parts))
    return found


def test_the_core_declares_what_several_use():
    """A field of its tables is used by core code, or by phenomena of which none could declare it for all others."""
    told = subprocess.run([sys.executable, "-c", TABLES], capture_output=True, text=True, timeout=60, check=True).stdout
    found, families = users(), [{each.name, *(n.name for n in all_physics() if each.name in n.needs)} for each in all_physics()]
    lonely = [
        f"{domain}.{name}"
        for domain, names in json.loads(told).items()
        for name in names
        if "" not in found[domain, name] and any(found[domain, name] <= family for family in families)
    ]
    assert not lonely


def test_phenomena_declare_what_they_use():
    """Each field that a phenomenon adds is used by it, by nothing of the core, and known to the domain."""
    found = users()
    for physics in all_physics():
        for domain, fields in physics.fields.items():
            for field in fields:
                assert domain_named(domain).fields[field.name] is field
                assert physics.name in found[domain, field.name]
                assert "" not in found[domain, field.name], f"{physics.name} declares {domain}.{field.name}, which the core uses"


def test_nodes_give_what_a_field_says(monkeypatch):
    """A phenomenon's field is given within its limits; without limits the solve finds it."""
    for field in (Field("rain", limits=(0.0, 1.0)), Field("hail", limits=(0.0, 1.0), initial=True), Field("fog")):
        monkeypatch.setitem(PARTICLES.fields, field.name, field)
    matter, now = Particles({"position": np.zeros((4, 3))}), FrameContext(1)
    for name in ("rain", "hail"):
        assert (set_attribute(matter, now, attribute=name, value=0.5)[name] == 0.5).all()
    assert update_attribute(attribute="rain").limits == (0.0, 1.0)
    with pytest.raises(MpmNodesError, match="rain lies from 0 to 1"):
        set_attribute(matter, now, attribute="rain", value=2.0)
    for change in (lambda: set_attribute(matter, now, attribute="fog"), lambda: update_attribute(attribute="hail")):
        with pytest.raises(MpmNodesError, match=r"(fog|hail) is what the solve finds; choose of .*rain"):
            change()


def test_a_field_means_one_thing():
    """One that is known otherwise is refused; the same again is not."""
    PARTICLES.add("rain", PARTICLES.fields["density"])
    with pytest.raises(MpmNodesError, match=r"rain: describes particles.density otherwise than it is known; rename it"):
        PARTICLES.add("rain", Field("density", unit="kg"))
