"""What particles give to the cells that conduct heat."""

from __future__ import annotations

from mpm_nodes.data import Kernel
from mpm_nodes.kernels.compile.jit import most_threads
from mpm_nodes.physics.heat.kernels import rasterize
from mpm_nodes.solver.ranks.halo import adding_up
from mpm_nodes.solver.rows import aligned
from mpm_nodes.solver.staggered import StaggeredStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import reached

__all__ = ["give_heat"]

_HEAT_ARRAYS = ("heat", "conduction_x", "conduction_y", "conduction_z")


def give_heat(particles: ParticleStore, staggered: StaggeredStore, slopes: bool, heating: bool) -> None:
    """Add the heat of particles to the cells, and volume and conductivity to the faces between them, by quadratic splines.

    Args:
        particles: Particles with heat capacity, temperature, volume and conductivity.
        staggered: The grid; "heat" and "conduction_x", along y and z too, are added to.
        slopes: With the gradients of the temperatures.
        heating: With what "heating_rate" makes.

    Raises:
        MpmNodesError: A particle has drifted out of reach of its block's tile.
    """
    grids = tuple(staggered.array(name) for name in _HEAT_ARRAYS)
    reached(particles, staggered, Kernel.QUADRATIC, "heat")
    rows = (particles.array(name) for name in ("heat_capacity", "volume", "conductivity", "temperature"))
    given = rasterize.ParticleHeat(*rows)
    gradient = particles.array("temperature_gradient") if slopes else None
    made = particles.array("heating_rate") if heating else None
    scratch = staggered.grid.derived("heat scratch", lambda: aligned(rasterize.HEAT_SCRATCH * most_threads(), staggered.dtype))
    with adding_up(staggered.halo, *grids):
        tables = staggered.scatter_tables()._replace(scratch=scratch)
        rasterize.rasterize_heat(particles.geometry(), given, gradient, made, grids, tables)
