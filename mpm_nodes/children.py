"""Start other processes of this package; nothing else in it starts Python.

A child is isolated (`python -I`): it looks for modules on the path that it is handed and nowhere else, so nothing that lies in the
working folder, beside a graph or in an output folder is ever imported. Variables named MPM_NODES_... reach it as they are.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpm_nodes.search_path import trusted_path

__all__ = ["NO_MARK", "become_isolated", "command", "last_words", "launch", "meant", "run", "start"]

_BEGIN = (
    "import sys; sys.path[:] = {path!r}; from mpm_nodes.orphans import end_with_parent; end_with_parent({parent}); "
    "from mpm_nodes.search_path import refuse_settings_beside_graphs; refuse_settings_beside_graphs(); "
)
_FUNCTION = "from importlib import import_module; import_module({module!r}).{function}(*sys.argv[1:])"
_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; from mpm_nodes.orphans import end_with_starter; end_with_starter({starter}, {machine!r}); "
    "from mpm_nodes.cli import main; sys.exit(main(sys.argv[1:]))"
)
_AGAIN = (
    "import sys; sys.path[:] = {path!r}; from mpm_nodes.search_path import refuse_settings_beside_graphs; "
    "refuse_settings_beside_graphs(); from mpm_nodes.cli import main; sys.exit(main())"
)
_SCRIPT = "import runpy; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
LONGEST_WORDS = 300
ENDED = 64
"""What `cli.work` adds to its exit code: one below it comes from elsewhere, such as `os._exit` in a node."""
NO_MARK = "-1"
"""What `cli.work` gets where nobody looks at what it reads (`reads.new_mark`)."""
_UNFLUSHED, _OUTPUT = 120, 5
"""Exit code of Python where its last words could not be written, and ours for that."""


def command(entry: str | Path, *arguments: str) -> list[str]:
    """Return the command line of an isolated child.

    Args:
        entry: "package.module:function", which is called with the arguments, or the path of a script.
        arguments: Texts.
    """
    begin = _BEGIN.format(path=trusted_path(), parent=os.getpid())
    if isinstance(entry, Path):
        return [sys.executable, "-I", "-X", "utf8", "-c", begin + _SCRIPT, str(entry.absolute()), *arguments]
    module, _, function = entry.partition(":")
    return [sys.executable, "-I", "-X", "utf8", "-c", begin + _FUNCTION.format(module=module, function=function), *arguments]


def run(entry: str | Path, arguments: Sequence[str] = (), **options: Any) -> subprocess.CompletedProcess:
    """Run an isolated child to its end; `options` are those of `subprocess.run`."""
    return subprocess.run(command(entry, *arguments), **{"stdin": subprocess.DEVNULL, "check": False, **options})


def start(entry: str | Path, arguments: Sequence[str] = (), **options: Any) -> subprocess.Popen:
    """Start an isolated child; `options` are those of `subprocess.Popen`."""
    return subprocess.Popen(command(entry, *arguments), **{"stdin": subprocess.DEVNULL, **options})


def meant(code: int) -> int | None:
    """Return the exit code of the command that `cli.work` ran, None where something else ended its process with `code`."""
    if code == _UNFLUSHED:
        return _OUTPUT
    return code - ENDED if code >= ENDED else None


def launch(launcher: Sequence[str], arguments: Sequence[str], **options: Any) -> subprocess.Popen:
    """Start a launcher of several processes (`mpiexec -n 4`), each an isolated program of this package with these arguments.

    A launcher goes on when this process is killed, so the programs watch for its end; `options` are those of `subprocess.Popen`.
    """
    program = _PROGRAM.format(path=trusted_path(), starter=os.getpid(), machine=platform.node())
    begin = [sys.executable, "-I", "-X", "utf8", "-c", program]
    return subprocess.Popen([*launcher, *begin, *arguments], **{"stdin": subprocess.DEVNULL, **options})


def become_isolated(arguments: Sequence[str]) -> None:
    """Start this program again in place of this process, in a Python without the settings (PYTHON...) of this one."""
    begin = [sys.executable, "-I", "-X", "utf8", "-c", _AGAIN.format(path=trusted_path())]
    os.execv(sys.executable, [*begin, *arguments])


def last_words(said: bytes | str, status: int) -> str:
    """Return how a child ended and the last line that it said, for a message: "exit status 1: ValueError: ..."."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ended = f"signal {-status}" if status < 0 else f"exit status {status}"
    return f"{ended}: {lines[-1][-LONGEST_WORDS:]}" if lines else ended
