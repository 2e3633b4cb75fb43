"""What is measured on particles before a solve."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import GraphSettings, Kernel, MpmNodesError, Particles
from mpm_nodes.graph.declare import node
from mpm_nodes.nodes.bodies import adding


@node(category="Emit", label="Measure Density", version=1, preflight=adding("density"))
def measure_density(
    settings: GraphSettings,
    particles: Particles,
    *,
    kernel: Kernel = Kernel.QUADRATIC,
    set_volume: bool = True,
) -> Particles:
    """Measure each particle's density on the grid, and from it the volume: for sources whose spacing is not even.

    rho_p = sum_i w_ip m_i / h^3 and V0_p = m_p / rho_p (Stomakhin 2013 step 2, Y15 Alg. 5). At a free surface half of the
    stencil is empty, so the density comes out too low there and the volume too large; the volumes of the emitters of this
    package are exact and need no measuring.

    Args:
        particles: Particles with mass.
        kernel: B-spline of the weights.
        set_volume: Replace the volume; otherwise only the density is added.

    Raises:
        MpmNodesError: The particles have no mass.
    """
    from mpm_nodes.solver.grid import GridStore
    from mpm_nodes.solver.state import ParticleStore
    from mpm_nodes.solver.transfers import Deposit, Take, gather, scatter

    if "mass" not in particles:
        raise MpmNodesError("measure_density: the particles have no mass; take them from an emitter, or give their source a mass")
    if not len(particles):
        return particles
    h = settings.cell_size
    store = ParticleStore([], cell_size=h, dtype=np.float64, origin=particles["position"].min(axis=0))
    store.append({"position": particles["position"], "mass": particles["mass"], "id": np.arange(len(particles), dtype=np.int64)})
    store.sort()
    grid = GridStore(store)
    grid.follow()
    grid.clear("momentum")
    scatter(store, grid, kernel, Deposit("momentum", "mass"))
    gather(store, grid, kernel, Take("momentum", (None, None, None, "volume")))  # the sum of w m, in a row that is free here
    density = np.empty(len(particles))
    density[store.unpack("id")] = store.unpack("volume") / h**3
    columns = {**particles.attributes, "density": density.astype(np.float32)}
    if set_volume:
        columns["volume"] = np.asarray(particles["mass"], float) / density
    return Particles(columns, particles.materials, particles.spacing, particles.time)
