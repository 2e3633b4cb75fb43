"""Fields from pictures: pixels where they belong, channels, depths, sizes, and files that are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mpm_nodes.data import FrameContext, GraphSettings, InputError, SpatialField
from mpm_nodes.nodes.fields_of_pictures import MOST_PIXELS, Channel, field_image
from mpm_nodes.solver.field_programs import field_values

ACROSS, HEIGHT, PIXEL = 53, 37, 0.1


def thrown(**knobs) -> SpatialField:
    """Return what field_image gives at the first frame."""
    settings = GraphSettings()
    return field_image(FrameContext(settings.start, settings), settings, **knobs)


def painted(path: Path, parts: int = 3) -> np.ndarray:
    """Write random pixels; return them from 0 to 1, rows from the top."""
    pixels = np.random.default_rng(0).integers(0, 256, (HEIGHT, ACROSS, parts)).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels / 255.0


def centres() -> np.ndarray:
    """Return the middles of the pixels of an upright picture around the origin, shape (rows, columns, 3)."""
    row, column = np.meshgrid(np.arange(HEIGHT), np.arange(ACROSS), indexing="ij")
    x, y = (column + 0.5 - 0.5 * ACROSS) * PIXEL, (0.5 * HEIGHT - row - 0.5) * PIXEL
    return np.stack([x, y, np.full_like(x, 3.0)], axis=-1)  # any depth


def test_pixels_are_where_the_picture_shows_them(tmp_path):
    """Upright, its left at -x and its top at +y; moved and turned with its knobs; halfway between pixels their mean."""
    path = tmp_path / "a.png"
    colours = painted(path)
    found = thrown(path=path, channel=Channel.COLOUR, width=ACROSS * PIXEL)
    at = centres()
    np.testing.assert_allclose(field_values(found, at.reshape(-1, 3), 1.0).reshape(colours.shape), colours, atol=1e-6)
    between = 0.5 * (at[:, 1:] + at[:, :-1])
    expected = 0.5 * (colours[:, 1:] + colours[:, :-1])
    np.testing.assert_allclose(field_values(found, between.reshape(-1, 3), 1.0).reshape(expected.shape), expected, atol=1e-5)
    lying = thrown(path=path, channel=Channel.COLOUR, width=ACROSS * PIXEL, centre=(1.0, 2.0, 3.0), rotation=(-90.0, 0.0, 0.0))
    ground = np.stack([at[..., 0] + 1.0, at[..., 2], 3.0 - at[..., 1]], axis=-1)  # its top points to -z
    np.testing.assert_allclose(field_values(lying, ground.reshape(-1, 3), 1.0).reshape(colours.shape), colours, atol=1e-5)


@pytest.mark.parametrize(
    ("channel", "weights"), [("grey", (0.2126, 0.7152, 0.0722, 0)), ("green", (0, 1, 0, 0)), ("alpha", (0, 0, 0, 1))]
)
def test_a_channel_is_a_number(channel, weights, tmp_path):
    """As it is stored, 0 to 1; beside the picture the value outside."""
    path = tmp_path / "a.png"
    colours = painted(path, 4)
    found = thrown(path=path, channel=Channel(channel), width=ACROSS * PIXEL, outside=-2.0)
    assert not found.vector
    values = field_values(found, centres().reshape(-1, 3), 1.0).reshape(HEIGHT, ACROSS)
    np.testing.assert_allclose(values, colours @ np.array(weights), atol=1e-5)
    assert field_values(found, np.array([[9.0, 0.0, 0.0], [0.0, -9.0, 0.0]]), 1.0).tolist() == [-2.0, -2.0]


def test_deep_and_large_pictures(tmp_path):
    """16 bits count as a share of 65535; what is larger than is kept is averaged, and as wide as before."""
    ramp = np.linspace(0, 65535, 64).astype(np.uint16)
    Image.fromarray(np.tile(ramp, (16, 1))).save(tmp_path / "deep.png")
    deep = thrown(path=tmp_path / "deep.png", width=6.4)
    x = (np.arange(64) + 0.5) * 0.1 - 3.2
    places = np.stack([x, 0.0 * x, 0.0 * x], axis=1)
    np.testing.assert_allclose(field_values(deep, places, 1.0), ramp / 65535.0, atol=1e-5)
    wide = np.tile(np.linspace(0, 255, 4 * MOST_PIXELS).astype(np.uint8), (8, 1))
    Image.fromarray(wide).save(tmp_path / "wide.png")
    large = thrown(path=tmp_path / "wide.png", width=2.0)
    x = np.linspace(-0.9, 0.9, 99)
    places = np.stack([x, 0.0 * x, 0.0 * x], axis=1)
    np.testing.assert_allclose(field_values(large, places, 1.0), 0.5 + 0.5 * x, atol=1 / 255)  # eight bits, cut off
    assert large.grid.voxels.nbytes < 5e6


def test_what_is_no_picture_is_told(tmp_path):
    """A file that is not there, and one of text."""
    with pytest.raises(InputError, match="no such file"):
        thrown(path=tmp_path / "none.png")
    (tmp_path / "text.png").write_text("hello")
    with pytest.raises(InputError, match=r"text\.png: cannot be read as a picture .*export it again as PNG"):
        thrown(path=tmp_path / "text.png")
