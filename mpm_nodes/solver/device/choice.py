"""Which device a solve runs on, and why."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mpm_nodes.data import ATTRIBUTES, MpmNodesError, domain_named
from mpm_nodes.graph.plan.fusion import fragments_of
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.kernels.composition.block import CompositionError
from mpm_nodes.kernels.composition.fragments import Gather, Scatter
from mpm_nodes.kernels.cuda.loop import DeviceKernel, loop_kernel
from mpm_nodes.kernels.cuda.trace import TraceError
from mpm_nodes.solver.device.loops import steady_knobs
from mpm_nodes.solver.device.residency import Device
from mpm_nodes.solver.shared_loops import SharedLoop

__all__ = ["chosen_device", "device_kernel", "obstacles", "refuse", "refuse_large"]

BYTES = 320
"""What a particle takes on a device: position, velocity, mass, volume, four matrices, their places in a sort, and its grid."""
MOST = 2**31 // 12
"""Particles whose rows of a matrix kernels can still count with 32 bits."""


def chosen_device(
    choice: str,
    programs: Sequence[Any],
    laws: Sequence[Any],
    dtype: Any,
    count: int,
    *,
    several: bool = False,
    checked: bool = False,
) -> tuple[Device | None, str]:
    """Return the device to run on, None for the CPU, and with "auto" why it is that.

    Args:
        choice: "cpu", "cuda" or "auto": the GPU where there is one that can.
        programs: The candidates of the solve (`solver.program.Program`).
        laws: Laws of its materials (`materials.contract.Law`).
        dtype: Its float type.
        count: Particles that it begins with.
        several: Whether several ranks share it.
        checked: Whether every stage is to run twice.

    Raises:
        MpmNodesError: A GPU is asked for, and there is none, or the solve cannot run on it or has no room there.
    """
    if choice == "cpu":
        return None, ""
    from mpm_nodes.kernels.cuda.device import open_device

    try:
        refuse(programs, laws, dtype, several=several, checked=checked)
        if choice == "auto":
            _refuse_beside(programs)
        device = open_device()
        refuse_large(device, count)
    except MpmNodesError as error:
        if choice == "cuda":
            raise
        return None, f"the solve runs on the CPU: {str(error).removeprefix('solve.device: ')}"
    return device, f"the solve runs on {device.name}"


def refuse(programs: Sequence[Any], laws: Sequence[Any], dtype: Any, *, several: bool = False, checked: bool = False) -> None:
    """Refuse a solve that cannot run on a GPU.

    Raises:
        MpmNodesError: With the reason.
    """
    if np.dtype(dtype) != np.float32:
        raise MpmNodesError("solve.device: double precision runs on the CPU only; set precision to single, or device to cpu")
    if several:
        raise MpmNodesError("solve.device: ranks share a simulation on CPUs only; set device to cpu, or solve on one rank")
    if checked:
        raise MpmNodesError("solve.device: checked mode runs on the CPU only; set device to cpu, or cook without it")
    for program in programs:
        found = "they are implicit" if program.implicit else next(iter(obstacles(program.on_device, laws)), "")
        if found:
            raise MpmNodesError(f"solve.device: these substeps do not run on a GPU yet: {found}; set device to cpu")


def _refuse_beside(programs: Sequence[Any]) -> None:
    """Refuse what was not asked for: a GPU for substeps that solve for heat, pressure or surfaces on the CPU all the same."""
    domains = {name for program in programs for planned in program.unfused.stages for name in planned.domains}
    beside = " and the ".join(sorted(domain_named(name).label.lower() for name in domains - {"particles", "grid", "colliders"}))
    if beside:
        raise MpmNodesError(f"solve.device: its stages on the {beside} always do; set device to cuda to run the others on a GPU")


def refuse_large(device: Device, count: int) -> None:
    """Refuse more particles than the memory of a device holds.

    Raises:
        MpmNodesError: With how many would fit.
    """
    fit = min(device.memory // BYTES, MOST)
    if count > fit:
        raise MpmNodesError(
            f"solve.device: {count:.3g} particles take {count * BYTES / 1e9:.3g} GB, and {device.name} has "
            f"{device.memory / 1e9:.3g} GB free: about {fit:.2g} fit; lower settings.resolution, or set device to cpu"
        )


def device_kernel(loop: SharedLoop, law: Any, table: Mapping[str, Any], factors: Collection[str] = ()) -> DeviceKernel:
    """Return the kernel of a shared loop for one law, with the knobs of the plan and nothing to do for stages that can be idle.

    Args:
        loop: The loop; what can stay in it does.
        law, table, factors: As for `loop_kernel`.

    Raises:
        CompositionError: A fragment has no form on a GPU.
        TraceError: Its body does something that has none.
    """
    parts, fold = loop.composed_of(law)
    fragments = [part.fragment for part in parts]
    local = [name for name, readers in loop.readers.items() if not readers]
    plain = [steady_knobs(part.member) for part in parts]
    return loop_kernel(law if any(f.of_law for f in fragments) else None, fragments, table, local, fold, factors, plain)


def obstacles(plan: SubstepPlan, laws: Sequence[Any]) -> list[str]:
    """Return why loops of a device's plan between particles and grid cannot run; other stages may run on the CPU in between."""
    found = []
    for planned in plan.stages:
        loop = planned.function
        if not isinstance(loop, SharedLoop) or not any(
            isinstance(f, (Gather, Scatter)) for member in loop.members for f in fragments_of(member)
        ):
            continue
        for law in laws:
            try:
                device_kernel(loop, law, {**ATTRIBUTES, **law.fields})
            except (CompositionError, TraceError) as error:
                found.append(f"{planned.id}: {error}")
                break
    return found
