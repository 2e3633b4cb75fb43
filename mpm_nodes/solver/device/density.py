"""Density correction on a device: the counterpart of `stages.density.follow` and `filling.fill_cells`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpm_nodes.kernels.cuda.loop import THREADS, cuda_source, header
from mpm_nodes.kernels.transfers import room

__all__ = ["DeviceRoom", "room_kernels"]

_NUMBERS = ("AIR", "CLOSED", "HALF", "CROWDED", "MOST_ROOM", "LATTICE", "BEHIND", "LEAST")
"""What `transfers.room` has and its kernels take."""


@functools.cache
def room_kernels() -> str:
    """Return the kernels."""
    numbers = "".join(f"#define {name} {getattr(room, name)!r}f\n" for name in _NUMBERS)
    return f"{header()}{cuda_source('sums.cuh')}{numbers}{cuda_source('room.cuh')}"


class DeviceRoom:
    """The room in the cells of a grid, for as long as its blocks and those of particles are where they are.

    Args:
        particles, grid: The stores.
        around: Blocks before and behind each block, as `room.write_room` takes them.
    """

    def __init__(self, particles: Any, grid: Any, around: np.ndarray) -> None:
        grid.check()
        self.particles, self.grid, self.residency = particles, grid, particles.residency
        self.ranges, self.slots, self.around = map(self.residency.held, (particles.ranges, grid.particle_tiles(), around))
        self.liquids: dict[int, Any] = {}
        device, self.nodes = self.residency.device, 64 * grid.count
        self.groups = -(-self.nodes // THREADS)
        self.air, self.rows, self.row = (device.allocate(4 * n) for n in (self.nodes, 3 * self.groups, 3))

    def _launch(self, name: str, blocks: int, *arguments: Any) -> None:
        device = self.residency.device
        device.launch(device.kernel(room_kernels(), name), blocks, list(arguments))

    def fill(self, opened: np.ndarray | None) -> tuple[float, float]:
        """Write what cells say, and return what `filling.fill_cells` does; `opened` is o of the cells, None where all is open."""
        residency, grid, particles = self.residency, self.grid, self.particles
        grid.clear("room")
        cells = residency.on_device(grid.kept("room"), write=True)
        volume = residency.on_device(particles.kept("volume"))
        self._launch("fill_room", particles.block_count, self.ranges, self.slots, *self._places(), volume, cells)
        shares = self.air if opened is None else self.residency.held(opened.astype(np.float32))
        bodies, count = np.int32(opened is not None), np.int32(self.nodes)
        self._launch("write_room", self.groups, cells, shares, bodies, np.float32(grid.h**3), self.air, self.rows, count)
        self._launch("leave_surface", self.groups, cells, self.around, self.air, count)
        self._launch("add_rows", 3, self.rows, self.row, np.int32(3), np.int32(self.groups))
        told = np.empty(3, np.float32)
        residency.device.download(self.row, told)
        matter, crowded, densest = map(float, told)
        return densest, crowded / matter if matter else 0.0

    def follow(self, liquids: Sequence[Any], numbers: tuple[float, float, float]) -> None:
        """Let J of liquids follow.

        Args:
            liquids: Their laws.
            numbers: As `room.follow_room` takes them.
        """
        residency, particles = self.residency, self.particles
        cells = residency.on_device(self.grid.kept("room"))
        found = residency.on_device(particles.kept("room"), write=True, read=False)
        self._launch("gather_room", particles.block_count, self.ranges, self.slots, *self._places(), cells, found)
        velocity = residency.on_device(particles.kept("velocity"))
        change = residency.on_device(particles.kept("volume_change"), write=True)
        each = [np.float32(number) for number in numbers]
        for law in liquids:
            runs = particles.segments[law.index]
            if law.index not in self.liquids:
                self.liquids[law.index] = self.residency.held(runs)
            self._launch(
                "follow_room", len(runs), self.liquids[law.index], found, velocity, np.int32(particles.stride), *each, change
            )

    def _places(self) -> tuple[Any, ...]:
        """Return where particles are, as kernels take it."""
        particles = self.particles
        offset = self.residency.on_device(particles.kept("position"))
        return offset, np.int32(particles.stride), np.int32(particles.shift), np.float32(1.0 / particles.unit)
