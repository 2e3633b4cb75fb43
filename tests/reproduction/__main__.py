"""Cook a sample as `mpm-nodes sample` does, and measure all that it must show, or run the study of its method.

python -m tests.reproduction NAME --out out/NAME
python -m tests.reproduction spheres --study           # does each rebound, at two resolutions with three seeds?
python -m tests.reproduction sponge_bullet --study     # iterations of implicit steps with each preconditioner
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mpm_nodes.commands import sample
from mpm_nodes.data import MpmNodesError
from mpm_nodes.packaged_samples import samples_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Cook and measure what the arguments name, or say in a line why not; return the exit code."""
    command = argparse.ArgumentParser(prog="python -m tests.reproduction", description=__doc__.split("\n")[0], allow_abbrev=False)
    sample.add(command)
    args = command.parse_args(arguments)
    samples_folder()
    from mpm_nodes_samples.shots.index import sample_named
    from mpm_nodes_samples.shots.run import run
    from tests.reproduction.figures import FIGURES
    from tests.reproduction.known_misses import KNOWN_MISSES
    from tests.reproduction.studies import study

    try:
        chosen = sample_named(args.name or "")
        if args.study:
            return study(chosen, args)
        return run(chosen, args, FIGURES[chosen.name], KNOWN_MISSES.get(chosen.name, ()))
    except MpmNodesError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
