"""How many threads a measurement runs on."""

from __future__ import annotations

from mpm_nodes.data import MpmNodesError


def available_threads() -> int:
    """Return the most threads that numba was started with."""
    import numba

    return numba.config.NUMBA_NUM_THREADS


def set_threads(threads: int) -> None:
    """Set the number of threads of all kernels; to be done before a solver is built.

    Raises:
        MpmNodesError: There are not as many.
    """
    import numba

    most = available_threads()
    if threads > most:
        raise MpmNodesError(
            f"bench: --threads {threads}: this machine offers {most}; give at most {most}, "
            "or set NUMBA_NUM_THREADS before the start"
        )
    numba.set_num_threads(threads)
