"""Show what can be deleted of a cook (temporary files, surplus checkpoints, old revisions); delete it with --yes."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpm_nodes.commands.numbers import whole


def add(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("cache", type=Path, metavar="CACHE", help="output root or revision folder of a cook")
    command.add_argument("--yes", action="store_true", help="delete; without it, sizes are shown and nothing is touched")
    command.add_argument("--old-revisions", action="store_true", help="also every revision but the newest")
    command.add_argument(
        "--keep-every",
        type=whole(0),
        default=24,
        metavar="N",
        help="keep checkpoints of every N-th frame; 0: only the last two",
    )


def run(args: argparse.Namespace) -> int:
    """List, or delete."""
    from mpm_nodes.graph.plan.preflight import in_words
    from mpm_nodes.graph.revisions.clean import removable

    total = count = 0
    for group in removable(args.cache, args.old_revisions, args.keep_every):
        for item in group:
            if args.yes:
                item.remove()
            print(f"{in_words(item.bytes):>10}  {item.path}  ({item.why})")
            total += item.bytes
            count += 1
    done = "deleted" if args.yes else "can be deleted"
    print(
        f"{count} item{'' if count == 1 else 's'}, {in_words(total)} {done}"
        + ("" if args.yes or not count else "; add --yes to do it")
    )
    return 0
