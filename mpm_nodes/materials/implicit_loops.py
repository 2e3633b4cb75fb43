"""Templates of the loops of implicit steps: a law's energy, force, Hessian action and node-diagonal blocks over trial velocities.

| symbol | meaning | unit | source |
|---|---|---|---|
| L, A | gradient of the trial velocity, dt L | 1/s, - | method 5.0 |
| psi, T | energy density, its derivative by A | J/m^3, Pa | |
| d, Q | a direction in velocities, its gradient | m/s, 1/s | |
| V0 | undeformed volume | m^3 | |

    Phi = sum V0 psi(dt L),   f_i = - sum V0 T grad w_i,   (dt^2 Phi'' d)_i = dt^2 sum V0 dT(A; Q) grad w_i       (R15, C21 eq. 14)

A material's own viscosity is a further term over the same points, so it is evaluated in the same pass.

Each is one loop over blocks: gather a gradient, evaluate, scatter, while the block's particles and nodes are in the cache. L stays
in the particles' `velocity_gradient`; stress and its differential live in a scratch of each thread. Energies are evaluated and
summed in double precision in either float type: a line search compares differences far below their own size.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["IMPLICIT_LOOPS", "implicit_source"]

IMPLICIT_LOOPS = ("evaluate_trial", "apply_hessian", "add_node_blocks", "store_local_hessians")

_SOURCE = '''
@inline
def viscosity_of(coeffs):
    """Return the material's own viscosity [Pa s]; callers who leave that term out give the law's coefficients alone."""
    return coeffs[{viscosity}] if coeffs.size > {viscosity} else 0.0


@inline
def energy_in({state_names}, velocity_gradient, scale, volume, stride, start, end, coeffs, dt, sums, k):
    """Write the energy and the number of particles out of the law's domain to row k of `sums`."""
    mu_v = viscosity_of(coeffs)
    zero = const(to_double(load(volume, start)), 0.0)
    one, huge = const(zero, 1.0), const(zero, 1e300)
    total, broken = zero, zero
    for i in range(start, end, 16):
        {load_state_double}
        {load_coeffs_double}
        step = broadcast(x, dt)
        A = mat3.scale({load_gradient_double}, step)
        psi = law.energy(state, A, c, step)
        if mu_v > 0.0:
            psi = psi + newtonian_viscosity.energy({volume_ratio}, A, broadcast(x, mu_v), step)
        good = both(law.feasible(state, A, c, step), absolute(psi) < huge)
        inside = lane_index(x) < broadcast(x, end - i)
        total = total + select(both(inside, good), to_double(load(volume, i)) * psi, zero)
        broken = broken + select(both(inside, negate(good)), one, zero)
    sums[k, 0], sums[k, 1] = hsum(total), hsum(broken)


@inline
def trial_stress_in({state_names}, velocity_gradient, scale, tau, tau_stride, tau_shift, stride, start, end, coeffs, dt):
    mu_v = viscosity_of(coeffs)
    for i in range(start, end, 16):
        {load_state}
        {load_coeffs}
        step = broadcast(x, dt)
        A = mat3.scale({load_own_gradient}, step)
        T = law.stress(state, A, c, step)
        if mu_v > 0.0:
            T = mat3.add(T, newtonian_viscosity.stress({volume_ratio}, A, broadcast(x, mu_v), step))
        {store_matrix}


@inline
def differential_in({state_names}, velocity_gradient, scale, tau, tau_stride, tau_shift, stride, start, end, coeffs, dt):
    """Replace the rows of Q in `tau` by those of dT."""
    mu_v = viscosity_of(coeffs)
    for i in range(start, end, 16):
        {load_state}
        {load_coeffs}
        step = broadcast(x, dt)
        Q, A = {load_direction}, mat3.scale({load_own_gradient}, step)
        T = law.stress_differential(state, A, Q, c, step)
        if mu_v > 0.0:
            T = mat3.add(T, newtonian_viscosity.stress_differential({volume_ratio}, A, Q, broadcast(x, mu_v), step))
        {store_matrix}


