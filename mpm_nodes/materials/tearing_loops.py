"""Templates of the loops of tearing and recovery for one law (see `codegen` for the layout), alone and inside fused loops.

The arithmetic is `kernels.tearing`; loops that need no law, the limit of the stress and the total deformation, are there as well.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NO_GATHER_STAGES", "NO_SCATTER_STAGES", "TEARING_LOOPS", "gather_stages_of", "scatter_stages_of", "tearing_source"]

TEARING_LOOPS = ("detect_tears", "limit_deformation", "recover_plasticity")
"""Names of the loops, as in `codegen.LawKernels`."""

# a group of sixteen without a weak particle costs one load in `limit_deformation_in`
_LOOPS = '''
@inline
def detect_tears_in({state_names}, total, weak, stride, start, end, ahead, threshold):
    for i in range(start, end, 16):
        for row in range(9):
            prefetch(total, row * stride + i + ahead)
        prefetch(weak, i + ahead)
        {load_state}
        _J, b = law.left_strain(state)
        flag = load(weak, i)
        torn = tearing.is_torn(tearing.load_matrix(total, stride, i), b, broadcast(x, threshold))
        store_first(weak, i, select(torn, const(flag, 1), const(flag, 0)), end - i)


@part
def detect_tears_block(k, {state_names}, total, weak, stride, segments, threshold):
    detect_tears_in({state_names}, total, weak, stride, segments[k, 0], segments[k, 1], np.int64(0), threshold)


@kernel(fastmath=False)
def detect_tears({state_names}, total, weak, stride, segments, threshold):
    parallel_for(detect_tears_block, segments.shape[0], ({state_names}, total, weak, stride, segments, threshold))


@inline
def limit_deformation_in({state_names}, velocity_gradient, L_stride, L_shift, weak, stride, start, end, dt, alg11_expansion):
    for i in range(start, end, 16):
        flag = load(weak, i)
        torn = flag != const(flag, 0)
        if not any_lane(torn):
            continue
        {load_state}
        J, b = law.left_strain(state)
        L = tearing.load_matrix(velocity_gradient, L_stride, L_shift + i)
        limited = tearing.limited_gradient(L, J, b, broadcast(x, dt), alg11_expansion)
        tearing.store_matrix(velocity_gradient, L_stride, L_shift + i, mat3.choose(torn, limited, L), end - i)


@part
def limit_deformation_block(k, {state_names}, velocity_gradient, weak, stride, segments, dt, alg11_expansion):
    limit_deformation_in({state_names}, velocity_gradient, stride, np.int64(0), weak, stride, segments[k, 0], segments[k, 1],
                         dt, alg11_expansion)


@kernel(fastmath=False)
def limit_deformation({state_names}, velocity_gradient, weak, stride, segments, dt, alg11_expansion):
    parallel_for(limit_deformation_block, segments.shape[0],
                 ({state_names}, velocity_gradient, weak, stride, segments, dt, alg11_expansion))


@inline
def recover_plasticity_in({state_names}, total, stride, start, end, exponent, rest):
    for i in range(start, end, 16):
        {load_state}
        _J, b = law.left_strain(state)
        F = tearing.load_matrix(total, stride, i)
        moves, F = tearing.recovered(F, b, broadcast(x, exponent), broadcast(x, rest))
        if any_lane(moves):
            tearing.store_matrix(total, stride, i, F, end - i)


@part
def recover_plasticity_block(k, {state_names}, total, stride, segments, exponent, rest):
    recover_plasticity_in({state_names}, total, stride, segments[k, 0], segments[k, 1], exponent, rest)


@kernel(fastmath=False)
def recover_plasticity({state_names}, total, stride, segments, exponent, rest):
    parallel_for(recover_plasticity_block, segments.shape[0], ({state_names}, total, stride, segments, exponent, rest))
'''


NO_SCATTER_STAGES = {"suffix": "", "tear_arguments": "", "detect": "pass", "limit": "pass"}
NO_GATHER_STAGES = {"suffix": "", "tear_arguments": "", "limit": "pass", "total": "pass", "recover": "pass"}


def scatter_stages_of(state_names: str, tears: bool) -> dict[str, str]:
    """Return what stands in a fused scatter for the detection of tears and the limit of the stress.

    An infinite threshold leaves the marks alone. Laws without an elastic strain keep the marks that were painted.
    """
    detect = (f"if threshold < np.inf: detect_tears_in({state_names}, total, weak, stride, start, end, ahead, threshold)"
              if tears else "pass")
    return {"suffix": "_tearing", "tear_arguments": ", total, weak, threshold", "detect": detect,
            "limit": "tearing.limit_stress_run(tau, tau_stride, tau_shift, weak, start, end)"}


def gather_stages_of(state_names: str, tears: bool) -> dict[str, str]:
    """Return what stands in a fused gather for the limit of the deformation, the total deformation and its recovery.

    An exponent of 0 leaves the plastic strain alone.
    """
    limit = (f"limit_deformation_in({state_names}, velocity_gradient, L_stride, L_shift, weak, stride, start, end, dt, "
             "alg11_expansion)")
    recover = f"if exponent != 0.0: recover_plasticity_in({state_names}, total, stride, start, end, exponent, rest)"
    return {"suffix": "_tearing", "tear_arguments": ", total, weak, alg11_expansion, exponent, rest",
            "limit": limit if tears else "pass", "recover": recover if tears else "pass",
            "total": "tearing.total_deformation_run(total, velocity_gradient, L_stride, L_shift, stride, start, end, ahead, dt)"}


def tearing_source(pieces: Mapping[str, str]) -> str:
    """Return the source of the loops.

    Args:
        pieces: What `codegen` knows of the law; "state_names" and "load_state" are used.
    """
    return _LOOPS.format(**pieces)
