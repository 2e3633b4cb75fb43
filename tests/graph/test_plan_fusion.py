"""Fusion in the plan: which stages share one call, why others do not, and what the plan then says about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated as A

import plan_stages
import pytest
from plan_stages import registry, substeps

from mpm_nodes.data import Colliders, Grid, Kernel, Particles, Reads, Stage, StepContext, Writes
from mpm_nodes.graph.declare.decorators import DeclarationError, stage
from mpm_nodes.graph.plan.fusion import FusedStage, StageRun, fused, runs_of
from mpm_nodes.graph.plan.plan import SubstepPlan, plan_substeps


@dataclass(frozen=True)
class Body:
    """What the planner reads of a fragment."""

    gathers: frozenset[str] = frozenset()
    scatters: frozenset[str] = frozenset()
    joins: bool = True


@dataclass(frozen=True)
class Marks(Body):
    """A choice of particles that go."""

    mark: bool = True
    reads: tuple[str, ...] = ("mass",)


@dataclass(frozen=True)
class Rests(Body):
    """A stage that has nothing to do at times."""

    idle: bool = True


@dataclass(frozen=True)
class Folds(Body):
    """An update of nodes that can do without the force."""

    source: str = "force"
    into: str = "momentum"
    extra: dict = field(default_factory=dict, compare=False)


MOMENTUM, FORCE, VELOCITY = (frozenset([name]) for name in ("momentum", "force", "velocity"))


@stage(label="Rasterize", fragments=(Body(scatters=MOMENTUM),))
def raster(
    particles: A[Particles, Reads("position", "velocity", "mass")], grid: A[Grid, Writes("mass", "momentum", "force")]
) -> Stage["particles", "grid"]:
    """Scatter momentum."""


@stage(label="Forces", fragments=(Body(scatters=FORCE),))
def forces(
    particles: A[Particles, Reads("position", "stress")],
    grid: A[Grid, Reads("force"), Writes("force")],
    *,
    kernel: Kernel = Kernel.QUADRATIC,
) -> Stage["particles", "grid"]:
    """Scatter forces.

    Args:
        kernel: Weights.
    """


@stage(label="Update", fragments=(Folds(),))
def update(grid: A[Grid, Reads("mass", "momentum", "force"), Writes("velocity")], step: StepContext) -> Stage["grid"]:
    """Update nodes."""


@stage(label="Probe")
def probe(
    grid: A[Grid, Reads("mass"), Reads("momentum", when=("kernel", Kernel.CUBIC))], *, kernel: Kernel = Kernel.QUADRATIC
) -> Stage["grid"]:
    """Look at the momentum, with one of the kernels only.

    Args:
        kernel: Weights.
    """


@stage(label="Gather", fragments=(Body(gathers=VELOCITY),))
def collect(
    particles: A[Particles, Reads("position"), Writes("velocity")], grid: A[Grid, Reads("velocity")]
) -> Stage["particles", "grid"]:
    """Gather."""


@stage(label="Calm", fragments=lambda by: (Body(),) if by > 0.0 else ())
def calm(particles: A[Particles, Reads("velocity"), Writes("velocity")], *, by: float = 1.0) -> Stage["particles"]:
    """Damp.

    Args:
        by: How much; 0 needs no loop.
    """


@stage(label="Thin", fragments=(Marks(),))
def thin(particles: A[Particles, Reads("mass", "position"), Writes("position")]) -> Stage["particles"]:
    """Remove particles."""


@stage(label="Meet", fragments=(Rests(),))
def meet(
    particles: A[Particles, Reads("position", "velocity"), Writes("velocity")], colliders: A[Colliders, Reads("level_set")]
) -> Stage["particles"]:
    """Collide."""


@stage(label="Go", fragments=(Body(),))
def go(particles: A[Particles, Reads("position", "velocity"), Writes("position")], step: StepContext) -> Stage["particles"]:
    """Move."""


@stage(label="Fatten", fragments=(Body(),))
def fatten(particles: A[Particles, Reads("mass"), Writes("mass")]) -> Stage["particles"]:
    """Write the mass."""


STAGES = (raster, forces, update, probe, collect, calm, thin, meet, go, fatten)
WIRES = {
    "raster": ("particles", "grid"),
    "forces": ("particles", "grid"),
    "update": ("grid",),
    "probe": ("grid",),
    "collect": ("particles", "grid"),
    "calm": ("particles",),
    "thin": ("particles",),
    "meet": ("particles", "colliders"),
    "go": ("particles",),
    "fatten": ("particles",),
    "pass_particles": ("particles",),
}
WHOLE = ("raster", "forces", "update", "collect", "calm", "thin", "meet", "go")


def chain(*kinds: str, **settings) -> SubstepPlan:
    """Plan a chain of stages, each wired to the last that carried its domain; a name twice gets a number."""
    last = {"particles": "particles", "grid": "grid", "colliders": "colliders"}
    nodes = {}
    for kind in kinds:
        name = kind if kind not in nodes else f"{kind}_2"
        nodes[name] = {"type": kind, "inputs": {domain: last[domain] for domain in WIRES[kind]}}
        last |= {domain: f"{name}.{domain}" for domain in WIRES[kind] if domain != "colliders"}
    document = {"format": "mpm_nodes.substeps", "version": 1, "nodes": nodes, "set": settings}
    return plan_substeps(document, (), registry(*STAGES))


def shared(plan: SubstepPlan) -> list[str]:
    """Return the stages of each run, joined."""
    return ["+".join(member.id for member in run.members) for run in runs_of(plan)]


def together(*given, knobs):
    """Stand for several stages: record what is given."""
    plan_stages.calls.append((*given, knobs))


def compose(run: StageRun, plan: SubstepPlan):
    """Return the call for any run."""
    return together


def one_of(plan: SubstepPlan) -> FusedStage:
    """Return the one fused stage of a plan."""
    (found,) = (planned for planned in fused(plan, compose).stages if isinstance(planned, FusedStage))
    return found


# ---------------------------------------------------------------- which stages
def test_neighbours_become_one_call():
    """Scatters with the update of nodes are one run, what follows the gather another."""
    plan = chain(*WHOLE)
    assert shared(plan) == ["raster+forces+update", "collect+calm+thin+meet+go"]
    after = fused(plan, compose)
    assert [planned.id for planned in after.stages] == shared(plan) and all(isinstance(p, FusedStage) for p in after.stages)
    assert replace(after, stages=plan.stages) == plan and after.sets_dt == plan.sets_dt


def test_a_plan_without_fragments_is_unchanged():
    """Stages that bring none are single, and the plan says the same."""
    plan = plan_substeps(substeps(), ("deformation",), registry())
    assert fused(plan, compose).stages == plan.stages and all(not run.is_shared for run in runs_of(plan))


@pytest.mark.parametrize("place", range(1, 5))
def test_a_stage_without_a_fragment_keeps_its_neighbours_apart(place):
    """Wherever it stands, it is named as the reason."""
    after = ["collect", "calm", "thin", "meet", "go"]
    kinds = ["raster", "update", *after[:place], "pass_particles", *after[place:]]
    runs = list(runs_of(chain(*kinds)))
    members = [[member.id for member in run.members] for run in runs]
    assert ["pass_particles"] in members and [name for each in members for name in each] == kinds
    assert all(not ({"collect", "go"} <= set(each)) for each in members)
    before = next(run for run in runs if run.members[-1].id == {1: "collect", 2: "calm", 3: "thin", 4: "meet"}[place])
    if place < 4:
        assert before.ending == "pass_particles brings no fragment"


def test_fragments_may_hang_on_knobs():
    """A stage that brings none with these knobs stands alone."""
    assert shared(chain(*WHOLE, **{"calm.by": 0.0}))[1:] == ["collect", "calm", "thin+meet+go"]


def test_the_same_stage_twice_is_two_members():
    """Stages are told apart by their place in the graph."""
    plan = chain("raster", "update", "collect", "calm", "calm", **{"calm_2.by": 3.0})
    assert one_of(plan).knobs == {"knobs": {"collect": {}, "calm": {"by": 1.0}, "calm_2": {"by": 3.0}}}


@pytest.mark.parametrize(
    ("kinds", "expected", "reason"),
    [
        (("raster", "update", "collect", "go", "collect"), ["raster", "update", "collect+go", "collect_2"], "are no longer"),
        (("fatten", "thin"), ["fatten", "thin"], "chooses by mass"),
        (("raster", "forces", "thin", "forces"), ["raster+forces+thin", "forces_2"], "what was removed"),
        (("raster", "update", "collect", "meet"), ["raster", "update", "collect", "meet"], "no loop of its own"),
        (("raster", "update", "forces"), ["raster", "update", "forces"], "another loop"),
    ],
)
def test_what_cannot_share_a_loop_does_not(kinds, expected, reason):
    """Moved particles visit no grid, who goes is chosen before the loop and adds nothing after, nodes are another loop."""
    runs = list(runs_of(chain(*kinds)))
    assert ["+".join(member.id for member in run.members) for run in runs] == expected
    assert any(reason in run.ending for run in runs), [run.ending for run in runs]


# ---------------------------------------------------------------- arrays that are not needed
def test_an_array_that_a_later_stage_reads_is_kept():
    """The update of nodes does without the force only where nobody reads force or momentum later."""
    plan = chain("raster", "forces", "update", "collect", "go")
    assert next(runs_of(plan)).omits == {("grid", "force")}
    assert shared(chain("raster", "forces", "update", "forces"))[0] == "raster+forces"


def test_a_read_that_the_knobs_rule_out_is_no_read():
    """Reads(..., when=(knob, value)): with another value the momentum may be lost; with that value it may not."""
    kinds = ("raster", "forces", "update", "probe", "collect", "go")
    assert shared(chain(*kinds))[0] == "raster+forces+update"
    assert shared(chain(*kinds, **{"probe.kernel": "cubic"}))[0] == "raster+forces"


def test_a_read_that_depends_on_no_knob_is_refused():
    """The condition of a read names a knob of the stage."""
    with pytest.raises(DeclarationError, match=r"stage lost reads .* depending on speed, which is none of its knobs"):

        @stage(label="Lost")
        def lost(grid: A[Grid, Reads("momentum", when=("speed", 1.0))], *, kernel: Kernel = Kernel.QUADRATIC) -> Stage["grid"]:
            """Depend on nothing.

            Args:
                kernel: Weights.
            """


# ---------------------------------------------------------------- what a fused stage says
def test_what_a_member_writes_first_is_no_read_of_the_whole():
    """Reads are those that no earlier member wrote; writes are all of them, less what the loop leaves alone."""
    first, second = fused(chain(*WHOLE), compose).stages
    assert first.reads == {("particles", name) for name in ("position", "velocity", "mass", "stress")}
    assert first.writes == {("grid", name) for name in ("mass", "momentum", "velocity")}
    assert second.reads == {("particles", "position"), ("particles", "mass"), ("grid", "velocity"), ("colliders", "level_set")}
    assert second.writes == {("particles", "velocity"), ("particles", "position")}


def test_a_fused_stage_takes_the_domains_of_its_members_and_the_step():
    """Arguments come in one order, and the members' knobs by their ids."""
    planned = fused(chain(*WHOLE, **{"forces.kernel": "cubic"}), compose)
    plan_stages.calls.clear()
    for call in planned.bind({"particles": "P", "grid": "G", "colliders": "C"}, "S").calls:
        call()
    assert plan_stages.calls == [
        ("P", "G", "S", {"raster": {}, "forces": {"kernel": Kernel.CUBIC}, "update": {}}),
        ("P", "G", "C", "S", {"collect": {}, "calm": {"by": 1.0}, "thin": {}, "meet": {}, "go": {}}),
    ]


def test_keyed_knobs_are_sampled_in_fused_calls():
    """A fused call gets every member's knobs at the frame: keyed ones interpolated, the others as they are."""
    planned = fused(
        chain("raster", "update", "collect", "calm", **{"calm.by": {"keys": [[1, 1.0, "linear"], [3, 5.0, "linear"]]}}), compose
    )
    bound, other = (planned.bind({"particles": "P", "grid": "G", "colliders": "C"}, "S") for _ in range(2))
    given = []
    for frame in (None, 2.0, 2.5, 9.0):
        if frame is not None:
            bound.sample(frame)
        given.append(bound.calls[-1].keywords["knobs"]["calm"]["by"])
    assert given == [1.0, 3.0, 4.0, 5.0] and other.calls[-1].keywords["knobs"]["calm"] == {"by": 1.0}
