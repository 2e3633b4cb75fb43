"""Substeps that a device runs by itself: those of one at a time to the bit, and the CPU looks once for a batch."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes import execute, load_graph
from mpm_nodes.data import Collider, CollisionRule, Transfer, WallRule, Walls
from mpm_nodes.graph.time.clock import rest_of_tick
from mpm_nodes.kernels.cuda import device as cuda_device
from mpm_nodes.kernels.level_sets.level_set import BOX, SPHERE, PosedLevelSets
from mpm_nodes.nodes.forces import force_acceleration
from mpm_nodes.solver.collider_shapes import time_to_travel
from mpm_nodes.solver.device.batches import SUBSTEPS, Batches, choice_kernel
from mpm_nodes.solver.step_lengths import even_step, strain_step, uses_up, wave_step
from mpm_nodes.solver.surroundings import push
from tests.kernels.cuda.emulated import COMPILER, Emulated
from tests.solver import fusion_scenes as scenes

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


class Watched(Emulated):
    """One that counts how often the host waits for it, and how many substeps are recorded."""

    def __init__(self, folder):
        super().__init__(folder)
        self.reads = 0

    def download(self, buffer, array):
        self.reads += 1
        super().download(buffer, array)


def run(folder, laws, seconds, ahead, recipe="explicit_apic", **around):
    """Return a solver after a span that it went through in batches or one by one, its substeps with what limits them, and reads."""
    device = Watched(folder)
    solver = scenes.solver(laws, recipe, device=device, **around)
    solver.step_context.dt_max = 2e-3
    end, told, reads = seconds, [], []
    while end - solver.time > 1e-12:
        before = device.reads
        length = solver.step(time_left=end - solver.time, keep=False, ahead=end if ahead else None)
        told.append((length, *solver.step_context.report.of_substeps().values(), solver.particles.drift))
        reads.append(device.reads - before)
    return solver, told, reads


def still():
    """Bodies and walls that stand."""
    slab = PosedLevelSets(BOX, (0.6, 0.3, 0.6), np.zeros(1), None, np.array([[0.25, -0.29, 0.25]]))
    ball = PosedLevelSets(SPHERE, (0.1,), np.zeros(1), None, np.array([[0.55, 0.25, 0.25]]))
    sides = (WallRule.SLIP, WallRule.OPEN, WallRule.OPEN, WallRule.OPEN, WallRule.STICKY, WallRule.OPEN)
    bodies = (Collider("slab", CollisionRule.SEPARATE, 0.4, slab), Collider("ball", CollisionRule.STICKY, 0.0, ball))
    return {"colliders": bodies, "walls": Walls((-0.02, -2.0, 0.0), (2.0, 2.0, 2.0), sides, 0.2)}


CASES = {
    "one law": (("neo_hookean",), {}),
    "two laws": (scenes.LEAN, {}),
    "viscous, which looks at its density": (scenes.MIXED, {}),
    "bodies and walls that stand": (scenes.LEAN, still()),
    "cubic splines": (("fixed_corotated",), {"recipe": scenes.preset(kernel="cubic")}),
    "FLIP": (("fixed_corotated",), {"recipe": scenes.preset(transfer=Transfer.FLIP.value)}),
}


@pytest.mark.parametrize("case", CASES)
def test_batches_are_single_substeps_to_the_bit(case, device_folder):
    """Lengths, what limits them, drifts and all attributes; the CPU reads a batch once, and nothing for its other substeps."""
    laws, around = CASES[case]
    one, alone, _ = run(device_folder, laws, 0.05, ahead=False, **around)
    many, told, reads = run(device_folder, laws, 0.05, ahead=True, **around)
    assert told == alone
    assert not scenes.differing(many, one)
    assert not one.batches.looks and not many.batches.because
    assert 2 <= many.batches.looks
    assert 0.6 * len(reads) <= reads.count(0) <= many.batches.looks * (SUBSTEPS - 1)


def test_a_batch_reads_less_than_its_substeps_one_by_one(device_folder):
    """Where nothing is due, 16 substeps are one read; the last substep of the span is led by the CPU."""
    _, _, reads = run(device_folder, ("neo_hookean",), 0.05, ahead=True)
    _, _, alone = run(device_folder, ("neo_hookean",), 0.05, ahead=False)
    assert reads[1:17] == [1] + 15 * [0] and alone[1:17] == 16 * [1]


def test_substeps_past_the_last_change_nothing(device_folder):
    """All arrays of particles and of the grid, when the batch has ended before its first substep."""
    solver, _, _ = run(device_folder, scenes.LEAN, 0.02, ahead=True, **still())
    graph, device = solver.batches.graph, solver.residency.device
    buffers = {id(array): solver.residency.on_device(array) for array, _ in graph.touched}
    before = {name: buffer.copy() for name, buffer in buffers.items()}
    launched = dict(device.launches)
    for why, changes in ((1, False), (0, True)):
        head = np.zeros(6, np.int32)
        head[3] = why
        device.upload(graph.buffer, head)
        device.upload(graph.numbers, solver.batches.numbers(1.0, np.inf))
        device.replay(graph.recorded)
        assert any(not np.array_equal(before[name], buffer) for name, buffer in buffers.items()) == changes
    assert device.launches["choose_dt"] - launched["choose_dt"] == 2 * SUBSTEPS
    assert len(buffers) > 8


def test_lengths_are_chosen_as_on_the_cpu(device_folder):
    """To the bit, over the ends of ticks and frames, with a shortest step and without waves."""
    random, device = np.random.default_rng(3), Emulated(device_folder)
    kernel = device.kernel(choice_kernel(), "choose_dt")
    places, ended = np.zeros(10, np.int32), 0
    for _ in range(300):
        begin, tick = random.uniform(0.0, 2.0), 10.0 ** random.uniform(-4.0, 0.0)
        time, end = begin + random.choice([0.0, random.uniform(0.0, 2.0) * tick]), begin + 4.0 * tick
        speed, gradient, wave = (random.choice([0.0, 10.0 ** random.uniform(-3.0, 3.0)]) for _ in range(3))
        dt_min, factor = random.choice([0.0, 10.0 ** random.uniform(-6.0, -2.0)]), random.choice([1.0, 0.5])
        numbers = [time, end, begin, tick, dt_min, 0.01, np.inf, factor, 9.81, 0.05, 0.03, 0.5, np.inf, 2.5, 16.0]
        buffer = np.zeros(6 + 2 * SUBSTEPS, np.int32)
        device.launch(kernel, 1, [buffer, np.array([*numbers, speed, gradient, wave]), places, np.int32(1), np.int32(0)])
        limits = time_to_travel(0.05, speed, 9.81), strain_step(gradient, 0.5), wave_step(wave, speed, 0.03), 0.01
        left = end - time
        dt = even_step(max(factor * min(limits), dt_min), left, tick, rest_of_tick(tick, time - begin), dt_min)
        if buffer[2]:
            assert (buffer[6:8].view(float)[0], buffer[4:6].view(float)[0]) == (dt, time + dt)
            assert buffer[:2].tolist() == [np.float32(dt).view(np.int32), 1]
        else:
            assert uses_up(dt, left) and buffer[1] == 0
            ended += 1
    assert 20 < ended < 200


def moving():
    slab = PosedLevelSets(BOX, (0.6, 0.3, 0.6), np.array([0.0, 1.0]), None, np.array([[0.25, -0.29, 0.25], [0.25, 0.2, 0.25]]))
    return {"colliders": (Collider("slab", CollisionRule.SEPARATE, 0.4, slab),)}


ALONE = {
    "bodies or walls move": (moving(), "explicit_apic"),
    "streams bring particles": (scenes.SCENES["stream"], "explicit_apic"),
    "gravity has keys": ({"gravity": lambda time: (0.0, -9.81, 0.0)}, "explicit_apic"),
    "no loop measures what limits the time step": ({"fuse": False}, "explicit_apic"),
    "gather has keys": (
        {},
        scenes.preset(flip_fraction={"keys": [[0, 0.9, "linear"], [9, 1.0, "linear"]]}, transfer=Transfer.FLIP.value),
    ),
    "gather takes numbers that follow the time step": (
        {},
        {"preset": "explicit_apic", "set": {"transfer": Transfer.FLIP.value, "gather.per_substep": False}},
    ),
}


@pytest.mark.parametrize("because", ALONE)
def test_what_batches_do_not_hold_is_told(because, device_folder):
    around, recipe = ALONE[because]
    solver, _, _ = run(device_folder, ("neo_hookean",), 0.006, ahead=True, recipe=recipe, **around)
    assert because in solver.batches.because and not solver.batches.looks
    assert solver.batches.news() == solver.batches.because and not solver.batches.news()


def test_forces_run_one_at_a_time(device_folder):
    device = Watched(device_folder)
    solver = scenes.solver(("neo_hookean",), device=device)
    push(solver, [force_acceleration(acceleration=(0.0, 3.0, 0.0))])
    solver.advance(0.006)
    assert solver.batches.because == "apply_forces: forces are wired"


def cook(device, batches, monkeypatch):
    """Return the events of substeps of a graph's frames, and its particles in the end."""
    monkeypatch.setattr(cuda_device, "open_device", lambda: device)
    if not batches:
        monkeypatch.setattr(Batches, "next", lambda self, end: None)
    nodes = {
        "jelly": {"type": "material_library", "knobs": {"name": "jelly"}},
        "block": {"type": "emit_box", "knobs": {"size": [0.3, 0.3, 0.3]}, "inputs": {"material": "jelly"}},
        "fall": {"type": "solve", "knobs": {"device": "cuda"}, "inputs": {"sources": ["block"]}},
    }
    graph = {"format": "mpm_nodes.graph", "version": 1, "settings": {"cell_size": 0.1, "fps": 6.0}, "nodes": nodes}
    events = []
    found = execute(load_graph(graph), (1, 3), on_event=events.append)
    told = [{**event, "time": 0.0} for event in events if event["event"] == "substep"]
    return told, found.outputs["fall"]["particles"]


def test_frames_are_those_of_single_substeps(device_folder, monkeypatch):
    """Of a cook: events of substeps and particles, over ticks and frames."""
    watched = Watched(device_folder)
    told, particles = cook(watched, True, monkeypatch)
    assert watched.launches["choose_dt"] >= SUBSTEPS
    alone, others = cook(Watched(device_folder), False, monkeypatch)
    assert told == alone and len(told) > 20
    assert all(np.array_equal(particles[name], others[name]) for name in ("position", "velocity"))
