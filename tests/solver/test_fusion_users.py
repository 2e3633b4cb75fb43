"""Stages of the user among fused ones are given what single stages give them."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from fusion_scenes import (
    DEFORMED,
    DT,
    GATHER,
    MIXED,
    MOVED,
    PRESET,
    SCATTER,
    SCENES,
    UPDATED,
    WITHIN,
    drift,
    far,
    matter,
    names,
    solver,
)

from mpm_nodes.data import A, Attribute, Grid, Particles, Reads, Stage, Writes
from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare import stage
from mpm_nodes.graph.declare.registry import Registry
from mpm_nodes.graph.plan.plan import SubstepPlan, plan_substeps
from mpm_nodes.materials.contract import law_of

SEEN = Attribute("seen", "s", (), "", "primvars:seen", "seen", "What a stage of the user saw.")


@stage(label="Push")
def push_force(grid: A[Grid, Reads("mass", "force"), Writes("force")]) -> Stage["grid"]:
    """Add a wind to the force, and damp it."""
    force = 0.9 * grid.unpack("force")
    force[:, 0] += 30.0 * grid.unpack("mass")
    grid.pack("force", force)


@stage(label="Bend")
def bend_by_force(grid: A[Grid, Reads("mass", "force", "velocity"), Writes("velocity")]) -> Stage["grid"]:
    """Give the new grid velocity some more of the force."""
    mass = np.maximum(grid.unpack("mass"), 1e-2)[:, None]
    grid.pack("velocity", grid.unpack("velocity") + 1e-3 * grid.unpack("force") / mass)


@stage(label="Bend by Momentum")
def bend_by_momentum(grid: A[Grid, Reads("mass", "momentum", "velocity"), Writes("velocity")]) -> Stage["grid"]:
    """Mix the grid velocity with that before the forces."""
    mass = np.maximum(grid.unpack("mass"), 1e-2)[:, None]
    grid.pack("velocity", 0.9 * grid.unpack("velocity") + 0.1 * grid.unpack("momentum") / mass)


@stage(label="Slow Down")
def slow_down(particles: A[Particles, Reads("velocity"), Writes("velocity")]) -> Stage["particles"]:
    """Damp the velocity."""
    particles.pack("velocity", 0.95 * particles.unpack("velocity"))


@stage(label="Calm")
def calm_gradient(particles: A[Particles, Reads("velocity_gradient"), Writes("velocity_gradient")]) -> Stage["particles"]:
    """Damp the velocity gradient."""
    particles.pack("velocity_gradient", 0.9 * particles.unpack("velocity_gradient"))


@stage(label="Calm Stress")
def calm_stress(particles: A[Particles, Reads("stress"), Writes("stress")]) -> Stage["particles"]:
    """Damp the stress."""
    particles.pack("stress", 0.9 * particles.unpack("stress"))


@stage(label="See Gradient")
def see_gradient(particles: A[Particles, Reads("velocity_gradient"), Writes("seen"), SEEN]) -> Stage["particles"]:
    """Note the velocity gradient."""
    particles.pack("seen", particles.unpack("velocity_gradient")[:, 0, 1])


@stage(label="See Stress")
def see_stress(particles: A[Particles, Reads("stress"), Writes("seen"), SEEN]) -> Stage["particles"]:
    """Note the stress."""
    particles.pack("seen", particles.unpack("stress")[:, 0])


def planned_with(function, wire: tuple[str, str] | None, settings: dict) -> SubstepPlan:
    """Plan the preset with a stage on the wire into (stage, port), or behind the last stage."""
    document = copy.deepcopy(PRESET)
    domain = function.declaration.domains[0].name
    if wire is None:
        source = "move_particles"
    else:
        source = document["nodes"][wire[0]]["inputs"][wire[1]]
        document["nodes"][wire[0]]["inputs"][wire[1]] = "user"
    document["nodes"]["user"] = {"type": function.declaration.id, "inputs": {domain: source}}
    states = dict.fromkeys(name for material in matter(MIXED).materials for name in law_of(material)[0].state)
    own = Registry((*registries.default(), function.declaration), registries.default().presets)
    return plan_substeps({**document, "set": settings}, tuple(states), own)


USERS = {
    "force before its use": (push_force, ("update_grid_velocity", "grid"), {}, [SCATTER, MOVED]),
    "force after its use": (bend_by_force, ("collide_grid", "grid"), {}, [SCATTER, MOVED]),
    "momentum after its use": (bend_by_momentum, ("collide_grid", "grid"), {}, [SCATTER, MOVED]),
    "grid velocity": (push_force, ("gather", "grid"), {}, [SCATTER, MOVED]),
    "velocity before the scatter": (slow_down, ("rasterize", "particles"), {}, [UPDATED, MOVED]),
    "velocity before a FLIP gather": (slow_down, ("gather", "particles"), {"transfer": "flip"}, [SCATTER, MOVED]),
    "velocity before the bodies": (slow_down, ("collide_particles", "particles"), {}, [UPDATED, GATHER]),
    "velocity before the move": (slow_down, ("move_particles", "particles"), {}, [UPDATED, GATHER]),
    "velocity at the end": (slow_down, None, {}, [UPDATED, MOVED]),
    "gradient before its use": (calm_gradient, ("update_deformation", "particles"), {}, [UPDATED, DEFORMED]),
    "gradient at the end": (calm_gradient, None, {}, [UPDATED, MOVED]),
    "stress before its use": (calm_stress, ("add_stress_forces", "particles"), {}, ["rasterize+compute_stress", MOVED]),
    "gradient seen at the end": (see_gradient, None, {}, [UPDATED, MOVED]),
    "gradient seen at the start": (see_gradient, ("rasterize", "particles"), {}, [UPDATED, MOVED]),
    "stress seen at the end": (see_stress, None, {}, [UPDATED, MOVED]),
    "stress seen before it is computed": (see_stress, ("rasterize", "particles"), {}, [UPDATED, MOVED]),
}


@pytest.mark.parametrize(("function", "wire", "settings", "expected"), USERS.values(), ids=USERS)
def test_a_stage_of_the_user_is_given_what_single_stages_give_it(function, wire, settings, expected):
    """It keeps apart what it stands between or looks into; all numbers agree, and what it looks at is stored for it."""
    planned = planned_with(function, wire, settings)
    fused, single = (solver(MIXED, planned, fuse=fuse, **SCENES["bodies"]) for fuse in (True, False))
    assert [name for name in names(fused) if "+" in name] == expected and "user" in names(fused)
    like = {"seen": "stress" if function is see_stress else "velocity_gradient"}
    for count in range(1, 11):
        for run in (fused, single):
            run.step(dt=DT, keep=False)
        if count in (1, 10):
            assert far(fused, single, count, **like) == {}, count
    dts = np.array([[run.step(keep=False) for _ in range(5)] for run in (fused, single)])
    np.testing.assert_allclose(dts[0], dts[1], rtol=1e-4)
    checked = solver(MIXED, planned, checked=True, **SCENES["bodies"])
    for _ in range(2):
        checked.step()


def test_the_stages_of_the_user_change_something():
    """The comparison above would be empty if a damping did not reach the particles."""
    plain = solver(MIXED, **SCENES["bodies"])
    for _ in range(3):
        plain.step(dt=DT)
    for name, (function, wire, settings, _) in USERS.items():
        if settings or function in (see_gradient, see_stress) or name in ("grid velocity", "gradient at the end"):
            continue
        run = solver(MIXED, planned_with(function, wire, settings), **SCENES["bodies"])
        for _ in range(3):
            run.step(dt=DT)
        assert max(drift(run, plain, 3, DT).values()) > 4 * WITHIN, name
