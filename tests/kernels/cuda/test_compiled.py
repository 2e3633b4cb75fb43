"""What NVRTC makes of the kernels: machine code without spills and without double precision, for GPUs of three generations.

Neither a GPU nor its driver is needed. `-s` shows registers, and the seconds that kernels take to compile.
"""

from __future__ import annotations

import functools
import re
import time

import pytest

from mpm_nodes.data import ATTRIBUTES, Moment
from mpm_nodes.graph.plan.fusion import runs_of
from mpm_nodes.graph.plan.substeps import plan_substeps
from mpm_nodes.kernels.composition.lane_loop import FACTORS
from mpm_nodes.kernels.cuda import compiler
from mpm_nodes.kernels.cuda.loop import THREADS, header
from mpm_nodes.materials.contract import law, law_ids
from mpm_nodes.solver.device import sorting
from mpm_nodes.solver.device.choice import device_kernel
from mpm_nodes.solver.device.contacts import kernels
from mpm_nodes.solver.device.density import room_kernels
from mpm_nodes.solver.forces import kernel_of
from mpm_nodes.solver.shared_loops import shared_loop
from tests.kernels.cuda.test_device_forces import FORCES

try:
    from cuda.bindings import nvrtc

    nvrtc.nvrtcVersion()
except (ImportError, RuntimeError):
    pytest.skip('needs NVRTC: pip install "mpm-nodes[cuda]"', allow_module_level=True)

TURING, HOPPER, BLACKWELL = "sm_75", "sm_90", "sm_120"
KERNELS = ("quadratic", "cubic")
BLOCKS = 3
REGISTERS = 65536 // (BLOCKS * THREADS) // 8 * 8
"""At most so many a thread: the 65536 of a multiprocessor hold three thread blocks then, three warps for each of its four
schedulers. With fewer warps nothing runs while they wait for memory; with more the laws' matrices would be spilled."""
MISSES = {
    ("herschel_bulkley", "cubic", HOPPER): (188, 0),
    ("neo_hookean", "cubic", HOPPER): (REGISTERS, 4),
    ("liquid", "cubic", HOPPER): (REGISTERS, 4),
    ("oldroyd_b", "cubic", TURING): (REGISTERS, 4),
}
"""What does not keep to that, or spills: the registers and the bytes that were found, which may not grow."""


@functools.cache
def sources(law_id: str, kernel: str) -> tuple[str, ...]:
    """Kernels of the loops of explicit_apic for a law, with every factor that an artist may paint."""
    found = law(law_id)
    plan = plan_substeps({"preset": "explicit_apic", "set": {"kernel": kernel}}, found.state)
    table = {**ATTRIBUTES, **found.fields, **plan.own_fields.get("particles", {})}
    loops = (shared_loop(run, plan) for run in runs_of(plan) if run.is_shared)
    return tuple(device_kernel(loop, found, table, FACTORS).text for loop in loops)


