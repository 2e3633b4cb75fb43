"""Planted defects of what ties matter: springs, glue, and keys of choices."""

from __future__ import annotations

from defect import Defect

_TIES, _PASSIVE, _BODIES, _STEPS = (
    "tests/solver/test_attachments.py",
    "tests/solver/test_passive_ties.py",
    "tests/physics/separate_bodies/test_bodies.py",
    "tests/colliders/test_steps_of_keys.py",
)
DEFECTS = (
    Defect(
        "springs are damped half as much",
        "mpm_nodes/solver/attachments.py",
        "decay = math.exp(-2.0 * attachment.damping",
        "decay = math.exp(-1.0 * attachment.damping",
        f"{_TIES}::test_springs_are_damped_as_they_say",
    ),
    Defect(
        "springs grow stiffer than a substep can follow",
        "mpm_nodes/solver/attachments.py",
        "spring = min(square * dt, 1.0 / dt) if dt > 0.0 else 0.0",
        "spring = square * dt if dt > 0.0 else 0.0",
        f"{_TIES}::test_stiff_springs_hold_and_shorten_no_substep",
    ),
    Defect(
        "damping counts to the pull that breaks ties",
        "mpm_nodes/kernels/fields/springs.py",
        "given[6] -= kilograms * spring * y",
        "given[6] += kilograms * (j - b)",
        f"{_TIES}::test_springs_are_damped_as_they_say",
    ),
    Defect(
        "what comes after a break is tied",
        "mpm_nodes/solver/attachments.py",
        "state[state == springs.UNSEEN] = springs.LEFT_OUT\n        elif",
        "_tie(particles, each, number, moment)\n        elif",
        f"{_TIES}::test_what_comes_later_is_tied_until_it_broke",
    ),
    Defect(
        "passive ties stay when the others break",
        "mpm_nodes/solver/attachments.py",
        "for store in (particles, still):\n                state",
        "for store in (particles,):\n                state",
        f"{_PASSIVE}::test_what_is_passive_breaks_and_lets_go_with_the_rest",
    ),
    Defect(
        "ties that broke are forgotten in a checkpoint",
        "mpm_nodes/solver/checkpoint.py",
        'frozenset(map(int, facts.get("severed", ())))',
        "frozenset()",
        f"{_PASSIVE}::test_what_broke_ties_nothing_once_it_is_gone",
    ),
    Defect(
        "ties are kept whatever they were made to",
        "mpm_nodes/solver/attachments.py",
        "others = known[number] != step.tied_to[number]",
        "others = False",
        f"{_PASSIVE}::test_a_cook_goes_on_with_another_body",
    ),
    Defect(
        "passive matter is updated twice where a frame is solved again",
        "mpm_nodes/solver/passive.py",
        "self.store.put(held)",
        "self.store.put({})",
        f"{_PASSIVE}::test_a_frame_that_is_solved_again_finds_passive_matter_as_it_began",
    ),
    Defect(
        "the height above a triangle is left out",
        "mpm_nodes/kernels/fields/springs.py",
        "x, y, z = _on_surface(points, corners, t, x, y, z)",
        "x, y, z = _on_surface(points, corners, t, x, y, 0.0 * z)",
        f"{_TIES}::test_a_mesh_that_deforms_takes_matter_along",
    ),
    Defect(
        "glue pulls again in every sweep",
        "mpm_nodes/physics/separate_bodies/kernels/contacts.py",
        "contact[4] = max(contact[4] + min(given[0] * n[0] + given[1] * n[1] + given[2] * n[2], 0.0), 0.0)",
        "contact[4] = max(contact[4], 0.0)",
        f"{_BODIES}::test_glue_has_one_strength_in_all_sweeps",
    ),
    Defect(
        "thin bodies are glued by less than their face",
        "mpm_nodes/physics/separate_bodies/kernels/contacts.py",
        "if of_a > -of_b else (-of_b, full_a / full_b)",
        "if of_a < -of_b else (-of_b, full_a / full_b)",
        f"{_BODIES}::test_glue_pulls_by_its_strength_times_the_face",
    ),
    Defect(
        "a rule steps a frame early",
        "mpm_nodes/nodes/collide.py",
        "rule, clamp = (ctx.sample_uncut(name, ctx.frame) for name in CHOSEN)",
        "rule, clamp = (ctx.sample(name, ctx.frame) for name in CHOSEN)",
        f"{_STEPS}::test_what_does_not_fit_the_rule_of_the_moment_rests",
    ),
)
