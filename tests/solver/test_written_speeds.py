"""A cache's velocities are those of its positions, at any pace of the simulation; the checker says so where they are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from solver_scenes import shot

from mpm_nodes.graph.cook.executor import execute

pytest.importorskip("pxr")


def cached(folder: Path, pace) -> Path:
    """Cook a spinning, falling jelly that lands on a plane; return its stage."""
    graph = shot(
        end=9,
        fps=48.0,
        centre=(0.0, 0.3, 0.0),
        velocity=(1.0, -1.0, 0.5),
        material="material_neo_hookean",
        knobs={"youngs_modulus": 3e4},
        colliders=[("ground", "collide_plane", {})],
        time_scale=pace,
    )
    graph.add("write_cache", "cache", particles=graph["sim"])
    execute(graph, out=folder)
    return next(folder.rglob("cache.usda"))


@pytest.mark.parametrize("pace", [0.1, 0.5, 1.0, 2.0, {"keys": [[1, 1.0, "smooth"], [9, 0.2, "linear"]]}], ids=str)
def test_a_cook_at_any_pace_passes_the_check(tmp_path, pace):
    """Written velocities and differences of positions by id agree within 5 % at time_scale 0.1 to 2, constant and keyed."""
    from pxr import Usd

    from usd_io.check import check_cache
    from usd_io.speeds import speed_ratio

    stage = cached(tmp_path, pace)
    assert check_cache(stage) == []
    held = Usd.Stage.Open(str(stage))
    prim = held.GetPrimAtPath("/cache/particles")

    def frame(number):
        order = np.argsort(np.array(prim.GetAttribute("ids").Get(number)))
        points, speeds = (np.array(prim.GetAttribute(name).Get(number), float)[order] for name in ("points", "velocities"))
        return np.sort(np.array(prim.GetAttribute("ids").Get(number))), points, speeds

    ratios = [speed_ratio(frame(n), frame(n + 1), 48.0) for n in range(1, 9)]
    told = [ratio for ratio in ratios if ratio is not None]
    assert len(told) >= 3 and np.median(told) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("wrong", [10.0, 1.1, 0.9])
def test_velocities_of_another_clock_are_found(tmp_path, wrong):
    """Velocities ten times, or a tenth, too long or short: one line that gives the factor."""
    from pxr import Sdf, Vt

    from usd_io.check import check_cache

    kept = cached(tmp_path / "cook", 0.5)
    # by itself, it has no records of the bytes that the cook wrote
    stage = Path(shutil.copytree(kept.parent, tmp_path / "alone", ignore=shutil.ignore_patterns("*.json"))) / kept.name
    for file in stage.parent.rglob("cache.*.usdc"):
        layer = Sdf.Layer.FindOrOpen(str(file))
        speeds = layer.GetAttributeAtPath("/cache/particles.velocities")
        time = layer.ListTimeSamplesForPath(speeds.path)[0]  # the next ends them
        scaled = np.array(layer.QueryTimeSample(speeds.path, time)) * np.float32(wrong)
        layer.SetTimeSample(speeds.path, time, Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(scaled, np.float32)))
        layer.Save()
    (problem,) = [problem for problem in check_cache(stage) if "velocities are" in problem]
    found = float(problem.split("velocities are ")[1].split(" times")[0])
    assert found == pytest.approx(wrong, rel=0.04) and "motion blur" in problem


def test_what_cannot_tell_is_left_out():
    """Still points, points that shake, and points without common ids say nothing."""
    from usd_io.speeds import speed_ratio

    ids, random = np.arange(50), np.random.default_rng(1)
    place, speed = random.normal(size=(50, 3)), random.normal(size=(50, 3))
    still = (ids, place, 0.0 * speed)
    assert speed_ratio(still, still, 24.0) is None
    assert speed_ratio((ids, place, speed), (ids, random.normal(size=(50, 3)), speed), 24.0) is None
    assert speed_ratio((ids, place, speed), (ids + 100, place + speed / 24, speed), 24.0) is None
    assert speed_ratio((ids, place, speed), (ids, place + speed / 24, speed), 24.0) == pytest.approx(1.0)
