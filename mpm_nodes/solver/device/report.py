"""What of a substep graph runs on a GPU, and what the rest costs in copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mpm_nodes.kernels.cuda.loop import Kernel, loop_kernel
from mpm_nodes.solver.shared_loops import SharedLoop

__all__ = ["device_kernel"]


def device_kernel(loop: SharedLoop, law: Any, table: Mapping[str, Any], factors: Collection[str] = ()) -> Kernel:
    """Return the kernel of a shared loop for one law, with the knobs of the plan and nothing to do for stages that can be idle.

    Args:
        loop: The loop; what can stay in it does.
        law, table, factors: As for `loop_kernel`.

    Raises:
        CompositionError: A fragment has no form on a GPU.
        TraceError: Its body does something that has none.
    """
    fitting, fold = loop.composed_of(law)
    local = [name for name, readers in loop.readers.items() if not readers]
    return loop_kernel(law if any(f.of_law for f in fitting) else None, fitting, table, local, fold, factors)
