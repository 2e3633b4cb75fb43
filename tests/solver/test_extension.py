"""A domain, a law's state, a stage's fields, memory, facts and limits are each an addition of one file."""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace

import extension_files
import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot, values

from mpm_nodes.data import LAW_STATE, Material, all_domains, domain_named, domains
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.files import strict_json
from mpm_nodes.graph.reports.problems import GraphError
from mpm_nodes.hosts.spec import host_spec
from mpm_nodes.materials import contract
from mpm_nodes.solver.checked import LyingDeclaration
from mpm_nodes.solver.checkpoint import SolverState
from mpm_nodes.solver.run import SubstepSolver

FILES = {"my_law.py": extension_files.LAW, "my_stage.py": extension_files.STAGE, "my_domain.py": extension_files.DOMAIN}
FILES["my_watch.py"] = extension_files.WATCH


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Put the user's files on MPM_NODES_PATH; everything that they register is forgotten afterwards."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.setenv(registries.PATH_VARIABLE, str(folder))
    monkeypatch.setattr(contract, "_LAWS", dict(contract._LAWS))
    monkeypatch.setattr(domains, "_DOMAINS", dict(domains._DOMAINS))
    return registries.default()


def with_stages(preset: str = "explicit_apic", *names: str, wires: dict | None = None) -> dict:
    """Return a preset's document with stages behind its last one."""
    document = copy.deepcopy(strict_json.read(registries.default().presets[preset]))
    last = "move_particles"
    for name in names:
        ports = {"particles": last} if "particles" in registries.default().get(name).arguments else {}
        ports |= (wires or {}).get(name, {})
        document["nodes"][name] = {"type": name, "inputs": ports}
        last = name if ports.get("particles") else last
    return document


PROBED = {"probe": {"probes": "probes"}, "look": {"probes": "probe"}, "liar": {"probes": "probe"}}


# ---------------------------------------------------------------- a domain
def test_a_new_domain_is_one_file(mine):
    """Declared in a user's file: allocated, run, checked, saved and restored bit for bit, and shown to hosts with its colour."""
    runs = [
        SubstepSolver(cube(JELLY), with_stages("explicit_apic", "probe", "look", wires=PROBED), cell_size=0.1, checked=checked)
        for checked in (True, False, False)
    ]
    for run in runs[:2]:
        for _ in range(3):
            run.step(dt=1e-4)
    checked, plain, revived = runs
    assert plain.stores["probes"].count == 3 and plain.stores["probes"].unpack("age").shape == (3, 2)
    np.testing.assert_allclose(plain.stores["probes"].unpack("age"), 3e-4, rtol=1e-6)
    for name in ("age", "height"):
        assert checked.stores["probes"].unpack(name).tobytes() == plain.stores["probes"].unpack(name).tobytes()
    facts, arrays = SolverState(plain).to_arrays()
    facts = json.loads(json.dumps(facts))
    SolverState.from_arrays(facts, {name: array.copy() for name, array in arrays.items()}).revive(revived)
    for run in (plain, revived):
        run.step(dt=1e-4)
    assert revived.stores["probes"].unpack("age").tobytes() == plain.stores["probes"].unpack("age").tobytes()
    assert values(revived.snapshot()) == values(plain.snapshot())
    spec = host_spec(mine)
    kind = next(each for each in spec["types"] if each["id"] == "domain_probes")
    assert kind["colour"] == [0.2, 0.7, 0.5] and "probes" in spec["reserved_names"]


def test_a_new_domain_is_proven_and_checked(mine):
    """Its stages have to be ordered by wires, and one that writes it in secret is caught."""
    loose = with_stages("explicit_apic", "probe", "look", wires={**PROBED, "look": {"probes": "probes"}})
    with pytest.raises(GraphError, match=r"probes: is not ordered with|ends probes"):
        SubstepSolver(cube(JELLY), loose, cell_size=0.1)
    run = SubstepSolver(cube(JELLY), with_stages("explicit_apic", "probe", "liar", wires=PROBED), cell_size=0.1, checked=True)
    with pytest.raises(LyingDeclaration, match=r"writes probes\.age"):
        run.step(dt=1e-4)


