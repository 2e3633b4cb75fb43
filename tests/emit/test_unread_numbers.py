"""Numbers of materials that no stage of the substeps reads are told before a cook, and those that one reads are not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_unread import HEAT, PLAIN, scene, solid, thermal
from test_unread import told as warned

from mpm_nodes import Graph
from mpm_nodes.data import Material, ParameterTable
from mpm_nodes.graph.declare.registry import stages
from mpm_nodes.materials.library import named_material
from mpm_nodes.nodes.bodies import Body
from mpm_nodes.nodes.unread import WiredIn, unread
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.verification.scenes import block

pytestmark = pytest.mark.phenomena("foam", "heat", "projection")

FOAM = "continuum_foam"
NOTHING = WiredIn(frozenset(), *(0,) * (len(WiredIn._fields) - 1))


def told(graph: Graph) -> list[str]:
    """Return what is warned of materials, less what gravity does to them."""
    return [text for text in warned(graph) if text.startswith("material ")]


def without(stage: str, preset: str = PLAIN, edit: str = "bypass") -> dict:
    """Return a preset without one of its stages."""
    return {"preset": preset, "edits": [{edit: stage}]}


def flowing(graph: Graph):
    """Add a material that flows and neither tears nor heals."""
    return graph.add("material_herschel_bulkley", "paste", label="paste")


def tearing(graph: Graph, make=flowing):
    """Let it tear."""
    return graph.add("material_tearing", "tearing", material=make(graph))


def viscous(graph: Graph):
    """Add a viscosity to an elastic material."""
    return graph.add("material_viscosity", "viscous", material=solid(graph), viscosity=2.0)


def test_a_tear_threshold_that_nothing_reads_is_told():
    """One text for both of the node's numbers, with the cure; none where the stages of tearing are there."""
    (text,) = told(scene(tearing, PLAIN))
    assert "material paste has a tear threshold and a recovery time, and no stage of these substeps reads them" in text
    assert "never tears" in text and "continuum_foam" in text
    assert told(scene(tearing, FOAM)) == []


def test_each_number_is_told_by_itself():
    """Tears without healing, and healing without tears."""
    (text,) = told(scene(tearing, without("recover_plasticity", FOAM)))
    assert "has a recovery time" in text and "tear threshold" not in text
    (text,) = told(scene(tearing, without("detect_tears", FOAM)))
    assert "has a tear threshold" in text and "recovery time" not in text


def test_a_law_that_cannot_tear_is_told():
    """Where stages of tearing are there, too: elastic matter never flows."""
    (text,) = told(scene(lambda graph: tearing(graph, solid), FOAM))
    assert "material solid has a tear threshold and a recovery time, and its law neo_hookean never flows" in text


@pytest.mark.parametrize("edit", ["bypass", "remove"])
def test_a_viscosity_that_nothing_reads_is_told(edit):
    """Substeps without a stress let everything fall."""
    substeps = without("compute_stress", edit=edit)
    substeps["edits"].append({edit: "add_stress_forces"})
    (text,) = told(scene(viscous, substeps))
    assert "material solid has a viscosity, and no stage of these substeps reads it" in text
    for preset in (PLAIN, "implicit_apic", "incompressible", "auto"):
        assert told(scene(viscous, preset)) == []


@pytest.mark.parametrize("edit", ["bypass", "remove"])
def test_matter_that_cannot_flow_is_told(edit):
    """A yield stress has no effect where no stage returns states to the yield surface."""
    (text,) = told(scene(flowing, without("apply_plasticity", edit=edit)))
    assert "material paste can flow, and these substeps have no stage" in text
    assert told(scene(solid, without("apply_plasticity", edit=edit))) == [] and told(scene(flowing, PLAIN)) == []


def test_a_freezing_temperature_without_phases_is_told():
    """Heat alone melts nothing."""
    (text,) = told(scene(lambda graph: thermal(graph, freezing_temperature=300.0), without("update_phase", HEAT)))
    assert "material solid has a freezing temperature, and no stage of these substeps changes its phase" in text
    assert told(scene(thermal, without("update_phase", HEAT))) == []