@part
def evaluate_trial_block(k, first, {state_names}, velocity_gradient, scale, local, local_stride, stencil, offset, stride, shift,
                         unit, volume, cell_size, coeffs, dt, segments, colour_range, tile_slot, scratch, base, velocity, force,
                         sums):
    r, thread = colour_range[first + k], get_thread_id()
    start, end, at = segments[r, 0], segments[r, 1], thread * SCRATCH
    tau_shift = thread * ROWS * local_stride - start
    load_tile(scratch, at, velocity, tile_slot, segments[r, 2])
    gather_run(stencil, offset, stride, shift, unit, None, None, velocity_gradient, stride, np.int64(0), None, 1.0 / cell_size,
               start, end, np.int64(0), scratch, at, base, 64 * thread)
    energy_in({state_names}, velocity_gradient, scale, volume, stride, start, end, coeffs, dt, sums, r)
    trial_stress_in({state_names}, velocity_gradient, scale, local, local_stride, tau_shift, stride, start, end, coeffs, dt)
    scatter_run(stencil, offset, stride, shift, unit, None, None, None, local, local_stride, tau_shift, volume, cell_size,
                -1.0 / cell_size, start, end, np.int64(0), scratch, at, base, 64 * thread, True)
    add_tile(scratch, at, force, tile_slot, segments[r, 2])


@compiled(fastmath=False)
def evaluate_trial({state_names}, velocity_gradient, scale, local, local_stride, stencil, offset, stride, shift, unit, volume,
                   cell_size, coeffs, dt, segments, colour_start, colour_range, tile_slot, scratch, base, velocity, force, sums):
    for colour in range(8):
        first = colour_start[colour]
        parallel_for(evaluate_trial_block, colour_start[colour + 1] - first, (
            first, {state_names}, velocity_gradient, scale, local, local_stride, stencil, offset, stride, shift, unit, volume,
            cell_size, coeffs, dt, segments, colour_range, tile_slot, scratch, base, velocity, force, sums))


@part
def apply_hessian_block(k, first, {state_names}, velocity_gradient, scale, local, local_stride, stencil, offset, stride, shift,
                        unit, volume, cell_size, coeffs, dt, segments, colour_range, tile_slot, scratch, base, direction, result):
    r, thread = colour_range[first + k], get_thread_id()
    start, end, at = segments[r, 0], segments[r, 1], thread * SCRATCH
    tau_shift = thread * ROWS * local_stride - start
    load_tile(scratch, at, direction, tile_slot, segments[r, 2])
    gather_run(stencil, offset, stride, shift, unit, None, None, local, local_stride, tau_shift, None, 1.0 / cell_size,
               start, end, np.int64(0), scratch, at, base, 64 * thread)
    differential_in({state_names}, velocity_gradient, scale, local, local_stride, tau_shift, stride, start, end, coeffs, dt)
    scatter_run(stencil, offset, stride, shift, unit, None, None, None, local, local_stride, tau_shift, volume, cell_size,
                dt * dt / cell_size, start, end, np.int64(0), scratch, at, base, 64 * thread, True)
    add_tile(scratch, at, result, tile_slot, segments[r, 2])


@compiled(fastmath=False)
def apply_hessian({state_names}, velocity_gradient, scale, local, local_stride, stencil, offset, stride, shift, unit, volume,
                  cell_size, coeffs, dt, segments, colour_start, colour_range, tile_slot, scratch, base, direction, result):
    for colour in range(8):
        first = colour_start[colour]
        parallel_for(apply_hessian_block, colour_start[colour + 1] - first, (
            first, {state_names}, velocity_gradient, scale, local, local_stride, stencil, offset, stride, shift, unit, volume,
            cell_size, coeffs, dt, segments, colour_range, tile_slot, scratch, base, direction, result))


