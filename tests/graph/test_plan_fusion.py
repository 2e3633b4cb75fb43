"""Fusion in the plan: which runs of stages one kernel may stand for, and what the plan then says about it."""

from __future__ import annotations

from typing import Annotated as A

import plan_stages
import pytest
from plan_stages import bump, gathered, heat, push, registry, scatter, strain, substeps

from mpm_nodes.data import Grid, Kernel, Reads, Stage, Writes
from mpm_nodes.graph.declare import DeclarationError, stage
from mpm_nodes.graph.fusion import FusedStage, Fusion, fused
from mpm_nodes.graph.plan import SubstepPlan, plan_substeps

MOMENTUM = frozenset({("grid", "momentum")})
KEYED = {"keys": [[1, 0.0, "linear"], [3, 4.0, "linear"]]}


@stage(label="Probe")
def probe(
    grid: A[Grid, Reads("mass"), Reads("momentum", when=("kernel", Kernel.CUBIC))], *, kernel: Kernel = Kernel.QUADRATIC
) -> Stage["grid"]:
    """Look at the momentum, with one of the kernels only.

    Args:
        kernel: Weights.
    """


@stage(label="Shove")
def shove(
    grid: A[Grid, Reads("mass"), Reads("momentum", when=("by", 1.0)), Writes("momentum")], *, by: float = 0.0
) -> Stage["grid"]:
    """Write the momentum, and read it depending on a number.

    Args:
        by: How much.
    """


def together(*given, knobs):
    """Stand for several stages: record what is given."""
    plan_stages.calls.append(("together", *given, knobs))


def fusion(*stages, **facts) -> Fusion:
    """Return a fusion of stages that takes the particles, the grid and the step."""
    return Fusion(stages, together, ("particles", "grid", "step"), **facts)


def plan(document: dict | None = None, *functions, **knobs) -> SubstepPlan:
    document = document or substeps()
    return plan_substeps({**document, "set": knobs}, ("deformation",), registry(*functions))


def names(found: SubstepPlan) -> list[str]:
    return [planned.id for planned in found.stages]


SINGLE = names(plan())


# ---------------------------------------------------------------- which stages
def test_neighbours_become_one_call_and_the_others_stay():
    """A run of stages is one stage named by all of them; whatever else the plan says is as it was."""
    before = plan()
    after = fused(before, [fusion(scatter, push)])
    assert names(after) == ["choose", "scatter+push", *SINGLE[3:]]
    assert [planned for planned in after.stages if "+" not in planned.id] == [before.stages[0], *before.stages[3:]]
    assert (after.attributes_needed, after.grid_arrays_needed, after.user_attributes, after.signature, after.sets_dt) == (
        before.attributes_needed, before.grid_arrays_needed, before.user_attributes, before.signature, True)
    assert [m.id for m in after.stages[1].members] == ["scatter", "push"] and names(before) == SINGLE


def test_without_fusions_a_plan_is_unchanged():
    """No fusion, or none that is found, gives the same stages."""
    assert fused(plan(), []).stages == plan().stages == fused(plan(), [fusion(push, scatter), fusion(gathered, bump)]).stages


@pytest.mark.parametrize("turn", [1, -1])
def test_the_longest_fusion_is_taken(turn):
    """Of the fusions that begin at one stage the longest one wins, wherever it stands in the list."""
    fusions = [fusion(scatter, push), fusion(scatter, push, bump, gathered), fusion(scatter, push, bump)][::turn]
    assert names(fused(plan(), fusions)) == ["choose", "scatter+push+bump+gather", *SINGLE[5:]]


def test_a_shorter_fusion_stands_in_where_a_longer_one_may_not():
    """What rules out the longest leaves the next one, and the stages behind it may be fused again."""
    fusions = [fusion(scatter, push, bump, fits=lambda knobs: False), fusion(scatter, push), fusion(bump, gathered)]
    assert names(fused(plan(), fusions)) == ["choose", "scatter+push", "bump+gather", *SINGLE[5:]]


def test_every_run_is_fused_not_only_the_first():
    """A fusion stands in wherever its stages follow each other."""
    document = substeps(
        again={"type": "push", "inputs": {"grid": "bump"}},
        bump_again={"type": "bump", "inputs": {"grid": "again", "colliders": "bump"}},
        gather={"type": "gathered", "inputs": {"particles": "scatter", "grid": "bump_again"}},
    )
    assert names(fused(plan(document), [fusion(push, bump)]))[2:5] == ["push+bump", "again+bump_again", "gather"]


