"""Values that travel on outer wires."""

import numpy as np

from mpm_nodes.data import Material, Particles, SurfaceTension, concatenate


def test_joined_particles_keep_their_materials():
    """Parts with and without a material column, and parts that share a material, each keep the right one."""
    snow, water = Material("snow", {}, 400.0), Material("liquid", {}, 1000.0)
    plain = Particles({"position": np.zeros((2, 3))}, (water,))
    mixed = Particles({"position": np.ones((3, 3)), "material": np.array([0, 1, 1], np.int32)}, (snow, water))
    joined = concatenate([mixed, plain])
    assert joined.materials == (snow, water)
    assert joined["material"].tolist() == [0, 1, 1, 1, 1]
    assert concatenate([plain, plain])["material"].tolist() == [0] * 4
    assert joined["id"].tolist() == [0, 1, 2, 3, 4]


def test_missing_columns_take_the_rest_value():
    """A deformation that only one part has is the identity in the other; a user's column is zero."""
    one = Particles({"position": np.zeros((1, 3)), "deformation": 2 * np.eye(3)[None], "heat": np.array([5.0])})
    joined = concatenate([one, Particles({"position": np.zeros((1, 3))})])
    np.testing.assert_array_equal(joined["deformation"], [2 * np.eye(3), np.eye(3)])
    assert joined["heat"].tolist() == [5.0, 0.0]


def test_the_largest_tension_counts_the_solute_and_the_heat():
    """What limits steps is the largest at any temperature and concentration."""
    assert SurfaceTension(0.02, solute_tension=0.07).largest == 0.07
    assert SurfaceTension(0.02, hot_tension=0.05, temperature=300.0, hot_temperature=350.0).largest == 0.05
    assert SurfaceTension(0.02, hot_tension=0.05).largest == 0.02  # one temperature: nothing is hot
    assert SurfaceTension(0.02, table=((280.0, 0.06), (300.0, 0.01)), solute_tension=0.03).largest == 0.06
