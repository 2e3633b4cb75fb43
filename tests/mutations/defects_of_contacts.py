"""Planted defects of adhesion, and of forces on colliders."""

from __future__ import annotations

from defect import Defect

_TESTS = "tests/solver/test_sticking.py"
_HANGS = f"{_TESTS}::test_a_block_hangs_until_its_weight_exceeds_the_adhesion"
_LOSES = f"{_TESTS}::test_what_bodies_are_given_is_what_the_matter_loses"

DEFECTS = (
    Defect(
        "adhesion does not ask how much of the area matter covers",
        "mpm_nodes/kernels/collisions/touching.py",
        "_spline_at(node[1], nodes) * min(np.float64(grid.volume[4 * who + 3]) / whole, 1.0)",
        "_spline_at(node[1], nodes)",
        f"{_HANGS}[0.3-explicit_apic]",
    ),
    Defect(
        "a second sweep pulls as hard as the first",
        "mpm_nodes/kernels/collisions/response.py",
        "left = row[PULL] - max(pulled, 0.0)",
        "left = row[PULL] - 0.0 * max(pulled, 0.0)",
        f"{_TESTS}::test_a_corner_pulls_with_each_of_its_bodies_once",
    ),
    Defect(
        "adhesion does not press what rubs",
        "mpm_nodes/kernels/collisions/response.py",
        "row[FRICTION_OF] * (push + pull)",
        "row[FRICTION_OF] * max(push, 0.0)",
        f"{_TESTS}::test_adhesion_holds_matter_on_a_slope_without_weight[explicit_apic]",
    ),
    Defect(
        "an implicit contact that is torn off pulls no more",
        "mpm_nodes/kernels/collisions/friction.py",
        "            t[axis] = row[PULL] * row[NORMAL + axis]",
        "            t[axis] = 0.0",
        f"{_TESTS}::test_what_is_torn_off_is_pulled_back_by_the_adhesion[implicit_apic]",
    ),
    Defect(
        "a body gets the impulse of the node without that of its image",
        "mpm_nodes/kernels/collisions/response.py",
        "_tell(told, c, (1.0 - r) * momentum[i + 3], (d0, d1, d2))",
        "_tell(told, c, momentum[i + 3], (d0, d1, d2))",
        f"{_LOSES}[explicit_apic-CollisionRule.STICKY]",
    ),
    Defect(
        "forces turn bodies about the nodes",
        "mpm_nodes/solver/contact_forces.py",
        "np.asarray(place + (ratio / (1.0 - ratio))[:, None] *",
        "np.asarray(place + (0.0 * ratio)[:, None] *",
        f"{_LOSES}[explicit_apic-CollisionRule.STICKY]",
    ),
    Defect(
        "keys of adhesion stay at the first",
        "mpm_nodes/solver/colliders.py",
        "keys.at(collider.adhesion, frame) for collider",
        "keys.at(collider.adhesion, 0.0) for collider",
        f"{_TESTS}::test_keys_let_go[explicit_apic]",
    ),
)
