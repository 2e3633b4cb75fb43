"""The packaged samples of heat and projection: sizes, books of streams, measures, and coarse cooks."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from sample_numbers import SAMPLES as FOLDER

from mpm_nodes.cli import main
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.shot import Figure, Progress, Shot, Target
from tests.reproduction import melting, phases
from tests.reproduction.figures import FIGURES

NAMES = [name for name, sample in SAMPLES.items() if "S14" in sample.source]
COARSE = {
    "hot_air": 0.012, "hot_stream": 0.012, "marshmallow_on_plate": 0.012, "butter_on_pan": 0.008,
    "wax": 0.012, "lava": 0.04, "caramel": 0.006,
}  # fmt: skip


def graph_of(name: str, size: str = "quick"):
    """Return a sample's graph in one of its sizes."""
    return sizes.graph_of(SAMPLES[name], size)


def lattice(counts: tuple[int, int, int], spacing: float) -> np.ndarray:
    """Return the points ((i + 1/2) spacing), shape (n, 3)."""
    return spacing * (np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 3) + 0.5)


# ---------------------------------------------------------------- the graphs
@pytest.mark.parametrize(
    ("name", "size"), [(name, size) for name in NAMES for size in sizes.SIZES if size == "quick" or SAMPLES[name].paper]
)
def test_both_sizes_can_be_planned_and_the_paper_s_has_its_particles(name: str, size: str, capsys):
    """Every size is a valid graph; the paper's holds its particles within 5 % and its time step, streams after three frames."""
    graph = graph_of(name, size)
    estimates = preflight.estimate(Evaluator(graph).plan, graph.settings.start)
    solves = [entry for entry in graph.nodes.values() if entry.type == "solve"]
    begin = sum(estimates[wire.partition(".")[0]]["particles"] for solve in solves for wire in solve.inputs.get("sources", ()))
    if size == "quick":
        assert begin < 100_000
        assert main(["validate", str(FOLDER / f"{name}.json")]) == 0, capsys.readouterr()
        return
    for stream in (entry for entry in graph.nodes.values() if entry.type == "emit_stream"):
        section = np.prod(graph.nodes[graph.nodes[stream.inputs["template"][0]].inputs["particles"][0]].knobs["size"][::2])
        length = np.linalg.norm(stream.knobs["velocity"]) * (graph.settings.end - graph.settings.start) / graph.settings.fps
        begin += 8.0 * section * length / graph.settings.cell_size**3
    assert begin == pytest.approx(SAMPLES[name].paper.particles, rel=0.05)
    assert all(solve.knobs["dt_max"] == 3e-4 for solve in solves)
    assert graph.settings.fps == 30 and all(solve.knobs.get("time_scale", 1.0) == 1.0 for solve in solves)


def test_every_sample_has_a_paper_size():
    """Also where S14 prints no particles: then as many as its other examples have, 0.8 to 4.2 million."""
    sizes_of = {name: SAMPLES[name].paper for name in NAMES}
    assert len(NAMES) == 11 and all(paper and 0.75e6 < paper.particles < 4.5e6 for paper in sizes_of.values()), sizes_of


