"""What libraries and kernels take of a cook's memory, whatever its size: told by the nodes that load them, counted once."""

from __future__ import annotations

from mpm_nodes.data import InputError

__all__ = ["KERNELS", "OPENUSD", "OPENVDB", "refuse_without_openvdb"]

KERNELS = {"kernels": 100 << 20}
"""The interpreter, NumPy, Numba and LLVM."""
OPENUSD = {"OpenUSD": 75 << 20}
OPENVDB = {"OpenVDB": 85 << 20}
"""OpenVDB, and the kernels that make surfaces and volumes."""


def refuse_without_openvdb(where: str) -> None:
    """Raise `InputError`, with what to install, where this interpreter has no OpenVDB; `where` is what needs it."""
    from usd_io.openvdb_module import find_openvdb

    try:
        find_openvdb()
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
