"""Liquids are as stiff as their depth asks for: what is told before the cook, in it, and by the library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mpm_nodes
from mpm_nodes import Graph
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.weak_compressibility import LIBRARY_DEPTH, enough_bulk_modulus, substeps_of_waves

GRAVITY = 9.81


def block(**given) -> Graph:
    """Return a block of a liquid of the library, 8 x 10 x 8 cells."""
    settings = {"cell_size": 0.01, "start": 1, "end": 2} | given.pop("settings", {})
    graph = Graph(**settings)
    library = graph.add("material_library", "liquid", name=given.pop("name", "honey"), depth=given.pop("depth", 1.0))
    body = graph.add("emit_box", "body", material=library, size=(0.08, 0.1, 0.08))
    graph.add("solve", "sim", sources=[body], **given)
    return graph


def notes(graph: Graph) -> list[str]:
    """Return what validate notes."""
    return [text for _, text in preflight.warnings_of(preflight.estimate(plan_graph(graph), graph.settings.start), "notes")]


def test_the_library_is_made_for_its_depth():
    """Water is compressed by 1 % under 1 m; it, grains and stock pastes grow stiffer with the depth, and nothing else does."""
    assert enough_bulk_modulus(998.0, GRAVITY, LIBRARY_DEPTH) == pytest.approx(LIBRARY["water"].params["bulk_modulus"], rel=0.03)
    for name, entry in LIBRARY.items():
        shallow, usual = named_material(name, 0.1), named_material(name)
        expected = {key: 0.1 * value if key == entry.scale_with_depth else value for key, value in entry.params.items()}
        assert entry.scale_with_depth in ("", *entry.params) and (entry.scale_with_depth or entry.law != "liquid")
        assert usual.params == entry.params and shallow.params == pytest.approx(expected)


def test_enough_is_what_depth_speed_and_cells_ask_for():
    """1 % of compression, a tenth of the speed of sound, a quarter of a cell of sinking: whichever asks for most."""
    rho, depth = 1000.0, 0.5
    weight = rho * GRAVITY * depth
    assert enough_bulk_modulus(rho, GRAVITY, depth) == pytest.approx(weight / 0.01)
    assert enough_bulk_modulus(rho, GRAVITY, depth, 0.001) == pytest.approx(0.5 * weight * depth / 0.00025)
    assert enough_bulk_modulus(rho, GRAVITY, depth, 0.02, speed=10.0) == pytest.approx(rho * 100.0**2)


def test_quick_presets_follow_the_same_law():
    """A liquid f times as large, on cells as large, needs f times the modulus, as Blender's presets scale it."""
    addon = (Path(mpm_nodes.__file__).parent / "hosts" / "blender_addon" / "quick_presets.py").read_text()
    power = float(re.search(r'"Pa": ([\d.]+)', addon)[1])
    small, large = enough_bulk_modulus(1e3, GRAVITY, 0.1, 1e-3, 2.0), enough_bulk_modulus(1e3, GRAVITY, 0.9, 9e-3, 2.0 * 3.0)
    assert large == pytest.approx(9.0**power * small)


@pytest.mark.phenomena("projection")
def test_validate_tells_what_the_cook_tells():
    """Substeps, modulus and depth before the cook are those of the cook; the depth that is told is then enough."""
    graph = block(settings={"fps": 12.0})
    (before,) = notes(graph)
    count = substeps_of_waves(1e6, 1420.0, 0.01, 1.0 / 12.0, 0.5)
    assert float(re.search(r"about (\d+) substeps", before)[1]) == pytest.approx(count, abs=0.5) and '"incompressible"' in before
    told = []
    execute(graph, on_event=told.append)
    (cooked,) = [event["message"] for event in told if "would do" in str(event.get("message", ""))]
    assert re.search(r"its .* m;", cooked)[0] == re.search(r"its .* m;", before)[0]
    depth = float(re.search(r'depth of material_library "honey" to ([\d.]+) m', before)[1])
    assert not any("would do" in each for each in notes(block(settings={"fps": 12.0}, depth=depth)))


@pytest.mark.phenomena("projection")
@pytest.mark.parametrize(
    "given", [{"substeps": "incompressible"}, {"substeps": "auto_incompressible"}, {"name": "rubber"}, {"settings": {"fps": 48.0}}]
)
def test_nothing_is_noted_where_nothing_is_to_be_had(given):
    """Implicit substeps, presets that choose, solids and frames of few substeps."""
    assert notes(block(**{"settings": {"fps": 12.0}, **given})) == []
