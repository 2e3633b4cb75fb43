"""Kernels for NVIDIA GPUs: compiled by NVRTC, which needs neither a toolkit nor a driver, and kept beside those of the CPU."""

from __future__ import annotations

import hashlib

from mpm_nodes.data import MpmNodesError
from mpm_nodes.kernels.compile.jit import CACHE_FOLDER
from mpm_nodes.kernels.compile.kernel_cache import write_whole

__all__ = ["compile_kernel", "cubin"]

OPTIONS = ("--std=c++17", "--prec-div=false", "--prec-sqrt=false", "--ftz=true", "--ptxas-options=-v")
"""Quotients and roots are right to 2 units in the last place, logarithms and exponentials to 1; denormals are zero."""


def cubin(text: str, arch: str) -> bytes:
    """Return the machine code of a source, from the folder of kernels where it has been compiled before.

    Args:
        text: CUDA C++.
        arch: Compute capability, "sm_90".

    Raises:
        MpmNodesError: NVRTC is missing, does not know the GPU, or refuses the text.
    """
    from cuda.bindings import nvrtc

    version = nvrtc.nvrtcVersion()[1:]
    key = hashlib.sha256("\n".join((str(version), arch, *OPTIONS, text)).encode()).hexdigest()[:32]
    path = CACHE_FOLDER / "cuda" / f"{key}.cubin"
    if path.is_file():
        return path.read_bytes()
    code, _ = compile_kernel(text, arch)
    write_whole(path, code)
    return code


def compile_kernel(text: str, arch: str) -> tuple[bytes, str]:
    """Return the machine code of a source and what the compiler says of it: registers and spills. See `cubin`."""
    from cuda.bindings import nvrtc

    def checked(answer: tuple[object, ...]) -> object:
        if answer[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise MpmNodesError(f"NVRTC cannot compile a kernel for {arch}: {answer[0]}\n{log()}")
        return answer[1] if len(answer) > 1 else None

    def log() -> str:
        size = nvrtc.nvrtcGetProgramLogSize(program)[1]
        said = b" " * size
        nvrtc.nvrtcGetProgramLog(program, said)
        return said.rstrip(b"\0 ").decode(errors="replace")

    program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])[1]
    options = [option.encode() for option in (f"--gpu-architecture={arch}", *OPTIONS)]
    checked(nvrtc.nvrtcCompileProgram(program, len(options), options))
    code = b" " * int(checked(nvrtc.nvrtcGetCUBINSize(program)))  # type: ignore[call-overload]
    checked(nvrtc.nvrtcGetCUBIN(program, code))
    said = log()
    nvrtc.nvrtcDestroyProgram(program)
    return code, said
