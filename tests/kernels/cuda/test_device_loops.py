"""Solves whose loops run as kernels for GPUs, here compiled for the CPU: the same numbers to rounding."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mpm_nodes.commands import cook
from mpm_nodes.data import ATTRIBUTES, MpmNodesError, Transfer
from mpm_nodes.kernels.composition.fragments import Lanes
from mpm_nodes.kernels.cuda.loop import header, loop_kernel
from mpm_nodes.nodes.forces import force_acceleration
from mpm_nodes.nodes.solve_needs import ComputeDevice
from mpm_nodes.solver.device import loops
from mpm_nodes.solver.device.choice import refuse_large
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import push
from tests.kernels.cuda.emulated import COMPILER, Emulated
from tests.physics.foam.tearing_scenes import MIXED, blob
from tests.solver import fusion_scenes as scenes

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def both_ways(folder, laws, scene="free", substeps=6, recipe="explicit_apic", keep=False):
    """Return attributes of a scene on the CPU and on the device, what rounding allows, and the device."""
    around = scenes.surroundings(laws) if scene == "surrounded" else scenes.SCENES[scene]
    device = Emulated(folder)
    here, there = (scenes.solver(laws, recipe, **around, **each) for each in ({}, {"device": device}))
    allowed = scenes.rounding(here, substeps, scenes.DT)
    for number in range(substeps):
        for run in (here, there):
            run.step(scenes.DT, keep=keep or number == substeps - 1)
    return scenes.attributes(here), scenes.attributes(there), allowed, device


def check(here, there, allowed):
    """Hold attributes to what rounding allows; those that no arithmetic touches are the same."""
    assert here.keys() == there.keys()
    for name, values in here.items():
        assert values.shape == there[name].shape, name
        apart = float(np.abs(values.astype(float) - there[name]).max(initial=0.0))
        assert apart <= scenes.WITHIN * allowed.get(name, 0.0), name


@pytest.mark.parametrize("laws", scenes.MIXTURES.values(), ids=scenes.MIXTURES)
def test_laws_move_as_on_the_cpu(laws, device_folder):
    here, there, allowed, device = both_ways(device_folder, laws)
    check(here, there, allowed)
    assert device.launches["particles"] == 2 * 6 * len(laws)
    assert device.launches["divide_by_mass"] == 6


def test_keyed_materials_are_traced_once(device_folder, monkeypatch):
    """Their coefficients are those of each substep, and nothing else is made again, nor kept on the device."""
    made, device = [], Emulated(device_folder)
    monkeypatch.setattr(loops, "loop_kernel", lambda *given: made.append(given) or loop_kernel(*given))
    allocate = device.allocate
    monkeypatch.setattr(device, "allocate", lambda nbytes: made.append(nbytes) or allocate(nbytes))
    here, there = (SubstepSolver(scenes.stiffening_rubber(), **each) for each in ({}, {"device": device}))
    for frame in range(4):
        for run in (here, there):
            run.step(scenes.DT, frame=float(frame), keep=False)
        kept = kept if frame else len(made)
    assert len(made) == kept and there.particles.sort_age == 4
    a, b = (run.snapshot()["velocity"] for run in (here, there))
    assert np.abs(a).max() > 0.001 and np.abs(a - b).max() < 1e-5 * np.abs(a).max()


def test_single_stages_move_as_on_the_cpu(device_folder):
    """Without fusion every stage that loops over particles has a kernel of its own, and nothing is copied between them."""
    device = Emulated(device_folder)
    here, there = (scenes.solver(scenes.MIXED, fuse=False, **each) for each in ({}, {"device": device}))
    allowed = scenes.rounding(here, 4, scenes.DT)
    for number in range(4):
        for run in (here, there):
            run.step(scenes.DT, keep=number == 3)
        if number == 1:
            before = list(there.residency.moved)
    assert there.residency.moved == before
    check(scenes.attributes(here), scenes.attributes(there), allowed)
    of_all = {"rasterize", "add_stress_forces", "gather", "move_particles"}
    of_laws = {"compute_stress": 2, "update_deformation": 2, "apply_plasticity": 1}
    assert of_all | set(of_laws) < set(scenes.names(there))
    assert device.launches["particles"] == 4 * (len(of_all) + sum(of_laws.values()))


@pytest.mark.parametrize("scene", [name for name in scenes.SCENES if name != "free"])
def test_what_comes_between_loops_is_seen_on_both_sides(scene, device_folder):
    """Bodies, walls, a stream and a deleting side run on the CPU between loops: no value is stale on either side."""
    check(*both_ways(device_folder, scenes.MIXED, scene, substeps=8)[:3])


@pytest.mark.parametrize("kernel", ["quadratic", "cubic"])
@pytest.mark.parametrize("transfer", [Transfer.APIC.value, Transfer.FLIP.value])
def test_transfers_move_as_on_the_cpu(kernel, transfer, device_folder):
    recipe = scenes.preset(kernel=kernel, transfer=transfer)
    check(*both_ways(device_folder, ("fixed_corotated",), recipe=recipe)[:3])


def test_what_stays_on_the_device_is_not_copied(device_folder):
    """Without bodies nothing but the reductions leaves the device between two sorts, and nothing goes there."""
    run = scenes.solver(("neo_hookean",), device=Emulated(device_folder))
    for number in range(6):
        run.step(scenes.DT, keep=False)
        if number == 1:
            before = list(run.residency.moved)
    assert run.residency.moved == before
    run.snapshot(["velocity", "deformation"])
    down = run.residency.moved[1] - before[1]
    assert down > 0
    assert run.residency.moved[0] == before[0]
    run.step(scenes.DT, keep=False)
    assert run.residency.moved[0] == before[0], "looking does not change what the device has"


class Counting(Emulated):
    """One that notes its copies, with their bytes."""

    def __init__(self, folder):
        super().__init__(folder)
        self.copies = []

    def upload(self, buffer, array):
        self.copies.append(("up", array.nbytes))
        super().upload(buffer, array)

    def download(self, buffer, array):
        self.copies.append(("down", array.nbytes))
        super().download(buffer, array)


@pytest.mark.parametrize(("forces", "told"), [([], []), ([force_acceleration(acceleration=(0.0, 3.0, 0.0))], [("down", 20)])])
def test_a_substep_reads_few_numbers(forces, told, device_folder):
    """Of gravity, two laws and the choice of dt: all that it hangs on in one copy, and one of what forces gave; nothing goes up."""
    device = Counting(device_folder)
    run = scenes.solver(scenes.MIXED, device=device)
    push(run, forces)
    chosen = [run.step(time_left=1.0, keep=False) for _ in range(2)]
    device.copies.clear()
    chosen += [run.step(time_left=1.0, keep=False) for _ in range(3)]
    assert len(set(chosen)) > 3
    numbers = len(("drift", "displacement", "speed", "gradient", "wave"))
    assert device.copies == 3 * [*told, ("down", 4 * numbers * len(scenes.MIXED))]


def test_solves_that_cannot_run_there_are_refused():
    for options, text in (
        ({"dtype": np.float64}, "double precision runs on the CPU only"),
        ({"substeps": "implicit_apic"}, "they are implicit"),
        ({"checked": True}, "checked mode runs on the CPU only"),
    ):
        with pytest.raises(MpmNodesError, match=text):
            scenes.solver(("neo_hookean",), device="cuda", **options)


def test_auto_says_why_it_takes_the_cpu():
    run = scenes.solver(("neo_hookean",), device="auto")
    assert run.residency is None or run.runs_on.startswith("the solve runs on ")
    if run.residency is None:
        assert run.runs_on.startswith("the solve runs on the CPU: ")


def test_tearing_foam_moves_as_on_the_cpu(device_folder):
    """Marks of torn particles are integers, tension is taken from some of them, and stages between loops choose and remove.

    At corners of the cube cubic splines weigh down to 1e-7, and the quotient of force and mass is as good as the rounding of both:
    what the CPU's own single precision is off from double is allowed there, four times over.
    """
    device = Emulated(device_folder)
    ways = {}, {"device": device}, {"dtype": np.float64}
    here, _, _ = runs = [SubstepSolver(blob(*MIXED), "continuum_foam", cell_size=0.1, **way) for way in ways]
    allowed = scenes.rounding(here, 4, scenes.DT)
    for _ in range(4):
        for run in runs:
            run.step(scenes.DT, keep=True)
    wanted, found, right = map(scenes.attributes, runs)
    assert 10 < wanted["weak"].sum() < len(wanted["weak"]) - 10
    assert device.launches["particles"] == 2 * 4 * len(MIXED) and device.launches["update_grid_velocity"] == 4
    for name, values in wanted.items():
        apart, off = (np.abs(values.astype(float) - other[name]).reshape(len(values), -1).max(axis=1) for other in (found, right))
        bound = scenes.WITHIN * allowed.get(name, 0.0)
        assert (apart <= bound).mean() >= 0.98, name
        assert apart.max() <= max(bound, 4.0 * off.max()), name


@pytest.mark.phenomena("separate_bodies")
def test_separate_bodies_move_as_on_the_cpu(device_folder):
    """Contacts between bodies run on the CPU between loops."""
    check(*both_ways(device_folder, ("neo_hookean", "fixed_corotated"), recipe="separate_bodies")[:3])


def test_more_particles_than_fit_are_told():
    class Small:
        name, memory = "a small card", 640_000

    refuse_large(Small(), 1_900)
    with pytest.raises(MpmNodesError, match=r"a small card has 0.00064 GB free: about 2e\+03 fit"):
        refuse_large(Small(), 2_100)


def test_a_device_comes_back_to_a_mark_and_hands_over_to_the_cpu(device_folder):
    """What was saved in between is put back to the bit, and another solver goes on from it on the other side."""
    here, there = (scenes.solver(scenes.MIXED, **each) for each in ({}, {"device": Emulated(device_folder)}))
    for _ in range(2):
        there.step(scenes.DT, keep=True)
    come_back = there.mark()
    saved = there.particles.save()
    ends = []
    for _ in range(2):
        for _ in range(3):
            there.step(scenes.DT, keep=True)
        ends.append(scenes.attributes(there))
        come_back()
    assert all(np.array_equal(values, ends[1][name]) for name, values in ends[0].items())
    here.particles.restore(dataclasses.replace(saved, layout=None))
    here.substeps_done = 2
    allowed = scenes.rounding(here, 3, scenes.DT)
    for _ in range(3):
        here.step(scenes.DT, keep=True)
    check(scenes.attributes(here), ends[0], allowed)


@pytest.mark.parametrize("last", [0.0, 1.0])
def test_a_fragment_may_name_its_numbers_as_it_likes_and_be_passed_over(device_folder, last):
    """Names of the kernel's own variables are free for knobs; what a fragment that is passed over writes keeps what it has."""

    def blend(mass, share, first, found):
        return mass * share + first * found

    kernel = loop_kernel(None, [Lanes(blend, ("volume",), switch="last")], ATTRIBUTES)
    mass, volume = np.arange(8, dtype=np.float32), np.full(8, 7.0, np.float32)
    values = {"share": 2.0, "first": 3.0, "found": 5.0, "last": last}
    given = {argument: np.float32(values[name]) for name, argument in kernel.given[0].items()}
    now = np.array([0, 1], np.int32)  # a substep that runs
    given |= {
        "substep": now,
        "segments": np.array([0, 6, 0], np.int64),
        "stride": np.int32(8),
        "mass_rows": mass,
        "volume_rows": volume,
    }
    device = Emulated(device_folder)
    device.launch(device.kernel(header() + kernel.text, "particles"), 1, [given[name] for name in kernel.types])
    np.testing.assert_array_equal(volume, [*(2.0 * mass[:6] + 15.0 if last else [7.0] * 6), 7.0, 7.0])


def test_the_command_line_knows_the_devices_of_the_knob():
    assert set(cook.DEVICES) == {device.value for device in ComputeDevice}
