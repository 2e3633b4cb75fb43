"""Planted defects of fields, forces and drains."""

from __future__ import annotations

from defect import Defect

_FORCES, _FIELDS, _GRIDS = "tests/solver/test_forces.py", "tests/emit/test_fields.py", "tests/emit/test_field_grids.py"
_GOALS, _OWN = "tests/solver/test_force_goal.py", "tests/emit/test_field_attributes.py"

_METERING = "tests/solver/test_metering.py"
DEFECTS = (
    Defect(
        "noise does not repeat along its second axis",
        "mpm_nodes/kernels/fields/noise.py",
        "at_y, by_y = at_z ^ (_wrapped(j + b, periods[1]) * PRIMES[1])",
        "at_y, by_y = at_z ^ (_wrapped(j + b, 0) * PRIMES[1])",
        f"{_FORCES}::test_closed_forms[NoiseOfFields]",
    ),
    Defect(
        "a curl has divergence",
        "mpm_nodes/kernels/fields/noise.py",
        "v += along_z * n1 + weight * g1z - along_x * n3 - weight * g3x",
        "v += along_z * n1 + weight * g1z - along_x * n3",
        f"{_FORCES}::test_closed_forms[NoiseOfFields]",
    ),
    Defect(
        "fields turn the wrong way",
        "mpm_nodes/kernels/fields/programs.py",
        "u = (numbers[first] * r + numbers[first + 3] * s + numbers[first + 6] * t) / numbers[first + 12]",
        "u = (numbers[first] * r + numbers[first + 1] * s + numbers[first + 2] * t) / numbers[first + 12]",
        f"{_FIELDS}::test_shapes_are_distances_turned_and_moved",
    ),
    Defect(
        "voxels beside one another are taken crosswise",
        "mpm_nodes/kernels/fields/programs.py",
        "weight = (u if corner >> 2 else 1.0 - u) * (v if (corner >> 1) & 1 else 1.0 - v)",
        "weight = (v if corner >> 2 else 1.0 - v) * (u if (corner >> 1) & 1 else 1.0 - u)",
        f"{_GRIDS}::test_values_are_trilinear",
    ),
    Defect(
        "two grids share their leaves",
        "mpm_nodes/solver/field_programs.py",
        "first, begin = first + len(grid.leaves), begin + len(grid.voxels)",
        "first, begin = first, begin + len(grid.voxels)",
        f"{_GRIDS}::test_two_grids_in_one_program",
    ),
    Defect(
        "voxels that nobody wrote count with their background",
        "mpm_nodes/nodes/fields_of_files.py",
        "voxels[(voxels == np.float32(leaves.background)).all(axis=2)] = np.nan",
        "voxels[(voxels == np.float32(1e9)).all(axis=2)] = np.nan",
        f"{_GRIDS}::test_where_a_grid_ends",
    ),
    Defect(
        "grids that are extended fade",
        "mpm_nodes/kernels/fields/programs.py",
        "    if left_out:",
        "    if left_out and held > 2.0:",
        f"{_GRIDS}::test_where_a_grid_ends",
    ),
    Defect(
        "coarse grids that are spread have holes",
        "mpm_nodes/nodes/fields_of_files.py",
        "max(cell, apart))",
        "cell)",
        f"{_GRIDS}::test_a_grid_that_is_spread",
    ),
    Defect(
        "a surface that goes loses its value",
        "mpm_nodes/kernels/fields/programs.py",
        "return a if math.isnan(b) else a + share * (b - a)",
        "return a + share * (b - a)",
        "tests/emit/test_field_primvars.py::test_a_surface_that_comes_or_goes_keeps_its_value",
    ),
    Defect(
        "shares beyond 0 to 1 are not thought of",
        "mpm_nodes/solver/field_bounds.py",
        "if 0.0 <= low <= high <= 1.0:",
        "if low <= high:",
        "tests/solver/test_field_bounds.py::test_no_value_lies_beyond_the_bounds",
    ),
    Defect(
        "what lies below the least is told and left",
        "mpm_nodes/nodes/through_space.py",
        'return SpatialField("MAXIMUM", (field, constant(least)))',
        "return field",
        "tests/solver/test_field_bounds.py::test_what_lies_below_the_least_is_raised_and_told_once",
    ),
    Defect(
        "a speed limit slows down what is faster",
        "mpm_nodes/kernels/fields/pushing.py",
        "max(most * most, before)",
        "most * most",
        f"{_FORCES}::test_a_speed_limit_stops_what_pushes_and_slows_nothing_down",
    ),
    Defect(
        "quadratic drag is not solved but stepped",
        "mpm_nodes/kernels/fields/pushing.py",
        "share = 1.0 / (1.0 + rate * math.sqrt(x * x + y * y + z * z) * dt)",
        "share = 1.0 - rate * math.sqrt(x * x + y * y + z * z) * dt",
        f"{_FORCES}::test_closed_forms[ImpulseAndWork]",
    ),
    Defect(
        "air reaches one cell into matter",
        "mpm_nodes/kernels/fields/pushing.py",
        "        windward += _filled_at(block, i + 2 * a, j + 2 * b, k + 2 * c, cells, around)\n",
        "",
        f"{_FORCES}::test_air_stays_outside_of_matter",
    ),
    Defect(
        "the strongest acceleration is not told",
        "mpm_nodes/kernels/fields/pushing.py",
        "given[4 * count] = strongest",
        "given[4 * count] = 0.0",
        f"{_FORCES}::test_a_strong_force_shortens_the_step",
    ),
    Defect(
        "keys are taken at the start of the substep",
        "mpm_nodes/solver/stages/apply_forces.py",
        "push_particles(particles, step.forces, step.moment(0.5 * step.dt), step.dt)",
        "push_particles(particles, step.forces, step.moment(0.0), step.dt)",
        f"{_FORCES}::test_keys_are_taken_in_the_middle_of_the_substep",
    ),
    Defect(
        "a particle counts in every drain that it lies in",
        "mpm_nodes/solver/drains.py",
        "inside(particles, each.field, moment) & ~gone",
        "inside(particles, each.field, moment)",
        f"{_FORCES}::test_a_cook_with_a_drain_resumes_to_the_same_bits",
    ),
    Defect(
        "goals are exchanged where that makes ways longer",
        "mpm_nodes/solver/rearrangement.py",
        "g[one] - g[other]) < 0.0",
        "g[one] - g[other]) > 0.0",
        f"{_GOALS}::test_exchanges_shorten_ways_within_groups",
    ),
    Defect(
        "gravity pulls matter off its goal",
        "mpm_nodes/nodes/goals.py",
        'wanted = SpatialField("SUBTRACT", (wanted, SpatialField("DIVIDE", (pull, rate)',
        'wanted = SpatialField("ADD", (wanted, SpatialField("DIVIDE", (pull, rate)',
        f"{_GOALS}::test_closed_forms[ArrivalAtGoal]",
    ),
    Defect(
        "what has no goal flies to the middle of the world",
        "mpm_nodes/nodes/goals.py",
        "constant(strength), own(GOAL_WEIGHT),",
        "constant(strength),",
        f"{_GOALS}::test_matter_without_a_goal_is_left_alone",
    ),
    Defect(
        "the age is that before the substep",
        "mpm_nodes/solver/drains.py",
        "moment = step.moment(step.dt)",
        "moment = step.moment(0.0)",
        f"{_GOALS}::test_closed_forms[DrainByAge]",
    ),
    Defect(
        "the second component of an attribute is its first",
        "mpm_nodes/kernels/fields/programs.py",
        "values[(3 * n + axis) * stride + p]",
        "values[3 * n * stride + p]",
        f"{_OWN}::test_it_is_what_particles_begin_with",
    ),
    Defect(
        "what a stream was born with is not counted to the volume",
        "mpm_nodes/solver/metering.py",
        "self.born += int(keep.sum())",
        "self.born += 0",
        f"{_METERING}::test_streams_with_a_look_for_room_count_what_was_born",
    ),
    Defect(
        "a keyed rate is taken at the beginning of its piece",
        "mpm_nodes/solver/metering.py",
        "w * self._rate(middle + half * x)",
        "w * self._rate(begin)",
        f"{_METERING}::test_bursts_bring_the_integral_of_their_keys",
    ),
    Defect(
        "a resumed stream is open again",
        "mpm_nodes/solver/metering.py",
        "self.born, self.closed, self.first_area = int(state[0, 0]), bool(state[0, 1])",
        "self.born, self.closed, self.first_area = int(state[0, 0]), False",
        f"{_METERING}::test_a_closed_stream_stays_closed_in_a_checkpoint",
    ),
    Defect(
        "what is born presses nothing",
        "mpm_nodes/solver/room.py",
        "mine = inner & (now > 1.0)",
        "mine = inner & (now > 99.0)",
        f"{_METERING}::test_what_is_born_in_matter_presses_it",
    ),
)
