"""What libraries and kernels take of a cook's memory, whatever its size: told by the nodes that load them, counted once."""

from __future__ import annotations

__all__ = ["KERNELS", "OPENUSD", "OPENVDB"]

KERNELS = {"kernels": 100 << 20}
"""The interpreter, NumPy, Numba and LLVM."""
OPENUSD = {"OpenUSD": 75 << 20}
OPENVDB = {"OpenVDB": 85 << 20}
"""OpenVDB, and the kernels that make surfaces and volumes."""
