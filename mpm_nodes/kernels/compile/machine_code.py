"""What is compiled once: large functions are called by their address, small ones are part of their callers alone.

numba links every function that a kernel calls into the kernel, optimises it there a second time, and translates it twice: there and
for itself. Here a large function (`LARGE`) is translated for itself and called by its address. A small one is linked, and its own
machine code is made only if somebody asks for its address. docs/numba.md lists what this takes from inside numba.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
from numba.core import types
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target

LARGE = 400
"""Instructions of LLVM from which a function is called by its address; LLVM puts none of half that size into its callers."""
_ENVIRONMENT = "_ZN08NumbaEnv"
"""How the names of variables begin that hold the address of a function's environment: its Python constants."""


@dataclass(frozen=True)
class Callee:
    """A function that is called by its address; numba calls this before it loads a caller from the disk cache.

    Attributes:
        module: The module that holds it.
        name: Its name there.
        args: Types of its arguments.
        symbol: What its callers call it.
    """

    module: str
    name: str
    args: tuple[types.Type, ...]
    symbol: str

    @property
    def dispatcher(self) -> Any:
        """What numba calls the compiled function, None where no module holds it."""
        return getattr(sys.modules.get(self.module), self.name, None)

    def __call__(self) -> None:
        """Compile or load it, and let callers find it."""
        dispatcher = self.dispatcher
        dispatcher.compile(self.args)
        done = dispatcher.overloads[self.args]
        llvm.add_symbol(self.symbol, done.library.get_pointer_to_function(done.fndesc.llvm_func_name))


class LinkedLibrary(JITCodeLibrary):
    """The code of one compiled function, with what it calls: optimised at once, machine code when an address is asked for."""

    _translated = False
    _callee: Callee | None = None

    def call_by_address(self, callee: Callee) -> None:
        """Let this function be called by its address, if it is large; before it is stored, so that its machine code is too."""
        self._ensure_finalized()
        function = self._get_module_for_linking().get_function(callee.symbol)
        instructions = (each for block in function.blocks for each in block.instructions)
        if sum(1 for _ in itertools.islice(instructions, LARGE)) == LARGE:
            self._callee = callee
            llvm.add_symbol(callee.symbol, self.get_pointer_to_function(callee.symbol))

    def add_linking_library(self, library: Any) -> None:
        """Link what this function calls into it, or only note that it is called by its address."""
        callee = getattr(library, "_callee", None)
        if callee is None:
            super().add_linking_library(library)
        else:
            self._reload_init.add(callee)

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function, 0 where this library has none of that name."""
        self._ensure_finalized()
        if not self._translated and self._defines(name):
            self._translate()
        return super().get_pointer_to_function(name)

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """Return what the kernel cache stores: machine code where there is some, else LLVM's form alone."""
        self._ensure_finalized()
        return super().serialize_using_object_code() if self._translated else self.serialize_using_bitcode()

    def _finalize_final_module(self) -> None:
        if self._object_caching_enabled and self._compiled_object:
            self._translate()  # it came from the cache with its machine code
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def _defines(self, name: str) -> bool:
        try:
            return not self._final_module.get_function(name).is_declaration
        except NameError:
            return False

    @global_compiler_lock
    def _translate(self) -> None:
        self._dynamic_globals.clear()
        super()._finalize_final_module()
        self._translated = True
        # what it calls has had no machine code to write the address of its environment into
        for variable in self._final_module.global_variables:
            if variable.name.startswith(_ENVIRONMENT):
                environment = lookup_environment(variable.name)
                if environment is not None:
                    self._codegen.set_env(variable.name, environment)


class OnDemandCodegen(JITCPUCodegen):
    """numba's compiler for this processor, whose functions are `LinkedLibrary`s."""

    _library_class = LinkedLibrary

    def set_env(self, env_name: str, env: Any) -> None:
        """Write the address of a function's environment, if there is machine code to write it into."""
        if self._engine.is_symbol_defined(env_name):
            super().set_env(env_name, env)


def translate_on_demand() -> None:
    """Let numba make machine code on demand, in the whole process: results stay the same."""
    cpu_target.target_context.codegen().__class__ = OnDemandCodegen
