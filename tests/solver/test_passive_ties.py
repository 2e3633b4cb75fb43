"""Ties, updates and active masks together: what is passive breaks, lets go and changes with the rest, and ties are of one body."""

from __future__ import annotations

import numpy as np
import pytest
from solver_scenes import JELLY, cube, shot

from mpm_nodes.data import Attachment, BodyForce, BodyMotion, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.kernels.fields import springs
from mpm_nodes.nodes.attachments import with_attachments
from mpm_nodes.nodes.attributes import FieldCombination, set_attribute, update_attribute
from mpm_nodes.nodes.fields import constant, field_ramp
from mpm_nodes.nodes.forces import active_mask
from mpm_nodes.solver.run import SubstepSolver
from mpm_nodes.solver.surroundings import activate, push
from mpm_nodes.verification.attachments import SQUARE, attached
from mpm_nodes.verification.passive import CLOCK, advance_frames

HALF = field_ramp(direction=(1.0, 0.0, 0.0), low=0.15, high=0.15)
"""One where x is above 0.15 m, the middle of the cube."""


def half_held(last):
    """Return a solver of a cube of jelly that is tied as a whole, and moves as a whole up to a frame, then half of it."""
    wired = [attached(stiffness=SQUARE * 27.0)]
    (source,), _ = with_attachments([cube(JELLY, touched=0.0)], [], wired)
    run = SubstepSolver(source, "explicit_apic", cell_size=0.1, clock=CLOCK, dt_max=5e-3)
    push(run, wired)
    advance_frames(run, range(1, last + 1))
    activate(run, active_mask(HALF))
    return run


def test_ties_of_passive_matter_share_the_stiffness():
    """Half of the cube is passive: the mass that is tied, and so the pull on each particle, is what it was."""
    run = half_held(2)
    whole, count = run.step_context.attached[0]
    advance_frames(run, (3,))
    assert run.passive.store.count == 108 and run.step_context.attached[0] == (pytest.approx(whole), count)


@pytest.mark.parametrize("what", ["breaks", "lets go"])
def test_what_is_passive_breaks_and_lets_go_with_the_rest(what):
    """It is not tied to where it was once it moves again."""
    run = half_held(2)
    weak = {"stiffness": SQUARE * 27.0, "breaking_force": 1e-3} if what == "breaks" else {"stiffness": 0.0}
    push(run, [attached(**weak)])
    advance_frames(run, (3,))
    want = springs.BROKEN if what == "breaks" else springs.UNSEEN
    assert run.passive.store.count == 108 and (run.passive.store.rows("attached_1")[0] == want).all()
    activate(run, None)
    push(run, [attached(stiffness=SQUARE * 27.0, breaking_force=1e9 if what == "breaks" else 0.0)])
    before = run.snapshot()["attached_1_place"]
    advance_frames(run, (4,))
    after = run.snapshot()
    assert run.particles.count == 216 and (after["attached_1"] == (springs.BROKEN if what == "breaks" else 1)).all()
    assert np.array_equal(before, after["attached_1_place"]) == (what == "breaks")


def test_a_frame_that_is_solved_again_finds_passive_matter_as_it_began():
    """Its ties hold again, and nothing is added to its attributes twice."""
    run = half_held(2)
    run.step_context.updates = (update_attribute(attribute="touched", combination=FieldCombination.ADD),)
    push(run, [attached(stiffness=SQUARE * 27.0, breaking_force=1e-3)])
    run.begin_frame(CLOCK.over(3), (), ())
    back, held, made = run.mark(), run.passive.store, run.step_context.tied_to
    for _ in range(2):
        run.step_context.substep = 0
        run.step(1e-3)
        assert (
            run.step_context.severed == {0}
            and (held.rows("touched")[0] == 1.0).all()
            and (held.rows("attached_1")[0] == springs.BROKEN).all()
        )
        run.step_context.tied_to = ("another",)
        back()
        assert not run.step_context.severed and run.step_context.tied_to == made
        assert (held.rows("touched")[0] == 0.0).all() and (held.rows("attached_1")[0] == 1).all()
    assert held.count == 108


def test_what_broke_ties_nothing_once_it_is_gone(tmp_path):
    """A drain takes all that was tied; what comes in after a checkpoint is not tied, until a key of 0."""
    graph = shot(end=9, size=0.2, gravity=(0.0, -50.0, 0.0))
    spout = graph.add("emit_box", "spout", material="matter", size=(0.2, 0.1, 0.2), centre=(1.0, 1.0, 0.0))
    jet = graph.add("emit_stream", "jet", template=spout, velocity=(0.0, -0.5, 0.0), start_frame=5)
    graph.nodes["sim"].connect("emitters", [jet])
    stiffness = {"keys": [[1, 2e3, "step"], [8, 0.0, "step"], [8.5, 2e3, "step"]]}
    pin = graph.add("force_attach", "pin", stiffness=stiffness, breaking_force={"keys": [[1, 1.0, "step"], [8, 1e9, "step"]]})
    graph.nodes["sim"].connect("forces", [pin])
    everywhere = graph.add("field_constant", "all", value={"keys": [[1, 0.0, "step"], [4, 1.0, "step"], [4.9, 0.0, "step"]]})
    graph.nodes["sim"].connect("drains", [graph.add("drain", "hole", field=everywhere)])
    told = []
    execute(graph, out=tmp_path, frames=(1, 6), on_event=told.append)
    execute(graph, out=tmp_path, resume=True, on_event=told.append)
    ties = {each["frame"]: (each["tied"][0], each["broken"][0]) for each in told if each["event"] == "attachments"}
    assert ties == {2: (0, 64), **dict.fromkeys(range(3, 9), (0, 0)), 9: (32, 0)}


