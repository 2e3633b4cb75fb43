"""The command line, `mpm-nodes COMMAND`; `mpm-nodes --help` lists the commands.

Exit codes: 0 ok, 1 a defect (of this program or of a node) or a failed check, 2 invalid graph or arguments,
3 cancelled, 4 diverged, 5 input or output.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

import mpm_nodes
from mpm_nodes import children, launched, orphans, reads, search_path, supervisor

try:
    from mpm_nodes.data import Cancelled, MpmNodesError, OutputError
except ImportError as error:
    if not search_path.PROGRAM:
        raise
    said = (str(error).strip().splitlines() or ["no reason given"])[-1]
    print(f"mpm-nodes: error: {sys.executable} cannot import what mpm-nodes needs ({said}); install it there", file=sys.stderr)
    sys.exit(5)
from mpm_nodes.terminal import open_closed_streams, plain, plain_lines, stream_of_results

COMMANDS = (
    "doctor",
    "demo",
    "sample",
    "edit",
    "cook",
    "validate",
    "upgrade",
    "nodes",
    "verify",
    "bench",
    "render",
    "plot",
    "view",
    "export",
    "check",
    "clean",
    "forces",
    "farm",
    "join",
    "kernels",
    "host",
)
EPILOG = "exit codes: 0 ok, 1 defect, 2 invalid graph or arguments, 3 cancelled, 4 diverged, 5 input or output"
CANCELLED = 3
LIGHT = ("validate", "upgrade", "nodes", "check", "clean", "kernels", "host")
"""Commands that load neither LLVM nor OpenUSD."""
LIGHT_BYTES, HEAVY_BYTES, THREAD_BYTES = 520_000_000, 1_600_000_000, 150_000_000
MORE_MEMORY = "raise the limit (ulimit -v unlimited), and limit what is used by a container or a cgroup instead"


def parser() -> argparse.ArgumentParser:
    """Return the argument parser of all commands."""
    top = argparse.ArgumentParser(
        prog="mpm-nodes",
        description="Cook node graphs of the Material Point Method.",
        epilog=EPILOG,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"mpm-nodes {mpm_nodes.__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"mpm_nodes.commands.{name}")
        summary = (module.__doc__ or "").split("\n")[0]
        command = commands.add_parser(name, help=summary, description=summary, epilog=EPILOG, allow_abbrev=False)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        module.add(command)
        command.set_defaults(run=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. Errors become one line each on stderr."""
    if argv is None:
        open_closed_streams()
        if sys.flags.optimize > 1 or sys.flags.inspect:  # help is read from docstrings, and a prompt would wait for ever
            children.become_isolated(sys.argv[1:])
    try:
        args = parser().parse_args(argv)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    try:
        check_address_space(args.command)
        args.argv = [*(sys.argv[1:] if argv is None else argv)]
        is_rank = getattr(args, "ranks", None) is not None and launched.ranks() > 0  # its launcher ends it
        if argv is None and supervisor.wanted(args) and not is_rank:
            return supervisor.supervise(sys.argv[1:], args)
        with stream_of_results(_prints_json(args)) as args.stream:
            code = args.run(args)
        sys.stdout.flush()  # a full disk behind it is met here, not while the interpreter ends
        return code
    except MpmNodesError as error:
        if args.debug:
            raise
        for line in plain_lines(str(error)):
            print(f"mpm-nodes: {'' if isinstance(error, Cancelled) else 'error: '}{line}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("mpm-nodes: stopped", file=sys.stderr)
        return CANCELLED
    except BrokenPipeError:  # the reader of our output went away (`mpm-nodes nodes | head`)
        sys.stderr.close()
        return 0
    except OSError as error:
        if args.debug:
            raise
        where = f"{error.filename}: " if error.filename else "standard output or a file: "
        print(
            plain(f"mpm-nodes: error: {where}{error.strerror or error}; check the path, permissions and free space"),
            file=sys.stderr,
        )
        _leave_output()
        return OutputError.exit_code
    except MemoryError:
        if args.debug:
            raise
        print(f"mpm-nodes: error: {args.command}: ran out of memory; {MORE_MEMORY}", file=sys.stderr)
        return OutputError.exit_code
    except Exception as error:
        if args.debug:
            raise
        text = plain(f"{type(error).__name__}: {error}")
        print(f"mpm-nodes: defect: {text}; run again with --debug and report it", file=sys.stderr)
        return 1


def _prints_json(args: argparse.Namespace) -> bool:
    """Whether a command prints JSON for programs; `cook` looks after its events itself, in each of its ranks."""
    return getattr(args, "json", None) is True or args.command == "upgrade" or getattr(args, "host", "") == "spec"


def _leave_output() -> None:
    """Give up what standard output still holds where it cannot be written: the interpreter would complain of it at its end."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def work(mark: str, *argv: str) -> None:
    """Run one command for the process that supervises it, and leave with its exit code; what it reads goes to `mark`."""
    if mark != children.NO_MARK:
        reads.follow(int(mark))
    orphans.end_with_input()
    supervisor.leave_signals_to_parent()
    sys.exit(children.ENDED + main(argv))


def check_address_space(command: str) -> None:
    """Refuse a limit of the address space (`ulimit -v`) in which the libraries of a command end in a segmentation fault.

    Raises:
        OutputError: The limit is too low; it says which would do.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    # LLVM, OpenUSD and OpenVDB reserve 1.7 GB on two cores, and every further thread its stack and its heap
    need = LIGHT_BYTES if command in LIGHT else HEAVY_BYTES + THREAD_BYTES * (os.cpu_count() or 1)
    if limit != resource.RLIM_INFINITY and limit < need:
        raise OutputError(
            f"{command}: the address space is limited to {limit / 1e9:.2g} GB (ulimit -v), and the libraries that it loads "
            f"reserve {need / 1e9:.2g} GB, most of which is never used; {MORE_MEMORY}"
        )


if __name__ == "__main__":
    sys.exit(main())
