"""The packaged samples of `mpm-nodes sample`: sizes, measures, and the command itself."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mpm_nodes import cli
from mpm_nodes.data import Cancelled, InputError
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.plan import preflight
from mpm_nodes.preview.pictures import Picture
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.report import print_frames
from mpm_nodes_samples.shots.run import PAPER_MINUTES, picture_of
from mpm_nodes_samples.shots.shot import Progress
from tests.reproduction.__main__ import main as reproduce
from tests.reproduction.foam import rebound, resting
from tests.reproduction.measures import interior_densities, pieces, pushed_out, seen_from_the_side, thread_length

FOAMS = {name: sample for name, sample in SAMPLES.items() if sample.source.startswith("Y15")}
each = pytest.mark.parametrize("name", FOAMS)


def graph_of(name: str, size: str = "quick"):
    """Return a sample's graph in one of its sizes."""
    return sizes.graph_of(SAMPLES[name], size)


def lattice(counts: tuple[int, int, int], spacing: float) -> np.ndarray:
    """Return the points ((i + 1/2) spacing), shape (n, 3)."""
    return spacing * (np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5)


# ---------------------------------------------------------------- the graphs
@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name, sample in FOAMS.items() for size in sizes.SIZES if size == "quick" or sample.paper]
)
def test_both_sizes_can_be_planned_and_the_paper_s_has_its_particles(name: str, size: str):
    """Every size is a valid graph; the paper's holds its particles within 5 %, its cell size and its time step."""
    graph = graph_of(name, size)
    estimates = preflight.estimate(Evaluator(graph).plan, graph.settings.start)
    solver = next(node for node, entry in graph.nodes.items() if entry.type == "solve")
    begin = sum(estimates[wire.partition(".")[0]]["particles"] for wire in graph.nodes[solver].inputs["sources"])
    if size == "paper":
        assert begin == pytest.approx(SAMPLES[name].paper.particles, rel=0.05)
        assert graph.settings.end - graph.settings.start == 3 and graph.settings.fps == 30
        assert graph.nodes[solver].knobs["dt_max"] in (1e-5, 5e-6) and graph.nodes[solver].knobs["time_scale"] == 1.0
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
    assert {value["preset"] for value in found} == {"continuum_foam"}


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


def test_threads_are_as_long_as_they_are_thin():
    """A block with a thread of single particles on it, one of two rows and one of the lattice's width: what is thinner counts."""
    block, row = lattice((8, 8, 8), 0.5), np.arange(8)[:, None] * [0.0, 0.5, 0.0] + [2.0, 4.25, 2.0]
    assert thread_length(block, 1.0, 0.25) == 0.0
    thread = np.concatenate([block, row])
    assert thread_length(thread, 1.0, 0.25) == 4.0
    pair = np.concatenate([block, row, row + [0.2, 0.0, 0.0], row + [0.0, 0.0, 0.2], row + [0.2, 0.0, 0.2]])
    assert thread_length(pair, 1.0, 0.25) == 0.0 and thread_length(pair, 1.0, 0.4) == 4.0
    assert thread_length(2.0 * thread, 2.0, 0.25) == 4.0


def test_pushed_out_counts_what_lies_beyond_the_shell():
    """Nothing inside a closed ring; what has come through a gap counts."""
    turn = np.linspace(0.0, 2.0 * np.pi, 640, endpoint=False)
    ring = np.stack([np.cos(turn), np.zeros(640), np.sin(turn)], axis=1)
    assert pushed_out(0.8 * ring, ring, 0.1) == 0.0
    part = np.concatenate([0.8 * ring[:320], 1.2 * ring[320:]])
    assert pushed_out(part, ring, 0.1) == pytest.approx(0.5)


def test_the_inner_is_seen_from_the_side_where_nothing_lies_before_it():
    """Nothing through a closed ring; half of the directions when it has come through half of the ring."""
    turn = np.linspace(0.0, 2.0 * np.pi, 640, endpoint=False)
    ring = np.stack([np.cos(turn), np.zeros(640), np.sin(turn)], axis=1)
    assert seen_from_the_side(0.8 * ring, ring, 0.1) == 0.0
    part = np.concatenate([0.8 * ring[:320], 1.2 * ring[320:]])
    assert seen_from_the_side(part, ring, 0.1) == pytest.approx(0.5, abs=1.0 / 32)


def test_rebound_is_measured_after_the_first_contact():
    """The fall before contact does not count; half a spacing, where a lattice rests, is not a gap."""
    assert rebound([0.5, 0.2, 0.0025, 0.0025], 0.01) == 0.0
    assert rebound([0.5, 0.0025, 0.0225, 0.01], 0.01) == pytest.approx(0.02)
    assert rebound([0.5, 0.4], 0.01) == 0.0


def test_what_lies_on_a_table_rests_and_what_was_lifted_does_not():
    """A slab that ends half a cell above the top rests without touching the floor beside it; one far above, and crumbs, do not."""
    cell, top = 0.005, 0.014
    slab = lattice((16, 4, 16), 0.5 * cell) + [0.0, top + 0.25 * cell, 0.0]
    above, crumb = slab + [0.0, 0.05, 0.0], lattice((2, 2, 2), 0.5 * cell) + [0.2, 0.0, 0.0]
    rest = resting(np.concatenate([slab, above, crumb]), cell, top)
    assert rest[: len(slab)].all() and not rest[len(slab) :].any()


