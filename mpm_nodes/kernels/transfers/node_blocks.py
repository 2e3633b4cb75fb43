"""Node-diagonal 3 x 3 blocks of an implicit step's Hessian: the block-Jacobi preconditioner.

| symbol | meaning | unit | source |
|---|---|---|---|
| M[ac, bd] | dt^2 V0 times the second derivative of psi by A_ac and A_bd | J | - |
| w, s | weight and its slope per cell, along each axis | | `weights` |
| H_i | m_i I + sum_p sum_cd M[ac, bd] grad_c w_i grad_d w_i: block of node i | kg | R15 appendix, i = j |

A symmetric block is stored as xx xy xz yy yz zz.
"""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import compiled, part
from mpm_nodes.kernels.compile.parallel import parallel_for
from mpm_nodes.kernels.lanes.memory import bare, element
from mpm_nodes.kernels.lanes.types import WIDTH
from mpm_nodes.kernels.transfers.weights import first_node, slopes, weights

__all__ = ["BLOCK", "UNITS", "invert_blocks", "scatter_blocks"]

BLOCK = 6
"""Values of a symmetric block."""

UNITS = np.eye(9).ravel()
"""The nine unit gradients, flat."""

_PAIRS = np.array([(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)])


@part
def _quadratic_forms(values, lane, forms):
    """Write forms[6 ab + cd]: the block entry ab is their sum over cd, times grad_c w grad_d w."""
    for pair in range(6):
        a, b = _PAIRS[pair, 0], _PAIRS[pair, 1]
        for other in range(6):
            c, d = _PAIRS[other, 0], _PAIRS[other, 1]
            value = np.float64(values[WIDTH * (9 * (3 * a + c) + 3 * b + d) + lane])
            if c != d:
                value += values[WIDTH * (9 * (3 * a + d) + 3 * b + c) + lane]
            forms[6 * other + pair] = value


@part
def scatter_blocks(stencil, placement, values, begin, end, tile_slot, block, grid_blocks):
    """Add what particles begin .. end-1 of a particle block give to the blocks of their nodes.

    `values` holds the nine differentials of each: row 9 e + component, one lane a particle.
    """
    stride, shift, inverse_unit, per_cell, q = (
        placement.stride,
        placement.shift,
        placement.inverse_unit,
        1.0 / placement.cell_size,
        block,
    )
    offset = bare(placement.offset)
    mask, first = (1 << shift) - 1, first_node(stencil, shift)
    forms, products = np.empty(36), np.empty(6)
    for p in range(begin, end):
        _quadratic_forms(values, p - begin, forms)
        ux, uy, uz = element(offset, p) + first, element(offset, stride + p) + first, element(offset, 2 * stride + p) + first
        fx, fy, fz = (
            np.float64(ux & mask) * inverse_unit,
            np.float64(uy & mask) * inverse_unit,
            np.float64(uz & mask) * inverse_unit,
        )
        wx, wy, wz = weights(stencil, fx), weights(stencil, fy), weights(stencil, fz)
        sx, sy, sz = slopes(stencil, fx), slopes(stencil, fy), slopes(stencil, fz)
        for i in range(len(stencil)):
            x = (ux >> shift) + i
            for j in range(len(stencil)):
                y = (uy >> shift) + j
                gx, gy, ww = sx[i] * wy[j] * per_cell, wx[i] * sy[j] * per_cell, wx[i] * wy[j]
                for k in range(len(stencil)):
                    z = (uz >> shift) + k
                    a, b, c = gx * wz[k], gy * wz[k], ww * sz[k] * per_cell
                    products[0], products[1], products[2] = a * a, a * b, a * c
                    products[3], products[4], products[5] = b * b, b * c, c * c
                    corner = (x >> 2) * 4 + (y >> 2) * 2 + (z >> 2)
                    at = BLOCK * (64 * tile_slot[q, corner] + 16 * (x & 3) + 4 * (y & 3) + (z & 3))
                    for other in range(6):
                        for pair in range(6):
                            grid_blocks[at + pair] += products[other] * forms[6 * other + pair]


@part
def _invert_blocks_at(g, momentum, blocks, scale, least_mass, diagonal_only):
    for n in range(64 * g, 64 * g + 64):
        mass, at = np.float64(momentum[4 * n + 3]), BLOCK * n
        if mass <= least_mass:
            for row in range(BLOCK):
                blocks[at + row] = 0.0
            continue
        xx, yy, zz = mass + scale * blocks[at], mass + scale * blocks[at + 3], mass + scale * blocks[at + 5]
        xy, xz, yz = scale * blocks[at + 1], scale * blocks[at + 2], scale * blocks[at + 4]
        cxx, cxy, cxz = yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy
        cyy, cyz, czz = xx * zz - xz * xz, xy * xz - xx * yz, xx * yy - xy * xy
        det = xx * cxx + xy * cxy + xz * cxz
        size = max(abs(xx), abs(yy), abs(zz))
        definite = xx > 0.0 and czz > 1e-12 * size * size and det > 1e-18 * size * size * size
        if definite and not diagonal_only:
            blocks[at], blocks[at + 1], blocks[at + 2] = cxx / det, cxy / det, cxz / det
            blocks[at + 3], blocks[at + 4], blocks[at + 5] = cyy / det, cyz / det, czz / det
        else:  # an indefinite block would not precondition: its diagonal, never below the mass
            blocks[at], blocks[at + 1], blocks[at + 2] = 1.0 / max(xx, mass), 0.0, 0.0
            blocks[at + 3], blocks[at + 4], blocks[at + 5] = 1.0 / max(yy, mass), 0.0, 1.0 / max(zz, mass)


@compiled(fastmath=False)
def invert_blocks(momentum, blocks, scale, count, least_mass, diagonal_only):
    """Replace `blocks` by the inverses of m I + scale block of every node; zero where there is less than `least_mass` [kg].

    Args:
        momentum: Nodes' (px, py, pz, m), flat.
        blocks: Blocks of every node, flat, float64, changed in place.
        scale: Factor of the blocks.
        count: Number of grid blocks.
        least_mass: Mass of an empty node [kg].
        diagonal_only: Take the diagonal of each block (scalar Jacobi).
    """
    parallel_for(_invert_blocks_at, count, (momentum, blocks, scale, least_mass, diagonal_only))
