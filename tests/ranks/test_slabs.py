"""How matter is cut into slabs, and what ranks refuse: without MPI."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import rank_scenes

from mpm_nodes import launched
from mpm_nodes.data import Fact, Facts, MpmNodesError, Particles, Reduction, Report
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.plan.substeps import plan_substeps, resolve
from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.solver.ranks.refusals import refuse_on_ranks, shared_presets, warnings_on_ranks
from mpm_nodes.solver.ranks.slabs import BEYOND, NARROWEST, NARROWEST_AROUND, Slabs, column_of, cut


class Alone:
    """A team of which this process does all the work: the cut of so many ranks, with everything known to one."""

    def __init__(self, size):
        self.size = size

    def gathered(self, values):
        return np.array([values], float)

    def totals(self, values):
        return np.asarray(values, float)


def test_slabs_hold_equal_shares_and_are_never_too_narrow():
    columns = np.arange(-5, 11)
    slabs, fullest = cut(Alone(4), columns, np.full(16, 100), 0)
    assert slabs.cuts == (-1, 3, 7) and fullest == 400
    crowded = np.where(columns == 0, 10_000, 1)
    slabs, fullest = cut(Alone(4), columns, crowded, 0)
    assert (np.diff(slabs.cuts) >= NARROWEST).all() and fullest >= 10_000


def test_slabs_are_wider_where_points_around_the_particles_give_to_the_grid():
    crowded = np.where(np.arange(16) == 6, 10_000, 1)
    slabs, _ = cut(Alone(4), np.arange(16), crowded, 0, NARROWEST_AROUND)
    assert NARROWEST < slabs.narrowest == NARROWEST_AROUND == np.diff(slabs.cuts).min()
    assert Slabs(0, (4,)).narrowest == Slabs(0, (4, BEYOND)).narrowest == BEYOND


def test_more_ranks_than_columns_leave_the_last_without_a_slab():
    slabs, fullest = cut(Alone(4), np.array([7, 8, 9]), np.array([5, 5, 5]), 1)
    assert slabs.cuts == (8, BEYOND, BEYOND) and fullest == 10
    assert slabs.border(0, 1) == 8 and slabs.border(1, 2) is None and slabs.border(-1, 0) is None and slabs.border(3, 4) is None
    assert slabs.holders(np.array([-100, 7, 8, 1000])).tolist() == [0, 0, 1, 1]


def test_no_matter_belongs_to_the_first_rank():
    slabs, fullest = cut(Alone(3), np.zeros(0, int), np.zeros(0), 0)
    assert fullest == 0 and slabs.holders(np.array([-3, 3])).tolist() == [0, 0]


def test_columns_of_packed_blocks():
    coord = np.array([[-3, 5, 0], [7, -1, 100]])
    packed = np.array([pack_coord(*each, 3) for each in coord])
    assert all((column_of(packed, axis) == coord[:, axis]).all() for axis in range(3))


def test_each_column_has_one_holder():
    slabs = Slabs(0, (2, 5))
    assert slabs.holders(np.arange(8)).tolist() == [0, 0, 1, 1, 1, 2, 2, 2]


def plans(preset):
    resolved = resolve(preset)
    return [plan_substeps(each) for each in (resolved, *resolved.others)]


def stage_names(preset):
    return {planned.declaration.id for plan in plans(preset) for planned in plan.stages}


SHARED_PRESETS = (
    "continuum_foam",
    "explicit_apic",
    "explicit_heat",
    "implicit_apic",
    "separate_bodies",
    "surface_tension",
    "surface_tension_heat",
    "surface_tension_solute",
)


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
def test_every_preset_is_shared_or_refused_by_its_stages():
    """Each preset that is refused names every stage that stands in the way, and the presets to take instead."""
    accepted = []
    for preset in registries.default().presets:
        try:
            refuse_on_ranks(plans(preset))
        except MpmNodesError as error:
            said = str(error)
            assert "one rank" in said, preset
            if len(plans(preset)) == 1:
                named = set(said.removeprefix("ranks: ").partition(" not shared")[0].rpartition(" ")[0].split(", "))
                assert named and named <= stage_names(preset) and all(name in said for name in shared_presets()), said
        else:
            accepted.append(preset)
            assert bool([*warnings_on_ranks(plans(preset))]) == (preset == "continuum_foam")
    assert tuple(sorted(accepted)) == shared_presets() == SHARED_PRESETS


ONE_PARTICLE_AT_A_TIME = {"deviatoric_stress", "keep_deviator", "measure_dilation"}
"""Stages that no scene has, whose fragments take particle by particle."""


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
def test_every_stage_that_is_accepted_stands_in_a_scene():
    """What ranks accept is compared with one rank; every other stage is refused by its name, before the cook."""
    compared = {
        planned.declaration.id for scene in rank_scenes.SCENES.values() for planned in plan_substeps(resolve(scene()[1])).stages
    }
    for name, declaration in registries.default().stages().items():
        knobs = {knob.name: knob.default for knob in declaration.knobs}
        plan = SimpleNamespace(stages=[SimpleNamespace(declaration=declaration, knobs=knobs)])
        if name in compared | ONE_PARTICLE_AT_A_TIME:
            refuse_on_ranks([plan])
            continue
        with pytest.raises(MpmNodesError, match=f"ranks: {name} is not shared"):
            refuse_on_ranks([plan])


@pytest.mark.parametrize("preset", [name for name in registries.default().presets if name.startswith("auto")])
def test_auto_is_refused(preset):
    with pytest.raises(MpmNodesError, match="choose by trials"):
        refuse_on_ranks(plans(preset))


def test_periodic_walls_are_refused():
    with pytest.raises(MpmNodesError, match="periodic walls"):
        refuse_on_ranks(plans("explicit_apic"), (0, 4, 0))


@pytest.mark.parametrize(
    ("told", "ranks"),
    [
        ({}, 0),
        ({"PMI_RANK": "0", "PMI_SIZE": "4"}, 4),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, 2),
        ({"PMIX_RANK": "3"}, 1),
        ({"PMIX_RANK": "3", "SLURM_NTASKS": "8"}, 8),
    ],
)
def test_a_launcher_is_known_by_its_variables(told, ranks, monkeypatch):
    for name in ("PMI_RANK", "PMI_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert launched.ranks() == ranks


def test_parts_join_in_the_order_of_ids():
    parts = [
        Particles({"position": np.array([[float(n), 0.0, 0.0] for n in ids]), "id": np.array(ids)}, (), 0.1)
        for ids in ([4, 0], [], [3, 1])
    ]
    parts[1] = Particles({"position": np.zeros((0, 3)), "id": np.zeros(0, int)}, (), 0.1)
    joined = Particles.joined(parts)
    assert joined["id"].tolist() == [0, 1, 3, 4] and joined["position"][:, 0].tolist() == [0.0, 1.0, 3.0, 4.0]


def test_what_ranks_tell_of_their_own_particles_is_added_up():
    removed = Facts("removed", "Gone.", (Fact("particles", "", Reduction.SUM, "How many."),), by_rank=True)
    shared = Facts("resampling", "Made.", (Fact("calls", "", Reduction.SUM, "How often."),))
    report = Report()
    report.tell(removed, 7, {"particles": 2})
    report.tell(shared, 7, {"calls": 1})
    own = [told for told in report.of_frame(7) if told[0].by_rank]
    report.join([own, [], [(removed, {"particles": 5})]], 7)
    assert {group.event: values for group, values in report.of_frame(7)} == {
        "removed": {"particles": 7},
        "resampling": {"calls": 1},
    }
