"""A multigrid cycle for matrices on the cells of sparse blocks: a symmetric, positive definite preconditioner.

| symbol | meaning |
|---|---|
| k, d | faces and diagonal of a `cell_matrix.CellMatrix` |
| m | share of d that belongs to the cell itself: mass over time, compressibility |
| e | what d holds beside k and m: p = 0 somewhere beside the cell (a free surface) |
| a | distance to that place from the cell's centre, in cells: 1, 3/4, 5/8, ... |

Eight cells make one of the next level, whatever they are, so that films and drops stay what they are. The coarse matrix is the sum
over the eight, with faces and free surface at their new distances:

    K = 1/2 sum k,    M = sum m,    E = a / (a + 1/2) sum e,    a' = (a + 1/2) / 2

Without these factors the sum is the Galerkin product of the piecewise constant prolongation, whose corrections are half of what
they should be (Braess 1995). Corrections are prolonged as constants. Rows without faces are solved by one relaxation.

Relaxation is red-black Gauss-Seidel, in one order before the correction and in the reverse order after it, and twice as often on
each coarser level: the variable V-cycle (Bramble and Pasciak 1987), which is symmetric and positive definite whatever the levels
below approximate. It costs little, as a level has an eighth of the cells. Cells of one colour do not see each other, so that the
same bits come out of any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mpm_nodes.kernels.cells.cell_matrix import CellMatrix, Product, before, behind, face_of, neighbour_blocks, neighbours_sum
from mpm_nodes.kernels.compile.jit import compiled, inline, part
from mpm_nodes.kernels.compile.lend import lend_plain, plain
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.arithmetic import const
from mpm_nodes.kernels.lanes.memory import load, one_lane, shuffle_by, store
from mpm_nodes.kernels.transfers.binning import pack_coord

__all__ = ["CoarserBlocks", "Multigrid"]

SWEEPS, MOST_SWEEPS = 2, 32
"""Relaxations of the finest level before and after its correction, and of any level at most."""
MOST_LEVELS = 24
FEW = 64
"""Blocks up to which one thread is faster than several."""
NOTHING = 1e-12
"""Share of a diagonal that counts as rounding."""


# ---------------------------------------------------------------- relaxation
_even, _odd = (shuffle_by([lane + 16 * ((lane >> 2 ^ lane ^ colour) & 1) for lane in range(16)]) for colour in (0, 1))
"""Of two planes: the first one's cells of a colour, the second one's others."""


@part
def _relax_at(g, product, right, colour):
    # all cells of a plane are worked out, which takes no longer than half of them, and those of one colour are kept
    for i in range(4):
        c = 64 * g + 16 * i
        here = load(product.p, c)
        found = (load(right, c) + neighbours_sum(product, g, i)) / load(product.diagonal, c)
        if (i ^ colour) & 1:
            store(product.p, c, _odd(found, here))
        else:
            store(product.p, c, _even(found, here))


@compiled(fastmath=False)
def relax(count, matrix, right, found, sweeps, colour):
    """Relax the cells of one colour, then those of the other, `sweeps` times."""
    product, right = lend_plain(Product(matrix.around, matrix.diagonal, matrix.x, matrix.y, matrix.z, found)), plain(right)
    for half in range(2 * sweeps):
        now = (colour + half) & 1
        parallel_for(_relax_at, count, (product, right, now), FEW)


# ---------------------------------------------------------------- between levels
@inline
def _octant(n):
    """Return which of the eight finer blocks holds the cells of coarse cell n."""
    return 4 * (n >> 5) + 2 * ((n >> 3) & 1) + ((n >> 1) & 1)


@inline
def _of_eight(n, m):
    """Return cell m of the eight, in its block, that make coarse cell n."""
    return 32 * ((n >> 4) & 1) + 8 * ((n >> 2) & 1) + 2 * (n & 1) + 16 * (m >> 2) + 4 * ((m >> 1) & 1) + (m & 1)


_beside_y, _beside_z = (shuffle_by([lane ^ step for lane in range(16)]) for step in (4, 1))
"""The neighbours of each cell of a plane in the pairs that make coarse cells; the second argument is not used."""


@inline
def _residual(product, right, block, i):
    c = 64 * block + 16 * i
    return load(right, c) - (load(product.diagonal, c) * load(product.p, c) - neighbours_sum(product, block, i))


@part
def _restrict_at(g, children, product, right, coarse_right, coarse_found):
    none = const(load(right, 0), 0.0)
    for n in range(64 * g, 64 * g + 64, 16):
        store(coarse_right, n, none)
        store(coarse_found, n, none)
    for octant in range(8):
        block = np.int64(children[g, octant])
        if block < 0:
            continue
        for half in range(2):
            four = _residual(product, right, block, 2 * half) + _residual(product, right, block, 2 * half + 1)
            four = four + _beside_z(four, four)
            four = four + _beside_y(four, four)
            c = 64 * g + 32 * (octant >> 2) + 16 * half + 8 * ((octant >> 1) & 1) + 2 * (octant & 1)
            coarse_right[c], coarse_right[c + 1] = one_lane(four, 0), one_lane(four, 2)
            coarse_right[c + 4], coarse_right[c + 5] = one_lane(four, 8), one_lane(four, 10)


@compiled(fastmath=False)
def restrict(count, children, matrix, right, found, coarse_right, coarse_found):
    """Write the sums of the residuals to the coarse right side, and zeros to its solution."""
    product = lend_plain(Product(matrix.around, matrix.diagonal, matrix.x, matrix.y, matrix.z, found))
    parallel_for(_restrict_at, count, (plain(children), product, plain(right), plain(coarse_right), plain(coarse_found)), FEW)


@part
def _prolong_at(g, children, coarse_found, found):
    for n in range(64):
        block = np.int64(children[g, _octant(n)])
        if block >= 0:
            for m in range(8):
                found[64 * block + _of_eight(n, m)] += coarse_found[64 * g + n]


@compiled(fastmath=False)
def prolong(count, children, coarse_found, found):
    """Add the coarse solution to the cells that it is made of."""
    parallel_for(_prolong_at, count, (plain(children), plain(coarse_found), plain(found)), FEW)


# ---------------------------------------------------------------- coarse matrices
@part
def _coarsen_at(g, children, fine, fine_own, surface, coarse, own):
    for n in range(64):
        C = 64 * g + n
        block = np.int64(children[g, _octant(n)])
        coarse.x[C] = coarse.y[C] = coarse.z[C] = own[C] = coarse.diagonal[C] = 0.0
        if block < 0:
            continue
        for m in range(8):
            cell = _of_eight(n, m)
            c, links = np.int64(64 * block + cell), 0.0
            for axis in range(3):
                face, high = face_of(fine, axis), behind(fine.around, block, cell, axis)
                links += face[c] + (face[high] if high >= 0 else 0.0)
                if (m >> (2 - axis)) & 1 == 0 and before(fine.around, block, cell, axis) >= 0:
                    face_of(coarse, axis)[C] += 0.5 * face[c]
            if links > 0.0:
                mine = fine_own[c] if fine_own.size else 0.0
                held = fine.diagonal[c] - links - mine
                own[C] += mine
                coarse.diagonal[C] += mine + (surface * held if held > NOTHING * fine.diagonal[c] else 0.0)


@part
def _add_faces_at(g, coarse):
    for n in range(64):
        c = 64 * g + n
        for axis in range(3):
            face, high = face_of(coarse, axis), behind(coarse.around, g, n, axis)
            coarse.diagonal[c] += face[c] + (face[high] if high >= 0 else 0.0)
        if coarse.diagonal[c] == 0.0:
            coarse.diagonal[c] = 1.0


@compiled(fastmath=False)
def coarsen(count, children, fine, fine_own, surface, coarse, own):
    """Write the matrix of the coarser level, and the share m of its diagonal."""
    parallel_for(_coarsen_at, count, (plain(children), lend_plain(fine), fine_own, surface, lend_plain(coarse), plain(own)), FEW)
    parallel_for(_add_faces_at, count, (lend_plain(coarse),), FEW)


@dataclass
class _Level:
    """A coarse level.

    Attributes:
        count: Number of its blocks.
        children: Finer blocks that each of its blocks is made of, shape (count, 8), int32; -1 for none.
        matrix: Its matrix.
        right, found: Room for its right side and solution.
    """

    count: int
    children: np.ndarray
    matrix: CellMatrix
    right: np.ndarray
    found: np.ndarray


class CoarserBlocks:
    """The blocks of all levels below the finest, each made of up to eight of the level before; found when first asked for.

    Args:
        coord: Coordinates of the finest blocks, shape (n, 3).
        body: Body that each is of, shape (n,).
    """

    def __init__(self, coord: np.ndarray, body: np.ndarray) -> None:
        self._finest, self._found = (coord, body), list[tuple[np.ndarray, ...]]()

    def at(self, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the finer blocks that each block of a level is made of, and its neighbours; depth 0 is below the finest."""
        while len(self._found) <= depth:
            self._found.append(_coarse_blocks(*(self._found[-1][:2] if self._found else self._finest)))
        return self._found[depth][2:]


