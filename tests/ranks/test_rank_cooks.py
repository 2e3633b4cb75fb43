"""Cooks on ranks from the command line: the same shot, going on with other numbers of ranks, and ranks that die."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mpm_nodes.graph.document.document import Graph, load_graph
from mpm_nodes.graph.revisions.revision import latest_revision

pytestmark = pytest.mark.slow
BEGIN = "import sys; from mpm_nodes.cli import main; sys.exit(main(sys.argv[1:]))"
FRAMES = 4


@pytest.fixture
def shot(tmp_path, request):
    """A bar that falls on the ground, in double precision: of a preset that a test names, else of the default one."""
    preset = getattr(request, "param", "explicit_apic")
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=FRAMES)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=3e4)
    if preset == "surface_tension":
        matter = graph.add("material_surface_tension", "tense", material=matter, tension=30.0)
    bar = graph.add(
        "emit_box", "bar", material=matter, size=(3.2, 0.3, 0.3), centre=(0.0, 0.2, 0.0), velocity=(2.0, -1.0, 0.0), jitter=0.1
    )
    ground = graph.add("collide_plane", "ground")
    solve = graph.add("solve", "fall", sources=[bar], colliders=[ground], precision="double", substeps={"preset": preset})
    graph.add("write_cache", "cache", particles=solve)
    path = tmp_path / "shot.json"
    graph.save(path)
    return path


def cook(*arguments):
    """Run the command line in a process of its own, as a user does; return its exit code and what it said."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    line = [sys.executable, "-c", BEGIN, "cook", *map(str, arguments)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def points(folder, frame):
    Usd = pytest.importorskip("pxr.Usd")
    from pxr import UsdGeom

    stage = Usd.Stage.Open(str(latest_revision(folder) / "cache.usda"))
    found = [UsdGeom.Points(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Points)]
    assert len(found) == 1
    return np.array(found[0].GetIdsAttr().Get(frame)), np.array(found[0].GetPointsAttr().Get(frame))


def assert_alike(one, other, frame, most=1e-6):
    (ids, place), (others, there) = points(one, frame), points(other, frame)
    assert len(ids) and np.array_equal(ids, others) and np.abs(place - there).max() <= most


def goes_on(shot, tmp_path):
    """Cook two frames on two ranks, one on three and one on one, and compare with one process."""
    alone, mixed = tmp_path / "alone", tmp_path / "mixed"
    assert cook(shot, "--out", alone)[0] == 0
    for ranks, last in (("2", 2), ("3", 3)):
        code, said = cook(shot, "--out", mixed, "--ranks", ranks, "--frames", f"1-{last}", "--resume")
        assert code == 0, said
    names = {path.name for path in (mixed / "r001" / "checkpoints").iterdir()}
    assert {"0003.fall.rank1.state", "0003.fall.rank2.state", "0003.fall.state"} <= names
    assert cook(shot, "--out", mixed, "--frames", f"1-{FRAMES}", "--resume")[0] == 0
    for frame in range(1, FRAMES + 1):
        assert_alike(alone, mixed, frame)


@pytest.mark.parametrize("preset", ["separate_bodies", "explicit_heat", "surface_tension", "surface_tension_heat"])
def test_other_presets_go_on_with_any_number_of_ranks(preset, mpiexec, tmp_path):
    """The same with two bodies that stick to each other, with wax that melts on a hot ground, and with surface tension."""
    melts = preset.endswith("heat")
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=FRAMES)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=3e4)
    wax = graph.add("material_thermal", "wax", material=matter, freezing_temperature=310.0, conductivity=500.0, latent_heat=100.0)
    of = wax if melts else matter
    if preset.startswith("surface_tension"):
        of = graph.add("material_surface_tension", "tense", material=of, tension=30.0)
    lower = graph.add(
        "emit_box", "lower", material=of, size=(3.2, 0.3, 0.3), centre=(0.0, 0.2, 0.0), velocity=(1.0, -1.0, 0.0), jitter=0.1
    )
    upper = graph.add(
        "emit_box", "upper", material=of, size=(2.4, 0.2, 0.2), centre=(0.13, 0.47, 0.02), velocity=(-2.0, -1.5, 0.3), jitter=0.1
    )
    both = graph.add("merge_particles", "both", sources=[lower, upper], bodies=True)
    bar = graph.add("set_temperature", "warm", particles=both, temperature=305.0) if melts else both
    ground = graph.add("collide_plane", "ground")
    hot = graph.add("collider_temperature", "hot", collider=ground, temperature=400.0, conductance=1e4)
    colliders = [hot] if melts else [ground]
    glue = {"set": {"adhesion": 3e3}} if preset == "separate_bodies" else {}
    solve = graph.add("solve", "fall", sources=[bar], colliders=colliders, precision="double", substeps={"preset": preset, **glue})
    graph.add("write_cache", "cache", particles=solve)
    graph.save(tmp_path / "shot.json")
    goes_on(tmp_path / "shot.json", tmp_path)


