"""Planted defects of kernels and materials."""

from __future__ import annotations

from defect import Defect

_PROBLEM = "tests/verification/test_problems.py::test_problem_holds"

DEFECTS = (
    Defect(
        "paths without friction",
        "mpm_nodes/kernels/collisions/paths.py",
        "respond(bodies.integer[hit, RULE], bodies.real[hit, FRICTION],",
        "respond(bodies.integer[hit, RULE], 0.0 * bodies.real[hit, FRICTION],",
        "tests/colliders/test_paths.py::test_friction_acts_on_paths",
    ),
    Defect(
        "a wrong Lame parameter",
        "mpm_nodes/materials/parameters.py",
        "/ ((1.0 + poisson_ratio) * (1.0 - 2.0 * poisson_ratio))",
        "/ ((1.0 + poisson_ratio) * (1.0 - poisson_ratio))",
        f"{_PROBLEM}[elastic_bar_period]",
    ),
    Defect(
        "tables of liquids are read at the solid's rows",
        "mpm_nodes/kernels/composition/lane_loop.py",
        'body += [f"{name} = select(melted, liquid_{name}, {name})" for name in own]',
        'body += [f"{name} = select(melted, {name}, {name})" for name in own]',
        "tests/materials/test_over_temperature.py::test_each_lane_has_the_stress_of_its_temperature_and_phase",
    ),
    Defect(
        "in a wall the face counts that the floor sees",
        "mpm_nodes/kernels/collisions/node_surfaces.py",
        "met = side_of_plate((b, np.int64(sheet)), side, np.int64(1), y, h, bodies)",
        "met = side_of_plate((b, np.int64(sheet)), side, np.int64(1), y, h, bodies)\n"
        "            met = nearer_part(b, np.int64(1), y, met, h, bodies)",
        "tests/colliders/test_sheet_sides.py::test_walls_that_meet_make_rooms",
    ),
    Defect(
        "rods are taken for sheets",
        "mpm_nodes/kernels/level_sets/sheets.py",
        "sheet = _goes_on(level_set, (points, normals, lengths), 1.0) >= 3",
        "sheet = _goes_on(level_set, (points, normals, lengths), 1.0) >= 2",
        "tests/colliders/test_sides.py::test_thin_sheets_of_level_sets_are_said",
    ),
    Defect(
        "a sheet's fronts change from key to key",
        "mpm_nodes/kernels/level_sets/sheet_fields.py",
        "ordered.append(left[best] if nearest[best][1] >= 0.0 else _turned(left[best]))",
        "ordered.append(left[best])",
        "tests/colliders/test_sheet_sides.py::test_fronts_are_the_same_from_key_to_key",
    ),
    Defect(
        "the order of the points chooses those that a sheet keeps",
        "mpm_nodes/kernels/level_sets/sheets.py",
        "cubes = np.sign(way) * np.floor(np.abs(way) + 0.5 - ON_BORDER)",
        "cubes = np.floor(way)",
        "tests/colliders/test_mirrored_bodies.py::test_the_middle_of_a_mirrored_sheet_is_mirrored[0.0]",
    ),
    Defect(
        "the first of the copies that are one node decides its sides",
        "mpm_nodes/kernels/collisions/fellows.py",
        "if grid.master[64 * last + node] == grid.master[64 * block + node]:",
        "if last == block:",
        "tests/colliders/test_mirrored_bodies.py::test_matter_falls_apart_alike_on_both_sides[funnel-0.5]",
    ),
    Defect(
        "rounding chooses which fellow is nearer",
        "mpm_nodes/kernels/collisions/fellows.py",
        "if there < REACH or away > nearest + ROUNDING or beside:",
        "if there < REACH or away > nearest or beside:",
        "tests/colliders/test_mirrored_bodies.py::test_matter_falls_apart_alike_on_both_sides[funnel-0.5]",
    ),
    Defect(
        "J_P is missing in the matrix of the pressure",
        "mpm_nodes/kernels/projection/pressure.py",
        "compressibility * ratio / (elastic * elastic * dt)",
        "compressibility / (elastic * dt) + 0.0 * ratio",
        "tests/solver/test_projection.py::test_what_has_flowed_presses_by_its_elastic_strain",
    ),
    Defect(
        "faces that walls cut lack the volume of their particles",
        "mpm_nodes/kernels/projection/face_volumes.py",
        "volumes[here] = max(volumes[here], ratio * rest[3 * here + axis])",
        "volumes[here] = max(volumes[here], 0.0 * ratio * rest[3 * here + axis])",
        "tests/solver/test_projection.py::test_faces_that_walls_cut_have_the_volume_of_their_particles_at_least",
    ),
    Defect(
        "a body gets nine tenths of the impulse that it gives",
        "mpm_nodes/kernels/collisions/bodies.py",
        "velocity[j + axis] += given[axis] / mass_b",
        "velocity[j + axis] += 0.9 * given[axis] / mass_b",
        "tests/colliders/test_bodies.py::test_bodies_give_each_other_the_same_impulse",
    ),
    Defect(
        "a fellow gets nine tenths of what a contact takes",
        "mpm_nodes/kernels/collisions/response.py",
        "velocity[at] + change0 / mass,",
        "velocity[at] + 0.9 * change0 / mass,",
        "tests/colliders/test_offsets.py::test_what_a_contact_takes_from_a_node_its_fellow_answers_for[0.4]",
    ),
    Defect(
        "sheets of level sets reach beyond their rims",
        "mpm_nodes/kernels/collisions/sides.py",
        "return across, sample(b, 1.0 * end, y0 - across * g0, y1 - across * g1, y2 - across * g2, bodies)[0]",
        "return across, -1.0",
        "tests/colliders/test_sheet_sides.py::test_a_block_beside_the_rim_of_a_mesh_moves_as_without_it",
    ),
    Defect(
        "walls are felt behind the wall that they stand on",
        "mpm_nodes/kernels/collisions/sides.py",
        "return node_sides[node, 1 + own if own else HERE]",
        "return node_sides[node, HERE]",
        "tests/colliders/test_sheet_sides.py::test_walls_that_meet_make_rooms",
    ),
    Defect(
        "seeds merge with seeds",
        "mpm_nodes/kernels/resampling/merging.py",
        "volume[s] + volume[row] <= most",
        "volume[s] <= most",
        "tests/kernels/test_void_merging.py::test_light_ones_that_lie_close_merge_and_seeds_do_not",
    ),
    Defect(
        "a gap before a surface is closed at once",
        "mpm_nodes/kernels/collisions/contact_rows.py",
        "speed = (1.0 - ratio) * gap * per_second",
        "speed = 0.0",
        "tests/colliders/test_touching.py::test_nodes_before_a_floor_are_held_once_matter_touches_it",
    ),
    Defect(
        "what is held stays at the farthest place from which it is",
        "mpm_nodes/kernels/collisions/contact_rows.py",
        "            return surface, w, speed",
        "            return surface, w, 0.0",
        "tests/solver/test_solve_node.py::test_sticky_walls_hold_and_separating_ones_let_go",
    ),
    Defect(
        "all matter before a floor counts as touching it",
        "mpm_nodes/kernels/collisions/touching.py",
        "    if there >= near * here:",
        "    if there >= 0.0:",
        "tests/colliders/test_touching.py::test_nodes_before_a_floor_are_held_once_matter_touches_it",
    ),
    Defect(
        "matter far from a plate sees through it",
        "mpm_nodes/kernels/collisions/fellows.py",
        "return matter | kept_apart(matter, sides_seen(matter, 64 * block + node, grid.node_sides))",
        "return matter",
        "tests/colliders/test_sides.py::test_nothing_goes_through",
    ),
    Defect(
        "a lattice before walls counts as crowded",
        "mpm_nodes/kernels/transfers/room.py",
        "r = min(o * math.exp(-LATTICE * math.log(o)) / f - 1.0, 0.0)",
        "r = min(o * math.exp(-0.0 * math.log(o)) / f - 1.0, 0.0)",
        "tests/solver/test_moving_liquid.py::test_a_lattice_before_walls_does_not_count_as_crowded",
    ),
    Defect(
        "liquid at a surface finds room in the air",
        "mpm_nodes/kernels/transfers/room.py",
        "        if beside:\n",
        "        if beside and False:\n",
        "tests/solver/test_moving_liquid.py::test_room_is_not_found_beside_the_air_and_crowding_is",
    ),
    Defect(
        "bodies leave open what they fill",
        "mpm_nodes/kernels/collisions/open_share.py",
        "opened[n] *= max(1.0 - closed[n], 0.0)",
        "opened[n] *= max(1.0 - 0.5 * closed[n], 0.0)",
        "tests/solver/test_moving_liquid.py::test_bodies_close_the_splines_integral_inside_them",
    ),
)
