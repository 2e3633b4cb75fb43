"""Templates of the fused loops: stages one after another on each block, while its particles and nodes are in the cache.

What only lives between two of them, stress or velocity gradient, goes to the attribute's rows (`local` = 0) or to a scratch of
each thread: row r of particle p at r * stride + shift + p in either case. Rows of the next block are fetched on the way: blocks of
one colour do not follow each other in memory, and dozens of rows are more than the hardware follows by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["LOCAL_ROWS", "fused_source"]

LOCAL_ROWS = 9
"""Rows of the scratch of each thread: enough for the velocity gradient."""

_SCATTER = '''
@part
def scatter_{name}_block(k, first, last, {state_names}, velocity_gradient, scale, tau, local, stencil, offset, stride, shift, unit,
                         velocity, {affine}mass, volume, cell_size, coeffs, dt, segments, colour_range, tile_slot, scratch, base,
                         momentum{force}):
    r, thread = colour_range[first + k], get_thread_id()
    start, end, at = segments[r, 0], segments[r, 1], thread * SCRATCH
    ahead = segments[colour_range[min(first + k + 1, last - 1)], 0] - start
    tau_stride, tau_shift = (local, thread * ROWS * local - start) if local > 0 else (stride, 0)
    stress_in({state_names}, velocity_gradient, scale, tau, tau_stride, tau_shift, stride, start, end, ahead, coeffs, dt)
    {scatter}


@kernel(fastmath=False)
def scatter_{name}({state_names}, velocity_gradient, scale, tau, local, stencil, offset, stride, shift, unit, velocity, {affine}
                   mass, volume, cell_size, coeffs, dt, segments, colour_start, colour_range, tile_slot, scratch, base,
                   momentum{force}):
    for colour in range(8):
        first, last = colour_start[colour], colour_start[colour + 1]
        parallel_for(scatter_{name}_block, last - first, (
            first, last, {state_names}, velocity_gradient, scale, tau, local, stencil, offset, stride, shift, unit, velocity,
            {affine}mass, volume, cell_size, coeffs, dt, segments, colour_range, tile_slot, scratch, base, momentum{force}))
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
        cell_size, coeffs, dt, moves, segments, tile_slot, scratch, base, grid, strain, largest{flip_arguments}):
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
    advance_in({state_names}, velocity_gradient, L_stride, L_shift, stride, start, end, ahead, coeffs, dt)
    {project}
    limits_in({state_names}, velocity_gradient, L_stride, L_shift, scale, stride, start, end, coeffs, strain, k)
    if moves:
        move_run(offset, stride, unit, velocity, dt / cell_size, start, end, largest, k)


@kernel(fastmath=False)
def gather_and_update{suffix}({state_names}, velocity, affine, velocity_gradient, local, scale, stencil, offset, stride, shift,
                      inverse_unit, unit, cell_size, coeffs, dt, moves, segments, tile_slot, scratch, base, grid, strain,
                      largest{flip_arguments}):
    parallel_for(gather_and_update{suffix}_block, segments.shape[0], (
        {state_names}, velocity, affine, velocity_gradient, local, scale, stencil, offset, stride, shift, inverse_unit, unit,
        cell_size, coeffs, dt, moves, segments, tile_slot, scratch, base, grid, strain, largest{flip_arguments}))
'''


def fused_source(projects: bool, pieces: Mapping[str, str]) -> str:
    """Return the source of a law's fused loops.

    Args:
        projects: Whether the law has a return map.
        pieces: What `codegen` knows of the law; "state_names" is used.
    """
    names = pieces["state_names"]
    change = "load_change_tile(scratch, at + SECOND_TILE, grid, momentum, fraction, tile_slot, segments[k, 2])"
    project = f"project_in({names}, scale, stride, start, end, coeffs, dt)" if projects else "pass"
    loops = [
        _scatter(names, "with_forces", "affine, ", "", _WITH_FORCES),
        _scatter(names, "apart", "affine, ", ", force", _APART),
        _scatter(names, "apart_flip", "", ", force", _APART),
        _GATHER.format(state_names=names, project=project, suffix="", flip_arguments="", load_change="pass", fraction="None"),
        _GATHER.format(state_names=names, project=project, suffix="_flip", flip_arguments=", momentum, fraction",
                       load_change=change, fraction="fraction"),
    ]
    return "\n".join(loops)


def _scatter(state_names: str, name: str, affine: str, force: str, lines: tuple[str, ...]) -> str:
    calls = ("\n" + 4 * " ").join(lines).replace("{affine_or_none}", "affine" if affine else "None")
    return _SCATTER.format(state_names=state_names, name=name, affine=affine, force=force, scatter=calls)
