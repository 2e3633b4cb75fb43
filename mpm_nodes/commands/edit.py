"""Edit a graph and look at its cooks in the browser: a local page, served to this machine alone."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

from mpm_nodes.commands.numbers import whole


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("graph", type=Path, nargs="?", metavar="GRAPH", help="graph file (JSON); none: choose or begin one")
    command.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="folder below which graphs are read and written (default: the working folder, or the graph's own elsewhere)",
    )
    command.add_argument("--port", type=whole(0), default=0, metavar="N", help="port of the page (default: a free one)")
    command.add_argument("--no-browser", action="store_true", help="print the address only")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or until the terminal is closed."""
    from mpm_nodes.data import InputError, OutputError
    from mpm_nodes.editor.server import EditorServer, serve_in_background

    root, graph = chosen(args.graph, args.root)
    if not root.is_dir():
        raise InputError(f"{root}: is not a folder; give one with --root")
    try:
        server = EditorServer(root, graph, args.port)
    except (OSError, OverflowError) as error:
        raise OutputError(f"edit: port {args.port} cannot be opened ({error}); leave --port away for a free one") from error
    if graph:
        server.calls.project.read(graph)
    done, parent = threading.Event(), os.getppid()
    kept = hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup: it shall go on
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), lambda *_: done.set())
    serve_in_background(server)
    print(f"{server.url}\nfolder {root}; Ctrl-C ends it, and a cook that runs", flush=True)
    if not args.no_browser and has_screen():
        import webbrowser

        webbrowser.open(server.url)
    try:
        while not done.wait(1.0) and (kept or os.getppid() == parent):
            pass
    finally:
        server.shutdown()
        server.close()
    with contextlib.suppress(OSError):
        print("stopped", flush=True)
    return 0


def chosen(graph: Path | None, root: Path | None) -> tuple[Path, str]:
    """Return the project's folder, and the name of the graph in it ("" for none).

    Raises:
        InputError: The graph does not lie below `root`.
    """
    from mpm_nodes.data import InputError

    here = (root or Path()).resolve()
    if graph is None:
        return here, ""
    path = graph.resolve()
    if path.is_relative_to(here):
        return here, path.relative_to(here).as_posix()
    if root is not None:
        raise InputError(f"{graph}: does not lie below {root}; give another --root")
    return path.parent, path.name


def has_screen() -> bool:
    """Return whether a browser of this machine can show a window."""
    local = not any(name in os.environ for name in ("SSH_CONNECTION", "SSH_TTY"))
    return local and (sys.platform != "linux" or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY")))