def test_a_cook_goes_on_with_any_number_of_ranks(mpiexec, shot, tmp_path):
    """Two frames on two ranks, one on three, one on one: what one process cooks. On two throughout: the same bits as in one go."""
    two, through = tmp_path / "two", tmp_path / "through"
    goes_on(shot, tmp_path)
    assert cook(shot, "--out", two, "--ranks", 2, "--frames", "1-2")[0] == 0
    assert cook(shot, "--out", two, "--ranks", 2, "--frames", f"1-{FRAMES}", "--resume")[0] == 0
    assert cook(shot, "--out", through, "--ranks", 2)[0] == 0
    assert points(two, FRAMES)[1].tobytes() == points(through, FRAMES)[1].tobytes()


def test_each_rank_writes_what_the_solve_hands_on(mpiexec, shot, tmp_path):
    """Part solve: a file for each rank, and rank 0's record of them; together the particles of one process."""
    size = "bar.size=[3.2,0.3,0.3]"
    code, said = cook(shot, "--out", tmp_path / "solved", "--ranks", 2, "--part", "solve", "--set", size)
    assert (
        code == 0 and f"next: mpm-nodes cook {shot} --part frames --solved {tmp_path / 'solved'} --set '{size}' --out ..." in said
    )
    names = {path.name for path in (tmp_path / "solved" / "r001" / "solved").iterdir()}
    assert {"0002.fall.particles.value", "0002.fall.particles.rank1.value"} <= names
    assert cook(shot, "--out", tmp_path / "frames", "--part", "frames", "--solved", tmp_path / "solved")[0] == 0
    assert cook(shot, "--out", tmp_path / "alone")[0] == 0
    for frame in range(1, FRAMES + 1):
        assert_alike(tmp_path / "alone", tmp_path / "frames", frame)


def test_what_reads_all_matter_reads_that_of_all_ranks(mpiexec, shot, tmp_path):
    """Part solve with label_pieces, which ranks do not share: rank 0 hands on all pieces, and goes on with them."""
    graph = load_graph(shot)
    rest = graph.add("rest_positions", "rest", particles=graph["bar"])
    graph.nodes["fall"].inputs["sources"] = []
    graph.nodes["fall"].connect("sources", [rest])
    pieces = graph.add("label_pieces", "pieces", particles=graph["fall"])
    graph.nodes["cache"].inputs["particles"] = []
    graph.nodes["cache"].connect("particles", [pieces])
    graph.save(shot)
    for resume in (("--frames", "1-2"), ("--resume",)):
        code, said = cook(shot, "--out", tmp_path / "solved", "--ranks", 2, "--part", "solve", *resume)
        assert code == 0, said
    code, said = cook(shot, "--out", tmp_path / "frames", "--part", "frames", "--solved", tmp_path / "solved")
    assert code == 0, said
    assert cook(shot, "--out", tmp_path / "alone")[0] == 0
    for frame in range(1, FRAMES + 1):
        assert_alike(tmp_path / "alone", tmp_path / "frames", frame)


def rank_processes(graph):
    """Return the process of each rank of a cook of `graph`, by number."""
    found = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            said = open(f"/proc/{int(entry)}/cmdline").read()
            variables = dict(each.partition("=")[::2] for each in open(f"/proc/{entry}/environ").read().split("\0"))
            rank = variables.get("PMI_RANK", variables.get("OMPI_COMM_WORLD_RANK"))
            if str(graph) in said and rank is not None and "-c" in said.split("\0"):
                found[int(rank)] = int(entry)
    return found


