"""How many kernels each preset compiles from an empty cache: `mpm_nodes/solver/kernel_counts.py` is written here.

`python benchmarks/kernel_counts.py` counts those of all presets but those that choose among others, `... melting` those of one; the
others keep what is written of them. Kernels are compiled without optimisation, which changes their speed and not their number.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mpm_nodes import children, compiling
from mpm_nodes.commands.kernels import BUILT_IN
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.files import strict_json
from mpm_nodes.solver import ahead, kernel_counts
from mpm_nodes.solver.cold_start import SWITCH


def count(preset: str) -> None:
    """Compile a preset and print how many kernels that took; called with an empty cache."""
    with compiling.told(lambda now: None) as done:
        ahead.compile_one(preset, 0, collides=(True,))
        first = done()
        for place in range(len(ahead.matters(preset))):
            ahead.compile_one(preset, place)
        print(json.dumps([done(), first]))


def counted(preset: str) -> kernel_counts.Count:
    """Return the counts of a preset, compiled in a process with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MPM_NODES_CACHE": folder, SWITCH: "0", "NUMBA_NUM_THREADS": "1", "NUMBA_OPT": "0"}
        done = children.run(Path(__file__), ["--one", preset], stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return kernel_counts.Count(*json.loads(done.stdout))


def main(presets: list[str]) -> None:
    """Count the kernels of presets and write what was found."""
    files = registry.default().presets
    own = [name for name in BUILT_IN if "candidates" not in strict_json.read(files[name])]
    counts = {name: row for name, row in kernel_counts.COUNTS.items() if name in own}
    for preset in presets or own:
        counts[preset] = counted(preset)
        print(preset, *counts[preset], flush=True)
    path = Path(kernel_counts.__file__)
    rows = "".join(f'    "{name}": Count{tuple(row)},\n' for name, row in sorted(counts.items()))
    path.write_text(re.sub(r"(= \{)[^}]*\}", rf"\1\n{rows}}}", path.read_text()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        count(sys.argv[2])
    else:
        main(sys.argv[1:])
