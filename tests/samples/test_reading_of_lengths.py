"""R15 prints neither units nor gravity: library, samples, hosts and docs read its tables in one way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpm_nodes.graph.time import keys
from mpm_nodes.materials.library import LIBRARY, R15_GRAVITY, R15_LENGTHS, R15_STRESS
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES

ROOT = Path(__file__).parents[2]
NAMES = {name for name, material in LIBRARY.items() if material.source.startswith("R15")}
TABLE = {
    "sponge_twist": (2.0, 3.6e2, 1.4e3, 0.0),
    "sponge_shoot": (1.0, 3.6e2, 1.4e3, 0.0),
    "shaving_foam_stream": (0.2, 5.0, 50.0, 1e-4),
    "toothpaste": (1.0, 0.839, 8.39, 1e-1),
    "viennetta": (1.0, 1.0, 10.0, 5e-5),
    "pie_cream": (0.2, 5.0, 50.0, 1e-7),
    "pie_crust": (0.5, 5e5, 4e6, 1e-8),
    "pie_crust_scored": (0.5, 5.0, 10.0, 1e-5),
}
"""R15 Table 1 as it is printed: density, mu, lambda, viscosity."""


def graphs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every graph of the project with matter of R15, and where it stands: files, and blocks of pages."""
    for folder in ("samples", "docs", "mpm_nodes/hosts"):
        for path in sorted((ROOT / folder).rglob("*.json")):
            content = json.loads(path.read_text())
            if isinstance(content, dict):  # tables of figures are lists
                yield str(path.relative_to(ROOT)), content
    for page in sorted((ROOT / "docs").glob("*.md")):
        for number, block in enumerate(re.findall(r"^```json\n(.*?)^```", page.read_text(), re.M | re.S)):
            with_nodes = block.lstrip().startswith("{") and '"nodes"' in block
            if with_nodes and block.rstrip().endswith("}"):
                yield f"{page.name} {number}", json.loads(block)


def solves_of_r15(nodes: dict[str, Any]) -> Iterator[Any]:
    """Yield the gravity of each solve of a graph that takes a material of R15 from the library."""
    if any(each.get("type") == "material_library" and each.get("knobs", {}).get("name") in NAMES for each in nodes.values()):
        for each in nodes.values():
            if each.get("type") == "solve":
                yield each.get("knobs", {}).get("gravity", "the default")


def test_the_units_of_stress_and_of_gravity_follow_from_that_of_length():
    """Grams a cubic centimetre, decimetres and seconds: 10 Pa, and 9.81 dm/s^2; the library is the table in them."""
    assert (R15_LENGTHS, R15_STRESS, R15_GRAVITY) == (10.0, pytest.approx(1000.0 * 0.1**2), pytest.approx(9.81 * 0.1))
    assert set(TABLE) == NAMES
    for name, (density, mu, lam, viscosity) in TABLE.items():
        material = LIBRARY[name]
        told = (material.params["shear_modulus"], material.params["lame_parameter"], material.viscosity)
        assert told == pytest.approx([10.0 * value for value in (mu, lam, viscosity)]) and material.density == 1000.0 * density
        assert f"gravity of {R15_GRAVITY:g} m/s^2" in material.source and f"stress {R15_STRESS:g} Pa" in material.source


def test_every_graph_with_matter_of_r15_has_its_gravity():
    """Samples in each size, examples, graphs of hosts and of pages: down, at 9.81 of the table's lengths."""
    found = [(place, gravity) for place, graph in graphs() for gravity in solves_of_r15(graph.get("nodes", {}))]
    for name, sample in SAMPLES.items():
        if sample.source.startswith("R15") and sample.paper:
            for size in sizes.SIZES:
                entries = sizes.graph_of(sample, size).nodes
                nodes = {node: {"type": entry.type, "knobs": dict(entry.knobs)} for node, entry in entries.items()}
                found += [(f"{name} {size}", gravity) for gravity in solves_of_r15(nodes)]
    assert len(found) >= 6 * (1 + len(sizes.SIZES)) + 1 and any(place.startswith("first_movies") for place, _ in found)
    for place, gravity in found:
        assert not keys.carries_keys(gravity) and tuple(gravity) == (0.0, -R15_GRAVITY, 0.0), (place, gravity)


def test_pages_tell_the_same_gravity_and_lengths():
    """What pages say of R15's units: grams, decimetres and seconds, and gravity; all of a movie's gravity is that of its paste."""
    theirs = rf"{R15_GRAVITY:g} m/s(?:\^2|²)"
    for page, decimetres in (("docs/viscoelastic.md", True), ("samples/viscoelastic.md", True), ("docs/first_movies.md", False)):
        text = (ROOT / page).read_text().replace("\n", " ")
        assert re.search(theirs, text), page
        assert not decimetres or re.search("grams, decimetres and seconds", text), page
    movie = (ROOT / "docs/first_movies.md").read_text().partition("\n## Toothpaste\n")[2].partition("\n## ")[0]
    movie += (ROOT / "docs/movies/paste.py").read_text()
    in_file = re.findall(r"gravity\W{1,6}0(?:\.0)?, (-[\d.]+), 0", movie)
    in_blender = re.findall(r"gravity\W{1,6}0(?:\.0)?, 0(?:\.0)?, (-[\d.]+)", movie)  # whose axes have Z up
    assert len(in_file) == 1 and len(in_blender) == 2
    assert {float(value) for value in in_file + in_blender} == {-R15_GRAVITY}
