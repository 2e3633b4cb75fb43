"""Advice names what there is: knobs of the material in use, presets, stages and settings of the registry, and the true cause."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from mpm_nodes.data import Emitter, GraphSettings, Material, Particles
from mpm_nodes.graph.declare import registry
from mpm_nodes.materials.library import LIBRARY, named_material
from mpm_nodes.materials.parameters import BUILT_IN
from mpm_nodes.solver.advice import CURES, MANY, kinds, preset_words, slowing, softening
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.stages import choose_time_step as chosen

KNOWN = registry.load(path="", entry_points=False)
STAGES = KNOWN.stages()
OFFERED = {each.limit.name for stage in STAGES.values() for each in stage.limits if each.limit.function is not None}
LIMITS = sorted({limit.name for limit in chosen.LIMITS} - {chosen.FRAME_END.name} | OFFERED | set(CURES))
PRESETS = [name for name in KNOWN.presets if KNOWN.presets[name].stem == name]
KNOBS = {knob.name for each in (*KNOWN.nodes().values(), *STAGES.values()) for knob in each.knobs}
for file in KNOWN.presets.values():
    KNOBS |= set(json.loads(file.read_text(encoding="utf-8")).get("parameters", ()))


def solver_of(material: Material, substeps="explicit_apic", velocity=(0.0, 0.0, 0.0), **more) -> SubstepSolver:
    axis = (np.arange(4) + 0.5) * 0.05
    position = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    columns = {
        "position": position,
        "velocity": np.tile(velocity, (len(position), 1)),
        "material": np.zeros(len(position), np.int32),
    }
    return SubstepSolver(Particles(columns, (material,), 0.05), substeps, cell_size=0.1, **more)


def unknown_names(text: str, material: Material) -> list[str]:
    """Return what a text names that is not there: quoted presets and entries, places, and every name with an underscore."""
    quoted = re.findall(r'"([^"]+)"', text)
    wrong = [name for name in quoted if name not in KNOWN.presets and name not in LIBRARY]
    text = re.sub(r"'[^']*'(?!s)|\"[^\"]*\"", "", text).replace("'s ", " ")
    for owner, knob in re.findall(r"\b([a-z]\w*)\.([a-z]\w*)", text):
        settings = {each.name for each in dataclasses.fields(GraphSettings)}
        found = KNOWN.find(owner)
        there = settings if owner == "settings" else set() if found is None else {each.name for each in found.knobs}
        wrong += [] if knob in there else [f"{owner}.{knob}"]
    text = re.sub(r"\b[a-z]\w*\.[a-z]\w*", "", text)
    names = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text))
    own = {each.name for each in dataclasses.fields(BUILT_IN[material.law])}
    of_laws = {each.name for params in BUILT_IN.values() for each in dataclasses.fields(params)}
    return wrong + [name for name in names if not (name in own or KNOWN.find(name) or name in KNOBS - (of_laws - own))]


def test_the_sweep_finds_what_is_not_there():
    """The texts that were wrong: a modulus that a liquid has not, presets that never were, an unknown place."""
    honey = named_material("honey")
    wrong = 'lower youngs_modulus of the material, raise settings.cellsize, or solve with substeps "semi_implicit" or "implicit"'
    assert unknown_names(wrong, honey) == ["semi_implicit", "implicit", "settings.cellsize", "youngs_modulus"]


@pytest.mark.parametrize("name", LIBRARY)
def test_all_advice_for_a_material_names_what_is_there(name):
    """For every limit there is advice, and all that it names exists; the modulus named is one of the material."""
    material = named_material(name)
    solver = solver_of(material)
    for limit in LIMITS:
        text = solver.advice(limit, material.label)
        assert text and unknown_names(text, material) == [], (limit, text)
    assert any(knob in solver.advice("elastic wave", material.label) for knob in softening(material))
    assert f'material_library "{name}"' in solver.advice("elastic wave", material.label)


def test_cures_of_limits_that_stages_offer_name_what_is_there():
    """They stand in advice before a coarser grid, and in a user's graph as well."""
    offered = {each.limit.name: each.limit for stage in STAGES.values() for each in stage.limits if each.limit.function}
    for limit in offered.values():
        assert limit.cure and unknown_names(limit.cure, named_material("jelly")) == [], limit


@pytest.mark.phenomena("projection")
def test_a_limit_of_the_substeps_of_now_has_its_own_cure():
    """Others that no stage of them offers have the general one."""
    solvers = [solver_of(named_material("jelly"), each) for each in ("incompressible", "explicit_apic")]
    projected, explicit = (each.advice("shear wave") for each in solvers)
    assert projected.startswith("take a softer material, set project_velocity.coupled")
    assert projected.endswith("or raise settings.cell_size") and explicit.startswith("lower the solve's")


