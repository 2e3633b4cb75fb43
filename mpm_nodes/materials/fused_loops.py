"""Templates of the fused loops: stages one after another on each block, while its particles and nodes are in the cache.

What only lives between two of them, stress or velocity gradient, goes to the attribute's rows (`local` = 0) or to a scratch of
each thread: row r of particle p at r * stride + shift + p in either case. Rows of the next block are fetched on the way: blocks of
one colour do not follow each other in memory, and dozens of rows are more than the hardware follows by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpm_nodes.materials.tearing_loops import NO_GATHER_STAGES, NO_SCATTER_STAGES, gather_stages_of, scatter_stages_of

__all__ = ["LOCAL_ROWS", "fused_source"]

LOCAL_ROWS = 9
"""Rows of the scratch of each thread: enough for the velocity gradient."""

_SCATTER = '''
@part
def scatter_{name}_block(k, first, last, {state_names}, velocity_gradient, scale, tau, local, stencil, offset, stride, shift, unit,
                         velocity, {affine}mass, volume, cell_size, coeffs, dt, segments, colour_range, tile_slot, scratch, base,
                         momentum{force}{tear_arguments}):
    r, thread = colour_range[first + k], get_thread_id()
    start, end, at = segments[r, 0], segments[r, 1], thread * SCRATCH
    ahead = segments[colour_range[min(first + k + 1, last - 1)], 0] - start
    tau_stride, tau_shift = (local, thread * ROWS * local - start) if local > 0 else (stride, 0)
    {detect}
    stress_in({state_names}, velocity_gradient, scale, tau, tau_stride, tau_shift, stride, start, end, ahead, coeffs, dt)
    {add_viscosity}
    {limit}
    {scatter}


@kernel(fastmath=False)
def scatter_{name}({state_names}, velocity_gradient, scale, tau, local, stencil, offset, stride, shift, unit, velocity, {affine}
                   mass, volume, cell_size, coeffs, dt, segments, colour_start, colour_range, tile_slot, scratch, base,
                   momentum{force}{tear_arguments}):
    for colour in range(8):
        first, last = colour_start[colour], colour_start[colour + 1]
        parallel_for(scatter_{name}_block, last - first, (
            first, last, {state_names}, velocity_gradient, scale, tau, local, stencil, offset, stride, shift, unit, velocity,
            {affine}mass, volume, cell_size, coeffs, dt, segments, colour_range, tile_slot, scratch, base,
            momentum{force}{tear_arguments}))
'''

_WITH_FORCES = (
    "scatter_run(stencil, offset, stride, shift, unit, velocity, affine, mass, tau, tau_stride, tau_shift, volume, cell_size,",
    "    -dt / cell_size, start, end, ahead, scratch, at, base, 64 * thread)",
    "add_tile(scratch, at, momentum, tile_slot, segments[r, 2])",
)
_APART = (
    "scatter_run(stencil, offset, stride, shift, unit, velocity, {affine_or_none}, mass, None, 0, 0, None, cell_size, 0.0,",
    "            start, end, ahead, scratch, at, base, 64 * thread)",
    "add_tile(scratch, at, momentum, tile_slot, segments[r, 2])",
    "scatter_run(stencil, offset, stride, shift, unit, None, None, None, tau, tau_stride, tau_shift, volume, cell_size,",
    "            -1.0 / cell_size, start, end, ahead, scratch, at, base, 64 * thread)",
    "add_tile(scratch, at, force, tile_slot, segments[r, 2])",
)

_GATHER = '''
@part
def gather_and_update{suffix}_block(
        k, {state_names}, velocity, affine, velocity_gradient, local, scale, stencil, offset, stride, shift, inverse_unit, unit,
        cell_size, coeffs, dt, moves, segments, tile_slot, scratch, base, grid, strain, largest{flip_arguments}{tear_arguments}):
    thread = get_thread_id()
    start, end, at = segments[k, 0], segments[k, 1], thread * SCRATCH
    following = min(k + 1, segments.shape[0] - 1)
    ahead = segments[following, 0] - start
    L_stride, L_shift = (local, thread * ROWS * local - start) if local > 0 else (stride, 0)
    load_tile(scratch, at, grid, tile_slot, segments[k, 2])
    prefetch_tile(grid, tile_slot, segments[following, 2])
    {load_change}
    gather_run(stencil, offset, stride, shift, inverse_unit, velocity, affine, velocity_gradient, L_stride, L_shift,
               {fraction}, 1.0 / cell_size, start, end, ahead, scratch, at, base, 64 * thread)
    {limit}
    advance_in({state_names}, velocity_gradient, L_stride, L_shift, stride, start, end, ahead, coeffs, dt)
    {total}
    {project}
    {recover}
    limits_in({state_names}, velocity_gradient, L_stride, L_shift, scale, stride, start, end, coeffs, strain, k)
    if moves:
        move_run(offset, stride, unit, velocity, dt / cell_size, start, end, largest, k)


@kernel(fastmath=False)
def gather_and_update{suffix}({state_names}, velocity, affine, velocity_gradient, local, scale, stencil, offset, stride, shift,
                      inverse_unit, unit, cell_size, coeffs, dt, moves, segments, tile_slot, scratch, base, grid, strain,
                      largest{flip_arguments}{tear_arguments}):
    parallel_for(gather_and_update{suffix}_block, segments.shape[0], (
        {state_names}, velocity, affine, velocity_gradient, local, scale, stencil, offset, stride, shift, inverse_unit, unit,
        cell_size, coeffs, dt, moves, segments, tile_slot, scratch, base, grid, strain, largest{flip_arguments}{tear_arguments}))
'''


def fused_source(projects: bool, pieces: Mapping[str, str], tears: bool = False) -> str:
    """Return the source of a law's fused loops; each comes without and with the stages of tearing (`_tearing`).

    Args:
        projects: Whether the law has a return map.
        pieces: What `codegen` knows of the law; "state_names" and "add_viscosity" are used.
        tears: Whether the law has an elastic strain, and with it the loops of `tearing_loops`.
    """
    names = pieces["state_names"]
    project = f"project_in({names}, scale, stride, start, end, coeffs, dt)" if projects else "pass"
    loops = []
    for scatter_stages, gather_stages in ((NO_SCATTER_STAGES, NO_GATHER_STAGES),
                                          (scatter_stages_of(names, tears), gather_stages_of(names, tears))):
        loops += [
            _scatter(pieces, "with_forces", "affine, ", "", _WITH_FORCES, scatter_stages),
            _scatter(pieces, "apart", "affine, ", ", force", _APART, scatter_stages),
            _scatter(pieces, "apart_flip", "", ", force", _APART, scatter_stages),
            _gather(names, project, False, gather_stages),
            _gather(names, project, True, gather_stages),
        ]
    return "\n".join(loops)


def _scatter(pieces: Mapping[str, str], name: str, affine: str, force: str, lines: tuple[str, ...],
             stages: Mapping[str, str]) -> str:
    calls = ("\n" + 4 * " ").join(lines).replace("{affine_or_none}", "affine" if affine else "None")
    return _SCATTER.format(name=name + stages["suffix"], affine=affine, force=force, scatter=calls,
                           **{key: pieces[key] for key in ("state_names", "add_viscosity")},
                           **{key: stages[key] for key in ("tear_arguments", "detect", "limit")})


def _gather(state_names: str, project: str, flip: bool, stages: Mapping[str, str]) -> str:
    change = "load_change_tile(scratch, at + SECOND_TILE, grid, momentum, fraction, tile_slot, segments[k, 2])"
    return _GATHER.format(state_names=state_names, project=project, suffix=("_flip" if flip else "") + stages["suffix"],
                          flip_arguments=", momentum, fraction" if flip else "", load_change=change if flip else "pass",
                          fraction="fraction" if flip else "None",
                          **{key: stages[key] for key in ("tear_arguments", "limit", "total", "recover")})
