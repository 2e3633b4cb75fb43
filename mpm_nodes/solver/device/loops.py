"""A shared loop on the device, bound to the arrays of a solve: the counterpart of `loop_sections.BoundCall`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mpm_nodes.kernels.composition.block import Source
from mpm_nodes.kernels.composition.lane_loop import FACTORS
from mpm_nodes.kernels.composition.source import Fold
from mpm_nodes.kernels.cuda.loop import THREADS, DeviceKernel, header, loop_kernel
from mpm_nodes.solver.device.residency import Residency, uploaded
from mpm_nodes.solver.loop_sections import BoundCall

__all__ = [
    "DeviceCall",
    "Found",
    "HostCall",
    "LargestValues",
    "divide_by_mass",
    "steady_knobs",
    "update_grid_velocity",
    "written_by",
]


class LargestValues:
    """The largest values that loops find which run one behind another: one buffer, which the host reads once behind the last.

    Args:
        residency: Where arrays are.
    """

    def __init__(self, residency: Residency) -> None:
        self.residency = residency
        self._values, self._buffer, self._read = np.zeros(0, np.uint32), None, True
        self._launched: set[int] = set()

    def place(self, count: int) -> int:
        """Return where `count` values of another loop begin."""
        first = len(self._values)
        self._values = np.zeros(first + count, np.uint32)
        return first

    def arguments(self, first: int) -> dict[str, Any]:
        """Return the buffer for a loop that is launched now, and where its values begin."""
        recording = self.residency.recording
        if recording is not None:
            return {"largest": recording.buffer, "largest_at": np.int32(recording.place(self, len(self._values)) + first)}
        return {"largest": self.buffer(first), "largest_at": np.int32(first)}

    def take(self, values: np.ndarray) -> None:
        """Take the values of a substep that ran in a batch."""
        self._values[:] = values
        self._read = True

    def buffer(self, first: int) -> Any:
        """Return the buffer for a loop that is launched now; it is cleared before the first of them."""
        device = self.residency.device
        if self._buffer is None:
            self._buffer = device.allocate(self._values.nbytes)
        if not self._launched or first in self._launched:
            device.clear(self._buffer, self._values.nbytes)
            self._launched.clear()
        self._launched.add(first)
        self._read = False
        return self._buffer

    def values(self) -> np.ndarray:
        """Return all values, behind what was launched."""
        if not self._read:
            self.residency.device.download(self._buffer, self._values)
            self._read = True
        return self._values.view(np.float32)


class Found(Mapping[str, float]):
    """Values of one loop by name, which the host does not wait for until it looks."""

    def __init__(self, largest: LargestValues, first: int, names: Sequence[str]) -> None:
        self._largest, self._first, self._names = largest, first, names

    def __getitem__(self, name: str) -> float:
        if name not in self._names:
            raise KeyError(name)
        value = float(self._largest.values()[self._first + self._names.index(name)])
        return math.inf if value > 2.9e38 else value

    def place(self, name: str) -> tuple[LargestValues, int]:
        """Return which of all values that of a name is."""
        return self._largest, self._first + self._names.index(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class DeviceCall:
    """A loop with its arguments, for as long as the arrays lie where they are.

    Args:
        law: The law, or None where no fragment depends on it.
        parts: The fragments with their stages (`loop_sections.StageFragment`).
        material: The material whose particles it is for, or None for those of all.
        segments: Their (begin, end, block) runs.
        stores: Particles and grid.
        local: Attributes that only live inside the loop.
        fold: Where scatters go that are not to have a grid array of their own.
        largest: Where the largest values of the loops go that run together.

    Raises:
        CompositionError: A fragment has no form on a GPU.
        TraceError: Its body does something that has none.
    """

    def __init__(
        self,
        law: Any,
        parts: Sequence[Any],
        material: Any,
        segments: np.ndarray,
        stores: tuple[Any, Any],
        local: Collection[str],
        fold: Fold | None,
        largest: LargestValues,
    ) -> None:
        residency = largest.residency
        self.residency, self.parts, self.material, self.stores = residency, parts, material, stores
        particles, grid = stores
        factors = FACTORS & set(particles.names)
        fragments, plain = [p.fragment for p in parts], [steady_knobs(p.member) for p in parts]
        self.kernel: DeviceKernel = loop_kernel(law, fragments, particles.table, local, fold, factors, plain)
        self.compiled = residency.device.kernel(header() + self.kernel.text, "particles")
        self.runs = len(segments)
        self.largest, self.first = largest, largest.place(len(self.kernel.found))
        self.numbers: dict[str, Any] = {
            "stride": np.int32(particles.stride),
            "shift": np.int32(particles.shift),
            "inverse_unit": np.float32(1.0 / particles.unit),
            "cell_size": np.float32(particles.h),
        }
        own = {"segments": segments}
        if material is not None:
            own["coefficients"] = _coefficients(material)
        if "tile_slot" in self.kernel.types:
            grid.check()
            own["tile_slot"] = grid.particle_tiles()
        self.own = {name: uploaded(residency.device, own[name]) for name in self.kernel.types if name in own}

    def take(self, laws: Sequence[Any]) -> None:
        """Take the coefficients of a substep from those of all materials."""
        if self.material is not None:
            self.material = laws[self.material.index]
            if "coefficients" in self.own:
                self.residency.device.upload(self.own["coefficients"], _coefficients(self.material))

    def __call__(self, particles: Any, step: Any, knobs: Mapping[str, Mapping[str, Any]]) -> Mapping[str, float]:
        """Run the loop in a substep; returns its largest values by name."""
        kernel = self.kernel
        numbers = self.numbers | {"substep": self.residency.substep(0.0 if step is None else step.dt)}
        if kernel.found:
            numbers |= self.largest.arguments(self.first)
        for (member, fragment), given in zip(self.parts, kernel.given, strict=True):
            if given:
                values = knobs.get(member.id, {})
                if fragment.arguments is not None:
                    values = fragment.arguments(self.material, particles, step, **values)
                numbers |= {argument: np.float32(values[name]) for name, argument in given.items()}
        arguments = [numbers[name] if name in numbers else self.buffer(name) for name in kernel.types]
        self.residency.device.launch(self.compiled, self.runs, arguments)
        return Found(self.largest, self.first, kernel.found)

    def buffer(self, name: str) -> Any:
        """Return the buffer of an argument."""
        if name in self.own:
            return self.own[name]
        kernel, (particles, grid) = self.kernel, self.stores
        column = kernel.columns.get(name)
        array = grid.kept(name.removeprefix("grid_")) if column is None else particles.kept(column)
        # what is written may be written in part, for particles of one material: it is read, too
        return self.residency.on_device(array, write=name in kernel.writes)


def _coefficients(material: Any) -> np.ndarray:
    """Return the coefficients of a material as kernels of a GPU take them."""
    return np.asarray(material.coefficients, np.float32)


def steady_knobs(planned: Any) -> dict[str, Any]:
    """Return the knobs of a planned stage that have no keys."""
    return {name: value for name, value in planned.knobs.items() if name not in planned.keyed}


class HostCall:
    """A loop of the CPU in a solve on a device: its arrays are brought to the host before.

    Args:
        residency: Where arrays are.
        source: What the loop was composed from.
        call: The loop.
        stores: Particles and grid.
    """

    def __init__(self, residency: Residency, source: Source, call: BoundCall, stores: tuple[Any, Any]) -> None:
        self.residency, self.call = residency, call
        particles, grid = stores
        columns = [name for name in source.columns.values() if name in particles.names]
        self.arrays = [particles.kept(name) for name in ("position", *columns)]
        self.arrays += [grid.kept(name.removeprefix("grid_")) for name in source.names if name.startswith("grid_")]

    def take(self, laws: Sequence[Any]) -> None:
        """Take the coefficients of a substep from those of all materials."""
        self.call.take(laws)

    def __call__(self, particles: Any, step: Any, knobs: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
        """Run the loop in a substep; returns its reductions by name."""
        for array in self.arrays:
            self.residency.on_host(array)
        return self.call(particles, step, knobs)


def divide_by_mass(residency: Residency, grid: Any, step: Any) -> None:
    """Write v* = p* / m + dt g where "momentum" holds p* = m v + dt f already; see `transfers.motion`."""
    _on_nodes(residency, grid, step, "divide_by_mass", "momentum")


def update_grid_velocity(residency: Residency, grid: Any, step: Any) -> None:
    """Write v* = v + dt (f / m + g); see `transfers.motion`."""
    _on_nodes(residency, grid, step, "update_grid_velocity", "momentum", "force")


def _on_nodes(residency: Residency, grid: Any, step: Any, kernel: str, *arrays: str) -> None:
    nodes = 64 * grid.count
    buffers = [residency.substep(step.dt), *(residency.on_device(grid.kept(name)) for name in arrays)]
    buffers.append(residency.on_device(grid.kept("velocity"), write=True, read=False))
    numbers = [*(np.float32(g) for g in step.gravity), np.float32(grid.least_mass)]
    compiled = residency.device.kernel(header(), kernel)
    residency.device.launch(compiled, -(-nodes // THREADS), [*buffers, np.int32(nodes), *numbers])


def written_by(planned: Any, particles: Any, grid: Any) -> list[np.ndarray]:
    """Return the arrays of a planned stage's declared writes."""
    arrays = []
    for domain, name in planned.writes:
        if domain == "particles" and name in ("position", *particles.names):
            arrays.append(particles.kept(name))
        elif domain == "grid" and name in grid.fields:
            arrays.append(grid.kept(grid.fields[name].array))
    return arrays
