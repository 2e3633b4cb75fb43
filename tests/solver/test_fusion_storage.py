"""Attributes that only live inside a substep are stored when somebody needs them, and missed by nobody else."""

from __future__ import annotations

import copy

import pytest
from fusion_scenes import BETWEEN, DT, LEAN, MIXED, PRESET, SCENES, differing, far, solver

from mpm_nodes.data import MpmNodesError


# ---------------------------------------------------------------- what is stored
def without(*stages: str, **settings) -> dict:
    """Return the preset with some of its stages bypassed, in which the velocity gradient limits the time step."""
    document = {**copy.deepcopy(PRESET), "set": {"choose_time_step.strain_limit": 0.02, **settings}}
    for name in stages:
        document["nodes"][name]["bypass"] = True
    return document


BYPASSED = [
    ((), "free"),
    ((), "surrounded"),
    ((), "bodies"),
    ((), "walls"),
    ((), "stream"),
    *(
        ((name,), "bodies")
        for name in (
            "collide_particles",
            "collide_grid",
            "apply_plasticity",
            "update_deformation",
            "compute_stress",
            "add_stress_forces",
        )
    ),
    (("collide_particles",), "free"),
    (("collide_particles", "move_particles"), "free"),
    (("move_particles",), "bodies"),
]


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "single"])
@pytest.mark.parametrize("transfer", ["apic", "flip"])
@pytest.mark.parametrize(("bypassed", "scene"), BYPASSED, ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_what_is_not_stored_is_not_missed(bypassed, scene, transfer, fuse):
    """keep=False: ten substeps of their own length leave every bit but stress and velocity gradient, and the last one those too."""
    substeps = without(*bypassed, transfer=transfer)
    kept, lean = (solver(LEAN, substeps, fuse=fuse, **SCENES[scene]) for _ in range(2))
    for _ in range(10):
        assert lean.step(keep=False) == kept.step(keep=True)
    assert differing(lean, kept, *BETWEEN) == []
    assert lean.step(time_left=1e-5, keep=False) == kept.step(time_left=1e-5, keep=True) == 1e-5
    assert differing(lean, kept) == []


def test_a_change_from_outside_finds_what_was_not_stored():
    """After keep=False a packed velocity makes the next step measure its limits: right, or refused, never from stale arrays."""
    kept, lean = (solver(LEAN, without()) for _ in range(2))
    for _ in range(5):
        kept.step(keep=True)
        lean.step(keep=False)
    for run in (kept, lean):
        run.particles.pack("velocity", run.particles.unpack("velocity"))
    expected = kept.step()
    try:
        assert lean.step() == expected
    except MpmNodesError as error:
        assert "keep=True" in str(error)


def test_what_was_not_stored_is_refused_and_comes_back():
    """Who asks for an attribute that the last substep did not store is told what to do; after that it is there."""
    fused, single = (solver(MIXED[:1], fuse=fuse) for fuse in (True, False))
    for run in (fused, single):
        run.step(keep=False)
    for name in BETWEEN:
        with pytest.raises(MpmNodesError, match=rf"'{name}' was not kept .*keep=True"):
            fused.particles.unpack(name)
        assert single.particles.unpack(name).any()
    for run in (fused, single):
        run.step(dt=DT, keep=True)
    assert far(fused, single, 2) == {}


@pytest.mark.parametrize("fuse", [True, False])
def test_checked_substeps_that_store_less_are_no_lie(fuse):
    """Checked mode with keep=False, as a checked cook runs: no false alarm, and the bits of a plain solve."""
    for laws, scene in ((LEAN, "bodies"), (MIXED, "free"), (MIXED, "surrounded")):
        plain, checked = (solver(laws, fuse=fuse, checked=mode, **SCENES[scene]) for mode in (False, True))
        for _ in range(4):
            assert checked.step(keep=False) == plain.step(keep=False)
        assert differing(checked, plain, *BETWEEN) == []