@pytest.mark.parametrize(
    ("inserted", "wire"),
    [("pass_grid", ("push", "grid", "scatter.grid")), ("pass_particles", ("gather", "particles", "scatter"))],
    ids=["on the wire between them", "beside them"],
)
def test_stages_that_do_not_follow_each_other_stay_apart(inserted, wire):
    """A stage between two others in the order, wired into them or beside them, keeps them apart; with it out they join."""
    target, port, source = wire
    between = {"type": inserted, "inputs": {port: source}}
    changed = {**substeps()["nodes"][target], "inputs": {**substeps()["nodes"][target]["inputs"], port: "between"}}
    planned = plan(substeps(between=between, **{target: changed}))
    place = names(planned).index("between")
    left, right = planned.stages[place - 1], planned.stages[place + 1]
    assert names(fused(planned, [fusion(left.function, right.function)])) == names(planned)
    without = plan(substeps(between={**between, "bypass": True}, **{target: changed}))
    assert f"{left.id}+{right.id}" in names(fused(without, [fusion(left.function, right.function)]))


def test_a_bypassed_stage_neither_counts_nor_separates():
    """A bypassed member leaves its neighbours as neighbours, and a fusion that needs it is not found."""
    document = substeps()
    document["nodes"]["push"]["bypass"] = True
    fusions = [fusion(scatter, push, bump), fusion(scatter, bump)]
    assert names(fused(plan(document), fusions)) == ["choose", "scatter+bump", *SINGLE[4:]]
    assert names(fused(plan(), fusions)) == ["choose", "scatter+push+bump", *SINGLE[4:]]


# ---------------------------------------------------------------- what rules a fusion out
@pytest.mark.parametrize("kind", ["spoils", "omits"])
def test_an_array_that_a_later_stage_reads_may_not_be_lost(kind):
    """Bump and gather read the momentum after scatter and push: only a fusion with them in it, or none after, may lose it."""
    chain = (scatter, push, bump, gathered)
    for count in (2, 3):
        assert names(fused(plan(), [fusion(*chain[:count], **{kind: MOMENTUM})])) == SINGLE
    assert "scatter+push+bump+gather" in names(fused(plan(), [fusion(*chain, **{kind: MOMENTUM})]))
    unread = frozenset({("grid", "force")})
    assert "scatter+push" in names(fused(plan(), [fusion(scatter, push, **{kind: unread})]))


def test_a_read_that_the_knobs_rule_out_is_no_read():
    """Reads(..., when=(knob, value)): with another value the array may be lost; with that value, or a key list, it may not."""
    gone = dict.fromkeys(("bump", "gather", "strain", "heat", "drift"))
    document = substeps(**gone, probe={"type": "probe", "inputs": {"grid": "push"}}) | {"parameters": {}}
    lossy = [fusion(scatter, push, spoils=MOMENTUM)]
    plans = {value: plan(document, probe, **{"probe.kernel": value}) for value in ("quadratic", "cubic")}
    reads = {value: next(p.reads for p in found.stages if p.id == "probe") for value, found in plans.items()}
    assert reads == {"quadratic": {("grid", "mass")}, "cubic": {("grid", "mass"), ("grid", "momentum")}}
    assert "scatter+push" in names(fused(plans["quadratic"], lossy)) and "scatter+push" not in names(fused(plans["cubic"], lossy))
    document["nodes"]["probe"]["type"] = "shove"
    for by, read in ((0.0, False), (1.0, True), (KEYED, True)):
        assert (("grid", "momentum") in next(p.reads for p in plan(document, shove, **{"probe.by": by}).stages
                                             if p.id == "probe")) is read, by


def test_a_read_that_depends_on_no_knob_is_refused():
    """The condition of a read names a knob of the stage."""
    with pytest.raises(DeclarationError, match=r"stage lost reads .* depending on speed, which is none of its knobs"):
        @stage(label="Lost")
        def lost(grid: A[Grid, Reads("momentum", when=("speed", 1.0))], *, kernel: Kernel = Kernel.QUADRATIC) -> Stage["grid"]:
            """Depend on nothing.

            Args:
                kernel: Weights.
            """


def test_a_fusion_sees_the_knobs_before_it_says_whether_it_fits():
    """`fits` is given the values of every member by its function's name, defaults and settings alike."""
    seen = []

    def fits(knobs):
        seen.append(knobs)
        return knobs["scatter"]["kernel"] is Kernel.CUBIC

    both = [fusion(scatter, push, fits=fits)]
    assert names(fused(plan(), both)) == SINGLE
    assert names(fused(plan(**{"scatter.kernel": "cubic", "push.by": 2.5}), both))[:3] == ["choose", "scatter+push", "bump"]
    assert seen == [
        {"scatter": {"kernel": Kernel.QUADRATIC}, "push": {"by": 1.0}},
        {"scatter": {"kernel": Kernel.CUBIC}, "push": {"by": 2.5}},
    ]


