"""Whether an MPI launcher started this process, found without loading MPI."""

from __future__ import annotations

import os

__all__ = ["ranks"]

LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS"),
)
"""Variables by which launchers tell a process its rank and the number of ranks."""


def ranks() -> int:
    """Return how many processes were launched together with this one; 0 where no launcher did, 1 where it does not say."""
    for rank, size in LAUNCHERS:
        if rank in os.environ:
            told = os.environ.get(size, "")
            return int(told) if told.isdigit() else 1
    return 0
