"""The sample `honey`: its spoons, its two sizes, and measures on made-up threads."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from sample_numbers import SAMPLES as FOLDER

from mpm_nodes.cli import main
from mpm_nodes.data import Particles
from mpm_nodes.graph.cook.evaluator import Evaluator
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes_samples.shots import sizes
from mpm_nodes_samples.shots.index import SAMPLES
from mpm_nodes_samples.shots.shot import Progress, Shot
from tests.reproduction import honey

CELL = 8e-4


def script():
    """Return make_spoons.py as a module."""
    spec = importlib.util.spec_from_file_location("make_spoons", FOLDER / "make_spoons.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shot_of(frames: dict[int, Particles]) -> Shot:
    """Return a shot of the sample whose frames are given."""
    graph = sizes.graph_of(SAMPLES["honey"])
    return Shot(FOLDER, tuple(frames), CELL, graph=graph, kept=frames)


# ---------------------------------------------------------------- the graph
@pytest.mark.parametrize("size", sizes.SIZES)
def test_both_sizes_can_be_planned(size: str, capsys):
    """The graph is valid, both spoons hold as much, and the large size has finer cells alone."""
    graph = sizes.graph_of(SAMPLES["honey"], size)
    assert main(["validate", str(FOLDER / "honey.json")]) == 0, capsys.readouterr()
    estimates = preflight.estimate(Evaluator(graph).plan, graph.settings.start)
    warm, cold = (estimates[f"{name}_honey"]["particles"] for name in ("warm", "cold"))
    assert warm == pytest.approx(cold, rel=0.01)
    assert 40_000 < warm < 60_000 if size == "quick" else 60_000 < warm < 120_000
    assert graph.settings.end == 85 and graph.settings.fps == 24


def test_the_spoons_are_what_their_script_makes(tmp_path: Path):
    """The meshes in the repository have the bytes of make_spoons.py, are closed, and their faces look outwards."""
    made = script()
    made.main(tmp_path / "made.usda")
    assert (tmp_path / "made.usda").read_bytes() == (FOLDER / "spoons.usda").read_bytes()
    for points, faces in made.bodies().values():
        edges = [pair for face in faces for pair in zip(face, [*face[1:], face[0]], strict=True)]
        assert sorted(edges) == sorted((b, a) for a, b in edges)
        fans = [(points[f[0]], points[f[n]], points[f[n + 1]]) for f in faces for n in range(1, len(f) - 1)]
        assert sum(float(a @ np.cross(b, c)) for a, b, c in fans) > 0.0


def test_the_figures_know_the_spoons():
    """Lip, thickness and temperatures of the figures are those of the spoons and of the graph."""
    made, nodes = script(), sizes.graph_of(SAMPLES["honey"]).nodes
    assert {lip[1] for lip in made.LIPS.values()} == {honey.LIP} and made.THICKNESS == honey.RIM
    assert made.LIPS["warm"][0] < honey.BETWEEN < made.LIPS["cold"][0] - made.FRONT - made.BACK
    assert nodes["warm_spoon"].knobs["temperature"] == honey.WARM
    assert {nodes[name].knobs["temperature"] for name in ("cold_spoon", "warm_honey", "cold_honey")} == {honey.ROOM}
    assert nodes["liquid"].knobs["density"] == honey.DENSITY


@pytest.mark.slow
def test_it_cooks_and_its_books_close(tmp_path: Path):
    """Three frames on the coarsest cells that tell a spoon's two sides apart: neither mass nor enthalpy is missing."""
    from mpm_nodes.preview.pictures import find_root

    graph = sizes.graph_of(SAMPLES["honey"])
    graph.set("settings.cell_size", 9.2e-4)
    progress = Progress()
    result = execute(graph, frames=(1, 3), out=tmp_path, on_event=progress)
    shot = Shot(find_root(result.revision_folder), tuple(result.frames), 9.2e-4, progress, graph)
    closed = [figure for figure in honey.honey(shot) if figure.says == "conserved"]
    assert len(closed) == 2 and all(figure.ok for figure in closed), closed


# ---------------------------------------------------------------- measures
def test_the_foot_of_a_thread_is_over_what_lies_on_the_plate():
    """A thread of 2 over a heap of 9 has its foot two slices over the heap; one that hangs in the air has none."""
    thread = [2.0] * 10 + [3.0, 8.0]
    assert honey.landing(np.array([9.0, 9.0, 9.0, *thread])) == 4
    assert honey.landing(np.array([0.0, 4.0, 4.0, *thread])) is None
    assert honey.landing(np.array(thread)) is None


