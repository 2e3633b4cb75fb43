"""Functions that are only linked into kernels: numba does not turn them into machine code of their own.

numba translates every function that it compiles into machine code, although one without a wrapper for Python only ever runs as a
part of its callers, which take in its LLVM code and are translated with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite.binding import parse_bitcode
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.runtime.nrt import rtsys
from numba.extending import overload

__all__ = ["LinkOnly", "linked_overload", "restored"]

_KIND = "linked"


class _Unset:
    """Stands for a code generator that knows no addresses."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: numba's environment of a function holds Python objects, which kernels do not use."""


class _LinkedLibrary(JITCodeLibrary):
    """A code library that is optimised, but never handed to the execution engine."""

    codegen = _Unset()

    def add_linking_library(self, library: Any) -> None:
        """Take in what the function calls; numba's runtime is left to the kernel, which takes it in anyway."""
        if library is not rtsys.library:
            super().add_linking_library(library)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return what `restored` takes; there is no object code."""
        return self.name, _KIND, self._get_module_for_linking().as_bitcode()


class LinkOnly(Compiler):
    """numba's compiler with such a library: what to give as `pipeline_class`."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, library or _LinkedLibrary(targetctx.codegen(), "linked"), *rest)


def restored(target_context: Any, stored: tuple[Any, ...]) -> CompileResult:
    """Return what `CompileResult._reduce` made a tuple of, of either kind of library."""
    library_state, fndesc, environment, signature, objectmode, lifted, annotation, reload_init, _ = stored
    name, kind, code = library_state
    if kind != _KIND:
        return CompileResult._rebuild(target_context, *stored)
    for begin in reload_init:
        begin()
    library = _LinkedLibrary(target_context.codegen(), name)
    library._final_module = parse_bitcode(code)
    library._reload_init.update(reload_init)
    library._finalize_final_module()
    return CompileResult(
        target_context=target_context, typing_context=target_context.typing_context, library=library, environment=environment,
        entry_point=target_context.get_executable(library, fndesc, environment), fndesc=fndesc, type_annotation=annotation,
        signature=signature, objectmode=objectmode, lifted=lifted, typing_error=None, call_helper=None, metadata=None,
        reload_init=reload_init, referenced_envs=())


def linked_overload(function: Callable) -> Callable[[Callable], Callable]:
    """Return a decorator as numba's `overload(function)` is; on the CPU what it chooses is only linked.

    Other targets, which do not know such libraries, get the plain overload.
    """
    def decorate(choose: Callable) -> Callable:
        overload(function, jit_options={"no_cfunc_wrapper": True}, strict=False)(choose)
        overload(function, jit_options={"no_cfunc_wrapper": True, "pipeline_class": LinkOnly}, strict=False, target="cpu")(choose)
        return choose

    return decorate
