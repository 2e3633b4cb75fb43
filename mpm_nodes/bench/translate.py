"""Compile loops for processors that need not be here, in a process whose numba makes code for one of them.

numba takes the processor that it compiles for from the environment, once. Nothing that is compiled here is ever called.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

from mpm_nodes.bench.machine_loops import CountedLoop, Counts, Routine, routines_of

__all__ = ["ARM", "main", "per_particle"]

ARM = ("apple", "neoverse", "cortex", "ampere")
WIDTH = 16
"""Lanes (`kernels.lanes.types.WIDTH`): named here, so that counting in a text needs no compiler."""
_PER_PARTICLE = ("scatter_fields", "gather_fields")
"""Routines whose innermost loop takes one particle at a time; all other loops take sixteen."""
_PER_BLOCK = ("run", "add_tile", "clear_tile", "load_tile", "prefetch_tile")
"""Routines that are called once a block of particles."""


def main(task: str) -> None:
    """Compile what a JSON text asks for, and print as JSON what a particle costs by processor and loop."""
    import llvmlite.binding as llvm

    asked = json.loads(task)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    found: dict[str, dict[str, Any]] = {cpu: {} for cpu in asked["cpus"]}
    for name, loop in asked["loops"].items():
        source = _optimised(Path(loop["file"]), loop["loaded"], pickle.loads(base64.b64decode(loop["signature"])))
        for cpu in asked["cpus"]:
            costs = per_particle(_assembly(source, cpu))
            found[cpu][name] = {part: dataclasses.asdict(counts) for part, counts in costs.items()}
    print(json.dumps(found))


def _optimised(file: Path, loaded: list[str], signature: Any) -> str:
    """Return the LLVM IR of the loop in a generated module, without what only the processor at hand understands.

    Args:
        file: The module.
        loaded: Names of the modules that it wants to be loaded.
        signature: Types of the loop's arguments.
    """
    from mpm_nodes.kernels.compile import machine_code
    from mpm_nodes.kernels.composition.generated import imported

    machine_code.LARGE = sys.maxsize  # so that the text holds all that the loop calls
    for name in loaded:
        importlib.import_module(name)
    run = imported(file).run
    run.compile(signature)
    text = run.overloads[signature].library.get_llvm_str()
    return re.sub(r"^target (?:triple|datalayout)[^\n]*", "", text, flags=re.M)


def _assembly(source: str, cpu: str) -> str:
    import llvmlite.binding as llvm

    triple = "aarch64-linux-gnu" if cpu.startswith(ARM) else "x86_64-linux-gnu"
    if cpu.startswith(ARM):  # counting references, once a block
        source = re.sub(r"(?:tail )?call i8 @llvm\.x86\.atomic[^\n]*", "add i8 0, 0", source)
        source = re.sub(r"declare [^\n]*@llvm\.x86[^\n]*", "", source)
    machine: Any = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=3, codemodel="small")
    machine.set_asm_verbosity(True)
    module = llvm.parse_assembly(f'target datalayout = "{machine.target_data}"\ntarget triple = "{triple}"\n{source}')
    return machine.emit_assembly(module)


def per_particle(assembly: str) -> dict[str, Counts]:
    """Return what a particle costs: in the loop over single ones, and its share in the loops over sixteen.

    What a loop calls counts with its own loops run once. Paths that are seldom taken count as if they always were.
    """
    routines = routines_of(assembly)
    costs = {"single": Counts(), "sixteen": Counts()}
    for routine in routines.values():
        if routine.title in _PER_BLOCK or routine.name.startswith(("_ZN7cpython", "mpm_nodes_copy", "parallel_for")):
            continue
        for loop in routine.loops.values():
            single = loop.depth == 2 and routine.title in _PER_PARTICLE
            if single:
                costs["single"].add(_with_calls(loop, routines))
            elif loop.depth and _is_root(routine, routines):
                costs["sixteen"].add(_with_calls(loop, routines), 1.0 / WIDTH)
    return costs


def _is_root(routine: Routine, routines: dict[str, Routine]) -> bool:
    """Whether a routine is called outside of loops: what loops call counts where it is called."""
    return not any(
        routine.name in loop.calls for other in routines.values() for loop in other.loops.values() if loop.depth
    ) or routine.title.startswith("block")


def _with_calls(loop: CountedLoop, routines: dict[str, Routine]) -> Counts:
    """Return what a loop's own blocks cost with what they call; the copier of a block's last few particles is left out."""
    total = Counts()
    total.add(loop.own)
    for name in loop.calls:
        if name in routines and not name.startswith("mpm_nodes_copy"):
            for part in routines[name].loops.values():
                total.add(_with_calls(part, routines))
    return total
