"""Forces on a device: their fields and kicks, traced from the functions that the CPU runs, as a kernel of all particles."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mpm_nodes.kernels.cuda.loop import cuda_source
from mpm_nodes.kernels.cuda.trace import Symbol, TraceError, branching, named, statements
from mpm_nodes.kernels.fields.programs import run_at
from mpm_nodes.kernels.fields.pushing import SURFACE_DRAG, kick

__all__ = ["DeviceForces", "columns_read", "push_kernel"]

MOST = 64
"""Operations of the fields of all forces at most: each keeps three numbers of a thread."""

Attributes = tuple[tuple[str, int, bool], ...]
"""What fields read of particles: see `field_programs.FieldProgram`."""


@functools.lru_cache(maxsize=32)
def push_kernel(operations: tuple[int, ...], forces: tuple[int, ...], attributes: Attributes) -> str:
    """Return the kernel of forces.

    Args:
        operations: Of their fields, as `run_at` takes them.
        forces: Of each its kind and the registers of its value and its rate, as `pushing.push` takes them.
        attributes: What the fields read of particles.

    Raises:
        TraceError: It has no form on devices.
    """
    count, rows = len(operations) // 5, len(forces) // 3
    if count > MOST:
        raise TraceError(f"fields of {count} operations are more than the {MOST} that kernels of devices take")
    if SURFACE_DRAG in forces[::3]:
        raise TraceError("air that presses on surfaces has no device form")
    registers: list[Any] = [0.0] * (3 * count)
    for place, (_, register, vector) in enumerate(attributes):
        for axis in range(3):
            registers[3 * register + axis] = named(f"own{place}[{axis if vector else 0} * stride + p]")
    branching(run_at)(operations, (0, count), _Numbers("numbers"), _Grids(), *map(named, "xyz"), registers)
    given: list[Any] = [0.0] * (4 * rows)
    velocity = tuple(named(f"velocity[{axis} * stride + p]") for axis in range(3))
    table = forces, _Numbers("most"), rows
    lying = (None,) * 6 + (named("size"),)
    then, largest = branching(kick)(table, named("mass[p]"), velocity, registers, named("dt"), lying, given)
    results = [*given, largest, *then]
    lines = statements({f"new_{n}": each if isinstance(each, Symbol) else Symbol(each) for n, each in enumerate(results)})
    told, columns = 4 * rows + 1, "".join(f"const float* __restrict__ own{place}, " for place in range(len(attributes)))
    body = "\n        ".join([f"float {', '.join(f'new_{n}' for n in range(len(results)))};", *lines])
    sums = "\n        ".join(f"given[{n}] += new_{n};" for n in range(told - 1))
    moves = "\n        ".join(f"if (dt > 0.0f) velocity[{axis} * stride + p] = new_{told + axis};" for axis in range(3))
    return f"""{cuda_source("sums.cuh")}
extern "C" __global__ void __launch_bounds__(THREADS)
push(const long long* ranges, const float* corners, const int* offset, int stride, float unit, float size,
     const float* __restrict__ mass, {columns}const float* __restrict__ numbers, const float* __restrict__ most, float dt,
     float* __restrict__ velocity, float* told) {{
    float given[{told}] = {{}};
    const int begin = ranges[3 * blockIdx.x], end = ranges[3 * blockIdx.x + 1];
    const float* corner = corners + 3 * ranges[3 * blockIdx.x + 2];
    for (int p = begin + threadIdx.x; p < end; p += THREADS) {{
        const float x = corner[0] + unit * offset[p];
        const float y = corner[1] + unit * offset[stride + p];
        const float z = corner[2] + unit * offset[2 * stride + p];
        {body}
        {sums}
        given[{told - 1}] = fmaxf(given[{told - 1}], new_{told - 1});
        {moves}
    }}
    tell(given, {told}, told + {told} * blockIdx.x);
}}
"""


def columns_read(particles: Any, attributes: Attributes) -> list[str]:
    """Return the columns that fields read.

    Raises:
        TraceError: Kernels do not take one of them.
    """
    for name, _, vector in attributes:
        field = particles.table[name] if name in particles.names else None
        if field is None or field.kind != "real" or field.rows != (3 if vector else 1):
            raise TraceError(f"'{name}' of particles is read on the CPU")
    return [name for name, _, _ in attributes]


class _Numbers:
    """Numbers of an argument."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, place: int) -> Symbol:
        return named(f"{self.name}[{place}]")


class _Grids:
    """Voxels, which kernels do not take."""

    def __getitem__(self, _: int) -> Any:
        raise TraceError("voxels and cubes of fields have no device form")


class DeviceForces:
    """Forces of a solve on its device, for as long as the blocks of particles are where they are.

    Args:
        particles: The store.
        corners: Centres of the blocks [m], shape (blocks, 3).
    """

    def __init__(self, particles: Any, corners: np.ndarray) -> None:
        self.particles, self.residency = particles, particles.residency
        self.tables = [self.residency.held(table) for table in (particles.ranges, corners.astype(np.float32))]
        self._numbers: tuple[bytes, list[Any]] = b"", []
        self._told: tuple[int, list[Any]] = 0, []

    def push(self, program: Any, forces: np.ndarray, most: np.ndarray, dt: float) -> np.ndarray:
        """Change velocities; return what forces gave, as `pushing.push` tells it of one block.

        Args:
            program: Their fields (`field_programs.FieldProgram`).
            forces, most: As `pushing.push` takes them.
            dt: [s]; 0 changes nothing.

        Raises:
            TraceError: They have no form on devices.
        """
        particles, device = self.particles, self.residency.device
        attributes = columns_read(particles, program.attributes)
        text = push_kernel(tuple(program.operations.tolist()), tuple(forces.tolist()), program.attributes)
        size, blocks = 4 * len(most) + 1, particles.block_count
        now = [np.asarray(each, np.float32) for each in (program.numbers, most)]
        if self._numbers[0] != (key := b"".join(each.tobytes() for each in now)):
            self._numbers = key, [self.residency.held(each) for each in now]
        if self._told[0] != size:
            self._told = size, [device.allocate(4 * size * n) for n in (blocks, 1)]
        rows, row = self._told[1]
        arguments = [*self.tables, self.residency.on_device(particles.kept("position")), np.int32(particles.stride)]
        arguments += [np.float32(particles.h / particles.unit), np.float32(particles.h)]
        arguments += [self.residency.on_device(particles.kept(name)) for name in ("mass", *attributes)]
        velocity = self.residency.on_device(particles.kept("velocity"), write=dt > 0.0)
        device.launch(device.kernel(text, "push"), blocks, [*arguments, *self._numbers[1], np.float32(dt), velocity, rows])
        add = device.kernel(cuda_source("sums.cuh"), "add_rows")
        device.launch(add, size, [rows, row, np.int32(size), np.int32(blocks)])
        found = np.empty(size, np.float32)
        device.download(row, found)
        return found.astype(float)