def test_the_hare_is_what_its_script_makes(monkeypatch):
    """The level set in the repository has the distances of make_melting_bodies.py, to the half floats of its file."""
    pytest.importorskip("pxr")
    from usd_io.volumes import read_volumes

    monkeypatch.syspath_prepend(str(FOLDER))
    spec = importlib.util.spec_from_file_location("make_melting_bodies", FOLDER / "make_melting_bodies.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    kept = read_volumes(FOLDER / "melting.vdb", ["hare"])["hare"].level_set
    places = kept.voxel_size * (
        kept.origins[:, None] + np.stack(np.meshgrid(*[np.arange(8)] * 3, indexing="ij"), -1).reshape(1, -1, 3)
    ).astype(float)
    made = np.clip(script.hare()(places.reshape(-1, 3)), -0.003, 0.003)
    assert np.abs(made - kept.values.reshape(-1)).max() < 2e-6
    assert Path(sys.modules["make_bodies"].__file__).parent == FOLDER


# ---------------------------------------------------------------- measures
def test_a_plane_an_edge_and_a_corner_are_told_apart():
    """Of the 125 cells around one, 50, 80 and 98 are empty at a face, an edge and a corner of a block; deep inside none is."""
    bare = phases.exposure(lattice((20, 20, 20), 0.5), 1.0).reshape(20, 20, 20)
    assert bare[10, 10, 10] == 0.0
    assert [bare[0, 10, 10], bare[0, 0, 10], bare[0, 0, 0]] == pytest.approx([50 / 125, 80 / 125, 98 / 125])


def test_layers_are_counted_from_the_open_surface():
    """A block on the floor: 1 at its top and sides, one more a cell inwards, and its middle at the floor is deep inside."""
    layer = phases.layers(lattice((16, 16, 16), 0.5), 1.0).reshape(16, 16, 16)
    assert layer[8, 15, 8] == layer[0, 8, 8] == 1 and layer[8, 13, 8] == 2 and layer[8, 0, 8] == 4
    assert layer.max() == 4


def test_arcs_are_crests_along_the_middle():
    """A slope of ten degrees with five ridges across it has five, without them none but its own end."""
    along = np.linspace(0.0, 1.0, 2001)
    height = 0.1 + 0.02 * np.cos(10.0 * np.pi * along + np.pi)
    turn = np.radians(10.0)

    def laid(height):
        x, y = along * np.cos(turn) + height * np.sin(turn), -along * np.sin(turn) + height * np.cos(turn)
        return np.stack([x, y, np.zeros_like(x)], axis=1)

    assert phases.arcs(laid(height)) == 5
    assert np.allclose(phases.on_slope(laid(height))[1], height)


# ---------------------------------------------------------------- books
def test_the_book_of_a_hot_stream_is_density_nozzle_speed_and_time():
    """What hot_stream's stream brings after its first frame, and m (c (T - T_f) + L) of it."""
    graph = graph_of("hot_stream")
    settings = graph.settings
    seconds = min(graph.nodes["pour"].knobs["duration"], settings.end - settings.start) / settings.fps
    mass, heat = melting.streamed(Shot(Path("unused"), (settings.start, settings.end), settings.cell_size, graph=graph))
    exact, layer = 1300.0 * 0.018**2 * 0.4 * seconds, 1300.0 * 0.018**2 * 0.5 * settings.cell_size
    assert mass == pytest.approx(exact, abs=layer)  # the foremost layer is there in the first frame
    assert heat / mass == pytest.approx(1600.0 * (335.0 - 305.0) + 45000.0, rel=1e-6)


def test_the_book_of_a_ribbon_is_density_slit_speed_and_time():
    """What caramel's ribbon brings after its first frame, and m c T of it."""
    graph = graph_of("caramel")
    settings = graph.settings
    pace = graph.nodes["pour"].knobs["time_scale"]
    seconds = pace * min(graph.nodes["ribbon"].knobs["duration"], settings.end - settings.start) / settings.fps
    mass, heat = melting.streamed(Shot(Path("unused"), (settings.start, settings.end), settings.cell_size, graph=graph))
    exact, layer = 1400.0 * 0.0075 * 0.036 * 0.3 * seconds, 1400.0 * 0.0075 * 0.036 * 0.5 * settings.cell_size
    assert mass == pytest.approx(exact, abs=layer)  # the foremost layer is there in the first frame
    assert heat / mass == pytest.approx(1500.0 * 410.0, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", COARSE)
def test_it_cooks_coarsely_and_its_books_close(name: str, tmp_path: Path):
    """Four frames with coarse cells: figures can be measured, and neither mass nor enthalpy is missing."""
    from mpm_nodes.preview.pictures import find_root

    graph = graph_of(name)
    graph.set("settings.cell_size", COARSE[name])
    if "surface" in graph.nodes:
        graph.set("surface.voxel_size", 0.0)
    progress = Progress()
    result = execute(graph, frames=(1, 4), out=tmp_path, on_event=progress)
    shot = Shot(find_root(result.revision_folder), tuple(result.frames), COARSE[name], progress, graph)
    found = {figure.name: figure for figure in FIGURES[name](shot)}
    closed = [figure for figure in found.values() if figure.says == "conserved"]
    assert len(closed) == 2 and all(figure.ok for figure in closed), closed


# ---------------------------------------------------------------- the page
def test_a_table_is_put_in_its_section_or_replaced():
    """Two sections, one with a table: each gets its own, and nothing else changes."""
    from tests.reproduction.write_tables import page_of, table_of, with_table

    record = {"figures": [Figure("length [m]", 12345.0, Target(most=3.0)).to_json()]}
    table = table_of(record)
    assert table.splitlines()[2] == "| length [m] | 12,345 | at most 3 | MISSED |"
    page = "# Page\n\n## one\n\nWords.\n\n| old | 1 |\n\n## two\n\nMore.\n\n# End\n"
    both = with_table(with_table(page, "one", table), "two", table)
    assert both == f"# Page\n\n## one\n\nWords.\n\n{table}\n## two\n\nMore.\n\n{table}\n# End\n"
    with pytest.raises(SystemExit, match="no page with a section"):
        page_of("three")
