"""Removal of torn matter that is too thin for the grid."""

from __future__ import annotations

import numpy as np

from mpm_nodes.data import A, Fact, Facts, Range, Reads, Reduction, Stage, StepContext, Unitless, Writes
from mpm_nodes.graph.declare import ends_at_sides, shared_among_ranks, stage
from mpm_nodes.kernels.composition.fragments import Removal
from mpm_nodes.kernels.transfers.binning import pack_coord
from mpm_nodes.physics.foam.kernels import subgrid
from mpm_nodes.solver.ranks.around import ParticlesAround, particles_around
from mpm_nodes.solver.state import ParticleStore

REMOVED = Facts(
    "removed",
    "Particles that left the solve in a frame.",
    (
        Fact("particles", "", Reduction.SUM, "How many."),
        Fact("mass", "kg", Reduction.SUM, "Their mass."),
        Fact("momentum", "kg m/s", Reduction.SUM, "Their momentum."),
    ),
    quiet="particles",
    by_rank=True,
)


def thin_particles(particles: ParticleStore, step: StepContext, anisotropy: float, interval: int) -> np.ndarray:
    """Return a mask of the particles that are to go, shape (count,); it depends on position, mass and `weak` alone."""
    dead = np.zeros(particles.count, np.uint8)
    if (step.substeps_done + 1) % interval:
        return dead.view(bool)
    if particles.share.several:
        weak = particles.rows("weak")
        around, mine = particles_around(particles, ("mass", "weak"), bool(weak.any()))
        others = np.ones(around.count, bool)
        others[mine] = False
        around.array("weak")[others] = 0  # their own ranks judge them
        marks = np.zeros(around.count, np.uint8)
        _mark(around, anisotropy, marks)
        return marks[mine].view(bool)
    if particles.count:
        _mark(particles, anisotropy, dead)
    return dead.view(bool)


def remove(particles: ParticleStore, step: StepContext, dead: np.ndarray) -> None:
    """Delete the particles of a mask, and report what is lost."""
    gone = np.flatnonzero(dead)
    mass = particles.rows("mass")[0, gone].astype(float)
    momentum = particles.rows("velocity")[:, gone].astype(float) @ mass
    step.tell(REMOVED, particles=len(gone), mass=float(mass.sum()), momentum=tuple(map(float, momentum)))
    particles.delete(dead)


_REMOVAL = Removal(thin_particles, remove, ("position", "mass", "weak"))


@shared_among_ranks
@ends_at_sides
@stage(label="Remove Subgrid", facts=(REMOVED,), removes=("particles",), fragments=(_REMOVAL,))
def remove_subgrid(
    particles: A[ParticleStore, Reads("position", "velocity", "mass", "weak"), Writes("position")],
    step: StepContext,
    *,
    anisotropy: A[float, Unitless, Range(min=0.0, soft_min=1e-6, soft_max=1e-2, log=True)] = 1e-5,
    interval: A[int, Unitless, Range(min=1, soft_max=100)] = 1,
) -> Stage["particles"]:
    """Delete weak particles whose neighbours within two cells lie on a thin sheet, on a thread, or nowhere (Y15 section 7.4).

    Such matter is stiffer on the grid than it should be. With V the covariance of the neighbours' positions, weighted by mass
    and cubic B-spline, a particle goes where min / max eigenvalue of V < `anisotropy`, or the largest one < `anisotropy` h^2.
    All are judged before the first is deleted. Mass and momentum of what goes are lost and reported. A substep that deletes
    sorts the particles again, so a longer interval is cheaper.

    Args:
        particles: Particles of which weak ones may go.
        anisotropy: Smallest ratio of the neighbours' extents, squared, that the grid resolves.
        interval: Substeps from one removal to the next, counted over all frames: with 50 it is every fiftieth substep that removes.
    """
    remove(particles, step, thin_particles(particles, step, anisotropy, interval))


def _mark(particles: ParticleStore | ParticlesAround, anisotropy: float, dead: np.ndarray) -> None:
    """Set `dead` to 1 where a weak particle lies in too thin a neighbourhood."""
    weak, start, blocks = particles.array("weak"), particles.block_start, particles.block_count
    marked = np.empty(blocks, np.uint8)
    subgrid.mark_blocks(weak, start, marked)
    marked_blocks = np.flatnonzero(marked)
    if not len(marked_blocks):
        return
    packed = pack_coord(*particles.block_coord.T)
    order = np.argsort(packed, kind="stable")
    # two particles of blocks that lie n apart come as near as 4 n - 2 drift cells
    reach = int(np.ceil(0.25 * (2.0 + 2.0 * max(particles.drift, 2.0)))) - 1
    near = np.empty((len(marked_blocks), (2 * reach + 1) ** 3, 2), np.int64)
    subgrid.find_near_blocks(particles.block_coord, packed[order], marked_blocks, reach, near)
    seen = np.zeros(blocks + 1, np.int64)
    np.add.at(seen, near[..., 0], 1)
    np.add.at(seen, near[..., 1], -1)
    near_blocks = np.sort(order[np.flatnonzero(np.cumsum(seen)[:-1])])
    chunks = -(-np.diff(start)[near_blocks] // 16)
    chunk_start = np.concatenate([[0], np.cumsum(chunks)])
    boxes, block_boxes = (np.empty((rows, 6), particles.offset.dtype) for rows in (int(chunk_start[-1]), blocks))
    subgrid.find_boxes(particles.offset, particles.stride, start, near_blocks, chunk_start, boxes, block_boxes)
    chunk_of = np.zeros(blocks, np.int64)
    chunk_of[near_blocks] = chunk_start[:-1]
    subgrid.mark_thin(
        (particles.offset, particles.array("mass"), particles.stride, float(particles.unit)),
        weak,
        subgrid.Neighbourhood(particles.block_coord, start, order, marked_blocks, near, chunk_of, boxes, block_boxes),
        anisotropy,
        dead,
    )