# ---------------------------------------------------------------- the command
def test_without_a_name_it_lists_the_samples(capsys):
    """One line each, by topic; an unknown name leads to the list."""
    assert cli.main(["sample"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == sorted(SAMPLES)
    assert cli.main(["sample", "nothing"]) == 5
    assert f"`mpm-nodes sample --list` lists all {len(SAMPLES)}" in capsys.readouterr().err


def test_it_cooks_draws_and_measures(tmp_path, capsys):
    """Coarse and short: a contact sheet, figures as a table and as JSON, the seconds of each stage, the next command.

    The reproduction measures what the shot must show as well, and ends with 1 where that misses.
    """
    words = ["spheres", "--out", str(tmp_path), "--events", "none", "--set", "settings.cell_size=0.012", "--set", "settings.end=4"]
    assert cli.main(["sample", *words]) == 0
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("particles at the start", "time by stage", "next: mpm-nodes render"))
    assert "gap under the oobleck sphere" not in printed and "MISSED" not in printed
    record = json.loads((tmp_path / "r001/preview/figures.json").read_text())
    assert record["sample"] == "spheres" and record["size"] == "quick"
    assert {"name", "measured", "expected", "ok"} <= set(record["figures"][0])
    assert set(record["seconds_by_frame"]) == {"2", "3", "4"}
    assert sum(record["seconds_by_stage"].values()) > 0.0
    assert (tmp_path / "r001/preview/contact_sheet.splat.png").is_file()
    assert reproduce([*words, "--resume"]) == 1  # nothing has landed yet
    printed = capsys.readouterr().out
    assert "gap under the oobleck sphere" in printed and "MISSED" in printed
    assert reproduce(["nothing"]) == 5 and reproduce(["pie", "--study"]) == 5


# ---------------------------------------------------------------- the time that a cook may take
def events(progress: Progress, begin: float, length: float) -> None:
    """Tell of a cook of frames 1 to 4 that begins at 100 s, solves frame 2 in `length` [s] and comes to 600 substeps of frame 3."""
    progress({"event": "plan", "time": begin, "out": "/tmp/x/r001"})
    for frame in (1, 2):
        progress({"event": "frame_start", "time": begin, "frame": frame})
        if frame == 2:
            progress({"event": "stages", "time": begin + length, "frame": 2, "seconds": length, "stages": {"gather": length}})
        progress({"event": "frame_done", "time": begin + length, "frame": frame, "substeps": 1000 * (frame - 1)})
        progress({"event": "wrote", "time": begin + length, "path": f"/tmp/x/r001/{frame}.usdc"})
    progress({"event": "frame_start", "time": begin + length, "frame": 3})
    progress({"event": "substep", "time": begin + 2 * length, "frame": 3, "substep": 600})


def test_a_cook_ends_when_its_time_is_over_and_says_how_long_the_frame_would_have_taken(capsys):
    """80 s are over in the third frame; what was cooked counts, and 600 of 1000 substeps in 50 s make 83 s."""
    progress = Progress(80.0)
    with pytest.raises(Cancelled):
        events(progress, 100.0, 50.0)
    left = progress.left_behind()
    assert left.frames == (1, 2) and left.files == ("1.usdc", "2.usdc") and str(left.revision_folder) == "/tmp/x/r001"
    print_frames(progress)
    printed = capsys.readouterr().out
    assert "frame 2: 1,000 substeps in 50.0 s" in printed and "600 substeps and 50.0 s" in printed and "1,000 take 83 s" in printed
    events(Progress(), 100.0, 50.0)


def test_too_little_time_for_a_frame_is_said(tmp_path, capsys):
    """The paper's sizes are held to less than twenty minutes; a limit that no frame can meet ends the command with what to do."""
    assert PAPER_MINUTES < 20.0
    coarse = ["--set", "settings.cell_size=0.012", "--set", "settings.end=4", "--minutes", "1e-6"]
    assert cli.main(["sample", "spheres", "--out", str(tmp_path), "--events", "none", *coarse]) == 5
    assert "--minutes: frame 2 was not done" in capsys.readouterr().err


# ---------------------------------------------------------------- its pictures
def test_the_pachinko_board_fills_its_picture():
    """The board's corners lie inside the picture, and span most of its height or its width."""
    picture = picture_of(SAMPLES["pachinko"])
    (width, height), view = picture.size, picture.camera
    corners = np.stack(np.meshgrid([-0.17, 0.17], [0.0, 0.62], [-0.05, 0.05], indexing="ij"), -1).reshape(-1, 3) - view.eye
    depth = corners @ view.forward
    across = view.focal * (corners @ view.right) / depth
    along = view.focal * (corners @ view.up) / depth * width / height
    assert np.abs(across).max() < 0.5 and np.abs(along).max() < 0.5
    assert max(np.ptp(across), np.ptp(along)) > 0.8
    assert picture_of(SAMPLES["pool_at_rest"]) == Picture(show=SAMPLES["pool_at_rest"].show)