def compiled(text: str, arch: str) -> tuple[str, str]:
    """PTX of a source, and what the assembler says of it."""
    program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])[1]
    options = [option.encode() for option in (f"--gpu-architecture={arch}", *compiler.OPTIONS)]
    assert nvrtc.nvrtcCompileProgram(program, len(options), options)[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS
    found = []
    for size_of, get in ((nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX), (nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)):
        held = b" " * size_of(program)[1]
        get(program, held)
        found.append(held.decode().rstrip("\0 "))
    nvrtc.nvrtcDestroyProgram(program)
    return found[0], found[1]


def check(law_id: str, kernel: str, arch: str) -> None:
    """Hold all loops of a law to what a GPU runs well."""
    texts = sources(law_id, kernel)
    assert len(texts) == 2, "what scatters, and what gathers"
    for text in texts:
        title, begin = text.partition("\n")[0].removeprefix("// "), time.process_time()
        ptx, log = compiled(header() + text, arch)
        seconds = time.process_time() - begin
        spilled = [int(count) for count in re.findall(r"(\d+) bytes spill stores", log)]
        registers = dict(re.findall(r"entry function '(\w+)'(?:.*\n)+?.*Used (\d+) registers", log))
        print(f"{arch} {kernel}: {registers['particles']} registers, {seconds:.2f} s: {title}")
        most, bytes_spilled = MISSES.get((law_id, kernel, arch), (REGISTERS, 0))
        assert spilled and max(spilled) <= bytes_spilled, title
        assert int(registers["particles"]) <= most, title
        assert ".f64" not in ptx, title
        if "Sums<" in text:
            wide, scalar = ptx.count("red.global.add.v4.f32"), len(re.findall(r"(?:red|atom)\.global\.add\.f32", ptx))
            assert (wide > 0, scalar > 0) == ((True, False) if arch != TURING else (False, True)), title


@pytest.mark.parametrize(("law_id", "arch"), [("neo_hookean", TURING), ("snow", HOPPER), ("liquid", BLACKWELL)])
def test_a_law_compiles_to_what_a_gpu_runs_well(law_id, arch):
    """No spills, no double precision, no more registers than three thread blocks can have; sums by fours from sm_90 on."""
    check(law_id, "quadratic", arch)


@pytest.mark.parametrize("arch", [TURING, HOPPER, BLACKWELL])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("law_id", law_ids())
def test_every_law_compiles_to_what_gpus_run_well(law_id, kernel, arch):
    """The same for every law, with both splines, for every generation."""
    check(law_id, kernel, arch)


@pytest.mark.parametrize("arch", [TURING, HOPPER, BLACKWELL])
@pytest.mark.parametrize("name", ["contacts", "paths", "volumes"])
def test_contacts_compile_to_what_a_gpu_runs_well(name, arch):
    """The same for what meets bodies and walls."""
    ptx, log = compiled(kernels(name), arch)
    spilled = [int(count) for count in re.findall(r"(\d+) bytes spill stores", log)]
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", log)]
    print(f"{arch} {name}: {max(registers)} registers")
    assert spilled and max(spilled) == 0 and max(registers) <= REGISTERS
    assert ".f64" not in ptx


@pytest.mark.parametrize("arch", [TURING, HOPPER, BLACKWELL])
def test_the_room_of_liquids_compiles_to_what_gpus_run_well(arch):
    """Few registers, no spills and no double precision."""
    ptx, log = compiled(room_kernels(), arch)
    used = [int(count) for count in re.findall(r"Used (\d+) registers", log)]
    print(f"{arch}: {used} registers")
    assert len(used) == 8 and max(used) <= 64
    assert set(re.findall(r"(\d+) bytes spill stores", log)) == {"0"} and ".f64" not in ptx


@pytest.mark.parametrize("arch", [TURING, HOPPER, BLACKWELL])
def test_forces_compile_to_what_gpus_run_well(arch):
    """Five at once, with masks, drags and limits: no spills, no double precision, and registers for three thread blocks."""
    forces = [each for name in ("masks and limits", "drags", "push") for each in FORCES[name]]
    ptx, log = compiled(kernel_of(forces, Moment(0.0)), arch)
    used = [int(count) for count in re.findall(r"Used (\d+) registers", log)]
    print(f"{arch}: {used} registers")
    assert len(used) == 2 and max(used) <= REGISTERS
    assert set(re.findall(r"(\d+) bytes spill stores", log)) == {"0"} and ".f64" not in ptx


@pytest.mark.parametrize("arch", [TURING, HOPPER, BLACKWELL])
def test_the_sort_compiles_without_spills(arch):
    """Nothing goes through local memory, and nothing is in double precision."""
    ptx, log = compiled(sorting.text(), arch)
    spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    assert spills == [("0", "0", "0")] * sorting.text().count("__global__") and ".f64" not in ptx


def test_kernels_are_compiled_once(tmp_path, monkeypatch):
    """The second time their machine code comes from the folder of kernels; another text, or another GPU, has its own."""
    monkeypatch.setattr(compiler, "CACHE_FOLDER", tmp_path)
    compile_kernel, calls = compiler.compile_kernel, []
    monkeypatch.setattr(compiler, "compile_kernel", lambda *given: calls.append(given[1]) or compile_kernel(*given))
    source = header()
    first = compiler.cubin(source, HOPPER)
    assert first[:4] == b"\x7fELF"
    assert compiler.cubin(source, HOPPER) == first
    assert compiler.cubin(source + "\n", HOPPER)[:4] == b"\x7fELF"
    assert compiler.cubin(source, BLACKWELL) != first
    assert calls == [HOPPER, HOPPER, BLACKWELL]


def test_a_source_with_an_error_is_refused_with_what_the_compiler_says():
    with pytest.raises(compiler.MpmNodesError, match=r"NVRTC cannot compile a kernel for sm_90: .*\n.*identifier \"nothing\""):
        compiler.compile_kernel('extern "C" __global__ void k(float* x) { x[0] = nothing; }', HOPPER)
