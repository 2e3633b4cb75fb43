"""Bodies of `Run` fragments: gradients of velocities on faces for the particles of a block, and forces of what they become."""

from __future__ import annotations

from mpm_nodes.kernels.compile.jit import inline
from mpm_nodes.kernels.lanes.memory import bare
from mpm_nodes.kernels.transfers.faces import gather_gradients, scatter_forces
from mpm_nodes.kernels.transfers.fields import slopes_of_matrix

__all__ = ["gather_gradient", "scatter_change"]


@inline
def gather_gradient(placement, block_work, tile_slot, block, grid_velocity, differential, differential_stride, differential_shift):
    """Write the gradient of the velocities on faces, those of each axis behind those of the one before, to `differential`."""
    gradient = slopes_of_matrix(differential, differential_stride, differential_shift)
    gather_gradients(placement, bare(grid_velocity), grid_velocity.shape[0] // 3, gradient, block_work, tile_slot, block)


@inline
def scatter_change(placement, block_work, tile_slot, block, grid_change, differential, differential_stride, differential_shift):
    """Add sum V0 dT grad w, V0 dT the rows of `differential`, to the faces."""
    change = slopes_of_matrix(differential, differential_stride, differential_shift)
    scatter_forces(placement, bare(grid_change), grid_change.shape[0] // 3, change, block_work, tile_slot, block)
