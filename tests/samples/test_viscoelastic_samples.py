"""The packaged samples of R15: sizes, measures, and a small cook."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.packaged_samples import samples_folder
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES
from tests.reproduction import measures
from tests.reproduction.figures import FIGURES
from tests.reproduction.viscoelastic import (
    centreline,
    close_pairs,
    hole_along_x,
    nearest_strangers,
    parted,
    pieces,
    same_order,
    torn_apart,
    turns,
    winding,
)

NAMES = [name for name, sample in SAMPLES.items() if sample.source.startswith("R15") and sample.paper and sample.paper.sheet]
"""Those whose particles and frames R15 prints; test_melting_samples.py and test_beads.py have the others."""


def graph_of(name: str, size: str = "quick"):
    """Return a sample's graph in one of its sizes."""
    return sizes.graph_of(SAMPLES[name], size)


def lattice(counts: tuple[int, int, int], spacing: float) -> np.ndarray:
    """Return the points ((i + 1/2) spacing), shape (n, 3)."""
    return spacing * (np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5)


# ---------------------------------------------------------------- the graphs
@pytest.mark.parametrize("size", sizes.SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_both_sizes_can_be_planned_and_the_paper_s_has_its_particles(name: str, size: str):
    """Every size is a valid graph whose sheet's frames exist; the paper's holds its particles within 5 %, streams at their end."""
    sample, graph = SAMPLES[name], graph_of(name, size)
    estimates = preflight.estimate(Evaluator(graph).plan, graph.settings.start)
    solver = next(node for node, entry in graph.nodes.items() if entry.type == "solve")
    begin = sum(estimates[wire.partition(".")[0]]["particles"] for wire in graph.nodes[solver].inputs["sources"])
    streams = [entry for entry in graph.nodes.values() if entry.type == "emit_stream"]
    for stream in streams:  # what is there at the start is as long as the nozzle's filling
        knobs = graph.nodes[stream.inputs["template"][0]].knobs
        length = knobs["size"][1] if "size" in knobs else {"ribbon": 0.004, "strand": 0.012}[knobs["prim"]]
        pace = graph.nodes[solver].knobs.get("time_scale", 1.0)
        seconds = pace * (graph.settings.end - graph.settings.start) / graph.settings.fps
        begin *= 1.0 + np.linalg.norm(stream.knobs["velocity"]) * seconds / length
    sheet = sample.paper.sheet
    assert size == "quick" or all(graph.settings.start <= frame <= graph.settings.end for frame in sheet)
    if size == "paper":
        assert begin == pytest.approx(sample.paper.particles, rel=0.05) and len(sheet) == 3
    else:
        assert begin < 200_000


@pytest.mark.parametrize(("name", "grid"), [("foam_stream", "foam_nozzle"), ("toothpaste", "paste_nozzle"), ("viennetta", "slot")])
def test_nozzles_run_at_the_speed_of_their_streams(name: str, grid: str):
    """Their files hold it per second of the shot, to the half floats of the file; the streams have it per simulated second."""
    pytest.importorskip("pxr")
    from usd_io.volumes import read_volumes

    graph = graph_of(name)
    pace = next(entry.knobs.get("time_scale", 1.0) for entry in graph.nodes.values() if entry.type == "solve")
    (stream,) = (entry for entry in graph.nodes.values() if entry.type == "emit_stream")
    held = read_volumes(samples_folder() / "viscoelastic.vdb", [f"{grid}_velocity"])[f"{grid}_velocity"].level_set.values
    assert float(held[..., 1].min()) == pytest.approx(pace * stream.knobs["velocity"][1], rel=1e-3)


# ---------------------------------------------------------------- measures
def test_pieces_are_those_of_the_dense_grid_and_may_lie_far_apart():
    """Random matter falls into the same pieces as by flooding a dense grid; one particle a kilometre away is a piece more."""
    points = np.random.default_rng(0).random((200, 3)) * [20.0, 10.0, 8.0]
    dense, sparse = measures.pieces(points, 1.0), pieces(points, 1.0)
    assert len(set(zip(dense, sparse, strict=True))) == dense.max() + 1 == sparse.max() + 1 > 10
    assert np.bincount(sparse).tolist() == sorted(np.bincount(dense), reverse=True)
    far = np.concatenate([lattice((8, 8, 8), 0.5), [[1000.0, 0.0, -1000.0]]])
    assert np.bincount(pieces(far, 1.0)).tolist() == [512, 1]


def test_parted_asks_whether_matter_reaches_from_end_to_end():
    """A bar hangs together; with a gap of two cells in it, it does not."""
    bar = lattice((4, 40, 4), 0.5)
    for points, wanted in ((bar, False), (bar[(bar[:, 1] < 8.0) | (bar[:, 1] > 10.5)], True)):
        assert parted(points, 1.0, points[:, 1] < 1.0, points[:, 1] > 19.0) is wanted


def test_strangers_are_particles_that_began_far_apart():
    """Unmoved matter holds none within a cell; where its ends come within 0.3 of each other, that is the distance."""
    bar = lattice((4, 40, 4), 0.5)
    assert nearest_strangers(bar, bar, 5.0, 2.0) == np.inf
    folded = bar.copy()
    folded[bar[:, 1] > 19.0] += [0.3, -19.5, 0.0]
    assert nearest_strangers(folded, bar, 5.0, 2.0) == pytest.approx(0.2)


def test_torn_neighbours_are_pairs_of_a_lattice():
    """Of 3 n^2 (n - 1) pairs, n^2 are torn where one half moves away along x."""
    block = lattice((4, 4, 4), 0.5)
    moved = block + np.where(block[:, :1] > 1.0, [2.0, 0.0, 0.0], 0.0)
    pairs, torn = torn_apart(block, moved, 1.5)
    assert len(pairs) == 3 * 16 * 3 and torn.sum() == 16
    assert np.allclose(np.linalg.norm(block[pairs[:, 0]] - block[pairs[:, 1]], axis=1), 0.5, rtol=1e-12)
    assert len(close_pairs(block, 0.6)) == len(pairs)


def test_a_hole_is_where_nothing_lies_along_x():
    """A block without its middle column of four cells has a hole of that area, and a plate behind it closes it."""
    block = lattice((8, 16, 16), 0.5) - [2.0, 4.0, 4.0]
    bored = block[np.abs(block[:, 1:]).max(axis=1) > 1.0]
    assert hole_along_x(bored, 3.0, 3.0, 1.0) == 4.0 and hole_along_x(block, 3.0, 3.0, 1.0) == 0.0


def test_turns_and_windings_are_counted_on_a_curve():
    """A cosine of four periods turns seven times between its ends; ripple below the threshold does not count; a helix winds."""
    s = np.linspace(0.0, 4.0, 401)
    wave = np.cos(2.0 * np.pi * s) + 0.01 * np.cos(40.0 * np.pi * s)
    assert np.allclose(s[turns(wave, 0.1)], 0.5 * np.arange(1, 8), atol=0.03)
    helix = np.stack([np.cos(2.0 * np.pi * s), s, np.sin(2.0 * np.pi * s)], axis=1)
    assert winding(helix, 0.1) == pytest.approx(4.0, abs=0.1) and winding(s[:, None] * [1.0, -1.0, 0.2], 0.1) < 1e-6


# ---------------------------------------------------------------- cooks
def test_a_stream_leaves_its_mouth_at_its_speed(tmp_path):
    """Coarse and short: slices in emission order hang one below the other, those in the slot as far apart as they were filled."""
    from mpm_nodes.preview.pictures import find_root
    from mpm_nodes_samples.shots.shot import Shot

    graph = graph_of("viennetta")
    graph.set("settings.cell_size", 0.0016)
    result = execute(graph, frames=(1, 4), out=tmp_path)
    shot = Shot(find_root(result.revision_folder), tuple(result.frames), 0.0016)
    line = centreline(shot, 4, 4)
    assert len(line) >= 6 and (np.diff(line[:, 1]) > 0.0).all()
    inside = line[:, 1] > 0.0130
    assert inside.sum() >= 2 and np.allclose(np.diff(line[inside, 1]), 0.001, atol=2e-4)


def test_the_sponge_is_twisted_by_its_ends(tmp_path):
    """Coarse and short: what lies in the head has turned with it, what lies in the foot has not; every figure can be measured."""
    from mpm_nodes.preview.pictures import find_root
    from mpm_nodes_samples.shots.shot import Shot

    graph = graph_of("twisted_sponge")
    graph.set("settings.cell_size", 0.03)
    result = execute(graph, frames=(1, 3), out=tmp_path)
    shot = Shot(find_root(result.revision_folder), tuple(result.frames), 0.03)
    start, end = same_order(shot, 1), same_order(shot, 3)
    turn = np.arctan2(end[:, 2], end[:, 0]) - np.arctan2(start[:, 2], start[:, 0])
    turn = np.degrees((turn + np.pi) % (2.0 * np.pi) - np.pi)
    off_axis = np.hypot(start[:, 0], start[:, 2]) > 0.01
    assert np.abs(turn[off_axis & (start[:, 1] > 0.216)] + 67.5).max() < 0.1
    assert np.abs(turn[off_axis & (start[:, 1] < -0.216)]).max() < 0.1
    assert [figure.ok for figure in FIGURES["twisted_sponge"](shot)][:2] == [False, False]
