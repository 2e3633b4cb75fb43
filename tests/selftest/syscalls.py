"""Watch a fork's calls of the system and let some of them fail, wait or be its last: whatever library makes them.

Linux lets a process hand the decision on chosen system calls to another one (seccomp, SECCOMP_RET_USER_NOTIF), without rights of
any kind. So the writes of OpenUSD, OpenVDB and Python are all met where they are met in life.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.selftest.forks import LONGEST, Ending, begin, finish

__all__ = ["FULL", "KILL", "MEMORY", "WRITES", "Call", "Decide", "available", "watched"]

_NUMBERS = {
    "x86_64": {
        "write": 1, "pwrite64": 18, "writev": 20, "open": 2, "openat": 257, "fsync": 74, "fdatasync": 75, "ftruncate": 77,
        "rename": 82, "renameat": 264, "renameat2": 316, "mkdir": 83, "mkdirat": 258, "unlink": 87, "unlinkat": 263,
        "rmdir": 84, "mmap": 9, "brk": 12, "mremap": 25, "seccomp": 317,
    },
    "aarch64": {
        "write": 64, "pwrite64": 68, "writev": 66, "openat": 56, "fsync": 82, "fdatasync": 83, "ftruncate": 46,
        "renameat": 38, "renameat2": 276, "mkdirat": 34, "unlinkat": 35, "mmap": 222, "brk": 214, "mremap": 216,
        "seccomp": 277,
    },
}  # fmt: skip
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_MACHINE = platform.machine()
_KNOWN = _NUMBERS.get(_MACHINE, {})

WRITES = ("write", "pwrite64", "writev", "open", "openat", "fsync", "fdatasync", "ftruncate", "rename", "renameat", "renameat2",
          "mkdir", "mkdirat", "unlink", "unlinkat", "rmdir")  # fmt: skip
"""Calls that change files; of the opening ones, those that make a file, of the removing ones, those that find what they remove."""
MEMORY = ("mmap", "brk", "mremap")
"""Calls that ask for memory; of the maps, those of no file."""

_SET_NO_NEW_PRIVS, _SET_FILTER, _NEW_LISTENER, _CONTINUE = 38, 1, 8, 1
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_ANONYMOUS = 0x20


@dataclass(frozen=True)
class Call:
    """One call of the system.

    Attributes:
        number: How many calls that count came before it.
        name: Its name.
        path: The file that it changes, "" for memory.
    """

    number: int
    name: str
    path: str


Decide = Callable[[Call], int]
"""Returns 0 to let a call happen, a number of `errno` to let it fail, a negative number of a signal to end its process instead."""


@cache
def available() -> str:
    """Return "" where calls can be watched, else why not."""
    if sys.platform != "linux" or not _KNOWN:
        return f"needs Linux on x86_64 or aarch64, not {sys.platform} on {_MACHINE}"
    try:
        ending = watched(lambda: os.getpid(), WRITES, "/", lambda call: 0)
    except OSError as error:
        return f"the system hands no calls over ({error.strerror})"
    return "" if ending.answer else f"the system hands no calls over ({ending.error})"


def watched(work: Callable[[], Any], names: tuple[str, ...], folder: str, decide: Decide, longest: float = LONGEST) -> Ending:
    """Do work in a fork whose calls wait for a decision.

    Args:
        work: What to do.
        names: Calls to watch: `WRITES` or `MEMORY`.
        folder: Only files below it count.
        decide: Called with each call that counts.
        longest: Seconds until the fork counts as hanging.
    """
    ours, theirs = socket.socketpair()

    def filtered() -> Any:
        ours.close()
        listener = _install([_KNOWN[name] for name in names if name in _KNOWN])
        socket.send_fds(theirs, [b"!"], [listener])
        os.close(listener)
        theirs.close()
        return work()

    child, reading, start = begin(filtered)
    theirs.close()
    try:
        _, handles, _, _ = socket.recv_fds(ours, 1, 1)
    finally:
        ours.close()
    if handles:
        try:
            _serve(handles[0], child, folder, decide, start + longest)
        finally:
            os.close(handles[0])
    return finish(child, reading, start, max(1.0, start + longest - time.monotonic()))


def _install(numbers: list[int]) -> int:
    """Hand the calls of this thread, and of all that it starts, over; return the descriptor that they arrive at."""

    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    load, equal, give = 0x20, 0x15, 0x06
    program = [step(load, 4), step(equal, _ARCHITECTURES[_MACHINE], 1, 0), step(give, _ALLOW), step(load, 0)]
    program += [step(equal, number, len(numbers) - place, 0) for place, number in enumerate(numbers)]
    program += [step(give, _ALLOW), step(give, _NOTIFY)]
    code = ctypes.create_string_buffer(b"".join(program))
    described = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code)))
    system = ctypes.CDLL(None, use_errno=True)
    system.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    listener = system.syscall(_KNOWN["seccomp"], _SET_FILTER, _NEW_LISTENER, described)
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(listener)


def _serve(listener: int, child: int, folder: str, decide: Decide, end: float) -> None:
    """Answer calls until the fork is gone, or `end` comes."""
    names = {number: name for name, number in _KNOWN.items()}
    count = 0
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while (left := end - time.monotonic()) > 0.0:
        events = poll.poll(1000.0 * left)
        if not events or not events[0][1] & select.POLLIN:
            return  # nobody is left who could call
        for number, pid, call, arguments in _received(listener):
            name = names[call]
            path = _changed(name, pid, arguments) if name not in MEMORY else ""
            asks = _asks_for_memory(name, arguments) if name in MEMORY else path.startswith(folder)
            verdict = 0
            if asks:
                verdict = decide(Call(count, name, path))
                count += 1
            if verdict < 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, -verdict)
                return
            _reply(listener, number, verdict)


def _received(listener: int) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    import fcntl

    told = bytearray(80)
    with contextlib.suppress(OSError):  # its caller was killed meanwhile
        fcntl.ioctl(listener, _RECEIVE, told, True)
        number, pid, _, call, _, _, *arguments = struct.unpack("QIIiIQ6Q", told)
        yield number, pid, call, tuple(arguments)


def _reply(listener: int, number: int, error: int) -> None:
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.ioctl(listener, _SEND, bytearray(struct.pack("QqiI", number, 0, -error, 0 if error else _CONTINUE)), True)


def _changed(name: str, pid: int, arguments: tuple[int, ...]) -> str:
    """Return the path of the file that a call would change, "" where it changes none."""
    with contextlib.suppress(OSError):
        if name in ("open", "openat"):
            place, flags = (0, arguments[1]) if name == "open" else (1, arguments[2])
            return _named(pid, arguments[0] if place else -100, arguments[place]) if flags & os.O_CREAT else ""
        if name in ("rename", "mkdir"):
            return _named(pid, -100, arguments[0])
        if name in ("renameat", "renameat2", "mkdirat"):
            return _named(pid, arguments[0], arguments[1])
        if name in ("unlink", "rmdir", "unlinkat"):
            path = _named(pid, arguments[0], arguments[1]) if name == "unlinkat" else _named(pid, -100, arguments[0])
            return path if os.path.lexists(path) else ""
        return os.readlink(f"/proc/{pid}/fd/{arguments[0]}")
    return ""


def _named(pid: int, folder: int, address: int) -> str:
    name = _text_at(pid, address).decode(errors="replace")
    folder &= 0xFFFFFFFF
    at = os.readlink(f"/proc/{pid}/cwd" if folder == 0xFFFFFF9C else f"/proc/{pid}/fd/{folder}")
    return os.path.join(at, name)


def _text_at(pid: int, address: int) -> bytes:
    """Return the text at an address, page by page: it may end in the next one, and there may be none behind it."""
    text = b""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        while b"\0" not in text and len(text) < 4096:
            memory.seek(address + len(text))
            text += memory.read(4096 - (address + len(text)) % 4096)
    return text.partition(b"\0")[0]


def _asks_for_memory(name: str, arguments: tuple[int, ...]) -> bool:
    return bool(arguments[3] & _ANONYMOUS) if name == "mmap" else name != "brk" or arguments[0] != 0


FULL = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EDQUOT": errno.EDQUOT}
"""How a disk refuses a write."""
KILL = -signal.SIGKILL