@pytest.mark.parametrize("law", BUILT_IN)
def test_every_law_has_a_knob_against_its_waves(law):
    """Halving one of them makes the law softer; a knob of its viscosity is named where it has one."""
    material = Material(law, {}, 1000.0, "stuff")
    assert softening(material) and set(softening(material)) <= {each.name for each in dataclasses.fields(BUILT_IN[law])}
    assert "viscosity" in slowing(dataclasses.replace(material, viscosity=1.0))


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
@pytest.mark.parametrize("preset", PRESETS)
def test_presets_that_advice_names_serve_the_same_matter(preset):
    """Explicit ones are told of presets with the same of heat, surfaces, solutes, tearing and bodies apart, where there are any."""
    solver = solver_of(Material("liquid", {}, 1000.0, "water"), preset) if preset in ("explicit_apic", "incompressible") else None
    if solver is not None:
        text = solver.advice("elastic wave", "water")
        assert ('"incompressible"' in text) == (preset == "explicit_apic")
    assert kinds() <= set(STAGES)
    for of in [frozenset(), *(frozenset([kind]) for kind in kinds())]:
        for liquid in (False, True):
            assert unknown_names(preset_words(of, liquid), named_material("water")) == []


@pytest.mark.phenomena("foam", "heat", "melting", "projection", "rigid_bodies", "separate_bodies", "surface_tension")
def test_presets_by_kind():
    """Solids, liquids, surfaces and heat are each told theirs; of solutes there is none."""
    assert preset_words(frozenset(), False) == 'substeps "implicit_apic", or "auto", which takes the cheaper'
    assert preset_words(frozenset(), True) == 'substeps "incompressible", or "auto_incompressible", which takes the cheaper'
    assert '"implicit_surface_tension"' in preset_words(frozenset(["sample_surface"]), True)
    assert '"melting"' in preset_words(frozenset(["conduct_heat"]), True)
    assert preset_words(frozenset(["sample_surface", "diffuse_concentration"]), True) == ""


def test_matter_that_is_shot_is_not_called_an_elastic_wave():
    """Where matter moves faster than its waves, the limit is its speed; an emitter that gives it is named with the speed."""
    water = Material("liquid", {"bulk_modulus": 1e5}, 1000.0, "water")
    solver = solver_of(water, velocity=(0.0, -5e4, 0.0))
    solver.step(time_left=1.0 / 24.0)
    assert solver.step_context.limit is chosen.TRAVEL
    assert "particles of 'water' are given, up to 5e+04 m/s now" in solver.advice("particle speed", "water")
    still = solver_of(water)
    still.step(time_left=1.0 / 24.0)
    assert still.step_context.limit is chosen.WAVE
    template = still.snapshot()
    shot = solver_of(water, velocity=(0.0, -5e4, 0.0), emitters=(Emitter(template, (0.0, -5e4, 0.0)),))
    shot.advice.emitters = ("rifle",)
    assert "lower the velocity of emitter 'rifle', 5e+04 m/s" in shot.advice("particle speed", "water")


@pytest.mark.phenomena("projection")
def test_a_liquid_with_many_substeps_is_told_why_and_what_to_take():
    """The modulus told bears the liquid's depth: taken, nothing more is told; solids, few substeps and long ones say nothing."""
    honey = named_material("honey")
    facts = {"limit": "elastic wave", "limit_material": "Honey"}
    solver = solver_of(honey)
    solver.step(time_left=1.0 / 24.0)
    assert solver.advice.of_many(MANY - 1, **facts) == ""
    text = solver.advice.of_many(560, **facts)
    assert "560 substeps a frame" in text and unknown_names(text, honey) == [] and '"incompressible"' in text
    enough = float(re.search(r"([\d.e+]+) Pa would do", text)[1])
    assert 1420.0 * 9.81 * 0.2 <= 0.0101 * enough < 0.005 * 1e6
    assert solver.advice.of_many(560, **facts) == ""  # once
    softer = solver_of(dataclasses.replace(honey, params={**honey.params, "bulk_modulus": enough}))
    softer.step(time_left=1.0 / 24.0)
    assert "would do" not in softer.advice.of_many(560, **facts)
    for other in (solver_of(named_material("jelly")), solver_of(honey, "incompressible")):
        assert other.advice.of_many(560, limit="elastic wave", limit_material=other.matter.materials[0].label) == ""


def test_no_text_of_a_stage_names_what_is_not_there():
    """Cures of limits and warnings of every built-in stage."""
    material = named_material("water")
    for stage in STAGES.values():
        texts = [text for each in stage.limits for text in (each.limit.cause, each.limit.cure)]
        texts += [group.warning for group in stage.facts]
        for text in filter(None, texts):
            assert unknown_names(re.sub(r"\{[^}]*\}", "", text), material) == [], (stage.id, text)