class Multigrid:
    """One cycle as a preconditioner: `krylov` may take `precondition` as it stands.

    Args:
        blocks: Coarser blocks of the matrix's.
        matrix: The matrix.
        own: The share m of its diagonal, one a cell; none for zero everywhere.
    """

    def __init__(self, blocks: CoarserBlocks, matrix: CellMatrix, own: np.ndarray | None = None) -> None:
        self.count, self.matrix, self.coarse = len(matrix.around), matrix, list[_Level]()
        own, distance = np.empty(0) if own is None else own, 1.0
        while len(self.coarse) < MOST_LEVELS and any(face.any() for face in (matrix.x, matrix.y, matrix.z)):
            children, around = blocks.at(len(self.coarse))
            count = len(children)
            coarse = CellMatrix(around, *(np.empty(64 * count) for _ in range(4)))
            coarse_own = np.empty(64 * count)
            coarsen(count, children, matrix, own, distance / (distance + 0.5), coarse, coarse_own)
            self.coarse.append(_Level(count, children, coarse, np.empty(64 * count), np.empty(64 * count)))
            matrix, own, distance = coarse, coarse_own, 0.5 * (distance + 0.5)

    @property
    def levels(self) -> int:
        """Number of levels, the finest among them."""
        return 1 + len(self.coarse)

    def precondition(self, r: np.ndarray, z: np.ndarray) -> None:
        """Write an approximate solution of A z = r to z: a symmetric function of r."""
        z[: 64 * self.count] = 0.0
        self._cycle(0, self.count, self.matrix, r, z)

    def _cycle(self, depth: int, count: int, matrix: CellMatrix, right: np.ndarray, found: np.ndarray) -> None:
        sweeps = min(SWEEPS << depth, MOST_SWEEPS)
        relax(count, matrix, right, found, sweeps, 0)
        if depth < len(self.coarse):
            below = self.coarse[depth]
            restrict(below.count, below.children, matrix, right, found, below.right, below.found)
            self._cycle(depth + 1, below.count, below.matrix, below.right, below.found)
            prolong(below.count, below.children, below.found, found)
        relax(count, matrix, right, found, sweeps, 1)


def _coarse_blocks(coord: np.ndarray, body: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return coordinates, bodies, children and neighbours of the blocks that eight (or fewer) blocks each make."""
    place = coord.astype(np.int64) - coord.min(0)
    parent, octant = place >> 1, (place & 1) @ (4, 2, 1)
    packed, which = np.unique(pack_coord(parent[:, 0], parent[:, 1], parent[:, 2], body), return_inverse=True)
    children = np.full((len(packed), 8), -1, np.int32)
    children[which, octant] = np.arange(len(coord))
    new_coord, new_body = np.empty((len(packed), 3), np.int64), np.empty(len(packed), np.int32)
    new_coord[which], new_body[which] = parent, body
    return new_coord, new_body, children, neighbour_blocks(new_coord, new_body, packed)