# ---------------------------------------------------------------- what a fused stage says
def fused_stage(planned: SubstepPlan, *stages, **facts) -> FusedStage:
    """Return the one fused stage of a plan."""
    (found,) = (s for s in fused(planned, [fusion(*stages, **facts)]).stages if isinstance(s, FusedStage))
    return found


def test_what_a_member_writes_first_is_no_read_of_the_whole():
    """Reads are those that no earlier member wrote; writes are all of them, less what the kernel leaves alone."""
    found = fused_stage(plan(), scatter, push, bump, gathered)
    assert found.reads == {("particles", "position"), ("particles", "velocity"), ("grid", "position"), ("colliders", "level_set")}
    assert found.writes == {("grid", "mass"), ("grid", "momentum"), ("particles", "velocity")}
    assert fused_stage(plan(), push, bump).reads == {("grid", "momentum"), ("grid", "position"), ("colliders", "level_set")}
    lossy = fused_stage(plan(), scatter, push, bump, gathered, omits=MOMENTUM)
    assert lossy.writes == {("grid", "mass"), ("particles", "velocity")} and lossy.reads == found.reads
    assert fused_stage(plan(), scatter, push, bump, gathered, spoils=MOMENTUM).writes == found.writes


def test_a_branch_that_writes_later_is_still_read_first():
    """An array that one member reads and a later one writes is read by the whole."""
    order = [scatter, push, bump, gathered]
    assert ("particles", "velocity") in fused_stage(plan(), *order).reads
    branch = {"strain": strain, "heat": heat}
    pair = [branch[name] for name in SINGLE[5:7]]
    found = fused_stage(plan(), *pair)
    both = {("particles", "deformation"), ("particles", "temperature")}
    assert found.reads == found.writes == both


def test_a_fused_stage_that_chooses_the_step_says_so():
    """The step's length is set by a member: the plan still chooses its own dt."""
    found = fused(plan(), [fusion(plan_stages.choose, scatter)])
    assert found.stages[0].sets == ("dt",) and found.sets_dt
    assert fused_stage(plan(), scatter, push).sets == ()


def test_a_fused_stage_takes_the_arguments_of_its_kernel():
    """Domains and the step are bound in the order that the fusion names, and the members' knobs by function."""
    planned = fused(plan(), [Fusion((push, bump), together, ("step", "colliders", "grid"))])
    plan_stages.calls.clear()
    for call in planned.bind({"particles": "P", "grid": "G", "colliders": "C"}, "S").calls:
        call()
    assert plan_stages.calls[2] == ("together", "S", "C", "G", {"push": {"by": 1.0}, "bump": {}})
    assert [name for name, *_ in plan_stages.calls] == ["choose", "scatter", "together", "gathered", *(
        planned.stages[i].declaration.id for i in (4, 5)), "drift"]
    assert planned.stages[2].domains == ("colliders", "grid")


def test_keyed_knobs_are_sampled_in_fused_calls():
    """A fused call gets every member's knobs at the frame: keyed ones interpolated, the others as they are."""
    settings = {"push.by": KEYED, "scatter.kernel": "cubic"}
    planned = fused(plan(**settings), [fusion(scatter, push)])
    bound, other = (planned.bind({"particles": "P", "grid": "G", "colliders": "C"}, "S") for _ in range(2))
    given = []
    for frame in (None, 2.0, 2.5, 9.0):
        if frame is not None:
            bound.sample(frame)
        plan_stages.calls.clear()
        bound.calls[1]()
        given.append(plan_stages.calls[0])
    cubic = {"kernel": Kernel.CUBIC}
    assert given == [("together", "P", "G", "S", {"scatter": cubic, "push": {"by": by}}) for by in (0.0, 2.0, 3.0, 4.0)]
    assert other.calls[1].keywords == {"knobs": {"scatter": cubic, "push": {"by": 0.0}}}


def test_plans_with_particles_only_fuse_too():
    """A fusion may stand at the end of the plan, where nothing is left that could read what it loses."""
    pair = tuple({"strain": strain, "heat": heat}[name] for name in SINGLE[5:7])
    lossy = Fusion((*pair, plan_stages.drift), together, ("particles", "step"), omits=frozenset({("particles", "temperature")}))
    found = fused(plan(), [lossy])
    assert names(found) == [*SINGLE[:5], "+".join(SINGLE[5:])] and ("particles", "temperature") not in found.stages[-1].writes
