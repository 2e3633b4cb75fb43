"""Edit a graph and look at its cooks in the browser: a local page, served to this machine alone."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import threading
from pathlib import Path

from mpm_nodes.commands.numbers import whole

HERE, EVERYWHERE = "127.0.0.1", ("", "0.0.0.0", "::", "*")


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
    command.add_argument(
        "--listen",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="name or address by which other machines call this one; the network sees what is sent, so a tunnel is better "
        "(default: this machine alone)",
    )
    command.add_argument(
        "--token",
        default="",
        metavar="TOKEN",
        help="what callers have to know, 16 characters or more; others on this machine see it in the list of processes, "
        "and not where it stands in MPM_NODES_TOKEN or in a file, @FILE (default: a random one; --listen needs one)",
    )
    command.add_argument("--no-browser", action="store_true", help="print the address only")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C, or until the terminal is closed."""
    from mpm_nodes.data import InputError, OutputError
    from mpm_nodes.editor.server import EditorServer, serve_in_background

    root, graph = chosen(args.graph, args.root)
    if not root.is_dir():
        raise InputError(f"{root}: is not a folder; give one with --root")
    token = chosen_token(args.token, args.listen)
    try:
        server = EditorServer(root, graph, args.port, args.listen, token)
    except (OSError, OverflowError, UnicodeError) as error:
        cure = "leave --port away for a free one" if args.listen == HERE else "give an address of this machine, or another --port"
        raise OutputError(f"edit: {args.listen} port {args.port} cannot be opened ({error}); {cure}") from error
    if graph:
        server.calls.project.read(graph)
    done, parent = threading.Event(), os.getppid()
    kept = hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup: it shall go on
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), lambda *_: done.set())
    serve_in_background(server)
    server.calls.warm()
    url = server.url.replace(token, "...") if token else server.url  # whoever chose it knows it
    print(f"{url}\nfolder {root}; Ctrl-C ends it, and a cook that runs", flush=True)
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


def chosen_token(given: str, address: str) -> str:
    """Return the token that callers have to know, "" for a random one.

    Args:
        given: What --token says; "@FILE" names a file that holds it.
        address: Where the server listens.

    Raises:
        InputError: It cannot be read, is too short, or cannot stand in an address; or an address of the network lacks one.
    """
    from mpm_nodes.data import InputError
    from mpm_nodes.regular_files import open_regular

    if given.startswith("@"):
        with open_regular(given[1:]) as file:
            token = file.read(1000).decode("utf-8", "replace").strip()
    else:
        token = given or os.environ.get("MPM_NODES_TOKEN", "")
    if address in EVERYWHERE:
        raise InputError(f"--listen {address}: is every address; name the one by which other machines call this one")
    if not token and address != HERE:
        raise InputError(f"--listen {address}: whoever reaches it could cook; give --token, @FILE or MPM_NODES_TOKEN as well")
    if token and not re.fullmatch(r"[A-Za-z0-9_~.-]{16,200}", token):
        raise InputError("--token: is 16 to 200 letters, digits and any of - _ . ~, which may stand in an address")
    return token


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
