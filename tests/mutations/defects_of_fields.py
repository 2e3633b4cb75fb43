"""Planted defects of fields, forces and drains."""

from __future__ import annotations

from defect import Defect

_FORCES, _FIELDS, _GRIDS = "tests/solver/test_forces.py", "tests/emit/test_fields.py", "tests/emit/test_field_grids.py"

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
        "push_particles(particles, step.forces, step.middle, step.dt)",
        "push_particles(particles, step.forces, step.beginning, step.dt)",
        f"{_FORCES}::test_keys_are_taken_in_the_middle_of_the_substep",
    ),
    Defect(
        "a particle counts in every drain that it lies in",
        "mpm_nodes/solver/drains.py",
        "inside(particles, each.field, frame) & ~gone",
        "inside(particles, each.field, frame)",
        f"{_FORCES}::test_a_cook_with_a_drain_resumes_to_the_same_bits",
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
