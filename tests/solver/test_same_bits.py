"""The same shot gives the same bits: from run to run, and for any number of threads."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from solver_scenes import JELLY, LIQUID, SNOW, cube, values

from mpm_nodes.data import Collider, CollisionRule, Emitter, WallRule, Walls, concatenate
from mpm_nodes.kernels.level_sets.level_set import PLANE, SPHERE, PosedLevelSets
from mpm_nodes.materials.library import named_material
from mpm_nodes.solver.run import SubstepSolver

needs_two = pytest.mark.skipif(numba.config.NUMBA_NUM_THREADS < 2, reason="needs two threads")


def run(threads: int, dtype=np.float32, kernel: str = "quadratic", substeps: int = 40) -> dict[str, bytes]:
    """Return the bytes of a scene with everything: two laws, a stream, bodies, walls and sorts on the way."""
    numba.set_num_threads(threads)
    ground = PosedLevelSets(PLANE)
    ball = PosedLevelSets(SPHERE, (0.15,), np.array([0.0, 1.0]), None, np.array([[0.2, 0.0, 0.2], [0.2, 1.0, 0.2]]))
    bodies = (Collider("ground", CollisionRule.SEPARATE, 0.3, ground), Collider("ball", CollisionRule.STICKY, 0.0, ball))
    walls = Walls((-0.5, -1.0, -0.5), (0.37, 5.0, 5.0), (WallRule.SLIP, WallRule.DELETE, *(WallRule.OPEN,) * 4))
    matter = concatenate(
        [cube(SNOW, (0.0, 0.05, 0.0), cells=4, velocity=(1.0, -2.0, 0.5)), cube(JELLY, (0.1, 0.5, 0.1), velocity=(1.0, -3.0, 0.0))]
    )
    stream = Emitter(cube(LIQUID, (-0.4, 0.5, 0.0), cells=2), (3.0, -1.0, 0.0))
    substep = {"preset": "explicit_apic", "set": {"kernel": kernel, "transfer": "flip"}}
    solver = SubstepSolver(matter, substep, cell_size=0.1, colliders=bodies, walls=walls, emitters=[stream], dtype=dtype)
    for _ in range(substeps):
        solver.step(time_left=0.1)
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    assert 0 < solver.next_id - solver.particles.count < 200  # some were deleted at the wall
    return values(solver.snapshot())


@needs_two
@pytest.mark.parametrize("kernel", ["quadratic", "cubic"])
def test_one_and_two_threads_give_the_same_bits(kernel):
    """Sums are combined in a fixed order: every attribute is equal bit for bit after 40 substeps."""
    one, two = run(1, kernel=kernel), run(2, kernel=kernel)
    assert one.keys() == two.keys() and [name for name in one if one[name] != two[name]] == []


@needs_two
def test_what_lies_behind_a_block_changes_no_particle():
    """Foam has one set of bits: lanes behind a block's last particle hold what another thread is writing."""
    shove = {"velocity": (1.0, -2.0, 0.5)}
    # so placed that blocks end within a group of lanes
    drops = [
        cube(named_material(name), (x, 0.013, 0.027), 3, 0.01, **shove) for name, x in (("oobleck", 0.017), ("viscoplastic", 0.052))
    ]
    matter = concatenate(drops)
    ground = Collider("ground", CollisionRule.STICKY, 1.0, PosedLevelSets(PLANE))
    ends = []
    for threads in (1, 2, 2):
        numba.set_num_threads(threads)
        solver = SubstepSolver(matter, {"preset": "continuum_foam"}, cell_size=0.01, colliders=(ground,))
        for _ in range(60):
            solver.step(time_left=0.1)
        ends.append(values(solver.snapshot()))
    for other in ends[1:]:
        assert [name for name in other if other[name] != ends[0][name]] == []


def test_two_runs_give_the_same_bits():
    """Nothing depends on the clock, on memory or on what ran before."""
    assert run(1) == run(1)


def test_the_order_of_colliders_counts_and_that_of_attributes_does_not():
    """Columns in another order are the same particles."""
    matter = cube(SNOW, velocity=(0.0, -1.0, 0.0), stiffness_scale=1.2)
    turned = type(matter)(dict(reversed(matter.attributes.items())), matter.materials, matter.spacing)
    ends = []
    for particles in (matter, turned):
        solver = SubstepSolver(particles)
        for _ in range(5):
            solver.step()
        ends.append(values(solver.snapshot()))
    assert ends[0] == ends[1]