@pytest.mark.parametrize("shot", ["explicit_apic", "surface_tension"], indirect=True)
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for ranks in /proc")
def test_a_rank_that_dies_ends_all_and_nothing_finished_is_cooked_again(mpiexec, shot, tmp_path):
    """Killed in the middle: the others end, a message says how to go on, and the frames that are there stay as they are."""
    out = tmp_path / "out"
    line = [sys.executable, "-c", BEGIN, "cook", str(shot), "--out", str(out), "--ranks", "2", "--frames", "1-40"]
    running = subprocess.Popen(
        line, env={**os.environ, "NUMBA_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    record = out / "r001" / "frames" / "0002.commit.json"
    while not record.exists() and running.poll() is None:
        time.sleep(0.05)
    ranks = rank_processes(shot)
    os.kill(ranks[1], signal.SIGKILL)
    said = running.communicate(timeout=60)[0]
    assert running.returncode == 5 and "one of the 2 ranks was ended from outside" in said and "--ranks 2 --resume" in said
    assert not rank_processes(shot)
    frames = out / "r001" / "frames"
    there = {path.name: path.stat().st_mtime_ns for path in frames.iterdir() if path.name[0].isdigit()}
    last = len(there) + 1
    code, said = cook(shot, "--out", out, "--ranks", "2", "--resume", "--frames", f"1-{last}")
    assert code == 0 and "cooked 1 frame in" in said, said
    now = {path.name: path.stat().st_mtime_ns for path in frames.iterdir()}
    assert {name: now[name] for name in there} == there and len(now) == last
    assert cook(shot, "--out", tmp_path / "alone", "--frames", f"1-{last}")[0] == 0
    assert_alike(tmp_path / "alone", out, last)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="ranks watch their starter where Linux lets them")
def test_ranks_end_with_the_process_that_started_them(mpiexec, shot, tmp_path):
    """Killed without a chance to say so, it leaves no rank running, and the folder can be cooked on."""
    out = tmp_path / "out"
    line = [sys.executable, "-c", BEGIN, "cook", str(shot), "--out", str(out), "--ranks", "2", "--frames", "1-4000"]
    running = subprocess.Popen(
        line, env={**os.environ, "NUMBA_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        record = out / "r001" / "frames" / "0001.commit.json"
        while not record.exists() and running.poll() is None:
            time.sleep(0.05)
        assert len(rank_processes(shot)) == 2
        running.kill()
        running.wait()
        until = time.monotonic() + 20.0
        while rank_processes(shot) and time.monotonic() < until:
            time.sleep(0.05)
        left = rank_processes(shot)
    finally:
        for process in rank_processes(shot).values():
            os.kill(process, signal.SIGKILL)
    assert not left
    last = len(list((out / "r001" / "frames").glob("[0-9]*.commit.json"))) + 1
    code, said = cook(shot, "--out", out, "--ranks", "2", "--resume", "--frames", f"1-{last}")
    assert code == 0 and "cooked 1 frame in" in said, said


def test_what_is_not_shared_is_refused_before_the_cook(mpiexec, shot, tmp_path):
    code, said = cook(shot, "--out", tmp_path / "out", "--ranks", "2", "--set", "fall.substeps=incompressible")
    assert code != 0 and "project_velocity" in said and said.count("or solve on one rank") == 1
    assert not (tmp_path / "out" / "r001").exists()


@pytest.mark.parametrize("preset", ["explicit_apic", "implicit_apic"])
def test_adhesion_and_forces_on_colliders_are_those_of_one_process(preset, mpiexec, tmp_path):
    """A bar between a floor and a roof that stick, across the borders of ranks: places to rounding, forces to a millionth."""
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=FRAMES)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=3e4)
    bar = graph.add(
        "emit_box", "bar", material=matter, size=(3.2, 0.3, 0.3), centre=(0.0, 0.2, 0.0), velocity=(2.0, -1.0, 0.0), jitter=0.1
    )
    floor = graph.add("collide_plane", "floor", adhesion=3e3, friction=0.3)
    roof = graph.add("collide_box", "roof", centre=(0.0, 0.6, 0.0), size=(3.0, 0.5, 0.5), adhesion=5e3, friction=0.3)
    bodies, substeps = [floor, roof], {"preset": preset}
    solve = graph.add("solve", "fall", sources=[bar], colliders=bodies, precision="double", substeps=substeps, contact_forces=True)
    graph.add("write_cache", "cache", particles=solve)
    graph.save(tmp_path / "shot.json")
    told = []
    for ranks in ((), ("--ranks", 2), ("--ranks", 3)):
        out = tmp_path / f"out{len(told)}"
        code, said = cook(tmp_path / "shot.json", "--out", out, "--events", "jsonl", *ranks)
        assert code == 0, said
        events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        told.append([each["force"] + each["torque"] for each in events if each["event"] == "contact_forces"])
        assert_alike(tmp_path / "out0", out, FRAMES)
    assert len(told[0]) == FRAMES - 1 and np.abs(told[0]).max() > 1.0
    for other in told[1:]:
        assert np.abs(np.subtract(other, told[0])).max() < 1e-6 * np.abs(told[0]).max()


def test_painted_parameters_and_updates_are_those_of_one_process(mpiexec, tmp_path):
    """A bar whose stiffness and density follow an attribute, of which one is painted while it runs."""
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=FRAMES)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=3e4)
    matter = graph.add("material_over_attribute", "heavy", material=matter, parameter="density", attribute="fat")
    matter = graph.add("material_over_attribute", "soft", material=matter, attribute="paint")
    bar = graph.add(
        "emit_box", "bar", material=matter, size=(3.2, 0.3, 0.3), centre=(0.0, 0.2, 0.0), velocity=(2.0, -1.0, 0.0), jitter=0.1
    )
    fat = graph.add(
        "set_attribute", "fat", particles=bar, attribute="fat", field=graph.add("field_ramp", "along", direction=(1, 0, 0))
    )
    right = graph.add("field_shape", "right", shape="half_space", rotation=(0.0, 0.0, 90.0))
    paint = graph.add("update_attribute", "paint", mask=right, attribute="paint", value=0.3, combination="add", each_substep=True)
    solve = graph.add(
        "solve", "fall", sources=[fat], colliders=[graph.add("collide_plane", "floor")], updates=[paint], precision="double"
    )
    graph.add("write_cache", "cache", particles=solve)
    graph.save(tmp_path / "shot.json")
    for ranks in (1, 2, 3):
        code, said = cook(tmp_path / "shot.json", "--out", tmp_path / f"out{ranks}", *(("--ranks", ranks) if ranks > 1 else ()))
        assert code == 0, said
        assert_alike(tmp_path / "out1", tmp_path / f"out{ranks}", FRAMES)


