"""Planted defects: a small change of the source that some test must notice.

Each was possible without any test failing once, or is of the same kind. `test_mutations.py` applies them one by one to a copy of
the package and runs the named test against it.
"""

from __future__ import annotations

from typing import NamedTuple


class Defect(NamedTuple):
    """One change of the source.

    Attributes:
        name: What goes wrong.
        file: File, from the root of the repository.
        old: Text that stands there exactly once.
        new: Text in its place.
        test: Id of the test that must fail.
    """

    name: str
    file: str
    old: str
    new: str
    test: str


_PROBLEM = "tests/verification/test_problems.py::test_problem_holds"
_SHOT_TIME = "tests/solver/test_shot_time.py"
_BEFORE = "tests/emit/test_before_the_cook.py"
_FAR = "tests/emit/test_far_off.py"
_INITIAL = "tests/solver/test_initial_state.py"

DEFECTS = (
    # ---------------------------------------------------------------- found uncaught once
    Defect(
        "matter slips on what is sticky under the projection",
        "mpm_nodes/solver/mirrors.py",
        "factor = -depth / np.maximum(steps - depth, NEAREST)",
        "factor = -0.0 * depth / np.maximum(steps - depth, NEAREST)",
        "tests/solver/test_mirrors.py::test_a_sheared_layer_keeps_its_profile",
    ),
    Defect(
        "matter slips on sticky slopes under the projection",
        "mpm_nodes/solver/face_step.py",
        "clings = ~np.isnan(speed)",
        "clings = np.zeros(len(speed), bool)",
        "tests/solver/test_clinging.py::test_a_layer_on_a_slope_is_sheared_as_fast_as_its_plates",
    ),
    Defect(
        "what pushes mirrored faces is lost",
        "mpm_nodes/solver/mirrors.py",
        "np.add.at(push, each.leaders, each.factor * push[each.faces])",
        "np.add.at(push, each.leaders, 0.0 * push[each.faces])",
        "tests/solver/test_mirrors.py::test_pushes_are_handed_over_as_velocities_are_mirrored",
    ),
    Defect(
        "paths without friction",
        "mpm_nodes/kernels/collisions/paths.py",
        "respond(bodies.integer[hit, RULE], bodies.real[hit, FRICTION],",
        "respond(bodies.integer[hit, RULE], 0.0 * bodies.real[hit, FRICTION],",
        "tests/colliders/test_paths.py::test_friction_acts_on_paths",
    ),
    Defect(
        "colliders' own motion at the wrong pace",
        "mpm_nodes/solver/colliders.py",
        "pace = np.float32(1.0 / self._pace)",
        "pace = np.float32(1.0)",
        f"{_SHOT_TIME}::test_velocity_grids_are_scaled_as_their_lengths",
    ),
    Defect(
        "velocity grids not scaled with their lengths",
        "mpm_nodes/nodes/collider_volumes.py",
        "speeds = scale * speeds.reshape(-1, 512, 3)",
        "speeds = speeds.reshape(-1, 512, 3)",
        f"{_SHOT_TIME}::test_velocity_grids_are_scaled_as_their_lengths",
    ),
    Defect(
        "a stage's codes per second taken for frames",
        "mpm_nodes/graph/clock.py",
        "return frame * codes_per_second / self.fps",
        "return frame",
        f"{_SHOT_TIME}::test_a_stage_of_any_codes_per_second_moves_in_its_own_seconds",
    ),
    Defect(
        "new particles 1.6 times too deep",
        "mpm_nodes/solver/stages/avoid_a_void.py",
        "lengths = (coverage, depth, merge_distance, EDGE[finest])",
        "lengths = (coverage, 1.6 * depth, merge_distance, EDGE[finest])",
        "tests/solver/test_avoid_a_void.py::test_voids_are_filled_up_to_the_insertion_depth",
    ),
    Defect(
        "viscous_energy does nothing",
        "mpm_nodes/solver/stages/implicit.py",
        'energy.add("viscous_energy", ViscousEnergy(particles, energy.grid, STENCIL[kernel.value]))',
        "ViscousEnergy(particles, energy.grid, STENCIL[kernel.value])",
        "tests/solver/test_energy_terms.py::test_the_stage_of_viscosity_adds_its_term",
    ),
    Defect(
        "particle speed left out of the elastic limit",
        "mpm_nodes/solver/stages/choose_time_step.py",
        "elastic_cfl * h / (wave + speed)",
        "elastic_cfl * h / wave",
        "tests/solver/test_time_step.py::test_the_elastic_limit_counts_the_speed_of_the_matter",
    ),
    Defect(
        "deep penetration never said",
        "mpm_nodes/nodes/solve.py",
        "if depth > 0.5 * solver.cell_size:",
        "if depth > 500.0 * solver.cell_size:",
        "tests/solver/test_time_step.py::test_matter_deep_inside_a_collider_is_warned_of",
    ),
    Defect(
        "two writers need no order",
        "mpm_nodes/graph/hazards.py",
        "shared = (writes & (other_reads | other_writes)) | (reads & other_writes)",
        "shared = (writes & other_reads) | (reads & other_writes)",
        "tests/graph/test_plan_substeps.py::test_two_writers_need_an_order",
    ),
    Defect(
        "a wrong Lame parameter",
        "mpm_nodes/materials/parameters.py",
        "/ ((1.0 + poisson_ratio) * (1.0 - 2.0 * poisson_ratio))",
        "/ ((1.0 + poisson_ratio) * (1.0 - poisson_ratio))",
        f"{_PROBLEM}[elastic_bar_period]",
    ),
    # ---------------------------------------------------------------- of the same kinds
    Defect(
        "a material loses its viscosity on the way",
        "mpm_nodes/data/values.py",
        '"surface_tension": tension, "tables": tables}',
        '"surface_tension": tension, "tables": tables, "viscosity": 0.0}',
        "tests/usd_io/test_usd_cache.py::test_whole_materials_come_back",
    ),
    Defect(
        "tables of liquids are read at the solid's rows",
        "mpm_nodes/kernels/composition/lane_loop.py",
        'body += [f"{name} = select(melted, liquid_{name}, {name})" for name in own]',
        'body += [f"{name} = select(melted, {name}, {name})" for name in own]',
        "tests/materials/test_over_temperature.py::test_each_lane_has_the_stress_of_its_temperature_and_phase",
    ),
    Defect(
        "own weight hardly counts",
        "mpm_nodes/nodes/own_weight.py",
        "weight = body.material.density * strength * height",
        "weight = 0.01 * body.material.density * strength * height",
        f"{_BEFORE}::test_what_its_weight_would_change_is_said",
    ),
    Defect(
        "a stream's estimate forgets its length of time",
        "mpm_nodes/nodes/bodies.py",
        "return flow.rate * (end - begin) if math.isfinite(end) else math.inf",
        "return flow.rate",
        f"{_BEFORE}::test_the_estimate_of_a_stream_is_what_comes",
    ),
    Defect(
        "a stream that ends brings a layer too many",
        "mpm_nodes/solver/emission.py",
        "passed + (-SAME_TIME if over else SAME_TIME)",
        "passed + SAME_TIME",
        "tests/solver/test_emission.py::test_a_stream_that_ends_brings_what_its_time_says",
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
        "small voxels are free",
        "mpm_nodes/nodes/surface.py",
        "memory = int(SURFACE_BYTES * along**3)",
        "memory = int(SURFACE_BYTES * along)",
        f"{_BEFORE}::test_small_voxels_are_in_the_estimate",
    ),
    Defect(
        "a mouth is asked for where one is wired",
        "mpm_nodes/nodes/solve_needs.py",
        'if not told.total("colliders", "carries"):',
        "if True:",
        f"{_BEFORE}::test_a_stream_that_gravity_pulls_apart_says_what_to_wire",
    ),
    Defect(
        "crowds pass",
        "mpm_nodes/nodes/crowding.py",
        "WITHIN = 0.5",
        "WITHIN = 5.0",
        f"{_FAR}::test_overlap_is_told_by_how_much_matter_lies_double",
    ),
    Defect(
        "far positions are written",
        "usd_io/estimate.py",
        "COARSEST = 0.25",
        "COARSEST = 250.0",
        f"{_FAR}::test_a_cache_refuses_positions_that_its_numbers_cannot_hold",
    ),
    Defect(
        "masses overflow",
        "mpm_nodes/solver/initial.py",
        "if not least < low <= high < most:",
        "if not low <= high:",
        f"{_FAR}::test_densities_that_the_solve_s_numbers_do_not_hold_are_refused",
    ),
    Defect(
        "an empty shot says nothing",
        "mpm_nodes/nodes/solve.py",
        "if held and not count_of(solver) and",
        "if not held and not count_of(solver) and",
        f"{_FAR}::test_a_solve_that_loses_all_its_matter_says_so",
    ),
    Defect(
        "thin bodies are as thin as they are drawn",
        "mpm_nodes/nodes/collide.py",
        "return max(thickness, 2.0 * STEP * ctx.settings.cell_size)",
        "return thickness",
        f"{_FAR}::test_no_thin_box_lets_matter_through",
    ),
    Defect(
        "J is not taken from the total deformation",
        "mpm_nodes/solver/initial.py",
        'columns["volume_change"] = np.where(holds, change, 0.0)',
        'columns["volume_change"] = np.where(holds, 0.0, change)',
        f"{_INITIAL}::test_a_given_total_deformation_gives_the_foam_its_volume",
    ),
    Defect(
        "no viscosity in the first substep",
        "mpm_nodes/solver/run.py",
        "measure_gradients(self.particles, self.grid)",
        "_ = measure_gradients",
        f"{_INITIAL}::test_viscosity_acts_in_the_first_substep",
    ),
    Defect(
        "a clamp pushes out",
        "mpm_nodes/solver/colliders.py",
        "if not collider.clamp]",
        "if not (collider.clamp and False)]",
        f"{_INITIAL}::test_an_end_is_clamped_by_embedding_it_where_that_is_asked",
    ),
    Defect(
        "bars a tenth lower than printed",
        "samples/reproduction/shot.py",
        "return bool(self.least <= measured <= self.most)",
        "return bool(0.9 * self.least <= measured <= self.most)",
        "tests/samples/test_figures.py::test_what_is_printed_is_what_is_enforced",
    ),
    Defect(
        "a sample that misses its bars ends well",
        "samples/reproduction/run.py",
        "return int(any(figure.ok is False and (args.strict or not figure.known) for figure in found))",
        "return 0",
        "tests/samples/test_foam_samples.py::test_it_cooks_draws_and_measures",
    ),
    Defect(
        "written velocities per simulated second",
        "mpm_nodes/graph/clock.py",
        "if pace == 1.0:\n        return columns",
        "if pace:\n        return columns",
        f"{_SHOT_TIME}::test_written_rates_are_those_of_the_written_positions",
    ),
    Defect(
        "seeded volume a percent too large",
        "mpm_nodes/nodes/seeding.py",
        '"volume": np.full(count, region.volume / count),',
        '"volume": np.full(count, 1.01 * region.volume / count),',
        "tests/emit/test_emit_nodes.py::test_total_mass_is_density_times_volume",
    ),
    Defect(
        "sticky walls slip",
        "mpm_nodes/solver/walls.py",
        "WallRule.STICKY: collision.STICKY,",
        "WallRule.STICKY: collision.SLIP,",
        "tests/solver/test_solve_node.py::test_sticky_walls_stop_what_slides_along_them",
    ),
    Defect(
        "moved walls stand still for what they touch",
        "mpm_nodes/solver/walls.py",
        "self.rules[SPEED:] = (",
        "self.rules[SPEED:] = 0.0 * (",
        "tests/solver/test_keyed_solve.py",
    ),
    Defect(
        "drops before the initial state come too",
        "mpm_nodes/solver/emission.py",
        "if f >= self._clock.origin]",
        "if f >= self._clock.origin - 1e9]",
        "tests/emit/test_drops_and_colours.py::test_copies_from_before_the_initial_state_never_come",
    ),
    # ---------------------------------------------------------------- what came later
    Defect(
        "trials do not count their iterations",
        "mpm_nodes/solver/auto_steps.py",
        "rates.append((fixed + _iterated(solver.step_context.report)) / dt)",
        "rates.append(fixed / dt)",
        "tests/solver/test_auto_steps.py::test_iterations_are_counted",
    ),
    Defect(
        "what is left of a frame counts as the pace",
        "mpm_nodes/solver/run.py",
        "if step.dt < time_left * (1.0 - 1e-9) or step.dt > self.own_dt:",
        "if step.dt > 0.0:",
        "tests/solver/test_auto_steps.py::test_what_is_left_of_a_frame_asks_for_no_new_choice",
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
        "if there < REACH or away > nearest + 1e-6 or beside:",
        "if there < REACH or away > nearest or beside:",
        "tests/colliders/test_mirrored_bodies.py::test_matter_falls_apart_alike_on_both_sides[funnel-0.5]",
    ),
    Defect(
        "heat is smoothed as the solid conducts, however the liquid does",
        "mpm_nodes/solver/stages/heat.py",
        "return max(found.conductivity / found.heat_capacity, liquid) / float(material.density)",
        "return max(found.conductivity / found.heat_capacity, 0.0 * liquid) / float(material.density)",
        "tests/solver/test_heat.py::test_smoothing_follows_the_faster_of_solid_and_liquid[liquid faster]",
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
        "the extent that points return lacks their widths",
        "usd_io/points.py",
        "return extent_of(position, own_widths)",
        "return extent_of(position, 0.0 * own_widths)",
        "tests/usd_io/test_usd_cache.py::test_points_return_the_extent_of_balls_as_large_as_they_are",
    ),
    Defect(
        "Blender's boxes lack the scale of their object",
        "mpm_nodes/hosts/blender_addon/scene_input.py",
        "[scale[axis] * (high[axis] - low[axis]) for axis in range(3)]",
        "[0.0 * scale[axis] + (high[axis] - low[axis]) for axis in range(3)]",
        "tests/hosts/test_blender_scene.py::test_every_kind_of_object_is_what_it_is_or_is_refused",
    ),
    Defect(
        "secondary matter is born ahead of its parents",
        "mpm_nodes/nodes/secondary_births.py",
        "[who[of]] - back[:, None] * velocity",
        "[who[of]] + back[:, None] * velocity",
        "tests/usd_io/test_secondary.py::test_births_lie_on_the_way_of_their_parents",
    ),
    Defect(
        "what flies is slowed by a tenth too much",
        "mpm_nodes/nodes/secondary.py",
        "drag * (1.0 - left) * (thrown - still), still",
        "0.9 * drag * (1.0 - left) * (thrown - still), still",
        "tests/usd_io/test_secondary.py::test_paths_are_those_of_spheres_with_drag[SecondaryKind.SPRAY]",
    ),
    Defect(
        "secondary matter inherits the whole velocity",
        "mpm_nodes/nodes/secondary.py",
        "motion.inherit * new.velocity",
        "new.velocity",
        "tests/usd_io/test_secondary.py::test_it_begins_with_a_share_of_the_matters_velocity",
    ),
    Defect(
        "secondary matter is thrown into the matter",
        "mpm_nodes/nodes/secondary.py",
        "away = np.where(((away * new.outward).sum(axis=1) < 0.0)[:, None], -away, away)",
        "away = 1.0 * away",
        "tests/usd_io/test_secondary.py::test_it_is_thrown_out_of_the_matter",
    ),
    Defect(
        "all secondary matter lives half of its life",
        "mpm_nodes/nodes/secondary.py",
        "motion.life * (OLD_ENOUGH + (1.0 - OLD_ENOUGH) * random(3))",
        "motion.life * (OLD_ENOUGH + 0.0 * random(3))",
        "tests/usd_io/test_secondary.py::test_lives_last_between_half_and_all_of_what_was_asked",
    ),
    Defect(
        "retimed paths lack their cubic term",
        "mpm_nodes/nodes/retime.py",
        "+ s**3 * (2.0 * (x - y) + u + v)",
        "",
        "tests/usd_io/test_retime.py::test_between_frames_it_is_the_cubic_of_places_and_velocities",
    ),
    Defect(
        "retimed frames tell the time of the frame before",
        "mpm_nodes/nodes/retime.py",
        "time = (1.0 - share) * before.time + share * after.time",
        "time = before.time",
        "tests/usd_io/test_retime.py::test_a_cook_retimes_a_cook",
    ),
    Defect(
        "retimed velocities keep the pace of the cache",
        "mpm_nodes/nodes/retime.py",
        '"velocity": (slope * (fps * pace))',
        '"velocity": (slope * fps)',
        "tests/usd_io/test_retime.py::test_ballistic_flight_is_exact_at_any_rate[24.0-0.25]",
    ),
    Defect(
        "a stream's particles all begin at the exit",
        "mpm_nodes/solver/emission.py",
        "places + self.crossing[who, None] * directions + (end",
        "places + (end",
        "tests/solver/test_emission.py::test_a_stream_has_no_seam",
    ),
    Defect(
        "dropped copies turn about the origin",
        "mpm_nodes/nodes/streams.py",
        "offset = middle - rotation @ middle + ",
        "offset = 0.0 * middle + ",
        "tests/emit/test_drops_and_colours.py::test_copies_turn_about_their_own_middle",
    ),
    Defect(
        "painted wetting pulls out of the surface",
        "mpm_nodes/solver/wetting.py",
        "slope -= (slope * normal).sum(axis=1)[:, None] * normal",
        "slope -= 0.0",
        "tests/solver/test_wetting.py::test_painted_wetting_is_that_of_the_place",
    ),
    Defect(
        "painted wetting pulls half as hard",
        "mpm_nodes/solver/wetting.py",
        "return k * field.at(place), k[:, None] * slope",
        "return k * field.at(place), 0.5 * k[:, None] * slope",
        "tests/solver/test_wetting.py::test_painted_wetting_is_that_of_the_place",
    ),
    Defect(
        "heat that enters has nine tenths of its arm",
        "mpm_nodes/solver/nodal_conduction.py",
        "+= out * met.arm[:, axis] /",
        "+= 0.9 * out * met.arm[:, axis] /",
        "tests/solver/test_nodal_heat.py::test_the_matrix_is_symmetric_and_heat_only_flows_down[Kernel.QUADRATIC]",
    ),
    Defect(
        "air in places is a hundredth colder",
        "mpm_nodes/solver/nodal_conduction.py",
        "warmth[met] = to_air[met] * air.air.at(place)",
        "warmth[met] = 0.99 * to_air[met] * air.air.at(place)",
        "tests/solver/test_nodal_heat.py::test_air_and_heat_in_places_are_those_of_the_stage",
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
        "quarter turns are rounded",
        "mpm_nodes/nodes/rotations.py",
        "if quarters == np.rint(quarters):",
        "if quarters is None:",
        "tests/colliders/test_offsets.py::test_quarter_turns_are_exact",
    ),
    Defect(
        "what lies on a table was lifted away",
        "samples/reproduction/figures.py",
        "(lowest < top + cell)",
        "(lowest < top)",
        "tests/samples/test_foam_samples.py::test_what_lies_on_a_table_rests_and_what_was_lifted_does_not",
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
        "an implicit update counts copies of nodes several times",
        "mpm_nodes/solver/sides.py",
        "np.repeat(1.0 / copies, 4)",
        "np.repeat(0.0 * copies + 1.0, 4)",
        "tests/colliders/test_implicit_sides.py::test_a_block_around_the_rim_moves_as_without_the_plate",
    ),
    Defect(
        "orientations turn the long way round",
        "mpm_nodes/graph/keys.py",
        "if cosine < 0.0:  # q and -q are one rotation",
        "if cosine < -2.0:",
        "tests/colliders/test_orientation.py::test_keys_turn_at_an_even_rate_along_the_shorter_arc",
    ),
    Defect(
        "a turn that is given twice is cooked",
        "mpm_nodes/graph/validate.py",
        "for knob in given[1:]:",
        "for knob in given[2:]:",
        "tests/colliders/test_orientation.py::test_both_are_refused_before_the_cook",
    ),
    Defect(
        "substeps that cannot keep sides apart couple them without a word",
        "mpm_nodes/solver/sides.py",
        "if not len(apart.plates) or not particles.count or len(colliders.plates):",
        "if not len(apart.plates) or not particles.count or True:",
        "tests/colliders/test_sides.py::test_matter_on_both_sides_of_a_sheet_is_refused",
    ),
    Defect(
        "an interval is counted from the start of each frame",
        "mpm_nodes/solver/stages/remove_subgrid.py",
        "if (step.substeps_done + 1) % interval:",
        "if (step.substep + 1) % interval:",
        "tests/solver/test_subgrid.py::test_an_interval_counts_over_frames",
    ),
    Defect(
        "a resumed solve counts its substeps from one",
        "mpm_nodes/solver/checkpoint.py",
        'begin if others else facts["time"], facts["substeps"]',
        'begin if others else facts["time"], 1',
        "tests/solver/test_subgrid.py::test_a_resumed_solve_goes_on_counting",
    ),
    Defect(
        "matter that is dense in itself lies on others",
        "mpm_nodes/nodes/crowding.py",
        "others[mine] -= _filled(",
        "others[mine] -= 0.0 * _filled(",
        "tests/emit/test_far_off.py::test_matter_that_is_dense_in_itself_does_not_lie_on_others",
    ),
)