# ---------------------------------------------------------------- round trips
@pytest.mark.parametrize("place", ["particles", "grid", "energy", "colliders", "probes", "memory"])
def test_what_a_domain_saves_it_restores_bit_for_bit(mine, place):
    """After a save, a substep and a restore every field and table holds the bits that it had."""
    document = with_stages("explicit_apic", "dry", "probe", wires=PROBED)
    run = SubstepSolver(cube(JELLY), document, cell_size=0.1)
    run.step(dt=1e-4)
    store = {**run.stores, "memory": run.memory}[place]
    before = store.save()
    run.step(dt=1e-4)
    if place == "grid":
        store.clear("momentum")
    changed = store.save()
    store.restore(before)
    after = store.save()
    for mine_, its in ((before.fields, after.fields), (before.tables, after.tables)):
        assert {n: a.tobytes() for n, a in mine_.items()} == {n: a.tobytes() for n, a in its.items()}
    assert before.facts == after.facts
    if before.fields or any(before.facts.values()):  # an explicit substep has no energy terms
        assert any(changed.fields[n].tobytes() != a.tobytes() for n, a in before.fields.items()) or changed.facts != before.facts


def test_every_field_says_what_becomes_of_it():
    """Every field of every domain has a shape, a unit, a help line, names for files, and a rule for resampling and saving."""
    for domain in all_domains():
        assert domain.label and domain.element and len(domain.colour) == 3
        for field in domain.fields.values():
            assert field.doc.endswith(".") and field.symbol and field.usd and field.houdini, (domain.name, field.name)
            assert field.resampling.value and isinstance(field.saved, bool)
            if field.kind != "object":
                assert field.rest_values(2).shape == (2, *field.shape)
    assert domain_named("particles").identity == "id" and LAW_STATE not in domain_named("particles").fields


# ---------------------------------------------------------------- facts and limits
def test_facts_are_reduced_as_declared_and_limits_are_asked(mine):
    """A user's stage limits dt, is named as the reason, and its facts add up over the frame by their reductions."""
    document = with_stages("explicit_apic", "dry")
    document["nodes"]["dry"]["knobs"] = {"rate": 500.0}
    run = SubstepSolver(cube(JELLY), document, cell_size=0.1, checked=True)
    taken = [run.step(time_left=1.0) for _ in range(4)]
    assert all(0.99 * 2e-5 < dt <= 2e-5 for dt in taken)  # 0.01 / rate, shared out evenly over the frame
    report = run.step_context.report
    assert report["substep"] == {"limit": "drying", "limit_material": ""}
    told = report["drying"]
    wet = run.particles.unpack("wetness").astype(float)
    assert told["calls"] == 4 and told["driest"] == wet.min() < told["mean"] < told["wettest"] < 1.0
    np.testing.assert_allclose(told["lost"], ((1.0 - wet) * run.particles.unpack("mass")).sum(), rtol=1e-3)


def test_a_users_stage_forces_nothing_to_be_stored(mine):
    """Declared reads and writes decide what fused stages store: a stage that reads neither stress nor gradient changes nothing."""
    plain, dried = (SubstepSolver(cube(JELLY), with_stages("explicit_apic", *names), cell_size=0.1) for names in ((), ("dry",)))
    assert not plain.program.lasting and not dried.program.lasting
    for run in (plain, dried):
        for _ in range(3):
            run.step(dt=1e-4, keep=False, time_left=1.0)
        assert run.particles.stale == {"stress", "velocity_gradient"}
    assert plain.snapshot(["velocity"])["velocity"].tobytes() == dried.snapshot(["velocity"])["velocity"].tobytes()


