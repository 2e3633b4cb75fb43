"""The energy of the matter's surface as a term of the incremental potential, and its force by itself."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import most_threads
from mpm_nodes.kernels.transfers import fields, local_hessians
from mpm_nodes.kernels.transfers.gather import gather_arrays
from mpm_nodes.kernels.transfers.scatter import scatter_arrays
from mpm_nodes.physics.surface_tension.kernels import energy as kernels
from mpm_nodes.physics.surface_tension.numerics.samples import SampleStore
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.grid_arrays import NODES
from mpm_nodes.solver.rows import PAD, aligned

__all__ = ["SurfaceEnergy", "SurfacePull"]

_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8))


class SurfaceEnergy:
    """sum_r k_r |cof(I + A_r) dA_r| over the surface samples (C21 eq. 7 and 16), an `EnergyTerm`.

    Args:
        samples: With normal, area and tension, on the grid's blocks.
        grid: Grid of the trial velocities.
        stencil: Stencil of the B-spline.
        tension: Field of the samples that k_r is.
    """

    def __init__(self, samples: SampleStore, grid: GridStore, stencil: tuple[int, ...], tension: str = "tension") -> None:
        self.grid, self.stencil, self.count, self.stride = grid, stencil, samples.count, samples.stride
        # a term outlives its stage: it holds what it needs of the samples itself
        place = samples.on_grid().geometry()
        self._place = place._replace(offset=place.offset.copy())
        self._normal, self._area, self._tension = (samples.array(name).copy() for name in ("normal", "area", tension))
        self._gathers, self._scatters = grid.gather_tables(None, samples), grid.scatter_tables(None, samples)
        self._longest = int(np.diff(samples.block_start).max(initial=0))
        stride, dtype = samples.stride, grid.dtype
        self._gradient, self._stress = aligned(9 * stride + PAD, dtype), aligned(9 * stride + PAD, dtype)
        self._hessians, self._local, self._local_stride = np.empty(0, dtype), np.empty(0, dtype), 0
        self._sums = np.empty((-(-samples.count // kernels.CHUNK), 2))

    def add_force(self, force: np.ndarray) -> None:
        """Add the force at rest, - sum k dA (I - n n^T) grad w [N], to a grid array."""
        if self.count:
            self._gradient[:] = 0.0
            self._scattered(0.0, force)

    def evaluate(self, dt: float, velocity: np.ndarray, force: np.ndarray) -> tuple[float, int]:
        """See `EnergyTerm`."""
        if not self.count:
            return 0.0, 0
        rows = tuple((self._gradient, 3 * a) for a in range(3))
        taken = fields.Taken(NODES, None, None, (*rows, None), None, None, None, velocity)
        gather_arrays(self.stencil, self._place, (taken,), self._gathers)
        return self._scattered(dt, force)

    def _scattered(self, dt: float, force: np.ndarray) -> tuple[float, int]:
        kernels.surface_stress(self._sheet(dt), self._stress, self._sums)
        flux = fields.Flux(self._stress, self.stride, 0, _LINES, self._area, -1.0 / self.grid.h)
        given = fields.Given(NODES, None, None, None, flux, force)
        scatter_arrays(self.stencil, self._place, (given,), self._scatters)
        return float(self._sums[:, 0].sum()), int(self._sums[:, 1].sum())

    def _sheet(self, dt: float) -> kernels.MovingSurface:
        return kernels.MovingSurface(self._normal, self._area, self._tension, self._gradient, self.stride, dt, self.count)

    def linearise(self, dt: float) -> None:
        """See `EnergyTerm`; negative eigenvalues of every sample's own Hessian are dropped."""
        self._store_hessians(dt, False)

    def linearise_whole(self, dt: float) -> None:
        """See `EnergyStore.linearise`."""
        self._store_hessians(dt, True)

    def _store_hessians(self, dt: float, whole: bool) -> None:
        if not self.count:
            return
        if not self._hessians.size:
            self._hessians = aligned(local_hessians.ENTRIES * self.stride + PAD, self.grid.dtype)
            self._local_stride = self._longest // 16 * 16 + 16 + PAD
            self._local = aligned(9 * most_threads() * self._local_stride + PAD, self.grid.dtype)
        kernels.surface_hessians(self._sheet(dt), whole, self._hessians)

    def apply(self, dt: float, direction: np.ndarray, result: np.ndarray) -> None:
        """See `EnergyTerm`."""
        if self.count:
            local = local_hessians.LocalRows(self._local, self._local_stride)
            local_hessians.apply_stored(self._stored(dt), local, self.stencil, self._place, self._scatters, direction, result)

    def add_blocks(self, dt: float, blocks: np.ndarray) -> None:
        """See `EnergyTerm`."""
        if self.count:
            local_hessians.add_stored_blocks(self._stored(dt), self.stencil, self._place, self._scatters, blocks)

    def _stored(self, dt: float) -> local_hessians.StoredHessians:
        return local_hessians.StoredHessians(self._hessians, self._area, dt)


class SurfacePull:
    """- dt sum_i F_i . v_i: given forces on the nodes as an `EnergyTerm`, which they have no second derivative of.

    Args:
        force: Grid array [N].
    """

    def __init__(self, force: np.ndarray) -> None:
        self._force = force

    def evaluate(self, dt: float, velocity: np.ndarray, force: np.ndarray) -> tuple[float, int]:
        """See `EnergyTerm`."""
        size = len(self._force)
        force[:size] += self._force
        return -dt * float(np.dot(self._force.astype(float), velocity[:size].astype(float))), 0

    def linearise(self, dt: float) -> None:
        """See `EnergyTerm`."""

    def apply(self, dt: float, direction: np.ndarray, result: np.ndarray) -> None:
        """See `EnergyTerm`."""

    def add_blocks(self, dt: float, blocks: np.ndarray) -> None:
        """See `EnergyTerm`."""
