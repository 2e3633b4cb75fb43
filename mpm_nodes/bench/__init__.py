"""What a solve costs: particle-steps per second beside what the machine can do, and the cost of the graph machinery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpm_nodes.data import MpmNodesError

if TYPE_CHECKING:
    import argparse

LISTS = ("scene", "law", "kernel", "transfer", "particles", "threads")
ONE_OF_EACH = {
    "overhead": ("particles",),
    "domain": ("kernel", "transfer", "particles", "threads"),
    "cores": ("particles",),
    "instructions": ("law", "kernel", "transfer"),
}
"""Lists of which the measurements that are not a table take one value; they take none of the others."""


def main(args: argparse.Namespace) -> int:
    """Run what `mpm-nodes bench` was asked for and return its exit code."""
    for mode, taken in ONE_OF_EACH.items():
        if getattr(args, mode):
            _check_lists(args, mode, taken)
    if args.overhead:
        from mpm_nodes.bench import overhead

        return overhead.main(args)
    if args.domain:
        from mpm_nodes.bench import domain

        return domain.main(args)
    if args.cores:
        from mpm_nodes.bench import cores

        return cores.main(args)
    if args.instructions:
        from mpm_nodes.bench import instructions

        return instructions.main(args)
    from mpm_nodes.bench import table

    return table.main(args)


def _check_lists(args: argparse.Namespace, mode: str, taken: tuple[str, ...]) -> None:
    for name in LISTS:
        given = getattr(args, name) or ()
        if given and name not in taken:
            raise MpmNodesError(f"bench: --{mode} has a scene of its own and takes no --{name}; leave it away")
        if len(given) > 1:
            raise MpmNodesError(f"bench: --{mode} --{name}: {len(given)} values given; give one")
