"""The figures of surfaces, on meshes whose answer is known."""

import math

import numpy as np
import pytest
import surfaces

CUBE = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
CORNERS = np.array([[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
                    [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]])  # fmt: skip


def ring(sides: int = 12) -> np.ndarray:
    """Triangles of a torus of sides x sides quads."""
    i, j = np.meshgrid(np.arange(sides), np.arange(sides), indexing="ij")
    a, b, c, d = (((i + m) % sides * sides + (j + n) % sides).ravel() for m, n in ((0, 0), (1, 0), (1, 1), (0, 1)))
    return np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])


def test_pieces_and_holes():
    """A cube is one piece, two are two, a ring has a hole, and points that no triangle uses do not count."""
    assert surfaces.topology(CORNERS) == (1, 0)
    assert surfaces.topology(np.concatenate([CORNERS, CORNERS + 20])) == (2, 0)
    assert surfaces.topology(ring()) == (1, 1)


def test_winding_numbers_tell_inside():
    """Once around what is inside the cube, not at all around what is outside."""
    found = surfaces.winding_numbers(np.array([[0.5, 0.5, 0.5], [0.1, 0.9, 0.2], [1.5, 0.5, 0.5]]), CUBE, CORNERS)
    assert np.abs(found) == pytest.approx([1.0, 1.0, 0.0], abs=1e-9)


def test_hausdorff_of_a_ball_that_is_too_large():
    """A mesh a tenth larger than its ball is a tenth away from it, with what the corners of its triangles cut off."""
    shape = surfaces.ball()
    rows = np.linspace(0.0, math.pi, 61)[:, None], np.linspace(0.0, 2.0 * math.pi, 120, endpoint=False)[None, :]
    points = np.stack(
        np.broadcast_arrays(np.sin(rows[0]) * np.cos(rows[1]), np.sin(rows[0]) * np.sin(rows[1]), np.cos(rows[0])), -1
    )
    i, j = np.meshgrid(np.arange(60), np.arange(120), indexing="ij")
    a, b, c, d = ((i + m).ravel() * 120 + ((j + n) % 120).ravel() for m, n in ((0, 0), (1, 0), (1, 1), (0, 1)))
    corners = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    found = surfaces.hausdorff(shape, 1.1 * shape.half * points.reshape(-1, 3), corners)
    assert found == pytest.approx(0.1 * shape.half, rel=0.05)


def test_nothing_is_not_better_than_something():
    """A shape of which no mesh is left has too few pieces, and no figure of it counts as better."""
    none = {"seconds": 0.1, "hausdorff": math.inf, "pieces too many": -1, "holes": 0}
    some = {"seconds": 0.2, "hausdorff": 2.0, "pieces too many": 3, "holes": 1}
    ours, peer = surfaces.SCRIPTS
    assert all(line.endswith("worse") for line in surfaces.table({ours: {"sheet": none}, peer: {"sheet": some}})[1:])
