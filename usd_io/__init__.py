"""USD and OpenVDB caches, in and out. SI inside; scene units are converted here and nowhere else.

openvdb_module  finds OpenVDB            volumes  level sets and fogs to and from .vdb, and their meshes
points, meshes  one frame of geometry    stage    the root stage that ties the frames together
estimate        bytes before a run       check    what validators miss in a finished cache
"""

from __future__ import annotations

import importlib.util
import sys

from mpm_nodes.data import InputError

__all__ = ["require_usd"]


def require_usd() -> None:
    """Raise `InputError` with the cure when the USD libraries are not installed."""
    if importlib.util.find_spec("pxr") is None:
        raise InputError(f'USD: no module pxr in {sys.executable}; USD files need it: pip install "mpm-nodes[usd]"')
