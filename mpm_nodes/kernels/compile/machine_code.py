"""Machine code of a compiled function is made when its address is asked for, and not before.

numba translates every function that a kernel calls into machine code of its own, although only the kernel is ever called: what it
calls is linked into it, and translated there. That is a fifth of the time that a solve waits for its kernels. Here LLVM's
optimised form of a function is kept, as numba does for linking, and translated on demand.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target

_ENVIRONMENT = "_ZN08NumbaEnv"
"""How the names of variables begin that hold the address of a function's environment: its Python constants."""


class LinkedLibrary(JITCodeLibrary):
    """The code of one compiled function, with what it calls: optimised at once, machine code when an address is asked for."""

    _translated = False

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


def translate_on_demand() -> None:
    """Let numba's compiler for this processor make machine code on demand, in the whole process: results stay the same."""
    codegen = cpu_target.target_context.codegen()
    if codegen._library_class is LinkedLibrary:
        return
    set_env = codegen.set_env

    def set_env_of_machine_code(name: str, environment: Any) -> None:
        if codegen._engine.is_symbol_defined(name):
            set_env(name, environment)

    codegen._library_class = LinkedLibrary
    codegen.set_env = set_env_of_machine_code
