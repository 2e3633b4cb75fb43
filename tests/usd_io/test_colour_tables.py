"""Colours of caches as tables, and caches of versions that knew none."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from cache_samples import MATERIAL, manifest
from pxr import Sdf, UsdGeom

import usd_io.points
from mpm_nodes.data import FrameContext, GraphSettings, Particles
from mpm_nodes.graph.revisions.revision import Revision
from mpm_nodes.nodes.caches import write_cache
from usd_io.check import check_cache
from usd_io.stage_reader import open_stage, read_points
from usd_io.tables import table_of

COUNT = 5000
HUES = np.array([[0.9, 0.2, 0.1], [0.1, 0.5, 0.9], [-0.0, 0.0, 1.0]], np.float32)


def coloured(frame: int, hues: np.ndarray = HUES) -> Particles:
    """Return particles that fall, each with one of some colours that changes with the frame."""
    rng = np.random.default_rng(1)
    count = COUNT + 10 * frame
    columns = {
        "position": rng.uniform(-0.5, 0.5, (count, 3)) - [0.0, 0.04 * frame, 0.0],
        "velocity": np.tile(np.array([0.0, -0.96, 0.0], np.float32), (count, 1)),
        "id": np.arange(count),
        "displayColor": hues[(np.arange(count) + frame) % len(hues)],
    }
    return Particles(columns, (MATERIAL,), 0.01, frame / 24.0)


def write(revision: Revision, frame: int, particles: Particles, **knobs) -> Path:
    """Write and commit a frame; return the stage."""
    ctx = FrameContext(frame, GraphSettings(), files=revision.begin(frame))
    written = write_cache(ctx, particles, attributes=("*",), **knobs)
    ctx.files.commit()
    return revision.folder / written.stage


@pytest.mark.parametrize(
    ("rows", "many"),
    [
        (HUES[np.arange(100) % 3], 3),
        (np.zeros((7, 3), np.float32), 1),
        (np.array([[0.0, 0, 0], [-0.0, 0, 0], [0.0, 0, 0], [0.0, 0, 0]], np.float32), 2),
        (np.random.default_rng(0).uniform(size=(50, 3)).astype(np.float32), 50),
        (np.zeros((0, 3), np.float32), 0),
        (HUES[0], None),
    ],
)
def test_tables_hold_the_bits_of_all_rows(rows, many):
    """Rows that are alike are stored once, zeros of either sign apart, and rows that all differ as they are."""
    rows = rows.reshape(-1, 3)
    table, indices = table_of(rows)
    assert np.array_equal(table[indices].view(np.uint32), rows.view(np.uint32)) and len(indices) == len(rows)
    assert many is None or len(table) == many


def test_colours_take_next_to_nothing(tmp_path):
    """Three colours of five thousand particles take less than half a byte a particle, of 12, and come back in every frame."""
    revision = Revision.create(tmp_path, manifest())
    for frame in (1, 2, 3):
        stage = write(revision, frame, coloured(frame))
        plain = Particles({k: v for k, v in coloured(frame).attributes.items() if k != "displayColor"}, (MATERIAL,), 0.01)
        write(Revision.create(tmp_path / f"plain{frame}", manifest()), 1, plain)
        with_colour = (revision.folder / f"cache/cache.{frame:04d}.usdc").stat().st_size
        without = (tmp_path / f"plain{frame}/r001/cache/cache.0001.usdc").stat().st_size
        assert with_colour - without < 0.5 * COUNT
    for frame in (1, 2, 3):
        assert np.array_equal(read_points(stage, frame)["displayColor"], coloured(frame)["displayColor"])
    assert check_cache(stage) == []


def test_caches_of_before_are_read_and_go_on(tmp_path, monkeypatch):
    """A cache that began without tables is continued without: every frame reads right, here and in USD's own primvars."""
    revision = Revision.create(tmp_path, manifest())
    with monkeypatch.context() as old:
        old.setattr(usd_io.points, "COLOURS", ())
        stage = write(revision, 1, coloured(1))
    assert np.array_equal(read_points(stage, 1)["displayColor"], coloured(1)["displayColor"])
    write(revision, 2, coloured(2))
    opened = open_stage(stage)
    primvar = UsdGeom.PrimvarsAPI(opened.GetPrimAtPath("/cache/particles")).GetPrimvar("displayColor")
    assert not primvar.IsIndexed()
    for frame in (1, 2):
        assert np.array_equal(np.array(primvar.Get(frame)), coloured(frame)["displayColor"])
        assert np.array_equal(read_points(stage, frame)["displayColor"], coloured(frame)["displayColor"])
    assert check_cache(stage) == []


def test_indices_out_of_range_are_told(tmp_path):
    """Readers crash on an index beyond the table, and on too few of them."""
    revision = Revision.create(tmp_path, manifest())
    stage = write(revision, 1, coloured(1))
    shutil.rmtree(revision.folder / "frames")  # else its bytes are told, and it is not opened
    layer = Sdf.Layer.FindOrOpen(str(revision.folder / "cache/cache.0001.usdc"))
    layer.SetTimeSample("/cache/particles.primvars:displayColor:indices", 1.0, [0, 3])
    layer.Save()
    problems = "\n".join(check_cache(stage))
    assert "primvars:displayColor has 2 indices for 5010 points" in problems
    assert "primvars:displayColor has indices from 0 to 3 for 3 values" in problems
