"""Density and volume measured on the grid (Stomakhin 2013 step 2)."""

import numpy as np
import pytest

from mpm_nodes.data import GraphSettings, Kernel, Material, MpmNodesError, Particles
from mpm_nodes.nodes.measure import measure_density

H, RHO = 0.1, 700.0


def lattice(n: int) -> Particles:
    """Return a cube of n^3 particles at h/2 with the mass of density RHO."""
    axis = (np.arange(n) + 0.5) * H / 2
    position = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    mass = np.full(len(position), RHO * (H / 2) ** 3)
    columns = {"position": position, "mass": mass, "velocity": np.ones((len(position), 3))}
    return Particles(columns, (Material("snow", {}, RHO),), H / 2)


@pytest.mark.parametrize("kernel", Kernel)
def test_inside_the_density_is_exact_and_at_a_corner_an_eighth(kernel):
    """An even lattice has rho inside to rounding; the volume is m / rho; at a corner about one eighth of the stencil is full."""
    source = lattice(20)
    found = measure_density(GraphSettings(cell_size=H), source, kernel=kernel)
    inside = np.all(np.abs(source["position"] - 0.5) < 0.2, axis=1)
    np.testing.assert_allclose(found["density"][inside], RHO, rtol=1e-6)
    np.testing.assert_allclose(found["volume"][inside], (H / 2) ** 3, rtol=1e-6)
    assert 0.125 * RHO < found["density"][0] < 0.45 * RHO
    assert found["volume"].sum() > len(source) * (H / 2) ** 3
    np.testing.assert_array_equal(found["velocity"], source["velocity"])


def test_particles_without_mass_are_refused():
    """There is nothing to measure."""
    with pytest.raises(MpmNodesError, match="no mass"):
        measure_density(GraphSettings(), Particles({"position": np.zeros((1, 3))}))
