"""The benchmark of caches: clouds, records, the graphs that it cooks, and one small run."""

import json

import caches
import clouds
import numpy as np
import pytest

from mpm_nodes.graph.plan.validate import validate


@pytest.mark.parametrize("cloud", [clouds.ball, clouds.splash])
def test_clouds_have_the_size_asked_for_and_are_the_same_every_time(cloud):
    """Exactly `count` finite particles, the same bits again, and not many in one place."""
    points = cloud(20_000)
    assert points.shape == (20_000, 3) and np.isfinite(points).all()
    assert points.tobytes() == cloud(20_000).tobytes()
    places = np.unique(np.floor(points / clouds.SPACING), axis=0)
    assert len(places) > 0.6 * len(points)


def test_splash_is_harder_than_the_ball():
    """The splash fills less than half as much of its bounding box."""
    filled = []
    for cloud in (clouds.ball, clouds.splash):
        points = cloud(200_000)
        box = np.prod((points.max(axis=0) - points.min(axis=0)) / clouds.SPACING)
        filled.append(len(points) / box)
    assert filled[1] < 0.5 * filled[0]


@pytest.mark.parametrize("volume, agree", [(1.01, True), (1.05, False), (0.0, False), (float("nan"), False)])
def test_surfaces_that_disagree_get_no_ratio(volume, agree):
    """Times are compared only where enclosed volumes are within the tolerance of the cloud."""
    ours = [{"version": "1", "seconds": 2.0, "triangles": 10, "volume": 1.0}]
    peers = [{"version": "2", "seconds": 3.0, "triangles": 12, "volume": volume}]
    record = caches.surface_record("ball", 1000, ours, peers)
    assert record["agree"] is agree
    assert record["ratio"] == (1.5 if agree else None)
    assert record["met"] is True and record["figure"] == 2.0
    assert record.keys() >= {"what", "figure", "unit", "goal", "met", "rounds", "every_round", "agreement", "peer", "version"}


@pytest.mark.parametrize("way, left", [("solve alone", "melt"), ("nothing written", "surface"), ("all caches", "cache")])
def test_cooked_graphs_are_valid(way, left):
    """Each way leaves a sound graph whose last node is what it is named after."""
    graph = caches.demo(way)
    assert validate(graph) == []
    assert left in graph.nodes
    assert ("cache" in graph.nodes) == (way == "all caches") and ("surface" in graph.nodes) == (way != "solve alone")


def test_usd_points_are_timed_and_read_back(tmp_path, capsys):
    """A small run writes a record of its time and size, and finds the attributes unchanged."""
    pytest.importorskip("pxr")
    file = tmp_path / "figures.json"
    assert caches.main(["--only", "usd", "--particles", "3000", "--rounds", "1", "--threads", "1", "--json", str(file)]) == 0
    [record] = json.loads(file.read_text())
    assert record["agree"] and record["figure"] > 0.0 and record["goal"] == 0.5
    assert record["bytes"] > 3000 * 4 * (3 + 3 + 1 + 1)
    assert "read back unchanged" in capsys.readouterr().out


def test_points_that_come_back_changed_are_refused(monkeypatch):
    """Losing one digit of one attribute in the file is found."""
    pytest.importorskip("pxr")
    import usd_io.stage_reader

    read = usd_io.stage_reader.read_points

    def damaged(path, frame):
        particles = read(path, frame)
        columns = {**particles.attributes, "mass": particles["mass"] * np.float32(1.0001)}
        return caches.Particles(columns, particles.materials, particles.spacing)

    monkeypatch.setattr(usd_io.stage_reader, "read_points", damaged)
    [record] = caches.usd(caches.arguments_of(["--particles", "1000", "--rounds", "1"]))
    assert record["agree"] is False
