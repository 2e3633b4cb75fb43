"""`follow_density` of solves on a device: what cells say of the room in them, and volumes of liquids that follow it."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.kernels.transfers import room
from mpm_nodes.solver.stages import density
from tests.kernels.cuda.emulated import COMPILER, Emulated
from tests.solver import fusion_scenes as scenes

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
SUBSTEPS = 12
SCENES = {"free": {}, "ball": {"colliders": scenes.SCENES["bodies"]["colliders"][1:]}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Let it look in every second substep of these scenes."""
    monkeypatch.setattr(density, "WAIT", 0.08)


def both_ways(folder, scene, **options):
    """Return a scene with a liquid after some substeps on the CPU and on the device, and what rounding allows."""
    runs = [scenes.solver(scenes.MIXED, **SCENES[scene], **options, **each) for each in ({}, {"device": Emulated(folder)})]
    allowed = scenes.rounding(runs[0], SUBSTEPS, scenes.DT) | {"room": 4.0 * np.finfo(np.float32).eps}
    for number in range(SUBSTEPS):
        for run in runs:
            run.step(scenes.DT, keep=number == SUBSTEPS - 1)
    return *runs, allowed


@pytest.mark.parametrize("scene", SCENES)
def test_liquids_follow_as_on_the_cpu(scene, device_folder):
    """Random matter, in the air and beside a body: the liquid takes over differences that without it stay, as on the CPU."""
    here, there, allowed = both_ways(device_folder, scene)
    without = both_ways(device_folder, scene, substeps=scenes.preset(density_rate=0.0))[0]
    launches = there.residency.device.launches
    looked = launches["follow_room"]
    assert looked > 1 and all(launches[name] == looked for name in ("fill_room", "write_room", "leave_surface", "gather_room"))
    wanted, found, free = map(scenes.attributes, (here, there, without))
    for name, values in wanted.items():
        assert np.abs(values.astype(float) - found[name]).max() <= scenes.WITHIN * allowed.get(name, 0.0), name
    followed = np.abs(wanted["volume_change"] - free["volume_change"]).max()
    assert followed > 100.0 * scenes.WITHIN * allowed["volume_change"]
    told = [run.step_context.report["density"]["densest"] for run in (here, there)]
    assert told[0] > 0.5 and told[1] == pytest.approx(told[0], rel=1e-4)


def test_cells_and_particles_see_the_same_room(device_folder):
    """What is written to cells and gathered of them, at a look of its own."""
    run = scenes.solver(scenes.MIXED, device=Emulated(device_folder))
    run.step(scenes.DT, keep=True)
    particles, grid = run.particles, run.grid
    run._prepare()
    on_device = density._on_device(particles, grid)
    told = on_device.fill(None)
    on_device.follow(density.liquids_of(particles), (1.0, 0.1, 0.01))
    cells, seen = grid.array("room").copy(), particles.rows("room").copy()
    assert density.fill_cells(particles, grid, run.colliders) == pytest.approx(told, rel=1e-4)
    wanted = grid.array("room").reshape(-1, 4)[: 64 * grid.count, :2]
    np.testing.assert_allclose(cells.reshape(-1, 4)[: 64 * grid.count, :2], wanted, rtol=0, atol=1e-5)
    assert (wanted[:, 0] < -0.01).any() and (wanted[:, 0] > 0.0).any() and wanted[:, 0].max() <= np.float32(room.MOST_ROOM)
    density.gather(particles, grid, density.Kernel.QUADRATIC, density.Take("room", (("room", 0), ("room", 1), None)))
    np.testing.assert_allclose(seen, particles.rows("room"), rtol=0, atol=1e-5)


def test_looks_copy_no_column(device_folder):
    """Between sorts three numbers come down at a look, and nothing goes up."""
    run = scenes.solver(("liquid",), device=Emulated(device_folder))
    for number in range(SUBSTEPS):
        run.step(scenes.DT, keep=False)
        if number == 3:
            moved, looked = list(run.residency.moved), run.residency.device.launches["follow_room"]
    assert run.residency.device.launches["follow_room"] > looked > 0
    assert run.residency.moved == moved