def test_a_path_that_goes_round_has_turns_and_one_that_folds_has_none():
    """Three rounds are three turns either way; to and fro, and rounds smaller than what counts, are none."""
    angle = np.linspace(0.0, 6.0 * math.pi, 60, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert honey.turns(ring, 0.5) == pytest.approx(3.0, abs=0.06)
    assert honey.turns(ring * [1.0, -1.0], 0.5) == pytest.approx(3.0, abs=0.06)
    assert honey.turns(ring, 1.1) == 0.0
    assert honey.turns(ring * [1.0, 0.01], 0.5) > 2.9  # a flat ring is still a ring
    fold = np.stack([np.sin(angle), 0.1 * np.cos(2.0 * angle)], axis=1)
    assert honey.turns(fold, 0.5) < 0.6
    assert honey.swings(fold, 0.3) == honey.swings(ring, 0.3) == pytest.approx(3.0, abs=0.5)
    assert honey.swings(0.2 * fold, 0.3) == 0.0


def test_flows_are_those_of_the_same_share():
    """Half as fast is half the flow, whenever it begins; too little for a flow is none."""
    times = np.linspace(0.0, 2.0, 201)
    fast, slow = np.clip(0.4 * (times - 0.2), 0.0, 1.0), np.clip(0.2 * (times - 0.5), 0.0, 1.0)
    assert honey.early_flow(times, fast) == pytest.approx(0.4, rel=1e-6)
    assert honey.early_flow(times, slow) == pytest.approx(0.2, rel=1e-6)
    assert honey.early_flow(times, 0.1 * slow) == 0.0


def test_the_supply_ends_where_its_flow_wanes():
    """A flow that stops after 40 steps ends there; an even one lasts as long as the shot."""
    left = np.minimum(np.arange(100.0), 40.0) / 100.0
    assert honey.supply_ends(left) == pytest.approx(41, abs=1)
    assert honey.supply_ends(np.arange(100.0)) == 99


def thread(turn: float) -> np.ndarray:
    """Return places of warm honey: a thread of 2 cells' radius, bent to `turn`, on a heap; and of cold honey in its spoon."""
    step, high, axis = 0.5 * CELL, honey.LIP - honey.RIM, (np.arange(-20, 20) + 0.5) * 0.5 * CELL
    x, y, z = (a.ravel() for a in np.meshgrid(axis, (np.arange(round(high / step)) + 0.5) * step, axis, indexing="ij"))
    bend = np.clip(1.0 - (y - 5.0 * CELL) / (10.0 * CELL), 0.0, 1.0) * 3.0 * CELL
    off = np.hypot(x - bend * math.cos(turn), z - bend * math.sin(turn))
    inside = np.where(y < 5.0 * CELL, np.hypot(x, z) < 7.0 * CELL, off < 2.0 * CELL)
    points = np.stack([x, y, z], axis=1)
    return np.concatenate([points[inside] - [0.012, 0.0, 0.0], points[np.hypot(x, z) < 2.0 * CELL] + [0.018, honey.LIP, 0.0]])


def supplied(turn: float, share: float) -> Particles:
    """Return `thread` with a spoon above it, of whose particles a share has left: their number stays."""
    x = thread(turn)
    kept = x[x[:, 0] < honey.BETWEEN]
    store = np.tile(np.array([[-0.012, honey.LIP, 0.0]]), (20_000 - len(kept), 1))
    gone = int(share * 2000)
    store[:gone] = kept[np.arange(gone) % len(kept)] * [1.0, 0.0, 1.0] + [0.0, 1e-4, 0.0]
    cold = x[x[:, 0] > honey.BETWEEN]
    both = np.concatenate([kept, store, cold])
    n = len(both)
    return Particles(
        {
            "position": both, "velocity": np.tile([0.0, -0.05, 0.0], (n, 1)), "id": np.arange(n), "mass": np.full(n, 1e-8),
            "volume": np.full(n, (0.5 * CELL) ** 3), "temperature": np.where(both[:, 0] < honey.BETWEEN, 300.0, 293.0),
        }, (), CELL,
    )  # fmt: skip


@pytest.mark.parametrize(("rounds", "holds"), [(4.0, True), (0.0, False)])
def test_a_thread_that_coils_is_told_from_one_that_does_not(rounds: float, holds: bool):
    """A foot that goes round four times while honey comes has four turns, and one that stands has none."""
    frames = {n + 1: supplied(2.0 * math.pi * rounds * n / 40, n / 40) for n in range(41)}
    shot = shot_of(frames)
    found = {each.name: each for each in honey.thread(shot, honey.spoons(shot)["warm"])}
    assert found["turns of the foot of the warm thread"].ok is holds
    assert found["turns of the foot of the warm thread"].measured == pytest.approx(rounds, abs=0.2)
    assert found["radius of the warm thread where it lands [cells]"].measured == pytest.approx(2.0, abs=0.2)