def test_attachments_are_those_of_one_process(mpiexec, tmp_path):
    """A bar that is tied as a whole and breaks off, across the borders of ranks: the same places and events."""
    graph = Graph(cell_size=0.1, fps=24.0, start=1, end=FRAMES)
    matter = graph.add("material_neo_hookean", "matter", youngs_modulus=3e4)
    bar = graph.add(
        "emit_box", "bar", material=matter, size=(3.2, 0.3, 0.3), centre=(0.0, 0.2, 0.0), velocity=(0.4, -0.2, 0.0), jitter=0.1
    )
    push = graph.add(
        "force_acceleration", "push", acceleration=(0.0, 100.0, 0.0), mask=graph.add("field_shape", "middle", radius=0.4)
    )
    pin = graph.add("force_attach", "pin", stiffness=1e5, breaking_force=700.0)
    solve = graph.add("solve", "fall", sources=[bar], forces=[push, pin], precision="double")
    graph.add("write_cache", "cache", particles=solve)
    graph.save(tmp_path / "shot.json")
    told = []
    for ranks in ((), ("--ranks", 2), ("--ranks", 3)):
        out = tmp_path / f"out{len(told)}"
        code, said = cook(tmp_path / "shot.json", "--out", out, "--events", "jsonl", *ranks)
        assert code == 0, said
        events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        told.append([[*each["force"], *each["tied"], *each["broken"]] for each in events if each["event"] == "attachments"])
        assert_alike(tmp_path / "out0", out, FRAMES)
    assert len(told[0]) == FRAMES - 1 and sum(each[4] for each in told[0]) == 2304
    for other in told[1:]:
        assert np.abs(np.subtract(other, told[0])).max() < 1e-6 * np.abs(told[0]).max()
