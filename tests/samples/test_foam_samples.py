"""The packaged samples of `mpm-nodes sample`: sizes, measures, and the command itself."""

from __future__ import annotations

import importlib.resources
import json

import numpy as np
import pytest

from mpm_nodes import cli
from mpm_nodes.commands.sample import sized
from mpm_nodes.data import InputError
from mpm_nodes.graph import preflight
from mpm_nodes.graph.document import load_graph
from mpm_nodes.graph.evaluator import Evaluator
from mpm_nodes.samples.figures import rebound
from mpm_nodes.samples.index import SAMPLES, SIZES
from mpm_nodes.samples.measures import interior_densities, pieces, pushed_out

FOAMS = {name: sample for name, sample in SAMPLES.items() if sample.source.startswith("Y15")}
each = pytest.mark.parametrize("name", FOAMS)


def graph_of(name: str, size: str = "quick"):
    """Return a sample's graph in one of its sizes."""
    path = importlib.resources.files("mpm_nodes") / "samples" / f"{name}.json"
    return sized(load_graph(path), SAMPLES[name], size, ())


def lattice(counts: tuple[int, int, int], spacing: float) -> np.ndarray:
    """Return the points ((i + 1/2) spacing), shape (n, 3)."""
    return spacing * (np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5)


# ---------------------------------------------------------------- the graphs
@pytest.mark.parametrize(("name", "size"), [(name, size) for name, sample in FOAMS.items() for size in SIZES
                                            if size == "quick" or sample.paper])
def test_both_sizes_can_be_planned_and_the_paper_s_has_its_particles(name: str, size: str):
    """Every size is a valid graph; the paper's holds its particles within 5 %, its cell size and its time step."""
    graph = graph_of(name, size)
    estimates = preflight.estimate(Evaluator(graph).plan, graph.settings.start)
    solver = next(node for node, entry in graph.nodes.items() if entry.type == "solve")
    begin = sum(estimates[wire.partition(".")[0]]["particles"] for wire in graph.nodes[solver].inputs["sources"])
    if size == "paper":
        assert begin == pytest.approx(SAMPLES[name].paper.particles, rel=0.05)
        assert graph.settings.end - graph.settings.start == 3 and graph.settings.fps == 30
        assert graph.nodes[solver].knobs["dt_max"] in (1e-5, 5e-6)
    else:
        assert 1000 < begin < 100_000


def test_a_sample_without_numbers_of_its_source_has_no_paper_size():
    """The tendril is a picture in the source, without a table."""
    with pytest.raises(InputError, match="sample 'tendril': its source states no numbers"):
        graph_of("tendril", "paper")


@each
def test_the_foam_s_own_substeps_are_solved(name: str):
    """Each sample names the preset of the source's fifteen steps."""
    graph = graph_of(name)
    found = [entry.knobs["substeps"] for entry in graph.nodes.values() if entry.type == "solve"]
    assert [value["preset"] for value in found] == ["continuum_foam"]


# ---------------------------------------------------------------- measures
def test_interior_density_of_a_lattice_is_the_material_s():
    """Eight particles a cell of mass rho h^3 / 8 give rho at every interior node, to rounding; a void shows."""
    cell = 0.01
    points = lattice((24, 24, 24), 0.5 * cell)
    masses = np.full(len(points), 80.0 * (0.5 * cell) ** 3)
    found = interior_densities(points, masses, cell)
    assert len(found) == 6**3 and np.allclose(found, 80.0, rtol=1e-12)
    hollow = np.linalg.norm(points - 6.0 * cell, axis=1) > 1.2 * cell
    assert interior_densities(points[hollow], masses[hollow], cell).min() < 40.0


def test_pieces_are_told_apart_where_a_cell_lies_between_them():
    """Two blocks two cells apart are two pieces, the larger one first; a bridge joins them."""
    large, small = lattice((8, 4, 4), 0.5), lattice((4, 4, 4), 0.5) + [6.0, 0.0, 0.0]
    assert pieces(np.concatenate([small, large]), 1.0).tolist() == [1] * 64 + [0] * 128
    bridge = lattice((8, 1, 1), 0.5) + [3.0, 0.0, 0.0]
    assert not pieces(np.concatenate([small, large, bridge]), 1.0).any()


def test_pushed_out_counts_what_lies_beyond_the_shell():
    """Nothing inside a closed ring; what has come through a gap counts."""
    turn = np.linspace(0.0, 2.0 * np.pi, 640, endpoint=False)
    ring = np.stack([np.cos(turn), np.zeros(640), np.sin(turn)], axis=1)
    assert pushed_out(0.8 * ring, ring, 0.1) == 0.0
    part = np.concatenate([0.8 * ring[:320], 1.2 * ring[320:]])
    assert pushed_out(part, ring, 0.1) == pytest.approx(0.5)


def test_rebound_is_measured_after_the_first_contact():
    """The fall before contact does not count; half a spacing, where a lattice rests, is no gap."""
    assert rebound([0.5, 0.2, 0.0025, 0.0025], 0.01) == 0.0
    assert rebound([0.5, 0.0025, 0.0225, 0.01], 0.01) == pytest.approx(0.02)
    assert rebound([0.5, 0.4], 0.01) == 0.0


# ---------------------------------------------------------------- the command
def test_without_a_name_it_lists_the_samples(capsys):
    """One line each; an unknown name is refused with the list."""
    assert cli.main(["sample"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SAMPLES)
    assert cli.main(["sample", "nothing"]) == 5
    assert "choose one of shaving_foam" in capsys.readouterr().err


def test_it_cooks_draws_and_measures(tmp_path, capsys):
    """Coarse and short: a contact sheet, figures as a table and as JSON, the seconds of each stage, the next command."""
    coarse = ["--set", "settings.cell_size=0.012", "--set", "settings.end=4"]
    assert cli.main(["sample", "spheres", "--out", str(tmp_path), "--events", "none", *coarse]) == 0
    printed = capsys.readouterr().out
    assert "gap under the oobleck sphere" in printed and "time by stage" in printed and "next: mpm-nodes render" in printed
    record = json.loads((tmp_path / "r001/preview/figures.json").read_text())
    assert record["sample"] == "spheres" and record["size"] == "quick"
    assert {"name", "measured", "expected", "ok"} <= set(record["figures"][0])
    assert set(record["seconds_by_frame"]) == {"2", "3", "4"}
    assert sum(record["seconds_by_stage"].values()) > 0.0
    assert (tmp_path / "r001/preview/contact_sheet.png").is_file()