def test_a_table_of_a_liquid_that_never_is_one_is_told():
    """A material without a freezing temperature takes its solid rows always."""

    def make(graph, freezing=0.0):
        hot = graph.add("material_thermal", "thermal", material=solid(graph), freezing_temperature=freezing)
        table = [[280.0, 1e5], [320.0, 1e4]]
        return graph.add("material_over_temperature", "soft", material=hot, table=table, liquid_table=table)

    (text,) = told(scene(make, HEAT))
    assert "material solid has a table of the liquid for youngs_modulus, and no freezing temperature" in text
    assert told(scene(lambda graph: make(graph, 300.0), HEAT)) == []


def test_numbers_of_a_melt_are_told():
    """So are those of what matter becomes."""

    def make(graph):
        melt = graph.add("material_tearing", "tearing", material=graph.add("material_liquid", "melt", label="melt"))
        return thermal(graph, melt=melt, freezing_temperature=300.0)

    (text,) = told(scene(make, HEAT))
    assert "material melt has a tear threshold" in text


MEMBERS = {
    "tear_threshold": 5.0,
    "recovery_time": 1.0,
    "viscosity": 3.0,
    "tables": {"viscosity": ParameterTable(((280.0, 1.0), (300.0, 2.0)))},
}
READ_ALWAYS = {"law", "params", "density", "label", "look"}
TOLD_ELSEWHERE = {"thermal", "surface_tension", "bulk_modulus"}


def test_every_member_of_a_material_is_told_somewhere():
    """A member that is added to materials must be looked for, too."""
    assert {field.name for field in dataclasses.fields(Material)} == {*MEMBERS, *READ_ALWAYS, *TOLD_ELSEWHERE}


@pytest.mark.parametrize("member", sorted(MEMBERS))
def test_what_no_stage_reads_is_told_of_each_member(member):
    """In substeps that only move matter along."""
    plain = Material("herschel_bulkley", named_material("shaving_cream").params, 100.0, "paste")
    nothing = {"preset": PLAIN, "edits": [{"bypass": "compute_stress"}, {"bypass": "add_stress_forces"}]}
    body = Body(dataclasses.replace(plain, **{member: MEMBERS[member]}), np.eye(3), np.zeros(3))
    (text,) = unread([body], nothing, NOTHING, whole=True)
    assert "material paste has a" in text
    assert unread([body._replace(material=plain)], nothing, NOTHING, whole=True) == []


def test_what_is_told_changes_no_bit_and_what_is_not_told_does():
    """The warning is right: torn cream falls as whole cream in explicit substeps, and another way in those of foam."""
    cream = named_material("shaving_cream")
    torn = dataclasses.replace(cream, tear_threshold=1e-3, recovery_time=1e-3)
    whole = dataclasses.replace(cream, tear_threshold=None, recovery_time=None)
    for preset, same in ((PLAIN, True), (FOAM, False)):
        ends = []
        for material in (torn, whole):
            start = block(material, (0.0, 0.0, 0.0), (0.15, 0.15, 0.15), 0.05)
            stretched = [20.0, 0.0, 0.0] * (start["position"] - start["position"].mean(axis=0))
            pulled = {**start.attributes, "velocity": stretched}
            run = SubstepSolver(dataclasses.replace(start, attributes=pulled), preset, cell_size=0.05)
            run.advance(0.05)
            ends.append(run.snapshot()["position"])
        assert (ends[0].shape == ends[1].shape and np.array_equal(*ends)) == same


def test_stages_name_members_that_materials_have():
    """What a stage declares to read is a member, and a table of this kind's texts has it."""
    named = {name for declaration in stages().values() for name in declaration.of_materials}
    assert named == {"tear_threshold", "recovery_time", "viscosity"} <= {field.name for field in dataclasses.fields(Material)}
