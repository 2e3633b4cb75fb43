"""Planted defects of rigid bodies that matter moves."""

from __future__ import annotations

from defect import Defect

_TESTS, _JOINTS = "tests/physics/rigid_bodies/test_rigid_bodies.py", "tests/physics/rigid_bodies/test_joints.py"
_MOMENTUM = f"{_TESTS}::test_what_a_body_loses_matter_gets"
_PROJECTED = "tests/physics/floating_bodies/test_moved_bodies.py"
_FACES = "mpm_nodes/physics/projection/numerics/impulses_on_bodies.py"
_COUPLING = "mpm_nodes/physics/rigid_bodies/numerics/coupling.py"

DEFECTS = (
    Defect(
        "bodies are told to be too thin for substeps that see them",
        "mpm_nodes/physics/rigid_bodies/preflight.py",
        "each.moves_bodies is not None and not each.joins",
        "each.moves_bodies is not None",
        "tests/physics/floating_bodies/test_moved_bodies.py::test_what_the_faces_do_not_see_is_told_before_the_cook",
    ),
    Defect(
        "bodies are told to be half as thick as they are",
        "mpm_nodes/physics/rigid_bodies/preflight.py",
        "return -2.0 * float(",
        "return -float(",
        "tests/physics/floating_bodies/test_moved_bodies.py::test_what_the_faces_do_not_see_is_told_before_the_cook",
    ),
    Defect(
        "a body moves on as if matter met one that did not",
        _COUPLING,
        "ROUNDS = 8",
        "ROUNDS = 1",
        f"{_TESTS}::test_a_light_body_is_carried_without_swinging",
    ),
    Defect(
        "what particles lose on their paths is lost",
        "mpm_nodes/solver/lost_on_paths.py",
        "(mass * (before[:, met] - now)).T",
        "(0.0 * now).T",
        _MOMENTUM,
    ),
    Defect(
        "a body is given all that particles lose on their paths, however light it is",
        _COUPLING,
        "if (share < 1.0).any():",
        "if (share < 0.0).any():",
        f"{_TESTS}::test_a_thin_plate_in_matter_is_not_thrown[0.0-10.0]",
    ),
    Defect(
        "a body is given what particles would have lost by a greater share",
        _COUPLING,
        "lost.momentum[mine] = momentum_lost(particles, velocity, before, moved)",
        "",
        f"{_TESTS}::test_a_thin_plate_in_matter_is_not_thrown[0.0-10.0]",
    ),
    Defect(
        "contacts act at their nodes",
        _COUPLING,
        "arm = places_of_contacts(grid, node, image, ratio) - centre",
        "arm = node_arm",
        _MOMENTUM,
    ),
    Defect(
        "a body that resumes begins at its collider again",
        "mpm_nodes/physics/rigid_bodies/numerics/bodies.py",
        "        if len(state):\n            self._world.come_back(state)\n",
        "",
        f"{_TESTS}::test_a_cook_resumes_to_the_same_bits[1.0]",
    ),
    Defect(
        "an anchor is taken for a place in the body",
        "mpm_nodes/physics/rigid_bodies/numerics/model.py",
        "np.array(joint.anchor) - place, back",
        "np.array(joint.anchor), back",
        f"{_TESTS}::test_bodies_alone[HangingBodies]",
    ),
    Defect(
        "a body begins where the shot begins",
        "mpm_nodes/nodes/solve.py",
        "    if ctx.frame <= clock.origin:  # before",
        "    if ctx.frame < -99999:  # before",
        f"{_TESTS}::test_keys_move_a_body_until_the_solve_begins",
    ),
    Defect(
        "what walls take bodies get",
        "mpm_nodes/solver/colliders.py",
        "before, self._dt, self.distances_of_all)",
        "before, self._dt, self.distances_at)",
        f"{_TESTS}::test_walls_do_not_push_bodies_that_are_elsewhere",
    ),
    Defect(
        "impulses count in another unit of mass than bodies",
        "mpm_nodes/physics/rigid_bodies/numerics/world.py",
        "return np.asarray(jacobian @ solved.T) / self._unit",
        "return np.asarray(jacobian @ solved.T)",
        f"{_TESTS}::test_grains_fall_as_boulders_do",
    ),
    Defect(
        "colliders that keys move have no velocity for bodies",
        "mpm_nodes/physics/rigid_bodies/numerics/world.py",
        "            self._let_surfaces_move()",
        "            pass",
        f"{_TESTS}::test_bodies_alone[MovingSurfaces]",
    ),
    Defect(
        "a strong motor throws its joint beyond its speed",
        "mpm_nodes/physics/rigid_bodies/numerics/world.py",
        "        self._soften_motors(dt)\n",
        "",
        f"{_JOINTS}::test_motors_turn_their_own_joints_as_fast_as_they_should[100000.0]",
    ),
    Defect(
        "motors take the speeds of each other",
        "mpm_nodes/physics/rigid_bodies/numerics/world.py",
        "self._speeds[self._model.actuator(str(b)).id] = joint.speed",
        "self._speeds[np.flatnonzero(self.places == b)[0]] = joint.speed",
        f"{_JOINTS}::test_motors_turn_their_own_joints_as_fast_as_they_should[50.0]",
    ),
    Defect(
        "a bowl is met as its hull",
        "mpm_nodes/physics/rigid_bodies/numerics/model.py",
        "        convex = _is_convex(mujoco, points, triangles)",
        "        convex = True",
        f"{_TESTS}::test_bodies_alone[BodiesInHollows]",
    ),
    Defect(
        "a body that falls out of the scene shortens substeps",
        "mpm_nodes/solver/colliders.py",
        "distance + 0.5 * clear, speed",
        "distance, speed",
        f"{_TESTS}::test_a_body_that_falls_out_of_the_scene_costs_nothing",
    ),
    Defect(
        "a cache has the torque for the force",
        "usd_io/forces.py",
        "zip((FORCE, TORQUE), both, strict=True)",
        "zip((TORQUE, FORCE), both, strict=True)",
        "tests/solver/test_forces_in_caches.py::test_a_cache_has_the_forces_on_its_colliders",
    ),
    Defect(
        "drags do not see the turn of a body",
        "mpm_nodes/physics/rigid_bodies/numerics/pushes.py",
        "np.cross(twists[:, None, 3:], arms)",
        "0.0 * arms",
        "tests/physics/rigid_bodies/test_forced_bodies.py::test_wind_draws_a_body_along_and_slows_its_turn",
    ),
    Defect(
        "an implicit substep does not move its bodies with the matter",
        "mpm_nodes/physics/rigid_bodies/numerics/implicit_coupling.py",
        "rows[self.mine, BODY : BODY + 3] += moves + np.cross(turns, self._at_node)",
        "rows[self.mine, BODY : BODY + 3] += 0.0",
        f"{_TESTS}::test_a_light_body_is_carried_without_swinging[implicit_apic]",
    ),
    Defect(
        "a substep that is halved goes on from where the longer one ended",
        "mpm_nodes/physics/rigid_bodies/numerics/bodies.py",
        "        if self._moves:  # once more, over a shorter one",
        "        if False:",
        f"{_TESTS}::test_a_substep_that_is_halved_begins_where_it_began",
    ),
    Defect(
        "a body of Blender's has the density of water",
        "mpm_nodes/hosts/blender_addon/rigid_bodies.py",
        "body.mass / volume:.4g",
        "1000.0:.4g",
        "tests/hosts/test_blender_rigid_bodies.py::test_active_bodies_move_in_a_solve",
    ),
    Defect(
        "the pressure of cells that bodies cut pushes nothing",
        _FACES,
        "return self.given(push + pressed)",
        "return self.given(push)",
        f"{_PROJECTED}::test_what_a_body_loses_matter_gets",
    ),
    Defect(
        "what shape and viscosity gave is lost when the pressure pushes",
        "mpm_nodes/physics/rigid_bodies/numerics/agreement.py",
        "bodies.move(given + impulses)",
        "bodies.move(impulses)",
        f"{_PROJECTED}::test_what_a_body_loses_matter_gets",
    ),
    Defect(
        "faces do not see how bodies move otherwise",
        "mpm_nodes/solver/colliders.py",
        "shift - self._dt * (twist[:3] + ",
        "shift - self._dt * (0.0 * twist[:3] + ",
        f"{_PROJECTED}::test_a_light_ball_rises_as_fast_as_potential_flow_lets_it",
    ),
)
