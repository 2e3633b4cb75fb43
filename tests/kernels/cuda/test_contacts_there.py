"""Contacts that kernels for GPUs find and meet, here compiled for the CPU: the numbers of the CPU's own kernels, to rounding."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from mpm_nodes.data import Collider, Walls
from mpm_nodes.kernels.collisions import pairs, paths
from mpm_nodes.solver.colliders import ColliderSet
from mpm_nodes.solver.device.contacts import kernels, on_host_because

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "solver")]
import fusion_scenes as scenes
import test_device_contacts as elsewhere
from contact_scenes import BALL, BOXED, FLOOR, GROWING, ROUND, SCENES, SEPARATE, SIDES, STILL, TURNING
from emulated import COMPILER, Emulated

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


SMALLEST = 0.17
"""Radius of the most bent surface [m]."""


@pytest.mark.parametrize("scene", SCENES)
def test_contacts_are_those_of_the_cpu(scene, device_folder):
    """Attributes, and forces on bodies, to rounding.

    Where a path touches is halved seven times: what rounds otherwise may end a half away, where a bent surface has another normal.
    One particle in a hundred may be such a one, and is held to that.
    """
    device = Emulated(device_folder)
    there, allowed = elsewhere.ran(SCENES[scene](), device)
    here, _ = elsewhere.ran(SCENES[scene]())
    on_the_cpu = int(scene == "passing a key")  # the substep in which it does
    assert device.launches["list_contacts"] == device.launches["collide_and_tell"] == elsewhere.SUBSTEPS - on_the_cpu
    assert ("pack_parts" in device.launches) == on_the_cpu
    assert "colliders" not in SCENES[scene]() or np.abs(here["force"]).max() > 1.0
    speed = float(np.abs(here["velocity"]).max())
    half = 1.05 * speed * scenes.DT / 128.0
    halved = {"velocity": speed * half / SMALLEST, "position": half}
    assert there.keys() == here.keys()
    for name, values in here.items():
        assert values.shape == there[name].shape, name
        apart = np.abs(values.astype(float) - there[name])
        apart = apart.max(axis=tuple(range(1, apart.ndim))) if len(apart) else np.zeros(1)
        bar = scenes.WITHIN * allowed.get(name, 0.0)
        others = apart > bar
        assert others.mean() <= (0.01 if name in halved else 0.0), name
        assert apart.max() <= bar + halved.get(name, 0.0), name


def test_bodies_that_stand_still_are_copied_once(device_folder):
    """After the first substeps nothing goes up or comes down for them."""
    around = {"colliders": SCENES["still"]()["colliders"], "walls": Walls((0.0, -2.0, -2.0), (2.0, 2.0, 2.0), SIDES[:3] * 2, 0.2)}
    run = scenes.solver(("fixed_corotated",), **around, device=Emulated(device_folder))
    for number in range(4):
        run.step(1e-5, keep=False)
        if number == 1:
            before = list(run.residency.moved)
    assert run.residency.moved == before


def test_a_body_that_moves_copies_what_blocks_near_it_see(device_folder):
    """A few hundred bytes a block and body, and no particles or nodes: less than half of what the CPU would be sent."""
    around = {"colliders": SCENES["turning"]()["colliders"]}
    moved = []
    for because in ("", "asked for"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mpm_nodes.solver.colliders.on_host_because", lambda colliders, because=because: because)
            run = scenes.solver(("fixed_corotated",), **around, device=Emulated(device_folder))
            run.step(scenes.DT, keep=False)
            before = np.array(run.residency.moved)
            run.step(scenes.DT, keep=False)
            moved.append(np.array(run.residency.moved) - before)
    assert moved[0][1] == 0
    assert 0 < moved[0][0] < 0.5 * moved[1].sum()


# ---------------------------------------------------------------- one distance
SAMPLED = """
extern "C" __global__ void sample_at(const int* pairs, const float* reals, const int* table, const float* coarse,
                                     const float* values, const float* speeds, const float* coarse_speeds, const float* places,
                                     float h, float* found, int count) {
    const int p = blockIdx.x * THREADS + threadIdx.x;
    if (p >= count) return;
    const Seen seen = {pairs, reals};
    const Vec o = {places[3 * p], places[3 * p + 1], places[3 * p + 2]}, e = placed(seen, o, 1.0f);
    const Met met = sample(seen, e, 1.0f, {table, coarse, values, speeds, coarse_speeds, 1.0f / h});
    const Vec n = world_normal(seen, 1.0f, met.g);
    found[4 * p] = met.phi, found[4 * p + 1] = n.x, found[4 * p + 2] = n.y, found[4 * p + 3] = n.z;
}
"""
SHAPES = {
    "crystal": STILL,
    "turned crystal": TURNING,
    "growing crystal": GROWING,
    "box": lambda: BOXED,
    "capsule": lambda: ROUND,
    "plane": lambda: FLOOR,
    "ball": lambda: BALL,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_distances_and_normals_are_those_of_the_cpu(shape, device_folder):
    """Around blocks at all depths, at random places and on nodes, where level sets have planes of voxels.

    Distances up to eight cells to 4e-6 cells, four units of the last place there. Normals to 2e-5 but for one place in a thousand:
    a level set's jumps between voxels, and an edge belongs to either side.
    """
    h, device = 0.1, Emulated(device_folder)
    colliders = ColliderSet((Collider("body", SEPARATE, 0.0, SHAPES[shape]()),))
    colliders.pose(0.0, 0.02)
    walls, bodies = colliders.shapes()
    random = np.random.default_rng(5)
    coord = np.stack(np.meshgrid(*(np.arange(-2, 3),) * 3, indexing="ij"), -1).reshape(-1, 3).astype(np.int32)
    integers = np.zeros((len(coord), pairs.PAIR_INTEGERS), np.int32)
    reals = np.zeros((len(coord), pairs.PAIR_REALS), np.float32)
    blocks = np.arange(len(coord))
    pairs.write_pairs((blocks, 0 * blocks), (coord, 1.5, 1), (h, np.zeros(3), 0.02), walls, bodies, (integers, reals))
    nodes = np.stack(np.meshgrid(*(np.arange(4) - 1.5,) * 3, indexing="ij"), -1).reshape(-1, 3)
    text = kernels("contacts") + SAMPLED
    off, near = [], []
    for k in blocks:
        places = np.concatenate([nodes, random.uniform(-4.0, 4.0, (64, 3))]).astype(np.float32)
        found = np.zeros((len(places), 4), np.float32)
        given = [integers[k].copy(), reals[k].copy(), *bodies[4:], places]
        device.launch(device.kernel(text, "sample_at"), 1, [*given, np.float32(h), found, np.int32(len(places))])
        wanted = np.empty((len(places), 1, 4))
        paths.distances_at(h * (4.0 * coord[k] + 1.5 + places.astype(float)), bodies, wanted)
        off.append(np.abs(found - wanted[:, 0] / [h, 1.0, 1.0, 1.0]))
        near.append(np.abs(wanted[:, 0, 0]) < 8.0 * h)
    off, near = np.concatenate(off), np.concatenate(near)
    assert near.mean() > 0.3 and off[near, 0].max() < 4e-6
    assert (off[:, 1:].max(axis=1) > 2e-5).mean() <= 1e-3


# ---------------------------------------------------------------- what the CPU does
@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ("bodies", "plates"),
        ("plate", "plates"),
        ("rigid", "move by themselves"),
    ],
)
def test_bodies_that_the_device_does_not_meet_are_named(scene, words, device_folder):
    """And they are met on the CPU, which `test_device_contacts` checks."""
    run = scenes.solver(scenes.MIXED, **elsewhere.SCENES[scene], device=Emulated(device_folder))
    assert re.search(f"on emulated; contacts are found on the CPU, since .*{words}", run.runs_on)
    run.step(scenes.DT, keep=False)
    assert words in on_host_because(run.colliders)
    assert "list_contacts" not in run.residency.device.launches