@inline
def blocks_in({state_names}, velocity_gradient, scale, stencil, offset, stride, shift, unit, volume, cell_size, start, end, coeffs,
              dt, tile_slot, q, units, response, blocks):
    """Add what particles start .. end-1 give to their nodes: `response` takes dt^2 V0 dT of sixteen for the nine unit gradients."""
    mu_v = viscosity_of(coeffs)
    for i in range(start, end, 16):
        {load_state}
        {load_coeffs}
        step = broadcast(x, dt)
        A = mat3.scale({load_own_gradient}, step)
        weight = load(volume, i) * step * step
        for e in range(9):
            Q = {load_unit}
            T = law.stress_differential(state, A, Q, c, step)
            if mu_v > 0.0:
                T = mat3.add(T, newtonian_viscosity.stress_differential({volume_ratio}, A, Q, broadcast(x, mu_v), step))
            T = mat3.scale(T, weight)
            {store_response}
        scatter_blocks(stencil, offset, stride, shift, unit, 1.0 / cell_size, response, i, min(i + 16, end), tile_slot, q, blocks)


@part
def add_node_blocks_block(k, first, {state_names}, velocity_gradient, scale, stencil, offset, stride, shift, unit, volume,
                          cell_size, coeffs, dt, segments, colour_range, tile_slot, units, blocks):
    r = colour_range[first + k]
    blocks_in({state_names}, velocity_gradient, scale, stencil, offset, stride, shift, unit, volume, cell_size, segments[r, 0],
              segments[r, 1], coeffs, dt, tile_slot, segments[r, 2], units, np.empty(81 * 16, volume.dtype), blocks)


@compiled(fastmath=False)
def add_node_blocks({state_names}, velocity_gradient, scale, stencil, offset, stride, shift, unit, volume, cell_size, coeffs, dt,
                    segments, colour_start, colour_range, tile_slot, units, blocks):
    for colour in range(8):
        first = colour_start[colour]
        parallel_for(add_node_blocks_block, colour_start[colour + 1] - first, (
            first, {state_names}, velocity_gradient, scale, stencil, offset, stride, shift, unit, volume, cell_size, coeffs, dt,
            segments, colour_range, tile_slot, units, blocks))


@part
def store_local_hessians_block(k, {state_names}, velocity_gradient, scale, stride, segments, coeffs, dt, units, hessians):
    response, work = np.empty(81 * 16, velocity_gradient.dtype), np.empty(324)
    start, end = segments[k, 0], segments[k, 1]
    mu_v = viscosity_of(coeffs)
    for i in range(start, end, 16):
        {load_state}
        {load_coeffs}
        step = broadcast(x, dt)
        A = mat3.scale({load_own_gradient}, step)
        for e in range(9):
            Q = {load_unit}
            T = law.stress_differential(state, A, Q, c, step)
            if mu_v > 0.0:
                T = mat3.add(T, newtonian_viscosity.stress_differential({volume_ratio}, A, Q, broadcast(x, mu_v), step))
            {store_response}
        store_positive(response, i, min(i + 16, end), hessians, stride, work)


@compiled(fastmath=False)
def store_local_hessians({state_names}, velocity_gradient, scale, stride, segments, coeffs, dt, units, hessians):
    parallel_for(store_local_hessians_block, segments.shape[0], (
        {state_names}, velocity_gradient, scale, stride, segments, coeffs, dt, units, hessians))
'''


def implicit_source(pieces: Mapping[str, str]) -> str:
    """Return the source of a law's loops for implicit steps.

    Args:
        pieces: What `codegen` knows of the law: names, loads of state and coefficients in either precision.
    """

    def matrix(form: str) -> str:
        return "(" + "".join(form.format(row=row) + ", " for row in range(9)) + ")"

    def stores(form: str, indent: int = 8) -> str:
        return ("\n" + indent * " ").join(form.format(row=row) for row in range(9))

    return _SOURCE.format(
        **pieces,
        load_gradient_double=matrix("to_double(load(velocity_gradient, {row} * stride + i))"),
        load_own_gradient=matrix("load(velocity_gradient, {row} * stride + i)"),
        load_direction=matrix("load(tau, {row} * tau_stride + tau_shift + i)"),
        load_unit=matrix("broadcast(x, units[9 * e + {row}])"),
        store_matrix=stores("store_first(tau, {row} * tau_stride + tau_shift + i, T[{row}], end - i)"),
        store_response=stores("store(response, 16 * (9 * e + {row}), T[{row}])", 12),
    )
