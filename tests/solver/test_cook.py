"""Real cooks through the executor: interrupted, killed and resumed ones leave the bytes of one that ran through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from solver_scenes import shot

from mpm_nodes.data import MpmNodesError
from mpm_nodes.graph.cook.executor import execute

ROOT = Path(__file__).resolve().parents[2]


def splash(end: int = 6, start: int = 1, **solve):
    """Return a shot with everything that a checkpoint must hold: two laws, a stream, a moving body, keyed gravity, deletions."""
    solve = {"wall_z_high": "delete", "wall_low": (-2.0, -2.0, -2.0), "wall_high": (2.0, 2.0, 0.16)} | solve
    graph = shot(
        end,
        start=start,
        centre=(0.0, 0.3, 0.0),
        velocity=(0.5, -1.0, 0.3),
        start_frame=start,
        **solve,
        colliders=[("ball", "collide_sphere", {"radius": 0.2, "friction": 0.3})],
    )
    for frame, value in ((start, [0.0, 0.0, 0.0]), (start + 5, [0.2, 0.0, 0.0])):
        graph.key("ball.centre", frame, value)
    graph.key("sim.gravity", start, [0.0, -9.81, 0.0])
    graph.key("sim.gravity", start + 6, [3.0, -5.0, 0.0])
    syrup = graph.add("material_liquid", "syrup", bulk_modulus=2e4, viscosity=1.0)
    nozzle = graph.add("emit_box", "nozzle", material=syrup, size=(0.2, 0.1, 0.2), centre=(0.0, 0.6, 0.0), stiffness_variation=0.1)
    stream = graph.add("emit_stream", "stream", template=nozzle, velocity=(0.0, -2.0, 0.0))
    graph.nodes["sim"].connect("emitters", [stream])
    skin = graph.add("surface_particles", "surface", particles=graph["sim"]["particles"])
    vel = graph.add("velocity_volume", "vel", particles=graph["sim"]["particles"])
    graph.add(
        "write_cache",
        "cache",
        particles=graph["sim"]["particles"],
        mesh=skin["mesh"],
        volumes=[skin["surface"], vel],
        colliders=[graph["ball"]],
        attributes=["*"],
    )
    graph.add("export_points", "points", particles=graph["sim"]["particles"])
    return graph


def content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a revision, without what tells how the cook went: lock and manifest."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in ("cook.lock", "cook.json"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


def differing(a: dict[str, bytes], b: dict[str, bytes]) -> list[str]:
    """Return the names of the files that are not the same in both."""
    return sorted(name for name in {*a, *b} if a.get(name) != b.get(name))


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[str, bytes]:
    """Return the files of a cook of six frames that nobody interrupted."""
    result = execute(splash(), out=tmp_path_factory.mktemp("whole"))
    return content(result.revision_folder)


def test_the_shot_holds_what_a_checkpoint_must_hold(whole):
    """All kinds of files are there, the stream brought particles and the wall took some: the comparison below means something."""
    for name in (
        "cache.usda",
        "cache/cache.0006.usdc",
        "cache/cache.0006.vdb",
        "points/points.0005.obj",
        "frames/0006.commit.json",
    ):
        assert name in whole, (name, sorted(whole))
    points = [whole[f"points/points.{frame:04d}.obj"] for frame in range(1, 7)]
    counts = [text.count(b"\nv ") for text in points]
    # a layer of 16 is there at the start, 8 more came in 5/24 s
    assert counts[0] == 216 + 16 and counts[0] < counts[-1] < 216 + 9 * 16, counts


@pytest.mark.parametrize("first", [1, 3])
def test_a_resumed_cook_has_the_bytes_of_one_that_ran_through(whole, tmp_path, first):
    """Cook up to a frame, then resume in the executor: USD, VDB, OBJ, checkpoints and commit records are equal byte for byte."""
    execute(splash(), frames=(1, first), out=tmp_path)
    result = execute(splash(), frames=(1, 6), out=tmp_path, resume=True)
    assert result.cooked == tuple(range(first + 1, 7)) and result.revision_folder.name == "r001"
    assert differing(content(result.revision_folder), whole) == []


def test_a_resumed_cook_of_nothing_left_goes_on(tmp_path):
    """When every particle was deleted the checkpoint holds none, and a resumed cook continues with none."""
    graph = shot(
        end=9,
        centre=(0.0, 0.2, 0.0),
        velocity=(0.0, -4.0, 0.0),
        wall_y_low="delete",
        wall_low=(-5.0, 0.0, -5.0),
        wall_high=(5.0,) * 3,
    )
    graph.add("export_points", "points", particles=graph["sim"]["particles"])
    execute(graph, frames=(1, 7), out=tmp_path)
    result = execute(graph, frames=(1, 9), out=tmp_path, resume=True)
    assert result.cooked == (8, 9)
    lines = [(result.revision_folder / f"points/points.{frame:04d}.obj").read_text().count("\nv ") for frame in (1, 7, 9)]
    assert lines == [216, 0, 0]


def test_a_checkpoint_of_another_precision_is_refused(tmp_path):
    """A changed solve does not continue an old state: the message says what differs."""
    execute(splash(), frames=(1, 2), out=tmp_path)
    with pytest.raises(MpmNodesError, match=r"changed|precision|differ"):
        execute(splash(precision="double"), frames=(1, 3), out=tmp_path, resume=True)


def test_a_killed_cook_resumes_to_the_same_bytes(whole, tmp_path):
    """kill -9 in the middle of frames 2 and 4 of a real cook, then --resume on the command line: the same bytes."""
    graph = splash().save(tmp_path / "splash.json")
    command = [
        sys.executable,
        "-m",
        "mpm_nodes.cli",
        "cook",
        str(graph),
        "--out",
        str(tmp_path / "out"),
        "--events",
        "jsonl",
        "--resume",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_NUM_THREADS": "2"}
    for frame in (2, 4):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
            for line in child.stdout:
                event = json.loads(line)
                if event["event"] == "frame_start" and event["frame"] == frame:
                    time.sleep(0.05)
                    child.send_signal(signal.SIGKILL)
                    break
            assert child.wait(timeout=60) == -signal.SIGKILL
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert differing(content(tmp_path / "out" / "r001"), whole) == []
