"""Forces of solves on a device: traced from the CPU's functions they give the same, and what cannot be traced pushes on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes.data import GraphSettings, Moment
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.kernels.cuda import device as cuda_device
from mpm_nodes.nodes.fields import field_noise, field_shape
from mpm_nodes.nodes.fields_of_particles import field_attribute
from mpm_nodes.nodes.forces import force_acceleration, force_air, force_attraction, force_vortex, force_wind
from mpm_nodes.solver.forces import push_obstacle
from mpm_nodes.solver.surroundings import push
from tests.kernels.cuda.emulated import COMPILER, Emulated
from tests.solver import fusion_scenes as scenes
from tests.solver.solver_scenes import shot

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
SUBSTEPS = 4

PUSH, BALL = (3.0, 20.0, -5.0), field_shape(radius=0.3, falloff=0.2)
FORCES = {
    "push": [force_acceleration(acceleration=PUSH)],
    "masks and limits": [
        force_vortex(strength=30.0, inward=10.0, speed_limit=0.8),
        force_attraction(centre=(0.0, 1.0, 0.0), strength=20.0, falloff=2.0, mask=BALL),
    ],
    "drags": [
        force_wind(velocity=(1.0, 0.0, 0.0), drag=30.0),
        force_wind(velocity=(0.0, 2.0, 0.0), drag=30.0, quadratic=True, speed_limit=1.0),
    ],
    "what particles have": [force_acceleration(acceleration=PUSH, mask=field_attribute(attribute="stiffness_scale"))],
}
OF_THE_CPU = {
    "an integer": [force_acceleration(acceleration=PUSH, mask=field_noise(GraphSettings(), size=0.2))],
    "presses on surfaces": [force_air(velocity=(9.0, 0.0, 0.0))],
    "'id' of particles": [force_wind(velocity=PUSH, drag=1e-3, mask=field_attribute(attribute="id"))],
}


def both_ways(folder, forces):
    """Return a scene with forces after some substeps on the CPU and on the device, and what rounding allows."""
    runs = [scenes.solver(scenes.LEAN, **each) for each in ({}, {"device": Emulated(folder)})]
    for run in runs:
        push(run, forces)
    allowed = scenes.rounding(runs[0], SUBSTEPS, scenes.DT)
    for number in range(SUBSTEPS):
        for run in runs:
            run.step(scenes.DT, keep=number == SUBSTEPS - 1)
        if number == 1:
            moved = list(runs[1].residency.moved)
    return *runs, allowed, moved


@pytest.mark.parametrize("forces", FORCES.values(), ids=FORCES)
def test_forces_push_as_on_the_cpu(forces, device_folder):
    """Nothing is copied for them but numbers; what they gave is told to the rounding of each particle's momentum and energy."""
    here, there, allowed, moved = both_ways(device_folder, forces)
    assert there.residency.device.launches["push"] == SUBSTEPS and push_obstacle(there.particles, forces, Moment(0.0)) == ""
    assert there.residency.moved == moved
    wanted, found = scenes.attributes(here), scenes.attributes(there)
    for name, values in wanted.items():
        assert np.abs(values.astype(float) - found[name]).max() <= scenes.WITHIN * allowed.get(name, 0.0), name
    momentum = float((wanted["mass"] * np.linalg.norm(wanted["velocity"], axis=1)).sum())
    energy = float((0.5 * wanted["mass"] * (wanted["velocity"] ** 2).sum(axis=1)).sum())
    for name, size in (("impulse", momentum), ("work", energy)):
        gave, told = (np.array(run.step_context.report["forces"][name]) for run in (here, there))
        assert np.abs(gave).max() > 1e-4 * size
        np.testing.assert_allclose(told, gave, rtol=0, atol=scenes.WITHIN * np.finfo(np.float32).eps * size)
    assert there.step_context.strongest == pytest.approx(here.step_context.strongest, rel=1e-4)


@pytest.mark.parametrize(("says", "forces"), OF_THE_CPU.items(), ids=OF_THE_CPU)
def test_what_has_no_kernel_pushes_on_the_cpu(says, forces, device_folder):
    """All forces do then; why is told."""
    here, there, allowed, _ = both_ways(device_folder, forces)
    assert says in push_obstacle(there.particles, forces, Moment(0.0))
    assert "push" not in there.residency.device.launches
    wanted, found = scenes.attributes(here), scenes.attributes(there)
    for name, values in wanted.items():
        assert np.abs(values.astype(float) - found[name]).max() <= scenes.WITHIN * allowed.get(name, 0.0), name


def test_a_cook_on_a_gpu_pushes_by_keys_and_says_what_the_cpu_does(device_folder, monkeypatch):
    """Forces that keys turn push there like those of the CPU; of noise a note says that it does not."""
    device = Emulated(device_folder)
    monkeypatch.setattr(cuda_device, "open_device", lambda: device)
    cooked = {}
    for way in ("cpu", "cuda", "noise"):
        graph = shot(end=2, dt_max=5e-3, material="material_neo_hookean", device="cpu" if way == "cpu" else "cuda")
        keys = {"keys": [[1, [0.0, 4.0, 0.0], "linear"], [2, [0.0, 12.0, 0.0], "linear"]]}
        lift = [graph.add("force_acceleration", "lift", acceleration=keys)]
        if way == "noise":
            lift.append(graph.add("force_wind", "wind", field=graph.add("field_noise", "gusts", kind="curl"), drag=4.0))
        graph.nodes["sim"].connect("forces", lift)
        events = []
        cooked[way] = execute(graph, on_event=events.append).outputs["sim"]["particles"]
        notes = [event["message"] for event in events if event["event"] == "note"]
        assert sum("forces push on the CPU" in note for note in notes) == (way == "noise")
    assert device.launches["push"] > 3
    np.testing.assert_allclose(cooked["cuda"]["velocity"], cooked["cpu"]["velocity"], rtol=0, atol=1e-5)
    assert np.abs(cooked["noise"]["velocity"] - cooked["cpu"]["velocity"]).max() > 1e-3
