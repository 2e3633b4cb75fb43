"""The packaged samples of R15: sizes, measures, and a small cook."""

from __future__ import annotations

import importlib.resources

import numpy as np
import pytest

from mpm_nodes.commands.sample import sized
from mpm_nodes.graph import preflight
from mpm_nodes.graph.document import load_graph
from mpm_nodes.graph.evaluator import Evaluator
from mpm_nodes.graph.executor import execute
from mpm_nodes.samples.index import SAMPLES, SIZES
from mpm_nodes.samples.viscoelastic import nearest_strangers, parted, same_order

NAMES = [name for name, sample in SAMPLES.items() if sample.source.startswith("R15")]


def graph_of(name: str, size: str = "quick"):
    """Return a sample's graph in one of its sizes."""
    path = importlib.resources.files("mpm_nodes") / "samples" / f"{name}.json"
    return sized(load_graph(path), SAMPLES[name], size, ())


def lattice(counts: tuple[int, int, int], spacing: float) -> np.ndarray:
    """Return the points ((i + 1/2) spacing), shape (n, 3)."""
    return spacing * (np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5)


# ---------------------------------------------------------------- the graphs
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMES)
def test_both_sizes_can_be_planned_and_the_paper_s_has_its_particles(name: str, size: str):
    """Every size is a valid graph whose sheet's frames exist; what is there at the start is within 5 % of the paper's."""
    sample, graph = SAMPLES[name], graph_of(name, size)
    estimates = preflight.estimate(Evaluator(graph).plan, graph.settings.start)
    solver = next(node for node, entry in graph.nodes.items() if entry.type == "solve")
    begin = sum(estimates[wire.partition(".")[0]]["particles"] for wire in graph.nodes[solver].inputs["sources"])
    sheet = sample.sheet if size == "quick" else sample.paper.sheet
    assert all(graph.settings.start <= frame <= graph.settings.end for frame in sheet)
    if size == "paper":
        assert begin == pytest.approx(sample.paper.particles, rel=0.05) and len(sheet) == 3
    else:
        assert begin < 100_000


# ---------------------------------------------------------------- measures
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


# ---------------------------------------------------------------- a cook
def test_the_sponge_is_twisted_by_its_ends(tmp_path):
    """Coarse and short: the top has turned with the head, the foot has not; every figure can be measured."""
    from mpm_nodes.preview import find_root
    from mpm_nodes.samples.shot import Shot

    graph = graph_of("twisted_sponge")
    graph.set("settings.cell_size", 0.03)
    result = execute(graph, frames=(1, 3), out=tmp_path)
    shot = Shot(find_root(result.revision_folder), tuple(result.frames), 0.03)
    start, end = same_order(shot, 1), same_order(shot, 3)
    turn = np.arctan2(end[:, 2], end[:, 0]) - np.arctan2(start[:, 2], start[:, 0])
    turn = np.degrees((turn + np.pi) % (2.0 * np.pi) - np.pi)
    off_axis = np.hypot(start[:, 0], start[:, 2]) > 0.01
    assert np.abs(turn[off_axis & (start[:, 1] > 0.2)] + 67.5).max() < 0.1
    assert np.abs(turn[off_axis & (start[:, 1] < -0.2)]).max() < 0.1
    assert [figure.ok for figure in SAMPLES["twisted_sponge"].figures(shot)][:2] == [False, False]
