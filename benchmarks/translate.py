"""What `instructions.py` starts: find the loops of a solve, and compile them for processors that need not be here.

numba takes the processor that it compiles for from the environment, once, so each has a process of its own. Nothing that is
compiled for another processor is ever called. A child of the package looks for modules in the package alone, not in this folder.
"""

from __future__ import annotations

import base64
import importlib
import json
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from mpm_nodes.bench import scenes
from mpm_nodes.bench.rows import Row
from mpm_nodes.kernels.compile import machine_code
from mpm_nodes.kernels.composition.generated import imported
from mpm_nodes.solver.shared_loops import SharedLoop

ARM = ("apple", "neoverse", "cortex", "ampere")


def tell_loops(row: str) -> None:
    """Print the files of the two loops of a row, what they need loaded and the types of their arguments, from a solve here."""
    asked = Row(**json.loads(row))
    solver = scenes.solver(scenes.untouched(asked.scene, asked.law, asked.particles), asked)
    solver.step(keep=False)
    found = {}
    for planned in solver.plan.stages:
        if isinstance(planned.function, SharedLoop):
            for composed in planned.function.loops():
                run = composed.run
                signature = base64.b64encode(pickle.dumps(run.signatures[0])).decode()
                name = "scatter" if "colour_start" in composed.source.names else "gather"
                found[name] = {
                    "file": run.py_func.__code__.co_filename,
                    "loaded": composed.source.loaded,
                    "signature": signature,
                }
    print(json.dumps(found))


def tell_assembly(task: str) -> None:
    """Compile what a JSON text asks for, and print the assembly as JSON by processor and loop."""
    asked = json.loads(task)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    found: dict[str, dict[str, str]] = {cpu: {} for cpu in asked["cpus"]}
    for name, loop in asked["loops"].items():
        source = _optimised(Path(loop["file"]), loop["loaded"], pickle.loads(base64.b64decode(loop["signature"])))
        for cpu in asked["cpus"]:
            found[cpu][name] = _assembly(source, cpu)
    print(json.dumps(found))


def _optimised(file: Path, loaded: list[str], signature: Any) -> str:
    """Return the LLVM IR of the loop in a generated module, without what only the processor at hand understands.

    Args:
        file: The module.
        loaded: Names of the modules that it wants to be loaded.
        signature: Types of the loop's arguments.
    """
    machine_code.LARGE = sys.maxsize  # so that the text holds all that the loop calls
    for name in loaded:
        importlib.import_module(name)
    run = imported(file).run
    run.compile(signature)
    text = run.overloads[signature].library.get_llvm_str()
    return re.sub(r"^target (?:triple|datalayout)[^\n]*", "", text, flags=re.M)


def _assembly(source: str, cpu: str) -> str:
    triple = "aarch64-linux-gnu" if cpu.startswith(ARM) else "x86_64-linux-gnu"
    if cpu.startswith(ARM):  # counting references, once a block
        source = re.sub(r"(?:tail )?call i8 @llvm\.x86\.atomic[^\n]*", "add i8 0, 0", source)
        source = re.sub(r"declare [^\n]*@llvm\.x86[^\n]*", "", source)
    machine: Any = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=3, codemodel="small")
    machine.set_asm_verbosity(True)
    module = llvm.parse_assembly(f'target datalayout = "{machine.target_data}"\ntarget triple = "{triple}"\n{source}')
    return machine.emit_assembly(module)


if __name__ == "__main__":
    {"loops": tell_loops, "assembly": tell_assembly}[sys.argv[1]](sys.argv[2])
