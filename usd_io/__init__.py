"""USD and OpenVDB caches, in and out. SI inside; scene units are converted here and nowhere else.

openvdb_module  finds OpenVDB            volumes  level sets and fogs to and from .vdb, and their meshes
points, meshes  one frame of geometry    stage    the root stage that ties the frames together
stage_reader    stages and points back in  time_codes  what frames are in a file
scene_meshes    meshes of a host's scene
estimate        bytes before a run       check    what validators miss in a finished cache
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sys
from collections.abc import Iterator

from mpm_nodes import reads
from mpm_nodes.data import InputError

__all__ = ["reading_usd", "require_usd", "usd_reason"]


def require_usd() -> None:
    """Raise `InputError` with the cure when the USD libraries are not installed."""
    if importlib.util.find_spec("pxr") is None:
        raise InputError(f'USD: no module pxr in {sys.executable}; USD files need it: pip install "mpm-nodes[usd]"')


def usd_reason(error: Exception) -> str:
    """Return what OpenUSD says of a failure in one line, without the places in its sources that it names."""
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except UnicodeDecodeError:  # the text quotes the file
        return "it holds text that is not UTF-8"
    if not lines:
        return "not a USD file"
    return re.sub(r"^Error in '[^']*' at line \d+ in file \S+ : '(.*)'$", r"\1", lines[-1])


@contextlib.contextmanager
def reading_usd(name: object) -> Iterator[None]:
    """Turn what OpenUSD says inside the block into an `InputError` about `name`: it meets most damage when a value is read.

    Where it crashes or never comes back, the supervisor of this process learns the name (`mpm_nodes.reads`).

    Raises:
        InputError: A value is damaged.
    """
    from pxr import Tf

    try:
        with reads.reading(name):
            yield
    except Tf.ErrorException as error:
        raise InputError(f"{name}: is damaged ({usd_reason(error)}); export it again") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: holds text that is not UTF-8; export it again") from error
