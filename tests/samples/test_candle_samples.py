"""The candles: their mesh, and measures on made-up caches."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from sample_numbers import SAMPLES as FOLDER

from mpm_nodes.data import Particles
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.shot import Shot
from tests.reproduction import candles
from tests.reproduction.figures import FIGURES


def lattice(counts: tuple[int, int, int], spacing: float) -> np.ndarray:
    """Return the points ((i + 1/2) spacing), shape (n, 3)."""
    return spacing * (np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5)


def figures(name: str, frames: dict[int, Particles], monkeypatch) -> dict:
    """Return the figures of a sample whose frames are given, by name; volumes are not looked at."""
    graph = sizes.graph_of(SAMPLES[name])
    shot = Shot(FOLDER, tuple(frames), graph.settings.cell_size, graph=graph, kept=frames)
    monkeypatch.setattr(candles, "balances", lambda shot: [])
    monkeypatch.setattr(candles, "enthalpy", lambda particles: 0.0)
    monkeypatch.setattr(Shot, "matter_volume", lambda shot, frame: 1.0)
    return {each.name: each for each in FIGURES[name](shot)}


def frame(x: np.ndarray, liquid: np.ndarray, material: np.ndarray | None = None) -> Particles:
    """Return one frame of wax, ten kelvin above the air where it is liquid and as cold as the air elsewhere."""
    kind = np.zeros(len(x), np.int32) if material is None else material
    warm = np.where(liquid, 308.0, 298.0)
    return Particles(
        {"position": x, "phase": liquid.astype(np.int32), "material": kind, "temperature": warm, "id": np.arange(len(x))}, (), 0.02
    )


def test_the_candles_are_what_their_script_makes(tmp_path):
    """The meshes in the repository have the bytes of make_candles.py, and their normals point outwards."""
    spec = importlib.util.spec_from_file_location("make_candles", FOLDER / "make_candles.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path / "made.usda")
    assert (tmp_path / "made.usda").read_bytes() == (FOLDER / "candles.usda").read_bytes()
    points, faces = script.stroke(0.0, 0.0, 0.3, 0.1)
    fans = [(points[f[0]], points[f[n]], points[f[n + 1]]) for f in faces for n in range(1, len(f) - 1)]
    volume = sum(float(a @ np.cross(b, c)) for a, b, c in fans) / 6.0
    assert volume == pytest.approx((np.hypot(0.3, 0.1) + script.WIDTH) * script.WIDTH * script.DEPTH)


@pytest.mark.parametrize("order", [(2.0, 1.6, 1.3, 1.0), (1.0, 1.3, 1.6, 2.0)])
def test_what_spreads_less_with_more_tension_is_seen(order: tuple[float, ...], monkeypatch):
    """Columns that widen in the right order hold those targets, in the wrong order none of them."""
    column = lattice((6, 18, 6), 0.025) - [0.075, 0.0, 0.075]
    wicks = candles.PITCH * (np.arange(4) - 1.5)
    kind = np.repeat(np.arange(4, dtype=np.int32), len(column))
    begin = np.concatenate([column + [x, 0.0, 0.0] for x in wicks])
    end = np.concatenate([column * [wide, 1.0, wide] + [x, 0.0, 0.0] for x, wide in zip(wicks, order, strict=True)])
    none = np.zeros(len(begin), bool)
    top = begin[:, 1] > 0.35
    found = figures("candles", {1: frame(begin, none, kind), 14: frame(begin, top, kind), 31: frame(end, top, kind)}, monkeypatch)
    pairs = [each for name, each in found.items() if name.startswith(("the same, over", "k = 0.05 over"))]
    assert len(pairs) == 4 and {each.ok for each in pairs} == {order[0] > order[3]}
    assert found["molten two cells under the flames as they go out, least of four [%]"].ok
    assert found["solid of the lowest 0.1 m of the candles then, least of four [%]"].ok


@pytest.mark.parametrize("freezes", [True, False])
def test_wax_that_runs_and_freezes_again_is_seen(freezes: bool, monkeypatch):
    """A tenth of the first candle lies outside of it: frozen again it counts, liquid or never molten it does not."""
    column = lattice((6, 20, 6), 0.025) - [0.075, 0.0, 0.075]
    wicks = candles.PITCH * (np.arange(4) - 1.5)
    kind = np.repeat(np.arange(4, dtype=np.int32), len(column))
    begin = np.concatenate([column + [x, 0.0, 0.0] for x in wicks])
    runs = (kind == 0) & (begin[:, 1] > 0.45)
    end = np.where(runs[:, None], begin * [1.0, 0.1, 1.0] + [0.35, 0.0, 0.0], begin)
    none = np.zeros(len(begin), bool)
    for middle, last, ok in ((runs, none if freezes else runs, freezes), (none, none, False)):
        found = figures(
            "candles", {1: frame(begin, none, kind), 2: frame(begin, middle, kind), 31: frame(end, last, kind)}, monkeypatch
        )
        assert found["more than a cell outside of its candle with k = 0.05 [%]"].measured == pytest.approx(10.0)
        assert found["of that frozen again [%]"].ok is ok


@pytest.mark.parametrize("merged", [True, False])
def test_pools_that_become_one_are_seen(merged: bool, monkeypatch):
    """Three blocks that melt, flow into one or stay apart, and freeze."""
    block = lattice((16, 8, 24), 0.0125) - [0.1, 0.0, 0.15]
    begin = np.concatenate([block + [x, 0.0, 0.0] for x in (-0.33, 0.0, 0.33)])
    end = begin * [1.0, 0.5, 1.0] + [0.0, 0.0, 0.0]
    if merged:
        end[:, 0] = np.concatenate([1.7 * block[:, 0] + x for x in (-0.33, 0.0, 0.33)])
    none, every = np.zeros(len(begin), bool), np.ones(len(begin), bool)
    last = sizes.graph_of(SAMPLES["candle_letters"]).settings.end
    found = figures("candle_letters", {1: frame(begin, none), 2: frame(end, every), last: frame(end, none)}, monkeypatch)
    assert found["pieces of more than 2 % at the start"].ok and found["solid at the end [%]"].ok
    assert found["pools of more than 2 % of the molten wax then"].ok is merged
    assert found["of a letter's molten wax in the largest pool, least of three [%]"].ok is merged
    assert found["floor under the wax at the end, over that at the start"].ok is merged
    still = figures("candle_letters", {1: frame(begin, none), 2: frame(end, every), last: frame(end, every)}, monkeypatch)
    assert not still["solid at the end [%]"].ok and not still["hottest particle at the end [K]"].ok
