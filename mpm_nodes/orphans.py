"""Children do not outlive the process that started them, however that ends."""

import os
import platform
import sys

__all__ = ["end_with_input", "end_with_parent", "end_with_starter"]

_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
ENDED = 3
"""Exit code of a child whose parent is gone: cancelled."""


def end_with_parent(parent: int) -> None:
    """Have the system kill this process when the thread that started it ends (Linux; nothing elsewhere)."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:  # it ended before the system was asked
        os._exit(ENDED)


def end_with_input() -> None:
    """End this process when the other end of its standard input is closed: the way that every system knows."""
    import threading

    def watch() -> None:
        while os.read(0, 4096):  # not through sys.stdin, whose lock would be held when the process ends
            pass
        os._exit(ENDED)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def end_with_starter(starter: int, machine: str) -> None:
    """End this process when another that is not its parent ends: the one behind a launcher (Linux; nothing elsewhere).

    Args:
        starter: Number of that process.
        machine: Name of the machine it runs on; a launcher may start this one elsewhere, where the number says nothing.
    """
    if not hasattr(os, "pidfd_open") or platform.node() != machine:
        return
    import select
    import threading

    try:
        handle = os.pidfd_open(starter)
    except ProcessLookupError:
        os._exit(ENDED)
    except OSError:  # an older kernel, or a container that does not allow it
        return

    def watch() -> None:
        select.select([handle], [], [])
        os._exit(ENDED)

    threading.Thread(target=watch, name="starter", daemon=True).start()
