"""The pails of the sand heap, and what is left when they are lifted, coarsely."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import directing_numbers as directing
import numpy as np
import pytest
from sample_numbers import SAMPLES
from test_samples import coarse

pytest.importorskip("pxr")


@pytest.fixture(scope="module")
def pails():
    """Return make_pails.py as a module."""
    spec = importlib.util.spec_from_file_location("make_pails", SAMPLES / "make_pails.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_meshes_are_those_of_the_script(pails, tmp_path: Path):
    """The same bytes; closed, facing outwards, and the sand as large as a cone's frustum."""
    pails.main(tmp_path / "pails.usda")
    assert (tmp_path / "pails.usda").read_bytes() == (SAMPLES / "pails.usda").read_bytes()
    for name, (points, faces) in pails.bodies().items():
        edges = [(face[k], face[(k + 1) % 4]) for face in faces for k in range(4)]
        assert len(set(edges)) == len(edges) and all((b, a) in set(edges) for a, b in edges), name
        corners = points[np.array(faces)]
        thirds = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
        volume = np.linalg.det(thirds).sum() / 6.0
        across, above = pails.MOUTH, pails.BOTTOM
        sand = np.pi * pails.HEIGHT / 3.0 * (across**2 + across * above + above**2)
        assert volume > 0.0 and (name != "sand" or volume == pytest.approx(sand, rel=5e-3))


@pytest.mark.slow
def test_dry_sand_heaps_and_wet_sand_stands(tmp_path: Path):
    """With cells of 2 cm."""
    cooked = coarse("sand_heap", 0.02, 54, tmp_path)
    dry, wet = (directing.sand_of(cooked, 54, which) for which in (0, 1))
    assert dry[:, 1].max() < 0.1 < 0.9 * wet[:, 1].max()
    assert np.hypot(dry[:, 0], dry[:, 2]).max() > 0.14 > np.hypot(wet[:, 0], wet[:, 2]).max()