def test_what_a_users_limit_reads_is_stored_for_it(mine):
    """A limit that reads stress and velocity gradient finds them in every substep, although fused stages could leave them out."""
    fused, single = (
        SubstepSolver(cube(JELLY), with_stages("explicit_apic", "watch"), cell_size=0.1, fuse=f) for f in (True, False)
    )
    for _ in range(4):
        taken = [run.step(keep=False, time_left=1.0) for run in (fused, single)]
        assert taken[0] == pytest.approx(taken[1], rel=1e-3)
        assert fused.step_context.report["substep"]["limit"] == "gentle"
    assert not fused.particles.stale and np.abs(fused.particles.unpack("stress")).max() > 0.0


def test_everything_that_a_preset_tells_is_declared():
    """Every built-in stage's facts have a unit or none, a reduction and a sentence; events are told by one description."""
    known = {}
    for declaration in registries.stages().values():
        for group in declaration.facts:
            assert known.setdefault(group.event, group) is group, group.event
            assert group.doc.endswith(".") and all(fact.doc.endswith(".") for fact in group.facts)
    assert {"removed", "resampling", "implicit", "substep"} <= set(known)


# ---------------------------------------------------------------- through a cook
def worn_shot(tmp_path):
    """Return a cook's graph of the user's law under the user's stages."""
    graph = shot(
        4,
        material="material_worn_spring",
        substeps=with_stages("explicit_apic", "dry", "probe", wires=PROBED),
        velocity=(0.0, -1.0, 0.5),
        fps=500.0,
    )
    graph.add("write_cache", "cache", particles=graph["sim"]["particles"], attributes=["*"])
    return graph


def test_own_fields_go_through_a_cook_and_a_resume(mine, tmp_path):
    """State of a user's law and stage is saved, restored with the bits of an uninterrupted cook, and written to USD by name."""
    whole = execute(worn_shot(tmp_path), out=tmp_path / "whole")
    events = []
    execute(worn_shot(tmp_path), out=tmp_path / "parts", frames=(1, 2))
    parts = execute(worn_shot(tmp_path), out=tmp_path / "parts", frames=(1, 4), resume=True, on_event=events.append)
    assert parts.cooked == (3, 4)
    for name in ("cache/cache.0004.usdc", "checkpoints/0004.sim.state"):
        assert (whole.revision_folder / name).read_bytes() == (parts.revision_folder / name).read_bytes(), name
    told = [event for event in events if event["event"] == "drying"]
    assert len(told) == 2 and told[-1]["calls"] > told[0]["calls"] > 2
    assert any("calls of dry" in event["message"] for event in events if event["event"] == "warning")
    from pxr import Usd

    opened = Usd.Stage.Open(str(whole.revision_folder / "cache.usda"))
    prim = opened.GetPrimAtPath("/cache/particles")
    assert np.ptp(np.array(prim.GetAttribute("primvars:how_wet").Get(4))) == 0.0
    assert np.array(prim.GetAttribute("primvars:wear_of_spring").Get(4)).shape[1] == 2


def test_a_checkpoint_of_another_format_is_refused_with_the_reason(mine, tmp_path, monkeypatch):
    """The archive holds the format of the state's own class, which is what a resumed cook compares."""
    execute(worn_shot(tmp_path), out=tmp_path / "out", frames=(1, 2))
    monkeypatch.setattr(SolverState, "STATE_FORMAT", SolverState.STATE_FORMAT + 1)
    with pytest.raises(Exception, match=r"holds state format 2, this version reads 3"):
        execute(worn_shot(tmp_path), out=tmp_path / "out", frames=(1, 3), resume=True)


def test_a_law_may_limit_the_step(mine):
    """A law's own `longest_step` is asked with the other limits and named with its material."""
    run = SubstepSolver(cube(Material("worn_spring", {"bulk": 1.0}, 500.0, "spring")), "explicit_apic", cell_size=0.1)
    assert 0.9e-4 < run.step(time_left=1.0) <= 1e-4
    assert run.step_context.report["substep"] == {"limit": "law", "limit_material": "spring"}
    assert SimpleNamespace(**run.step_context.report["substep"]).limit == run.step_context.limit.name
