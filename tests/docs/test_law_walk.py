"""The law of the docs: the file of the page under 90 lines, checked as users check it, and what the foam must do."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest
from test_walks import run, written

from mpm_nodes.materials import contract
from mpm_nodes.materials.contract import law_in
from mpm_nodes.materials.material_point import call_law

PAGE = "a_law_in_90_lines.md"


@pytest.fixture(scope="module")
def foam(tmp_path_factory):
    """Load the page's law, and forget it afterwards."""
    before = dict(contract._LAWS)
    path = tmp_path_factory.mktemp("walk")
    written(PAGE, path)
    spec = importlib.util.spec_from_file_location("law_of_the_docs", path / "my_nodes/floral_foam.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield law_in(path / "my_nodes/floral_foam.py").id
    contract._LAWS.clear()
    contract._LAWS.update(before)


def test_the_walk(tmp_path):
    """The page's law has under 90 lines, its commands run, and every check of it passes."""
    files = written(PAGE, tmp_path)
    assert len(files["my_nodes/floral_foam.py"].splitlines()) < 90
    told = run(PAGE, tmp_path)
    assert "failed" not in told and "floral_foam project: onto the yield surface" in told and "dent.json: valid" in told


def test_pressed_foam_keeps_the_dent(foam):
    """Pressed to 0.7 of its volume it bears its strength; pulled back, the volume of the collapsed cells is gone."""
    given = {"params": {"strength": 2e3, "youngs_modulus": 2e5, "poisson_ratio": 0.1}, "dt": 1e-3}

    def moved(state, volume):
        A = (volume ** (1 / 3) - 1.0) * np.eye(3)[None]
        return call_law(foam, "project", call_law(foam, "advance", state, A, **given), **given)

    def pressure(state):
        return -np.trace(call_law(foam, "kirchhoff", state, **given)[0]) / 3

    pressed = moved(None, 0.7)
    assert pressure(pressed) == pytest.approx(2e3, rel=1e-9)
    assert call_law(foam, "volume_ratio", pressed) == pytest.approx(0.7, rel=1e-9)
    bulk = 2e5 / (3 * (1 - 2 * 0.1))
    assert pressure(moved(pressed, np.exp(2e3 / bulk))) == pytest.approx(0.0, abs=1e-6)