def sheet(parts: int) -> Attachment:
    """Return a tie to a sheet of triangles that stands still."""
    edge = np.linspace(-1.0, 1.0, parts + 1)
    points = np.array([(x, 0.3, z) for z in (-1.0, 1.0) for x in edge])
    quads = [(n, n + 1, n + parts + 2, n + parts + 1) for n in range(parts)]
    triangles = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    still = BodyMotion(np.array([0.0]), np.array([[1.0, 0.0, 0.0, 0.0]]), np.zeros((1, 3)), (points, points), triangles)
    return BodyForce(constant((0.0, 0.0, 0.0)), attachment=Attachment(1e4, body=still), name="pin")


def test_ties_to_another_mesh_are_made_again():
    """Numbers of triangles are those of one mesh: cooked again with a coarser one they lie beyond its last."""
    wired = [sheet(40)]
    (source,), _ = with_attachments([cube(JELLY)], [], wired)
    run = SubstepSolver(source, "explicit_apic", cell_size=0.1, clock=CLOCK, dt_max=5e-3)
    push(run, wired)
    advance_frames(run, (1, 2))
    assert run.snapshot()["attached_1"].max() > 4
    push(run, [sheet(2)])
    with pytest.warns(UserWarning, match="pin: the ties that are there were made by another node, or to another body"):
        advance_frames(run, (3,))
    states = run.snapshot()["attached_1"]
    assert states.min() >= 1 and states.max() <= 4 and run.step_context.attached[0][1] == 216


def test_a_cook_goes_on_with_another_body(tmp_path):
    """From the state of an older cook: what was tied to its place is tied to a ball then, which is told, and not in between."""
    graph = shot(end=6, precision="double", knobs={"youngs_modulus": 4e5})
    pin = graph.add("force_attach", "pin", stiffness=1e4)
    graph.nodes["sim"].connect("forces", [pin])
    first = execute(graph, out=tmp_path, keep_every=1)
    same = execute(graph, out=tmp_path, again_from=4, of="r001")
    assert not [*first.warnings, *same.warnings]
    for name, column in first.outputs["sim"]["particles"].attributes.items():
        assert np.array_equal(same.outputs["sim"]["particles"][name], column), name
    graph.nodes["pin"].connect("collider", graph.add("collide_sphere", "ball", radius=0.05))
    (warning,) = execute(graph, out=tmp_path, again_from=4, of="r001").warnings
    assert "the ties that are there were made by another node, or to another body" in str(warning)


def test_what_resampling_makes_is_tied_anew():
    """It lies elsewhere than the particle that it is made of: its columns begin at rest, as those of what comes in."""
    (source,), _ = with_attachments([cube(JELLY)], [], [attached()])
    assert {source.field(name).resampling.value for name in ("attached_1", "attached_1_place")} == {"recomputed"}


@pytest.mark.parametrize("substeps", ["explicit_apic", "implicit_apic"])
def test_an_update_lets_passive_matter_go(substeps, tmp_path):
    """What a ball once touched stays active: an attribute that an update adds to, where the matter is passive, too."""
    graph = shot(end=6, size=0.4, substeps=substeps)
    way = {"keys": [[1, [-0.5, 1.0, 0.0], "linear"], [4, [0.0, 1.0, 0.0], "linear"]]}
    ball = graph.add("field_shape", "ball", radius=0.2, centre=way)
    graph.nodes["sim"].connect("updates", [graph.add("update_attribute", "hit", attribute="hit", mask=ball, combination="add")])
    graph.nodes["sim"].connect(
        "active", graph.add("active_mask", "mask", field=graph.add("field_attribute", "own", attribute="hit"))
    )
    told = []
    found = execute(graph, out=tmp_path, on_event=told.append).outputs["sim"]["particles"]
    released = [each["released"] for each in told if each["event"] == "passive"]
    moves = (found["velocity"] != 0.0).any(axis=1)
    assert released[:2] == [0, 0] and moves.sum() == sum(released) > 200 and (found["hit"][moves] > 0.5).all() and not moves.all()


def test_columns_of_ties_are_nobodys_to_set():
    """An update of them would name triangles that there are not; names that stand for others are told."""
    for name in ("attached_1", "attached_12_place"):
        with pytest.raises(MpmNodesError, match=rf"update_attribute.attribute: {name} is what force_attach finds"):
            update_attribute(attribute=name)
        with pytest.raises(MpmNodesError, match=rf"set_attribute.attribute: {name} is what force_attach finds"):
            set_attribute(cube(JELLY), None, attribute=name)
    assert update_attribute(attribute="attached_to").attribute == "attached_to"
    for name, why in (("T", "'T' stands for temperature"), ("age", "age is what the solve finds"), ("birth", "birth is what")):
        with pytest.raises(MpmNodesError, match=why):
            update_attribute(attribute=name)
