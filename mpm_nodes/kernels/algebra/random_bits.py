"""Random bits that are a hash of what they stand for: the same with any number of threads."""

from __future__ import annotations

import numpy as np

from mpm_nodes.kernels.compile.jit import inline


@inline
def mixed(z):
    """Return a 64-bit integer whose bits all depend on those of z (SplitMix64's finaliser)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
